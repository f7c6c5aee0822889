//! Writing a structure down and rebuilding it: its pages as they lie in memory, and beside them a small *rest* (free lists, counts, oversize items).
//!
//! Nothing of the size of the namespace is in a rest: it is copied under the hold that begins a checkpoint, and decoded at a restart. Pages are not
//! decoded at all. The decoder of rests is total: any bytes give a structure or [`Malformed`]. Content of pages is trusted here: who reads them back has
//! compared their checksums, and the same build has written them.

use crate::page::Pages;
use bytemuck::Pod;
use std::fmt;

/// A structure over pages that can be written down.
///
/// `page_sets` and `page_sets_mut` name the same sets in the same order, always as many, and `restore` takes them in that order.
pub trait Persist: Sized {
    /// Adds the page sets of this structure.
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>);
    /// The same, to freeze them.
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>);
    /// Writes down what is not in pages.
    fn write_rest(&self, rest: &mut RestWriter);
    /// Rebuilds the structure.
    ///
    /// # Errors
    /// [`Malformed`]: the rest is not one that [`Persist::write_rest`] wrote, or does not fit the pages.
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Self, Malformed>;
}

/// A rest that cannot be read; says what was expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed: {}", self.0)
    }
}
impl std::error::Error for Malformed {}

/// Page sets in the order of [`Persist::page_sets`].
#[derive(Default)]
pub struct PageSets(std::vec::IntoIter<Pages>);

impl PageSets {
    /// Sets to be taken in this order.
    pub fn new(sets: Vec<Pages>) -> PageSets {
        PageSets(sets.into_iter())
    }
    /// The next set.
    ///
    /// # Errors
    /// There is none left.
    pub fn take(&mut self) -> Result<Pages, Malformed> {
        self.0.next().ok_or(Malformed("another set of pages"))
    }
    /// How many are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

/// A rest being written. Numbers are little-endian; sequences begin with their length in eight bytes.
#[derive(Default, Debug)]
pub struct RestWriter {
    bytes: Vec<u8>,
}

impl RestWriter {
    /// Nothing yet.
    pub fn new() -> RestWriter {
        RestWriter::default()
    }
    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }
    /// A flag.
    pub fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }
    /// 16 bits.
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_le_bytes());
    }
    /// 32 bits.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_le_bytes());
    }
    /// 64 bits.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_le_bytes());
    }
    /// 64 bits with a sign.
    pub fn i64(&mut self, value: i64) {
        self.u64(value as u64);
    }
    /// The length of a sequence whose items follow.
    pub fn length(&mut self, items: usize) {
        self.u64(items as u64);
    }
    /// A byte string.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.bytes.extend(bytes);
    }
    /// A text.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
    /// Plain values as they lie in memory.
    pub fn plain<T: Pod>(&mut self, values: &[T]) {
        self.length(values.len());
        self.bytes.extend_from_slice(bytemuck::cast_slice(values));
    }
    /// How many bytes were written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// A rest being read.
pub struct RestReader<'a> {
    bytes: &'a [u8],
}

impl<'a> RestReader<'a> {
    /// From its beginning.
    pub fn new(bytes: &'a [u8]) -> RestReader<'a> {
        RestReader { bytes }
    }
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.bytes.split_at_checked(length).ok_or(Malformed("more bytes"))?;
        self.bytes = tail;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.bytes.split_first_chunk().ok_or(Malformed("more bytes"))?;
        self.bytes = tail;
        Ok(*head)
    }
    /// One byte.
    ///
    /// # Errors
    /// The end, as for all others.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }
    /// A flag.
    ///
    /// # Errors
    /// Neither 0 nor 1.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag")),
        }
    }
    /// 16 bits.
    ///
    /// # Errors
    /// The end.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }
    /// 32 bits.
    ///
    /// # Errors
    /// The end.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }
    /// 64 bits.
    ///
    /// # Errors
    /// The end.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }
    /// 64 bits with a sign.
    ///
    /// # Errors
    /// The end.
    pub fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(self.u64()? as i64)
    }
    /// The length of a sequence whose items take at least `item_bytes` bytes each (1 or more).
    ///
    /// # Errors
    /// More items than bytes are left for.
    pub fn length(&mut self, item_bytes: usize) -> Result<usize, Malformed> {
        let length = usize::try_from(self.u64()?).map_err(|_| Malformed("a length"))?;
        match length.checked_mul(item_bytes) {
            Some(bytes) if bytes <= self.bytes.len() => Ok(length),
            _ => Err(Malformed("a length within the rest")),
        }
    }
    /// A byte string.
    ///
    /// # Errors
    /// The end.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length(1)?;
        self.take(length)
    }
    /// A text.
    ///
    /// # Errors
    /// The end; not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("UTF-8"))
    }
    /// Plain values.
    ///
    /// # Errors
    /// The end.
    pub fn plain<T: Pod>(&mut self) -> Result<Vec<T>, Malformed> {
        let length = self.length(size_of::<T>().max(1))?;
        let bytes = self.take(length * size_of::<T>())?;
        let mut values = vec![T::zeroed(); length];
        bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
        Ok(values)
    }
    /// That nothing is left.
    ///
    /// # Errors
    /// There are bytes left.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Malformed("the end")) }
    }
}

