//! The running NameNode: start, serve until a signal, stop.

use super::load::{self, Load, Loaded};
use super::signals::Signals;
use super::{
    HADOOP_REVISION, HADOOP_VERSION, StartError, StartMode, audit, bar, convert, journals, ports, reload, retention,
    ticks,
};
use crate::config::settings::Settings;
use crate::config::{Configuration, Source};
use engine::{Checkpoints, Engine, HaState};
use observe::audit::AuditLog;
use observe::progress::StartupProgress;
use os::Os;
use security::Users;
use security::groups::Groups;
use security::names::NameRules;
use server::Servers;
use server::http::NameNodeBeans;
use server::http::Web;
use server::service::table::PortKind;
use server::service::tokens::TokenMechanism;
use server::service::topology::Topology;
use server::service::{Identity, Shared};
use std::net::SocketAddr;
use std::sync::Arc;
use storage::{Directories, StorageInfo};
use vocab::{LayoutVersion, Policy};

/// What a NameNode is started with.
pub struct Launch {
    /// Where the configuration is read again.
    pub source: Source,
    /// The configuration, for the page that shows it.
    pub configuration: Configuration,
    /// What it says.
    pub settings: Settings,
    /// The user this process runs as.
    pub user: String,
    /// What is done with the directories first.
    pub mode: StartMode,
}

/// What is known of a NameNode once it serves.
pub struct Serving {
    /// Below its protocols.
    pub engine: Arc<Engine>,
    /// The first address of the client port.
    pub rpc: SocketAddr,
    /// The HTTP address.
    pub http: SocketAddr,
}

/// Starts a NameNode, calls `ready`, and serves until a signal comes. Returns the exit code.
///
/// # Errors
/// Why it did not start.
pub fn run(launch: Launch, ready: impl AsyncFnOnce(Serving) -> Result<(), StartError>) -> Result<u8, StartError> {
    end_on_broken_invariant();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(connection_threads()).enable_all();
    let runtime = runtime.on_thread_park(rpc::gather::before_wait).build();
    let runtime = runtime.map_err(StartError::system("threads"))?;
    let code = runtime.block_on(serve(launch, ready));
    // a load that a signal has cut short does not hold up the end of the process
    runtime.shutdown_background();
    code
}

/// Threads that serve connections: half the cores. A worker that gets work wakes another one to look for more, so with as many workers as
/// cores most wake-ups find nothing, and the journal, long computations and the system's network stack need cores too. (On two busy cores,
/// one run each, one worker instead of two spent 12 to 25 % less on mkdirs, create and delete; the journal's thread gained nothing.)
fn connection_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// A panic anywhere means that an invariant is broken: the process ends on the spot, before anything that may rest on it is answered.
fn end_on_broken_invariant() {
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("FATAL: {panic}");
        std::process::abort();
    }));
}

async fn serve(launch: Launch, ready: impl AsyncFnOnce(Serving) -> Result<(), StartError>) -> Result<u8, StartError> {
    let mut signals = Signals::listen().map_err(StartError::system("signals"))?;
    let running = tokio::select! {
        started = Running::start(launch) => started?,
        received = signals.next() => return Ok(received.exit_code()),
    };
    let serving = Serving {
        engine: running.engine.clone(),
        rpc: running.servers.addresses(PortKind::Client)[0],
        http: running.servers.http_address(),
    };
    let until_signal = async {
        ready(serving).await?;
        std::future::pending::<Result<(), StartError>>().await
    };
    let outcome = tokio::select! {
        Err(error) = until_signal => Err(error),
        received = signals.next() => Ok(received.exit_code()),
    };
    running.stop().await;
    outcome
}

/// A NameNode that serves.
struct Running {
    engine: Arc<Engine>,
    servers: Servers,
    ticks: ticks::Ticks,
    shared: Arc<Shared>,
    /// Held to the end: their locks keep other processes out.
    directories: Directories,
}

