//! The two clocks.

use std::fmt::Debug;

/// Reads clocks. A thread that waits uses its own condition or timer; nobody sleeps here.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970-01-01 UTC; may jump either way.
    fn wall_ms(&self) -> i64;
    /// Milliseconds since some point before the process started; never goes back.
    fn monotonic_ms(&self) -> u64;
}
