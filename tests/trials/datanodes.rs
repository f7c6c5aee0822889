//! DataNodes that come from elsewhere, come back, or are known under odd addresses.
use std::time::Duration;

use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::hdfs::*;
use hadoop_proto::packed_blocks::{ReplicaState, ReportedReplica};

use super::client::{Answer, refused};
use super::datanode::DataNode;
use super::fixture::{Fixture, shared};
use super::write;
use crate::support::http::jmx;
use crate::support::namenode::{Kind, format};
use crate::support::work::wait_until;

fn must_register(answer: Answer<hadoop_proto::datanode::HeartbeatResponseProto>) -> bool {
    answer.expect("sendHeartbeat").cmds.iter().any(|command| command.register_cmd.is_some())
}

/// apache-spark-on-k8s/kubernetes-HDFS#42.
#[test]
fn t86_name_node_restarts_under_its_data_nodes() {
    let Some(mut fixture) = Fixture::start("t86", &[]) else { return };
    let client = fixture.superuser();
    let mut nodes: Vec<DataNode> = (1..=3).map(|n| DataNode::start(fixture.port(), n)).collect();
    let file = client.create("/f").expect("create");
    client.set_replication("/f", 3).expect("setReplication");
    let block = client.add_block("/f", file, None).expect("addBlock").b;
    nodes.iter_mut().for_each(|node| node.receive(&block, 1000));
    let last = ExtendedBlockProto { num_bytes: Some(1000), ..block.clone() };
    assert!(client.complete("/f", file, Some(last)).expect("complete"));
    fixture.restart();
    let client = fixture.superuser();
    let safe = || client.safe_mode(SafeModeActionProto::SafemodeGet).expect("setSafeMode");
    for node in &mut nodes {
        node.reconnect(fixture.port());
        assert!(must_register(node.heartbeat()), "a heartbeat before it registers");
        // Hadoop answers before it looks at it
        let _ = node.notify(&block, 1000, BlockStatus::Received);
        // a report of an unknown node is refused, or answered with the same order
        if let Ok(answer) = node.report() {
            assert!(answer.cmd.is_some_and(|command| command.register_cmd.is_some()));
        }
        let located = client.block_locations("/f").expect("getBlockLocations").expect("a file");
        assert!(located.blocks[0].locs.is_empty(), "an early report does not count");
    }
    for node in &mut nodes {
        node.join();
        node.register().expect("twice is harmless");
        assert!(!must_register(node.heartbeat()));
        node.report().expect("blockReport");
    }
    wait_until(Duration::from_secs(10), "safe mode ended", || !safe());
    wait_until(Duration::from_secs(10), "all replicas are known", || {
        let located = client.block_locations("/f").expect("getBlockLocations").expect("a file");
        located.blocks[0].locs.len() == 3
    });
}

/// big-data-europe/docker-hadoop-spark-workbench#55, apache/hadoop#6387 (HDFS-17307).
#[test]
fn t85_data_node_of_another_cluster() {
    let Some(mut fixture) = Fixture::start("t85", &[]) else { return };
    let mut node = DataNode::start(fixture.port(), 1);
    let client = fixture.superuser();
    let block = write(&client, &mut node, "/f", &[100]).remove(0);
    let before = node.version();
    let version = std::fs::read_to_string(fixture.current().join("VERSION")).expect("VERSION");
    fixture.restart();
    node.reconnect(fixture.port());
    assert_eq!(node.version(), before, "a restart changes nothing");
    let same = std::fs::read_to_string(fixture.current().join("VERSION")).expect("VERSION");
    let keys = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(keys(&version), keys(&same));
    fixture.stop();
    std::fs::remove_dir_all(fixture.current()).expect("the name directory");
    format(fixture.kind, &fixture.site);
    fixture.launch();
    node.reconnect(fixture.port());
    let after = node.version();
    assert_ne!(after.storage_info.cluster_id, before.storage_info.cluster_id);
    assert_ne!(after.storage_info.namespce_id, before.storage_info.namespce_id);
    assert_ne!(after.block_pool_id, before.block_pool_id);
    // it goes on as if nothing had happened
    let class = "org.apache.hadoop.hdfs.protocol.UnregisteredNodeException";
    // Hadoop lets it register: the ids are compared with each later request
    let _ = node.register();
    match node.heartbeat() {
        Ok(answer) => assert!(answer.cmds.iter().any(|command| command.register_cmd.is_some())),
        Err(refusal) => assert!(refusal.is(class, ""), "{refusal}"),
    }
    node.replicas[0] = vec![ReportedReplica {
        block_id: block.block_id as i64,
        length: 100,
        generation_stamp: block.generation_stamp as i64,
        state: ReplicaState::Finalized,
    }];
    refused(node.report(), class, "");
    let stats: GetFsStatsResponseProto =
        fixture.superuser().call("getFsStats", &GetFsStatusRequestProto {}).expect("getFsStats");
    assert_eq!((stats.capacity, stats.pending_deletion_blocks()), (0, 0), "none of it counts");
}

