//! Purpose: the past of the tree: directories that allow snapshots, their snapshots, and what changed since each (diffs).
//! Called by: the rest of namespace, state (capture before each change, snapshot records), ops (reads below `.snapshot`), storage (image sections).
//! Calls: record, vocab.
//! Never: decides whether a caller may; frees a block itself (a sink does).
//! Invariants: a diff of snapshot s says how its inode differed between s and the next diff (or the present); lists of diffs ascend by snapshot;
//! what a deleted list holds keeps its parent and is marked `SNAPSHOT_ONLY`; names of created and deleted lists ascend.
//!
//! What Hadoop keeps as reference inodes (`INodeReference`) is here a mark of the renamed inode: how often the past knows it under another name,
//! and whether it lives where a rename put it. Child lists always hold the inode itself, so that a walk of the present never meets a reference.

mod capture;
mod clean;
mod diff;
mod kept;
mod past;
mod persist;
mod rename;
mod roots;
mod striped;
mod usage;
mod views;

mod build;
pub mod report;

pub(crate) use clean::Cleanup;
pub use clean::Reclaimed;
pub use diff::{AttributeCopy, DirectoryDiff, FileDiff, Gone, Link};
use kept::Kept;
pub use kept::{PastCopy, PastTables};
pub use past::Entry;
pub use roots::{QUOTA_DEFAULT, Root, Snapshot};
pub use views::SeenInViews;

use record::InodeHandle;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use vocab::{InodeId, SnapshotId};

/// Diffs of a file, and whether the file is gone from the present.
#[derive(Clone, Debug, Default)]
pub struct FileDiffs {
    /// By ascending snapshot.
    pub list: Vec<FileDiff>,
    /// Whether only snapshots hold the file.
    pub deleted: bool,
}

/// Who refers to an inode that was renamed out of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct References {
    /// Last snapshot of each old name, ascending; the names are in the deleted lists of the directories they were in.
    pub names: Vec<SnapshotId>,
    /// Set while the inode lies where a rename put it (in the present, or in a deleted list there): the latest snapshot of the target directory
    /// at the time of the rename, [`SnapshotId::CURRENT`] if there was none.
    pub target: Option<SnapshotId>,
}

/// Where an older name of an inode is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OlderName {
    /// The directory that has it in a deleted list.
    pub directory: InodeHandle,
    /// The name.
    pub name: Arc<[u8]>,
}

/// All of the past.
#[derive(Debug, Default)]
pub struct Snapshots {
    /// Number of the next snapshot.
    pub counter: u32,
    pub(crate) roots: BTreeMap<InodeId, Root>,
    pub(crate) directories: Kept<Vec<DirectoryDiff>>,
    pub(crate) files: Kept<FileDiffs>,
    pub(crate) references: Kept<References>,
    /// Where the older names are, by inode and last snapshot (derived).
    pub(crate) older_names: HashMap<(InodeHandle, SnapshotId), OlderName>,
    /// Striped files whose diffs hold blocks, or did once (derived).
    held_stripes: HashSet<InodeHandle>,
}

impl Snapshots {
    /// Whether there is nothing of the past: no snapshot and nothing renamed out of one. Then nothing has to be captured.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.files.is_empty() && self.references.is_empty()
    }
    /// Diffs of a directory by ascending snapshot.
    pub fn directory_diffs(&self, directory: InodeHandle) -> &[DirectoryDiff] {
        self.directories.get(&directory).map_or(&[], |d| d)
    }
    /// Diffs of a file by ascending snapshot.
    pub fn file_diffs(&self, file: InodeHandle) -> &[FileDiff] {
        self.files.get(&file).map_or(&[], |d| &d.list)
    }
    /// Whether only snapshots hold a file that has diffs.
    pub fn is_deleted(&self, file: InodeHandle) -> bool {
        self.files.get(&file).is_some_and(|d| d.deleted)
    }
    /// Who refers to a renamed inode.
    pub fn references(&self, inode: InodeHandle) -> Option<&References> {
        self.references.get(&inode)
    }
    /// Inodes that have diffs, in no order.
    pub fn with_diffs(&self) -> impl Iterator<Item = InodeHandle> + '_ {
        self.directories.keys().chain(self.files.keys()).copied()
    }
    /// Inodes that were renamed out of a snapshot, in no order.
    pub fn referred(&self) -> impl Iterator<Item = InodeHandle> + '_ {
        self.references.keys().copied()
    }
    /// To be called when a deleted list of a directory has got something.
    pub(crate) fn note_older_name(&mut self, directory: InodeHandle, gone: &Gone) {
        if let Link::Named { name, last } = &gone.link {
            self.older_names.insert((gone.inode, *last), OlderName { directory, name: name.clone() });
        }
    }
    /// The same of all, at the end of a load.
    fn note_all_older_names(&mut self) {
        let Snapshots { directories, older_names, .. } = self;
        for (directory, diffs) in directories.iter() {
            for gone in diffs.iter().flat_map(|diff| &diff.deleted) {
                if let Link::Named { name, last } = &gone.link {
                    older_names.insert((gone.inode, *last), OlderName { directory: *directory, name: name.clone() });
                }
            }
        }
    }
    /// How many snapshots there are.
    pub fn count(&self) -> usize {
        self.roots.values().map(|r| r.snapshots.len()).sum()
    }
}
