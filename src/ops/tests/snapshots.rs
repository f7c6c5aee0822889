//! Snapshots: what one has seen stays as it was, whatever happens afterwards. Random operations below two snapshottable directories and beside them;
//! every snapshot is dumped when it is taken and compared again and again until it is deleted. The invariants of the tree (quota use among them) and
//! the digest law are checked along the way.

use super::*;
use crate::read::erasure_coding::get_erasure_coding_policy;
use crate::read::file_info::get_file_info;
use crate::read::listing::get_listing;
use crate::read::summary::get_quota_usage;
use crate::write::acl::{AclChange, ChangeAcl};
use crate::write::append::Append;
use crate::write::attributes::{SetPermission, SetReplication};
use crate::write::erasure_coding::SetErasureCodingPolicy;
use crate::write::quota::UNCHANGED;
use crate::write::snapshots::{AllowSnapshot, CreateSnapshot, DeleteSnapshot, DisallowSnapshot, RenameSnapshot};
use crate::write::storage_policy::{SetStoragePolicy, get_storage_policy};
use crate::write::truncate::Truncate;
use record::KindTag;
use std::collections::BTreeMap;
use vocab::SnapshotId;

/// A reproducible source of choices.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
    pub(super) fn path(&mut self) -> String {
        const TOPS: [&str; 4] = ["/s", "/s", "/t", "/plain"];
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let top = TOPS[self.roll(4) as usize].to_owned();
        (0..1 + self.roll(3)).fold(top, |path, _| format!("{path}/{}", NAMES[self.roll(4) as usize]))
    }
}

/// What a client sees of one path. Times are left out: those of directories are not kept by Hadoop either when a name is made.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    kind: KindTag,
    id: i64,
    mode: u16,
    replication: u16,
    length: u64,
    blocks: Vec<i64>,
}

type Dump = BTreeMap<String, Seen>;

fn dump(view: &View<'_>, path: &str, below: &str, into: &mut Dump) {
    let mut entries = Vec::new();
    get_listing(view, path.as_bytes(), b"", true, &mut entries).unwrap().unwrap_or_else(|| panic!("{path} is gone"));
    for (status, located) in entries {
        let name = String::from_utf8(status.name.to_vec()).unwrap();
        // of an empty file that has grown since, Hadoop names the first block too
        let blocks = located.filter(|_| status.length > 0);
        let blocks = blocks.map_or(Vec::new(), |l| l.blocks.iter().map(|b| b.located.block.id.0).collect());
        let seen = Seen {
            kind: status.kind,
            id: status.id.0,
            mode: status.mode.bits(),
            replication: status.replication,
            length: status.length,
            blocks,
        };
        into.insert(format!("{below}/{name}"), seen);
        if status.kind == KindTag::Directory {
            dump(view, &format!("{path}/{name}"), &format!("{below}/{name}"), into);
        }
    }
}

pub(super) struct Past {
    pub(super) w: World,
    pub(super) dice: Dice,
    /// By directory and name.
    taken: BTreeMap<(String, String), Dump>,
    count: u32,
    /// Directories of which snapshots are taken.
    tops: &'static [&'static str],
}

