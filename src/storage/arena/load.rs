//! An arena file being read: all checksums on all cores by plain reads, whose errors are errors, then the pages as private memory.

use super::Unfit;
use super::format::{
    BLOCK_BYTES, BUILD, Binding, HEADER_BYTES, Header, Identity, LogEnd, Manifest, decode_binding, page_checksum,
};
use crate::StorageError;
use mem::page::{CHUNK_PAGES, PAGE_BYTES, Pages};
use mem::persist::{Malformed, PageSets};
use os::disk::{Disk, File, Open};
use os::mapping;
use parking_lot::Mutex;
use record::StorageNumber;
use state::State;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// Pages that one thread reads at a time.
const BATCH_PAGES: u64 = 16;
/// Sets of more pages are mapped; others are copied.
const COPIED_PAGES: u32 = CHUNK_PAGES as u32;
/// A file whose storage numbers have come so far is not used, so that they never run out: an image begins anew.
const STORAGE_NUMBER_MAX: u32 = StorageNumber::MAX.0 / 4 * 3;

/// An arena file that says it is whole; its pages were not looked at.
#[derive(Debug)]
pub struct ArenaFile {
    path: PathBuf,
    file: Box<dyn File>,
    header: Header,
    manifest: Manifest,
    binding: Option<Binding>,
    length: u64,
}

/// A state that lies in an arena file.
pub struct Loaded {
    /// The state.
    pub state: State,
    /// Bytes of the file.
    pub bytes: u64,
}

fn read_exact(file: &dyn File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(())
}

impl ArenaFile {
    /// Opens a file and reads what it says of itself.
    ///
    /// # Errors
    /// It is not whole, or of another build.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<ArenaFile, Unfit> {
        let io = |error| Unfit::Storage(StorageError::io(path)(error));
        let file = disk.open(path, Open::Read).map_err(io)?;
        let length = file.length().map_err(io)?;
        let mut tail = [0; 2 * BLOCK_BYTES];
        let Some(manifest_offset) = length.checked_sub(tail.len() as u64).filter(|at| *at >= HEADER_BYTES as u64)
        else {
            return Err(Unfit::Damaged("its length".into()));
        };
        let mut header_block = vec![0; HEADER_BYTES];
        read_exact(&*file, &mut header_block, 0).map_err(io)?;
        let header = Header::decode(&header_block)?;
        if header.identity.build != BUILD {
            return Err(Unfit::Build);
        }
        read_exact(&*file, &mut tail, manifest_offset).map_err(io)?;
        let (manifest, binding) = tail.split_at(BLOCK_BYTES);
        let (manifest, binding) = (Manifest::decode(manifest)?, decode_binding(binding));
        if manifest.header != xxh3_64(&header_block) {
            return Err(Unfit::Damaged("the manifest is of another header".into()));
        }
        if manifest.rest.0 > length || header.manifest_offset(manifest.rest.0) != manifest_offset {
            return Err(Unfit::Damaged("its length".into()));
        }
        Ok(ArenaFile { path: path.to_owned(), file, header, manifest, binding, length })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Which state it is.
    pub fn identity(&self) -> &Identity {
        &self.header.identity
    }
    /// The image that was made from it.
    pub fn binding(&self) -> Option<Binding> {
        self.binding
    }
    /// The segments since the newest image to its last transaction.
    pub fn log_end(&self) -> Option<LogEnd> {
        self.manifest.log
    }
    /// Its bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    fn io(&self, error: io::Error) -> Unfit {
        Unfit::Storage(StorageError::io(&self.path)(error))
    }
    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>, Unfit> {
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Unfit::Damaged("its length".into()))?];
        read_exact(&*self.file, &mut bytes, offset).map_err(|error| self.io(error))?;
        Ok(bytes)
    }

    /// Compares all checksums and gives the state. `fresh` gives what is soft. `told` hears how many bytes were read so far.
    ///
    /// # Errors
    /// A checksum that differs, a page that cannot be read, content that does not fit together.
    pub fn load(&self, fresh: State, threads: usize, told: &(dyn Fn(u64) + Sync)) -> Result<Loaded, Unfit> {
        let rest = self.read(self.header.rest_offset(), self.manifest.rest.0)?;
        if xxh3_64(&rest) != self.manifest.rest.1 {
            return Err(Unfit::Damaged("what lies beside the pages".into()));
        }
        let table = self.read(self.header.rest_offset() + self.manifest.rest.0, self.header.table_bytes())?;
        if xxh3_64(&table) != self.manifest.table {
            return Err(Unfit::Damaged("the page table".into()));
        }
        self.verify(&table, threads, told)?;
        let malformed = |error: Malformed| Unfit::Damaged(error.to_string());
        let state = State::restore(fresh, self.page_sets()?, &rest).map_err(malformed)?;
        if state.blocks.storage_ceiling().0 > STORAGE_NUMBER_MAX {
            return Err(Unfit::StorageNumbers);
        }
        Ok(Loaded { state, bytes: self.length })
    }

    /// Reads all pages and compares their checksums.
    fn verify(&self, table: &[u8], threads: usize, told: &(dyn Fn(u64) + Sync)) -> Result<(), Unfit> {
        let (next, pages, failure) = (AtomicU64::new(0), self.header.pages(), Mutex::new(None));
        let work = || {
            let mut buffer = vec![0; BATCH_PAGES as usize * PAGE_BYTES];
            loop {
                let first = next.fetch_add(BATCH_PAGES, Ordering::Relaxed);
                if first >= pages || failure.lock().is_some() {
                    return;
                }
                let count = BATCH_PAGES.min(pages - first);
                if let Err(unfit) = self.verify_batch(table, first, &mut buffer[..count as usize * PAGE_BYTES]) {
                    *failure.lock() = Some(unfit);
                }
                told((first + count) * PAGE_BYTES as u64);
            }
        };
        std::thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(work))));
        failure.into_inner().map_or(Ok(()), Err)
    }
    fn verify_batch(&self, table: &[u8], first: u64, buffer: &mut [u8]) -> Result<(), Unfit> {
        let offset = HEADER_BYTES as u64 + first * PAGE_BYTES as u64;
        read_exact(&*self.file, buffer, offset).map_err(|error| self.io(error))?;
        for (number, page) in (first..).zip(buffer.chunks_exact(PAGE_BYTES)) {
            let entry = &table[number as usize * 8..][..8];
            if page_checksum(page, number, self.header.identity.txid).to_le_bytes() != *entry {
                return Err(Unfit::Damaged(format!("page {number}")));
            }
        }
        Ok(())
    }

    /// The pages as memory: large sets mapped, small ones copied.
    fn page_sets(&self) -> Result<PageSets, Unfit> {
        let mut sets = Vec::with_capacity(self.header.sets.len());
        let mut offset = HEADER_BYTES as u64;
        let malformed = |error: Malformed| Unfit::Damaged(error.to_string());
        for pages in &self.header.sets {
            let bytes = *pages as usize * PAGE_BYTES;
            sets.push(if *pages > COPIED_PAGES {
                let memory = self.file.map(offset, bytes, CHUNK_PAGES * PAGE_BYTES).map_err(|error| self.io(error))?;
                mapping::populate(&memory[..bytes]);
                Pages::from_mapping(memory, *pages).map_err(malformed)?
            } else {
                Pages::from_bytes(&self.read(offset, bytes as u64)?).map_err(malformed)?
            });
            offset += bytes as u64;
        }
        Ok(PageSets::new(sets))
    }
}
