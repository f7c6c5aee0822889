//! Local journals at a start: finalizing what an earlier run left open, and finding the segments to read.

use super::reader::{self, ReadError, Tail};
use crate::StorageError;
use crate::names::{self, Kind};
use os::disk::{Disk, Open};
use os::durable;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// What was done with an open segment of an earlier run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recovered {
    /// It has its final name now.
    Finalized {
        /// First transaction.
        first: Txid,
        /// Last transaction.
        last: Txid,
        /// How it ended.
        tail: Tail,
    },
    /// It had no byte and was deleted.
    Deleted(PathBuf),
    /// It had no record and was renamed to `.empty`.
    Empty(PathBuf),
}

/// Outcome of a recovery in several directories.
#[derive(Debug, Default)]
pub struct Recovery {
    /// What was done, by directory.
    pub done: Vec<(PathBuf, Recovered)>,
    /// Directories whose edits must not be used, with the reason.
    pub unusable: Vec<(PathBuf, String)>,
    /// Segments that were copied to where a crash had left less of them: the new files.
    pub copied: Vec<PathBuf>,
    /// Directories to which a segment could not be copied: they cannot be started from alone until the next checkpoint.
    pub behind: Vec<(PathBuf, std::io::Error)>,
}

/// Why a directory's edits cannot be used.
struct Unusable {
    reason: String,
    /// The highest transaction that it is known to hold all the same.
    later: Option<Txid>,
}

impl Unusable {
    fn new(reason: String) -> Unusable {
        Unusable { reason, later: None }
    }
}

/// What is done with an open segment that has intact records behind damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The segment is left alone and cannot be used.
    Refused,
    /// It is finalized with the damage in it: whoever reads it is asked.
    Kept,
}

/// Finalizes open segments of an earlier run in every `current`. Directories that fail are left out; `enough` says whether those
/// that are left suffice.
///
/// # Errors
/// Too few are left; or a damaged one holds transactions that no other has.
pub fn recover(
    disk: &dyn Disk,
    currents: &[PathBuf],
    max: usize,
    damage: Damage,
    enough: impl FnOnce(&[&Path]) -> bool,
) -> Result<Recovery, StorageError> {
    let mut recovery = Recovery::default();
    let mut lost: Option<(Txid, String)> = None;
    for current in currents {
        match recover_directory(disk, current, max, damage, &mut recovery.done) {
            Ok(()) => {}
            Err(unusable) => {
                lost = lost.max(unusable.later.map(|later| (later, unusable.reason.clone())));
                recovery.unusable.push((current.clone(), unusable.reason));
            }
        }
    }
    let usable: Vec<&Path> =
        currents.iter().map(PathBuf::as_path).filter(|c| !recovery.unusable.iter().any(|(bad, _)| bad == c)).collect();
    let reasons = || recovery.unusable.iter().map(|(_, reason)| reason.as_str()).collect::<Vec<_>>().join("\n");
    if !recovery.unusable.is_empty() && !enough(&usable) {
        return Err(StorageError::Recovery(reasons()));
    }
    if let Some((later, reason)) = lost {
        let reached = segments(disk, &usable)?.iter().map(|segment| segment.last).max().unwrap_or_default();
        if later > reached {
            return Err(StorageError::Recovery(reason));
        }
    }
    if !recovery.done.is_empty() {
        (recovery.copied, recovery.behind) = level(disk, &usable)?;
    }
    Ok(recovery)
}

/// Most segments that are copied into one directory; one that lags further has failed long ago and waits for the next checkpoint.
const LEVEL_SEGMENTS_MAX: usize = 8;

/// A crash may have left more of the last batch in one directory than in another. What goes on from the longest copy would then leave a gap in
/// the others, and none of them could be started from alone: so they get what they lack.
fn level(disk: &dyn Disk, currents: &[&Path]) -> Result<(Vec<PathBuf>, Vec<(PathBuf, std::io::Error)>), StorageError> {
    let (mut copied, mut behind) = (Vec::new(), Vec::new());
    let all = segments(disk, currents)?;
    for current in currents {
        let own = segments(disk, &[current])?;
        let reached = own.iter().map(|segment| segment.last).max().unwrap_or_default();
        let lacking: Vec<&Segment> = all.iter().filter(|segment| segment.last > reached).collect();
        let joins = lacking.first().is_some_and(|segment| segment.first <= reached.next());
        if !joins || lacking.len() > LEVEL_SEGMENTS_MAX {
            continue;
        }
        let mut copy = || {
            for segment in &lacking {
                let target = current.join(names::finalized(segment.first, segment.last));
                durable::replace(disk, &target, &disk.read(&segment.copies[0].path)?)?;
                copied.push(target);
                for shorter in own.iter().filter(|own| own.first == segment.first).flat_map(|own| &own.copies) {
                    durable::remove_file(disk, &shorter.path)?;
                }
            }
            Ok(())
        };
        if let Err(error) = copy() {
            behind.push((current.to_path_buf(), error));
        }
    }
    Ok((copied, behind))
}

