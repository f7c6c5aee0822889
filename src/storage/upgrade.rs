//! Upgrade, rollback and finalize of storage directories. Each is a few renames; what a crash leaves of them, `dirs` completes or undoes at the
//! next start.

use crate::dirs::{CURRENT, Directories, FINALIZED_TMP, PREVIOUS, PREVIOUS_TMP, REMOVED_TMP};
use crate::version::{self, StorageInfo};
use crate::{StorageError, dirs};
use os::Os;
use os::disk::Disk;
use std::io;
use std::path::{Path, PathBuf};
use vocab::LayoutVersion;
use vocab::layout::Feature;

/// The oldest layout that can be upgraded from.
const OLDEST: LayoutVersion = LayoutVersion(Feature::NamespaceQuota as i32);

/// Checks that an upgrade may begin: the layout is not too old, and no directory keeps the state from before an earlier upgrade.
///
/// # Errors
/// As said.
pub fn check(disk: &dyn Disk, directories: &Directories, layout: LayoutVersion) -> Result<(), StorageError> {
    check_not_too_old(layout)?;
    check_none_open(disk, &directories.folders())
}

/// Checks that files of a layout can be loaded at all.
///
/// # Errors
/// As said.
pub fn check_not_too_old(layout: LayoutVersion) -> Result<(), StorageError> {
    if OLDEST.newer_than(layout) { Err(StorageError::TooOldToUpgrade(layout.0)) } else { Ok(()) }
}

/// Checks that no directory keeps the state from before an upgrade. `folders` are their `current`s.
///
/// # Errors
/// As said.
pub fn check_none_open(disk: &dyn Disk, folders: &[PathBuf]) -> Result<(), StorageError> {
    for root in folders.iter().filter_map(|current| current.parent()) {
        if disk.metadata(&root.join(PREVIOUS)).map_err(StorageError::io(root))?.is_some() {
            let reason = "previous fs state should not exist during upgrade. Finalize or rollback first.".to_owned();
            return Err(StorageError::Inconsistent { directory: root.to_owned(), reason });
        }
    }
    Ok(())
}

/// The identity after an upgrade: this software's layout, a new cTime, and cluster and block pool ids if there were none before. An id that is
/// given counts only then.
pub fn identity(os: &Os, old: &StorageInfo, address: &str, cluster_id: Option<&str>) -> StorageInfo {
    let ctime = os.clock.wall_ms();
    if old.layout.supports(Feature::Federation) {
        return StorageInfo { layout: LayoutVersion::CURRENT, ctime, ..old.clone() };
    }
    let new = StorageInfo::new(os, address, cluster_id);
    StorageInfo { namespace_id: old.namespace_id, ctime, ..new }
}

/// Puts `current` of every directory aside as `previous.tmp`; the new `current` holds links to the files of the edit log, no more.
///
/// # Errors
/// As the disk's. The next start undoes what was done.
pub fn begin(directories: &Directories, os: &Os, mode: u32) -> Result<(), StorageError> {
    let disk = &*os.disk;
    directories.list.iter().try_for_each(|directory| {
        let root = &directory.location.root;
        put_aside(disk, root, mode).map_err(StorageError::io(root))
    })
}

fn put_aside(disk: &dyn Disk, root: &Path, mode: u32) -> io::Result<()> {
    let (current, aside) = (root.join(CURRENT), root.join(PREVIOUS_TMP));
    disk.rename(&current, &aside)?;
    disk.create_directories(&current, mode)?;
    disk.set_mode(&current, mode)?;
    for name in disk.list(&aside)?.iter().filter(|name| name.starts_with("edits")) {
        let path = aside.join(name);
        if disk.metadata(&path)?.is_some_and(|found| !found.is_directory) {
            disk.hard_link(&path, &current.join(name))?;
        }
    }
    disk.sync_directory(&current)?;
    disk.sync_directory(root)
}

/// Ends what [`begin`] has begun, once `current` of every directory has its image and VERSION: `previous.tmp` becomes `previous`.
///
/// # Errors
/// As the disk's. The next start does what is missing.
pub fn end(directories: &Directories, os: &Os) -> Result<(), StorageError> {
    directories.list.iter().try_for_each(|directory| {
        let root = &directory.location.root;
        os::durable::rename(&*os.disk, &root.join(PREVIOUS_TMP), &root.join(PREVIOUS)).map_err(StorageError::io(root))
    })
}

/// Deletes the state from before an upgrade; `false` if there was none.
///
/// # Errors
/// As the disk's. The next start deletes what is left.
pub fn finalize(disk: &dyn Disk, root: &Path) -> Result<bool, StorageError> {
    let (previous, doomed) = (root.join(PREVIOUS), root.join(FINALIZED_TMP));
    let finalize = || {
        if disk.metadata(&previous)?.is_none() {
            return Ok(false);
        }
        os::durable::rename(disk, &previous, &doomed)?;
        disk.remove_directory(&doomed)?;
        disk.sync_directory(root)?;
        Ok(true)
    };
    finalize().map_err(StorageError::io(root))
}

/// Brings back the state from before an upgrade wherever there is one, and returns those directories. Nothing is changed unless all of them can.
///
/// # Errors
/// No directory has such a state; one has it in a layout that is not this software's; or the disk fails, and the next start does what is missing.
pub fn roll_back(directories: &Directories, os: &Os) -> Result<Vec<PathBuf>, StorageError> {
    let disk = &*os.disk;
    let mut roots = Vec::new();
    for directory in &directories.list {
        let root = &directory.location.root;
        if directory.has_previous(disk).map_err(StorageError::io(root))? {
            let found = version::read(disk, root, &root.join(PREVIOUS))?;
            if found.layout != LayoutVersion::CURRENT {
                return Err(StorageError::RollbackLayout(found.layout.0));
            }
            roots.push(root.clone());
        }
    }
    if roots.is_empty() {
        return Err(StorageError::NothingToRollBack);
    }
    for root in &roots {
        bring_back(disk, root).map_err(StorageError::io(root))?;
    }
    Ok(roots)
}

fn bring_back(disk: &dyn Disk, root: &Path) -> io::Result<()> {
    let doomed = root.join(REMOVED_TMP);
    os::durable::rename(disk, &root.join(CURRENT), &doomed)?;
    os::durable::rename(disk, &root.join(PREVIOUS), &root.join(CURRENT))?;
    disk.remove_directory(&doomed)?;
    disk.sync_directory(root)
}

/// Makes an empty `current` in directories that have no VERSION, so that an upgrade can treat them like the others.
///
/// # Errors
/// As the disk's.
pub fn fill_unformatted(directories: &mut Directories, os: &Os, mode: u32) -> Result<(), StorageError> {
    for directory in directories.list.iter_mut().filter(|directory| !directory.formatted) {
        dirs::clear(&*os.disk, &directory.location.root, mode)?;
        directory.formatted = true;
    }
    Ok(())
}
