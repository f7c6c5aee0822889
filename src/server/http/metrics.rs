//! Beans of activity: calls by port and method, operations of the name node, and stand-ins for what monitoring polls of a Java process.

use super::beans::NameNodeBeans;
use super::jmx::Bean;
use super::json::Json;
use crate::service::PortFigures;
use crate::service::table::Handler;
use engine::HOLD_BUCKETS_MICROS;
use ops::Operation;
use std::sync::atomic::Ordering;

type Attributes = Vec<(&'static str, Json)>;

/// Memory and processor of this process, from the system's own account.
struct Process {
    resident: u64,
    total: u64,
    threads: u64,
    cpu_ms: u64,
    open_files: u64,
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl Process {
    fn look() -> Process {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (status, memory, stat) = (read("/proc/self/status"), read("/proc/meminfo"), read("/proc/self/stat"));
        // utime and stime are the 14th and 15th words, in hundredths of a second; the second one may have blanks and is in parentheses
        let words = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split_whitespace();
        let ticks: u64 = words.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
        Process {
            resident: field(&status, "VmRSS") << 10,
            total: field(&memory, "MemTotal") << 10,
            threads: field(&status, "Threads"),
            cpu_ms: ticks * 10,
            open_files: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64,
        }
    }
}

fn megabytes(bytes: u64) -> Json {
    Json::Float(bytes as f32 / (1 << 20) as f32)
}

/// `JvmMetrics`: the process in the words of a Java one. All its memory counts as heap, and nothing is ever collected.
pub(super) fn jvm(host: &str) -> Attributes {
    let process = Process::look();
    vec![
        ("tag.Context", "jvm".into()),
        ("tag.ProcessName", "NameNode".into()),
        ("tag.SessionId", Json::Null),
        ("tag.Hostname", host.into()),
        ("MemNonHeapUsedM", Json::Float(0.0)),
        ("MemNonHeapCommittedM", Json::Float(0.0)),
        ("MemNonHeapMaxM", Json::Float(-1.0)),
        ("MemHeapUsedM", megabytes(process.resident)),
        ("MemHeapCommittedM", megabytes(process.resident)),
        ("MemHeapMaxM", megabytes(process.total)),
        ("MemMaxM", megabytes(process.total)),
        ("GcCount", 0.into()),
        ("GcTimeMillis", 0.into()),
        ("GcNumWarnThresholdExceeded", 0.into()),
        ("GcNumInfoThresholdExceeded", 0.into()),
        ("GcTotalExtraSleepTime", 0.into()),
        ("GcTimePercentage", 0.into()),
        ("ThreadsNew", 0.into()),
        ("ThreadsRunnable", process.threads.into()),
        ("ThreadsBlocked", 0.into()),
        ("ThreadsWaiting", 0.into()),
        ("ThreadsTimedWaiting", 0.into()),
        ("ThreadsTerminated", 0.into()),
    ]
}

/// `java.lang:type=Memory`, which the pages poll.
pub(super) fn memory() -> Attributes {
    let process = Process::look();
    let usage = |committed: u64, max: i64, used: u64| {
        Json::object([("committed", committed.into()), ("init", 0.into()), ("max", max.into()), ("used", used.into())])
    };
    vec![
        ("ObjectPendingFinalizationCount", 0.into()),
        ("HeapMemoryUsage", usage(process.resident, process.total as i64, process.resident)),
        ("NonHeapMemoryUsage", usage(0, -1, 0)),
        ("Verbose", false.into()),
        ("ObjectName", "java.lang:type=Memory".into()),
    ]
}

/// What the parts of the namespace take, in bytes of pages that are in use; what is not in them (past, queues, connections, the allocator's) is the
/// difference to the anonymous memory of the process.
pub(super) fn parts(beans: &NameNodeBeans) -> Attributes {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lock = beans.shared.engine.lock();
    let (store, tree) = lock.read("jmx", |state| (state.store.memory(), state.tree.memory()));
    let replicas = lock.read("jmx", |state| state.blocks.replica_memory());
    let store = [
        ("Inodes", store.inodes),
        ("Blocks", store.blocks),
        ("Names", store.names),
        ("Lists", store.lists),
        ("InodeIndex", store.inode_index),
        ("BlockIndex", store.block_index),
        ("Shared", store.shared),
        ("Replicas", replicas),
    ];
    let mut attributes: Attributes =
        store.into_iter().chain(tree).map(|(name, bytes)| (name, (bytes as u64).into())).collect();
    attributes.push(("ResidentAnonymous", (field(&status, "RssAnon") << 10).into()));
    attributes
}

/// `java.lang:type=OperatingSystem`.
pub(super) fn system() -> Attributes {
    let process = Process::look();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    vec![
        ("OpenFileDescriptorCount", process.open_files.into()),
        ("ProcessCpuTime", (process.cpu_ms * 1_000_000).into()),
        ("TotalMemorySize", process.total.into()),
        ("TotalPhysicalMemorySize", process.total.into()),
        ("SystemLoadAverage", Json::Double(load)),
        ("Name", "Linux".into()),
        ("AvailableProcessors", cores.into()),
        ("ObjectName", "java.lang:type=OperatingSystem".into()),
    ]
}

/// `java.lang:type=Threading`.
pub(super) fn threading() -> Attributes {
    vec![("ThreadCount", Process::look().threads.into()), ("ObjectName", "java.lang:type=Threading".into())]
}

/// `RpcActivityForPort...`.
pub(super) fn rpc(port: &PortFigures, host: &str) -> Attributes {
    let (total, transport) = (port.calls.total(), &port.transport);
    let of = |counter: &std::sync::atomic::AtomicU64| Json::from(counter.load(Ordering::Relaxed));
    let size = |counter: &std::sync::atomic::AtomicUsize| Json::from(counter.load(Ordering::Relaxed));
    vec![
        ("tag.port", port.port.to_string().as_str().into()),
        ("tag.serverName", port.server.into()),
        ("tag.Context", "rpc".into()),
        ("tag.Hostname", host.into()),
        ("ReceivedBytes", of(&transport.received_bytes)),
        ("RpcCallSuccesses", (total.calls - total.refused).into()),
        ("RpcProcessingTimeNumOps", total.calls.into()),
        ("RpcProcessingTimeAvgTime", Json::Double(total.mean_ms())),
        ("SentBytes", of(&transport.sent_bytes)),
        ("NumInProcessHandler", size(&transport.in_flight)),
        ("TotalRequests", total.calls.into()),
        ("NumOpenConnections", size(&transport.open)),
        ("CallQueueLength", 0.into()),
        ("NumDroppedConnections", of(&transport.dropped)),
    ]
}

/// `RpcDetailedActivityForPort...`: methods that were called.
pub(super) fn detailed(port: &PortFigures, host: &str) -> Vec<(String, Json)> {
    let mut rows: Vec<(String, Json)> = vec![
        ("tag.port".to_owned(), port.port.to_string().as_str().into()),
        ("tag.Context".to_owned(), "rpcdetailed".into()),
        ("tag.Hostname".to_owned(), host.into()),
    ];
    for method in port.kind.methods() {
        let count = port.calls.of(method.number.into());
        if count.calls > 0 {
            let name = capital(method.name);
            rows.push((format!("{name}NumOps"), count.calls.into()));
            rows.push((format!("{name}AvgTime"), Json::Double(count.mean_ms())));
        }
    }
    rows
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `NameNodeActivity`: calls that succeeded, over all ports, as far as a counter is just that.
pub(super) fn activity(beans: &NameNodeBeans, host: &str) -> Attributes {
    let ports = beans.shared.ports.get().map_or(&[][..], Vec::as_slice);
    let count = |wanted: Handler| -> u64 {
        let of = |port: &PortFigures| {
            let method = port.kind.methods().find(|method| method.handler == wanted);
            method.map_or(0, |method| {
                let count = port.calls.of(method.number.into());
                count.calls - count.refused
            })
        };
        ports.iter().map(of).sum()
    };
    let sum = |operations: &[Operation]| operations.iter().map(|o| count(Handler::Client(*o))).sum::<u64>();
    let received = count(Handler::Datanode(crate::service::table::Datanode::BlockReceivedAndDeleted));
    let stats = beans.figures();
    vec![
        ("tag.ProcessName", "NameNode".into()),
        ("tag.SessionId", Json::Null),
        ("tag.Context", "dfs".into()),
        ("tag.Hostname", host.into()),
        ("AddBlockOps", sum(&[Operation::AddBlock]).into()),
        ("AllowSnapshotOps", sum(&[Operation::AllowSnapshot]).into()),
        ("BlockReceivedAndDeletedOps", received.into()),
        ("CreateFileOps", sum(&[Operation::Create]).into()),
        ("CreateSnapshotOps", sum(&[Operation::CreateSnapshot]).into()),
        ("CreateSymlinkOps", sum(&[Operation::CreateSymlink]).into()),
        ("DeleteFileOps", sum(&[Operation::Delete]).into()),
        ("DeleteSnapshotOps", sum(&[Operation::DeleteSnapshot]).into()),
        ("DisallowSnapshotOps", sum(&[Operation::DisallowSnapshot]).into()),
        ("FileInfoOps", sum(&[Operation::GetFileInfo, Operation::GetFileLinkInfo]).into()),
        ("FilesAppended", sum(&[Operation::Append]).into()),
        ("FilesCreated", sum(&[Operation::Create, Operation::Mkdirs]).into()),
        ("FilesRenamed", sum(&[Operation::Rename, Operation::Rename2]).into()),
        ("FilesTruncated", sum(&[Operation::Truncate]).into()),
        ("GetAdditionalDatanodeOps", sum(&[Operation::GetAdditionalDatanode]).into()),
        ("GetBlockLocations", sum(&[Operation::GetBlockLocations]).into()),
        ("GetLinkTargetOps", sum(&[Operation::GetLinkTarget]).into()),
        ("GetListingOps", sum(&[Operation::GetListing]).into()),
        ("ListSnapshottableDirOps", sum(&[Operation::GetSnapshottableDirListing]).into()),
        ("RenameSnapshotOps", sum(&[Operation::RenameSnapshot]).into()),
        ("SnapshotDiffReportOps", sum(&[Operation::GetSnapshotDiffReport]).into()),
        ("TimeoutReReplications", stats.timed_out_copies.into()),
        ("TransactionsNumOps", beans.shared.engine.journal().last_assigned().0.into()),
    ]
}

/// How long the state lock was held: a bean of our own.
pub(super) fn lock(beans: &NameNodeBeans) -> Vec<(String, Json)> {
    let lock = beans.shared.engine.lock();
    let mut rows = Vec::new();
    for (what, holds) in [("Read", lock.read_holds()), ("Write", lock.write_holds())] {
        rows.push((format!("{what}Holds"), holds.holds().into()));
        rows.push((format!("{what}HoldNanosTotal"), holds.total_nanos().into()));
        rows.push((format!("{what}HoldNanosLongest"), holds.longest_nanos().into()));
        let bounds = HOLD_BUCKETS_MICROS.iter().map(|bound| format!("UpTo{bound}Micros"));
        for (name, count) in bounds.chain(["Longer".to_owned()]).zip(holds.counts()) {
            rows.push((format!("{what}Holds{name}"), count.into()));
        }
        for (operation, long) in holds.long() {
            let name = format!("{what}HoldsOf{}", capital(operation));
            rows.push((format!("{name}UpTo5000Micros"), (long.count - long.logged).into()));
            rows.push((format!("{name}Longer"), long.logged.into()));
            rows.push((format!("{name}NanosLongest"), long.longest_nanos.into()));
        }
    }
    rows
}

/// Figures of each port as `/prom` has them: only beans of metrics, which have tags.
pub(super) fn prometheus(beans: &[Bean]) -> String {
    let mut out = String::new();
    for bean in beans {
        let tags: Vec<String> = bean.attributes.iter().filter_map(|(name, value)| label(name, value)).collect();
        let Some(record) = record(&bean.name).filter(|_| !tags.is_empty()) else { continue };
        for (name, value) in &bean.attributes {
            let number = match value {
                Json::Int(_) | Json::Float(_) | Json::Double(_) => value.clone().compact(),
                _ => continue,
            };
            let metric = prometheus_name(&record, name);
            let kind = if name.ends_with("Ops") { "counter" } else { "gauge" };
            out +=
                &format!("# HELP {metric} {name}\n# TYPE {metric} {kind}\n{metric}{{{}}} {number}\n", tags.join(","));
        }
    }
    out
}

fn label(name: &str, value: &Json) -> Option<String> {
    let tag = name.strip_prefix("tag.")?;
    let text = match value {
        Json::Text(text) => text.as_str(),
        Json::Null => "null",
        _ => return None,
    };
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    Some(format!("{}=\"{escaped}\"", tag.to_lowercase()))
}

/// What the record behind a bean is called.
fn record(bean: &str) -> Option<String> {
    let name = bean.rsplit_once("name=")?.1;
    Some(match name {
        "NameNodeActivity" => "namenode".to_owned(),
        _ if name.starts_with("RpcActivity") => "rpc".to_owned(),
        _ if name.starts_with("RpcDetailedActivity") => "rpcdetailed".to_owned(),
        _ => name.to_owned(),
    })
}

/// `FSNamesystem`, `ExcessBlocks` to `fs_namesystem_excess_blocks` (`PrometheusMetricsSink.prometheusName`).
fn prometheus_name(record: &str, metric: &str) -> String {
    let whole: Vec<char> = (capital(record) + &capital(metric)).chars().collect();
    let mut name = String::new();
    for (at, c) in whole.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| whole[at]);
        let next_is_lower = whole.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let after_word = before.is_some_and(|before| !before.is_ascii_uppercase() && before != '_');
        if c.is_ascii_uppercase() && before.is_some() && (after_word || next_is_lower) {
            name.push('_');
        }
        name.push(if *c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    name
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_as_the_prometheus_sink_makes_them() {
        let shown = |record, metric| super::prometheus_name(record, metric);
        assert_eq!(shown("FSNamesystem", "ExcessBlocks"), "fs_namesystem_excess_blocks");
        assert_eq!(shown("rpcdetailed", "MkdirsNumOps"), "rpcdetailed_mkdirs_num_ops");
        assert_eq!(shown("JvmMetrics", "MemHeapUsedM"), "jvm_metrics_mem_heap_used_m");
        assert_eq!(shown("namenode", "AddBlockOps"), "namenode_add_block_ops");
    }
}
