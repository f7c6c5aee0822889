//! Checkpoints of a working server: what they leave, whoever writes meanwhile and whatever comes between.

use engine::{Checkpoints, Encoded, Engine, HaState, ImageEncoder, NotMade, Online, OnlineSettings};
use ops::write::mkdirs::Mkdirs;
use ops::write::new_node::CreateModes;
use os::Os;
use os::disk::{Disk, Open};
use os::sim::{Fault, SimDisk};
use state::{Digest, Effects, Fit, Mode, RootAttributes, State};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use storage::arena::{self, ArenaFile, WriteError};
use storage::image::{self, SaveContext};
use storage::journal::{Journal, JournalFailed, LocalJournal, Membership, Observer, Options, local};
use storage::{StorageInfo, replay};
use vocab::{AuthenticationMethod, Caller, LayoutVersion, Policy, Txid};

#[derive(Debug)]
struct Silent;
impl Observer for Silent {
    fn dropped(&self, _: &str, _: &io::Error) {}
    fn restored(&self, _: &str) {}
    fn failed(&self, _: &JournalFailed) {}
}

fn info() -> StorageInfo {
    StorageInfo {
        layout: LayoutVersion::CURRENT,
        namespace_id: 7,
        cluster_id: "CID-1".into(),
        ctime: 5,
        block_pool_id: "BP-1".into(),
    }
}
fn empty() -> State {
    State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: vocab::Mode::new(0o755) })
}

/// Makes images in this process, as the other one would; or does what a test wants of it.
#[derive(Debug)]
enum Encoder {
    Good(SimDisk),
    /// Killed, out of memory...
    Dies,
    /// Goes on until it is stopped; says that it has begun.
    Endless(Arc<AtomicBool>),
}

impl ImageEncoder for Encoder {
    fn encode(&self, arena: &Path, folders: &[PathBuf], stopped: &dyn Fn() -> bool) -> Result<Encoded, String> {
        let disk = match self {
            Encoder::Good(disk) => disk,
            Encoder::Dies => return Err("signal 9".into()),
            Encoder::Endless(begun) => {
                begun.store(true, Ordering::Release);
                while !stopped() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                return Err("stopped".into());
            }
        };
        let file = ArenaFile::open(disk, arena).map_err(|e| e.to_string())?;
        let state = file.load(empty(), 1, &|_| {}).map_err(|e| e.to_string())?.state;
        let context = SaveContext {
            layout: LayoutVersion::CURRENT,
            namespace_id: 7,
            txid: file.identity().txid,
            expanded_string_tables: true,
        };
        let saved = image::save_unnamed(disk, folders, &state, context, &image::SaveOptions::default())
            .map_err(|e| e.to_string())?;
        Ok(Encoded { digest: saved.digest, length: saved.length, written: folders.to_vec() })
    }
}

struct World {
    engine: Arc<Engine>,
    disk: SimDisk,
    current: PathBuf,
}

impl World {
    fn new(pool_bytes: u64, encoder: impl FnOnce(&SimDisk) -> Encoder) -> World {
        let (os, disk, _) = Os::simulated(1);
        let current = PathBuf::from("/name/current");
        disk.create_directories(&current, 0o700).unwrap();
        disk.sync_directory(Path::new("/")).unwrap();
        disk.sync_directory(current.parent().unwrap()).unwrap();
        let target = LocalJournal::new(os.disk.clone(), &current, "/name", 1 << 16);
        let members = vec![Membership { target: Box::new(target), required: false }];
        let journal = Journal::open(members, Txid(1), Options::default(), &os, Arc::new(Silent)).unwrap();
        let mut state = empty();
        let now = vocab::time::Now { wall: vocab::TimeMs(1), monotonic: vocab::time::MonotonicMs(1) };
        state.blocks.start(&state.store, 0, state.sequences.stamp, now);
        state.blocks.leave_safe_mode(true);
        let checkpoints = Checkpoints {
            os: os.clone(),
            image_folders: vec![current.clone()].into(),
            edits_folders: vec![current.clone()],
            retention: Default::default(),
            folders: vec![current.clone()],
            storage: info().into(),
            image_options: image::SaveOptions::default(),
            expanded_string_tables: true,
            newest: (Txid(0), None).into(),
            running: tokio::sync::Mutex::new(()),
        };
        let settings = OnlineSettings {
            arena: true,
            image: true,
            period: Duration::from_secs(3_600),
            transactions: 1_000_000,
            check: Duration::from_secs(60),
            pool_bytes,
            unasked_from: 0,
        };
        let online = Online::new(settings, info(), Arc::new(encoder(&disk)), (Txid(0), 0), None, true);
        let settings = ops::Settings { owner: "hdfs".into(), ..ops::Settings::default() };
        let clock = os.clock.clone();
        let engine = Engine::new(state, journal, settings, Policy::default(), clock, HaState::Active, checkpoints);
        World { engine: Arc::new(engine.with_online(online)), disk, current }
    }

