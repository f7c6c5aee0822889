//! The journal on the simulated disk: group commit, rolls, several directories, and crashes at every call.

use edit::Record;
use os::sim::{Fault, SimDisk};
use os::{Disk, Os};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use storage::journal::{Journal, JournalFailed, LocalJournal, Membership, Observer, Options, local};
use storage::{StorageError, replay, seen};
use vocab::Txid;
use vocab::time::TimeMs;

const MAX: usize = 1 << 20;
/// Small, so that growing happens often.
const PREALLOCATION: usize = 2048;

#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl Observer for Log {
    fn dropped(&self, label: &str, error: &io::Error) {
        self.0.lock().push(format!("dropped {label}: {error}"));
    }
    fn restored(&self, label: &str) {
        self.0.lock().push(format!("restored {label}"));
    }
    fn failed(&self, failure: &JournalFailed) {
        self.0.lock().push(format!("failed {failure}"));
    }
}

fn directories(count: usize) -> Vec<PathBuf> {
    ["/a/current", "/b/current", "/c/current"][..count].iter().map(PathBuf::from).collect()
}

/// A world whose directories exist for good.
fn world(seed: u64, count: usize) -> (Os, SimDisk) {
    let (os, disk, _) = Os::simulated(seed);
    for current in directories(count) {
        disk.create_directories(&current, 0o700).unwrap();
        disk.sync_directory(Path::new("/")).unwrap();
        disk.sync_directory(current.parent().unwrap()).unwrap();
    }
    (os, disk)
}

fn on(disk: &SimDisk, os: &Os) -> Os {
    Os { disk: Arc::new(disk.clone()), ..os.clone() }
}

fn members(os: &Os, directories: &[PathBuf], required: usize) -> Vec<Membership> {
    let member = |(index, current): (usize, &PathBuf)| Membership {
        target: Box::new(LocalJournal::new(os.disk.clone(), current, &current.display().to_string(), PREALLOCATION)),
        required: index < required,
    };
    directories.iter().enumerate().map(member).collect()
}

fn open(
    os: &Os,
    directories: &[PathBuf],
    next: u64,
    required: usize,
    options: Options,
) -> (Result<Journal, JournalFailed>, Arc<Log>) {
    let log = Arc::new(Log::default());
    let options = Options { seen: directories.to_vec(), ..options };
    (Journal::open(members(os, directories, required), Txid(next), options, os, log.clone()), log)
}

/// A record that tells its number and whose size varies between a few bytes and several sectors.
fn numbered(number: u64) -> Record<'static> {
    let padding = "x".repeat((number * 7919 % 1500) as usize);
    Record::Delete { path: format!("/{number}/{padding}").into_bytes().into(), time: TimeMs(number as i64), rpc: None }
}

/// Recovers and replays all directories; returns the numbers of the records by transaction, or why not.
fn load(disk: &SimDisk, directories: &[PathBuf]) -> Result<(Txid, HashMap<Txid, u64>), StorageError> {
    let recovery = local::recover(disk, directories, MAX, local::Damage::Refused, |usable| !usable.is_empty())?;
    let usable: Vec<&Path> = directories
        .iter()
        .map(PathBuf::as_path)
        .filter(|d| !recovery.unusable.iter().any(|(bad, _)| bad == d))
        .collect();
    let needed = directories.iter().map(|d| seen::read(disk, d).unwrap()).max().unwrap();
    let segments = local::select(disk, &usable, Txid(1), needed)?;
    let mut found = HashMap::new();
    let mut apply = |txid, record: Record<'_>| {
        if let Record::Delete { time, .. } = record {
            found.insert(txid, time.0 as u64);
        }
        Ok::<(), ()>(())
    };
    match replay::replay(disk, &segments, Txid(1), MAX, &mut |_| {}, &mut apply) {
        Ok(last) => Ok((last, found)),
        Err(replay::ReplayError::Storage(error)) => Err(error),
        Err(error) => panic!("{error:?}"),
    }
}

