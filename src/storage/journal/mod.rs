//! Purpose: the edit log: records are appended in memory, made durable in batches by several journals at once, and read back.
//! Called by: engine (append, roll, watermark), the binary's node assembly (open, recovery), storage::replay.
//! Calls: edit (codec), os (files).
//! Never: does I/O in append or roll; retries a failed journal in place; knows what a record means.
//! Invariants: transaction ids are assigned in the order of append and reach every journal in that order; the watermark covers a transaction
//! only when every journal in use holds it and all before it durably; after a failure it never moves again.

mod buffer;
mod flush;
pub mod local;
pub mod reader;
mod segment;
mod set;
pub mod tail;
mod watermark;

pub use buffer::{Batch, Piece};
pub use segment::LocalJournal;
pub use set::{MemberStatus, Membership, Target};
pub use watermark::{JournalFailed, Wait, Watermark};

use buffer::Buffer;
use edit::Record;
use flush::{Committer, Flush};
use os::Os;
use parking_lot::Mutex;
use set::JournalSet;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use vocab::{LayoutVersion, Txid};

/// What was made durable by one flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flushed {
    /// Records of the batch.
    pub records: u64,
    /// Their bytes.
    pub bytes: usize,
    /// How long writing and syncing took.
    pub micros: u64,
    /// The watermark now.
    pub durable: Txid,
}

/// Who is told what happens to the journals. Called on the thread that makes a batch durable; must not wait for a transaction.
pub trait Observer: Send + Sync + Debug {
    /// A journal failed and is left out from now on.
    fn dropped(&self, label: &str, error: &io::Error);
    /// A journal that was left out is in use again.
    fn restored(&self, label: &str);
    /// Too few journals are left. Nothing more will become durable: the process must end.
    fn failed(&self, failure: &JournalFailed);
    /// A batch is durable.
    fn flushed(&self, _flushed: Flushed) {}
    /// `seen_txid` could not be written under `current`; it is not tried again there.
    fn seen_txid_failed(&self, _current: &Path, _error: &io::Error) {}
}

/// How a journal is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// Layout of headers and records.
    pub layout: LayoutVersion,
    /// How many journals that are not required must work (`dfs.namenode.edits.dir.minimum`).
    pub minimum: usize,
    /// Whether a dropped journal is tried again at the next segment (`dfs.namenode.name.dir.restore`).
    pub restore: bool,
    /// The longest time that records for which nobody waits stay in memory.
    pub lazy_delay: Duration,
    /// Directories (`current`) in which `seen_txid` is written at each segment start: all storage directories.
    pub seen: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            layout: LayoutVersion::CURRENT,
            minimum: 1,
            restore: false,
            lazy_delay: Duration::from_millis(200),
            seen: Vec::new(),
        }
    }
}

/// Bytes of records for which nobody waits that are flushed without waiting longer.
const LAZY_BYTES: usize = 256 << 10;

/// Bytes by which open segments grow in Hadoop.
pub const PREALLOCATION: usize = 1 << 20;

/// An open edit log. Dropping it without [`Journal::close`] leaves an open segment, as a crash does.
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    /// Locked before the lane.
    committer: Mutex<Committer>,
    lane: Mutex<Lane>,
    /// The last transaction that somebody may wait for.
    last: AtomicU64,
    watermark: Watermark,
    members: Mutex<Vec<MemberStatus>>,
    /// Whether a dropped journal is tried again at the next segment.
    restore: Arc<AtomicBool>,
    observer: Arc<dyn Observer>,
    os: Os,
}

#[derive(Debug)]
struct Lane {
    buffer: Buffer,
    closed: bool,
    failed: bool,
    /// Transactions assigned after the end: they exist as numbers only.
    beyond: u64,
    /// Whether the flush thread sleeps without an end: whoever appends wakes it.
    asleep: bool,
}

impl Lane {
    fn ended(&self) -> bool {
        self.closed || self.failed
    }
    /// A number for a record that will never be durable; whoever waits for it learns that from the watermark.
    fn number_beyond(&mut self) -> Txid {
        self.beyond += 1;
        Txid(self.buffer.last().0 + self.beyond)
    }
}

impl Journal {
    /// Opens a log whose first segment begins at `next` (at least 1) in every journal; returns when its first record is durable.
    ///
    /// # Errors
    /// Too few journals could begin a segment. The observer has been told too.
    pub fn open(
        members: Vec<Membership>,
        next: Txid,
        options: Options,
        os: &Os,
        observer: Arc<dyn Observer>,
    ) -> Result<Journal, JournalFailed> {
        let before = Txid(next.0.saturating_sub(1));
        let unable = |error: io::Error| JournalFailed { reason: error.to_string().into(), durable: before };
        let restore = Arc::new(AtomicBool::new(options.restore));
        let set = JournalSet::new(members, options.minimum, restore.clone()).map_err(unable)?;
        let buffer = Buffer::new(before.next(), options.layout);
        let shared = Arc::new(Shared {
            members: Mutex::new(set.status()),
            committer: Mutex::new(Committer::new(set, options.seen)),
            lane: Mutex::new(Lane { buffer, closed: false, failed: false, beyond: 0, asleep: false }),
            last: AtomicU64::new(next.0),
            watermark: Watermark::at(before),
            restore,
            observer,
            os: os.clone(),
        });
        let flush = Flush { shared: shared.clone(), lazy_delay: options.lazy_delay, many: false };
        let thread =
            std::thread::Builder::new().name("journal-flush".to_owned()).spawn(|| flush.run()).map_err(unable)?;
        shared.watermark.serve_on(thread.thread().clone());
        let journal = Journal { shared, thread: Mutex::new(Some(thread)) };
        journal.watermark().wait_blocking(next)?;
        Ok(journal)
    }

