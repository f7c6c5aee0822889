//! `-upgrade`, `-upgradeOnly` and `-rollback`: directories of an older layout become ours, and go back.

use super::load::{self, Load, Loaded, Read};
use super::rolling::rolling_upgrade_runs;
use super::{StartError, StartMode, convert, host_address, places};
use crate::config::settings::{OfflineSettings, Settings};
use edit::Record;
use observe::progress::{Phase, StartupProgress};
use os::Os;
use state::{Mode, Replay};
use storage::{Directories, StorageInfo, image, pretransactional, upgrade};
use vocab::LayoutVersion;
use vocab::layout::Feature;

/// Options of `-upgrade`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Upgrade {
    /// Cluster id for directories that have none.
    pub cluster_id: Option<String>,
    /// Names that are reserved today should get others.
    pub rename_reserved: bool,
}

impl Upgrade {
    /// Only layouts from before snapshots can hold names that are reserved today.
    pub(super) fn check_renames(&self, layout: LayoutVersion) -> Result<(), StartError> {
        if !self.rename_reserved || layout.supports(Feature::Snapshot) {
            return Ok(());
        }
        let text = "The option -renameReserved is not supported yet for directories of layouts before -43. Nothing was changed.";
        Err(StartError::Unsupported(text.to_owned()))
    }

    /// The identity of the file system after the upgrade.
    pub(super) fn identity(&self, os: &Os, old: &StorageInfo) -> StorageInfo {
        let new = upgrade::identity(os, old, &host_address(), self.cluster_id.as_deref());
        let ignored = self.cluster_id.as_ref().filter(|given| **given != new.cluster_id);
        if let Some(given) = ignored {
            tracing::warn!(
                "Clusterid mismatch - current clusterid: {}, Ignoring given clusterid: {given}",
                new.cluster_id
            );
        }
        tracing::info!("Using clusterid: {}", new.cluster_id);
        new
    }
}

impl Load<'_> {
    /// Makes the directories of a loaded file system ours; those of before stay beside them as `previous`.
    pub(super) fn upgrade(&self, loaded: &mut Loaded, options: &Upgrade) -> Result<(), StartError> {
        if loaded.state.sequences.rolling_upgrade_start.is_some() {
            return Err(StartError::Unsupported(rolling_upgrade_runs("upgrade namenode", loaded)));
        }
        let (os, mode) = (self.os, u32::from(self.settings.directories.permission));
        let new = options.identity(os, &loaded.info);
        let old = std::mem::replace(&mut loaded.info, new);
        tracing::info!(
            "Starting upgrade of local storage directories.\n   old LV = {}; old CTime = {}.\n   new LV = {}; new CTime = {}",
            old.layout.0,
            old.ctime,
            loaded.info.layout.0,
            loaded.info.ctime
        );
        upgrade::fill_unformatted(&mut loaded.directories, os, mode)?;
        let count = loaded.directories.list.len();
        upgrade::begin(&loaded.directories, os, mode)?;
        self.save(loaded)?;
        upgrade::end(&loaded.directories, os)?;
        loaded.upgrade_finalized = false;
        let failed = count - loaded.directories.list.len();
        if failed > 0 {
            let text = format!("Upgrade failed in {failed} storage directory(ies), previously logged.");
            return Err(StartError::Save(text));
        }
        tracing::info!("Upgrade of {count} storage directories is complete.");
        Ok(())
    }
}

impl Load<'_> {
    /// Reads image and log of directories of before transaction ids.
    pub(super) fn read_pretransactional(
        &self,
        directories: &Directories,
        layout: LayoutVersion,
    ) -> Result<Read, StartError> {
        let disk = &*self.os.disk;
        let files = pretransactional::find(disk, directories, layout)?;
        let path = files.image.display().to_string();
        self.progress.begin(Phase::LoadingImage, Some((path.clone(), 0)));
        let bytes = disk.read(&files.image).map_err(storage::StorageError::io(&files.image))?;
        let found = image::Digest::of(&bytes).hex();
        if let Some(expected) = files.digest.filter(|expected| *expected != found) {
            let text = format!("Image file {path} is corrupt with MD5 checksum of {found} but expecting {expected}");
            return Err(StartError::Image(text));
        }
        let loaded = image::legacy::load(&bytes, self.fresh());
        let loaded = loaded.map_err(|error| StartError::Image(format!("Image file {path}: {error}")))?;
        if loaded.layout != layout {
            let text = format!("imgVersion {} expected to be {}", loaded.layout.0, layout.0);
            return Err(StartError::Image(format!("Image file {path}: {text}")));
        }
        self.progress.end(Phase::LoadingImage);
        self.progress.begin(Phase::LoadingEdits, None);
        let (mut state, mut replayed) = (loaded.state, 0);
        let max = self.settings.edit_log.max_record_bytes as usize;
        let mut records = Replay::new(Mode::Restart);
        let mut apply = |record: Record<'_>| {
            replayed += 1;
            load::apply(&mut state, record, layout, self.policy, &mut records)
        };
        let last = pretransactional::replay(disk, &files.edits, max, &mut apply).map_err(StartError::from)?;
        self.progress.end(Phase::LoadingEdits);
        tracing::info!("Loaded {path} of layout {} and {replayed} edits after it", layout.0);
        let checkpoint = (loaded.txid, load::modified_ms(disk, &files.image));
        Ok(Read { state, checkpoint, last: last.max(loaded.txid), replayed, arena: None, finalized: false })
    }
}

/// Upgrades the directories and no more.
///
/// # Errors
/// As a start with `-upgrade`.
pub fn upgrade_only(settings: &Settings, upgrade: &Upgrade) -> Result<(), StartError> {
    let (os, progress) = (Os::real(), StartupProgress::default());
    let (policy, blocks) = (convert::policy(settings), convert::blocks(settings));
    let mode = StartMode::Upgrade(upgrade.clone());
    Load { settings, policy: &policy, blocks: &blocks, os: &os, progress: &progress, mode: &mode }.run().map(drop)
}

/// Brings back the directories from before the last upgrade.
///
/// # Errors
/// There is no such state, or it is of an older release; a directory is in use or cannot be written.
pub fn roll_back(settings: &OfflineSettings) -> Result<(), StartError> {
    let os = Os::real();
    let directories = Directories::open(&places::locations(&settings.directories), &os)?;
    for root in upgrade::roll_back(&directories, &os)? {
        tracing::info!("Rollback of {} is complete.", root.display());
    }
    Ok(())
}
