//! Purpose: what DataNodes say about replicas: full reports in slices, incremental reports, bad blocks; and what follows for the block map.
//! Called by: server (DatanodeProtocol, one hold per slice); `ops::datanode` (bad blocks).
//! Calls: redundancy, construction, registry, record.
//! Never: reads the tree (a block record says all that is needed); knows how a report is encoded.
//! Invariants: a volume's run and the replica entries of the store say the same; a node has at most one replica of a contiguous block.

mod full;
mod incremental;
mod lease;
mod reported;
mod stored;

pub use full::{FullReport, ReportContext, ReportStart};
pub use incremental::{IncrementalEntry, IncrementalKind};
pub use lease::Leases;

use vocab::{Block, ReplicaState};

/// A replica as a report names it: id, length and stamp on the DataNode, and its state there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reported {
    /// Id, length in bytes, stamp.
    pub block: Block,
    /// State on the DataNode.
    pub state: ReplicaState,
}

/// Replicas whose stamp was not given out yet: the NameNode was started on metadata older than the data.
#[derive(Debug, Default)]
pub struct Futures {
    /// How many were seen in start-up safe mode.
    pub seen: u64,
}
