//! Overflow: the fields of records that do not fit their packed widths, as values of side tables keyed by slot.

use super::{BlockClass, FileClass};

/// Fields of an inode of which some do not fit the record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct WideInode {
    pub(super) id: i64,
    pub(super) mtime: i64,
    pub(super) atime: i64,
    pub(super) owner: (u32, u32),
    pub(super) class: FileClass,
}

/// Fields of a block of which some do not fit the record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct WideBlock {
    pub(super) id: i64,
    pub(super) stamp: i64,
    pub(super) length: u64,
    pub(super) class: BlockClass,
}

fn bytes<const WORDS: usize, const BYTES: usize>(words: [u64; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}
fn words<const WORDS: usize>(bytes: &[u8]) -> [u64; WORDS] {
    let chunks = bytes.as_chunks::<8>().0;
    std::array::from_fn(|at| chunks.get(at).map_or(0, |word| u64::from_le_bytes(*word)))
}
/// Replication and two policies in one word.
fn small(replication: u16, storage_policy: u8, erasure_coding_policy: u8) -> u64 {
    u64::from(replication) | u64::from(storage_policy) << 16 | u64::from(erasure_coding_policy) << 24
}

impl WideInode {
    pub(super) fn encode(&self) -> [u8; 48] {
        let FileClass { block_size, replication, storage_policy, erasure_coding_policy } = self.class;
        let owner = u64::from(self.owner.0) | u64::from(self.owner.1) << 32;
        let class = small(replication, storage_policy, erasure_coding_policy);
        bytes([self.id as u64, self.mtime as u64, self.atime as u64, owner, block_size, class])
    }
    pub(super) fn decode(bytes: &[u8]) -> WideInode {
        let [id, mtime, atime, owner, block_size, class] = words(bytes);
        WideInode {
            id: id as i64,
            mtime: mtime as i64,
            atime: atime as i64,
            owner: (owner as u32, (owner >> 32) as u32),
            class: FileClass {
                block_size,
                replication: class as u16,
                storage_policy: (class >> 16) as u8,
                erasure_coding_policy: (class >> 24) as u8,
            },
        }
    }
}

impl WideBlock {
    pub(super) fn encode(&self) -> [u8; 32] {
        let BlockClass { replication, storage_policy, erasure_coding_policy } = self.class;
        let class = small(replication, storage_policy, erasure_coding_policy);
        bytes([self.id as u64, self.stamp as u64, self.length, class])
    }
    pub(super) fn decode(bytes: &[u8]) -> WideBlock {
        let [id, stamp, length, class] = words(bytes);
        WideBlock {
            id: id as i64,
            stamp: stamp as i64,
            length,
            class: BlockClass {
                replication: class as u16,
                storage_policy: (class >> 16) as u8,
                erasure_coding_policy: (class >> 24) as u8,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(n in any::<[i64; 4]>(), owner in any::<(u32, u32)>(), class in any::<(u16, u8, u8)>()) {
            let (replication, storage_policy, erasure_coding_policy) = class;
            let inode = WideInode {
                id: n[0],
                mtime: n[1],
                atime: n[2],
                owner,
                class: FileClass { block_size: n[3] as u64, replication, storage_policy, erasure_coding_policy },
            };
            prop_assert_eq!(WideInode::decode(&inode.encode()), inode);
            let class = BlockClass { replication, storage_policy, erasure_coding_policy };
            let block = WideBlock { id: n[0], stamp: n[1], length: n[2] as u64, class };
            prop_assert_eq!(WideBlock::decode(&block.encode()), block);
        }
    }
}