impl Past {
    pub(super) fn new(seed: u64, tops: &'static [&'static str]) -> Past {
        let mut w = World::with_datanodes(1);
        w.checked = false;
        for top in ["/s", "/t", "/plain"] {
            w.mkdirs(&superuser(), top, 0o755).unwrap();
        }
        for top in tops {
            w.write(&superuser(), &AllowSnapshot { path: (*top).into() }).unwrap();
        }
        Past { w, dice: Dice(seed), taken: BTreeMap::new(), count: 0, tops }
    }

    fn dump(&self, top: &str, name: &str) -> Dump {
        let mut seen = Dump::new();
        let who = superuser();
        self.w.view(&who, |v| dump(v, &format!("{top}/.snapshot/{name}"), "", &mut seen));
        seen
    }

    /// Each snapshot shows what it did, and live state is replayed state.
    pub(super) fn check(&mut self) {
        self.w.check();
        for ((top, name), before) in &self.taken {
            assert_eq!(&self.dump(top, name), before, "{top}/.snapshot/{name} changed (seed {})", self.dice.0);
        }
    }

    fn top(&mut self) -> String {
        // the first twice as often
        let at = self.dice.roll(self.tops.len() as u64 + 1) as usize;
        self.tops[at.saturating_sub(1)].into()
    }
    fn one_taken(&mut self) -> Option<(String, String)> {
        let at = self.dice.roll(self.taken.len().max(1) as u64) as usize;
        self.taken.keys().nth(at).cloned()
    }

    pub(super) fn step(&mut self) {
        let who = superuser();
        let (path, other) = (self.dice.path(), self.dice.path());
        match self.dice.roll(24) {
            0..2 => drop(self.w.mkdirs(&who, &path, 0o755)),
            2..7 => self.create(&path),
            7..9 => drop(self.w.delete(&who, &path, true)),
            9..12 => drop(self.w.rename(&who, &path, &other)),
            12..15 => drop(self.w.rename2(&path, &other, true)),
            15 => {
                let mode = vocab::Mode::new(0o700 + self.dice.roll(64) as u16);
                let _ = self.w.write(&who, &SetPermission { path: path.into(), mode });
            }
            16 => {
                let replication = 1 + self.dice.roll(4) as u16;
                let _ = self.w.write(&who, &SetReplication { path: path.into(), replication });
            }
            17 => self.append(&path),
            18 => self.truncate(&path),
            19..22 => {
                let top = self.top();
                self.count += 1;
                let name = format!("s{}", self.count);
                let op = CreateSnapshot { path: top.clone().into(), name: name.clone().into() };
                let path = self.w.write(&who, &op).unwrap();
                assert_eq!(*path, *format!("{top}/.snapshot/{name}"));
                let seen = self.dump(&top, &name);
                self.taken.insert((top, name), seen);
            }
            22 => {
                let Some((top, name)) = self.one_taken() else { return };
                let op = DeleteSnapshot { path: top.clone().into(), name: name.clone().into() };
                self.w.write(&who, &op).unwrap();
                self.taken.remove(&(top, name));
            }
            _ => {
                let Some((top, name)) = self.one_taken() else { return };
                let new = format!("{name}x");
                let op = RenameSnapshot { path: top.clone().into(), old: name.clone().into(), new: new.clone().into() };
                self.w.write(&who, &op).unwrap();
                let seen = self.taken.remove(&(top.clone(), name)).unwrap();
                self.taken.insert((top, new), seen);
            }
        }
    }

    fn create(&mut self, path: &str) {
        let op = crate::write::create::Create { overwrite: true, ..World::create_op(path, "maker") };
        let Ok(status) = self.w.write(&superuser(), &op) else { return };
        let mut previous = None;
        for _ in 0..self.dice.roll(3) {
            let Ok(added) = self.w.add_block(path, status.id, "maker", previous) else { return };
            let block = Block { length: 1 + self.dice.roll(MIB - 1), ..added.located.block };
            self.w.received(1, block);
            previous = Some(block);
        }
        assert_eq!(self.w.complete(path, status.id, "maker", previous), Ok(true));
    }

    fn append(&mut self, path: &str) {
        let op = Append { path: path.into(), client: "adder".into(), new_block: true };
        let Ok(appended) = self.w.write(&superuser(), &op) else { return };
        let id = appended.status.id;
        let store = &self.w.state.store;
        let last = store.find_inode(id).and_then(|f| store.last_block(f)).map(|b| store.block_core(b));
        // policies may want what there is not
        let Ok(added) = self.w.add_block(path, id, "adder", last) else { return };
        let block = Block { length: 1 + self.dice.roll(MIB - 1), ..added.located.block };
        self.w.received(1, block);
        assert_eq!(self.w.complete(path, id, "adder", Some(block)), Ok(true));
    }

    /// At a block's end, so that nothing has to be cut by a DataNode.
    fn truncate(&mut self, path: &str) {
        let who = superuser();
        let state = &self.w.state;
        let Ok(Some(file)) = state.tree.resolve(&state.store, path.as_bytes()).map(|r| r.last()) else { return };
        let lengths: Vec<u64> =
            state.store.blocks_of(file).iter().map(|b| state.store.block(*b).block.length).collect();
        let keep = self.dice.roll(lengths.len() as u64 + 1) as usize;
        let new_length = lengths[..keep].iter().sum::<u64>() as i64;
        let _ = self
            .w
            .write(&who, &Truncate { path: path.into(), new_length, client: "cutter".into(), keeps_blocks: false });
    }
}