/// apache/hadoop#8081 (HDFS-17834), #8419 (HDFS-17629): the everyday half, over IPv4.
#[test]
fn t84_addresses_of_data_nodes_are_host_and_port() {
    let Some(node) = shared() else { return };
    let datanode = node.datanode();
    let client = node.superuser();
    let request = GetDatanodeReportRequestProto { r#type: DatanodeReportTypeProto::Live.into() };
    let report: GetDatanodeReportResponseProto = client.call("getDatanodeReport", &request).expect("getDatanodeReport");
    let id = &report.di.iter().find(|info| info.id.datanode_uuid == datanode.id()).expect("the DataNode").id;
    assert_eq!((id.ip_addr.as_str(), id.xfer_port), ("127.0.0.1", 20_001));
    let live = jmx(node.http_port(), "NameNodeInfo", "LiveNodes").expect("NameNodeInfo");
    let live: serde_json::Value = serde_json::from_str(live.as_str().expect("text")).expect("JSON");
    let entry = live.as_object().expect("an object").values().next().expect("the DataNode");
    assert_eq!(entry["infoAddr"], "127.0.0.1:21001");
    assert_eq!(entry["xferaddr"], "127.0.0.1:20001");
}

/// As above, the other half: over IPv6, then IPv4 beside it, and excluded by an address in brackets.
#[test]
fn t84_a_data_node_on_an_ipv6_address() {
    if Kind::under_test() == Kind::Java {
        // left out there: Hadoop runs with java.net.preferIPv4Stack, and does not bind to such an address
        return;
    }
    let Some(mut fixture) = Fixture::prepared("t84", &[("dfs.namenode.rpc-bind-host", "::")]) else { return };
    let hosts = fixture.work.join("exclude");
    std::fs::write(&hosts, "").expect("exclude");
    fixture.site.set("dfs.hosts.exclude", hosts.display());
    format(fixture.kind, &fixture.site);
    fixture.launch();
    let address = std::net::SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, fixture.port()));
    let mut node = DataNode::at(address, 1);
    node.registration.datanode_id.info_port = 9864;
    node.registration.datanode_id.xfer_port = 9866;
    node.join();
    DataNode::start(fixture.port(), 2);
    let entries = || {
        let live = jmx(fixture.http_port(), "NameNodeInfo", "LiveNodes").expect("NameNodeInfo");
        let live: serde_json::Value = serde_json::from_str(live.as_str().expect("text")).expect("JSON");
        let text = |entry: &serde_json::Value, key: &str| entry[key].as_str().expect("text").to_owned();
        let entry = |(name, entry): (&String, &serde_json::Value)| {
            (name.clone(), text(entry, "infoAddr"), text(entry, "xferaddr"), text(entry, "adminState"))
        };
        live.as_object().expect("an object").iter().map(entry).collect::<Vec<_>>()
    };
    let seen = entries();
    assert_eq!(seen.len(), 2, "{seen:?}");
    for (_, info, transfer, _) in &seen {
        for (address, port) in [(info, [9864, 21_002]), (transfer, [9866, 20_002])] {
            let parsed: std::net::SocketAddr = address.parse().unwrap_or_else(|e| panic!("{address}: {e}"));
            assert!(parsed.ip().is_loopback() && port.contains(&parsed.port()), "{address}");
        }
    }
    std::fs::write(&hosts, "[::1]:9866\n").expect("exclude");
    let request = RefreshNodesRequestProto {};
    fixture.superuser().call::<RefreshNodesResponseProto>("refreshNodes", &request).expect("refreshNodes");
    let states: Vec<_> = entries().into_iter().map(|(_, _, transfer, state)| (transfer, state)).collect();
    assert!(states.iter().all(|(at, state)| at.starts_with('[') == (state != "In Service")), "{states:?}");
}

/// apache/hadoop#6906 (HDFS-17559).
#[test]
fn t78_dead_nodes_with_a_listed_host_that_never_registered() {
    let Some(mut fixture) = Fixture::prepared("t78", &[]) else { return };
    let hosts = fixture.work.join("hosts");
    std::fs::write(&hosts, "127.0.0.1\n127.0.0.9\n").expect("hosts");
    fixture.site.set("dfs.hosts", hosts.display());
    format(fixture.kind, &fixture.site);
    fixture.launch();
    let dead = jmx(fixture.http_port(), "NameNodeInfo", "DeadNodes").expect("the attribute");
    let dead: serde_json::Value = serde_json::from_str(dead.as_str().expect("text")).expect("JSON");
    let names: Vec<&String> = dead.as_object().expect("an object").keys().collect();
    assert!(names.iter().any(|name| name.contains("127.0.0.9")), "{names:?}");
}
