use super::*;
use crate::{Log, Settings, Turn};
use blocks::{
    Command, Heartbeat, Registration, ReportStart, Reported, Resolved, StorageInfo, VolumeId, VolumeReport, VolumeState,
};
use edit::Record;
use edit::record::{AddClose, Permission};
use state::{Effects, Mode, RootAttributes, State};
use std::sync::Arc;
use vocab::time::{MonotonicMs, Now};
use vocab::{
    Block, BlockId, BlockState, Caller, GenerationStamp, InodeId, Policy, Refusal, ReplicaState, StorageKind, TimeMs,
    Txid,
};

/// A state, a log of what was written, and three DataNodes.
struct World {
    state: State,
    log: Records,
    settings: Settings,
    policy: Policy,
    now: Now,
    caller: Caller,
    own: StorageInfo,
}

#[derive(Default)]
struct Records(Vec<Record<'static>>);

fn owned(record: &Record<'_>) -> Record<'static> {
    match record.clone() {
        Record::Add(a) => Record::Add(Box::new(owned_add(*a))),
        Record::Close(a) => Record::Close(Box::new(owned_add(*a))),
        Record::UpdateBlocks { path, blocks, rpc } => {
            Record::UpdateBlocks { path: path.into_owned().into(), blocks, rpc }
        }
        Record::AddBlock { path, penultimate, last, rpc } => {
            Record::AddBlock { path: path.into_owned().into(), penultimate, last, rpc }
        }
        Record::ReassignLease { holder, path, new_holder } => Record::ReassignLease {
            holder: holder.into_owned().into(),
            path: path.into_owned().into(),
            new_holder: new_holder.into_owned().into(),
        },
        Record::SetGenstampV2 { stamp } => Record::SetGenstampV2 { stamp },
        Record::AllocateBlockId { id } => Record::AllocateBlockId { id },
        other => panic!("not used here: {other:?}"),
    }
}

fn owned_add(a: AddClose<'_>) -> AddClose<'static> {
    AddClose {
        path: a.path.into_owned().into(),
        permission: Permission {
            user: a.permission.user.into_owned().into(),
            group: a.permission.group.into_owned().into(),
            mode: a.permission.mode,
        },
        client_name: a.client_name.into_owned().into(),
        client_machine: a.client_machine.into_owned().into(),
        inode_id: a.inode_id,
        replication: a.replication,
        mtime: a.mtime,
        atime: a.atime,
        block_size: a.block_size,
        blocks: a.blocks,
        acl: a.acl,
        xattrs: a.xattrs,
        overwrite: a.overwrite,
        storage_policy: a.storage_policy,
        erasure_coding_policy: a.erasure_coding_policy,
        rpc: a.rpc,
    }
}

impl Log for Records {
    fn append(&mut self, record: &Record<'_>) -> Txid {
        self.0.push(owned(record));
        Txid(self.0.len() as u64)
    }
    fn append_lazy(&mut self, record: &Record<'_>) -> Txid {
        self.append(record)
    }
}

fn root() -> RootAttributes<'static> {
    RootAttributes { user: "hdfs", group: "supergroup", mode: vocab::Mode::new(0o755) }
}

impl World {
    fn new() -> World {
        let now = Now { wall: TimeMs(1_000_000), monotonic: MonotonicMs(1_000_000) };
        let caller = Caller {
            user: "hdfs".into(),
            real_user: None,
            groups: Arc::from([]),
            method: vocab::AuthenticationMethod::Simple,
            address: ([127, 0, 0, 1], 1).into(),
            rpc_ids: None,
            retry: 0,
            context: None,
        };
        let own = StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-x".into(), c_time: 0 };
        let mut w = World {
            state: State::new(root()),
            log: Records::default(),
            settings: Settings::default(),
            policy: Policy::default(),
            now,
            caller,
            own,
        };
        w.state.blocks.start(&w.state.store, 0, GenerationStamp(1_000), now);
        (1..=3).for_each(|n| w.node(n));
        w
    }

    fn turn<R>(&mut self, f: impl FnOnce(&mut Turn<'_>) -> R) -> R {
        let mut effects = Effects::new(Mode::Live);
        let (settings, policy) = (&self.settings, &self.policy);
        f(&mut Turn::new(&mut self.state, &mut self.log, settings, policy, self.now, &self.caller, &mut effects))
    }

    fn registration(&self, n: u32) -> Registration {
        let id = blocks::DatanodeId {
            ip: format!("10.0.0.{n}").into(),
            host: format!("dn{n}").into(),
            uuid: format!("uuid-{n}").into(),
            transfer_port: 9866,
            ..Default::default()
        };
        Registration { id, software_version: "3.5.0".into(), storage: self.own.clone() }
    }
    fn volume(n: u32) -> VolumeId {
        VolumeId { id: format!("DS-{n}").into(), state: VolumeState::Normal, kind: StorageKind::Disk }
    }
    fn node(&mut self, n: u32) {
        let r = self.registration(n);
        self.state.blocks.register(r, &Resolved::default(), &self.own, "3.5.0", self.now).expect("registers");
        self.beat(n);
        self.report(n, &[]);
    }
    fn beat(&mut self, n: u32) -> Vec<Command> {
        let size = 1 << 40;
        let volume = VolumeReport {
            volume: World::volume(n),
            failed: false,
            capacity: size,
            dfs_used: 0,
            remaining: size,
            block_pool_used: 0,
            non_dfs_used: 0,
            mount: None,
        };
        let beat = Heartbeat { volumes: vec![volume], ..Heartbeat::default() };
        let who = self.registration(n);
        self.state.blocks.heartbeat(&mut self.state.store, &who, &beat, self.now).expect("heartbeat").commands
    }
    fn report(&mut self, n: u32, replicas: &[Reported]) {
        let who = self.registration(n);
        let State { blocks, store, .. } = &mut self.state;
        let Ok(ReportStart::Go(mut report)) = blocks.begin_report(&who, &World::volume(n), self.now) else {
            panic!("taken")
        };
        let mut list = replicas.iter().copied();
        while blocks.report_slice(store, &mut report, &mut list, 10) {}
        while blocks.finish_report(store, &mut report, 10, self.now) {}
    }

    /// A file that client `c` writes, with one block expected on all three nodes, in recovery.
    fn recovering(&mut self) -> Block {
        let block = Block { id: BlockId((1 << 30) + 1), length: 0, stamp: GenerationStamp(1_001) };
        let add = AddClose {
            inode_id: InodeId(16_386),
            path: b"/f".as_slice().into(),
            replication: 3,
            mtime: TimeMs(1),
            atime: TimeMs(1),
            block_size: 1 << 20,
            blocks: vec![],
            permission: Permission { user: "u".into(), group: "g".into(), mode: 0o644 },
            acl: vec![],
            xattrs: vec![],
            client_name: "c".into(),
            client_machine: "m".into(),
            overwrite: false,
            storage_policy: 0,
            erasure_coding_policy: 0,
            rpc: None,
        };
        self.turn(|t| {
            t.log(Record::Add(Box::new(add)));
            t.log(Record::AllocateBlockId { id: block.id.0 });
            t.next_stamp();
            t.log(Record::AddBlock { path: b"/f".as_slice().into(), penultimate: None, last: block, rpc: None });
        });
        let b = self.state.store.find_block(block.id).expect("added");
        let on: Vec<_> = (1..=3)
            .map(|n| self.state.blocks.find_storage(&format!("uuid-{n}"), &format!("DS-{n}")).expect("there"))
            .collect();
        self.state.blocks.begin_construction(&self.state.store, b, &on);
        let file = self.state.store.block_file(b).expect("a file");
        let closed = self.turn(|t| t.release_lease(file, Some("NN_Recovery")));
        assert_eq!(closed, Ok(false));
        block
    }

    fn commit(&mut self, block: Block, change: impl FnOnce(&mut CommitBlockSynchronization)) -> Result<(), Refusal> {
        let mut request = CommitBlockSynchronization {
            pool: "BP-1".into(),
            block,
            new_stamp: GenerationStamp(1_002),
            new_length: 500,
            close_file: true,
            delete_block: false,
            targets: (1..=2).map(|n| (self.registration(n).id, format!("DS-{n}"))).collect(),
        };
        change(&mut request);
        self.turn(|t| request.run(t))
    }

    /// The digest law: what the log says makes the same state.
    fn check(&self) {
        assert_eq!(self.state.blocks.check(&self.state.store), Vec::<String>::new());
        let mut replayed = State::new(root());
        let mut effects = Effects::new(Mode::Restart);
        for record in &self.log.0 {
            let state::Fit::Fits(fitted) = replayed.fit(record, &self.policy) else { panic!("{record:?}") };
            replayed.apply(record, fitted, &self.policy, Mode::Restart, &mut effects);
        }
        assert_eq!(replayed.digest(), self.state.digest());
    }
}

#[test]
fn a_recovered_file_is_closed_with_its_new_length() {
    let mut w = World::new();
    let block = w.recovering();
    let led: Vec<_> = (1..=3).flat_map(|n| w.beat(n)).collect();
    assert!(matches!(&led[..], [Command::Recover(list)] if list[0].recovery_id == 1_002), "{led:?}");
    w.commit(block, |_| {}).expect("taken over");
    let b = w.state.store.find_block(block.id).expect("there");
    let info = w.state.store.block(b);
    assert_eq!(info.state, BlockState::Complete);
    assert_eq!(info.block, Block { length: 500, stamp: GenerationStamp(1_002), ..block });
    assert!(!info.open);
    assert_eq!(w.state.blocks.count(&w.state.store, b).live, 2);
    assert!(matches!(w.log.0.last(), Some(Record::Close(c)) if c.blocks == [info.block]));
    w.check();
    w.commit(block, |_| {}).expect("a repeated call changes nothing");
    w.check();
}

#[test]
fn an_empty_block_is_removed_and_the_file_closed() {
    let mut w = World::new();
    let block = w.recovering();
    w.commit(block, |r| (r.delete_block, r.new_length) = (true, 0)).expect("taken over");
    assert!(w.state.store.find_block(block.id).is_none());
    assert!(matches!(w.log.0.last(), Some(Record::Close(c)) if c.blocks.is_empty()));
    w.check();
    w.commit(block, |r| r.delete_block = true).expect("gone already");
}

#[test]
fn a_file_that_stays_open_keeps_its_new_block() {
    let mut w = World::new();
    let block = w.recovering();
    w.commit(block, |r| r.close_file = false).expect("taken over");
    let b = w.state.store.find_block(block.id).expect("there");
    assert_eq!(w.state.store.block_state(b), BlockState::UnderConstruction);
    assert_eq!(w.state.blocks.expected(block.id).len(), 2);
    assert!(matches!(w.log.0.last(), Some(Record::UpdateBlocks { .. })));
    w.check();
}

#[test]
fn another_recovery_than_the_running_one_is_refused() {
    let mut w = World::new();
    let block = w.recovering();
    let refusal = w.commit(block, |r| r.new_stamp = GenerationStamp(1_009)).expect_err("refused");
    assert_eq!(
        refusal,
        Refusal::io("The recovery id 1009 does not match current recovery id 1002 for block BP-1:blk_1073741825_1001")
    );
    let unknown = Block { id: BlockId(9), ..block };
    assert_eq!(w.commit(unknown, |_| {}), Err(Refusal::io("Block (=BP-1:blk_9_1001) not found")));
    w.state.blocks.safe_mode.enter_manual();
    let refusal = w.commit(block, |_| {}).expect_err("safe mode");
    assert!(
        matches!(refusal, Refusal::SafeMode { what, .. } if &*what == "Cannot commitBlockSynchronization while in safe mode")
    );
    w.check();
}

#[test]
fn bad_blocks_of_a_client() {
    let mut w = World::new();
    let block = w.recovering();
    w.commit(block, |_| {}).expect("closed");
    let b = w.state.store.find_block(block.id).expect("there");
    let now = w.state.store.block_core(b);
    let place = BadPlace { node: w.registration(1).id, storage: Some("DS-1".to_owned()), kind: None };
    let bad = [BadBlock { pool: "BP-1".into(), block: now, places: vec![place] }];
    w.turn(|t| report_bad_blocks(t, &bad)).expect("known");
    assert_eq!(w.state.blocks.count(&w.state.store, b).corrupt, 1);
}

#[test]
fn steps_of_work_copy_what_is_missing() {
    let mut w = World::new();
    let block = w.recovering();
    (1..=3).for_each(|n| drop(w.beat(n)));
    w.commit(block, |_| {}).expect("closed");
    let mut work = Work::default();
    w.now.monotonic.0 += 3_000;
    while work.step(&mut w.state, w.now) {}
    let orders: Vec<_> = (1..=2).flat_map(|n| w.beat(n)).collect();
    assert!(matches!(&orders[..], [Command::Transfer(list)] if list[0].targets.len() == 1), "{orders:?}");
    // silence kills
    w.now.monotonic.0 += 700_000;
    (1..=2).for_each(|n| drop(w.beat(n)));
    while work.step(&mut w.state, w.now) {}
    assert_eq!(w.state.blocks.datanode_report(blocks::ReportKind::Dead).len(), 1);
    let r = Reported {
        block: Block { length: 500, stamp: GenerationStamp(1_002), ..block },
        state: ReplicaState::Finalized,
    };
    w.node(3);
    w.report(3, &[r]);
    let b = w.state.store.find_block(block.id).expect("there");
    assert_eq!(w.state.blocks.count(&w.state.store, b).live, 3);
    w.check();
}
