//! Short byte strings: names. Addressed by 40-bit references, without a length beside them: each page holds names of one length.
//!
//! [`Bytes::get`] lends the bytes, unlike everything else here. That breaks nothing: a name is written once, into a slot nobody refers to, and never
//! changed until it is removed; and removal needs the store exclusively, which the borrow rules out while the bytes are lent. A
//! checkpoint reads them the same way, through page and stamp.

use crate::page::Pages;
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter, expect};
use crate::slab::Slab;

/// Longer strings (HDFS's own limit is 255 bytes unless it is switched off) are kept apart.
const CLASS_MAX: usize = 1_024;
/// Bits of the slot number within a page: slots have two bytes at least.
const SLOT_BITS: u32 = 15;
/// References from here on are to the strings kept apart.
const APART: u64 = 1 << 39;

/// Reference to a string: 40 bits. 0 is the empty string, which takes no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(transparent)]
pub struct BytesRef(u64);

impl BytesRef {
    /// The number, below 2^40.
    pub fn raw(self) -> u64 {
        self.0
    }
    /// The reference of a number that [`BytesRef::raw`] gave.
    pub fn from_raw(raw: u64) -> BytesRef {
        BytesRef(raw)
    }
    /// Of a slot of a page.
    pub(crate) fn new(page: u32, slot: u32) -> BytesRef {
        BytesRef((u64::from(page) << SLOT_BITS | u64::from(slot)) + 1)
    }
    /// Of a string kept apart.
    pub(crate) fn apart(at: u32) -> BytesRef {
        BytesRef(APART | u64::from(at))
    }
    fn place(self) -> (u32, u32) {
        let at = self.0 - 1;
        ((at >> SLOT_BITS) as u32, at as u32 & ((1 << SLOT_BITS) - 1))
    }
}

/// A store of byte strings.
pub struct Bytes {
    slab: Slab,
    apart: Vec<Option<Box<[u8]>>>,
    apart_free: Vec<u32>,
    count: u64,
    live_bytes: u64,
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::new()
    }
}

impl Bytes {
    /// No string.
    pub fn new() -> Bytes {
        // 24 bits of page number: one tebibyte.
        let slab = Slab::new(CLASS_MAX + 1, (1 << 24) - 1);
        Bytes { slab, apart: Vec::new(), apart_free: Vec::new(), count: 0, live_bytes: 0 }
    }

    /// Longest string that is not kept apart.
    pub(crate) const CLASS_MAX: usize = CLASS_MAX;
    /// Bytes of a slot for strings of a length.
    pub(crate) fn slot_bytes(length: usize) -> usize {
        slot_bytes(length)
    }
    /// A store over pages that were filled from their first slot on: each with its length and number of strings. `totals` are count and bytes.
    pub(crate) fn of_pages(
        pages: Pages,
        used: &[(u32, usize, u32)],
        apart: Vec<Option<Box<[u8]>>>,
        totals: (u64, u64),
    ) -> Bytes {
        let mut bytes = Bytes { apart, count: totals.0, live_bytes: totals.1, ..Bytes::new() };
        bytes.slab.adopt(pages, used, slot_bytes);
        bytes
    }

    /// Gets memory for strings of so many bytes in all.
    pub fn reserve(&mut self, bytes: u64) {
        self.slab.reserve(bytes.div_ceil(crate::page::PAGE_BYTES as u64) as usize);
    }

    /// Keeps a string.
    pub fn add(&mut self, string: &[u8]) -> BytesRef {
        if string.is_empty() {
            return BytesRef(0);
        }
        self.count += 1;
        self.live_bytes += string.len() as u64;
        if string.len() > CLASS_MAX {
            let at = self.apart_free.pop().unwrap_or_else(|| {
                self.apart.push(None);
                self.apart.len() as u32 - 1
            });
            self.apart[at as usize] = Some(string.into());
            return BytesRef::apart(at);
        }
        let (page, slot) = self.slab.take(string.len(), slot_bytes(string.len()));
        self.slab.bytes_mut(page, slot)[..string.len()].copy_from_slice(string);
        BytesRef::new(page, slot)
    }

    /// The string. The reference must be a live one.
    #[inline]
    pub fn get(&self, at: BytesRef) -> &[u8] {
        if at.0 == 0 {
            return b"";
        }
        if at.0 >= APART {
            return self.apart[(at.0 ^ APART) as usize].as_deref().expect("a string that was not removed");
        }
        let (page, slot) = at.place();
        self.slab.class_bytes(page, slot)
    }

    /// Asks for the memory of a string that will be read soon.
    #[inline]
    pub fn prefetch(&self, at: BytesRef) {
        if at.0 != 0 && at.0 < APART {
            let (page, slot) = at.place();
            crate::prefetch::prefetch(&self.slab.bytes(page, slot)[0]);
        }
    }

