//! Blocks of a file: in place, in a list, or fused into the inode's own record.
//!
//! ```text
//!            settle (closed, one block)
//!   inline ------------------------------> fused
//!   (0 to 6) <------------------------------
//!     ^  |   a second block, construction, snapshot diffs, a state other than complete, a fourth replica, a wide value ...
//!     |  v   7 blocks / 6 blocks
//!    list
//! ```

use super::Store;
use super::blocks::Key;
use crate::handle::FUSED_BIT;
use crate::layout::{INLINE_BLOCKS, InodeRecord, block_field, form, inode_field as f};
use crate::{BlockHandle, BlockInfo, Blocks, Features, Inode, InodeHandle, KindTag, Replica, ReplicaFlags, Replicas};
use smallvec::SmallVec;
use std::num::NonZeroU32;
use vocab::BlockState;

/// Features of files whose blocks keep records of their own.
pub(super) const NEVER_FUSED: Features = Features::CONSTRUCTION.with(Features::SNAPSHOT_DIFFS);

/// Where a block is.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In this record, of this file.
    Fused(InodeRecord, InodeHandle),
    /// In a record of its own.
    Separate(NonZeroU32),
}

/// Handles as numbers.
type Raw = SmallVec<[u32; 8]>;

fn handle(raw: u32) -> BlockHandle {
    BlockHandle::from_raw(raw).expect("a block handle is not 0")
}
fn fused_handle(h: InodeHandle) -> BlockHandle {
    handle(h.raw() | FUSED_BIT)
}

impl Store {
    #[inline]
    pub(super) fn place(&self, b: BlockHandle) -> Place {
        match InodeHandle::from_raw(b.raw() ^ FUSED_BIT) {
            Some(h) if b.raw() & FUSED_BIT != 0 => {
                let record = self.record(h);
                if self.is_fused(&record) {
                    return Place::Fused(record, h);
                }
                let first = self.raw_blocks(&record).first().copied().expect("a fused handle outlived its block");
                Place::Separate(handle(first).0)
            }
            _ => Place::Separate(b.0),
        }
    }

    /// Blocks that are not fused.
    fn raw_blocks(&self, record: &InodeRecord) -> Raw {
        match (record.get(f::KIND) == KindTag::File as u64, record.get(f::FORM)) {
            (true, form::INLINE) => (0..record.inline_blocks()).map(|at| record.inline_block(at)).collect(),
            (true, form::LIST) => self.lists.with(handle(record.inline_block(0)).0, Raw::from_slice),
            _ => Raw::new(),
        }
    }

    /// Replaces the list of a file that is not fused.
    pub(super) fn write_blocks(&mut self, h: InodeHandle, blocks: &[u32]) {
        let record = self.record(h);
        let list = (record.get(f::FORM) == form::LIST).then(|| handle(record.inline_block(0)).0);
        let list = match list {
            Some(list) if blocks.len() > INLINE_BLOCKS => Some(self.lists.replace(list, blocks)),
            Some(list) => {
                self.lists.remove(list);
                None
            }
            None if blocks.len() > INLINE_BLOCKS => Some(self.lists.add(blocks)),
            None => None,
        };
        self.inodes.edit(h.0, |r| {
            r.clear_body();
            match list {
                Some(list) => {
                    r.set(f::FORM, form::LIST);
                    r.set_inline_block(0, list.get());
                }
                None => blocks.iter().enumerate().for_each(|(at, b)| r.set_inline_block(at, *b)),
            }
        });
    }

    /// The blocks of a file, in order; empty for anything else.
    pub fn blocks_of(&self, h: InodeHandle) -> Blocks {
        let record = self.record(h);
        if self.is_fused(&record) {
            return Blocks::from_slice(&[fused_handle(h)]);
        }
        self.raw_blocks(&record).into_iter().map(handle).collect()
    }
    /// Id, length and stamp of the one block of a file that has it in its own record: most files, and these at the price of one record.
    #[inline]
    pub fn fused_block(&self, h: InodeHandle) -> Option<vocab::Block> {
        let record = self.record(h);
        self.is_fused(&record).then(|| record.fused_block())
    }
    /// How many blocks a file has.
    pub fn block_count_of(&self, h: InodeHandle) -> usize {
        let record = self.record(h);
        match (record.get(f::KIND) == KindTag::File as u64, record.get(f::FORM)) {
            (true, form::FUSED | form::FUSED_RANDOM) => 1,
            (true, form::LIST) => self.lists.len(handle(record.inline_block(0)).0),
            (true, _) => record.inline_blocks(),
            _ => 0,
        }
    }
    /// The `at`th block of a file.
    pub fn block_at(&self, h: InodeHandle, at: usize) -> Option<BlockHandle> {
        let record = self.record(h);
        match (record.get(f::KIND) == KindTag::File as u64, record.get(f::FORM)) {
            (true, form::FUSED | form::FUSED_RANDOM) => (at == 0).then(|| fused_handle(h)),
            (true, form::LIST) => self.lists.get(handle(record.inline_block(0)).0, at).and_then(BlockHandle::from_raw),
            (true, _) if at < INLINE_BLOCKS => BlockHandle::from_raw(record.inline_block(at)),
            _ => None,
        }
    }
    /// The last block of a file.
    pub fn last_block(&self, h: InodeHandle) -> Option<BlockHandle> {
        self.block_count_of(h).checked_sub(1).and_then(|at| self.block_at(h, at))
    }

