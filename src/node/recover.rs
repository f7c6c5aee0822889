//! `-recover`: a damaged log is read as far as it goes, and what it leads to is saved as a new image.

use super::load::{self, Load, Loaded};
use super::{StartError, StartMode, convert, journals, places};
use crate::config::settings::Settings;
use edit::Record;
use observe::progress::StartupProgress;
use os::Os;
use state::{Mode, Replay};
use std::path::{Path, PathBuf};
use storage::journal::local;
use storage::salvage::{Questions, SalvageError, salvage};
use storage::{Directories, StorageError, image, select};

/// Recovers the directories, asking `questions` where something would be lost. `false` if it was given up: nothing was written then, but for
/// the end of an open segment.
///
/// # Errors
/// As a start, but for damage in the log.
pub fn recover(settings: &Settings, questions: &mut dyn Questions) -> Result<bool, StartError> {
    let (os, progress) = (Os::real(), StartupProgress::default());
    let (policy, blocks) = (convert::policy(settings), convert::blocks(settings));
    let mode = &StartMode::Regular;
    let load = Load { settings, policy: &policy, blocks: &blocks, os: &os, progress: &progress, mode };
    let Some(mut loaded) = load.salvage(questions)? else { return Ok(false) };
    // as after a start: what is saved ends with a whole segment
    let journal = journals::open(&loaded, settings, &os)?;
    journal.close().map_err(|failure| StartError::Journal(failure.to_string()))?;
    loaded.last = loaded.last.next().next();
    load.save(&mut loaded)?;
    Ok(true)
}

impl Load<'_> {
    fn salvage(&self, questions: &mut dyn Questions) -> Result<Option<Loaded>, StartError> {
        let disk = &*self.os.disk;
        let directories = Directories::open(&places::locations(&self.settings.directories), self.os)?;
        let info = directories.formatted_info()?.clone();
        select::check_layout(info.layout)?;
        let inspection = select::inspect(disk, &directories)?;
        let images = image::all_of_both_kinds(disk, &inspection.image_folders)
            .map_err(|failed| StorageError::Io { path: failed.current, source: failed.error })?;
        let newest = images.first().ok_or_else(|| inspection.no_image())?;
        let (image, written_ms) = self.load_image(newest)?;
        let (txid, mut state) = (image.txid, image.state);
        let folders = self.recover_segments(&directories, local::Damage::Kept)?;
        let usable: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        if let Err(error) = local::select(disk, &usable, txid.next(), inspection.seen) {
            tracing::error!("Exception while selecting input streams: {error}");
        }
        let max = self.settings.edit_log.max_record_bytes as usize;
        let mut records = Replay::new(Mode::Restart);
        let mut finalized = false;
        let mut apply = |record: Record<'_>| {
            finalized |= matches!(record, Record::RollingUpgradeFinalize { .. });
            load::apply(&mut state, record, info.layout, self.policy, &mut records)
        };
        let salvaged = match salvage(disk, &usable, txid.next(), max, questions, &mut apply) {
            Ok(salvaged) => salvaged,
            Err(SalvageError::Quit) => return Ok(None),
            Err(SalvageError::Storage(error)) => return Err(error.into()),
        };
        tracing::info!("Applied {} edits; the log promises txid {}", salvaged.records, salvaged.last);
        let mut loaded = Loaded {
            directories,
            info,
            state,
            last: salvaged.last,
            upgrade_finalized: inspection.upgrade_finalized,
            checkpoint: (txid, written_ms),
            without_image: None,
            arena_missing: true,
        };
        if finalized {
            self.finalize_rolling(&mut loaded)?;
        }
        Ok(Some(loaded))
    }
}