/// Fails with what was expected.
pub(crate) fn expect(holds: bool, what: &'static str) -> Result<(), Malformed> {
    if holds { Ok(()) } else { Err(Malformed(what)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{Bytes, BytesRef};
    use crate::index::ids::IdIndex;
    use crate::lists::{ListHandle, Lists};
    use crate::page::ShadowPool;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;
    use std::sync::Arc;

    /// One of each structure with variable content, and twins that say what is in them.
    #[derive(Default)]
    struct World {
        bytes: Bytes,
        lists: Lists,
        ids: IdIndex,
        twin: Twin,
    }
    #[derive(Clone, Default)]
    struct Twin {
        bytes: BTreeMap<u64, Vec<u8>>,
        lists: BTreeMap<ListHandle, Vec<u32>>,
        ids: BTreeMap<i64, NonZeroU32>,
    }

    impl World {
        fn step(&mut self, op: u8, value: u32) {
            let some = |count: usize| value as usize % count.max(1);
            match op {
                0 => {
                    let length = if value.is_multiple_of(50) { 3_000 } else { value as usize % 60 + 1 };
                    let string = vec![value as u8; length];
                    self.twin.bytes.insert(self.bytes.add(&string).raw(), string);
                }
                1 => {
                    if let Some(at) = self.twin.bytes.keys().nth(some(self.twin.bytes.len())).copied() {
                        self.bytes.remove(BytesRef::from_raw(at));
                        self.twin.bytes.remove(&at);
                    }
                }
                2 => {
                    let length = if value.is_multiple_of(40) { 17_000 } else { value as usize % 300 };
                    let list = vec![value; length];
                    self.twin.lists.insert(self.lists.add(&list), list);
                }
                3 => {
                    if let Some(h) = self.twin.lists.keys().nth(some(self.twin.lists.len())).copied() {
                        let mut list = self.twin.lists.remove(&h).unwrap();
                        list.push(value);
                        self.twin.lists.insert(self.lists.push(h, value), list);
                    }
                }
                4 => {
                    if let Some(h) = self.twin.lists.keys().nth(some(self.twin.lists.len())).copied() {
                        self.lists.remove(h);
                        self.twin.lists.remove(&h);
                    }
                }
                5 => {
                    for id in i64::from(value)..i64::from(value) + 500 {
                        let handle = NonZeroU32::new(value | 1).unwrap();
                        self.ids.insert(id, handle);
                        self.twin.ids.insert(id, handle);
                    }
                }
                _ => {
                    for id in i64::from(value)..i64::from(value) + 200 {
                        assert_eq!(self.ids.remove(id), self.twin.ids.remove(&id));
                    }
                }
            }
        }
        fn check(&self) {
            for (at, string) in &self.twin.bytes {
                assert_eq!(self.bytes.get(BytesRef::from_raw(*at)), &string[..]);
            }
            assert_eq!(self.bytes.len(), self.twin.bytes.len() as u64);
            for (h, list) in &self.twin.lists {
                assert_eq!(&self.lists.copy(*h)[..], &list[..]);
            }
            assert!(self.ids.iter().eq(self.twin.ids.iter().map(|(id, h)| (*id, *h))));
            assert_eq!(self.ids.len(), self.twin.ids.len() as u64);
        }
    }

    impl Persist for World {
        fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
            self.bytes.page_sets(sets);
            self.lists.page_sets(sets);
            self.ids.page_sets(sets);
        }
        fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
            self.bytes.page_sets_mut(sets);
            self.lists.page_sets_mut(sets);
            self.ids.page_sets_mut(sets);
        }
        fn write_rest(&self, rest: &mut RestWriter) {
            self.bytes.write_rest(rest);
            self.lists.write_rest(rest);
            self.ids.write_rest(rest);
        }
        fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<World, Malformed> {
            let bytes = Bytes::restore(pages, rest)?;
            let lists = Lists::restore(pages, rest)?;
            let ids = IdIndex::restore(pages, rest)?;
            Ok(World { bytes, lists, ids, twin: Twin::default() })
        }
    }

    fn op() -> impl Strategy<Value = (u8, u32)> {
        (0u8..7, 0u32..20_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// What is read page by page while others write is what was there when the epoch began.
        #[test]
        fn frozen_content_is_that_of_the_epoch(
            before in prop::collection::vec(op(), 0..200),
            meanwhile in prop::collection::vec(op(), 0..200),
            after in prop::collection::vec(op(), 0..60),
        ) {
            let mut world = World::default();
            before.into_iter().for_each(|(op, value)| world.step(op, value));
            let pool = Arc::new(ShadowPool::new(1 << 30));
            let mut sets = Vec::new();
            world.page_sets_mut(&mut sets);
            sets.into_iter().for_each(|pages| pages.freeze(&pool));
            let mut rest = RestWriter::new();
            world.write_rest(&mut rest);
            let (rest, twin) = (rest.finish(), world.twin.clone());
            let mut meanwhile = meanwhile.into_iter();
            let mut count = Vec::new();
            world.page_sets(&mut count);
            let mut copied = vec![Vec::new(); count.len()];
            for (which, copied) in copied.iter_mut().enumerate() {
                loop {
                    meanwhile.by_ref().take(9).for_each(|(op, value)| world.step(op, value));
                    let mut sets = Vec::new();
                    world.page_sets(&mut sets);
                    if sets[which].copy_frozen(2, copied) == 0 {
                        break;
                    }
                    let mut sets = Vec::new();
                    world.page_sets_mut(&mut sets);
                    sets[which].take_spent_copies();
                }
            }
            meanwhile.for_each(|(op, value)| world.step(op, value));
            world.check();
            prop_assert!(!pool.is_full());
            let pages = copied.iter().map(|bytes| Pages::from_bytes(bytes).unwrap()).collect();
            let (mut pages, mut reader) = (PageSets::new(pages), RestReader::new(&rest));
            let mut restored = World::restore(&mut pages, &mut reader).unwrap();
            prop_assert_eq!((pages.left(), reader.end()), (0, Ok(())));
            restored.twin = twin;
            restored.check();
            after.into_iter().for_each(|(op, value)| restored.step(op, value));
            restored.check();
        }

        /// Whatever the bytes, they are a structure or an error.
        #[test]
        fn damaged_rests_are_refused(
            ops in prop::collection::vec(op(), 0..100), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
        ) {
            let mut world = World::default();
            ops.into_iter().for_each(|(op, value)| world.step(op, value));
            let mut rest = RestWriter::new();
            world.write_rest(&mut rest);
            let mut rest = rest.finish();
            let at = at.index(rest.len());
            if cut { rest.truncate(at) } else { rest[at] ^= byte };
            let mut sets = Vec::new();
            world.page_sets(&mut sets);
            let bytes = |set: &&Pages| (0..set.len()).flat_map(|n| set.page(n).0).collect::<Vec<u8>>();
            let pages = sets.iter().map(|set| Pages::from_bytes(&bytes(set)).unwrap()).collect();
            let restored = World::restore(&mut PageSets::new(pages), &mut RestReader::new(&rest));
            prop_assert!(!cut || restored.is_err());
        }
    }
}
