//! What the configuration decides for the block half. The binary fills this from the Hadoop keys; defaults are Hadoop's.

use crate::placement::Apart;

/// Limits and intervals; times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Replicas that make a block complete (`replication.min`).
    pub replication_min: u16,
    /// Replication of files that do not ask for one.
    pub replication_default: u16,
    /// Highest replication a client may ask for.
    pub replication_max: u16,
    /// Interval at which DataNodes send heartbeats.
    pub heartbeat_interval_ms: u64,
    /// Interval of the check for dead nodes.
    pub heartbeat_recheck_ms: u64,
    /// Heartbeats a node may miss before its replicas are the first to go where there are too many.
    pub tolerated_heartbeats: u64,
    /// Silence after which a node counts as stale.
    pub stale_interval_ms: u64,
    /// Whether stale nodes come last in block locations.
    pub avoid_stale_for_read: bool,
    /// Whether the order of block locations pays no attention to where the reader is.
    pub random_for_read: bool,
    /// Whether of equally near nodes the less busy come first in block locations.
    pub load_for_read: bool,
    /// Whether of equally near nodes those with the replica on a faster medium come first, if the load does not count.
    pub medium_for_read: bool,
    /// Whether what DataNodes tell of slow peers counts.
    pub peer_stats: bool,
    /// Whether what they tell of slow disks counts.
    pub disk_stats: bool,
    /// Interval at which DataNodes tell of them.
    pub outlier_interval_ms: u64,
    /// Slow nodes shown.
    pub slow_nodes_reported: usize,
    /// Slow disks shown.
    pub slow_disks_reported: usize,
    /// Slow nodes that are avoided.
    pub slow_nodes_collected: usize,
    /// Interval at which they are chosen.
    pub slow_collect_interval_ms: u64,
    /// Whether slow nodes come last in block locations.
    pub avoid_slow_for_read: bool,
    /// Whether slow nodes are no targets.
    pub avoid_slow_for_write: bool,
    /// Whether stale nodes are no targets.
    pub avoid_stale_for_write: bool,
    /// Share of stale nodes above which they are targets all the same.
    pub stale_write_ratio: f32,
    /// Whether busy nodes are no targets.
    pub consider_load: bool,
    /// A node is busy when it has more than this many times the average of transfer threads.
    pub consider_load_factor: f64,
    /// Whether that average is one over nodes with the same media.
    pub consider_load_by_kind: bool,
    /// Whether a node is also busy when each of its volumes has more than that many times the average of a volume.
    pub consider_load_by_volume: bool,
    /// Whether the writer's own node is tried first.
    pub prefer_local_node: bool,
    /// Whether replicas are spread over as many racks as there can be, as internal blocks of striped groups always are.
    pub spread_evenly: bool,
    /// What else is kept apart besides racks.
    pub apart: Apart,
    /// Whether of two nodes the one with more space left is the likelier target.
    pub available_space: Option<AvailableSpace>,
    /// A volume must have room for this many blocks.
    pub min_blocks_for_write: u64,
    /// Copies a node may send at a time.
    pub max_streams: u32,
    /// The same, for blocks of highest priority.
    pub max_streams_hard: u32,
    /// Blocks of one invalidation command; raised to 20 a second of the heartbeat interval (as Hadoop does).
    pub invalidate_limit: usize,
    /// Share of the nodes that get invalidation work in one round.
    pub invalidate_node_share: f32,
    /// Blocks considered in one redundancy round, per live node.
    pub work_multiplier: u32,
    /// Rounds after which the low-redundancy queues are walked from their start again.
    pub queue_restart_rounds: u32,
    /// Interval of the redundancy round.
    pub redundancy_interval_ms: u64,
    /// Age at which copies that were asked for count as failed.
    pub pending_timeout_ms: u64,
    /// Age at which an excess replica that was not deleted is asked for again.
    pub excess_timeout_ms: u64,
    /// Pause after start before any replica is deleted.
    pub startup_deletion_delay_ms: u64,
    /// Whether a corrupt replica may go although some replica's node is not up to date.
    pub delete_corrupt_immediately: bool,
    /// Postponed blocks looked at per round.
    pub postponed_rescan: usize,
    /// Full reports under way at a time.
    pub report_leases_max: usize,
    /// Life of a full-report lease.
    pub report_lease_ms: u64,
    /// Whether a registration must come from an address with a name.
    pub check_host_name: bool,
    /// Oldest DataNode software that may register.
    pub minimum_datanode_version: String,
    /// Whether commands name the DataNode by host name (`use.dn.hostname` of clients is theirs; this is the block pool's).
    pub reject_unresolved_topology: bool,
    /// Share of blocks that must be reported before safe mode ends.
    pub safe_threshold: f32,
    /// Share of blocks that must be reported before blocks with too few replicas are looked for, safe mode or not.
    pub queues_threshold: f32,
    /// Live nodes that must be there before safe mode ends.
    pub safe_datanodes_min: u32,
    /// Replicas that make a block safe.
    pub safe_replication_min: u16,
    /// Time in safe mode after the threshold is reached.
    pub safe_extension_ms: u64,
    /// Interval at which the blocks of leaving nodes are looked at.
    pub decommission_interval_ms: u64,
    /// Blocks of leaving nodes looked at per interval.
    pub decommission_blocks_per_interval: u64,
    /// Leaving nodes whose blocks are looked at at a time, 0 for all.
    pub decommission_tracked_max: usize,
    /// If so, not that many blocks of leaving nodes per interval are looked at, but all while fewer than this many blocks wait for copies; and at most
    /// so many at a time.
    pub decommission_backoff: Option<(usize, usize)>,
    /// Replicas that must stay while a node is in maintenance.
    pub maintenance_replication_min: u16,
    /// Whether anything is cached on order.
    pub caching: bool,
    /// Pause before a DataNode is told again what to cache.
    pub caching_retry_ms: u64,
    /// Storage policy where none is set.
    pub default_policy: u8,
    /// Whether storage policies are obeyed.
    pub storage_policies: bool,
}

