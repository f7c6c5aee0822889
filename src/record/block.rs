//! Blocks and replicas as the layers above see them: natural widths, by value.

use crate::BlockHandle;
use smallvec::SmallVec;
use vocab::{Block, BlockState};

/// Number of a storage (a volume of a DataNode) within this process: 24 bits, given out by `blocks`. 0 to 2^24 - 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct StorageNumber(pub u32);

impl StorageNumber {
    /// The highest number that a replica entry can hold.
    pub const MAX: StorageNumber = StorageNumber((1 << 24) - 2);
}

/// Marks of a replica: four bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct ReplicaFlags(pub u8);

impl ReplicaFlags {
    /// Nothing.
    pub const NONE: ReplicaFlags = ReplicaFlags(0);
    /// Reported corrupt.
    pub const CORRUPT: ReplicaFlags = ReplicaFlags(1);
    /// Free for `blocks`.
    pub const SPARE_1: ReplicaFlags = ReplicaFlags(4);
    /// Free for `blocks`.
    pub const SPARE_2: ReplicaFlags = ReplicaFlags(8);

    /// Whether all of `other` is in `self`.
    pub const fn contains(self, other: ReplicaFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One copy of a block, or one internal block of a striped group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replica {
    /// Where.
    pub storage: StorageNumber,
    /// Index within the striped group (0 to 15), 0 for contiguous blocks.
    pub index: u8,
    /// Marks.
    pub flags: ReplicaFlags,
}

/// Replicas of a block, in the order they were added.
pub type Replicas = SmallVec<[Replica; 4]>;

/// Blocks of a file, in order.
pub type Blocks = SmallVec<[BlockHandle; 4]>;

/// What the store knows of a block, without its replicas: all that handling a report needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockInfo {
    /// Id, length and stamp.
    pub block: Block,
    /// Replicas wanted; 1 for striped groups.
    pub replication: u16,
    /// State.
    pub state: BlockState,
    /// Whether its file is being written.
    pub open: bool,
    /// Whether it was cut off from its file and waits to be freed.
    pub deleted: bool,
    /// Storage policy number that placement goes by.
    pub storage_policy: u8,
    /// Erasure coding policy number, 0 for replication.
    pub erasure_coding_policy: u8,
}