    fn mkdirs(&self, path: String) {
        let modes = CreateModes { masked: vocab::Mode::new(0o755), unmasked: None };
        let mkdirs = Mkdirs { path: path.into_bytes(), modes, create_parents: true };
        self.engine.write(&mkdirs, &caller()).answer.unwrap();
    }
    fn digest(&self) -> Digest {
        self.engine.lock().read("test", State::digest)
    }
    fn names(&self, begin: &str) -> Vec<String> {
        self.disk.list(&self.current).unwrap().into_iter().filter(|name| name.starts_with(begin)).collect()
    }
    fn arena(&self) -> ArenaFile {
        let folders = [self.current.clone()];
        let path = arena::candidate(&self.disk, &folders).expect("an arena file");
        let newest = image::newest(&self.disk, &folders).unwrap();
        let newest = newest.unwrap_or(image::Newest { txid: Txid(0), copies: Vec::new() });
        arena::choose(&self.disk, &path, &info(), &newest, &folders).unwrap()
    }
    /// The state that a restart would have: the file's, and the records after it.
    fn restarted(&self) -> State {
        self.engine.journal().watermark().wait_blocking(self.engine.journal().last_assigned()).unwrap();
        self.engine.roll_blocking();
        let file = self.arena();
        let (mut state, policy) = (file.load(empty(), 2, &|_| {}).unwrap().state, Policy::default());
        let from = file.identity().txid.next();
        let segments = local::select(&self.disk, &[&self.current], from, Txid(0)).unwrap();
        let mut apply = |_, record: edit::Record<'_>| match state.fit(&record, &policy) {
            Fit::Fits(fitted) => {
                state.apply(&record, fitted, &policy, Mode::Restart, &mut Effects::new(Mode::Restart));
                Ok(())
            }
            Fit::NoOp(_) => Ok(()),
            other => Err(format!("{other:?}")),
        };
        replay::replay(&self.disk, &segments, from, 1 << 20, &mut |_| {}, &mut apply).unwrap();
        state
    }
}

/// Ends the open segment, so that its records are in a finished one.
trait RollBlocking {
    fn roll_blocking(&self);
}
impl RollBlocking for Engine {
    fn roll_blocking(&self) {
        let first = self.journal().roll();
        self.journal().watermark().wait_blocking(first).unwrap();
    }
}

fn caller() -> Caller {
    Caller {
        user: "hdfs".into(),
        real_user: None,
        groups: Arc::default(),
        method: AuthenticationMethod::Simple,
        address: ([127, 0, 0, 1], 1).into(),
        rpc_ids: None,
        retry: -1,
        context: None,
    }
}

