//! The blocks of one DataNode, as somebody who moves blocks between DataNodes wants them: from a random one on, all around
//! (Hadoop's `BlockManager.getBlocksWithLocations`).

use crate::{Blocks, DatanodeId, NodeNumber, Target};
use rand::RngExt;
use record::{BlockHandle, StorageNumber, Store};
use std::collections::VecDeque;
use vocab::{BlockId, Refusal, StorageKind};

/// A stretch of a volume's blocks, by id.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    volume: StorageNumber,
    from: i64,
    /// The last one; `None` for all that follow.
    to: Option<i64>,
}

/// A walk over the blocks of a DataNode, in slices.
#[derive(Clone, Debug, Default)]
pub struct NodeBlocks {
    stretches: VecDeque<Stretch>,
}

impl Blocks {
    /// Begins at a random block of the DataNode. Volumes whose contents may be out of date are left out, and those of other media if one is named.
    ///
    /// # Errors
    /// `HadoopIllegalArgument` for a DataNode that is not known, `UnregisteredNode` for one at another address.
    pub fn begin_node_blocks(&self, id: &DatanodeId, kind: Option<StorageKind>) -> Result<NodeBlocks, Refusal> {
        let Some(n) = self.identify_as(id, id)? else {
            return Err(Refusal::HadoopIllegalArgument(format!("Datanode {id} not found.").into()));
        };
        let wanted = |v: &&crate::Volume| !v.contents_stale && kind.is_none_or(|kind| v.kind == kind);
        let node = self.registry.node(n).expect("identified");
        let volumes: Vec<_> = self.registry.volumes_of(node).filter(wanted).collect();
        let total: usize = volumes.iter().map(|v| v.blocks.len()).sum();
        if total == 0 {
            return Ok(NodeBlocks::default());
        }
        let mut rank = self.random().random_range(0..total);
        let first = volumes.iter().position(|v| {
            let here = rank < v.blocks.len();
            rank -= if here { 0 } else { v.blocks.len() };
            here
        });
        let first = first.expect("the rank is below the total");
        let from = volumes[first].blocks.iter_at(rank).next().expect("the rank is within the volume");
        let whole = |v: &&crate::Volume| Stretch { volume: v.number, from: i64::MIN, to: None };
        let volume = volumes[first].number;
        let mut stretches = VecDeque::from([Stretch { volume, from, to: None }]);
        stretches.extend(volumes[first + 1..].iter().map(whole));
        stretches.extend(volumes[..first].iter().map(whole));
        if let Some(before) = from.checked_sub(1) {
            stretches.push_back(Stretch { volume, from: i64::MIN, to: Some(before) });
        }
        Ok(NodeBlocks { stretches })
    }

    /// The next up to `budget` blocks; none at the end.
    pub fn next_node_blocks(&self, walk: &mut NodeBlocks, budget: usize) -> Vec<BlockId> {
        let mut ids = Vec::new();
        while ids.len() < budget
            && let Some(stretch) = walk.stretches.front_mut()
        {
            let before = ids.len();
            if let Some(volume) = self.registry.volume(stretch.volume) {
                let within = |id: &i64| stretch.to.is_none_or(|to| *id <= to);
                let found = volume.blocks.iter_from(stretch.from).take_while(within);
                ids.extend(found.take(budget - before).map(BlockId));
            }
            match ids.last().filter(|_| ids.len() == budget).and_then(|last| last.0.checked_add(1)) {
                Some(next) => stretch.from = next,
                None => drop(walk.stretches.pop_front()),
            }
        }
        ids
    }

    /// Where a block is, but for replicas that are to be deleted; with the number of each within a striped group.
    pub fn movable_replicas(&self, store: &Store, b: BlockHandle) -> Vec<(Target, u8)> {
        let block = store.block_core(b);
        let stays = |node: NodeNumber| !self.invalidation.contains(node, &block);
        let places = store.replicas(b).into_iter().filter_map(|r| Some((self.target(r.storage)?, r.index)));
        places.filter(|(target, _)| stays(target.node)).collect()
    }
}
