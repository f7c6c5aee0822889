//! Memory for chunks before it is touched, for structures that are filled in bulk.

use crate::page::WholeChunk;
use std::time::Duration;

/// The first chunks are left alone: small stores stay small.
const POPULATED_FROM: u32 = 4;
/// A chunk of small pages takes about so long.
const DEAR_FROM: Duration = Duration::from_millis(2);
/// So many of them, and no more are asked for.
const DEAR_MAX: u32 = 4;

#[cfg(not(miri))]
pub(crate) fn populate(chunk: &mut WholeChunk, huge: bool) {
    chunk.populate(huge);
}
#[cfg(miri)]
pub(crate) fn populate(_: &mut WholeChunk, _: bool) {}

/// What the time is; from whoever fills, since nothing here looks at a clock.
pub type Clock = fn() -> Duration;

/// Gives whole chunks their memory at once, which costs less than a fault for each page, and as huge pages while those come cheaply: where memory is in
/// one piece they cost a fifth of 512 small ones, where the kernel has to make room for each they cost many times as much.
#[derive(Debug)]
pub(crate) struct Populate {
    clock: Clock,
    chunks: u32,
    /// Huge pages that took long.
    dear: u32,
}

impl Populate {
    /// For a set or a share of one that has so many chunks.
    pub(crate) fn new(clock: Clock, chunks: u32) -> Populate {
        Populate { clock, chunks, dear: 0 }
    }
    /// The next chunk.
    pub(crate) fn next(&mut self, chunk: &mut WholeChunk) {
        self.chunks += 1;
        if self.chunks <= POPULATED_FROM {
            return;
        }
        let (huge, since) = (self.dear < DEAR_MAX, (self.clock)());
        populate(chunk, huge);
        self.dear += u32::from(huge && (self.clock)().saturating_sub(since) > DEAR_FROM);
    }
}
