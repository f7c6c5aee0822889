//! What the product asks of a disk. Every error is passed on as it comes; callers add the path.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Open {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A file for reading and writing that must not exist yet.
    CreateNew,
    /// A file for reading and writing, made empty if it exists.
    Truncate,
}

/// What is known of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Bytes of a file.
    pub length: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Time of the last change.
    pub modified: SystemTime,
}

/// Bytes of the file system that holds a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// All.
    pub total: u64,
    /// Those that this process may still use.
    pub available: u64,
}

/// Files and directories. Paths are absolute.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file.
    ///
    /// # Errors
    /// As the operating system's.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>>;
    /// Makes a directory and its missing parents, each with the given mode.
    ///
    /// # Errors
    /// As the operating system's.
    fn create_directories(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Sets the permission bits of a file or directory.
    ///
    /// # Errors
    /// As the operating system's.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Renames a file or directory; an existing file of the new name is replaced.
    ///
    /// # Errors
    /// As the operating system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name.
    ///
    /// # Errors
    /// As the operating system's.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// As the operating system's.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all below it.
    ///
    /// # Errors
    /// As the operating system's.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// As the operating system's.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// What is known of a path; `None` if there is nothing.
    ///
    /// # Errors
    /// As the operating system's, but for "not found".
    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>>;
    /// Makes names in a directory durable: creations, renames, removals.
    ///
    /// # Errors
    /// As the operating system's.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Room on the file system of a path.
    ///
    /// # Errors
    /// As the operating system's.
    fn space(&self, path: &Path) -> io::Result<Space>;
    /// Takes the lock on a file, as Java's `FileChannel.tryLock` (a POSIX record lock on the whole file). The file is made if missing,
    /// holds `holder` while the lock is held, and is removed when the [`Lock`] is dropped.
    /// Nobody else in this process may open that file meanwhile: closing it would release the lock.
    ///
    /// # Errors
    /// As the operating system's; a lock held by another is no error.
    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<Locked>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// As the operating system's.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, Open::Read)?;
        let mut bytes = vec![0; usize::try_from(file.length()?).map_err(io::Error::other)?];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// Outcome of [`Disk::try_lock`].
#[derive(Debug)]
pub enum Locked {
    /// The lock is ours until the value is dropped.
    Ours(Box<dyn Lock>),
    /// Somebody else has it; the first line of the file says who.
    Theirs(String),
}

/// A held lock. Dropping it removes the file and gives the lock up.
pub trait Lock: Send + Sync + Debug {}

/// An open file.
pub trait File: Send + Sync + Debug {
    /// A part of the file as memory of our own, see [`crate::mapping`]: `length` bytes from `offset` on (multiples of 4,096), at a multiple of `alignment`
    /// (a power of two, 4,096 or more), with zeros behind them up to the next one. Changes of the memory do not reach the file.
    ///
    /// # Errors
    /// As the operating system's.
    fn map(&self, offset: u64, length: usize, alignment: usize) -> io::Result<&'static mut [u8]> {
        crate::mapping::copy(&|bytes, at| self.read_at(bytes, at), offset, length, alignment)
    }
    /// Reads at an offset; fewer bytes than asked for are no error, 0 is the end.
    ///
    /// # Errors
    /// As the operating system's.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at an offset; fewer bytes than given are no error.
    ///
    /// # Errors
    /// As the operating system's.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Bytes of the file.
    ///
    /// # Errors
    /// As the operating system's.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file or extends it with zeros.
    ///
    /// # Errors
    /// As the operating system's.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Makes content and length durable (fdatasync).
    ///
    /// # Errors
    /// As the operating system's. What was written before a failed sync may be lost, and a later sync may not tell: never retry.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes content and all metadata durable (fsync).
    ///
    /// # Errors
    /// As [`File::sync_data`].
    fn sync_all(&self) -> io::Result<()>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// As [`File::write_at`]; `WriteZero` if nothing more can be written.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
