//! Reading a segment file, record by record, in large pieces and without copying records.

use edit::error::DecodeError;
use edit::frame::{self, Decoded, Frame, Hop};
use os::disk::{Disk, File, Open};
use std::io;
use std::path::{Path, PathBuf};
use vocab::{LayoutVersion, Txid};

/// Bytes read at once.
const WINDOW_BYTES: usize = 1 << 20;
/// A sector: what a disk writes as a whole.
const SECTOR_BYTES: u64 = 512;

/// Bytes of whole frames that are handed on together.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Frames cut out of a segment.
#[derive(Debug)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    /// Offset of the first one in the file.
    offset: u64,
    hops: Vec<Hop>,
    layout: LayoutVersion,
}

impl Chunk {
    /// Decodes frame by frame: each with its offset in the file, up to the first one that is no record.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u64, Result<Frame<'_>, ReadError>)> {
        let mut at = 0;
        self.hops.iter().map(move |hop| {
            let start = at;
            at += hop.length;
            let frame = frame::record(&self.bytes[start..at], self.layout, hop).map_err(ReadError::Record);
            (self.offset + start as u64, frame)
        })
    }
}

/// Why a segment cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The disk failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The header is none that this software knows.
    #[error("{0}")]
    Header(DecodeError),
    /// There is no record where one should be.
    #[error("{0}")]
    Record(DecodeError),
    /// The file ends within a record.
    #[error("the file ends within a record")]
    Truncated,
}

/// A segment file being read from its start.
#[derive(Debug)]
pub struct SegmentReader {
    file: Box<dyn File>,
    path: PathBuf,
    layout: LayoutVersion,
    max: usize,
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `window[start]` in the file.
    offset: u64,
}

impl SegmentReader {
    /// Opens a segment and reads its header. `max` is the largest record allowed.
    ///
    /// # Errors
    /// The disk's, or a header that is none.
    pub fn open(disk: &dyn Disk, path: &Path, max: usize) -> Result<SegmentReader, ReadError> {
        SegmentReader::open_small(disk, path, max, WINDOW_BYTES)
    }

