//! Bulk loading: several threads encode records into pages of their own ([`BulkWorker`]), one enters their ids into the indexes
//! ([`BulkIndex`]), [`Bulk::join`] makes a store of it all without copying, and [`Linker`] lets several threads link children to parents.
//!
//! The forms of records are those that single calls give: a closed file of one contiguous block is fused, all others have block records.

use super::blocks::{Key, class_of, key_without_legacy};
use super::fuse::NEVER_FUSED;
use super::wide::{WideBlock, WideInode};
use super::{BlockClass, FileClass, Store};
use crate::handle::FUSED_BIT;
use crate::layout::{BlockRecord, INLINE_BLOCKS, InodeRecord, block_field as b, fits, inode_field as f, pack_block_id};
use crate::{BlockHandle, BlockInfo, InodeHandle, InodeKind, KindTag};
use mem::arena::Arena;
use mem::bulk::{ArenaFill, BytesFill, ChunkNumbers, Clock, SharedWords};
use mem::bytes::{Bytes, BytesRef};
use mem::index::ids::IdIndex;
use mem::index::table::Table;
use mem::persist::Persist;
use mem::side::SideTable;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use vocab::{Block, BlockId, BlockState, GenerationStamp, InodeId};

/// Words of an inode record.
const INODE_WORDS: usize = size_of::<InodeRecord>() / 8;
/// Shared values that a worker remembers the codes of.
const REMEMBERED: usize = 16;

/// An owner as records hold it: a pair of user and group, and its code if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pair: (u32, u32),
    code: Option<u64>,
}

/// What an inode is made of, in bulk; links between inodes come later.
#[derive(Clone, Debug)]
pub struct BulkInode {
    /// Number.
    pub id: i64,
    /// From [`BulkWorker::owner`].
    pub owner: Owner,
    /// Permission bits.
    pub mode: vocab::Mode,
    /// Modification time, in milliseconds.
    pub mtime: i64,
    /// Access time, in milliseconds.
    pub atime: i64,
    /// Side tables that speak of it.
    pub features: crate::Features,
    /// What it is; no reference.
    pub kind: InodeKind,
}

/// The blocks of a file: alike but for what [`Block`] tells. Those of an open file may be written, the last one is.
#[derive(Clone, Copy, Debug)]
pub struct BulkBlocks<'a> {
    /// In their order.
    pub blocks: &'a [Block],
    /// Replicas wanted; 1 for striped groups.
    pub replication: u16,
    /// Whether the file is being written.
    pub open: bool,
    /// Storage policy, 0 for none.
    pub storage_policy: u8,
    /// Erasure coding policy, 0 for replication.
    pub erasure_coding_policy: u8,
}

impl BulkBlocks<'static> {
    /// None.
    pub const NONE: BulkBlocks<'static> =
        BulkBlocks { blocks: &[], replication: 0, open: false, storage_policy: 0, erasure_coding_policy: 0 };
}

impl BulkBlocks<'_> {
    fn class(&self) -> BlockClass {
        let BulkBlocks { replication, storage_policy, erasure_coding_policy, .. } = *self;
        BlockClass { replication, storage_policy, erasure_coding_policy }
    }
    fn infos(&self) -> impl ExactSizeIterator<Item = BlockInfo> {
        let BulkBlocks { blocks, replication, open, storage_policy, erasure_coding_policy } = *self;
        blocks.iter().enumerate().map(move |(at, block)| BlockInfo {
            block: *block,
            replication,
            state: if open && at + 1 == blocks.len() { BlockState::UnderConstruction } else { BlockState::Complete },
            open,
            deleted: false,
            storage_policy,
            erasure_coding_policy,
        })
    }
}

/// Ids of one part of the input with the handles they name, ascending.
#[derive(Debug, Default)]
pub struct PartIds {
    inodes: Vec<(i64, u32)>,
    blocks: Vec<(i64, u32)>,
    striped: Vec<(i64, u32)>,
    legacy: Vec<(i64, u32)>,
}

