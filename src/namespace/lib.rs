//! Purpose: the tree of names: children, resolution, access checks, quotas, leases, ACLs, attributes; everything of an inode that is not a block.
//! Called by: state (fit and apply), ops (reads and checks), storage (bulk construction from an image), server (who is a superuser).
//! Calls: record (inode records by handle), mem (side tables), vocab.
//! Never: touches the block map or a DataNode, decides what a record does (state does), reads a clock or a setting.
//! Invariants: `check` lists them; a detached subtree is invisible at once and freed in slices.

pub mod access;
pub mod acl;
pub mod build;
pub mod bulk;
mod bulk_count;
pub mod check;
pub mod children;
pub mod codec;
pub mod construction;
mod counting;
mod encryption;
pub mod erasure_coding;
pub mod lease;
mod persist;
pub mod quota;
pub mod reclaim;
pub mod rename;
pub mod resolve;
pub mod side;
pub mod snapshot;
pub mod storage_policy;
pub mod summary;
mod walker;
mod ways;

pub use access::{Checker, SubtreeCheck, Walk, Wanted};
pub use construction::Construction;
pub use quota::QuotaRecord;
pub use resolve::Resolved;
pub use walker::{Place, Walker};

use children::{Children, Lists};
use mem::side::SideTable;
use record::{Features, GroupId, Inode, InodeHandle, InodeKind, KindTag, Store, UserId};
use std::collections::{BTreeSet, VecDeque};
use vocab::{InodeId, Mode, TimeMs};

/// The namespace half of the file system: all but the inode records themselves, which live in [`record::Store`]. Side tables are keyed by handle
/// and hold encoded values ([`codec`]); the features of the record say which of them speak of an inode.
#[derive(Debug)]
pub struct Tree {
    root: InodeHandle,
    lists: Lists,
    acls: SideTable,
    xattrs: SideTable,
    quotas: SideTable,
    constructions: SideTable,
    symlinks: SideTable,
    /// Who writes what.
    pub leases: lease::Leases,
    detached: VecDeque<reclaim::Waiting>,
    /// Those of them that are no subtrees.
    cleanups: usize,
    inode_count: u64,
    /// Directories that were taken out of a list: counts every change after which a path may lead elsewhere than it did.
    moves: u64,
    ways: ways::Ways,
    /// Snapshots and what they hold.
    pub snapshots: snapshot::Snapshots,
    /// Erasure coding policies.
    pub erasure_coding: erasure_coding::Policies,
    /// Roots of encryption zones, as their attributes say.
    zones: BTreeSet<InodeHandle>,
    /// Of what somebody counts the use in steps.
    counting: Option<counting::Counting>,
}

/// Owner, group and mode of a root directory (image, format).
#[derive(Clone, Copy, Debug)]
pub struct RootAttributes<'a> {
    /// Owner.
    pub user: &'a str,
    /// Group.
    pub group: &'a str,
    /// Mode.
    pub mode: Mode,
}

impl Tree {
    /// Bytes held in pages, by part.
    pub fn memory(&self) -> [(&'static str, usize); 6] {
        [
            ("Children", self.lists.memory_bytes()),
            ("Acls", self.acls.memory_bytes()),
            ("Xattrs", self.xattrs.memory_bytes()),
            ("Quotas", self.quotas.memory_bytes()),
            ("Constructions", self.constructions.memory_bytes()),
            ("Symlinks", self.symlinks.memory_bytes()),
        ]
    }

    /// A tree of nothing but the root, as a format leaves it: mode 0755 or as given, no times, namespace quota 2^63-1.
    pub fn new(store: &mut Store, attributes: RootAttributes<'_>) -> Tree {
        let user = store.intern_user(attributes.user);
        let group = store.intern_group(attributes.group);
        let kind = InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 };
        let root = Inode {
            id: InodeId::ROOT,
            parent: None,
            user,
            group,
            mode: attributes.mode,
            mtime: TimeMs(0),
            atime: TimeMs(0),
            features: Features::NONE,
            kind,
        };
        let root = store.add_inode(&root, b"");
        let mut tree = Tree {
            root,
            lists: Lists::default(),
            acls: SideTable::new(),
            xattrs: SideTable::new(),
            quotas: SideTable::new(),
            constructions: SideTable::new(),
            symlinks: SideTable::new(),
            leases: lease::Leases::default(),
            detached: VecDeque::new(),
            cleanups: 0,
            inode_count: 1,
            moves: 0,
            ways: ways::Ways::default(),
            snapshots: snapshot::Snapshots::default(),
            erasure_coding: erasure_coding::Policies::default(),
            zones: BTreeSet::new(),
            counting: None,
        };
        let quota = vocab::quota::Quota { namespace: Some(quota::ROOT_NAMESPACE), ..Default::default() };
        tree.set_quota_limits(store, root, quota);
        tree
    }

