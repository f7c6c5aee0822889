//! MapReduce jobs and tools in the client's own process: their jars, brought by Maven at first use like Hadoop itself.
use std::path::PathBuf;
use std::process::{Command, Output};

use super::cluster::Cluster;

const POM: &str = include_str!("jobs-pom.xml");

/// The jars that jobs need, complete; None, said aloud, when this machine cannot have them.
pub struct Jobs(PathBuf);

impl Jobs {
    /// Fetched at first use.
    pub fn of(cluster: &Cluster) -> Option<Jobs> {
        match cluster.hadoop.fetch_beside("jobs", POM) {
            Ok(jars) => Some(Jobs(jars)),
            Err(reason) => {
                super::skip(&reason);
                None
            }
        }
    }

    /// Runs a class with arguments as the superuser; answers its output if it succeeded.
    #[track_caller]
    pub fn ok(&self, cluster: &Cluster, properties: &[&str], words: &[&str]) -> Output {
        let conf = cluster.work.join("client");
        let path = format!("{}:{}/*", conf.display(), self.0.display());
        let mut java: Command = cluster.hadoop.bare_java(&path, "512m", "ERROR");
        // logs of jobs go to the working directory
        let output = java.args(properties).args(words).current_dir(&conf).output().expect("java");
        let text = [&output.stdout[..], &output.stderr].concat();
        assert!(output.status.success(), "{words:?}: {}\n{}", output.status, String::from_utf8_lossy(&text));
        output
    }
}
