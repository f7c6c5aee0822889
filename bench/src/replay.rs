//! Replay of a log: a segment of records as clients cause them, replayed by ours in this process and, if asked, by a Java name node that starts
//! on the same directory.

use crate::startup::process::{Side, start};
use crate::startup::version;
use crate::world::{Buffer, SAVED, World, modes};
use edit::Record;
use ops::write::attributes::{SetPermission, SetTimes};
use ops::write::delete::Delete;
use ops::write::mkdirs::Mkdirs;
use ops::write::rename::Rename;
use state::{Mode, Replay};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use storage::image::{SaveContext, encode};
use storage::journal::local::{Segment, SegmentCopy};
use storage::replay::replay;
use vocab::{Block, LayoutVersion, Policy, TimeMs, Txid};

/// Files of one job, in one directory.
const FILES_PER_JOB: usize = 200;
/// Largest record allowed, as the name node has it.
const RECORD_MAX: usize = 50 << 20;

/// Prints how many records a second are replayed, of a segment of about so many.
pub fn table(records: usize, java: bool) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("bench-replay-{}", std::process::id()));
    let done = measure(records, java, &folder);
    _ = fs::remove_dir_all(&folder);
    done
}

fn measure(records: usize, java: bool, folder: &Path) -> Result<(), String> {
    let source = folder.join("source");
    let (segment, last, digest) = directory(records, &source).map_err(|e| format!("{}: {e}", source.display()))?;
    let length = fs::metadata(&segment).map_err(|e| e.to_string())?.len();
    println!("{last} records in {:.1} MB:", length as f64 / 1e6);
    let bytes = fs::read(&segment).map_err(|e| e.to_string())?;
    composition(&bytes).into_iter().for_each(|(opcode, count)| println!("  {opcode:<18} {count:>8}"));
    drop(bytes);
    let line =
        |who: &str, seconds: f64| println!("{who:<32} {seconds:>8.3} s {:>12.0} records/s", last.0 as f64 / seconds);
    for _ in 0..3 {
        let (wall, applying) = ours(&segment, last, digest)?;
        line("ironroot", wall);
        line("  CPU of the thread that applies", applying);
    }
    if java {
        let started = start(Side::Java, &source, &folder.join("java"), 2_048, false, None)?;
        let phase = started.phases.iter().find(|phase| phase.0 == "LoadingEdits");
        line("java", phase.ok_or("no phase LoadingEdits")?.1 / 1e3);
    }
    Ok(())
}

/// Seconds that this thread has run.
fn cpu() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).map_or(f64::NAN, |n| n / 1e9)
}

/// Replays a segment into an empty state: seconds of the clock, and those that the thread which applies has run.
fn ours(segment: &Path, last: Txid, digest: state::Digest) -> Result<(f64, f64), String> {
    let disk = os::RealDisk::default();
    let copies = vec![SegmentCopy { path: segment.to_owned(), last }];
    let segments = [Segment { first: Txid(1), last, copies }];
    let (mut state, policy, mut applied) = (World::empty(), Policy::default(), Replay::new(Mode::Restart));
    let (since, before) = (Instant::now(), cpu());
    let mut apply =
        |_, record: Record<'_>| crate::world::hold(|| applied.apply(&mut state, &record, &policy).map(drop));
    let end = replay(&disk, &segments, Txid(1), RECORD_MAX, &mut |_| (), &mut apply).map_err(|e| format!("{e:?}"))?;
    let seconds = (since.elapsed().as_secs_f64(), cpu() - before);
    if end != last || state.digest() != digest {
        return Err(format!("replay ends at {end} with another state than the calls left"));
    }
    Ok(seconds)
}

/// A name node's directory with an empty image and one segment. The segment, its last transaction, and the digest of what it leads to.
fn directory(records: usize, folder: &Path) -> std::io::Result<(PathBuf, Txid, state::Digest)> {
    let current = folder.join("current");
    fs::create_dir_all(&current)?;
    let image = current.join(format!("fsimage_{:019}", 0));
    let mut bytes = Vec::new();
    let context = SaveContext { txid: Txid(0), ..SAVED };
    let md5 =
        encode(&World::empty(), context, &mut |piece| bytes.extend_from_slice(piece)).map_err(std::io::Error::other)?;
    fs::write(&image, bytes)?;
    fs::write(image.with_extension("md5"), format!("{} *fsimage_{:019}\n", md5.hex(), 0))?;
    fs::write(current.join("VERSION"), version())?;
    let (bytes, last, digest) = segment(records);
    fs::write(current.join("seen_txid"), format!("{last}\n"))?;
    let path = current.join(format!("edits_{:019}-{:019}", 1, last.0));
    fs::write(&path, bytes)?;
    Ok((path, last, digest))
}

/// Jobs that write files under names of their own, move them to where they belong, set modes and times, and delete some of what there is.
fn segment(records: usize) -> (Vec<u8>, Txid, state::Digest) {
    let mut bytes = Vec::new();
    edit::frame::put_header(LayoutVersion::CURRENT, &mut bytes);
    let mut world = World::new(3);
    world.log = Buffer::kept(bytes);
    world.log_boundary(Record::StartLogSegment);
    let mut number = 0;
    while world.log.last() + 16 < records as u64 {
        file(&mut world, number);
        number += 1;
    }
    let last = world.log_boundary(Record::EndLogSegment);
    let digest = world.state.digest();
    (world.log.into_bytes(), last, digest)
}

fn file(world: &mut World, number: usize) {
    let (job, file) = (number / FILES_PER_JOB, number % FILES_PER_JOB);
    let folder = format!("/user/hive/warehouse/table-{}/job-{job:06}", job % 16);
    let attempt = format!("{folder}/_temporary/attempt-{file:05}-of-this-job.parquet");
    let path = |file: usize| format!("{folder}/part-{file:05}-of-this-job.snappy.parquet");
    if file == 0 {
        let path = format!("{folder}/_temporary").into();
        assert!(world.write(&Mkdirs { path, modes: modes(0o755), create_parents: true }).expect("mkdirs"));
    }
    let id = world.write(&World::create_op(&attempt)).expect("create").id;
    let located = world.write(&World::add_block_op(&attempt, id)).expect("addBlock").located;
    let block = Block { length: 1000 + number as u64, ..located.block };
    world.received(1, block);
    assert_eq!(world.write(&World::complete_op(&attempt, id, Some(block))), Ok(true));
    let moved = world.write(&Rename { source: attempt.into(), target: path(file).into() });
    assert_eq!(moved, Ok(true));
    if file % 4 == 1 {
        world.write(&SetPermission { path: path(file).into(), mode: vocab::Mode::new(0o640) }).expect("setPermission");
    }
    if file % 4 == 2 {
        let (mtime, atime) = (TimeMs(1_650_000_000_000), TimeMs(1_650_000_000_500));
        world.write(&SetTimes { path: path(file).into(), mtime, atime }).expect("setTimes");
    }
    if file % 4 == 3 {
        assert_eq!(world.write(&Delete { path: path(file - 2).into(), recursive: false }), Ok(true));
    }
}

/// How many of each record a segment has.
fn composition(segment: &[u8]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut at = edit::frame::HEADER_LENGTH;
    while let Ok(edit::Decoded::Frame(frame)) = edit::decode(&segment[at..], LayoutVersion::CURRENT, RECORD_MAX) {
        *counts.entry(format!("{:?}", frame.record.opcode())).or_default() += 1;
        at += frame.length;
    }
    counts
}
