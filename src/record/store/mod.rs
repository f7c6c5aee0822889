//! Purpose: the store: owner of every record, name and index.
//! Called by: the layers above, as one value inside the file system's state.
//! Calls: arenas, names, lists and indexes of `mem`; the packed layouts.
//! Never: lends a reference to a record (names excepted: `mem::bytes` says why); knows a rule of HDFS.
//! Invariants: `inode.form == fused` iff the block index names the block by its inode; a separate block's record is in at most one file's list;
//! `WIDE` in a record iff it has an entry in the overflow table.

mod blocks;
mod bulk;
mod fuse;
mod inodes;
mod persist;
mod replicas;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
mod wide;

pub use bulk::{Bulk, BulkBlocks, BulkIndex, BulkInode, BulkParts, BulkWorker, Linker, Owner, PartIds, Twice};

use crate::distinct::{Distinct, Value};
use crate::layout::{BlockRecord, InodeRecord};
use crate::{GroupId, StorageNumber, UserId};
use mem::arena::Arena;
use mem::bytes::Bytes;
use mem::index::ids::IdIndex;
use mem::index::table::Table;
use mem::intern::Interner;
use mem::lists::Lists;
use mem::side::SideTable;
use std::sync::Arc;
use vocab::GenerationStamp;

/// Bits of the code of an owner, and of a class.
const OWNER_BITS: u32 = 24;
const CLASS_BITS: u32 = 16;

/// What many inodes share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct FileClass {
    block_size: u64,
    replication: u16,
    storage_policy: u8,
    erasure_coding_policy: u8,
}

impl Value for FileClass {
    /// A directory with a storage policy: files have a block size.
    fn is_noted(&self) -> bool {
        self.block_size == 0 && self.storage_policy != 0
    }
}

/// What many blocks share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct BlockClass {
    replication: u16,
    storage_policy: u8,
    erasure_coding_policy: u8,
}

impl Value for BlockClass {}

/// All inodes and blocks of the file system. Handles that do not name a live record are broken invariants: calls with them panic.
pub struct Store {
    inodes: Arena<InodeRecord>,
    blocks: Arena<BlockRecord>,
    names: Bytes,
    lists: Lists,
    inode_ids: IdIndex,
    block_ids: IdIndex,
    striped_ids: IdIndex,
    legacy_ids: Table,
    users: Interner,
    groups: Interner,
    owners: Distinct<(u32, u32)>,
    file_classes: Distinct<FileClass>,
    block_classes: Distinct<BlockClass>,
    wide_inodes: SideTable,
    wide_blocks: SideTable,
    legacy_limit: GenerationStamp,
    fused: u64,
    /// Replicas on storages below are of an earlier incarnation of the server, and as good as none.
    storage_floor: StorageNumber,
}

/// Bytes held, by part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Inode records, fused blocks included.
    pub inodes: usize,
    /// Records of blocks that are not fused.
    pub blocks: usize,
    /// Names.
    pub names: usize,
    /// Long lists of blocks and replicas.
    pub lists: usize,
    /// Index of inode ids.
    pub inode_index: usize,
    /// Indexes of block ids.
    pub block_index: usize,
    /// Shared values and overflow tables.
    pub shared: usize,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> usize {
        self.inodes + self.blocks + self.names + self.lists + self.inode_index + self.block_index + self.shared
    }
}

impl Default for Store {
    fn default() -> Store {
        Store::new()
    }
}

impl Store {
    /// An empty store: not even a root.
    pub fn new() -> Store {
        let (mut users, mut groups) = (Interner::new(), Interner::new());
        users.intern("");
        groups.intern("");
        Store {
            inodes: Arena::new(),
            blocks: Arena::new(),
            names: Bytes::new(),
            lists: Lists::new(),
            inode_ids: IdIndex::new(),
            block_ids: IdIndex::new(),
            striped_ids: IdIndex::new(),
            legacy_ids: Table::new(),
            users,
            groups,
            owners: Distinct::new(OWNER_BITS),
            file_classes: Distinct::new(CLASS_BITS),
            block_classes: Distinct::new(CLASS_BITS),
            wide_inodes: SideTable::new(),
            wide_blocks: SideTable::new(),
            legacy_limit: GenerationStamp(0),
            fused: 0,
            storage_floor: StorageNumber(0),
        }
    }

    /// Makes room for so many inodes and so many blocks with a record of their own, so that loading them does not grow anything.
    pub fn reserve(&mut self, inodes: u64, blocks: u64) {
        self.inodes.reserve(inodes);
        self.blocks.reserve(blocks);
    }

    /// Lets slots that were freed before the tick before this one be used again. The owner calls it about once a second.
    pub fn tick(&mut self) {
        self.inodes.tick();
        self.blocks.tick();
    }

    /// Begins the next epoch of all pages, for a checkpoint: constant time. The number is the same in all parts.
    pub fn bump_epoch(&mut self) -> u32 {
        self.blocks.bump_epoch();
        self.names.bump_epoch();
        self.lists.bump_epoch();
        self.inode_ids.bump_epoch();
        self.block_ids.bump_epoch();
        self.striped_ids.bump_epoch();
        self.legacy_ids.bump_epoch();
        self.wide_inodes.bump_epoch();
        self.wide_blocks.bump_epoch();
        self.inodes.bump_epoch()
    }

    /// Bytes held, by part. Walks long lists and the like: not for hot paths.
    pub fn memory(&self) -> Memory {
        Memory {
            inodes: self.inodes.memory_bytes(),
            blocks: self.blocks.memory_bytes(),
            names: self.names.memory_bytes(),
            lists: self.lists.memory_bytes(),
            inode_index: self.inode_ids.memory_bytes(),
            block_index: self.block_ids.memory_bytes()
                + self.striped_ids.memory_bytes()
                + self.legacy_ids.memory_bytes(),
            shared: self.owners.memory_bytes()
                + self.file_classes.memory_bytes()
                + self.block_classes.memory_bytes()
                + self.wide_inodes.memory_bytes()
                + self.wide_blocks.memory_bytes(),
        }
    }

    /// The serial number of a user, new if need be. More than 2^24 names are more than any image can hold.
    pub fn intern_user(&mut self, name: &str) -> UserId {
        UserId(self.users.intern(name).expect("at most 2^24 user names"))
    }
    /// The serial number of a group, new if need be.
    pub fn intern_group(&mut self, name: &str) -> GroupId {
        GroupId(self.groups.intern(name).expect("at most 2^24 group names"))
    }
    /// Name of a user; the empty one for a number never given out.
    pub fn user_name(&self, id: UserId) -> &Arc<str> {
        self.users.get(id.0).or_else(|| self.users.get(0)).expect("the empty name")
    }
    /// Name of a group; the empty one for a number never given out.
    pub fn group_name(&self, id: GroupId) -> &Arc<str> {
        self.groups.get(id.0).or_else(|| self.groups.get(0)).expect("the empty name")
    }
    /// The serial number of a user that is known already.
    pub fn find_user(&self, name: &str) -> Option<UserId> {
        self.users.find(name).map(UserId)
    }
    /// The serial number of a group that is known already.
    pub fn find_group(&self, name: &str) -> Option<GroupId> {
        self.groups.find(name).map(GroupId)
    }
}

// The engine shares the store between threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Store>();
};
