//! Pages of 64 KiB in chunks of 2 MiB: where every byte lives that a checkpoint writes down and a restart maps back.
//!
//! **The write door.** A page is written only through [`Pages::page_mut`] and [`Pages::view_mut`]. Both compare the page's stamp with the current
//! epoch, and the first write in an epoch goes through `first_touch`. That is the seam for online checkpoints: a checkpoint begins by
//! [`Pages::freeze`] (constant time), from then on a page whose stamp is older still holds the frozen content, and `first_touch` is the one
//! place where that content is copied to a bounded pool before it changes. The checkpoint reads frozen pages in order with [`Pages::copy_frozen`],
//! under shared holds; pages behind its cursor are nobody's concern any more. If the pool is full, the write goes on and the checkpoint is
//! lost: it looks at [`ShadowPool::is_full`] after each slice. [`Pages::stamped_since`] is the set of dirty bits.
//!
//! **Chunks.** A chunk is aligned to its size so that the kernel can back it with one huge page. The first 32 pages of each set are allocated one
//! by one, so that small stores (tests, small clusters) stay small. After a restart chunks may lie in a private mapping of a file that was handed in;
//! [`Pages::move_in`] takes them into memory of our own, one at a time.

use crate::persist::{Malformed, expect};
use crate::populate::{Clock, Populate, populate};
use bytemuck::{Pod, Zeroable};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Bytes in a page.
pub const PAGE_BYTES: usize = 64 << 10;
/// Pages in a chunk.
pub const CHUNK_PAGES: usize = 32;

/// One page. All zero when new.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(65536))]
pub struct Page(pub [u8; PAGE_BYTES]);

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(2097152))]
pub(crate) struct ChunkPages(pub(crate) [Page; CHUNK_PAGES]);

const _: () = assert!(size_of::<Page>() == PAGE_BYTES && size_of::<ChunkPages>() == CHUNK_PAGES * PAGE_BYTES);

#[cfg(not(miri))]
pub(crate) type WholeChunk = crate::chunk::MappedChunk;
/// The interpreter that checks for undefined behaviour knows no mappings.
#[cfg(miri)]
pub(crate) type WholeChunk = Box<ChunkPages>;

#[cfg(not(miri))]
pub(crate) fn whole_chunk() -> WholeChunk {
    WholeChunk::new()
}
#[cfg(miri)]
pub(crate) fn whole_chunk() -> WholeChunk {
    bytemuck::zeroed_box()
}
/// Several at once, to be huge pages if asked for.
#[cfg(not(miri))]
pub(crate) fn whole_chunks(count: usize, huge: bool) -> Vec<WholeChunk> {
    WholeChunk::several(count, huge)
}
#[cfg(miri)]
pub(crate) fn whole_chunks(count: usize, _: bool) -> Vec<WholeChunk> {
    (0..count).map(|_| whole_chunk()).collect()
}
#[cfg(not(miri))]
fn lent_chunk(memory: &'static mut ChunkPages) -> WholeChunk {
    WholeChunk::lent(memory)
}
#[cfg(miri)]
fn lent_chunk(memory: &'static mut ChunkPages) -> WholeChunk {
    let mut copy = whole_chunk();
    bytemuck::bytes_of_mut(&mut *copy).copy_from_slice(bytemuck::bytes_of(memory));
    copy
}
#[cfg(not(miri))]
fn is_lent(chunk: &WholeChunk) -> bool {
    chunk.is_lent()
}
#[cfg(miri)]
fn is_lent(_: &WholeChunk) -> bool {
    false
}
#[cfg(not(miri))]
fn give_back(chunk: WholeChunk) -> Option<&'static mut [u8]> {
    chunk.give_back().map(bytemuck::bytes_of_mut)
}
#[cfg(miri)]
fn give_back(_: WholeChunk) -> Option<&'static mut [u8]> {
    None
}

enum Chunk {
    /// Pages of their own, grown one by one.
    Loose(Vec<Box<Page>>),
    /// One aligned allocation.
    Whole(WholeChunk),
}

