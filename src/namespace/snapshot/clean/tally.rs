//! What quotas count of an entry, found in steps.

use super::super::diff::at;
use super::super::{Gone, Link};
use super::CHUNK;
use super::walk::{Children, Next};
use crate::{Tree, quota};
use record::{InodeHandle, KindTag, Store};
use vocab::SnapshotId;
use vocab::quota::Usage;
use vocab::storage_policy::UNSPECIFIED;

/// A count under way: as [`Tree::entry_usage`] of all entries that were added, less those that were taken away.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// What is left to count; the last one is next.
    open: Vec<Count>,
    /// Directories that are being counted as of a snapshot, from the top down.
    way: Vec<InodeHandle>,
    is_loss: bool,
    usage: Usage,
}

#[derive(Debug)]
enum Count {
    /// From here on entries are taken away (or added).
    Loss(bool),
    /// As it is now.
    Now(InodeHandle, u8),
    /// The same of a directory's children after a name.
    ChildrenNow { directory: InodeHandle, inherited: u8, after: Vec<u8> },
    /// The same of its deleted lists.
    Deleted { directory: InodeHandle, inherited: u8, diff: usize, entry: usize },
    /// As of a snapshot.
    At(InodeHandle, SnapshotId, u8),
    /// The same of its children.
    ChildrenAt { children: Box<Children>, snapshot: SnapshotId, inherited: u8 },
    /// A directory as of a snapshot is done.
    Leave,
}

impl Tally {
    /// Adds what an entry counts as of a snapshot, or takes it away.
    pub(super) fn count(&mut self, entry: &Gone, snapshot: SnapshotId, inherited: u8, is_loss: bool) {
        let snapshot = match entry.link {
            Link::Named { last, .. } if snapshot == SnapshotId::CURRENT => last,
            _ => snapshot,
        };
        self.open.extend([Count::At(entry.inode, snapshot, inherited), Count::Loss(is_loss)]);
    }

    /// Whether nothing is left to count.
    pub(super) fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// What was counted.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    fn add(&mut self, usage: &Usage) {
        if self.is_loss {
            quota::add(&mut self.usage, &quota::negated(usage));
        } else {
            quota::add(&mut self.usage, usage);
        }
    }

    /// Counts a little more.
    pub(super) fn step(&mut self, tree: &Tree, store: &Store) {
        match self.open.pop() {
            None => {}
            Some(Count::Loss(is_loss)) => self.is_loss = is_loss,
            Some(Count::Now(inode, inherited)) => self.now(tree, store, inode, inherited),
            Some(Count::ChildrenNow { directory, inherited, after }) => {
                self.children_now(tree, store, directory, inherited, &after);
            }
            Some(Count::Deleted { directory, inherited, diff, entry }) => {
                self.deleted(tree, directory, inherited, (diff, entry));
            }
            Some(Count::At(inode, SnapshotId::CURRENT, inherited)) => self.now(tree, store, inode, inherited),
            Some(Count::At(inode, snapshot, inherited)) => self.at(tree, store, inode, snapshot, inherited),
            Some(Count::ChildrenAt { children, snapshot, inherited }) => {
                self.children_at(tree, store, children, snapshot, inherited);
            }
            Some(Count::Leave) => _ = self.way.pop(),
        }
    }

    fn now(&mut self, tree: &Tree, store: &Store, inode: InodeHandle, inherited: u8) {
        let mut usage = Usage { namespace: 1, ..Usage::default() };
        if let Some(shape) = tree.file_shape_below(store, inode, inherited) {
            quota::add(&mut usage, &tree.blocks_usage(store, inode, &shape, 0));
        }
        self.add(&usage);
        if store.kind(inode) == KindTag::Directory {
            let own = tree.own_storage_policy(store, inode);
            let inherited = if own == UNSPECIFIED { inherited } else { own };
            let children = Count::ChildrenNow { directory: inode, inherited, after: Vec::new() };
            self.open.extend([children, Count::Deleted { directory: inode, inherited, diff: 0, entry: 0 }]);
        }
    }

    fn children_now(&mut self, tree: &Tree, store: &Store, directory: InodeHandle, inherited: u8, after: &[u8]) {
        let (children, _) = tree.children_after(store, directory, after);
        let some: Vec<InodeHandle> = children.take(CHUNK).collect();
        if let Some(last) = some.last().filter(|_| some.len() == CHUNK) {
            self.open.push(Count::ChildrenNow { directory, inherited, after: store.name(*last).to_vec() });
        }
        for child in some {
            if store.kind(child) == KindTag::Directory {
                self.open.push(Count::Now(child, inherited));
            } else {
                self.now(tree, store, child, inherited);
            }
        }
    }

    fn deleted(&mut self, tree: &Tree, directory: InodeHandle, inherited: u8, (diff, entry): (usize, usize)) {
        let Some(deleted) = tree.snapshots.directory_diffs(directory).get(diff) else { return };
        let until = deleted.deleted.len().min(entry + CHUNK);
        let next = if until == deleted.deleted.len() { (diff + 1, 0) } else { (diff, until) };
        self.open.push(Count::Deleted { directory, inherited, diff: next.0, entry: next.1 });
        for gone in &deleted.deleted[entry.min(until)..until] {
            let when = match gone.link {
                Link::Named { .. } => deleted.snapshot,
                Link::Plain | Link::Renamed => SnapshotId::CURRENT,
            };
            self.open.push(Count::At(gone.inode, when, inherited));
        }
    }

    fn at(&mut self, tree: &Tree, store: &Store, inode: InodeHandle, snapshot: SnapshotId, inherited: u8) {
        match store.kind(inode) {
            // renamed to and fro, directories may lie in each other
            KindTag::Directory if self.way.contains(&inode) => {}
            KindTag::Directory => {
                self.add(&Usage { namespace: 1, ..Usage::default() });
                let own = tree.own_storage_policy(store, inode);
                let inherited = if own == UNSPECIFIED { inherited } else { own };
                self.way.push(inode);
                let diffs = tree.snapshots.directory_diffs(inode);
                let since = at(diffs, snapshot).map_or(SnapshotId::CURRENT, |_| snapshot);
                let children = Box::new(Children::new(tree, inode, since));
                self.open.extend([Count::Leave, Count::ChildrenAt { children, snapshot, inherited }]);
            }
            KindTag::File => self.add(&tree.file_usage_at(store, inode, snapshot, inherited)),
            KindTag::Symlink | KindTag::Reference => self.add(&Usage { namespace: 1, ..Usage::default() }),
        }
    }

    fn children_at(
        &mut self,
        tree: &Tree,
        store: &Store,
        mut children: Box<Children>,
        snapshot: SnapshotId,
        inherited: u8,
    ) {
        let directory = children.directory;
        for _ in 0..CHUNK {
            match children.next(tree, store) {
                Next::Over => return,
                Next::Later => break,
                Next::Child(child) if !tree.was_there(store, directory, &child, snapshot) => {}
                Next::Child(child) if store.kind(child.inode) == KindTag::Directory => {
                    self.open.push(Count::ChildrenAt { children, snapshot, inherited });
                    self.open.push(Count::At(child.inode, snapshot, inherited));
                    return;
                }
                Next::Child(child) => self.at(tree, store, child.inode, snapshot, inherited),
            }
        }
        self.open.push(Count::ChildrenAt { children, snapshot, inherited });
    }
}
