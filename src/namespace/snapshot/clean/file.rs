//! Files: their diffs, and the blocks that only those need.

use super::super::FileDiff;
use super::super::diff::{exactly, later_prior};
use super::{CURRENT, Cleaner, NONE};
use record::{BlockHandle, Blocks, Features, InodeHandle};
use vocab::SnapshotId;
use vocab::quota::Usage;

impl Cleaner<'_> {
    pub(super) fn clean_file(&mut self, file: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        // where a snapshot goes that the file has nothing of, nothing changes: it need not be looked up where else the past sees it
        if snapshot == CURRENT || exactly(self.tree.snapshots.file_diffs(file), snapshot).is_some() {
            self.adjusting(file, |cleaner| cleaner.clean_file_unadjusted(file, snapshot, prior));
        }
    }

    /// Runs a step that changes or frees a file, and brings along what it counts, here and where the past sees it.
    fn adjusting(&mut self, file: InodeHandle, change: impl FnOnce(&mut Self)) {
        let parent = self.store.parent(file);
        let before = self.tree.inode_usage(self.store, file);
        let seen = self.tree.seen_as_of_any(self.store, file);
        change(self);
        let gone = self.job.freed.contains(file);
        let after = if gone { Usage::default() } else { self.tree.inode_usage(self.store, file) };
        if let Some(parent) = parent {
            self.adjust_between(parent, &before, &after);
        }
        if gone {
            self.tree.gone_from_views(self.store, &seen);
        } else {
            self.tree.changed_in_views(self.store, file, &seen);
        }
    }

    fn clean_file_unadjusted(&mut self, file: InodeHandle, snapshot: SnapshotId, mut prior: SnapshotId) {
        if snapshot == CURRENT {
            self.tree.drop_lease(self.store, file);
        }
        if !self.tree.snapshots.files.contains_key(&file) {
            match (snapshot, prior) {
                (CURRENT, NONE) => self.free(file),
                (CURRENT, _) => self.drop_empty_block(file),
                _ => {}
            }
            return;
        }
        if snapshot == CURRENT {
            if !self.tree.snapshots.is_deleted(file) {
                self.tree.capture_uncounted(self.store, file, prior);
                if let Some(diffs) = self.tree.snapshots.files.get_mut(&file) {
                    diffs.deleted = true;
                }
            }
            self.collect_blocks(file);
        } else {
            prior = later_prior(self.tree.snapshots.file_diffs(file), snapshot, prior);
            self.delete_file_diff_unadjusted(file, snapshot, prior);
        }
        if !self.job.freed.contains(file) && self.tree.snapshots.file_diffs(file).is_empty() {
            self.tree.snapshots.files.remove(&file);
            let features = self.store.features(file);
            self.store.set_features(file, features.without(Features::SNAPSHOT_DIFFS));
        }
    }

    /// An open file that only the past holds does not need a last block without bytes.
    fn drop_empty_block(&mut self, file: InodeHandle) {
        let open = self.store.features(file).contains(Features::CONSTRUCTION);
        let empty = self.store.last_block(file).filter(|b| self.store.block(*b).block.length == 0);
        if let Some(b) = empty.filter(|_| open) {
            let rest: Blocks = self.store.blocks_of(file).into_iter().filter(|x| *x != b).collect();
            self.keep_blocks(file, &rest);
        }
    }

    /// Makes `kept` the block list of a file; what left it and is in no diff is freed.
    fn keep_blocks(&mut self, file: InodeHandle, kept: &[BlockHandle]) {
        let old = self.store.set_blocks(file, kept);
        let kept = self.store.blocks_of(file);
        let past = self.tree.past_blocks(self.store, file);
        for b in old.into_iter().filter(|b| !kept.contains(b) && !past.contains(b)) {
            self.sink.drop_block(self.store, b);
        }
    }

    /// Frees the blocks that neither the present nor the last diff of a file needs, or the file.
    fn collect_blocks(&mut self, file: InodeHandle) {
        let diffs = self.tree.snapshots.file_diffs(file);
        let deleted = self.tree.snapshots.is_deleted(file);
        let Some(last) = diffs.last() else {
            if deleted {
                self.free(file);
            }
            return;
        };
        let blocks = self.store.blocks_of(file);
        let kept = match &last.blocks {
            Some(held) if !held.is_empty() => blocks.iter().zip(held).take_while(|(a, b)| a == b).count(),
            _ => {
                let most = if deleted { last.length } else { self.tree.file_length(self.store, file) };
                let mut size = 0;
                let mut n = 0;
                while n < blocks.len() && most > size {
                    size += self.store.block(blocks[n]).block.length;
                    n += 1;
                }
                n
            }
        };
        if kept < blocks.len() {
            self.keep_blocks(file, &blocks[..kept]);
        }
    }

    /// Removes a snapshot from a file's diffs.
    pub(super) fn delete_file_diff(&mut self, file: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        if exactly(self.tree.snapshots.file_diffs(file), snapshot).is_some() {
            self.adjusting(file, |cleaner| cleaner.delete_file_diff_unadjusted(file, snapshot, prior));
        }
    }

    fn delete_file_diff_unadjusted(&mut self, file: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        let Some(at) = exactly(self.tree.snapshots.file_diffs(file), snapshot) else { return };
        let Some(diffs) = self.tree.snapshots.files.get_mut(&file).map(|d| &mut d.list) else { return };
        let removed = if at == 0 && prior == NONE {
            diffs.remove(0)
        } else if at == 0 || diffs[at - 1].snapshot != prior {
            diffs[at].snapshot = prior;
            return;
        } else {
            let mut removed = diffs.remove(at);
            let previous = &mut diffs[at - 1];
            previous.copy = previous.copy.take().or(removed.copy.take());
            removed
        };
        self.collect_removed(file, removed);
        if self.job.freed.contains(file) {
            return;
        }
        let replication = self.tree.block_replication(self.store, file);
        if self.tree.file_shape(self.store, file).is_some_and(|s| s.stripe.is_none()) {
            for b in self.store.blocks_of(file) {
                self.sink.set_replication(self.store, b, replication);
            }
        }
    }

    /// Frees the blocks that only a removed diff needed; an earlier diff without a list of its own takes its list.
    fn collect_removed(&mut self, file: InodeHandle, removed: FileDiff) {
        // an empty list is none after a restart
        let Some(blocks) = removed.blocks.filter(|held| !held.is_empty()) else {
            if self.tree.snapshots.is_deleted(file) {
                self.collect_blocks(file);
            }
            return;
        };
        let earlier = self.tree.snapshots.files.get_mut(&file);
        let earlier = earlier.and_then(|d| d.list.iter_mut().rev().find(|d| d.snapshot < removed.snapshot));
        if let Some(diff) = earlier.filter(|d| d.blocks.is_none()) {
            let mut size = 0;
            let store = &*self.store;
            let held = blocks.iter().take_while(|b| {
                let within = size < diff.length;
                size += store.block(**b).block.length;
                within
            });
            diff.blocks = Some(held.copied().collect());
        }
        let present = self.store.blocks_of(file);
        let past = self.tree.past_blocks(self.store, file);
        for b in blocks {
            if !present.contains(&b) && !past.contains(&b) {
                self.sink.drop_block(self.store, b);
            }
        }
    }
}
