//! The file system under test, in memory: operations run as the engine runs them, every record goes through its bytes into a second state.

use super::twin::{Answer, Kind, Out, Status, Who};
use blocks::{
    Blocks, DEFAULT_RACK, DatanodeId, Heartbeat, IncrementalEntry, IncrementalKind, Registration, ReportStart,
    Reported, Resolved, StorageInfo, VolumeId, VolumeReport, VolumeState,
};
use edit::Record;
use edit::frame::{Decoded, RECORD_MAX};
use ops::read::file_info::get_file_info;
use ops::read::listing::get_listing;
use ops::status::FileStatus;
use ops::{Log, Settings, Turn, View, Write};
use record::KindTag;
use state::{Effects, Fit, Mode, RootAttributes, State};
use std::collections::VecDeque;
use vocab::time::{MonotonicMs, Now};
use vocab::{
    AuthenticationMethod, Block, Caller, LayoutVersion, Policy, Refusal, ReplicaState, StorageKind, TimeMs, Txid,
};

/// The superuser.
pub const OWNER: &str = "super";

/// The log as bytes, and the state that it makes.
pub struct Journal {
    bytes: Vec<u8>,
    last: Txid,
    pub replayed: State,
    policy: Policy,
    /// Where the newest records begin.
    newest: VecDeque<usize>,
}

impl Log for Journal {
    fn append(&mut self, record: &Record<'_>) -> Txid {
        self.last = self.last.next();
        let start = self.bytes.len();
        edit::encode(record, self.last, LayoutVersion::CURRENT, &mut self.bytes).expect("encodes");
        self.newest.push_back(start);
        if self.newest.len() > 8 {
            self.newest.pop_front();
        }
        apply_bytes(&mut self.replayed, &self.bytes[start..], &self.policy, Some(record));
        self.last
    }
    fn append_lazy(&mut self, record: &Record<'_>) -> Txid {
        self.append(record)
    }
}

/// Decodes one record and applies it as a restart does. Gives its length.
pub fn apply_bytes(state: &mut State, bytes: &[u8], policy: &Policy, written: Option<&Record<'_>>) -> usize {
    let frame = match edit::decode(bytes, LayoutVersion::CURRENT, RECORD_MAX) {
        Ok(Decoded::Frame(frame)) => frame,
        other => panic!("what was written cannot be read: {other:?}"),
    };
    if let Some(written) = written {
        assert_eq!(frame.record, *written, "a record is what was written");
    }
    let mut effects = Effects::new(Mode::Restart);
    match state.fit(&frame.record, policy) {
        Fit::Fits(fitted) => {
            state.apply(&frame.record, fitted, policy, Mode::Restart, &mut effects);
            while state.reclaim(u64::MAX) {}
        }
        other => panic!("a logged record does not fit on replay: {other:?} {:?}", frame.record),
    }
    frame.length
}

/// An empty file system.
pub fn empty() -> State {
    State::new(RootAttributes { user: OWNER, group: "supergroup", mode: vocab::Mode::new(0o755) })
}

pub struct World {
    pub state: State,
    pub journal: Journal,
    pub settings: Settings,
    pub policy: Policy,
    pub now: Now,
    /// What all DataNodes hold.
    held: Vec<Block>,
}

/// DataNodes.
const NODES: u32 = 3;

fn own() -> StorageInfo {
    StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-x".into(), c_time: 0 }
}

/// DataNode `n`.
pub fn datanode(n: u32) -> DatanodeId {
    DatanodeId {
        ip: format!("10.0.0.{n}").into(),
        host: format!("dn{n}").into(),
        uuid: format!("uuid-{n}").into(),
        transfer_port: 9866,
        info_port: 9864,
        info_secure_port: 0,
        ipc_port: 9867,
    }
}

fn registration(n: u32) -> Registration {
    let storage = StorageInfo { layout_version: -57, ..own() };
    Registration { id: datanode(n), software_version: "3.5.0".into(), storage }
}

