//! `ironroot` alone: a file system in a folder.
use super::files;
use crate::support::http::jmx;
use crate::support::namenode::ironroot_binary;
use crate::support::process::Process;
use crate::support::work::{WorkDir, free_port, wait_until};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Site files with free ports, where a first start would write its own.
fn ports(data: &Path) -> u16 {
    let (rpc, http) = (free_port(), free_port());
    let conf = data.join("conf");
    fs::create_dir_all(&conf).unwrap();
    let site = |keys: &[(&str, String)]| {
        let property =
            |(key, value): &(&str, String)| format!("<property><name>{key}</name><value>{value}</value></property>\n");
        format!("<configuration>\n{}</configuration>\n", keys.iter().map(property).collect::<String>())
    };
    let core = [("fs.defaultFS", format!("hdfs://127.0.0.1:{rpc}"))];
    let hdfs = [
        ("dfs.namenode.http-address", format!("127.0.0.1:{http}")),
        ("dfs.namenode.name.dir", format!("file://{}", data.join("name").display())),
        ("dfs.replication", "1".to_owned()),
    ];
    fs::write(conf.join("core-site.xml"), site(&core)).unwrap();
    fs::write(conf.join("hdfs-site.xml"), site(&hdfs)).unwrap();
    http
}

fn start(data: &Path, log: &Path) -> Process {
    Process::start(Command::new(ironroot_binary()).arg("--data").arg(data), log)
}

#[test]
fn formats_once_and_tells_what_to_type() {
    let work = WorkDir::new("embedded");
    let (data, log) = (work.join("data"), work.join("log"));
    let http = ports(&data);
    let active = || jmx(http, "NameNodeStatus", "State").is_some_and(|state| state == "active");
    for _ in 0..2 {
        let before = data.join("name").exists().then(|| fs::read(data.join("name/current/VERSION")).unwrap());
        let process = start(&data, &log);
        wait_until(Duration::from_secs(30), "the embedded NameNode was active", active);
        wait_until(Duration::from_secs(10), "it told what to type", || {
            fs::read_to_string(&log).unwrap().contains(&format!("curl http://127.0.0.1:{http}/jmx"))
        });
        process.terminate(Duration::from_secs(20));
        let version = fs::read(data.join("name/current/VERSION")).unwrap();
        assert!(before.is_none_or(|before| before == version), "the second start keeps what the first one made");
        fs::remove_file(&log).unwrap();
    }
    assert!(!files(&data).keys().any(|path| path.ends_with("in_use.lock")));
}
