//! The two clocks.

use std::fmt::Debug;

/// Reads clocks. A thread that waits uses its own condition or timer; nobody sleeps here.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970-01-01 UTC; may jump either way.
    fn wall_ms(&self) -> i64;
    /// Microseconds since some point; never goes back.
    fn monotonic_us(&self) -> u64;
    /// Milliseconds since the same point.
    fn monotonic_ms(&self) -> u64 {
        self.monotonic_us() / 1_000
    }
}
