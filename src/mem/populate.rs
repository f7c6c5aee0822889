//! Memory for chunks before it is touched, for structures that are filled in bulk.

use crate::page::{WholeChunk, whole_chunk, whole_chunks};
use std::time::Duration;

/// The first chunks are left alone: small stores stay small.
const POPULATED_FROM: u32 = 4;
/// Chunks that are mapped at once from then on.
const MAPPED_AT_ONCE: usize = 16;
/// A chunk of small pages takes about so long where memory is slow: huge ones that take more in the mean are not worth it.
const DEAR_FROM: Duration = Duration::from_millis(4);
/// What they may take beyond that in all: others may have had the core meanwhile.
const DEAR_MORE: Duration = Duration::from_millis(40);

#[cfg(not(miri))]
pub(crate) fn populate(chunk: &mut WholeChunk) {
    chunk.populate();
}
#[cfg(miri)]
pub(crate) fn populate(_: &mut WholeChunk) {}

/// Gives back the memory of pages that are not used after all.
#[cfg(not(miri))]
pub(crate) fn give_back_from(chunk: &mut WholeChunk, pages: u32) {
    chunk.give_back_from(pages as usize * crate::page::PAGE_BYTES);
}
#[cfg(miri)]
pub(crate) fn give_back_from(_: &mut WholeChunk, _: u32) {}

/// What the time is; from whoever fills, since nothing here looks at a clock.
pub type Clock = fn() -> Duration;

/// Gives whole chunks their memory at once, which costs less than a fault for each page, and as huge pages while those come cheaply: where memory is in
/// one piece they cost a fifth of 512 small ones, where the kernel has to make room for each they cost many times as much.
pub(crate) struct Populate {
    clock: Clock,
    chunks: u32,
    /// Mapped already, and whether to be huge pages.
    mapped: Vec<WholeChunk>,
    mapped_huge: bool,
    /// Chunks that were asked for as huge pages, and how long they took.
    huge: u32,
    spent: Duration,
}

impl Populate {
    /// For a set or a share of one that has so many chunks.
    pub(crate) fn new(clock: Clock, chunks: u32) -> Populate {
        Populate { clock, chunks, mapped: Vec::new(), mapped_huge: false, huge: 0, spent: Duration::ZERO }
    }
    /// The next chunk.
    pub(crate) fn next(&mut self) -> WholeChunk {
        self.chunks += 1;
        if self.chunks <= POPULATED_FROM {
            return whole_chunk();
        }
        let huge = self.spent <= DEAR_FROM * self.huge + DEAR_MORE;
        if self.mapped.is_empty() || huge != self.mapped_huge {
            (self.mapped, self.mapped_huge) = (whole_chunks(MAPPED_AT_ONCE, huge), huge);
        }
        let mut chunk = self.mapped.pop().expect("mapped above");
        if !huge {
            populate(&mut chunk);
            return chunk;
        }
        let since = (self.clock)();
        populate(&mut chunk);
        self.huge += 1;
        self.spent += (self.clock)().saturating_sub(since);
        chunk
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn huge_pages_that_take_long_are_asked_for_no_more() {
        static NOW: AtomicU64 = AtomicU64::new(0);
        // ten milliseconds from one look to the next
        let slow = || Duration::from_millis(NOW.fetch_add(10, Ordering::Relaxed));
        let (mut dear, mut cheap) = (Populate::new(slow, 0), Populate::new(|| Duration::ZERO, 0));
        for _ in 0..POPULATED_FROM + 20 {
            for chunk in [dear.next(), cheap.next()] {
                assert!(chunk.0.iter().all(|page| page.0.iter().all(|byte| *byte == 0)));
            }
        }
        assert_eq!((dear.chunks, cheap.chunks), (POPULATED_FROM + 20, POPULATED_FROM + 20));
        // 40 ms beyond 4 ms each, at 10 ms each
        assert_eq!((dear.huge, cheap.huge), (7, 20));
    }
}
