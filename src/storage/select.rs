//! What a load starts from: which directories may be used, and how far the edits must reach.

use crate::dirs::Directories;
use crate::{StorageError, seen};
use os::disk::Disk;
use std::path::PathBuf;
use vocab::{LayoutVersion, Txid};

/// What the directories say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inspection {
    /// `current` folders whose images may be loaded.
    pub image_folders: Vec<PathBuf>,
    /// The highest `seen_txid`: edits must reach it.
    pub seen: Txid,
    /// Whether a directory had no VERSION, so that the namespace should be saved after the load.
    pub save_wanted: bool,
    /// Whether no directory keeps an image of before an upgrade.
    pub upgrade_finalized: bool,
    /// Folders that cannot be used, with the reason.
    pub unusable: Vec<(PathBuf, String)>,
}

/// Looks at all directories.
///
/// Quirk: seen_txid_unreadable: images beside a `seen_txid` that cannot be read do not count, as in Hadoop; where that leaves none, the message
/// speaks of images.
///
/// # Errors
/// As the disk's.
pub fn inspect(disk: &dyn Disk, directories: &Directories) -> Result<Inspection, StorageError> {
    let mut inspection = Inspection { upgrade_finalized: true, ..Inspection::default() };
    for directory in &directories.list {
        let current = directory.current();
        if !directory.formatted {
            inspection.save_wanted = true;
            continue;
        }
        match seen::read(disk, &current) {
            Ok(txid) => inspection.seen = inspection.seen.max(txid),
            Err(error) => {
                inspection.unusable.push((current, error.to_string()));
                continue;
            }
        }
        inspection.upgrade_finalized &= !directory.has_previous(disk).map_err(StorageError::io(&current))?;
        if directory.location.roles.image {
            inspection.image_folders.push(current);
        }
    }
    Ok(inspection)
}

impl Inspection {
    /// The error of a load that finds no image.
    pub fn no_image(&self) -> StorageError {
        let reasons: Vec<_> = self.unusable.iter().map(|(_, reason)| format!("\n{reason}")).collect();
        StorageError::NoImage(reasons.concat())
    }
}

/// Checks that a regular start may load files of this layout.
///
/// # Errors
/// An older layout needs `-upgrade` or `-rollingUpgrade started`.
pub fn check_layout(layout: LayoutVersion) -> Result<(), StorageError> {
    if layout == LayoutVersion::CURRENT { Ok(()) } else { Err(StorageError::OldLayout(layout.0)) }
}