#[test]
fn a_checkpoint_and_the_records_after_it_are_the_state_whoever_writes_meanwhile() {
    let w = World::new(1 << 30, |disk| Encoder::Good(disk.clone()));
    (0..300).for_each(|n| w.mkdirs(format!("/before/{}/{n}", n % 7)));
    let (end, done) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::Acquire) {
                let n = done.fetch_add(1, Ordering::AcqRel);
                w.mkdirs(format!("/meanwhile/{}/{n}", n % 13));
            }
        });
        let mut last = Txid(0);
        for _ in 0..5 {
            let txid = w.engine.make_checkpoint().unwrap();
            assert!(txid > last);
            last = txid;
            assert_eq!(w.names("arena"), [storage::names::arena(txid)]);
            assert!(w.names("fsimage").contains(&storage::names::image(txid)));
            w.engine.roll_blocking();
        }
        end.store(true, Ordering::Release);
    });
    assert!(done.load(Ordering::Acquire) > 0);
    assert_eq!(w.restarted().digest(), w.digest());
    // the image says the same as the file that it was made from
    let newest = image::newest(&w.disk, std::slice::from_ref(&w.current)).unwrap().unwrap();
    assert_eq!(newest.copies.len(), 1);
    let file = w.arena();
    assert_eq!(newest.txid, file.identity().txid);
    let bytes = w.disk.read(&newest.copies[0]).unwrap();
    let loaded = image::load(&bytes, file.binding().unwrap(), empty()).unwrap();
    assert_eq!(loaded.state.digest(), file.load(empty(), 1, &|_| {}).unwrap().state.digest());
    assert_eq!(w.engine.lock().read("test", |s| s.page_sets().iter().map(|p| p.frozen().0).max()), Some(0), "thawed");
}

#[test]
fn the_checkpoint_yields_when_the_pool_is_full_and_clients_do_not() {
    let w = World::new(0, |disk| Encoder::Good(disk.clone()));
    let (end, done) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::Acquire) {
                w.mkdirs(format!("/d/{}", done.fetch_add(1, Ordering::AcqRel)));
            }
        });
        let full = (0..500).any(|_| matches!(w.engine.make_checkpoint(), Err(NotMade::Write(WriteError::PoolFull))));
        end.store(true, Ordering::Release);
        assert!(full);
    });
    // without writes it needs no room
    assert_eq!(w.names("arena.ckpt"), Vec::<String>::new());
    w.engine.make_checkpoint().unwrap();
    assert_eq!(w.restarted().digest(), w.digest());
}

#[test]
fn a_full_or_broken_disk_costs_the_checkpoint_and_nothing_else() {
    let w = World::new(1 << 30, |disk| Encoder::Good(disk.clone()));
    w.mkdirs("/a".into());
    w.disk.break_path(&w.current.join("arena.ckpt_0000000000000000003"));
    assert!(matches!(w.engine.make_checkpoint(), Err(NotMade::Write(WriteError::Storage(_)))));
    w.disk.mend();
    w.mkdirs("/b".into());
    w.engine.make_checkpoint().unwrap();
    assert_eq!(w.restarted().digest(), w.digest());
}

#[test]
fn an_encoder_that_dies_leaves_a_file_that_a_restart_can_use() {
    let w = World::new(1 << 30, |_| Encoder::Dies);
    // what a format leaves
    let formatted = storage::names::image(Txid(0));
    w.disk.open(&w.current.join(&formatted), Open::CreateNew).unwrap();
    w.mkdirs("/a".into());
    assert!(matches!(w.engine.make_checkpoint(), Err(NotMade::Image(_))));
    assert_eq!(w.names("fsimage"), [formatted]);
    assert_eq!(w.arena().binding(), None);
    w.mkdirs("/b".into());
    assert_eq!(w.restarted().digest(), w.digest());
}

#[test]
fn two_at_once_are_one_after_the_other() {
    let w = World::new(1 << 30, |disk| Encoder::Good(disk.clone()));
    w.mkdirs("/a".into());
    let mut made: Vec<Txid> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| w.engine.make_checkpoint().unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    made.sort_unstable();
    assert!(made[0] < made[1]);
    assert_eq!(w.names("arena"), [storage::names::arena(made[1])]);
    assert_eq!(w.restarted().digest(), w.digest());
}

