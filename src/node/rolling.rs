//! Starts around a rolling upgrade: its rollback, and what is left to do where the log ends with its finalization.

use super::load::{Load, Loaded};
use super::{StartError, places};
use observe::progress::Phase;
use std::path::{Path, PathBuf};
use storage::journal::local;
use storage::{Directories, StorageError, image, rolling, select};
use vocab::{LayoutVersion, Txid};

/// Hadoop's refusal of what a rolling upgrade stands in the way of.
pub(super) fn rolling_upgrade_runs(action: &str, loaded: &Loaded) -> String {
    let start = loaded.state.sequences.rolling_upgrade_start.unwrap_or_default();
    format!(
        "Failed to {action} since a rolling upgrade is already in progress. Existing rolling upgrade info:\n  Block Pool ID: {}\n     Start Time: {}",
        loaded.info.block_pool_id, start.0
    )
}

impl Load<'_> {
    /// Loads the image of when the rolling upgrade began, and takes the directories back to it: nothing is changed before it is loaded.
    pub(super) fn roll_back(&self) -> Result<Loaded, StartError> {
        let disk = &*self.os.disk;
        let locations = places::locations(&self.settings.directories);
        let directories = Directories::open_for_rolling_rollback(&locations, self.os)?;
        let info = directories.formatted_info()?.clone();
        let inspection = select::inspect(disk, &directories)?;
        let images = image::all_rollback(disk, &inspection.image_folders)
            .map_err(|failed| StorageError::Io { path: failed.current, source: failed.error })?;
        let newest = images.first().ok_or_else(|| inspection.no_image())?;
        let (loaded, written_ms) = self.load_image(newest)?;
        let (ours, found) = (LayoutVersion::CURRENT.0, loaded.layout.0);
        if found != ours {
            let text = format!("Image version {found} is not equal to the software version {ours}");
            return Err(StartError::Image(format!("{}: {text}", newest.copies[0].display())));
        }
        let (last, mut state) = (loaded.txid, loaded.state);
        let folders = self.recover_segments(&directories, local::Damage::Refused)?;
        let usable: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        // the log must go on to where the upgrade began, unless an earlier try has put that aside
        if !rolling::is_discarded(disk, &folders, last.next())? {
            local::select(disk, &usable, last.next(), Txid(last.0 + 2))?;
        }
        let (mode, formatted) = (u32::from(self.settings.directories.permission), directories.list.iter());
        let (all, edits): (Vec<PathBuf>, Vec<PathBuf>) =
            (formatted.filter(|d| d.formatted).map(|d| d.current()).collect(), folders);
        let places = rolling::Places { all: &all, images: &inspection.image_folders, edits: &edits };
        let mut told = |path: &Path| tracing::info!("Trash the EditLog file {}", path.display());
        rolling::roll_back(self.os, places, newest, &info, &mut told)?;
        directories.clear_unformatted(self.os, mode)?;
        state.sequences.rolling_upgrade_start = None;
        tracing::info!("Rolled back to the image for txid {last}");
        for phase in [Phase::LoadingEdits, Phase::SavingCheckpoint] {
            self.progress.begin(phase, None);
            self.progress.end(phase);
        }
        Ok(Loaded {
            directories,
            info,
            state,
            last,
            upgrade_finalized: inspection.upgrade_finalized,
            checkpoint: (last, written_ms),
            without_image: None,
            arena_missing: true,
        })
    }

    /// The log says that a rolling upgrade was finalized, perhaps just before the process ended: the directories are told.
    pub(super) fn finalize_rolling(&self, loaded: &mut Loaded) -> Result<(), StartError> {
        if loaded.state.sequences.rolling_upgrade_start.is_some() {
            // another one has begun since
            return Ok(());
        }
        loaded.info.layout = LayoutVersion::CURRENT;
        let formatted = || loaded.directories.list.iter().filter(|directory| directory.formatted);
        let all: Vec<PathBuf> = formatted().map(storage::dirs::Directory::current).collect();
        let images: Vec<PathBuf> = formatted().filter(|d| d.location.roles.image).map(|d| d.current()).collect();
        for (path, error) in rolling::finalize(self.os, &all, &images, &loaded.info)? {
            tracing::warn!("Unable to rename checkpoint {}: {error}", path.display());
        }
        Ok(())
    }
}