/// Room for the frozen content of pages that are written to while a checkpoint runs, shared by all sets.
#[derive(Debug)]
pub struct ShadowPool {
    /// Most pages.
    limit: u64,
    used: AtomicU64,
    full: AtomicBool,
}

impl ShadowPool {
    /// Room for so many bytes.
    pub fn new(bytes: u64) -> ShadowPool {
        ShadowPool { limit: bytes / PAGE_BYTES as u64, used: AtomicU64::new(0), full: AtomicBool::new(false) }
    }
    /// Whether a page found no room: frozen content is lost, and the checkpoint with it.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }
    /// Pages in it now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
    fn take(&self) -> bool {
        // the callers have the sets exclusively: the counter is not raced for
        if self.is_full() || self.used() >= self.limit {
            self.full.store(true, Ordering::Relaxed);
            return false;
        }
        self.used.fetch_add(1, Ordering::Relaxed);
        true
    }
    fn give_back(&self, pages: usize) {
        self.used.fetch_sub(pages as u64, Ordering::Relaxed);
    }
}

/// What a checkpoint under way still has to read.
struct Frozen {
    /// Pages when it began.
    len: u32,
    /// It has read those below.
    cursor: AtomicU32,
    /// Pages that were written to since, as they were.
    copies: BTreeMap<u32, Box<Page>>,
    pool: Arc<ShadowPool>,
}

/// Memory for one chunk, touched already, so that moving a chunk into it costs a copy and no more.
pub struct SpareChunk(WholeChunk);

impl SpareChunk {
    /// Gets the memory.
    pub fn new() -> SpareChunk {
        let mut chunk = whole_chunk();
        populate(&mut chunk);
        chunk
            .0
            .iter_mut()
            .for_each(|page| page.0.iter_mut().step_by(4_096).for_each(|byte| *std::hint::black_box(byte) = 0));
        SpareChunk(chunk)
    }
}
impl Default for SpareChunk {
    fn default() -> SpareChunk {
        SpareChunk::new()
    }
}

/// A growing set of pages, numbered from 0.
#[derive(Default)]
pub struct Pages {
    chunks: Vec<Chunk>,
    /// Epoch of the last write to each page; its length is the number of pages handed out.
    stamps: Vec<u32>,
    epoch: u32,
    frozen: Option<Box<Frozen>>,
    /// Chunks below this one lie in memory of our own.
    moved_in: u32,
    /// While it is filled in bulk.
    filling: Option<Box<Populate>>,
}

impl Pages {
    /// No page, epoch 0.
    pub fn new() -> Pages {
        Pages::default()
    }

