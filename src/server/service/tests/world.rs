//! A whole name node in this process: its journal on a simulated disk, its port on a real socket.

use crate::service::table::PortKind;
use crate::service::topology::{Mapping, Topology};
use crate::service::{Identity, Port, Reload, Shared};
use blocks::{Hosts, StorageInfo};
use bytes::Bytes;
use engine::{Checkpoints, Engine, HaState};
use hadoop_proto::Message;
use os::sim::SimClock;
use os::{Disk, Os};
use rpc::client::{CallError, CallOptions, Client, ClientSettings};
use rpc::{Listener, RemoteException, Server};
use security::Users;
use security::groups::{GroupSettings, Groups, Provider};
use security::names::NameRules;
use security::proxy::ProxyRules;
use state::{RootAttributes, State};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::journal::{Journal, JournalFailed, LocalJournal, Membership, Observer, Options};
use vocab::{LayoutVersion, Mode, Policy, Txid};

pub const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
pub const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";
pub const LIFELINE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol";
pub const POOL: &str = "BP-1-127.0.0.1-1";

#[derive(Debug)]
struct Silent;

impl Observer for Silent {
    fn dropped(&self, label: &str, error: &io::Error) {
        panic!("{label} dropped: {error}");
    }
    fn restored(&self, _label: &str) {}
    fn failed(&self, failure: &JournalFailed) {
        panic!("journals failed: {failure}");
    }
}

struct Nothing;

impl Reload for Nothing {
    fn reconfigurable(&self) -> Vec<String> {
        vec!["a.key".to_owned()]
    }
    fn reconfigure(&self) -> Result<Vec<crate::service::Reconfigured>, String> {
        Ok(Vec::new())
    }
    fn create_log(&self, _name: &str) -> Result<(PathBuf, Box<dyn io::Write + Send>), (PathBuf, io::Error)> {
        Err(("logs".into(), io::ErrorKind::NotFound.into()))
    }
    fn date(&self, time: vocab::time::TimeMs) -> String {
        time.0.to_string()
    }

    fn proxy_rules(&self) -> Result<ProxyRules, String> {
        Ok(ProxyRules::default())
    }
    fn service_acls(&self) -> Result<security::service::ServiceAcls, String> {
        Ok(security::service::ServiceAcls::default())
    }
    fn hosts(&self) -> Result<Hosts, String> {
        Ok(Hosts::default())
    }
    fn finalize_upgrade(&self) -> Result<(), String> {
        Ok(())
    }
}

pub struct World {
    pub shared: Arc<Shared>,
    pub clock: SimClock,
    server: Server,
}

pub fn storage_info() -> StorageInfo {
    StorageInfo { layout_version: -67, namespace_id: 7, cluster_id: "CID-1".into(), c_time: 5 }
}

/// The same as VERSION tells it.
fn on_disk() -> storage::StorageInfo {
    let StorageInfo { layout_version, namespace_id, cluster_id, c_time } = storage_info();
    let layout = LayoutVersion(layout_version);
    let block_pool_id = "BP-1".to_owned();
    storage::StorageInfo { layout, namespace_id, cluster_id: cluster_id.to_string(), ctime: c_time, block_pool_id }
}

fn engine() -> (Arc<Engine>, SimClock) {
    let (os, disk, clock) = Os::simulated(1);
    clock.set_wall(1_796_061_337_922);
    clock.advance(1_000_000);
    let current = PathBuf::from("/name/current");
    disk.create_directories(&current, 0o700).unwrap();
    disk.sync_directory(Path::new("/")).unwrap();
    disk.sync_directory(current.parent().unwrap()).unwrap();
    let target = LocalJournal::new(os.disk.clone(), &current, "/name", 1 << 16);
    let members = vec![Membership { target: Box::new(target), required: false }];
    let journal = Journal::open(members, Txid(1), Options::default(), &os, Arc::new(Silent)).unwrap();
    let root = RootAttributes { user: "hdfs", group: "supergroup", mode: Mode::new(0o755) };
    let mut state = State::new(root);
    let checkpoints = Checkpoints {
        os: os.clone(),
        image_folders: vec![current.clone()].into(),
        edits_folders: vec![current.clone()],
        retention: Default::default(),
        folders: vec![current.clone()],
        storage: on_disk().into(),
        expanded_string_tables: false,
        newest: (Txid(0), None).into(),
        image_options: Default::default(),
        running: tokio::sync::Mutex::new(()),
    };
    let now = vocab::time::Now {
        wall: vocab::TimeMs(clock_wall(&os)),
        monotonic: vocab::time::MonotonicMs(os.clock.monotonic_ms()),
    };
    start_blocks(&mut state, now);
    let settings = ops::Settings { replication: 1, block_pool: POOL.into(), ..Default::default() };
    let clocks = os.clock.clone();
    let engine = Engine::new(state, journal, settings, Policy::default(), clocks, HaState::Active, checkpoints);
    (Arc::new(engine), clock)
}