fn volume(n: u32) -> VolumeId {
    VolumeId { id: format!("DS-{n}").into(), state: VolumeState::Normal, kind: StorageKind::Disk }
}

pub fn caller(who: &Who) -> Caller {
    Caller {
        user: who.user.as_str().into(),
        real_user: None,
        groups: who.groups.iter().map(|group| group.as_str().into()).collect::<Vec<_>>().into(),
        method: AuthenticationMethod::Simple,
        address: "10.1.1.1:5000".parse().expect("an address"),
        rpc_ids: None,
        retry: 0,
        context: None,
    }
}

impl World {
    pub fn new() -> World {
        let now = Now { wall: TimeMs(1_700_000_000_000), monotonic: MonotonicMs(1_000_000) };
        let journal = Journal {
            bytes: Vec::new(),
            last: Txid(0),
            replayed: empty(),
            policy: Policy::default(),
            newest: VecDeque::new(),
        };
        let settings = Settings { owner: OWNER.into(), block_size_min: 1_000, ..Settings::default() };
        let mut world = World { state: empty(), journal, settings, policy: Policy::default(), now, held: Vec::new() };
        world.begin();
        world
    }

    /// Leaves safe mode and lets all DataNodes join.
    fn begin(&mut self) {
        let World { state, now, held, .. } = self;
        state.blocks = Blocks::new(blocks::Settings::default(), 1);
        let inodes = state.tree.inode_count();
        assert!(inodes > 0);
        state.blocks.start(&state.store, 0, state.sequences.stamp, *now);
        state.blocks.leave_safe_mode(true);
        for n in 1..=NODES {
            let resolved = Resolved { location: Some(DEFAULT_RACK.into()), ..Resolved::default() };
            state.blocks.register(registration(n), &resolved, &own(), "3.5.0", *now).expect("registers");
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
            let beat = Heartbeat { volumes: vec![report], ..Heartbeat::default() };
            state.blocks.heartbeat(&mut state.store, &registration(n), &beat, *now).expect("heartbeat");
            let ReportStart::Go(mut report) =
                state.blocks.begin_report(&registration(n), &volume(n), *now).expect("report")
            else {
                panic!("the first report is taken");
            };
            let mut all = held.iter().map(|block| Reported { block: *block, state: ReplicaState::Finalized });
            while state.blocks.report_slice(&mut state.store, &mut report, &mut all, 100) {}
            while state.blocks.finish_report(&mut state.store, &mut report, 100, *now) {}
            state.blocks.end_report(&registration(n), None);
        }
    }

    /// Runs an operation as the engine does: prepare under a view, run in a turn.
    pub fn write<W: Write>(&mut self, who: &Who, op: &W) -> Result<W::Reply, Refusal> {
        let prepared = self.view(&caller(who), |view| op.prepare(view))?;
        self.turn(who, |turn| op.run(turn, prepared))
    }