impl Running {
    async fn start(launch: Launch) -> Result<Running, StartError> {
        let Launch { source, configuration, settings, user, mode } = launch;
        let (os, settings) = (Os::real(), Arc::new(settings));
        let started_ms = os.clock.wall_ms();
        let progress = Arc::new(StartupProgress::default());
        let listener = ports::bind_http(&settings.addresses).await?;
        let environment = crate::config::Environment::of_process();
        let pages = convert::web(&settings, environment.log_folder());
        let web = Arc::new(Web::new(progress.clone(), Box::new(Pages(configuration.clone())), pages));
        let http = server::http::Server::start(listener, web.clone()).map_err(StartError::system("HTTP server"))?;
        tracing::info!("Starting web server at: http://{}", http.address());
        // a port that is taken is known before the load; clients find the ports closed until it is over
        drop(ports::bind_rpc(&settings)?);
        let policy = convert::policy(&settings);
        let loaded = load_and_open(&settings, &policy, &os, &progress, mode).await?;
        let Opened { engine, directories, info, upgrade_finalized, loaded_image_ms } =
            assemble(loaded, &settings, policy, &os, &user);
        let rpc = match ports::bind_rpc(&settings) {
            Ok(rpc) => rpc,
            Err(error) => {
                close(&engine).await;
                return Err(error);
            }
        };
        let audit = audit::open(&settings.audit, &source);
        let roots = directories.list.iter().map(|directory| directory.location.root.clone()).collect();
        let logs = environment.log_directory();
        let files = reload::Files {
            source,
            roots,
            logs,
            configuration: configuration.into(),
            engine: engine.clone(),
            user,
            port: settings.addresses.rpc.address.port,
        };
        let identity = identity(&settings, &info, upgrade_finalized);
        let shared = Arc::new(shared(&engine, &settings, identity, loaded_image_ms, files, audit)?);
        let beans = NameNodeBeans {
            shared: shared.clone(),
            host_and_port: settings.addresses.rpc.address.to_string(),
            version: format!("{HADOOP_VERSION}, r{HADOOP_REVISION}"),
            compile_info: format!("ironroot {}", env!("CARGO_PKG_VERSION")),
            started_ms,
            directories: directories.list.iter().map(shown).collect(),
        };
        let servers =
            server::serve(&shared, rpc, http, &web, Arc::new(beans)).map_err(StartError::system("RPC server"))?;
        for kind in [PortKind::Client, PortKind::Service, PortKind::Lifeline] {
            for address in servers.addresses(kind) {
                tracing::info!("NameNode RPC up at: {address} ({kind:?})");
            }
        }
        let ticks = ticks::Ticks::start(&engine, &settings, &os, &progress, &directories, &shared);
        Ok(Running { engine, servers, ticks, shared, directories })
    }

    /// Closes the ports, ends the open segment in order, and gives up the locks.
    async fn stop(self) {
        // the ports first: a client whose connection ends tries again, one that is refused by the role would give up
        self.servers.stop().await;
        self.engine.gate().set(HaState::Stopping);
        self.engine.end_checkpoints().await;
        self.ticks.stop().await;
        close(&self.engine).await;
        // what calls left for the audit log is written before the process ends
        self.shared.audit.flush();
        drop(self.directories);
    }
}

/// Ends the open segment.
async fn close(engine: &Arc<Engine>) {
    let engine = engine.clone();
    let closed = tokio::task::spawn_blocking(move || engine.journal().close()).await;
    if let Ok(Err(failure)) = closed {
        tracing::error!("The edit log was not closed in order: {failure}");
    }
}

async fn load_and_open(
    settings: &Arc<Settings>,
    policy: &Policy,
    os: &Os,
    progress: &Arc<StartupProgress>,
    mode: StartMode,
) -> Result<(Loaded, storage::journal::Journal), StartError> {
    let (settings, policy, os, progress) = (settings.clone(), policy.clone(), os.clone(), progress.clone());
    let bar = bar::show(progress.clone());
    let load = move || {
        let blocks = convert::blocks(&settings);
        let load =
            Load { settings: &settings, policy: &policy, blocks: &blocks, os: &os, progress: &progress, mode: &mode };
        let loaded = load.run()?;
        let journal = journals::open(&loaded, &settings, &os)?;
        Ok((loaded, journal))
    };
    let loading = tokio::task::spawn_blocking(load);
    let loaded = tokio::select! {
        loaded = loading => loaded,
        never = bar => match never {},
    };
    loaded.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}

/// What the ports need of a loaded file system.
struct Opened {
    engine: Arc<Engine>,
    directories: Directories,
    info: StorageInfo,
    /// Whether no directory keeps the state from before an upgrade.
    upgrade_finalized: bool,
    loaded_image_ms: i64,
}

