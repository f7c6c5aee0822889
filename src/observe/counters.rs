//! Counts and times as plain atomics: cheap to add to from any thread, read as a snapshot that needs no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often something happened, how long it took in all, and the longest.
#[derive(Debug, Default)]
pub struct Tally {
    count: AtomicU64,
    failures: AtomicU64,
    nanos: AtomicU64,
    most_nanos: AtomicU64,
}

/// A tally at one moment. The parts are read one after the other, so a count may be ahead of its sum by what was being added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TallySnapshot {
    /// Times it happened, failures included.
    pub count: u64,
    /// Times it failed.
    pub failures: u64,
    /// Sum of the durations.
    pub total: Duration,
    /// The longest.
    pub most: Duration,
}

impl TallySnapshot {
    /// Mean duration in milliseconds; 0 if there was none (Hadoop's `AvgTime` metrics).
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total.as_secs_f64() * 1e3 / self.count as f64 }
    }
}

impl Tally {
    /// Adds one.
    pub fn add(&self, took: Duration, good: bool) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        // most additions are not the longest: look before writing, so that the line is not fought over
        if nanos > self.most_nanos.load(Ordering::Relaxed) {
            self.most_nanos.fetch_max(nanos, Ordering::Relaxed);
        }
        if !good {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
    }
    /// The state of now.
    pub fn snapshot(&self) -> TallySnapshot {
        TallySnapshot {
            count: self.count.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            total: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
            most: Duration::from_nanos(self.most_nanos.load(Ordering::Relaxed)),
        }
    }
}

/// Tallies of a fixed list of methods, reached by their position.
#[derive(Debug)]
pub struct MethodTallies {
    names: Vec<&'static str>,
    tallies: Box<[Tally]>,
}

impl MethodTallies {
    /// All at zero.
    pub fn new(names: impl IntoIterator<Item = &'static str>) -> MethodTallies {
        let names: Vec<_> = names.into_iter().collect();
        MethodTallies { tallies: names.iter().map(|_| Tally::default()).collect(), names }
    }
    /// Adds one call of the method at this position; a position that does not exist is not counted.
    pub fn add(&self, method: usize, took: Duration, good: bool) {
        if let Some(tally) = self.tallies.get(method) {
            tally.add(took, good);
        }
    }
    /// Name and state of each method that was called at least once, in the order of the list.
    pub fn snapshot(&self) -> Vec<(&'static str, TallySnapshot)> {
        let all = self.names.iter().zip(&self.tallies).map(|(name, tally)| (*name, tally.snapshot()));
        all.filter(|(_, tally)| tally.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up_over_threads() {
        let tallies = MethodTallies::new(["create", "delete", "mkdirs"]);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let tallies = &tallies;
                scope.spawn(move || {
                    for i in 0..1_000 {
                        tallies.add(0, Duration::from_micros(thread + 1), i % 10 > 0);
                        tallies.add(2, Duration::from_micros(5), true);
                        tallies.add(3, Duration::from_secs(1), true);
                    }
                });
            }
        });
        let snapshot = tallies.snapshot();
        assert_eq!(snapshot.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["create", "mkdirs"]);
        let create = snapshot[0].1;
        assert_eq!((create.count, create.failures, create.most), (4_000, 400, Duration::from_micros(4)));
        assert_eq!(create.total, Duration::from_millis(10));
        assert!((create.mean_ms() - 0.0025).abs() < 1e-9);
        assert_eq!(TallySnapshot::default().mean_ms(), 0.0);
    }
}
