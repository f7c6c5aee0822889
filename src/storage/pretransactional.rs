//! Directories of before transaction ids (layouts up to -37, releases up to 1.x and 0.22): one `fsimage`, one or two logs, and the time of the
//! last checkpoint in `fstime`.

use crate::StorageError;
use crate::dirs::Directories;
use crate::journal::reader::SegmentReader;
use crate::replay::ReplayError;
use crate::version;
use edit::Record;
use os::disk::Disk;
use std::path::{Path, PathBuf};
use vocab::layout::Feature;
use vocab::{LayoutVersion, Txid};

const IMAGE: &str = "fsimage";
const EDITS: &str = "edits";
const EDITS_NEW: &str = "edits.new";
const TIME: &str = "fstime";

/// What to load from such directories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// The image.
    pub image: PathBuf,
    /// Its digest in hexadecimal digits, where VERSION has it.
    pub digest: Option<String>,
    /// The logs, in order.
    pub edits: Vec<PathBuf>,
}

/// The newest directory of one kind.
struct Newest {
    time: i64,
    current: PathBuf,
    root: PathBuf,
}

/// Chooses image and logs: those of the latest checkpoint, which must be the same for both.
///
/// # Errors
/// A kind of file is in no directory; or image and logs are of different checkpoints.
pub fn find(disk: &dyn Disk, directories: &Directories, layout: LayoutVersion) -> Result<Files, StorageError> {
    let (mut image, mut edits): (Option<Newest>, Option<Newest>) = (None, None);
    let (mut image_roots, mut edits_roots) = (Vec::new(), Vec::new());
    for directory in directories.list.iter().filter(|directory| directory.formatted) {
        let (current, root) = (directory.current(), &directory.location.root);
        let time = time(disk, &current)?;
        let look = |name: &str, roots: &mut Vec<String>, newest: &mut Option<Newest>| {
            roots.push(root.display().to_string());
            let there = exists(disk, &current.join(name))?;
            if there && newest.as_ref().is_none_or(|found| found.time < time) {
                *newest = Some(Newest { time, current: current.clone(), root: root.clone() });
            }
            Ok(())
        };
        if directory.location.roles.image {
            look(IMAGE, &mut image_roots, &mut image)?;
        }
        if directory.location.roles.edits {
            look(EDITS, &mut edits_roots, &mut edits)?;
        }
    }
    let nowhere = |what: &str, roots: &[String]| {
        StorageError::Pretransactional(format!("{what} file is not found in [{}]", roots.join(", ")))
    };
    let image = image.ok_or_else(|| nowhere("Image", &image_roots))?;
    let edits = edits.ok_or_else(|| nowhere("Edits", &edits_roots))?;
    if image.time != edits.time {
        return Err(StorageError::Pretransactional(format!(
            "Inconsistent storage detected, image and edits checkpoint times do not match. image checkpoint time = {}edits checkpoint time = {}",
            image.time, edits.time
        )));
    }
    let digest = if layout.supports(Feature::FsimageChecksum) { Some(digest(disk, &image)?) } else { None };
    let mut logs = vec![edits.current.join(EDITS)];
    let newer = edits.current.join(EDITS_NEW);
    if exists(disk, &newer)? {
        logs.push(newer);
    }
    Ok(Files { image: image.current.join(IMAGE), digest, edits: logs })
}

fn exists(disk: &dyn Disk, path: &Path) -> Result<bool, StorageError> {
    Ok(disk.metadata(path).map_err(StorageError::io(path))?.is_some())
}

/// The time of the last checkpoint; 0 without a file.
fn time(disk: &dyn Disk, current: &Path) -> Result<i64, StorageError> {
    let path = current.join(TIME);
    if !exists(disk, &path)? {
        return Ok(0);
    }
    let bytes = disk.read(&path).map_err(StorageError::io(&path))?;
    let number = bytes.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
    number.ok_or_else(|| StorageError::Pretransactional(format!("{} is cut short", path.display())))
}

fn digest(disk: &dyn Disk, image: &Newest) -> Result<String, StorageError> {
    let text = version::property(disk, &image.root, &image.current, "imageMD5Digest")?;
    text.ok_or_else(|| StorageError::Inconsistent {
        directory: image.root.clone(),
        reason: format!(
            "Message digest property imageMD5Digest not set for storage directory {}",
            image.root.display()
        ),
    })
}

/// Applies all records of the logs; `max` is the largest record allowed. Returns the transaction that the result counts as: in Hadoop all records
/// of one log count as one transaction.
///
/// # Errors
/// Damage in a log, or what `apply` says. What was applied before stays so.
pub fn replay<E>(
    disk: &dyn Disk,
    logs: &[PathBuf],
    max: usize,
    apply: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Txid, ReplayError<E>> {
    let mut last = Txid(0);
    for path in logs {
        let unreadable =
            |offset, reason: String| StorageError::Replay { path: path.clone(), offset, expected: last.next(), reason };
        let mut reader = SegmentReader::open(disk, path, max).map_err(|error| unreadable(0, error.to_string()))?;
        let mut reached = last;
        loop {
            let offset = reader.offset();
            let Some(frame) = reader.next().map_err(|error| unreadable(offset, error.to_string()))? else { break };
            reached = if frame.txid == Txid(0) { last.next() } else { frame.txid };
            apply(frame.record).map_err(|error| ReplayError::Apply {
                txid: reached,
                offset,
                path: path.display().to_string(),
                error,
            })?;
        }
        last = reached;
    }
    Ok(last)
}
