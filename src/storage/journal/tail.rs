//! Reading the log of a running process from some transaction on, the open segment included, up to what is durable.

use super::reader::{ReadError, SegmentReader};
use crate::StorageError;
use crate::names::{self, Kind};
use edit::Record;
use os::disk::Disk;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// A copy of a segment: the last transaction that its name promises (none for an open one), and where it is.
type Copy = (Option<Txid>, PathBuf);

/// Bytes read at once: a follower mostly asks for the few records since it asked last.
const WINDOW_BYTES: usize = 64 << 10;
/// How many places are remembered: more than followers are usual.
const PLACES_MAX: usize = 256;

/// Where a reading ended: in which segment, in which file of it, at which offset.
#[derive(Clone, Debug)]
struct Place {
    segment: Txid,
    path: PathBuf,
    offset: u64,
    used: u64,
}

/// Where readings ended, so that the next one goes on there and not from the start of its segment.
#[derive(Debug, Default)]
pub struct Places(Mutex<(u64, BTreeMap<Txid, Place>)>);

impl Places {
    /// The nearest place before a transaction or at it, with its own transaction.
    fn nearest(&self, txid: Txid) -> Option<(Txid, Place)> {
        let (clock, places) = &mut *self.0.lock();
        let (at, place) = places.range_mut(..=txid).next_back()?;
        *clock += 1;
        place.used = *clock;
        Some((*at, place.clone()))
    }

    fn remember(&self, next: Txid, segment: Txid, path: &Path, offset: u64) {
        let (clock, places) = &mut *self.0.lock();
        *clock += 1;
        places.insert(next, Place { segment, path: path.to_owned(), offset, used: *clock });
        while places.len() > PLACES_MAX {
            let oldest = places.iter().min_by_key(|(_, place)| place.used).map(|(txid, _)| *txid);
            places.remove(&oldest.unwrap_or_default());
        }
    }
}

/// A log that is being followed.
#[derive(Clone, Copy, Debug)]
pub struct Followed<'a> {
    /// Where its files are.
    pub disk: &'a dyn Disk,
    /// The folders that each hold a copy.
    pub currents: &'a [PathBuf],
    /// Up to where it may be read.
    pub durable: Txid,
    /// The largest record allowed, in bytes.
    pub record_bytes_max: usize,
    /// Where readings of it ended.
    pub places: &'a Places,
}