/// An administrator's save, and the end of the process, do not wait for a checkpoint.
#[test]
fn a_save_and_a_stop_interrupt_a_checkpoint() {
    let begun = Arc::new(AtomicBool::new(false));
    let w = World::new(1 << 30, |_| Encoder::Endless(begun.clone()));
    w.mkdirs("/a".into());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    std::thread::scope(|scope| {
        let checkpoint = || {
            begun.store(false, Ordering::Release);
            let running = scope.spawn(|| w.engine.make_checkpoint());
            while !begun.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            running
        };
        let first = checkpoint();
        w.engine.lock().write("test", |state| state.blocks.safe_mode.enter_manual());
        assert!(runtime.block_on(w.engine.save_namespace(&caller(), 0, 0)).unwrap());
        assert!(matches!(first.join().unwrap(), Err(NotMade::Interrupted)));
        assert_eq!(w.names("arena"), Vec::<String>::new(), "an image is newer");
        assert!(matches!(w.engine.make_checkpoint(), Err(NotMade::NotNow)), "in safe mode");
        w.engine.lock().write("test", |state| state.blocks.leave_safe_mode(true));
        let second = checkpoint();
        w.engine.gate().set(HaState::Stopping);
        runtime.block_on(w.engine.end_checkpoints());
        assert!(matches!(second.join().unwrap(), Err(NotMade::Interrupted)));
        assert!(matches!(w.engine.make_checkpoint(), Err(NotMade::NotNow)), "in no role");
        assert_eq!(w.arena().binding(), None);
    });
}

impl World {
    fn save(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        self.engine.lock().write("test", |state| state.blocks.safe_mode.enter_manual());
        assert!(runtime.block_on(self.engine.save_namespace(&caller(), 0, 0)).unwrap());
    }
    /// A bound file for that transaction, which is the state.
    fn is_bound(&self, txid: Txid) {
        let (file, folders) = (self.arena(), [self.current.clone()]);
        let newest = image::newest(&self.disk, &folders).unwrap().unwrap();
        assert_eq!((file.identity().txid, newest.txid), (txid, txid));
        assert_eq!(file.binding(), arena::digest_of_all(&self.disk, &newest));
        assert!(file.binding().is_some());
        assert_eq!(file.load(empty(), 1, &|_| {}).unwrap().state.digest(), self.digest());
    }
}

/// A start from an image and a save leave no arena file that is of use; one is made at once, in safe mode too.
#[test]
fn what_a_restart_would_miss_is_made_at_once() {
    let w = World::new(1 << 30, |_| Encoder::Dies);
    (0..50).for_each(|n| w.mkdirs(format!("/before/{n}")));
    w.save();
    let txid = Txid(w.engine.journal().segment().0 - 1);
    assert_eq!(w.engine.make_missing_arena().unwrap(), txid);
    assert_eq!(w.engine.journal().segment(), txid.next(), "nothing is written in safe mode");
    w.is_bound(txid);
    assert!(matches!(w.engine.make_missing_arena(), Err(NotMade::NotNow)), "it is there");
    // a newer image takes its use
    w.save();
    assert_eq!(w.names("arena"), Vec::<String>::new());
    let txid = Txid(w.engine.journal().segment().0 - 1);
    assert_eq!(w.engine.make_missing_arena().unwrap(), txid);
    w.is_bound(txid);
    // records in the open segment: not before safe mode is left, and then without an image
    w.save();
    w.engine.lock().write("test", |state| state.blocks.leave_safe_mode(true));
    w.mkdirs("/later".into());
    w.engine.lock().write("test", |state| state.blocks.safe_mode.enter_manual());
    assert!(matches!(w.engine.make_missing_arena(), Err(NotMade::NotNow)));
    w.engine.lock().write("test", |state| state.blocks.leave_safe_mode(true));
    let images = w.names("fsimage");
    assert!(w.engine.make_missing_arena().unwrap() > txid);
    assert_eq!((w.names("fsimage"), w.arena().binding()), (images, None));
    w.mkdirs("/last".into());
    assert_eq!(w.restarted().digest(), w.digest());
}

/// A checkpointer's image that is newer than the file, and one that is not.
#[test]
fn an_image_from_elsewhere_leaves_a_file_behind() {
    let w = World::new(1 << 30, |disk| Encoder::Good(disk.clone()));
    w.mkdirs("/a".into());
    let txid = w.engine.make_checkpoint().unwrap();
    w.engine.image_received(txid);
    assert!(matches!(w.engine.make_missing_arena(), Err(NotMade::NotNow)));
    w.mkdirs("/b".into());
    w.engine.roll_blocking();
    w.engine.image_received(w.engine.journal().segment());
    assert!(w.engine.make_missing_arena().is_ok());
    assert_eq!(w.restarted().digest(), w.digest());
}

