//! Reading a damaged log as far as it goes (`namenode -recover`): where a start would refuse, somebody is asked, and what cannot be read or applied is
//! left out. The questions are Hadoop's.

use crate::StorageError;
use crate::journal::local::{self, Segment, SegmentCopy};
use crate::journal::reader::{ReadError, SegmentReader};
use edit::{Frame, Record};
use os::disk::Disk;
use std::path::Path;
use vocab::Txid;

/// What was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Leave out what the question names, and go on.
    Continue,
    /// Leave out all that comes after.
    Stop,
    /// Give up; nothing is written.
    Quit,
}

/// Who answers.
pub trait Questions {
    /// Tells what cannot be read, and why.
    fn tell(&mut self, path: &Path, reason: &str);
    /// Tells a problem and asks; `going_on` says what it would mean to go on.
    fn ask(&mut self, problem: &str, going_on: &str) -> Answer;
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Salvaged {
    /// The last transaction that the log promises: what is left out keeps its number.
    pub last: Txid,
    /// Records applied.
    pub records: u64,
}

/// Why the reading ended.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// It was given up.
    #[error("Exiting on user request.")]
    Quit,
    /// The directories cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Reads all segments from transaction `from` on, gaps or not, and hands every record to `apply`, which must not keep it.
///
/// # Errors
/// See [`SalvageError`].
pub fn salvage(
    disk: &dyn Disk,
    currents: &[&Path],
    from: Txid,
    max: usize,
    questions: &mut dyn Questions,
    apply: &mut dyn FnMut(Record<'_>) -> Result<(), String>,
) -> Result<Salvaged, SalvageError> {
    let mut segments = local::segments(disk, currents)?;
    segments.retain(|segment| segment.last >= from);
    let promised = segments.iter().map(|segment| segment.last).max();
    let mut run = Run { disk, max, expected: from, records: 0, questions, apply };
    for segment in &segments {
        match run.segment(segment) {
            Ok(()) => run.expected = segment.last.next(),
            // Quirk: what_comes_after_the_damage_is_left_out_when_that_is_asked_for: Hadoop stops within the segment and reads the next one
            Err(Left::Stop) => break,
            Err(Left::Quit) => return Err(SalvageError::Quit),
        }
    }
    let last = promised.unwrap_or_default().max(Txid(from.0.saturating_sub(1)));
    Ok(Salvaged { last, records: run.records })
}

/// Why a segment was left.
enum Left {
    Stop,
    Quit,
}

struct Run<'r> {
    disk: &'r dyn Disk,
    max: usize,
    expected: Txid,
    records: u64,
    questions: &'r mut dyn Questions,
    apply: &'r mut dyn FnMut(Record<'_>) -> Result<(), String>,
}

/// One copy at a time of a segment.
struct Cursor<'s> {
    copies: &'s [SegmentCopy],
    at: usize,
    reader: Option<SegmentReader>,
    /// The last record read, in the order of the file.
    previous: Option<Txid>,
    /// Whether records up to `previous` come again.
    catching_up: bool,
}

impl Cursor<'_> {
    fn copy(&self) -> &SegmentCopy {
        &self.copies[self.at]
    }
    /// Goes on in the next copy; false if there is none.
    fn next_copy(&mut self) -> bool {
        if self.at + 1 == self.copies.len() {
            return false;
        }
        self.at += 1;
        (self.reader, self.catching_up) = (None, true);
        true
    }
    fn is_done(&self) -> bool {
        self.previous.is_some_and(|previous| previous >= self.copy().last)
    }
}

impl Run<'_> {
    fn ask(&mut self, problem: &str, going_on: &str) -> Result<(), Left> {
        match self.questions.ask(problem, going_on) {
            Answer::Continue => Ok(()),
            Answer::Stop => Err(Left::Stop),
            Answer::Quit => Err(Left::Quit),
        }
    }

    fn segment(&mut self, segment: &Segment) -> Result<(), Left> {
        let mut cursor = Cursor { copies: &segment.copies, at: 0, reader: None, previous: None, catching_up: false };
        while !cursor.is_done() {
            let Err((reason, resync)) = self.records(&mut cursor)? else { break };
            self.questions.tell(&cursor.copy().path, &reason);
            let longest = cursor.copy().last;
            // a copy that promises as much takes over without a question
            if cursor.copies.get(cursor.at + 1).is_some_and(|next| next.last >= longest) {
                cursor.next_copy();
                continue;
            }
            let problem = format!("We failed to read txId {}", self.expected);
            self.ask(&problem, "skipping the bad section in the log")?;
            if cursor.next_copy() {
                continue;
            }
            let Some(reader) = cursor.reader.as_mut().filter(|_| resync) else { break };
            if let Err(error) = reader.skip_damage() {
                self.questions.tell(&cursor.copies[cursor.at].path, &error.to_string());
                break;
            }
            cursor.catching_up = true;
        }
        Ok(())
    }

    /// Reads on in a copy to its end, or to where it cannot be read: the reason, and whether there may be more behind it.
    #[allow(clippy::type_complexity)] // two ways to end, told apart by their layers
    fn records(&mut self, cursor: &mut Cursor<'_>) -> Result<Result<(), (String, bool)>, Left> {
        let mut reader = match cursor.reader.take() {
            Some(reader) => reader,
            None => match SegmentReader::open(self.disk, &cursor.copy().path, self.max) {
                Ok(reader) => reader,
                Err(error) => return Ok(Err((error.to_string(), false))),
            },
        };
        let outcome = loop {
            let error = match reader.next() {
                Ok(Some(frame)) => {
                    let again = cursor.catching_up && cursor.previous.is_some_and(|previous| frame.txid <= previous);
                    if again {
                        continue;
                    }
                    (cursor.catching_up, cursor.previous) = (false, Some(frame.txid));
                    self.record(frame)?;
                    if cursor.is_done() {
                        break Ok(());
                    }
                    continue;
                }
                Ok(None) => {
                    let end = cursor.previous.map_or(-1, |previous| previous.0.cast_signed());
                    let last = cursor.copy().last;
                    let text = format!("got premature end-of-file at txid {end}; expected file to go up to {last}");
                    break Err((text, false));
                }
                Err(error) => error,
            };
            break Err((error.to_string(), !matches!(error, ReadError::Io(_))));
        };
        cursor.reader = Some(reader);
        Ok(outcome)
    }

    fn record(&mut self, frame: Frame<'_>) -> Result<(), Left> {
        let (got, expected) = (frame.txid, self.expected);
        if got > expected {
            let problem =
                format!("There appears to be a gap in the edit log.  We expected txid {expected}, but got txid {got}.");
            self.ask(&problem, "ignoring missing  transaction IDs")?;
        } else if got < expected {
            let problem = format!(
                "There appears to be an out-of-order edit in the edit log.  We expected txid {expected}, but got txid {got}."
            );
            return self.ask(&problem, "skipping the out-of-order edit");
        }
        if let Err(error) = (self.apply)(frame.record) {
            self.ask(&format!("Failed to apply edit log operation at txid {got}: error {error}"), "applying edits")?;
        }
        self.records += 1;
        self.expected = got.next();
        Ok(())
    }
}
