//! The state lock, with an account of how long it was held.
//!
//! Long work is done in slices, each a hold of its own ([`StateLock::write_slice`]). Those who do it take turns, and after a slice that somebody had to
//! wait for they leave the lock alone for a while: else each call would wait for a slice of its own, and with slices of a millisecond a thread would
//! serve no more than a thousand calls a second.

use crate::stack::{own_frames, told_time};
use parking_lot::{FairMutex, Mutex, RwLock, RwLockWriteGuard};
use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};
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
#[derive(Debug)]
pub struct HoldTimes {
    reports: Reports,
    counts: [AtomicU64; HOLD_BUCKETS_MICROS.len() + 1],
    total_nanos: AtomicU64,
    longest_nanos: AtomicU64,
    /// By what was done; only holds that are longer than they should be come here.
    long: Mutex<BTreeMap<&'static str, LongHolds>>,
}

impl HoldTimes {
    fn new(kind: &'static str) -> HoldTimes {
        HoldTimes {
            reports: Reports::new(kind),
            counts: Default::default(),
            total_nanos: Default::default(),
            longest_nanos: Default::default(),
            long: Default::default(),
        }
    }

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
        if micros / 1_000 >= self.reports.threshold_ms.load(Ordering::Relaxed)
            && let Some(told) = self.reports.report(what, micros / 1_000, Instant::now(), SystemTime::now())
        {
            tracing::info!("{}", told.text(self.reports.kind));
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

/// From which length on holds are told of in the log, and how often at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reporting {
    /// Shared holds, in milliseconds.
    pub reads_ms: u64,
    /// Others.
    pub writes_ms: u64,
    /// Time between two reports of a kind, in milliseconds: what is long meanwhile is counted.
    pub interval_ms: u64,
}

impl Default for Reporting {
    fn default() -> Reporting {
        Reporting { reads_ms: 5_000, writes_ms: 5_000, interval_ms: 10_000 }
    }
}

/// A long hold: where it ended is looked up when it is told of, which takes long.
#[derive(Debug)]
struct Longest {
    what: &'static str,
    held_ms: u64,
    ended: SystemTime,
    thread: Box<str>,
    stack: Backtrace,
}

/// What was not told of yet.
#[derive(Debug, Default)]
struct Untold {
    last: Option<Instant>,
    count: u64,
    total_ms: u64,
    longest: Option<Longest>,
}

impl Untold {
    fn text(&self, kind: &str) -> String {
        let Some(Longest { what, held_ms, ended, thread, stack }) = &self.longest else { return String::new() };
        let (count, total, frames) = (self.count, self.total_ms, own_frames(thread, stack));
        let began = told_time(ended.checked_sub(Duration::from_millis(*held_ms)).unwrap_or(*ended));
        format!(
            "\tNumber of suppressed {kind}-lock reports of FSNLock is {count}\n\tLongest {kind}-lock held at {began} for {held_ms}ms by {what} via {frames}\n\t\
             Total suppressed {kind}-lock held time: {total}.0"
        )
    }
}

/// Reports of long holds, in the words of Hadoop's, for those who look for them.
#[derive(Debug)]
struct Reports {
    kind: &'static str,
    threshold_ms: AtomicU64,
    interval_ms: AtomicU64,
    untold: Mutex<Untold>,
}

impl Reports {
    fn new(kind: &'static str) -> Reports {
        let Reporting { writes_ms, interval_ms, .. } = Reporting::default();
        Reports { kind, threshold_ms: writes_ms.into(), interval_ms: interval_ms.into(), untold: Mutex::default() }
    }

    /// A long hold ended at `now`. What to write, if it is time again.
    fn report(&self, what: &'static str, held_ms: u64, now: Instant, ended: SystemTime) -> Option<Untold> {
        let mut untold = self.untold.lock();
        if untold.longest.as_ref().is_none_or(|longest| held_ms > longest.held_ms) {
            let thread = std::thread::current().name().unwrap_or_default().into();
            untold.longest = Some(Longest { what, held_ms, ended, thread, stack: Backtrace::force_capture() });
        }
        let interval_ms = u128::from(self.interval_ms.load(Ordering::Relaxed));
        if untold.last.is_some_and(|last| now.duration_since(last).as_millis() < interval_ms) {
            untold.count += 1;
            untold.total_ms += held_ms;
            return None;
        }
        Some(std::mem::replace(&mut *untold, Untold { last: Some(now), ..Untold::default() }))
    }
}

/// A slice of long work that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Slice(Instant);

impl Slice {
    /// Whether it has been long enough: to be asked after each few steps of a fraction of its length.
    pub fn is_over(self) -> bool {
        self.0.elapsed().as_micros() as u64 >= SLICE_MICROS / 2
    }
}

/// A value behind a read-write lock that is only lent to closures, so that no guard can outlive a hold or cross an await.
#[derive(Debug)]
pub struct StateLock<S> {
    state: RwLock<S>,
    /// How many threads wait for it, but for those who do long work.
    waiting: AtomicUsize,
    /// Whose turn it is of those who do long work.
    turn: FairMutex<()>,
    /// Slices after which the lock was left to others.
    given_way: AtomicU64,
    reads: HoldTimes,
    writes: HoldTimes,
}

impl<S> StateLock<S> {
    /// Takes the value.
    pub fn new(state: S) -> StateLock<S> {
        StateLock {
            state: RwLock::new(state),
            waiting: AtomicUsize::new(0),
            turn: FairMutex::new(()),
            given_way: AtomicU64::new(0),
            reads: HoldTimes::new("read"),
            writes: HoldTimes::new("write"),
        }
    }

