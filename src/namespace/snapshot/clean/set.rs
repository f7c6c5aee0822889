//! A set of inodes that grows without ever being moved as a whole.

use record::InodeHandle;
use std::collections::BTreeMap;

/// Bits of a page.
const PAGE_BITS: u32 = 4_096;

/// A set of inodes, in pages of bits.
#[derive(Debug, Default)]
pub(super) struct InodeSet {
    pages: BTreeMap<u32, Box<[u64; PAGE_BITS as usize / 64]>>,
    count: u64,
}

impl InodeSet {
    /// Adds an inode; whether it was not there.
    pub(super) fn insert(&mut self, inode: InodeHandle) -> bool {
        let (page, word, bit) = place(inode);
        let words = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BITS as usize / 64]));
        let is_new = words[word] & bit == 0;
        words[word] |= bit;
        self.count += u64::from(is_new);
        is_new
    }
    /// Whether an inode is there.
    pub(super) fn contains(&self, inode: InodeHandle) -> bool {
        let (page, word, bit) = place(inode);
        self.pages.get(&page).is_some_and(|words| words[word] & bit != 0)
    }
    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.count
    }
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

fn place(inode: InodeHandle) -> (u32, usize, u64) {
    let raw = inode.raw();
    (raw / PAGE_BITS, (raw % PAGE_BITS / 64) as usize, 1 << (raw % 64))
}
