//! Rolling upgrades: begun with an image to go back to, written at the layout of the directories meanwhile, and finalized.

use crate::Engine;
use crate::checkpoint::not_in_safe_mode;
use edit::Record;
use ops::admin::safe_mode::{SafeModeAction, SetSafeMode};
use ops::context::Write;
use std::sync::Arc;
use storage::{arena, image, rolling, upgrade};
use vocab::{Caller, LayoutVersion, Policy, Refusal, TimeMs, Txid};

/// A rolling upgrade that runs or has just been finalized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RollingUpgrade {
    /// When it began.
    pub start: TimeMs,
    /// When it was finalized, if it was.
    pub finalized: Option<TimeMs>,
    /// Whether there is an image to go back to.
    pub rollback_image: bool,
}

impl Engine {
    /// The rolling upgrade that runs (`queryRollingUpgrade`). Reads the names of the directories.
    ///
    /// # Errors
    /// The disk's.
    pub fn rolling_upgrade(&self, caller: &Caller) -> Result<Option<RollingUpgrade>, Refusal> {
        let Some(start) = self.view("queryRollingUpgrade", caller, |view| view.state.sequences.rolling_upgrade_start)
        else {
            return Ok(None);
        };
        let checkpoints = self.checkpoints();
        let folders = checkpoints.image_folders.lock().clone();
        let rollback_image = rolling::has_rollback_image(&*checkpoints.os.disk, &folders);
        let rollback_image = rollback_image.map_err(|error| Refusal::io(error.to_string()))?;
        Ok(Some(RollingUpgrade { start, finalized: None, rollback_image }))
    }

    /// Begins a rolling upgrade: an image to go back to, the end of safe mode, and the record that it began. Where one runs already, that is told.
    ///
    /// # Errors
    /// Not in safe mode; an upgrade was not finalized; no directory took the image.
    pub async fn start_rolling_upgrade(self: &Arc<Self>, caller: &Caller) -> Result<RollingUpgrade, Refusal> {
        if let Some(running) = self.rolling_upgrade(caller)? {
            return Ok(running);
        }
        let (engine, for_them) = (self.clone(), caller.clone());
        let _first = self.interrupt_checkpoints();
        let _one = self.checkpoints().running.lock().await;
        self.reclaim_all().await;
        let started = tokio::task::spawn_blocking(move || engine.start_now(&for_them)).await;
        let decided = started.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
        self.fence(decided).await
    }

    /// All of it in one hold: the record must be the second of the segment behind the image, since a way back is looked for there.
    fn start_now(&self, caller: &Caller) -> crate::Decided<Result<RollingUpgrade, Refusal>> {
        let checkpoints = self.checkpoints();
        self.turn("startRollingUpgrade", caller, |turn| {
            turn.soft().end_cleanup();
            let view = turn.view();
            if let Some(start) = view.state.sequences.rolling_upgrade_start {
                return Ok(RollingUpgrade { start, finalized: None, rollback_image: true });
            }
            if !view.state.blocks.safe_mode.is_on() {
                return Err(not_in_safe_mode());
            }
            let disk = &*checkpoints.os.disk;
            upgrade::check_none_open(disk, &checkpoints.folders)
                .map_err(|error| Refusal::InconsistentStorage(error.to_string().into()))?;
            let start = view.now.wall;
            let txid = Txid(self.journal().roll().0 - 1);
            if self.journal().watermark().wait_blocking(txid.next()).is_err() {
                return Err(Refusal::io("The edit log has failed."));
            }
            let folders = checkpoints.image_folders.lock().clone();
            let context = checkpoints.context(false, txid);
            let saved = image::save_rollback(disk, &folders, view.state, context, &checkpoints.image_options);
            self.after_save(saved)?;
            self.raise_version(false)?;
            // older rollback images lead nowhere; what lies in memory's form is older than this image
            arena::purge(disk, &folders, None);
            let failed = rolling::purge(disk, &folders, txid);
            for (path, error) in failed.map_err(|error| Refusal::io(error.to_string()))? {
                tracing::warn!(path = %path.display(), %error, "old file not removed");
            }
            tracing::info!("Successfully saved namespace for preparing rolling upgrade.");
            SetSafeMode { action: SafeModeAction::Leave }.run(turn, ())?;
            turn.log(Record::RollingUpgradeStart { time: start });
            Ok(RollingUpgrade { start, finalized: None, rollback_image: true })
        })
    }

    /// Ends the rolling upgrade that runs, so that there is no way back: from the next segment on, the log is of the present layout. `None` if
    /// none runs.
    ///
    /// Quirk: directories_of_2_10_are_written_in_their_layout_until_the_end: where the layout changes, a segment begins. Hadoop goes on in the old one, whose records lack the new
    /// fields.
    ///
    /// # Errors
    /// Safe mode; VERSION cannot be written (the upgrade is finalized all the same).
    pub async fn finalize_rolling_upgrade(
        self: &Arc<Self>,
        caller: &Caller,
    ) -> Result<Option<RollingUpgrade>, Refusal> {
        let decided = self.turn("finalizeRollingUpgrade", caller, |turn| {
            let view = turn.view();
            let Some(start) = view.state.sequences.rolling_upgrade_start else { return Ok(None) };
            view.check_safe_mode(|| "Failed to finalize rolling upgrade".to_owned())?;
            let time = view.now.wall;
            turn.log(Record::RollingUpgradeFinalize { time });
            let policy = self.policy.load();
            if policy.effective_layout != LayoutVersion::CURRENT {
                self.journal().roll_to(LayoutVersion::CURRENT);
                let raised = Policy { effective_layout: LayoutVersion::CURRENT, ..(**policy).clone() };
                self.policy.store(Arc::new(raised));
            }
            Ok(Some(RollingUpgrade { start, finalized: Some(time), rollback_image: true }))
        });
        let last = crate::Decided { answer: decided.answer, rests_on: self.journal().last() };
        let Some(ended) = self.fence(last).await? else { return Ok(None) };
        let engine = self.clone();
        let renamed = tokio::task::spawn_blocking(move || engine.finalize_files()).await;
        renamed.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))?;
        Ok(Some(ended))
    }

    /// The end is durable: the directories may forget the way back.
    fn finalize_files(&self) -> Result<(), Refusal> {
        let checkpoints = self.checkpoints();
        let folders = checkpoints.image_folders.lock().clone();
        let mut storage = checkpoints.storage.lock();
        storage.layout = LayoutVersion::CURRENT;
        let failed = rolling::finalize(&checkpoints.os, &checkpoints.folders, &folders, &storage);
        for (path, error) in failed.map_err(|error| Refusal::io(error.to_string()))? {
            tracing::warn!(path = %path.display(), %error, "Unable to rename checkpoint");
        }
        Ok(())
    }
}