impl Followed<'_> {
    /// Hands the records of transactions `from` to `durable` to `visit`, in order and without a gap, until it breaks. Where what `from` asks for
    /// was purged, the first record is a later one. A segment that gets its final name in the meantime ends the reading early: who asks again
    /// goes on from there.
    ///
    /// # Errors
    /// A folder that cannot be listed, or a segment of which no copy can be read.
    pub fn read(
        &self,
        from: Txid,
        visit: &mut dyn FnMut(Txid, &Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        let mut next = from;
        // mostly the file in which the last reading ended is still there, and no folder need be listed
        if let Some((_, place)) = self.places.nearest(from).filter(|(at, _)| *at == from)
            && let Ok(ControlFlow::Break(())) = self.read_copy(place.segment, &place.path, &mut next, visit)
        {
            return Ok(());
        }
        let mut begun = next > from;
        for (first, copies) in segments(self.disk, self.currents, next)? {
            if first > self.durable || begun && first > next {
                break;
            }
            next = next.max(first);
            let mut failed = None;
            for (last, path) in &copies {
                if last.is_some_and(|last| last < next) {
                    break;
                }
                let before = next;
                match self.read_copy(first, path, &mut next, visit) {
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

    /// Reads one copy of a segment from `next` on and moves `next` on. Where an open one ends early, another may be longer.
    fn read_copy(
        &self,
        segment: Txid,
        path: &Path,
        next: &mut Txid,
        visit: &mut dyn FnMut(Txid, &Record<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let mut reader = SegmentReader::open_small(self.disk, path, self.record_bytes_max, WINDOW_BYTES)?;
        // all copies of a segment are the same bytes; one that is not is read from its start
        if let Some((at, place)) = self.places.nearest(*next).filter(|(_, place)| place.segment == segment) {
            reader.go_to(place.offset, at);
        }
        reader.skip_until(*next)?;
        let read = self.read_on(&mut reader, next, visit);
        self.places.remember(*next, segment, path, reader.offset());
        read
    }

    fn read_on(
        &self,
        reader: &mut SegmentReader,
        next: &mut Txid,
        visit: &mut dyn FnMut(Txid, &Record<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        while *next <= self.durable {
            let Some(frame) = reader.next()? else { return Ok(ControlFlow::Continue(())) };
            *next = frame.txid.next();
            if visit(frame.txid, &frame.record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Break(()))
    }
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
        let places = Places::default();
        follow(disk, folders, &places, from..=durable, &mut |txid| {
            seen.push(txid.0);
            if seen.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        seen
    }

    fn follow(
        disk: &dyn Disk,
        currents: &[PathBuf],
        places: &Places,
        txids: std::ops::RangeInclusive<u64>,
        visit: &mut dyn FnMut(Txid) -> ControlFlow<()>,
    ) {
        let followed = Followed { disk, currents, durable: Txid(*txids.end()), record_bytes_max: MAX, places };
        followed.read(Txid(*txids.start()), &mut |txid, _| visit(txid)).unwrap();
    }

    fn folder() -> (Os, [PathBuf; 1]) {
        let (os, disk, _) = Os::simulated(5);
        let folder = PathBuf::from("/a/current");
        disk.create_directories(&folder, 0o700).unwrap();
        (os, [folder])
    }

    /// Follows from 1 on in pieces of five, as long as there are more, and returns what was seen.
    fn follow_in_pieces(disk: &dyn Disk, folders: &[PathBuf], places: &Places, from: u64, durable: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let (next, mut count) = (from + seen.len() as u64, 0);
            follow(disk, folders, places, next..=durable, &mut |txid| {
                seen.push(txid.0);
                count += 1;
                if count < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            if count == 0 {
                return seen;
            }
        }
    }

    #[test]
    fn a_reading_goes_on_where_the_last_one_ended_and_does_not_look_at_what_is_before() {
        let (os, folders) = folder();
        let (disk, places) = (&*os.disk, Places::default());
        let open = folders[0].join(names::in_progress(Txid(1)));
        segment(disk, &open, 1..=20, 1000);
        assert_eq!(follow_in_pieces(disk, &folders, &places, 1, 20), (1..=20).collect::<Vec<_>>());
        segment(disk, &open, 1..=5_000, 1000);
        // what lies before the place cannot be read any more
        let record = places.nearest(Txid(21)).unwrap().1.offset / 20;
        disk.open(&open, Open::Write).unwrap().write_all_at(&vec![0xEE; 15 * record as usize], 8).unwrap();
        assert_eq!(follow_in_pieces(disk, &folders, &places, 21, 4_000), (21..=4_000).collect::<Vec<_>>());
        // nor is it after the segment got its name, nor for another follower who begins in the middle
        disk.rename(&open, &folders[0].join(names::finalized(Txid(1), Txid(5_000)))).unwrap();
        segment(disk, &folders[0].join(names::in_progress(Txid(5_001))), 5_001..=5_003, 1000);
        assert_eq!(follow_in_pieces(disk, &folders, &places, 4_001, 5_003), (4_001..=5_003).collect::<Vec<_>>());
        assert_eq!(follow_in_pieces(disk, &folders, &places, 4_500, 5_003), (4_500..=5_003).collect::<Vec<_>>());
        assert!(places.0.lock().1.len() <= PLACES_MAX);
    }

    #[test]
    fn a_place_that_holds_another_record_is_not_trusted() {
        let (os, folders) = folder();
        let (disk, places) = (&*os.disk, Places::default());
        let open = folders[0].join(names::in_progress(Txid(1)));
        segment(disk, &open, 1..=20, 0);
        places.remember(Txid(7), Txid(1), &open, 30);
        places.remember(Txid(9), Txid(1), &folders[0].join("gone"), 1_000_000);
        for from in 1..=20 {
            assert_eq!(follow_in_pieces(disk, &folders, &places, from, 20), (from..=20).collect::<Vec<_>>());
            places.remember(Txid(7), Txid(1), &open, 30);
        }
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