    /// Whether a dropped journal is tried again at the next segment.
    pub fn restores(&self) -> bool {
        self.shared.restore.load(Ordering::Relaxed)
    }

    /// Says whether a dropped journal is tried again at the next segment (`restoreFailedStorage`).
    pub fn set_restore(&self, restore: bool) {
        self.shared.restore.store(restore, Ordering::Relaxed);
    }

    /// Appends a record: assigns its transaction id and puts it into the buffer. No I/O, and nobody is woken for it: it becomes durable when
    /// somebody waits for it, or after a while.
    ///
    /// # Panics
    /// If the record does not exist in the layout in effect.
    pub fn append(&self, record: &Record<'_>) -> Txid {
        let mut lane = self.shared.lane.lock();
        if lane.ended() {
            return self.beyond(&mut lane);
        }
        let txid = lane.buffer.append(record);
        lane.buffer.awaited = txid;
        self.appended(&mut lane);
        txid
    }

    /// Appends a record that answers do not rest on (access times): it becomes durable with the next flush, or after a while.
    ///
    /// # Panics
    /// As [`Journal::append`].
    pub fn append_lazy(&self, record: &Record<'_>) -> Txid {
        let mut lane = self.shared.lane.lock();
        if lane.ended() {
            return lane.number_beyond();
        }
        let txid = lane.buffer.append(record);
        self.appended(&mut lane);
        txid
    }

    fn appended(&self, lane: &mut Lane) {
        self.shared.last.store(lane.buffer.awaited.0, Ordering::Release);
        if std::mem::take(&mut lane.asleep) || lane.buffer.bytes() >= LAZY_BYTES {
            self.shared.watermark.wake_flusher();
        }
    }
    fn beyond(&self, lane: &mut Lane) -> Txid {
        let txid = lane.number_beyond();
        self.shared.last.store(txid.0, Ordering::Release);
        txid
    }

    /// Makes durable on this thread what was appended, if that takes but a moment as far as one can tell and nobody else is about it. Who calls this
    /// and then looks at the watermark is spared two changes of threads; who finds it too low waits for it as ever.
    pub fn commit_if_brief(&self) {
        if let Some(mut committer) = self.shared.committer.try_lock() {
            committer.commit_if_brief(&self.shared);
        }
    }

    /// Ends the open segment and begins the next; returns the first transaction of the new one. No I/O: end, boundary and start are items of
    /// the buffer in their order.
    pub fn roll(&self) -> Txid {
        let mut lane = self.shared.lane.lock();
        if lane.ended() {
            return self.beyond(&mut lane);
        }
        let first = lane.buffer.roll();
        self.appended(&mut lane);
        first
    }

    /// As [`Journal::roll`]; the new segment and what follows it are of another layout.
    pub fn roll_to(&self, layout: LayoutVersion) -> Txid {
        let mut lane = self.shared.lane.lock();
        if lane.ended() {
            return self.beyond(&mut lane);
        }
        let first = lane.buffer.roll_to(layout);
        self.appended(&mut lane);
        first
    }

    /// The highest transaction assigned, but for lazy ones: what an answer decided now rests on.
    pub fn last(&self) -> Txid {
        Txid(self.shared.last.load(Ordering::Acquire))
    }

    /// The highest transaction assigned, lazy ones included.
    pub fn last_assigned(&self) -> Txid {
        self.shared.lane.lock().buffer.last()
    }

    /// First transaction of the open segment.
    pub fn segment(&self) -> Txid {
        self.shared.lane.lock().buffer.segment()
    }

    /// First transaction of the open segment, if nothing comes after it yet: the log up to there is in ended segments.
    pub fn unwritten_segment(&self) -> Option<Txid> {
        let lane = self.shared.lane.lock();
        (!lane.ended() && lane.buffer.last() == lane.buffer.segment()).then(|| lane.buffer.segment())
    }

    /// How far the log is durable.
    pub fn watermark(&self) -> &Watermark {
        &self.shared.watermark
    }

    /// The journals and whether they work.
    pub fn members(&self) -> Vec<MemberStatus> {
        self.shared.members.lock().clone()
    }

    /// Ends the segment in order and stops. Records appended afterwards are never durable.
    ///
    /// # Errors
    /// The journals failed, now or before.
    pub fn close(&self) -> Result<(), JournalFailed> {
        let last = {
            let mut lane = self.shared.lane.lock();
            if !lane.ended() {
                lane.buffer.end();
                self.appended(&mut lane);
            }
            lane.closed = true;
            lane.buffer.awaited
        };
        self.join();
        self.shared.watermark.wait_blocking(last)?;
        self.shared.watermark.fail("the journal is closed");
        Ok(())
    }

    fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            thread.thread().unpark();
            _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.shared.lane.lock().closed = true;
        self.join();
    }
}
