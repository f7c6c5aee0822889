//! The block half as one value, and what `state` tells it about blocks that come, change and go.

use crate::construction::Construction;
use crate::mailbox::NO_ACK;
use crate::redundancy::{Corrupt, Excess, Invalidation, LowRedundancy, Pending, Postponed};
use crate::registry::Registry;
use crate::report::{Futures, Leases};
use crate::safe_mode::SafeMode;
use crate::{Hosts, NodeNumber, Settings};
use hashbrown::HashMap;
use record::{BlockHandle, StorageNumber, Store};
use std::sync::atomic::AtomicU64;
use vocab::erasure_coding::{ErasureCodingPolicy, Stripe};
use vocab::time::{MonotonicMs, Now};
use vocab::{Block, BlockId, BlockState, GenerationStamp};

/// Everything known of DataNodes and of where blocks are, but for the block and replica records themselves, which live in the store.
/// All of it is soft: a restart begins with none of it.
pub struct Blocks {
    /// Settings.
    pub settings: Settings,
    /// Include and exclude lists.
    pub hosts: Hosts,
    pub(crate) seed: u64,
    /// Random choices made so far; each draws from a generator of its own, so that choosing needs no exclusive access.
    pub(crate) draws: AtomicU64,
    /// The clock as of the last call that brought it.
    pub(crate) clock: MonotonicMs,
    pub(crate) registry: Registry,
    /// When stale nodes were counted last; how many there were, and nodes.
    pub(crate) stale_nodes: (MonotonicMs, (usize, usize)),
    pub(crate) hints: crate::hints::Hints,
    pub(crate) construction: HashMap<BlockId, Construction>,
    pub(crate) low: LowRedundancy,
    pub(crate) pending: Pending,
    pub(crate) excess: Excess,
    pub(crate) corrupt: Corrupt,
    pub(crate) invalidation: Invalidation,
    pub(crate) postponed: Postponed,
    pub(crate) leases: Leases,
    pub(crate) futures: Futures,
    pub(crate) leaving: crate::admin::Leaving,
    /// Blocks that truncates make new ones of, by id: their replicas are read until that is done.
    pub(crate) truncations: HashMap<BlockId, crate::truncation::Truncation>,
    /// Slow peers and disks.
    pub(crate) slow: crate::slow::Slow,
    /// What DataNodes keep in memory.
    pub caching: crate::Caching,
    /// Safe mode.
    pub safe_mode: SafeMode,
    /// When this process began to serve; deletions wait for a while after it.
    pub(crate) started: MonotonicMs,
    /// Whether this process may order deletions and copies: the role is active.
    pub(crate) active: bool,
    /// Whether the queues have been filled since the start-up safe mode ended.
    pub(crate) queues_ready: bool,
    pub(crate) scan: Option<crate::redundancy::Scan>,
    /// Blocks under construction, in recovery or committed: the totals of safe mode are of complete ones.
    pub(crate) open_blocks: u64,
    pub(crate) counters: Counters,
    /// Last stamp handed out, as `state` told: reports of later ones are from the future.
    pub(crate) last_stamp: GenerationStamp,
    /// Layout of striped groups by erasure coding policy.
    pub(crate) stripes: HashMap<u8, Stripe>,
}

/// Running totals since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // the names are the metrics'
pub struct Counters {
    pub expired_heartbeats: u64,
    pub timed_out_pending: u64,
    pub successful_re_replications: u64,
    pub full_reports: u64,
    pub incremental_reports: u64,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks::new(Settings::default(), 0)
    }
}

impl Blocks {
    /// An empty block half, inactive and out of safe mode; `seed` decides all random choices.
    pub fn new(settings: Settings, seed: u64) -> Blocks {
        Blocks {
            safe_mode: SafeMode::default(),
            hosts: Hosts::default(),
            seed,
            draws: AtomicU64::new(0),
            clock: MonotonicMs(0),
            registry: Registry::default(),
            stale_nodes: (MonotonicMs(0), (0, 0)),
            hints: crate::hints::Hints::default(),
            construction: HashMap::default(),
            low: LowRedundancy::default(),
            pending: Pending::default(),
            excess: Excess::default(),
            corrupt: Corrupt::default(),
            invalidation: Invalidation::default(),
            postponed: Postponed::default(),
            leases: Leases::default(),
            futures: Futures::default(),
            leaving: crate::admin::Leaving::default(),
            truncations: HashMap::new(),
            slow: crate::slow::Slow::default(),
            caching: crate::Caching::default(),
            started: MonotonicMs(0),
            active: false,
            queues_ready: false,
            scan: None,
            open_blocks: 0,
            counters: Counters::default(),
            last_stamp: GenerationStamp::LAST_RESERVED,
            stripes: ErasureCodingPolicy::built_in().map(|p| (p.id, p.stripe)).collect(),
            settings,
        }
    }

    /// Takes the clock of a call.
    pub(crate) fn tick_clock(&mut self, now: Now) {
        self.clock = self.clock.max(now.monotonic);
    }

    /// Begins to serve as the active: safe mode opens with the store's complete blocks as its total. Once, after the state is loaded.
    /// `open_blocks` is the number of blocks of open files that are not complete.
    pub fn start(&mut self, store: &Store, open_blocks: u64, last_stamp: GenerationStamp, now: Now) {
        self.tick_clock(now);
        self.started = now.monotonic;
        self.active = true;
        self.last_stamp = last_stamp;
        self.open_blocks = open_blocks;
        let total = store.block_count().saturating_sub(open_blocks);
        self.safe_mode.activate(&self.settings, total, now);
        self.end_startup_if_reached();
    }

    /// Whether decisions about redundancy are made: the role is active and start-up is over.
    pub fn populating_queues(&self) -> bool {
        self.active && self.queues_ready
    }

