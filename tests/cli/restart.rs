//! Checkpoints of a running NameNode, and restarts from what they leave.

use super::Case;
use crate::support::namenode::{Kind, NameNode};
use crate::support::skip;
use crate::support::work::wait_until;
use crate::trials::client::Client;
use hadoop_proto::hdfs::{FsPermissionProto, MkdirsRequestProto};
use prost::Message as _;
use rpc::client::CallOptions;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

impl Case {
    /// A formatted directory whose NameNode makes a checkpoint after a few transactions.
    pub(super) fn with_checkpoints(name: &str) -> Case {
        let mut case = Case::formatted(name);
        case.site.set("dfs.namenode.checkpoint.txns", 20).set("dfs.namenode.checkpoint.check.period", 1);
        case
    }
    pub(super) fn port(&self) -> u16 {
        let authority = self.site.get("fs.defaultFS");
        authority.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }
    pub(super) fn client(&self) -> Client {
        Client::connect(self.port(), "hdfs")
    }
    /// What the last one started has logged.
    pub(super) fn log(&self) -> String {
        let all = fs::read_to_string(self.site.folder().join("namenode.log")).unwrap_or_default();
        all.rsplit("Starting NameNode").next().unwrap_or_default().to_owned()
    }
    pub(super) fn begun_with(&self, begin: &str) -> Vec<PathBuf> {
        let names =
            fs::read_dir(self.name().join("current")).expect("a directory").map(|entry| entry.expect("entry").path());
        let is_meant = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin));
        let mut found: Vec<PathBuf> = names.filter(is_meant).collect();
        found.sort();
        found
    }
    /// Makes directories until there is a checkpoint with its image; gives how many.
    fn fill(&self) -> usize {
        let client = self.client();
        (0..30).for_each(|n| assert!(client.mkdirs(&format!("/d{n}/below")).expect("mkdirs")));
        wait_until(LIMIT, "an image was made", || self.log().contains("image made from"));
        // some that only the edits after it have
        (30..40).for_each(|n| assert!(client.mkdirs(&format!("/d{n}/below")).expect("mkdirs")));
        40
    }
    fn has_all(&self, count: usize) {
        let client = self.client();
        assert_eq!(client.names("/").len(), count);
        (0..count).for_each(|n| assert!(client.exists(&format!("/d{n}/below")), "/d{n}"));
    }
}

#[test]
fn a_restart_after_a_crash_is_from_the_arena_file_and_the_edits_after_it() {
    if Kind::under_test() == Kind::Java {
        return skip("Java has no arena files");
    }
    let case = Case::with_checkpoints("arena");
    let node = NameNode::start(Kind::under_test(), &case.site);
    let count = case.fill();
    node.kill();
    let arena = case.begun_with("arena_");
    assert_eq!(arena.len(), 1);
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.log().contains("Loaded arena file for txid"), "{}", case.log());
    case.has_all(count);
    // more checkpoints on top of it
    assert!(case.client().mkdirs("/d40/below").expect("mkdirs"));
    (0..30).for_each(|n| assert!(case.client().mkdirs(&format!("/d0/more{n}")).expect("mkdirs")));
    wait_until(LIMIT, "another one took its place", || {
        case.begun_with("arena_").iter().all(|path| !arena.contains(path))
    });
    node.stop();
    // a damaged one costs a line in the log
    let arena = case.begun_with("arena_").pop().expect("an arena file");
    let mut bytes = fs::read(&arena).expect("readable");
    bytes[100_000] ^= 1;
    fs::write(&arena, bytes).expect("writable");
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.log().contains("is not used: it is damaged: page 0"), "{}", case.log());
    case.has_all(count + 1);
    node.stop();
}

#[test]
fn a_save_at_the_start_leaves_nothing_to_be_made_of_the_arena_file() {
    if Kind::under_test() == Kind::Java {
        return skip("Java has no arena files");
    }
    let mut case = Case::with_checkpoints("arena-save");
    case.site.set("ironroot.checkpoint.image", false);
    let node = NameNode::start(Kind::under_test(), &case.site);
    let client = case.client();
    (0..30).for_each(|n| assert!(client.mkdirs(&format!("/d{n}/below")).expect("mkdirs")));
    wait_until(LIMIT, "an arena file was written", || case.log().contains("checkpoint: "));
    (30..40).for_each(|n| assert!(client.mkdirs(&format!("/d{n}/below")).expect("mkdirs")));
    node.kill();
    // the image is old, so that a new one is saved at the start: the file says less than it
    case.site.set("ironroot.checkpoint.image", true).set("ironroot.checkpoint.online", false);
    case.site.set("dfs.namenode.checkpoint.period", 1);
    std::thread::sleep(Duration::from_secs(2));
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.log().contains("Loaded arena file for txid"), "{}", case.log());
    assert!(case.log().contains("Saved image for txid"), "{}", case.log());
    std::thread::sleep(Duration::from_secs(3));
    assert!(!case.log().contains("storage directory dropped"), "{}", case.log());
    assert!(!case.log().contains("image made from"), "{}", case.log());
    case.has_all(40);
    node.stop();
}

