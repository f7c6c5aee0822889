//! Blocks and DataNodes.

use super::placement::PlacementPolicy;
use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::values::Unit;
use std::path::PathBuf;
use std::time::Duration;

/// Safe mode at start.
#[derive(Clone, Debug, PartialEq)]
pub struct SafeMode {
    /// Part of the blocks that must be safe; over 1 it is never left by itself (`dfs.namenode.safemode.threshold-pct`).
    pub threshold: f32,
    /// Part of the blocks that must be safe before those with too few replicas are looked for
    /// (`dfs.namenode.replqueue.threshold-pct`, else as before).
    pub queues_threshold: f32,
    /// Live DataNodes wanted (`dfs.namenode.safemode.min.datanodes`).
    pub min_datanodes: u32,
    /// Replicas of a safe block (`dfs.namenode.safemode.replication.min`, else `dfs.namenode.replication.min`).
    pub min_replication: u16,
    /// How long it stays on after the threshold was reached (`dfs.namenode.safemode.extension`).
    pub extension: Duration,
}

impl SafeMode {
    pub(super) fn read(reader: &Reader<'_>) -> Result<SafeMode, ConfigError> {
        const THRESHOLD: &str = "dfs.namenode.safemode.threshold-pct";
        const MIN_REPLICATION: &str = "dfs.namenode.safemode.replication.min";
        const QUEUES: &str = "dfs.namenode.replqueue.threshold-pct";
        let threshold = reader.float(THRESHOLD)?;
        if threshold > 1.0 {
            reader.warn(format!("The threshold value shouldn't be greater than 1, threshold: {threshold:?}"));
        }
        let (least, _, _) = replication(reader)?;
        let least = match reader.optional_int(MIN_REPLICATION)? {
            Some(own) => u32::try_from(own).unwrap_or(0),
            None => least.into(),
        };
        Ok(SafeMode {
            threshold,
            queues_threshold: match reader.optional(QUEUES)? {
                Some(_) => reader.float(QUEUES)?,
                None => threshold,
            },
            min_datanodes: reader.count("dfs.namenode.safemode.min.datanodes", 0)?,
            min_replication: u16::try_from(least)
                .map_err(|_| reader.wrong(MIN_REPLICATION, format!("{least} is too much")))?,
            extension: reader.duration("dfs.namenode.safemode.extension", Unit::Milliseconds)?,
        })
    }
}

fn refuse<T>(text: String) -> Result<T, ConfigError> {
    Err(ConfigError::Contradiction(text))
}

/// Replication and its repair.
#[derive(Clone, Debug, PartialEq)]
pub struct Redundancy {
    /// Replicas of a file that names no number (`dfs.replication`).
    pub replication: u16,
    /// Fewest that can be asked for, and that make a block complete (`dfs.namenode.replication.min`).
    pub min_replication: u16,
    /// Most that can be asked for (`dfs.replication.max`).
    pub max_replication: u16,
    /// How often repair work is handed out (`dfs.namenode.redundancy.interval.seconds`).
    pub interval: Duration,
    /// Blocks repaired per round and live DataNode (`dfs.namenode.replication.work.multiplier.per.iteration`).
    pub work_multiplier: u32,
    /// Copies a DataNode makes at a time (`dfs.namenode.replication.max-streams`).
    pub max_streams: u32,
    /// The same for the most urgent blocks (`dfs.namenode.replication.max-streams-hard-limit`).
    pub max_streams_hard: u32,
    /// When a copy that was not reported is made again (`dfs.namenode.reconstruction.pending.timeout-sec`).
    pub pending_timeout: Duration,
    /// Part of the DataNodes that get deletions per round (`dfs.namenode.invalidate.work.pct.per.iteration`).
    pub invalidate_share: f32,
    /// Blocks of one deletion command: `dfs.block.invalidate.limit`, at least twenty times the heartbeat in seconds.
    pub invalidate_limit: u32,
    /// How long after the start nothing is deleted (`dfs.namenode.startup.delay.block.deletion.sec`).
    pub deletion_delay: Duration,
    /// Rounds after which the repair queues are walked from their start again
    /// (`dfs.namenode.redundancy.queue.restart.iterations`).
    pub queue_restart_rounds: u32,
    /// When the deletion of a surplus replica that did not happen is asked for again
    /// (`dfs.namenode.excess.redundancy.timeout-sec`).
    pub excess_timeout: Duration,
    /// A corrupt replica may go although another one's node is not up to date
    /// (`dfs.namenode.corrupt.block.delete.immediately.enabled`).
    pub delete_corrupt_immediately: bool,
    /// Postponed blocks looked at per round (`dfs.namenode.blocks.per.postponedblocks.rescan`).
    pub postponed_rescan: u64,
    /// Replicas that must stay while a node is in maintenance (`dfs.namenode.maintenance.replication.min`).
    pub maintenance_replication: u16,
    /// How often the blocks of leaving nodes are looked at (`dfs.namenode.decommission.interval`).
    pub leaving_interval: Duration,
    /// Blocks looked at each time (`dfs.namenode.decommission.blocks.per.interval`).
    pub leaving_blocks: u64,
    /// Leaving nodes looked at each time, 0 for all (`dfs.namenode.decommission.max.concurrent.tracked.nodes`).
    pub leaving_nodes: u32,
    /// How these walks go (`dfs.namenode.decommission.monitor.class`).
    pub leaving_walks: LeavingWalks,
}

