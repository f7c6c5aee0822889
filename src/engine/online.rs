//! Checkpoints while the server works: an arena file from frozen pages, then an image made from that file by another process; and memory that lies in the
//! arena file of a restart, moved into memory of our own.
//!
//! A checkpoint holds the state lock alone for the moment in which the log is rolled, the pages are frozen and what lies beside them is copied; after
//! that it reads a few pages at a time together with other readers. Whoever else needs the checkpoint's place (an administrator's save, the end of
//! the process) interrupts it: it leaves nothing behind.

use crate::{Engine, HaState};
use mem::page::{Pages, ShadowPool, SpareChunk};
use os::mapping;
use parking_lot::Mutex;
use state::{PastCopy, State};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use storage::arena::{self, Frozen, LogEnd, WriteError};
use storage::image::{self, Digest};
use storage::{StorageError, StorageInfo};
use tokio::sync::Notify;
use vocab::Txid;

/// Pages that are copied in one shared hold: 1 MiB, a fraction of a slice of time.
const COPIED_PAGES: u32 = 16;
/// Entries of the past that are written down in one shared hold.
const PAST_ENTRIES: u64 = 1_024;
/// Pause between chunks that are moved in.
const MOVE_PAUSE: Duration = Duration::from_millis(2);
/// How long nothing is tried after a checkpoint that was not made.
const RETRY_MS: u64 = 300_000;

/// When checkpoints are made while the server works.
#[derive(Clone, Copy, Debug)]
pub struct OnlineSettings {
    /// Whether arena files are written at all.
    pub arena: bool,
    /// Whether images are made from them.
    pub image: bool,
    /// At the latest after (`dfs.namenode.checkpoint.period`).
    pub period: Duration,
    /// At the latest after so many transactions (`dfs.namenode.checkpoint.txns`).
    pub transactions: u64,
    /// How often that is looked at (`dfs.namenode.checkpoint.check.period`).
    pub check: Duration,
    /// Bytes for pages that change while they are waited for.
    pub pool_bytes: u64,
    /// From so many inodes on an arena file is made at once where a restart would find none (`ironroot.restart.arena.inodes`).
    pub unasked_from: u64,
}

/// An image that is durable under its temporary name.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// Its digest.
    pub digest: Digest,
    /// Its bytes.
    pub length: u64,
    /// Folders that have it.
    pub written: Vec<PathBuf>,
}

/// Makes an image from an arena file in a process of its own.
pub trait ImageEncoder: Send + Sync + Debug {
    /// Writes the image into each `current` folder under its temporary name. Blocks, and fails soon after `stopped` says so.
    ///
    /// # Errors
    /// Why there is none.
    fn encode(&self, arena: &Path, folders: &[PathBuf], stopped: &dyn Fn() -> bool) -> Result<Encoded, String>;
}

/// Everything that checkpoints of a working server need beside [`crate::Checkpoints`].
#[derive(Debug)]
pub struct Online {
    settings: OnlineSettings,
    info: StorageInfo,
    encoder: Arc<dyn ImageEncoder>,
    /// The last checkpoint, and when it was made (monotonic, milliseconds).
    last: Mutex<(Txid, u64)>,
    /// An arena file that has no image yet.
    without_image: Mutex<Option<(PathBuf, Txid)>>,
    /// Nothing is tried before (monotonic, milliseconds).
    not_before: Mutex<u64>,
    /// Whether a restart would find no arena file: the state comes from an image, or an image was saved.
    missing: AtomicBool,
    /// Has it looked at now whether the file is missing.
    look: Notify,
    /// How many wait for a checkpoint to get out of their way.
    interruptions: AtomicU32,
    /// Which of the folders for images gets the file.
    folder: AtomicU32,
}

