//! Heartbeats: figures in, commands out, and who is dead or stale.

use crate::{
    AdminState, Blocks, Command, DiskLatency, Node, NodeNumber, NodeStats, PeerLatency, Registration, VolumeFailures,
    VolumeReport, VolumeState,
};
use record::{StorageNumber, Store};
use smallvec::SmallVec;
use std::sync::Arc;
use vocab::Refusal;
use vocab::time::{MonotonicMs, Now};

/// How long a count of stale nodes holds.
const STALE_COUNT_MS: u64 = 2_000;

/// What a heartbeat says.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs)] // as in the heartbeat message
pub struct Heartbeat {
    pub volumes: Vec<VolumeReport>,
    pub cache_capacity: u64,
    pub cache_used: u64,
    pub xceivers: u32,
    pub transfers: u32,
    pub failed_volumes: u32,
    pub failures: Option<VolumeFailures>,
    /// Whether the DataNode would like a full-report lease.
    pub wants_lease: bool,
    /// Peers that it finds slow, by address.
    pub slow_peers: Vec<(Arc<str>, PeerLatency)>,
    /// Its slow disks, by path.
    pub slow_disks: Vec<(Arc<str>, DiskLatency)>,
}

/// The answer, but for what concerns the role and upgrades.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeartbeatAnswer {
    /// What to do, in order.
    pub commands: Vec<Command>,
    /// Full-report lease, 0 for none.
    pub lease_id: u64,
    /// Whether the node is one of those that others find slow.
    pub slow: bool,
}

impl Blocks {
    /// Takes a heartbeat and gives out commands. A node that is not known or not registered is told to register and nothing else.
    ///
    /// # Errors
    /// A node that a refreshed hosts file shut out.
    pub fn heartbeat(
        &mut self,
        store: &mut Store,
        who: &Registration,
        beat: &Heartbeat,
        now: Now,
    ) -> Result<HeartbeatAnswer, Refusal> {
        self.tick_clock(now);
        let register = || Ok(HeartbeatAnswer { commands: vec![Command::Register], ..HeartbeatAnswer::default() });
        let Ok(Some(n)) = self.identify(who) else { return register() };
        let node = self.registry.node(n).expect("identified");
        if node.disallowed {
            let text = format!(
                "Datanode denied communication with namenode because the host is not in the include-list: {}",
                node.id
            );
            self.declare_dead(n);
            return Err(Refusal::DisallowedDatanode(text.into()));
        }
        if !node.registered {
            return register();
        }
        self.take_figures(n, beat, now);
        if beat.cache_used == 0 {
            // Quirk: a_datanode_that_uses_no_memory_has_nothing_cached: DataNodes send no empty cache reports, so that Java knows the last blocks
            // that went for cached until the DataNode registers anew
            self.caching.report(n, std::iter::empty());
        }
        let mut commands = Vec::new();
        if !self.safe_mode.is_on() {
            commands = self.commands(store, n, beat, now);
            self.take_slow(n, beat, now.monotonic);
        }
        let lease_id = if beat.wants_lease { self.request_lease(n, now.monotonic) } else { 0 };
        Ok(HeartbeatAnswer { commands, lease_id, slow: self.is_slow(n) })
    }

    /// A lifeline message: figures only, no commands; it keeps a node alive whose heartbeats queue up.
    pub fn lifeline(&mut self, who: &Registration, beat: &Heartbeat, now: Now) -> Result<(), Refusal> {
        self.tick_clock(now);
        let node = self.identify(who)?.filter(|n| self.registry.node(*n).is_some_and(|n| n.registered));
        // an unknown node is told so by its next heartbeat, not by its lifeline
        if let Some(n) = node {
            self.take_figures(n, beat, now);
        }
        Ok(())
    }