    /// The first `count` pages of these chunks.
    pub(crate) fn of_chunks(chunks: Vec<WholeChunk>, count: u32) -> Pages {
        let moved_in = chunks.len() as u32;
        let chunks = chunks.into_iter().map(Chunk::Whole).collect();
        Pages { chunks, stamps: vec![0; count as usize], epoch: 0, frozen: None, moved_in, filling: None }
    }
    /// All pages as words that several threads may change at once. Stamps them.
    pub fn shared_words(&mut self) -> crate::bulk::SharedWords<'_> {
        for number in 0..self.len() {
            self.page_mut(number);
        }
        let pages = self.chunks.iter_mut().flat_map(|chunk| match chunk {
            Chunk::Whole(pages) => pages.0.iter_mut().collect::<Vec<_>>(),
            Chunk::Loose(pages) => pages.iter_mut().map(|page| &mut **page).collect(),
        });
        crate::bulk::SharedWords::new(pages.map(|page| bytemuck::cast_slice_mut(&mut page.0)))
    }

    /// How many pages are handed out.
    pub fn len(&self) -> u32 {
        self.stamps.len() as u32
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// Gets memory for `pages` pages in all, without handing them out.
    pub fn reserve(&mut self, pages: usize) {
        self.stamps.reserve(pages.saturating_sub(self.stamps.len()));
        while pages > CHUNK_PAGES && self.chunks.len() * CHUNK_PAGES < pages {
            // A set known to become large has no loose pages at all.
            self.chunks.push(Chunk::Whole(whole_chunk()));
        }
    }

    /// Says that many pages are about to be added, or (`None`) that this is over: chunks get their memory at once meanwhile. Not for where a client
    /// waits.
    pub fn set_filling(&mut self, clock: Option<Clock>) {
        self.filling = clock.map(|clock| Box::new(Populate::new(clock, self.chunks.len() as u32)));
    }

    /// Hands out one more page, zeroed.
    pub fn add(&mut self) -> u32 {
        let number = self.stamps.len();
        if number / CHUNK_PAGES == self.chunks.len() {
            let chunk = if number == 0 { Chunk::Loose(Vec::new()) } else { Chunk::Whole(self.chunk()) };
            self.chunks.push(chunk);
        }
        if let Chunk::Loose(pages) = &mut self.chunks[number / CHUNK_PAGES]
            && pages.len() == number % CHUNK_PAGES
        {
            pages.push(bytemuck::zeroed_box());
        }
        self.stamps.push(self.epoch);
        number as u32
    }

    fn chunk(&mut self) -> WholeChunk {
        self.filling.as_mut().map_or_else(whole_chunk, |filling| filling.next())
    }

    /// A page to read.
    #[inline]
    pub fn page(&self, number: u32) -> &Page {
        let number = number as usize;
        match &self.chunks[number / CHUNK_PAGES] {
            Chunk::Whole(pages) => &pages.0[number % CHUNK_PAGES],
            Chunk::Loose(pages) => &pages[number % CHUNK_PAGES],
        }
    }

    /// A page to write: stamps it.
    #[inline]
    pub fn page_mut(&mut self, number: u32) -> &mut Page {
        if self.stamps[number as usize] != self.epoch {
            self.first_touch(number);
        }
        let number = number as usize;
        match &mut self.chunks[number / CHUNK_PAGES] {
            Chunk::Whole(pages) => &mut pages.0[number % CHUNK_PAGES],
            Chunk::Loose(pages) => &mut pages[number % CHUNK_PAGES],
        }
    }

    /// The first write to a page in this epoch; the page still holds what it held when the epoch began. Shadow copies are taken here.
    #[cold]
    fn first_touch(&mut self, number: u32) {
        self.stamps[number as usize] = self.epoch;
        let Some(mut frozen) = self.frozen.take() else { return };
        if number < frozen.len && number >= *frozen.cursor.get_mut() && frozen.pool.take() {
            let mut copy: Box<Page> = bytemuck::zeroed_box();
            copy.0.copy_from_slice(&self.page(number).0);
            frozen.copies.insert(number, copy);
        }
        self.frozen = Some(frozen);
    }

    /// Begins an epoch whose predecessor's content can be read page by page, however long that takes: constant time. Ends an earlier freeze.
    pub fn freeze(&mut self, pool: &Arc<ShadowPool>) {
        self.thaw();
        self.bump_epoch();
        let (cursor, copies) = (AtomicU32::new(0), BTreeMap::new());
        self.frozen = Some(Box::new(Frozen { len: self.len(), cursor, copies, pool: pool.clone() }));
    }
    /// Frozen pages, and how many of them were read.
    pub fn frozen(&self) -> (u32, u32) {
        self.frozen.as_ref().map_or((0, 0), |f| (f.len, f.cursor.load(Ordering::Relaxed)))
    }
    /// Appends the next frozen pages, at most `count`, to `out`. Gives how many there were; 0 at the end. There must be one reader. What it gave is
    /// to be used only if the pool is not full afterwards, looked at under the same hold.
    pub fn copy_frozen(&self, count: u32, out: &mut Vec<u8>) -> u32 {
        let Some(frozen) = &self.frozen else { return 0 };
        let first = frozen.cursor.load(Ordering::Relaxed);
        let end = first.saturating_add(count).min(frozen.len);
        for number in first..end {
            let page = match frozen.copies.get(&number) {
                Some(copy) => copy,
                None => {
                    debug_assert!(
                        self.stamp(number) < self.epoch || frozen.pool.is_full(),
                        "a write has missed the door"
                    );
                    self.page(number)
                }
            };
            out.extend_from_slice(&page.0);
        }
        frozen.cursor.store(end, Ordering::Relaxed);
        end - first
    }
    /// Whether copies are held that were read already.
    pub fn has_spent_copies(&self) -> bool {
        self.frozen.as_ref().is_some_and(|frozen| {
            let cursor = frozen.cursor.load(Ordering::Relaxed);
            frozen.copies.first_key_value().is_some_and(|(number, _)| *number < cursor)
        })
    }
    /// Gives up copies that were read already. They are handed out so that freeing them takes no part of a hold.
    pub fn take_spent_copies(&mut self) -> Vec<Box<Page>> {
        let Some(frozen) = &mut self.frozen else { return Vec::new() };
        let waiting = frozen.copies.split_off(frozen.cursor.get_mut());
        let spent = std::mem::replace(&mut frozen.copies, waiting);
        frozen.pool.give_back(spent.len());
        spent.into_values().collect()
    }
    /// Ends the freeze; the copies left are handed out as by [`Pages::take_spent_copies`].
    pub fn thaw(&mut self) -> Vec<Box<Page>> {
        let Some(frozen) = self.frozen.take() else { return Vec::new() };
        frozen.pool.give_back(frozen.copies.len());
        frozen.copies.into_values().collect()
    }

    /// A set with this content, copied.
    ///
    /// # Errors
    /// It is not a whole number of pages, or of more than there may be.
    pub fn from_bytes(bytes: &[u8]) -> Result<Pages, Malformed> {
        let (content, rest) = bytes.as_chunks::<PAGE_BYTES>();
        expect(rest.is_empty() && u32::try_from(content.len()).is_ok(), "whole pages")?;
        let mut pages = Pages::new();
        pages.reserve(content.len());
        for page in content {
            let number = pages.add();
            pages.page_mut(number).0.copy_from_slice(page);
        }
        Ok(pages)
    }
    /// A set of `pages` pages that lie in `memory`, from its beginning: a private mapping, aligned to chunks, with zeros behind the last page. It is used
    /// as it is until [`Pages::move_in`] gives it back chunk by chunk.
    ///
    /// # Errors
    /// The memory is not aligned, no whole number of chunks, or too small.
    pub fn from_mapping(memory: &'static mut [u8], pages: u32) -> Result<Pages, Malformed> {
        let length = memory.len();
        let chunks = bytemuck::try_cast_slice_mut::<u8, ChunkPages>(memory).map_err(|_| Malformed("aligned memory"))?;
        expect(
            pages as usize <= chunks.len() * CHUNK_PAGES && length / PAGE_BYTES < pages as usize + CHUNK_PAGES,
            "memory of that many pages",
        )?;
        let chunks = chunks.iter_mut().map(|chunk| Chunk::Whole(lent_chunk(chunk))).collect();
        Ok(Pages { chunks, stamps: vec![0; pages as usize], epoch: 0, frozen: None, moved_in: 0, filling: None })
    }
    /// Moves the next chunk of a mapping into the spare memory. Gives the mapped memory back, which nothing refers to any more; `None`, and the spare
    /// untouched, when nothing is left to move.
    pub fn move_in(&mut self, spare: &mut Option<SpareChunk>) -> Option<&'static mut [u8]> {
        while let Some(chunk) = self.chunks.get_mut(self.moved_in as usize) {
            if let Chunk::Whole(whole) = chunk
                && is_lent(whole)
            {
                let mut new = spare.take()?.0;
                bytemuck::bytes_of_mut(&mut *new).copy_from_slice(bytemuck::bytes_of(&**whole));
                let old = std::mem::replace(whole, new);
                self.moved_in += 1;
                return give_back(old);
            }
            self.moved_in += 1;
        }
        None
    }
    /// Whether chunks lie in a mapping.
    pub fn is_mapped(&self) -> bool {
        self.chunks
            .iter()
            .skip(self.moved_in as usize)
            .any(|chunk| matches!(chunk, Chunk::Whole(whole) if is_lent(whole)))
    }

    /// A page as plain values of one type, to read.
    #[inline]
    pub fn view<T: Pod>(&self, number: u32) -> &[T] {
        bytemuck::cast_slice(&self.page(number).0)
    }
    /// A page as plain values of one type, to write: stamps it.
    #[inline]
    pub fn view_mut<T: Pod>(&mut self, number: u32) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.page_mut(number).0)
    }

    /// The current epoch.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
    /// Begins the next epoch: constant time, whatever the size.
    pub fn bump_epoch(&mut self) -> u32 {
        self.epoch += 1;
        self.epoch
    }
    /// Epoch of the last write to a page.
    pub fn stamp(&self, number: u32) -> u32 {
        self.stamps[number as usize]
    }
    /// Pages written in `epoch` or later: the dirty ones since it began.
    pub fn stamped_since(&self, epoch: u32) -> impl Iterator<Item = u32> + '_ {
        self.stamps.iter().enumerate().filter(move |(_, s)| **s >= epoch).map(|(n, _)| n as u32)
    }

    /// Bytes of the pages handed out.
    pub fn memory_bytes(&self) -> usize {
        self.stamps.len() * (PAGE_BYTES + size_of::<u32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_aligned_and_stay() {
        let mut pages = Pages::new();
        for n in 0..70u32 {
            assert_eq!(pages.add(), n);
            assert!(pages.view::<u32>(n).iter().all(|w| *w == 0));
            pages.view_mut::<u32>(n)[17] = n;
        }
        for n in 0..70u32 {
            assert_eq!(pages.view::<u32>(n)[17], n);
            assert_eq!(pages.page(n).0.as_ptr() as usize % PAGE_BYTES, 0);
        }
        assert_eq!(pages.page(32).0.as_ptr() as usize % (2 << 20), 0);
    }

    #[test]
    fn stamps_follow_writes() {
        let mut pages = Pages::new();
        (0..3).for_each(|_| {
            pages.add();
        });
        assert_eq!(pages.bump_epoch(), 1);
        pages.page_mut(1);
        assert_eq!(pages.stamped_since(1).collect::<Vec<_>>(), [1]);
        assert_eq!((pages.stamp(0), pages.stamp(1)), (0, 1));
        pages.bump_epoch();
        let new = pages.add();
        assert_eq!(pages.stamped_since(2).collect::<Vec<_>>(), [new]);
        assert_eq!(pages.stamped_since(1).collect::<Vec<_>>(), [1, new]);
    }

    fn numbered(count: u32) -> Pages {
        let mut pages = Pages::new();
        for n in 0..count {
            pages.add();
            pages.view_mut::<u32>(n).fill(n);
        }
        pages
    }
    fn words(page: &[u8]) -> &[u32] {
        bytemuck::cast_slice(page)
    }

    #[test]
    fn frozen_content_survives_writes() {
        let mut pages = numbered(40);
        let pool = Arc::new(ShadowPool::new(10 << 16));
        pages.freeze(&pool);
        pages.view_mut::<u32>(3)[0] = 1_000;
        let mut out = Vec::new();
        assert_eq!(pages.copy_frozen(5, &mut out), 5);
        // behind the cursor, before it, behind the end
        pages.view_mut::<u32>(4)[0] = 1_001;
        pages.view_mut::<u32>(39)[0] = 1_002;
        pages.view_mut::<u32>(39)[0] = 1_003;
        let new = pages.add();
        pages.view_mut::<u32>(new)[0] = 1_004;
        assert_eq!(pool.used(), 2);
        assert!(pages.has_spent_copies());
        assert_eq!(pages.take_spent_copies().len(), 1);
        assert!(!pages.has_spent_copies() && pool.used() == 1);
        while pages.copy_frozen(7, &mut out) > 0 {}
        assert_eq!(pages.frozen(), (40, 40));
        let (copied, _) = out.as_chunks::<PAGE_BYTES>();
        assert_eq!(copied.len(), 40);
        assert!(copied.iter().zip(0..).all(|(page, n)| words(page).iter().all(|w| *w == n)));
        assert_eq!(pages.thaw().len(), 1);
        assert_eq!((pool.used(), pool.is_full(), pages.frozen()), (0, false, (0, 0)));
        assert_eq!(pages.view::<u32>(39)[..2], [1_003, 39]);
    }

    #[test]
    fn a_full_pool_is_told_and_stops_nobody() {
        let mut pages = numbered(4);
        let pool = Arc::new(ShadowPool::new(2 << 16));
        pages.freeze(&pool);
        for n in 0..4 {
            pages.view_mut::<u32>(n)[0] = 9;
            assert_eq!(pool.is_full(), n >= 2, "{n}");
        }
        assert!((0..4).all(|n| pages.view::<u32>(n)[0] == 9));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a write has missed the door")]
    fn a_write_that_misses_the_door_is_found() {
        let mut pages = numbered(2);
        pages.freeze(&Arc::new(ShadowPool::new(1 << 20)));
        // what page_mut does, without the door: stamped, but not copied
        pages.stamps[1] = pages.epoch;
        pages.copy_frozen(2, &mut Vec::new());
    }

    #[test]
    #[cfg(not(miri))]
    fn mapped_pages_are_written_to_and_moved_in() {
        // what a mapping is for these purposes: memory that lives on
        let memory: &'static mut ChunkPages = Box::leak(bytemuck::zeroed_box());
        memory.0[0].0.fill(1);
        memory.0[31].0.fill(2);
        let mut pages = Pages::from_mapping(bytemuck::bytes_of_mut(memory), 32).unwrap();
        assert!(pages.is_mapped());
        pages.page_mut(31).0[0] = 7;
        let new = pages.add();
        pages.page_mut(new).0[5] = 5;
        assert!(pages.move_in(&mut None).is_none() && pages.is_mapped());
        let back = pages.move_in(&mut Some(SpareChunk::new())).unwrap();
        assert_eq!((back.len(), back[0]), (CHUNK_PAGES * PAGE_BYTES, 1));
        assert!(!pages.is_mapped());
        assert!(pages.move_in(&mut Some(SpareChunk::new())).is_none());
        back.fill(0);
        assert_eq!((pages.page(0).0[9], pages.page(31).0[..2].to_vec(), pages.page(32).0[5]), (1, vec![7, 2], 5));
    }

    #[test]
    fn wrong_memory_is_refused() {
        assert!(Pages::from_bytes(&[0; 100]).is_err());
        assert!(Pages::from_mapping(&mut [], 1).is_err());
        let memory: &'static mut ChunkPages = Box::leak(bytemuck::zeroed_box());
        let bytes = bytemuck::bytes_of_mut(memory);
        let (first, rest) = bytes.split_at_mut(PAGE_BYTES);
        assert!(Pages::from_mapping(first, 1).is_err() && Pages::from_mapping(rest, 1).is_err());
        let copied = Pages::from_bytes(&[3; 40 * PAGE_BYTES]).unwrap();
        assert_eq!((copied.len(), copied.page(39).0[7], copied.is_mapped()), (40, 3, false));
    }

    #[test]
    fn reserved_pages_are_whole_chunks() {
        let mut pages = Pages::new();
        pages.reserve(40);
        assert_eq!(pages.len(), 0);
        pages.add();
        assert_eq!(pages.page(0).0.as_ptr() as usize % (2 << 20), 0);
    }
}