impl Online {
    /// `last` is the newest checkpoint and when it was made on the monotonic clock (milliseconds); `without_image` the arena file that was started
    /// from, if there is no image for it; `missing` whether there is no arena file of use to a restart.
    pub fn new(
        settings: OnlineSettings,
        info: StorageInfo,
        encoder: Arc<dyn ImageEncoder>,
        last: (Txid, u64),
        without_image: Option<(PathBuf, Txid)>,
        missing: bool,
    ) -> Online {
        Online {
            settings,
            info,
            encoder,
            last: Mutex::new(last),
            without_image: Mutex::new(without_image),
            not_before: Mutex::new(0),
            missing: AtomicBool::new(missing),
            look: Notify::new(),
            interruptions: AtomicU32::new(0),
            folder: AtomicU32::new(0),
        }
    }
    fn is_interrupted(&self) -> bool {
        self.interruptions.load(Ordering::Acquire) > 0
    }
}

/// Keeps checkpoints out of the way as long as it lives.
#[derive(Debug)]
pub(crate) struct Interruption<'e>(Option<&'e Online>);

impl Drop for Interruption<'_> {
    fn drop(&mut self) {
        if let Some(online) = self.0 {
            online.interruptions.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Why no checkpoint was made, or no image from it.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// Something else came first.
    #[error("it was interrupted")]
    Interrupted,
    /// The state is not to be written down now: safe mode, a rolling upgrade, another role.
    #[error("not now")]
    NotNow,
    /// No folder for images is left.
    #[error("no storage directory is left for it")]
    NoFolder,
    /// No file was written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The log has failed; the process is about to end.
    #[error("the edit log has failed")]
    Journal,
    /// The image was not made.
    #[error("the image was not made: {0}")]
    Image(String),
}

/// What a checkpoint is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The log has become long or old, or somebody wants one.
    Due,
    /// A restart would have to read an image.
    Missing,
}

/// A frozen state.
struct Begun {
    txid: Txid,
    rest: Vec<u8>,
    sets: Vec<u32>,
    pool: Arc<ShadowPool>,
}

impl Engine {
    /// Makes checkpoints online from now on.
    pub fn with_online(mut self, online: Online) -> Engine {
        self.online = Some(online);
        self
    }
    fn online(&self) -> Result<&Online, NotMade> {
        self.online.as_ref().ok_or(NotMade::NotNow)
    }

