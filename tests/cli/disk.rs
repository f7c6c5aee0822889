//! Directories that fail while the NameNode runs.
use super::Case;
use crate::support::namenode::{Kind, command, ironroot_binary};
use crate::support::process::Process;
use crate::support::work::wait_until;
use crate::trials::client::Client;
use hadoop_proto::hdfs::{FsPermissionProto, MkdirsRequestProto};
use prost::Message;
use std::process::Command;
use std::time::Duration;

/// A directory whose record takes two kilobytes.
fn wide(number: usize) -> String {
    let name = "x".repeat(250);
    format!("/{number:05}{}", format!("/{name}").repeat(8))
}

/// Makes one; false when the NameNode is gone.
fn made(client: &Client, path: &str) -> bool {
    let masked = FsPermissionProto { perm: 0o755 };
    let request = MkdirsRequestProto { src: path.into(), masked, create_parent: true, unmasked: None };
    match client.exchange(Default::default(), "mkdirs", &request.encode_to_vec()) {
        Ok(answer) => {
            answer.unwrap_or_else(|refusal| panic!("{refusal}"));
            true
        }
        Err(_) => false,
    }
}

/// With no journal left the process ends before it acknowledges anything more, and what it acknowledged is there again.
#[test]
fn lost_journals_end_the_process() {
    if Kind::under_test() == Kind::Java {
        return;
    }
    let case = Case::formatted("lost-journal");
    // no file may grow over 1.5 MiB (counted in sectors): the log cannot grow a second time
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 3072; exec \"$0\" namenode"]).arg(ironroot_binary());
    limited.env("HADOOP_CONF_DIR", case.site.folder()).env("HADOOP_USER_NAME", crate::support::hadoop::SUPERUSER);
    let log = case.work.join("log");
    let mut process = Process::start(limited.current_dir(case.work.path()), &log);
    let port: u16 = case.site.get("fs.defaultFS").rsplit(':').next().unwrap().parse().unwrap();
    wait_until(Duration::from_secs(20), "the port was open", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let client = Client::connect(port, crate::support::hadoop::SUPERUSER);
    let acknowledged = (0..1_000).find(|number| !made(&client, &wide(*number))).expect("the log was never full");
    assert!(acknowledged > 10, "only {acknowledged} before the log was full");
    assert_eq!(process.wait(Duration::from_secs(20)).code(), Some(1));
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("FATAL: ") && text.contains(&case.name().display().to_string()), "{text}");

    let again = Process::start(&mut command(Kind::Ironroot, &case.site), &log);
    wait_until(Duration::from_secs(20), "the port was open", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let client = Client::connect(port, crate::support::hadoop::SUPERUSER);
    for number in 0..acknowledged {
        assert!(client.exists(&wide(number)), "{number} was acknowledged and is gone");
    }
    again.terminate(Duration::from_secs(20));
}

/// A journal more than is needed may fail: it is left out, and the rest goes on.
#[test]
fn one_of_two_journals_may_fail() {
    if Kind::under_test() == Kind::Java {
        return;
    }
    let mut case = Case::new("one-of-two");
    case.site.set("dfs.namenode.edits.dir", format!("{},{}", case.uri("name"), case.uri("edits")));
    case.run(&["-format", "-nonInteractive"]).expect(0, "");
    let log = case.work.join("log");
    case.site.write();
    let process = Process::start(&mut command(Kind::Ironroot, &case.site), &log);
    let port: u16 = case.site.get("fs.defaultFS").rsplit(':').next().unwrap().parse().unwrap();
    wait_until(Duration::from_secs(20), "the port was open", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let client = Client::connect(port, crate::support::hadoop::SUPERUSER);
    assert!(made(&client, "/before"));
    // the next segment cannot begin there
    std::fs::rename(case.work.join("edits/current"), case.work.join("edits/gone")).unwrap();
    client
        .call::<hadoop_proto::hdfs::RollEditsResponseProto>("rollEdits", &hadoop_proto::hdfs::RollEditsRequestProto {})
        .unwrap();
    assert!(made(&client, "/after"));
    let left_out = format!("Error: edit log directory {} failed and is left out", case.work.join("edits").display());
    assert!(std::fs::read_to_string(&log).unwrap().contains(&left_out));
    process.terminate(Duration::from_secs(20));
    std::fs::rename(case.work.join("edits/gone"), case.work.join("edits/current")).unwrap();
    let again = Process::start(&mut command(Kind::Ironroot, &case.site), &log);
    wait_until(Duration::from_secs(20), "the port was open", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let client = Client::connect(port, crate::support::hadoop::SUPERUSER);
    assert!(client.exists("/before") && client.exists("/after"));
    again.terminate(Duration::from_secs(20));
}
