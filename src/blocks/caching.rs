//! Replicas that DataNodes keep in memory, and those that they are asked to take in or to let go (Hadoop's `CacheReplicationMonitor`).

use crate::{Blocks, Command, NodeNumber};
use hashbrown::HashMap;
use rand::RngExt;
use record::Store;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use vocab::time::MonotonicMs;
use vocab::{BlockId, BlockState};

type Nodes = SmallVec<[NodeNumber; 3]>;

/// A block that is in memory somewhere, or should be.
#[derive(Debug, Default)]
struct CachedBlock {
    /// Replicas to be cached, as of the last scan that wanted any.
    replication: i16,
    /// Number of that scan; 0 for none.
    scan: u64,
    cached: Nodes,
    /// Asked to take it in.
    pending: Nodes,
    /// Asked to let it go.
    leaving: Nodes,
}

/// Blocks with their sizes, and the sum of these.
#[derive(Debug, Default)]
struct Owed {
    blocks: BTreeMap<BlockId, u64>,
    bytes: u64,
}

impl Owed {
    fn insert(&mut self, id: BlockId, bytes: u64) {
        self.remove(id);
        self.blocks.insert(id, bytes);
        self.bytes = self.bytes.saturating_add(bytes);
    }
    /// Whether it was there.
    fn remove(&mut self, id: BlockId) -> bool {
        let bytes = self.blocks.remove(&id);
        self.bytes = self.bytes.saturating_sub(bytes.unwrap_or(0));
        bytes.is_some()
    }
    fn ids(&self) -> Vec<BlockId> {
        self.blocks.keys().copied().collect()
    }
}

/// A DataNode's side.
#[derive(Debug, Default)]
struct NodeCache {
    cached: BTreeSet<BlockId>,
    pending: Owed,
    leaving: Owed,
    /// When it was last told.
    told: Option<MonotonicMs>,
}

/// All of it: soft, rebuilt from reports and scans.
#[derive(Debug, Default)]
pub struct Caching {
    blocks: BTreeMap<BlockId, CachedBlock>,
    nodes: HashMap<NodeNumber, NodeCache>,
}

impl Caching {
    /// Whether a DataNode has said that it keeps a block in memory.
    pub fn is_cached(&self, id: BlockId, node: NodeNumber) -> bool {
        !self.blocks.is_empty() && self.blocks.get(&id).is_some_and(|block| block.cached.contains(&node))
    }
    /// Number of blocks that are in memory somewhere, or are to come or to go.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
    /// Number of blocks that a DataNode keeps in memory.
    pub fn cached_on(&self, node: NodeNumber) -> usize {
        self.nodes.get(&node).map_or(0, |node| node.cached.len())
    }

    /// Takes a report: all that a DataNode keeps in memory.
    pub(crate) fn report(&mut self, n: NodeNumber, reported: impl Iterator<Item = BlockId>) {
        if !self.nodes.contains_key(&n) && reported.size_hint().1 == Some(0) {
            return;
        }
        let node = self.nodes.entry(n).or_default();
        for id in std::mem::take(&mut node.cached) {
            if let Some(block) = self.blocks.get_mut(&id) {
                block.cached.retain(|other| *other != n);
            }
        }
        for id in reported {
            if !node.cached.insert(id) {
                continue;
            }
            let block = self.blocks.entry(id).or_default();
            block.cached.push(n);
            if node.pending.remove(id) {
                block.pending.retain(|other| *other != n);
            }
        }
    }

    /// Forgets a DataNode: it died or registered anew.
    pub(crate) fn forget(&mut self, n: NodeNumber) {
        let Some(node) = self.nodes.remove(&n) else { return };
        for id in node.cached.iter().chain(node.pending.blocks.keys()).chain(node.leaving.blocks.keys()) {
            if let Some(block) = self.blocks.get_mut(id) {
                for list in [&mut block.cached, &mut block.pending, &mut block.leaving] {
                    list.retain(|other| *other != n);
                }
            }
        }
    }

    /// A scan wants so many replicas of a block in memory. Gives how many there are; of a block that was never heard of none.
    pub fn want(&mut self, id: BlockId, replication: i16, scan: u64) -> usize {
        let block = self.blocks.entry(id).or_default();
        if block.scan != scan || block.replication < replication {
            block.replication = replication;
            block.scan = scan;
        }
        block.cached.len()
    }

    /// The next block after `after`, in the order of numbers.
    pub fn next(&self, after: Option<BlockId>) -> Option<BlockId> {
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.blocks.range((from, std::ops::Bound::Unbounded)).next().map(|(id, _)| *id)
    }

    /// Lets all DataNodes be told at their next heartbeat what they should do.
    pub fn tell_at_once(&mut self) {
        self.nodes.values_mut().for_each(|node| node.told = None);
    }

    /// What a DataNode should be told now, if it was not told lately.
    pub(crate) fn commands(&mut self, n: NodeNumber, now: MonotonicMs, every_ms: u64) -> SmallVec<[Command; 2]> {
        let mut commands = SmallVec::new();
        let Some(node) = self.nodes.get_mut(&n) else { return commands };
        if node.told.is_some_and(|told| now.since(told) < every_ms) {
            return commands;
        }
        if !node.pending.blocks.is_empty() {
            commands.push(Command::Cache(node.pending.ids()));
        }
        if !node.leaving.blocks.is_empty() {
            commands.push(Command::Uncache(node.leaving.ids()));
        }
        if !commands.is_empty() {
            node.told = Some(now);
        }
        commands
    }
}

