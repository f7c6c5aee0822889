//! Restarts from arena files of a namespace large enough to be mapped: what the disk, the memory and others may do to it.

use super::Case;
use crate::support::namenode::{Kind, NameNode, command};
use crate::support::process::Process;
use crate::support::skip;
use crate::support::work::wait_until;
use namespace::build::Build;
use record::{BlockInfo, Features, Inode, InodeHandle, InodeKind};
use state::{RootAttributes, State};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use storage::image::{self, SaveContext};
use vocab::{Block, BlockId, GenerationStamp, InodeId, LayoutVersion, Mode, TimeMs, Txid};

const LIMIT: Duration = Duration::from_secs(90);
const DIRECTORIES: usize = 400;
const FILES: usize = 200;

fn inode(id: i64, kind: InodeKind) -> Inode {
    Inode {
        id: InodeId(id),
        parent: None,
        user: record::UserId(0),
        group: record::GroupId(0),
        mode: Mode::new(0o755),
        mtime: TimeMs(1_600_000_000_000 + id),
        atime: TimeMs(0),
        features: Features::NONE,
        kind,
    }
}

/// Directories of files of one block each. The names begin with `begin`.
fn filled(begin: &str) -> State {
    let mut state = State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: Mode::new(0o755) });
    state.store = record::Store::new();
    let (store, mut id) = (&mut state.store, InodeId::ROOT.0);
    let mut build = Build::new(store);
    let directory = InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 };
    let root = build.add(store, &inode(id, directory.clone()), b"");
    let mut top: Vec<InodeHandle> = Vec::new();
    for d in 0..DIRECTORIES {
        id += 1;
        let parent = build.add(store, &inode(id, directory.clone()), format!("{begin}{d:04}").as_bytes());
        let mut children = Vec::new();
        for f in 0..FILES {
            id += 1;
            let (replication, block_size) = (3, 1 << 27);
            let kind = InodeKind::File { replication, block_size, storage_policy: 0, erasure_coding_policy: 0 };
            let file = build.add(store, &inode(id, kind), format!("part-{f:05}-of-a-job.parquet").as_bytes());
            let block = Block { id: BlockId(1 << 30 | id), length: 5, stamp: GenerationStamp(1_000 + id) };
            store.push_block(file, &BlockInfo { block, replication: 3, ..BlockInfo::default() });
            children.push(file);
        }
        build.set_children(store, parent, &children).expect("sorted");
        top.push(parent);
    }
    build.set_children(store, root, &top).expect("sorted");
    state.tree = build.finish(store).expect("a tree");
    state.sequences.inode = InodeId(id);
    state.sequences.stamp = GenerationStamp(1_001 + id);
    state.sequences.block = BlockId(1 << 30 | id);
    state
}

/// Puts an image of a state into the place of the one for `txid`.
fn put_image(current: &Path, state: &State, txid: Txid) {
    let version = fs::read_to_string(current.join("VERSION")).expect("VERSION");
    let id = version.lines().find_map(|line| line.strip_prefix("namespaceID=")).and_then(|id| id.parse::<i32>().ok());
    let namespace_id = id.expect("a number").cast_unsigned();
    let context = SaveContext { layout: LayoutVersion::CURRENT, namespace_id, txid, expanded_string_tables: true };
    let mut bytes = Vec::new();
    let digest = image::encode(state, context, &mut |piece| bytes.extend_from_slice(piece)).expect("encoded");
    let name = storage::names::image(txid);
    fs::write(current.join(&name), bytes).expect("an image");
    fs::write(current.join(storage::names::digest(&name)), digest.file_text(&name)).expect("its digest");
}

impl Case {
    /// A directory with an image of many files, whose NameNode has made an arena file of it: without DataNodes it stays in safe mode.
    fn large(name: &str) -> Case {
        let mut case = Case::formatted(name);
        case.site.set("ironroot.restart.arena.inodes", 1_000);
        put_image(&case.name().join("current"), &filled("d"), Txid(0));
        let node = NameNode::start(Kind::under_test(), &case.site);
        wait_until(LIMIT, "an arena file was made", || case.log().contains("checkpoint: "));
        assert!(case.log().contains("Loaded image for txid 0"), "{}", case.log());
        case.has_files();
        node.kill();
        case
    }
    fn has_files(&self) {
        let client = self.client();
        assert_eq!(client.names("/").len(), DIRECTORIES);
        for n in 0..DIRECTORIES {
            let path = format!("/d{n:04}/part-{:05}-of-a-job.parquet", n % FILES);
            assert!(client.exists(&path), "{path}");
        }
    }
    fn arena(&self) -> PathBuf {
        self.begun_with("arena_").pop().expect("an arena file")
    }
    fn is_from_arena(&self) -> bool {
        self.log().contains("Loaded arena file for txid")
    }
}

