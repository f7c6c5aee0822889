//! Content summary: a walk that can stop after any number of inodes and go on in another hold of the lock. Between holds it keeps ids and names, no
//! handles; what vanished meanwhile is skipped.

use crate::snapshot::{Gone, Link};
use crate::{Tree, quota};
use record::{InodeHandle, KindTag, Store};
use vocab::quota::Usage;
use vocab::storage_policy::{UNSPECIFIED, by_id};
use vocab::{BlockState, InodeId, Refusal, SnapshotId};

/// Totals of a subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Sum of file lengths in bytes.
    pub length: u64,
    /// Files.
    pub files: u64,
    /// Directories, the top one included.
    pub directories: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Bytes times replicas, and by kind.
    pub usage: Usage,
}

/// A walk in progress.
#[derive(Clone, Debug)]
pub struct SummaryWalk {
    /// Totals so far.
    pub totals: Summary,
    /// What of them only snapshots hold.
    pub past: Summary,
    /// Directories entered, with the last child that was counted.
    open: Vec<(InodeId, Vec<u8>)>,
}

impl SummaryWalk {
    /// Begins at an inode: counts it, and enters it if it is a directory.
    ///
    /// # Errors
    /// What `enter` says of a directory that may not be entered.
    pub fn new(
        tree: &Tree,
        store: &Store,
        top: InodeHandle,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
    ) -> Result<SummaryWalk, Refusal> {
        let mut walk = SummaryWalk { totals: Summary::default(), past: Summary::default(), open: Vec::new() };
        walk.count(tree, store, top, enter)?;
        Ok(walk)
    }

    /// Counts something as it was at a snapshot, in one step.
    ///
    /// # Errors
    /// What `enter` says of a directory that may not be entered.
    pub fn of_past(
        tree: &Tree,
        store: &Store,
        top: InodeHandle,
        snapshot: SnapshotId,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
    ) -> Result<SummaryWalk, Refusal> {
        let mut walk = SummaryWalk { totals: Summary::default(), past: Summary::default(), open: Vec::new() };
        tree.summarize(store, &Gone { inode: top, link: Link::Plain }, snapshot, enter, &mut walk.totals)?;
        Ok(walk)
    }

