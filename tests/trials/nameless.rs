//! DataNodes at an address that has no name, in a network namespace of their own.
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use hadoop_proto::hdfs::{DatanodeReportTypeProto, GetDatanodeReportRequestProto, GetDatanodeReportResponseProto};

use super::client::refused;
use super::datanode::DataNode;
use super::fixture::Fixture;
use crate::support::{announce_skip, skip};

/// Set in the namespace: an address that nobody has a name for. It leads back to this machine, yet no interface has it: one of an interface would
/// count as resolved, as all of the machine's own do.
const INSIDE: &str = "IRONROOT_NAMELESS_ADDRESS";
/// Of the block for documentation, so that it means nobody.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CHECK: &str = "dfs.namenode.datanode.registration.ip-hostname-check";
/// Makes the namespace ready and becomes the program of the arguments.
const ENTER: &str = "ip link set lo up && ip route add local $0/32 dev lo && exec \"$@\"";

/// A program in a new network namespace.
fn inside(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-rn", "sh", "-c", ENTER]).arg(ADDRESS.to_string()).arg(program);
    command
}

fn is_there(program: &str) -> bool {
    Command::new("sh").args(["-c", "command -v \"$0\" >/dev/null", program]).status().is_ok_and(|end| end.success())
}

/// Runs the test of this name anew in a namespace.
fn run_inside(test: &str) {
    let missing: Vec<&str> = ["unshare", "ip", "getent"].into_iter().filter(|program| !is_there(program)).collect();
    if !missing.is_empty() {
        return announce_skip(&format!("no network namespace without {}", missing.join(", ")));
    }
    let tried = inside("true").output().expect("unshare");
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr);
        return skip(&format!("no network namespace may be made here: {}", why.trim()));
    }
    let named = inside("getent").args(["hosts", &ADDRESS.to_string()]).output().expect("getent");
    if named.status.success() {
        let name = String::from_utf8_lossy(&named.stdout);
        return skip(&format!("every address has a name here: {}", name.trim()));
    }
    let mut command = inside(std::env::current_exe().expect("this program"));
    command.args([test, "--exact", "--nocapture"]).env(INSIDE, ADDRESS.to_string());
    let output = command.output().expect("the namespace");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "in the namespace: {}\n{text}", output.status);
}

/// A NameNode that hears all addresses, with `check` or the default.
fn start(name: &str, check: Option<&str>) -> Option<Fixture> {
    let mut settings = vec![("dfs.namenode.rpc-bind-host", "0.0.0.0")];
    settings.extend(check.map(|value| (CHECK, value)));
    Fixture::start(name, &settings)
}

/// big-data-europe/docker-hadoop#21, gchq/gaffer-docker#180.
#[test]
fn t81_registration_from_an_address_with_no_name() {
    if std::env::var_os(INSIDE).is_none() {
        let (_, module) = module_path!().split_once("::").expect("crate::module");
        return run_inside(&format!("{module}::t81_registration_from_an_address_with_no_name"));
    }
    for (name, check) in [("t81-default", None), ("t81-checked", Some("true"))] {
        let Some(fixture) = start(name, check) else { return };
        let mut node = DataNode::at(SocketAddr::from((ADDRESS, fixture.port())), 1);
        let text = format!(
            "Datanode denied communication with namenode because hostname cannot be resolved \
             (ip={ADDRESS}, hostname={ADDRESS})"
        );
        let class = "org.apache.hadoop.hdfs.server.protocol.DisallowedDatanodeException";
        refused(node.register(), class, &text);
        assert_eq!(live(&fixture), [] as [String; 0]);
        // the loopback address passes for one with a name
        DataNode::start(fixture.port(), 2);
        assert_eq!(live(&fixture), ["127.0.0.1"]);
    }
    let Some(fixture) = start("t81-unchecked", Some("false")) else { return };
    let mut node = DataNode::at(SocketAddr::from((ADDRESS, fixture.port())), 1);
    let registered = node.register().expect("registerDatanode");
    assert_eq!(registered.datanode_id.ip_addr, ADDRESS.to_string());
    node.join();
    assert_eq!(live(&fixture), [ADDRESS.to_string()]);
}

/// Addresses of the live nodes.
fn live(fixture: &Fixture) -> Vec<String> {
    let request = GetDatanodeReportRequestProto { r#type: DatanodeReportTypeProto::Live.into() };
    let report: GetDatanodeReportResponseProto =
        fixture.superuser().call("getDatanodeReport", &request).expect("getDatanodeReport");
    report.di.into_iter().map(|node| node.id.ip_addr).collect()
}