    /// Something under the write hold.
    pub fn turn<R>(&mut self, who: &Who, f: impl FnOnce(&mut Turn<'_>) -> R) -> R {
        let who = caller(who);
        let mut effects = Effects::new(Mode::Live);
        let World { state, journal, settings, policy, now, .. } = self;
        let mut turn = Turn::new(state, journal, settings, policy, *now, &who, &mut effects);
        let answer = f(&mut turn);
        while self.state.reclaim(1_000) {}
        answer
    }

    fn view<'a, R>(&'a self, who: &'a Caller, f: impl FnOnce(&View<'a>) -> R) -> R {
        let World { state, settings, policy, now, .. } = self;
        f(&View { state, settings, policy, now: *now, caller: who })
    }

    pub fn info(&self, who: &Who, path: &str) -> Out {
        let who = caller(who);
        self.view(&who, |view| match get_file_info(view, path.as_bytes()) {
            Ok(status) => Ok(Answer::Status(status.map(|status| shown(&status)))),
            Err(refusal) => Err(kind(&refusal)),
        })
    }

    pub fn list(&self, who: &Who, path: &str) -> Out {
        let who = caller(who);
        self.view(&who, |view| {
            let mut entries: Vec<(FileStatus<'static>, _)> = Vec::new();
            let page =
                get_listing(view, path.as_bytes(), b"", false, &mut entries).map_err(|refusal| kind(&refusal))?;
            let name = |(status, _): &(FileStatus<'static>, _)| String::from_utf8_lossy(&status.name).into_owned();
            Ok(Answer::Names(page.map(|_| entries.iter().map(name).collect())))
        })
    }

    /// All DataNodes have a block of this length.
    pub fn received(&mut self, block: Block) {
        self.held.retain(|held| held.id != block.id);
        self.held.push(block);
        for n in 1..=NODES {
            let World { state, now, .. } = self;
            let node = state.blocks.node_by_uuid(&format!("uuid-{n}")).expect("registered").number;
            let entry = IncrementalEntry { block, kind: IncrementalKind::Received, delete_hint: None };
            let entries = [entry].into_iter();
            state.blocks.incremental_report(&mut state.store, node, &volume(n), entries, *now).expect("report");
        }
    }

    /// The state that a restart makes of the log; the DataNodes join again.
    pub fn restart(&mut self) {
        self.state = self.journal.replay(Some(self.now), &mut |_, _| {});
        let live: Vec<Block> = self.state.store.blocks().map(|b| self.state.store.block(b).block).collect();
        self.held.retain(|held| live.iter().any(|block| block.id == held.id));
        self.begin();
    }
}

impl Journal {
    /// Replays the whole log from its bytes, at some time, showing the state after every record.
    pub fn replay(&self, now: Option<Now>, seen: &mut dyn FnMut(u64, &State)) -> State {
        let mut state = empty();
        now.into_iter().for_each(|now| state.set_clock(now));
        let (mut at, mut count) = (0, 0);
        while at < self.bytes.len() {
            at += apply_bytes(&mut state, &self.bytes[at..], &self.policy, None);
            count += 1;
            seen(count, &state);
        }
        state
    }
    /// What the newest records were, for messages.
    pub fn tail(&self) -> Vec<String> {
        let decode = |at: &usize| edit::decode(&self.bytes[*at..], LayoutVersion::CURRENT, RECORD_MAX);
        self.newest.iter().map(|at| format!("{:?}", decode(at))).collect()
    }
    /// Number of records.
    pub fn records(&self) -> u64 {
        self.last.0
    }
    /// Bytes of all records.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }
}

/// A status as the twin has it.
pub fn shown(status: &FileStatus<'_>) -> Status {
    let directory = status.kind == KindTag::Directory;
    Status {
        id: status.id.0,
        directory,
        length: status.length,
        replication: status.replication,
        block_size: status.block_size,
        mtime: status.mtime.0,
        atime: if directory { 0 } else { status.atime.0 },
        mode: status.mode.bits(),
        owner: status.owner.to_string(),
        group: status.group.to_string(),
        children: status.children,
    }
}

/// The kind of a refusal.
pub fn kind(refusal: &Refusal) -> Kind {
    let text = format!("{refusal:?}");
    let name: &str = text.split(['(', ' ', '{']).next().unwrap_or_default();
    match KINDS.iter().find(|kind| **kind == name) {
        Some(kind) => kind,
        None if ["PermissionDenied", "SuperuserRequired"].contains(&name) => "AccessControl",
        None => panic!("a refusal that no call here should get: {refusal:?}"),
    }
}

/// Kinds that calls of the fuzz may get.
const KINDS: [&str; 20] = [
    "Assertion",
    "AccessControl",
    "AlreadyBeingCreated",
    "ComponentTooLong",
    "FileAlreadyExists",
    "FileNotFound",
    "HadoopIllegalArgument",
    "IllegalArgument",
    "InvalidPath",
    "Io",
    "LeaseExpired",
    "NamespaceQuota",
    "NotReplicatedYet",
    "ParentNotDirectory",
    "PathIsNotDirectory",
    "PathIsNotEmptyDirectory",
    "RecoveryInProgress",
    "Snapshot",
    "SpaceQuota",
    "Unsupported",
];
