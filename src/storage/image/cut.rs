//! A section cut into parts of whole records, so that each can be decoded by another thread.
//!
//! Cutting looks at the lengths before records and at nothing else. Buffers come back when they were decoded and are used again.

use super::summary::{ImageError, Section};
use hadoop_proto::wire::{Cursor, WireError};
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

/// Bytes of a part, unless one record is larger.
const PART_BYTES: usize = 1 << 20;

/// Buffers that wait to be used again.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// One for a section of so many bytes.
    fn take(&self, length: u64) -> Vec<u8> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let wanted = usize::try_from(length).unwrap_or(PART_BYTES).clamp(1, PART_BYTES);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        buffer
    }
    /// A buffer whose part is done.
    pub(super) fn give_back(&self, buffer: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Where a part stands in its section: which stream (sub-section), which part of it. Errors of the lowest place are the ones told.
pub(super) type Place = (u32, u32);

/// Whole records, one after the other.
pub(super) struct Part {
    pub(super) buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// Offset of the first record, in the file (or, in a compressed section, as if it were stored plain).
    offset: u64,
    pub(super) place: Place,
    section: Section,
}

impl Part {
    /// Where it begins in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
    /// The records, to be read.
    pub(super) fn records(&self) -> Records<'_> {
        let end = self.offset + (self.to - self.from) as u64;
        Records { cursor: Cursor::new(&self.buffer[self.from..self.to]), end, section: self.section }
    }
}

/// Delimited messages of a section or a part of it.
pub(super) struct Records<'a> {
    cursor: Cursor<'a>,
    end: u64,
    section: Section,
}

impl<'a> Records<'a> {
    /// Of a whole section.
    pub(super) fn new(bytes: &'a [u8], section: Section) -> Records<'a> {
        Records { cursor: Cursor::new(bytes), end: section.offset + bytes.len() as u64, section }
    }
    /// An error at the place reached.
    pub(super) fn wire(&self, error: WireError) -> ImageError {
        let offset = self.end - self.cursor.rest().len() as u64;
        ImageError::Wire { section: self.section.name.text(), offset, error }
    }
    /// The name of the section.
    pub(super) fn section(&self) -> &'static str {
        self.section.name.text()
    }
    /// The next message; there must be one.
    #[inline]
    pub(super) fn message(&mut self) -> Result<&'a [u8], ImageError> {
        self.cursor.bytes().map_err(|e| self.wire(e))
    }
    /// The next message, if the section goes on.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>, ImageError> {
        if self.cursor.is_empty() { Ok(None) } else { self.message().map(Some) }
    }
}

/// What a stream is cut into.
pub(super) enum Piece {
    /// Records.
    Part(Part),
    /// The stream cannot be cut any further.
    Failed(Place, ImageError),
}

/// Cuts one stream.
pub(super) struct Cutter<'s> {
    /// Its section: the name, and where it begins.
    pub(super) section: Section,
    /// Number of the stream.
    pub(super) stream: u32,
    pub(super) buffers: &'s Buffers,
    /// Whether the bytes are those of the file.
    pub(super) plain: bool,
}

/// What scanning lengths has found.
enum Scan {
    /// Up to here records are whole; there may be more bytes.
    More(usize),
    /// As many records as were wanted end here.
    Done(usize),
    /// No length.
    Bad(usize),
}