    fn take_figures(&mut self, n: NodeNumber, beat: &Heartbeat, now: Now) {
        let mut stats = NodeStats {
            cache_capacity: beat.cache_capacity,
            cache_used: beat.cache_used,
            xceivers: beat.xceivers,
            transfers: beat.transfers,
            volume_failures: beat.failed_volumes,
            ..NodeStats::default()
        };
        let mut listed: SmallVec<[StorageNumber; 12]> = SmallVec::new();
        for report in &beat.volumes {
            let Some(s) = self.registry.ensure_volume(n, &report.volume) else { continue };
            listed.push(s);
            let v = self.registry.volume_mut(s).expect("ensured");
            v.capacity = report.capacity;
            v.dfs_used = report.dfs_used;
            v.remaining = report.remaining;
            v.block_pool_used = report.block_pool_used;
            v.non_dfs_used = report.non_dfs_used;
            v.mount = report.mount.clone();
            v.heartbeat_since_failover = true;
            stats.capacity = stats.capacity.saturating_add(report.capacity);
            stats.dfs_used = stats.dfs_used.saturating_add(report.dfs_used);
            stats.remaining = stats.remaining.saturating_add(report.remaining);
            stats.block_pool_used = stats.block_pool_used.saturating_add(report.block_pool_used);
            stats.non_dfs_used = stats.non_dfs_used.saturating_add(report.non_dfs_used);
        }
        let roll_ms = 10 * 60 * 1_000;
        let node = self.registry.node(n).expect("a node");
        if node.alive && node.in_service() {
            let before = u64::from(node.stats.xceivers);
            let load = &mut self.registry.in_service.1;
            *load = (*load + u64::from(stats.xceivers)).saturating_sub(before);
        }
        let node = self.registry.node_mut(n).expect("a node");
        node.stats = stats;
        node.volume_failures = beat.failures.clone();
        node.last_update = now.monotonic;
        node.last_update_wall = now.wall;
        node.heartbeat_since_registration = true;
        if now.monotonic.since(node.scheduled_rolled) > roll_ms {
            node.scheduled = [[0; 6], node.scheduled[0]];
            node.scheduled_rolled = now.monotonic;
        }
        if !listed.is_empty() {
            self.prune_volumes(n, &listed);
        }
    }

    fn commands(&mut self, store: &mut Store, n: NodeNumber, beat: &Heartbeat, now: Now) -> Vec<Command> {
        let node = self.registry.node_mut(n).expect("a node");
        let recover = std::mem::take(&mut node.mailbox.recover);
        let orders: Vec<_> =
            recover.into_iter().filter_map(|id| self.recovery_order(store, id, now.monotonic)).collect();
        if !orders.is_empty() {
            return vec![Command::Recover(orders)];
        }
        let mut commands = Vec::new();
        let limit = self.settings.invalidate_limit_effective();
        let streams = match self.registry.node(n).map(|n| n.admin) {
            Some(AdminState::Decommissioning) => self.settings.max_streams_hard,
            _ => self.settings.max_streams,
        };
        let node = self.registry.node_mut(n).expect("a node");
        let room = streams.saturating_sub(beat.transfers) as usize;
        let all = node.mailbox.orders();
        // each queue gets its share of the room, rounded up
        let share = |waiting: usize| if all == 0 { 0 } else { (waiting * room).div_ceil(all).min(waiting) };
        let mail = &mut node.mailbox;
        let (copies, units) = (share(mail.transfers.len()), share(mail.unit_transfers.len()));
        let rebuilds = share(mail.rebuilds.len());
        let copies = mail.transfers.drain(..copies);
        let transfers: Vec<_> = copies.chain(mail.unit_transfers.drain(..units)).collect();
        let rebuilds: Vec<_> = mail.rebuilds.drain(..rebuilds).collect();
        let waiting = &mut node.mailbox.invalidate;
        let deletions: Vec<_> = std::iter::from_fn(|| waiting.pop_first()).take(limit).map(|(_, b)| b).collect();
        let bandwidth = node.mailbox.bandwidth.take();
        let transfers: Vec<_> = transfers.into_iter().filter(|t| self.still_wanted(store, t)).collect();
        if !transfers.is_empty() {
            commands.push(Command::Transfer(transfers));
        }
        let rebuilds: Vec<_> = rebuilds.into_iter().filter(|r| self.still_to_rebuild(store, r)).collect();
        if !rebuilds.is_empty() {
            commands.push(Command::Rebuild(rebuilds));
        }
        let deletions = self.guard_deletions(store, n, deletions);
        if !deletions.is_empty() {
            commands.push(Command::Invalidate(deletions));
        }
        commands.extend(self.caching.commands(n, now.monotonic, self.settings.caching_retry_ms));
        commands.extend(bandwidth.map(Command::BalancerBandwidth));
        commands
    }

    /// The same of internal blocks.
    fn still_to_rebuild(&self, store: &Store, r: &crate::Rebuild) -> bool {
        r.targets.iter().all(|t| self.registry.node(t.node).is_some_and(|n| n.alive))
            && store.find_block(r.group.id).is_some_and(|b| {
                let info = store.block(b);
                !info.deleted && info.block.stamp == r.group.stamp
            })
    }

