//! Purpose: a name node that runs, ours or Java's, and those who talk to it: callers over RPC, scripted DataNodes, its web pages, /proc.
//! Called by: latency, operations, memory.
//! Calls: startup (how the two programs are started), rpc (the project's client).
//! Never: links the product: it is measured from outside, as a rival is.
//! Invariants: a name node ends with the value that stands for it.

pub mod datanode;

use crate::startup::process::{self, Running, Side};
use rpc::client::{CallError, Client, ClientSettings};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tokio::runtime::Runtime;

/// Names of protocols in request headers.
pub const CLIENT_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
pub const DATANODE_PROTOCOL: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";

/// A name node as a process.
pub struct Live {
    pub side: Side,
    pub folder: PathBuf,
    pub rpc: u16,
    pub http: u16,
    running: Running,
}

/// Holds of the state lock of one kind that were longer than 1 ms.
#[derive(Clone, Copy, Default, Debug)]
pub struct LongHolds {
    pub up_to_5_ms: u64,
    pub longer: u64,
    pub longest_ms: f64,
}

impl Live {
    /// Starts one on a copy of `source` in `folder`, and waits until its start is over but for safe mode.
    pub fn start(
        side: Side,
        source: &Path,
        folder: &Path,
        heap: u64,
        settings: &[(&str, &str)],
    ) -> Result<Live, String> {
        let text = |e: std::io::Error| e.to_string();
        let (rpc, http) = (process::free_port().map_err(text)?, process::free_port().map_err(text)?);
        process::prepare(source, folder, rpc, http, settings).map_err(text)?;
        let log = File::create(folder.join("log")).map_err(text)?;
        let mut command = process::command(side, folder, heap);
        command.current_dir(folder).stdout(log.try_clone().map_err(text)?).stderr(log);
        let since = Instant::now();
        let mut running = Running(command.spawn().map_err(|e| format!("{command:?}: {e}"))?);
        process::wait(&mut running.0, http, since, folder)?;
        Ok(Live { side, folder: folder.to_owned(), rpc, http, running })
    }

    pub fn id(&self) -> u32 {
        self.running.0.id()
    }

    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.rpc).into()
    }

    /// CPU time of each of its threads so far, in nanoseconds, by the scheduler's account.
    pub fn threads(&self) -> HashMap<String, u64> {
        let tasks = format!("/proc/{}/task", self.running.0.id());
        let tasks = fs::read_dir(tasks).into_iter().flatten().flatten();
        let nanos = |path: PathBuf| fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok();
        tasks.filter_map(|task| Some((task.file_name().to_string_lossy().into_owned(), nanos(task.path())?))).collect()
    }

    /// CPU time since `before`, in nanoseconds. What threads did that have ended meanwhile does not count.
    pub fn cpu_since(&self, before: &HashMap<String, u64>) -> u64 {
        let now = self.threads();
        now.iter().map(|(thread, nanos)| nanos - before.get(thread).copied().unwrap_or(0).min(*nanos)).sum()
    }

    /// An attribute of a bean.
    pub fn attribute(&self, bean: &str, attribute: &str) -> Result<serde_json::Value, String> {
        let page = process::get(self.http, &format!("/jmx?qry={bean}")).map_err(|e| e.to_string())?;
        let beans: serde_json::Value = serde_json::from_str(&page).map_err(|e| format!("/jmx: {e}"))?;
        Ok(beans["beans"][0][attribute].clone())
    }

    /// All attributes of a bean that are numbers.
    pub fn numbers(&self, bean: &str) -> Result<Vec<(String, f64)>, String> {
        let page = process::get(self.http, &format!("/jmx?qry={bean}")).map_err(|e| e.to_string())?;
        let beans: serde_json::Value = serde_json::from_str(&page).map_err(|e| format!("/jmx: {e}"))?;
        let all = beans["beans"][0].as_object().into_iter().flatten();
        Ok(all.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect())
    }

    /// Holds that were longer than 1 ms, by what was done; ours tells of them.
    pub fn long_holds(&self) -> Result<BTreeMap<String, LongHolds>, String> {
        let page = process::get(self.http, "/jmx?qry=Ironroot:name=StateLock");
        let beans: serde_json::Value =
            serde_json::from_str(&page.map_err(|e| e.to_string())?).map_err(|e| format!("/jmx: {e}"))?;
        let mut all: BTreeMap<String, LongHolds> = BTreeMap::new();
        for (name, value) in beans["beans"][0].as_object().into_iter().flatten() {
            let Some((what, of)) = name.split_once("HoldsOf") else { continue };
            let put: (&str, fn(&mut LongHolds, f64)) = if let Some(of) = of.strip_suffix("UpTo5000Micros") {
                (of, |holds, value| holds.up_to_5_ms = value as u64)
            } else if let Some(of) = of.strip_suffix("NanosLongest") {
                (of, |holds, value| holds.longest_ms = value / 1e6)
            } else if let Some(of) = of.strip_suffix("Longer") {
                (of, |holds, value| holds.longer = value as u64)
            } else {
                continue;
            };
            let holds = all.entry(format!("{} {}", what.to_lowercase(), put.0)).or_default();
            put.1(holds, value.as_f64().unwrap_or_default());
        }
        Ok(all)
    }
}

/// A thread of its own for connections.
pub fn runtime() -> Result<Runtime, String> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    built.map_err(|e| e.to_string())
}

/// The user of this process, whom a name node started by it obeys.
pub fn whoami() -> String {
    let name = std::process::Command::new("id").arg("-un").output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&name).trim().to_owned()
}

/// A connection to a name node.
pub fn connect(address: SocketAddr, protocol: &str) -> impl Future<Output = Result<Client, CallError>> {
    Client::connect(address, ClientSettings::new(protocol, 1, whoami()))
}
