//! A NameNode with real DataNodes and a real client: what most tests with peers begin with.
use std::path::Path;
use std::time::{Duration, Instant};

use super::datanode::DataNode;
use super::driver::HadoopClient;
use super::hadoop::{Hadoop, hadoop};
use super::namenode::{Kind, NameNode, format};
use super::site::Site;
use super::work::{WorkDir, free_port};

/// Everything runs on 127.0.0.1 on free ports, with files below one work folder.
pub struct Cluster {
    // dropped in this order: the client first, the folder last
    pub client: HadoopClient,
    pub datanodes: Vec<DataNode>,
    pub namenode: Option<NameNode>,
    pub site: Site,
    pub hadoop: &'static Hadoop,
    pub work: WorkDir,
    next_datanode: usize,
}

impl Cluster {
    /// A formatted NameNode of `kind` in service, with `datanodes` live ones; None, said aloud, without Hadoop.
    pub fn start(name: &str, kind: Kind, datanodes: usize, settings: &[(&str, &str)]) -> Option<Self> {
        let hadoop = hadoop()?;
        let work = WorkDir::new(name);
        let mut site = cluster_site(work.path());
        for (key, value) in settings {
            site.set(key, value);
        }
        format(kind, &site);
        // the DataNodes' JVMs start while the NameNode does
        let next_datanode = datanodes;
        let datanodes = (0..datanodes).map(|i| DataNode::start(hadoop, &site, work.path(), i)).collect::<Vec<_>>();
        let client = HadoopClient::start(hadoop, &client_site(&site, work.path()));
        let namenode = NameNode::start(kind, &site);
        namenode.wait_out_of_safe_mode();
        let cluster = Self { client, datanodes, namenode: Some(namenode), site, hadoop, work, next_datanode };
        cluster.wait_for_room();
        Some(cluster)
    }

    /// The NameNode, which must be running.
    pub fn namenode(&self) -> &NameNode {
        self.namenode.as_ref().expect("the NameNode runs")
    }

    pub fn stop_namenode(&mut self) {
        self.namenode.take().expect("the NameNode runs").stop();
    }

    /// SIGKILL, no time to say good-bye.
    pub fn kill_namenode(&mut self) {
        self.namenode.take().expect("the NameNode runs").kill();
    }

    /// Starts a NameNode of `kind` on the same directory and waits until it serves with all DataNodes.
    pub fn start_namenode(&mut self, kind: Kind) {
        assert!(self.namenode.is_none(), "one at a time");
        let namenode = NameNode::start(kind, &self.site);
        namenode.wait_out_of_safe_mode();
        self.namenode = Some(namenode);
        self.wait_for_room();
    }

    /// Waits until every DataNode is live and has told its free space: between its registration and its next heartbeat
    /// the Java NameNode places nothing on it. The first call may fail: a client finds an idle connection dead by using
    /// it.
    fn wait_for_room(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = self.client.run(&["api", "datanodes"]);
            if answer.out.lines().filter(|line| !line.ends_with("\t0")).count() == self.datanodes.len() {
                return;
            }
            assert!(Instant::now() < end, "not every DataNode has room: {answer:#?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// One more, empty DataNode, not waited for.
    pub fn add_datanode(&mut self) {
        self.datanodes.push(DataNode::start(self.hadoop, &self.site, self.work.path(), self.next_datanode));
        self.next_datanode += 1;
    }

    /// The blocks of a file: (name with stamp, bytes, transfer addresses).
    pub fn blocks(&self, path: &str) -> Vec<Block> {
        self.client.ok(&["api", "blocks", path]).lines().map(Block::parse).collect()
    }
}

/// One block of a file as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// File name on a DataNode: blk_ID.
    pub name: String,
    pub generation_stamp: u64,
    pub bytes: u64,
    /// Transfer addresses of the replicas.
    pub locations: Vec<String>,
}

impl Block {
    fn parse(line: &str) -> Self {
        let mut fields = line.split('\t');
        let mut next = || fields.next().expect("a block line").to_owned();
        let (name, generation_stamp, bytes) = (next(), next(), next());
        Self {
            name,
            generation_stamp: generation_stamp.parse().expect("a stamp"),
            bytes: bytes.parse().expect("bytes"),
            locations: fields.map(str::to_owned).collect(),
        }
    }
}

/// Settings of a small cluster below `work` that notices and repairs within seconds.
pub fn cluster_site(work: &Path) -> Site {
    let mut site = Site::new(work.join("conf"));
    site.set("fs.defaultFS", format!("hdfs://127.0.0.1:{}", free_port()));
    site.set("hadoop.tmp.dir", work.join("tmp").display());
    site.set("dfs.namenode.http-address", format!("127.0.0.1:{}", free_port()));
    site.set("dfs.namenode.name.dir", format!("file://{}", work.join("name").display()));
    site.set("dfs.blocksize", 1 << 20);
    site.set("dfs.namenode.fs-limits.min-block-size", 512);
    site.set("dfs.namenode.safemode.extension", 0);
    // a DataNode is dead after 2 x recheck + 10 x heartbeat = 12 s
    site.set("dfs.heartbeat.interval", 1);
    site.set("dfs.namenode.heartbeat.recheck-interval", 1000);
    site.set("dfs.namenode.redundancy.interval.seconds", 1);
    site.set("dfs.namenode.reconstruction.pending.timeout-sec", 10);
    site.set("hadoop.user.group.static.mapping.overrides", "hdfs=supergroup;alice=staff;bob=staff,ops;carol=");
    site
}

/// The same for a client, which gives up at once when the NameNode is gone.
pub fn client_site(cluster: &Site, work: &Path) -> Site {
    let mut site = cluster.copy_to(work.join("client"));
    site.set("ipc.client.connect.max.retries", 0);
    site.set("fs.permissions.umask-mode", "022");
    site
}
