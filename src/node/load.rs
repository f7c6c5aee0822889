//! From directories to a state: lock, image, edits, and a new image where one is due. Nothing is written before image and edits are good,
//! but for what a half-done transition or an open segment of an earlier run needs.

use super::arena::FromArena;
use super::mode::StartMode;
use super::{StartError, format, places};
use crate::config::settings::Settings;
use edit::Record;
use observe::progress::{Phase, StartupProgress};
use os::Os;
use os::disk::Disk;
use state::{Mode, Replay, RootAttributes, State};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use storage::image::Newest;
use storage::journal::local;
use storage::replay;
use storage::select::{self, Inspection};
use storage::{Directories, StorageInfo, image, purge};
use vocab::layout::Feature;
use vocab::time::{MonotonicMs, Now};
use vocab::{LayoutVersion, Policy, TimeMs, Txid};

/// A loaded file system whose directories are locked.
pub struct Loaded {
    /// The directories, good ones only.
    pub directories: Directories,
    /// Identity of the file system.
    pub info: StorageInfo,
    /// The state at `last`.
    pub state: State,
    /// The last transaction in it.
    pub last: Txid,
    /// Whether no directory keeps the state from before an upgrade.
    pub upgrade_finalized: bool,
    /// The newest image or arena file: its last transaction, and when it was written (milliseconds since 1970).
    pub checkpoint: (Txid, i64),
    /// The arena file that the state comes from, if there is no image for it.
    pub without_image: Option<PathBuf>,
    /// Whether there is no arena file of use to a restart.
    pub arena_missing: bool,
}

/// From this layout on a log opens every file that it closes.
const CLOSED_ONCE: LayoutVersion = LayoutVersion(-40);

/// What image and edits have given.
pub(super) struct Read {
    pub state: State,
    /// Last transaction of the image or arena file, and when it was written (milliseconds since 1970).
    pub checkpoint: (Txid, i64),
    pub last: Txid,
    /// Records after it.
    pub replayed: u64,
    /// Where the state comes from, if that was an arena file.
    pub arena: Option<FromArenaFile>,
    /// Whether a rolling upgrade was finalized in them.
    pub finalized: bool,
}

/// What a replay came to.
pub(super) struct Replayed {
    pub last: Txid,
    pub records: u64,
    /// Whether a rolling upgrade was finalized in them.
    pub finalized: bool,
}

impl Loaded {
    /// The layout in which log and images are written.
    pub fn layout(&self) -> LayoutVersion {
        LayoutVersion::effective(self.info.layout, self.state.sequences.rolling_upgrade_start.is_some())
    }
}

/// That no image was read.
pub(super) struct FromArenaFile {
    /// The file, if there is no image for it.
    pub without_image: Option<PathBuf>,
}

/// Both clocks.
pub fn now(os: &Os) -> Now {
    Now { wall: TimeMs(os.clock.wall_ms()), monotonic: MonotonicMs(os.clock.monotonic_ms()) }
}

/// What a load needs to know.
pub struct Load<'a> {
    /// Settings of the NameNode.
    pub settings: &'a Settings,
    /// What changes how records are applied.
    pub policy: &'a Policy,
    /// Settings of the block half.
    pub blocks: &'a blocks::Settings,
    /// The door to disk, clock and random numbers.
    pub os: &'a Os,
    /// Told how far it is.
    pub progress: &'a StartupProgress,
    /// What is done with the directories.
    pub mode: &'a StartMode,
}

