//! What a block is to the file system: its id, stamp and length; and the states of blocks and replicas.

use crate::{BlockId, GenerationStamp};

/// Identity and length of a block, as in edit records, images and reports. `length` is in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Block {
    /// The block (or striped group) id.
    pub id: BlockId,
    /// Length in bytes; of a block under construction the length last known.
    pub length: u64,
    /// Generation stamp.
    pub stamp: GenerationStamp,
}

/// State of a block in the NameNode (Hadoop's `BlockUCState`). Soft but for the distinction complete / not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum BlockState {
    /// Finalized by enough replicas; length and stamp are fixed.
    #[default]
    Complete = 0,
    /// A client writes it.
    UnderConstruction = 1,
    /// Lease recovery works on it.
    UnderRecovery = 2,
    /// The client has finished it but too few replicas are reported.
    Committed = 3,
}

/// State of a replica as a DataNode reports it (Hadoop's `ReplicaState`, with its numbers).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum ReplicaState {
    /// Complete on that DataNode.
    Finalized = 0,
    /// Being written.
    BeingWritten = 1,
    /// Was being written when the DataNode restarted.
    WaitingToBeRecovered = 2,
    /// Recovery works on it.
    UnderRecovery = 3,
    /// Copy for replication or balancing, not visible.
    Temporary = 4,
}

impl ReplicaState {
    /// The state of the given number, as in block reports.
    pub fn from_number(n: u8) -> Option<ReplicaState> {
        Some(match n {
            0 => ReplicaState::Finalized,
            1 => ReplicaState::BeingWritten,
            2 => ReplicaState::WaitingToBeRecovered,
            3 => ReplicaState::UnderRecovery,
            4 => ReplicaState::Temporary,
            _ => return None,
        })
    }
}
