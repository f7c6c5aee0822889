//! Purpose: the fence seen from outside: the system calls of a real NameNode under a real load show that no answer and no order to delete leaves
//! before the sync that covers what it rests on has returned in every edits directory.
//! Called by: the integration test binary.
//! Calls: `support`, the RPC client and scripted DataNode of `trials`, the edit decoder; strace(1).
//! Never: looks into the NameNode.
//! Invariants: the check can fail: traces with one event moved are found out.

mod check;
mod load;
mod trace;

use crate::support::cluster::cluster_site;
use crate::support::namenode::{Kind, command, format, ironroot_binary};
use crate::support::process::Process;
use crate::support::skip;
use crate::support::work::{WorkDir, wait_until};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The NameNode looked at: `IRONROOT_FENCE_BINARY` (the release binary, where changes are judged) or this build's.
fn binary() -> PathBuf {
    std::env::var_os("IRONROOT_FENCE_BINARY").map_or_else(|| ironroot_binary().to_owned(), PathBuf::from)
}

fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-q", "-e", "trace=none", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// The NameNode's command line behind strace, which writes `out`.
fn traced(plain: &Command, out: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-q", "-yy", "-xx", "-s", "16777216", "-e", "signal=none", "-o"]).arg(out);
    command.args(["-e", "trace=write,writev,sendto,sendmsg,pwrite64,pwritev,pwritev2,fdatasync,fsync"]);
    command.arg(binary()).args(plain.get_args());
    for (key, value) in plain.get_envs() {
        if let Some(value) = value {
            command.env(key, value);
        }
    }
    if let Some(directory) = plain.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

#[test]
fn nothing_leaves_before_its_sync() {
    if !can_trace() {
        skip("strace cannot be had or may not trace");
        return;
    }
    let work = WorkDir::new("fence");
    let mut site = cluster_site(work.path());
    // The order of system calls is what counts, not the disk: connections make calls durable themselves only where syncs are short.
    let memory = WorkDir::in_memory("fence-names");
    let directories = [memory.join("name"), memory.join("name2")];
    let both = format!("file://{},file://{}", directories[0].display(), directories[1].display());
    site.set("dfs.namenode.name.dir", both);
    site.set("dfs.heartbeat.interval", 3).set("dfs.namenode.heartbeat.recheck-interval", 300_000);
    format(Kind::Ironroot, &site);
    let out = work.join("trace");
    let mut process = Process::start(&mut traced(&command(Kind::Ironroot, &site), &out), &work.join("namenode.log"));
    let address = site.get("fs.defaultFS").to_owned();
    let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("host:port");
    wait_until(Duration::from_secs(60), "the NameNode listens", || {
        assert!(process.ended().is_none(), "{}", process.log_tail());
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let asked = load::run(port);
    process.terminate(Duration::from_secs(60));
    let text = whole_trace(&out);
    let events = trace::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
    let names = directories.map(|directory| directory.display().to_string());
    let seen = check::check(&events, &names, &asked).unwrap_or_else(|error| panic!("{error}"));
    let edits = format!("{}/current/edits_", names[0]);
    let own = trace::syncs_of_senders(&text, &edits).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
    println!("{} events: {seen:?}, {own} syncs by threads that answer", events.len());
    if own == 0 {
        // no failure: whether a sync is short enough is up to the machine
        eprintln!("NOT SEEN: that connections make calls durable themselves; syncs take too long here");
    }
    assert_eq!(seen.answers, asked.len(), "every call was answered and its record found");
    assert!(seen.orders > 0, "DataNodes were told to delete: {seen:?}");
    assert!(seen.syncs < seen.records, "some records shared a sync: {seen:?}");
    check::check_spoiled(&events, &names, &asked);
}

/// The trace once the tracer, which outlives its tracee for a moment, has written its end.
fn whole_trace(out: &Path) -> String {
    let mut text = String::new();
    wait_until(Duration::from_secs(60), "strace has written all", || {
        text = std::fs::read_to_string(out).unwrap_or_default();
        text.trim_end().ends_with("+++")
    });
    text
}
