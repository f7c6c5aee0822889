//! Every kind of write call, in any order and with any arguments: nothing is foretold of the answers, the laws hold all the same.

use super::generate::{Dice, users};
use super::twin::Who;
use super::world::World;
use crate::support::scripted::DataNode;
use ops::Write;
use ops::admin::lease_check::check_leases;
use ops::datanode::CommitBlockSynchronization;
use ops::write::acl::{AclChange, ChangeAcl};
use ops::write::add_block::AddBlock;
use ops::write::append::{Append, RecoverLease};
use ops::write::attributes::{SetOwner, SetPermission, SetReplication, SetTimes};
use ops::write::complete::{AbandonBlock, Complete, Fsync};
use ops::write::concat::Concat;
use ops::write::create::Create;
use ops::write::delete::Delete;
use ops::write::mkdirs::Mkdirs;
use ops::write::new_node::CreateModes;
use ops::write::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use ops::write::quota::SetQuota;
use ops::write::rename::{Rename, Rename2};
use ops::write::storage_policy::SetStoragePolicy;
use ops::write::symlink::CreateSymlink;
use ops::write::truncate::Truncate;
use ops::write::xattr::{RemoveXattr, SetXattr};
use record::KindTag;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, Block, GenerationStamp, InodeId, Mode, Refusal, StorageKind, TimeMs};

/// A file or directory as found in the state.
#[derive(Clone)]
struct Found {
    path: Vec<u8>,
    id: InodeId,
    kind: KindTag,
    open: Option<Arc<str>>,
    blocks: Vec<Block>,
    length: u64,
}

fn look(world: &World) -> Vec<Found> {
    let (tree, store) = (&world.state.tree, &world.state.store);
    let mut all = Vec::new();
    let mut open = vec![tree.root()];
    while let Some(handle) = open.pop() {
        let blocks: Vec<Block> = store.blocks_of(handle).iter().map(|b| store.block(*b).block).collect();
        all.push(Found {
            path: tree.path_of(store, handle),
            id: store.inode_id(handle),
            kind: store.kind(handle),
            open: tree.construction(handle).map(|c| c.client.into()),
            length: blocks.iter().map(|b| b.length).sum(),
            blocks,
        });
        if store.kind(handle) == KindTag::Directory {
            open.extend(tree.children(store, handle));
        }
    }
    all
}

struct Wide {
    world: World,
    dice: Dice,
    all: Vec<Found>,
    users: [Who; 4],
    done: BTreeMap<&'static str, (u64, u64)>,
}

fn modes(bits: u16) -> CreateModes {
    CreateModes { masked: Mode::new(bits), unmasked: Some(Mode::new(bits | 0o020)) }
}

impl Wide {
    fn any(&mut self) -> Found {
        self.all[self.dice.below(self.all.len())].clone()
    }

    fn any_where(&mut self, wanted: impl Fn(&Found) -> bool) -> Found {
        (0..30).map(|_| self.any()).find(wanted).unwrap_or_else(|| self.all[0].clone())
    }

    fn file(&mut self) -> Found {
        self.any_where(|found| found.kind == KindTag::File)
    }

    fn open(&mut self) -> Found {
        self.any_where(|found| found.open.is_some())
    }

    fn new_path(&mut self) -> Vec<u8> {
        let mut path = self.any_where(|found| found.kind == KindTag::Directory && found.path.len() < 60).path;
        // the root is crowded, so that files are found beside each other
        if path == b"/" || self.dice.one_in(2) {
            path.clear();
        }
        let deeper = if self.dice.one_in(5) { "new/" } else { "" };
        path.extend(format!("/{deeper}{}", self.dice.of(&["a", "b", "c", "d", "\u{e9}", "\u{1f600}"])).as_bytes());
        path
    }

    fn path(&mut self) -> Vec<u8> {
        if self.dice.one_in(3) { self.new_path() } else { self.any().path }
    }

    fn who(&mut self) -> Who {
        let at = if self.dice.one_in(4) { 1 + self.dice.below(3) } else { 0 };
        self.users[at].clone()
    }

    fn client(&mut self) -> Arc<str> {
        self.dice.of(&["one", "two"]).into()
    }

