//! Reading the log of a running process from some transaction on, the open segment included, up to what is durable.

use super::reader::{ReadError, SegmentReader};
use crate::StorageError;
use crate::names::{self, Kind};
use edit::Record;
use os::disk::Disk;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// A copy of a segment: the last transaction that its name promises (none for an open one), and where it is.
type Copy = (Option<Txid>, PathBuf);

/// Hands the records of transactions `from` to `durable` to `visit`, in order and without a gap, until it breaks. Where what `from` asks for was
/// purged, the first record is a later one. A segment that gets its final name in the meantime ends the reading early: who asks again goes on
/// from there. `max` is the largest record allowed.
///
/// # Errors
/// A folder that cannot be listed, or a segment of which no copy can be read.
pub fn read(
    disk: &dyn Disk,
    currents: &[PathBuf],
    from: Txid,
    durable: Txid,
    max: usize,
    visit: &mut dyn FnMut(Txid, &Record<'_>) -> ControlFlow<()>,
) -> Result<(), StorageError> {
    let mut next = from;
    let mut begun = false;
    for (first, copies) in segments(disk, currents, from)? {
        if first > durable || begun && first > next {
            break;
        }
        next = next.max(first);
        let mut failed = None;
        for (last, path) in &copies {
            if last.is_some_and(|last| last < next) {
                break;
            }
            let before = next;
            match read_copy(disk, path, &mut next, durable, max, visit) {
                Ok(ControlFlow::Break(())) => return Ok(()),
                Ok(ControlFlow::Continue(())) => {}
                Err(error) => failed = Some((path, error)),
            }
            begun |= next > before;
        }
        match failed {
            Some((_, ReadError::Io(error))) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Some((path, error)) if !begun => {
                return Err(StorageError::Recovery(format!("{}: {error}", path.display())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Segments that may hold `from` or later ones, by first transaction; finalized copies come first, and of these the longest.
fn segments(disk: &dyn Disk, currents: &[PathBuf], from: Txid) -> Result<BTreeMap<Txid, Vec<Copy>>, StorageError> {
    let mut found: BTreeMap<Txid, Vec<Copy>> = BTreeMap::new();
    for current in currents {
        for name in disk.list(current).map_err(StorageError::io(current))? {
            let (first, last) = match names::kind(&name) {
                Kind::Finalized(first, last) if last >= from => (first, Some(last)),
                Kind::InProgress(first) => (first, None),
                _ => continue,
            };
            found.entry(first).or_default().push((last, current.join(name)));
        }
    }
    for copies in found.values_mut() {
        copies.sort_by_key(|(last, _)| Reverse(*last));
    }
    Ok(found)
}

/// Reads one copy from `next` on and moves `next` on. Where an open one ends early, another may be longer.
fn read_copy(
    disk: &dyn Disk,
    path: &Path,
    next: &mut Txid,
    durable: Txid,
    max: usize,
    visit: &mut dyn FnMut(Txid, &Record<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, ReadError> {
    let mut reader = SegmentReader::open(disk, path, max)?;
    reader.skip_until(*next)?;
    while *next <= durable {
        let Some(frame) = reader.next()? else { return Ok(ControlFlow::Continue(())) };
        *next = frame.txid.next();
        if visit(frame.txid, &frame.record).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Break(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use edit::frame;
    use os::Os;
    use os::disk::Open;
    use vocab::LayoutVersion;

    const MAX: usize = 1 << 20;

    fn segment(disk: &dyn Disk, path: &Path, txids: std::ops::RangeInclusive<u64>, fill: usize) {
        let mut bytes = Vec::new();
        frame::put_header(LayoutVersion::CURRENT, &mut bytes);
        for txid in txids {
            let record = Record::AllocateBlockId { id: txid as i64 };
            edit::encode(&record, Txid(txid), LayoutVersion::CURRENT, &mut bytes).unwrap();
        }
        bytes.extend(std::iter::repeat_n(frame::FILL, fill));
        disk.open(path, Open::Truncate).unwrap().write_all_at(&bytes, 0).unwrap();
    }

    fn read_all(disk: &dyn Disk, folders: &[PathBuf], from: u64, durable: u64, count: usize) -> Vec<u64> {
        let mut seen = Vec::new();
        read(disk, folders, Txid(from), Txid(durable), MAX, &mut |txid, _| {
            seen.push(txid.0);
            if seen.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
        seen
    }

    #[test]
    fn from_a_transaction_on_up_to_what_is_durable() {
        let (os, disk, _) = Os::simulated(5);
        let folders = [PathBuf::from("/a/current"), PathBuf::from("/b/current")];
        for folder in &folders {
            disk.create_directories(folder, 0o700).unwrap();
        }
        let disk = &*os.disk;
        segment(disk, &folders[0].join(names::finalized(Txid(4), Txid(6))), 4..=6, 0);
        segment(disk, &folders[1].join(names::finalized(Txid(4), Txid(6))), 4..=6, 0);
        // the second folder was dropped in the midst of the next segment
        segment(disk, &folders[0].join(names::finalized(Txid(7), Txid(9))), 7..=9, 0);
        segment(disk, &folders[1].join(names::in_progress(Txid(7))), 7..=8, 100);
        segment(disk, &folders[0].join(names::in_progress(Txid(10))), 10..=13, 1000);
        assert_eq!(read_all(disk, &folders, 5, 12, 99), [5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(read_all(disk, &folders, 1, 6, 99), [4, 5, 6], "what was purged is left out");
        assert_eq!(read_all(disk, &folders, 1, 12, 2), [4, 5]);
        assert_eq!(read_all(disk, &folders, 13, 12, 99), [0; 0]);
        let reversed = [folders[1].clone(), folders[0].clone()];
        assert_eq!(read_all(disk, &reversed, 8, 13, 99), [8, 9, 10, 11, 12, 13]);
        // a copy that is cut short leaves the rest to another one
        segment(disk, &folders[1].join(names::in_progress(Txid(10))), 10..=11, 0);
        assert_eq!(read_all(disk, &reversed, 10, 13, 99), [10, 11, 12, 13]);
    }
}
