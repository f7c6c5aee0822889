//! `ironroot` alone: a file system in a folder.
use super::files;
use crate::support::hadoop::hadoop;
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

/// With real DataNodes beside it: the printed commands work, a restart keeps the files, and nothing outlives a killed parent.
#[test]
fn datanodes_beside_it() {
    if hadoop().is_none() {
        return;
    }
    let _turn = crate::support::cluster_turn();
    let work = WorkDir::new("embedded-datanodes");
    let (data, log) = (work.join("data"), work.join("log"));
    let http = ports(&data);
    let script = data.canonicalize().unwrap().join("bin/hdfs");
    let live = || jmx(http, "FSNamesystemState", "NumLiveDataNodes").and_then(|live| live.as_i64());
    let mut command = Command::new(ironroot_binary());
    command.arg("--data").arg(&data).args(["--with-datanodes", "1"]);
    for round in 0..2 {
        let process = Process::start(&mut command, &log);
        wait_until(Duration::from_secs(90), "it told what to type", || {
            fs::read_to_string(&log).unwrap().matches("Ctrl-C").count() > round
        });
        assert_eq!(live(), Some(1));
        let text = fs::read_to_string(&log).unwrap();
        for label in ["list", "directory", "put a file", "read it"] {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label)).expect(label).trim();
            assert!(line.starts_with(&script.display().to_string()), "{line}");
            if round > 0 && label == "put a file" {
                continue; // it is there
            }
            let output = Command::new("sh").args(["-c", line]).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            if label == "read it" {
                assert_eq!(output.stdout, fs::read(data.join("conf/core-site.xml")).unwrap());
            }
        }
        if round == 0 {
            process.kill();
        } else {
            process.terminate(Duration::from_secs(30));
        }
        let lock = data.join("dn1/data/in_use.lock");
        wait_until(Duration::from_secs(20), "the DataNode ended too", || !lock.exists());
    }
}
