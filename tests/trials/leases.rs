//! Who may write: appends to files that others hold, leases taken back, and files put together.
use std::time::Duration;

use hadoop_proto::hdfs::*;

use super::client::{Answer, BLOCK_SIZE, Client, refused};
use super::datanode::DataNode;
use super::fixture::{Fixture, shared};
use super::snapshots::{allow, try_snapshot};
use super::write;

const APPEND: u32 = 4;
const NEW_BLOCK: u32 = 32;

fn append(client: &Client, path: &str, flag: u32) -> Answer<AppendResponseProto> {
    let request = AppendRequestProto { src: path.into(), client_name: client.name.clone(), flag: Some(flag) };
    client.call("append", &request)
}

fn concat(client: &Client, target: &str, sources: &[&str]) -> Answer<()> {
    let srcs = sources.iter().map(|source| (*source).to_owned()).collect();
    client.call::<ConcatResponseProto>("concat", &ConcatRequestProto { trg: target.into(), srcs }).map(drop)
}

fn recover_lease(client: &Client, path: &str) -> Answer<bool> {
    let request = RecoverLeaseRequestProto { src: path.into(), client_name: client.name.clone() };
    Ok(client.call::<RecoverLeaseResponseProto>("recoverLease", &request)?.result)
}

/// The order to recover a block: its new stamp.
fn wait_for_recovery(datanode: &mut DataNode, block: u64) -> u64 {
    datanode.wait_for("recover a block", |command| {
        let recovering = &command.recovery_cmd.as_ref()?.blocks;
        recovering.iter().find(|r| r.block.b.block_id == block).map(|r| r.new_gen_stamp)
    })
}

/// pravega/pravega#852, juicedata/juicefs#2480.
#[test]
fn t01_concat_onto_a_target_that_has_no_blocks() {
    let Some(mut fixture) = Fixture::start("t01", &[]) else { return };
    let client = fixture.superuser();
    let mut datanode = DataNode::start(fixture.port(), 1);
    let first = write(&client, &mut datanode, "/c/s1", &[10]);
    let second = write(&client, &mut datanode, "/c/s2", &[20]);
    client.touch("/c/t").expect("create");
    for path in ["/c", "/c/t"] {
        client.set_times(path, 1_000, 1_000).expect("setTimes");
    }
    concat(&client, "/c/t", &["/c/s1", "/c/s2"]).expect("concat");
    for round in ["at once", "after a restart"] {
        let client = fixture.superuser();
        let located = client.block_locations("/c/t").expect("getBlockLocations").expect("a file");
        let ids: Vec<u64> = located.blocks.iter().map(|block| block.b.block_id).collect();
        assert_eq!((located.file_length, ids), (30, vec![first[0].block_id, second[0].block_id]), "{round}");
        assert!(!client.exists("/c/s1") && !client.exists("/c/s2"), "{round}");
        for path in ["/c", "/c/t"] {
            assert!(client.status(path).modification_time > 1_000, "{round}: {path}");
        }
        if round == "at once" {
            fixture.restart();
            datanode.reconnect(fixture.port());
            datanode.join();
            fixture.superuser().safe_mode(SafeModeActionProto::SafemodeLeave).expect("setSafeMode");
        }
    }
}

