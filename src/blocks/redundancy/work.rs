//! The periodic rounds: copies ordered, deletions handed to mailboxes, late copies asked for again, the replicas of lost volumes forgotten.
//! Every step is bounded, so that the lock can be released between steps.

use super::Level;
use crate::counting::Standing;
use crate::mailbox::Transfer;
use crate::placement::{Target, TargetRequest};
use crate::{AdminState, Blocks, NodeNumber};
use rand::seq::SliceRandom;
use record::{BlockHandle, StorageNumber, Store};
use vocab::time::Now;
use vocab::{BlockId, BlockState};

/// What is left of a redundancy round.
#[derive(Debug, Default)]
pub struct Round {
    /// Blocks still to be considered for copying.
    copies: usize,
    /// Nodes still to be given deletions, with how many each.
    deletions: Vec<(NodeNumber, usize)>,
}

impl Blocks {
    /// Begins a redundancy round (every `redundancy_interval_ms`); nothing to do while in safe mode.
    pub fn begin_round(&mut self, now: Now) -> Round {
        self.tick_clock(now);
        if self.safe_mode.is_on() || !self.populating_queues() {
            return Round::default();
        }
        let live = self.live_count();
        let mut deletions = self.invalidation.nodes();
        if now.monotonic.since(self.started) < self.settings.startup_deletion_delay_ms {
            deletions.clear();
        }
        deletions.shuffle(&mut self.random());
        deletions.truncate((live as f32 * self.settings.invalidate_node_share).ceil() as usize);
        let limit = self.settings.invalidate_limit_effective();
        let deletions = deletions.into_iter().map(|node| (node, limit)).collect();
        Round { copies: live * self.settings.work_multiplier as usize, deletions }
    }

    /// Does up to `budget` units of a round; whether more remain.
    pub fn round_step(&mut self, store: &mut Store, round: &mut Round, budget: usize, now: Now) -> bool {
        self.tick_clock(now);
        if self.safe_mode.is_on() {
            return false;
        }
        if let Some((node, left)) = round.deletions.pop() {
            let n = budget.max(1).min(left);
            if self.hand_over_deletions(store, node, n) == n && left > n {
                round.deletions.push((node, left - n));
            }
            return true;
        }
        let n = budget.min(round.copies);
        let picked = self.low.pick(n, self.settings.queue_restart_rounds);
        round.copies -= n;
        let more = picked.len() == n && round.copies > 0;
        for (level, id) in picked {
            self.order_copies(store, level, id, now);
        }
        more
    }

    /// Moves up to `n` of a node's deletions into its mailbox; how many there were.
    fn hand_over_deletions(&mut self, store: &mut Store, node: NodeNumber, n: usize) -> usize {
        let blocks = self.invalidation.take(node, n);
        let taken = blocks.len();
        if !self.registry.node(node).is_some_and(|n| n.registered) {
            return taken;
        }
        let blocks = self.guard_deletions(store, node, blocks);
        self.registry
            .node_mut(node)
            .expect("registered")
            .mailbox
            .invalidate
            .extend(blocks.into_iter().map(|b| (b.id, b)));
        taken
    }

