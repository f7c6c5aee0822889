//! DataNodes that leave for good.
use std::path::Path;
use std::time::{Duration, Instant};

use hadoop_proto::datanode::block_command_proto::Action;
use hadoop_proto::hdfs::datanode_info_proto::AdminState;
use hadoop_proto::hdfs::*;
use serde_json::Value;

use super::client::Client;
use super::datanode::DataNode;
use super::fixture::Fixture;
use super::write;
use crate::support::http::jmx;
use crate::support::namenode::format;

const MONITOR: &str = "dfs.namenode.decommission.monitor.class";
const PACKAGE: &str = "org.apache.hadoop.hdfs.server.blockmanagement";

/// What administrators see of the nodes.
struct View<'a> {
    client: &'a Client,
    http_port: u16,
}

impl View<'_> {
    /// Transfer address and state of each node of a report.
    fn report(&self, kind: DatanodeReportTypeProto) -> Vec<(String, AdminState)> {
        let request = GetDatanodeReportRequestProto { r#type: kind.into() };
        let report: GetDatanodeReportResponseProto =
            self.client.call("getDatanodeReport", &request).expect("getDatanodeReport");
        let address = |id: &DatanodeIdProto| format!("{}:{}", id.ip_addr, id.xfer_port);
        let mut nodes: Vec<_> = report.di.iter().map(|node| (address(&node.id), node.admin_state())).collect();
        nodes.sort();
        nodes
    }

    fn state(&self, node: &DataNode) -> AdminState {
        let all = self.report(DatanodeReportTypeProto::All);
        all.into_iter().find(|(address, _)| *address == transfer_address(node)).expect("a known node").1
    }

    fn page(&self, attribute: &str) -> Value {
        let text = jmx(self.http_port, "NameNodeInfo", attribute).expect("NameNodeInfo");
        serde_json::from_str(text.as_str().expect("text")).expect("JSON")
    }

    /// Transfer addresses of the nodes that are being decommissioned, of which report, page and count must be one.
    fn leaving(&self) -> Vec<String> {
        self.agreed(
            (DatanodeReportTypeProto::Decommissioning, AdminState::DecommissionInprogress),
            ("DecomNodes", "NumDecommissioningDataNodes"),
            &["decommissionOnlyReplicas", "decommissionDuration"],
        )
    }

    /// The same of those that go into maintenance.
    fn entering_maintenance(&self) -> Vec<String> {
        self.agreed(
            (DatanodeReportTypeProto::EnteringMaintenance, AdminState::EnteringMaintenance),
            ("EnteringMaintenanceNodes", "NumEnteringMaintenanceDataNodes"),
            &["maintenanceOnlyReplicas"],
        )
    }

    fn agreed(
        &self,
        (kind, state): (DatanodeReportTypeProto, AdminState),
        pages: (&str, &str),
        own: &[&str],
    ) -> Vec<String> {
        loop {
            let before = self.report(kind);
            let page = self.page(pages.0);
            let count = jmx(self.http_port, "FSNamesystemState", pages.1);
            if before != self.report(kind) {
                continue; // it changed in between
            }
            assert!(before.iter().all(|node| node.1 == state), "{before:?}");
            let reported: Vec<String> = before.into_iter().map(|(address, _)| address).collect();
            let entries: Vec<&Value> = page.as_object().expect("an object").values().collect();
            let mut shown: Vec<&str> = entries.iter().map(|node| node["xferaddr"].as_str().expect("text")).collect();
            shown.sort_unstable();
            assert_eq!(shown, reported);
            assert_eq!(count, Some(reported.len().into()));
            for member in ["underReplicatedBlocks", "underReplicateInOpenFiles"].iter().chain(own) {
                assert!(entries.iter().all(|node| node[member].is_u64()), "{member}: {page}");
            }
            assert!(
                entries.iter().all(|node| node["uuid"].is_string() && node["location"] == "/default-rack"),
                "{page}"
            );
            return reported;
        }
    }
}

fn transfer_address(node: &DataNode) -> String {
    let id = &node.registration.datanode_id;
    format!("{}:{}", id.ip_addr, id.xfer_port)
}

