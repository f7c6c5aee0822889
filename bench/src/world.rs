//! A file system in memory with scripted DataNodes and a log that is encoded and thrown away.

use blocks::{
    Blocks, DEFAULT_RACK, DatanodeId, Heartbeat, IncrementalEntry, IncrementalKind, Registration, ReportStart,
    Reported, Resolved, StorageInfo, VolumeId, VolumeReport, VolumeState,
};
use edit::Record;
use ops::write::add_block::AddBlock;
use ops::write::complete::Complete;
use ops::write::create::Create;
use ops::write::new_node::CreateModes;
use ops::{Log, Settings, Turn, View, Write};
use state::{Effects, Mode, RootAttributes, State};
use std::hint::black_box;
use std::sync::Arc;
use storage::image::{SaveContext, encode, load};
use vocab::time::{MonotonicMs, Now};
use vocab::{
    AuthenticationMethod, Block, Caller, InodeId, LayoutVersion, Policy, Refusal, ReplicaState, RpcIds, StorageKind,
    TimeMs, Txid,
};

/// Bytes of log after which the buffer is emptied, as a flush would.
const BUFFER_BYTES: usize = 64 << 10;
/// Files in a directory of the population.
const FILES_PER_DIRECTORY: usize = 1_000;
/// Replicas taken by one call, as the server does.
const SLICE: usize = 1_000;

/// How images are saved.
pub const SAVED: SaveContext =
    SaveContext { layout: LayoutVersion::CURRENT, namespace_id: 7, txid: Txid(1), expanded_string_tables: true };

/// What runs in here would run under the state lock: the function that callgrind looks for.
#[inline(never)]
pub fn hold<R>(f: impl FnOnce() -> R) -> R {
    black_box(f())
}

/// What is run inside [`hold`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    Nothing,
    /// What runs under the shared hold.
    Shared,
    /// What runs under the exclusive hold.
    Exclusive,
}

impl Counted {
    fn run<R>(self, under: Counted, f: impl FnOnce() -> R) -> R {
        if self == under { hold(f) } else { f() }
    }
}

/// The buffer of the journal, without journals.
#[derive(Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    last: u64,
    /// Whether all is kept.
    kept: bool,
}

impl Buffer {
    /// One that goes on behind these bytes and keeps everything.
    pub fn kept(bytes: Vec<u8>) -> Buffer {
        Buffer { bytes, last: 0, kept: true }
    }
    /// The last transaction.
    pub fn last(&self) -> u64 {
        self.last
    }
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Log for Buffer {
    fn append(&mut self, record: &Record<'_>) -> Txid {
        if !self.kept && self.bytes.len() > BUFFER_BYTES {
            self.bytes.clear();
        }
        self.last += 1;
        edit::encode(record, Txid(self.last), LayoutVersion::CURRENT, &mut self.bytes).expect("encodes");
        Txid(self.last)
    }
    fn append_lazy(&mut self, record: &Record<'_>) -> Txid {
        self.append(record)
    }
}

/// The file system, and what a call needs besides.
pub struct World {
    pub state: State,
    pub counted: Counted,
    pub log: Buffer,
    settings: Settings,
    policy: Policy,
    now: Now,
    caller: Caller,
    calls: i32,
}

fn root() -> RootAttributes<'static> {
    RootAttributes { user: "hdfs", group: "supergroup", mode: vocab::Mode::new(0o755) }
}

fn own() -> StorageInfo {
    StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-bench".into(), c_time: 0 }
}

pub fn modes(mode: u16) -> CreateModes {
    CreateModes { masked: vocab::Mode::new(mode), unmasked: None }
}

/// Path of a file of the population.
pub fn path(number: usize) -> String {
    format!("/bench/directory-{:06}/part-{number:010}-of-a-job", number / FILES_PER_DIRECTORY)
}

impl World {
    /// An empty file system, out of safe mode, with so many DataNodes.
    pub fn new(datanodes: u32) -> World {
        let mut world = World::over(State::new(root()), datanodes);
        world.leave_safe_mode();
        world
    }

    /// As after a restart on this state, in safe mode.
    pub fn over(mut state: State, datanodes: u32) -> World {
        let now = Now { wall: TimeMs(1_700_000_000_000), monotonic: MonotonicMs(1_000_000) };
        state.blocks = Blocks::new(blocks::Settings::default(), 1);
        state.start(now);
        let caller = Caller {
            user: "hdfs".into(),
            real_user: None,
            groups: Arc::from([Arc::from("supergroup")]),
            method: AuthenticationMethod::Simple,
            address: ([10, 1, 1, 1], 5000).into(),
            rpc_ids: None,
            retry: 0,
            context: None,
        };
        let settings = Settings { owner: "hdfs".into(), block_size_min: 1 << 20, ..Settings::default() };
        let log = Buffer::default();
        let mut world =
            World { state, counted: Counted::Nothing, log, settings, policy: Policy::default(), now, caller, calls: 0 };
        (1..=datanodes).for_each(|n| world.register(n));
        world
    }

    pub fn leave_safe_mode(&mut self) {
        self.state.blocks.leave_safe_mode(true);
    }

    /// As after a restart on a population, in safe mode: the blocks are known, no replica is. Also what each DataNode will report.
    pub fn restarted(files: usize) -> (World, Vec<Reported>) {
        let mut world = World::new(3);
        let blocks = world.populate(files);
        let mut image = Vec::new();
        let digest = encode(&world.state, SAVED, &mut |bytes| image.extend_from_slice(bytes)).expect("encodes");
        drop(world);
        let loaded = load(&image, digest, World::empty()).expect("loads");
        let replica = |block| Reported { block, state: ReplicaState::Finalized };
        (World::over(loaded.state, 3), blocks.into_iter().map(replica).collect())
    }

