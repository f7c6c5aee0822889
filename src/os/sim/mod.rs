//! Purpose: a simulated world: a disk in memory that fails on demand and forgets what was not synced, clocks that are moved by hand, numbers from a seed.
//! Called by: tests of every layer that does I/O; the crash model.
//! Calls: os::{disk, clock, random}.
//! Never: touches the real disk or clock.
//! Invariants: the same seed and the same calls give the same results; what was synced survives every crash.

mod disk;
mod world;

pub use disk::SimDisk;
pub use world::Fault;

use crate::clock::Clock;
use crate::random::Random;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Clocks that move only when told.
#[derive(Clone, Debug, Default)]
pub struct SimClock {
    wall: Arc<AtomicI64>,
    monotonic: Arc<AtomicU64>,
}

impl SimClock {
    /// Moves both clocks forward.
    pub fn advance(&self, ms: u64) {
        self.wall.fetch_add(ms as i64, Ordering::Relaxed);
        self.monotonic.fetch_add(ms * 1_000, Ordering::Relaxed);
    }
    /// Sets the wall clock, as an administrator may.
    pub fn set_wall(&self, ms: i64) {
        self.wall.store(ms, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn wall_ms(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }
    fn monotonic_us(&self) -> u64 {
        self.monotonic.load(Ordering::Relaxed)
    }
}

/// SplitMix64: small, and good enough to choose with.
#[derive(Clone, Debug)]
pub(crate) struct Sequence(pub u64);

impl Sequence {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

/// Numbers from a seed.
#[derive(Debug)]
pub struct SimRandom(Mutex<Sequence>);

impl SimRandom {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> SimRandom {
        SimRandom(Mutex::new(Sequence(seed)))
    }
}

impl Random for SimRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut sequence = self.0.lock();
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&sequence.next().to_le_bytes()[..chunk.len()]);
        }
    }
}
