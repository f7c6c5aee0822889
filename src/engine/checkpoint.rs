//! Rolling the edit log, and saving the namespace on demand in safe mode.

use crate::Engine;
use ops::table::Operation;
use os::Os;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use storage::arena;
use storage::image::{self, SaveContext, SaveError};
use storage::purge::{Purged, Retention, purge};
use storage::{StorageInfo, version};
use vocab::{Caller, LayoutVersion, Refusal, Txid};

/// Where and how images are saved.
#[derive(Debug)]
pub struct Checkpoints {
    /// The operating system.
    pub os: Os,
    /// `current` folders for images; those that failed leave.
    pub image_folders: Mutex<Vec<PathBuf>>,
    /// `current` folders for edits, for the purge.
    pub edits_folders: Vec<PathBuf>,
    /// What a purge keeps.
    pub retention: Retention,
    /// All `current` folders, for VERSION.
    pub folders: Vec<PathBuf>,
    /// What VERSION says; its layout is older than ours where directories were started from that were not upgraded.
    pub storage: Mutex<StorageInfo>,
    /// Form of images: codec, sub-sections.
    pub image_options: image::SaveOptions,
    /// Whether string tables are written for each kind of string (`dfs.image.string-tables.expanded`).
    pub expanded_string_tables: bool,
    /// The newest image: its last transaction, and when it was made (monotonic, `None` before this process made one).
    pub newest: Mutex<(Txid, Option<u64>)>,
    /// One save at a time.
    pub running: tokio::sync::Mutex<()>,
}

impl Checkpoints {
    /// What an image says besides the state.
    pub(crate) fn context(&self, rolling: bool, txid: Txid) -> SaveContext {
        let storage = self.storage.lock();
        SaveContext {
            layout: LayoutVersion::effective(storage.layout, rolling),
            namespace_id: storage.namespace_id.cast_unsigned(),
            txid,
            expanded_string_tables: self.expanded_string_tables,
        }
    }
}

pub(crate) fn not_in_safe_mode() -> Refusal {
    Refusal::io("Safe mode should be turned ON in order to create namespace image.")
}

impl Engine {
    /// Ends the open segment and begins the next (`rollEdits`). The first transaction of the new segment is durable when this returns.
    ///
    /// # Errors
    /// The role gate's refusal.
    pub async fn roll(&self) -> Result<Txid, Refusal> {
        self.pass(Operation::RollEdits)?;
        let first = self.lock().read("rollEdits", |_| self.journal().roll());
        self.fence(crate::Decided { answer: first, rests_on: first }).await;
        Ok(first)
    }