impl PartIds {
    /// Makes all ascend; to be called by the worker, since most of the work is done in parallel then.
    pub fn sort(&mut self) {
        for list in [&mut self.inodes, &mut self.blocks, &mut self.striped] {
            if !list.is_sorted_by_key(|(id, _)| *id) {
                // stable, so that of equal ids the last stays the last
                list.sort_by_key(|(id, _)| *id);
            }
        }
    }
    /// Forgets all; keeps the memory.
    pub fn clear(&mut self) {
        [&mut self.inodes, &mut self.blocks, &mut self.striped, &mut self.legacy].into_iter().for_each(Vec::clear);
    }
}

/// What workers share.
pub struct Bulk {
    store: Mutex<Store>,
    legacy_limit: GenerationStamp,
    inodes: ChunkNumbers,
    blocks: ChunkNumbers,
    names: ChunkNumbers,
}

/// Codes of shared values, the last few at hand.
struct Codes<T> {
    known: Vec<(T, Option<u64>)>,
    next: usize,
}

impl<T: Copy + PartialEq> Codes<T> {
    fn new() -> Codes<T> {
        Codes { known: Vec::with_capacity(REMEMBERED), next: 0 }
    }
    #[inline]
    fn code(&mut self, value: T, ask: impl FnOnce() -> Option<u64>) -> Option<u64> {
        if let Some((_, code)) = self.known.iter().find(|(known, _)| *known == value) {
            return *code;
        }
        let code = ask();
        if self.known.len() < REMEMBERED {
            self.known.push((value, code));
        } else {
            self.known[self.next] = (value, code);
            self.next = (self.next + 1) % REMEMBERED;
        }
        code
    }
}

impl Bulk {
    /// Into an empty store; blocks with stamps below the limit have random ids. The clock tells how long memory takes to come.
    pub fn new(legacy_limit: GenerationStamp, clock: Clock) -> Bulk {
        Bulk {
            store: Mutex::new(Store::new()),
            legacy_limit,
            inodes: ChunkNumbers::new(clock),
            blocks: ChunkNumbers::new(clock),
            names: ChunkNumbers::new(clock),
        }
    }
    fn shared<T>(&self, ask: impl FnOnce(&mut Store) -> T) -> T {
        ask(&mut self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// A worker; all must come back to [`Bulk::join`].
    pub fn worker(&self) -> BulkWorker<'_> {
        BulkWorker {
            bulk: self,
            inodes: ArenaFill::new(&self.inodes),
            blocks: ArenaFill::new(&self.blocks),
            names: BytesFill::new(&self.names),
            file_classes: Codes::new(),
            block_classes: Codes::new(),
            rest: Rest::default(),
        }
    }

    /// What the workers have made, without what refers to this.
    pub fn parts(workers: Vec<BulkWorker<'_>>) -> BulkParts {
        let (mut inodes, mut blocks, mut names, mut rests) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for worker in workers {
            inodes.push(worker.inodes);
            blocks.push(worker.blocks);
            names.push(worker.names);
            rests.push(worker.rest);
        }
        BulkParts { inodes: Arena::join(inodes), blocks: Arena::join(blocks), names: Bytes::join(names), rests }
    }

    /// The store.
    pub fn join(self, parts: BulkParts, mut index: BulkIndex) -> Store {
        index.set_filling(None);
        let mut store = self.store.into_inner().unwrap_or_else(PoisonError::into_inner);
        store.legacy_limit = self.legacy_limit;
        (store.inodes, store.blocks, store.names) = (parts.inodes, parts.blocks, parts.names);
        let BulkIndex { inode_ids, block_ids, striped_ids, legacy_ids } = index;
        (store.inode_ids, store.block_ids, store.striped_ids, store.legacy_ids) =
            (inode_ids, block_ids, striped_ids, legacy_ids);
        for rest in parts.rests {
            store.fused += rest.fused;
            rest.wide_inodes.iter().for_each(|(slot, wide)| {
                store.wide_inodes.set(i64::from(*slot), &wide.encode());
            });
            rest.wide_blocks.iter().for_each(|(slot, wide)| {
                store.wide_blocks.set(i64::from(*slot), &wide.encode());
            });
            rest.long.iter().for_each(|(file, blocks)| store.write_blocks(*file, blocks));
        }
        store
    }
}

/// What a worker has made beside its pages.
#[derive(Default)]
struct Rest {
    wide_inodes: Vec<(u32, WideInode)>,
    wide_blocks: Vec<(u32, WideBlock)>,
    /// Lists of more blocks than fit a record.
    long: Vec<(InodeHandle, Vec<u32>)>,
    fused: u64,
}

/// Pages of all workers, joined.
pub struct BulkParts {
    inodes: Arena<InodeRecord>,
    blocks: Arena<BlockRecord>,
    names: Bytes,
    rests: Vec<Rest>,
}

/// One thread's share of the records.
pub struct BulkWorker<'b> {
    bulk: &'b Bulk,
    inodes: ArenaFill<'b, InodeRecord>,
    blocks: ArenaFill<'b, BlockRecord>,
    names: BytesFill<'b>,
    file_classes: Codes<FileClass>,
    block_classes: Codes<BlockClass>,
    rest: Rest,
}