    /// An empty state for an image to be loaded into.
    pub fn empty() -> State {
        State::new(root())
    }

    /// Runs a write as the engine does.
    pub fn write<W: Write>(&mut self, op: &W) -> Result<W::Reply, Refusal> {
        self.calls += 1;
        self.now.monotonic.0 += 1;
        self.now.wall.0 += 1;
        self.caller.rpc_ids = Some(RpcIds { client_id: [7; 16], call_id: self.calls });
        let World { state, counted, log, settings, policy, now, caller, .. } = self;
        let view = View { state, settings, policy, now: *now, caller };
        let prepared = counted.run(Counted::Shared, || op.prepare(&view))?;
        let mut effects = Effects::new(Mode::Live);
        counted.run(Counted::Exclusive, || {
            op.run(&mut Turn::new(state, log, settings, policy, *now, caller, &mut effects), prepared)
        })
    }

    /// Runs a read.
    pub fn read<R>(&self, f: impl FnOnce(&View<'_>) -> R) -> R {
        let World { state, settings, policy, now, caller, .. } = self;
        let view = View { state, settings, policy, now: *now, caller };
        self.counted.run(Counted::Shared, || f(&view))
    }

    pub fn create_op(path: &str) -> Create {
        Create {
            path: path.into(),
            modes: modes(0o644),
            client: "DFSClient_bench".into(),
            create: true,
            overwrite: false,
            create_parents: true,
            replication: 3,
            block_size: 128 << 20,
            lazy_persist: false,
            should_replicate: false,
            erasure_coding_policy: None,
            storage_policy: None,
            versions: Vec::new(),
            data_key: None,
        }
    }

    pub fn add_block_op(path: &str, file: InodeId) -> AddBlock {
        AddBlock {
            path: path.into(),
            file,
            client: "DFSClient_bench".into(),
            previous: None,
            previous_pool: None,
            excluded: vec![],
            favored: vec![],
            no_local_write: false,
            no_local_rack: false,
            ignore_client_locality: false,
        }
    }

    pub fn complete_op(path: &str, file: InodeId, last: Option<Block>) -> Complete {
        Complete { path: path.into(), file, client: "DFSClient_bench".into(), last, last_pool: None }
    }

    /// Files with one complete block each; gives the blocks.
    pub fn populate(&mut self, files: usize) -> Vec<Block> {
        (0..files)
            .map(|number| {
                let path = path(number);
                let file = self.write(&World::create_op(&path)).expect("create").id;
                let located = self.write(&World::add_block_op(&path, file)).expect("addBlock").located;
                let block = Block { length: 1000 + number as u64, ..located.block };
                self.received(1, block);
                let closed = self.write(&World::complete_op(&path, file, Some(block)));
                assert_eq!(closed, Ok(true), "{path} is closed");
                block
            })
            .collect()
    }

    // ---- DataNodes

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

    fn register(&mut self, n: u32) {
        let resolved = Resolved { location: Some(DEFAULT_RACK.into()), ..Resolved::default() };
        self.state.blocks.register(World::registration(n), &resolved, &own(), "3.5.0", self.now).expect("registers");
        let report = VolumeReport {
            volume: World::volume(n),
            failed: false,
            capacity: 100 << 40,
            dfs_used: 0,
            remaining: 90 << 40,
            block_pool_used: 0,
            non_dfs_used: 0,
            mount: None,
        };
        let beat = Heartbeat { volumes: vec![report], ..Heartbeat::default() };
        let who = World::registration(n);
        self.state.blocks.heartbeat(&mut self.state.store, &who, &beat, self.now).expect("heartbeat");
    }

    /// A record that begins or ends a segment.
    pub fn log_boundary(&mut self, record: Record<'_>) -> Txid {
        self.log.append(&record)
    }

    pub fn received(&mut self, n: u32, block: Block) {
        let node = self.state.blocks.node_by_uuid(&format!("uuid-{n}")).expect("registered").number;
        let entry = IncrementalEntry { block, kind: IncrementalKind::Received, delete_hint: None };
        let World { state, now, .. } = self;
        state
            .blocks
            .incremental_report(&mut state.store, node, &World::volume(n), [entry].into_iter(), *now)
            .expect("report");
    }

    /// A full report of a DataNode, in slices as the server takes it. Gives how many replicas it did not know.
    pub fn report(&mut self, n: u32, replicas: &[Reported]) -> u64 {
        let who = World::registration(n);
        let begun = self.state.blocks.begin_report(&who, &World::volume(n), self.now).expect("begins");
        let ReportStart::Go(mut report) = begun else { panic!("the report is not taken") };
        let World { state, counted, now, .. } = self;
        for slice in replicas.chunks(SLICE) {
            let mut slice = slice.iter().copied();
            counted.run(Counted::Exclusive, || {
                while state.blocks.report_slice(&mut state.store, &mut report, &mut slice, SLICE) {}
            });
        }
        let mut finish = || state.blocks.finish_report(&mut state.store, &mut report, SLICE, *now);
        while counted.run(Counted::Exclusive, &mut finish) {}
        state.blocks.end_report(&who, None);
        assert_eq!(report.missing, 0, "a report names all that is there");
        report.unknown
    }
}