    /// Forgets a string; its room is used again.
    pub fn remove(&mut self, at: BytesRef) {
        if at.0 == 0 {
            return;
        }
        self.count -= 1;
        self.live_bytes -= self.get(at).len() as u64;
        if at.0 >= APART {
            self.apart[(at.0 ^ APART) as usize] = None;
            self.apart_free.push((at.0 ^ APART) as u32);
        } else {
            let (page, slot) = at.place();
            self.slab.free(page, slot);
        }
    }

    /// How many strings there are, empty ones not counted.
    pub fn len(&self) -> u64 {
        self.count
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Bytes of the strings themselves.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }
    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.slab.memory_bytes() + self.apart.iter().flatten().map(|s| s.len() + 16).sum::<usize>()
    }
    /// Bytes in empty pages, ready for strings of any length.
    pub fn empty_bytes(&self) -> usize {
        self.slab.empty_bytes()
    }
    /// Begins the next epoch.
    pub fn bump_epoch(&mut self) -> u32 {
        self.slab.bump_epoch()
    }
    /// The pages: epoch, stamps.
    pub fn pages(&self) -> &Pages {
        self.slab.pages()
    }
}

/// Bytes of a slot for strings of a length.
fn slot_bytes(length: usize) -> usize {
    length.max(2)
}

impl Persist for Bytes {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.slab.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.slab.page_sets_mut(sets);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        let Bytes { slab, apart, apart_free, count, live_bytes } = self;
        slab.write_rest(rest);
        rest.length(apart.len());
        for string in apart {
            // one that is kept apart is long, so an empty one is none
            rest.bytes(string.as_deref().unwrap_or_default());
        }
        rest.plain(apart_free);
        rest.u64(*count);
        rest.u64(*live_bytes);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Bytes, Malformed> {
        let slab = Bytes::new().slab.restore(pages, rest, slot_bytes)?;
        let mut apart = Vec::new();
        for _ in 0..rest.length(8)? {
            apart.push(Some(rest.bytes()?).filter(|string| !string.is_empty()).map(Box::from));
        }
        let apart_free: Vec<u32> = rest.plain()?;
        let vacant = |at: &u32| apart.get(*at as usize).is_some_and(Option::is_none);
        expect(apart_free.iter().all(vacant), "vacant places")?;
        Ok(Bytes { slab, apart, apart_free, count: rest.u64()?, live_bytes: rest.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn like_a_map(ops in prop::collection::vec((any::<bool>(), 0usize..40, any::<u16>()), 0..500)) {
            let (mut bytes, mut map) = (Bytes::new(), HashMap::<u64, Vec<u8>>::new());
            for (add, length, seed) in ops {
                if add {
                    let length = if length == 39 { 2_000 } else if length == 38 { CLASS_MAX } else { length };
                    let string: Vec<u8> = (0..length).map(|i| (i as u16 ^ seed) as u8).collect();
                    let at = bytes.add(&string);
                    prop_assert!(at.raw() < 1 << 40);
                    let old = map.insert(at.raw(), string);
                    prop_assert!(old.is_none() || length == 0);
                } else if let Some(at) = map.keys().nth(usize::from(seed) % map.len().max(1)).copied() {
                    bytes.remove(BytesRef::from_raw(at));
                    map.remove(&at);
                }
            }
            for (at, string) in &map {
                prop_assert_eq!(bytes.get(BytesRef::from_raw(*at)), &string[..]);
            }
            prop_assert_eq!(bytes.live_bytes(), map.values().map(|s| s.len() as u64).sum::<u64>());
        }
    }

    #[test]
    fn room_is_reclaimed_by_any_length() {
        let mut bytes = Bytes::new();
        let fill = |bytes: &mut Bytes, length: usize| -> Vec<BytesRef> {
            (0..(1 << 20) / length).map(|i| bytes.add(&vec![i as u8; length])).collect()
        };
        let first = fill(&mut bytes, 24);
        let held = bytes.memory_bytes();
        for length in [1, 25, 200, 24, 1000, 3] {
            let refs = fill(&mut bytes, length);
            refs.into_iter().for_each(|at| bytes.remove(at));
        }
        first.into_iter().for_each(|at| bytes.remove(at));
        assert!(bytes.is_empty() && bytes.live_bytes() == 0);
        assert!(bytes.memory_bytes() < 3 * held, "{} then {}", held, bytes.memory_bytes());
        let held = bytes.memory_bytes();
        fill(&mut bytes, 77);
        assert_eq!(bytes.memory_bytes(), held);
    }
}