impl BulkWorker<'_> {
    /// An owner by its names. Takes a lock: to be remembered.
    pub fn owner(&self, user: &str, group: &str) -> Owner {
        self.bulk.shared(|store| {
            let pair = (store.intern_user(user).0, store.intern_group(group).0);
            Owner { pair, code: store.owners.code(pair) }
        })
    }

    /// Adds an inode with its name and, if it is a file, its blocks.
    pub fn add(&mut self, inode: &BulkInode, name: &[u8], blocks: BulkBlocks<'_>, ids: &mut PartIds) -> InodeHandle {
        let h = InodeHandle(self.inodes.next_slot());
        let mut record = self.encode(h, inode);
        record.set(f::NAME, self.names.add(name).raw());
        ids.inodes.push((inode.id, h.raw()));
        if !blocks.blocks.is_empty() && !self.fuse(&mut record, inode, blocks, h, ids) {
            self.separate(&mut record, blocks, h, ids);
        }
        self.inodes.add(record);
        h
    }

    fn encode(&mut self, h: InodeHandle, inode: &BulkInode) -> InodeRecord {
        let mut record = InodeRecord::empty();
        record.set(f::KIND, inode.kind.tag() as u64);
        record.set(f::FEATURES, u64::from(inode.features.0));
        record.set(f::MODE, u64::from(inode.mode.bits()));
        let class = super::inodes::class_of(&inode.kind);
        let bulk = self.bulk;
        let packed = (
            fits(f::ID, inode.id),
            fits(f::MTIME, inode.mtime),
            fits(f::ATIME, inode.atime),
            inode.owner.code,
            self.file_classes.code(class, || bulk.shared(|store| store.file_classes.code(class))),
        );
        let (Some(id), Some(mtime), Some(atime), Some(owner), Some(class)) = packed else {
            record.set(f::WIDE, 1);
            let BulkInode { id, mtime, atime, owner, .. } = *inode;
            self.rest.wide_inodes.push((h.raw(), WideInode { id, mtime, atime, owner: owner.pair, class }));
            return record;
        };
        record.set(f::ID, id);
        record.set(f::MTIME, mtime);
        record.set(f::ATIME, atime);
        record.set(f::OWNER, owner);
        record.set(f::CLASS, class);
        record
    }

    fn block_class(&mut self, class: BlockClass) -> Option<u64> {
        let bulk = self.bulk;
        self.block_classes.code(class, || bulk.shared(|store| store.block_classes.code(class)))
    }

    /// Puts the only block of a file into the file's record; `false` if it cannot be there.
    fn fuse(
        &mut self,
        record: &mut InodeRecord,
        inode: &BulkInode,
        blocks: BulkBlocks<'_>,
        h: InodeHandle,
        ids: &mut PartIds,
    ) -> bool {
        let [block] = blocks.blocks else { return false };
        let may = record.get(f::WIDE) == 0 && !inode.features.intersects(NEVER_FUSED);
        if !may || blocks.open {
            return false;
        }
        let Block { id, stamp, .. } = *block;
        if id.is_striped() && stamp >= self.bulk.legacy_limit {
            return false;
        }
        let Some(class) = self.block_class(blocks.class()) else { return false };
        if !record.set_fused(block, class) {
            return false;
        }
        self.rest.fused += 1;
        self.index(id, stamp, h.raw() | FUSED_BIT, ids);
        true
    }

    /// Gives each block a record of its own.
    fn separate(&mut self, record: &mut InodeRecord, blocks: BulkBlocks<'_>, h: InodeHandle, ids: &mut PartIds) {
        let mut long = Vec::new();
        for (at, info) in blocks.infos().enumerate() {
            let slot = self.add_block(&info, h);
            self.index(info.block.id, info.block.stamp, slot, ids);
            if blocks.blocks.len() > INLINE_BLOCKS {
                long.push(slot);
            } else {
                record.set_inline_block(at, slot);
            }
        }
        if !long.is_empty() {
            self.rest.long.push((h, long));
        }
    }

    fn add_block(&mut self, info: &BlockInfo, file: InodeHandle) -> u32 {
        let mut record = BlockRecord::empty();
        record.set(b::LIVE, 1);
        record.set(b::STATE, info.state as u64);
        record.set(b::OPEN, u64::from(info.open));
        record.set(b::DELETED, u64::from(info.deleted));
        record.set(b::FILE, u64::from(file.raw()));
        let Block { id, length, stamp } = info.block;
        let packed = (pack_block_id(id.0), fits(b::STAMP, stamp.0), self.block_class(class_of(info)));
        match packed {
            (Some(id), Some(stamp), Some(class)) if length <= b::LENGTH.max() => {
                record.set(b::ID, id);
                record.set(b::STAMP, stamp);
                record.set(b::LENGTH, length);
                record.set(b::CLASS, class);
                self.blocks.add(record).get()
            }
            _ => {
                record.set(b::WIDE, 1);
                let slot = self.blocks.add(record).get();
                let class = class_of(info);
                self.rest.wide_blocks.push((slot, WideBlock { id: id.0, stamp: stamp.0, length, class }));
                slot
            }
        }
    }

    #[inline]
    fn index(&self, id: BlockId, stamp: GenerationStamp, handle: u32, ids: &mut PartIds) {
        let key = if stamp < self.bulk.legacy_limit { Key::Legacy(id.0) } else { key_without_legacy(id) };
        match key {
            Key::Contiguous(id) => ids.blocks.push((id, handle)),
            Key::Striped(group) => ids.striped.push((group, handle)),
            Key::Legacy(id) => ids.legacy.push((id, handle)),
        }
    }
}

