//! Retention: which images and edits are no longer needed (Hadoop's `NNStorageRetentionManager`).

use crate::StorageError;
use crate::journal::local;
use crate::names::{self, Kind};
use os::disk::Disk;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Images (`dfs.namenode.num.checkpoints.retained`).
    pub images: usize,
    /// Transactions beyond those that the oldest kept image needs (`dfs.namenode.num.extra.edits.retained`).
    pub extra_edits: u64,
    /// Most segments with such transactions (`dfs.namenode.max.extra.edits.segments.retained`).
    pub extra_segments: usize,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { images: 2, extra_edits: 1_000_000, extra_segments: 10_000 }
    }
}

/// Removes old images from `images` and old edits from `edits` (both `current` folders). Returns what was removed and what could not be.
///
/// # Errors
/// A directory cannot be listed. Then nothing was removed.
pub fn purge(
    disk: &dyn Disk,
    images: &[PathBuf],
    edits: &[PathBuf],
    retention: Retention,
) -> Result<Purged, StorageError> {
    let Some(oldest) = oldest_image(disk, images, retention.images)? else { return Ok(Purged::default()) };
    let newest = oldest_image(disk, images, 1)?.unwrap_or(oldest);
    let keep_edits_from = edits_needed_from(disk, edits, oldest, retention)?;
    let mut purged = Purged::default();
    for current in images {
        for name in list(disk, current)? {
            if matches!(names::kind(&name), Kind::Image(txid) if txid < oldest) {
                purged.remove(disk, current.join(&name));
                let digest = current.join(names::digest(&name));
                if disk.metadata(&digest).is_ok_and(|found| found.is_some()) {
                    purged.remove(disk, digest);
                }
            }
            // what a save that was cut short has left; one that is under way is for a later transaction
            if matches!(names::kind(&name), Kind::ImageCheckpoint(txid) if txid < newest) {
                purged.remove(disk, current.join(&name));
            }
        }
    }
    for current in edits {
        for name in list(disk, current)? {
            // A file that is open under its own name is never touched here.
            if matches!(names::kind(&name), Kind::Finalized(first, last) if first < keep_edits_from && last < keep_edits_from)
                || matches!(names::kind(&name), Kind::InProgressAside(first) if first < keep_edits_from)
            {
                purged.remove(disk, current.join(&name));
            }
        }
    }
    Ok(purged)
}

/// What a purge has done.
#[derive(Debug, Default)]
pub struct Purged {
    /// Removed files.
    pub removed: Vec<PathBuf>,
    /// Files that could not be removed, with the reason; harmless.
    pub failed: Vec<(PathBuf, std::io::Error)>,
}

impl Purged {
    fn remove(&mut self, disk: &dyn Disk, path: PathBuf) {
        match disk.remove_file(&path) {
            Ok(()) => self.removed.push(path),
            Err(error) => self.failed.push((path, error)),
        }
    }
}

fn list(disk: &dyn Disk, current: &Path) -> Result<Vec<String>, StorageError> {
    disk.list(current).map_err(StorageError::io(current))
}

/// Transaction of the oldest image to keep; `None` if there is no image.
fn oldest_image(disk: &dyn Disk, images: &[PathBuf], keep: usize) -> Result<Option<Txid>, StorageError> {
    let mut found = Vec::new();
    for current in images {
        let of = |name: &String| if let Kind::Image(txid) = names::kind(name) { Some(txid) } else { None };
        found.extend(list(disk, current)?.iter().filter_map(of));
    }
    found.sort_unstable();
    found.dedup();
    let skip = found.len().saturating_sub(keep.max(1));
    Ok(found.get(skip).copied())
}

/// The first transaction whose edits are kept.
fn edits_needed_from(
    disk: &dyn Disk,
    edits: &[PathBuf],
    oldest: Txid,
    retention: Retention,
) -> Result<Txid, StorageError> {
    let required = oldest.next();
    let mut from = Txid(required.0.saturating_sub(retention.extra_edits));
    let folders: Vec<&Path> = edits.iter().map(PathBuf::as_path).collect();
    let mut extra = local::segments(disk, &folders)?;
    extra.retain(|segment| segment.last >= from && segment.first < required);
    if extra.len() > retention.extra_segments {
        let surplus = extra.len() - retention.extra_segments;
        // Never beyond what the image needs, however few segments may be kept.
        from = extra[surplus - 1].last.next().min(required);
    }
    Ok(from)
}