    /// Whether all is counted.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Counts up to `budget` more inodes.
    ///
    /// # Errors
    /// What `enter` says of a directory that may not be entered.
    pub fn step(
        &mut self,
        tree: &Tree,
        store: &Store,
        budget: usize,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut left = budget;
        while let Some((id, after)) = self.open.pop() {
            let Some(directory) = tree.find(store, id).filter(|d| store.kind(*d) == KindTag::Directory) else {
                continue;
            };
            let (children, _) = tree.children_after(store, directory, &after);
            for child in children {
                if left == 0 {
                    self.open.push((id, after));
                    return Ok(());
                }
                left -= 1;
                if store.kind(child) == KindTag::Directory || left == 0 {
                    self.open.push((id, store.name(child).to_vec()));
                    self.count(tree, store, child, enter)?;
                    break;
                }
                self.count(tree, store, child, enter)?;
            }
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    fn count(
        &mut self,
        tree: &Tree,
        store: &Store,
        inode: InodeHandle,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        match store.kind(inode) {
            KindTag::Directory => {
                enter(inode)?;
                self.totals.directories += 1;
                // Quirk: a_summary_counts_what_was_deleted_unseen: Hadoop asks no right of what only snapshots hold
                for diff in tree.snapshots.directory_diffs(inode) {
                    for gone in &diff.deleted {
                        let mut past = Summary::default();
                        tree.summarize(store, gone, SnapshotId::CURRENT, &|_| Ok(()), &mut past)?;
                        self.totals.add(&past);
                        self.past.add(&past);
                    }
                }
                self.open.push((store.inode_id(inode), Vec::new()));
            }
            KindTag::File => {
                self.totals.files += 1;
                self.totals.length += tree.file_length(store, inode);
            }
            KindTag::Symlink => self.totals.symlinks += 1,
            KindTag::Reference => {}
        }
        quota::add(&mut self.totals.usage, &tree.summary_usage(store, inode, SnapshotId::CURRENT));
        Ok(())
    }
}

impl Summary {
    /// Adds other totals.
    pub fn add(&mut self, more: &Summary) {
        let Summary { length, files, directories, symlinks, usage } = more;
        self.length += length;
        self.files += files;
        self.directories += directories;
        self.symlinks += symlinks;
        quota::add(&mut self.usage, usage);
    }
}

impl Tree {
    /// Counts what a directory holds or held, as of a snapshot. As of the present, what deleted lists below hold counts too.
    fn summarize(
        &self,
        store: &Store,
        entry: &Gone,
        snapshot: SnapshotId,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
        totals: &mut Summary,
    ) -> Result<(), Refusal> {
        let inode = entry.inode;
        let snapshot = match entry.link {
            Link::Named { last, .. } if snapshot == SnapshotId::CURRENT => last,
            _ => snapshot,
        };
        match store.kind(inode) {
            KindTag::Directory => {
                enter(inode)?;
                totals.directories += 1;
                totals.usage.namespace += 1;
                if snapshot == SnapshotId::CURRENT {
                    for gone in self.snapshots.directory_diffs(inode).iter().flat_map(|d| &d.deleted) {
                        self.summarize(store, gone, snapshot, enter, totals)?;
                    }
                }
                for child in self.children_at(store, inode, snapshot) {
                    self.summarize(store, &child, snapshot, enter, totals)?;
                }
            }
            KindTag::File => {
                totals.files += 1;
                totals.length += self.file_length_at(store, inode, snapshot);
                quota::add(&mut totals.usage, &self.summary_usage(store, inode, snapshot));
            }
            KindTag::Symlink => {
                totals.symlinks += 1;
                totals.usage.namespace += 1;
            }
            KindTag::Reference => {}
        }
        Ok(())
    }

    /// What an inode itself counts in a summary. Quotas go by durable fields alone; a summary goes by what is known of blocks now, as Hadoop's does: one that
    /// is not complete counts in full, and kinds of storage count the length.
    fn summary_usage(&self, store: &Store, inode: InodeHandle, snapshot: SnapshotId) -> Usage {
        let mut usage = Usage { namespace: 1, ..Usage::default() };
        let Some(shape) = self.file_shape(store, inode) else { return usage };
        let is_past = snapshot != SnapshotId::CURRENT && !self.snapshots.file_diffs(inode).is_empty();
        usage.space = if is_past && shape.stripe.is_none() {
            let bytes = self.file_length_at(store, inode, snapshot);
            quota::block_usage(bytes, self.replication_at(store, inode, snapshot), UNSPECIFIED).space
        } else {
            let past = if shape.stripe.is_none() { self.past_blocks(store, inode) } else { Vec::new() };
            let of_block = |b| {
                let block = store.block(b);
                let counted =
                    if block.state == BlockState::Complete { shape.full(&block.block) } else { shape.fresh() };
                counted.space
            };
            store.blocks_of(inode).into_iter().chain(past).map(of_block).fold(0, i64::saturating_add)
        };
        if let Some(policy) = by_id(shape.storage_policy) {
            let length = i64::try_from(self.file_length_at(store, inode, snapshot)).unwrap_or(i64::MAX);
            let replication = if shape.stripe.is_none() { store.file(inode).map_or(0, |f| f.replication) } else { 1 };
            for kind in policy.counted_kinds(replication) {
                let used = &mut usage.by_kind[kind as usize];
                *used = used.saturating_add(length);
            }
        }
        usage
    }

    /// Length of a file in bytes: the sum of its blocks, the last one of an open file included as far as it is known.
    pub fn file_length(&self, store: &Store, file: InodeHandle) -> u64 {
        let count = store.block_count_of(file);
        (0..count).filter_map(|at| store.block_at(file, at)).map(|b| store.block_core(b).length).sum()
    }
}