#[test]
fn images_of_checkpoints_take_the_form_that_is_set() {
    if Kind::under_test() == Kind::Java {
        return skip("Java has no arena files");
    }
    let mut case = Case::with_checkpoints("encoder-form");
    let class = "org.apache.hadoop.io.compress.GzipCodec";
    case.site.set("dfs.image.compress", "true").set("dfs.image.compression.codec", class);
    case.site.set("dfs.image.parallel.load", "true").set("dfs.image.parallel.inode.threshold", 2);
    let namenode = NameNode::start(Kind::under_test(), &case.site);
    let count = case.fill();
    namenode.stop();
    let newest = case.begun_with("fsimage_").into_iter().rfind(|path| path.extension().is_none()).expect("an image");
    let bytes = fs::read(newest).expect("an image");
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(has(class.as_bytes()) && has(b"INODE_SUB"), "codec and sub-sections are those that are set");
    case.begun_with("arena_").iter().for_each(|path| fs::remove_file(path).expect("removed"));
    let namenode = NameNode::start(Kind::under_test(), &case.site);
    case.has_all(count);
    namenode.stop();
}

/// The disk gives a mapped file's pages no more: the process ends on the spot, and nothing that it answered is lost.
#[test]
fn an_arena_file_that_shrinks_under_a_restart_costs_no_more_than_the_process() {
    if Kind::under_test() == Kind::Java {
        return skip("Java has no arena files");
    }
    let mut case = Case::with_checkpoints("arena-shrinks");
    let mut namenode = NameNode::start(Kind::under_test(), &case.site);
    let count = case.fill();
    namenode.kill();
    // no further checkpoint takes the file away
    case.site.set("ironroot.checkpoint.online", "false");
    namenode = NameNode::launch(Kind::under_test(), &case.site, &[]);
    let mut arena = PathBuf::new();
    wait_until(LIMIT, "it was mapped", || {
        let log = case.log();
        let line = log.lines().find(|line| line.contains("Loaded arena file"));
        let path = line.and_then(|line| line.split(" from ").nth(1)?.split(':').next());
        arena = path.map(PathBuf::from).unwrap_or_default();
        path.is_some()
    });
    fs::File::options().write(true).open(&arena).and_then(|file| file.set_len(4096)).expect("cut");
    // it has either moved its memory in by now, and serves, or ends
    let mut client = None;
    wait_until(LIMIT, "it serves or has ended", || {
        client = Client::try_connect(case.port(), "hdfs").ok();
        client.is_some() || namenode.process().ended().is_some()
    });
    let made = |client: &Client, n: &usize| {
        let masked = FsPermissionProto { perm: 0o755 };
        let request = MkdirsRequestProto { src: format!("/more/{n}"), masked, create_parent: true, unmasked: None };
        matches!(client.exchange(CallOptions::default(), "mkdirs", &request.encode_to_vec()), Ok(Ok(_)))
    };
    let more = client.map_or(0, |client| (0..20).take_while(|n| made(&client, n)).count());
    namenode.kill();
    let namenode = NameNode::start(Kind::under_test(), &case.site);
    let used = format!("from {}:", arena.display());
    assert!(!case.log().lines().any(|line| line.contains("Loaded arena file") && line.contains(&used)), "it was cut");
    let client = case.client();
    (0..count).for_each(|n| assert!(client.exists(&format!("/d{n}/below")), "/d{n}"));
    (0..more).for_each(|n| assert!(client.exists(&format!("/more/{n}")), "/more/{n}"));
    namenode.stop();
}

/// The arena file of before leads nowhere once the directories went back to another state.
#[test]
fn a_rollback_is_no_place_for_arena_files() {
    if Kind::under_test() == Kind::Java {
        return skip("Java has no arena files");
    }
    let case = Case::with_checkpoints("rollback-arena");
    let namenode = NameNode::start(Kind::under_test(), &case.site);
    let count = case.fill();
    namenode.stop();
    let kept = fs::read(case.begun_with("arena_").pop().expect("an arena file")).expect("a file");
    let name = case.begun_with("arena_").pop().expect("an arena file");
    case.run(&["-upgradeOnly"]).expect(0, "Starting upgrade of local storage directories.");
    assert!(case.begun_with("arena_").is_empty(), "the upgraded directories begin with an image");
    // somebody puts it back: it is of the time before
    fs::write(&name, &kept).expect("a file");
    let namenode = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.log().contains("is not used"), "{}", case.log());
    case.has_all(count);
    namenode.stop();
    case.run_with(&["-rollback"], "Y\n").expect(0, "Roll back file system state?");
    let namenode = NameNode::start(Kind::under_test(), &case.site);
    case.has_all(count);
    namenode.stop();
}

#[test]
fn keys_turn_parts_off() {
    if Kind::under_test() == Kind::Java {
        return skip("Java has no arena files");
    }
    let mut case = Case::with_checkpoints("arena-keys");
    let node = NameNode::start(Kind::under_test(), &case.site);
    let count = case.fill();
    node.stop();
    let arena = case.begun_with("arena_");
    case.site.set("ironroot.restart.arena", false).set("ironroot.checkpoint.online", false);
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(!case.log().contains("rena file"), "{}", case.log());
    case.has_all(count);
    (0..30).for_each(|n| assert!(case.client().mkdirs(&format!("/d0/more{n}")).expect("mkdirs")));
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(case.begun_with("arena"), arena);
    node.stop();
}
