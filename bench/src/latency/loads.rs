//! What one may ask of a name node that takes long, one after the other on one namespace.

use super::probe::create_request;
use crate::live::datanode::{DataNode, Replicas};
use crate::live::{CLIENT_PROTOCOL, Live, connect, runtime, whoami};
use crate::startup::{Profile, blocks, process};
use hadoop_proto::Message;
use hadoop_proto::hdfs::*;
use hadoop_proto::packed_blocks::{ReplicaState, ReportedReplica, put_replica};
use rpc::client::Client;
use std::fs;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Replicas of a volume: Java's DataNodes send a report for each volume beyond so many.
const REPLICAS_OF_A_VOLUME: u64 = 1_000_000;
/// DataNodes; each has a replica of each block, but for the last one, which is empty.
const DATANODES: u32 = 4;
/// Snapshots beside those with large changes.
const SNAPSHOTS: usize = 1_000;
/// Directory that snapshots are taken of.
const WAREHOUSE: &str = "/user/hive/warehouse";
const PATIENCE: Duration = Duration::from_secs(300);

/// Something that takes long.
pub struct Load {
    pub name: &'static str,
    /// Does it; gives what is worth telling of it.
    pub run: fn(&mut Cluster<'_>) -> Result<String, String>,
}

/// All of them, in an order in which none takes from a later one what that needs.
pub const LOADS: &[Load] = &[
    Load { name: "redundancy scan, no replica known", run: leave_safe_mode },
    Load { name: "metasave, all blocks missing", run: meta_save },
    Load { name: "first full reports of three DataNodes", run: full_reports },
    Load { name: "full reports again", run: full_reports },
    Load { name: "listing of the largest directory, three times", run: list },
    Load { name: "getContentSummary /, three times", run: content_summary },
    Load { name: "fsck /", run: fsck },
    Load { name: "rename and setQuota at the top", run: top },
    Load { name: "decommission of a DataNode with all blocks", run: decommission },
    Load { name: "death of a DataNode with all blocks", run: death },
    Load { name: "metasave, all blocks short of replicas", run: meta_save },
    Load { name: "saveNamespace in safe mode", run: save_namespace },
    Load { name: "deletion of the largest directory", run: delete_largest },
    Load { name: "1,000 snapshots, each with a change", run: snapshots },
    Load { name: "deletion of the middle of a snapshotted tree", run: delete_below },
    Load { name: "snapshot diff report in pages", run: diff_report },
    Load { name: "deleteSnapshot, newest", run: delete_newest },
    Load { name: "deleteSnapshot, middle, then all between", run: delete_middle },
    Load { name: "deleteSnapshot, oldest, which frees most", run: delete_oldest },
    Load { name: "deletion of the whole warehouse", run: delete_warehouse },
];

/// A name node with its DataNodes, and the one who asks much.
pub struct Cluster<'l> {
    pub live: &'l Live,
    files: u64,
    profile: Profile,
    runtime: Runtime,
    client: Client,
    nodes: Vec<(DataNode, JoinHandle<()>)>,
    reports: i64,
    volumes: Vec<Replicas>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Cluster<'_> {
    /// One whose DataNodes have given a sign of life.
    pub fn new(live: &Live, files: u64, profile: Profile) -> Result<Cluster<'_>, String> {
        let runtime = runtime()?;
        let client = runtime.block_on(connect(live.address(), CLIENT_PROTOCOL)).map_err(text)?;
        let mut cluster =
            Cluster { live, files, profile, runtime, client, nodes: Vec::new(), reports: 0, volumes: Vec::new() };
        cluster.volumes = cluster.replicas();
        for number in 1..=DATANODES {
            let volumes = cluster.volumes.len();
            let joined = cluster.runtime.block_on(async {
                let node = DataNode::join(live.address(), number, volumes).await?;
                let living = node.live();
                Ok::<_, rpc::client::CallError>((node, living))
            });
            cluster.nodes.push(joined.map_err(text)?);
        }
        Ok(cluster)
    }

    fn replicas(&self) -> Vec<Replicas> {
        let mut volumes: Vec<Replicas> = Vec::new();
        blocks(self.files, self.profile, &mut |id, stamp, length| {
            if volumes.last().is_none_or(|volume| volume.count == REPLICAS_OF_A_VOLUME) {
                volumes.push(Replicas { packed: Vec::new(), count: 0 });
            }
            let Some(volume) = volumes.last_mut() else { return };
            let (block_id, generation_stamp) = (id as i64, stamp as i64);
            let replica = ReportedReplica { block_id, length, generation_stamp, state: ReplicaState::Finalized };
            put_replica(&mut volume.packed, &replica);
            volume.count += 1;
        });
        volumes
    }

    pub fn call<R: Message + Default>(&self, method: &str, request: &impl Message) -> Result<R, String> {
        self.runtime.block_on(self.client.call(method, request)).map_err(|e| format!("{method}: {e}"))
    }

    fn safe_mode(&self, action: SafeModeActionProto) -> Result<(), String> {
        let request = SetSafeModeRequestProto { action: action.into(), checked: Some(false) };
        self.call::<SetSafeModeResponseProto>("setSafeMode", &request).map(drop)
    }

    fn figure(&self, attribute: &str) -> Result<u64, String> {
        let told = self.live.attribute("Hadoop:service=NameNode,name=FSNamesystem", attribute)?;
        told.as_u64().ok_or(format!("FSNamesystem has no {attribute}"))
    }

    /// Waits until the figure does not change any more within two seconds, and was reached.
    fn settled(&self, attribute: &str, reached: impl Fn(u64) -> bool) -> Result<u64, String> {
        let (since, mut last) = (Instant::now(), None);
        while since.elapsed() < PATIENCE {
            let now = self.figure(attribute)?;
            if last == Some(now) && reached(now) {
                return Ok(now);
            }
            last = Some(now);
            std::thread::sleep(Duration::from_secs(2));
        }
        Err(format!("{attribute} is {last:?}"))
    }

    fn delete(&self, path: &str) -> Result<(), String> {
        let request = DeleteRequestProto { src: path.to_owned(), recursive: true };
        let answer: DeleteResponseProto = self.call("delete", &request)?;
        if answer.result { Ok(()) } else { Err(format!("{path} is not there")) }
    }

    fn inodes(&self) -> Result<u64, String> {
        self.figure("FilesTotal")
    }

    /// The largest directory there is.
    fn largest(&self) -> String {
        match self.profile {
            Profile::Aged => "/large".to_owned(),
            Profile::Fresh => format!("{WAREHOUSE}/db_00000.db"),
        }
    }
}