fn not_ours() -> bool {
    Kind::under_test() == Kind::Java && {
        skip("Java has no arena files");
        true
    }
}

#[test]
fn a_restart_after_the_first_load_parses_nothing() {
    if not_ours() {
        return;
    }
    let case = Case::large("large-first");
    for end in ["killed", "stopped", "once more"] {
        let node = NameNode::start(Kind::under_test(), &case.site);
        assert!(case.is_from_arena(), "{end}: {}", case.log());
        case.has_files();
        if end == "killed" { node.kill() } else { node.stop() }
    }
}

/// The same transaction, another history: a backup, an import.
#[test]
fn an_image_of_the_same_number_that_was_put_there_is_what_counts() {
    if not_ours() {
        return;
    }
    let case = Case::large("large-replaced");
    put_image(&case.name().join("current"), &filled("other"), Txid(0));
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.log().contains("is not used: the image for the same txid is another one"), "{}", case.log());
    assert!(case.client().exists("/other0007/part-00007-of-a-job.parquet"));
    assert!(!case.client().exists("/d0007"));
    // and the file is one of it from now on
    wait_until(LIMIT, "an arena file was made", || case.log().contains("checkpoint: "));
    node.kill();
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.is_from_arena(), "{}", case.log());
    assert!(case.client().exists("/other0007/part-00007-of-a-job.parquet"));
    node.stop();
}

#[test]
fn files_of_another_page_size_build_or_cluster_are_not_used() {
    if not_ours() {
        return;
    }
    let case = Case::large("large-foreign");
    let arena = case.arena();
    let whole = fs::read(&arena).expect("readable");
    // by FORMAT.md: magic, version, bytes of a page, build; the checksum in the last eight bytes of the block
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        let sum = xxhash_rust::xxh3::xxh3_64(&changed[..65_528]);
        changed[65_528..65_536].copy_from_slice(&sum.to_le_bytes());
        changed
    };
    let torn = |mut bytes: Vec<u8>| {
        bytes.copy_within(65_536..65_536 + 4_096, 65_536 * 3);
        bytes
    };
    let cases = [
        (with(20, &(16u32 << 10).to_le_bytes()), "another build"),
        (with(32, b"!"), "another build"),
        (torn(whole.clone()), "damaged: page"),
        (whole[..whole.len() - 1].to_vec(), "damaged"),
        (Vec::new(), "damaged"),
    ];
    let put = |bytes: &[u8]| {
        case.begun_with("arena_").iter().for_each(|path| fs::remove_file(path).expect("removed"));
        fs::write(&arena, bytes).expect("writable");
    };
    for (bytes, reason) in cases {
        put(&bytes);
        let node = NameNode::start(Kind::under_test(), &case.site);
        let log = case.log();
        assert!(log.contains("is not used: ") && log.contains(reason), "{reason}: {log}");
        case.has_files();
        // a good one takes its place
        wait_until(LIMIT, "an arena file was made", || case.log().contains("checkpoint: "));
        node.kill();
    }
    put(&whole);
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.is_from_arena(), "{}", case.log());
    node.stop();
}

/// The disk gives a mapped file's pages no more: the process begins anew and serves from the image.
#[test]
fn an_arena_file_that_is_cut_under_a_restart_ends_nothing() {
    if not_ours() {
        return;
    }
    let mut case = Case::large("large-cut");
    // nothing takes the file away
    case.site.set("ironroot.checkpoint.online", "false");
    let arena = case.arena();
    let whole = fs::read(&arena).expect("readable");
    let anew = |case: &Case| {
        let all = fs::read_to_string(case.site.folder().join("namenode.log")).unwrap_or_default();
        all.contains("the process begins anew")
    };
    for attempt in 0.. {
        fs::write(&arena, &whole).expect("writable");
        let node = NameNode::launch(Kind::under_test(), &case.site, &[]);
        let id = node.id();
        while !case.is_from_arena() {
            std::thread::sleep(Duration::from_micros(200));
        }
        fs::File::options().write(true).open(&arena).and_then(|file| file.set_len(4096)).expect("cut");
        wait_until(LIMIT, "it serves", || node.jmx("NameNodeStatus", "State").is_some_and(|state| state == "active"));
        case.has_files();
        assert_eq!(node.id(), id);
        let met = anew(&case);
        if met {
            assert!(case.log().contains("could not read it"), "{}", case.log());
        }
        node.stop();
        if met {
            break;
        }
        assert!(attempt < 20, "never in time: {}", case.log());
    }
}