/// A heartbeat of the nodes that `beating` names; copies that they are told to make arrive at once.
fn beat(nodes: &mut [DataNode], beating: &[usize]) {
    for n in beating {
        nodes[*n].heartbeat().expect("sendHeartbeat");
        let pool = nodes[*n].pool.clone();
        for command in std::mem::take(&mut nodes[*n].commands) {
            let Some(order) = command.blk_cmd.filter(|order| order.action == Action::Transfer as i32) else { continue };
            for (block, targets) in order.blocks.iter().zip(&order.targets) {
                let bytes = block.num_bytes();
                let copy = ExtendedBlockProto {
                    pool_id: pool.clone(),
                    block_id: block.block_id,
                    generation_stamp: block.gen_stamp,
                    num_bytes: Some(bytes),
                };
                for target in &targets.datanodes {
                    let at = nodes.iter().position(|node| node.id() == target.id.datanode_uuid).expect("a target");
                    nodes[at].receive(&copy, bytes);
                }
            }
        }
    }
}

fn exclude(client: &Client, file: &Path, nodes: &[DataNode]) {
    let lines: Vec<String> = nodes.iter().map(transfer_address).collect();
    std::fs::write(file, lines.join("\n") + "\n").expect("the exclude list");
    client.call::<RefreshNodesResponseProto>("refreshNodes", &RefreshNodesRequestProto {}).expect("refreshNodes");
}

fn holds(node: &DataNode, blocks: &[ExtendedBlockProto]) -> bool {
    blocks.iter().all(|b| node.replicas[0].iter().any(|r| r.block_id as u64 == b.block_id))
}

/// Nobody but node 1, which is dead, has its block: it is not done, whatever time passes.
fn stays_dead_and_leaving(view: &View<'_>, nodes: &mut [DataNode]) {
    let node = transfer_address(&nodes[0]);
    for _ in 0..30 {
        beat(nodes, &[1, 2, 3]);
        assert_eq!(view.leaving(), [node.as_str()]);
        std::thread::sleep(Duration::from_millis(100));
    }
    let dead = view.report(DatanodeReportTypeProto::Dead);
    assert_eq!(dead, [(node.clone(), AdminState::DecommissionInprogress)]);
    let dead = view.page("DeadNodes");
    let entry = dead.as_object().expect("an object").values().next().expect("node 1");
    assert_eq!((&entry["xferaddr"], &entry["decommissioned"]), (&node.as_str().into(), &false.into()));
    assert_eq!(entry["adminState"], "Decommission In Progress");
}

