//! The simulated disk as programs see it.

use super::world::{Fault, Inode, World, error};
use crate::disk::{Disk, File, Lock, Locked, Metadata, Open, Space};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    boot: u64,
}

impl SimDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk { world: Arc::new(Mutex::new(World::new(seed))), boot: 0 }
    }
    fn world(&self) -> MutexGuard<'_, World> {
        enter(&self.world, self.boot)
    }
    /// Number of calls so far that change or sync something.
    pub fn calls(&self) -> u64 {
        self.world().calls
    }
    /// Lets `fault` happen at the call of that number, counted from 1 since the start or the last crash.
    pub fn fault_at(&self, call: u64, fault: Fault) {
        self.world().faults.push((call, fault));
    }
    /// From now on every call that changes something under `path` fails.
    pub fn break_path(&self, path: &Path) {
        self.world().broken.push(path.to_owned());
    }
    /// Ends [`SimDisk::break_path`] for all paths.
    pub fn mend(&self) {
        self.world().broken.clear();
    }
    /// From now on every read under `path` fails.
    pub fn break_reads(&self, path: &Path) {
        self.world().unreadable.push(path.to_owned());
    }
    /// Whether a [`Fault::Stop`] has happened.
    pub fn stopped(&self) -> bool {
        self.world().stopped
    }
    /// Power failure and restart: what was synced is there, of the rest all, nothing, or a part. Locks are free, faults forgotten.
    /// Returns the disk of the next run; this one and all files and locks of the ended run are dead.
    #[must_use]
    pub fn crash(&self) -> SimDisk {
        let mut world = self.world.lock();
        world.crash();
        SimDisk { world: self.world.clone(), boot: world.boot }
    }
    /// A disk of its own with the same content, state and seed: for trying several ends of one history.
    pub fn fork(&self) -> SimDisk {
        let world = self.world();
        SimDisk { world: Arc::new(Mutex::new(world.fork())), boot: self.boot }
    }
}