/// pravega/pravega#1338, bigdatagenomics/adam#1478, #1467.
#[test]
fn t02_concat_preconditions_one_by_one() {
    let Some(fixture) = Fixture::start("t02", &[]) else { return };
    let client = fixture.superuser();
    let mut datanode = DataNode::start(fixture.port(), 1);
    for (file, bytes) in [("t", 10), ("s1", 20), ("s2", 30)] {
        write(&client, &mut datanode, &format!("/t02/{file}"), &[bytes]);
    }
    write(&client, &mut datanode, "/t02/other/s", &[5]);
    client.create("/t02/open").expect("create");
    client.touch("/t02/empty").expect("create");
    let big = CreateRequestProto { block_size: 2 * BLOCK_SIZE, ..client.create_request("/t02/big") };
    let file = client.create_with(big).expect("create").fs.expect("a status").file_id();
    let block = client.add_block("/t02/big", file, None).expect("addBlock").b;
    datanode.receive(&block, 40);
    let last = ExtendedBlockProto { num_bytes: Some(40), ..block };
    assert!(client.complete("/t02/big", file, Some(last)).expect("complete"));
    write(&client, &mut datanode, "/t02/kept/t", &[5]);
    write(&client, &mut datanode, "/t02/kept/s", &[5]);
    allow(&client, "/t02/kept");
    try_snapshot(&client, "/t02/kept", "s1").expect("createSnapshot");
    let illegal = "org.apache.hadoop.HadoopIllegalArgumentException";
    let (before, last) = (client.names("/t02"), client.last_transaction());
    for (what, target, sources) in [
        ("an open target", "/t02/open", &["/t02/s1"][..]),
        ("a source without blocks", "/t02/t", &["/t02/empty"]),
        ("an open source", "/t02/t", &["/t02/open"]),
        ("a source twice", "/t02/t", &["/t02/s1", "/t02/s1"]),
        ("the target as source", "/t02/t", &["/t02/t"]),
        ("a source elsewhere", "/t02/t", &["/t02/other/s"]),
        ("a larger block size", "/t02/t", &["/t02/big"]),
    ] {
        let answer = concat(&client, target, sources);
        assert!(answer.as_ref().is_err_and(|refusal| refusal.class == illegal), "{what}: {answer:?}");
    }
    let class = "org.apache.hadoop.hdfs.protocol.SnapshotException";
    refused(concat(&client, "/t02/kept/t", &["/t02/kept/s"]), class, "");
    assert_eq!(client.names("/t02/kept"), ["s", "t"]);
    refused(concat(&client, "/t02/t", &[]), "java.lang.IllegalArgumentException", "");
    refused(concat(&client, "/.reserved/raw/t02/t", &["/t02/s1"]), "java.io.IOException", "");
    assert_eq!(client.names("/t02"), before);
    assert_eq!(client.last_transaction(), last, "no refusal is in the edits");
    client.set_replication("/t02/s1", 2).expect("setReplication");
    concat(&client, "/t02/t", &["/t02/s1", "/t02/s2"]).expect("another replication is no obstacle");
    concat(&client, "/t02/big", &["/t02/t"]).expect("nor is a smaller block size");
    assert_eq!(client.status("/t02/big").length, 100);
}

/// colinmarc/hdfs#61, pravega/pravega#2967: clients match on these texts.
#[test]
fn t03_append_while_another_client_or_the_same_one_holds_the_lease() {
    let Some(node) = shared() else { return };
    let (a, b) = (node.superuser().named("A"), node.superuser().named("B"));
    a.create("/t03/f").expect("create");
    let class = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException";
    let held = "for B on 127.0.0.1 because this file lease is currently owned by A on 127.0.0.1";
    refused(append(&b, "/t03/f", APPEND), class, &format!("Failed to APPEND_FILE /t03/f {held}"));
    let own = "Failed to APPEND_FILE /t03/f for A on 127.0.0.1 because A is already the current lease holder.";
    refused(append(&a, "/t03/f", APPEND), class, own);
    refused(b.create("/t03/f"), class, &format!("Failed to CREATE_FILE /t03/f {held}"));
}

/// apache/hudi#590, #8970, mtth/hdfs#92. Takes a minute: the soft limit is no setting.
#[test]
fn t04_append_after_the_soft_limit_starts_recovery_then_tells_others_to_wait() {
    let Some(fixture) = Fixture::start("t04", &[]) else { return };
    let (a, b) = (fixture.superuser().named("A"), fixture.superuser().named("B"));
    let mut datanode = DataNode::start(fixture.port(), 1);
    let file = a.create("/l/g").expect("create");
    let block = a.add_block("/l/g", file, None).expect("addBlock").b;
    let receiving = hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus::Receiving;
    datanode.notify(&block, 0, receiving).expect("blockReceivedAndDeleted");
    for _ in 0..21 {
        std::thread::sleep(Duration::from_secs(3));
        datanode.heartbeat().expect("sendHeartbeat");
    }
    let class = "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException";
    refused(append(&b, "/l/g", APPEND), class, "lease recovery is in progress. Try again later.");
    refused(append(&b, "/l/g", APPEND), class, "another recovery is in progress by");
    let stamp = wait_for_recovery(&mut datanode, block.block_id);
    assert!(stamp > block.generation_stamp);
    datanode.commit_synchronization(&block, stamp, 100).expect("commitBlockSynchronization");
    let last = append(&b, "/l/g", APPEND).expect("append").block.expect("the partial block");
    assert_eq!((last.b.generation_stamp, last.b.num_bytes()), (stamp, 100));
}