/// The log is rolled all the time, by administrators and by itself.
#[test]
fn rolls_meanwhile_change_nothing() {
    let w = World::new(1 << 30, |disk| Encoder::Good(disk.clone()));
    (0..300).for_each(|n| w.mkdirs(format!("/before/{}/{n}", n % 7)));
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                if end.load(Ordering::Acquire) {
                    break;
                }
                w.mkdirs(format!("/meanwhile/{n}"));
                w.engine.roll_blocking();
            }
        });
        (0..5).for_each(|_| assert!(w.engine.make_checkpoint().is_ok()));
        end.store(true, Ordering::Release);
    });
    assert_eq!(w.restarted().digest(), w.digest());
}

/// Whatever call of a checkpoint the disk fails, tears or never comes back from: a restart finds all that was answered.
#[test]
fn a_fault_at_any_call_loses_nothing() {
    for fault in [Fault::Stop, Fault::Io, Fault::NoSpace, Fault::Short] {
        for call in 1.. {
            let w = World::new(1 << 30, |disk| Encoder::Good(disk.clone()));
            w.save_formatted();
            (0..9).for_each(|n| w.mkdirs(format!("/d{n}")));
            w.engine.journal().watermark().wait_blocking(w.engine.journal().last_assigned()).unwrap();
            let (digest, before) = (w.digest(), w.disk.calls());
            w.disk.fault_at(before + call, fault);
            let made = w.engine.make_checkpoint();
            let calls = w.disk.calls() - before;
            if calls < call {
                // the fault is still to come, to whoever would look now
                assert!(made.is_ok());
                break;
            }
            let disk = if fault == Fault::Stop { w.disk.crash() } else { w.disk.clone() };
            assert_eq!(restart(&disk, &w.current).digest(), digest, "{fault:?} at {call} of {calls}: {made:?}");
        }
    }
}

impl World {
    /// What a format leaves: an image of nothing.
    fn save_formatted(&self) {
        let context = SaveContext {
            layout: LayoutVersion::CURRENT,
            namespace_id: 7,
            txid: Txid(0),
            expanded_string_tables: true,
        };
        let folders = [self.current.clone()];
        image::save_with(&self.disk, &folders, &empty(), context, &image::SaveOptions::default()).unwrap();
    }
}

/// What a start makes of a disk: the arena file if it fits, else the newest image, and the records after it.
fn restart(disk: &SimDisk, current: &Path) -> State {
    let folders = [current.to_owned()];
    let newest = image::newest(disk, &folders).unwrap().expect("an image");
    let file = arena::candidate(disk, &folders).map(|path| arena::choose(disk, &path, &info(), &newest, &folders));
    let from_file = file.and_then(Result::ok).and_then(|file| {
        let loaded = file.load(empty(), 1, &|_| {}).ok()?;
        Some((loaded.state, file.identity().txid))
    });
    let (mut state, txid) = from_file.unwrap_or_else(|| {
        let (loaded, _) = image::load_copies(disk, &newest, empty, image::Loading::default()).unwrap();
        (loaded.state, loaded.txid)
    });
    let recovered = local::recover(disk, &folders, 1 << 20, local::Damage::Refused, |_| true).unwrap();
    assert!(recovered.unusable.is_empty(), "{:?}", recovered.unusable);
    let segments = local::select(disk, &[current], txid.next(), Txid(0)).unwrap();
    let policy = Policy::default();
    let mut apply = |_, record: edit::Record<'_>| match state.fit(&record, &policy) {
        Fit::Fits(fitted) => {
            state.apply(&record, fitted, &policy, Mode::Restart, &mut Effects::new(Mode::Restart));
            Ok(())
        }
        Fit::NoOp(_) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    replay::replay(disk, &segments, txid.next(), 1 << 20, &mut |_| {}, &mut apply).unwrap();
    state
}
