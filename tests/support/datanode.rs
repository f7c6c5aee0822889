//! Real DataNodes, each a process with its own folder and ports.
use std::path::{Path, PathBuf};

use super::hadoop::Hadoop;
use super::process::Process;
use super::site::Site;
use super::work::free_port;

/// A running DataNode of 127.0.0.1.
pub struct DataNode {
    process: Process,
    site: Site,
}

/// A DataNode that was killed; its files are still there.
pub struct DeadDataNode(Site);

impl DeadDataNode {
    /// The same DataNode again: same folder, same ports.
    pub fn restart(self, hadoop: &Hadoop) -> DataNode {
        DataNode::launch(hadoop, self.0)
    }

    /// The same with another value of a key.
    pub fn restart_with(mut self, hadoop: &Hadoop, key: &str, value: &str) -> DataNode {
        self.0.set(key, value);
        self.restart(hadoop)
    }
}

impl DataNode {
    /// Starts DataNode `number` of a cluster whose clients use `cluster`; its files are below `work`/dn`number`.
    pub fn start(hadoop: &Hadoop, cluster: &Site, work: &Path, number: usize) -> Self {
        let folder = work.join(format!("dn{number}"));
        let mut site = cluster.copy_to(folder.join("conf"));
        for key in ["dfs.datanode.address", "dfs.datanode.http.address", "dfs.datanode.ipc.address"] {
            site.set(key, format!("127.0.0.1:{}", free_port()));
        }
        site.set("dfs.datanode.hostname", "127.0.0.1");
        site.set("dfs.datanode.data.dir", format!("file://{}", folder.join("data").display()));
        // a NameNode that comes back is found at once
        site.set("ipc.client.connect.retry.interval", 100);
        Self::launch(hadoop, site)
    }

    fn launch(hadoop: &Hadoop, site: Site) -> Self {
        site.write();
        let mut java = hadoop.java(&site, "256m", "INFO");
        java.args(["Supervised", "org.apache.hadoop.hdfs.server.datanode.DataNode"]).current_dir(site.folder());
        let process = Process::start(&mut java, &site.folder().join("datanode.log"));
        Self { process, site }
    }

    /// The address that clients write to and that block locations name.
    pub fn transfer_address(&self) -> &str {
        self.site.get("dfs.datanode.address")
    }

    /// The address of its own RPC port.
    pub fn ipc_address(&self) -> &str {
        self.site.get("dfs.datanode.ipc.address")
    }

    /// SIGKILL; the folder stays.
    pub fn kill(self) -> DeadDataNode {
        self.process.kill();
        DeadDataNode(self.site)
    }

    /// The block files it holds now (not their checksums).
    pub fn block_files(&self) -> Vec<PathBuf> {
        let data = self.site.get("dfs.datanode.data.dir").trim_start_matches("file://").to_owned();
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::from(data)];
        while let Some(folder) = folders.pop() {
            // a folder may vanish between the two calls
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if name.starts_with("blk_") && !name.ends_with(".meta") {
                    found.push(path);
                }
            }
        }
        found
    }
}
