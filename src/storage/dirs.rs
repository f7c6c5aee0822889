//! Storage directories: their states, their locks, and the half-done transitions of an earlier process.

use crate::names;
use crate::version::{self, StorageInfo};
use crate::{StorageError, seen};
use os::Os;
use os::disk::{Disk, Lock, Locked};
use std::io;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// Which files a directory is for, and whether the NameNode can do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles {
    /// Images.
    pub image: bool,
    /// Edits.
    pub edits: bool,
    /// Edits must not fail here.
    pub required: bool,
}

/// A configured storage directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The directory; `current` lies below it.
    pub root: PathBuf,
    /// What it is for.
    pub roles: Roles,
}

/// State of a directory at a start (Hadoop's `StorageState`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// There is no VERSION.
    NotFormatted,
    /// `current` is whole and nothing else is going on.
    Normal,
    /// An upgrade has made its new `current`: `previous.tmp` becomes `previous`.
    CompleteUpgrade,
    /// An upgrade has not: `previous.tmp` becomes `current` again.
    RecoverUpgrade,
    /// A rollback is done but for the removal of `removed.tmp`.
    CompleteRollback,
    /// A rollback has moved `current` away, no more: `removed.tmp` becomes `current` again.
    RecoverRollback,
    /// A finalize is done but for the removal of `finalized.tmp`.
    CompleteFinalize,
    /// A checkpoint of an old release is done: `lastcheckpoint.tmp` becomes `previous.checkpoint`.
    CompleteCheckpoint,
    /// It is not: `lastcheckpoint.tmp` becomes `current` again.
    RecoverCheckpoint,
}

pub(crate) const CURRENT: &str = "current";
pub(crate) const PREVIOUS: &str = "previous";
pub(crate) const PREVIOUS_TMP: &str = "previous.tmp";
pub(crate) const REMOVED_TMP: &str = "removed.tmp";
pub(crate) const FINALIZED_TMP: &str = "finalized.tmp";
/// The last layout before there were upgrades.
const LAST_BEFORE_UPGRADES: i32 = -3;
const LAST_CHECKPOINT_TMP: &str = "lastcheckpoint.tmp";
const PREVIOUS_CHECKPOINT: &str = "previous.checkpoint";

/// A storage directory whose lock this process holds.
#[derive(Debug)]
pub struct Directory {
    /// Where and what for.
    pub location: Location,
    /// Whether it has a VERSION.
    pub formatted: bool,
    _lock: Box<dyn Lock>,
}

impl Directory {
    /// Its `current` folder.
    pub fn current(&self) -> PathBuf {
        self.location.root.join(CURRENT)
    }
    /// Whether an upgrade waits to be finalized.
    ///
    /// # Errors
    /// As the disk's.
    pub fn has_previous(&self, disk: &dyn Disk) -> io::Result<bool> {
        Ok(disk.metadata(&self.location.root.join(PREVIOUS))?.is_some())
    }
}

/// All storage directories of a NameNode, locked.
#[derive(Debug)]
pub struct Directories {
    /// In the order configured.
    pub list: Vec<Directory>,
    /// Identity of the file system; `None` if nothing is formatted.
    pub info: Option<StorageInfo>,
}

impl Directories {
    /// Locks all directories, completes or undoes half-done transitions, and reads VERSION. Directories without one are left as they are.
    ///
    /// # Errors
    /// A directory is missing, held by another process, in no legal state, or of another file system. Then nothing was changed.
    pub fn open(locations: &[Location], os: &Os) -> Result<Directories, StorageError> {
        Directories::open_with(locations, os, version::read)
    }

    /// The same for the rollback of a rolling upgrade.
    ///
    /// # Errors
    /// As [`Directories::open`]; and a layout older than ours.
    pub fn open_for_rolling_rollback(locations: &[Location], os: &Os) -> Result<Directories, StorageError> {
        Directories::open_with(locations, os, version::read_for_rollback)
    }

    fn open_with(
        locations: &[Location],
        os: &Os,
        read: impl Fn(&dyn Disk, &Path, &Path) -> Result<StorageInfo, StorageError>,
    ) -> Result<Directories, StorageError> {
        let disk = &*os.disk;
        let mut analyzed = Vec::with_capacity(locations.len());
        for location in locations {
            let lock = lock_existing(disk, &location.root)?;
            analyzed.push((location, lock, analyze(disk, &location.root)?));
        }
        let mut info: Option<StorageInfo> = None;
        for (location, _, state) in &analyzed {
            let Some(folder) = version_folder(*state) else { continue };
            let found = read(disk, &location.root, &location.root.join(folder))?;
            if let Some(first) = &mut info {
                version::check_same(first, &found, &location.root)?;
                // A start is refused for the sake of any directory that is too old or has no namespace id.
                if first.layout.newer_than(found.layout) {
                    first.layout = found.layout;
                }
                if found.namespace_id == 0 {
                    first.namespace_id = 0;
                }
            } else {
                info = Some(found);
            }
        }
        let mut list = Vec::with_capacity(analyzed.len());
        for (location, lock, state) in analyzed {
            settle(disk, &location.root, state).map_err(StorageError::io(&location.root))?;
            list.push(Directory { location: location.clone(), formatted: state != State::NotFormatted, _lock: lock });
        }
        Ok(Directories { list, info })
    }