fn assemble(
    (loaded, journal): (Loaded, storage::journal::Journal),
    settings: &Settings,
    policy: Policy,
    os: &Os,
    user: &str,
) -> Opened {
    let online = super::online::online(&loaded, settings, os);
    let Loaded { directories, info, mut state, upgrade_finalized, checkpoint: (txid, loaded_image_ms), .. } = loaded;
    match reload::hosts(&settings.datanode_hosts) {
        Ok(hosts) => state.blocks.hosts = hosts,
        Err(error) => tracing::error!("error reading hosts files: {error}"),
    }
    state.start(load::now(os));
    if settings.features.storage_policy_satisfier {
        state.queue_for_satisfier();
    }
    let rolling = state.sequences.rolling_upgrade_start.is_some();
    let effective_layout = LayoutVersion::effective(info.layout, rolling);
    let policy = Policy { effective_layout, ..policy };
    let checkpoints = Checkpoints {
        os: os.clone(),
        image_folders: directories.image_folders().into(),
        edits_folders: directories.edits_folders(),
        retention: retention(settings),
        folders: directories.folders(),
        storage: info.clone().into(),
        image_options: settings.checkpoints.image_options,
        expanded_string_tables: true,
        newest: (txid, None).into(),
        running: tokio::sync::Mutex::default(),
    };
    let (block_pool, created) = (info.block_pool_id.as_str().into(), vocab::TimeMs(info.ctime));
    let operations = ops::Settings { block_pool, created, ..convert::operations(settings, user) };
    let engine = Engine::new(state, journal, operations, policy, os.clock.clone(), HaState::Active, checkpoints);
    engine.lock().set_reporting(settings.lock_reporting);
    let engine = engine.with_online(online);
    Opened { engine: Arc::new(engine), directories, info, upgrade_finalized, loaded_image_ms }
}

fn identity(settings: &Settings, info: &StorageInfo, upgrade_finalized: bool) -> Identity {
    Identity {
        storage: blocks::StorageInfo {
            // whatever the directories are of: DataNodes speak with this software
            layout_version: LayoutVersion::CURRENT.0,
            namespace_id: info.namespace_id,
            cluster_id: info.cluster_id.as_str().into(),
            c_time: info.ctime,
        },
        block_pool: info.block_pool_id.as_str().into(),
        software_version: HADOOP_VERSION.into(),
        revision: HADOOP_REVISION.into(),
        upgrade_finalized: Arc::new(upgrade_finalized.into()),
        high_availability: settings.identity.high_availability,
        state_context: settings.rpc.state_context,
        rpc_address: settings.addresses.rpc.address.to_string().into(),
        http_address: settings.addresses.http.address.to_string().into(),
    }
}

fn shared(
    engine: &Arc<Engine>,
    settings: &Settings,
    identity: Identity,
    loaded_image_ms: i64,
    files: reload::Files,
    audit: AuditLog,
) -> Result<Shared, StartError> {
    let groups = Groups::new(convert::groups(settings));
    let mut users = Users::new(NameRules::default(), groups, convert::proxy_rules(settings));
    if settings.permissions.protocols {
        users = users.with_service_acls(super::policy::read(&files.source)?);
    }
    Ok(Shared {
        engine: engine.clone(),
        keys: super::secrets::keys(settings, &files.source, &engine.settings().owner)?,
        reencrypting: Default::default(),
        followers: Default::default(),
        users: Arc::new(users.with_mechanisms(Arc::new(TokenMechanism::new(engine.clone())), true)),
        topology: Topology::new(convert::racks(settings)),
        identity,
        reload: Arc::new(files),
        audit,
        top: settings.audit.top.clone().map(observe::top::Top::new),
        reconfiguration: Arc::default(),
        ports: Default::default(),
        loaded_image_ms,
    })
}

/// A directory and what it holds, as the status page names it.
fn shown(directory: &storage::dirs::Directory) -> (String, &'static str) {
    let roles = directory.location.roles;
    let kind = match (roles.image, roles.edits) {
        (true, true) => "IMAGE_AND_EDITS",
        (true, false) => "IMAGE",
        _ => "EDITS",
    };
    (directory.location.root.display().to_string(), kind)
}

/// The configuration as the page shows it.
struct Pages(Configuration);

impl server::http::Configuration for Pages {
    fn xml(&self, name: Option<&str>) -> Option<String> {
        self.0.to_xml(name)
    }
    fn json(&self, name: Option<&str>) -> Option<String> {
        self.0.to_json(name)
    }
}
