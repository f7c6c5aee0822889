//! Purpose: the door to the operating system: disk, clock, randomness, the directory lock. Real ones, and simulated ones that fail on demand.
//! Called by: storage, engine, the binary; tests of all of them with the simulated world.
//! Calls: the operating system, nothing of this project.
//! Never: knows what is in a file; retries after an error; reads a setting.
//! Invariants: what a sync call reported as done survives a crash, in the simulation as on a real disk; a simulated run is a function of its seed.
#![allow(unsafe_code)] // mappings, and the signal that they are lost by; getrandom has no safe door in the crates in use

pub mod clock;
pub mod disk;
pub mod durable;
pub mod lost;
pub mod mapping;
pub mod random;
mod real;
pub mod sim;

use std::sync::Arc;

pub use clock::Clock;
pub use disk::{Disk, File, Lock};
pub use random::Random;
pub use real::{RealClock, RealDisk, RealRandom, holder};

/// All three doors together, as handed down at the start.
#[derive(Clone, Debug)]
pub struct Os {
    /// Files and directories.
    pub disk: Arc<dyn Disk>,
    /// Clocks.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

impl Os {
    /// The operating system itself.
    pub fn real() -> Os {
        Os { disk: Arc::new(RealDisk::default()), clock: Arc::new(RealClock::default()), random: Arc::new(RealRandom) }
    }

    /// A simulated world of one seed: an empty disk, clocks that stand still, pseudo-random numbers. Returns the disk and the clock too.
    pub fn simulated(seed: u64) -> (Os, sim::SimDisk, sim::SimClock) {
        let (disk, clock) = (sim::SimDisk::new(seed), sim::SimClock::default());
        let random = Arc::new(sim::SimRandom::new(seed));
        (Os { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()), random }, disk, clock)
    }
}
