//! An arena file being written: header, pages in order, rest, page table, and the manifest once all of that is durable.

use super::format::{
    BLOCK_BYTES, BUILD, Binding, HEADER_BYTES, Header, Identity, LogEnd, Manifest, encode_binding, page_checksum,
};
use crate::names::{self, Kind};
use crate::{StorageError, StorageInfo};
use mem::page::PAGE_BYTES;
use os::disk::{Disk, File, Open};
use os::durable;
use std::io;
use std::path::{Path, PathBuf};
use vocab::Txid;
use xxhash_rust::xxh3::xxh3_64;

/// The kernel is made to write so often: many small bursts disturb the edit log less than one large one.
const SYNC_BYTES: u64 = 32 << 20;

/// What must stay free beside the file and an image of its size.
const ROOM_BYTES: u64 = 64 << 20;

/// Writes one file under its temporary name.
struct Writer<'d> {
    disk: &'d dyn Disk,
    current: PathBuf,
    file: Box<dyn File>,
    header: Header,
    header_checksum: u64,
    table: Vec<u8>,
    written: u64,
    synced: u64,
}

impl<'d> Writer<'d> {
    /// Begins the file for the state at `txid` under its temporary name in a `current` folder. `sets` says how many pages there are.
    ///
    /// # Errors
    /// The disk's; an identity of more than a page.
    fn create(
        disk: &'d dyn Disk,
        current: &Path,
        info: &StorageInfo,
        txid: Txid,
        sets: Vec<u32>,
    ) -> Result<Writer<'d>, StorageError> {
        let path = current.join(names::arena_checkpoint(txid));
        let header = Header { identity: Identity { build: BUILD.to_owned(), info: info.clone(), txid }, sets };
        let long = || StorageError::io(&path)(io::ErrorKind::InvalidInput.into());
        let block = header.encode().ok_or_else(long)?;
        let file = disk.open(&path, Open::Truncate).map_err(StorageError::io(&path))?;
        file.write_all_at(&block, 0).map_err(StorageError::io(&path))?;
        let (header_checksum, current) = (xxh3_64(&block), current.to_owned());
        Ok(Writer { disk, current, file, header, header_checksum, table: Vec::new(), written: 0, synced: 0 })
    }

    fn txid(&self) -> Txid {
        self.header.identity.txid
    }
    fn path(&self) -> PathBuf {
        self.current.join(names::arena_checkpoint(self.txid()))
    }
    fn put(&self, bytes: &[u8], offset: u64) -> Result<(), StorageError> {
        self.file.write_all_at(bytes, offset).map_err(StorageError::io(&self.path()))
    }
    fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_all().map_err(StorageError::io(&self.path()))
    }

    /// Writes the next pages: whole ones, in order of their sets.
    ///
    /// # Errors
    /// The disk's.
    fn pages(&mut self, pages: &[u8]) -> Result<(), StorageError> {
        debug_assert!(pages.len().is_multiple_of(PAGE_BYTES));
        let first = self.written / PAGE_BYTES as u64;
        for (number, page) in (first..).zip(pages.chunks_exact(PAGE_BYTES)) {
            self.table.extend(page_checksum(page, number, self.header.identity.txid).to_le_bytes());
        }
        self.put(pages, HEADER_BYTES as u64 + self.written)?;
        self.written += pages.len() as u64;
        if self.written - self.synced >= SYNC_BYTES {
            self.file.sync_data().map_err(StorageError::io(&self.path()))?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Writes what is left, makes all of it durable, and gives the file its name. Gives its path and length.
    ///
    /// # Errors
    /// The disk's.
    fn finish(self, rest: &[u8], log: Option<LogEnd>) -> Result<(PathBuf, u64), StorageError> {
        assert_eq!(self.written, self.header.pages() * PAGE_BYTES as u64, "as many pages as the header says");
        let (rest_offset, rest_bytes) = (self.header.rest_offset(), rest.len() as u64);
        self.put(rest, rest_offset)?;
        self.put(&self.table, rest_offset + rest_bytes)?;
        self.sync()?;
        let manifest = Manifest {
            header: self.header_checksum,
            rest: (rest_bytes, xxh3_64(rest)),
            table: xxh3_64(&self.table),
            log,
        };
        let at = self.header.manifest_offset(rest_bytes);
        let length = at + 2 * BLOCK_BYTES as u64;
        self.put(&manifest.encode(), at)?;
        self.file.set_length(length).map_err(StorageError::io(&self.path()))?;
        self.sync()?;
        let path = self.current.join(names::arena(self.txid()));
        durable::rename(self.disk, &self.path(), &path).map_err(StorageError::io(&path))?;
        Ok((path, length))
    }
}

/// Why no file was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The pages are gone: what had to be kept of them found no room.
    #[error("the pool for pages that change meanwhile is full")]
    PoolFull,
    /// The file, and an image from it, might leave no room for edits.
    #[error("{available} bytes are free where {needed} are needed, so that edits have room")]
    NoRoom {
        /// Bytes free.
        available: u64,
        /// Bytes that must be.
        needed: u64,
    },
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A frozen state, as a writer sees it.
pub struct Frozen<'f> {
    /// What lies beside the pages.
    pub rest: &'f [u8],
    /// Pages in each set.
    pub sets: Vec<u32>,
    /// Appends the next pages of a set, none at its end. `None` if they are gone.
    pub next: &'f mut dyn FnMut(usize, &mut Vec<u8>) -> Option<u32>,
    /// Finds the end of the log that leads to the state; asked for when the pages are written.
    pub log_end: &'f mut dyn FnMut() -> Option<LogEnd>,
}