/// How the blocks of leaving nodes are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeavingWalks {
    /// So many blocks in each interval.
    Steady,
    /// All of them, but only while few blocks wait for copies.
    Backoff {
        /// Blocks that wait (`dfs.namenode.decommission.backoff.monitor.pending.limit`).
        waiting: u32,
        /// Blocks looked at at a time (`dfs.namenode.decommission.backoff.monitor.pending.blocks.per.lock`).
        at_a_time: u32,
    },
    /// A class that is not known here.
    Other(String),
}

impl LeavingWalks {
    fn read(reader: &Reader<'_>) -> Result<LeavingWalks, ConfigError> {
        let backoff = LeavingWalks::Backoff {
            waiting: leaving(reader, WAITING, 1, 10_000)?,
            at_a_time: leaving(reader, AT_A_TIME, 1, 1_000)?,
        };
        let name = reader.text("dfs.namenode.decommission.monitor.class")?;
        Ok(match name.strip_prefix("org.apache.hadoop.hdfs.server.blockmanagement.") {
            Some("DatanodeAdminDefaultMonitor") => LeavingWalks::Steady,
            Some("DatanodeAdminBackoffMonitor") => backoff,
            _ => LeavingWalks::Other(name),
        })
    }
}

impl Redundancy {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Redundancy, ConfigError> {
        let (min, default, max) = replication(reader)?;
        let heartbeat = heartbeat_interval(reader)?;
        let limit = reader.count("dfs.block.invalidate.limit", 0)?;
        let invalidate_share = reader.float(INVALIDATE_SHARE)?;
        if !(invalidate_share > 0.0 && invalidate_share <= 1.0) {
            return refuse(format!(
                "{INVALIDATE_SHARE} = '{invalidate_share:?}' is invalid. It should be a positive, non-zero float value, not \
                 greater than 1.0f, to indicate a percentage."
            ));
        }
        let work_multiplier = reader.int(WORK_MULTIPLIER)?;
        if work_multiplier <= 0 {
            return refuse(format!(
                "{WORK_MULTIPLIER} = '{work_multiplier}' is invalid. It should be a positive, non-zero integer value."
            ));
        }
        Ok(Redundancy {
            replication: default,
            min_replication: min,
            max_replication: max,
            interval: reader.duration("dfs.namenode.redundancy.interval.seconds", Unit::Seconds)?,
            work_multiplier: work_multiplier.unsigned_abs(),
            max_streams: reader.count("dfs.namenode.replication.max-streams", 0)?,
            max_streams_hard: reader.count("dfs.namenode.replication.max-streams-hard-limit", 0)?,
            pending_timeout: reader.plain_duration("dfs.namenode.reconstruction.pending.timeout-sec", Unit::Seconds)?,
            invalidate_share,
            invalidate_limit: limit.max(u32::try_from(heartbeat.as_secs().saturating_mul(20)).unwrap_or(u32::MAX)),
            deletion_delay: reader.plain_duration("dfs.namenode.startup.delay.block.deletion.sec", Unit::Seconds)?,
            queue_restart_rounds: reader.count("dfs.namenode.redundancy.queue.restart.iterations", 0)?,
            excess_timeout: reader.plain_duration("dfs.namenode.excess.redundancy.timeout-sec", Unit::Seconds)?,
            delete_corrupt_immediately: reader.boolean("dfs.namenode.corrupt.block.delete.immediately.enabled")?,
            postponed_rescan: reader.amount("dfs.namenode.blocks.per.postponedblocks.rescan", 0)?,
            maintenance_replication: maintenance_replication(reader, default)?,
            leaving_interval: reader.duration("dfs.namenode.decommission.interval", Unit::Seconds)?,
            leaving_blocks: leaving(reader, LEAVING_BLOCKS, 1, 500_000)?.into(),
            leaving_nodes: leaving(reader, LEAVING_NODES, 0, 100)?,
            leaving_walks: LeavingWalks::read(reader)?,
        })
    }
}

