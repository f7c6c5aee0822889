//! Bulk filling: threads fill chunks of their own, and what they filled becomes one structure without being copied.
//!
//! Chunks are numbered from one counter, so that the number of a slot is final when it is written, whoever writes it. What a thread leaves unused
//! in its last chunk becomes free slots, but for the chunk of the highest number, which simply ends there.

#![allow(unsafe_code)] // seeing words as atomic ones while several threads link records

use crate::arena::{Arena, Record, SLOT_MAX};
use crate::bytes::{Bytes, BytesRef};
use crate::page::{CHUNK_PAGES, ChunkPages, PAGE_BYTES, Pages, WholeChunk};
pub use crate::populate::Clock;
use crate::populate::{Populate, give_back_from};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The numbers of the chunks of one structure that is being filled.
#[derive(Debug)]
pub struct ChunkNumbers {
    clock: Clock,
    next: AtomicU32,
    /// Strings kept apart.
    apart: AtomicU32,
}

impl ChunkNumbers {
    /// None given out. The clock tells how long memory takes to come.
    pub fn new(clock: Clock) -> ChunkNumbers {
        ChunkNumbers { clock, next: AtomicU32::new(0), apart: AtomicU32::new(0) }
    }
}

/// A chunk that is being filled, and how many of its pages are in use.
struct Filled {
    number: u32,
    pages: u32,
    chunk: WholeChunk,
}

/// The chunks that one thread fills.
struct Chunks<'n> {
    numbers: &'n ChunkNumbers,
    all: Vec<Filled>,
    populate: Populate,
}

impl<'n> Chunks<'n> {
    fn new(numbers: &'n ChunkNumbers) -> Chunks<'n> {
        Chunks { numbers, all: Vec::new(), populate: Populate::new(numbers.clock, 0) }
    }
    fn open(&mut self) -> &mut Filled {
        let number = self.numbers.next.fetch_add(1, Ordering::Relaxed);
        let chunk = self.populate.next();
        self.all.push(Filled { number, pages: 0, chunk });
        self.all.last_mut().expect("just pushed")
    }
}

/// All chunks by ascending number.
fn sorted<'n>(parts: impl Iterator<Item = Chunks<'n>>) -> Vec<Filled> {
    let mut all: Vec<Filled> = parts.flat_map(|part| part.all).collect();
    all.sort_unstable_by_key(|filled| filled.number);
    debug_assert!(all.iter().zip(0..).all(|(filled, number)| filled.number == number));
    all
}

/// Pages handed out of these chunks: all of each but of the last.
fn pages_of(mut chunks: Vec<Filled>) -> Pages {
    if let Some(last) = chunks.last_mut() {
        give_back_from(&mut last.chunk, last.pages);
    }
    let count = chunks.last().map_or(0, |last| last.number * CHUNK_PAGES as u32 + last.pages);
    Pages::of_chunks(chunks.into_iter().map(|filled| filled.chunk).collect(), count)
}

/// Records of one thread.
pub struct ArenaFill<'n, R> {
    chunks: Chunks<'n>,
    /// The next slot, and the end of the chunk.
    next: u32,
    end: u32,
    live: u64,
    record: std::marker::PhantomData<R>,
}

impl<'n, R: Record> ArenaFill<'n, R> {
    const CHUNK_SLOTS: u32 = Arena::<R>::PAGE_SLOTS * CHUNK_PAGES as u32;

    /// No record yet.
    pub fn new(numbers: &'n ChunkNumbers) -> ArenaFill<'n, R> {
        ArenaFill { chunks: Chunks::new(numbers), next: 0, end: 0, live: 0, record: std::marker::PhantomData }
    }

    /// The slot that the next [`ArenaFill::add`] will take.
    pub fn next_slot(&mut self) -> NonZeroU32 {
        if self.next == self.end {
            let number = self.chunks.open().number;
            assert!(number < SLOT_MAX / Self::CHUNK_SLOTS, "arena full: 2^31 records");
            self.next = number * Self::CHUNK_SLOTS;
            self.end = self.next + Self::CHUNK_SLOTS;
            // slot 0 is never given out
            self.next += u32::from(self.next == 0);
        }
        NonZeroU32::new(self.next).expect("slot 0 is never given out")
    }

    /// Puts a live record into the next slot.
    pub fn add(&mut self, record: R) -> NonZeroU32 {
        assert!(record.is_live(), "a record that does not say it is live");
        let slot = self.next_slot();
        let filled = self.chunks.all.last_mut().expect("opened");
        let at = slot.get() % Self::CHUNK_SLOTS;
        let page = &mut filled.chunk.0[(at / Arena::<R>::PAGE_SLOTS) as usize];
        bytemuck::cast_slice_mut::<u8, R>(&mut page.0)[(at % Arena::<R>::PAGE_SLOTS) as usize] = record;
        self.next += 1;
        self.live += 1;
        slot
    }
}

impl<R: Record> Arena<R> {
    /// One arena of all that was filled; `fills` are all there were over one [`ChunkNumbers`].
    pub fn join(fills: Vec<ArenaFill<'_, R>>) -> Arena<R> {
        let live = fills.iter().map(|fill| fill.live).sum();
        let mut holes: Vec<(u32, u32)> = fills.iter().map(|fill| (fill.next, fill.end)).collect();
        holes.sort_unstable();
        let mut chunks = sorted(fills.into_iter().map(|fill| fill.chunks));
        let fresh = match holes.pop() {
            // the highest chunk ends where its last record does
            Some((next, _)) if next > 0 => next,
            _ => return Arena::new(),
        };
        if let Some(last) = chunks.last_mut() {
            last.pages = (fresh - last.number * ArenaFill::<R>::CHUNK_SLOTS).div_ceil(Arena::<R>::PAGE_SLOTS);
        }
        Arena::of_pages(pages_of(chunks), fresh, live, holes.into_iter().flat_map(|(next, end)| next..end))
    }
}

/// A page of strings of one length that has room.
#[derive(Clone, Copy)]
struct OpenPage {
    /// Which of the thread's chunks, and which page of it.
    chunk: u32,
    page: u32,
    used: u32,
    slots: u32,
}

/// Strings of one thread.
pub struct BytesFill<'n> {
    chunks: Chunks<'n>,
    /// By length.
    open: Vec<Option<OpenPage>>,
    /// Pages with their length and their strings, once they are full.
    full: Vec<(u32, usize, u32)>,
    apart: Vec<(u32, Box<[u8]>)>,
    count: u64,
    live_bytes: u64,
}