/// apache/logging-flume#127, apache/hbase#2437, Alluxio/alluxio#6904.
#[test]
fn t05_recover_lease_and_is_file_closed_answers() {
    let Some(node) = shared() else { return };
    let (writer, client) = (node.superuser().named("writer"), node.superuser().named("recoverer"));
    let mut datanode = node.datanode();
    client.touch("/t05/closed").expect("create");
    assert!(recover_lease(&client, "/t05/closed").expect("a closed file"));
    writer.create("/t05/empty").expect("create");
    assert!(recover_lease(&client, "/t05/empty").expect("an open file without blocks"));
    assert!(client.is_file_closed("/t05/empty").expect("isFileClosed"));
    let file = writer.create("/t05/open").expect("create");
    let block = writer.add_block("/t05/open", file, None).expect("addBlock").b;
    datanode
        .notify(&block, 0, hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus::Receiving)
        .expect("blockReceivedAndDeleted");
    assert!(!recover_lease(&client, "/t05/open").expect("no exception: callers loop on the answer"));
    assert!(!client.is_file_closed("/t05/open").expect("isFileClosed"));
    let stamp = wait_for_recovery(&mut datanode, block.block_id);
    datanode.commit_synchronization(&block, stamp, 10).expect("commitBlockSynchronization");
    assert!(recover_lease(&client, "/t05/open").expect("after the recovery"));
    assert!(client.is_file_closed("/t05/open").expect("isFileClosed"));
    assert_eq!(client.status("/t05/open").length, 10);
    refused(recover_lease(&client, "/t05/none"), "java.io.FileNotFoundException", "");
    refused(recover_lease(&client, "/t05"), "java.io.FileNotFoundException", "");
}

/// trinodb/trino#22962, apache/hadoop#3634, apache/hadoop#2037 (HDFS-14984).
/// Hadoop's name node forgets over a restart that the block is being cut, and takes the old length back from a client.
#[test]
fn a_truncate_under_way_is_not_ended_by_its_client_after_a_restart() {
    let Some(mut fixture) = Fixture::start("truncated", &[]) else { return };
    let mut datanode = DataNode::start(fixture.port(), 1);
    let client = fixture.superuser();
    let file = client.create("/f").unwrap();
    let block = client.add_block("/f", file, None).unwrap().b;
    datanode.receive(&block, 1_000);
    let block = ExtendedBlockProto { num_bytes: Some(1_000), ..block };
    assert!(client.complete("/f", file, Some(block.clone())).unwrap());
    let name = client.name.clone();
    let request = TruncateRequestProto { src: "/f".into(), new_length: 400, client_name: name.clone() };
    assert!(!client.call::<TruncateResponseProto>("truncate", &request).unwrap().result);
    for kill in [false, true] {
        if kill {
            fixture.crash();
            datanode.reconnect(fixture.port());
            datanode.join();
        }
        let client = fixture.superuser();
        let recovering = "whereas it is under recovery";
        refused(client.complete_once("/f", file, Some(block.clone())), "IOException", recovering);
        refused(client.add_block("/f", file, Some(block.clone())), "IOException", recovering);
        let pipeline = UpdateBlockForPipelineRequestProto { block: block.clone(), client_name: name.clone() };
        let answer = client.call::<UpdateBlockForPipelineResponseProto>("updateBlockForPipeline", &pipeline);
        refused(answer, "IOException", "is UNDER_RECOVERY but not UNDER_CONSTRUCTION");
        assert!(!client.complete_once("/f", file, None).unwrap());
    }
    // another client asks for the recovery: it cuts the block
    let client = fixture.superuser();
    assert!(!recover_lease(&client, "/f").unwrap());
    let stamp = wait_for_recovery(&mut datanode, block.block_id);
    datanode.commit_synchronization(&block, stamp, 400).unwrap();
    assert_eq!((client.is_file_closed("/f").unwrap(), client.status("/f").length), (true, 400));
}

#[test]
fn t18_namespace_quota_counts_the_directory_itself() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    let quota = |client: &Client, path: &str, namespace: i64| {
        let request = SetQuotaRequestProto {
            path: path.into(),
            namespace_quota: namespace as u64,
            storagespace_quota: i64::MAX as u64,
            storage_type: None,
        };
        client.call::<SetQuotaResponseProto>("setQuota", &request).map(drop)
    };
    client.mkdirs("/t18/q").expect("mkdirs");
    quota(&client, "/t18/q", 3).expect("setQuota");
    for child in ["a", "b"] {
        client.mkdirs(&format!("/t18/q/{child}")).expect("reaching it is not exceeding it");
    }
    let text = "The NameSpace quota (directories and files) of directory /t18/q is exceeded: quota=3 file count=4";
    refused(client.mkdirs("/t18/q/c"), "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", text);
    refused(quota(&client, "/t18/q", -5), "java.lang.IllegalArgumentException", "");
    // that of the root cannot be cleared: asked for it Hadoop does nothing, and says nothing either
    let of_root = || client.content_summary("/").expect("getContentSummary").quota;
    let before = of_root();
    quota(&client, "/", -1).expect("setQuota");
    assert_eq!(of_root(), before);
    quota(&client, "/t18/q", 1).expect("below what is used");
    client.touch("/t18/f").expect("create");
    assert!(quota(&client, "/t18/f", 5).is_err(), "a file");
    refused(quota(&node.client("alice"), "/t18/q", 5), "AccessControlException", "");
}

