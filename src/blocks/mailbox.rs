//! Commands that wait for a DataNode's next heartbeat. Nothing here is durable; the engine holds the answer to the heartbeat back until
//! whatever the commands follow from is.

use crate::NodeNumber;
use crate::placement::Target;
use std::collections::{BTreeMap, VecDeque};
use vocab::{Block, BlockId};

/// Length in an order to delete a replica that tells the DataNode not to report when it is done (Hadoop's `BlockCommand.NO_ACK`): the block
/// is gone, nobody waits for that.
pub const NO_ACK: u64 = i64::MAX as u64;

/// A copy to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Block, with the length and stamp at the time of the decision.
    pub block: Block,
    /// Where to.
    pub targets: Vec<Target>,
}

/// Internal blocks of a striped group to be rebuilt by the node of the first target (Hadoop's `BlockECReconstructionInfo`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuild {
    /// The group.
    pub group: Block,
    /// Its erasure coding policy.
    pub policy: u8,
    /// Nodes to read from, each with the internal block at the same place of `live`.
    pub sources: Vec<NodeNumber>,
    /// Which internal blocks they have.
    pub live: Vec<u8>,
    /// Where the rebuilt blocks go.
    pub targets: Vec<Target>,
    /// Internal blocks that are elsewhere, on nodes too busy to be read from: they are not to be rebuilt.
    pub excluded: Vec<u8>,
}

/// A block to be recovered (Hadoop's `RecoveringBlock`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// The block as the NameNode knows it.
    pub block: Block,
    /// Where its replicas should be.
    pub locations: Vec<Target>,
    /// Stamp of the recovery: that of the block afterwards.
    pub recovery_id: i64,
    /// For truncates only: the block as it will be, which is another one where the old block is kept.
    pub truncate: Option<Block>,
    /// For striped groups: their erasure coding policy and which internal block each location has.
    pub units: Option<(u8, Vec<u8>)>,
}

/// One command in the answer to a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Register (again).
    Register,
    /// Send copies.
    Transfer(Vec<Transfer>),
    /// Rebuild internal blocks of striped groups.
    Rebuild(Vec<Rebuild>),
    /// Delete replicas.
    Invalidate(Vec<Block>),
    /// Take blocks into memory.
    Cache(Vec<BlockId>),
    /// Let blocks go from memory.
    Uncache(Vec<BlockId>),
    /// Recover blocks as their primary.
    Recover(Vec<Recovery>),
    /// New bandwidth for balancing, in bytes per second.
    BalancerBandwidth(u64),
    /// The upgrade is finalized: previous data may go.
    Finalize,
}

/// What waits for one DataNode.
#[derive(Debug, Default)]
pub struct Mailbox {
    pub(crate) transfers: VecDeque<Transfer>,
    /// Copies of internal blocks, under their own ids.
    pub(crate) unit_transfers: VecDeque<Transfer>,
    pub(crate) rebuilds: VecDeque<Rebuild>,
    pub(crate) invalidate: BTreeMap<BlockId, Block>,
    pub(crate) recover: VecDeque<BlockId>,
    pub(crate) bandwidth: Option<u64>,
}

impl Mailbox {
    /// Copies and rebuilds that wait.
    pub(crate) fn orders(&self) -> usize {
        self.transfers.len() + self.unit_transfers.len() + self.rebuilds.len()
    }
    /// Forgets everything: the DataNode died or registered anew.
    pub(crate) fn clear(&mut self) {
        *self = Mailbox::default();
    }
}
