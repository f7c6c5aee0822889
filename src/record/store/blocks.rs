//! The block half: indexes, facts of a block.

use super::fuse::Place;
use super::wide::WideBlock;
use super::{BlockClass, Store};
use crate::handle::FUSED_BIT;
use crate::layout::{BlockRecord, block_field as f, fits, pack_block_id, unpack_block_id};
use crate::{BlockHandle, BlockInfo, InodeHandle, ReplicaFlags, StorageNumber};
use std::num::NonZeroU32;
use vocab::{Block, BlockId, BlockState, GenerationStamp};

/// In which index a block is, and under what number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Contiguous(i64),
    Striped(i64),
    Legacy(i64),
}

pub(super) fn class_of(info: &BlockInfo) -> BlockClass {
    BlockClass {
        replication: info.replication,
        storage_policy: info.storage_policy,
        erasure_coding_policy: info.erasure_coding_policy,
    }
}

pub(super) fn key_without_legacy(id: BlockId) -> Key {
    if id.is_striped() { Key::Striped((id.0.wrapping_sub(i64::MIN) as u64 >> 4) as i64) } else { Key::Contiguous(id.0) }
}

fn state_of(record: &BlockRecord) -> BlockState {
    match record.get(f::STATE) {
        0 => BlockState::Complete,
        1 => BlockState::UnderConstruction,
        2 => BlockState::UnderRecovery,
        _ => BlockState::Committed,
    }
}
/// Id, length and stamp of a record that is not wide.
fn core_of(record: &BlockRecord) -> Block {
    Block {
        id: BlockId(unpack_block_id(record.get(f::ID))),
        length: record.get(f::LENGTH),
        stamp: GenerationStamp(record.get(f::STAMP) as i64),
    }
}

impl Store {
    /// A block belongs to the index of random ids by its stamp, else to one by the sign of its id.
    pub(super) fn key(&self, id: BlockId, stamp: GenerationStamp) -> Key {
        if stamp < self.legacy_limit { Key::Legacy(id.0) } else { key_without_legacy(id) }
    }
    fn indexed(&self, key: Key) -> Option<BlockHandle> {
        match key {
            Key::Contiguous(id) => self.block_ids.get(id).map(BlockHandle),
            Key::Striped(group) => self.striped_ids.get(group).map(BlockHandle),
            Key::Legacy(id) => self.legacy_ids.get(id).and_then(BlockHandle::from_raw),
        }
    }
    pub(super) fn index_set(&mut self, key: Key, b: BlockHandle) {
        match key {
            Key::Contiguous(id) => {
                self.block_ids.insert(id, b.0);
            }
            Key::Striped(group) => {
                self.striped_ids.insert(group, b.0);
            }
            Key::Legacy(id) => {
                self.legacy_ids.insert(id, b.raw());
            }
        }
    }
    /// Takes a block out of its index, if it is the one there.
    fn index_clear(&mut self, key: Key, b: BlockHandle) {
        if self.indexed(key) == Some(b) {
            match key {
                Key::Contiguous(id) => {
                    self.block_ids.remove(id);
                }
                Key::Striped(group) => {
                    self.striped_ids.remove(group);
                }
                Key::Legacy(id) => {
                    self.legacy_ids.remove(id);
                }
            }
        }
    }
    /// A block has another handle now.
    pub(super) fn index_swap(&mut self, key: Key, from: BlockHandle, to: BlockHandle) {
        if self.indexed(key) == Some(from) {
            self.index_set(key, to);
        }
    }

    /// The block of an id; for an internal block of a striped group, the group.
    pub fn find_block(&self, id: BlockId) -> Option<BlockHandle> {
        let legacy = if self.legacy_ids.is_empty() { None } else { self.indexed(Key::Legacy(id.0)) };
        legacy.or_else(|| self.indexed(key_without_legacy(id)))
    }
    /// Finds blocks by the batch (some tens, as a report lists them): `found[i]` is for `ids[i]`. More than twice as fast as one by one once the store is
    /// larger than the caches, since waits for memory overlap; the records are asked for too, so that using the handles right away is fast.
    pub fn find_blocks(&self, ids: &[BlockId], found: &mut Vec<Option<BlockHandle>>) {
        found.clear();
        let mut group = None;
        for id in ids.iter().filter(|id| !id.is_striped()) {
            self.block_ids.prefetch_near(&mut group, id.0);
        }
        for id in ids {
            let b = match key_without_legacy(*id) {
                Key::Contiguous(id) if self.legacy_ids.is_empty() => {
                    self.block_ids.get_near(&mut group, id).map(BlockHandle)
                }
                _ => self.find_block(*id),
            };
            match b.map(|b| (b, InodeHandle::from_raw(b.raw() ^ FUSED_BIT))) {
                Some((b, Some(h))) if b.raw() & FUSED_BIT != 0 => self.inodes.prefetch(h.0),
                Some((b, _)) => self.blocks.prefetch(b.0),
                None => {}
            }
            found.push(b);
        }
    }
    /// Blocks with a stamp below this one are of the time of random ids (`genstampV1Limit`). To be set before blocks are added; later it walks
    /// over all of them.
    pub fn set_legacy_limit(&mut self, limit: GenerationStamp) {
        let all: Vec<BlockHandle> = self.blocks().collect();
        let before: Vec<Key> = all.iter().map(|b| self.key_of(*b)).collect();
        self.legacy_limit = limit;
        for (b, before) in all.into_iter().zip(before) {
            let after = self.key_of(b);
            if before != after {
                self.index_clear(before, b);
                self.index_set(after, b);
            }
        }
    }
    /// What [`Store::set_legacy_limit`] set.
    pub fn legacy_limit(&self) -> GenerationStamp {
        self.legacy_limit
    }
    fn key_of(&self, b: BlockHandle) -> Key {
        let Block { id, stamp, .. } = self.block_core(b);
        self.key(id, stamp)
    }

