//! The flush thread: takes what has gathered, has the set make it durable, moves the watermark. A thread that has found much at once may do the
//! same itself ([`Committer`]), so that nothing changes hands.

use super::set::JournalSet;
use super::{Flushed, LAZY_BYTES, Lane, Shared};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocab::Txid;

/// Records of a batch that tell of many writers at a time. Then the next batch is given [`GATHERING`] to grow: nobody gets much later what they
/// wait for, since most of them would have waited for that batch or the next, and one sync does for more of them.
const MANY: u64 = 8;
/// About as long as a thread takes for the calls that it has found at once. That it finds many, its own pauses see to.
const GATHERING: Duration = Duration::from_micros(100);
/// The longest commit, in the mean of the last few, that a thread with other work may do itself.
const BRIEF_MICROS: u64 = 1_000;
/// Commits over which that mean is taken.
const MEAN_OF: u64 = 8;
/// A commit that takes so long has stalled: whoever is served by the thread that makes it, readers too, would have waited all the while.
const STALL_MICROS: u64 = 50_000;
/// For so many times the length of a stall only the flush thread commits: whoever is served by a thread that also commits waits for a stall no more
/// than a twentieth of the time.
const STALLS_APART: u64 = 20;
/// The longest such time.
const AFTER_STALL_MICROS: u64 = 60_000_000;

/// Who makes batches durable, one at a time. Whoever holds it takes the next one, so that they come in their order.
#[derive(Debug)]
pub(super) struct Committer {
    pub set: JournalSet,
    /// Directories (`current`) that get a `seen_txid` at each segment start.
    pub seen: Vec<PathBuf>,
    /// How long a commit of records alone took in the mean of the last few, times [`MEAN_OF`]; nothing is known at the beginning.
    usual_micros: Option<u64>,
    /// From when on others than the flush thread may commit again, after the last stall of any commit.
    calm_micros: u64,
}

impl Committer {
    pub fn new(set: JournalSet, seen: Vec<PathBuf>) -> Committer {
        Committer { set, seen, usual_micros: None, calm_micros: 0 }
    }

    /// Makes durable what has gathered; returns the number of records, or `None` if the log has failed.
    pub fn commit(&mut self, shared: &Shared) -> Option<u64> {
        self.commit_if(shared, |_| true)
    }

    /// The same if that is brief, as far as one can tell: nothing but a write into room that is there, on a disk that was fast until now.
    pub fn commit_if_brief(&mut self, shared: &Shared) {
        let calm = shared.os.clock.monotonic_us() >= self.calm_micros;
        let fast = self.usual_micros.is_some_and(|usual| usual <= BRIEF_MICROS * MEAN_OF);
        if fast && calm {
            let room = self.set.room();
            // asked in the hold that takes the batch: a segment may begin at any time
            self.commit_if(shared, |lane| !lane.closed && !lane.buffer.has_boundary() && lane.buffer.bytes() <= room);
        }
    }

    fn commit_if(&mut self, shared: &Shared, may: impl FnOnce(&Lane) -> bool) -> Option<u64> {
        let (batch, plain) = {
            let mut lane = shared.lane.lock();
            if lane.failed {
                return None;
            }
            if lane.buffer.is_empty() || !may(&lane) {
                return Some(0);
            }
            let plain = !lane.buffer.has_boundary();
            (Arc::new(lane.buffer.take()), plain)
        };
        let began = shared.os.clock.monotonic_us();
        let result = self.set.commit(&batch, &*shared.observer);
        if self.set.take_changed() {
            *shared.members.lock() = self.set.status();
        }
        if let Err(reason) = result {
            fail(shared, &reason);
            return None;
        }
        let ended = shared.os.clock.monotonic_us();
        let micros = ended - began;
        if micros >= STALL_MICROS {
            let after = (STALLS_APART * micros).min(AFTER_STALL_MICROS);
            self.calm_micros = self.calm_micros.max(ended + after);
        }
        if plain {
            self.usual_micros =
                Some(self.usual_micros.map_or(micros * MEAN_OF, |usual| usual - usual / MEAN_OF + micros));
        }
        shared.watermark.advance(batch.last);
        let records = batch.records;
        shared.observer.flushed(Flushed { records, bytes: batch.bytes(), micros, durable: batch.last });
        if let Some(first) = batch.started() {
            self.write_seen(shared, first);
        }
        // Another thread may hold it for a moment longer; then its memory is lost, nothing else.
        if let Ok(batch) = Arc::try_unwrap(batch) {
            shared.lane.lock().buffer.recycle(batch);
        }
        Some(records)
    }

    /// A lower bound only, so it comes after the segment's first record is durable, and a failure costs that directory, nothing else.
    fn write_seen(&mut self, shared: &Shared, first: Txid) {
        self.seen.retain(|current| match crate::seen::write(&*shared.os.disk, current, first) {
            Ok(()) => true,
            Err(error) => {
                shared.observer.seen_txid_failed(current, &error);
                false
            }
        });
    }
}

