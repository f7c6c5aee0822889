//! Sums for clients, administrators and metrics.

use crate::redundancy::Level;
use crate::{AdminState, Blocks, DatanodeId, HostEntry, Node, NodeNumber, Volume};
use record::Store;
use vocab::time::{MonotonicMs, Now};
use vocab::{BlockId, TimeMs};

/// Sums over all live nodes and the block map. Bytes unless said.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[allow(missing_docs)] // the names are Hadoop's metrics
pub struct Stats {
    pub capacity: u64,
    pub used: u64,
    pub remaining: u64,
    pub block_pool_used: u64,
    pub non_dfs_used: u64,
    pub cache_capacity: u64,
    pub cache_used: u64,
    pub xceivers: u64,
    pub live: usize,
    pub dead: usize,
    pub stale_nodes: usize,
    pub stale_volumes: usize,
    pub decommissioning: usize,
    pub decommissioned_live: usize,
    pub decommissioned_dead: usize,
    pub maintenance_live: usize,
    pub maintenance_dead: usize,
    pub entering_maintenance: usize,
    pub in_service: usize,
    pub volume_failures: u64,
    pub capacity_lost: u64,
    /// Complete and open blocks together.
    pub blocks: u64,
    pub low_redundancy: usize,
    pub corrupt: usize,
    pub missing: usize,
    pub missing_single: usize,
    pub highest_priority: usize,
    pub badly_distributed: usize,
    pub pending_copies: usize,
    pub scheduled_copies: usize,
    pub pending_deletions: usize,
    pub excess: usize,
    pub postponed: usize,
    pub bytes_in_future: u64,
    pub expired_heartbeats: u64,
    pub timed_out_copies: u64,
    /// Of these figures, what is of striped groups.
    pub groups: GroupStats,
}

/// Figures of striped groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // the names are those of `Stats`
pub struct GroupStats {
    pub groups: u64,
    /// Missing ones included.
    pub low_redundancy: usize,
    pub corrupt: usize,
    pub missing: usize,
    pub highest_priority: usize,
    /// Internal blocks.
    pub pending_deletions: usize,
    pub bytes_in_future: u64,
}

/// Which nodes a report is asked of (Hadoop's `DatanodeReportType`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ReportKind {
    All,
    Live,
    Dead,
    Decommissioning,
    EnteringMaintenance,
    InMaintenance,
}

impl Blocks {
    /// All sums.
    pub fn stats(&self, store: &Store, now: MonotonicMs) -> Stats {
        let mut s = Stats {
            blocks: store.block_count(),
            low_redundancy: self.low.len(),
            corrupt: self.corrupt.len(),
            missing: self.low.at(Level::Corrupt),
            missing_single: self.low.missing_single(),
            highest_priority: self.low.at(Level::Highest),
            badly_distributed: self.low.at(Level::BadlyDistributed),
            pending_copies: self.pending.len(),
            excess: self.excess.len(),
            postponed: self.postponed.len(),
            bytes_in_future: self.safe_mode.bytes_in_future(),
            expired_heartbeats: self.counters.expired_heartbeats,
            timed_out_copies: self.counters.timed_out_pending,
            pending_deletions: self.invalidation.len(),
            groups: GroupStats {
                groups: store.striped_count(),
                low_redundancy: self.low.groups(),
                corrupt: self.corrupt.groups(),
                missing: self.low.groups_at(Level::Corrupt),
                highest_priority: self.low.groups_at(Level::Highest),
                pending_deletions: self.invalidation.units(),
                bytes_in_future: self.safe_mode.bytes_in_future_of_groups(),
            },
            ..Stats::default()
        };
        for node in self.registry.nodes() {
            self.add_node(&mut s, node, now);
        }
        for v in self.registry.volumes() {
            s.stale_volumes += usize::from(v.contents_stale && self.registry.node(v.node).is_some_and(|n| n.alive));
        }
        s
    }

