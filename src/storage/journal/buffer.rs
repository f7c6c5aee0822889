//! Records on their way: encoded under the lock of the state, taken in batches by the flush thread.

use edit::Record;
use vocab::{LayoutVersion, Txid};

/// A stretch of the log, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// A segment begins: its first transaction and the layout of its header.
    Start {
        /// First transaction; the file is named after it.
        first: Txid,
        /// Layout of header and records.
        layout: LayoutVersion,
    },
    /// Encoded records, the last of which is `last`.
    Records {
        /// Frames, back to back.
        bytes: Vec<u8>,
        /// Transaction of the last frame.
        last: Txid,
    },
    /// The segment ends with this transaction and gets its final name.
    End {
        /// First transaction of the segment.
        first: Txid,
        /// Last transaction.
        last: Txid,
    },
}

/// What is made durable at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// In order.
    pub pieces: Vec<Piece>,
    /// Number of records.
    pub records: u64,
    /// The highest transaction, 0 when empty.
    pub last: Txid,
}

impl Batch {
    /// First transaction of the segment that begins in this batch, if one does.
    pub fn started(&self) -> Option<Txid> {
        self.pieces.iter().rev().find_map(|piece| match piece {
            Piece::Start { first, .. } => Some(*first),
            _ => None,
        })
    }
    /// The part from the last segment start on: where a journal that was left out may join again.
    pub fn from_start(&self) -> Option<Batch> {
        let at = self.pieces.iter().rposition(|piece| matches!(piece, Piece::Start { .. }))?;
        Some(Batch { pieces: self.pieces[at..].to_vec(), ..*self })
    }
    /// Bytes of records.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| if let Piece::Records { bytes, .. } = piece { bytes.len() } else { 0 }).sum()
    }
}

/// The active buffer. Assigns transaction ids.
#[derive(Debug)]
pub(super) struct Buffer {
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    /// An empty vector of an earlier batch, so that nothing is allocated under the lock.
    spare: Vec<u8>,
    records: u64,
    next: u64,
    segment: u64,
    layout: LayoutVersion,
    /// The highest transaction that somebody may wait for.
    pub awaited: Txid,
    /// The last transaction that was taken.
    pub taken: Txid,
}

/// Bytes that a fresh buffer has room for.
const BUFFER_BYTES: usize = 64 << 10;
/// Buffers that have grown beyond this are not kept.
const SPARE_BYTES: usize = 4 << 20;

impl Buffer {
    /// An empty buffer with a segment to begin at `next`.
    pub fn new(next: Txid, layout: LayoutVersion) -> Buffer {
        let before = Txid(next.0 - 1);
        let mut buffer = Buffer {
            pieces: Vec::new(),
            bytes: Vec::with_capacity(BUFFER_BYTES),
            spare: Vec::with_capacity(BUFFER_BYTES),
            records: 0,
            next: next.0,
            segment: next.0,
            layout,
            awaited: before,
            taken: before,
        };
        buffer.start();
        buffer
    }

    /// Encodes a record and gives it the next transaction id.
    ///
    /// # Panics
    /// If the layout in effect has no such record: the operation should have been refused.
    pub fn append(&mut self, record: &Record<'_>) -> Txid {
        let txid = Txid(self.next);
        if let Err(error) = edit::encode(record, txid, self.layout, &mut self.bytes) {
            panic!("broken invariant: an operation logged a record of a newer layout: {error}");
        }
        self.next += 1;
        self.records += 1;
        txid
    }

    /// Ends the segment and begins the next; returns its first transaction.
    pub fn roll(&mut self) -> Txid {
        self.end();
        self.start()
    }
    /// The same; the next segment is of another layout.
    pub fn roll_to(&mut self, layout: LayoutVersion) -> Txid {
        self.end();
        self.layout = layout;
        self.start()
    }
    fn start(&mut self) -> Txid {
        self.segment = self.next;
        self.pieces.push(Piece::Start { first: Txid(self.next), layout: self.layout });
        self.awaited = self.append(&Record::StartLogSegment);
        self.awaited
    }
    pub fn end(&mut self) {
        self.awaited = self.append(&Record::EndLogSegment);
        self.close_records();
        self.pieces.push(Piece::End { first: Txid(self.segment), last: self.awaited });
    }
    fn close_records(&mut self) {
        if !self.bytes.is_empty() {
            let bytes = std::mem::replace(&mut self.bytes, std::mem::take(&mut self.spare));
            self.pieces.push(Piece::Records { bytes, last: Txid(self.next - 1) });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
    /// Whether there is a start or an end of a segment among the records.
    pub fn has_boundary(&self) -> bool {
        !self.pieces.is_empty()
    }
    /// The last transaction assigned.
    pub fn last(&self) -> Txid {
        Txid(self.next - 1)
    }
    /// First transaction of the open segment.
    pub fn segment(&self) -> Txid {
        Txid(self.segment)
    }
    /// Gives the memory of a batch back that is done with.
    pub fn recycle(&mut self, batch: Batch) {
        let vectors = batch.pieces.into_iter().filter_map(|piece| match piece {
            Piece::Records { bytes, .. } if bytes.capacity() <= SPARE_BYTES => Some(bytes),
            _ => None,
        });
        if let Some(mut bytes) = vectors.max_by_key(Vec::capacity)
            && bytes.capacity() > self.spare.capacity()
        {
            bytes.clear();
            self.spare = bytes;
        }
    }
    pub fn take(&mut self) -> Batch {
        self.close_records();
        self.taken = self.last();
        Batch { pieces: std::mem::take(&mut self.pieces), records: std::mem::take(&mut self.records), last: self.taken }
    }
}
