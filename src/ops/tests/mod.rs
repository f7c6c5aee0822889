//! Operations end to end on a state in memory, with scripted DataNodes. Every record that an operation logs is at once fitted and applied to a
//! second state as a restart would; `check` compares the digests: live state equals replayed state after every prefix of the log.

mod access;
mod attributes;
mod erasure_coding;
mod files;
mod golden;
mod model;
mod namespace;
mod sliced;
mod slices;
mod snapshots;
mod writers;

use crate::{Log, Settings, Turn, View, Write};
use blocks::*;
use edit::Record;
use state::{Effects, Fit, Mode, RootAttributes, State};
use std::sync::Arc;
use vocab::time::{MonotonicMs, Now};
use vocab::{AuthenticationMethod, Block, Caller, LayoutVersion, Policy, Refusal, RpcIds, StorageKind, TimeMs, Txid};

const MIB: u64 = 1 << 20;

/// The log as bytes, and a second state that every record is replayed into as it is written: through its bytes, as a restart would.
struct Twin {
    state: State,
    policy: Policy,
    frames: Vec<Vec<u8>>,
}

impl Twin {
    fn new() -> Twin {
        Twin { state: State::new(root()), policy: Policy::default(), frames: Vec::new() }
    }
}

fn replay(state: &mut State, policy: &Policy, frame: &[u8]) {
    let decoded = edit::decode(frame, LayoutVersion::CURRENT, edit::frame::RECORD_MAX);
    let Ok(edit::Decoded::Frame(found)) = decoded else { panic!("a written record does not decode: {decoded:?}") };
    match state.fit(&found.record, policy) {
        Fit::Fits(fitted) => {
            state.apply(&found.record, fitted, policy, Mode::Restart, &mut Effects::new(Mode::Restart));
        }
        other => panic!("a logged record does not fit on replay: {other:?} {:?}", found.record),
    }
}

impl Log for Twin {
    fn append(&mut self, record: &Record<'_>) -> Txid {
        let txid = Txid(self.frames.len() as u64 + 1);
        let mut frame = Vec::new();
        edit::encode(record, txid, LayoutVersion::CURRENT, &mut frame).expect("encodes");
        replay(&mut self.state, &self.policy, &frame);
        self.frames.push(frame);
        txid
    }
    fn append_lazy(&mut self, record: &Record<'_>) -> Txid {
        self.append(record)
    }
}

pub(crate) struct World {
    pub state: State,
    twin: Twin,
    pub settings: Settings,
    pub policy: Policy,
    pub now: Now,
    own: StorageInfo,
    calls: i32,
    /// Whether `check` runs after every call.
    pub checked: bool,
    /// Whether what waits to be freed is freed after every call.
    pub reclaims: bool,
}

fn root() -> RootAttributes<'static> {
    RootAttributes { user: "super", group: "supergroup", mode: vocab::Mode::new(0o755) }
}

pub(crate) fn caller(user: &str, groups: &[&str]) -> Caller {
    Caller {
        user: user.into(),
        real_user: None,
        groups: groups.iter().map(|g| Arc::from(*g)).collect(),
        method: AuthenticationMethod::Simple,
        address: "10.1.1.1:5000".parse().unwrap(),
        rpc_ids: None,
        retry: 0,
        context: None,
    }
}

pub(crate) fn superuser() -> Caller {
    caller("super", &["supergroup"])
}
pub(crate) fn alice() -> Caller {
    caller("alice", &["staff"])
}
pub(crate) fn bob() -> Caller {
    caller("bob", &["staff", "ops"])
}

impl World {
    /// An empty file system out of safe mode, with no DataNode.
    pub fn new() -> World {
        let settings = Settings { owner: "super".into(), block_size_min: MIB, ..Settings::default() };
        let now = Now { wall: TimeMs(1_700_000_000_000), monotonic: MonotonicMs(1_000_000) };
        let own = StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-x".into(), c_time: 0 };
        let mut state = State::new(root());
        state.blocks = Blocks::new(blocks::Settings::default(), 1);
        state.blocks.start(&state.store, 0, state.sequences.stamp, now);
        World {
            state,
            twin: Twin::new(),
            settings,
            policy: Policy::default(),
            now,
            own,
            calls: 0,
            checked: true,
            reclaims: true,
        }
    }

    pub fn with_datanodes(count: u32) -> World {
        let mut world = World::new();
        (1..=count).for_each(|n| world.datanode(n));
        world
    }

    pub fn pass(&mut self, ms: u64) {
        self.now.monotonic.0 += ms;
        self.now.wall.0 += ms as i64;
    }

    /// Runs an operation as the engine does: prepare under a view, run in a turn.
    pub fn write<W: Write>(&mut self, who: &Caller, op: &W) -> Result<W::Reply, Refusal> {
        self.pass(1);
        let prepared = self.view(who, |view| op.prepare(view))?;
        self.turn(who, |turn| op.run(turn, prepared))
    }

