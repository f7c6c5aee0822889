//! Purpose: keeping the wanted number of good replicas: queues of blocks that lack some, copies under way, replicas to be deleted, corrupt ones.
//! Called by: reports, `state`'s hooks, `ops::datanode` (the periodic rounds).
//! Calls: placement, the registry, record.
//! Never: orders the deletion of a replica before start-up is over, or of one of the last wanted ones.
//! Invariants: every queue holds ids, never handles; a block is in at most one low-redundancy level.

mod corrupt;
mod invalidation;
mod low;
mod pending;
mod review;
mod striped;
mod work;

pub use corrupt::{Corrupt, CorruptReason};
pub use invalidation::Invalidation;
pub use low::{Level, LowRedundancy, Sort};
pub use pending::Pending;
pub use review::Scan;
pub use work::Round;

use crate::NodeNumber;
use mem::sharded::{PiecedQueue, ShardedMap};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use vocab::BlockId;
use vocab::time::MonotonicMs;

/// Replicas beyond the wanted number that were queued for deletion, until their nodes confirm.
#[derive(Debug, Default)]
pub struct Excess {
    by_block: ShardedMap<BlockId, SmallVec<[NodeNumber; 1]>>,
    order: PiecedQueue<(MonotonicMs, NodeNumber, BlockId)>,
    count: usize,
}

impl Excess {
    /// Adds one.
    pub fn add(&mut self, node: NodeNumber, id: BlockId, now: MonotonicMs) {
        let list = self.by_block.get_or_insert_with(id, SmallVec::new);
        if !list.contains(&node) {
            list.push(node);
            self.count += 1;
            self.order.push_back((now, node, id));
        }
    }
    /// Whether it is in.
    pub fn contains(&self, node: NodeNumber, id: BlockId) -> bool {
        self.by_block.get(&id).is_some_and(|l| l.contains(&node))
    }
    /// Takes one out.
    pub fn remove(&mut self, node: NodeNumber, id: BlockId) {
        let Some(list) = self.by_block.get_mut(&id) else { return };
        let before = list.len();
        list.retain(|n| *n != node);
        self.count -= before - list.len();
        if list.is_empty() {
            self.by_block.remove(&id);
        }
    }
    /// Takes all of a block out.
    pub fn remove_block(&mut self, id: BlockId) {
        self.count -= self.by_block.remove(&id).map_or(0, |l| l.len());
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Those older than `age_ms`, at most `budget`; they count as new again.
    pub fn take_overdue(&mut self, now: MonotonicMs, age_ms: u64, budget: usize) -> Vec<(NodeNumber, BlockId)> {
        let mut out = Vec::new();
        for _ in 0..budget {
            match self.order.front() {
                Some((since, ..)) if now.since(*since) > age_ms => {
                    let (_, node, id) = self.order.pop_front().expect("there is a front");
                    if self.contains(node, id) {
                        self.order.push_back((now, node, id));
                        out.push((node, id));
                    }
                }
                _ => break,
            }
        }
        out
    }
}

/// Blocks with too many replicas about which nothing can be decided while some replica's volume is not up to date.
#[derive(Debug, Default)]
pub struct Postponed {
    ids: BTreeSet<BlockId>,
    cursor: Option<BlockId>,
}

impl Postponed {
    /// Adds a block.
    pub fn add(&mut self, id: BlockId) {
        self.ids.insert(id);
    }
    /// Takes a block out.
    pub fn remove(&mut self, id: BlockId) {
        self.ids.remove(&id);
    }
    /// Those behind one, in order.
    pub fn after(&self, id: Option<BlockId>) -> impl Iterator<Item = BlockId> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        self.ids.range((id.map_or(Unbounded, Excluded), Unbounded)).copied()
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
    /// The next ones to look at again, going round.
    pub fn next(&mut self, budget: usize) -> Vec<BlockId> {
        let out: Vec<BlockId> = self.after(self.cursor).take(budget).collect();
        self.cursor = if out.len() < budget { None } else { out.last().copied() };
        out
    }
}
