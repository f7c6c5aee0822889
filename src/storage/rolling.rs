//! What a rolling upgrade does to the files of the storage directories: its rollback image gets the name of a usual one when the upgrade is
//! finalized, and becomes the newest of all, with no edits behind it, when it is rolled back. Every step may be done again after a crash.

use crate::image::{self, Newest, read_digest_file};
use crate::names::{self, Kind};
use crate::{StorageError, StorageInfo, arena, seen, version};
use os::Os;
use os::disk::Disk;
use os::durable;
use std::io;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// What segments of an upgrade that was rolled back are called from then on.
const TRASH: &str = ".trash";

/// Whether there is an image to go back to.
///
/// # Errors
/// The disk's.
pub fn has_rollback_image(disk: &dyn Disk, images: &[PathBuf]) -> Result<bool, StorageError> {
    let found = image::all_rollback(disk, images);
    Ok(!found.map_err(|failed| StorageError::Io { path: failed.current, source: failed.error })?.is_empty())
}

/// Deletes rollback images older than that of a transaction. Gives what could not be deleted.
///
/// # Errors
/// A folder cannot be listed.
pub fn purge(disk: &dyn Disk, images: &[PathBuf], newest: Txid) -> Result<Vec<(PathBuf, io::Error)>, StorageError> {
    let found = image::all_rollback(disk, images);
    let found = found.map_err(|failed| StorageError::Io { path: failed.current, source: failed.error })?;
    let mut failed = Vec::new();
    for path in found.into_iter().filter(|image| image.txid < newest).flat_map(|image| image.copies) {
        if let Err(error) = disk.remove_file(&path) {
            failed.push((path.clone(), error));
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // an orphan is only untidy
        _ = disk.remove_file(&path.with_file_name(names::digest(name)));
    }
    Ok(failed)
}

/// Ends a rolling upgrade whose end is in the log: VERSION of all `folders` tells the present layout, and rollback images are images like others.
/// Gives what could not be renamed.
///
/// # Errors
/// The disk's, where VERSION cannot be written or a folder cannot be listed.
pub fn finalize(
    os: &Os,
    folders: &[PathBuf],
    images: &[PathBuf],
    info: &StorageInfo,
) -> Result<Vec<(PathBuf, io::Error)>, StorageError> {
    folders.iter().try_for_each(|current| version::write(os, current, info))?;
    let disk = &*os.disk;
    let found = image::all_rollback(disk, images);
    let found = found.map_err(|failed| StorageError::Io { path: failed.current, source: failed.error })?;
    let mut failed = Vec::new();
    for Newest { txid, copies } in found {
        for copy in copies {
            if let Err(error) = rename_rollback(disk, &copy, txid) {
                failed.push((copy, error));
            }
        }
    }
    Ok(failed)
}

/// Gives a rollback image the name of a usual one.
fn rename_rollback(disk: &dyn Disk, path: &Path, txid: Txid) -> io::Result<()> {
    let (from, to) = (names::rollback_image(txid), names::image(txid));
    let current = path.parent().unwrap_or(path);
    let old = names::digest(&from);
    let digest = read_digest_file(&disk.read(&current.join(&old))?, &old, &from);
    let digest = digest.map_err(|error| io::Error::other(error.to_string()))?;
    image::file::give_name(disk, current, &from, &to, digest)?;
    durable::remove_file(disk, &current.join(old))
}

/// Where a rollback is done.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// All `current` folders.
    pub all: &'a [PathBuf],
    /// Those for images.
    pub images: &'a [PathBuf],
    /// Those for edits.
    pub edits: &'a [PathBuf],
}

/// Goes back to the rollback image of a transaction, once it is loaded: the segments after it are put aside, images after it deleted,
/// and it becomes the newest image. The renaming is the last step: until then a start with the same option does the rest. `tell` is called for
/// each segment that was put aside.
///
/// # Errors
/// The log has no segment that begins just behind the image, or the disk fails.
pub fn roll_back(
    os: &Os,
    places: Places<'_>,
    image: &Newest,
    info: &StorageInfo,
    tell: &mut dyn FnMut(&Path),
) -> Result<(), StorageError> {
    let disk = &*os.disk;
    for current in places.edits {
        discard(disk, current, image.txid, tell)?;
    }
    // what no image leads to would be missed by the next start
    for current in places.all {
        seen::write(disk, current, image.txid).map_err(StorageError::io(current))?;
        version::write(os, current, info)?;
    }
    arena::purge(disk, places.images, None);
    for current in places.images {
        for name in disk.list(current).map_err(StorageError::io(current))? {
            let doomed = match names::kind(&name) {
                Kind::Image(txid) => txid > image.txid,
                Kind::RollbackImage(txid) => txid != image.txid,
                _ => false,
            };
            if doomed {
                let path = current.join(&name);
                durable::remove_file(disk, &path).map_err(StorageError::io(&path))?;
                // an orphan is only untidy
                _ = disk.remove_file(&current.join(names::digest(&name)));
            }
        }
    }
    for copy in &image.copies {
        rename_rollback(disk, copy, image.txid).map_err(StorageError::io(copy))?;
    }
    Ok(())
}

/// Puts the segments after a transaction aside. Nothing is renamed if one of them reaches across it.
fn discard(disk: &dyn Disk, current: &Path, txid: Txid, tell: &mut dyn FnMut(&Path)) -> Result<(), StorageError> {
    let mut doomed = Vec::new();
    for name in disk.list(current).map_err(StorageError::io(current))? {
        let path = current.join(&name);
        match names::kind(&name) {
            Kind::Finalized(first, _) | Kind::InProgress(first) if first > txid => doomed.push(path),
            Kind::Finalized(_, last) if last > txid => {
                let reason = format!("a segment reaches beyond transaction {txid} of the rollback image");
                return Err(StorageError::Replay { path, offset: 0, expected: txid.next(), reason });
            }
            _ => {}
        }
    }
    // the last first: what is left after a crash is still without gaps
    doomed.sort_by(|a, b| b.cmp(a));
    for path in doomed {
        let mut aside = path.clone().into_os_string();
        aside.push(TRASH);
        durable::rename(disk, &path, Path::new(&aside)).map_err(StorageError::io(&path))?;
        tell(&path);
    }
    Ok(())
}

/// Whether an earlier try has put the segment behind a transaction aside already.
///
/// # Errors
/// The disk's.
pub fn is_discarded(disk: &dyn Disk, edits: &[PathBuf], first: Txid) -> Result<bool, StorageError> {
    for current in edits {
        let names = disk.list(current).map_err(StorageError::io(current))?;
        let begins = |name: &String| {
            let name = name.strip_suffix(TRASH)?;
            match names::kind(name) {
                Kind::Finalized(begin, _) | Kind::InProgress(begin) => Some(begin == first),
                _ => None,
            }
        };
        if names.iter().filter_map(begins).any(|begins| begins) {
            return Ok(true);
        }
    }
    Ok(false)
}