    /// The same for who reads little of it: `window` bytes at once.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn open_small(
        disk: &dyn Disk,
        path: &Path,
        max: usize,
        window: usize,
    ) -> Result<SegmentReader, ReadError> {
        let file = disk.open(path, Open::Read)?;
        let window = vec![0; usize::try_from(file.length()?).unwrap_or(usize::MAX).clamp(16, window)];
        let mut reader = SegmentReader {
            file,
            path: path.to_owned(),
            layout: LayoutVersion(0),
            max,
            window,
            start: 0,
            end: 0,
            offset: 0,
        };
        while reader.end < frame::HEADER_LENGTH && reader.fill(frame::HEADER_LENGTH)? {}
        let (layout, length) = frame::header(&reader.window[..reader.end]).map_err(ReadError::Header)?;
        reader.layout = layout;
        reader.start = length;
        reader.offset = length as u64;
        Ok(reader)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Layout of its header.
    pub fn layout(&self) -> LayoutVersion {
        self.layout
    }
    /// Offset of the next record.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` at the end of the file and at fill (which is read to its end).
    ///
    /// # Errors
    /// There is something else. The offset stays where it was.
    #[allow(clippy::should_implement_trait)] // it lends
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        let Some(hop) = self.look()? else { return Ok(None) };
        let frame = frame::record(&self.window[self.start..self.end], self.layout, &hop).map_err(ReadError::Record)?;
        self.start += hop.length;
        self.offset += hop.length as u64;
        Ok(Some(frame))
    }

    /// Goes on to the first record of transaction `txid` or later, decoding none of those before it.
    ///
    /// # Errors
    /// Those of [`SegmentReader::next`], but for bodies that are none.
    pub fn skip_until(&mut self, txid: Txid) -> Result<(), ReadError> {
        while let Some(hop) = self.look()?.filter(|hop| hop.txid < txid) {
            self.start += hop.length;
            self.offset += hop.length as u64;
        }
        Ok(())
    }

    /// Goes to an offset at which a reader of the same segment has been, before the record of `txid`; false, and nowhere, if that is not there.
    pub(crate) fn go_to(&mut self, offset: u64, txid: Txid) -> bool {
        let header = self.offset;
        (self.start, self.end, self.offset) = (0, 0, offset);
        let is_there = matches!(self.look(), Ok(Some(hop)) if hop.intact && hop.txid == txid);
        if !is_there {
            (self.start, self.end, self.offset) = (0, 0, header);
        }
        is_there
    }

    /// Leaves out the damage at the present offset: goes on to the next intact record; false if there is none.
    ///
    /// # Errors
    /// The disk's.
    pub fn skip_damage(&mut self) -> io::Result<bool> {
        loop {
            if self.start == self.end && !self.fill(1)? {
                return Ok(false);
            }
            self.start += 1;
            self.offset += 1;
            let plausible = |byte: &u8| edit::Opcode::from_number(*byte).is_some();
            while self.window[self.start..self.end].first().is_some_and(plausible) {
                match frame::hop(&self.window[self.start..self.end], self.layout, self.max) {
                    Ok(Decoded::Frame(hop)) if hop.intact => return Ok(true),
                    Ok(Decoded::NeedMore(count)) if self.fill(count)? => {}
                    _ => break,
                }
            }
        }
    }

    /// The next frames, up to the one of transaction `last` and to about [`CHUNK_BYTES`], copied out so that they can be decoded elsewhere;
    /// `None` where [`SegmentReader::next`] gives it.
    ///
    /// # Errors
    /// Those of [`SegmentReader::next`] about the first frame; what is wrong with a later one is told by the next call.
    pub(crate) fn chunk(&mut self, last: Txid) -> Result<Option<Chunk>, ReadError> {
        let Some(mut hop) = self.look()? else { return Ok(None) };
        let (offset, begin, layout) = (self.offset, self.start, self.layout);
        let mut hops = Vec::new();
        loop {
            self.start += hop.length;
            self.offset += hop.length as u64;
            let ends = hop.txid >= last || self.start - begin >= CHUNK_BYTES;
            hops.push(hop);
            match frame::hop(&self.window[self.start..self.end], self.layout, self.max) {
                Ok(Decoded::Frame(next)) if !ends => hop = next,
                _ => break,
            }
        }
        Ok(Some(Chunk { bytes: self.window[begin..self.start].to_vec(), offset, hops, layout }))
    }

    /// The frame at the present offset, without moving.
    fn look(&mut self) -> Result<Option<Hop>, ReadError> {
        loop {
            match frame::hop(&self.window[self.start..self.end], self.layout, self.max).map_err(ReadError::Record)? {
                Decoded::Frame(hop) => return Ok(Some(hop)),
                Decoded::Fill => return self.fill_to_end().map(|()| None),
                Decoded::NeedMore(count) => {
                    if self.fill(count)? {
                        continue;
                    }
                    return if self.start == self.end { Ok(None) } else { Err(ReadError::Truncated) };
                }
            }
        }
    }

    /// Reads on, so that more of the file is in the window, `count` bytes from `start` if possible; false at the end of the file.
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        self.window.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.window.len() < count {
            self.window.resize(count.next_multiple_of(WINDOW_BYTES), 0);
        }
        let read = self.file.read_at(&mut self.window[self.end..], self.offset + self.end as u64)?;
        self.end += read;
        Ok(read > 0)
    }

    fn fill_to_end(&mut self) -> Result<(), ReadError> {
        let mut at = self.offset;
        let mut window = vec![0; WINDOW_BYTES];
        loop {
            match self.file.read_at(&mut window, at)? {
                0 => return Ok(()),
                read => frame::check_fill(&window[..read]).map_err(|error| {
                    let offset = (at - self.offset) as usize + error.offset;
                    ReadError::Record(DecodeError { offset, ..error })
                })?,
            }
            at += WINDOW_BYTES as u64;
        }
    }

    /// All bytes from the present offset on.
    fn rest(&self) -> io::Result<Vec<u8>> {
        let mut rest = vec![0; self.file.length()?.saturating_sub(self.offset) as usize];
        let mut filled = 0;
        while filled < rest.len() {
            match self.file.read_at(&mut rest[filled..], self.offset + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        rest.truncate(filled);
        Ok(rest)
    }
}

/// How an open segment ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tail {
    /// At a record's end, or with fill.
    Clean,
    /// With something that is no record, and no record of a higher transaction after it: a write that a crash cut short.
    CutShort(String),
    /// With a sector of fill where a record should be, and records after it: writes that a crash left out of order. None of them can have been
    /// acknowledged, since a sync covers all before it.
    Torn,
    /// With damage, and intact records of higher transactions after it: acknowledged ones may be lost.
    Damaged {
        /// Offset of the damage.
        offset: u64,
        /// What is wrong there.
        reason: String,
        /// The highest transaction that is intact after it.
        later: Txid,
    },
}

/// What a scan of an open segment has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scan {
    /// The last transaction before the end; `None` if there is none.
    pub last: Option<Txid>,
    /// Offset after it.
    pub end: u64,
    /// What is there.
    pub tail: Tail,
}