    /// Saves the namespace (`saveNamespace`); permission and role are checked by the caller. With a time window in seconds and a gap in
    /// transactions, nothing is done when the newest image is within both. Returns whether an image was made.
    ///
    /// # Errors
    /// Not in safe mode; no directory took the image.
    pub async fn save_namespace(
        self: &Arc<Self>,
        caller: &Caller,
        window_seconds: u64,
        gap: u64,
    ) -> Result<bool, Refusal> {
        let checkpoints = self.checkpoints();
        self.must_be_in_safe_mode(caller)?;
        let first = self.interrupt_checkpoints();
        let one = checkpoints.running.lock().await;
        self.must_be_in_safe_mode(caller)?;
        if window_seconds > 0 && self.newest_is_recent(window_seconds, gap) {
            return Ok(false);
        }
        loop {
            self.reclaim_all().await;
            let engine = self.clone();
            let saved = tokio::task::spawn_blocking(move || engine.save_now()).await;
            if saved.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))? {
                break;
            }
        }
        drop((one, first));
        self.arena_went_missing();
        Ok(true)
    }

    fn must_be_in_safe_mode(&self, caller: &Caller) -> Result<(), Refusal> {
        if self.view("saveNamespace", caller, |view| view.state.blocks.safe_mode.is_on()) {
            return Ok(());
        }
        Err(not_in_safe_mode())
    }

    fn newest_is_recent(&self, window_seconds: u64, gap: u64) -> bool {
        let (txid, made) = *self.checkpoints().newest.lock();
        let now = self.now().monotonic.0;
        let young =
            made.is_some_and(|made| now.saturating_sub(made) <= Duration::from_secs(window_seconds).as_millis() as u64);
        young && self.journal().last_assigned().0 <= txid.0 + gap
    }

    /// Rolls the log and saves what it ends with, under one read hold: no write comes between. `false` if a snapshot's deletion came between, in the
    /// middle of which nothing is saved.
    fn save_now(&self) -> Result<bool, Refusal> {
        let checkpoints = self.checkpoints();
        let folders = checkpoints.image_folders.lock().clone();
        let done = self
            .lock()
            .read("saveNamespace", |state| {
                if !state.blocks.safe_mode.is_on() {
                    return Err(Some(not_in_safe_mode()));
                }
                if state.tree.has_cleanup() {
                    return Ok(None);
                }
                let txid = Txid(self.journal().roll().0 - 1);
                let rolling = state.sequences.rolling_upgrade_start.is_some();
                let context = checkpoints.context(rolling, txid);
                // an image must not say more than the log that leads to it
                if self.journal().watermark().wait_blocking(txid.next()).is_err() {
                    return Err(None);
                }
                Ok(Some((txid, rolling, {
                    let options = &checkpoints.image_options;
                    image::save_with(&*checkpoints.os.disk, &folders, state, context, options)
                })))
            })
            .map_err(|refusal| refusal.unwrap_or_else(|| Refusal::io("The edit log has failed.")))?;
        let Some((txid, rolling, saved)) = done else { return Ok(false) };
        self.after_save(saved)?;
        self.raise_version(rolling)?;
        *checkpoints.newest.lock() = (txid, Some(self.now().monotonic.0));
        // an older state is of no use to a restart beside a newer image
        arena::purge(&*checkpoints.os.disk, &folders, None);
        self.purge();
        Ok(true)
    }

    /// Gives up the folders that took no image.
    pub(crate) fn after_save(&self, saved: Result<image::Saved, SaveError>) -> Result<(), Refusal> {
        match saved {
            Ok(saved) => {
                self.give_up(&saved.failed);
                Ok(())
            }
            Err(SaveError::NoDirectory(failed)) => {
                self.give_up(&failed);
                Err(Refusal::io("Failed to save in any storage directories while saving namespace."))
            }
            Err(error) => Err(Refusal::io(error.to_string())),
        }
    }

    /// Outside of a rolling upgrade, a saved image takes the directories to the present layout (`FSImage.updateStorageVersion`).
    pub(crate) fn raise_version(&self, rolling: bool) -> Result<(), Refusal> {
        let checkpoints = self.checkpoints();
        let mut storage = checkpoints.storage.lock();
        if rolling || storage.layout == LayoutVersion::CURRENT {
            return Ok(());
        }
        let raised = StorageInfo { layout: LayoutVersion::CURRENT, ..storage.clone() };
        let written =
            checkpoints.folders.iter().try_for_each(|folder| version::write(&checkpoints.os, folder, &raised));
        written.map_err(|error| Refusal::io(error.to_string()))?;
        *storage = raised;
        Ok(())
    }

    /// An image that a checkpointer has brought lies in the directories: what is older than it may go.
    pub fn image_received(&self, txid: Txid) {
        let made = self.now().monotonic.0;
        let mut newest = self.checkpoints().newest.lock();
        if newest.0 < txid {
            *newest = (txid, Some(made));
        }
        drop(newest);
        let folders = self.checkpoints().image_folders.lock().clone();
        if arena::candidate(&*self.checkpoints().os.disk, &folders).is_none_or(|file| arena::named(&file) < Some(txid))
        {
            self.arena_went_missing();
        }
        self.purge();
    }

    /// Directories that failed are not written again by this process.
    pub(crate) fn give_up(&self, failed: &[image::Failed]) {
        let mut folders = self.checkpoints().image_folders.lock();
        for failure in failed {
            tracing::error!(folder = %failure.current.display(), error = %failure.error, "storage directory dropped: image not written");
            folders.retain(|f| *f != failure.current);
        }
    }

    pub(crate) fn purge(&self) {
        let checkpoints = self.checkpoints();
        let images = checkpoints.image_folders.lock().clone();
        match purge(&*checkpoints.os.disk, &images, &checkpoints.edits_folders, checkpoints.retention) {
            Ok(Purged { removed, failed }) => {
                tracing::info!(files = removed.len(), "old images and edits removed");
                for (path, error) in failed {
                    tracing::warn!(path = %path.display(), %error, "old file not removed");
                }
            }
            Err(error) => tracing::warn!(%error, "old images and edits not removed"),
        }
    }
}
