//! A hash table from any 64-bit number to a 32-bit one: extendible hashing over pages.
//!
//! Each page is an open-addressing table of its own, with one tag byte a slot to look at before the keys. The top bits of the hash choose the page
//! through a directory; a page that is seven eighths full is split in two. So the table never pauses to grow: no insert costs more than
//! one split (some 2,200 entries moved). Removal shifts the followers back, which leaves no tombstones.

use crate::page::{PAGE_BYTES, Pages};
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter, expect};
use bytemuck::{Pod, Zeroable};

/// Slots of a page, by 13 bytes each.
const SLOTS: usize = 4_992;
/// Most bits of the hash that choose a page.
const DEPTH_MAX: u32 = 24;
/// A page with so many entries is split.
const FULL: u32 = (SLOTS * 7 / 8) as u32;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Segment {
    len: u32,
    /// How many top bits of the hash all entries share.
    depth: u32,
    keys: [i64; SLOTS],
    values: [u32; SLOTS],
    /// 0 for a free slot, else seven bits of the hash and the top bit.
    tags: [u8; SLOTS],
    unused: [u8; PAGE_BYTES - 8 - SLOTS * 13],
}

const _: () = assert!(size_of::<Segment>() == PAGE_BYTES);

/// Mixes all bits of the key into all bits of the hash (two rounds of multiply and fold).
#[inline]
fn hash(key: i64) -> u64 {
    let wide = u128::from(key as u64 ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
    let folded = wide as u64 ^ (wide >> 64) as u64;
    let wide = u128::from(folded ^ 0xe703_7ed1_a0b4_28db) * 0x8ebc_6af0_9c88_c6e3;
    wide as u64 ^ (wide >> 64) as u64
}
#[inline]
fn tag(hash: u64) -> u8 {
    hash as u8 | 0x80
}
/// The slot where a search begins. The bits are neither those of the tag nor, up to a million pages, those of the directory.
#[inline]
fn home(hash: u64) -> usize {
    (((hash >> 8 & 0xffff_ffff) * SLOTS as u64) >> 32) as usize
}

impl Segment {
    #[inline]
    fn find(&self, key: i64, hash: u64) -> Result<usize, usize> {
        let tag = tag(hash);
        let mut at = home(hash);
        loop {
            match self.tags[at] {
                0 => return Err(at),
                t if t == tag && self.keys[at] == key => return Ok(at),
                _ => at = if at + 1 == SLOTS { 0 } else { at + 1 },
            }
        }
    }
    fn put(&mut self, at: usize, key: i64, hash: u64, value: u32) {
        (self.tags[at], self.keys[at], self.values[at]) = (tag(hash), key, value);
        self.len += 1;
    }
    /// Empties a slot and closes the gap: each follower that may move back towards its home does.
    fn take(&mut self, mut gap: usize) {
        let mut at = gap;
        loop {
            at = if at + 1 == SLOTS { 0 } else { at + 1 };
            if self.tags[at] == 0 {
                break;
            }
            let home = home(hash(self.keys[at]));
            let distance = |from: usize| if at >= from { at - from } else { at + SLOTS - from };
            if distance(home) >= distance(gap) {
                (self.tags[gap], self.keys[gap], self.values[gap]) = (self.tags[at], self.keys[at], self.values[at]);
                gap = at;
            }
        }
        self.tags[gap] = 0;
        self.len -= 1;
    }
    fn entries(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        (0..SLOTS).filter(|at| self.tags[*at] != 0).map(|at| (self.keys[at], self.values[at]))
    }
}

/// A map from 64-bit numbers to 32-bit numbers.
#[derive(Default)]
pub struct Table {
    pages: Pages,
    /// Page by the top `depth` bits of the hash; empty until the first insert.
    directory: Vec<u32>,
    depth: u32,
    len: u64,
}

impl Table {
    /// An empty table.
    pub fn new() -> Table {
        Table::default()
    }
    #[inline]
    fn page_of(&self, hash: u64) -> Option<u32> {
        // Two shifts: one of 64 bits at once would be undefined for depth 0.
        self.directory.get((hash >> 1 >> (63 - self.depth)) as usize).copied()
    }
    #[inline]
    fn segment(&self, page: u32) -> &Segment {
        bytemuck::from_bytes(&self.pages.page(page).0)
    }
    fn segment_mut(&mut self, page: u32) -> &mut Segment {
        bytemuck::from_bytes_mut(&mut self.pages.page_mut(page).0)
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: i64) -> Option<u32> {
        let hash = hash(key);
        let segment = self.segment(self.page_of(hash)?);
        segment.find(key, hash).ok().map(|at| segment.values[at])
    }

    /// Sets the value of a key; the old one comes back.
    pub fn insert(&mut self, key: i64, value: u32) -> Option<u32> {
        let hash = hash(key);
        if self.directory.is_empty() {
            let page = self.pages.add();
            self.directory.push(page);
        }
        loop {
            let page = self.page_of(hash).expect("a directory that is not empty");
            let segment = self.segment_mut(page);
            match segment.find(key, hash) {
                Ok(at) => return Some(std::mem::replace(&mut segment.values[at], value)),
                Err(at) if segment.len < FULL => {
                    segment.put(at, key, hash, value);
                    self.len += 1;
                    return None;
                }
                Err(_) => self.split(page, hash),
            }
        }
    }

    /// Splits a full page, to which `hash` belongs, by one more bit.
    fn split(&mut self, page: u32, hash: u64) {
        let old: Box<Segment> = {
            let mut copy: Box<Segment> = bytemuck::zeroed_box();
            bytemuck::bytes_of_mut(&mut *copy).copy_from_slice(&self.pages.page(page).0);
            copy
        };
        let depth = old.depth + 1;
        if depth > self.depth {
            assert!(depth <= DEPTH_MAX, "a hash table beyond its design");
            self.directory = self.directory.iter().flat_map(|p| [*p, *p]).collect();
            self.depth = depth;
        }
        let sibling = self.pages.add();
        // Directory entries that share the old depth's bits are neighbours; the upper half of them goes to the sibling.
        let first = (hash >> 1 >> (63 - old.depth)) as usize;
        let span = 1usize << (self.depth - old.depth);
        self.directory[first * span + span / 2..(first + 1) * span].fill(sibling);
        *self.segment_mut(page) = Zeroable::zeroed();
        self.segment_mut(page).depth = depth;
        self.segment_mut(sibling).depth = depth;
        for (key, value) in old.entries() {
            let hash = self::hash(key);
            let page = self.page_of(hash).expect("a directory that is not empty");
            let segment = self.segment_mut(page);
            let (Ok(at) | Err(at)) = segment.find(key, hash);
            segment.put(at, key, hash, value);
        }
    }

    /// Takes a key out; its value comes back.
    pub fn remove(&mut self, key: i64) -> Option<u32> {
        let hash = hash(key);
        let page = self.page_of(hash)?;
        let at = self.segment(page).find(key, hash).ok()?;
        let segment = self.segment_mut(page);
        let value = segment.values[at];
        segment.take(at);
        self.len -= 1;
        Some(value)
    }

    /// How many keys there are.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        (0..self.pages.len()).flat_map(|page| self.segment(page).entries())
    }
    /// The entries of one page, for walks in slices. A split moves entries to a new last page, so a walk up to the last page misses none.
    pub fn page_entries(&self, page: u32) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.segment(page).entries()
    }
    /// All entries by ascending key. Sorts first: linear memory, for tests and tables that are small.
    pub fn sorted(&self) -> Vec<(i64, u32)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable();
        all
    }
    /// Bytes held. Pages are not given back when entries are removed; the hash spreads new ones over all of them.
    pub fn memory_bytes(&self) -> usize {
        self.pages.memory_bytes() + self.directory.len() * 4
    }
    /// Begins the next epoch.
    pub fn bump_epoch(&mut self) -> u32 {
        self.pages.bump_epoch()
    }
    /// The pages: epoch, stamps.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }
}

