//! Bulk construction, for the image loader: inodes in any order, child lists in name order, side tables; at the end all that is derived.

use crate::children::Lists;
use crate::erasure_coding::Policies;
use crate::quota::{self, QuotaRecord};
use crate::{Tree, lease};
use mem::side::SideTable;
use record::{Features, Inode, InodeHandle, InodeKind, KindTag, Store};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use vocab::acl::AclEntry;
use vocab::path::compare_names;
use vocab::quota::{Quota, Usage};
use vocab::storage_policy::UNSPECIFIED;
use vocab::xattr::Xattr;
use vocab::{InodeId, TimeMs};

/// A tree being built.
#[derive(Debug)]
pub struct Build {
    pub(crate) tree: Tree,
    has_root: bool,
}

/// What cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// No inode has the root's id, or it is no directory.
    NoRoot,
    /// Children of an inode that is no directory.
    NotADirectory(InodeId),
    /// A directory lists a child that has a parent already.
    TwoParents(InodeId),
    /// Names of a directory are out of order or doubled.
    Order(InodeId),
    /// A directory has two lists of children.
    TwoLists(InodeId),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoRoot => write!(f, "there is no root directory"),
            BuildError::NotADirectory(id) => write!(f, "inode {id} has children but is no directory"),
            BuildError::TwoParents(id) => write!(f, "inode {id} is in two directories"),
            BuildError::Order(id) => write!(f, "names in directory {id} are out of order"),
            BuildError::TwoLists(id) => write!(f, "directory {id} is listed twice"),
        }
    }
}

impl std::error::Error for BuildError {}

impl Build {
    /// Begins with nothing. `store` must hold no inode yet; the root's record is made here and replaced by the image's.
    pub fn new(store: &mut Store) -> Build {
        let kind = InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 };
        let root = Inode {
            id: InodeId::ROOT,
            parent: None,
            user: store.intern_user(""),
            group: store.intern_group(""),
            mode: vocab::Mode::new(0o755),
            mtime: TimeMs(0),
            atime: TimeMs(0),
            features: Features::NONE,
            kind,
        };
        let root = store.add_inode(&root, b"");
        Build { tree: Build::bare(root), has_root: false }
    }
    /// A tree of a root whose record exists, and nothing else.
    pub(crate) fn bare(root: InodeHandle) -> Tree {
        Tree {
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
            inode_count: 0,
            moves: 0,
            ways: crate::ways::Ways::default(),
            snapshots: crate::snapshot::Snapshots::default(),
            erasure_coding: Policies::default(),
            zones: BTreeSet::new(),
            counting: None,
        }
    }

    pub(crate) fn from_parts(tree: Tree, has_root: bool) -> Build {
        Build { tree, has_root }
    }

    /// Adds an inode; its parent, children and features are set later. The root is told by its id.
    pub fn add(&mut self, store: &mut Store, inode: &Inode, name: &[u8]) -> InodeHandle {
        if inode.id != InodeId::ROOT {
            return store.add_inode(inode, name);
        }
        self.has_root = matches!(inode.kind, InodeKind::Directory { .. });
        store.edit_inode(self.tree.root, |root| *root = inode.clone());
        self.tree.root
    }

    /// Sets the children of a directory, in name order.
    ///
    /// # Errors
    /// See [`BuildError`]; the list is not set then.
    pub fn set_children(
        &mut self,
        store: &mut Store,
        parent: InodeHandle,
        children: &[InodeHandle],
    ) -> Result<(), BuildError> {
        let id = store.inode_id(parent);
        if store.kind(parent) != KindTag::Directory {
            return Err(BuildError::NotADirectory(id));
        }
        let ordered = children.windows(2).all(|pair| compare_names(store.name(pair[0]), store.name(pair[1])).is_lt());
        if !ordered {
            return Err(BuildError::Order(id));
        }
        for child in children {
            if store.parent(*child).is_some() || *child == self.tree.root {
                return Err(BuildError::TwoParents(store.inode_id(*child)));
            }
            store.set_parent(*child, Some(parent));
        }
        let count = children.len() as u32;
        let list = self.tree.lists.set_sorted(store, children);
        store.set_children(parent, list, count);
        Ok(())
    }

    /// Sets stored ACL entries.
    pub fn set_acl(&mut self, store: &mut Store, inode: InodeHandle, entries: &[AclEntry]) {
        self.tree.set_acl(store, inode, entries);
    }
    /// Sets extended attributes.
    pub fn set_xattrs(&mut self, store: &mut Store, inode: InodeHandle, all: &[Xattr]) {
        self.tree.set_xattrs(store, inode, all);
    }
    /// Sets the erasure coding policies. Before any file is added.
    pub fn set_erasure_coding(&mut self, policies: Policies) {
        self.tree.erasure_coding = policies;
    }
    /// The erasure coding policies.
    pub fn erasure_coding(&self) -> &Policies {
        &self.tree.erasure_coding
    }
    /// Whether a directory has a child of a name. All child lists must be there.
    pub fn has_child(&self, store: &Store, directory: InodeHandle, name: &[u8]) -> bool {
        self.tree.child(store, directory, name).is_some()
    }
    /// Sets the target of a symlink.
    pub fn set_symlink_target(&mut self, store: &mut Store, inode: InodeHandle, target: &[u8]) {
        self.tree.set_symlink_target(store, inode, target);
    }
    /// Sets the quota of a directory; its use is counted at the end.
    pub fn set_quota(&mut self, store: &mut Store, directory: InodeHandle, limits: Quota) {
        if limits != Quota::default() {
            self.tree.put_quota(directory, &QuotaRecord { limits, usage: Usage::default() });
            let features = store.features(directory);
            store.set_features(directory, features.with(Features::QUOTA));
        }
    }
    /// Marks a file as being written.
    pub fn open(&mut self, store: &mut Store, file: InodeHandle, client: &str, machine: &str) {
        self.tree.put_construction(file, client, machine);
        let features = store.features(file);
        store.set_features(file, features.with(Features::CONSTRUCTION));
    }

    /// Counts everything: inodes, quota use, leases. Inodes that no directory lists stay in the store, unreachable, as in Hadoop. Blocks must be
    /// attached by now.
    ///
    /// # Errors
    /// [`BuildError::NoRoot`].
    pub fn finish(mut self, store: &mut Store) -> Result<Tree, BuildError> {
        self.complete_root(store)?;
        self.tree.mark_past_files(store);
        self.tree.count_all(store);
        self.tree.inode_count += self.tree.past_inodes(store).len() as u64;
        self.tree.count_past_quotas(store);
        self.tree.derive_leases(store);
        Ok(self.tree)
    }
    /// The same where the whole use is known, all inodes are below the root, and it alone has a quota.
    pub(crate) fn finish_counted(mut self, store: &mut Store, usage: &Usage) -> Result<Tree, BuildError> {
        self.complete_root(store)?;
        self.tree.inode_count = store.inode_count();
        let root = self.tree.root;
        self.tree.edit_quota(root, |record| record.usage = *usage);
        self.tree.derive_leases(store);
        Ok(self.tree)
    }
    /// The same for a tree without a past, its inodes counted as `share` shares them out.
    pub(crate) fn finish_shared(
        mut self,
        store: &mut Store,
        parents: &[InodeHandle],
        share: crate::bulk::Share<'_>,
    ) -> Result<Tree, BuildError> {
        self.complete_root(store)?;
        if !self.tree.count_shared(store, parents, share) {
            return self.finish(store);
        }
        self.tree.derive_leases(store);
        Ok(self.tree)
    }
    /// The root is there and has a quota.
    fn complete_root(&mut self, store: &mut Store) -> Result<(), BuildError> {
        if !self.has_root {
            return Err(BuildError::NoRoot);
        }
        let root = self.tree.root;
        if self.tree.quota(store, root).is_none() {
            let limits = Quota { namespace: Some(quota::ROOT_NAMESPACE), ..Quota::default() };
            self.set_quota(store, root, limits);
        }
        Ok(())
    }
}

