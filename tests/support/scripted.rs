//! A scripted DataNode below the wire: what it holds, and the calls it makes to the block half of a state.

use blocks::{
    Blocks, DEFAULT_RACK, DatanodeId, Heartbeat, HeartbeatAnswer, IncrementalEntry, IncrementalKind, Registration,
    ReportStart, Reported, Resolved, StorageInfo, VolumeId, VolumeReport, VolumeState,
};
use record::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::time::Now;
use vocab::{Block, BlockId, Refusal, ReplicaState, StorageKind};

/// Bytes of every volume.
const CAPACITY: u64 = 100 << 30;
/// Bytes of memory for blocks.
const CACHE: u64 = 2_000;

/// What belongs to the file system of the tests.
pub fn own() -> StorageInfo {
    StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-x".into(), c_time: 0 }
}

/// A replica as a full report says it, and the volume that has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub block: Block,
    pub state: ReplicaState,
    pub volume: usize,
}

/// One DataNode. It outlives the NameNode.
#[derive(Clone, Debug)]
pub struct DataNode {
    pub number: u32,
    pub rack: Arc<str>,
    /// Kind of each volume.
    pub volumes: Vec<StorageKind>,
    pub held: BTreeMap<BlockId, Held>,
    /// What it keeps in memory.
    pub cached: BTreeSet<BlockId>,
}

impl DataNode {
    /// Node `number` with one disk in the default rack.
    pub fn new(number: u32) -> DataNode {
        let (held, cached) = (BTreeMap::new(), BTreeSet::new());
        DataNode { number, rack: DEFAULT_RACK.into(), volumes: vec![StorageKind::Disk], held, cached }
    }

    pub fn uuid(&self) -> String {
        format!("uuid-{}", self.number)
    }

    pub fn id(&self) -> DatanodeId {
        DatanodeId {
            ip: format!("10.0.0.{}", self.number).into(),
            host: format!("dn{}", self.number).into(),
            uuid: self.uuid().into(),
            transfer_port: 9866,
            info_port: 9864,
            info_secure_port: 0,
            ipc_port: 9867,
        }
    }

    pub fn registration(&self) -> Registration {
        let storage = StorageInfo { layout_version: -57, ..own() };
        Registration { id: self.id(), software_version: "3.5.0".into(), storage }
    }

    /// Volume `at`: `DS-1` is the first of node 1, `DS-1-1` its second.
    pub fn volume(&self, at: usize) -> VolumeId {
        let id = if at == 0 { format!("DS-{}", self.number) } else { format!("DS-{}-{at}", self.number) };
        VolumeId { id: id.into(), state: VolumeState::Normal, kind: self.volumes[at] }
    }

    pub fn register(&self, blocks: &mut Blocks, now: Now) -> Result<(), Refusal> {
        let resolved = Resolved { location: Some(self.rack.clone()), ..Resolved::default() };
        blocks.register(self.registration(), &resolved, &own(), "3.5.0", now).map(drop)
    }

    /// A heartbeat: all volumes have room.
    pub fn beat(&self, blocks: &mut Blocks, store: &mut Store, now: Now) -> Result<HeartbeatAnswer, Refusal> {
        let report = |at: usize| VolumeReport {
            volume: self.volume(at),
            failed: false,
            capacity: CAPACITY,
            dfs_used: 0,
            remaining: CAPACITY / 10 * 9,
            block_pool_used: 0,
            non_dfs_used: 0,
            mount: None,
        };
        let length = |id: &BlockId| self.held.get(id).map_or(0, |held| held.block.length);
        let beat = Heartbeat {
            volumes: (0..self.volumes.len()).map(report).collect(),
            cache_capacity: CACHE,
            cache_used: self.cached.iter().map(length).sum(),
            ..Heartbeat::default()
        };
        blocks.heartbeat(store, &self.registration(), &beat, now)
    }

    /// A full report of every volume, taken in slices of a few replicas.
    pub fn report(&self, blocks: &mut Blocks, store: &mut Store, now: Now) -> Result<(), Refusal> {
        const SLICE: usize = 7;
        for at in 0..self.volumes.len() {
            let ReportStart::Go(mut report) = blocks.begin_report(&self.registration(), &self.volume(at), now)? else {
                continue;
            };
            let here = self.held.values().filter(|held| held.volume == at);
            let mut replicas = here.map(|held| Reported { block: held.block, state: held.state });
            while blocks.report_slice(store, &mut report, &mut replicas, SLICE) {}
            while blocks.finish_report(store, &mut report, SLICE, now) {}
        }
        blocks.end_report(&self.registration(), None);
        Ok(())
    }

    /// Registers, says that it lives and what it has.
    pub fn join(&self, blocks: &mut Blocks, store: &mut Store, now: Now) {
        self.register(blocks, now).expect("registers");
        self.beat(blocks, store, now).expect("heartbeat");
        self.report(blocks, store, now).expect("report");
    }

    /// Tells at once what became of a replica on a volume.
    pub fn notify(
        &self,
        blocks: &mut Blocks,
        store: &mut Store,
        (block, kind, at): (Block, IncrementalKind, usize),
        now: Now,
    ) -> Result<(), Refusal> {
        let Some(node) = blocks.node_by_uuid(&self.uuid()).map(|node| node.number) else {
            return Err(Refusal::io("never registered"));
        };
        let entries = [IncrementalEntry { block, kind, delete_hint: None }].into_iter();
        blocks.incremental_report(store, node, &self.volume(at), entries, now)
    }

    /// A replica was written to a volume, or is there with another length or stamp.
    pub fn receive(&mut self, blocks: &mut Blocks, store: &mut Store, (block, at): (Block, usize), now: Now) {
        self.held.insert(block.id, Held { block, state: ReplicaState::Finalized, volume: at });
        self.notify(blocks, store, (block, IncrementalKind::Received, at), now).expect("report");
    }
}
