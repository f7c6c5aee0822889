//! A disk whose syncs of files do nothing, which the crash model must notice, or wait until they are let through.

use os::disk::{Disk, File, Locked, Metadata, Open, Space};
use os::sim::SimDisk;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

/// What becomes of syncs.
#[derive(Clone, Debug)]
pub enum Syncs {
    /// They say that they are done.
    Forgotten,
    /// They wait while the gate is closed.
    Behind(Arc<Gate>),
}

/// A gate, open at first.
#[derive(Debug, Default)]
pub struct Gate {
    closed: Mutex<bool>,
    moved: Condvar,
}

impl Gate {
    pub fn set(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.moved.notify_all();
    }
    fn pass(&self) {
        drop(self.moved.wait_while(self.closed.lock().unwrap(), |closed| *closed).unwrap());
    }
}

/// The disk.
#[derive(Debug)]
pub struct Spoiled(pub SimDisk, pub Syncs);

#[derive(Debug)]
struct SpoiledFile(Box<dyn File>, Syncs);

impl SpoiledFile {
    fn sync(&self) -> io::Result<()> {
        match &self.1 {
            Syncs::Forgotten => Ok(()),
            Syncs::Behind(gate) => {
                gate.pass();
                self.0.sync_all()
            }
        }
    }
}

impl Disk for Spoiled {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        Ok(Box::new(SpoiledFile(self.0.open(path, how)?, self.1.clone())))
    }
    fn create_directories(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.create_directories(path, mode)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.0.set_mode(path, mode)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.hard_link(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.0.remove_directory(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        self.0.metadata(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.sync_directory(path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.0.space(path)
    }
    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<Locked> {
        self.0.try_lock(path, holder)
    }
}

impl File for SpoiledFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }
}