struct Frame {
    directory: InodeHandle,
    usage: Usage,
    storage_policy: u8,
    children: std::vec::IntoIter<InodeHandle>,
}

impl Tree {
    /// What older names of a renamed directory count is not told by each change of an open file below it: where there is a past, quotas are counted
    /// anew at every start, from an image or not.
    pub(crate) fn recount_past(&mut self, store: &Store) {
        if self.snapshots.is_empty() {
            return;
        }
        let inodes = self.inode_count;
        self.count_all(store);
        self.count_past_quotas(store);
        self.inode_count = inodes;
    }

    /// One walk over the whole tree that counts inodes and the use of every quota directory.
    fn count_all(&mut self, store: &Store) {
        self.inode_count = 0;
        self.count_below(store, self.root, UNSPECIFIED);
    }

    /// Counts the use of every quota directory at and below an inode of the present or a deleted list. What the inode uses.
    pub(crate) fn recount(&mut self, store: &Store, top: InodeHandle) -> Usage {
        if store.kind(top) != KindTag::Directory {
            return self.inode_usage(store, top);
        }
        let (inodes, inherited) = (self.inode_count, self.storage_policy(store, top));
        let usage = self.count_below(store, top, inherited);
        self.inode_count = inodes;
        usage
    }

    fn count_below(&mut self, store: &Store, top: InodeHandle, inherited: u8) -> Usage {
        let mut open = vec![self.enter(store, top, inherited)];
        loop {
            let Some(frame) = open.last_mut() else { unreachable!("the top is left by the answer") };
            if let Some(child) = frame.children.next() {
                if store.kind(child) == KindTag::Directory {
                    let inherited = frame.storage_policy;
                    let next = self.enter(store, child, inherited);
                    open.push(next);
                } else {
                    self.inode_count += 1;
                    let inherited = frame.storage_policy;
                    let mut usage = Usage { namespace: 1, ..Usage::default() };
                    if let Some(shape) = self.file_shape_below(store, child, inherited) {
                        quota::add(&mut usage, &self.blocks_usage(store, child, &shape, 0));
                    }
                    quota::add(&mut frame.usage, &usage);
                }
                continue;
            }
            let (directory, usage) = (frame.directory, frame.usage);
            open.pop();
            self.edit_quota(directory, |record| record.usage = usage);
            match open.last_mut() {
                Some(above) => quota::add(&mut above.usage, &usage),
                None => return usage,
            }
        }
    }

    fn enter(&mut self, store: &Store, directory: InodeHandle, inherited: u8) -> Frame {
        self.inode_count += 1;
        let own = self.own_storage_policy(store, directory);
        let children: Vec<InodeHandle> = self.children(store, directory).collect();
        let mut usage = Usage { namespace: 1, ..Usage::default() };
        let storage_policy = if own == UNSPECIFIED { inherited } else { own };
        quota::add(&mut usage, &self.past_usage(store, directory, storage_policy));
        Frame { directory, usage, storage_policy, children: children.into_iter() }
    }
}