impl Frozen<'_> {
    /// Bytes of the pages.
    fn bytes(&self) -> u64 {
        self.sets.iter().map(|pages| u64::from(*pages) * PAGE_BYTES as u64).sum()
    }
}

/// Writes the file of a frozen state. Gives its path and length; what fails leaves nothing.
///
/// # Errors
/// See [`WriteError`].
pub fn write(
    disk: &dyn Disk,
    current: &Path,
    info: &StorageInfo,
    txid: Txid,
    frozen: Frozen<'_>,
) -> Result<(PathBuf, u64), WriteError> {
    let written = write_pages(disk, current, info, txid, frozen);
    if written.is_err() {
        discard(disk, current, txid);
    }
    written
}

fn write_pages(
    disk: &dyn Disk,
    current: &Path,
    info: &StorageInfo,
    txid: Txid,
    frozen: Frozen<'_>,
) -> Result<(PathBuf, u64), WriteError> {
    let (needed, room) = (2 * frozen.bytes() + ROOM_BYTES, disk.space(current).map_err(StorageError::io(current))?);
    if room.available < needed {
        return Err(WriteError::NoRoom { available: room.available, needed });
    }
    let mut writer = Writer::create(disk, current, info, txid, frozen.sets.clone())?;
    let mut buffer = Vec::new();
    for set in 0..frozen.sets.len() {
        while (frozen.next)(set, &mut buffer).ok_or(WriteError::PoolFull)? > 0 {
            writer.pages(&buffer)?;
            buffer.clear();
        }
    }
    let log_end = (frozen.log_end)();
    Ok(writer.finish(frozen.rest, log_end)?)
}

/// Says which image was made from an arena file. To be done before that image gets its name.
///
/// # Errors
/// The disk's.
pub fn bind(disk: &dyn Disk, path: &Path, image: &Binding) -> Result<(), StorageError> {
    let write = || {
        let file = disk.open(path, Open::Write)?;
        let at = file.length()?.saturating_sub(BLOCK_BYTES as u64);
        file.write_all_at(&encode_binding(image), at)?;
        file.sync_all()
    };
    write().map_err(StorageError::io(path))
}

/// Removes what an attempt has left. Failures do not matter: the next purge tries again.
fn discard(disk: &dyn Disk, current: &Path, txid: Txid) {
    _ = disk.remove_file(&current.join(names::arena_checkpoint(txid)));
}

/// Removes all arena files but the one for `keep`, and what attempts have left. Gives what was removed.
pub fn purge(disk: &dyn Disk, currents: &[PathBuf], keep: Option<Txid>) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for current in currents {
        for name in disk.list(current).unwrap_or_default() {
            let old = match names::kind(&name) {
                Kind::Arena(txid) => Some(txid) != keep,
                Kind::ArenaCheckpoint(_) => true,
                _ => false,
            };
            if old && disk.remove_file(&current.join(&name)).is_ok() {
                removed.push(current.join(name));
            }
        }
    }
    removed
}