fn files(disk: &SimDisk, current: &Path) -> Vec<String> {
    disk.list(current).unwrap().into_iter().map(|name| name.replace("0000000000000000", "~")).collect()
}

#[test]
fn a_closed_log_has_whole_segments_and_nothing_else() {
    let (os, disk) = world(1, 2);
    let dirs = directories(2);
    let (journal, log) = open(&os, &dirs, 1, 0, Options::default());
    let journal = journal.unwrap();
    assert_eq!((journal.last(), journal.watermark().durable(), journal.segment()), (Txid(1), Txid(1), Txid(1)));
    assert_eq!(journal.append(&numbered(2)), Txid(2));
    journal.watermark().wait_blocking(Txid(2)).unwrap();
    assert_eq!(journal.roll(), Txid(4));
    assert_eq!(journal.append(&numbered(5)), Txid(5));
    journal.close().unwrap();
    for current in &dirs {
        assert_eq!(files(&disk, current), ["edits_~001-~003", "edits_~004-~006", "seen_txid"]);
        assert_eq!(seen::read(&disk, current).unwrap(), Txid(4));
    }
    assert!(log.0.lock().is_empty());
    let bytes = disk.read(&dirs[0].join("edits_0000000000000000004-0000000000000000006")).unwrap();
    assert_ne!(bytes.last(), Some(&0xff), "fill is cut off");
    assert_eq!(load(&disk, &dirs).unwrap().0, Txid(6));
    let late = journal.append(&numbered(7));
    assert!(journal.watermark().wait_blocking(late).is_err(), "a closed journal keeps nothing");
    assert_eq!(load(&disk, &dirs).unwrap().0, Txid(6));
}

#[test]
fn open_segments_are_preallocated_with_fill() {
    let (os, disk) = world(1, 1);
    let journal = open(&os, &directories(1), 1, 0, Options::default()).0.unwrap();
    let path = Path::new("/a/current/edits_inprogress_0000000000000000001");
    assert_eq!(disk.read(path).unwrap().len(), PREALLOCATION);
    for number in 2..40 {
        journal.append(&numbered(number));
    }
    journal.watermark().wait_blocking(Txid(39)).unwrap();
    let bytes = disk.read(path).unwrap();
    assert_eq!(bytes.len() % PREALLOCATION, 0);
    assert_eq!(bytes.last(), Some(&0xff));
}

#[test]
fn lazy_records_are_flushed_without_a_waiter() {
    let (os, _disk) = world(1, 1);
    let options = Options { lazy_delay: Duration::from_millis(20), ..Options::default() };
    let journal = open(&os, &directories(1), 1, 0, options).0.unwrap();
    let txid = journal.append_lazy(&numbered(2));
    assert_eq!((txid, journal.last(), journal.last_assigned()), (Txid(2), Txid(1), Txid(2)));
    journal.watermark().wait_blocking(txid).unwrap();
}

#[test]
fn a_failed_directory_is_dropped_and_comes_back_with_the_next_segment_if_it_may() {
    for restore in [false, true] {
        let (os, disk) = world(1, 2);
        let dirs = directories(2);
        let (journal, log) = open(&os, &dirs, 1, 0, Options { restore, ..Options::default() });
        let journal = journal.unwrap();
        // A flush begins only after the one before, `seen_txid` included, has ended.
        journal.append(&numbered(2));
        journal.watermark().wait_blocking(Txid(2)).unwrap();
        disk.break_path(Path::new("/b"));
        journal.append(&numbered(3));
        journal.watermark().wait_blocking(Txid(3)).unwrap();
        assert!(log.0.lock()[0].starts_with("dropped /b/current"), "{log:?}");
        assert!(journal.members()[1].dropped.is_some() && journal.members()[0].dropped.is_none());
        disk.mend();
        journal.append(&numbered(4));
        journal.watermark().wait_blocking(Txid(4)).unwrap();
        assert_eq!(log.0.lock().len(), 1, "not touched within the segment");
        journal.roll();
        journal.close().unwrap();
        let b = files(&disk, &dirs[1]);
        if restore {
            assert_eq!(log.0.lock()[1], "restored /b/current");
            assert!(b.contains(&"edits_~006-~007".to_owned()), "{b:?}");
        } else {
            assert_eq!(b, ["edits_inprogress_~001", "seen_txid"]);
        }
        assert_eq!(load(&disk, &dirs).unwrap().0, Txid(7));
    }
}

