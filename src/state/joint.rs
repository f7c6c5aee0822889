//! Where the two halves meet: what a change of a file's blocks means for the records of the store, for the block half and for quotas.

use crate::{Mode, State};
use namespace::reclaim::BlockSink;
use record::{BlockHandle, BlockInfo, Features, InodeHandle, StorageNumber, Store};
use vocab::quota::Usage;
use vocab::{Block, BlockState, Refusal};

/// Inodes and blocks of a subtree that are freed in the hold that cuts it off: a fraction of a slice of time.
pub(crate) const FREED_AT_ONCE: u64 = 256;

pub(crate) struct Release<'a> {
    pub(crate) blocks: &'a mut blocks::Blocks,
    pub(crate) uncommitted: &'a mut hashbrown::HashMap<vocab::BlockId, Block>,
}

impl BlockSink for Release<'_> {
    fn release(&mut self, store: &mut Store, file: InodeHandle) {
        for b in store.take_blocks(file) {
            self.uncommitted.remove(&store.block_core(b).id);
            self.blocks.block_removed(store, b);
            store.remove_block(b);
        }
    }
    fn drop_block(&mut self, store: &mut Store, b: BlockHandle) {
        store.detach_block(b);
        self.uncommitted.remove(&store.block_core(b).id);
        self.blocks.block_removed(store, b);
        store.remove_block(b);
    }
    fn set_replication(&mut self, store: &mut Store, b: BlockHandle, replication: u16) {
        let old = store.block(b).replication;
        if old != replication {
            store.edit_block(b, |i| i.replication = replication);
            self.blocks.replication_changed(store, b, old);
        }
    }
}

impl State {
    /// Frees detached inodes and their blocks. Gives how many inodes went.
    pub(crate) fn free_detached(&mut self, budget: u64) -> u64 {
        let State { store, tree, blocks, uncommitted, .. } = self;
        tree.reclaim(store, &mut Release { blocks, uncommitted }, budget)
    }

    /// Runs `change` on a file and brings quota use along: what the file counted before is taken away, what it counts afterwards is added.
    /// Blocks before `from` must not change.
    pub(crate) fn with_usage<R>(&mut self, file: InodeHandle, from: usize, change: impl FnOnce(&mut State) -> R) -> R {
        let Some(shape) = self.tree.file_shape(&self.store, file) else { return change(self) };
        let before = self.tree.blocks_usage(&self.store, file, &shape, from);
        let seen = self.tree.seen_in_views(&self.store, file);
        let result = change(self);
        self.tree.changed_in_views(&self.store, file, &seen);
        // no change of a file changes its storage policy
        let after = match self.tree.file_shape_below(&self.store, file, shape.storage_policy) {
            Some(shape) => self.tree.blocks_usage(&self.store, file, &shape, from),
            None => Usage::default(),
        };
        if let Some(parent) = self.store.parent(file) {
            let delta = namespace::quota::difference(&after, &before);
            self.tree.add_usage(&self.store, parent, &delta);
        }
        result
    }

    /// Appends a block to a file.
    pub(crate) fn push_block(&mut self, file: InodeHandle, block: Block, state: BlockState) -> BlockHandle {
        let Some(shape) = self.tree.file_shape(&self.store, file) else { unreachable!("fit saw a file") };
        let info = BlockInfo {
            block,
            replication: shape.replication,
            state,
            open: shape.open,
            deleted: false,
            storage_policy: shape.storage_policy,
            erasure_coding_policy: shape.erasure_coding_policy,
        };
        let b = self.store.push_block(file, &info);
        match state {
            BlockState::Complete => self.blocks.block_added(&self.store, b),
            _ => self.blocks.block_opened(&self.store, b),
        }
        b
    }

    /// Takes the last block of a file out.
    pub(crate) fn drop_last_block(&mut self, file: InodeHandle) {
        if self.store.last_block(file).is_some_and(|b| self.tree.is_held_by_snapshot(file, b)) {
            let mut rest = self.store.blocks_of(file);
            rest.pop();
            self.store.set_blocks(file, &rest);
        } else if let Some(b) = self.store.remove_last_block(file) {
            self.uncommitted.remove(&self.store.block_core(b).id);
            self.blocks.block_removed(&mut self.store, b);
            self.store.remove_block(b);
        }
    }

    /// Gives an existing block the length and stamp of a record.
    pub(crate) fn update_block(&mut self, b: BlockHandle, block: Block) {
        let was = self.store.block_core(b);
        if !self.uncommitted.is_empty() {
            self.uncommitted.remove(&was.id);
        }
        if was != block {
            self.store.edit_block(b, |i| i.block = block);
        }
    }