fn clock_wall(os: &Os) -> i64 {
    os.clock.wall_ms()
}

fn start_blocks(state: &mut State, now: vocab::time::Now) {
    state.blocks = blocks::Blocks::new(blocks::Settings { safe_extension_ms: 0, ..Default::default() }, 1);
    state.blocks.start(&state.store, 0, state.sequences.stamp, now);
    state.blocks.safe_mode_check(now);
}

/// Starts a name node; must be called in a runtime.
pub fn start(kind: PortKind) -> World {
    start_for(kind, |users| users)
}

/// The same with more said about users.
pub fn start_for(kind: PortKind, users: impl FnOnce(Users) -> Users) -> World {
    let (engine, clock) = engine();
    let groups = GroupSettings { provider: Provider::Nobody, ..GroupSettings::default() };
    let users = Arc::new(users(Users::new(NameRules::default(), Groups::new(groups), ProxyRules::default())));
    let shared = Arc::new(Shared {
        engine,
        keys: None,
        reencrypting: Default::default(),
        followers: Default::default(),
        users: users.clone(),
        topology: Topology::new(Mapping::OneRack),
        identity: Identity {
            storage: storage_info(),
            block_pool: POOL.into(),
            software_version: "3.5.0".into(),
            revision: "r".into(),
            upgrade_finalized: Arc::new(true.into()),
            high_availability: false,
            state_context: false,
            rpc_address: "localhost:8020".into(),
            http_address: "localhost:9870".into(),
        },
        reload: Arc::new(Nothing),
        audit: observe::audit::AuditLog::off(),
        top: None,
        reconfiguration: Default::default(),
        ports: Default::default(),
        loaded_image_ms: 0,
    });
    let listener = Listener::bind("test", &["127.0.0.1:0".parse().unwrap()], 16).unwrap();
    let port = Arc::new(Port::new(shared.clone(), kind, "localhost"));
    let server = listener.serve(rpc::Settings::default(), port, users).unwrap();
    World { shared, clock, server }
}

/// A connection of one user for one protocol.
pub struct Peer(Client);

impl World {
    pub async fn connect(&self, protocol: &str, user: &str) -> Peer {
        Peer(Client::connect(self.server.addresses()[0], ClientSettings::new(protocol, 1, user)).await.unwrap())
    }
}

impl Peer {
    /// A call that is answered.
    pub async fn call<R: Message + Default>(&self, method: &str, request: &impl Message) -> R {
        match self.0.call(method, request).await {
            Ok(response) => response,
            Err(error) => panic!("{method}: {error:?}"),
        }
    }
    /// A call that is answered; whose answer, read and written again by the schema's own types, must be the same bytes.
    pub async fn exact<R: Message + Default>(&self, method: &str, request: &impl Message) -> R {
        let answer = self.0.call_with(CallOptions::default(), method, &request.encode_to_vec()).await;
        let body = answer.unwrap_or_else(|error| panic!("{method}: {error:?}")).body;
        let response = R::decode(body.clone()).unwrap();
        assert_eq!(response.encode_to_vec(), body, "{method}");
        response
    }
    /// A call that is refused.
    pub async fn refused(&self, method: &str, request: &impl Message) -> RemoteException {
        match self.0.call::<Anything>(method, request).await {
            Err(CallError::Remote(exception)) => exception,
            other => panic!("{method}: {:?}", other.map(|_| ())),
        }
    }
}

/// Reads any response.
type Anything = ();

/// Nothing but what a test wrote itself.
pub fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
