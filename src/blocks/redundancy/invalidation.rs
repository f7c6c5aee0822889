//! Replicas to be deleted, by node, until they go into the nodes' mailboxes (Hadoop's `InvalidateBlocks`).

use crate::NodeNumber;
use std::collections::BTreeMap;
use vocab::{Block, BlockId};

/// Deletions not ordered yet.
#[derive(Debug, Default)]
pub struct Invalidation {
    by_node: BTreeMap<NodeNumber, BTreeMap<BlockId, Block>>,
    count: usize,
    /// Those of them that are internal blocks of striped groups.
    units: usize,
}

impl Invalidation {
    /// Adds a replica; nothing happens if it is in.
    pub fn add(&mut self, node: NodeNumber, block: Block) {
        if self.by_node.entry(node).or_default().insert(block.id, block).is_none() {
            self.count += 1;
            self.units += usize::from(block.id.is_striped());
        }
    }
    /// Whether this replica, of this stamp, is to be deleted.
    pub fn contains(&self, node: NodeNumber, block: &Block) -> bool {
        self.by_node.get(&node).and_then(|m| m.get(&block.id)).is_some_and(|b| b.stamp == block.stamp)
    }
    /// Takes a replica out.
    pub fn remove(&mut self, node: NodeNumber, id: BlockId) {
        if let Some(map) = self.by_node.get_mut(&node) {
            if map.remove(&id).is_some() {
                self.count -= 1;
                self.units -= usize::from(id.is_striped());
            }
            if map.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
    /// Forgets a node.
    pub fn remove_node(&mut self, node: NodeNumber) {
        let gone = self.by_node.remove(&node).unwrap_or_default();
        self.count -= gone.len();
        self.units -= gone.keys().filter(|id| id.is_striped()).count();
    }
    /// Nodes with replicas to delete.
    pub fn nodes(&self) -> Vec<NodeNumber> {
        self.by_node.keys().copied().collect()
    }
    /// Replicas of a node to delete, in order of their ids, behind one.
    pub fn after(&self, node: NodeNumber, id: Option<BlockId>) -> impl Iterator<Item = &Block> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = id.map_or(Unbounded, Excluded);
        self.by_node.get(&node).into_iter().flat_map(move |all| all.range((from, Unbounded)).map(|(_, block)| block))
    }
    /// Takes up to `n` replicas of a node out.
    pub fn take(&mut self, node: NodeNumber, n: usize) -> Vec<Block> {
        let Some(map) = self.by_node.get_mut(&node) else { return Vec::new() };
        let mut out = Vec::new();
        while out.len() < n
            && let Some((_, block)) = map.pop_first()
        {
            out.push(block);
        }
        if map.is_empty() {
            self.by_node.remove(&node);
        }
        self.count -= out.len();
        self.units -= out.iter().filter(|block| block.id.is_striped()).count();
        out
    }
    /// How many of them are internal blocks of striped groups.
    pub fn units(&self) -> usize {
        self.units
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