    /// Makes and locks directories that are to be formatted, whatever is in them.
    ///
    /// # Errors
    /// A directory cannot be made, or is held by another process.
    pub fn open_for_format(locations: &[Location], os: &Os, mode: u32) -> Result<Directories, StorageError> {
        let mut list = Vec::with_capacity(locations.len());
        for location in locations {
            let root = &location.root;
            let missing = os.disk.metadata(root).map_err(StorageError::io(root))?.is_none();
            if missing {
                os.disk.create_directories(root, mode).map_err(StorageError::io(root))?;
            }
            list.push(Directory {
                location: location.clone(),
                formatted: false,
                _lock: lock_existing(&*os.disk, root)?,
            });
        }
        Ok(Directories { list, info: None })
    }

    /// The identity.
    ///
    /// # Errors
    /// Nothing is formatted; or the namespace id is 0.
    pub fn formatted_info(&self) -> Result<&StorageInfo, StorageError> {
        let info = self.info.as_ref().ok_or(StorageError::NotFormatted)?;
        if info.namespace_id == 0 { Err(StorageError::NoNamespaceId) } else { Ok(info) }
    }

    /// `current` folders of directories for images.
    pub fn image_folders(&self) -> Vec<PathBuf> {
        self.list.iter().filter(|d| d.location.roles.image).map(Directory::current).collect()
    }
    /// `current` folders of directories for edits.
    pub fn edits_folders(&self) -> Vec<PathBuf> {
        self.list.iter().filter(|d| d.location.roles.edits).map(Directory::current).collect()
    }
    /// All `current` folders.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.list.iter().map(Directory::current).collect()
    }

    /// Makes an empty `current` in each directory that has no VERSION; the next saved image fills it.
    ///
    /// # Errors
    /// As the disk's.
    pub fn clear_unformatted(&self, os: &Os, mode: u32) -> Result<(), StorageError> {
        self.list.iter().filter(|d| !d.formatted).try_for_each(|d| clear(&*os.disk, &d.location.root, mode))
    }

    /// Writes VERSION everywhere.
    ///
    /// # Errors
    /// As the disk's, at the first directory that fails.
    pub fn write_version(&self, os: &Os, info: &StorageInfo) -> Result<(), StorageError> {
        self.list.iter().try_for_each(|d| version::write(os, &d.current(), info))
    }

    /// Writes `seen_txid` everywhere.
    ///
    /// # Errors
    /// As the disk's, at the first directory that fails.
    pub fn write_seen_txid(&self, os: &Os, txid: Txid) -> Result<(), StorageError> {
        self.list.iter().try_for_each(|d| {
            let current = d.current();
            seen::write(&*os.disk, &current, txid).map_err(StorageError::io(&current))
        })
    }

    /// Whether the edits directories in `usable` suffice to go on: all required ones, and of the others `minimum`; where all are required,
    /// these (Hadoop's `NameNodeResourcePolicy`).
    pub fn enough_edits(&self, usable: &[&Path], minimum: usize) -> bool {
        let edits: Vec<_> = self.list.iter().filter(|d| d.location.roles.edits).collect();
        let works = |d: &Directory| usable.contains(&&*d.current());
        let (required, others): (Vec<_>, Vec<_>) = edits.into_iter().partition(|d| d.location.roles.required);
        let working = others.iter().filter(|d| works(d)).count();
        required.iter().all(|d| works(d))
            && if others.is_empty() { !required.is_empty() } else { working >= minimum.max(1) }
    }
}

/// Whether anything is at a directory that is to be formatted.
///
/// # Errors
/// As the disk's.
pub fn has_data(disk: &dyn Disk, root: &Path) -> io::Result<bool> {
    match disk.metadata(root)? {
        None => Ok(false),
        Some(metadata) if !metadata.is_directory => Ok(true),
        Some(_) => Ok(disk.list(root)?.iter().any(|name| name != names::LOCK)),
    }
}

fn lock_existing(disk: &dyn Disk, root: &Path) -> Result<Box<dyn Lock>, StorageError> {
    let inaccessible = || StorageError::Inconsistent {
        directory: root.to_owned(),
        reason: "storage directory does not exist or is not accessible.".to_owned(),
    };
    if !disk.metadata(root).is_ok_and(|found| found.is_some_and(|metadata| metadata.is_directory)) {
        return Err(inaccessible());
    }
    match disk.try_lock(&root.join(names::LOCK), &os::holder()) {
        Ok(Locked::Ours(lock)) => Ok(lock),
        Ok(Locked::Theirs(holder)) => Err(StorageError::Locked { directory: root.to_owned(), holder }),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(inaccessible()),
        Err(error) => Err(StorageError::io(&root.join(names::LOCK))(error)),
    }
}