    fn entries(&mut self) -> Vec<AclEntry> {
        let count = 1 + self.dice.below(5);
        (0..count)
            .map(|_| {
                let kind = self.dice.of(&[AclKind::User, AclKind::Group, AclKind::Mask, AclKind::Other]);
                let named = matches!(kind, AclKind::User | AclKind::Group) && !self.dice.one_in(3);
                AclEntry {
                    scope: self.dice.of(&[AclScope::Access, AclScope::Default]),
                    kind,
                    name: named.then(|| self.dice.of(&["alice", "bob", "staff"]).into()),
                    permission: Action(self.dice.below(8) as u8),
                }
            })
            .collect()
    }

    fn ask<W: Write>(&mut self, name: &'static str, op: &W) -> Option<W::Reply> {
        let who = self.who();
        let answer: Result<W::Reply, Refusal> = self.world.write(&who, op);
        let count = self.done.entry(name).or_default();
        count.0 += u64::from(answer.is_ok());
        count.1 += 1;
        answer.ok()
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..=39 => self.names(),
            40..=69 => self.blocks(),
            70..=84 => self.attributes(),
            _ => self.rare(),
        }
    }

    fn names(&mut self) {
        match self.dice.below(12) {
            0..=2 => {
                let (path, bits) = (self.new_path(), self.dice.of(&[0o755, 0o777, 0o1777, 0o700]));
                self.ask("mkdirs", &Mkdirs { path, modes: modes(bits), create_parents: true });
            }
            3..=6 => {
                let (path, client) = (self.path(), self.client());
                let op = Create {
                    path,
                    modes: modes(0o644),
                    client,
                    create: true,
                    overwrite: self.dice.one_in(2),
                    create_parents: true,
                    replication: 1 + self.dice.below(3) as u16,
                    block_size: self.dice.of(&[1_000, 1_000, 1_000, 2_000]),
                    lazy_persist: self.dice.one_in(20),
                    should_replicate: false,
                    erasure_coding_policy: None,
                    storage_policy: self.dice.one_in(6).then(|| self.dice.of(&["COLD", "HOT", "ALL_SSD", "?"]).into()),
                    versions: Vec::new(),
                    data_key: None,
                };
                self.ask("create", &op);
            }
            7 => {
                let (path, crowded) = (self.any().path, self.all.len() > 120);
                let recursive = crowded || self.dice.one_in(6);
                self.ask("delete", &Delete { path, recursive });
            }
            8 => {
                let op = Rename { source: self.any().path, target: self.path() };
                self.ask("rename", &op);
            }
            9 | 10 => {
                let (source, target, overwrite) = (self.any().path, self.path(), self.dice.one_in(2));
                let to_trash = self.dice.one_in(6);
                self.ask("rename2", &Rename2 { source, target, overwrite, to_trash });
            }
            _ => {
                let op = CreateSymlink {
                    target: self.dice.of(&["/a", "b/c", "hdfs://x/y"]).into(),
                    link: self.new_path(),
                    modes: modes(0o755),
                    create_parents: self.dice.one_in(2),
                };
                self.ask("createSymlink", &op);
            }
        }
    }

    /// What the writer of an open file does.
    fn blocks(&mut self) {
        let found = self.open();
        let (path, file, client) = (found.path, found.id, found.open.unwrap_or_else(|| "one".into()));
        let last = found.blocks.last().copied();
        let grown = last.map(|b| Block { length: b.length.max(1 + (b.id.0 * 7_919 % 1_000) as u64), ..b });
        match self.dice.below(12) {
            0..=3 => {
                let op = AddBlock {
                    path,
                    file,
                    client,
                    previous: grown,
                    previous_pool: None,
                    excluded: vec![],
                    favored: vec![],
                    no_local_write: false,
                    no_local_rack: false,
                    ignore_client_locality: false,
                };
                self.ask("addBlock", &op);
            }
            4..=6 => {
                if let Some(block) = grown.filter(|_| !self.dice.one_in(4)) {
                    self.world.received(block);
                }
                self.ask("complete", &Complete { path, file, client, last: grown, last_pool: None });
            }
            7 => {
                let last_length = grown.map_or(0, |b| b.length as i64);
                self.ask("fsync", &Fsync { path, file, client, last_length });
            }
            8 => {
                if let Some(block) = last {
                    self.ask("abandonBlock", &AbandonBlock { path, file, client, block });
                }
            }
            9 | 10 => self.pipeline(&client, last),
            _ => {
                if let Some(block) = grown {
                    self.world.received(block);
                }
            }
        }
    }

    fn pipeline(&mut self, client: &Arc<str>, last: Option<Block>) {
        let Some(old) = last else { return };
        let op = UpdateBlockForPipeline { block: old, client: client.clone() };
        let Some(located) = self.ask("updateBlockForPipeline", &op) else { return };
        let stamp = located.located.block.stamp;
        if self.dice.one_in(4) {
            return; // the client dies
        }
        let new = Block { stamp, length: old.length, ..old };
        let op = UpdatePipeline { client: client.clone(), old, new, targets: vec![("uuid-1".into(), "DS-1".into())] };
        self.ask("updatePipeline", &op);
    }

    fn attributes(&mut self) {
        let path = self.any().path;
        match self.dice.below(9) {
            0 => {
                let mode = Mode::new(0o700 + self.dice.below(64) as u16);
                _ = self.ask("setPermission", &SetPermission { path, mode });
            }
            1 => {
                let user = self.dice.of(&[None, Some("alice"), Some("bob")]).map(Into::into);
                _ = self.ask("setOwner", &SetOwner { path, user, group: Some("staff".into()) });
            }
            2 => _ = self.ask("setTimes", &SetTimes { path, mtime: TimeMs(5), atime: TimeMs(-1) }),
            3 => {
                let replication = 1 + self.dice.below(4) as u16;
                _ = self.ask("setReplication", &SetReplication { path, replication });
            }
            4 | 5 => {
                let kind = self.dice.of(&[None, None, Some(StorageKind::Disk), Some(StorageKind::Ssd)]);
                let names = if kind.is_some() { i64::MAX } else { self.dice.of(&[-1, 20, 100, i64::MAX]) };
                let space = self.dice.of(&[-1, -1, 20_000, 1 << 20, i64::MAX]);
                _ = self.ask("setQuota", &SetQuota { path, names, space, kind });
            }
            6 => {
                let policy = self.dice.of(&[None, Some("COLD"), Some("HOT"), Some("WARM"), Some("nothing")]);
                _ = self.ask("setStoragePolicy", &SetStoragePolicy { path, policy: policy.map(Into::into) });
            }
            _ => {
                let entries = self.entries();
                let change = match self.dice.below(6) {
                    0 => AclChange::RemoveDefault,
                    1 => AclChange::RemoveAll,
                    2 => AclChange::Remove(entries),
                    3 => AclChange::Set(entries),
                    _ => AclChange::Modify(entries),
                };
                _ = self.ask("acl", &ChangeAcl { path, change });
            }
        }
    }

    fn rare(&mut self) {
        match self.dice.below(12) {
            0..=2 => {
                let (path, client, new_block) = (self.file().path, self.client(), self.dice.one_in(2));
                self.ask("append", &Append { path, client, new_block });
            }
            3 | 4 => {
                let file = self.file();
                let new_length = self.dice.below(file.length as usize + 2) as i64;
                let client = self.client();
                let keeps_blocks = self.dice.one_in(2);
                self.ask("truncate", &Truncate { path: file.path, new_length, client, keeps_blocks });
            }
            5 | 6 => {
                if self.dice.one_in(2) {
                    ["/joined", "/part"].iter().for_each(|path| self.put(path));
                    self.ask("concat", &Concat { target: b"/joined".to_vec(), sources: vec![b"/part".to_vec()] });
                    return;
                }
                let target = self.any_where(|found| found.open.is_none() && !found.blocks.is_empty());
                let parent = vocab::path::parent(&target.path).map(<[u8]>::to_vec);
                let joins = |found: &&Found| {
                    found.open.is_none()
                        && !found.blocks.is_empty()
                        && found.path != target.path
                        && vocab::path::parent(&found.path) == parent.as_deref()
                };
                let mut sources: Vec<Vec<u8>> = self.all.iter().filter(joins).map(|found| found.path.clone()).collect();
                sources.truncate(1 + self.dice.below(2));
                sources.extend(self.dice.one_in(5).then(|| self.file().path));
                self.ask("concat", &Concat { target: target.path, sources });
            }
            7 | 8 => {
                let namespace =
                    self.dice.of(&[XattrNamespace::User, XattrNamespace::Trusted, XattrNamespace::Security]);
                let name = self.dice.of(&["x", "\u{e9}"]).into();
                let value: Arc<[u8]> = vec![self.dice.below(256) as u8; self.dice.below(40)].into();
                let path = if self.dice.one_in(2) { b"/".to_vec() } else { self.any().path };
                let (path, xattr) = (path, Xattr { namespace, name, value });
                if self.dice.one_in(3) {
                    self.ask("removeXattr", &RemoveXattr { path, xattr });
                } else {
                    self.ask("setXattr", &SetXattr { path, xattr, given: true, create: true, replace: true });
                }
            }
            9 => {
                let (path, client) = (self.open().path, self.client());
                self.ask("recoverLease", &RecoverLease { path, client });
            }
            10 => self.recovered(),
            _ => {
                self.world.now.monotonic.0 += 400_000;
                self.world.now.wall.0 += 400_000;
                self.world.turn(&self.users[0], |turn| check_leases(turn, || "HDFS_NameNode-1".into()));
            }
        }
    }

    /// A closed file of one block, as far as quotas let it be made.
    fn put(&mut self, path: &str) {
        let (root, client): (Who, Arc<str>) = (self.users[0].clone(), "putter".into());
        let path = path.as_bytes().to_vec();
        let create = Create {
            path: path.clone(),
            modes: modes(0o644),
            client: client.clone(),
            create: true,
            overwrite: true,
            create_parents: true,
            replication: 2,
            block_size: 1_000,
            lazy_persist: false,
            should_replicate: false,
            erasure_coding_policy: None,
            storage_policy: None,
            versions: Vec::new(),
            data_key: None,
        };
        let Ok(status) = self.world.write(&root, &create) else { return };
        let add = AddBlock {
            path: path.clone(),
            file: status.id,
            client: client.clone(),
            previous: None,
            previous_pool: None,
            excluded: vec![],
            favored: vec![],
            no_local_write: false,
            no_local_rack: false,
            ignore_client_locality: false,
        };
        let last = self.world.write(&root, &add).ok().map(|b| Block { length: 500, ..b.located.block });
        if let Some(block) = last {
            self.world.received(block);
        }
        // without a block it is closed empty, and a concat is refused
        drop(self.world.write(&root, &Complete { path, file: status.id, client, last, last_pool: None }));
    }

    /// A DataNode says how the recovery of a block ended.
    fn recovered(&mut self) {
        let found = self.open();
        let Some(block) = found.blocks.last().copied() else { return };
        // where a truncate makes it of another block, that one is named
        let cut = self.world.state.blocks.construction(block.id).and_then(|c| c.truncate);
        let op = CommitBlockSynchronization {
            pool: "BP-1".into(),
            block: cut.filter(|old| old.id != block.id).unwrap_or(block),
            new_stamp: GenerationStamp(self.world.state.sequences.stamp.0 - self.dice.below(2) as i64),
            new_length: self.dice.below(block.length as usize + 1) as u64,
            close_file: true,
            delete_block: self.dice.one_in(6),
            targets: vec![(DataNode::new(1).id(), "DS-1".into())],
        };
        let done = self.world.turn(&self.users[0], |turn| op.run(turn)).is_ok();
        let count = self.done.entry("commitBlockSynchronization").or_default();
        *count = (count.0 + u64::from(done), count.1 + 1);
    }
}

