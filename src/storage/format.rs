//! Formatting: a new, empty file system in all directories.

use crate::StorageError;
use crate::dirs::{self, Directories, Location};
use crate::seen;
use crate::version::{self, StorageInfo};
use os::Os;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// Whether to format although something is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// Yes.
    Overwrite,
    /// No.
    Keep,
}

/// Directories in which something is already: what a user must be asked about.
///
/// # Errors
/// As the disk's.
pub fn with_data(locations: &[Location], os: &Os) -> Result<Vec<PathBuf>, StorageError> {
    let mut found = Vec::new();
    for location in locations {
        if dirs::has_data(&*os.disk, &location.root).map_err(StorageError::io(&location.root))? {
            found.push(location.root.clone());
        }
    }
    Ok(found)
}

/// Formats all directories for the file system `info`. `write_image` writes the image of transaction 0 with its digest into a `current` folder;
/// VERSION comes last, so that a directory counts as formatted only when it is whole. Returns the directories, still locked.
///
/// # Errors
/// Something is there and must be kept; a directory is held by another process; the disk fails.
pub fn format(
    locations: &[Location],
    info: &StorageInfo,
    existing: Existing,
    mode: u32,
    os: &Os,
    write_image: &mut dyn FnMut(&Path) -> Result<(), StorageError>,
) -> Result<Directories, StorageError> {
    let occupied = with_data(locations, os)?;
    if existing == Existing::Keep
        && let Some(root) = occupied.first()
    {
        return Err(StorageError::Format(format!("Data exists in {}. Not formatting.", root.display())));
    }
    let mut directories = Directories::open_for_format(locations, os, mode)?;
    for directory in &directories.list {
        let current = directory.current();
        dirs::clear(&*os.disk, &directory.location.root, mode)?;
        if directory.location.roles.image {
            write_image(&current)?;
        }
        seen::write(&*os.disk, &current, Txid(0)).map_err(StorageError::io(&current))?;
    }
    for directory in &mut directories.list {
        version::write(os, &directory.current(), info)?;
        directory.formatted = true;
        let root = &directory.location.root;
        os::durable::sync_parent(&*os.disk, root).map_err(StorageError::io(root))?;
    }
    directories.info = Some(info.clone());
    Ok(directories)
}
