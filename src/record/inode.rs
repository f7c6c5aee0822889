//! Inodes as the layers above see them: natural widths, by value.

use crate::InodeHandle;
use vocab::{InodeId, Mode, SnapshotId, TimeMs};

/// Serial number of a user name within this store (24 bits); 0 is the empty name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct UserId(pub u32);

/// Serial number of a group name within this store (24 bits); 0 is the empty name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct GroupId(pub u32);

/// Which side tables of the namespace speak of an inode, and marks: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Features(pub u16);

/// What a file has beyond any inode, but for its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileFacts {
    /// Preferred block size in bytes.
    pub block_size: u64,
    /// Replicas wanted.
    pub replication: u16,
    /// Storage policy set on the file itself, 0 for none.
    pub storage_policy: u8,
    /// Erasure coding policy, 0 for replication.
    pub erasure_coding_policy: u8,
    /// Features.
    pub features: Features,
}

impl Features {
    /// Nothing.
    pub const NONE: Features = Features(0);
    /// An access control list.
    pub const ACL: Features = Features(1);
    /// Extended attributes.
    pub const XATTRS: Features = Features(1 << 1);
    /// A quota (directories).
    pub const QUOTA: Features = Features(1 << 2);
    /// Under construction (files): a client writes it. Its blocks are never fused.
    pub const CONSTRUCTION: Features = Features(1 << 3);
    /// Snapshot diffs. The blocks of a file that has any are never fused, since the diffs hold their handles too.
    pub const SNAPSHOT_DIFFS: Features = Features(1 << 4);
    /// A directory that allows snapshots.
    pub const SNAPSHOTTABLE: Features = Features(1 << 5);
    /// The top of a subtree that was cut off and is freed in slices: invisible already.
    pub const DETACHED: Features = Features(1 << 6);
    /// A storage policy was set here (as opposed to inherited), where the number alone cannot tell.
    pub const STORAGE_POLICY: Features = Features(1 << 7);
    /// Root of an encryption zone.
    pub const ENCRYPTION_ZONE: Features = Features(1 << 8);
    /// Target of a symlink, kept by the namespace.
    pub const SYMLINK_TARGET: Features = Features(1 << 9);
    /// Lies in the tree of some snapshot only.
    pub const SNAPSHOT_ONLY: Features = Features(1 << 10);
    /// Bits from here to 15 are free for the namespace.
    pub const FREE_FROM_BIT: u32 = 11;

    /// Whether all of `other` is in `self`.
    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any of `other` is in `self`.
    pub const fn intersects(self, other: Features) -> bool {
        self.0 & other.0 != 0
    }
    /// The set with `other` added.
    pub const fn with(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }
    /// The set without `other`.
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }
    /// Adds `other`.
    pub fn insert(&mut self, other: Features) {
        self.0 |= other.0;
    }
    /// Takes `other` away.
    pub fn remove(&mut self, other: Features) {
        self.0 &= !other.0;
    }
}

/// One inode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inode {
    /// Number; that of the referred inode for a reference.
    pub id: InodeId,
    /// Directory (or reference) above; `None` for the root and for detached inodes.
    pub parent: Option<InodeHandle>,
    /// Owner.
    pub user: UserId,
    /// Group.
    pub group: GroupId,
    /// Permission bits.
    pub mode: Mode,
    /// Modification time.
    pub mtime: TimeMs,
    /// Access time.
    pub atime: TimeMs,
    /// Side tables and marks.
    pub features: Features,
    /// What it is.
    pub kind: InodeKind,
}

/// What an inode is, with what only that kind has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InodeKind {
    /// A directory.
    Directory {
        /// Child list of the namespace; opaque here, 0 for none.
        children: u32,
        /// How many children it has.
        child_count: u32,
        /// Storage policy number, 0 for unspecified.
        storage_policy: u8,
    },
    /// A file; its blocks are reached by [`Store::blocks_of`](crate::Store::blocks_of).
    File {
        /// Wanted replicas; 1 for striped files.
        replication: u16,
        /// Preferred block size in bytes.
        block_size: u64,
        /// Storage policy number, 0 for unspecified.
        storage_policy: u8,
        /// Erasure coding policy number, 0 for replication.
        erasure_coding_policy: u8,
    },
    /// A symbolic link; its target is a side table of the namespace.
    Symlink,
    /// A child slot that stands for an inode which was renamed across a snapshot (Hadoop's `INodeReference`). Not in the id index.
    Reference {
        /// Which of the three.
        kind: ReferenceKind,
        /// The inode (or, for the outer two kinds, the `WithCount` reference) it stands for.
        referred: InodeHandle,
        /// Last snapshot of a `WithName`, destination snapshot of a `DstReference`, else [`SnapshotId::NONE`].
        snapshot: SnapshotId,
    },
}

/// The three kinds of Hadoop's `INodeReference`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ReferenceKind {
    /// In the source directory's deleted list, under the old name.
    WithName = 0,
    /// Shared middle: counts who refers to the inode.
    WithCount = 1,
    /// In the destination directory, under the new name.
    DstReference = 2,
}

/// What an inode is, alone: what a path walk asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)] // as in InodeKind
pub enum KindTag {
    Directory = 1,
    File = 2,
    Symlink = 3,
    Reference = 4,
}

impl InodeKind {
    /// The tag alone.
    pub fn tag(&self) -> KindTag {
        match self {
            InodeKind::Directory { .. } => KindTag::Directory,
            InodeKind::File { .. } => KindTag::File,
            InodeKind::Symlink => KindTag::Symlink,
            InodeKind::Reference { .. } => KindTag::Reference,
        }
    }
}
