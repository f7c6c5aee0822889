//! Pages of 64 KiB in chunks of 2 MiB: where every byte lives that a checkpoint writes down and a restart maps back.
//!
//! **The write door.** A page is written only through [`Pages::page_mut`] and [`Pages::view_mut`]. Both compare the page's stamp with the current
//! epoch, and the first write in an epoch goes through `first_touch`. That is the seam for online checkpoints: a checkpoint begins by
//! [`Pages::bump_epoch`] (constant time), from then on a page whose stamp is older still holds the frozen content, and `first_touch` is the one
//! place where that content can be copied to a pool before it changes. [`Pages::stamped_since`] is the set of dirty bits, for the
//! next checkpoint to be incremental.
//!
//! **Chunks.** A chunk is aligned to its size so that the kernel can back it with one huge page. The first 32 pages of each set are allocated one
//! by one, so that small stores (tests, small clusters) stay small.

use bytemuck::{Pod, Zeroable};

/// Bytes in a page.
pub const PAGE_BYTES: usize = 64 << 10;
/// Pages in a chunk.
pub const CHUNK_PAGES: usize = 32;

/// One page. All zero when new.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(65536))]
pub struct Page(pub [u8; PAGE_BYTES]);

#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(2097152))]
pub(crate) struct ChunkPages(pub(crate) [Page; CHUNK_PAGES]);

const _: () = assert!(size_of::<Page>() == PAGE_BYTES && size_of::<ChunkPages>() == CHUNK_PAGES * PAGE_BYTES);

#[cfg(not(miri))]
type WholeChunk = crate::chunk::MappedChunk;
/// The interpreter that checks for undefined behaviour knows no mappings.
#[cfg(miri)]
type WholeChunk = Box<ChunkPages>;

#[cfg(not(miri))]
fn whole_chunk() -> WholeChunk {
    WholeChunk::new()
}
#[cfg(miri)]
fn whole_chunk() -> WholeChunk {
    bytemuck::zeroed_box()
}

enum Chunk {
    /// Pages of their own, grown one by one.
    Loose(Vec<Box<Page>>),
    /// One aligned allocation.
    Whole(WholeChunk),
}

/// A growing set of pages, numbered from 0.
#[derive(Default)]
pub struct Pages {
    chunks: Vec<Chunk>,
    /// Epoch of the last write to each page; its length is the number of pages handed out.
    stamps: Vec<u32>,
    epoch: u32,
}

impl Pages {
    /// No page, epoch 0.
    pub fn new() -> Pages {
        Pages::default()
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

    /// Hands out one more page, zeroed.
    pub fn add(&mut self) -> u32 {
        let number = self.stamps.len();
        if number / CHUNK_PAGES == self.chunks.len() {
            self.chunks.push(if number == 0 { Chunk::Loose(Vec::new()) } else { Chunk::Whole(whole_chunk()) });
        }
        if let Chunk::Loose(pages) = &mut self.chunks[number / CHUNK_PAGES]
            && pages.len() == number % CHUNK_PAGES
        {
            pages.push(bytemuck::zeroed_box());
        }
        self.stamps.push(self.epoch);
        number as u32
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

    #[test]
    fn reserved_pages_are_whole_chunks() {
        let mut pages = Pages::new();
        pages.reserve(40);
        assert_eq!(pages.len(), 0);
        pages.add();
        assert_eq!(pages.page(0).0.as_ptr() as usize % (2 << 20), 0);
    }
}