fn run(seed: u64, steps: usize) {
    let mut past = Past::new(seed, &["/s", "/t"]);
    for i in 0..steps {
        past.step();
        if i % 7 == 0 {
            past.check();
        }
        if i % 501 == 500 {
            past.w.restart();
            past.w.datanode(1);
            past.check();
        }
    }
    // when the last snapshot goes, nothing of the past is left
    for (top, name) in std::mem::take(&mut past.taken).into_keys() {
        past.w.write(&superuser(), &DeleteSnapshot { path: top.into(), name: name.into() }).unwrap();
        past.check();
    }
    for top in ["/s", "/t"] {
        past.w.write(&superuser(), &DisallowSnapshot { path: top.into() }).unwrap();
    }
    past.check();
    let left = &past.w.state.tree.snapshots;
    // what was renamed stays marked
    let names = left.referred().filter_map(|inode| left.references(inode)).flat_map(|r| &r.names).count();
    assert_eq!((left.with_diffs().count(), names), (0, 0), "seed {seed}: {left:?}");
    assert_eq!(past.w.state.tree.inode_count(), past.w.state.store.inode_count());
}

#[test]
fn the_past_stays_as_it_was() {
    for seed in 1..=12 {
        run(seed, 600);
    }
}

impl Past {
    /// In the middle of a deletion: what snapshots show, and use of quotas, are as ever.
    pub(super) fn check_in_between(&self) {
        let seed = self.dice.0;
        assert_eq!(self.w.state.tree.check(&self.w.state.store), Vec::<String>::new(), "seed {seed}");
        let taken = self.taken.iter();
        taken.for_each(|((top, name), before)| assert_eq!(&self.dump(top, name), before, "{seed}: {top} {name}"));
    }
}

#[test]
fn a_file_renamed_out_of_a_snapshot_and_truncated_keeps_its_past() {
    let mut w = World::with_datanodes(1);
    let who = superuser();
    w.write_file("/s/f", &[10, 20]);
    w.write(&who, &AllowSnapshot { path: "/s".into() }).unwrap();
    w.write(&who, &CreateSnapshot { path: "/s".into(), name: "one".into() }).unwrap();
    w.mkdirs(&who, "/plain", 0o755).unwrap();
    w.rename(&who, "/s/f", "/plain/g").unwrap();
    w.write(&who, &Truncate { path: "/plain/g".into(), new_length: 10, client: "cutter".into(), keeps_blocks: false })
        .unwrap();
    let mut seen = Dump::new();
    w.view(&who, |v| dump(v, "/s/.snapshot/one", "", &mut seen));
    assert_eq!((seen["/f"].length, seen["/f"].blocks.len()), (30, 2));
}

/// A world with `/s` that holds a file and has one snapshot.
fn one_snapshot() -> World {
    let mut w = World::with_datanodes(1);
    w.write_file("/s/f", &[10]);
    w.write(&superuser(), &AllowSnapshot { path: "/s".into() }).unwrap();
    w.quota(&superuser(), "/s", 100, UNCHANGED).unwrap();
    w.write(&superuser(), &CreateSnapshot { path: "/s".into(), name: "one".into() }).unwrap();
    w
}

#[test]
fn snapshots_in_a_listing_count_the_children_of_now() {
    let mut w = one_snapshot();
    w.write_file("/s/g", &[10]);
    let who = superuser();
    w.view(&who, |v| {
        let mut entries = Vec::new();
        get_listing(v, b"/s/.snapshot", b"", false, &mut entries).unwrap();
        assert_eq!((entries.len(), entries[0].0.children), (1, 2));
        let own = get_file_info(v, b"/s/.snapshot/one").unwrap().unwrap();
        assert_eq!(own.children, 1);
    });
}

#[test]
fn in_a_snapshot_the_storage_policy_is_that_of_now() {
    let mut w = one_snapshot();
    let who = superuser();
    w.write(&who, &SetStoragePolicy { path: "/s/f".into(), policy: Some("COLD".into()) }).unwrap();
    let policy = |w: &World, path: &[u8]| w.view(&who, |v| get_storage_policy(v, path).unwrap().name);
    assert_eq!((policy(&w, b"/s/.snapshot/one/f"), policy(&w, b"/s/.snapshot/one")), ("COLD", "HOT"));
    // its root: of then, if it had one of its own
    let set = |path: &str, policy: &str| SetStoragePolicy { path: path.into(), policy: Some(policy.into()) };
    w.write(&who, &set("/s", "WARM")).unwrap();
    w.write(&who, &CreateSnapshot { path: "/s".into(), name: "two".into() }).unwrap();
    w.write(&who, &set("/s", "ONE_SSD")).unwrap();
    assert_eq!((policy(&w, b"/s/.snapshot/one"), policy(&w, b"/s/.snapshot/two")), ("ONE_SSD", "WARM"));
    w.view(&who, |v| {
        let mut entries = Vec::new();
        get_listing(v, b"/s/.snapshot/one", b"", false, &mut entries).unwrap();
        assert_eq!(entries[0].0.storage_policy, vocab::storage_policy::by_name("COLD").unwrap().id, "of a file");
    });
}