    /// All of a record but its file and replicas; and what does not fit it.
    fn encode_block(&mut self, info: &BlockInfo) -> (BlockRecord, Option<WideBlock>) {
        let mut record = BlockRecord::empty();
        record.set(f::LIVE, 1);
        record.set(f::STATE, info.state as u64);
        record.set(f::OPEN, u64::from(info.open));
        record.set(f::DELETED, u64::from(info.deleted));
        let Block { id, length, stamp } = info.block;
        let class = class_of(info);
        let packed = (
            pack_block_id(id.0),
            fits(f::STAMP, stamp.0),
            Some(length).filter(|l| *l <= f::LENGTH.max()),
            self.block_classes.code(class),
        );
        let (Some(id), Some(stamp), Some(length), Some(class)) = packed else {
            record.set(f::WIDE, 1);
            return (record, Some(WideBlock { id: id.0, stamp: stamp.0, length, class }));
        };
        for (field, value) in [(f::ID, id), (f::STAMP, stamp), (f::LENGTH, length), (f::CLASS, class)] {
            record.set(field, value);
        }
        (record, None)
    }
    fn decode_block(&self, slot: NonZeroU32, record: &BlockRecord) -> BlockInfo {
        let WideBlock { id, stamp, length, class } = if record.get(f::WIDE) == 1 {
            WideBlock::decode(self.wide_blocks.get(i64::from(slot.get())).expect("a wide block has its fields"))
        } else {
            WideBlock {
                id: unpack_block_id(record.get(f::ID)),
                stamp: record.get(f::STAMP) as i64,
                length: record.get(f::LENGTH),
                class: self.block_classes.value(record.get(f::CLASS)),
            }
        };
        BlockInfo {
            block: Block { id: BlockId(id), length, stamp: GenerationStamp(stamp) },
            replication: class.replication,
            state: state_of(record),
            open: record.get(f::OPEN) == 1,
            deleted: record.get(f::DELETED) == 1,
            storage_policy: class.storage_policy,
            erasure_coding_policy: class.erasure_coding_policy,
        }
    }

    /// A record for a block, in no index and no list.
    pub(super) fn add_block_record(&mut self, info: &BlockInfo) -> NonZeroU32 {
        let (record, wide) = self.encode_block(info);
        let slot = self.blocks.add(record);
        if let Some(wide) = wide {
            self.wide_blocks.set(i64::from(slot.get()), &wide.encode());
        }
        slot
    }
    /// Frees a record with its replicas; the index is left alone.
    pub(super) fn free_block_record(&mut self, slot: NonZeroU32) {
        let record = self.blocks.get(slot);
        if let Some(list) = record.list().and_then(NonZeroU32::new) {
            self.lists.remove(list);
        }
        if record.get(f::WIDE) == 1 {
            self.wide_blocks.remove(i64::from(slot.get()));
        }
        self.blocks.remove(slot);
    }

    /// Adds a block that belongs to no file (yet).
    pub fn add_block(&mut self, info: &BlockInfo) -> BlockHandle {
        let b = BlockHandle(self.add_block_record(info));
        let key = self.key(info.block.id, info.block.stamp);
        self.index_set(key, b);
        b
    }
    /// Frees a block and its index entry. It must belong to no list (detached, or the holder drops the list).
    pub fn remove_block(&mut self, b: BlockHandle) {
        let slot = self.separate(b);
        let key = self.key_of(BlockHandle(slot));
        self.index_clear(key, BlockHandle(slot));
        self.free_block_record(slot);
    }

