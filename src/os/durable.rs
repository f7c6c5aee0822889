//! Files that are replaced as a whole.

use crate::disk::{Disk, Open};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file that [`replace`] writes first: the target's with `.tmp` behind it, as Hadoop's `AtomicFileOutputStream`.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Replaces a file by new content: after a crash it has the old content or the new one. When this returns it has the new one for good.
///
/// # Errors
/// As the operating system's; the temporary file may be left.
pub fn replace(disk: &dyn Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary(path);
    let file = disk.open(&temporary, Open::Truncate)?;
    file.write_all_at(content, 0)?;
    file.sync_all()?;
    drop(file);
    rename(disk, &temporary, path)
}

/// Renames within a directory and makes it durable.
///
/// # Errors
/// As the operating system's.
pub fn rename(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    disk.rename(from, to)?;
    sync_parent(disk, to)
}

/// Removes a file and makes it durable.
///
/// # Errors
/// As the operating system's.
pub fn remove_file(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    disk.remove_file(path)?;
    sync_parent(disk, path)
}

/// Makes the name of a file durable.
///
/// # Errors
/// As the operating system's.
pub fn sync_parent(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => disk.sync_directory(parent),
        None => Ok(()),
    }
}