impl Load<'_> {
    /// Loads the newest image and the edits after it.
    ///
    /// # Errors
    /// See [`StartError`]; the directories are as they were.
    pub fn run(&self) -> Result<Loaded, StartError> {
        match self.mode {
            StartMode::RollingUpgradeRollback => return self.roll_back(),
            StartMode::ImportCheckpoint => return self.import(),
            _ => {}
        }
        let disk = &*self.os.disk;
        let directories = Directories::open(&places::locations(&self.settings.directories), self.os)?;
        let info = directories.formatted_info()?.clone();
        match self.mode {
            StartMode::Upgrade(upgrade) => {
                upgrade.check_renames(info.layout)?;
                storage::upgrade::check(disk, &directories, info.layout)?;
            }
            StartMode::RollingUpgradeStarted => storage::upgrade::check_not_too_old(info.layout)?,
            _ => select::check_layout(info.layout)?,
        }
        let inspection = select::inspect(disk, &directories)?;
        for (folder, reason) in &inspection.unusable {
            tracing::warn!("Unable to inspect storage directory {}: {reason}", folder.display());
        }
        let read = if info.layout.supports(Feature::TxidBasedLayout) {
            self.read(&directories, &inspection, &info)?
        } else {
            self.read_pretransactional(&directories, info.layout)?
        };
        let Read { state, checkpoint, last, replayed, arena, finalized } = read;
        let upgrade_finalized = inspection.upgrade_finalized;
        // what an online checkpoint will do soon need not be waited for
        let arena_missing = arena.is_none();
        let online = arena.is_some() && self.settings.checkpoints.online;
        let without_image = arena.and_then(|arena| arena.without_image);
        let mut loaded =
            Loaded { directories, info, state, last, upgrade_finalized, checkpoint, without_image, arena_missing };
        if finalized && self.mode.upgrade().is_none() {
            self.finalize_rolling(&mut loaded)?;
        }
        match self.mode.upgrade() {
            Some(upgrade) => self.upgrade(&mut loaded, upgrade)?,
            None => {
                self.save_if_due(&mut loaded, inspection.save_wanted, if online { None } else { Some(replayed) })?
            }
        }
        Ok(loaded)
    }

    /// Reads the newest image and what comes after it.
    fn read(&self, directories: &Directories, inspection: &Inspection, info: &StorageInfo) -> Result<Read, StartError> {
        let images = image::all_of_both_kinds(&*self.os.disk, &inspection.image_folders)
            .map_err(|failed| storage::StorageError::Io { path: failed.current, source: failed.error })?;
        let newest = images.first().ok_or_else(|| inspection.no_image())?;
        if let Some(FromArena { mut state, txid, written_ms, without_image }) =
            self.load_arena(directories, inspection, info, newest)
        {
            match self.load_edits(directories, inspection, &mut state, txid.next(), info.layout) {
                Ok(Replayed { last, records: replayed, finalized }) => {
                    let arena = Some(FromArenaFile { without_image });
                    return Ok(Read { state, checkpoint: (txid, written_ms), last, replayed, arena, finalized });
                }
                // if the log is to blame, the image will say so again
                Err(error) => tracing::warn!("The arena file for txid {txid} is not used: {error}"),
            }
        }
        match self.read_image(directories, inspection, info, newest) {
            Err(error @ StartError::Image(_)) if self.mode.upgrade().is_none() => {
                self.read_older_image(directories, inspection, info, &images, error)
            }
            read => read,
        }
    }

    /// Loads an image and the edits after it.
    pub(super) fn read_image(
        &self,
        directories: &Directories,
        inspection: &Inspection,
        info: &StorageInfo,
        image: &Newest,
    ) -> Result<Read, StartError> {
        let (loaded, image_ms) = self.load_image(image)?;
        let (image, mut state) = (loaded.txid, loaded.state);
        let Replayed { last, records: replayed, finalized } =
            self.load_edits(directories, inspection, &mut state, image.next(), info.layout)?;
        Ok(Read { state, checkpoint: (image, image_ms), last, replayed, arena: None, finalized })
    }

    /// Where no copy of the newest image, the first of `images`, can be used: the first older one that is whole and has all edits since, at
    /// least to where the newest one stood. If there is none, `error` stands.
    // Quirk: an_older_image_with_all_edits_is_started_from: Hadoop gives up with the newest image
    fn read_older_image(
        &self,
        directories: &Directories,
        inspection: &Inspection,
        info: &StorageInfo,
        images: &[Newest],
        error: StartError,
    ) -> Result<Read, StartError> {
        for image in &images[1..] {
            tracing::error!("The newest image cannot be used: {error}");
            tracing::error!("Trying the older image for txid {} and all edits after it", image.txid);
            match self.read_image(directories, inspection, info, image) {
                // what lies between is nowhere else
                Ok(read) if read.last < images[0].txid => {
                    tracing::error!(
                        "The edits after it end at {}, before the newest image's {}",
                        read.last,
                        images[0].txid
                    );
                }
                Ok(read) => {
                    tracing::error!("STARTED FROM THE OLDER IMAGE for txid {}: look at your disks", image.txid);
                    // as old as can be, so that a whole image is saved at once
                    return Ok(Read { checkpoint: (image.txid, 0), ..read });
                }
                Err(other) => tracing::error!("The image for txid {} cannot be used either: {other}", image.txid),
            }
        }
        Err(error)
    }

    /// An empty state.
    pub(super) fn fresh(&self) -> State {
        let mut state = State::new(RootAttributes { user: "", group: "", mode: vocab::Mode::new(0o755) });
        state.blocks = blocks::Blocks::new(self.blocks.clone(), self.os.random.u64());
        state.set_clock(now(self.os));
        state
    }

    /// Loads an image, and tells when it was written (milliseconds since 1970).
    pub(super) fn load_image(&self, newest: &Newest) -> Result<(image::Loaded, i64), StartError> {
        let disk = &*self.os.disk;
        let metadata = disk.metadata(&newest.copies[0]).ok().flatten();
        let bytes = metadata.map_or(0, |found| found.length);
        let file = newest.copies[0].display().to_string();
        self.progress.begin(Phase::LoadingImage, Some((file, bytes)));
        let begun = self.os.clock.monotonic_ms();
        let step = self.progress.step(Phase::LoadingImage, None, None);
        step.set_total(bytes);
        let loading = image::Loading { progress: &|read| step.set_count(read), ..image::Loading::default() };
        let (loaded, path) = image::load_copies(disk, newest, || self.fresh(), loading).map_err(|errors| {
            let mut text = String::new();
            for error in &errors {
                // writing to a string cannot fail
                _ = writeln!(text, "{error}");
            }
            StartError::Image(text)
        })?;
        self.progress.end(Phase::LoadingImage);
        let milliseconds = self.os.clock.monotonic_ms() - begun;
        let inodes = loaded.state.tree.inode_count();
        tracing::info!(
            "Loaded image for txid {} from {}: {inodes} inodes, {bytes} bytes in {milliseconds} ms",
            newest.txid,
            path.display()
        );
        Ok((loaded, modified_ms(disk, &path)))
    }

    /// Replays what comes after the image; the last transaction, and how many there were.
    fn load_edits(
        &self,
        directories: &Directories,
        inspection: &Inspection,
        state: &mut State,
        from: Txid,
        layout: LayoutVersion,
    ) -> Result<Replayed, StartError> {
        let disk = &*self.os.disk;
        let max = self.settings.edit_log.max_record_bytes as usize;
        self.progress.begin(Phase::LoadingEdits, None);
        let begun = self.os.clock.monotonic_ms();
        let folders = self.recover_segments(directories, local::Damage::Refused)?;
        let usable: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let segments = local::select(disk, &usable, from, inspection.seen)?;
        let step = self.progress.step(Phase::LoadingEdits, None, None);
        let mut replayed = 0;
        let mut told = |progress: replay::Progress| {
            replayed = progress.records;
            step.set_total(progress.last.0.saturating_sub(from.0.saturating_sub(1)));
            step.set_count(progress.records);
        };
        let mut records = Replay::new(Mode::Restart);
        let mut finalized = false;
        let mut apply = |_, record: Record<'_>| {
            finalized |= matches!(record, Record::RollingUpgradeFinalize { .. });
            apply(state, record, layout, self.policy, &mut records)
        };
        let last = replay::replay(disk, &segments, from, max, &mut told, &mut apply)?;
        self.progress.end(Phase::LoadingEdits);
        let milliseconds = self.os.clock.monotonic_ms() - begun;
        tracing::info!("Loaded {replayed} edits of {} segments up to txid {last} in {milliseconds} ms", segments.len());
        Ok(Replayed { last, records: replayed, finalized })
    }

    /// Finalizes open segments of an earlier run. Gives the folders whose edits can be used.
    pub(super) fn recover_segments(
        &self,
        directories: &Directories,
        damage: local::Damage,
    ) -> Result<Vec<PathBuf>, StartError> {
        let max = self.settings.edit_log.max_record_bytes as usize;
        let formatted = directories.list.iter().filter(|d| d.formatted && d.location.roles.edits);
        let mut folders: Vec<PathBuf> = formatted.map(storage::dirs::Directory::current).collect();
        let minimum = self.settings.directories.minimum_edits as usize;
        let enough = |usable: &[&Path]| directories.enough_edits(usable, minimum);
        let recovery = local::recover(&*self.os.disk, &folders, max, damage, enough)?;
        for (folder, recovered) in &recovery.done {
            tracing::info!("Recovered an open segment in {}: {recovered:?}", folder.display());
        }
        for (folder, reason) in &recovery.unusable {
            tracing::warn!("Edits in {} are not used: {reason}", folder.display());
        }
        folders.retain(|folder| recovery.unusable.iter().all(|(unusable, _)| unusable != folder));
        Ok(folders)
    }

    /// Saves the namespace where Hadoop does at a start: a directory is to be filled, or the image is old, or too much was `replayed` (`None`: the last two
    /// do not matter).
    fn save_if_due(&self, loaded: &mut Loaded, wanted: bool, replayed: Option<u64>) -> Result<(), StartError> {
        self.progress.begin(Phase::SavingCheckpoint, None);
        let checkpoints = &self.settings.checkpoints;
        let age = self.os.clock.wall_ms().saturating_sub(loaded.checkpoint.1);
        let old = Duration::from_millis(u64::try_from(age).unwrap_or(0)) > checkpoints.period;
        let due = wanted || replayed.is_some_and(|replayed| old || replayed > checkpoints.transactions);
        tracing::info!("Need to save fs image? {due}");
        if loaded.state.sequences.rolling_upgrade_start.is_some() {
            // the log goes there too; VERSION comes with an image
            let mode = u32::from(self.settings.directories.permission);
            loaded.directories.clear_unformatted(self.os, mode)?;
        } else if due {
            self.save(loaded)?;
        }
        self.progress.end(Phase::SavingCheckpoint);
        Ok(())
    }

    pub(super) fn save(&self, loaded: &mut Loaded) -> Result<(), StartError> {
        let (os, mode) = (self.os, u32::from(self.settings.directories.permission));
        loaded.directories.clear_unformatted(os, mode)?;
        let context = format::context(loaded.layout(), &loaded.info, loaded.last);
        let folders = loaded.directories.image_folders();
        let saved =
            image::save_with(&*os.disk, &folders, &loaded.state, context, &self.settings.checkpoints.image_options)
                .map_err(|error| {
                    let mut text = error.to_string();
                    if let image::SaveError::NoDirectory(failed) = &error {
                        failed.iter().for_each(|one| text += &format!("\n{}: {}", one.current.display(), one.error));
                    }
                    StartError::Save(text)
                })?;
        for failed in &saved.failed {
            tracing::error!("Unable to save image for {}: {}", failed.current.display(), failed.error);
        }
        loaded
            .directories
            .list
            .retain(|directory| saved.failed.iter().all(|failed| failed.current != directory.current()));
        // what is durable, not what comes next: a crash before the next segment begins must not look like a lost one
        loaded.directories.write_seen_txid(os, loaded.last)?;
        // outside of a rolling upgrade an image takes the directories to the present layout
        loaded.info.layout = loaded.layout();
        // VERSION last: a directory counts as formatted only when it is whole
        loaded.directories.write_version(os, &loaded.info)?;
        loaded.directories.list.iter_mut().for_each(|directory| directory.formatted = true);
        loaded.checkpoint = (loaded.last, os.clock.wall_ms());
        // this image says more than the file that was started from
        loaded.without_image = None;
        loaded.arena_missing = true;
        tracing::info!(
            "Saved image for txid {}: {} bytes in {} directories",
            loaded.last,
            saved.length,
            loaded.directories.image_folders().len()
        );
        let (images, edits) = (loaded.directories.image_folders(), loaded.directories.edits_folders());
        let purged = purge::purge(&*os.disk, &images, &edits, super::retention(self.settings))?;
        for (path, error) in &purged.failed {
            tracing::warn!("Could not delete {}: {error}", path.display());
        }
        Ok(())
    }
}

