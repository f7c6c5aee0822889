//! The operating system itself.

use crate::clock::Clock;
use crate::disk::{Disk, File, Lock, Locked, Metadata, Open, Space};
use crate::random::Random;
use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The real disk.
#[derive(Debug, Default)]
pub struct RealDisk {
    /// Device and inode of files whose lock this disk holds. A record lock does not keep out its own process, and closing any
    /// descriptor of the file would give the lock up, so a second attempt must not even open it.
    held: Arc<Mutex<HashSet<(u64, u64)>>>,
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(how != Open::Read);
        match how {
            Open::Read | Open::Write => {}
            Open::CreateNew => _ = options.create_new(true),
            Open::Truncate => _ = options.create(true).truncate(true),
        }
        Ok(Box::new(RealFile(options.open(path)?)))
    }
    fn create_directories(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(mode).create(path)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match fs::metadata(path) {
            Ok(m) => Ok(Some(Metadata { length: m.len(), is_directory: m.is_dir(), modified: m.modified()? })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space { total: stat.f_blocks * stat.f_frsize, available: stat.f_bavail * stat.f_frsize })
    }

    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<Locked> {
        let mut held = self.held.lock();
        loop {
            if fs::metadata(path).is_ok_and(|m| held.contains(&(m.dev(), m.ino()))) {
                return Ok(Locked::Theirs(holder.to_owned()));
            }
            let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::ACCESS | rustix::io::Errno::AGAIN) => {
                    let text = fs::read(path).unwrap_or_default();
                    let text = String::from_utf8_lossy(&text);
                    return Ok(Locked::Theirs(text.lines().next().unwrap_or_default().to_owned()));
                }
                Err(error) => return Err(error.into()),
            }
            // The holder before us may have removed the file between our open and our lock: then nobody else would see our lock.
            let ours = file.metadata()?;
            if !fs::metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (ours.dev(), ours.ino())) {
                continue;
            }
            file.set_len(0)?;
            file.write_all_at(holder.as_bytes(), 0)?;
            let identity = (ours.dev(), ours.ino());
            held.insert(identity);
            return Ok(Locked::Ours(Box::new(RealLock {
                path: path.to_owned(),
                identity,
                held: self.held.clone(),
                _file: file,
            })));
        }
    }
}

#[derive(Debug)]
struct RealLock {
    path: PathBuf,
    identity: (u64, u64),
    held: Arc<Mutex<HashSet<(u64, u64)>>>,
    _file: fs::File,
}

impl Lock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        // A file that stays is harmless: it is the lock that counts. Only ours may be removed.
        if fs::metadata(&self.path).is_ok_and(|m| (m.dev(), m.ino()) == self.identity) {
            _ = fs::remove_file(&self.path);
        }
        held.remove(&self.identity);
    }
}

#[derive(Debug)]
struct RealFile(fs::File);

impl File for RealFile {
    fn map(&self, offset: u64, length: usize, alignment: usize) -> io::Result<&'static mut [u8]> {
        crate::mapping::map(&self.0, offset, length, alignment)
    }
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// The system's clocks.
#[derive(Debug)]
pub struct RealClock(Instant);

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock(Instant::now())
    }
}

impl Clock for RealClock {
    fn wall_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as i64)
    }
    fn monotonic_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }
}

/// The system's randomness.
#[derive(Debug)]
pub struct RealRandom;

impl Random for RealRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = &mut bytes[filled..];
            // SAFETY: the pointer and the length are those of one live, writable slice.
            let count = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
            filled += usize::try_from(count).unwrap_or(0);
        }
    }
}

/// `pid@host` of this process: what the lock file holds.
pub fn holder() -> String {
    format!("{}@{}", std::process::id(), rustix::system::uname().nodename().to_string_lossy())
}
