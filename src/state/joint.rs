//! Where the two halves meet: what a change of a file's blocks means for the records of the store, for the block half and for quotas.

use crate::{Mode, State};
use namespace::reclaim::BlockSink;
use record::{BlockHandle, BlockInfo, Features, InodeHandle, Store};
use vocab::quota::Usage;
use vocab::{Block, BlockState};

/// Subtrees of up to this many inodes are freed in the same hold, so that their quota is free before the answer.
pub(crate) const FREED_AT_ONCE: u64 = 2_048;

struct Release;

impl BlockSink for Release {
    fn release(&mut self, store: &mut Store, file: InodeHandle) {
        for b in store.take_blocks(file) {
            store.remove_block(b);
        }
    }
}

impl State {
    /// Frees detached inodes and their blocks. Gives how many inodes went.
    pub(crate) fn free_detached(&mut self, budget: u64) -> u64 {
        let State { store, tree, .. } = self;
        tree.reclaim(store, &mut Release, budget)
    }

    /// Runs `change` on a file and brings quota use along: what the file counted before is taken away, what it counts afterwards is added.
    /// Blocks before `from` must not change.
    pub(crate) fn with_usage<R>(&mut self, file: InodeHandle, from: usize, change: impl FnOnce(&mut State) -> R) -> R {
        let before = self.usage_from(file, from);
        let result = change(self);
        let after = self.usage_from(file, from);
        if let Some(parent) = self.store.parent(file) {
            let delta = namespace::quota::difference(&after, &before);
            self.tree.add_usage(&self.store, parent, &delta);
        }
        result
    }

    fn usage_from(&self, file: InodeHandle, from: usize) -> Usage {
        match self.tree.file_shape(&self.store, file) {
            Some(shape) => self.tree.blocks_usage(&self.store, file, &shape, from),
            None => Usage::default(),
        }
    }

    /// Appends a block to a file.
    pub(crate) fn push_block(&mut self, file: InodeHandle, block: Block, state: BlockState) -> BlockHandle {
        let Some(shape) = self.tree.file_shape(&self.store, file) else { unreachable!("fit saw a file") };
        let info = BlockInfo {
            block,
            file: None,
            replication: shape.replication,
            state,
            open: shape.open,
            deleted: false,
            storage_policy: shape.storage_policy,
            erasure_coding_policy: shape.erasure_coding_policy,
        };
        self.store.push_block(file, &info)
    }

    /// Takes the last block of a file out.
    pub(crate) fn drop_last_block(&mut self, file: InodeHandle) {
        if let Some(b) = self.store.remove_last_block(file) {
            self.uncommitted.remove(&self.store.block(b).block.id);
            self.store.remove_block(b);
        }
    }

    /// Gives an existing block the length and stamp of a record.
    pub(crate) fn update_block(&mut self, b: BlockHandle, block: Block) {
        let was = self.store.block(b).block;
        self.uncommitted.remove(&was.id);
        if was != block {
            self.store.edit_block(b, |i| i.block = block);
        }
    }

    /// Makes a block complete because a record says so. A live server has asked its DataNodes before it wrote the record (or lets the block be
    /// committed, where that is allowed), so there the state is left as it is.
    pub(crate) fn complete_block(&mut self, b: BlockHandle, mode: Mode) {
        if mode != Mode::Live && self.store.block(b).state != BlockState::Complete {
            self.store.edit_block(b, |i| i.state = BlockState::Complete);
        }
    }

    /// Opens a complete last block for writing again.
    pub(crate) fn reopen_block(&mut self, b: BlockHandle) {
        self.store.edit_block(b, |i| i.state = BlockState::UnderConstruction);
    }

    /// Stamp or length of a block that stays open changed.
    pub(crate) fn block_changed(&mut self, _b: BlockHandle) {}

    /// The last stamp moved.
    pub(crate) fn stamp_changed(&mut self) {}

    /// Sets the wanted replicas of a block.
    pub(crate) fn set_block_replication(&mut self, b: BlockHandle, replication: u16) {
        let old = self.store.block(b).replication;
        if old != replication {
            self.store.edit_block(b, |i| i.replication = replication);
        }
    }

    /// Opens the last block of a file for being cut to `new_length` of the file: in place under the stamp of `block`, or, if that is another block,
    /// into that one.
    pub(crate) fn begin_truncate(&mut self, file: InodeHandle, block: Block, _new_length: u64) {
        let Some(b) = self.store.last_block(file) else { return };
        if self.store.block(b).block.id == block.id {
            self.reopen_block(b);
            return;
        }
        self.drop_last_block(file);
        self.push_block(file, block, BlockState::UnderConstruction);
    }

    /// Marks all blocks of a file as those of an open or a closed one.
    pub(crate) fn mark_open(&mut self, file: InodeHandle, open: bool) {
        for b in self.store.blocks_of(file) {
            if self.store.block(b).open != open {
                self.store.edit_block(b, |i| i.open = open);
            }
        }
    }

    /// Whether a file is being written.
    pub fn is_open(&self, file: InodeHandle) -> bool {
        self.store.features(file).contains(Features::CONSTRUCTION)
    }

    /// A client has finished an open last block (complete, addBlock): soft until a record says it. The block becomes committed, and complete as
    /// soon as enough replicas are there.
    pub fn commit_block(&mut self, b: BlockHandle, block: Block) {
        let was = self.store.block(b).block;
        self.uncommitted.entry(was.id).or_insert(was);
        self.store.edit_block(b, |i| {
            i.block = block;
            i.state = BlockState::Committed;
        });
    }
}
