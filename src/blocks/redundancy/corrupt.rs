//! Corrupt replicas and why they are so (Hadoop's `CorruptReplicasMap`). The replica's own flag says the same, for counting.

use crate::NodeNumber;
use hashbrown::HashSet;
use mem::sharded::ShardedMap;
use smallvec::SmallVec;
use vocab::BlockId;

/// Why a replica is corrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CorruptReason {
    /// Nobody said.
    None,
    /// Reported in another state than the block allows.
    InvalidState,
    /// Another stamp than the block's.
    StampMismatch,
    /// Another length than the block's.
    SizeMismatch,
    /// A client or the DataNode itself found a bad checksum.
    CorruptionReported,
}

impl CorruptReason {
    /// Name as Hadoop prints it.
    pub fn name(self) -> &'static str {
        match self {
            CorruptReason::None => "NONE",
            CorruptReason::InvalidState => "INVALID_STATE",
            CorruptReason::StampMismatch => "GENSTAMP_MISMATCH",
            CorruptReason::SizeMismatch => "SIZE_MISMATCH",
            CorruptReason::CorruptionReported => "CORRUPTION_REPORTED",
        }
    }
}

/// Corrupt replicas by block.
#[derive(Debug, Default)]
pub struct Corrupt {
    by_block: ShardedMap<BlockId, SmallVec<[(NodeNumber, CorruptReason); 1]>>,
    /// Those of the blocks that are striped groups.
    groups: HashSet<BlockId>,
}

impl Corrupt {
    /// Adds one or changes its reason; `striped` says what the block is.
    pub fn add(&mut self, id: BlockId, striped: bool, node: NodeNumber, reason: CorruptReason) {
        if striped {
            self.groups.insert(id);
        }
        let list = self.by_block.get_or_insert_with(id, SmallVec::new);
        match list.iter_mut().find(|(n, _)| *n == node) {
            Some(entry) => entry.1 = reason,
            None => list.push((node, reason)),
        }
    }
    /// Takes one out; with a reason, only if that is the reason. Whether it was taken.
    pub fn remove(&mut self, id: BlockId, node: NodeNumber, reason: Option<CorruptReason>) -> bool {
        let Some(list) = self.by_block.get_mut(&id) else { return false };
        let before = list.len();
        list.retain(|(n, r)| *n != node || reason.is_some_and(|wanted| wanted != *r));
        let removed = list.len() < before;
        if list.is_empty() {
            self.remove_block(id);
        }
        removed
    }
    /// Takes all of a block out.
    pub fn remove_block(&mut self, id: BlockId) {
        self.by_block.remove(&id);
        self.groups.remove(&id);
    }
    /// Striped groups with corrupt internal blocks.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }
    /// Corrupt replicas of a block.
    pub fn of(&self, id: BlockId) -> &[(NodeNumber, CorruptReason)] {
        self.by_block.get(&id).map_or(&[], |l| l.as_slice())
    }
    /// Blocks with corrupt replicas.
    pub fn len(&self) -> usize {
        self.by_block.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_block.is_empty()
    }
    /// Ids of these blocks, in no order.
    pub fn ids(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.by_block.iter().map(|(id, _)| *id)
    }
}