impl Persist for Table {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        sets.push(&self.pages);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        sets.push(&mut self.pages);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        let Table { pages: _, directory, depth, len } = self;
        rest.plain(directory);
        rest.u32(*depth);
        rest.u64(*len);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Table, Malformed> {
        let (pages, directory, depth) = (pages.take()?, rest.plain::<u32>()?, rest.u32()?);
        expect(
            depth <= DEPTH_MAX && (directory.is_empty() || directory.len() == 1 << depth),
            "a directory of its depth",
        )?;
        expect(directory.iter().all(|page| *page < pages.len()), "pages that exist")?;
        Ok(Table { pages, directory, depth, len: rest.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn like_a_map(ops in prop::collection::vec((any::<bool>(), prop_oneof![-50i64..50, any::<i64>()], any::<u32>()), 0..600)) {
            let (mut table, mut map) = (Table::new(), BTreeMap::new());
            for (add, key, value) in ops {
                if add {
                    prop_assert_eq!(table.insert(key, value), map.insert(key, value));
                } else {
                    prop_assert_eq!(table.remove(key), map.remove(&key));
                }
                prop_assert_eq!(table.get(key), map.get(&key).copied());
            }
            prop_assert_eq!(table.sorted(), map.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_random_keys_split_pages_and_go_away() {
        let (mut table, mut map) = (Table::new(), BTreeMap::new());
        let mut seed = 1u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..60_000 {
            let key = next() as i64;
            assert_eq!(table.insert(key, key as u32 | 1), map.insert(key, key as u32 | 1));
        }
        assert!(table.depth >= 3);
        assert!(table.memory_bytes() / (table.len() as usize) <= 30, "{} bytes a key", table.memory_bytes() / 60_000);
        let keys: Vec<i64> = map.keys().copied().collect();
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(table.get(*key), map.get(key).copied());
            assert_eq!(table.get(!*key), map.get(&!*key).copied());
            if i % 3 != 0 {
                assert_eq!(table.remove(*key), map.remove(key));
            }
        }
        assert_eq!(table.sorted(), map.into_iter().collect::<Vec<_>>());
    }
}
