//! `/fsck` on scripted DataNodes: what it says of replicas that are missing, corrupt, too few and too many, of open files and of two racks,
//! word for word as the Java NameNode says it.
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use hadoop_proto::hdfs::{
    AllowSnapshotRequestProto, AllowSnapshotResponseProto, CreateSnapshotRequestProto, CreateSnapshotResponseProto,
};
use hadoop_proto::hdfs::{
    DatanodeInfoProto, LocatedBlockProto, SetStoragePolicyRequestProto, SetStoragePolicyResponseProto,
};
use hadoop_proto::hdfs::{FsPermissionProto, ReportBadBlocksRequestProto, ReportBadBlocksResponseProto};
use hadoop_proto::hdfs::{
    SetPermissionRequestProto, SetPermissionResponseProto, SetReplicationRequestProto, SetReplicationResponseProto,
};
use regex::Regex;

use crate::support::http;
use crate::support::namenode::{Kind, format};
use crate::trials::answers::recording;
use crate::trials::client::Client;
use crate::trials::datanode::DataNode;
use crate::trials::fixture::Fixture;
use crate::trials::write;

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/admin/fsck.txt")
}

fn set_replication(client: &Client, path: &str, replication: u32) {
    let request = SetReplicationRequestProto { src: path.into(), replication };
    assert!(client.call::<SetReplicationResponseProto>("setReplication", &request).expect("setReplication").result);
}

/// Files in every state; the DataNodes stay, one of them knows less in the end.
fn prepare(fixture: &Fixture) -> Vec<DataNode> {
    let client = fixture.superuser();
    let mut nodes = vec![DataNode::start(fixture.port(), 1)];
    for directory in ["/d", "/d/empty", "/private"] {
        assert!(client.mkdirs(directory).expect("mkdirs"));
    }
    let whole = write(&client, &mut nodes[0], "/d/whole", &[100, 50]);
    write(&client, &mut nodes[0], "/d/policy", &[9, 8]);
    write(&client, &mut nodes[0], "/private/secret", &[7]);
    let few = write(&client, &mut nodes[0], "/d/few", &[30]);
    let lost = write(&client, &mut nodes[0], "/d/lost", &[40, 41]);
    let bad = write(&client, &mut nodes[0], "/d/bad", &[60]);
    client.create("/d/nothing").and_then(|file| client.complete("/d/nothing", file, None)).expect("an empty file");
    let file = client.create("/d/open").expect("create");
    let block = client.add_block("/d/open", file, None).expect("addBlock");
    let private = FsPermissionProto { perm: 0o700 };
    let request = SetPermissionRequestProto { src: "/private".into(), permission: private };
    client.call::<SetPermissionResponseProto>("setPermission", &request).expect("setPermission");
    let request = SetStoragePolicyRequestProto { src: "/d/policy".into(), policy_name: "COLD".into() };
    client.call::<SetStoragePolicyResponseProto>("setStoragePolicy", &request).expect("setStoragePolicy");
    set_replication(&client, "/d/few", 3);
    let location = DatanodeInfoProto { id: nodes[0].registration.datanode_id.clone(), ..DatanodeInfoProto::default() };
    let blocks = vec![LocatedBlockProto {
        b: bad[0].clone(),
        locs: vec![location],
        storage_i_ds: vec!["DS-1-0".into()],
        ..block.clone()
    }];
    client
        .call::<ReportBadBlocksResponseProto>("reportBadBlocks", &ReportBadBlocksRequestProto { blocks })
        .expect("report");
    for directory in ["/d", "/private"] {
        let request = AllowSnapshotRequestProto { snapshot_root: directory.into() };
        client.call::<AllowSnapshotResponseProto>("allowSnapshot", &request).expect("allowSnapshot");
        let request = CreateSnapshotRequestProto { snapshot_root: directory.into(), snapshot_name: Some("s1".into()) };
        client.call::<CreateSnapshotResponseProto>("createSnapshot", &request).expect("createSnapshot");
    }
    nodes[0].forget(lost[1].block_id);
    nodes[0].heartbeat().expect("a heartbeat");
    nodes[0].report().expect("a report");
    nodes.push(DataNode::start(fixture.port(), 2));
    nodes[1].receive(&whole[0], 100);
    nodes[1].receive(&few[0], 30);
    // what was told is worked off by threads of their own
    std::thread::sleep(Duration::from_millis(2_500));
    nodes
}

