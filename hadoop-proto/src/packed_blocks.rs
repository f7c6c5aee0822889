//! Block lists of a full block report (Hadoop's `BlockListAsLongs`), read without allocation and written for simulated
//! DataNodes. Two forms:
//! - *buffers*, since 2.7 (HDFS-7435): per replica four varints, block id (zigzag), length (low 48 bits), generation
//!   stamp, state (low 4 bits). The byte stream is cut into pieces of 64 KiB wherever that falls, also inside a replica.
//! - *longs*, before: count of finalized, count of others, three longs per finalized replica, three of -1, four longs per
//!   other replica. The separator is read only if replicas follow it.

use crate::wire::{Cursor, Sink, WireError, unzigzag, zigzag};

/// State of a replica on its DataNode; the numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReplicaState {
    /// Complete, its content does not change.
    Finalized = 0,
    /// Being written by a client.
    Rbw = 1,
    /// Was being written when the DataNode restarted.
    Rwr = 2,
    /// Under recovery.
    Rur = 3,
    /// Copy in progress; does not count yet.
    Temporary = 4,
}

impl ReplicaState {
    /// The state of this number.
    pub fn from_number(number: u64) -> Option<ReplicaState> {
        match number {
            0 => Some(ReplicaState::Finalized),
            1 => Some(ReplicaState::Rbw),
            2 => Some(ReplicaState::Rwr),
            3 => Some(ReplicaState::Rur),
            4 => Some(ReplicaState::Temporary),
            _ => None,
        }
    }
}

/// One replica of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedReplica {
    /// Block id; striped and legacy random ids may be negative.
    pub block_id: i64,
    /// Bytes on disk.
    pub length: u64,
    /// Generation stamp.
    pub generation_stamp: i64,
    /// State on the DataNode.
    pub state: ReplicaState,
}

/// Why a block list cannot be read on. Java, too, has delivered the replicas before the bad place by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockListError {
    /// Not varints, or fewer than announced.
    Wire(WireError),
    /// No replica has a state of this number.
    UnknownState(u64),
    /// Finalized and other replicas are not separated by three of -1.
    BadSeparator,
}

impl From<WireError> for BlockListError {
    fn from(e: WireError) -> BlockListError {
        BlockListError::Wire(e)
    }
}

impl std::fmt::Display for BlockListError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BlockListError::Wire(e) => write!(f, "block list: {e}"),
            BlockListError::UnknownState(n) => write!(f, "block list: no replica state {n}"),
            BlockListError::BadSeparator => write!(f, "block list: bad separator"),
        }
    }
}

impl std::error::Error for BlockListError {}

/// Length bits of a replica in a buffer; the others are reserved.
const LENGTH_MASK: u64 = (1 << 48) - 1;
/// State bits of a replica in a buffer.
const STATE_MASK: u64 = 15;
/// Piece size of the buffers (Hadoop's `CHUNK_SIZE`).
pub const PIECE_BYTES: usize = 64 * 1024;
/// No replica is longer in a buffer: four varints of ten bytes.
const MAX_REPLICA_BYTES: usize = 40;

/// Replicas of a report in the buffer form. Ends after the announced count, or after the first error.
#[derive(Clone, Debug)]
pub struct BufferReplicas<'a, P> {
    left: u64,
    piece: Cursor<'a>,
    pieces: P,
}

impl<'a, P: Iterator<Item = &'a [u8]>> BufferReplicas<'a, P> {
    /// `count` is `numberOfBlocks` of the report; it counts in 32 bits and below zero means none, as in Java.
    pub fn new(count: u64, pieces: P) -> Self {
        BufferReplicas { left: u64::try_from(count as i32).unwrap_or(0), piece: Cursor::new(&[]), pieces }
    }

    /// Announced replicas that were not read yet.
    pub fn remaining(&self) -> u64 {
        self.left
    }

    /// The four numbers, where the piece surely holds them all.
    #[inline]
    fn read_in_piece(&mut self) -> Result<[u64; 4], WireError> {
        Ok([self.piece.varint()?, self.piece.varint()?, self.piece.varint()?, self.piece.varint()?])
    }

    /// The four numbers byte by byte, on into the next pieces.
    #[cold]
    fn read_across(&mut self) -> Result<[u64; 4], WireError> {
        let mut numbers = [0; 4];
        for number in &mut numbers {
            let (mut bytes, mut length) = ([0u8; 10], 0);
            loop {
                let slot = bytes.get_mut(length).ok_or(WireError::VarintTooLong)?;
                *slot = self.next_byte().ok_or(WireError::Truncated)?;
                length += 1;
                if bytes[length - 1] < 0x80 {
                    break;
                }
            }
            *number = Cursor::new(&bytes[..length]).varint()?;
        }
        Ok(numbers)
    }

    fn next_byte(&mut self) -> Option<u8> {
        loop {
            if let Some((first, rest)) = self.piece.rest().split_first() {
                self.piece = Cursor::new(rest);
                return Some(*first);
            }
            self.piece = Cursor::new(self.pieces.next()?);
        }
    }
}