#[cold]
fn fail(shared: &Shared, reason: &str) {
    let mut lane = shared.lane.lock();
    lane.failed = true;
    let durable = shared.watermark.durable().0;
    let waiting = lane.buffer.last().0 - durable;
    drop(lane);
    let text = format!(
        "Could not sync enough journals to persistent storage due to {reason}. Unsynced transactions: {waiting}"
    );
    let failed = shared.watermark.fail(&text);
    shared.observer.failed(&failed);
}

/// What the flush thread owns.
#[derive(Debug)]
pub(super) struct Flush {
    pub shared: Arc<Shared>,
    pub lazy_delay: Duration,
    /// Whether the last batch was large.
    pub many: bool,
}

impl Flush {
    /// Runs until the journal is closed, given up, or has failed.
    pub fn run(mut self) {
        while self.wait() {
            // between the two another thread may have taken what was waiting: then there is nothing to do
            let Some(records) = self.shared.committer.lock().commit(&self.shared) else { return };
            self.many = records >= MANY;
        }
    }

    /// Waits until a batch is due; false when the journal ends.
    ///
    /// A batch is due when somebody waits for one of its records, when much has gathered, or when its records have lain for a while. As long as
    /// there is something to do now and then, the thread sleeps for that while at most, so that who appends need not wake it.
    fn wait(&self) -> bool {
        let mut until = Instant::now() + self.lazy_delay;
        let mut gather = self.many;
        loop {
            let mut lane = self.shared.lane.lock();
            let buffer = &lane.buffer;
            let (empty, rested) = (buffer.is_empty(), Instant::now() >= until);
            let wanted = self.shared.watermark.wanted() > buffer.taken.0 || buffer.bytes() >= LAZY_BYTES;
            if !empty && wanted && gather && !lane.closed {
                gather = false;
                drop(lane);
                std::thread::sleep(GATHERING);
                continue;
            }
            if lane.failed {
                return false;
            }
            if !empty && (wanted || rested || lane.closed) {
                return true;
            }
            if lane.closed {
                return false;
            }
            if rested {
                lane.asleep = true;
                drop(lane);
                std::thread::park();
                until = Instant::now() + self.lazy_delay;
            } else {
                drop(lane);
                std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, Journal, JournalFailed, Membership, Observer, Options, Target};
    use super::*;
    use edit::Record;
    use os::Os;
    use os::sim::SimClock;
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug)]
    struct Silent;

    impl Observer for Silent {
        fn dropped(&self, _label: &str, _error: &io::Error) {}
        fn restored(&self, _label: &str) {}
        fn failed(&self, _failure: &JournalFailed) {}
    }

    /// A journal in memory whose commits take as long as it is told.
    #[derive(Debug)]
    struct Slow {
        clock: SimClock,
        takes_ms: Arc<AtomicU64>,
    }

    impl Target for Slow {
        fn label(&self) -> &str {
            "slow"
        }
        fn commit(&mut self, _batch: &Batch) -> io::Result<()> {
            self.clock.advance(self.takes_ms.load(Ordering::Acquire));
            Ok(())
        }
        fn room(&self) -> usize {
            usize::MAX
        }
    }

    #[test]
    fn after_a_stall_nobody_but_the_flush_thread_commits_for_a_while() {
        let (os, _, clock) = Os::simulated(1);
        let takes_ms = Arc::<AtomicU64>::default();
        let slow = Slow { clock: clock.clone(), takes_ms: takes_ms.clone() };
        let options = Options { lazy_delay: Duration::from_secs(3600), ..Options::default() };
        let members = vec![Membership { target: Box::new(slow), required: true }];
        let journal = Journal::open(members, Txid(1), options, &os, Arc::new(Silent)).unwrap();
        // whether somebody who appends can make it durable, once the flush thread is through with the last batch
        let brief = || {
            (0..50).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                let txid = journal.append(&Record::AllocateBlockId { id: 7 });
                journal.commit_if_brief();
                let brief = journal.watermark().durable() == txid;
                journal.watermark().wait_blocking(txid).unwrap();
                brief
            })
        };
        let wait = || journal.watermark().wait_blocking(journal.append(&Record::AllocateBlockId { id: 8 })).unwrap();
        wait();
        assert!(brief());
        for (stall_ms, after_ms) in [(60, 1_200), (2_000, 40_000), (100_000, 60_000)] {
            takes_ms.store(stall_ms, Ordering::Release);
            wait();
            takes_ms.store(0, Ordering::Release);
            (0..80).for_each(|_| wait());
            assert!(!brief(), "the mean is low again, but it has stalled");
            clock.advance(after_ms - 1);
            assert!(!brief(), "{stall_ms}");
            clock.advance(1);
            assert!(brief(), "{stall_ms}");
        }
        journal.close().unwrap();
    }
}
