//! Points in time as HDFS stores them.

/// Milliseconds since 1970-01-01 UTC, as stored in inodes and edit records. Clients may set any value, negative ones included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct TimeMs(pub i64);

/// A point on the monotonic clock in milliseconds: ages of leases, heartbeats, pending work. Never stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct MonotonicMs(pub u64);

impl MonotonicMs {
    /// Milliseconds since `earlier`, 0 if that is not earlier.
    pub fn since(self, earlier: MonotonicMs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Both clocks as read once at the rim, handed down to the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Wall clock: what goes into records.
    pub wall: TimeMs,
    /// Monotonic clock: what ages are measured with.
    pub monotonic: MonotonicMs,
}
