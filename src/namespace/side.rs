//! Side tables: ACLs, extended attributes, symlink targets. The feature bit of the record and the entry here change together.

use crate::Tree;
use crate::erasure_coding::is_policy;
use record::{Features, InodeHandle, Store};
use std::sync::Arc;
use vocab::acl::{AclEntry, AclScope};
use vocab::xattr::{Xattr, XattrNamespace};

impl Tree {
    /// Stored ACL entries (access before default); empty if there are none.
    pub fn acl(&self, inode: InodeHandle) -> &[AclEntry] {
        self.acls.get(&inode).map_or(&[], |entries| entries)
    }
    /// Whether entries beyond the mode decide access: there are access entries (a directory may have default entries only).
    pub fn has_access_acl(&self, store: &Store, inode: InodeHandle) -> bool {
        store.features(inode).contains(Features::ACL)
            && self.acl(inode).first().is_some_and(|e| e.scope == AclScope::Access)
    }
    /// Sets the stored entries; none removes the ACL.
    pub fn set_acl(&mut self, store: &mut Store, inode: InodeHandle, entries: &[AclEntry]) {
        let features = store.features(inode);
        if entries.is_empty() {
            self.acls.remove(&inode);
            store.set_features(inode, features.without(Features::ACL));
        } else {
            self.acls.insert(inode, entries.into());
            store.set_features(inode, features.with(Features::ACL));
        }
    }

    /// Extended attributes in the order they were set; empty if there are none.
    pub fn xattrs(&self, inode: InodeHandle) -> &[Xattr] {
        self.xattrs.get(&inode).map_or(&[], |all| all)
    }
    /// One attribute.
    pub fn xattr(&self, inode: InodeHandle, namespace: XattrNamespace, name: &str) -> Option<&Xattr> {
        self.xattrs(inode).iter().find(|x| x.namespace == namespace && &*x.name == name)
    }
    /// Sets all attributes; none removes the table entry.
    pub fn set_xattrs(&mut self, store: &mut Store, inode: InodeHandle, all: Vec<Xattr>) {
        let features = store.features(inode);
        if all.is_empty() {
            self.xattrs.remove(&inode);
            store.set_features(inode, features.without(Features::XATTRS));
        } else {
            self.erasure_coding.on_directories |= all.iter().any(is_policy);
            self.xattrs.insert(inode, Arc::from(all));
            store.set_features(inode, features.with(Features::XATTRS));
        }
    }

    /// Target of a symlink; empty for anything else.
    pub fn symlink_target(&self, inode: InodeHandle) -> &[u8] {
        self.symlinks.get(&inode).map_or(b"", |target| target)
    }
    /// Sets the target of a symlink.
    pub fn set_symlink_target(&mut self, store: &mut Store, inode: InodeHandle, target: &[u8]) {
        self.symlinks.insert(inode, target.into());
        let features = store.features(inode);
        store.set_features(inode, features.with(Features::SYMLINK_TARGET));
    }

    /// Drops everything that side tables hold of an inode about to be freed.
    pub(crate) fn forget_sides(&mut self, inode: InodeHandle, features: Features) {
        if features.contains(Features::ACL) {
            self.acls.remove(&inode);
        }
        if features.contains(Features::XATTRS) {
            self.xattrs.remove(&inode);
        }
        if features.contains(Features::QUOTA) {
            self.quotas.remove(&inode);
        }
        if features.contains(Features::SYMLINK_TARGET) {
            self.symlinks.remove(&inode);
        }
        if features.contains(Features::CONSTRUCTION) {
            self.constructions.remove(&inode);
        }
    }
}