    /// Appends a block to a file and enters it into its index.
    ///
    /// The first block of a file that may be fused is so from the start, which is what loading an image lives by.
    pub fn push_block(&mut self, h: InodeHandle, info: &BlockInfo) -> BlockHandle {
        let record = self.record(h);
        assert!(record.get(f::KIND) == KindTag::File as u64, "blocks belong to files");
        let first = record.get(f::FORM) == form::INLINE && record.inline_block(0) == 0;
        if first && self.may_fuse(&record) && self.write_fused(h, info) {
            let key = self.key(info.block.id, info.block.stamp);
            self.index_set(key, fused_handle(h));
            self.fused += 1;
            return fused_handle(h);
        }
        if self.is_fused(&record) {
            self.unfuse(h);
        }
        let b = self.add_block(info);
        self.blocks.edit(b.0, |r| r.set(block_field::FILE, u64::from(h.raw())));
        self.append(h, b.raw());
        b
    }
    /// Puts a block at the end of the list of a file that is not fused.
    fn append(&mut self, h: InodeHandle, raw: u32) {
        let record = self.record(h);
        if record.get(f::FORM) == form::LIST {
            let list = self.lists.push(handle(record.inline_block(0)).0, raw);
            self.inodes.edit(h.0, |r| r.set_inline_block(0, list.get()));
            return;
        }
        let mut blocks = self.raw_blocks(&record);
        blocks.push(raw);
        self.write_blocks(h, &blocks);
    }

    /// Adds a file with all its blocks.
    pub fn add_file(&mut self, inode: &Inode, name: &[u8], blocks: &[BlockInfo]) -> InodeHandle {
        let h = self.add_inode(inode, name);
        blocks.iter().for_each(|info| {
            self.push_block(h, info);
        });
        h
    }

    /// Cuts the last block off: it belongs to no file now and is marked deleted, but stays until [`Store::remove_block`].
    pub fn remove_last_block(&mut self, h: InodeHandle) -> Option<BlockHandle> {
        self.unfuse(h);
        let mut blocks = self.raw_blocks(&self.record(h));
        let last = handle(blocks.pop()?);
        self.write_blocks(h, &blocks);
        self.detach(last);
        Some(last)
    }
    /// Cuts all blocks off a file, as [`Store::remove_last_block`] does.
    pub fn take_blocks(&mut self, h: InodeHandle) -> Blocks {
        let blocks = self.set_blocks(h, &[]);
        blocks.iter().for_each(|b| self.detach(*b));
        blocks
    }
    /// Lets a block with a record of its own belong to a file, which need not have it in its list.
    pub fn set_block_file(&mut self, b: BlockHandle, h: InodeHandle) {
        self.blocks.edit(b.0, |r| r.set(block_field::FILE, u64::from(h.raw())));
    }
    /// Lets a block with a record of its own belong to no file, which must not have it in its list; it is marked deleted.
    pub fn detach_block(&mut self, b: BlockHandle) {
        self.detach(b);
    }
    fn detach(&mut self, b: BlockHandle) {
        self.blocks.edit(b.0, |r| {
            r.set(block_field::FILE, 0);
            r.set(block_field::DELETED, 1);
        });
    }
    /// Appends all blocks of `from` to those of `to`; `from` has none afterwards.
    pub fn move_blocks(&mut self, from: InodeHandle, to: InodeHandle) {
        let moved = self.set_blocks(from, &[]);
        self.unfuse(to);
        let mut blocks = self.raw_blocks(&self.record(to));
        for b in &moved {
            self.blocks.edit(b.0, |r| r.set(block_field::FILE, u64::from(to.raw())));
            blocks.push(b.raw());
        }
        if !moved.is_empty() {
            self.write_blocks(to, &blocks);
        }
    }
    /// Replaces a file's list of blocks and nothing else: neither the blocks that leave it nor those that enter are touched (snapshot diffs
    /// hold some of them on). To be followed by [`Store::set_block_file`] where ownership changes. The list as it was is returned.
    /// Blocks on either side are not fused afterwards.
    pub fn set_blocks(&mut self, h: InodeHandle, list: &[BlockHandle]) -> Blocks {
        // Handles of fused blocks name a file's first block, so they are resolved before the list changes.
        let new: Raw = list.iter().map(|b| self.separate(*b).get()).collect();
        self.unfuse(h);
        let record = self.record(h);
        let old = self.raw_blocks(&record);
        if record.get(f::KIND) == KindTag::File as u64 && old != new {
            self.write_blocks(h, &new);
        }
        old.into_iter().map(handle).collect()
    }

