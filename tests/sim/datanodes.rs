//! Scripted DataNodes: they hold what clients wrote, report it, and do what they are told.

use super::node::now;
use blocks::{
    Command, DEFAULT_RACK, DatanodeId, Heartbeat, IncrementalEntry, IncrementalKind, Registration, ReportStart,
    Reported, Resolved, StorageInfo, VolumeId, VolumeReport, VolumeState,
};
use engine::Engine;
use ops::datanode::Work;
use os::Os;
use os::sim::SimDisk;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{Block, BlockId, Caller, ReplicaState, StorageKind};

/// DataNodes of a cluster.
pub const COUNT: u32 = 3;

/// All of them, with what they hold. They outlive the NameNode.
pub struct Datanodes {
    /// Whether commands wait at the fence. Always, but in tests of the tests.
    pub fenced: bool,
    /// Finalized replicas, the same ones on every node unless deleted there.
    held: BTreeMap<u32, BTreeMap<BlockId, Block>>,
    /// Every replica that a NameNode has ever ordered to be deleted, with the node.
    pub ordered: Vec<(u32, Block)>,
    /// All blocks that were ever written.
    written: BTreeSet<BlockId>,
}

fn own() -> StorageInfo {
    StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-x".into(), c_time: 0 }
}

fn registration(n: u32) -> Registration {
    Registration {
        id: DatanodeId {
            ip: format!("10.0.0.{n}").into(),
            host: format!("dn{n}").into(),
            uuid: format!("uuid-{n}").into(),
            transfer_port: 9866,
            info_port: 9864,
            info_secure_port: 0,
            ipc_port: 9867,
        },
        software_version: "3.5.0".into(),
        storage: StorageInfo { layout_version: -57, ..own() },
    }
}

fn volume(n: u32) -> VolumeId {
    VolumeId { id: format!("DS-{n}").into(), state: VolumeState::Normal, kind: StorageKind::Disk }
}

fn beat(n: u32) -> Heartbeat {
    let report = VolumeReport {
        volume: volume(n),
        failed: false,
        capacity: 100 << 30,
        dfs_used: 0,
        remaining: 90 << 30,
        block_pool_used: 0,
        non_dfs_used: 0,
        mount: None,
    };
    Heartbeat { volumes: vec![report], ..Heartbeat::default() }
}

impl Default for Datanodes {
    fn default() -> Datanodes {
        Datanodes { fenced: true, held: BTreeMap::new(), ordered: Vec::new(), written: BTreeSet::new() }
    }
}

impl Datanodes {
    /// Registers all and sends their full reports.
    pub fn join(&self, engine: &Engine, os: &Os, caller: &Caller) {
        for n in 1..=COUNT {
            let resolved = Resolved { location: Some(DEFAULT_RACK.into()), ..Resolved::default() };
            engine.turn("join", caller, |turn| {
                let state = turn.soft();
                state.blocks.register(registration(n), &resolved, &own(), "3.5.0", now(os)).expect("registers");
                state.blocks.heartbeat(&mut state.store, &registration(n), &beat(n), now(os)).expect("heartbeat");
                let started = state.blocks.begin_report(&registration(n), &volume(n), now(os)).expect("report");
                let ReportStart::Go(mut report) = started else { panic!("the first report is taken") };
                let held = self.held.get(&n).into_iter().flatten();
                let mut replicas = held.map(|(_, b)| Reported { block: *b, state: ReplicaState::Finalized });
                while state.blocks.report_slice(&mut state.store, &mut report, &mut replicas, 7) {}
                while state.blocks.finish_report(&mut state.store, &mut report, 7, now(os)) {}
                state.blocks.end_report(&registration(n), None);
            });
        }
    }

    /// A client has written a block to all of them, or wrote it with another length or stamp.
    pub fn write(&mut self, engine: &Engine, os: &Os, caller: &Caller, block: Block) {
        self.written.insert(block.id);
        for n in 1..=COUNT {
            self.held.entry(n).or_default().insert(block.id, block);
            engine.turn("received", caller, |turn| {
                let state = turn.soft();
                let node = state.blocks.node_by_uuid(&format!("uuid-{n}")).expect("registered").number;
                let entry = IncrementalEntry { block, kind: IncrementalKind::Received, delete_hint: None };
                let entries = [entry].into_iter();
                state.blocks.incremental_report(&mut state.store, node, &volume(n), entries, now(os)).expect("report");
            });
        }
    }

    /// How many nodes have a block; `None` if it was never written.
    pub fn holders(&self, id: BlockId) -> Option<usize> {
        self.written.contains(&id).then(|| self.held.values().filter(|held| held.contains_key(&id)).count())
    }

    /// One round of block work.
    pub fn work(engine: &Engine, os: &Os, work: &mut Work) {
        while engine.lock().write("blockWork", |state| work.step(state, now(os))) {}
    }

    /// A heartbeat of each node. The commands in the answers, once they have passed the fence, are done.
    pub async fn beat(this: &RefCell<Datanodes>, engine: &Engine, (os, disk): (&Os, &SimDisk), caller: &Caller) {
        for n in 1..=COUNT {
            let decided = engine.turn("sendHeartbeat", caller, |turn| {
                let state = turn.soft();
                state.blocks.heartbeat(&mut state.store, &registration(n), &beat(n), now(os)).expect("heartbeat")
            });
            let fenced = this.borrow().fenced;
            let commands = if fenced { engine.fence(decided).await } else { decided.answer }.commands;
            if disk.stopped() {
                return; // the process is no more: nobody gets these commands
            }
            for command in commands {
                if let Command::Invalidate(list) = command {
                    let mut nodes = this.borrow_mut();
                    for block in list {
                        nodes.held.entry(n).or_default().remove(&block.id);
                        nodes.ordered.push((n, block));
                    }
                }
            }
        }
    }
}