    /// Sets which holds are told of in the log.
    pub fn set_reporting(&self, reporting: Reporting) {
        for (holds, threshold) in [(&self.reads, reporting.reads_ms), (&self.writes, reporting.writes_ms)] {
            holds.reports.threshold_ms.store(threshold, Ordering::Relaxed);
            holds.reports.interval_ms.store(reporting.interval_ms, Ordering::Relaxed);
        }
    }

    /// Runs `f` with the value, shared with other readers.
    pub fn read<R>(&self, what: &'static str, f: impl FnOnce(&S) -> R) -> R {
        let guard = self.state.try_read().unwrap_or_else(|| self.counted(|| self.state.read()));
        let since = Instant::now();
        let result = f(&guard);
        drop(guard);
        self.reads.record(what, since);
        result
    }

    /// Runs `f` with the value alone.
    pub fn write<R>(&self, what: &'static str, f: impl FnOnce(&mut S) -> R) -> R {
        let mut guard = self.state.try_write().unwrap_or_else(|| self.counted(|| self.state.write()));
        let since = Instant::now();
        let result = f(&mut guard);
        drop(guard);
        self.writes.record(what, since);
        result
    }

    /// Counts the thread among those who wait.
    fn counted<G>(&self, lock: impl FnOnce() -> G) -> G {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Runs a slice of long work with the value alone: `f` goes on until the slice is over. Then whoever waits comes first, and has some time before
    /// this returns. Blocks, so it is not for threads that serve connections.
    pub fn write_slice<R>(&self, what: &'static str, f: impl FnOnce(&mut S, Slice) -> R) -> R {
        let _turn = self.turn.lock();
        let mut guard = self.state.write();
        let since = Instant::now();
        let result = f(&mut guard, Slice(since));
        let wanted = self.waiting.load(Ordering::Relaxed) > 0;
        RwLockWriteGuard::unlock_fair(guard);
        let held = since.elapsed();
        self.writes.record(what, since);
        if wanted {
            self.give_way(held);
        }
        result
    }

    /// The same with the value shared: only writers wait for that, and readers behind them.
    pub fn read_slice<R>(&self, what: &'static str, f: impl FnOnce(&S, Slice) -> R) -> R {
        let _turn = self.turn.lock();
        let guard = self.state.read();
        let since = Instant::now();
        let result = f(&guard, Slice(since));
        let wanted = self.waiting.load(Ordering::Relaxed) > 0;
        drop(guard);
        let held = since.elapsed();
        self.reads.record(what, since);
        if wanted {
            self.give_way(held);
        }
        result
    }

    fn give_way(&self, held: Duration) {
        self.given_way.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(held / 2);
    }

    /// Slices after which the lock was left to those who had waited.
    pub fn given_way(&self) -> u64 {
        self.given_way.load(Ordering::Relaxed)
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
    fn long_holds_are_told_of_once_in_a_while() {
        let (reports, now) = (Reports::new("write"), Instant::now());
        let at = |ms: u64| now + Duration::from_millis(ms);
        let report = |what, ms, now_ms| {
            let ended = SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
            let text = reports.report(what, ms, at(now_ms), ended)?.text("write");
            let (told, stack) = text.split_once(" via ").expect("a stack");
            let (frames, total) = stack.split_once("\n\tTotal").expect("a total");
            assert!(frames.contains("engine::lock::tests::"), "{text}");
            Some(format!("{told}\n\tTotal{total}"))
        };
        let began = told_time(SystemTime::UNIX_EPOCH);
        let text = |count: u64, ms: u64, what: &str, total: u64| {
            Some(format!(
                "\tNumber of suppressed write-lock reports of FSNLock is {count}\n\tLongest write-lock held at {began} for {ms}ms by {what}\n\t\
                 Total suppressed write-lock held time: {total}.0"
            ))
        };
        assert_eq!(report("delete", 6_000, 0), text(0, 6_000, "delete", 0));
        assert_eq!(report("rename", 7_000, 9_000), None);
        assert_eq!(report("mkdirs", 5_000, 9_999), None);
        assert_eq!(report("create", 5_500, 10_000), text(2, 7_000, "rename", 12_000));
        assert_eq!(report("create", 5_100, 20_000), text(0, 5_100, "create", 0));
    }

    /// A call that comes in a slice is served before the next one begins, and more than one where there are more.
    #[test]
    fn those_who_wait_come_between_two_slices() {
        let (lock, slices) = (&StateLock::new(Vec::new()), 20);
        std::thread::scope(|scope| {
            for number in 0..slices {
                lock.write_slice("long", |done, _| {
                    done.push(None);
                    scope.spawn(move || lock.write("short", |done| done.push(Some(number))));
                    while lock.waiting.load(Ordering::Relaxed) == 0 {
                        std::thread::yield_now();
                    }
                    // it has been counted, and is about to wait
                    std::thread::sleep(Duration::from_millis(2));
                });
            }
        });
        let done = lock.read("look", Clone::clone);
        assert_eq!((done.len(), lock.given_way()), (40, slices));
        let at_once = done.windows(2).filter(|two| two[0].is_none() && two[1].is_some()).count();
        assert!(at_once > 10, "a busy machine may keep some from waiting: {done:?}");
        // nobody waits: nothing is given up
        lock.write_slice("long", |_, slice| assert!(!slice.is_over() || slice.0.elapsed().as_micros() >= 500));
        lock.read_slice("long", |done, _| assert_eq!(done.len(), 40));
        assert_eq!(lock.given_way(), slices);
    }

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
