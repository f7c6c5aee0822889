//! Whether the newest arena file is what image and edits lead to. FORMAT.md gives the rules and their reasons.

use super::format::LogEnd;
use super::{ArenaFile, Unfit};
use crate::image::{self, Digest, Newest};
use crate::journal::local;
use crate::names::{self, Kind};
use crate::{StorageError, StorageInfo};
use os::disk::{Disk, Open};
use std::io;
use std::path::{Path, PathBuf};
use vocab::Txid;
use xxhash_rust::xxh3::Xxh3;

/// Most edits that are read to tell whether they are those of a file: as much as takes a second or two. With more, an arena file is used only
/// together with its image.
const EDITS_BYTES: u64 = 1 << 30;

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

/// The transaction that the name of an arena file tells.
pub fn named(path: &Path) -> Option<Txid> {
    match path.file_name().and_then(|name| name.to_str()).map(names::kind) {
        Some(Kind::Arena(txid)) => Some(txid),
        _ => None,
    }
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
    if named(path) != Some(identity.txid) {
        return Err(Unfit::Damaged("its name is that of another transaction".into()));
    }
    if identity.info != *info {
        return Err(Unfit::Identity);
    }
    match newest.txid.cmp(&identity.txid) {
        std::cmp::Ordering::Greater => return Err(Unfit::NewerImage(newest.txid)),
        std::cmp::Ordering::Equal => check_image(disk, &arena, newest)?,
        std::cmp::Ordering::Less => check_log(disk, &arena, newest, edits)?,
    }
    Ok(arena)
}

/// The image for the same transaction must be the one that was made from the file.
fn check_image(disk: &dyn Disk, arena: &ArenaFile, newest: &Newest) -> Result<(), Unfit> {
    for copy in &newest.copies {
        let digest = digest_of(disk, copy)?;
        if digest.is_none() || digest != arena.binding() {
            return Err(Unfit::OtherImage(copy.clone()));
        }
    }
    Ok(())
}

/// What the digest file beside an image says; `None` if that is not to be understood.
fn digest_of(disk: &dyn Disk, image: &Path) -> Result<Option<Digest>, StorageError> {
    let name = image.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digest_name = names::digest(name);
    let path = image.with_file_name(&digest_name);
    let text = disk.read(&path).map_err(StorageError::io(&path))?;
    Ok(image::read_digest_file(&text, &digest_name, name).ok())
}

/// What the digest files of all copies of an image say; `None` if one cannot be read or they differ.
pub fn digest_of_all(disk: &dyn Disk, image: &Newest) -> Option<Digest> {
    let mut digests = image.copies.iter().map(|copy| digest_of(disk, copy).ok().flatten());
    let first = digests.next()??;
    digests.all(|other| other == Some(first)).then_some(first)
}

/// Where there is no image for that transaction, the edits since the newest one must be those that the file was made from.
fn check_log(disk: &dyn Disk, arena: &ArenaFile, newest: &Newest, edits: &[PathBuf]) -> Result<(), Unfit> {
    let wanted = arena.log_end().ok_or(Unfit::OtherEdits)?;
    if wanted.first > newest.txid.next()
        || LogEnd::find(disk, edits, wanted.first, arena.identity().txid) != Some(wanted)
    {
        return Err(Unfit::OtherEdits);
    }
    Ok(())
}

impl LogEnd {
    /// Of the finalized segments from the one with transaction `from` to the one that ends with `last`; `None` if one of them is not there, if copies of
    /// one differ, or if they are too many to be read in passing. Folders that cannot be read are passed over: the journal has dropped them.
    pub fn find(disk: &dyn Disk, edits: &[PathBuf], from: Txid, last: Txid) -> Option<LogEnd> {
        let folders: Vec<&Path> = edits.iter().map(PathBuf::as_path).filter(|f| disk.list(f).is_ok()).collect();
        let mut segments = local::segments(disk, &folders).ok()?;
        segments.retain(|segment| segment.last >= from && segment.first <= last);
        let first = segments.first().map(|segment| segment.first).filter(|first| *first <= from)?;
        let (mut next, mut hash, mut length) = (first, Xxh3::new(), 0);
        for segment in segments {
            if segment.first != next {
                return None;
            }
            let copies = segment.copies.iter().filter(|copy| copy.last == segment.last);
            let mut sums = copies.filter_map(|copy| checksum(disk, &copy.path, EDITS_BYTES - length).ok());
            let (sum, bytes) = sums.next()?;
            if sums.any(|other| other != (sum, bytes)) {
                return None;
            }
            [segment.first.0, segment.last.0, bytes, sum].iter().for_each(|n| hash.update(&n.to_le_bytes()));
            length += bytes;
            next = segment.last.next();
        }
        (next == last.next()).then(|| LogEnd { first, length, checksum: hash.digest() })
    }
}

/// Checksum and length of a file of at most `most` bytes.
fn checksum(disk: &dyn Disk, path: &Path, most: u64) -> io::Result<(u64, u64)> {
    let file = disk.open(path, Open::Read)?;
    if file.length()? > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let (mut hash, mut buffer, mut length) = (Xxh3::new(), vec![0; 1 << 20], 0);
    loop {
        match file.read_at(&mut buffer, length)? {
            0 => return Ok((hash.digest(), length)),
            count => {
                hash.update(&buffer[..count]);
                length += count as u64;
            }
        }
    }
}
