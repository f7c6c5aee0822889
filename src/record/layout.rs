//! The two packed records, bit by bit.
//!
//! Widths are chosen for a billion files and a century; what does not fit them is kept at natural width in an overflow table, and the record says
//! so by its `WIDE` bit. Each word below is 64 bits.
//!
//! ```text
//! inode     0  id 48 ........................................ features 16
//!           1  parent 32 ................ owner 24 .... kind 3  wide 1  form 2  replica 0 (top) 2
//!           2  name 40 ........................ class 16 ........... stamp (top) 8: of a random id, else 0
//!           3  mtime 42 ........................ mode 10 ...... replica flags 3 x 4
//!           4  atime 42 ........................ replica 0 (low) 22
//!   fused   5  block id 48 .................................... block class 16
//!           6  stamp 40 ........................ replica 1 24
//!           7  length 40 ....................... replica 2 24
//!   random  5  block id 64
//!           6  stamp (low) 24 . block class 16 . replica 1 24         7  as fused
//!   file    5 to 7  six block handles of 32, or the handle of a list
//!   directory  5  child list 32 ............... child count 32
//!   reference  5  referred 32 ................. snapshot 32      6  kind
//!
//! block     0  id 48 (sign and 47) ........................... class 16
//!           1  stamp 40 ........................ replica 0 24
//!           2  length 40 ....................... replica 1 24
//!           3  file 32 ................ replica 2 24 .... state 2  open 1  deleted 1  list 1  wide 1  live 1  (free 1)
//! ```
//!
//! `owner` is an interned pair of user and group; `class` an interned set of replication, policies and (inodes) block size. A replica here is a
//! storage number plus one, 0 for none; those with a striped index (or, in a block record, with flags) are in a list.

use bytemuck::{Pod, Zeroable};
use mem::arena::Record;
use vocab::{Block, BlockId, GenerationStamp};

/// Some bits of a word.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    word: usize,
    shift: u32,
    bits: u32,
}

const fn field(word: usize, shift: u32, bits: u32) -> Field {
    assert!(shift + bits <= 64 && bits < 64);
    Field { word, shift, bits }
}

impl Field {
    /// The highest value that fits.
    #[inline]
    pub(crate) const fn max(self) -> u64 {
        (1 << self.bits) - 1
    }
    /// Which word it is in.
    pub(crate) const fn word(self) -> usize {
        self.word
    }
    /// Its value in that word.
    #[inline]
    pub(crate) fn of(self, word: u64) -> u64 {
        word >> self.shift & self.max()
    }
    /// That word with another value.
    #[inline]
    pub(crate) fn with(self, word: u64, value: u64) -> u64 {
        word & !(self.max() << self.shift) | (value & self.max()) << self.shift
    }
    #[inline]
    fn get(self, words: &[u64]) -> u64 {
        words[self.word] >> self.shift & self.max()
    }
    #[inline]
    fn set(self, words: &mut [u64], value: u64) {
        debug_assert!(value <= self.max(), "a value beyond its field");
        words[self.word] = words[self.word] & !(self.max() << self.shift) | (value & self.max()) << self.shift;
    }
}

/// Fields that are in use together must not overlap.
const fn disjoint(fields: &[Field]) -> bool {
    let (mut taken, mut i) = ([0u64; 8], 0);
    while i < fields.len() {
        let mask = fields[i].max() << fields[i].shift;
        if taken[fields[i].word] & mask != 0 {
            return false;
        }
        taken[fields[i].word] |= mask;
        i += 1;
    }
    true
}

/// An inode, with its block if that is fused: 64 bytes, one cache line.
#[derive(Clone, Copy, Pod, Zeroable, PartialEq, Debug)]
#[repr(transparent)]
pub(crate) struct InodeRecord([u64; 8]);

/// A block with a record of its own: 32 bytes.
#[derive(Clone, Copy, Pod, Zeroable, PartialEq, Debug)]
#[repr(transparent)]
pub(crate) struct BlockRecord([u64; 4]);

const _: () = assert!(size_of::<InodeRecord>() == 64 && size_of::<BlockRecord>() == 32);

/// How a file's record holds its blocks.
pub(crate) mod form {
    /// Up to six handles in place.
    pub(crate) const INLINE: u64 = 0;
    /// The handle of a list.
    pub(crate) const LIST: u64 = 1;
    /// The block itself.
    pub(crate) const FUSED: u64 = 2;
    /// The block itself, its id at natural width: Hadoop before 2.x drew ids at random from all 64 bits.
    pub(crate) const FUSED_RANDOM: u64 = 3;
}

/// Most block handles in place.
pub(crate) const INLINE_BLOCKS: usize = 6;

