//! Directories that allow snapshots, and their snapshots.

use super::diff::DirectoryDiff;
use super::{AttributeCopy, Snapshots};
use crate::Tree;
use record::{Features, InodeHandle, Store};
use std::sync::Arc;
use vocab::path::compare_names;
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{InodeId, SnapshotId, TimeMs};

/// How many snapshots a directory may have that allows any (`DirectorySnapshottableFeature.SNAPSHOT_QUOTA_DEFAULT`).
pub const QUOTA_DEFAULT: u32 = 65_536;

/// A directory that allows snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// Its record.
    pub directory: InodeHandle,
    /// How many snapshots it may have.
    pub quota: u32,
    /// Its snapshots in name order.
    pub snapshots: Vec<Snapshot>,
}

/// One snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Number.
    pub id: SnapshotId,
    /// Name.
    pub name: Box<[u8]>,
    /// Attributes of the directory when it was taken.
    pub root: Arc<AttributeCopy>,
}

impl Root {
    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        self.snapshots.binary_search_by(|s| compare_names(&s.name, name))
    }
    /// The snapshot of a name.
    pub fn snapshot(&self, name: &[u8]) -> Option<&Snapshot> {
        self.find(name).ok().map(|at| &self.snapshots[at])
    }
    /// The snapshot of a number.
    pub fn by_id(&self, id: SnapshotId) -> Option<&Snapshot> {
        self.snapshots.iter().find(|s| s.id == id)
    }
}

impl Snapshots {
    /// The directories that allow snapshots, by id.
    pub fn roots(&self) -> impl Iterator<Item = (InodeId, &Root)> {
        self.roots.iter().map(|(id, root)| (*id, root))
    }
    /// How many directories allow snapshots.
    pub fn root_count(&self) -> usize {
        self.roots.len()
    }
    /// A directory that allows snapshots.
    pub fn root(&self, id: InodeId) -> Option<&Root> {
        self.roots.get(&id)
    }
}

impl Tree {
    /// The snapshots of a directory, if it allows any.
    pub fn snapshot_root(&self, store: &Store, directory: InodeHandle) -> Option<&Root> {
        if self.snapshots.roots.is_empty() || !store.features(directory).contains(Features::SNAPSHOTTABLE) {
            return None;
        }
        self.snapshots.roots.get(&store.inode_id(directory))
    }

    /// Whether an inode is a directory or lies below it.
    pub fn is_below(&self, store: &Store, inode: InodeHandle, directory: InodeHandle) -> bool {
        let mut current = Some(inode);
        while let Some(inode) = current.filter(|i| *i != directory) {
            current = store.parent(inode);
        }
        current.is_some()
    }
    /// The directories that allow snapshots from an inode down, as a walk meets them that goes by names.
    pub fn snapshot_roots_below(&self, store: &Store, inode: InodeHandle) -> Vec<&Root> {
        let roots = self.snapshots.roots.values();
        let below: Vec<_> = roots.filter(|root| self.is_below(store, root.directory, inode)).collect();
        let names = |root: &Root| -> Vec<Box<[u8]>> {
            let mut names: Vec<Box<[u8]>> = Vec::new();
            let mut current = Some(root.directory);
            while let Some(directory) = current.filter(|d| *d != inode) {
                names.push(store.name(directory).into());
                current = store.parent(directory);
            }
            names.reverse();
            names
        };
        let mut below: Vec<_> = below.into_iter().map(|root| (names(root), root)).collect();
        below.sort_by(|(a, _), (b, _)| {
            let mut orders = a.iter().zip(b).map(|(a, b)| compare_names(a, b));
            orders.find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        });
        below.into_iter().map(|(_, root)| root).collect()
    }

    /// Lets a directory have snapshots.
    pub fn allow_snapshots(&mut self, store: &mut Store, directory: InodeHandle) {
        let root = Root { directory, quota: QUOTA_DEFAULT, snapshots: Vec::new() };
        self.snapshots.roots.entry(store.inode_id(directory)).or_insert(root);
        let features = store.features(directory);
        store.set_features(directory, features.with(Features::SNAPSHOTTABLE));
    }

    /// Takes that permission back; the directory must have no snapshot.
    pub fn disallow_snapshots(&mut self, store: &mut Store, directory: InodeHandle) {
        self.snapshots.roots.remove(&store.inode_id(directory));
        let features = store.features(directory);
        store.set_features(directory, features.without(Features::SNAPSHOTTABLE));
    }