pub fn leave_safe_mode(cluster: &mut Cluster<'_>) -> Result<String, String> {
    cluster.safe_mode(SafeModeActionProto::SafemodeLeave)?;
    let blocks = cluster.figure("BlocksTotal")?;
    let short = cluster.settled("UnderReplicatedBlocks", |short| short >= blocks)?;
    // what is done about them goes on
    std::thread::sleep(Duration::from_secs(10));
    Ok(format!("{short} blocks missing"))
}

fn meta_save(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let request = MetaSaveRequestProto { filename: "bench-meta".to_owned() };
    cluster.call::<MetaSaveResponseProto>("metaSave", &request).map(|_| String::new())
}

fn full_reports(cluster: &mut Cluster<'_>) -> Result<String, String> {
    cluster.reports += 1;
    for (node, _) in cluster.nodes.iter().take(DATANODES as usize - 1) {
        cluster.runtime.block_on(node.report(&cluster.volumes, cluster.reports)).map_err(text)?;
    }
    let replicas: u64 = cluster.volumes.iter().map(|volume| volume.count).sum();
    let missing = cluster.figure("MissingBlocks")?;
    Ok(format!("{replicas} replicas each, {missing} blocks missing after"))
}

fn list(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let mut seen = 0;
    for need_location in [false, true, false] {
        let (mut start_after, mut left) = (Default::default(), 1);
        while left > 0 {
            let request = GetListingRequestProto { src: cluster.largest(), start_after, need_location };
            let answer: GetListingResponseProto = cluster.call("getListing", &request)?;
            let page = answer.dir_list.ok_or("no listing")?;
            left = page.remaining_entries;
            seen += page.partial_listing.len();
            start_after = page.partial_listing.last().map(|last| last.path.clone()).unwrap_or_default();
        }
    }
    Ok(format!("{seen} entries"))
}