impl Blocks {
    /// Takes a cache report of a registered DataNode. It counts for nothing where nothing is to be cached.
    pub fn cache_report(&mut self, n: NodeNumber, reported: impl Iterator<Item = BlockId>) {
        if self.settings.caching {
            self.caching.report(n, reported);
        }
    }

    /// Decides what DataNodes should do with a block, as of a scan that has seen all directives.
    pub fn decide_caching(&mut self, store: &Store, id: BlockId, scan: u64) {
        let Some(block) = self.caching.blocks.get_mut(&id) else { return };
        if block.scan != scan {
            block.replication = 0;
            block.scan = scan;
        }
        // gone is what is not reported any more
        let (cached, nodes) = (&block.cached, &mut self.caching.nodes);
        block.leaving.retain(|n| {
            let there = cached.contains(n);
            if !there && let Some(node) = nodes.get_mut(n) {
                node.leaving.remove(id);
            }
            there
        });
        let handle = store.find_block(id).filter(|b| {
            let info = store.block(*b);
            info.state == BlockState::Complete && !info.deleted
        });
        let needed = if handle.is_some() { usize::try_from(block.replication).unwrap_or(0) } else { 0 };
        let there = block.cached.len();
        if there >= needed {
            for n in block.pending.drain(..) {
                nodes.get_mut(&n).map(|node| node.pending.remove(id));
            }
        } else {
            for n in block.leaving.drain(..) {
                nodes.get_mut(&n).map(|node| node.leaving.remove(id));
            }
        }
        let too_many = there.saturating_sub(block.leaving.len() + needed);
        let too_few = needed.saturating_sub(there + block.pending.len());
        if too_many > 0 {
            self.let_go(id, store.find_block(id).map_or(0, |b| store.block(b).block.length), too_many);
        } else if too_few > 0 {
            self.take_in(store, id, too_few);
        }
        let block = &self.caching.blocks[&id];
        if needed == 0 && block.leaving.is_empty() && block.pending.is_empty() {
            self.caching.blocks.remove(&id);
        }
    }

    /// Asks some of the DataNodes that have a block in memory to let it go.
    fn let_go(&mut self, id: BlockId, bytes: u64, count: usize) {
        let mut random = self.random();
        let Some(block) = self.caching.blocks.get_mut(&id) else { return };
        let mut possible: Nodes = block.cached.iter().filter(|n| !block.leaving.contains(n)).copied().collect();
        for _ in 0..count.min(possible.len()) {
            let n = possible.swap_remove(random.random_range(0..possible.len()));
            block.leaving.push(n);
            self.caching.nodes.entry(n).or_default().leaving.insert(id, bytes);
        }
    }

    /// Asks some of the DataNodes that have a good replica and room to take a block in.
    fn take_in(&mut self, store: &Store, id: BlockId, count: usize) {
        let Some(b) = store.find_block(id) else { return };
        let bytes = store.block(b).block.length;
        let block = &self.caching.blocks[&id];
        let (mut fresh, mut stale) = (Vec::new(), Vec::new());
        for replica in store.replicas(b) {
            let Some(n) = self.node_of(replica.storage) else { continue };
            let Some(node) = self.registry.node(n).filter(|node| node.alive && node.in_service()) else { continue };
            let corrupt = self.corrupt.of(id).iter().any(|(bad, _)| *bad == n);
            if corrupt || block.pending.contains(&n) || block.cached.contains(&n) {
                continue;
            }
            let known = self.caching.nodes.get(&n);
            let (coming, going) = known.map_or((0, 0), |node| (node.pending.bytes, node.leaving.bytes));
            let left = node.stats.cache_capacity.saturating_sub(node.stats.cache_used);
            if (left + going).saturating_sub(coming) < bytes {
                continue;
            }
            let share =
                if node.stats.cache_capacity == 0 { 0.0 } else { left as f64 / node.stats.cache_capacity as f64 };
            let list = if node.is_stale(self.clock, self.settings.stale_interval_ms) { &mut stale } else { &mut fresh };
            list.push((n, share));
        }
        let mut random = self.random();
        for _ in 0..count {
            let from = if fresh.is_empty() { &mut stale } else { &mut fresh };
            if from.is_empty() {
                break;
            }
            // a node gets its turn by the share of its memory that is left, each at least a little
            let whole: f64 = from.iter().map(|(_, share)| share).sum();
            let weight = |share: f64| if whole > 0.0 { ((share / whole) * 1e6).max(1.0) } else { 1.0 };
            let mut at = random.random_range(0.0..from.iter().map(|(_, share)| weight(*share)).sum::<f64>());
            let chosen = from.iter().position(|(_, share)| {
                at -= weight(*share);
                at < 0.0
            });
            let (n, _) = from.swap_remove(chosen.unwrap_or(from.len() - 1));
            if let Some(block) = self.caching.blocks.get_mut(&id) {
                block.pending.push(n);
            }
            self.caching.nodes.entry(n).or_default().pending.insert(id, bytes);
        }
    }
}