    /// The stamp that later ones count as from the future against; `state` tells every new one.
    pub fn set_last_stamp(&mut self, stamp: GenerationStamp) {
        self.last_stamp = stamp;
    }

    /// How the groups of a policy are laid out; those of the built-in ones are known.
    pub fn set_stripe(&mut self, policy: u8, stripe: Stripe) {
        self.stripes.insert(policy, stripe);
    }

    // ---- what `state` tells from `apply`; nothing here may depend on a clock or fail

    /// A block was added to a file and is open: a writer's new last block, or an image's.
    pub fn block_opened(&mut self, store: &Store, b: BlockHandle) {
        let info = store.block(b);
        self.open_blocks += 1;
        self.construction.entry(info.block.id).or_insert_with(|| Construction::new(info.block));
    }

    /// A complete block was added (from an image or an old record).
    pub fn block_added(&mut self, _store: &Store, _b: BlockHandle) {
        if self.safe_mode.counts() {
            self.safe_mode.adjust_total(1, 0);
        }
    }

    /// A complete block was opened again (append, truncate, recovery): its replicas are where the writer finds it.
    pub fn block_reopened(&mut self, store: &Store, b: BlockHandle) {
        let info = store.block(b);
        if self.safe_mode.counts() {
            let safe = self.is_safe(store, b);
            self.safe_mode.adjust_total(-1, if safe { -1 } else { 0 });
        }
        self.open_blocks += 1;
        let mut construction = Construction::new(info.block);
        for r in store.replicas(b) {
            construction.expect_as(r.storage, r.index, info.block);
        }
        self.construction.insert(info.block.id, construction);
        self.low.remove(info.block.id);
        self.pending.remove(info.block.id);
    }

    /// The record says that an open block is complete (a closed file, or a block before the last): state, length and stamp are in the store.
    pub fn block_completed(&mut self, store: &mut Store, b: BlockHandle) {
        let info = store.block(b);
        self.open_blocks = self.open_blocks.saturating_sub(1);
        let construction = self.construction.remove(&info.block.id);
        self.drop_stale_replicas(store, b);
        if self.safe_mode.counts() {
            let safe = self.is_safe(store, b);
            self.safe_mode.adjust_total(1, i64::from(safe));
        }
        if let Some(construction) = construction {
            self.end_truncation(store, &construction);
            self.expect_writers_replicas(store, b, &construction);
        }
        // those of an open file are looked at when it is closed, as in Hadoop
        if self.populating_queues() && !info.open {
            self.review(store, b);
        }
    }

    /// The file of a block was closed.
    pub fn block_closed(&mut self, store: &mut Store, b: BlockHandle) {
        if self.populating_queues() {
            self.review(store, b);
        }
    }

    /// Stamp or length of an open block changed (a new pipeline, a sync).
    pub fn block_updated(&mut self, store: &mut Store, b: BlockHandle) {
        let info = store.block(b);
        let Some(c) = self.construction.get_mut(&info.block.id) else { return };
        let before = std::mem::replace(&mut c.block, info.block);
        // only the end of its recovery gives a block that is being cut another stamp
        if before.stamp != info.block.stamp && c.truncate.is_some() {
            let ended = c.clone();
            c.truncate = None;
            self.end_truncation(store, &ended);
        }
    }

    /// A block is about to leave the store: its replicas are to be deleted.
    pub fn block_removed(&mut self, store: &mut Store, b: BlockHandle) {
        let info = store.block(b);
        let id = info.block.id;
        if info.state == BlockState::Complete {
            if self.safe_mode.counts() {
                let safe = self.is_safe(store, b);
                self.safe_mode.adjust_total(-1, if safe { -1 } else { 0 });
            }
        } else {
            self.open_blocks = self.open_blocks.saturating_sub(1);
        }
        let replicas = store.replicas(b);
        let kept = self.keep_removed(id, replicas.iter().map(|r| r.storage));
        for r in replicas {
            if let Some(volume) = self.registry.volume_mut(r.storage) {
                volume.blocks.remove(id.0);
                let node = volume.node;
                let internal = BlockId(id.0 + i64::from(r.index));
                if !kept {
                    self.invalidate(node, Block { id: internal, length: NO_ACK, ..info.block });
                }
            }
        }
        store.set_replicas(b, &[]);
        if let Some(construction) = self.construction.remove(&id) {
            self.end_truncation(store, &construction);
        }
        self.forget(id);
    }

    /// The wanted replication of a block changed from `old` to what the store says now.
    pub fn replication_changed(&mut self, store: &mut Store, b: BlockHandle, old: u16) {
        let info = store.block(b);
        if !self.populating_queues() || info.replication == old {
            return;
        }
        if info.state == BlockState::Complete {
            self.review(store, b);
        } else if self.count(store, b).live > self.wanted(&info) {
            // nothing else is done with the replicas of a block that is being written, but what is too much goes, as in Hadoop
            self.shed_excess(store, b, None, None);
        }
    }

    /// Drops a block from every queue.
    pub(crate) fn forget(&mut self, id: BlockId) {
        self.low.remove(id);
        self.pending.remove(id);
        self.excess.remove_block(id);
        self.corrupt.remove_block(id);
        self.postponed.remove(id);
    }

    // ---- the seam to the store

    /// The node of a replica.
    pub(crate) fn node_of(&self, storage: StorageNumber) -> Option<NodeNumber> {
        self.registry.volume(storage).map(|v| v.node)
    }

    /// Puts a deletion into a node's queue, unless start-up is not over: then what the block map says is not to be trusted yet.
    pub(crate) fn invalidate(&mut self, node: NodeNumber, block: Block) {
        if self.populating_queues() {
            self.invalidation.add(node, block);
        }
    }
}