/// Node 1 has a block of its own and dies, node 2 leaves, nodes 3 and 4 stay.
fn node_lost_while_decommissioning(name: &str, monitor: &str) {
    let settings = [
        ("dfs.namenode.decommission.max.concurrent.tracked.nodes", "1"),
        ("dfs.namenode.decommission.interval", "1"),
        ("dfs.namenode.reconstruction.pending.timeout-sec", "2"),
        // dead after 2 x recheck + 10 x heartbeat = 10.4 s
        ("dfs.heartbeat.interval", "1"),
        ("dfs.namenode.heartbeat.recheck-interval", "200"),
        (MONITOR, monitor),
    ];
    let Some(mut fixture) = Fixture::prepared(name, &settings) else { return };
    let list = fixture.work.join("exclude");
    std::fs::write(&list, "").expect("the exclude list");
    fixture.site.set("dfs.hosts.exclude", list.display());
    format(fixture.kind, &fixture.site);
    fixture.launch();
    let (client, port) = (fixture.superuser(), fixture.port());
    let view = View { client: &client, http_port: fixture.http_port() };

    let mut nodes = vec![DataNode::start(port, 1)];
    let lone = write(&client, &mut nodes[0], "/lone", &[100]);
    let both = write(&client, &mut nodes[0], "/both", &[100, 200]);
    nodes.push(DataNode::start(port, 2));
    both.iter().for_each(|block| nodes[1].receive(block, block.num_bytes()));
    assert!(client.set_replication("/both", 2).expect("setReplication"));
    let second = write(&client, &mut nodes[1], "/second", &[300]);
    nodes.extend([3, 4].map(|n| DataNode::start(port, n)));
    assert!(view.leaving().is_empty());

    // the last that is heard of node 1
    beat(&mut nodes, &[1, 2, 3, 0]);
    exclude(&client, &list, &nodes[..2]);
    let leaving: Vec<String> = nodes[..2].iter().map(transfer_address).collect();
    assert_eq!(view.leaving(), leaving);
    let mut low = None;
    let end = Instant::now() + Duration::from_secs(60);
    while view.state(&nodes[1]) != AdminState::Decommissioned {
        assert!(Instant::now() < end, "node 2 is kept by node 1");
        assert_eq!(view.state(&nodes[0]), AdminState::DecommissionInprogress);
        low = low.max(view.page("DecomNodes")["localhost:20001"]["underReplicatedBlocks"].as_u64());
        std::thread::sleep(Duration::from_millis(100));
        beat(&mut nodes, &[1, 2, 3]);
        view.leaving();
    }
    assert!(low >= Some(1), "what keeps node 1 is shown: {low:?}");
    assert!(nodes[2..].iter().all(|node| holds(node, &both)), "both replicas are elsewhere");
    assert!(nodes[2..].iter().any(|node| holds(node, &second)));

    stays_dead_and_leaving(&view, &mut nodes);

    let answer = nodes[0].heartbeat().expect("sendHeartbeat");
    assert!(answer.cmds.iter().any(|command| command.register_cmd.is_some()), "{answer:?}");
    nodes[0].join();
    assert_eq!(view.report(DatanodeReportTypeProto::Dead), []);
    assert_eq!(view.leaving(), leaving[..1], "it resumes");
    let end = Instant::now() + Duration::from_secs(30);
    while view.state(&nodes[0]) != AdminState::Decommissioned {
        assert!(Instant::now() < end, "node 1 does not resume");
        beat(&mut nodes, &[0, 1, 2, 3]);
        view.leaving();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(nodes[2..].iter().any(|node| holds(node, &lone)));
    assert!(view.leaving().is_empty());
    let live: Vec<AdminState> = view.report(DatanodeReportTypeProto::Live).into_iter().map(|node| node.1).collect();
    assert_eq!(live, [AdminState::Decommissioned, AdminState::Decommissioned, AdminState::Normal, AdminState::Normal]);
}

/// apache/hadoop#3675 (HDFS-16303).
#[test]
fn t88_node_lost_while_decommissioning() {
    node_lost_while_decommissioning("t88", &format!("{PACKAGE}.DatanodeAdminDefaultMonitor"));
}

/// The same with the other monitor.
#[test]
fn t88_node_lost_while_decommissioning_with_the_backoff_monitor() {
    node_lost_while_decommissioning("t88-backoff", &format!("{PACKAGE}.DatanodeAdminBackoffMonitor"));
}

/// What is told of a node that dies on its way into maintenance.
#[test]
fn t88_node_lost_while_entering_maintenance() {
    let settings = [
        ("dfs.namenode.hosts.provider.classname", &*format!("{PACKAGE}.CombinedHostFileManager")),
        ("dfs.namenode.decommission.interval", "1"),
        ("dfs.heartbeat.interval", "1"),
        ("dfs.namenode.heartbeat.recheck-interval", "200"),
    ];
    let Some(mut fixture) = Fixture::prepared("t88-maintenance", &settings) else { return };
    let list = fixture.work.join("hosts");
    let state = |state: &str| format!(r#"[{{"hostName": "127.0.0.1", "port": 20001, "adminState": "{state}"}}]"#);
    std::fs::write(&list, state("NORMAL")).expect("the hosts");
    fixture.site.set("dfs.hosts", list.display());
    format(fixture.kind, &fixture.site);
    fixture.launch();
    let client = fixture.superuser();
    let view = View { client: &client, http_port: fixture.http_port() };
    let mut node = DataNode::start(fixture.port(), 1);
    write(&client, &mut node, "/lone", &[100]);
    assert!(view.entering_maintenance().is_empty());
    std::fs::write(&list, state("IN_MAINTENANCE")).expect("the hosts");
    client.call::<RefreshNodesResponseProto>("refreshNodes", &RefreshNodesRequestProto {}).expect("refreshNodes");
    let end = Instant::now() + Duration::from_secs(30);
    while view.report(DatanodeReportTypeProto::Dead).is_empty() {
        assert!(Instant::now() < end, "node 1 does not die");
        assert_eq!(view.entering_maintenance(), [transfer_address(&node)]);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(view.entering_maintenance(), [transfer_address(&node)], "dead it is on its way still");
    assert_eq!(
        view.report(DatanodeReportTypeProto::Dead),
        [(transfer_address(&node), AdminState::EnteringMaintenance)]
    );
    assert!(view.report(DatanodeReportTypeProto::Live).is_empty());
}
