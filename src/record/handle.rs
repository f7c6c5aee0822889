//! Names of records within the store: 32 bits, never zero, so that an `Option` of one is 32 bits too.
//!
//! No handle outlives a hold of the state lock, except inside other records (a child list, a parent): queues and DataNode work hold ids.

use std::num::NonZeroU32;

/// Handle of an inode record; below 2^31.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct InodeHandle(pub(crate) NonZeroU32);

/// Handle of a block; opaque. A block that lives inside its file's inode record is named by that inode's handle with the top bit set.
///
/// Such a *fused* handle stays good when the block moves out into a record of its own (it then names the file's first block), until the
/// file's block list changes; the handle of a separate record ends when [`Store::settle`](crate::Store::settle) fuses the block or
/// [`Store::remove_block`](crate::Store::remove_block) frees it. So two handles of one block need not be equal: compare ids instead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct BlockHandle(pub(crate) NonZeroU32);

/// The bit that tells handles of fused blocks.
pub(crate) const FUSED_BIT: u32 = 1 << 31;

impl InodeHandle {
    /// The number, for lists and side tables of 32-bit values.
    pub fn raw(self) -> u32 {
        self.0.get()
    }
    /// The handle of a number that [`InodeHandle::raw`] gave; `None` for 0.
    pub fn from_raw(raw: u32) -> Option<InodeHandle> {
        NonZeroU32::new(raw).map(InodeHandle)
    }
}

impl BlockHandle {
    /// The number, for lists and side tables of 32-bit values.
    pub fn raw(self) -> u32 {
        self.0.get()
    }
    /// The handle of a number that [`BlockHandle::raw`] gave; `None` for 0.
    pub fn from_raw(raw: u32) -> Option<BlockHandle> {
        NonZeroU32::new(raw).map(BlockHandle)
    }
}

const _: () = assert!(size_of::<Option<InodeHandle>>() == 4 && size_of::<Option<BlockHandle>>() == 4);
