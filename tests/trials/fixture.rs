//! A NameNode for trials: formatted, in service, alone or shared by tests that keep to folders of their own.
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hadoop_proto::hdfs::{GetServerDefaultsRequestProto, GetServerDefaultsResponseProto};

use super::client::Client;
use super::datanode::DataNode;
use crate::support::cluster::cluster_site;
use crate::support::hadoop::hadoop;
use crate::support::namenode::{Kind, NameNode, format};
use crate::support::site::Site;
use crate::support::work::{WorkDir, wait_until};

/// A running NameNode and what belongs to it.
pub struct Fixture {
    namenode: Option<NameNode>,
    pub site: Site,
    pub work: WorkDir,
    pub kind: Kind,
}

impl Fixture {
    /// A new one of the kind under test; None, said aloud, if that is Java and Hadoop cannot be had.
    pub fn start(name: &str, settings: &[(&str, &str)]) -> Option<Self> {
        let mut fixture = Self::prepared(name, settings)?;
        format(fixture.kind, &fixture.site);
        fixture.launch();
        Some(fixture)
    }

    /// Everything but format and start.
    pub fn prepared(name: &str, settings: &[(&str, &str)]) -> Option<Self> {
        Self::prepared_as(Kind::under_test(), name, settings)
    }

    /// The same for a kind.
    pub fn prepared_as(kind: Kind, name: &str, settings: &[(&str, &str)]) -> Option<Self> {
        if kind == Kind::Java {
            hadoop()?;
        }
        let work = WorkDir::new(name);
        let mut site = cluster_site(work.path());
        // scripted DataNodes send no heartbeats of their own accord
        site.set("dfs.heartbeat.interval", 3);
        site.set("dfs.namenode.heartbeat.recheck-interval", 300_000);
        for (key, value) in settings {
            site.set(key, value);
        }
        Some(Self { namenode: None, site, work, kind })
    }

    pub fn launch(&mut self) {
        assert!(self.namenode.is_none(), "one at a time");
        self.namenode = Some(NameNode::start(self.kind, &self.site));
        // Java says that it is active a moment before it takes calls
        let client = self.superuser();
        wait_until(Duration::from_secs(10), "calls are taken", || {
            let answer =
                client.call::<GetServerDefaultsResponseProto>("getServerDefaults", &GetServerDefaultsRequestProto {});
            !answer.is_err_and(|refusal| refusal.is("RetriableException", "not started"))
        });
    }

    pub fn namenode(&self) -> &NameNode {
        self.namenode.as_ref().expect("the NameNode runs")
    }

    pub fn stop(&mut self) {
        self.namenode.take().expect("the NameNode runs").stop();
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.namenode.take().expect("the NameNode runs").kill();
    }

    /// In order.
    pub fn restart(&mut self) {
        self.stop();
        self.launch();
    }

    /// Without notice.
    pub fn crash(&mut self) {
        self.kill();
        self.launch();
    }

    pub fn port(&self) -> u16 {
        let address = self.site.get("fs.defaultFS");
        address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("hdfs://host:port")
    }

    pub fn http_port(&self) -> u16 {
        let address = self.site.get("dfs.namenode.http-address");
        address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("host:port")
    }

    pub fn client(&self, user: &str) -> Client {
        Client::connect(self.port(), user)
    }

    /// The superuser.
    pub fn superuser(&self) -> Client {
        self.client("hdfs")
    }

    /// Folder of the (first) name directory's current files.
    pub fn current(&self) -> std::path::PathBuf {
        self.work.join("name/current")
    }
}

/// One NameNode with one DataNode for all tests that change only their own folder.
pub struct Shared {
    fixture: Fixture,
    datanode: Mutex<DataNode>,
    _end: Child,
}

/// The shared NameNode, started at first use, ended with this process; None as `Fixture::start`.
pub fn shared() -> Option<&'static Shared> {
    static SHARED: LazyLock<Option<Shared>> = LazyLock::new(|| {
        let fixture = Fixture::start("shared", &[("dfs.namenode.fs-limits.max-directory-items", "10000")])?;
        let datanode = Mutex::new(DataNode::start(fixture.port(), 1));
        let end = end_with_us(fixture.namenode().id(), fixture.work.path());
        Some(Shared { fixture, datanode, _end: end })
    });
    SHARED.as_ref()
}

/// A static is never dropped: this program, whose input ends with the test process, ends the NameNode then.
fn end_with_us(namenode: u32, work: &std::path::Path) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >/dev/null; kill -9 $0; rm -rf $1"]).arg(namenode.to_string()).arg(work);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh")
}

impl Shared {
    pub fn client(&self, user: &str) -> Client {
        self.fixture.client(user)
    }

    pub fn superuser(&self) -> Client {
        self.fixture.superuser()
    }

    pub fn port(&self) -> u16 {
        self.fixture.port()
    }

    pub fn http_port(&self) -> u16 {
        self.fixture.http_port()
    }

    /// The one DataNode.
    pub fn datanode(&self) -> MutexGuard<'_, DataNode> {
        self.datanode.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