/// Scans an open segment that should begin with `first`: hops from frame to frame, checksums and transaction ids included, without decoding
/// bodies.
///
/// # Errors
/// The disk's, or the header's.
pub fn scan(disk: &dyn Disk, path: &Path, first: Txid, max: usize) -> Result<Scan, ReadError> {
    let mut reader = SegmentReader::open(disk, path, max)?;
    let mut expected = first;
    loop {
        let problem = match reader.look() {
            Ok(None) => return Ok(found(&reader, first, expected, Tail::Clean)),
            Ok(Some(hop)) if hop.intact && hop.txid == expected => {
                reader.start += hop.length;
                reader.offset += hop.length as u64;
                expected = expected.next();
                continue;
            }
            Ok(Some(hop)) if hop.intact && expected == first => {
                // The file is not what its name says.
                let reason = format!("begins with transaction {}", hop.txid);
                let rest = reader.rest()?;
                let later = highest_later(&rest, reader.layout, reader.max, hop.txid).unwrap_or(hop.txid);
                let tail = Tail::Damaged { offset: reader.offset, reason, later };
                return Ok(found(&reader, first, expected, tail));
            }
            Ok(Some(hop)) if hop.intact => format!("transaction {} where {expected} should be", hop.txid),
            Ok(Some(_)) => "the checksum does not fit".to_owned(),
            Err(ReadError::Io(error)) => return Err(error.into()),
            Err(error) => error.to_string(),
        };
        let rest = reader.rest()?;
        let tail = judge(&reader, &rest, expected, problem);
        return Ok(found(&reader, first, expected, tail));
    }
}

fn found(reader: &SegmentReader, first: Txid, expected: Txid, tail: Tail) -> Scan {
    Scan { last: (expected > first).then(|| Txid(expected.0 - 1)), end: reader.offset, tail }
}

/// Decides what the bytes `rest` at the reader's offset are, in which there should be a record `expected`.
fn judge(reader: &SegmentReader, rest: &[u8], expected: Txid, problem: String) -> Tail {
    match highest_later(rest, reader.layout, reader.max, expected) {
        None => Tail::CutShort(problem),
        Some(_) if unwritten_sector(rest, reader.offset) => Tail::Torn,
        Some(later) => Tail::Damaged { offset: reader.offset, reason: problem, later },
    }
}

/// The highest transaction, `expected` or later, of an intact frame anywhere in `rest`. Layouts without lengths cannot be searched: there any
/// byte that is no fill counts.
fn highest_later(rest: &[u8], layout: LayoutVersion, max: usize, expected: Txid) -> Option<Txid> {
    if !layout.supports(vocab::layout::Feature::EditlogLength) {
        return rest.iter().any(|byte| *byte != 0 && *byte != frame::FILL).then_some(expected);
    }
    let possible = expected.0..=expected.0 + (rest.len() / frame::FRAME_MIN) as u64 + 1;
    let mut highest = None;
    let mut at = 0;
    while at + frame::FRAME_MIN <= rest.len() {
        let here = &rest[at..];
        let txid = u64::from_be_bytes(here[5..13].try_into().unwrap_or_default());
        let plausible = possible.contains(&txid) && edit::Opcode::from_number(here[0]).is_some();
        match plausible.then(|| frame::hop(here, layout, max)) {
            Some(Ok(Decoded::Frame(hop))) if hop.intact => {
                highest = highest.max(Some(hop.txid));
                at += hop.length;
            }
            _ => at += 1,
        }
    }
    highest
}

/// Whether the record that should be at the start of `rest` lies on a sector that was never written: all 0xFF from the record's start, or a
/// whole one of zeros (a file system's hole).
fn unwritten_sector(rest: &[u8], offset: u64) -> bool {
    let length = rest.get(1..5).map_or(0, |b| i64::from(i32::from_be_bytes([b[0], b[1], b[2], b[3]])) + 5);
    let extent =
        usize::try_from(length).unwrap_or(0).clamp(frame::FRAME_MIN, rest.len().max(frame::FRAME_MIN)).min(rest.len());
    let mut at = 0;
    while at < extent {
        let left = (SECTOR_BYTES - (offset + at as u64) % SECTOR_BYTES) as usize;
        let sector = &rest[at..(at + left).min(rest.len())];
        let whole = sector.len() as u64 == SECTOR_BYTES;
        if sector.iter().all(|byte| *byte == frame::FILL) || whole && sector.iter().all(|byte| *byte == 0) {
            return true;
        }
        at += left;
    }
    false
}