const WAITING: &str = "dfs.namenode.decommission.backoff.monitor.pending.limit";
const AT_A_TIME: &str = "dfs.namenode.decommission.backoff.monitor.pending.blocks.per.lock";
const LEAVING_BLOCKS: &str = "dfs.namenode.decommission.blocks.per.interval";
const LEAVING_NODES: &str = "dfs.namenode.decommission.max.concurrent.tracked.nodes";

/// A count of the walks over leaving nodes; one that is too small is taken for the default, as in Hadoop.
fn leaving(reader: &Reader<'_>, key: &'static str, least: i32, default: u32) -> Result<u32, ConfigError> {
    match reader.int(key)? {
        count if count >= least => Ok(count.unsigned_abs()),
        count => {
            reader.warn(format!("{key} = {count} is less than {least}. Defaulting to {default}"));
            Ok(default)
        }
    }
}

const INVALIDATE_SHARE: &str = "dfs.namenode.invalidate.work.pct.per.iteration";
const WORK_MULTIPLIER: &str = "dfs.namenode.replication.work.multiplier.per.iteration";

/// Smallest, default and largest replication, which must fit together.
fn replication(reader: &Reader<'_>) -> Result<(u16, u16, u16), ConfigError> {
    const MIN: &str = "dfs.namenode.replication.min";
    const MAX: &str = "dfs.replication.max";
    let (min, default, max) = (reader.int(MIN)?, reader.int("dfs.replication")?, reader.int(MAX)?);
    let unexpected = |rest: String| refuse(format!("Unexpected configuration parameters: {rest}"));
    if min <= 0 {
        return unexpected(format!("{MIN} = {min} <= 0"));
    }
    if max > 32_767 {
        return unexpected(format!("{MAX} = {max} > 32767"));
    }
    if min > max {
        return unexpected(format!("{MIN} = {min} > {MAX} = {max}"));
    }
    let narrow = |count: i32| u16::try_from(count).expect("between 1 and 32767");
    match u16::try_from(default).ok().filter(|count| *count > 0 && *count <= 32_767) {
        Some(default) => Ok((narrow(min), default, narrow(max))),
        None => Err(reader.wrong("dfs.replication", format!("{default} is no number of replicas"))),
    }
}

fn maintenance_replication(reader: &Reader<'_>, default: u16) -> Result<u16, ConfigError> {
    const KEY: &str = "dfs.namenode.maintenance.replication.min";
    let count = reader.int(KEY)?;
    match u16::try_from(count) {
        Ok(count) if count <= default => Ok(count),
        Err(_) if count < 0 => refuse(format!("Unexpected configuration parameters: {KEY} = {count} < 0")),
        _ => refuse(format!("Unexpected configuration parameters: {KEY} = {count} > dfs.replication = {default}")),
    }
}

fn heartbeat_interval(reader: &Reader<'_>) -> Result<Duration, ConfigError> {
    reader.duration("dfs.heartbeat.interval", Unit::Seconds)
}