/// apache/hadoop#6357 (HDFS-17289).
#[test]
fn t21_append_to_a_partial_block_or_into_a_new_block() {
    let Some(mut fixture) = Fixture::start("t21", &[]) else { return };
    let client = fixture.superuser();
    let mut datanode = DataNode::start(fixture.port(), 1);
    let half = BLOCK_SIZE / 2;
    let blocks = write(&client, &mut datanode, "/f", &[BLOCK_SIZE, half]);
    let answer = append(&client, "/f", APPEND).expect("append");
    let last = answer.block.expect("the partial block");
    assert_eq!((last.b.block_id, last.locs.len()), (blocks[1].block_id, 1));
    let file = answer.stat.expect("a status").file_id();
    assert!(client.complete("/f", file, Some(blocks[1].clone())).expect("complete"));
    let answer = append(&client, "/f", APPEND | NEW_BLOCK).expect("append");
    assert!(answer.block.is_none_or(|block| block.locs.is_empty()), "nothing to go on with");
    let third = client.add_block("/f", file, Some(blocks[1].clone())).expect("addBlock").b;
    datanode.receive(&third, BLOCK_SIZE);
    let third = ExtendedBlockProto { num_bytes: Some(BLOCK_SIZE), ..third };
    assert!(client.complete("/f", file, Some(third)).expect("complete"));
    for round in ["at once", "after a restart"] {
        let client = fixture.superuser();
        let located = client.block_locations("/f").expect("getBlockLocations").expect("a file");
        let offsets: Vec<u64> = located.blocks.iter().map(|block| block.offset).collect();
        assert_eq!(offsets, [0, BLOCK_SIZE, BLOCK_SIZE + half], "{round}");
        assert_eq!(located.file_length, 2 * BLOCK_SIZE + half, "{round}");
        if round == "at once" {
            assert!(append(&client, "/f", APPEND).expect("append").block.is_none(), "the last block is full");
            assert!(client.complete("/f", file, located.blocks.last().map(|b| b.b.clone())).expect("complete"));
            fixture.restart();
            datanode.reconnect(fixture.port());
            datanode.join();
            fixture.superuser().safe_mode(SafeModeActionProto::SafemodeLeave).expect("setSafeMode");
        }
    }
}

/// gresearch.com, openillumi.com.
#[test]
fn t29_a_policy_whose_storage_type_nobody_has() {
    let Some(fixture) = Fixture::start("t29-policy", &[]) else { return };
    let client = fixture.superuser();
    let _datanode = DataNode::start(fixture.port(), 1);
    let policy = |path: &str, name: &str| {
        let request = SetStoragePolicyRequestProto { src: path.into(), policy_name: name.into() };
        client.call::<SetStoragePolicyResponseProto>("setStoragePolicy", &request).map(drop)
    };
    for (folder, name) in [("/cold", "COLD"), ("/ssd", "ALL_SSD")] {
        client.mkdirs(folder).expect("mkdirs");
        policy(folder, name).expect("setStoragePolicy");
    }
    let cold = client.create("/cold/f").expect("create");
    let text = "File /cold/f could only be written to 0 of the 1 minReplication nodes. There are 1 datanode(s) running";
    refused(client.add_block("/cold/f", cold, None), "java.io.IOException", text);
    let ssd = client.create("/ssd/f").expect("create");
    let located = client.add_block("/ssd/f", ssd, None).expect("on disk, for want of better");
    assert_eq!(located.storage_types, [StorageTypeProto::Disk as i32]);
    let text = "Cannot find a block policy with the name NOPE";
    refused(policy("/ssd", "NOPE"), "org.apache.hadoop.HadoopIllegalArgumentException", text);
    client.touch("/plain").expect("create");
    assert!(policy("/plain", "LAZY_PERSIST").is_err(), "not after the file is there");
}