fn recover_directory(
    disk: &dyn Disk,
    current: &Path,
    max: usize,
    damage: Damage,
    done: &mut Vec<(PathBuf, Recovered)>,
) -> Result<(), Unusable> {
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Unusable::new(format!("{path}: {error}"))
    };
    let listed = disk.list(current).map_err(io(current))?;
    for name in &listed {
        let path = current.join(name);
        match names::kind(name) {
            // What was being made when the process ended: never under its own name yet.
            Kind::InProgressAside(_) | Kind::Other if name.starts_with("edits_") && name.ends_with(".tmp") => {
                disk.remove_file(&path).map_err(io(&path))?;
            }
            Kind::InProgress(first) => {
                let same = |other: &String| matches!(names::kind(other), Kind::Finalized(start, _) if start == first);
                let finalized = listed.iter().find(|other| same(other));
                let recovered = recover_segment(disk, &path, first, max, damage, finalized.map(String::as_str))?;
                done.push((current.to_owned(), recovered));
            }
            _ => {}
        }
    }
    Ok(())
}

fn recover_segment(
    disk: &dyn Disk,
    path: &Path,
    first: Txid,
    max: usize,
    damage: Damage,
    finalized: Option<&str>,
) -> Result<Recovered, Unusable> {
    let io = |error: std::io::Error| Unusable::new(format!("{}: {error}", path.display()));
    let aside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    if disk.metadata(path).map_err(io)?.is_some_and(|m| m.length == 0) {
        durable::remove_file(disk, path).map_err(io)?;
        return Ok(Recovered::Deleted(path.to_owned()));
    }
    let scan = match reader::scan(disk, path, first, max) {
        Ok(scan) => scan,
        // Flags are those of a newer release: the file stays as it is.
        Err(ReadError::Header(error)) if matches!(error.reason, edit::error::Reason::HeaderFlags(_)) => {
            return Err(Unusable::new(format!("{}: {error}", path.display())));
        }
        Err(ReadError::Header(error)) => {
            durable::rename(disk, path, &aside(".corrupt")).map_err(io)?;
            return Err(Unusable::new(format!("In-progress edit log file is corrupt: {}: {error}", path.display())));
        }
        Err(error) => return Err(Unusable::new(format!("{}: {error}", path.display()))),
    };
    let mut last = scan.last;
    if let Tail::Damaged { offset, ref reason, later } = scan.tail
        && damage == Damage::Refused
    {
        let text = format!(
            "{}: damaged at offset {offset} ({reason}), but intact up to transaction {later} after that. Nothing was changed. \
             Start from another copy, or see what can be saved with the recovery mode.",
            path.display()
        );
        return Err(Unusable { reason: text, later: Some(later) });
    }
    if let Tail::Damaged { later, .. } = scan.tail {
        last = last.max(Some(later));
    }
    let Some(last) = last else {
        durable::rename(disk, path, &aside(".empty")).map_err(io)?;
        return Ok(Recovered::Empty(path.to_owned()));
    };
    if let Some(finalized) = finalized {
        let text =
            format!("Can't finalize edits file {} since finalized file already exists: {finalized}", path.display());
        return Err(Unusable::new(text));
    }
    // After a killed process the last records may be in memory only; they are about to be relied on.
    let file = disk.open(path, Open::Write).map_err(io)?;
    if scan.tail == Tail::Clean {
        file.set_length(scan.end).map_err(io)?;
    }
    file.sync_all().map_err(io)?;
    durable::rename(disk, path, &path.with_file_name(names::finalized(first, last))).map_err(io)?;
    Ok(Recovered::Finalized { first, last, tail: scan.tail })
}

/// A segment and where copies of it are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// First transaction.
    pub first: Txid,
    /// Last transaction of the longest copy.
    pub last: Txid,
    /// Copies, those that end later first.
    pub copies: Vec<SegmentCopy>,
}

/// One file of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentCopy {
    /// The file.
    pub path: PathBuf,
    /// Last transaction that its name promises, or that a scan has found in an open one.
    pub last: Txid,
}

/// The finalized segments of several `current` directories, by first transaction.
///
/// # Errors
/// A directory cannot be listed.
pub fn segments(disk: &dyn Disk, currents: &[&Path]) -> Result<Vec<Segment>, StorageError> {
    let mut found: BTreeMap<Txid, Vec<SegmentCopy>> = BTreeMap::new();
    for current in currents {
        for name in disk.list(current).map_err(StorageError::io(current))? {
            if let Kind::Finalized(first, last) = names::kind(&name)
                && first <= last
            {
                found.entry(first).or_default().push(SegmentCopy { path: current.join(name), last });
            }
        }
    }
    let segment = |(first, mut copies): (Txid, Vec<SegmentCopy>)| {
        copies.sort_by_key(|copy| std::cmp::Reverse(copy.last));
        Segment { first, last: copies[0].last, copies }
    };
    Ok(found.into_iter().map(segment).collect())
}

/// The segments to read from transaction `from` on.
///
/// # Errors
/// A directory cannot be listed; or there is a gap before `needed` (the highest `seen_txid`; 0 asks for nothing).
pub fn select(disk: &dyn Disk, currents: &[&Path], from: Txid, needed: Txid) -> Result<Vec<Segment>, StorageError> {
    let mut chosen = segments(disk, currents)?;
    chosen.retain(|segment| segment.last >= from);
    let mut next = from;
    for segment in &chosen {
        if segment.first > next {
            break;
        }
        next = next.max(segment.last.next());
    }
    if next <= needed {
        return Err(StorageError::Gap { needed, missing: next });
    }
    Ok(chosen)
}