    /// The root directory.
    pub fn root(&self) -> InodeHandle {
        self.root
    }
    /// Number of inodes in the tree, the root included (Hadoop's FilesTotal).
    pub fn inode_count(&self) -> u64 {
        self.inode_count
    }
    /// Children of a directory in name order.
    pub fn children(&self, store: &Store, directory: InodeHandle) -> Children<'_> {
        self.lists.iter(store.children(directory).0)
    }
    /// Children of a directory after a name, and how many come before them.
    pub fn children_after(&self, store: &Store, directory: InodeHandle, start_after: &[u8]) -> (Children<'_>, usize) {
        self.lists.iter_after(store, store.children(directory).0, start_after)
    }

    /// Enters an inode that has its name already as a child of `parent`. Counts and quota usage are the caller's (see [`Tree::add`]).
    /// `false` if the name is taken.
    pub fn link(&mut self, store: &mut Store, parent: InodeHandle, child: InodeHandle) -> bool {
        let (list, count) = store.children(parent);
        let Some(list) = self.lists.insert(store, list, child) else { return false };
        self.count_children(parent);
        store.set_children(parent, list, count + 1);
        store.set_parent(child, Some(parent));
        true
    }

    /// Takes a child out of its parent's list. Its own link upwards is cleared.
    pub fn unlink(&mut self, store: &mut Store, child: InodeHandle) {
        let Some(parent) = store.parent(child) else { return };
        self.count_children(parent);
        let (list, count) = store.children(parent);
        if let Some((_, list)) = self.lists.remove(store, list, store.name(child)) {
            store.set_children(parent, list, count - 1);
        }
        store.set_parent(child, None);
        if store.kind(child) == KindTag::Directory {
            self.moves += 1;
        }
    }

    /// Makes an inode and enters it below `parent`, with counts and quota usage. The name must be free.
    pub fn add(&mut self, store: &mut Store, parent: InodeHandle, inode: &Inode, name: &[u8]) -> InodeHandle {
        let handle = store.add_inode(&Inode { parent: None, ..inode.clone() }, name);
        let linked = self.link(store, parent, handle);
        debug_assert!(linked, "the name is free");
        self.inode_count += 1;
        self.add_usage(store, parent, &vocab::quota::Usage { namespace: 1, ..Default::default() });
        handle
    }

    /// Sets the owner; an absent one stays.
    pub fn set_owner(&mut self, store: &mut Store, inode: InodeHandle, user: Option<&str>, group: Option<&str>) {
        let user: Option<UserId> = user.map(|u| store.intern_user(u));
        let group: Option<GroupId> = group.map(|g| store.intern_group(g));
        store.edit_inode(inode, |i| {
            i.user = user.unwrap_or(i.user);
            i.group = group.unwrap_or(i.group);
        });
    }

    /// Raises a directory's modification time; an earlier one changes nothing (Hadoop's `updateModificationTime`).
    pub fn touch(&mut self, store: &mut Store, directory: InodeHandle, time: TimeMs) {
        store.raise_mtime(directory, time);
    }
}
