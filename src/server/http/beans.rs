//! The beans that clients, tools and tests poll, filled from a short view of the state. An attribute is real or it is not there.

use super::BEANS;
use super::jmx::Bean;
use super::json::Json;
use super::metrics;
use crate::service::Shared;
use blocks::{AdminState, DatanodeId, LeavingStatus, Node, Stats};
use engine::HaState;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use vocab::time::MonotonicMs;
use vocab::{AuthenticationMethod, Caller};

const FSNAMESYSTEM: &str = "org.apache.hadoop.hdfs.server.namenode.FSNamesystem";
const BLOCK_MANAGER: &str = "org.apache.hadoop.hdfs.server.blockmanagement.BlockManager";
const SNAPSHOTS: &str = "org.apache.hadoop.hdfs.server.namenode.snapshot.SnapshotManager";
const NAMENODE: &str = "org.apache.hadoop.hdfs.server.namenode.NameNode";

/// The loaded name node as the pages see it.
pub struct NameNodeBeans {
    /// What the services share.
    pub shared: Arc<Shared>,
    /// `host:port` of the client RPC port.
    pub host_and_port: String,
    /// Release and revision, as `3.5.0, r...`.
    pub version: String,
    /// When and from what the program was built.
    pub compile_info: String,
    /// When the process began, milliseconds since 1970.
    pub started_ms: i64,
    /// Directories by path with what they hold: `IMAGE`, `EDITS` or `IMAGE_AND_EDITS`.
    pub directories: Vec<(String, &'static str)>,
}

/// One look at the state.
struct Seen {
    stats: Stats,
    inodes: u64,
    open_files: usize,
    clients: usize,
    tokens: usize,
    objects_max: u64,
    safe_mode: Option<String>,
    live: Vec<(String, Json)>,
    dead: Vec<(String, Json)>,
    decommissioning: Vec<(String, Json)>,
    entering_maintenance: Vec<(String, Json)>,
    used_percents: Vec<f32>,
    versions: BTreeMap<Arc<str>, i64>,
    startup_deletion_delay_ms: u64,
    scanned: f32,
}

type Attributes = Vec<(&'static str, Json)>;

/// Sums of the volumes of a medium, in bytes.
#[derive(Default)]
struct Medium {
    capacity: u64,
    used: u64,
    other: u64,
    remaining: u64,
    pool: u64,
    nodes: u64,
    xceivers: u64,
}

impl Medium {
    fn show(&self, name: &str) -> Json {
        let value = Json::object([
            ("blockPoolUsed", self.pool.into()),
            ("capacityNonDfsUsed", self.other.into()),
            ("capacityRemaining", self.remaining.into()),
            ("capacityTotal", self.capacity.into()),
            ("capacityUsed", self.used.into()),
            ("nodesInService", self.nodes.into()),
            ("nodesInServiceXceiverCount", self.xceivers.into()),
            ("percentBlockPoolUsed", percent(self.pool, self.capacity, 100.0).into()),
            ("percentRemaining", percent(self.remaining, self.capacity, 0.0).into()),
            ("percentUsed", percent(self.used, self.capacity, 100.0).into()),
        ]);
        Json::object([("key", name.into()), ("value", value)])
    }
}

impl super::Node for NameNodeBeans {
    fn is_active(&self) -> bool {
        self.shared.engine.gate().state() == HaState::Active
    }

    fn host(&self) -> &str {
        self.host_and_port.rsplit_once(':').map_or(&*self.host_and_port, |(host, _)| host)
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        Some(self.shared.clone())
    }

    fn bean(&self, name: &str) -> Option<Bean> {
        let Some(at) = BEANS.iter().position(|bean| *bean == name) else { return self.port_bean(name) };
        let bean = |modeler, attributes: Attributes| Bean::new(name, modeler, attributes);
        Some(match at {
            0 => bean("FSNamesystem", self.fs_namesystem(&self.look(false))),
            1 => bean(NAMENODE, self.status()),
            2 => bean(FSNAMESYSTEM, self.info(&self.look(true))),
            3 => bean(FSNAMESYSTEM, self.fs_state(&self.look(false))),
            4 => bean("NameNodeActivity", metrics::activity(self, self.host())),
            5 => bean("JvmMetrics", metrics::jvm(self.host())),
            6 => bean(BLOCK_MANAGER, vec![("StorageTypeStats", self.media())]),
            7 => bean(FSNAMESYSTEM, replicated(&self.figures())),
            8 => bean(FSNAMESYSTEM, striped(&self.figures())),
            9 => bean("sun.management.MemoryImpl", metrics::memory()),
            10 => bean("com.sun.management.internal.HotSpotThreadImpl", metrics::threading()),
            11 => bean("com.sun.management.internal.OperatingSystemImpl", metrics::system()),
            12 => Bean::new(name, "StateLock", metrics::lock(self)),
            13 => bean("Memory", metrics::parts(self)),
            14 => bean(SNAPSHOTS, super::snapshots::info(&self.shared).into()),
            _ => Bean::new(name, "NNTopUserOpCounts", super::top::tags(self.shared.top.as_ref()?, self.host())),
        })
    }

    fn names(&self) -> Vec<String> {
        let mut names = BEANS.map(str::to_owned).to_vec();
        for port in self.shared.ports.get().into_iter().flatten() {
            names.extend(PORT_BEANS.map(|bean| format!("{bean}{}", port.port)));
        }
        names
    }
}

/// The name node itself, where a view wants a caller.
pub(crate) fn nobody() -> Caller {
    Caller {
        user: "".into(),
        real_user: None,
        groups: Arc::default(),
        method: AuthenticationMethod::Simple,
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
        rpc_ids: None,
        retry: -1,
        context: None,
    }
}

/// Beans of a port, before its number: calls together, and by method.
const PORT_BEANS: [&str; 2] =
    ["Hadoop:service=NameNode,name=RpcActivityForPort", "Hadoop:service=NameNode,name=RpcDetailedActivityForPort"];

/// State of blocks that are replicated.
fn replicated(stats: &Stats) -> Attributes {
    let groups = &stats.groups;
    let missing = stats.missing - groups.missing;
    let low = stats.low_redundancy - groups.low_redundancy - missing;
    vec![
        ("LowRedundancyReplicatedBlocks", low.into()),
        ("CorruptReplicatedBlocks", (stats.corrupt - groups.corrupt).into()),
        ("MissingReplicatedBlocks", missing.into()),
        ("MissingReplicationOneBlocks", stats.missing_single.into()),
        ("BytesInFutureReplicatedBlocks", (stats.bytes_in_future - groups.bytes_in_future).into()),
        ("PendingDeletionReplicatedBlocks", (stats.pending_deletions - groups.pending_deletions).into()),
        ("BadlyDistributedBlocks", stats.badly_distributed.into()),
        ("TotalReplicatedBlocks", (stats.blocks - groups.groups).into()),
    ]
}

/// State of striped groups.
fn striped(stats: &Stats) -> Attributes {
    let groups = &stats.groups;
    vec![
        ("LowRedundancyECBlockGroups", (groups.low_redundancy - groups.missing).into()),
        ("CorruptECBlockGroups", groups.corrupt.into()),
        ("MissingECBlockGroups", groups.missing.into()),
        ("BytesInFutureECBlockGroups", groups.bytes_in_future.into()),
        ("PendingDeletionECBlocks", groups.pending_deletions.into()),
        ("TotalECBlockGroups", groups.groups.into()),
    ]
}

impl NameNodeBeans {
    /// Sums over blocks and DataNodes.
    pub(super) fn figures(&self) -> Stats {
        self.look(false).stats
    }

    fn port_bean(&self, name: &str) -> Option<Bean> {
        let ports = self.shared.ports.get()?;
        let of = |prefix: &str| {
            let number: u16 = name.strip_prefix(prefix)?.parse().ok()?;
            ports.iter().find(|port| port.port == number)
        };
        let (_, class) = name.rsplit_once("name=")?;
        let host = super::Node::host(self);
        of(PORT_BEANS[0])
            .map(|port| Bean::new(name, class, metrics::rpc(port, host)))
            .or_else(|| of(PORT_BEANS[1]).map(|port| Bean::new(name, class, metrics::detailed(port, host))))
    }

    /// Figures by medium, over the live DataNodes in service.
    fn media(&self) -> Json {
        let sums = self.shared.engine.view("jmx", &nobody(), |view| {
            let mut sums: BTreeMap<&'static str, Medium> = BTreeMap::new();
            let blocks = &view.state.blocks;
            for node in blocks.datanode_report(blocks::ReportKind::Live).into_iter().filter(|node| node.in_service()) {
                let mut seen = BTreeSet::new();
                for volume in blocks.volumes_of(node) {
                    let name = volume.kind.name();
                    let sum = sums.entry(name).or_default();
                    sum.capacity += volume.capacity;
                    sum.used += volume.dfs_used;
                    sum.other += volume.non_dfs_used;
                    sum.remaining += volume.remaining;
                    sum.pool += volume.block_pool_used;
                    if seen.insert(name) {
                        sum.nodes += 1;
                        sum.xceivers += u64::from(node.stats.xceivers);
                    }
                }
            }
            sums
        });
        Json::List(sums.into_iter().map(|(name, sum)| sum.show(name)).collect())
    }

    fn look(&self, nodes: bool) -> Seen {
        self.shared.engine.view("jmx", &nobody(), |view| {
            let (state, now) = (view.state, view.now.monotonic);
            let safe_mode = &state.blocks.safe_mode;
            let mut seen = Seen {
                stats: state.blocks.stats(&state.store, now),
                inodes: state.tree.inode_count(),
                open_files: state.tree.open_count(),
                clients: state.tree.leases.len(),
                tokens: state.tokens.tokens.len(),
                objects_max: view.settings.objects_max,
                safe_mode: safe_mode.is_on().then(|| safe_mode.status(now)),
                live: Vec::new(),
                dead: Vec::new(),
                decommissioning: Vec::new(),
                entering_maintenance: Vec::new(),
                used_percents: Vec::new(),
                versions: BTreeMap::new(),
                startup_deletion_delay_ms: state.blocks.settings.startup_deletion_delay_ms,
                scanned: state.blocks.scan_progress(&state.store),
            };
            if nodes {
                state
                    .blocks
                    .datanode_report(blocks::ReportKind::All)
                    .into_iter()
                    .for_each(|n| seen.add(&state.blocks, n, now));
                for node in state.blocks.never_registered() {
                    let (id, excluded) = (&node.id, node.admin == blocks::AdminState::Decommissioned);
                    seen.dead
                        .push((blocks::with_port(&id.host, id.transfer_port), never_registered(id, excluded, now)));
                }
            }
            seen
        })
    }

    /// The rolling upgrade that runs, if one does.
    fn rolling_upgrade(&self) -> Json {
        let told = self.shared.engine.rolling_upgrade(&nobody());
        told.ok().flatten().map_or(Json::Null, |told| {
            Json::object([
                ("blockPoolId", (&*self.shared.identity.block_pool).into()),
                ("createdRollbackImages", told.rollback_image.into()),
                ("finalizeTime", told.finalized.unwrap_or_default().0.into()),
                ("startTime", told.start.0.into()),
            ])
        })
    }

    fn status(&self) -> Attributes {
        let (slow_peers, slow_disks) = super::slow::slow(&self.shared);
        vec![
            ("State", self.shared.engine.gate().state().name().into()),
            ("SecurityEnabled", false.into()),
            ("LastHATransitionTime", 0.into()),
            ("SlowPeersReport", slow_peers),
            ("SlowDisksReport", slow_disks),
            ("NNRole", "NameNode".into()),
            ("HostAndPort", self.host_and_port.as_str().into()),
            ("BytesWithFutureGenerationStamps", self.look(false).stats.bytes_in_future.into()),
        ]
    }

    fn info(&self, seen: &Seen) -> Attributes {
        let (identity, stats) = (&self.shared.identity, &seen.stats);
        let percent = |part: u64, none: f32| percent(part, stats.capacity, none);
        let object = |members: &[(String, Json)]| Json::Object(members.to_vec()).compact().into();
        let version =
            |(key, value): (&Arc<str>, &i64)| Json::object([("key", (&**key).into()), ("value", (*value).into())]);
        let safe_mode = seen.safe_mode.as_ref().map_or(String::new(), |s| format!("Safe mode is ON. {s}"));
        let (active, failed) = self.directories();
        let replicated_first = stats.highest_priority - stats.groups.highest_priority;
        vec![
            ("Threads", threads().into()),
            ("Version", self.version.as_str().into()),
            ("BlockPoolId", (&*identity.block_pool).into()),
            ("ClusterId", (&*identity.storage.cluster_id).into()),
            ("UpgradeFinalized", identity.upgrade_finalized().into()),
            ("HighestPriorityLowRedundancyReplicatedBlocks", replicated_first.into()),
            ("HighestPriorityLowRedundancyECBlocks", stats.groups.highest_priority.into()),
            ("ProvidedCapacity", 0.into()),
            ("TotalBlocks", stats.blocks.into()),
            ("PercentBlockPoolUsed", percent(stats.block_pool_used, 100.0).into()),
            ("CacheCapacity", stats.cache_capacity.into()),
            ("CacheUsed", stats.cache_used.into()),
            ("SoftwareVersion", (&*identity.software_version).into()),
            ("EnteringMaintenanceNodes", object(&seen.entering_maintenance)),
            ("RollingUpgradeStatus", self.rolling_upgrade()),
            ("Used", stats.used.into()),
            ("Free", stats.remaining.into()),
            ("Total", stats.capacity.into()),
            ("Safemode", safe_mode.into()),
            ("NonDfsUsedSpace", stats.non_dfs_used.into()),
            ("PercentUsed", percent(stats.used, 100.0).into()),
            ("BlockPoolUsedSpace", stats.block_pool_used.into()),
            ("PercentRemaining", percent(stats.remaining, 0.0).into()),
            ("NumberOfMissingBlocks", stats.missing.into()),
            ("NumberOfMissingBlocksWithReplicationFactorOne", stats.missing_single.into()),
            ("NumberOfBadlyDistributedBlocks", stats.badly_distributed.into()),
            ("LiveNodes", object(&seen.live)),
            ("DeadNodes", object(&seen.dead)),
            ("DecomNodes", object(&seen.decommissioning)),
            ("NameDirStatuses", Json::object([("active", active), ("failed", failed)]).compact().into()),
            ("NodeUsage", node_usage(&seen.used_percents).compact().into()),
            ("NameJournalStatus", self.journals().compact().into()),
            ("JournalTransactionInfo", self.transactions().compact().into()),
            ("NNStartedTimeInMillis", self.started_ms.into()),
            ("CompileInfo", self.compile_info.as_str().into()),
            ("DistinctVersionCount", seen.versions.len().into()),
            ("DistinctVersions", Json::List(seen.versions.iter().map(version).collect())),
        ]
    }

    /// Directories in use, and those whose journal was dropped.
    fn directories(&self) -> (Json, Json) {
        let members = self.shared.engine.journal().members();
        let dropped = |path: &str| members.iter().any(|m| m.dropped.is_some() && m.label.contains(path));
        let (failed, active): (Vec<_>, Vec<_>) = self.directories.iter().partition(|(path, _)| dropped(path));
        let object = |list: Vec<&(String, &'static str)>| {
            Json::Object(list.into_iter().map(|(path, kind)| (path.clone(), (*kind).into())).collect())
        };
        (object(active), object(failed))
    }

    /// Journals with their open segments, named as Hadoop names its classes.
    fn journals(&self) -> Json {
        let segment = self.shared.engine.journal().segment().0;
        let member = |m: storage::journal::MemberStatus| {
            let text = |b: bool| if b { "true" } else { "false" };
            let root = &m.label;
            let stream = match m.dropped {
                Some(_) => "Failed to write".to_owned(),
                None => format!("EditLogFileOutputStream({root}/current/edits_inprogress_{segment:019})"),
            };
            Json::object([
                ("manager", format!("FileJournalManager(root={root})").into()),
                ("stream", stream.into()),
                ("disabled", text(m.dropped.is_some()).into()),
                ("required", text(m.required).into()),
            ])
        };
        Json::List(self.shared.engine.journal().members().into_iter().map(member).collect())
    }

    fn transactions(&self) -> Json {
        Json::object([
            ("MostRecentCheckpointTxId", self.shared.newest_checkpoint().0.to_string().into()),
            ("LastAppliedOrWrittenTxId", self.shared.engine.journal().last_assigned().0.to_string().into()),
        ])
    }

    fn fs_state(&self, seen: &Seen) -> Attributes {
        let stats = &seen.stats;
        vec![
            ("FilesTotal", seen.inodes.into()),
            ("BlocksTotal", stats.blocks.into()),
            ("LowRedundancyBlocks", stats.low_redundancy.into()),
            ("CapacityTotal", stats.capacity.into()),
            ("CapacityUsed", stats.used.into()),
            ("CapacityRemaining", stats.remaining.into()),
            ("ReconstructionQueuesInitProgress", seen.scanned.into()),
            ("NumLiveDataNodes", stats.live.into()),
            ("NumDeadDataNodes", stats.dead.into()),
            ("EstimatedCapacityLostTotal", stats.capacity_lost.into()),
            ("NumStaleStorages", stats.stale_volumes.into()),
            ("ProvidedCapacityTotal", 0.into()),
            ("UnderReplicatedBlocks", stats.low_redundancy.into()),
            ("TotalLoad", stats.xceivers.into()),
            ("CurrentTokensCount", seen.tokens.into()),
            ("MaxObjects", seen.objects_max.into()),
            ("PendingReplicationBlocks", stats.pending_copies.into()),
            ("PendingReconstructionBlocks", stats.pending_copies.into()),
            ("ScheduledReplicationBlocks", stats.scheduled_copies.into()),
            ("PendingDeletionBlocks", stats.pending_deletions.into()),
            ("BlockDeletionStartTime", (self.started_ms + seen.startup_deletion_delay_ms as i64).into()),
            ("FSState", if seen.safe_mode.is_some() { "safeMode" } else { "Operational" }.into()),
            ("NumDecomLiveDataNodes", stats.decommissioned_live.into()),
            ("NumDecomDeadDataNodes", stats.decommissioned_dead.into()),
            ("NumInServiceLiveDataNodes", stats.in_service.into()),
            ("VolumeFailuresTotal", stats.volume_failures.into()),
            ("NumDecommissioningDataNodes", stats.decommissioning.into()),
            ("NumStaleDataNodes", stats.stale_nodes.into()),
            ("TopUserOpCounts", super::top::counts(&self.shared)),
            ("NumInMaintenanceLiveDataNodes", stats.maintenance_live.into()),
            ("NumInMaintenanceDeadDataNodes", stats.maintenance_dead.into()),
            ("NumEnteringMaintenanceDataNodes", stats.entering_maintenance.into()),
        ]
    }

    fn fs_namesystem(&self, seen: &Seen) -> Attributes {
        let stats = &seen.stats;
        let journal = self.shared.engine.journal();
        let (last, (checkpoint, saved_ms)) = (journal.last_assigned().0, self.shared.newest_checkpoint());
        let gigabytes = |bytes: u64| Json::Float((bytes as f32 / (1u64 << 30) as f32).round());
        let replicated_first = stats.highest_priority - stats.groups.highest_priority;
        let mut rows: Attributes = vec![
            ("tag.Context", "dfs".into()),
            ("tag.HAState", self.shared.engine.gate().state().name().into()),
            ("FilesTotal", seen.inodes.into()),
            ("BlocksTotal", stats.blocks.into()),
            ("MissingBlocks", stats.missing.into()),
            ("MissingReplOneBlocks", stats.missing_single.into()),
            ("BadlyDistBlocks", stats.badly_distributed.into()),
            ("ExpiredHeartbeats", stats.expired_heartbeats.into()),
            ("LowRedundancyBlocks", stats.low_redundancy.into()),
            ("CorruptBlocks", stats.corrupt.into()),
        ];
        rows.extend(replicated(stats).into_iter().take(6));
        rows.extend([
            ("HighestPriorityLowRedundancyReplicatedBlocks", replicated_first.into()),
            ("BadlyDistributedBlocks", stats.badly_distributed.into()),
        ]);
        rows.extend(striped(stats).into_iter().take(5));
        rows.extend([
            ("HighestPriorityLowRedundancyECBlocks", stats.groups.highest_priority.into()),
            ("CapacityTotal", stats.capacity.into()),
            ("CapacityUsed", stats.used.into()),
            ("CapacityRemaining", stats.remaining.into()),
            ("CapacityUsedNonDFS", stats.non_dfs_used.into()),
            ("ReconstructionQueuesInitProgress", seen.scanned.into()),
            ("ReadLockLongHoldCount", long_holds(self.shared.engine.lock().read_holds()).into()),
            ("WriteLockLongHoldCount", long_holds(self.shared.engine.lock().write_holds()).into()),
            ("TotalReplicatedBlocks", (stats.blocks - stats.groups.groups).into()),
            ("TotalECBlockGroups", stats.groups.groups.into()),
            ("NumTimedOutPendingReconstructions", stats.timed_out_copies.into()),
            ("NumLiveDataNodes", stats.live.into()),
            ("NumDeadDataNodes", stats.dead.into()),
            ("EstimatedCapacityLostTotal", stats.capacity_lost.into()),
            ("NumStaleStorages", stats.stale_volumes.into()),
            ("UnderReplicatedBlocks", stats.low_redundancy.into()),
            ("LastCheckpointTime", saved_ms.into()),
            ("TransactionsSinceLastCheckpoint", last.saturating_sub(checkpoint).into()),
            ("TransactionsSinceLastLogRoll", (last + 1).saturating_sub(journal.segment().0).into()),
            ("LastWrittenTransactionId", last.into()),
            ("CapacityTotalGB", gigabytes(stats.capacity)),
            ("CapacityUsedGB", gigabytes(stats.used)),
            ("CapacityRemainingGB", gigabytes(stats.remaining)),
            ("TotalLoad", stats.xceivers.into()),
            ("CurrentTokensCount", seen.tokens.into()),
            ("NumFilesUnderConstruction", seen.open_files.into()),
            ("NumActiveClients", seen.clients.into()),
            ("PendingReplicationBlocks", stats.pending_copies.into()),
            ("PendingReconstructionBlocks", stats.pending_copies.into()),
            ("ScheduledReplicationBlocks", stats.scheduled_copies.into()),
            ("PendingDeletionBlocks", stats.pending_deletions.into()),
            ("ExcessBlocks", stats.excess.into()),
            ("PostponedMisreplicatedBlocks", stats.postponed.into()),
            ("NumDecomLiveDataNodes", stats.decommissioned_live.into()),
            ("NumDecomDeadDataNodes", stats.decommissioned_dead.into()),
            ("NumInServiceLiveDataNodes", stats.in_service.into()),
            ("VolumeFailuresTotal", stats.volume_failures.into()),
            ("NumDecommissioningDataNodes", stats.decommissioning.into()),
            ("StaleDataNodes", stats.stale_nodes.into()),
            ("NumInMaintenanceLiveDataNodes", stats.maintenance_live.into()),
            ("NumInMaintenanceDeadDataNodes", stats.maintenance_dead.into()),
            ("NumEnteringMaintenanceDataNodes", stats.entering_maintenance.into()),
        ]);
        rows
    }
}

impl Seen {
    fn add(&mut self, blocks: &blocks::Blocks, node: &Node, now: MonotonicMs) {
        let key = blocks::with_port(&node.id.host, node.id.transfer_port);
        let status = blocks.leaving_status(node.number);
        let status = status.unwrap_or_else(|| LeavingStatus { since: now, ..LeavingStatus::default() });
        // one that dies while it leaves is leaving still
        match node.admin {
            AdminState::Decommissioning => {
                let mut members = leaving_node(node, status, "decommissionOnlyReplicas");
                members.push(("decommissionDuration".to_owned(), now.since(status.since).into()));
                self.decommissioning.push((key.clone(), Json::Object(members)));
            }
            AdminState::EnteringMaintenance => {
                let members = leaving_node(node, status, "maintenanceOnlyReplicas");
                self.entering_maintenance.push((key.clone(), Json::Object(members)));
            }
            _ => {}
        }
        if !node.alive {
            self.dead.push((key, dead_node(node, now)));
            return;
        }
        *self.versions.entry(node.software_version.clone()).or_default() += 1;
        if !matches!(node.admin, AdminState::Decommissioning | AdminState::Decommissioned) {
            self.used_percents.push(percent(node.stats.dfs_used, node.stats.capacity, 100.0));
        }
        self.live.push((key, live_node(blocks, node, now)));
    }
}

/// Holds of more than 5 ms, which are the ones that are logged.
fn long_holds(holds: &engine::HoldTimes) -> u64 {
    let short = engine::HOLD_BUCKETS_MICROS.iter().filter(|bound| **bound <= vocab::limits::HOLD_WARN_MICROS).count();
    holds.counts()[short..].iter().sum()
}

/// `part` of `whole` in percent; `none` where there is no whole.
fn percent(part: u64, whole: u64, none: f32) -> f32 {
    if whole == 0 { none } else { part as f32 * 100.0 / whole as f32 }
}

/// As Hadoop prints states of administration.
fn admin_text(state: AdminState) -> &'static str {
    match state {
        AdminState::Normal => "In Service",
        AdminState::Decommissioning => "Decommission In Progress",
        AdminState::Decommissioned => "Decommissioned",
        AdminState::EnteringMaintenance => "Entering Maintenance",
        AdminState::InMaintenance => "In Maintenance",
    }
}

fn live_node(blocks: &blocks::Blocks, node: &Node, now: MonotonicMs) -> Json {
    let (id, stats) = (&node.id, &node.stats);
    let percents: Vec<f32> = blocks.volumes_of(node).map(|v| percent(v.block_pool_used, v.capacity, 100.0)).collect();
    let mut members: Vec<(&str, Json)> = vec![
        ("infoAddr", id.info_address().into()),
        ("infoSecureAddr", id.info_secure_address().into()),
        ("xferaddr", id.transfer_address().into()),
        ("location", (&*node.location).into()),
        ("uuid", (&*id.uuid).into()),
        ("lastContact", (now.since(node.last_update) / 1_000).into()),
        ("usedSpace", stats.dfs_used.into()),
        ("adminState", admin_text(node.admin).into()),
        ("nonDfsUsedSpace", stats.non_dfs_used.into()),
        ("capacity", stats.capacity.into()),
        ("numBlocks", blocks.block_count_of(node).into()),
        ("version", (&*node.software_version).into()),
        ("used", stats.dfs_used.into()),
        ("remaining", stats.remaining.into()),
        ("blockScheduled", node.blocks_scheduled().into()),
        ("blockPoolUsed", stats.block_pool_used.into()),
        ("blockPoolUsedPercent", percent(stats.block_pool_used, stats.capacity, 100.0).into()),
        ("volfails", stats.volume_failures.into()),
        ("lastBlockReport", (now.since(node.last_report) / 60_000).into()),
    ];
    if let Some(failures) = &node.volume_failures {
        let locations = failures.locations.iter().map(|l| (&**l).into()).collect();
        members.push(("failedStorageIDs", Json::List(locations)));
        members.push(("lastVolumeFailureDate", failures.last_failure.0.into()));
        members.push(("estimatedCapacityLostTotal", failures.capacity_lost.into()));
    }
    if let Some(domain) = &node.upgrade_domain {
        members.push(("upgradeDomain", (&**domain).into()));
    }
    members.push(("blockPoolUsedPercentStdDev", deviation(&percents).into()));
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A node that leaves, with what its last walk found; `only_here` names the blocks that are nowhere else.
fn leaving_node(node: &Node, status: LeavingStatus, only_here: &str) -> Vec<(String, Json)> {
    let members = [
        ("xferaddr", node.id.transfer_address().into()),
        ("location", (&*node.location).into()),
        ("uuid", (&*node.id.uuid).into()),
        ("underReplicatedBlocks", status.low_redundancy.into()),
        (only_here, status.only_here.into()),
        ("underReplicateInOpenFiles", status.open.into()),
    ];
    members.map(|(name, value)| (name.to_owned(), value)).into()
}

fn dead_node(node: &Node, now: MonotonicMs) -> Json {
    Json::object([
        ("lastContact", (now.since(node.last_update) / 1_000).into()),
        ("decommissioned", (node.admin == AdminState::Decommissioned).into()),
        ("adminState", admin_text(node.admin).into()),
        ("xferaddr", node.id.transfer_address().into()),
        ("location", (&*node.location).into()),
        ("uuid", (&*node.id.uuid).into()),
    ])
}

/// A host of the include list that never came (HDFS-17559).
fn never_registered(id: &DatanodeId, excluded: bool, now: MonotonicMs) -> Json {
    let state = if excluded { AdminState::Decommissioned } else { AdminState::Normal };
    Json::object([
        ("lastContact", (now.since(MonotonicMs(0)) / 1_000).into()),
        ("decommissioned", excluded.into()),
        ("adminState", admin_text(state).into()),
        ("xferaddr", id.transfer_address().into()),
        ("location", blocks::DEFAULT_RACK.into()),
        ("uuid", (&*id.uuid).into()),
    ])
}

fn deviation(values: &[f32]) -> f32 {
    if values.is_empty() {
        return 0.0;
    }
    let mean = values.iter().sum::<f32>() / values.len() as f32;
    (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / values.len() as f32).sqrt()
}

/// Spread of use over the nodes in service.
fn node_usage(percents: &[f32]) -> Json {
    let mut sorted = percents.to_vec();
    sorted.sort_by(f32::total_cmp);
    let text = |value: Option<f32>| Json::Text(format!("{:.2}%", value.unwrap_or(0.0)));
    Json::object([(
        "nodeUsage",
        Json::object([
            ("min", text(sorted.first().copied())),
            ("median", text(sorted.get(sorted.len() / 2).copied())),
            ("max", text(sorted.last().copied())),
            ("stdDev", text(Some(deviation(&sorted)))),
        ]),
    )])
}

/// Threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Node as _;
    use crate::service::table::PortKind;
    use crate::service::tests::world;

    /// Beans have the classes of Hadoop 3.5.0, and of its attributes those that are real here, in its order.
    #[tokio::test]
    async fn attributes_are_hadoops() {
        let beans = NameNodeBeans {
            shared: world::start(PortKind::Client).shared,
            host_and_port: "localhost:8020".to_owned(),
            version: "3.5.0, r0".to_owned(),
            compile_info: "test".to_owned(),
            started_ms: 7,
            directories: vec![("/name".to_owned(), "IMAGE_AND_EDITS")],
        };
        let golden = include_str!("../../../tests/golden/jmx/attributes.tsv");
        for name in BEANS.into_iter().filter(|name| !name.starts_with("Ironroot:")) {
            let Some(bean) = beans.bean(name) else {
                assert!(name.ends_with("=NNTopUserOpCounts"), "{name}: only who asks most may not be counted");
                continue;
            };
            let rows = golden.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|row| row[0] == name);
            let rows: Vec<_> = rows.collect();
            assert_eq!(bean.modeler, rows[0][1]);
            let mut theirs = rows.iter();
            for (attribute, _) in &bean.attributes {
                assert!(theirs.any(|row| row[2] == *attribute), "{name}: {attribute} is unknown or out of order");
            }
        }
        let info = beans.bean(BEANS[2]).unwrap().attributes;
        let value = |name: &str| info.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap();
        assert_eq!(value("PercentUsed"), Json::Float(100.0), "Hadoop calls nothing of nothing all of it");
        assert_eq!(value("NameDirStatuses"), r#"{"active":{"/name":"IMAGE_AND_EDITS"},"failed":{}}"#.into());
        assert_eq!(value("ClusterId"), "CID-1".into());
        assert_eq!(beans.bean(BEANS[1]).unwrap().attributes[0], ("State".into(), "active".into()));
    }
}