/// How much the space that nodes have left counts (Hadoop's `AvailableSpaceBlockPlacementPolicy`). All in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AvailableSpace {
    /// How likely the node with less used is chosen.
    pub preference: u32,
    /// Nodes whose use differs by less are alike,
    pub tolerance: u32,
    /// as long as less than this is used of both.
    pub tolerance_limit: u32,
    /// Whether the writer's own node is weighed against another one of its rack, once half of it is used.
    pub local: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            replication_min: 1,
            replication_default: 3,
            replication_max: 512,
            heartbeat_interval_ms: 3_000,
            heartbeat_recheck_ms: 300_000,
            tolerated_heartbeats: 4,
            stale_interval_ms: 30_000,
            avoid_stale_for_read: false,
            random_for_read: false,
            load_for_read: false,
            medium_for_read: false,
            peer_stats: false,
            disk_stats: false,
            outlier_interval_ms: 1_800_000,
            slow_nodes_reported: 5,
            slow_disks_reported: 5,
            slow_nodes_collected: 5,
            slow_collect_interval_ms: 1_800_000,
            avoid_slow_for_read: false,
            avoid_slow_for_write: false,
            avoid_stale_for_write: false,
            stale_write_ratio: 0.5,
            consider_load: true,
            consider_load_factor: 2.0,
            consider_load_by_kind: false,
            consider_load_by_volume: false,
            prefer_local_node: true,
            spread_evenly: false,
            apart: Apart::Racks,
            available_space: None,
            min_blocks_for_write: 1,
            max_streams: 2,
            max_streams_hard: 4,
            invalidate_limit: 1_000,
            invalidate_node_share: 0.32,
            work_multiplier: 2,
            queue_restart_rounds: 2_400,
            redundancy_interval_ms: 3_000,
            pending_timeout_ms: 300_000,
            excess_timeout_ms: 3_600_000,
            startup_deletion_delay_ms: 0,
            delete_corrupt_immediately: true,
            postponed_rescan: 10_000,
            report_leases_max: 6,
            report_lease_ms: 300_000,
            check_host_name: true,
            minimum_datanode_version: "2.1.0-beta".to_owned(),
            reject_unresolved_topology: false,
            safe_threshold: 0.999,
            queues_threshold: 0.999,
            safe_datanodes_min: 0,
            safe_replication_min: 1,
            safe_extension_ms: 30_000,
            decommission_interval_ms: 30_000,
            decommission_blocks_per_interval: 500_000,
            decommission_tracked_max: 100,
            decommission_backoff: None,
            maintenance_replication_min: 1,
            caching: true,
            caching_retry_ms: 30_000,
            default_policy: crate::policies::HOT,
            storage_policies: true,
        }
    }
}

impl Settings {
    /// Silence after which a node is dead: twice the recheck interval and ten heartbeats.
    pub fn expiry_ms(&self) -> u64 {
        2 * self.heartbeat_recheck_ms + 10 * self.heartbeat_interval_ms
    }
    /// Blocks of one invalidation command in effect.
    pub fn invalidate_limit_effective(&self) -> usize {
        self.invalidate_limit.max(20 * (self.heartbeat_interval_ms / 1_000) as usize)
    }
}