#[test]
fn the_list_of_snapshots_has_no_erasure_coding_policy() {
    let w = one_snapshot();
    let policy = |path: &[u8]| w.view(&superuser(), |v| get_erasure_coding_policy(v, path));
    assert_eq!(policy(b"/s/.snapshot"), Ok(None));
    assert_eq!(policy(b"/s/.snapshot/two"), Err(Refusal::not_found("Path not found: /s/.snapshot/two")));
}

#[test]
fn a_quota_in_a_snapshot_has_no_use() {
    let w = one_snapshot();
    let who = superuser();
    let usage = |path: &[u8]| w.view(&who, |v| get_quota_usage(v, path).unwrap());
    assert_eq!(usage(b"/s").usage.namespace, 2);
    let then = usage(b"/s/.snapshot/one");
    assert_eq!((then.usage.namespace, then.usage.space, then.quota.namespace), (1, 0, Some(100)));
}

/// A snapshot is found by its path and by nothing else, and is read only.
#[test]
fn paths_into_the_past() {
    let mut w = World::with_datanodes(1);
    let who = superuser();
    w.write_file("/s/d/f", &[10]);
    w.write(&who, &AllowSnapshot { path: "/s".into() }).unwrap();
    w.write(&who, &CreateSnapshot { path: "/s".into(), name: "one".into() }).unwrap();
    w.delete(&who, "/s/d", true).unwrap();
    let resolved = |w: &World, path: &str| {
        let found = w.state.tree.resolve(&w.state.store, path.as_bytes()).unwrap();
        (found.last().is_some(), found.snapshot() != SnapshotId::CURRENT)
    };
    assert_eq!(resolved(&w, "/s/d/f"), (false, false));
    assert_eq!(resolved(&w, "/s/.snapshot/one/d/f"), (true, true));
    assert_eq!(resolved(&w, "/s/.snapshot/two/d/f"), (false, false));
    assert_eq!(w.delete(&who, "/s/.snapshot/one/d/f", true), Err(Refusal::SnapshotIsReadOnly));
    let refused = w.delete(&who, "/s", true);
    assert!(matches!(&refused, Err(Refusal::Snapshot(text)) if text.contains("/s is snapshottable")), "{refused:?}");
}

#[test]
fn deleted_snapshots_go_once_they_are_the_oldest() {
    use crate::admin::snapshot_collect::collect_deleted;
    let mut w = World::new();
    let who = superuser();
    w.policy.ordered_snapshot_deletion = true;
    w.twin.policy.ordered_snapshot_deletion = true;
    w.mkdirs(&who, "/s", 0o755).unwrap();
    w.write(&who, &AllowSnapshot { path: "/s".into() }).unwrap();
    for name in ["one", "two", "three"] {
        w.write(&who, &CreateSnapshot { path: "/s".into(), name: name.into() }).unwrap();
    }
    let names = |w: &World| -> Vec<String> {
        let (_, root) = w.state.tree.snapshots.roots().next().unwrap();
        root.snapshots.iter().map(|s| String::from_utf8_lossy(&s.name).into_owned()).collect()
    };
    w.write(&who, &DeleteSnapshot { path: "/s".into(), name: "two".into() }).unwrap();
    assert_eq!(w.turn(&who, collect_deleted), None);
    assert_eq!(names(&w), ["one", "three", "two#1"]);
    w.write(&who, &DeleteSnapshot { path: "/s".into(), name: "one".into() }).unwrap();
    assert_eq!(w.turn(&who, collect_deleted).as_deref(), Some("/s/.snapshot/two#1"));
    assert_eq!(w.turn(&who, collect_deleted), None);
    assert_eq!(names(&w), ["three"]);
    w.check();
}

