//! Numbers that name things. All are what Hadoop writes on the wire and on disk, in their full width.

use std::fmt;

macro_rules! id {
    ($(#[$m:meta])* $name:ident($t:ty)) => {
        $(#[$m])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $t);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, concat!(stringify!($name), "({})"), self.0) }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
    };
}

id!(/// Inode number. The root is 16385; new ones follow `lastInodeId` by one and are never used twice.
    InodeId(i64));
id!(/// Block or block-group number: contiguous ids are positive and sequential, legacy ones random, striped group ids negative with
    /// four low zero bits.
    BlockId(i64));
id!(/// Generation stamp of a block; grows with every pipeline or recovery.
    GenerationStamp(i64));
id!(/// Transaction number of an edit record; the first is 1, 0 means "nothing yet".
    Txid(u64));
id!(/// Snapshot number; see [`SnapshotId::CURRENT`].
    SnapshotId(i32));

impl InodeId {
    /// The root directory.
    pub const ROOT: InodeId = InodeId(16_385);
    /// The highest reserved number; `lastInodeId` of an empty file system is [`InodeId::ROOT`].
    pub const LAST_RESERVED: InodeId = InodeId(16_384);
    /// "No id": what old records and calls without a file id carry.
    pub const GRANDFATHERED: InodeId = InodeId(0);
}

impl BlockId {
    /// Counter value before the first contiguous block; the first block is one more.
    pub const LAST_RESERVED_CONTIGUOUS: BlockId = BlockId(1 << 30);
    /// Counter value before the first striped block group.
    pub const LAST_RESERVED_STRIPED: BlockId = BlockId(i64::MIN);
    /// Internal blocks of one striped group share the group's id but for these low bits.
    pub const STRIPED_INDEX_MASK: i64 = 15;

    /// Whether the id is of the striped range (a legacy random id may be too; its stamp decides, see `genstampV1Limit`).
    pub fn is_striped(self) -> bool {
        self.0 < 0
    }
    /// The id of the group that this internal block belongs to.
    pub fn group(self) -> BlockId {
        BlockId(self.0 & !Self::STRIPED_INDEX_MASK)
    }
    /// The index of this internal block within its group (0 to 15).
    pub fn index_in_group(self) -> u8 {
        (self.0 & Self::STRIPED_INDEX_MASK) as u8
    }
}

impl GenerationStamp {
    /// Counter value before the first stamp; the first is 1001.
    pub const LAST_RESERVED: GenerationStamp = GenerationStamp(1000);
    /// The stamp of blocks that have none (pre-0.18 images).
    pub const GRANDFATHERED: GenerationStamp = GenerationStamp(0);
}

impl SnapshotId {
    /// The present state, as opposed to a snapshot.
    pub const CURRENT: SnapshotId = SnapshotId(i32::MAX - 1);
    /// No snapshot at all.
    pub const NONE: SnapshotId = SnapshotId(-1);
}

impl Txid {
    /// The transaction after this one.
    pub fn next(self) -> Txid {
        Txid(self.0 + 1)
    }
}