    /// The record of a block, which gets one of its own if it was fused.
    pub(super) fn separate(&mut self, b: BlockHandle) -> NonZeroU32 {
        match self.place(b) {
            Place::Separate(slot) => slot,
            Place::Fused(_, h) => self.unfuse(h).expect("a fused block"),
        }
    }

    /// Gives the fused block of a file, if that is how it is, a record of its own.
    pub(super) fn unfuse(&mut self, h: InodeHandle) -> Option<NonZeroU32> {
        let record = self.record(h);
        if !self.is_fused(&record) {
            return None;
        }
        let info = self.fused_info(&record);
        let replicas = self.fused_replicas(&record);
        let slot = self.add_block_record(&info);
        self.blocks.edit(slot, |r| r.set(block_field::FILE, u64::from(h.raw())));
        self.inodes.edit(h.0, |r| {
            r.clear_body();
            r.set_inline_block(0, slot.get());
        });
        self.fused -= 1;
        self.write_separate_replicas(slot, &replicas);
        let key = self.key(info.block.id, info.block.stamp);
        self.index_swap(key, fused_handle(h), BlockHandle(slot));
        Some(slot)
    }

    fn may_fuse(&self, record: &InodeRecord) -> bool {
        let features = Features(record.get(f::FEATURES) as u16);
        record.get(f::KIND) == KindTag::File as u64 && record.get(f::WIDE) == 0 && !features.intersects(NEVER_FUSED)
    }

    /// Puts the only block of a file into the file's own record where that is possible: complete, contiguous, at most three replicas,
    /// neither construction nor snapshot diffs. To be called when a file is closed. Handles of the block end here.
    pub fn settle(&mut self, h: InodeHandle) {
        let record = self.record(h);
        if !self.may_fuse(&record) || record.get(f::FORM) != form::INLINE || record.inline_blocks() != 1 {
            return;
        }
        let b = handle(record.inline_block(0));
        let (info, replicas) = self.block_and_replicas(b);
        if self.block_file(b) != Some(h) || !replicas_fuse(&replicas) || !self.write_fused(h, &info) {
            return;
        }
        self.write_fused_replicas(h, &replicas);
        self.fused += 1;
        let key = self.key(info.block.id, info.block.stamp);
        self.index_swap(key, b, fused_handle(h));
        self.free_block_record(b.0);
    }

    /// Writes a block into its file's record, without replicas if it was not there before; `false`, and nothing written, if it does not fit.
    pub(super) fn write_fused(&mut self, h: InodeHandle, info: &BlockInfo) -> bool {
        if info.state != BlockState::Complete || info.open || info.deleted {
            return false;
        }
        if matches!(self.key(info.block.id, info.block.stamp), Key::Striped(_)) {
            return false;
        }
        let Some(class) = self.block_classes.code(super::blocks::class_of(info)) else { return false };
        self.inodes.edit(h.0, |r| r.set_fused(&info.block, class))
    }
    /// The fused block of a record.
    pub(super) fn fused_info(&self, record: &InodeRecord) -> BlockInfo {
        let class = self.block_classes.value(record.fused_class());
        BlockInfo {
            block: record.fused_block(),
            replication: class.replication,
            storage_policy: class.storage_policy,
            erasure_coding_policy: class.erasure_coding_policy,
            ..BlockInfo::default()
        }
    }
    pub(super) fn fused_replicas(&self, record: &InodeRecord) -> Replicas {
        let mut flags = record.get(f::REPLICA_FLAGS);
        let mut all = Replicas::new();
        for number in (0..3).map(|at| record.replica(at)).take_while(|number| *number != 0) {
            let storage = crate::StorageNumber(number - 1);
            all.push(Replica { storage, index: 0, flags: ReplicaFlags(flags as u8 & 15) });
            flags >>= 4;
        }
        all
    }
    pub(super) fn write_fused_replicas(&mut self, h: InodeHandle, replicas: &[Replica]) {
        self.inodes.edit(h.0, |r| {
            let mut flags = 0;
            for at in 0..3 {
                let replica = replicas.get(at);
                r.set_replica(at, replica.map_or(0, |r| r.storage.0 + 1));
                flags |= replica.map_or(0, |r| u64::from(r.flags.0 & 15)) << (at * 4);
            }
            r.set(f::REPLICA_FLAGS, flags);
        });
    }
}

/// Flags of the `at`th fused replica.
pub(super) fn flags_of(record: &InodeRecord, at: usize) -> ReplicaFlags {
    ReplicaFlags((record.get(f::REPLICA_FLAGS) >> (at * 4)) as u8 & 15)
}

/// Whether an inode record can hold these replicas.
pub(super) fn replicas_fuse(replicas: &[Replica]) -> bool {
    replicas.len() <= 3 && replicas.iter().all(|r| r.index == 0)
}
