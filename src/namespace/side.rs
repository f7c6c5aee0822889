//! Side tables: ACLs, extended attributes, symlink targets. The feature bit of the record and the entry here change together.

use crate::Tree;
use crate::codec::{AclEntries, AclRef, XattrEntries, XattrRef, encode_acl, encode_xattrs};
use crate::erasure_coding::is_policy;
use record::{Features, InodeHandle, Store};
use vocab::acl::{AclEntry, AclScope};
use vocab::encryption::is_zone;
use vocab::xattr::{Xattr, XattrNamespace};

/// Key of an inode in the side tables.
pub(crate) fn key(inode: InodeHandle) -> i64 {
    i64::from(inode.raw())
}
/// The inode of a key.
pub(crate) fn inode_of(key: i64) -> Option<InodeHandle> {
    InodeHandle::from_raw(u32::try_from(key).ok()?)
}

impl Tree {
    /// Stored ACL entries in place (access before default); none if there is no ACL.
    pub fn acl_entries(&self, inode: InodeHandle) -> AclEntries<'_> {
        AclEntries(self.acls.get(key(inode)).unwrap_or_default())
    }
    /// Stored ACL entries, copied out.
    pub fn acl(&self, inode: InodeHandle) -> Vec<AclEntry> {
        self.acl_entries(inode).map(AclRef::to_entry).collect()
    }
    /// Whether entries beyond the mode decide access: there are access entries (a directory may have default entries only).
    pub fn has_access_acl(&self, store: &Store, inode: InodeHandle) -> bool {
        store.features(inode).contains(Features::ACL)
            && self.acl_entries(inode).next().is_some_and(|e| e.scope == AclScope::Access)
    }
    /// Sets the stored entries; none removes the ACL.
    pub fn set_acl(&mut self, store: &mut Store, inode: InodeHandle, entries: &[AclEntry]) {
        let features = store.features(inode);
        if entries.is_empty() {
            self.acls.remove(key(inode));
            store.set_features(inode, features.without(Features::ACL));
        } else {
            let mut value = Vec::new();
            encode_acl(entries, &mut value);
            self.acls.set(key(inode), &value);
            store.set_features(inode, features.with(Features::ACL));
        }
    }

    /// Extended attributes in place, in the order they were set; none if there are none.
    pub fn xattr_entries(&self, inode: InodeHandle) -> XattrEntries<'_> {
        XattrEntries(self.xattrs.get(key(inode)).unwrap_or_default())
    }
    /// Extended attributes, copied out.
    pub fn xattrs(&self, inode: InodeHandle) -> Vec<Xattr> {
        self.xattr_entries(inode).map(XattrRef::to_xattr).collect()
    }
    /// One attribute.
    pub fn xattr(&self, inode: InodeHandle, namespace: XattrNamespace, name: &str) -> Option<XattrRef<'_>> {
        self.xattr_entries(inode).find(|x| x.namespace == namespace && x.name == name)
    }
    /// Inodes with an attribute, in no order. Walks all attributes there are.
    pub fn with_xattr(&self, namespace: XattrNamespace, name: &str) -> Vec<InodeHandle> {
        let has = |value: &[u8]| XattrEntries(value).any(|x| x.namespace == namespace && x.name == name);
        self.xattrs.iter().filter(|(_, value)| has(value)).filter_map(|(key, _)| inode_of(key)).collect()
    }
    /// Sets all attributes; none removes the table entry.
    pub fn set_xattrs(&mut self, store: &mut Store, inode: InodeHandle, all: &[Xattr]) {
        let features = store.features(inode);
        if all.iter().any(is_zone) {
            self.zones.insert(inode);
        } else {
            self.zones.remove(&inode);
        }
        if all.is_empty() {
            self.xattrs.remove(key(inode));
            store.set_features(inode, features.without(Features::XATTRS));
        } else {
            self.erasure_coding.on_directories |= all.iter().any(is_policy);
            let mut value = Vec::new();
            encode_xattrs(all, &mut value);
            self.xattrs.set(key(inode), &value);
            store.set_features(inode, features.with(Features::XATTRS));
        }
    }

    /// Target of a symlink; empty for anything else.
    pub fn symlink_target(&self, inode: InodeHandle) -> &[u8] {
        self.symlinks.get(key(inode)).unwrap_or_default()
    }
    /// Sets the target of a symlink.
    pub fn set_symlink_target(&mut self, store: &mut Store, inode: InodeHandle, target: &[u8]) {
        self.symlinks.set(key(inode), target);
        let features = store.features(inode);
        store.set_features(inode, features.with(Features::SYMLINK_TARGET));
    }

    /// Drops everything that side tables hold of an inode about to be freed.
    pub(crate) fn forget_sides(&mut self, inode: InodeHandle, features: Features) {
        if features.contains(Features::XATTRS) {
            self.zones.remove(&inode);
        }
        let tables = [
            (Features::ACL, &mut self.acls),
            (Features::XATTRS, &mut self.xattrs),
            (Features::QUOTA, &mut self.quotas),
            (Features::SYMLINK_TARGET, &mut self.symlinks),
            (Features::CONSTRUCTION, &mut self.constructions),
        ];
        for (feature, table) in tables {
            if features.contains(feature) {
                table.remove(key(inode));
            }
        }
    }
}