/// An id that was there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Twice {
    /// An inode.
    Inode(InodeId),
    /// A block: the handle of the one that came later.
    Block(BlockHandle),
}

/// The indexes while they are filled.
pub struct BulkIndex {
    inode_ids: IdIndex,
    block_ids: IdIndex,
    striped_ids: IdIndex,
    legacy_ids: Table,
}

impl BulkIndex {
    /// Empty ones. The clock tells how long memory takes to come.
    pub fn new(clock: Clock) -> BulkIndex {
        let (inode_ids, block_ids, striped_ids) = (IdIndex::default(), IdIndex::default(), IdIndex::default());
        let mut index = BulkIndex { inode_ids, block_ids, striped_ids, legacy_ids: Table::new() };
        index.set_filling(Some(clock));
        index
    }
    fn set_filling(&mut self, clock: Option<Clock>) {
        let mut sets = Vec::new();
        [&mut self.inode_ids, &mut self.block_ids, &mut self.striped_ids]
            .into_iter()
            .for_each(|index| index.page_sets_mut(&mut sets));
        self.legacy_ids.page_sets_mut(&mut sets);
        sets.into_iter().for_each(|pages| pages.set_filling(clock));
    }
    /// Enters the ids of a part. Tells the first that was there already, the root's excepted, of which the last counts.
    pub fn enter(&mut self, part: &PartIds) -> Option<Twice> {
        let mut first = None;
        let mut tell = |twice: Option<Twice>| first = first.or(twice);
        self.inode_ids.insert_ascending(&part.inodes, &mut |id, _, _| {
            tell((InodeId(id) != InodeId::ROOT).then_some(Twice::Inode(InodeId(id))));
        });
        let block = |raw: u32| BlockHandle::from_raw(raw).map(Twice::Block);
        self.block_ids.insert_ascending(&part.blocks, &mut |_, _, new| tell(block(new)));
        self.striped_ids.insert_ascending(&part.striped, &mut |_, _, new| tell(block(new)));
        for (id, handle) in &part.legacy {
            if self.legacy_ids.insert(*id, *handle).is_some() {
                tell(block(*handle));
            }
        }
        first
    }
    /// A random id that a sequential one equals, once all are entered.
    pub fn collision(&self) -> Option<Twice> {
        let other = |id: i64| match key_without_legacy(BlockId(id)) {
            Key::Striped(group) => self.striped_ids.get(group),
            _ => self.block_ids.get(id),
        };
        let twice = self.legacy_ids.iter().find(|(id, _)| other(*id).is_some());
        twice.and_then(|(_, raw)| BlockHandle::from_raw(raw)).map(Twice::Block)
    }
}