impl Cutter<'_> {
    /// Reads all of `stream`, and hands on pieces until `sink` wants no more (`false`). `head` gets the first message, if it is given, and may say
    /// how many records follow it; else all records are taken.
    pub(super) fn cut(
        &self,
        stream: &mut dyn Read,
        mut head: Option<&mut dyn FnMut(&[u8]) -> Result<Option<u64>, WireError>>,
        sink: &mut dyn FnMut(Piece) -> bool,
    ) {
        let (mut carry, mut wanted, mut number, mut offset) = (Vec::new(), None, 0, self.section.offset);
        loop {
            let mut buffer = self.buffers.take(self.section.length);
            let place = (self.stream, number);
            let (filled, end) = match self.fill(stream, &mut buffer, &carry) {
                Ok(filled) => filled,
                Err(error) => {
                    sink(Piece::Failed(place, error));
                    return;
                }
            };
            let mut from = 0;
            if let Some(head) = head.take_if(|_| first_is_whole(&buffer[..filled]) || end) {
                let mut records = Records::new(&buffer[..filled], Section { offset, ..self.section });
                match records.message().and_then(|message| head(message).map_err(|e| records.wire(e))) {
                    Ok(count) => wanted = count,
                    Err(error) => {
                        sink(Piece::Failed(place, error));
                        return;
                    }
                }
                from = filled - records.cursor.rest().len();
            }
            let scan = if head.is_some() { Scan::More(from) } else { scan(&buffer[..filled], from, &mut wanted) };
            let (to, last) = match scan {
                Scan::More(to) => (to, end),
                Scan::Done(to) => (to, true),
                Scan::Bad(to) => (to, true),
            };
            carry.clear();
            carry.extend_from_slice(&buffer[to..filled]);
            let part = Part { from, to, offset: offset + from as u64, place, section: self.section, buffer };
            offset += to as u64;
            if !sink(Piece::Part(part)) {
                return;
            }
            number += 1;
            if last {
                if !matches!(scan, Scan::Done(_))
                    && let Some(error) = self.leftover(&carry, offset, wanted)
                {
                    sink(Piece::Failed((self.stream, number), error));
                }
                return;
            }
        }
    }

    /// Fills a buffer, at least with one whole message behind `carry` if the stream has one. Gives how much is filled, and whether the stream ended.
    fn fill(&self, stream: &mut dyn Read, buffer: &mut Vec<u8>, carry: &[u8]) -> Result<(usize, bool), ImageError> {
        if buffer.len() <= carry.len() {
            buffer.resize(carry.len() + PART_BYTES, 0);
        }
        buffer[..carry.len()].copy_from_slice(carry);
        let mut filled = carry.len();
        loop {
            while filled < buffer.len() {
                match stream.read(&mut buffer[filled..]) {
                    Ok(0) => return Ok((filled, true)),
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.failed(&error)),
                }
            }
            if first_is_whole(&buffer[..filled]) {
                return Ok((filled, false));
            }
            buffer.resize(buffer.len() * 2, 0);
        }
    }

    fn failed(&self, error: &io::Error) -> ImageError {
        if self.plain {
            return ImageError::Read(error.to_string());
        }
        ImageError::Content { section: self.section.name.text(), what: format!("cannot be decompressed: {error}") }
    }

    /// What is wrong with bytes that are no whole record, at the end of a stream.
    fn leftover(&self, rest: &[u8], offset: u64, wanted: Option<u64>) -> Option<ImageError> {
        if rest.is_empty() && wanted.is_none_or(|wanted| wanted == 0) {
            return None;
        }
        Records::new(rest, Section { offset, ..self.section }).message().err()
    }
}

/// Whether the first message is there in full (or cannot be one).
fn first_is_whole(bytes: &[u8]) -> bool {
    !matches!(Cursor::new(bytes).bytes(), Err(WireError::Truncated))
}

/// Steps over whole records.
fn scan(bytes: &[u8], from: usize, wanted: &mut Option<u64>) -> Scan {
    let mut cursor = Cursor::new(&bytes[from..]);
    loop {
        let at = bytes.len() - cursor.rest().len();
        if *wanted == Some(0) {
            return Scan::Done(at);
        }
        match cursor.bytes() {
            Ok(_) => {
                if let Some(wanted) = wanted {
                    *wanted -= 1;
                }
            }
            Err(WireError::Truncated) => return Scan::More(at),
            Err(_) => return Scan::Bad(at),
        }
    }
}
