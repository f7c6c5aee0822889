//! A NameNode below its protocols over a simulated disk: the steps of a start as the binary takes them, with directories `/a` and `/b`.

use edit::Record;
use engine::{Checkpoints, Engine, HaState};
use os::Os;
use state::{Effects, Fit, Mode, RootAttributes, State};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use storage::dirs::{Location, Roles};
use storage::journal::{Journal, JournalFailed, LocalJournal, Membership, Observer, Options, local};
use storage::purge::{Retention, purge};
use storage::{Directories, StorageInfo, format, image, replay, select};
use vocab::time::{MonotonicMs, Now};
use vocab::{LayoutVersion, Policy, TimeMs, Txid};

/// Bytes by which segments grow here: small, so that a run meets growth many times.
const GROWTH: usize = 2_048;
/// Largest record.
const RECORD_MAX: usize = 50 << 20;
/// The superuser.
pub const OWNER: &str = "hdfs";

/// Both clocks.
pub fn now(os: &Os) -> Now {
    Now { wall: TimeMs(os.clock.wall_ms()), monotonic: MonotonicMs(os.clock.monotonic_ms()) }
}

/// The directories of a run.
pub fn roots() -> Vec<PathBuf> {
    vec!["/a".into(), "/b".into()]
}

fn locations(roots: &[PathBuf]) -> Vec<Location> {
    let roles = Roles { image: true, edits: true, required: false };
    roots.iter().map(|root| Location { root: root.clone(), roles }).collect()
}

fn context(info: &StorageInfo, txid: Txid) -> image::SaveContext {
    let namespace_id = info.namespace_id.unsigned_abs();
    image::SaveContext { layout: LayoutVersion::CURRENT, namespace_id, txid, expanded_string_tables: true }
}

/// A new file system in all directories, durable to the last name.
pub fn format_all(os: &Os) {
    let roots = roots();
    for root in &roots {
        os.disk.create_directories(root, 0o700).unwrap();
    }
    os.disk.sync_directory(Path::new("/")).unwrap();
    let info = StorageInfo::new(os, "10.0.0.1", None);
    let state = State::new(RootAttributes { user: OWNER, group: "supergroup", mode: vocab::Mode::new(0o755) });
    let context = context(&info, Txid(0));
    let mut write = |current: &Path| {
        image::save(&*os.disk, &[current.to_owned()], &state, context).unwrap();
        Ok(())
    };
    format::format(&locations(&roots), &info, format::Existing::Overwrite, 0o700, os, &mut write).unwrap();
    for root in &roots {
        os.disk.sync_directory(root).unwrap();
    }
}

/// What a start has found.
pub struct Loaded {
    pub directories: Directories,
    pub info: StorageInfo,
    pub state: State,
    pub last: Txid,
}

/// Loads what is in `roots` as the binary does: lock, image, recovery of open segments, replay. `seen` is handed every record before it is applied.
///
/// # Errors
/// Why a start would be refused.
pub fn load(os: &Os, roots: &[PathBuf], seen: &mut dyn FnMut(&State, Txid, &Record<'_>)) -> Result<Loaded, String> {
    load_with(os, roots, &blocks::Settings::default(), seen)
}

/// The same with settings for the block half.
///
/// # Errors
/// Why a start would be refused.
pub fn load_with(
    os: &Os,
    roots: &[PathBuf],
    settings: &blocks::Settings,
    seen: &mut dyn FnMut(&State, Txid, &Record<'_>),
) -> Result<Loaded, String> {
    let disk = &*os.disk;
    let directories = Directories::open(&locations(roots), os).map_err(|e| e.to_string())?;
    let info = directories.formatted_info().map_err(|e| e.to_string())?.clone();
    select::check_layout(info.layout).map_err(|e| e.to_string())?;
    let inspection = select::inspect(disk, &directories).map_err(|e| e.to_string())?;
    let newest = image::newest(disk, &inspection.image_folders).map_err(|e| format!("{e:?}"))?;
    let newest = newest.ok_or_else(|| inspection.no_image().to_string())?;
    let fresh = || {
        let mut state = State::new(RootAttributes { user: "", group: "", mode: vocab::Mode::new(0o755) });
        state.blocks = blocks::Blocks::new(settings.clone(), 1);
        state.set_clock(now(os));
        state
    };
    // few threads: an image here has a few inodes
    let loading = image::Loading { threads: 1, ..image::Loading::default() };
    let (loaded, _) = image::load_copies(disk, &newest, fresh, loading).map_err(|e| format!("{e:?}"))?;
    let mut state = loaded.state;
    let formatted = directories.list.iter().filter(|d| d.formatted && d.location.roles.edits);
    let folders: Vec<PathBuf> = formatted.map(storage::dirs::Directory::current).collect();
    let enough = |usable: &[&Path]| directories.enough_edits(usable, 1);
    let recovery =
        local::recover(disk, &folders, RECORD_MAX, local::Damage::Refused, enough).map_err(|e| e.to_string())?;
    let bad = |folder: &PathBuf| recovery.unusable.iter().any(|(unusable, _)| unusable == folder);
    let usable: Vec<&Path> = folders.iter().filter(|folder| !bad(folder)).map(PathBuf::as_path).collect();
    let from = newest.txid.next();
    let segments = local::select(disk, &usable, from, inspection.seen).map_err(|e| e.to_string())?;
    let policy = Policy::default();
    let mut apply = |txid, record: Record<'_>| {
        seen(&state, txid, &record);
        apply(&mut state, &record, &policy)
    };
    let last = replay::replay(disk, &segments, from, RECORD_MAX, &mut |_| {}, &mut apply).map_err(|e| e.to_string())?;
    Ok(Loaded { directories, info, state, last })
}

/// Fits and applies one record as a restart does.
///
/// # Errors
/// It does not fit.
pub fn apply(state: &mut State, record: &Record<'_>, policy: &Policy) -> Result<(), String> {
    match state.fit(record, policy) {
        Fit::Fits(fitted) => {
            let mut effects = Effects::new(Mode::Restart);
            state.apply(record, fitted, policy, Mode::Restart, &mut effects);
            while state.reclaim(u64::MAX) {}
            Ok(())
        }
        Fit::NoOp(_) => Ok(()),
        other => Err(format!("{other:?}: {record:?}")),
    }
}

/// Saves a loaded state into its directories, as a start does where a new image is due.
pub fn save(os: &Os, loaded: &Loaded) -> Result<(), String> {
    let folders = loaded.directories.image_folders();
    image::save(&*os.disk, &folders, &loaded.state, context(&loaded.info, loaded.last)).map_err(|e| e.to_string())?;
    loaded.directories.write_seen_txid(os, loaded.last).map_err(|e| e.to_string())?;
    loaded.directories.write_version(os, &loaded.info).map_err(|e| e.to_string())?;
    purge(&*os.disk, &folders, &loaded.directories.edits_folders(), RETENTION).map_err(|e| e.to_string())?;
    Ok(())
}

/// Keeps little, so that a run meets purges.
const RETENTION: Retention = Retention { images: 1, extra_edits: 0, extra_segments: 10 };

/// What differs between the users of these nodes.
pub struct Setup {
    pub retention: Retention,
    pub settings: ops::Settings,
    /// Whether safe mode is over at once.
    pub serves_at_once: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        let settings = ops::Settings { owner: OWNER.into(), block_size_min: 1, ..ops::Settings::default() };
        Setup { retention: RETENTION, settings, serves_at_once: true }
    }
}

