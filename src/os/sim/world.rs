//! The state behind a simulated disk: what programs see, what is durable, and what lies between.

use super::Sequence;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Writes are torn at multiples of this.
const SECTOR: usize = 512;

/// What happens at a chosen call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The process dies: the call is done in part or not at all, every later one fails.
    Stop,
    /// The call fails with EIO. A sync that fails so has lost some of the writes it was asked to keep, and a later sync succeeds.
    Io,
    /// The call fails with ENOSPC.
    NoSpace,
    /// A write takes only half of the bytes; other calls are not affected.
    Short,
}

/// A change of a file since its last sync.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Inode {
    File { view: Vec<u8>, durable: Vec<u8>, pending: Vec<Change>, modified: u64 },
    Directory { view: BTreeMap<String, usize>, durable: BTreeMap<String, usize> },
}

impl Inode {
    /// An empty file.
    pub fn file() -> Inode {
        Inode::File { view: Vec::new(), durable: Vec::new(), pending: Vec::new(), modified: 0 }
    }
}

/// One change of names, whole or not at all: directory, name, new inode.
#[derive(Clone, Debug)]
struct Naming(Vec<(usize, String, Option<usize>)>);

#[derive(Debug)]
pub(super) struct World {
    pub sequence: Sequence,
    inodes: Vec<Inode>,
    namings: Vec<Naming>,
    pub calls: u64,
    pub faults: Vec<(u64, Fault)>,
    pub stopped: bool,
    /// Number of the present run; handles of earlier runs are dead.
    pub boot: u64,
    /// Whether the call in progress comes from a handle of an earlier run.
    pub caller_is_dead: bool,
    pub broken: Vec<PathBuf>,
    pub unreadable: Vec<PathBuf>,
    pub locks: HashSet<PathBuf>,
}

pub(super) const ROOT: usize = 0;

impl World {
    pub fn new(seed: u64) -> World {
        World {
            sequence: Sequence(seed),
            inodes: vec![Inode::Directory { view: BTreeMap::new(), durable: BTreeMap::new() }],
            namings: Vec::new(),
            calls: 0,
            faults: Vec::new(),
            stopped: false,
            boot: 0,
            caller_is_dead: false,
            broken: Vec::new(),
            unreadable: Vec::new(),
            locks: HashSet::new(),
        }
    }

    /// Counts a call that changes something; answers with the fault that is to happen at it, if any.
    pub fn step(&mut self, path: &Path) -> io::Result<Option<Fault>> {
        if self.stopped || self.caller_is_dead {
            return Err(io::Error::other("the simulated process has stopped"));
        }
        self.calls += 1;
        if self.broken.iter().any(|broken| path.starts_with(broken)) {
            return Ok(Some(Fault::Io));
        }
        let fault = self.faults.iter().find(|(call, _)| *call == self.calls).map(|(_, fault)| *fault);
        self.stopped = fault == Some(Fault::Stop);
        Ok(fault)
    }
    /// For calls that happen whole or not at all.
    pub fn step_whole(&mut self, path: &Path) -> io::Result<()> {
        match self.step(path)? {
            None | Some(Fault::Short) => Ok(()),
            Some(fault) => Err(error(fault)),
        }
    }
    pub fn check_read(&self, path: &Path) -> io::Result<()> {
        if self.stopped || self.caller_is_dead || self.unreadable.iter().any(|bad| path.starts_with(bad)) {
            return Err(error(Fault::Io));
        }
        Ok(())
    }

    pub fn inode(&mut self, number: usize) -> &mut Inode {
        &mut self.inodes[number]
    }
    pub fn directory(&mut self, number: usize) -> io::Result<&mut BTreeMap<String, usize>> {
        match &mut self.inodes[number] {
            Inode::Directory { view, .. } => Ok(view),
            Inode::File { .. } => Err(io::ErrorKind::NotADirectory.into()),
        }
    }
    pub fn find(&mut self, path: &Path) -> io::Result<usize> {
        let mut at = ROOT;
        for component in path.components() {
            if let Component::Normal(name) = component {
                at = *self.directory(at)?.get(&*name.to_string_lossy()).ok_or(io::ErrorKind::NotFound)?;
            }
        }
        Ok(at)
    }
    /// The directory and the last name of a path.
    pub fn place(&mut self, path: &Path) -> io::Result<(usize, String)> {
        let parent = self.find(path.parent().unwrap_or(Path::new("/")))?;
        self.directory(parent)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((parent, name.to_string_lossy().into_owned()))
    }
    pub fn add(&mut self, inode: Inode) -> usize {
        self.inodes.push(inode);
        self.inodes.len() - 1
    }

