//! The file system under test, in memory: operations run as the engine runs them, every record goes through its bytes into a second state.

use super::twin::{Answer, Kind, Out, Status, Who};
use crate::support::scripted::DataNode;
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
use vocab::{AuthenticationMethod, Block, Caller, LayoutVersion, Policy, Refusal, TimeMs, Txid};

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
    nodes: Vec<DataNode>,
}

/// DataNodes.
const NODES: u32 = 3;

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
        let nodes = (1..=NODES).map(DataNode::new).collect();
        let mut world = World { state: empty(), journal, settings, policy: Policy::default(), now, nodes };
        world.begin();
        world
    }

    /// Leaves safe mode and lets all DataNodes join.
    fn begin(&mut self) {
        let World { state, now, nodes, .. } = self;
        state.start(*now);
        state.blocks.leave_safe_mode(true);
        nodes.iter().for_each(|node| node.join(&mut state.blocks, &mut state.store, *now));
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
        let World { state, now, nodes, .. } = self;
        nodes.iter_mut().for_each(|node| node.receive(&mut state.blocks, &mut state.store, (block, 0), *now));
    }

    /// The state that a restart makes of the log; the DataNodes join again.
    pub fn restart(&mut self) {
        self.state = self.journal.replay(Some(self.now), &mut |_, _| {});
        let live: Vec<Block> = self.state.store.blocks().map(|b| self.state.store.block(b).block).collect();
        for node in &mut self.nodes {
            node.held.retain(|id, _| live.iter().any(|block| block.id == *id));
        }
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
