//! Tests of the block half with scripted DataNodes.

mod admin;
mod apart;
mod caching;
mod deletions;
mod hints;
mod placement;
mod recovery;
mod redundancy;
mod registration;
mod reports;
mod safe_mode;
mod slow;
mod striped;
mod twin;

use crate::*;
use record::{BlockHandle, BlockInfo, Store};
use vocab::time::{MonotonicMs, Now};
use vocab::{Block, BlockId, BlockState, GenerationStamp, ReplicaState, StorageKind, TimeMs};

const GIB: u64 = 1 << 30;

/// A NameNode's block half with a store and a clock.
pub(crate) struct World {
    pub store: Store,
    pub blocks: Blocks,
    pub now: Now,
    pub own: StorageInfo,
}

impl World {
    /// Out of safe mode, with an empty store.
    pub fn new(settings: Settings) -> World {
        let mut world = World::stopped(settings);
        world.start(0);
        world
    }
    /// Not started yet: blocks added now are as loaded.
    pub fn stopped(settings: Settings) -> World {
        let now = Now { wall: TimeMs(1_000_000), monotonic: MonotonicMs(1_000_000) };
        let own = StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-x".into(), c_time: 0 };
        World { store: Store::new(), blocks: Blocks::new(settings, 1), now, own }
    }
    pub fn start(&mut self, open: u64) {
        self.blocks.start(&self.store, open, GenerationStamp(2_000), self.now);
    }
    pub fn pass(&mut self, ms: u64) {
        self.now.monotonic.0 += ms;
        self.now.wall.0 += ms as i64;
    }
    pub fn registration(&self, n: u32) -> Registration {
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
            storage: StorageInfo { layout_version: -57, ..self.own.clone() },
        }
    }
    /// Registers node `n` on a rack and sends a first heartbeat and an empty report.
    pub fn node_on(&mut self, n: u32, rack: &str) -> NodeNumber {
        self.register_on(n, rack);
        self.beat(n);
        self.report(n, &[]);
        self.number(n)
    }
    pub fn node(&mut self, n: u32) -> NodeNumber {
        self.node_on(n, DEFAULT_RACK)
    }
    pub fn register_on(&mut self, n: u32, rack: &str) {
        let resolved = Resolved { location: Some(rack.into()), ..Resolved::default() };
        let r = self.registration(n);
        self.blocks.register(r, &resolved, &self.own.clone(), "3.5.0", self.now).expect("registers");
    }
    pub fn number(&self, n: u32) -> NodeNumber {
        self.blocks.node_by_uuid(&format!("uuid-{n}")).expect("registered").number
    }
    pub fn volume_id(&self, n: u32) -> VolumeId {
        VolumeId { id: format!("DS-{n}").into(), state: VolumeState::Normal, kind: StorageKind::Disk }
    }
    pub fn figures(&self, n: u32) -> Heartbeat {
        Heartbeat {
            volumes: vec![VolumeReport {
                volume: self.volume_id(n),
                failed: false,
                capacity: 100 * GIB,
                dfs_used: GIB,
                remaining: 90 * GIB,
                block_pool_used: GIB,
                non_dfs_used: 0,
                mount: None,
            }],
            ..Heartbeat::default()
        }
    }
    pub fn beat(&mut self, n: u32) -> Vec<Command> {
        let figures = self.figures(n);
        let id = self.registration(n);
        self.blocks.heartbeat(&mut self.store, &id, &figures, self.now).expect("heartbeat").commands
    }
    /// A full report of finalized replicas of the node's one volume.
    pub fn report(&mut self, n: u32, replicas: &[Block]) {
        let list: Vec<Reported> =
            replicas.iter().map(|b| Reported { block: *b, state: ReplicaState::Finalized }).collect();
        self.report_states(n, &list);
    }
    pub fn report_states(&mut self, n: u32, replicas: &[Reported]) {
        let id = self.registration(n);
        let volume = self.volume_id(n);
        match self.blocks.begin_report(&id, &volume, self.now).expect("report") {
            ReportStart::Discarded => {}
            ReportStart::Go(mut report) => {
                let mut list = replicas.iter().copied();
                while self.blocks.report_slice(&mut self.store, &mut report, &mut list, 3) {}
                while self.blocks.finish_report(&mut self.store, &mut report, 3, self.now) {}
            }
        }
        self.blocks.end_report(&id, None);
    }
    pub fn incremental(&mut self, n: u32, block: Block, kind: IncrementalKind) {
        let (node, volume) = (self.number(n), self.volume_id(n));
        let entry = IncrementalEntry { block, kind, delete_hint: None };
        self.blocks
            .incremental_report(&mut self.store, node, &volume, [entry].into_iter(), self.now)
            .expect("incremental report");
    }
    pub fn received(&mut self, n: u32, block: Block) {
        self.incremental(n, block, IncrementalKind::Received);
    }
    /// A complete block that nobody holds.
    pub fn block(&mut self, id: i64, replication: u16) -> (BlockHandle, Block) {
        self.block_in(id, replication, BlockState::Complete)
    }
    pub fn block_in(&mut self, id: i64, replication: u16, state: BlockState) -> (BlockHandle, Block) {
        let block = Block { id: BlockId(id), length: 10, stamp: GenerationStamp(1_001) };
        let b = self.store.add_block(&BlockInfo { block, replication, state, ..BlockInfo::default() });
        if state == BlockState::Complete {
            self.blocks.block_added(&self.store, b);
        } else {
            self.blocks.block_opened(&self.store, b);
        }
        (b, block)
    }
    pub fn holders(&self, id: i64) -> Vec<NodeNumber> {
        let Some(b) = self.store.find_block(BlockId(id)) else { return Vec::new() };
        let mut list: Vec<_> =
            self.store.replicas(b).iter().filter_map(|r| self.blocks.volume_info(r.storage)).map(|v| v.node).collect();
        list.sort_unstable();
        list
    }
    /// One whole redundancy round.
    pub fn round(&mut self) {
        let mut round = self.blocks.begin_round(self.now);
        while self.blocks.round_step(&mut self.store, &mut round, 100, self.now) {}
    }
    pub fn drain(&mut self) {
        while self.blocks.drain(&mut self.store, 7) {}
    }
    pub fn remove(&mut self, id: i64) {
        let b = self.store.find_block(BlockId(id)).expect("there");
        self.blocks.block_removed(&mut self.store, b);
        self.store.remove_block(b);
    }
    pub fn check(&self) {
        let findings = self.blocks.check(&self.store);
        assert!(findings.is_empty(), "{findings:#?}");
    }
    /// Blocks that node `n` is told to delete by its next heartbeat.
    pub fn deletions(&mut self, n: u32) -> Vec<i64> {
        let mut ids: Vec<i64> = self
            .beat(n)
            .into_iter()
            .flat_map(|c| if let Command::Invalidate(list) = c { list } else { Vec::new() })
            .map(|b| b.id.0)
            .collect();
        ids.sort_unstable();
        ids
    }
    /// Copies that node `n` is told to send by its next heartbeat: block and target nodes.
    pub fn transfers(&mut self, n: u32) -> Vec<(i64, Vec<NodeNumber>)> {
        self.beat(n)
            .into_iter()
            .flat_map(|c| if let Command::Transfer(list) = c { list } else { Vec::new() })
            .map(|t| (t.block.id.0, t.targets.iter().map(|t| t.node).collect()))
            .collect()
    }
}