/// When a file was written, in milliseconds since 1970; 0 if that is not known.
pub(super) fn modified_ms(disk: &dyn Disk, path: &Path) -> i64 {
    let modified = disk.metadata(path).ok().flatten().map(|found| found.modified);
    let age = modified.and_then(|modified| modified.duration_since(std::time::UNIX_EPOCH).ok());
    age.and_then(|age| i64::try_from(age.as_millis()).ok()).unwrap_or(0)
}

/// Fits and applies one record of a log of the given layout.
pub(super) fn apply(
    state: &mut State,
    mut record: Record<'_>,
    layout: LayoutVersion,
    policy: &Policy,
    replay: &mut Replay,
) -> Result<(), String> {
    if !layout.supports(Feature::AddInodeId) {
        replay::give_inode_id(&mut record, state.sequences.inode);
    }
    match (apply_one(state, &record, policy, replay), &record) {
        // Quirk: closed_files_are_closed_again_in_old_logs: their appends left no record (HDFS-2991)
        (Err(error), Record::Close(close)) if CLOSED_ONCE.newer_than(layout) => {
            apply_one(state, &Record::Add(close.clone()), policy, replay).map_err(|_| error)?;
            apply_one(state, &record, policy, replay)
        }
        (outcome, _) => outcome,
    }
}

fn apply_one(state: &mut State, record: &Record<'_>, policy: &Policy, replay: &mut Replay) -> Result<(), String> {
    match replay.apply(state, record, policy) {
        Ok(None) => Ok(()),
        Ok(Some(rule)) => {
            tracing::debug!("no-op by rule {}: {record:?}", rule.number());
            Ok(())
        }
        Err(mismatch) => Err(mismatch.0),
    }
}