impl<'n> BytesFill<'n> {
    /// No string yet.
    pub fn new(numbers: &'n ChunkNumbers) -> BytesFill<'n> {
        let open = vec![None; Bytes::CLASS_MAX + 1];
        BytesFill { chunks: Chunks::new(numbers), open, full: Vec::new(), apart: Vec::new(), count: 0, live_bytes: 0 }
    }

    /// Keeps a string.
    pub fn add(&mut self, string: &[u8]) -> BytesRef {
        if string.is_empty() {
            return BytesRef::default();
        }
        self.count += 1;
        self.live_bytes += string.len() as u64;
        if string.len() > Bytes::CLASS_MAX {
            let at = self.chunks.numbers.apart.fetch_add(1, Ordering::Relaxed);
            self.apart.push((at, string.into()));
            return BytesRef::apart(at);
        }
        let mut open = match self.open[string.len()] {
            Some(open) => open,
            None => self.open_page(string.len()),
        };
        let filled = &mut self.chunks.all[open.chunk as usize];
        let from = open.used as usize * Bytes::slot_bytes(string.len());
        filled.chunk.0[open.page as usize].0[from..from + string.len()].copy_from_slice(string);
        let page = filled.number * CHUNK_PAGES as u32 + open.page;
        let at = BytesRef::new(page, open.used);
        open.used += 1;
        self.open[string.len()] = Some(open).filter(|open| open.used < open.slots);
        if open.used == open.slots {
            self.full.push((page, string.len(), open.used));
        }
        at
    }

    fn open_page(&mut self, length: usize) -> OpenPage {
        let room = self.chunks.all.last().is_some_and(|filled| (filled.pages as usize) < CHUNK_PAGES);
        if !room {
            self.chunks.open();
        }
        let chunk = self.chunks.all.len() as u32 - 1;
        let filled = &mut self.chunks.all[chunk as usize];
        filled.pages += 1;
        let slots = (PAGE_BYTES / Bytes::slot_bytes(length)) as u32;
        OpenPage { chunk, page: filled.pages - 1, used: 0, slots }
    }

    /// Pages with their length and how many strings they hold.
    fn pages(&self) -> Vec<(u32, usize, u32)> {
        let number = |open: &OpenPage| self.chunks.all[open.chunk as usize].number * CHUNK_PAGES as u32 + open.page;
        let open = self.open.iter().enumerate();
        let open = open.filter_map(|(length, open)| open.as_ref().map(|open| (number(open), length, open.used)));
        self.full.iter().copied().chain(open).collect()
    }
}

impl Bytes {
    /// One store of all that was filled; `fills` are all there were over one [`ChunkNumbers`].
    pub fn join(fills: Vec<BytesFill<'_>>) -> Bytes {
        let used: Vec<_> = fills.iter().flat_map(BytesFill::pages).collect();
        let totals = (fills.iter().map(|fill| fill.count).sum(), fills.iter().map(|fill| fill.live_bytes).sum());
        let (mut apart, mut chunks) = (Vec::new(), Vec::new());
        for mut fill in fills {
            // of a small store what threads did not use of their last chunks is much
            fill.chunks.all.last_mut().into_iter().for_each(|last| give_back_from(&mut last.chunk, last.pages));
            apart.extend(fill.apart);
            chunks.push(fill.chunks);
        }
        apart.sort_unstable_by_key(|(at, _)| *at);
        let pages = pages_of(sorted(chunks.into_iter()));
        Bytes::of_pages(pages, &used, apart.into_iter().map(|(_, string)| Some(string)).collect(), totals)
    }
}

/// The pages of a set as words that several threads may change at once, while nobody else sees the set.
pub struct SharedWords<'a> {
    pages: Vec<&'a [AtomicU64]>,
}