impl Store {
    /// Lets several threads link inodes; nothing else sees the store meanwhile.
    pub fn linker(&mut self) -> Linker<'_> {
        let Store { inodes, names, inode_ids, wide_inodes, .. } = self;
        Linker { records: inodes.shared_words(), names, inode_ids, wide_inodes }
    }
}

/// Links children to parents, by several threads at once.
pub struct Linker<'s> {
    records: SharedWords<'s>,
    names: &'s Bytes,
    inode_ids: &'s IdIndex,
    wide_inodes: &'s SideTable,
}

impl Linker<'_> {
    #[inline]
    fn field(&self, h: InodeHandle, field: crate::layout::Field) -> u64 {
        field.of(self.records.word(h.0, INODE_WORDS, field.word()).load(Ordering::Relaxed))
    }
    /// Looks up many ids; `found` is told the inode of each in their order. Asks for the memory of those inodes.
    pub fn find_each(&self, ids: &[i64], mut found: impl FnMut(Option<InodeHandle>)) {
        self.inode_ids.get_each(ids, |handle| {
            let handle = handle.map(InodeHandle);
            if let Some(handle) = handle {
                self.prefetch(handle);
            }
            found(handle);
        });
    }
    /// Asks for the memory of an inode that will be linked soon.
    #[inline]
    pub fn prefetch(&self, h: InodeHandle) {
        self.records.prefetch(h.0, INODE_WORDS);
    }
    /// Its name.
    #[inline]
    pub fn name(&self, h: InodeHandle) -> &[u8] {
        self.names.get(BytesRef::from_raw(self.field(h, f::NAME)))
    }
    /// Asks for the memory of a name that will be looked at soon.
    #[inline]
    pub fn prefetch_name(&self, h: InodeHandle) {
        self.names.prefetch(BytesRef::from_raw(self.field(h, f::NAME)));
    }
    /// Its id.
    pub fn id(&self, h: InodeHandle) -> InodeId {
        let wide = self.field(h, f::WIDE) == 1;
        let bytes = if wide { self.wide_inodes.get(i64::from(h.raw())) } else { None };
        InodeId(bytes.map_or(self.field(h, f::ID) as i64, |bytes| WideInode::decode(bytes).id))
    }
    /// Whether it is a directory.
    pub fn is_directory(&self, h: InodeHandle) -> bool {
        self.field(h, f::KIND) == KindTag::Directory as u64
    }
    /// Sets child list and child count of a directory; by one thread only.
    pub fn set_children(&self, directory: InodeHandle, list: u32, count: u32) {
        let word = self.records.word(directory.0, INODE_WORDS, f::CHILDREN.word());
        let before = word.load(Ordering::Relaxed);
        word.store(f::CHILD_COUNT.with(f::CHILDREN.with(before, list.into()), count.into()), Ordering::Relaxed);
    }
    /// How many children a directory has been given.
    pub fn child_count(&self, directory: InodeHandle) -> u32 {
        self.field(directory, f::CHILD_COUNT) as u32
    }
    /// Gives an inode its parent; `false` if it has one.
    #[inline]
    pub fn adopt(&self, child: InodeHandle, parent: InodeHandle) -> bool {
        let word = self.records.word(child.0, INODE_WORDS, f::PARENT.word());
        let link = |before: u64| (f::PARENT.of(before) == 0).then(|| f::PARENT.with(before, u64::from(parent.raw())));
        word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, link).is_ok()
    }
}