    /// Gives a block the length and stamp of a record, and makes it complete because the record says so. A live server has asked its DataNodes
    /// before it wrote the record (or lets the block be committed, where that is allowed), so there the state is left as it is.
    pub(crate) fn finish_block(&mut self, b: BlockHandle, block: Block, mode: Mode) {
        let was = self.store.block(b);
        if !self.uncommitted.is_empty() {
            self.uncommitted.remove(&was.block.id);
        }
        let completes = mode != Mode::Live && was.state != BlockState::Complete;
        if completes || was.block != block {
            let state = if completes { BlockState::Complete } else { was.state };
            self.store.edit_block(b, |i| (i.block, i.state) = (block, state));
        }
        if completes {
            self.blocks.block_completed(&mut self.store, b);
        }
    }

    /// Opens a complete last block for writing again.
    pub(crate) fn reopen_block(&mut self, b: BlockHandle) {
        if self.store.block_state(b) == BlockState::Complete {
            self.store.edit_block(b, |i| i.state = BlockState::UnderConstruction);
            self.blocks.block_reopened(&self.store, b);
        }
    }

    /// Stamp or length of a block that stays open changed.
    pub(crate) fn block_changed(&mut self, b: BlockHandle) {
        self.blocks.block_updated(&mut self.store, b);
    }

    /// The last stamp moved.
    pub(crate) fn stamp_changed(&mut self) {
        self.blocks.set_last_stamp(self.sequences.stamp);
    }

    /// Sets the wanted replicas of a block.
    pub(crate) fn set_block_replication(&mut self, b: BlockHandle, replication: u16) {
        let old = self.store.block(b).replication;
        if old != replication {
            self.store.edit_block(b, |i| i.replication = replication);
            self.blocks.replication_changed(&mut self.store, b, old);
        }
    }

    /// Opens the last block of a file for being cut to `new_length` of the file: in place under the stamp of `block`, or, if that is another block,
    /// into that one.
    pub(crate) fn begin_truncate(&mut self, file: InodeHandle, block: Block, new_length: u64) {
        let Some(b) = self.store.last_block(file) else { return };
        let old = self.store.block_core(b);
        let before = self.tree.file_length(&self.store, file) - old.length;
        if old.id == block.id {
            self.reopen_block(b);
            self.blocks.set_truncate(block.id, Block { length: new_length - before, ..block });
            return;
        }
        // Hadoop's record gives the new block no length
        let new = Block { length: new_length - before, ..block };
        self.blocks.begin_copy(&self.store, old, new);
        self.drop_last_block(file);
        self.push_block(file, new, BlockState::UnderConstruction);
    }

    /// Marks all blocks of a file as those of an open or a closed one.
    pub(crate) fn mark_open(&mut self, file: InodeHandle, open: bool) {
        for b in self.store.blocks_of(file) {
            self.store.set_block_open(b, open);
        }
    }

    /// Whether a file is being written.
    pub fn is_open(&self, file: InodeHandle) -> bool {
        self.store.features(file).contains(Features::CONSTRUCTION)
    }

    /// A client has finished an open last block (complete, addBlock): soft until a record says it. The block becomes committed, and complete as
    /// soon as enough replicas are there. Whether anything changed.
    ///
    /// # Errors
    /// What `blocks` says against the commit: in recovery, another stamp.
    pub fn commit_block(&mut self, b: BlockHandle, block: Block) -> Result<bool, Refusal> {
        if !self.blocks.check_commit(&self.store, b, &block)? {
            return Ok(false);
        }
        let was = self.store.block_core(b);
        self.uncommitted.entry(was.id).or_insert(was);
        self.with_last_usage(b, was.length.max(block.length), |s| {
            s.store.edit_block(b, |i| (i.block.length, i.block.stamp) = (block.length, block.stamp));
        });
        self.blocks.block_committed(&mut self.store, b);
        Ok(true)
    }

    /// The recovery of a last block came to its end: it has a new stamp and length, and just these replicas; soft until a record says it.
    pub fn end_recovery(&mut self, b: BlockHandle, recovered: Block, on: &[(StorageNumber, u8)]) {
        let longest = self.store.block_core(b).length.max(recovered.length);
        self.with_last_usage(b, longest, |s| s.blocks.end_recovery(&mut s.store, b, recovered, on));
    }

    /// Changes the length of an open last block, and quota use with it. It counts as a full block unless it is longer than one: only then there is
    /// anything to do. `longest`: of the lengths before and after.
    fn with_last_usage(&mut self, b: BlockHandle, longest: u64, change: impl FnOnce(&mut State)) {
        let file = self.store.block_file(b).and_then(|file| Some((file, self.store.file(file)?.block_size)));
        match file {
            Some((file, full)) if longest > full => {
                // what a snapshot's deletion counts must not change in the middle of it
                if self.tree.waits_for_cleanup(&self.store, file) {
                    self.end_cleanup();
                }
                let last = self.store.block_count_of(file).saturating_sub(1);
                self.with_usage(file, last, change);
            }
            _ => change(self),
        }
    }
}