pub(crate) mod inode_field {
    use super::{Field, disjoint, field};
    pub(crate) const ID: Field = field(0, 0, 48);
    pub(crate) const FEATURES: Field = field(0, 48, 16);
    pub(crate) const PARENT: Field = field(1, 0, 32);
    pub(crate) const OWNER: Field = field(1, 32, 24);
    pub(crate) const KIND: Field = field(1, 56, 3);
    pub(crate) const WIDE: Field = field(1, 59, 1);
    pub(crate) const FORM: Field = field(1, 60, 2);
    pub(crate) const REPLICA_0_TOP: Field = field(1, 62, 2);
    pub(crate) const NAME: Field = field(2, 0, 40);
    pub(crate) const CLASS: Field = field(2, 40, 16);
    pub(crate) const MTIME: Field = field(3, 0, 42);
    pub(crate) const MODE: Field = field(3, 42, 10);
    pub(crate) const REPLICA_FLAGS: Field = field(3, 52, 12);
    pub(crate) const ATIME: Field = field(4, 0, 42);
    pub(crate) const REPLICA_0_LOW: Field = field(4, 42, 22);
    pub(crate) const BLOCK_ID: Field = field(5, 0, 48);
    pub(crate) const BLOCK_CLASS: Field = field(5, 48, 16);
    pub(crate) const STAMP: Field = field(6, 0, 40);
    pub(crate) const REPLICA_1: Field = field(6, 40, 24);
    pub(crate) const LENGTH: Field = field(7, 0, 40);
    pub(crate) const REPLICA_2: Field = field(7, 40, 24);
    pub(crate) const RANDOM_STAMP_LOW: Field = field(6, 0, 24);
    pub(crate) const RANDOM_STAMP_TOP: Field = field(2, 56, 8);
    pub(crate) const RANDOM_CLASS: Field = field(6, 24, 16);
    pub(crate) const CHILDREN: Field = field(5, 0, 32);
    pub(crate) const CHILD_COUNT: Field = field(5, 32, 32);
    pub(crate) const REFERRED: Field = field(5, 0, 32);
    pub(crate) const SNAPSHOT: Field = field(5, 32, 32);
    pub(crate) const REFERENCE_KIND: Field = field(6, 0, 2);

    const FUSED: &[Field] = &[
        ID,
        FEATURES,
        PARENT,
        OWNER,
        KIND,
        WIDE,
        FORM,
        REPLICA_0_TOP,
        NAME,
        CLASS,
        MTIME,
        MODE,
        REPLICA_FLAGS,
        ATIME,
        REPLICA_0_LOW,
        BLOCK_ID,
        BLOCK_CLASS,
        STAMP,
        REPLICA_1,
        LENGTH,
        REPLICA_2,
    ];
    const RANDOM: &[Field] =
        &[NAME, CLASS, RANDOM_STAMP_TOP, RANDOM_STAMP_LOW, RANDOM_CLASS, REPLICA_1, LENGTH, REPLICA_2];
    const _: () = assert!(
        disjoint(FUSED)
            && disjoint(RANDOM)
            && disjoint(&[CHILDREN, CHILD_COUNT])
            && disjoint(&[REFERRED, SNAPSHOT, REFERENCE_KIND])
    );
}

pub(crate) mod block_field {
    use super::{Field, disjoint, field};
    pub(crate) const ID: Field = field(0, 0, 48);
    pub(crate) const CLASS: Field = field(0, 48, 16);
    pub(crate) const STAMP: Field = field(1, 0, 40);
    pub(crate) const REPLICA_0: Field = field(1, 40, 24);
    pub(crate) const LENGTH: Field = field(2, 0, 40);
    pub(crate) const REPLICA_1: Field = field(2, 40, 24);
    pub(crate) const FILE: Field = field(3, 0, 32);
    pub(crate) const REPLICA_2: Field = field(3, 32, 24);
    pub(crate) const STATE: Field = field(3, 56, 2);
    pub(crate) const OPEN: Field = field(3, 58, 1);
    pub(crate) const DELETED: Field = field(3, 59, 1);
    pub(crate) const LIST: Field = field(3, 60, 1);
    pub(crate) const WIDE: Field = field(3, 61, 1);
    pub(crate) const LIVE: Field = field(3, 62, 1);

    const ALL: &[Field] =
        &[ID, CLASS, STAMP, REPLICA_0, LENGTH, REPLICA_1, FILE, REPLICA_2, STATE, OPEN, DELETED, LIST, WIDE, LIVE];
    const _: () = assert!(disjoint(ALL));
}

impl InodeRecord {
    pub(crate) fn empty() -> InodeRecord {
        InodeRecord([0; 8])
    }
    #[inline]
    pub(crate) fn get(&self, field: Field) -> u64 {
        field.get(&self.0)
    }
    #[inline]
    pub(crate) fn set(&mut self, field: Field, value: u64) {
        field.set(&mut self.0, value);
    }

