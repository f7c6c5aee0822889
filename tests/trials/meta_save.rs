//! What metaSave leaves in the folder of logs, or in the working directory where there is none.
use std::sync::LazyLock;

use hadoop_proto::hdfs::{ExtendedBlockProto, MetaSaveRequestProto, MetaSaveResponseProto};
use regex::Regex;

use super::client::refused;
use super::datanode::DataNode;
use super::fixture::Fixture;

/// The account of one node, one file that wants a second replica, and nothing else; numbers of blocks and times left out.
const EXPECTED: &str = "\
3 files and directories, 1 blocks = 4 total filesystem objects
Live Datanodes: 1
Dead Datanodes: 0
Metasave: Blocks waiting for reconstruction: 1
/d/f: blk (replicas: live: 1 decommissioning and decommissioned: 0 corrupt: 0 in excess: 0 maintenance mode: 0)  127.0.0.1:20001 : 
Metasave: Blocks currently missing: 0
Mis-replicated blocks that have been postponed:
Metasave: Blocks being reconstructed: 0
Metasave: Blocks 0 waiting deletion from 0 datanodes.
Corrupt Blocks:
Metasave: Number of datanodes: 1
";

#[test]
fn meta_save_writes_an_account_of_the_blocks() {
    static BLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"blk_\d+_\d+").expect("a pattern"));
    static NODE: LazyLock<Regex> = LazyLock::new(|| {
        let size = r"\d+\(\d+(\.\d\d)? [KMGT]?B\)";
        let date = r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}";
        let line =
            format!(r"^127\.0\.0\.1:20001 IN {size} {size} [\d.]+% {size} {size} {size} [\d.]+% {size} {date}\n$");
        Regex::new(&line).expect("a pattern")
    });
    let Some(fixture) = Fixture::start("meta-save", &[]) else { return };
    let client = fixture.superuser();
    let mut node = DataNode::start(fixture.port(), 1);
    let file = client.create("/d/f").expect("create");
    client.set_replication("/d/f", 2).expect("setReplication");
    let block = client.add_block("/d/f", file, None).expect("addBlock").b;
    node.receive(&block, 1000);
    let last = ExtendedBlockProto { num_bytes: Some(1000), ..block };
    assert!(client.complete("/d/f", file, Some(last)).expect("complete"));
    let request = MetaSaveRequestProto { filename: "meta".to_owned() };
    let _: MetaSaveResponseProto = client.call("metaSave", &request).expect("metaSave");
    let text = std::fs::read_to_string(fixture.site.folder().join("meta")).expect("the account");
    let (account, nodes) = text.split_at(text.find("datanodes: 1\n").expect("the number of nodes") + 13);
    assert_eq!(BLOCK.replace_all(account, "blk"), EXPECTED);
    assert!(NODE.is_match(nodes), "{nodes}");
}

/// What the Java NameNode says of a group of RS-3-2 that lacks an internal block, which comes by itself, and has another twice; numbers of blocks,
/// times and the node that has the duplicate left out.
const GROUP: &str = "\
3 files and directories, 1 blocks = 4 total filesystem objects
Live Datanodes: 6
Dead Datanodes: 0
Metasave: Blocks waiting for reconstruction: 0
Metasave: Blocks currently missing: 0
Mis-replicated blocks that have been postponed:
Metasave: Blocks being reconstructed: 1
X StartTime: X NumReconstructInProgress: 1
Metasave: Blocks 1 waiting deletion from 1 datanodes.
X
X
Corrupt Blocks:
";

#[test]
fn striped_groups_in_an_account() {
    use hadoop_proto::hdfs::{
        EnableErasureCodingPolicyRequestProto, EnableErasureCodingPolicyResponseProto,
        SetErasureCodingPolicyRequestProto, SetErasureCodingPolicyResponseProto,
    };
    let Some(fixture) = Fixture::start("meta-save-groups", &[]) else { return };
    let client = fixture.superuser();
    let policy = "RS-3-2-1024k".to_owned();
    let request = EnableErasureCodingPolicyRequestProto { ec_policy_name: policy.clone() };
    let _: EnableErasureCodingPolicyResponseProto = client.call("enableErasureCodingPolicy", &request).expect("enable");
    client.mkdirs("/ec").expect("mkdirs");
    let request = SetErasureCodingPolicyRequestProto { src: "/ec".to_owned(), ec_policy_name: Some(policy) };
    let _: SetErasureCodingPolicyResponseProto = client.call("setErasureCodingPolicy", &request).expect("set");
    let mut nodes: Vec<DataNode> = (1..=5).map(|n| DataNode::start(fixture.port(), n)).collect();
    let file = client.create("/ec/f").expect("create");
    let placed = client.add_block("/ec/f", file, None).expect("addBlock");
    let (block, indices) = (placed.b, placed.block_indices.expect("of a group"));
    for (place, index) in placed.locs.iter().zip(indices.iter().copied()) {
        let node = nodes.iter_mut().find(|node| node.id() == place.id.datanode_uuid).expect("one of them");
        if index != 4 {
            let unit = ExtendedBlockProto { block_id: block.block_id + u64::from(index), ..block.clone() };
            node.receive(&unit, 1 << 20);
        }
    }
    let last = ExtendedBlockProto { num_bytes: Some(3 << 20), ..block.clone() };
    assert!(client.complete("/ec/f", file, Some(last)).expect("complete"));
    let mut sixth = DataNode::start(fixture.port(), 6);
    sixth.receive(&ExtendedBlockProto { block_id: block.block_id, ..block }, 1 << 20);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let request = MetaSaveRequestProto { filename: "meta".to_owned() };
    let _: MetaSaveResponseProto = client.call("metaSave", &request).expect("metaSave");
    let text = std::fs::read_to_string(fixture.site.folder().join("meta")).expect("the account");
    let account = text.split("Metasave: Number of datanodes").next().expect("one part");
    let varying = Regex::new(r"blk_-?\d+_\d+|\d\d:\d\d:\d\d|127\.0\.0\.1:\d+").expect("a pattern");
    assert_eq!(varying.replace_all(account, "X"), GROUP);
}

/// Words and classes are Java's. A name that begins at the root stays among the logs, as in Hadoop where it has a folder of logs; without one Hadoop writes
/// wherever it is told.
#[test]
fn accounts_are_written_among_the_logs_alone() {
    let Some(fixture) = Fixture::start("account-names", &[]) else { return };
    let client = fixture.superuser();
    let save = |name: &str| {
        client.call::<MetaSaveResponseProto>("metaSave", &MetaSaveRequestProto { filename: name.to_owned() }).map(drop)
    };
    let outside = fixture.work.path().join("outside");
    refused(save(outside.to_str().expect("a path")), "java.nio.file.NoSuchFileException", "outside");
    assert!(!outside.exists());
    refused(save("none/meta"), "java.nio.file.NoSuchFileException", "none/meta");
    refused(save("."), "java.nio.file.FileSystemException", ": Is a directory");
    refused(save("a\0b"), "java.nio.file.InvalidPathException", "Nul character not allowed: ");
    refused(save(&"x".repeat(300)), "java.nio.file.FileSystemException", ": File name too long");
    save("/meta").expect("among the logs");
}
