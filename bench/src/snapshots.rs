//! Purpose: whether what snapshots cost grows with what there is of them and no faster: operations, image, log, memory and deletions with many snapshots, and
//! with many files that were renamed out of one.
//! Called by: the command line (`bench snapshots`).
//! Calls: world (a file system in this process), ops, storage (image).
//! Never: measures a network or a lock: a hold is what runs under it.
//! Invariants: what is compared was made in the same way; each state is loaded again and has the same digest.

use crate::world::{SAVED, World, modes};
use mem::page::ShadowPool;
use ops::read::file_info::get_file_info;
use ops::read::listing::get_listing;
use ops::read::snapshots::get_snapshot_diff;
use ops::write::attributes::SetPermission;
use ops::write::delete::Delete;
use ops::write::mkdirs::Mkdirs;
use ops::write::rename::Rename;
use ops::write::snapshots::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use ops::{View, Write};
use state::{Mode, Replay};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::image::{encode, load};
use vocab::{LayoutVersion, Policy, Refusal};

/// Files below the directory with snapshots.
const FILES: usize = 20_000;
/// Files in a directory.
const FILES_PER_DIRECTORY: usize = 1_000;
/// Calls of each kind.
const CALLS: usize = 200;
/// Steps of a deletion in one hold, as the engine has it.
const BATCH: u64 = 256;

/// Prints both tables.
pub fn table(snapshots: usize, renamed: usize) -> Result<(), String> {
    for count in [10, snapshots] {
        let mut many = Case::new(&format!("{count} snapshots"));
        many.populate(FILES)?;
        many.take_snapshots(count)?;
        many.measure(count)?;
    }
    for count in [renamed / 10, renamed] {
        let mut references = Case::new(&format!("{count} files renamed out of a snapshot"));
        references.populate(count)?;
        references.rename_all(count)?;
        references.measure(3)?;
    }
    Ok(())
}

struct Case {
    title: String,
    world: World,
    before_kib: u64,
}

fn refused(refusal: Refusal) -> String {
    format!("{refusal:?}")
}