/// Choice of targets for new replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// A writer may ask for another node in the place of a failed one
    /// (`dfs.client.block.write.replace-datanode-on-failure.enable`).
    pub replace_failed_node: bool,
    /// Class of the policy (`dfs.block.replicator.classname`).
    pub policy: PlacementPolicy,
    /// Busy DataNodes are passed over (`dfs.namenode.redundancy.considerLoad`).
    pub consider_load: bool,
    /// Busy is more than this times the average (`dfs.namenode.redundancy.considerLoad.factor`).
    pub load_factor: f64,
    /// That average is one over nodes with the same media (`dfs.namenode.redundancy.considerLoadByStorageType`).
    pub load_by_kind: bool,
    /// Volumes are compared as well (`dfs.namenode.redundancy.considerLoadByVolume`).
    pub load_by_volume: bool,
    /// A writer's own node gets the first replica (`dfs.namenode.block-placement-policy.default.prefer-local-node`).
    pub prefer_local: bool,
    /// Blocks for which a target must have space (`dfs.namenode.block-placement.min-blocks-for.write`).
    pub min_blocks_of_space: u32,
    /// Stale nodes are avoided for writing (`dfs.namenode.avoid.write.stale.datanode`) ...
    pub avoid_stale_for_write: bool,
    /// ... unless more than this part of the nodes is stale (`dfs.namenode.write.stale.datanode.ratio`).
    pub stale_ratio_for_write: f32,
    /// Stale nodes come last in locations (`dfs.namenode.avoid.read.stale.datanode`).
    pub avoid_stale_for_read: bool,
    /// Nodes are in random order for a reader, near and far ones alike (`dfs.namenode.random.node.order.enabled`).
    pub random_for_read: bool,
    /// Of nodes that are equally near a reader the less busy come first (`dfs.namenode.read.considerLoad`).
    pub load_for_read: bool,
    /// Of nodes that are equally near a reader those with faster media come first (`dfs.namenode.read.considerStorageType`).
    pub medium_for_read: bool,
    /// Heartbeats that a node may miss before its replicas are the first to go (`dfs.namenode.tolerate.heartbeat.multiplier`).
    pub tolerated_heartbeats: u32,
}

impl Placement {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Placement, ConfigError> {
        const RATIO: &str = "dfs.namenode.write.stale.datanode.ratio";
        let ratio = reader.float(RATIO)?;
        if !(ratio > 0.0 && ratio <= 1.0) {
            return refuse(format!(
                "{RATIO} = '{ratio:?}' is invalid. It should be a positive non-zero float value, not greater than 1.0f."
            ));
        }
        Ok(Placement {
            replace_failed_node: reader.boolean("dfs.client.block.write.replace-datanode-on-failure.enable")?,
            policy: PlacementPolicy::read(reader)?,
            consider_load: reader.boolean("dfs.namenode.redundancy.considerLoad")?,
            load_factor: reader.double("dfs.namenode.redundancy.considerLoad.factor")?,
            load_by_kind: reader.boolean("dfs.namenode.redundancy.considerLoadByStorageType")?,
            load_by_volume: reader.boolean("dfs.namenode.redundancy.considerLoadByVolume")?,
            prefer_local: reader.boolean("dfs.namenode.block-placement-policy.default.prefer-local-node")?,
            min_blocks_of_space: reader.count("dfs.namenode.block-placement.min-blocks-for.write", 1)?,
            avoid_stale_for_write: reader.boolean("dfs.namenode.avoid.write.stale.datanode")?,
            stale_ratio_for_write: ratio,
            avoid_stale_for_read: reader.boolean("dfs.namenode.avoid.read.stale.datanode")?,
            random_for_read: reader.boolean("dfs.namenode.random.node.order.enabled")?,
            load_for_read: reader.boolean("dfs.namenode.read.considerLoad")?,
            medium_for_read: reader.boolean("dfs.namenode.read.considerStorageType")?,
            tolerated_heartbeats: reader.count("dfs.namenode.tolerate.heartbeat.multiplier", 0)?,
        })
    }
}

/// Heartbeats, staleness and death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatanodeLiveness {
    /// `dfs.heartbeat.interval`
    pub heartbeat_interval: Duration,
    /// Twice this is part of the silence that makes a node dead (`dfs.namenode.heartbeat.recheck-interval`).
    pub recheck_interval: Duration,
    /// Silence that makes a node stale (`dfs.namenode.stale.datanode.interval`).
    pub stale_interval: Duration,
}

impl DatanodeLiveness {
    pub(super) fn read(reader: &Reader<'_>) -> Result<DatanodeLiveness, ConfigError> {
        let heartbeat_interval = heartbeat_interval(reader)?;
        const STALE: &str = "dfs.namenode.stale.datanode.interval";
        let least = reader.count("dfs.namenode.stale.datanode.minimum.interval", 0)?;
        let stale = reader.long(STALE)?;
        if stale <= 0 {
            return refuse(format!("{STALE} = '{stale}' is invalid. It should be a positive non-zero value."));
        }
        let stale = Duration::from_millis(stale.unsigned_abs());
        let stale_interval = stale.max(heartbeat_interval.saturating_mul(least));
        let recheck_interval = reader.plain_duration("dfs.namenode.heartbeat.recheck-interval", Unit::Milliseconds)?;
        Ok(DatanodeLiveness { heartbeat_interval, recheck_interval, stale_interval })
    }
}

