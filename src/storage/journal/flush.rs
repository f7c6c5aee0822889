//! The flush thread: takes what has gathered, has the set make it durable, moves the watermark.

use super::set::JournalSet;
use super::{Flushed, LAZY_BYTES, Shared};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocab::Txid;

/// Records of a batch that tell of many writers at a time. Then the next batch is given [`GATHERING`] to grow: nobody gets much later what they
/// wait for, since most of them would have waited for that batch or the next, and one sync does for more of them.
const MANY: u64 = 8;
/// About as long as a thread takes for the calls that it has found at once. That it finds many, its own pauses see to.
const GATHERING: Duration = Duration::from_micros(100);

/// What the thread owns.
#[derive(Debug)]
pub(super) struct Flush {
    pub shared: Arc<Shared>,
    pub set: JournalSet,
    /// Directories (`current`) that get a `seen_txid` at each segment start.
    pub seen: Vec<PathBuf>,
    pub lazy_delay: Duration,
    /// Whether the last batch was large.
    pub many: bool,
}

impl Flush {
    /// Runs until the journal is closed, given up, or has failed.
    pub fn run(mut self) {
        while let Some(batch) = self.next() {
            self.many = batch.records >= MANY;
            let batch = Arc::new(batch);
            let began = self.shared.os.clock.monotonic_us();
            let result = self.set.commit(&batch, &*self.shared.observer);
            if self.set.take_changed() {
                *self.shared.members.lock() = self.set.status();
            }
            if let Err(reason) = result {
                self.fail(&reason);
                return;
            }
            let micros = self.shared.os.clock.monotonic_us() - began;
            self.shared.watermark.advance(batch.last);
            self.shared.observer.flushed(Flushed {
                records: batch.records,
                bytes: batch.bytes(),
                micros,
                durable: batch.last,
            });
            if let Some(first) = batch.started() {
                self.write_seen(first);
            }
            // Another thread may hold it for a moment longer; then its memory is lost, nothing else.
            if let Ok(batch) = Arc::try_unwrap(batch) {
                self.shared.lane.lock().buffer.recycle(batch);
            }
        }
    }

    /// Waits for the next batch; `None` when the journal ends.
    ///
    /// A batch is due when somebody waits for one of its records, when much has gathered, or when its records have lain for a while. As long as
    /// there is something to do now and then, the thread sleeps for that while at most, so that who appends need not wake it.
    fn next(&self) -> Option<super::buffer::Batch> {
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
            if !empty && (wanted || rested || lane.closed) {
                return Some(lane.buffer.take());
            }
            if lane.closed {
                return None;
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

    fn fail(&self, reason: &str) {
        let mut lane = self.shared.lane.lock();
        lane.failed = true;
        let durable = self.shared.watermark.durable().0;
        let waiting = lane.buffer.last().0 - durable;
        drop(lane);
        let text = format!(
            "Could not sync enough journals to persistent storage due to {reason}. Unsynced transactions: {waiting}"
        );
        let failed = self.shared.watermark.fail(&text);
        self.shared.observer.failed(&failed);
    }

    /// A lower bound only, so it comes after the segment's first record is durable, and a failure costs that directory, nothing else.
    fn write_seen(&mut self, first: Txid) {
        let shared = &self.shared;
        self.seen.retain(|current| match crate::seen::write(&*shared.os.disk, current, first) {
            Ok(()) => true,
            Err(error) => {
                shared.observer.seen_txid_failed(current, &error);
                false
            }
        });
    }
}
