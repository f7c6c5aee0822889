//! Replay: the records of chosen segments, in order, to whoever applies them.

use crate::StorageError;
use crate::journal::local::{Segment, SegmentCopy};
use crate::journal::reader::{Chunk, SegmentReader};
use edit::{Frame, Record};
use os::disk::Disk;
use vocab::{InodeId, Txid};

/// How far a replay is, for bars and rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Records applied so far.
    pub records: u64,
    /// The last one.
    pub txid: Txid,
    /// The last transaction of all segments.
    pub last: Txid,
}

/// Records between two calls of the progress callback.
const PROGRESS_RECORDS: u64 = 10_000;

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError<E> {
    /// The log cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The record does not fit the state.
    #[error("transaction {txid} at offset {offset} of {path}: {error}")]
    Apply {
        /// The record.
        txid: Txid,
        /// Its offset.
        offset: u64,
        /// Its file.
        path: String,
        /// What the callback said.
        error: E,
    },
}

/// Gives a record that creates an inode the id after `last`: layouts before -42 have none in their records, and ids follow the order of the log.
pub fn give_inode_id(record: &mut Record<'_>, last: InodeId) {
    let id = match record {
        Record::Add(add) => &mut add.inode_id,
        Record::Mkdir { inode_id, .. } | Record::Symlink { inode_id, .. } => inode_id,
        _ => return,
    };
    *id = InodeId(last.0 + 1);
}

/// Reads the segments from transaction `from` on and hands every record to `apply`, which must not keep it. Where a copy of a segment cannot be
/// read on, another one takes over. `max` is the largest record allowed. Returns the last transaction applied (`from` - 1 if there is none).
///
/// # Errors
/// A gap, a repetition or damage that no copy makes good; or what `apply` says. What was applied before stays so.
pub fn replay<E>(
    disk: &dyn Disk,
    segments: &[Segment],
    from: Txid,
    max: usize,
    progress: &mut dyn FnMut(Progress),
    apply: &mut dyn FnMut(Txid, Record<'_>) -> Result<(), E>,
) -> Result<Txid, ReplayError<E>> {
    let last = segments.iter().map(|segment| segment.last).max().unwrap_or_default();
    let mut run = Run { disk, max, expected: from, seen: Progress { last, ..Progress::default() }, progress, apply };
    for segment in segments {
        run.segment(segment)?;
        (run.progress)(run.seen);
    }
    Ok(Txid(run.expected.0.saturating_sub(1)))
}

/// Segment files up to this size are decoded as they are applied: a thread would cost more than it gains.
const SMALL_BYTES: u64 = 1 << 20;
/// Decoded batches that may wait to be applied.
const BATCHES_AHEAD: usize = 4;

/// Records decoded from one chunk.
struct Decoded<'c> {
    frames: Vec<(u64, Frame<'c>)>,
    /// Where reading ended after these, and why; no reason at the end of the file.
    end: Option<(u64, Option<String>)>,
}

impl Decoded<'_> {
    /// Whether there is nothing to read after these.
    fn is_last(&self, last: Txid) -> bool {
        self.end.is_some() || self.frames.last().is_some_and(|(_, frame)| frame.txid >= last)
    }
}

/// Apart, for what the macro writes: it forgets a value that it has just moved out of.
#[allow(clippy::mem_forget)]
mod batch {
    use super::{Chunk, Decoded};

    self_cell::self_cell!(
        /// A chunk with what is decoded from it, which borrows names and paths from its bytes.
        pub(super) struct Batch {
            owner: Option<Chunk>,
            #[covariant]
            dependent: Decoded,
        }
    );
}
use batch::Batch;

/// The next records of a segment, up to transaction `last`.
fn next_batch(reader: &mut SegmentReader, last: Txid) -> Batch {
    let offset = reader.offset();
    let (chunk, end) = match reader.chunk(last) {
        Ok(Some(chunk)) => (Some(chunk), None),
        Ok(None) => (None, Some((offset, None))),
        Err(error) => (None, Some((offset, Some(error.to_string())))),
    };
    Batch::new(chunk, |chunk| {
        let mut decoded = Decoded { frames: Vec::new(), end };
        for (offset, frame) in chunk.iter().flat_map(Chunk::frames) {
            match frame {
                Ok(frame) => decoded.frames.push((offset, frame)),
                Err(error) => {
                    decoded.end = Some((offset, Some(error.to_string())));
                    break;
                }
            }
        }
        decoded
    })
}