/// Block reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockReports {
    /// Full reports under way at a time (`dfs.namenode.max.full.block.report.leases`).
    pub leases: u32,
    /// How long one may take (`dfs.namenode.full.block.report.lease.length.ms`).
    pub lease_length: Duration,
}

impl BlockReports {
    pub(super) fn read(reader: &Reader<'_>) -> Result<BlockReports, ConfigError> {
        let length = reader.amount("dfs.namenode.full.block.report.lease.length.ms", 1)?;
        Ok(BlockReports {
            leases: reader.count("dfs.namenode.max.full.block.report.leases", 1)?,
            lease_length: Duration::from_millis(length),
        })
    }
}

/// Which DataNodes may register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatanodeHosts {
    /// File of those that may; all if there is none (`dfs.hosts`).
    pub include_file: Option<PathBuf>,
    /// File of those to be decommissioned (`dfs.hosts.exclude`).
    pub exclude_file: Option<PathBuf>,
    /// Form of these files (`dfs.namenode.hosts.provider.classname`).
    pub form: HostsForm,
    /// How long reading the JSON file may take, if there is a limit (`dfs.hosts.timeout`).
    pub read_limit: Option<Duration>,
    /// An address without a name is refused (`dfs.namenode.datanode.registration.ip-hostname-check`).
    pub check_hostname: bool,
    /// Oldest release that may register (`dfs.namenode.min.supported.datanode.version`).
    pub min_version: String,
}

impl DatanodeHosts {
    pub(super) fn read(reader: &Reader<'_>) -> Result<DatanodeHosts, ConfigError> {
        Ok(DatanodeHosts {
            include_file: reader.non_empty("dfs.hosts")?.map(PathBuf::from),
            exclude_file: reader.non_empty("dfs.hosts.exclude")?.map(PathBuf::from),
            form: HostsForm::of_class(reader.text("dfs.namenode.hosts.provider.classname")?),
            read_limit: match reader.int("dfs.hosts.timeout")? {
                limit if limit > 0 => Some(Duration::from_millis(limit.unsigned_abs().into())),
                _ => None,
            },
            check_hostname: reader.boolean("dfs.namenode.datanode.registration.ip-hostname-check")?,
            min_version: reader.text("dfs.namenode.min.supported.datanode.version")?,
        })
    }
}

/// Form of the lists of DataNodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostsForm {
    /// Two files of words: those that may register, those that are to leave.
    Words,
    /// One JSON file with properties of each DataNode.
    Json,
    /// A class that is not known here.
    Other(String),
}

impl HostsForm {
    fn of_class(name: String) -> HostsForm {
        match name.strip_prefix("org.apache.hadoop.hdfs.server.blockmanagement.") {
            Some("HostFileManager") => HostsForm::Words,
            Some("CombinedHostFileManager") => HostsForm::Json,
            _ => HostsForm::Other(name),
        }
    }
}

/// Where racks come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RackMapping {
    /// A script, if there is one.
    Script,
    /// A table, if there is one.
    Table,
    /// A class that is not known here.
    Other(String),
}

impl RackMapping {
    fn of_class(name: String) -> RackMapping {
        match name.strip_prefix("org.apache.hadoop.net.") {
            Some("ScriptBasedMapping") => RackMapping::Script,
            Some("TableMapping") => RackMapping::Table,
            _ => RackMapping::Other(name),
        }
    }
}

/// Racks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Where they come from (`net.topology.node.switch.mapping.impl`).
    pub mapping: RackMapping,
    /// Script that prints racks (`net.topology.script.file.name`).
    pub script: Option<PathBuf>,
    /// Addresses it gets at a time (`net.topology.script.number.args`).
    pub script_arguments: u32,
    /// Table of racks (`net.topology.table.file.name`).
    pub table: Option<PathBuf>,
    /// A node without a rack is refused (`dfs.namenode.reject-unresolved-dn-topology-mapping`).
    pub reject_unresolved: bool,
}

impl Topology {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Topology, ConfigError> {
        Ok(Topology {
            mapping: RackMapping::of_class(reader.text("net.topology.node.switch.mapping.impl")?),
            script: reader.non_empty("net.topology.script.file.name")?.map(PathBuf::from),
            script_arguments: reader.count("net.topology.script.number.args", 1)?,
            table: reader.non_empty("net.topology.table.file.name")?.map(PathBuf::from),
            reject_unresolved: reader.boolean("dfs.namenode.reject-unresolved-dn-topology-mapping")?,
        })
    }
}