/// Hears what happens to the journals. In the binary a failure ends the process.
#[derive(Debug, Default)]
pub struct Watch {
    failed: AtomicBool,
    /// Told when too few journals are left.
    pub end: tokio::sync::Notify,
}

impl Watch {
    /// Whether the process would have ended.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl Observer for Watch {
    fn dropped(&self, _label: &str, _error: &io::Error) {}
    fn restored(&self, _label: &str) {}
    fn failed(&self, _failure: &JournalFailed) {
        self.failed.store(true, Ordering::Release);
        self.end.notify_one();
    }
}

/// A running NameNode.
pub struct Node {
    pub engine: Arc<Engine>,
    pub watch: Arc<Watch>,
    _directories: Directories,
}

impl Node {
    /// Loads and opens the next segment. Safe mode is over at once.
    ///
    /// # Errors
    /// Why a start would be refused.
    pub fn start(os: &Os) -> Result<Node, String> {
        Node::open(os, load(os, &roots(), &mut |_, _, _| {})?)
    }

    /// Opens the next segment after what was loaded.
    ///
    /// # Errors
    /// Too few directories take it.
    pub fn open(os: &Os, loaded: Loaded) -> Result<Node, String> {
        Node::open_with(os, loaded, &Setup::default())
    }

    /// The same with another setup.
    ///
    /// # Errors
    /// Too few directories take it.
    pub fn open_with(os: &Os, loaded: Loaded, setup: &Setup) -> Result<Node, String> {
        let Loaded { directories, info, mut state, last } = loaded;
        let open = state.blocks.open_block_count();
        let stamp = state.sequences.stamp;
        state.blocks.start(&state.store, open, stamp, now(os));
        if setup.serves_at_once {
            state.blocks.leave_safe_mode(true);
        }
        let watch = Arc::new(Watch::default());
        let member = |directory: &storage::dirs::Directory| {
            let label = directory.location.root.display().to_string();
            let target = LocalJournal::new(os.disk.clone(), &directory.current(), &label, GROWTH);
            Membership { target: Box::new(target), required: false }
        };
        let options = Options { seen: directories.folders(), ..Options::default() };
        let members = directories.list.iter().map(member).collect();
        let journal = Journal::open(members, last.next(), options, os, watch.clone()).map_err(|e| e.to_string())?;
        let checkpoints = Checkpoints {
            os: os.clone(),
            image_folders: directories.image_folders().into(),
            edits_folders: directories.edits_folders(),
            retention: setup.retention,
            folders: directories.folders(),
            storage: info.clone().into(),
            image_options: image::SaveOptions::default(),
            expanded_string_tables: true,
            newest: (last, None).into(),
            running: tokio::sync::Mutex::default(),
        };
        let clock = os.clock.clone();
        let engine =
            Engine::new(state, journal, setup.settings.clone(), Policy::default(), clock, HaState::Active, checkpoints);
        Ok(Node { engine: Arc::new(engine), watch, _directories: directories })
    }
}
