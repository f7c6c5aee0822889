//! Files being written, safe mode, and calls that are sent twice.
use hadoop_proto::Message;
use hadoop_proto::hdfs::*;
use rpc::client::{CallOptions, ClientSettings};

use super::client::{BLOCK_SIZE, CLIENT_PROTOCOL, Client, refused};
use super::datanode::DataNode;
use super::fixture::{Fixture, shared};
use super::snapshots::allow;
use super::write;

/// apache/hbase#2437, confluentinc/kafka-connect-hdfs#53.
#[test]
fn t07_length_published_by_hsync_survives_a_crash() {
    let Some(mut fixture) = Fixture::start("t07", &[]) else { return };
    let client = fixture.superuser();
    let datanode = DataNode::start(fixture.port(), 1);
    let file = client.create("/f").expect("create");
    let block = client.add_block("/f", file, None).expect("addBlock").b;
    drop(datanode);
    assert_eq!(client.status("/f").length, 0, "nothing is published yet");
    client.fsync("/f", file, 1000).expect("fsync");
    for round in ["before", "after"] {
        let client = fixture.superuser();
        assert_eq!(client.status("/f").length, 1000, "{round} the crash");
        let located = client.block_locations("/f").expect("getBlockLocations").expect("a file");
        assert!(located.under_construction && !located.is_last_block_complete, "{round} the crash");
        let last = located.last_block.expect("the open block");
        assert_eq!(last.b.block_id, block.block_id, "{round} the crash");
        if round == "before" {
            fixture.crash();
        }
    }
}

/// ClickHouse/ClickHouse#24117, big-data-europe/docker-hadoop#81.
#[test]
fn t16_refusals_in_safe_mode() {
    let Some(mut fixture) = Fixture::start("t16", &[]) else { return };
    let client = fixture.superuser();
    let mut datanode = DataNode::start(fixture.port(), 1);
    let mut blocks = Vec::new();
    for n in 0..10 {
        blocks.extend(write(&client, &mut datanode, &format!("/d/f{n}"), &[BLOCK_SIZE; 100]));
    }
    fixture.restart();
    let client = fixture.superuser();
    let class = "org.apache.hadoop.hdfs.server.namenode.SafeModeException";
    let reason =
        "The reported blocks 0 needs additional 999 blocks to reach the threshold 0.9990 of total blocks 1000.";
    refused(client.mkdirs("/x"), class, "Cannot create directory /x. Name node is in safe mode.");
    refused(client.mkdirs("/x"), class, reason);
    refused(client.create("/x"), class, "Name node is in safe mode.");
    refused(client.delete("/d", true), class, "Cannot delete /d. Name node is in safe mode.");
    refused(client.rename("/d", "/e"), class, reason);
    refused(client.set_replication("/d/f0", 2), class, reason);
    let request = GetAdditionalDatanodeRequestProto {
        src: "/d/f0".into(),
        blk: blocks[0].clone(),
        num_additional_nodes: 1,
        client_name: client.name.clone(),
        ..Default::default()
    };
    let answer = client.call::<GetAdditionalDatanodeResponseProto>("getAdditionalDatanode", &request);
    refused(answer, class, "Cannot add datanode; src=/d/f0, blk=");
    assert_eq!(client.names("/d").len(), 10);
    assert_eq!(client.status("/d/f0").length, 100 * BLOCK_SIZE);
    assert!(client.safe_mode(SafeModeActionProto::SafemodeGet).expect("setSafeMode"));
    // the replicas come back, and with them the writes
    datanode.reconnect(fixture.port());
    datanode.join();
    crate::support::work::wait_until(std::time::Duration::from_secs(10), "safe mode ended", || {
        !client.safe_mode(SafeModeActionProto::SafemodeGet).expect("setSafeMode")
    });
    assert!(client.mkdirs("/x").expect("mkdirs"));
}

/// A client with an id of its own, which it keeps when it connects again.
fn with_id(fixture: &Fixture, id: u8) -> Client {
    let mut settings = ClientSettings::new(CLIENT_PROTOCOL, 1, "hdfs");
    settings.client_id = Some([id; 16]);
    Client::with_settings(fixture.port(), settings)
}

fn sent(call_id: i32, retry: i32) -> CallOptions {
    CallOptions { call_id: Some(call_id), retry, ..CallOptions::default() }
}