    /// Takes over from `other` all that holds a file's blocks.
    pub(crate) fn copy_blocks(&mut self, other: &InodeRecord) {
        use inode_field::{FORM, RANDOM_STAMP_TOP, REPLICA_0_LOW, REPLICA_0_TOP, REPLICA_FLAGS};
        for field in [FORM, REPLICA_0_TOP, REPLICA_FLAGS, REPLICA_0_LOW, RANDOM_STAMP_TOP] {
            self.set(field, other.get(field));
        }
        self.0[5..].copy_from_slice(&other.0[5..]);
    }
    /// No blocks, no child list, nothing referred to.
    pub(crate) fn clear_body(&mut self) {
        self.copy_blocks(&InodeRecord::empty());
    }

    /// Whether the one block of a file is in here.
    #[inline]
    pub(crate) fn holds_block(&self) -> bool {
        self.get(inode_field::FORM) >= form::FUSED
    }
    /// The block that is in here.
    #[inline]
    pub(crate) fn fused_block(&self) -> Block {
        use inode_field::{BLOCK_ID, FORM, LENGTH, RANDOM_STAMP_LOW, RANDOM_STAMP_TOP, STAMP};
        let (id, stamp) = match self.get(FORM) {
            form::FUSED_RANDOM => {
                (self.0[BLOCK_ID.word()], self.get(RANDOM_STAMP_LOW) | self.get(RANDOM_STAMP_TOP) << 24)
            }
            _ => (self.get(BLOCK_ID), self.get(STAMP)),
        };
        Block { id: BlockId(id as i64), length: self.get(LENGTH), stamp: GenerationStamp(stamp as i64) }
    }
    /// Code of its class.
    pub(crate) fn fused_class(&self) -> u64 {
        use inode_field::{BLOCK_CLASS, FORM, RANDOM_CLASS};
        self.get(if self.get(FORM) == form::FUSED_RANDOM { RANDOM_CLASS } else { BLOCK_CLASS })
    }
    /// Puts a block in here, in place of the one that was, whose replicas it takes over; `false`, and nothing changed, if it does not fit. Striped
    /// groups never do.
    pub(crate) fn set_fused(&mut self, block: &Block, class: u64) -> bool {
        use inode_field::{
            BLOCK_CLASS, BLOCK_ID, FORM, LENGTH, RANDOM_CLASS, RANDOM_STAMP_LOW, RANDOM_STAMP_TOP, STAMP,
        };
        let Block { id, length, stamp } = *block;
        let narrow = fits(BLOCK_ID, id.0).zip(fits(STAMP, stamp.0));
        let random = u32::try_from(stamp.0).ok().map(u64::from);
        if length > LENGTH.max() || narrow.is_none() && random.is_none() {
            return false;
        }
        if !self.holds_block() {
            self.clear_body();
        }
        if let Some((id, stamp)) = narrow {
            self.set(FORM, form::FUSED);
            self.set(BLOCK_ID, id);
            self.set(BLOCK_CLASS, class);
            self.set(STAMP, stamp);
            self.set(RANDOM_STAMP_TOP, 0);
        } else if let Some(stamp) = random {
            self.set(FORM, form::FUSED_RANDOM);
            self.0[BLOCK_ID.word()] = id.0 as u64;
            self.set(RANDOM_STAMP_LOW, stamp & RANDOM_STAMP_LOW.max());
            self.set(RANDOM_STAMP_TOP, stamp >> 24);
            self.set(RANDOM_CLASS, class);
        }
        self.set(LENGTH, length);
        true
    }

    /// Storage number plus one of the `at`th fused replica, 0 for none.
    pub(crate) fn replica(&self, at: usize) -> u32 {
        use inode_field::{REPLICA_0_LOW, REPLICA_0_TOP, REPLICA_1, REPLICA_2};
        (match at {
            0 => self.get(REPLICA_0_LOW) | self.get(REPLICA_0_TOP) << 22,
            1 => self.get(REPLICA_1),
            _ => self.get(REPLICA_2),
        }) as u32
    }
    pub(crate) fn set_replica(&mut self, at: usize, value: u32) {
        use inode_field::{REPLICA_0_LOW, REPLICA_0_TOP, REPLICA_1, REPLICA_2};
        let value = u64::from(value);
        match at {
            0 => {
                self.set(REPLICA_0_LOW, value & REPLICA_0_LOW.max());
                self.set(REPLICA_0_TOP, value >> 22);
            }
            1 => self.set(REPLICA_1, value),
            _ => self.set(REPLICA_2, value),
        }
    }

