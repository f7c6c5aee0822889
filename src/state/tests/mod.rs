//! What `fit` says of every record, rule by rule (edit/FORMAT.md), and what `apply` makes of those that look odd.

mod caches;
mod counted;
mod mismatches;
mod odd;
mod persist;
mod rules;
mod shown;

use crate::{Applied, Effects, Fit, Mismatch, Mode, RootAttributes, State};
use edit::Record;
use edit::record::{AddClose, Permission};
use edit::rules::Rule;
use vocab::{Block, BlockId, GenerationStamp, InodeId, Policy, TimeMs};

pub(super) struct World {
    pub state: State,
    policy: Policy,
    next: i64,
}

fn permission() -> Permission<'static> {
    Permission { user: "u".into(), group: "g".into(), mode: 0o644 }
}

pub(super) fn block(id: i64, stamp: i64, length: u64) -> Block {
    Block { id: BlockId(id), length, stamp: GenerationStamp(stamp) }
}

impl World {
    pub fn new() -> World {
        let root = RootAttributes { user: "hdfs", group: "supergroup", mode: vocab::Mode::new(0o755) };
        World { state: State::new(root), policy: Policy::default(), next: InodeId::ROOT.0 }
    }
    pub fn fit(&self, record: &Record<'_>) -> Fit {
        self.state.fit(record, &self.policy)
    }
    /// Applies a record that must fit; the tree must be sound afterwards.
    pub fn apply(&mut self, record: &Record<'_>) -> Applied {
        let Fit::Fits(fitted) = self.fit(record) else { panic!("{:?}: {record:?}", self.fit(record)) };
        let applied = self.state.apply(record, fitted, &self.policy, Mode::Restart, &mut Effects::new(Mode::Restart));
        assert_eq!(self.state.tree.check(&self.state.store), Vec::<String>::new(), "{record:?}");
        applied
    }
    pub fn id(&mut self) -> InodeId {
        self.next += 1;
        InodeId(self.next)
    }
    pub fn mkdir_record(&mut self, path: &'static str) -> Record<'static> {
        Record::Mkdir {
            inode_id: self.id(),
            path: path.as_bytes().into(),
            mtime: TimeMs(1),
            atime: TimeMs(1),
            permission: permission(),
            acl: vec![],
            xattrs: vec![],
        }
    }
    pub fn mkdir(&mut self, path: &'static str) {
        let record = self.mkdir_record(path);
        self.apply(&record);
    }
    pub fn add_record(&mut self, path: &'static str, blocks: Vec<Block>) -> AddClose<'static> {
        AddClose {
            inode_id: self.id(),
            path: path.as_bytes().into(),
            replication: 2,
            mtime: TimeMs(2),
            atime: TimeMs(2),
            block_size: 100,
            blocks,
            permission: permission(),
            acl: vec![],
            xattrs: vec![],
            client_name: "client".into(),
            client_machine: "host".into(),
            overwrite: false,
            storage_policy: 0,
            erasure_coding_policy: 0,
            rpc: None,
        }
    }
    /// An open file with these blocks.
    pub fn open(&mut self, path: &'static str, blocks: &[Block]) -> InodeId {
        let add = self.add_record(path, blocks.to_vec());
        let id = add.inode_id;
        self.apply(&Record::Add(Box::new(add)));
        id
    }
    pub fn close_record(path: &'static str, blocks: &[Block]) -> Record<'static> {
        let mut w = World::new();
        Record::Close(Box::new(AddClose { inode_id: InodeId(0), ..w.add_record(path, blocks.to_vec()) }))
    }
    /// A closed file with these blocks.
    pub fn file(&mut self, path: &'static str, blocks: &[Block]) -> InodeId {
        let id = self.open(path, blocks);
        self.apply(&World::close_record(path, blocks));
        id
    }
    pub fn find(&self, path: &str) -> Option<record::InodeHandle> {
        self.state.tree.resolve(&self.state.store, path.as_bytes()).unwrap().last()
    }
    pub fn blocks(&self, path: &str) -> Vec<Block> {
        let file = self.find(path).expect("a file");
        self.state.store.blocks_of(file).iter().map(|b| self.state.store.block_core(*b)).collect()
    }
    pub fn is_open(&self, path: &str) -> bool {
        self.state.is_open(self.find(path).expect("a file"))
    }
    pub fn expect_no_op(&self, record: &Record<'_>, rule: Rule) {
        match self.fit(record) {
            Fit::NoOp(found) => assert_eq!(found, rule, "{record:?}"),
            other => panic!("{other:?}: {record:?}"),
        }
    }
    pub fn expect_mismatch(&self, record: &Record<'_>) -> String {
        match self.fit(record) {
            Fit::Mismatch(Mismatch(text)) => text,
            other => panic!("{other:?}: {record:?}"),
        }
    }
}

pub(super) fn delete(path: &'static str) -> Record<'static> {
    Record::Delete { path: path.as_bytes().into(), time: TimeMs(9), rpc: None }
}
pub(super) fn rename_old(src: &'static str, dst: &'static str) -> Record<'static> {
    Record::RenameOld { src: src.as_bytes().into(), dst: dst.as_bytes().into(), time: TimeMs(9), rpc: None }
}
pub(super) fn update_blocks(path: &'static str, blocks: &[Block]) -> Record<'static> {
    Record::UpdateBlocks { path: path.as_bytes().into(), blocks: blocks.to_vec(), rpc: None }
}
pub(super) fn add_block(path: &'static str, penultimate: Option<Block>, last: Block) -> Record<'static> {
    Record::AddBlock { path: path.as_bytes().into(), penultimate, last, rpc: None }
}
pub(super) fn truncate(path: &'static str, new_length: u64, block: Option<Block>) -> Record<'static> {
    Record::Truncate {
        path: path.as_bytes().into(),
        client_name: "cutter".into(),
        client_machine: "host".into(),
        new_length,
        time: TimeMs(9),
        block,
    }
}