    /// Ends a checkpoint under way, and lets none begin before the answer is dropped.
    pub(crate) fn interrupt_checkpoints(&self) -> Interruption<'_> {
        if let Some(online) = &self.online {
            online.interruptions.fetch_add(1, Ordering::AcqRel);
        }
        Interruption(self.online.as_ref())
    }
    /// Ends a checkpoint under way; there is none any more. For the end of the process.
    pub async fn end_checkpoints(&self) {
        let interruption = self.interrupt_checkpoints();
        drop(self.checkpoints().running.lock().await);
        // none begins again: the role is given up
        drop(interruption);
    }

    /// Whether a checkpoint is due.
    fn checkpoint_is_due(&self) -> bool {
        let Some(online) = self.online.as_ref().filter(|online| online.settings.arena) else { return false };
        let now = self.now().monotonic.0;
        let (txid, made) = *online.last.lock();
        // a checkpoint begins a segment, which is a transaction
        let new = self.journal().last_assigned().0.saturating_sub(txid.0 + 1);
        let old = now.saturating_sub(made) >= u64::try_from(online.settings.period.as_millis()).unwrap_or(u64::MAX);
        now >= *online.not_before.lock() && new > 0 && (old || new >= online.settings.transactions)
    }

    /// Whether an arena file is to be made although no checkpoint is due.
    fn arena_is_missing(&self) -> bool {
        let Some(online) = self.online.as_ref().filter(|online| online.settings.arena) else { return false };
        online.missing.load(Ordering::Acquire)
            && self.now().monotonic.0 >= *online.not_before.lock()
            && self.lock().read("inodes", |state| state.tree.inode_count()) >= online.settings.unasked_from
    }
    /// An image was saved that says more than any arena file.
    pub(crate) fn arena_went_missing(&self) {
        if let Some(online) = &self.online {
            online.missing.store(true, Ordering::Release);
            online.look.notify_one();
        }
    }
    async fn wait_for_a_look(&self) {
        match &self.online {
            Some(online) => online.look.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Makes checkpoints when they are due.
    pub(crate) async fn make_checkpoints(self: Arc<Self>) {
        let Some(check) = self.online.as_ref().map(|online| online.settings.check) else { return };
        let mut pause = tokio::time::interval(check.max(Duration::from_secs(1)));
        loop {
            // a look between is for a missing file alone: it hastens no checkpoint, whose image would be newer than what an administrator just saved
            let regular = tokio::select! {
                _ = pause.tick() => true,
                () = self.wait_for_a_look() => false,
            };
            let engine = self.clone();
            let made = tokio::task::spawn_blocking(move || {
                if engine.gate().state() == HaState::Active {
                    engine.image_left_over();
                    if regular && engine.checkpoint_is_due() {
                        engine.checkpoint_and_tell(Kind::Due);
                    } else if engine.arena_is_missing() {
                        engine.checkpoint_and_tell(Kind::Missing);
                    }
                }
            });
            made.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
        }
    }

    /// Makes the image of the file that was started from.
    fn image_left_over(&self) {
        let Some((path, txid)) = self.online.as_ref().and_then(|online| online.without_image.lock().take()) else {
            return;
        };
        let _one = self.checkpoints().running.blocking_lock();
        if let Err(reason) = self.make_image(&path, txid) {
            tracing::warn!(%txid, "no image from {}: {reason}", path.display());
        }
    }
    fn checkpoint_and_tell(&self, kind: Kind) {
        match self.checkpoint(kind) {
            Ok(_) | Err(NotMade::NotNow) => {}
            Err(reason) => {
                if let Some(online) = &self.online {
                    *online.not_before.lock() = self.now().monotonic.0 + RETRY_MS;
                }
                tracing::warn!("checkpoint given up, to be tried again: {reason}");
            }
        }
    }

    /// Makes a checkpoint now: an arena file, and an image from it where that is asked for. Blocks. Gives the last transaction in it.
    ///
    /// # Errors
    /// See [`NotMade`].
    pub fn make_checkpoint(&self) -> Result<Txid, NotMade> {
        self.checkpoint(Kind::Due)
    }

    /// Makes the arena file that a restart would miss, if it would, in safe mode too as long as the open segment is empty. Blocks.
    ///
    /// # Errors
    /// See [`NotMade`].
    pub fn make_missing_arena(&self) -> Result<Txid, NotMade> {
        if self.arena_is_missing() { self.checkpoint(Kind::Missing) } else { Err(NotMade::NotNow) }
    }

    fn checkpoint(&self, kind: Kind) -> Result<Txid, NotMade> {
        let checkpoints = self.checkpoints();
        let _one = checkpoints.running.blocking_lock();
        let online = self.online()?;
        let begun_ms = self.now().monotonic.0;
        let begun = self.begin_checkpoint(online, kind)?;
        let written = self.write_arena(online, &begun);
        let kept = self.lock().write("checkpointEnd", State::thaw);
        drop(kept);
        let (path, length) = written?;
        let txid = begun.txid;
        online.missing.store(false, Ordering::Release);
        // one that was missing puts off no image
        if kind == Kind::Due {
            *online.last.lock() = (txid, begun_ms);
        }
        arena::purge(&*checkpoints.os.disk, &checkpoints.image_folders.lock().clone(), Some(txid));
        let (milliseconds, beside) = (self.now().monotonic.0 - begun_ms, begun.rest.len());
        tracing::info!(%txid, bytes = length, beside, milliseconds, "checkpoint: {}", path.display());
        if kind == Kind::Missing {
            self.bind_to_image(&path, txid)?;
        } else if online.settings.image {
            self.make_image(&path, txid)?;
        }
        Ok(txid)
    }

    /// Says in an arena file which image it equals, if there is one for its transaction.
    fn bind_to_image(&self, path: &Path, txid: Txid) -> Result<(), NotMade> {
        let (disk, folders) = (&*self.checkpoints().os.disk, self.checkpoints().image_folders.lock().clone());
        let newest = image::newest(disk, &folders).ok().flatten().filter(|newest| newest.txid == txid);
        if let Some(digest) = newest.and_then(|newest| arena::digest_of_all(disk, &newest)) {
            arena::bind(disk, path, &digest)?;
        }
        Ok(())
    }

    /// Freezes the state at the end of the log: rolls it for that, unless nothing is in the open segment and an arena file is missing.
    fn begin_checkpoint(&self, online: &Online, kind: Kind) -> Result<Begun, NotMade> {
        if online.is_interrupted() {
            return Err(NotMade::Interrupted);
        }
        let pool = Arc::new(ShadowPool::new(online.settings.pool_bytes));
        let mut past = Some(self.copy_past());
        loop {
            let begun = self.try_begin_checkpoint(kind, &pool, &mut past);
            if begun.is_err() {
                self.lock().write("checkpointPast", |state| state.tree.abandon_past_copy());
            }
            if let Some(begun) = begun? {
                return Ok(begun);
            }
            while self.reclaim_slice() {}
        }
    }

    /// Writes down what is kept for snapshots, in slices: it is not in pages. What changes meanwhile is noted.
    fn copy_past(&self) -> PastCopy {
        if self.lock().read("checkpointPast", |state| state.tree.snapshots.is_empty()) {
            return PastCopy::default();
        }
        let mut copy = self.lock().write("checkpointPast", |state| state.tree.begin_past_copy());
        while self.lock().read("checkpointPast", |state| state.tree.copy_past(&mut copy, PAST_ENTRIES)) {}
        copy
    }

    /// The same, unless a snapshot is being deleted: nothing is written down in the middle of that.
    fn try_begin_checkpoint(
        &self,
        kind: Kind,
        pool: &Arc<ShadowPool>,
        past: &mut Option<PastCopy>,
    ) -> Result<Option<Begun>, NotMade> {
        self.lock().write("checkpointBegin", |state| {
            if state.tree.has_cleanup() {
                return Ok(None);
            }
            // images of the present layout do not belong into directories that were not taken to it
            let older = self.checkpoints().storage.lock().layout != vocab::LayoutVersion::CURRENT;
            let rolling = state.sequences.rolling_upgrade_start.is_some();
            // in safe mode nothing is written into the log, its boundaries neither
            let unwritten = if kind == Kind::Missing { self.journal().unwritten_segment() } else { None };
            let not_now = (unwritten.is_none() && state.blocks.safe_mode.is_on()) || rolling || older;
            if not_now || self.gate().state() != HaState::Active {
                return Err(NotMade::NotNow);
            }
            let rest = state.freeze_after(pool, past.take().unwrap_or_default());
            let sets = state.page_sets().iter().map(|pages| pages.frozen().0).collect();
            let txid = Txid(unwritten.unwrap_or_else(|| self.journal().roll()).0 - 1);
            Ok(Some(Begun { txid, rest, sets, pool: pool.clone() }))
        })
    }

    fn write_arena(&self, online: &Online, begun: &Begun) -> Result<(PathBuf, u64), NotMade> {
        let checkpoints = self.checkpoints();
        let disk = &*checkpoints.os.disk;
        let folders = checkpoints.image_folders.lock().clone();
        let at = online.folder.load(Ordering::Relaxed) as usize;
        let current = folders.get(at % folders.len().max(1)).ok_or(NotMade::NoFolder)?;
        let mut log_failed = false;
        let mut next = |set: usize, out: &mut Vec<u8>| self.copy_frozen(online, begun, set, out);
        let mut log_end = || {
            // a state must not say more than the log that leads to it
            log_failed = self.journal().watermark().wait_blocking(begun.txid.next()).is_err();
            let newest = image::newest(disk, &folders).ok().flatten().filter(|_| !log_failed)?;
            LogEnd::find(disk, &checkpoints.edits_folders, newest.txid.next(), begun.txid)
        };
        let frozen = Frozen { rest: &begun.rest, sets: begun.sets.clone(), next: &mut next, log_end: &mut log_end };
        let written = arena::write(disk, current, &online.info, begun.txid, frozen);
        if matches!(written, Err(WriteError::Storage(_) | WriteError::NoRoom { .. })) {
            // the next one is tried where this one may not fail
            online.folder.fetch_add(1, Ordering::Relaxed);
        }
        match written {
            _ if log_failed => Err(NotMade::Journal),
            Err(WriteError::PoolFull) if !begun.pool.is_full() => Err(NotMade::Interrupted),
            written => Ok(written?),
        }
    }

    /// Copies the next frozen pages of a set, under a shared hold; `None` if the checkpoint is to end.
    fn copy_frozen(&self, online: &Online, begun: &Begun, set: usize, out: &mut Vec<u8>) -> Option<u32> {
        if online.is_interrupted() {
            return None;
        }
        let (count, spent, full) = self.lock().read("checkpointPages", |state| {
            let pages: &Pages = state.page_sets()[set];
            (pages.copy_frozen(COPIED_PAGES, out), pages.has_spent_copies(), begun.pool.is_full())
        });
        if spent {
            let spent = self.lock().write("checkpointCopies", |state| state.page_sets_mut()[set].take_spent_copies());
            drop(spent);
        }
        (!full).then_some(count)
    }

    /// Has an image made from an arena file and gives it its name.
    fn make_image(&self, path: &Path, txid: Txid) -> Result<(), NotMade> {
        let (online, checkpoints) = (self.online()?, self.checkpoints());
        let begun = self.now().monotonic.0;
        let folders = checkpoints.image_folders.lock().clone();
        let stopped = || online.is_interrupted();
        let encoded = online.encoder.encode(path, &folders, &stopped);
        let encoded =
            encoded.map_err(|reason| if stopped() { NotMade::Interrupted } else { NotMade::Image(reason) })?;
        let disk = &*checkpoints.os.disk;
        arena::bind(disk, path, &encoded.digest)?;
        let mut failed = image::give_names(disk, &encoded.written, txid, encoded.digest);
        let unnamed = failed.len() == encoded.written.len();
        for current in folders.iter().filter(|folder| !encoded.written.contains(folder)) {
            let error = std::io::Error::other("the process that makes images could not write here");
            failed.push(image::Failed { current: current.clone(), error });
        }
        self.give_up(&failed);
        if unnamed {
            return Err(NotMade::NoFolder);
        }
        let now = self.now().monotonic.0;
        *checkpoints.newest.lock() = (txid, Some(now));
        tracing::info!(%txid, bytes = encoded.length, milliseconds = now - begun, "image made from {}", path.display());
        self.purge();
        Ok(())
    }

    /// Moves memory that lies in the file of a restart into memory of our own, a chunk at a time.
    pub(crate) async fn move_in(self: Arc<Self>) {
        if !self.lock().read("mappedMemory", |state| state.page_sets().iter().any(|pages| pages.is_mapped())) {
            return;
        }
        let (begun, mut chunks, mut set) = (self.now().monotonic.0, 0u64, 0);
        loop {
            let engine = self.clone();
            let moved = tokio::task::spawn_blocking(move || engine.move_chunk_in(set));
            let moved = moved.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
            let Some(at) = moved else { break };
            set = at;
            chunks += 1;
            tokio::time::sleep(MOVE_PAUSE).await;
        }
        let milliseconds = self.now().monotonic.0 - begun;
        tracing::info!(chunks, milliseconds, "memory is our own: the arena file is not mapped any more");
    }
    /// Moves the next chunk from set `set` on. Gives its set; `None` if none is left.
    fn move_chunk_in(&self, set: usize) -> Option<usize> {
        // the memory is there before the hold begins
        let mut spare = Some(SpareChunk::new());
        let (at, memory) = self.lock().write("moveIn", |state| {
            let sets = state.page_sets_mut().into_iter().enumerate().skip(set);
            sets.into_iter().find_map(|(at, pages)| pages.move_in(&mut spare).map(|memory| (at, memory)))
        })?;
        mapping::give_back(memory);
        Some(at)
    }
}