    fn add_node(&self, s: &mut Stats, node: &Node, now: MonotonicMs) {
        s.scheduled_copies += node.mailbox.orders();
        match (node.admin, node.alive) {
            // dead or not, as the report of leaving nodes has them
            (AdminState::Decommissioning, _) => s.decommissioning += 1,
            (AdminState::Decommissioned, true) => s.decommissioned_live += 1,
            (AdminState::Decommissioned, false) => s.decommissioned_dead += 1,
            (AdminState::InMaintenance, true) => s.maintenance_live += 1,
            (AdminState::InMaintenance, false) => s.maintenance_dead += 1,
            (AdminState::EnteringMaintenance, _) => s.entering_maintenance += 1,
            (AdminState::Normal, true) => s.in_service += 1,
            _ => {}
        }
        if !node.alive {
            s.dead += 1;
            return;
        }
        s.live += 1;
        s.stale_nodes += usize::from(node.is_stale(now, self.settings.stale_interval_ms));
        s.xceivers += u64::from(node.stats.xceivers);
        s.volume_failures += u64::from(node.stats.volume_failures);
        s.capacity_lost = s.capacity_lost.saturating_add(node.volume_failures.as_ref().map_or(0, |f| f.capacity_lost));
        // only what nodes in service have counts; leaving ones still lend their caches
        if node.in_service() {
            s.used = s.used.saturating_add(node.stats.dfs_used);
            s.block_pool_used = s.block_pool_used.saturating_add(node.stats.block_pool_used);
            s.capacity = s.capacity.saturating_add(node.stats.capacity);
            s.remaining = s.remaining.saturating_add(node.stats.remaining);
            s.non_dfs_used = s.non_dfs_used.saturating_add(node.stats.non_dfs_used);
        }
        if !matches!(node.admin, AdminState::Decommissioned | AdminState::InMaintenance) {
            s.cache_capacity = s.cache_capacity.saturating_add(node.stats.cache_capacity);
            s.cache_used = s.cache_used.saturating_add(node.stats.cache_used);
        }
    }

    /// A node by number.
    pub fn node(&self, n: NodeNumber) -> Option<&Node> {
        self.registry.node(n)
    }
    /// A node by uuid.
    pub fn node_by_uuid(&self, uuid: &str) -> Option<&Node> {
        self.registry.by_uuid(uuid).and_then(|n| self.registry.node(n))
    }
    /// A volume by number.
    pub fn volume_info(&self, s: record::StorageNumber) -> Option<&Volume> {
        self.registry.volume(s)
    }
    /// The volumes of a node.
    pub fn volumes_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Volume> + Clone {
        self.registry.volumes_of(node)
    }
    /// A volume by its DataNode's uuid and its own id.
    pub fn find_storage(&self, uuid: &str, storage_id: &str) -> Option<record::StorageNumber> {
        self.registry.find_volume(self.registry.by_uuid(uuid)?, storage_id)
    }
    /// Blocks on a node.
    pub fn block_count_of(&self, node: &Node) -> u64 {
        self.registry.volumes_of(node).map(Volume::block_count).sum()
    }
    /// Bytes of memory of the storages' lists of blocks.
    pub fn replica_memory(&self) -> usize {
        self.registry.volumes().map(|volume| volume.blocks.memory_bytes()).sum()
    }
    /// Racks in name order with their nodes.
    pub fn racks(&self) -> impl Iterator<Item = (&std::sync::Arc<str>, &[NodeNumber])> {
        self.registry.topology.racks()
    }
    /// Nodes that can be targets: what messages call running DataNodes.
    pub fn running_count(&self) -> usize {
        self.registry.topology.node_count()
    }

    /// Blocks without a good replica in the order in which that was noticed, behind a ticket (0 for all); each with its own ticket.
    pub fn missing_blocks(&self, ticket: u64) -> impl Iterator<Item = (u64, BlockId)> + '_ {
        self.low.after(Level::Corrupt, ticket)
    }

    /// Hosts of the include list that never registered: reports and pages list them as dead nodes without an id, decommissioned if they are excluded
    /// too.
    pub fn never_registered(&self) -> Vec<Node> {
        let unknown = self.hosts.included.iter().filter(|e| !self.registry.nodes().any(|n| e.covers(&n.id)));
        let never = Now { wall: TimeMs(0), monotonic: MonotonicMs(0) };
        let node = |e: &HostEntry| {
            let id = DatanodeId {
                ip: e.host.clone(),
                host: e.host.clone(),
                transfer_port: if e.port == 0 { 9866 } else { e.port },
                info_port: 9864,
                info_secure_port: 9865,
                ipc_port: 9867,
                ..DatanodeId::default()
            };
            let admin = if self.hosts.is_excluded(&id) { AdminState::Decommissioned } else { AdminState::Normal };
            Node { admin, ..Node::new(NodeNumber(u32::MAX), id, never) }
        };
        unknown.map(node).collect()
    }

    /// The nodes of a report, in order of first registration; those that the lists do not include (any more) are in none.
    pub fn datanode_report(&self, kind: ReportKind) -> Vec<&Node> {
        self.registry
            .nodes()
            .filter(|n| self.hosts.is_included(&n.id))
            .filter(|n| match kind {
                ReportKind::All => true,
                ReportKind::Live => n.alive,
                ReportKind::Dead => !n.alive,
                ReportKind::Decommissioning => n.admin == AdminState::Decommissioning,
                ReportKind::EnteringMaintenance => n.admin == AdminState::EnteringMaintenance,
                ReportKind::InMaintenance => n.admin == AdminState::InMaintenance,
            })
            .collect()
    }
}