impl<'a> SharedWords<'a> {
    /// Of the pages given, which must be written through the door before.
    pub(crate) fn new(pages: impl Iterator<Item = &'a mut [u64]>) -> SharedWords<'a> {
        let shared = |words: &'a mut [u64]| {
            // SAFETY: AtomicU64 has the size, alignment and bit validity of u64, and the exclusive borrow is given up for 'a, so that all
            // accesses in that time are atomic ones.
            unsafe { &*(std::ptr::from_mut(words) as *const [AtomicU64]) }
        };
        SharedWords { pages: pages.map(shared).collect() }
    }
    /// One word of a record of so many words.
    #[inline]
    pub fn word(&self, slot: NonZeroU32, record_words: usize, word: usize) -> &AtomicU64 {
        let per_page = PAGE_BYTES / 8 / record_words;
        let (page, at) = (slot.get() as usize / per_page, slot.get() as usize % per_page);
        &self.pages[page][at * record_words + word]
    }
    /// Asks for the memory of a record that will be looked at soon.
    #[inline]
    pub fn prefetch(&self, slot: NonZeroU32, record_words: usize) {
        crate::prefetch::prefetch(self.word(slot, record_words, 0));
    }
}

const _: () = assert!(size_of::<ChunkPages>() == CHUNK_PAGES * PAGE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::BytesRef;
    use bytemuck::{Pod, Zeroable};
    use std::collections::HashMap;

    #[derive(Clone, Copy, Pod, Zeroable, PartialEq, Debug)]
    #[repr(C)]
    struct Pair {
        tag: u32,
        value: u32,
    }
    impl Record for Pair {
        fn is_live(&self) -> bool {
            self.tag == 1
        }
        fn vacant(next: u32) -> Pair {
            Pair { tag: 0, value: next }
        }
        fn next_vacant(&self) -> u32 {
            self.value
        }
    }

    fn filled(threads: u32, each: u32) -> (Arena<Pair>, Vec<(NonZeroU32, u32)>) {
        let numbers = ChunkNumbers::new(|| std::time::Duration::ZERO);
        let mut slots = Vec::new();
        let work = |thread: u32| {
            let mut fill = ArenaFill::<Pair>::new(&numbers);
            let values = (0..each).map(|n| thread * each + n);
            let mine: Vec<_> = values.map(|value| (fill.add(Pair { tag: 1, value }), value)).collect();
            (fill, mine)
        };
        let work = &work;
        let fills = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).map(|(fill, mine)| (slots.extend(mine), fill).1).collect()
        });
        (Arena::join(fills), slots)
    }

    #[test]
    fn arenas_of_several_threads_become_one() {
        for (threads, each) in [(1, 0), (1, 5), (3, 1), (3, 300_000)] {
            let (mut arena, slots) = filled(threads, each);
            assert_eq!(arena.len(), u64::from(threads * each));
            assert!(slots.iter().all(|(slot, value)| arena.get(*slot).value == *value));
            let mut sorted: Vec<_> = slots.iter().map(|(slot, _)| *slot).collect();
            sorted.sort_unstable();
            assert!(arena.slots().eq(sorted.iter().copied()));
            // what is free is given out once, and the rest stays
            for value in 0..700_000 {
                let new = arena.add(Pair { tag: 1, value });
                assert!(sorted.binary_search(&new).is_err());
            }
            assert!(slots.iter().all(|(slot, value)| arena.get(*slot).value == *value));
            assert_eq!(arena.slots().count(), (threads * each) as usize + 700_000);
        }
    }

    #[test]
    fn strings_of_several_threads_become_one_store() {
        let numbers = ChunkNumbers::new(|| std::time::Duration::ZERO);
        let mut all: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut fills = Vec::new();
        for thread in 0..3u32 {
            let mut fill = BytesFill::new(&numbers);
            for n in 0..60_000u32 {
                let length = if n % 20_000 == 1 { 5_000 } else { (n * 7 % 40) as usize };
                let string: Vec<u8> = (0..length).map(|i| (i as u32 ^ n ^ thread << 6) as u8).collect();
                let at = fill.add(&string);
                assert!(all.insert(at.raw(), string).is_none() || length == 0);
            }
            fills.push(fill);
        }
        let mut bytes = Bytes::join(fills);
        let check = |bytes: &Bytes, all: &HashMap<u64, Vec<u8>>| {
            assert!(all.iter().all(|(at, string)| bytes.get(BytesRef::from_raw(*at)) == string));
            assert_eq!(bytes.live_bytes(), all.values().map(|s| s.len() as u64).sum::<u64>());
        };
        check(&bytes, &all);
        for n in 0..50_000u32 {
            let string = vec![n as u8; (n % 45) as usize];
            let at = bytes.add(&string);
            assert!(all.insert(at.raw(), string).is_none() || n % 45 == 0);
        }
        check(&bytes, &all);
        for at in all.keys() {
            bytes.remove(BytesRef::from_raw(*at));
        }
        assert!(bytes.is_empty() && bytes.live_bytes() == 0);
    }
}