/// The world as a handle of the given run sees it: once that run has ended, every call fails.
fn enter(world: &Mutex<World>, boot: u64) -> MutexGuard<'_, World> {
    let mut world = world.lock();
    world.caller_is_dead = world.boot != boot;
    world
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let mut world = self.world();
        let found = world.find(path);
        let inode = match (found, how) {
            (Ok(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(inode), _) => {
                if matches!(world.inode(inode), Inode::Directory { .. }) {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                inode
            }
            (Err(missing), Open::Read | Open::Write) => return Err(missing),
            (Err(_), Open::CreateNew | Open::Truncate) => {
                world.step_whole(path)?;
                let (parent, name) = world.place(path)?;
                let inode = world.add(Inode::file());
                world.name(vec![(parent, name, Some(inode))]);
                inode
            }
        };
        if how == Open::Truncate {
            world.step_whole(path)?;
            world.set_length(inode, 0);
        }
        world.check_read(Path::new(""))?;
        Ok(Box::new(SimFile {
            world: self.world.clone(),
            boot: self.boot,
            inode,
            path: path.to_owned(),
            writable: how != Open::Read,
        }))
    }
    fn create_directories(&self, path: &Path, _mode: u32) -> io::Result<()> {
        let mut world = self.world();
        let mut ancestors: Vec<&Path> = path.ancestors().collect();
        ancestors.reverse();
        for ancestor in ancestors {
            match world.find(ancestor) {
                Ok(inode) => _ = world.directory(inode)?,
                Err(_) => {
                    world.step_whole(ancestor)?;
                    let (parent, name) = world.place(ancestor)?;
                    let inode = world.add(Inode::Directory { view: BTreeMap::new(), durable: BTreeMap::new() });
                    world.name(vec![(parent, name, Some(inode))]);
                }
            }
        }
        Ok(())
    }
    fn set_mode(&self, path: &Path, _mode: u32) -> io::Result<()> {
        let mut world = self.world();
        world.step_whole(path)?;
        world.find(path).map(|_| ())
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        let inode = world.find(from)?;
        world.step_whole(from)?;
        let (old_parent, old_name) = world.place(from)?;
        let (new_parent, new_name) = world.place(to)?;
        if let Ok(target) = world.find(to) {
            let occupied = matches!(world.inode(target), Inode::Directory { view, .. } if !view.is_empty());
            if occupied {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
        }
        world.name(vec![(old_parent, old_name, None), (new_parent, new_name, Some(inode))]);
        Ok(())
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        let inode = world.find(from)?;
        world.step_whole(to)?;
        if world.find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (parent, name) = world.place(to)?;
        world.name(vec![(parent, name, Some(inode))]);
        Ok(())
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.find(path)?;
        world.step_whole(path)?;
        let (parent, name) = world.place(path)?;
        world.name(vec![(parent, name, None)]);
        Ok(())
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.remove_file(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut world = self.world();
        world.check_read(path)?;
        let inode = world.find(path)?;
        Ok(world.directory(inode)?.keys().cloned().collect())
    }
    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        let mut world = self.world();
        world.check_read(path)?;
        let Ok(inode) = world.find(path) else { return Ok(None) };
        let (length, is_directory, modified) = match world.inode(inode) {
            Inode::File { view, modified, .. } => (view.len() as u64, false, *modified),
            Inode::Directory { .. } => (0, true, 0),
        };
        Ok(Some(Metadata { length, is_directory, modified: UNIX_EPOCH + Duration::from_millis(modified) }))
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        let inode = world.find(path)?;
        world.directory(inode)?;
        world.step_whole(path)?;
        world.sync_directory(inode);
        Ok(())
    }
    fn space(&self, _path: &Path) -> io::Result<Space> {
        Ok(Space { total: 1 << 40, available: 1 << 40 })
    }
    fn try_lock(&self, path: &Path, holder: &str) -> io::Result<Locked> {
        if !self.world().locks.insert(path.to_owned()) {
            let text = self.read(path)?;
            return Ok(Locked::Theirs(String::from_utf8_lossy(&text).into_owned()));
        }
        let lock = SimLock { disk: self.clone(), path: path.to_owned() };
        self.open(path, Open::Truncate)?.write_all_at(holder.as_bytes(), 0)?;
        Ok(Locked::Ours(Box::new(lock)))
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        _ = self.disk.remove_file(&self.path);
        let mut world = self.disk.world();
        if !world.caller_is_dead {
            world.locks.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct SimFile {
    world: Arc<Mutex<World>>,
    boot: u64,
    inode: usize,
    path: PathBuf,
    writable: bool,
}

impl SimFile {
    fn sync(&self) -> io::Result<()> {
        let mut world = enter(&self.world, self.boot);
        match world.step(&self.path)? {
            None | Some(Fault::Short) => {
                world.sync_file(self.inode, false);
                Ok(())
            }
            // Whether a process that dies in a sync has what it asked for is decided by the crash.
            Some(Fault::Stop) => Err(error(Fault::Stop)),
            Some(fault) => {
                world.sync_file(self.inode, true);
                Err(error(fault))
            }
        }
    }
}

impl File for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = enter(&self.world, self.boot);
        world.check_read(&self.path)?;
        let Inode::File { view, .. } = world.inode(self.inode) else { return Ok(0) };
        let rest = view.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut world = enter(&self.world, self.boot);
        let taken = match world.step(&self.path)? {
            None => bytes.len(),
            Some(Fault::Short) => bytes.len().div_ceil(2),
            Some(Fault::Stop) => {
                world.write(self.inode, &bytes[..bytes.len() / 2], offset as usize);
                return Err(error(Fault::Stop));
            }
            Some(fault) => return Err(error(fault)),
        };
        world.write(self.inode, &bytes[..taken], offset as usize);
        Ok(taken)
    }
    fn length(&self) -> io::Result<u64> {
        let mut world = enter(&self.world, self.boot);
        world.check_read(&self.path)?;
        let Inode::File { view, .. } = world.inode(self.inode) else { return Ok(0) };
        Ok(view.len() as u64)
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut world = enter(&self.world, self.boot);
        world.step_whole(&self.path)?;
        world.set_length(self.inode, length as usize);
        Ok(())
    }
    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }
}
