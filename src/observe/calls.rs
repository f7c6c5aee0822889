//! Calls by method: how many, how many of them refused, how long they took. Counting costs two additions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
struct Row {
    calls: AtomicU64,
    refused: AtomicU64,
    nanos: AtomicU64,
}

/// Counters of the methods of a port, by their numbers.
#[derive(Debug)]
pub struct CallCounters(Box<[Row]>);

/// One method's figures since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallCount {
    /// Calls that were answered, refusals included.
    pub calls: u64,
    /// Calls that were answered by an exception.
    pub refused: u64,
    /// Time from the arrival of the request to its answer, summed up.
    pub time: Duration,
}

impl CallCounters {
    /// For so many methods.
    pub fn new(methods: usize) -> CallCounters {
        CallCounters((0..methods).map(|_| Row::default()).collect())
    }
    /// Counts a call.
    pub fn add(&self, method: usize, refused: bool, took: Duration) {
        let Some(row) = self.0.get(method) else { return };
        row.calls.fetch_add(1, Ordering::Relaxed);
        if refused {
            row.refused.fetch_add(1, Ordering::Relaxed);
        }
        row.nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }
    /// Figures of a method.
    pub fn of(&self, method: usize) -> CallCount {
        let Some(row) = self.0.get(method) else { return CallCount::default() };
        CallCount {
            calls: row.calls.load(Ordering::Relaxed),
            refused: row.refused.load(Ordering::Relaxed),
            time: Duration::from_nanos(row.nanos.load(Ordering::Relaxed)),
        }
    }
    /// Figures of all methods together.
    pub fn total(&self) -> CallCount {
        (0..self.0.len()).map(|method| self.of(method)).fold(CallCount::default(), |sum, one| CallCount {
            calls: sum.calls + one.calls,
            refused: sum.refused + one.refused,
            time: sum.time + one.time,
        })
    }
}

impl CallCount {
    /// Mean time in milliseconds, 0 for no call.
    pub fn mean_ms(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.time.as_secs_f64() * 1_000.0 / self.calls as f64 }
    }
}