/// Finds out in which state a directory is.
fn analyze(disk: &dyn Disk, root: &Path) -> Result<State, StorageError> {
    let has = |name: &str| -> Result<bool, StorageError> {
        let path = root.join(name);
        Ok(disk.metadata(&path).map_err(StorageError::io(&path))?.is_some())
    };
    let inconsistent =
        |reason: &str| Err(StorageError::Inconsistent { directory: root.to_owned(), reason: reason.to_owned() });
    // releases before 0.13 kept their image here; later ones left a file of their own layout to stop them
    if has("image/fsimage")? {
        let path = root.join("image/fsimage");
        let bytes = disk.read(&path).map_err(StorageError::io(&path))?;
        let layout = bytes.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes));
        if layout >= LAST_BEFORE_UPGRADES {
            return Err(StorageError::TooOldToUpgrade(0));
        }
    }
    let current = has("current/VERSION")?;
    let previous = has(PREVIOUS)?;
    let mut found = Vec::new();
    for name in [LAST_CHECKPOINT_TMP, FINALIZED_TMP, PREVIOUS_TMP, REMOVED_TMP] {
        if has(name)? {
            found.push(name);
        }
    }
    match found[..] {
        [] if current => Ok(State::Normal),
        [] if previous => inconsistent("version file in current directory is missing."),
        [] => Ok(State::NotFormatted),
        [LAST_CHECKPOINT_TMP] => Ok(if current { State::CompleteCheckpoint } else { State::RecoverCheckpoint }),
        [FINALIZED_TMP] if previous => inconsistent("previous and finalized.tmpcannot exist together."),
        [FINALIZED_TMP] => Ok(State::CompleteFinalize),
        [PREVIOUS_TMP] if previous => inconsistent("previous and previous.tmp cannot exist together."),
        [PREVIOUS_TMP] => Ok(if current { State::CompleteUpgrade } else { State::RecoverUpgrade }),
        [REMOVED_TMP] if current == previous => {
            inconsistent("one and only one directory current or previous must be present when removed.tmp exists.")
        }
        [REMOVED_TMP] => Ok(if current { State::CompleteRollback } else { State::RecoverRollback }),
        _ => inconsistent("too many temporary directories."),
    }
}

/// The folder whose VERSION will be in `current` once the state is settled.
fn version_folder(state: State) -> Option<&'static str> {
    Some(match state {
        State::NotFormatted => return None,
        State::Normal
        | State::CompleteUpgrade
        | State::CompleteRollback
        | State::CompleteFinalize
        | State::CompleteCheckpoint => CURRENT,
        State::RecoverUpgrade => PREVIOUS_TMP,
        State::RecoverRollback => REMOVED_TMP,
        State::RecoverCheckpoint => LAST_CHECKPOINT_TMP,
    })
}

/// Completes or undoes a half-done transition. May itself be interrupted and done again.
fn settle(disk: &dyn Disk, root: &Path, state: State) -> io::Result<()> {
    let replace = |from: &str, to: &str| {
        let target = root.join(to);
        if disk.metadata(&target)?.is_some() {
            disk.remove_directory(&target)?;
        }
        disk.rename(&root.join(from), &target)
    };
    match state {
        State::NotFormatted | State::Normal => return Ok(()),
        State::CompleteUpgrade => replace(PREVIOUS_TMP, PREVIOUS)?,
        State::RecoverUpgrade => replace(PREVIOUS_TMP, CURRENT)?,
        State::CompleteRollback => disk.remove_directory(&root.join(REMOVED_TMP))?,
        State::RecoverRollback => replace(REMOVED_TMP, CURRENT)?,
        State::CompleteFinalize => disk.remove_directory(&root.join(FINALIZED_TMP))?,
        State::CompleteCheckpoint => replace(LAST_CHECKPOINT_TMP, PREVIOUS_CHECKPOINT)?,
        State::RecoverCheckpoint => replace(LAST_CHECKPOINT_TMP, CURRENT)?,
    }
    disk.sync_directory(root)
}

/// Makes an empty `current`.
pub(crate) fn clear(disk: &dyn Disk, root: &Path, mode: u32) -> Result<(), StorageError> {
    let current = root.join(CURRENT);
    let clear = || {
        if disk.metadata(&current)?.is_some() {
            disk.remove_directory(&current)?;
        }
        disk.create_directories(&current, mode)?;
        disk.set_mode(&current, mode)?;
        disk.sync_directory(root)
    };
    clear().map_err(StorageError::io(&current))
}