    /// Leaves out what must stay after all; such replicas count again.
    pub(crate) fn guard_deletions(
        &mut self,
        store: &mut Store,
        node: NodeNumber,
        blocks: Vec<vocab::Block>,
    ) -> Vec<vocab::Block> {
        let (stay, go): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| self.must_stay(store, node, block));
        for block in stay {
            let Some(b) = store.find_block(block.id) else { continue };
            if let Some(replica) = self.replica_on(store, b, node) {
                let id = store.block_core(b).id;
                self.flag(store, b, replica, crate::counting::EXCESS, false);
                self.excess.remove(node, id);
                self.review(store, b);
            }
        }
        go
    }

    /// The last guard before a deletion is ordered: a replica of a live block, of its present stamp, goes only if it is marked excess and
    /// the others are as many as wanted, or if it was forgotten as corrupt.
    fn must_stay(&self, store: &Store, node: NodeNumber, block: &vocab::Block) -> bool {
        let Some(b) = store.find_block(block.id) else { return false };
        let info = store.block(b);
        if info.deleted || info.block.stamp != block.stamp {
            return false;
        }
        let Some(replica) = self.replica_on(store, b, node) else { return false };
        if !Blocks::is_same_unit(&info, replica, block.id) {
            return false;
        }
        match self.standing(replica) {
            Some((Standing::Excess, ..)) if self.stripe(&info).is_some() => !self.has_other_unit(store, b, replica),
            Some((Standing::Excess, ..)) => self.count(store, b).live < u32::from(info.replication.max(1)),
            Some((Standing::Corrupt, ..)) | None => false,
            Some(_) => true,
        }
    }

    fn order_copies(&mut self, store: &mut Store, level: Level, id: BlockId, now: Now) {
        let Some(b) = store.find_block(id) else {
            self.low.remove(id);
            return;
        };
        let info = store.block(b);
        if info.deleted || info.state != BlockState::Complete {
            self.low.remove(id);
            return;
        }
        let count = self.count(store, b);
        let effective = count.live + self.pending.count(id);
        let required = self.required_live(&info, &count);
        if effective >= required && (self.pending.count(id) > 0 || self.well_placed(store, b)) {
            self.low.remove(id);
            return;
        }
        if self.stripe(&info).is_some() {
            return self.order_units(store, level, b, now);
        }
        let Some(source) = self.choose_source(store, b, level) else { return };
        let for_racks = effective >= required;
        let wanted = self.wanted(&info);
        let lacking = || self.misplaced(&self.live_storages(store, b), wanted, false).max(1);
        let more = if for_racks { lacking() } else { (required - effective) as usize };
        let targets = self.copy_targets(store, b, source, more, for_racks, now);
        if targets.is_empty() {
            return;
        }
        let nodes: Vec<NodeNumber> = targets.iter().map(|t| t.node).collect();
        targets.iter().for_each(|t| self.schedule(t.storage, 1));
        self.registry
            .node_mut(source)
            .expect("a source")
            .mailbox
            .transfers
            .push_back(Transfer { block: info.block, targets });
        self.pending.add(id, &nodes, now.monotonic);
        self.requeue(store, b);
    }

    fn copy_targets(
        &self,
        store: &Store,
        b: BlockHandle,
        source: NodeNumber,
        more: usize,
        for_racks: bool,
        now: Now,
    ) -> Vec<Target> {
        let info = store.block(b);
        let live = self.live_storages(store, b);
        let mut excluded: Vec<NodeNumber> = store.replicas(b).iter().filter_map(|r| self.node_of(r.storage)).collect();
        excluded.extend(self.pending.targets(info.block.id));
        let request = TargetRequest {
            writer: Some(source),
            replicas: more,
            block_size: info.block.length,
            storage_policy: info.storage_policy,
            existing: &live,
            excluded: &excluded,
            ..TargetRequest::default()
        };
        let mut targets = self.choose_targets(&request, now.monotonic).targets;
        if for_racks {
            // a copy that leaves the block no better spread would not help
            let (mut there, wanted) = (live, self.wanted(&info));
            let mut lacking = self.misplaced(&there, wanted, false);
            targets.retain(|t| {
                there.push(t.storage);
                let left = self.misplaced(&there, wanted, false);
                let helps = left < lacking;
                lacking = left;
                if !helps {
                    there.pop();
                }
                helps
            });
        }
        targets
    }

    pub(crate) fn rack_of(&self, storage: StorageNumber) -> Option<&str> {
        let v = self.registry.volume(storage)?;
        self.registry.node(v.node).map(|n| &*n.rack)
    }

    /// A node to copy from: with a good replica and not at its limit of copies; a random one of those in service, else of the leaving ones.
    fn choose_source(&self, store: &Store, b: BlockHandle, level: Level) -> Option<NodeNumber> {
        use rand::RngExt;
        let mut fitting: Vec<(bool, NodeNumber)> = Vec::new();
        for r in store.replicas(b) {
            let Some((standing, _, node)) = self.standing(r) else { continue };
            let usable = matches!(
                standing,
                Standing::Live
                    | Standing::ReadOnly
                    | Standing::Decommissioning
                    | Standing::Decommissioned
                    | Standing::MaintenanceForRead
            );
            if !usable || !node.alive {
                continue;
            }
            let orders = node.mailbox.orders() as u32;
            let leaving = matches!(node.admin, AdminState::Decommissioning | AdminState::EnteringMaintenance);
            let limit = if level == Level::Highest || leaving {
                self.settings.max_streams_hard
            } else {
                self.settings.max_streams
            };
            if orders < limit {
                fitting.push((standing != Standing::Decommissioned, node.number));
            }
        }
        if fitting.iter().any(|(better, _)| *better) {
            fitting.retain(|(better, _)| *better);
        }
        (!fitting.is_empty()).then(|| fitting[self.random().random_range(0..fitting.len())].1)
    }

    /// Takes copies that did not arrive in time for failed: their blocks go back into the queues. Up to `budget`; whether there may be more.
    pub fn expire_pending(&mut self, store: &mut Store, budget: usize, now: Now) -> bool {
        self.tick_clock(now);
        let (late, more) = self.pending.expire(now.monotonic, self.settings.pending_timeout_ms, budget);
        for (id, _) in late {
            self.counters.timed_out_pending += 1;
            if let Some(b) = store.find_block(id)
                && self.populating_queues()
            {
                self.review(store, b);
            }
        }
        more
    }

    /// Forgets up to `budget` replicas of dead nodes and failed volumes; whether more remain.
    pub fn drain(&mut self, store: &mut Store, budget: usize) -> bool {
        let mut left = budget;
        while let Some(s) = self.registry.drains.front().copied() {
            let lost = self.registry.volume(s).is_some_and(|v| {
                v.state == crate::VolumeState::Failed || self.registry.node(v.node).is_some_and(|n| n.draining)
            });
            if !lost {
                self.registry.drains.pop_front();
                continue;
            }
            let ids: Vec<i64> = self.registry.volume(s).expect("lost").blocks.iter().take(left).collect();
            left -= ids.len();
            for id in &ids {
                match store.find_block(BlockId(*id)) {
                    Some(b) => {
                        self.forget_target(BlockId(*id), s);
                        self.remove_replica(store, b, s);
                    }
                    None => {
                        self.registry.volume_mut(s).expect("lost").blocks.remove(*id);
                    }
                }
            }
            if self.registry.volume(s).is_some_and(|v| v.blocks.is_empty()) {
                self.registry.drains.pop_front();
                self.retire_volume(s);
            }
            if left == 0 {
                return true;
            }
        }
        false
    }

    /// A copy to a lost node will not arrive.
    fn forget_target(&mut self, id: BlockId, s: StorageNumber) {
        if let Some(node) = self.node_of(s) {
            self.pending.arrived(id, node);
        }
    }

    /// A drained volume goes if its node is forgotten or it failed; a dead node keeps its volumes for the report.
    fn retire_volume(&mut self, s: StorageNumber) {
        let v = self.registry.volume(s).expect("drained");
        let (node, failed) = (v.node, v.state == crate::VolumeState::Failed);
        let forgotten = self.registry.node(node).is_none_or(|n| self.registry.by_uuid(&n.id.uuid) != Some(node));
        if failed || forgotten {
            self.registry.remove_volume(s);
            self.registry.remove_if_empty(node);
        }
    }
}
