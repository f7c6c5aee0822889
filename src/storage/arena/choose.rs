//! Whether the newest arena file is what image and edits lead to. FORMAT.md gives the rules and their reasons.

use super::format::LogEnd;
use super::{ArenaFile, Unfit};
use crate::image::{self, Newest};
use crate::journal::local;
use crate::names::{self, Kind};
use crate::{StorageError, StorageInfo};
use os::disk::{Disk, Open};
use std::path::{Path, PathBuf};
use vocab::Txid;
use xxhash_rust::xxh3::Xxh3;

/// The newest arena file of several `current` folders, by its name.
pub fn candidate(disk: &dyn Disk, currents: &[PathBuf]) -> Option<PathBuf> {
    let of = |current: &PathBuf| {
        let names = disk.list(current).unwrap_or_default();
        let arenas = names.into_iter().filter_map(|name| match names::kind(&name) {
            Kind::Arena(txid) => Some((txid, current.join(name))),
            _ => None,
        });
        arenas.max_by_key(|(txid, _)| *txid)
    };
    currents.iter().filter_map(of).max_by_key(|(txid, _)| *txid).map(|(_, path)| path)
}

/// Opens an arena file and compares it with VERSION, the newest image and the edits.
///
/// # Errors
/// Why it is not to be used.
pub fn choose(
    disk: &dyn Disk,
    path: &Path,
    info: &StorageInfo,
    newest: &Newest,
    edits: &[PathBuf],
) -> Result<ArenaFile, Unfit> {
    let arena = ArenaFile::open(disk, path)?;
    let identity = arena.identity();
    let named = path.file_name().and_then(|name| name.to_str()).map(names::kind);
    if named != Some(Kind::Arena(identity.txid)) {
        return Err(Unfit::Damaged("its name is that of another transaction".into()));
    }
    if identity.info != *info {
        return Err(Unfit::Identity);
    }
    match newest.txid.cmp(&identity.txid) {
        std::cmp::Ordering::Greater => return Err(Unfit::NewerImage(newest.txid)),
        std::cmp::Ordering::Equal => check_image(disk, &arena, newest)?,
        std::cmp::Ordering::Less => check_log(disk, &arena, edits)?,
    }
    Ok(arena)
}

/// The image for the same transaction must be the one that was made from the file.
fn check_image(disk: &dyn Disk, arena: &ArenaFile, newest: &Newest) -> Result<(), Unfit> {
    for copy in &newest.copies {
        let name = copy.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let digest_name = names::digest(name);
        let path = copy.with_file_name(&digest_name);
        let text = disk.read(&path).map_err(StorageError::io(&path))?;
        let digest = image::read_digest_file(&text, &digest_name, name).ok();
        if digest.is_none() || digest != arena.binding() {
            return Err(Unfit::OtherImage(copy.clone()));
        }
    }
    Ok(())
}

/// Where there is no image for that transaction, the segment that ends with it must be the one that the file names.
fn check_log(disk: &dyn Disk, arena: &ArenaFile, edits: &[PathBuf]) -> Result<(), Unfit> {
    let wanted = arena.log_end().ok_or(Unfit::OtherEdits)?;
    let last = arena.identity().txid;
    let folders: Vec<&Path> = edits.iter().map(PathBuf::as_path).collect();
    let segments = local::segments(disk, &folders)?;
    let ends = segments.iter().filter(|segment| segment.first == wanted.first).flat_map(|segment| &segment.copies);
    for copy in ends.filter(|copy| copy.last == last) {
        if LogEnd::read(disk, &copy.path, wanted.first)? == wanted {
            return Ok(());
        }
    }
    Err(Unfit::OtherEdits)
}

impl LogEnd {
    /// Of the file of a finalized segment.
    ///
    /// # Errors
    /// The disk's.
    pub fn read(disk: &dyn Disk, path: &Path, first: Txid) -> Result<LogEnd, StorageError> {
        let sum = || {
            let file = disk.open(path, Open::Read)?;
            let (mut hash, mut buffer, mut length) = (Xxh3::new(), vec![0; 1 << 20], 0);
            loop {
                match file.read_at(&mut buffer, length)? {
                    0 => return Ok(LogEnd { first, length, checksum: hash.digest() }),
                    count => {
                        hash.update(&buffer[..count]);
                        length += count as u64;
                    }
                }
            }
        };
        sum().map_err(StorageError::io(path))
    }

    /// Of the finalized segment that ends with `last`, if there is one. Folders that cannot be read are passed over: the journal has dropped them.
    pub fn find(disk: &dyn Disk, edits: &[PathBuf], last: Txid) -> Option<LogEnd> {
        let in_folder = |folder: &PathBuf| {
            let segments = local::segments(disk, &[folder]).ok()?;
            let ends = segments.iter().filter_map(|s| Some((s.first, s.copies.iter().find(|copy| copy.last == last)?)));
            ends.filter_map(|(first, copy)| LogEnd::read(disk, &copy.path, first).ok()).next()
        };
        edits.iter().find_map(in_folder)
    }
}