/// apache/hadoop#5235 (HDFS-16869).
#[test]
fn t22_a_call_sent_twice_is_answered_from_the_retry_cache_also_after_a_crash() {
    let Some(mut fixture) = Fixture::start("t22", &[]) else { return };
    let client = with_id(&fixture, 9);
    let mut datanode = DataNode::start(fixture.port(), 1);
    for (file, bytes) in [("t", 10), ("s", 20)] {
        write(&client, &mut datanode, &format!("/c/{file}"), &[bytes]);
    }
    client.mkdirs("/kept").expect("mkdirs");
    allow(&client, "/kept");
    let concat = ConcatRequestProto { trg: "/c/t".into(), srcs: vec!["/c/s".into()] };
    let snapshot = CreateSnapshotRequestProto { snapshot_root: "/kept".into(), snapshot_name: Some("s1".into()) };
    let ask_concat =
        |client: &Client, options| client.call_as::<ConcatResponseProto>(options, "concat", &concat).map(drop);
    let ask_snapshot = |client: &Client, options| {
        client.call_as::<CreateSnapshotResponseProto>(options, "createSnapshot", &snapshot).map(|a| a.snapshot_path)
    };
    for folder in ["/x", "/a"] {
        client.mkdirs(folder).expect("mkdirs");
    }
    let delete = DeleteRequestProto { src: "/x".into(), recursive: true };
    let rename = RenameRequestProto { src: "/a".into(), dst: "/b".into() };
    let create = client.create_request("/f");
    let ask_delete = |client: &Client, options| {
        client.call_as::<DeleteResponseProto>(options, "delete", &delete).expect("delete").result
    };
    let ask_rename = |client: &Client, options| {
        client.call_as::<RenameResponseProto>(options, "rename", &rename).expect("rename").result
    };
    let ask_create = |client: &Client, options| {
        let answer: CreateResponseProto = client.call_as(options, "create", &create).expect("create");
        answer.fs.expect("a status").file_id()
    };
    assert!(ask_delete(&client, sent(1_007, 0)));
    assert!(ask_delete(&client, sent(1_007, 1)), "from the cache");
    assert!(!ask_delete(&client, sent(1_008, 0)), "another call");
    assert!(ask_rename(&client, sent(1_009, 0)));
    assert!(ask_rename(&client, sent(1_009, 1)), "from the cache");
    let file = ask_create(&client, sent(1_010, 0));
    assert_eq!(ask_create(&client, sent(1_010, 1)), file, "from the cache");
    ask_concat(&client, sent(1_011, 0)).expect("concat");
    let past = ask_snapshot(&client, sent(1_012, 0)).expect("createSnapshot");
    assert_eq!(past, "/kept/.snapshot/s1");
    let last = client.last_transaction();
    ask_concat(&client, sent(1_011, 1)).expect("from the cache");
    assert_eq!(ask_snapshot(&client, sent(1_012, 1)).as_ref(), Ok(&past), "from the cache");
    assert_eq!(client.last_transaction(), last, "without effect");
    refused(ask_concat(&client, sent(1_013, 0)), "java.io.FileNotFoundException", "/c/s");
    refused(ask_snapshot(&client, sent(1_014, 0)), "SnapshotException", "s1");
    fixture.crash();
    let client = with_id(&fixture, 9);
    // what is remembered is answered in safe mode too
    ask_concat(&client, sent(1_011, 2)).expect("from the edits");
    assert_eq!(ask_snapshot(&client, sent(1_012, 2)), Ok(past), "from the edits");
    assert!(ask_delete(&client, sent(1_007, 2)), "from the edits");
    client.safe_mode(SafeModeActionProto::SafemodeLeave).expect("setSafeMode");
    assert!(!ask_delete(&client, sent(1_008, 1)), "this one changed nothing, and was not logged");
    assert!(ask_rename(&client, sent(1_009, 2)), "from the edits");
    assert_eq!(ask_create(&client, sent(1_010, 2)), file, "from the edits");
    assert!(client.exists("/b") && !client.exists("/a"));
    let other = with_id(&fixture, 8);
    assert!(!ask_rename(&other, sent(1_009, 1)), "the call of another client");
}

/// As above: an id that is no UUID cannot be remembered.
#[test]
fn t22_a_client_id_must_have_16_bytes() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    let options =
        CallOptions { client_id: rpc::ClientId::new(b"short"), call_id: Some(1_001), ..CallOptions::default() };
    let delete = DeleteRequestProto { src: "/t22-none".into(), recursive: true }.encode_to_vec();
    match client.exchange(options, "delete", &delete) {
        Ok(Err(refusal)) => {
            assert!(refusal.message.contains("Invalid clientId - length is 5 expected length 16"), "{refusal}")
        }
        Ok(Ok(answer)) => panic!("{answer:?}"),
        Err(broken) => panic!("{broken}"),
    }
}

/// gresearch.com, openillumi.com: what the failed write says about the nodes.
#[test]
fn t29_no_node_is_left_to_write_to() {
    let Some(fixture) = Fixture::start("t29", &[]) else { return };
    let client = fixture.superuser();
    let datanode = DataNode::start(fixture.port(), 1);
    let file = client.create("/f").expect("create");
    let located = client.add_block("/f", file, None).expect("addBlock");
    assert_eq!(located.locs[0].id.datanode_uuid, datanode.id());
    let request = AddBlockRequestProto {
        src: "/g".into(),
        client_name: client.name.clone(),
        exclude_nodes: located.locs.clone(),
        ..Default::default()
    };
    client.create("/g").expect("create");
    let text = "File /g could only be written to 0 of the 1 minReplication nodes. \
                There are 1 datanode(s) running and 1 node(s) are excluded in this operation.";
    refused(client.call::<AddBlockResponseProto>("addBlock", &request), "java.io.IOException", text);
}