fn content_summary(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let mut told = String::new();
    for _ in 0..3 {
        let request = GetContentSummaryRequestProto { path: "/".to_owned() };
        let answer: GetContentSummaryResponseProto = cluster.call("getContentSummary", &request)?;
        told = format!("{} files", answer.summary.file_count);
    }
    Ok(told)
}

fn fsck(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let page = process::get(cluster.live.http, &format!("/fsck?ugi={}&path=%2F", whoami())).map_err(text)?;
    let last = page.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Ok(last.trim().to_owned())
}

fn top(cluster: &mut Cluster<'_>) -> Result<String, String> {
    for _ in 0..20 {
        for (src, dst) in [("/user", "/moved"), ("/moved", "/user")] {
            let request = RenameRequestProto { src: src.to_owned(), dst: dst.to_owned() };
            let _: RenameResponseProto = cluster.call("rename", &request)?;
        }
        // set, then taken away
        for quota in [1 << 40, u64::MAX] {
            let request = SetQuotaRequestProto {
                path: "/user".to_owned(),
                namespace_quota: quota,
                storagespace_quota: quota.saturating_mul(1 << 20),
                storage_type: None,
            };
            let _: SetQuotaResponseProto = cluster.call("setQuota", &request)?;
        }
    }
    Ok(String::new())
}

fn refresh_nodes(cluster: &Cluster<'_>, excluded: &str) -> Result<(), String> {
    fs::write(cluster.live.folder.join("exclude"), excluded).map_err(text)?;
    cluster.call::<RefreshNodesResponseProto>("refreshNodes", &RefreshNodesRequestProto {}).map(drop)
}

fn decommission(cluster: &mut Cluster<'_>) -> Result<String, String> {
    refresh_nodes(cluster, "127.0.0.1:20001\n")?;
    std::thread::sleep(Duration::from_secs(60));
    let short = cluster.figure("UnderReplicatedBlocks")?;
    refresh_nodes(cluster, "")?;
    std::thread::sleep(Duration::from_secs(10));
    Ok(format!("{short} blocks to be copied"))
}

fn death(cluster: &mut Cluster<'_>) -> Result<String, String> {
    cluster.nodes[1].1.abort();
    let (blocks, since) = (cluster.figure("BlocksTotal")?, Instant::now());
    let short = cluster.settled("UnderReplicatedBlocks", |short| short > blocks / 2)?;
    Ok(format!("{short} blocks short of a replica after {} s", since.elapsed().as_secs()))
}

fn save_namespace(cluster: &mut Cluster<'_>) -> Result<String, String> {
    cluster.safe_mode(SafeModeActionProto::SafemodeEnter)?;
    let saved = cluster.call::<SaveNamespaceResponseProto>("saveNamespace", &SaveNamespaceRequestProto::default());
    cluster.safe_mode(SafeModeActionProto::SafemodeLeave)?;
    saved.map(|_| String::new())
}

fn reclaimed(cluster: &Cluster<'_>, path: &str) -> Result<String, String> {
    let (before, since) = (cluster.inodes()?, Instant::now());
    cluster.delete(path)?;
    let answered = since.elapsed().as_millis();
    let blocks = cluster.settled("BlocksTotal", |_| true)?;
    let after = cluster.inodes()?;
    Ok(format!("answered after {answered} ms, {before} inodes before, {after} after, {blocks} blocks left"))
}

