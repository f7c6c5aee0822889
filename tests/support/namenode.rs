//! A NameNode as a process: ours, or Hadoop's own.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::Duration;

use super::hadoop::{Hadoop, SUPERUSER, hadoop};
use super::http::jmx;
use super::process::{Process, tail};
use super::site::Site;
use super::work::wait_until;

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Which program a NameNode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ironroot,
    Java,
}

impl Kind {
    /// The NameNode that the tests are about: ours, unless `IRONROOT_PEERS_NAMENODE=java` asks whether the tests
    /// themselves are right.
    pub fn under_test() -> Self {
        match std::env::var("IRONROOT_PEERS_NAMENODE").as_deref() {
            Ok("java") => Self::Java,
            Ok("ironroot") | Err(_) => Self::Ironroot,
            Ok(other) => panic!("IRONROOT_PEERS_NAMENODE={other}: java or ironroot"),
        }
    }
}

/// The binary of this build, or the one that `IRONROOT_BINARY` names: a long run keeps to a copy while the next build is made.
pub fn ironroot_binary() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        std::env::var_os("IRONROOT_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_ironroot").into(), PathBuf::from)
    });
    &BINARY
}

/// The command line of a NameNode on the configuration of `site`, without options yet.
pub fn command(kind: Kind, site: &Site) -> Command {
    let mut command = match kind {
        Kind::Ironroot => {
            let mut command = Command::new(ironroot_binary());
            command.arg("namenode");
            command
        }
        Kind::Java => {
            let hadoop: &Hadoop = hadoop().expect("asked for before the test began");
            let mut command = hadoop.java(site, "512m", "INFO");
            command.args(["Supervised", "org.apache.hadoop.hdfs.server.namenode.NameNode"]);
            command
        }
    };
    command.env("HADOOP_CONF_DIR", site.folder()).env("HADOOP_USER_NAME", SUPERUSER);
    // where a program keeps files of its own accord, they stay in the test's folder
    command.current_dir(site.folder());
    command
}

/// Runs a NameNode with options that end by themselves (`-format`, `-metadataVersion`), with an empty standard input
/// that stays open.
pub fn run_to_end(kind: Kind, site: &Site, options: &[&str]) -> Output {
    site.write();
    let mut command = command(kind, site);
    command.args(options).stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let stdin = child.stdin.take();
    let output = child.wait_with_output().expect("own child");
    drop(stdin);
    output
}

/// `-format -nonInteractive`, which must succeed.
pub fn format(kind: Kind, site: &Site) {
    let output = run_to_end(kind, site, &["-format", "-nonInteractive"]);
    assert!(output.status.success(), "format: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// A running NameNode.
pub struct NameNode {
    kind: Kind,
    process: Process,
    http_port: u16,
    log: PathBuf,
}

impl NameNode {
    /// Starts on a formatted directory and waits until the NameNode is active.
    pub fn start(kind: Kind, site: &Site) -> Self {
        let mut node = Self::launch(kind, site, &[]);
        let what = format!("the {kind:?} NameNode was active");
        wait_until(START_LIMIT, &what, || {
            if let Some(status) = node.process.ended() {
                panic!("the {kind:?} NameNode ended with {status}\n{}", node.process.log_tail());
            }
            node.jmx("NameNodeStatus", "State").is_some_and(|state| state == "active")
        });
        node
    }

    /// Starts without waiting.
    pub fn launch(kind: Kind, site: &Site, options: &[&str]) -> Self {
        site.write();
        let log = site.folder().join("namenode.log");
        let process = Process::start(command(kind, site).args(options), &log);
        let address = site.get("dfs.namenode.http-address");
        let http_port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("host:port");
        Self { kind, process, http_port, log }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// One attribute of one of the NameNode's beans, None while it does not answer.
    pub fn jmx(&self, bean: &str, attribute: &str) -> Option<serde_json::Value> {
        jmx(self.http_port, bean, attribute)
    }

    /// A counter of FSNamesystemState; None while it does not answer.
    pub fn count(&self, attribute: &str) -> Option<i64> {
        self.jmx("FSNamesystemState", attribute)?.as_i64()
    }

    pub fn wait_for_datanodes(&self, live: i64) {
        wait_until(START_LIMIT, &format!("{live} DataNodes were live"), || {
            self.count("NumLiveDataNodes") == Some(live)
        });
    }

    pub fn wait_out_of_safe_mode(&self) {
        let what = "the NameNode left safe mode";
        wait_until(START_LIMIT, what, || self.jmx("NameNodeInfo", "Safemode").is_some_and(|text| text == ""));
    }

    /// SIGTERM, which must end it in order: with 0, or with the 128 + 15 of a JVM.
    pub fn stop(self) {
        let log = self.log;
        let status = self.process.terminate(STOP_LIMIT);
        assert!(matches!(status.code(), Some(0 | 143)), "stop: {status}\n{}", tail(&log));
    }

    /// SIGKILL.
    pub fn kill(self) {
        self.process.kill();
    }
}