#[test]
fn too_few_directories_fail_the_log_for_good() {
    // required, minimum, broken, fails
    let cases = [(0, 1, "/b", false), (0, 2, "/b", true), (1, 1, "/a", true), (1, 1, "/b", true), (0, 1, "/", true)];
    for (required, minimum, broken, fails) in cases {
        let (os, disk) = world(1, 2);
        let (journal, log) = open(&os, &directories(2), 1, required, Options { minimum, ..Options::default() });
        let journal = journal.unwrap();
        disk.break_path(Path::new(broken));
        let txid = journal.append(&numbered(2));
        let result = journal.watermark().wait_blocking(txid);
        assert_eq!(result.is_err(), fails, "{required} {minimum} {broken}");
        if let Err(failure) = result {
            assert_eq!(failure.durable, Txid(1));
            assert!(
                failure.reason.starts_with("Could not sync enough journals to persistent storage due to"),
                "{failure}"
            );
            disk.mend();
            let later = journal.append(&numbered(3));
            assert!(journal.last() >= later && journal.watermark().wait_blocking(later).is_err());
            assert_eq!(journal.watermark().durable(), Txid(1));
            assert!(journal.close().is_err());
            assert_eq!(log.0.lock().iter().filter(|line| line.starts_with("failed")).count(), 1, "{log:?}");
        }
    }
}

#[test]
fn a_required_directory_alone_suffices() {
    let (os, _disk) = world(1, 1);
    let journal = open(&os, &directories(1), 1, 1, Options { minimum: 3, ..Options::default() }).0.unwrap();
    journal.close().unwrap();
}

#[test]
fn opening_fails_if_no_segment_can_begin() {
    let (os, disk) = world(1, 1);
    disk.break_path(Path::new("/a"));
    assert!(open(&os, &directories(1), 1, 0, Options::default()).0.is_err());
}