fn delete_largest(cluster: &mut Cluster<'_>) -> Result<String, String> {
    reclaimed(cluster, &cluster.largest())
}

fn snapshot(cluster: &Cluster<'_>, name: String) -> Result<(), String> {
    let request = CreateSnapshotRequestProto { snapshot_root: WAREHOUSE.to_owned(), snapshot_name: Some(name) };
    cluster.call::<CreateSnapshotResponseProto>("createSnapshot", &request).map(drop)
}

fn snapshots(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let request = AllowSnapshotRequestProto { snapshot_root: WAREHOUSE.to_owned() };
    let _: AllowSnapshotResponseProto = cluster.call("allowSnapshot", &request)?;
    for number in 0..SNAPSHOTS {
        snapshot(cluster, format!("s{number:05}"))?;
        let path = format!("{WAREHOUSE}/made-{number:05}");
        let _: CreateResponseProto = cluster.call("create", &create_request(&path))?;
    }
    Ok(String::new())
}

/// Half of what the snapshots know goes, in two steps between snapshots in the middle and behind them.
fn delete_below(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let (before, mut deleted) = (cluster.inodes()?, 0);
    for table in 0..20 {
        // there may be no more than half a database
        if cluster.delete(&format!("{WAREHOUSE}/db_00001.db/table_{:05}", 20 + table)).is_ok() {
            deleted += 1;
        }
        if table == 9 {
            snapshot(cluster, "t".to_owned())?;
        }
    }
    snapshot(cluster, "u".to_owned())?;
    Ok(format!("{deleted} tables, {before} inodes"))
}

fn diff_report(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let (mut cursor, mut pages, mut entries) = (None, 0, 0);
    loop {
        let request = GetSnapshotDiffReportListingRequestProto {
            snapshot_root: WAREHOUSE.to_owned(),
            from_snapshot: "s00000".to_owned(),
            to_snapshot: "u".to_owned(),
            cursor,
        };
        let answer: GetSnapshotDiffReportListingResponseProto =
            cluster.call("getSnapshotDiffReportListing", &request)?;
        let report = answer.diff_report;
        pages += 1;
        entries += report.modified_entries.len() + report.created_entries.len() + report.deleted_entries.len();
        match report.cursor {
            Some(next) if next.index >= 0 || !next.start_path.is_empty() => cursor = Some(next),
            _ => return Ok(format!("{entries} entries in {pages} pages")),
        }
    }
}

fn delete_snapshot(cluster: &Cluster<'_>, name: &str) -> Result<(), String> {
    let request = DeleteSnapshotRequestProto { snapshot_root: WAREHOUSE.to_owned(), snapshot_name: name.to_owned() };
    cluster.call::<DeleteSnapshotResponseProto>("deleteSnapshot", &request).map(drop)
}

fn delete_newest(cluster: &mut Cluster<'_>) -> Result<String, String> {
    delete_snapshot(cluster, "u")?;
    delete_snapshot(cluster, "t").map(|()| String::new())
}

fn delete_middle(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let before = cluster.inodes()?;
    delete_snapshot(cluster, &format!("s{:05}", SNAPSHOTS / 2))?;
    for number in (1..SNAPSHOTS).filter(|number| *number != SNAPSHOTS / 2) {
        delete_snapshot(cluster, &format!("s{number:05}"))?;
    }
    Ok(format!("{before} inodes before, {} after", cluster.inodes()?))
}

fn delete_oldest(cluster: &mut Cluster<'_>) -> Result<String, String> {
    let (before, since) = (cluster.inodes()?, Instant::now());
    delete_snapshot(cluster, "s00000")?;
    let answered = since.elapsed().as_millis();
    cluster.settled("BlocksTotal", |_| true)?;
    Ok(format!("answered after {answered} ms, {before} inodes before, {} after", cluster.inodes()?))
}

fn delete_warehouse(cluster: &mut Cluster<'_>) -> Result<String, String> {
    reclaimed(cluster, WAREHOUSE)
}