#[test]
fn an_older_name_counts_what_a_snapshot_has_of_it() {
    let mut w = World::new();
    let who = superuser();
    w.mkdirs(&who, "/a/d", 0o755).unwrap();
    w.mkdirs(&who, "/b", 0o755).unwrap();
    w.create("/a/d/f");
    w.quota(&who, "/a", 100, UNCHANGED).unwrap();
    w.write(&who, &AllowSnapshot { path: "/a".into() }).unwrap();
    for name in ["s0", "s1"] {
        w.write(&who, &CreateSnapshot { path: "/a".into(), name: name.into() }).unwrap();
    }
    w.rename(&who, "/a/d", "/b/d").unwrap();
    w.write(&who, &DeleteSnapshot { path: "/a".into(), name: "s1".into() }).unwrap();
    w.create("/b/d/new");
    let names = |w: &World| w.view(&who, |v| get_quota_usage(v, b"/a").unwrap().usage.namespace);
    assert_eq!(names(&w), 3);
    w.check();
    w.restart();
    assert_eq!(names(&w), 3);
}

#[test]
fn a_mark_has_the_time_of_its_record() {
    let mut w = World::new();
    let who = superuser();
    w.policy.ordered_snapshot_deletion = true;
    w.twin.policy.ordered_snapshot_deletion = true;
    w.mkdirs(&who, "/s", 0o755).unwrap();
    w.write(&who, &AllowSnapshot { path: "/s".into() }).unwrap();
    for name in ["one", "two"] {
        w.write(&who, &CreateSnapshot { path: "/s".into(), name: name.into() }).unwrap();
    }
    w.pass(5_000);
    w.write(&who, &DeleteSnapshot { path: "/s".into(), name: "two".into() }).unwrap();
    let then = w.now.wall;
    w.pass(5_000);
    w.check();
    let told = w.view(&who, |v| get_file_info(v, b"/s/.snapshot/two#1").unwrap().unwrap().mtime);
    assert_eq!(told, then);
}

/// Hadoop's name node stops in the middle of such a deletion, and in every replay of one.
#[test]
fn striped_files_renamed_out_of_a_snapshot_are_not_deleted() {
    let mut w = World::with_datanodes(6);
    let who = superuser();
    w.mkdirs(&who, "/a/d", 0o755).unwrap();
    w.mkdirs(&who, "/a/x", 0o755).unwrap();
    let policy = SetErasureCodingPolicy { path: "/a/d".into(), policy: Some("RS-6-3-1024k".into()) };
    w.write(&who, &policy).unwrap();
    w.create("/a/d/f");
    w.create("/a/d/kept");
    w.write(&who, &AllowSnapshot { path: "/a".into() }).unwrap();
    w.write(&who, &CreateSnapshot { path: "/a".into(), name: "one".into() }).unwrap();
    w.rename(&who, "/a/d/f", "/a/x/f").unwrap();
    let logged = w.logged();
    let stopped = Refusal::IllegalState("".into());
    assert_eq!(w.delete(&who, "/a/x/f", true), Err(stopped.clone()));
    assert_eq!(w.delete(&who, "/a/x", true), Err(stopped));
    assert_eq!(w.logged(), logged);
    // one that stayed where it was goes
    assert_eq!(w.delete(&who, "/a/d/kept", true), Ok(true));
    // with the snapshot goes the older name, and then nothing is in the way
    w.write(&who, &DeleteSnapshot { path: "/a".into(), name: "one".into() }).unwrap();
    assert_eq!(w.delete(&who, "/a/x", true), Ok(true));
    w.check();
}

/// Taking away what is not there is no change that a snapshot would be told of; Hadoop's does not either.
#[test]
fn nothing_taken_away_is_no_change() {
    let mut w = one_snapshot();
    let who = superuser();
    w.mkdirs(&who, "/s/d", 0o755).unwrap();
    w.write(&who, &CreateSnapshot { path: "/s".into(), name: "two".into() }).unwrap();
    w.write(&who, &SetStoragePolicy { path: "/s/d".into(), policy: None }).unwrap();
    let remove = ChangeAcl { path: "/s/d".into(), change: AclChange::RemoveAll };
    w.write(&who, &remove).unwrap();
    let directory = w.view(&who, |v| v.state.tree.resolve(&v.state.store, b"/s/d").unwrap().last().unwrap());
    assert!(w.state.tree.snapshots.directory_diffs(directory).is_empty());
    w.write(&who, &SetStoragePolicy { path: "/s/d".into(), policy: Some("COLD".into()) }).unwrap();
    assert_eq!(w.state.tree.snapshots.directory_diffs(directory).len(), 1);
    w.check();
}