    /// A copy whose block is gone or open again, or whose target died, is not ordered any more.
    fn still_wanted(&self, store: &Store, t: &crate::Transfer) -> bool {
        let alive = t.targets.iter().all(|t| self.registry.node(t.node).is_some_and(|n| n.alive));
        alive
            && store.find_block(t.block.id).is_some_and(|b| {
                let info = store.block(b);
                !info.deleted && info.block.stamp == t.block.stamp
            })
    }

    /// Tells all live nodes the bandwidth for balancing, with their next heartbeats. What is no rate takes back what was not told yet.
    pub fn set_balancer_bandwidth(&mut self, bytes_per_second: u64) {
        let told = i64::try_from(bytes_per_second).is_ok_and(|rate| rate > 0).then_some(bytes_per_second);
        for n in self.registry.numbers() {
            let node = self.registry.node_mut(n).expect("listed");
            node.mailbox.bandwidth = told;
        }
    }

    // ---- who is dead or stale

    /// Whether nothing was heard of a node for so long that it counts as dead.
    pub(crate) fn is_expired(&self, node: &Node, now: MonotonicMs) -> bool {
        now.since(node.last_update) > self.settings.expiry_ms()
    }

    /// Declares nodes dead whose heartbeats stopped. To be called every few seconds; the replicas are forgotten by [`Blocks::drain`].
    /// The nodes that died.
    pub fn heartbeat_check(&mut self, now: Now) -> Vec<NodeNumber> {
        self.tick_clock(now);
        self.count_stale(now.monotonic);
        self.collect_slow(now.monotonic);
        let dead: Vec<NodeNumber> =
            self.registry.nodes().filter(|n| n.alive && self.is_expired(n, now.monotonic)).map(|n| n.number).collect();
        for n in &dead {
            self.counters.expired_heartbeats += 1;
            self.declare_dead(*n);
        }
        dead
    }

    /// A DataNode said that its disks failed for good: it is treated as dead at once.
    ///
    /// # Errors
    /// A node that another address serves.
    pub fn fatal_disk_error(&mut self, who: &Registration) -> Result<(), Refusal> {
        if let Some(n) = self.identify(who)? {
            self.declare_dead(n);
        }
        Ok(())
    }

    /// After a failover nothing is known to be up to date until heartbeats and full reports come again.
    pub fn mark_all_stale(&mut self) {
        let all: Vec<StorageNumber> = self.registry.volumes().map(|v| v.number).collect();
        for s in all {
            let v = self.registry.volume_mut(s).expect("listed");
            v.contents_stale = true;
            v.heartbeat_since_failover = false;
        }
    }

    /// Average number of transfer threads of nodes in service.
    pub(crate) fn average_load(&self) -> f64 {
        let (nodes, load) = self.registry.in_service;
        if nodes == 0 { 0.0 } else { load as f64 / nodes as f64 }
    }

    /// Whether stale nodes are to be avoided as targets: the setting, unless too many are stale.
    pub(crate) fn avoids_stale_for_write(&self, now: MonotonicMs) -> bool {
        if !self.settings.avoid_stale_for_write {
            return false;
        }
        // a walk over all nodes is too much for each choice
        let (counted, (stale, total)) = self.stale_nodes;
        let (stale, total) = if now.since(counted) < STALE_COUNT_MS { (stale, total) } else { self.stale_of_all(now) };
        stale as f32 <= total as f32 * self.settings.stale_write_ratio
    }

    /// Stale nodes, and all.
    fn stale_of_all(&self, now: MonotonicMs) -> (usize, usize) {
        let stale = |n: &&Node| n.alive && n.is_stale(now, self.settings.stale_interval_ms);
        (self.registry.nodes().filter(stale).count(), self.registry.nodes().count())
    }

    fn count_stale(&mut self, now: MonotonicMs) {
        if self.settings.avoid_stale_for_write {
            self.stale_nodes = (now, self.stale_of_all(now));
        }
    }

    /// Nodes whose heartbeats arrive.
    pub fn live_count(&self) -> usize {
        self.registry.nodes().filter(|n| n.alive).count()
    }

    /// Volumes that can hold replicas: not failed, of live nodes.
    pub(crate) fn volume_is_up(&self, s: StorageNumber) -> bool {
        self.registry
            .volume(s)
            .is_some_and(|v| v.state != VolumeState::Failed && self.registry.node(v.node).is_some_and(|n| n.alive))
    }
}