    /// The `at`th block handle in place, 0 for none.
    pub(crate) fn inline_block(&self, at: usize) -> u32 {
        (self.0[5 + at / 2] >> (at % 2 * 32)) as u32
    }
    pub(crate) fn set_inline_block(&mut self, at: usize, raw: u32) {
        let shift = at % 2 * 32;
        let word = &mut self.0[5 + at / 2];
        *word = *word & !(0xffff_ffff << shift) | u64::from(raw) << shift;
    }
    pub(crate) fn inline_blocks(&self) -> usize {
        (0..INLINE_BLOCKS).take_while(|at| self.inline_block(*at) != 0).count()
    }
}

impl BlockRecord {
    pub(crate) fn empty() -> BlockRecord {
        BlockRecord([0; 4])
    }
    #[inline]
    pub(crate) fn get(&self, field: Field) -> u64 {
        field.get(&self.0)
    }
    #[inline]
    pub(crate) fn set(&mut self, field: Field, value: u64) {
        field.set(&mut self.0, value);
    }
    /// Storage number plus one of the `at`th replica in place, 0 for none.
    pub(crate) fn replica(&self, at: usize) -> u32 {
        use block_field::{REPLICA_0, REPLICA_1, REPLICA_2};
        self.get([REPLICA_0, REPLICA_1, REPLICA_2][at]) as u32
    }
    pub(crate) fn set_replica(&mut self, at: usize, value: u32) {
        use block_field::{REPLICA_0, REPLICA_1, REPLICA_2};
        self.set([REPLICA_0, REPLICA_1, REPLICA_2][at], u64::from(value));
    }
    /// The list of replicas, where they are in one. Its handle takes the room of the first two replicas.
    pub(crate) fn list(&self) -> Option<u32> {
        (self.get(block_field::LIST) == 1).then(|| self.replica(0) | self.replica(1) << 24)
    }
    pub(crate) fn set_list(&mut self, list: u32) {
        self.set(block_field::LIST, 1);
        self.set_replica(0, list & 0xff_ffff);
        self.set_replica(1, list >> 24);
        self.set_replica(2, 0);
    }
}

impl Record for InodeRecord {
    fn is_live(&self) -> bool {
        self.get(inode_field::KIND) != 0
    }
    fn vacant(next: u32) -> InodeRecord {
        InodeRecord([u64::from(next), 0, 0, 0, 0, 0, 0, 0])
    }
    fn next_vacant(&self) -> u32 {
        self.0[0] as u32
    }
}

impl Record for BlockRecord {
    fn is_live(&self) -> bool {
        self.get(block_field::LIVE) != 0
    }
    fn vacant(next: u32) -> BlockRecord {
        BlockRecord([u64::from(next), 0, 0, 0])
    }
    fn next_vacant(&self) -> u32 {
        self.0[0] as u32
    }
}

/// A block id in 48 bits, sign and 47, if it fits. Striped ids count from the lowest number up.
pub(crate) fn pack_block_id(id: i64) -> Option<u64> {
    let value = if id < 0 { id.wrapping_sub(i64::MIN) } else { id } as u64;
    (value < 1 << 47).then_some(value | u64::from(id < 0) << 47)
}
/// The block id of what [`pack_block_id`] gave.
pub(crate) fn unpack_block_id(packed: u64) -> i64 {
    let value = (packed & ((1 << 47) - 1)) as i64;
    if packed >> 47 == 1 { value.wrapping_add(i64::MIN) } else { value }
}
/// `value` if it is neither negative nor beyond `field`.
pub(crate) fn fits(field: Field, value: i64) -> Option<u64> {
    u64::try_from(value).ok().filter(|v| *v <= field.max())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_ids_pack() {
        for id in [0, 1, (1 << 47) - 1, i64::MIN, i64::MIN + 16, i64::MIN + (1 << 47) - 16] {
            assert_eq!(unpack_block_id(pack_block_id(id).unwrap()), id);
        }
        for id in [1 << 47, i64::MAX, -1, -16, i64::MIN + (1 << 47)] {
            assert_eq!(pack_block_id(id), None);
        }
    }

    #[test]
    fn split_fields_keep_their_neighbours() {
        let mut record = InodeRecord([u64::MAX; 8]);
        record.set_replica(0, 0);
        assert_eq!(record.replica(0), 0);
        assert_eq!(record.0.iter().map(|w| w.count_zeros()).sum::<u32>(), 24);
        record.set_replica(0, 0xff_ffff);
        assert_eq!(record.0, [u64::MAX; 8]);
        record.set_inline_block(3, 5);
        assert_eq!((record.inline_block(2), record.inline_block(3), record.inline_block(4)), (u32::MAX, 5, u32::MAX));
    }
}