/// A group of processes that may use so much memory, removed in the end.
struct Group(PathBuf);

impl Group {
    /// `None` where this system or this user cannot have one.
    fn new(bytes: u64) -> Option<Group> {
        let name = format!("ironroot-test-{}", std::process::id());
        let kinds = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        kinds.iter().find_map(|(root, limit)| {
            let group = Group(Path::new(root).join(&name));
            if !Path::new(root).join("cgroup.procs").exists() || fs::create_dir(&group.0).is_err() {
                return None;
            }
            fs::write(group.0.join(limit), bytes.to_string()).ok().map(|()| group)
        })
    }
    /// The command in it.
    fn start(&self, inner: &Command, log: &Path) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(self.0.join("cgroup.procs"));
        command.arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            value.map(|value| command.env(name, value));
        }
        inner.get_current_dir().map(|folder| command.current_dir(folder));
        Process::start(&mut command, log)
    }
}
impl Drop for Group {
    fn drop(&mut self) {
        // empty once all its processes are gone
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).expect("a number") << 10
}

#[test]
fn little_memory_is_enough_for_a_restart_and_a_checkpoint() {
    if not_ours() {
        return;
    }
    let mut case = Case::large("large-memory");
    case.site.set("dfs.namenode.checkpoint.txns", 20).set("dfs.namenode.checkpoint.check.period", 1);
    case.site.set("dfs.namenode.safemode.threshold-pct", "0").set("dfs.namenode.safemode.extension", "0");
    let node = NameNode::start(Kind::under_test(), &case.site);
    case.has_files();
    std::thread::sleep(Duration::from_secs(1));
    let bytes = resident(node.id()) * 6 / 5;
    node.kill();
    let Some(group) = Group::new(bytes) else {
        return skip("groups of processes with a limit of memory cannot be made");
    };
    case.site.write();
    let mut process = group.start(&command(Kind::under_test(), &case.site), &case.site.folder().join("namenode.log"));
    let client = || crate::trials::client::Client::try_connect(case.port(), "hdfs").ok();
    wait_until(LIMIT, "it serves", || {
        assert!(process.ended().is_none(), "{}", case.log());
        client().is_some_and(|client| client.mkdirs("/d0000/more").is_ok())
    });
    assert!(case.is_from_arena(), "{}", case.log());
    case.has_files();
    (0..30).for_each(|n| assert!(case.client().mkdirs(&format!("/d0001/more{n}")).expect("mkdirs")));
    let done = |line: &str| case.log().contains(line);
    wait_until(LIMIT, "a checkpoint was made", || done("image made from") || done("no image from") || done("given up"));
    assert!(done("image made from"), "{}", case.log());
    assert!(process.ended().is_none(), "{}", case.log());
    case.has_files();
    process.kill();
    drop(group);
}

/// How the whole system hands out huge pages, put back in the end.
struct HugePages(String);

impl HugePages {
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    fn read() -> Option<HugePages> {
        let text = fs::read_to_string(Self::FILE).ok()?;
        let now = text.split(['[', ']']).nth(1)?.to_owned();
        fs::write(Self::FILE, &now).ok().map(|()| HugePages(now))
    }
}
impl Drop for HugePages {
    fn drop(&mut self) {
        _ = fs::write(Self::FILE, &self.0);
    }
}

#[test]
fn huge_pages_never_and_always_change_nothing_but_time() {
    if not_ours() {
        return;
    }
    let Some(_before) = HugePages::read() else { return skip("whether there are huge pages cannot be set") };
    let case = Case::large("large-huge");
    for way in ["never", "always"] {
        fs::write(HugePages::FILE, way).expect("set");
        let node = NameNode::start(Kind::under_test(), &case.site);
        assert!(case.is_from_arena(), "{way}: {}", case.log());
        case.has_files();
        node.kill();
        case.begun_with("arena_").iter().for_each(|path| fs::remove_file(path).expect("removed"));
        let node = NameNode::start(Kind::under_test(), &case.site);
        assert!(case.log().contains("Loaded image for txid 0"), "{way}: {}", case.log());
        case.has_files();
        wait_until(LIMIT, "an arena file was made", || case.log().contains("checkpoint: "));
        node.kill();
    }
}
