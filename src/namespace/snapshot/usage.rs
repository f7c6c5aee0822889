//! What the past counts of quotas. A directory counts, besides what is in it, all that its deleted lists hold; an inode that was renamed out of a
//! snapshot counts there as it was at the snapshot, and where it lies now.

use super::diff::last;
use super::{Gone, Link};
use crate::{Tree, quota};
use record::{BlockHandle, InodeHandle, KindTag, Store};
use vocab::SnapshotId;
use vocab::quota::Usage;

impl Tree {
    /// What a directory's deleted lists count.
    ///
    /// Quirk: an_older_name_counts_what_a_snapshot_has_of_it: Hadoop counts as of the last snapshot that the name was in, though that one be deleted
    /// (then as it is now), but only when it starts: its counts before and after a restart differ
    pub(crate) fn past_usage(&self, store: &Store, directory: InodeHandle) -> Usage {
        let mut usage = Usage::default();
        for diff in self.snapshots.directory_diffs(directory) {
            for gone in &diff.deleted {
                // a name of before a rename counts as of its diff, so that no change elsewhere changes what is counted here
                let when = match gone.link {
                    Link::Named { .. } => diff.snapshot,
                    Link::Plain | Link::Renamed => SnapshotId::CURRENT,
                };
                quota::add(&mut usage, &self.entry_usage(store, gone, when));
            }
        }
        usage
    }

    /// What something that a directory held at a snapshot counts.
    pub(crate) fn entry_usage(&self, store: &Store, entry: &Gone, snapshot: SnapshotId) -> Usage {
        let snapshot = match entry.link {
            Link::Named { last, .. } if snapshot == SnapshotId::CURRENT => last,
            _ => snapshot,
        };
        self.usage_at(store, entry.inode, snapshot)
    }

    /// What an inode with all below it counts as of a snapshot.
    pub(crate) fn usage_at(&self, store: &Store, inode: InodeHandle, snapshot: SnapshotId) -> Usage {
        if snapshot == SnapshotId::CURRENT {
            return self.subtree_usage(store, inode);
        }
        match store.kind(inode) {
            KindTag::Directory => {
                let mut usage = Usage { namespace: 1, ..Usage::default() };
                if self.snapshots.directory_diffs(inode).is_empty() {
                    for child in self.children(store, inode) {
                        quota::add(&mut usage, &self.usage_at(store, child, snapshot));
                    }
                } else {
                    for child in self.children_at(store, inode, snapshot) {
                        quota::add(&mut usage, &self.entry_usage(store, &child, snapshot));
                    }
                }
                usage
            }
            KindTag::File => self.file_usage_at(store, inode, snapshot),
            KindTag::Symlink | KindTag::Reference => Usage { namespace: 1, ..Usage::default() },
        }
    }

    fn file_usage_at(&self, store: &Store, file: InodeHandle, snapshot: SnapshotId) -> Usage {
        let known = last(self.snapshots.file_diffs(file));
        let shape = self.file_shape(store, file);
        let Some(shape) = shape.filter(|s| known != SnapshotId::CURRENT && s.stripe.is_none()) else {
            return self.inode_usage(store, file);
        };
        let (bytes, replication) = match store_replication(self, store, file, snapshot) {
            replication if known < snapshot => {
                let blocks = store.blocks_of(file).into_iter().map(|b| store.block(b));
                let whole = |b: &record::BlockInfo| b.state == vocab::BlockState::Complete || !shape.open;
                (blocks.filter(whole).map(|b| b.block.length).sum(), replication)
            }
            replication => (self.file_length_at(store, file, snapshot), replication),
        };
        let mut usage = quota::block_usage(bytes, replication, shape.storage_policy);
        usage.namespace = 1;
        usage
    }

    /// At the end of a load: use of the quota directories that only snapshots hold.
    pub(crate) fn count_past_quotas(&mut self, store: &Store) {
        if self.snapshots.is_empty() {
            return;
        }
        let past: Vec<InodeHandle> =
            self.all_quotas().map(|(directory, _)| directory).filter(|d| !self.is_present(store, *d)).collect();
        for directory in past {
            let usage = self.subtree_usage(store, directory);
            self.edit_quota(directory, |record| record.usage = usage);
        }
    }

    /// Blocks that only the diffs of a file hold.
    pub(crate) fn past_blocks(&self, store: &Store, file: InodeHandle) -> Vec<BlockHandle> {
        let diffs = self.snapshots.file_diffs(file);
        if diffs.iter().all(|d| d.blocks.is_none()) {
            return Vec::new();
        }
        let present = store.blocks_of(file);
        let mut past: Vec<BlockHandle> = Vec::new();
        for b in diffs.iter().flat_map(|d| d.blocks.iter().flatten()) {
            if !present.contains(b) && !past.contains(b) {
                past.push(*b);
            }
        }
        past
    }
}

/// Replication of a file as of a snapshot.
fn store_replication(tree: &Tree, store: &Store, file: InodeHandle, snapshot: SnapshotId) -> u16 {
    match tree.inode_at(store, file, snapshot).kind {
        record::InodeKind::File { replication, .. } => replication,
        _ => 0,
    }
}