/// Resident memory of this process.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn path(number: usize) -> String {
    format!("/snap/d{:04}/part-{number:08}", number / FILES_PER_DIRECTORY)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Case {
    fn new(title: &str) -> Case {
        let before_kib = resident_kib();
        let mut world = World::new(1);
        world.log = crate::world::Buffer::kept(Vec::new());
        Case { title: title.to_owned(), world, before_kib }
    }

    fn write<W: Write>(&mut self, op: &W) -> Result<W::Reply, String> {
        self.world.write(op).map_err(refused)
    }

    fn create(&mut self, path: &str) -> Result<(), String> {
        let id = self.write(&World::create_op(path))?.id;
        self.write(&World::complete_op(path, id, None)).map(drop)
    }

    fn rename(&mut self, source: &str, target: &str) -> Result<(), String> {
        let renamed = self.write(&Rename { source: source.into(), target: target.into() })?;
        if renamed { Ok(()) } else { Err(format!("{source} is not renamed")) }
    }

    fn take(&mut self, name: &str) -> Result<(), String> {
        self.write(&CreateSnapshot { path: "/snap".into(), name: name.into() }).map(drop)
    }

    fn populate(&mut self, files: usize) -> Result<(), String> {
        for top in ["/snap", "/snap/moved", "/snap/d0001", "/snap/d0002"] {
            self.write(&Mkdirs { path: top.into(), modes: modes(0o755), create_parents: true })?;
        }
        self.write(&AllowSnapshot { path: "/snap".into() })?;
        (0..files).try_for_each(|number| self.create(&path(number)))
    }

    /// A file made, one renamed, one deleted and one changed before each.
    fn take_snapshots(&mut self, count: usize) -> Result<(), String> {
        self.take("s0")?;
        for n in 1..count {
            let at = 4 * n % FILES;
            self.create(&format!("/snap/d0000/made-{n:08}"))?;
            if n * 4 < FILES {
                self.rename(&path(at), &format!("/snap/moved/m-{n:08}"))?;
                self.write(&Delete { path: path(at + 1).into(), recursive: false })?;
            }
            self.write(&SetPermission { path: path((at + 2) % FILES / 4 * 4 + 2).into(), mode: modes_of(n) })?;
            self.take(&format!("s{n}"))?;
        }
        Ok(())
    }

    fn rename_all(&mut self, count: usize) -> Result<(), String> {
        self.take("s0")?;
        for number in 0..count {
            if number % FILES_PER_DIRECTORY == 0 {
                let path = format!("/snap/moved/d{:04}", number / FILES_PER_DIRECTORY).into();
                self.write(&Mkdirs { path, modes: modes(0o755), create_parents: true })?;
            }
            let target = format!("/snap/moved/d{:04}/m-{number:08}", number / FILES_PER_DIRECTORY);
            self.rename(&path(number), &target)?;
        }
        self.take("s1")?;
        self.create("/snap/moved/last")?;
        self.take("s2")
    }

    fn timed(
        &mut self,
        what: &str,
        calls: usize,
        mut f: impl FnMut(&mut Case, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let (mut longest, since) = (Duration::ZERO, Instant::now());
        for call in 0..calls {
            let since = Instant::now();
            f(self, call)?;
            longest = longest.max(since.elapsed());
        }
        let mean = since.elapsed() / calls.max(1) as u32;
        println!("  {what:<44} {:>12.4} ms in the mean, {:>12.3} at most", millis(mean), millis(longest));
        Ok(())
    }

    fn read(
        &mut self,
        what: &str,
        calls: usize,
        f: impl Fn(&View<'_>, usize) -> Result<(), Refusal>,
    ) -> Result<(), String> {
        self.timed(what, calls, |case, call| case.world.read(|view| f(view, call)).map_err(refused))
    }

    fn measure(&mut self, count: usize) -> Result<(), String> {
        let inodes = self.world.state.tree.inode_count();
        println!(
            "{}: {inodes} inodes, {} records, {} MB",
            self.title,
            self.world.log.last(),
            (resident_kib().saturating_sub(self.before_kib)) / 1_024
        );
        self.operations(count)?;
        self.files()?;
        self.deletions(count)
    }

    fn operations(&mut self, count: usize) -> Result<(), String> {
        self.timed("create", CALLS, |case, n| case.create(&format!("/snap/d0001/new-{n}")))?;
        self.timed("rename of a new file", CALLS, |case, n| {
            case.rename(&format!("/snap/d0001/new-{n}"), &format!("/snap/d0002/newer-{n}"))
        })?;
        let renamed = if count == 3 { CALLS } else { (count - 1).min(CALLS) };
        self.timed("rename of an old file", renamed, |case, n| {
            case.rename(&format!("/snap/moved/{}", old_name(case, n)), &format!("/snap/d0002/older-{n}"))
        })?;
        let stat = |view: &View<'_>, path: String| get_file_info(view, path.as_bytes()).map(drop);
        self.read("stat, now", CALLS, |view, n| stat(view, format!("/snap/d0002/newer-{n}")))?;
        for (what, at) in [("oldest", 0), ("middle", count / 2), ("newest", count - 1)] {
            let dir = format!("/snap/.snapshot/s{at}/d0000");
            self.read(&format!("stat in the {what}"), CALLS, |view, n| {
                stat(view, format!("{dir}/part-{:08}", 4 * (n % 200) + 3)).or(Ok(()))
            })?;
            self.read(&format!("listing in the {what}"), 10, |view, _| {
                let mut entries = Vec::new();
                get_listing(view, dir.as_bytes(), b"", false, &mut entries).map(drop)
            })?;
        }
        self.read("diff report, last two", 5, |view, _| {
            get_snapshot_diff(view, b"/snap", &format!("s{}", count - 2), &format!("s{}", count - 1)).map(drop)
        })?;
        self.read("diff report, oldest to newest", 2, |view, _| {
            get_snapshot_diff(view, b"/snap", "s0", &format!("s{}", count - 1)).map(drop)
        })?;
        self.timed("createSnapshot", 10, |case, n| case.take(&format!("extra-{n}")))
    }

    /// Image, log, and what a checkpoint copies under its hold.
    fn files(&mut self) -> Result<(), String> {
        let pool = Arc::new(ShadowPool::new(1 << 30));
        let mut rest = 0;
        self.timed("checkpoint: frozen, and copied beside", 1, |case, _| {
            rest = case.world.state.freeze(&pool).len();
            Ok(())
        })?;
        drop(self.world.state.thaw());
        let (mut image, mut digest) = (Vec::new(), None);
        self.timed("image encoded", 1, |case, _| {
            digest = Some(
                encode(&case.world.state, SAVED, &mut |bytes| image.extend_from_slice(bytes))
                    .map_err(|e| format!("{e:?}"))?,
            );
            Ok(())
        })?;
        println!("  {:<44} {:>12} bytes beside, {} in the image", "", rest, image.len());
        let digest = digest.ok_or("no image")?;
        let own = self.world.state.digest();
        self.timed("image loaded", 1, |_, _| {
            let loaded = load(&image, digest, World::empty()).map_err(|e| format!("{e:?}"))?;
            if loaded.state.digest() == own { Ok(()) } else { Err("the image has another state".to_owned()) }
        })?;
        let log = std::mem::take(&mut self.world.log).into_bytes();
        self.timed("log replayed", 1, |_, _| replayed(&log, own))
    }

    fn deletions(&mut self, count: usize) -> Result<(), String> {
        self.world.state.freed_at_once = BATCH;
        for (what, at) in [("oldest", 0), ("newest", count - 1), ("middle", count / 2)] {
            let name = format!("s{at}");
            let since = Instant::now();
            self.write(&DeleteSnapshot { path: "/snap".into(), name: name.into() })?;
            let mut longest = since.elapsed();
            let mut holds = 1;
            loop {
                let since = Instant::now();
                let more = self.world.state.reclaim(BATCH);
                longest = longest.max(since.elapsed());
                holds += 1;
                if !more {
                    break;
                }
            }
            println!(
                "  deleteSnapshot, {what:<28} {:>12.3} ms, {holds} holds, {:.3} ms the longest",
                millis(since.elapsed()),
                millis(longest)
            );
        }
        Ok(())
    }
}

fn modes_of(n: usize) -> vocab::Mode {
    vocab::Mode::new(0o600 + (n % 64) as u16)
}

/// A file that was renamed, by its new name.
fn old_name(case: &Case, n: usize) -> String {
    if case.world.state.tree.snapshots.count() == 3 { format!("d0000/m-{n:08}") } else { format!("m-{:08}", n + 1) }
}

fn replayed(log: &[u8], own: state::Digest) -> Result<(), String> {
    let (mut state, policy, mut replay) = (World::empty(), Policy::default(), Replay::new(Mode::Restart));
    let mut rest = log;
    while !rest.is_empty() {
        match edit::decode(rest, LayoutVersion::CURRENT, edit::frame::RECORD_MAX).map_err(|e| format!("{e:?}"))? {
            edit::Decoded::Frame(found) => {
                replay.apply(&mut state, &found.record, &policy).map_err(|e| e.0)?;
                rest = &rest[found.length..];
            }
            other => return Err(format!("{other:?}")),
        }
    }
    if state.digest() == own { Ok(()) } else { Err("the log has another state".to_owned()) }
}
