//! The state lock, with an account of how long it was held.

use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use vocab::limits::{HOLD_WARN_MICROS, SLICE_MICROS};

/// Upper bounds, in microseconds, of the buckets in which holds are counted; the last bucket is open.
pub const HOLD_BUCKETS_MICROS: [u64; 7] = [10, 50, 200, 1_000, 5_000, 20_000, 100_000];

/// Holds of one kind that were longer than a slice of time (1 ms).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LongHolds {
    /// How many.
    pub count: u64,
    /// How many of them were long enough to be logged (5 ms).
    pub logged: u64,
    /// The longest, in nanoseconds.
    pub longest_nanos: u64,
}

/// Counts of lock holds by duration.
#[derive(Default, Debug)]
pub struct HoldTimes {
    counts: [AtomicU64; HOLD_BUCKETS_MICROS.len() + 1],
    total_nanos: AtomicU64,
    longest_nanos: AtomicU64,
    /// By what was done; only holds that are longer than they should be come here.
    long: Mutex<BTreeMap<&'static str, LongHolds>>,
}

impl HoldTimes {
    fn record(&self, what: &'static str, since: Instant) {
        let nanos = since.elapsed().as_nanos() as u64;
        let micros = nanos / 1_000;
        let bucket = HOLD_BUCKETS_MICROS.iter().position(|b| micros <= *b).unwrap_or(HOLD_BUCKETS_MICROS.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.total_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
        if micros > SLICE_MICROS {
            let mut long = self.long.lock();
            let of = long.entry(what).or_default();
            of.count += 1;
            of.logged += u64::from(micros > HOLD_WARN_MICROS);
            of.longest_nanos = of.longest_nanos.max(nanos);
        }
        if micros > HOLD_WARN_MICROS {
            tracing::warn!(what, micros, "state lock held for long");
        }
    }

    /// Holds per bucket of [`HOLD_BUCKETS_MICROS`], the open one last.
    pub fn counts(&self) -> [u64; HOLD_BUCKETS_MICROS.len() + 1] {
        std::array::from_fn(|i| self.counts[i].load(Ordering::Relaxed))
    }
    /// Number of holds.
    pub fn holds(&self) -> u64 {
        self.counts().iter().sum()
    }
    /// Sum of all holds in nanoseconds.
    pub fn total_nanos(&self) -> u64 {
        self.total_nanos.load(Ordering::Relaxed)
    }
    /// Longest hold in nanoseconds.
    pub fn longest_nanos(&self) -> u64 {
        self.longest_nanos.load(Ordering::Relaxed)
    }
    /// Holds of more than a slice, by what was done.
    pub fn long(&self) -> BTreeMap<&'static str, LongHolds> {
        self.long.lock().clone()
    }
}

/// A value behind a read-write lock that is only lent to closures, so that no guard can outlive a hold or cross an await.
#[derive(Debug)]
pub struct StateLock<S> {
    state: RwLock<S>,
    reads: HoldTimes,
    writes: HoldTimes,
}

impl<S> StateLock<S> {
    /// Takes the value.
    pub fn new(state: S) -> StateLock<S> {
        StateLock { state: RwLock::new(state), reads: HoldTimes::default(), writes: HoldTimes::default() }
    }

    /// Runs `f` with the value, shared with other readers.
    pub fn read<R>(&self, what: &'static str, f: impl FnOnce(&S) -> R) -> R {
        let guard = self.state.read();
        let since = Instant::now();
        let result = f(&guard);
        drop(guard);
        self.reads.record(what, since);
        result
    }

    /// Runs `f` with the value alone.
    pub fn write<R>(&self, what: &'static str, f: impl FnOnce(&mut S) -> R) -> R {
        let mut guard = self.state.write();
        let since = Instant::now();
        let result = f(&mut guard);
        drop(guard);
        self.writes.record(what, since);
        result
    }

    /// Holds shared by readers.
    pub fn read_holds(&self) -> &HoldTimes {
        &self.reads
    }
    /// Holds of writers.
    pub fn write_holds(&self) -> &HoldTimes {
        &self.writes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn holds_are_counted_by_duration() {
        let lock = StateLock::new(1);
        lock.read("short", |v| assert_eq!(*v, 1));
        lock.write("long", |v| {
            *v = 2;
            std::thread::sleep(Duration::from_millis(6));
        });
        assert_eq!(lock.read_holds().holds(), 1);
        assert_eq!(lock.write_holds().counts()[5], 1, "between 5 and 20 ms");
        assert!(lock.write_holds().longest_nanos() >= 6_000_000);
        assert!(lock.read_holds().long().is_empty());
        let long = lock.write_holds().long()["long"];
        assert_eq!((long.count, long.logged, long.longest_nanos), (1, 1, lock.write_holds().longest_nanos()));
    }
}