    /// Changes names, visibly at once and durably after a sync of one of the directories.
    pub fn name(&mut self, changes: Vec<(usize, String, Option<usize>)>) {
        for (directory, name, inode) in &changes {
            if let Inode::Directory { view, .. } = &mut self.inodes[*directory] {
                set(view, name, *inode);
            }
        }
        self.namings.push(Naming(changes));
    }

    pub fn write(&mut self, number: usize, bytes: &[u8], offset: usize) {
        self.change(number, Change::Write { offset, bytes: bytes.to_vec() });
    }
    pub fn set_length(&mut self, number: usize, length: usize) {
        self.change(number, Change::Length(length));
    }
    fn change(&mut self, number: usize, change: Change) {
        let now = self.calls;
        if let Inode::File { view, pending, modified, .. } = &mut self.inodes[number] {
            apply(view, &change);
            pending.push(change);
            *modified = now;
        }
    }

    /// A sync of a file. One that fails may have lost writes for good, though programs still see them.
    pub fn sync_file(&mut self, number: usize, fails: bool) {
        let sequence = &mut self.sequence;
        if let Inode::File { durable, pending, .. } = &mut self.inodes[number] {
            for change in pending.drain(..) {
                if fails {
                    tear(durable, &change, sequence);
                } else {
                    apply(durable, &change);
                }
            }
        }
    }
    pub fn sync_directory(&mut self, number: usize) {
        let (done, waiting) =
            std::mem::take(&mut self.namings).into_iter().partition(|n: &Naming| n.0.iter().any(|c| c.0 == number));
        self.namings = waiting;
        done.into_iter().for_each(|naming| self.keep(naming));
    }
    fn keep(&mut self, naming: Naming) {
        for (directory, name, inode) in naming.0 {
            if let Inode::Directory { durable, .. } = &mut self.inodes[directory] {
                set(durable, &name, inode);
            }
        }
    }

    pub fn fork(&self) -> World {
        World {
            sequence: self.sequence.clone(),
            inodes: self.inodes.clone(),
            namings: self.namings.clone(),
            calls: self.calls,
            faults: self.faults.clone(),
            stopped: self.stopped,
            boot: self.boot,
            caller_is_dead: false,
            broken: self.broken.clone(),
            unreadable: self.unreadable.clone(),
            locks: self.locks.clone(),
        }
    }

    /// Ends the process and the power: unsynced changes survive all, not at all, or in part and out of order.
    pub fn crash(&mut self) {
        let mode = self.sequence.next() % 4;
        let survives = |sequence: &mut Sequence| match mode {
            0 => false,
            1 => true,
            _ => sequence.coin(),
        };
        for naming in std::mem::take(&mut self.namings) {
            if survives(&mut self.sequence) {
                self.keep(naming);
            }
        }
        let sequence = &mut self.sequence;
        for inode in &mut self.inodes {
            match inode {
                Inode::Directory { view, durable } => *view = durable.clone(),
                Inode::File { view, durable, pending, .. } => {
                    for change in pending.drain(..) {
                        match mode {
                            0 => {}
                            1 => apply(durable, &change),
                            _ => tear(durable, &change, sequence),
                        }
                    }
                    *view = durable.clone();
                }
            }
        }
        self.calls = 0;
        self.faults.clear();
        self.broken.clear();
        self.unreadable.clear();
        self.stopped = false;
        self.boot += 1;
        self.locks.clear();
    }
}

pub(super) fn error(fault: Fault) -> io::Error {
    match fault {
        Fault::NoSpace => io::Error::from_raw_os_error(28),
        _ => io::Error::from_raw_os_error(5),
    }
}

fn set(names: &mut BTreeMap<String, usize>, name: &str, inode: Option<usize>) {
    match inode {
        Some(inode) => _ = names.insert(name.to_owned(), inode),
        None => _ = names.remove(name),
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Length(length) => content.resize(*length, 0),
        Change::Write { offset, bytes } => put(content, *offset, bytes),
    }
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// Applies what a crash leaves of a change: each sector of a write or not.
fn tear(content: &mut Vec<u8>, change: &Change, sequence: &mut Sequence) {
    match change {
        Change::Length(length) if sequence.coin() => content.resize(*length, 0),
        Change::Length(_) => {}
        Change::Write { offset, bytes } => {
            let mut at = *offset;
            while at < offset + bytes.len() {
                let end = (at / SECTOR * SECTOR + SECTOR).min(offset + bytes.len());
                if sequence.coin() {
                    put(content, at, &bytes[at - offset..end - offset]);
                }
                at = end;
            }
        }
    }
}