struct Run<'r, E> {
    disk: &'r dyn Disk,
    max: usize,
    expected: Txid,
    seen: Progress,
    progress: &'r mut dyn FnMut(Progress),
    apply: &'r mut dyn FnMut(Txid, Record<'_>) -> Result<(), E>,
}

impl<E> Run<'_, E> {
    fn segment(&mut self, segment: &Segment) -> Result<(), ReplayError<E>> {
        let mut failure = None;
        for copy in &segment.copies {
            match self.copy(copy) {
                Ok(()) if self.expected > segment.last => return Ok(()),
                // A copy that ends earlier than another promised cannot make good what that one lost.
                Ok(()) => {}
                Err(ReplayError::Storage(error)) => failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Applies a copy from the expected transaction up to its last. One that is not small is read and decoded by a thread of its own, a few chunks
    /// ahead of what is applied.
    fn copy(&mut self, copy: &SegmentCopy) -> Result<(), ReplayError<E>> {
        let opened = SegmentReader::open(self.disk, &copy.path, self.max)
            .and_then(|reader| Ok((self.disk.metadata(&copy.path)?.map_or(0, |found| found.length), reader)));
        let (length, mut reader) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(self.unreadable(copy, 0, &error.to_string()).into()),
        };
        let mut catching_up = true;
        if length <= SMALL_BYTES {
            while self.expected <= copy.last {
                self.batch(copy, next_batch(&mut reader, copy.last), &mut catching_up)?;
            }
            return Ok(());
        }
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::sync_channel(BATCHES_AHEAD);
            let last = copy.last;
            scope.spawn(move || {
                loop {
                    let next = next_batch(&mut reader, last);
                    let ends = next.borrow_dependent().is_last(last);
                    // nobody receives any more once a record was refused
                    if sender.send(next).is_err() || ends {
                        break;
                    }
                }
            });
            while self.expected <= copy.last
                && let Ok(next) = receiver.recv()
            {
                self.batch(copy, next, &mut catching_up)?;
            }
            Ok(())
        })
    }

    fn batch(&mut self, copy: &SegmentCopy, mut batch: Batch, catching_up: &mut bool) -> Result<(), ReplayError<E>> {
        batch.with_dependent_mut(|_, decoded| {
            for (offset, frame) in decoded.frames.drain(..) {
                self.record(copy, offset, frame, catching_up)?;
            }
            match &decoded.end {
                Some((offset, reason)) if self.expected <= copy.last => {
                    let early = format!(
                        "got premature end-of-file at txid {}; expected file to go up to {}",
                        self.expected.0.saturating_sub(1),
                        copy.last
                    );
                    Err(self.unreadable(copy, *offset, reason.as_deref().unwrap_or(&early)).into())
                }
                _ => Ok(()),
            }
        })
    }

    fn record(
        &mut self,
        copy: &SegmentCopy,
        offset: u64,
        frame: Frame<'_>,
        catching_up: &mut bool,
    ) -> Result<(), ReplayError<E>> {
        let (got, expected, path) = (frame.txid, self.expected, || copy.path.clone());
        match got.cmp(&expected) {
            _ if expected > copy.last => return Ok(()),
            std::cmp::Ordering::Less if *catching_up => return Ok(()),
            std::cmp::Ordering::Less => return Err(StorageError::OutOfOrder { path: path(), expected, got }.into()),
            std::cmp::Ordering::Greater => return Err(StorageError::GapInside { path: path(), expected, got }.into()),
            std::cmp::Ordering::Equal => {}
        }
        *catching_up = false;
        (self.apply)(got, frame.record).map_err(|error| ReplayError::Apply {
            txid: got,
            offset,
            path: copy.path.display().to_string(),
            error,
        })?;
        self.expected = got.next();
        self.seen.records += 1;
        self.seen.txid = got;
        if self.seen.records.is_multiple_of(PROGRESS_RECORDS) {
            (self.progress)(self.seen);
        }
        Ok(())
    }

    fn unreadable(&self, copy: &SegmentCopy, offset: u64, reason: &str) -> StorageError {
        StorageError::Replay { path: copy.path.clone(), offset, expected: self.expected, reason: reason.to_owned() }
    }
}