    /// Takes a snapshot. `time` becomes the modification time of the directory and of the snapshot; older logs have none,
    /// and then it is 0 for the snapshot. The name must be free.
    pub fn take_snapshot(
        &mut self,
        store: &mut Store,
        directory: InodeHandle,
        name: &[u8],
        time: Option<TimeMs>,
    ) -> SnapshotId {
        let id = SnapshotId(self.snapshots.counter as i32);
        self.snapshots.counter += 1;
        let mut copy = AttributeCopy { name: name.into(), ..self.attributes(store, directory) };
        copy.inode.mtime = time.unwrap_or_default();
        let copy = Arc::new(copy);
        let diff = DirectoryDiff {
            is_root: true,
            copy: Some(copy.clone()),
            ..DirectoryDiff::new(id, store.children(directory).1)
        };
        self.snapshots.directories.or_default(directory).push(diff);
        let features = store.features(directory);
        store.set_features(directory, features.with(Features::SNAPSHOT_DIFFS));
        if let Some(root) = self.snapshots.roots.get_mut(&store.inode_id(directory))
            && let Err(at) = root.find(name)
        {
            root.snapshots.insert(at, Snapshot { id, name: name.into(), root: copy });
        }
        if let Some(time) = time {
            self.touch(store, directory, time);
        }
        id
    }

    /// Gives a snapshot another name, which must be free; `time` becomes the modification time of the snapshot.
    pub fn rename_snapshot(
        &mut self,
        store: &Store,
        directory: InodeHandle,
        old: &[u8],
        new: &[u8],
        time: Option<TimeMs>,
    ) {
        let Some(root) = self.snapshots.roots.get_mut(&store.inode_id(directory)) else { return };
        let Ok(at) = root.find(old) else { return };
        let mut snapshot = root.snapshots.remove(at);
        snapshot.name = new.into();
        let id = snapshot.id;
        if let Err(at) = root.find(new) {
            root.snapshots.insert(at, snapshot);
        }
        self.edit_snapshot(store, directory, id, |copy| {
            copy.name = new.into();
            copy.inode.mtime = time.unwrap_or_default();
        });
    }

    /// Marks a snapshot as deleted while older ones keep it (ordered deletion).
    pub fn mark_snapshot_deleted(&mut self, store: &Store, directory: InodeHandle, name: &[u8]) {
        let Some(id) = self.snapshot_root(store, directory).and_then(|r| r.snapshot(name)).map(|s| s.id) else {
            return;
        };
        self.edit_snapshot(store, directory, id, |copy| copy.xattrs.push(deleted_mark()));
    }

    /// Changes the attributes of a snapshot's root, in both places that hold them.
    fn edit_snapshot(
        &mut self,
        store: &Store,
        directory: InodeHandle,
        id: SnapshotId,
        edit: impl FnOnce(&mut AttributeCopy),
    ) {
        let root = self.snapshots.roots.get_mut(&store.inode_id(directory));
        let Some(snapshot) = root.and_then(|r| r.snapshots.iter_mut().find(|s| s.id == id)) else { return };
        let mut copy = AttributeCopy::clone(&snapshot.root);
        edit(&mut copy);
        snapshot.root = Arc::new(copy);
        let diffs = self.snapshots.directories.get_mut(&directory);
        if let Some(diff) = diffs.and_then(|d| d.iter_mut().find(|d| d.snapshot == id && d.is_root)) {
            diff.copy = Some(snapshot.root.clone());
        }
    }

    /// Takes a snapshot off its directory's list; what it held is for [`Tree::delete_snapshot`].
    pub(super) fn forget_snapshot(&mut self, directory: InodeId, name: &[u8]) -> Option<Snapshot> {
        let root = self.snapshots.roots.get_mut(&directory)?;
        let at = root.find(name).ok()?;
        Some(root.snapshots.remove(at))
    }
}

/// The attribute that marks a deleted snapshot which older ones keep.
pub fn deleted_mark() -> Xattr {
    Xattr { namespace: XattrNamespace::System, name: "hdfs.snapshot.deleted".into(), value: [].into() }
}

impl Snapshot {
    /// Whether it was deleted and waits for older ones to go.
    pub fn is_deleted(&self) -> bool {
        let mark = deleted_mark();
        self.root.xattrs.iter().any(|x| x.namespace == mark.namespace && x.name == mark.name)
    }
}