    /// The block, copied out.
    pub fn block(&self, b: BlockHandle) -> BlockInfo {
        self.info_at(&self.place(b))
    }
    pub(super) fn info_at(&self, place: &Place) -> BlockInfo {
        match place {
            Place::Fused(record, _) => self.fused_info(record),
            Place::Separate(slot) => self.decode_block(*slot, &self.blocks.get(*slot)),
        }
    }
    /// Whether the block is complete, not deleted, exactly this one, and has a good replica on this volume. `false` also where finding out would
    /// take more than a look at one record.
    pub fn holds(&self, b: BlockHandle, storage: StorageNumber, block: &Block) -> bool {
        let number = storage.0 + 1;
        match self.place(b) {
            Place::Fused(record, _) => {
                let at = (0..3).find(|at| record.replica(*at) == number);
                record.fused_block() == *block
                    && at.is_some_and(|at| !super::fuse::flags_of(&record, at).contains(ReplicaFlags::CORRUPT))
            }
            Place::Separate(slot) => {
                let record = self.blocks.get(slot);
                record.get(f::WIDE) == 0
                    && record.get(f::LIST) == 0
                    && record.get(f::DELETED) == 0
                    && state_of(&record) == BlockState::Complete
                    && core_of(&record) == *block
                    && (0..3).any(|at| record.replica(at) == number)
            }
        }
    }
    /// Its id, length and stamp.
    pub fn block_core(&self, b: BlockHandle) -> Block {
        match self.place(b) {
            Place::Fused(record, _) => record.fused_block(),
            Place::Separate(slot) => {
                let record = self.blocks.get(slot);
                if record.get(f::WIDE) == 1 {
                    return self.decode_block(slot, &record).block;
                }
                core_of(&record)
            }
        }
    }
    /// Its state.
    pub fn block_state(&self, b: BlockHandle) -> BlockState {
        match self.place(b) {
            Place::Fused(..) => BlockState::Complete,
            Place::Separate(slot) => state_of(&self.blocks.get(slot)),
        }
    }
    /// The file that a block belongs to.
    pub fn block_file(&self, b: BlockHandle) -> Option<InodeHandle> {
        match self.place(b) {
            Place::Fused(_, h) => Some(h),
            Place::Separate(slot) => InodeHandle::from_raw(self.blocks.get(slot).get(f::FILE) as u32),
        }
    }

    /// Changes a block; its index follows a change of id or stamp.
    pub fn edit_block(&mut self, b: BlockHandle, edit: impl FnOnce(&mut BlockInfo)) {
        let place = self.place(b);
        let mut info = self.info_at(&place);
        let before = info.block;
        edit(&mut info);
        let now = match place {
            Place::Fused(_, h) if self.write_fused(h, &info) => {
                BlockHandle::from_raw(h.raw() | FUSED_BIT).expect("not 0")
            }
            _ => {
                let slot = self.separate(b);
                self.write_separate(slot, &info);
                BlockHandle(slot)
            }
        };
        if (before.id, before.stamp) == (info.block.id, info.block.stamp) {
            return;
        }
        let (old, new) = (self.key(before.id, before.stamp), self.key(info.block.id, info.block.stamp));
        if old != new {
            self.index_clear(old, now);
            self.index_set(new, now);
        }
    }
    /// Says whether the file of a block is being written.
    pub fn set_block_open(&mut self, b: BlockHandle, open: bool) {
        match self.place(b) {
            Place::Separate(slot) => self.blocks.edit(slot, |r| r.set(f::OPEN, u64::from(open))),
            Place::Fused(..) if !open => {}
            Place::Fused(..) => self.edit_block(b, |i| i.open = true),
        }
    }
    fn write_separate(&mut self, slot: NonZeroU32, info: &BlockInfo) {
        let (mut after, wide) = self.encode_block(info);
        let before = self.blocks.get(slot);
        for field in [f::FILE, f::LIST, f::REPLICA_0, f::REPLICA_1, f::REPLICA_2] {
            after.set(field, before.get(field));
        }
        self.blocks.edit(slot, |r| *r = after);
        match wide {
            Some(wide) => {
                self.wide_blocks.set(i64::from(slot.get()), &wide.encode());
            }
            None if before.get(f::WIDE) == 1 => {
                self.wide_blocks.remove(i64::from(slot.get()));
            }
            None => {}
        }
    }

    /// How many blocks there are, detached ones included.
    pub fn block_count(&self) -> u64 {
        self.blocks.len() + self.fused
    }
    /// How many striped groups there are.
    pub fn striped_count(&self) -> u64 {
        self.striped_ids.len()
    }
    /// All blocks, in no order that means anything.
    pub fn blocks(&self) -> impl Iterator<Item = BlockHandle> + '_ {
        let fused = self.inodes().filter(|h| self.is_fused(&self.record(*h)));
        let fused = fused.filter_map(|h| BlockHandle::from_raw(h.raw() | FUSED_BIT));
        self.blocks.slots().map(BlockHandle).chain(fused)
    }
    /// How many arena pages the blocks with a record of their own are in, for walks in slices with [`Store::blocks_of_page`];
    /// the others are met by walking over the inodes.
    pub fn block_page_count(&self) -> u32 {
        self.blocks.page_count()
    }
    /// Blocks with a record of their own in one arena page (2,048 at most).
    pub fn blocks_of_page(&self, page: u32) -> impl Iterator<Item = BlockHandle> + '_ {
        self.blocks.page_slots(page).map(BlockHandle)
    }
}