fn run(seed: u64, calls: usize) -> BTreeMap<&'static str, (u64, u64)> {
    let mut world = World::new();
    world.settings.symlinks = true;
    let mut wide = Wide { all: look(&world), world, dice: Dice(seed), users: users(), done: BTreeMap::new() };
    for number in 0..calls {
        wide.world.now.monotonic.0 += 1;
        wide.world.now.wall.0 += 1;
        wide.step();
        let what = || format!("seed {seed}, call {number}");
        if number % 25 == 0 {
            wide.all = look(&wide.world);
        }
        if number % 250 == 249 {
            wide.world.check_replayed(&what());
            wide.world.check_reloaded(&what());
            wide.world.check_restored(&what());
        }
        if number % 4_000 == 3_999 {
            wide.world.restart();
            wide.world.check_replayed(&format!("{}, restarted", what()));
        }
    }
    wide.world.check_prefixes(97, &format!("seed {seed}"));
    println!("{calls} calls, {} records", wide.world.journal.records());
    wide.done
}

#[test]
fn the_laws_hold_for_every_kind_of_call() {
    let mut all: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    let calls = super::fuzz::calls() / 4;
    for seed in 1..=4 {
        for (name, (done, asked)) in run(seed, calls) {
            let sum = all.entry(name).or_default();
            *sum = (sum.0 + done, sum.1 + asked);
        }
    }
    println!("done of asked: {all:?}");
    let never: Vec<_> = all.iter().filter(|(_, (done, _))| *done == 0).map(|(name, _)| *name).collect();
    assert!(never.is_empty() || calls < 1_000, "never done: {never:?}");
}