    pub fn turn<R>(&mut self, who: &Caller, f: impl FnOnce(&mut Turn<'_>) -> R) -> R {
        let mut effects = Effects::new(Mode::Live);
        let World { state, twin, settings, policy, now, .. } = self;
        let mut turn = Turn::new(state, twin, settings, policy, *now, who, &mut effects);
        let answer = f(&mut turn);
        while self.reclaims && self.state.reclaim(1_000) {}
        if self.checked {
            self.check();
        }
        answer
    }

    pub fn view<'a, R>(&'a self, who: &'a Caller, f: impl FnOnce(&View<'a>) -> R) -> R {
        let World { state, settings, policy, now, .. } = self;
        f(&View { state, settings, policy, now: *now, caller: who })
    }

    /// Invariants of the tree and the digest law.
    pub fn check(&mut self) {
        assert_eq!(self.state.tree.check(&self.state.store), Vec::<String>::new());
        assert_eq!(self.twin.state.tree.check(&self.twin.state.store), Vec::<String>::new());
        assert_eq!(
            self.state.digest(),
            self.twin.state.digest(),
            "live and replayed state differ after {:#?}",
            self.log_tail()
        );
    }

    /// The last records, for messages.
    fn log_tail(&self) -> Vec<String> {
        let tail = &self.twin.frames[self.twin.frames.len().saturating_sub(6)..];
        let show = |frame: &Vec<u8>| match edit::decode(frame, LayoutVersion::CURRENT, edit::frame::RECORD_MAX) {
            Ok(edit::Decoded::Frame(found)) => format!("{:?}", found.record),
            other => format!("{other:?}"),
        };
        tail.iter().map(show).collect()
    }

    /// Number of records logged so far.
    pub fn logged(&self) -> usize {
        self.twin.frames.len()
    }

    /// Starts again from the log alone, with the DataNodes gone and out of safe mode.
    pub fn restart(&mut self) {
        let mut state = State::new(root());
        self.twin.frames.iter().for_each(|frame| replay(&mut state, &self.policy, frame));
        self.state = state;
        let blocks = &mut self.state.blocks;
        blocks.start(&self.state.store, blocks.open_block_count(), self.state.sequences.stamp, self.now);
        blocks.leave_safe_mode(true);
        self.check();
    }

    /// Ids for an at-most-once call.
    pub fn fresh_ids(&mut self, who: &Caller) -> Caller {
        self.calls += 1;
        Caller { rpc_ids: Some(RpcIds { client_id: [7; 16], call_id: self.calls }), ..who.clone() }
    }

    // ---- DataNodes

    fn registration(&self, n: u32) -> Registration {
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
    fn volume(&self, n: u32) -> VolumeId {
        VolumeId { id: format!("DS-{n}").into(), state: VolumeState::Normal, kind: StorageKind::Disk }
    }
    pub fn datanode(&mut self, n: u32) {
        let resolved = Resolved { location: Some(DEFAULT_RACK.into()), ..Resolved::default() };
        let own = self.own.clone();
        self.state.blocks.register(self.registration(n), &resolved, &own, "3.5.0", self.now).expect("registers");
        self.beat(n);
        let (id, volume) = (self.registration(n), self.volume(n));
        if let ReportStart::Go(mut report) = self.state.blocks.begin_report(&id, &volume, self.now).expect("report") {
            let mut none = std::iter::empty();
            while self.state.blocks.report_slice(&mut self.state.store, &mut report, &mut none, 3) {}
            while self.state.blocks.finish_report(&mut self.state.store, &mut report, 3, self.now) {}
        }
        self.state.blocks.end_report(&id, None);
    }
    pub fn beat(&mut self, n: u32) -> Vec<Command> {
        let report = VolumeReport {
            volume: self.volume(n),
            failed: false,
            capacity: 100 << 30,
            dfs_used: 0,
            remaining: 90 << 30,
            block_pool_used: 0,
            non_dfs_used: 0,
            mount: None,
        };
        let beat = Heartbeat { volumes: vec![report], ..Heartbeat::default() };
        let who = self.registration(n);
        self.state.blocks.heartbeat(&mut self.state.store, &who, &beat, self.now).expect("heartbeat").commands
    }
    /// A DataNode has received a block.
    pub fn received(&mut self, n: u32, block: Block) {
        self.incremental(n, block, IncrementalKind::Received);
    }
    pub fn receiving(&mut self, n: u32, block: Block) {
        self.incremental(n, block, IncrementalKind::Receiving);
    }
    fn incremental(&mut self, n: u32, block: Block, kind: IncrementalKind) {
        let volume = self.volume(n);
        let node = self.state.blocks.node_by_uuid(&format!("uuid-{n}")).expect("registered").number;
        let entry = IncrementalEntry { block, kind, delete_hint: None };
        let World { state, now, .. } = self;
        state.blocks.incremental_report(&mut state.store, node, &volume, [entry].into_iter(), *now).expect("report");
    }
}