#[test]
fn writers_that_wait_together_share_syncs() {
    let (os, disk) = world(1, 1);
    let journal = Arc::new(open(&os, &directories(1), 1, 0, Options::default()).0.unwrap());
    let before = disk.calls();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let journal = journal.clone();
            std::thread::spawn(move || {
                for number in 0..200 {
                    let txid = journal.append(&numbered(writer * 1000 + number));
                    journal.watermark().wait_blocking(txid).unwrap();
                    assert!(journal.watermark().durable() >= txid);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(disk.calls() - before < 2 * 1600, "{}", disk.calls() - before);
}

#[test]
fn who_appended_may_make_it_durable_if_that_is_brief() {
    let (os, disk) = world(1, 2);
    let options = Options { lazy_delay: Duration::from_secs(3600), ..Options::default() };
    let journal = open(&os, &directories(2), 1, 0, options).0.unwrap();
    let small = |number| Record::AllocateBlockId { id: number };
    let durable = || journal.watermark().durable();
    let txid = journal.append(&small(2));
    journal.commit_if_brief();
    assert!(durable() < txid, "how long it takes is not known yet");
    journal.watermark().wait_blocking(txid).unwrap();
    loop {
        let txid = journal.append(&small(3));
        journal.commit_if_brief();
        if durable() == txid {
            break;
        }
        // the flush thread was not through with the last batch yet
        journal.watermark().wait_blocking(txid).unwrap();
    }
    let calls = disk.calls();
    let (own, last) = (journal.append_lazy(&small(4)), journal.append(&small(5)));
    journal.commit_if_brief();
    assert_eq!((own, durable()), (Txid(last.0 - 1), last));
    assert_eq!(disk.calls() - calls, 4, "a write and a sync in each directory");
    // a new segment is not brief, nor is one that has to grow
    let first = journal.roll();
    journal.commit_if_brief();
    assert!(durable() < first);
    journal.watermark().wait_blocking(first).unwrap();
    let path = vec![b'/'; PREALLOCATION].into();
    let txid = journal.append(&Record::Delete { path, time: TimeMs(1), rpc: None });
    journal.commit_if_brief();
    assert!(durable() < txid);
    journal.close().unwrap();
    journal.commit_if_brief();
}

/// A deterministic history: appends, waits, rolls. Returns the transactions that were acknowledged, with their numbers.
fn history(journal: &Journal, seed: u64, records: u64) -> Vec<(Txid, u64)> {
    let mut acknowledged = Vec::new();
    let mut waiting = Vec::new();
    for step in 0..records {
        let number = seed * 1000 + step;
        let txid = journal.append(&numbered(number));
        waiting.push((txid, number));
        if step % 3 == 1 {
            journal.commit_if_brief();
        }
        if step % 7 == 3 {
            let first = journal.roll();
            waiting.push((first, u64::MAX));
        }
        if step % 3 == 2 {
            if journal.watermark().wait_blocking(journal.last()).is_err() {
                // what the watermark covered before it failed was acknowledged as well
                let durable = journal.watermark().durable();
                acknowledged.extend(waiting.iter().filter(|(txid, _)| *txid <= durable));
                return acknowledged;
            }
            acknowledged.append(&mut waiting);
        }
    }
    acknowledged
}

/// One run on `disk` that meets `fault` at `call`, then a crash, a load, and the same again without a fault. Checks that everything
/// acknowledged is found, in order and as a prefix.
fn crash_run(seed: u64, count: usize, call: u64, fault: Fault) -> bool {
    let (os, disk) = world(seed, count);
    let dirs = directories(count);
    let begun = disk.calls();
    disk.fault_at(begun + call, fault);
    let mut acknowledged = Vec::new();
    let (journal, _log) = open(&os, &dirs, 1, 0, Options::default());
    if let Ok(journal) = journal {
        acknowledged = history(&journal, 1, 20);
        if fault != Fault::Stop {
            _ = journal.close();
        }
    }
    let reached = disk.calls() >= begun + call;
    let mut disk = disk.crash();
    let mut next = Txid(1);
    for round in 2..4 {
        let context = format!("seed {seed}, {count} directories, {fault:?} at call {call}, round {round}");
        let (last, found) = match load(&disk, &dirs) {
            Ok(loaded) => loaded,
            Err(error) => panic!("{context}: {error}; files {:?}", files(&disk, &dirs[0])),
        };
        for (txid, number) in &acknowledged {
            assert!(*txid <= last, "{context}: {txid} was acknowledged, but the log ends at {last}");
            if *number != u64::MAX {
                assert_eq!(found.get(txid), Some(number), "{context}: transaction {txid}");
            }
        }
        assert!(last >= Txid(next.0 - 1));
        if fault == Fault::Stop {
            // No directory was dropped: each alone has it all.
            for directory in &dirs {
                let alone = load(&disk, std::slice::from_ref(directory))
                    .unwrap_or_else(|e| panic!("{context}, {directory:?}: {e}"));
                assert_eq!(alone, (last, found.clone()), "{context}, {directory:?} alone");
            }
        }
        next = last.next();
        // Go on with what was found, then lose the power again without warning.
        let os = on(&disk, &os);
        let journal = open(&os, &dirs, next.0, 0, Options::default()).0.unwrap_or_else(|e| panic!("{context}: {e}"));
        acknowledged.extend(history(&journal, round, 9));
        journal.append(&numbered(999));
        disk = disk.crash();
        drop(journal);
    }
    reached
}

#[test]
fn nothing_acknowledged_is_lost_by_a_crash_at_any_call() {
    for count in 1..=2 {
        for seed in 0..6 {
            for call in 1.. {
                if !crash_run(seed, count, call, Fault::Stop) {
                    assert!(call > 40, "the history is long enough to cross segments");
                    break;
                }
            }
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_an_error_at_any_call() {
    for count in 1..=3 {
        for seed in 0..3 {
            for fault in [Fault::Io, Fault::NoSpace, Fault::Short] {
                let mut call = 1;
                while crash_run(seed, count, call, fault) {
                    call += 1;
                }
            }
        }
    }
}

#[test]
fn a_copy_takes_over_where_another_cannot_be_read() {
    let (os, disk) = world(5, 2);
    let dirs = directories(2);
    let journal = open(&os, &dirs, 1, 0, Options::default()).0.unwrap();
    let acknowledged = history(&journal, 1, 20);
    journal.close().unwrap();
    disk.break_reads(&dirs[0].join("edits_0000000000000000001-0000000000000000006"));
    let (_, found) = load(&disk, &dirs).unwrap();
    assert!(acknowledged.iter().all(|(txid, number)| *number == u64::MAX || found.get(txid) == Some(number)));
    disk.break_reads(&dirs[1].join("edits_0000000000000000001-0000000000000000006"));
    assert!(matches!(load(&disk, &dirs), Err(StorageError::Replay { expected: Txid(1), .. })));
}

/// Appends, rolls, and as every other writer commits itself, until the journal has failed or is closed; gives what was acknowledged.
fn write_until_refused(journal: &Journal, writer: u64) -> Vec<(Txid, u64)> {
    let mut acknowledged = Vec::new();
    for number in writer * 1_000_000.. {
        let txid = journal.append(&numbered(number));
        if number % 50 == 7 {
            journal.roll();
        }
        if writer % 2 == 1 {
            journal.commit_if_brief();
        }
        if journal.watermark().wait_blocking(txid).is_err() {
            return acknowledged;
        }
        acknowledged.push((txid, number));
    }
    unreachable!()
}

/// Writers, half of whom make their records durable themselves, while a directory fails and may come back, segments end, and the log is closed.
#[test]
fn nothing_acknowledged_is_lost_when_directories_fail_and_the_log_is_closed_meanwhile() {
    for seed in 0..40 {
        let (os, disk) = world(seed, 2);
        let dirs = directories(2);
        let options = Options { restore: seed % 2 == 0, lazy_delay: Duration::from_millis(1), ..Options::default() };
        let (journal, log) = open(&os, &dirs, 1, 0, options);
        let journal = Arc::new(journal.unwrap());
        let fault = [Fault::Io, Fault::NoSpace, Fault::Short][seed as usize % 3];
        disk.fault_at(disk.calls() + 10 + seed * 5, fault);
        let writer = |writer: u64| {
            let journal = journal.clone();
            std::thread::spawn(move || write_until_refused(&journal, writer))
        };
        let writers: Vec<_> = (0..6).map(writer).collect();
        std::thread::sleep(Duration::from_millis(3 + seed % 7));
        journal.close().unwrap_or_else(|e| panic!("seed {seed}: one directory is left: {e}: {:?}", log.0.lock()));
        let acknowledged: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        let disk = disk.crash();
        let (last, found) = load(&disk, &dirs).unwrap();
        for (txid, number) in acknowledged {
            assert_eq!(found.get(&txid), Some(&number), "seed {seed}: transaction {txid} of {last}");
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_under_many_writers() {
    for seed in 0..60 {
        let (os, disk) = world(seed, 2);
        let dirs = directories(2);
        disk.fault_at(disk.calls() + 20 + seed * 3, Fault::Stop);
        let journal = Arc::new(open(&os, &dirs, 1, 0, Options::default()).0.unwrap());
        let writer = |writer: u64| {
            let journal = journal.clone();
            std::thread::spawn(move || write_until_refused(&journal, writer))
        };
        let writers: Vec<_> = (0..8).map(writer).collect();
        let acknowledged: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        let disk = disk.crash();
        let (last, found) = load(&disk, &dirs).unwrap();
        for (txid, number) in acknowledged {
            assert_eq!(found.get(&txid), Some(&number), "seed {seed}: transaction {txid} of {last}");
        }
    }
}