/// Parameters of the requests, in this order.
const ASKED: [&str; 25] = [
    "path=%2F",
    "path=%2F&files=1",
    "path=%2F&files=1&blocks=1",
    "path=%2F&files=1&blocks=1&locations=1",
    "path=%2F&files=1&blocks=1&racks=1",
    "path=%2F&files=1&blocks=1&replicadetails=1",
    "path=%2F&files=1&blocks=1&upgradedomains=1&maintenance=1",
    "path=%2F&storagepolicies=1",
    "path=%2F&openforwrite=1",
    "path=%2F&openforwrite=1&files=1&blocks=1&locations=1",
    "path=%2F&listcorruptfileblocks=1",
    "path=%2Fd%2F&listcorruptfileblocks=1&startblockafter=1",
    "path=%2Fd%2Flost&files=1",
    "path=%2Fd%2Fopen",
    "path=%2Fd%2Fnone",
    "blockId=blk_1073741825+blk_7+x",
    "blockId=blk_1073741830&maintenance=1",
    "path=%2F&files=1&includeSnapshots=1",
    "path=%2F&listcorruptfileblocks=1&includeSnapshots=1",
    "path=%2F&replicate=1",
    "path=%2F&delete=1",
    "path=%2F&files=1",
    "path=%2F&files=1&includeSnapshots=1",
    "path=%2F&listcorruptfileblocks=1&includeSnapshots=1",
    "path=%2F&listcorruptfileblocks=1",
];
/// The same of a user who is no superuser.
const ASKED_BY_OTHERS: [&str; 5] = [
    "path=%2F",
    "path=%2F&files=1",
    "path=%2F&listcorruptfileblocks=1",
    "path=%2F&files=1&includeSnapshots=1",
    "blockId=blk_1073741825",
];

fn tidy(text: &str) -> String {
    static VOLATILE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}", "@DATE@"),
            (r"in \d+ milliseconds", "in N milliseconds"),
            (r"BP-\d+-[0-9.]+-\d+", "@POOL@"),
        ]
        .map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name))
        .into()
    });
    // replicas are listed in the order of their coming, which is not told
    static LISTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"  \[(.*)\]").expect("a pattern"));
    let text = VOLATILE.iter().fold(text.to_owned(), |text, (p, name)| p.replace_all(&text, *name).into_owned());
    let sorted = |line: &str| {
        let Some(found) = LISTED.captures(line) else { return line.to_owned() };
        let mut each: Vec<&str> = found[1].split(", ").collect();
        each.sort_unstable();
        LISTED.replace(line, format!("  [{}]", each.join(", "))).into_owned()
    };
    let mut lines: Vec<String> = text.lines().map(sorted).collect();
    // missing blocks come in the order in which they were found out, which threads of Java's decide
    let begin = lines.iter().position(|line| line.starts_with("blk_")).unwrap_or(0);
    let end = lines[begin..].iter().position(|line| !line.starts_with("blk_")).map_or(begin, |many| begin + many);
    lines[begin..end].sort();
    lines.join("\n") + "\n"
}

#[test]
fn fsck_of_files_in_every_state() {
    let settings = [
        ("dfs.replication", "1"),
        ("dfs.namenode.replication.min", "1"),
        ("dfs.namenode.reconstruction.pending.timeout-sec", "600"),
    ];
    let Some(mut fixture) = Fixture::prepared("fsck", &settings) else { return };
    format(fixture.kind, &fixture.site);
    fixture.launch();
    let nodes = prepare(&fixture);
    let mut actual = String::new();
    for user in ["hdfs", "alice"] {
        for asked in if user == "hdfs" { &ASKED[..] } else { &ASKED_BY_OTHERS } {
            let (status, body) =
                http::get(fixture.http_port(), &format!("/fsck?ugi={user}&{asked}")).expect("an answer");
            let body = if body.contains("\r\n") { unchunked(&body) } else { body };
            actual += &format!("# {user} {asked}: {status}\n{}\n", tidy(&body));
        }
    }
    drop(nodes);
    if recording() {
        assert_eq!(fixture.kind, Kind::Java);
        std::fs::write(golden(), actual).expect("golden folder");
        return;
    }
    let expected = std::fs::read_to_string(golden()).expect("the recording");
    let wrong: Vec<String> = expected
        .split("\n# ")
        .zip(actual.split("\n# "))
        .filter(|(expected, actual)| expected != actual)
        .map(|(expected, actual)| format!("expected:\n# {expected}\nactual:\n# {actual}\n"))
        .collect();
    assert!(expected == actual, "{}", wrong.concat());
}

/// HTTP/1.0 was asked for; an answer in chunks all the same is put together.
fn unchunked(body: &str) -> String {
    let (mut text, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { return body.to_owned() };
        text += after.get(..size).unwrap_or(after);
        rest = after.get(size + 2..).unwrap_or("");
    }
    text
}