impl<'a, P: Iterator<Item = &'a [u8]>> Iterator for BufferReplicas<'a, P> {
    type Item = Result<ReportedReplica, BlockListError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let numbers =
            if self.piece.rest().len() >= MAX_REPLICA_BYTES { self.read_in_piece() } else { self.read_across() };
        let replica = numbers.map_err(BlockListError::Wire).and_then(|[id, length, stamp, state]| {
            let state = state & STATE_MASK;
            Ok(ReportedReplica {
                block_id: unzigzag(id),
                length: length & LENGTH_MASK,
                generation_stamp: stamp as i64,
                state: ReplicaState::from_number(state).ok_or(BlockListError::UnknownState(state))?,
            })
        });
        if replica.is_err() {
            self.left = 0;
        }
        Some(replica)
    }
}

/// Replicas of a report in the form of longs. Ends after the announced counts, or after the first error.
#[derive(Clone, Debug)]
pub struct LongReplicas<L> {
    longs: L,
    counts: Option<(i32, i32)>,
    index: i32,
}

impl<L: Iterator<Item = Result<u64, WireError>>> LongReplicas<L> {
    /// `longs` are the values of the field `blocks`.
    pub fn new(longs: L) -> Self {
        LongReplicas { longs, counts: None, index: 0 }
    }

    fn long(&mut self) -> Result<u64, WireError> {
        self.longs.next().unwrap_or(Err(WireError::Truncated))
    }

    /// Counts of finalized and of all replicas, or none for an empty list, which has no counts. Java keeps 32 bits.
    fn read_counts(&mut self) -> Result<Option<(i32, i32)>, WireError> {
        let Some(finalized) = self.longs.next() else { return Ok(None) };
        let (finalized, others) = (finalized? as i32, self.long()? as i32);
        Ok(Some((finalized, finalized.wrapping_add(others))))
    }

    fn triple(&mut self) -> Result<[u64; 3], WireError> {
        Ok([self.long()?, self.long()?, self.long()?])
    }

    fn read(&mut self) -> Result<Option<ReportedReplica>, BlockListError> {
        if self.counts.is_none() {
            self.counts = Some(self.read_counts()?.unwrap_or((0, 0)));
        }
        let (finalized, all) = self.counts.unwrap_or((0, 0));
        if self.index >= all {
            return Ok(None);
        }
        if self.index == finalized && self.triple()? != [u64::MAX; 3] {
            return Err(BlockListError::BadSeparator);
        }
        let [id, length, stamp] = self.triple()?;
        let mut state = ReplicaState::Finalized;
        if self.index >= finalized {
            let number = u64::from(self.long()? as u32);
            state = ReplicaState::from_number(number).ok_or(BlockListError::UnknownState(number))?;
        }
        self.index += 1;
        Ok(Some(ReportedReplica { block_id: id as i64, length, generation_stamp: stamp as i64, state }))
    }
}

impl<L: Iterator<Item = Result<u64, WireError>>> Iterator for LongReplicas<L> {
    type Item = Result<ReportedReplica, BlockListError>;

    fn next(&mut self) -> Option<Self::Item> {
        let replica = self.read();
        if replica.is_err() {
            self.counts = Some((0, 0));
        }
        replica.transpose()
    }
}

/// Appends one replica in the buffer form.
pub fn put_replica(buffer: &mut Vec<u8>, replica: &ReportedReplica) {
    buffer.put_varint(zigzag(replica.block_id));
    buffer.put_varint(replica.length);
    buffer.put_varint(replica.generation_stamp as u64);
    buffer.put_varint(replica.state as u64);
}

/// The pieces in which a buffer goes into the field `blocksBuffers`; an empty buffer is one empty piece.
pub fn pieces(buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
    buffer.chunks(PIECE_BYTES).chain(buffer.is_empty().then_some(buffer))
}

/// A list in the form of longs, for the field `blocks`.
pub fn to_longs(replicas: &[ReportedReplica]) -> Vec<u64> {
    let is_final = |r: &&ReportedReplica| r.state == ReplicaState::Finalized;
    let finalized = replicas.iter().filter(is_final).count();
    let mut longs = vec![finalized as u64, (replicas.len() - finalized) as u64];
    let triple = |r: &ReportedReplica| [r.block_id as u64, r.length, r.generation_stamp as u64];
    longs.extend(replicas.iter().filter(is_final).flat_map(triple));
    longs.extend([u64::MAX; 3]);
    for replica in replicas.iter().filter(|r| !is_final(r)) {
        longs.extend(triple(replica));
        longs.push(replica.state as u64);
    }
    longs
}
