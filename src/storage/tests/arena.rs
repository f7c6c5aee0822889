//! Arena files: what goes in comes out, and what does not fit is told.

use mem::page::{PAGE_BYTES, ShadowPool};
use namespace::build::Build;
use os::disk::{Disk, Open};
use os::sim::{Fault, SimDisk};
use os::{Os, RealDisk};
use record::{BlockInfo, Features, Inode, InodeKind, Store};
use state::{RootAttributes, State};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::arena::{self, ArenaFile, Frozen, LogEnd, Unfit, WriteError};
use storage::image::{self, Newest, SaveContext};
use storage::{StorageInfo, names};
use vocab::{Block, BlockId, GenerationStamp, InodeId, LayoutVersion, Mode, TimeMs, Txid};

const TXID: Txid = Txid(77);

fn empty() -> State {
    State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: Mode::new(0o755) })
}

/// `directories` directories of 100 files each.
fn filled(directories: i64) -> State {
    let mut state = empty();
    state.store = Store::new();
    let (store, mut id) = (&mut state.store, InodeId::ROOT.0);
    let mut build = Build::new(store);
    let inode = |id: i64, kind| Inode {
        id: InodeId(id),
        parent: None,
        user: record::UserId(0),
        group: record::GroupId(0),
        mode: Mode::new(0o755),
        mtime: TimeMs(id),
        atime: TimeMs(0),
        features: Features::NONE,
        kind,
    };
    let directory = InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 };
    let root = build.add(store, &inode(id, directory.clone()), b"");
    let mut top = Vec::new();
    for d in 0..directories {
        id += 1;
        let parent = build.add(store, &inode(id, directory.clone()), format!("d{d:06}").as_bytes());
        top.push(parent);
        let mut children = Vec::new();
        for f in 0..100 {
            id += 1;
            let kind =
                InodeKind::File { replication: 3, block_size: 1 << 27, storage_policy: 0, erasure_coding_policy: 0 };
            let file = build.add(store, &inode(id, kind), format!("file-{f:03}").as_bytes());
            let block = Block { id: BlockId(1 << 30 | id), length: 5, stamp: GenerationStamp(1_000 + id) };
            store.push_block(file, &BlockInfo { block, replication: 3, ..BlockInfo::default() });
            children.push(file);
        }
        build.set_children(store, parent, &children).unwrap();
    }
    build.set_children(store, root, &top).unwrap();
    state.tree = build.finish(store).unwrap();
    state.sequences.inode = InodeId(id);
    state
}

fn info() -> StorageInfo {
    StorageInfo {
        layout: LayoutVersion::CURRENT,
        namespace_id: 5,
        cluster_id: "CID-1".into(),
        ctime: 3,
        block_pool_id: "BP-1".into(),
    }
}

fn write(disk: &dyn Disk, current: &Path, state: &mut State, log: Option<LogEnd>) -> Result<PathBuf, WriteError> {
    let pool = Arc::new(ShadowPool::new(1 << 30));
    let rest = state.freeze(&pool);
    let sets = state.page_sets().iter().map(|pages| pages.frozen().0).collect();
    let mut next = |set: usize, out: &mut Vec<u8>| {
        let count = state.page_sets()[set].copy_frozen(16, out);
        (!pool.is_full()).then_some(count)
    };
    let frozen = Frozen { rest: &rest, sets, next: &mut next, log_end: &mut || log };
    arena::write(disk, current, &info(), TXID, frozen).map(|(path, _)| path)
}
fn load(disk: &dyn Disk, path: &Path) -> Result<State, Unfit> {
    Ok(ArenaFile::open(disk, path)?.load(empty(), 3, &|_| {})?.state)
}

struct Scratch(PathBuf);
impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("ironroot-arena-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
fn simulated() -> (SimDisk, PathBuf) {
    let (os, disk, _) = Os::simulated(1);
    let current = PathBuf::from("/name/current");
    os.disk.create_directories(&current, 0o700).unwrap();
    (disk, current)
}

#[test]
fn a_state_comes_back_mapped_goes_on_and_is_moved_in() {
    let (scratch, disk) = (Scratch::new("real"), RealDisk::default());
    let mut state = filled(800);
    let digest = state.digest();
    let path = write(&disk, &scratch.0, &mut state, None).unwrap();
    assert_eq!(path, scratch.0.join("arena_0000000000000000077"));
    let mut loaded = load(&disk, &path).unwrap();
    assert_eq!(loaded.digest(), digest);
    assert_eq!(loaded.tree.check(&loaded.store), Vec::<String>::new());
    assert!(loaded.page_sets().iter().any(|pages| pages.is_mapped()), "80,000 files fill more than a chunk");
    // changes stay in memory, whether before a chunk is moved or after
    let file = loaded.tree.resolve(&loaded.store, b"/d000007/file-042").unwrap().last().unwrap();
    loaded.store.edit_inode(file, |inode| inode.mtime = TimeMs(1));
    let changed = loaded.digest();
    let mut moved = 0;
    for set in 0..loaded.page_sets().len() {
        while let Some(memory) = loaded.page_sets_mut()[set].move_in(&mut Some(mem::page::SpareChunk::new())) {
            moved += memory.len();
            os::mapping::give_back(memory);
        }
    }
    assert!(moved > 1 << 22 && loaded.page_sets().iter().all(|pages| !pages.is_mapped()));
    assert_eq!(loaded.digest(), changed);
    assert_eq!(load(&disk, &path).unwrap().digest(), digest);
}

#[test]
fn an_image_made_from_the_file_is_that_of_the_state() {
    let (disk, current) = simulated();
    let mut state = filled(30);
    let path = write(&disk, &current, &mut state, None).unwrap();
    let context =
        SaveContext { layout: LayoutVersion::CURRENT, namespace_id: 5, txid: TXID, expanded_string_tables: true };
    let image = |state: &State| {
        let mut bytes = Vec::new();
        let digest = image::encode(state, context, &mut |chunk| bytes.extend_from_slice(chunk)).unwrap();
        (bytes, digest)
    };
    let (bytes, digest) = image(&load(&disk, &path).unwrap());
    assert_eq!((bytes.len(), digest), {
        let (b, d) = image(&state);
        (b.len(), d)
    });
    assert_eq!(image::load(&bytes, digest, empty()).unwrap().state.digest(), state.digest());
}

/// What differs in one byte anywhere, or is cut off anywhere, is not used.
#[test]
fn every_damage_is_found() {
    let (disk, current) = simulated();
    let mut state = filled(5);
    let path = write(&disk, &current, &mut state, None).unwrap();
    let digest = state.digest();
    let bytes = disk.read(&path).unwrap();
    let length = bytes.len();
    let put = |bytes: &[u8]| disk.open(&path, Open::Truncate).unwrap().write_all_at(bytes, 0).unwrap();
    let ends = [0, 17, 4_095, PAGE_BYTES, PAGE_BYTES + 1, length - 8_193, length - 8_192, length - 4_097];
    let steps = (0..length - 4_096).step_by(9_973);
    for at in ends.into_iter().chain(steps) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        put(&changed);
        // the few zeros before the manifest are nobody's
        match load(&disk, &path) {
            Err(Unfit::Damaged(_)) => {}
            Ok(state) => assert!(state.digest() == digest && bytes[at] == 0 && at > length - 3 * 4_096, "byte {at}"),
            Err(other) => panic!("byte {at}: {other}"),
        }
        put(&bytes[..at]);
        assert!(matches!(load(&disk, &path), Err(Unfit::Damaged(_))), "cut at {at}");
    }
    // a page of another number, and one that an earlier checkpoint left
    let page = |number: usize| PAGE_BYTES * (number + 1)..PAGE_BYTES * (number + 2);
    let mut swapped = bytes.clone();
    swapped.copy_within(page(0), page(1).start);
    put(&swapped);
    assert!(matches!(load(&disk, &path), Err(Unfit::Damaged(what)) if what == "page 1"));
    put(&bytes);
    assert_eq!(load(&disk, &path).unwrap().digest(), digest);
    disk.break_reads(&path);
    assert!(matches!(load(&disk, &path), Err(Unfit::Storage(_))));
}

/// At whatever call the process, the disk or the room on it ends: there is no file, or a whole one.
#[test]
fn a_file_is_whole_or_not_there() {
    for fault in [Fault::Stop, Fault::Io, Fault::NoSpace, Fault::Short] {
        for call in 1.. {
            let (disk, current) = simulated();
            let mut state = filled(3);
            let digest = state.digest();
            disk.fault_at(disk.calls() + call, fault);
            let before = disk.calls();
            let written = write(&disk, &current, &mut state, None);
            let calls = disk.calls() - before;
            let disk = if fault == Fault::Stop { disk.crash() } else { disk };
            let found = arena::candidate(&disk, std::slice::from_ref(&current));
            if let Ok(path) = &written {
                assert_eq!(found.as_ref(), Some(path), "{fault:?} at {call}");
            }
            if let Some(path) = found {
                assert_eq!(load(&disk, &path).unwrap().digest(), digest, "{fault:?} at {call}");
            }
            if written.is_err() && fault != Fault::Stop {
                let left = disk.list(&current).unwrap();
                assert!(left.iter().all(|name| !name.starts_with("arena.ckpt")), "{fault:?} at {call}: {left:?}");
            }
            // the fault may be waiting for the purge
            (0..2).for_each(|_| drop(arena::purge(&disk, std::slice::from_ref(&current), None)));
            assert_eq!(disk.list(&current).unwrap(), Vec::<String>::new());
            if calls < call {
                break;
            }
        }
    }
}

#[test]
fn a_full_pool_leaves_nothing() {
    let (disk, current) = simulated();
    let mut state = filled(3);
    let pool = Arc::new(ShadowPool::new(0));
    let rest = state.freeze(&pool);
    let root = state.tree.root();
    state.store.edit_inode(root, |inode| inode.mtime = TimeMs(5));
    let sets = state.page_sets().iter().map(|pages| pages.frozen().0).collect();
    let mut next = |set: usize, out: &mut Vec<u8>| {
        let count = state.page_sets()[set].copy_frozen(16, out);
        (!pool.is_full()).then_some(count)
    };
    let frozen = Frozen { rest: &rest, sets, next: &mut next, log_end: &mut || None };
    let written = arena::write(&disk, &current, &info(), TXID, frozen);
    assert!(matches!(written, Err(WriteError::PoolFull)));
    assert_eq!(disk.list(&current).unwrap(), Vec::<String>::new());
}

/// A world with an arena file for 77, an image for `image` and segments 1-60, 61-77, 78-80.
struct Chosen {
    disk: SimDisk,
    current: PathBuf,
    path: PathBuf,
}

impl Chosen {
    fn new() -> Chosen {
        Chosen::since(61)
    }
    /// With the edits from that transaction on.
    fn since(from: u64) -> Chosen {
        let (disk, current) = simulated();
        let put = |name: String, text: &str| {
            disk.open(&current.join(name), Open::Truncate).unwrap().write_all_at(text.as_bytes(), 0).unwrap();
        };
        for (first, last) in [(1, 60), (61, 77), (78, 80)] {
            put(names::finalized(Txid(first), Txid(last)), &format!("edits {first}"));
        }
        let log = LogEnd::find(&disk, &["/gone".into(), current.clone()], Txid(from), TXID);
        assert_eq!(log.unwrap().first, Txid(from));
        let path = write(&disk, &current, &mut filled(1), log).unwrap();
        Chosen { disk, current, path }
    }
    fn put(&self, name: &str, bytes: &[u8]) {
        self.disk.open(&self.current.join(name), Open::Truncate).unwrap().write_all_at(bytes, 0).unwrap();
    }
    fn image(&self, txid: u64, content: &[u8]) -> image::Digest {
        let (name, digest) = (names::image(Txid(txid)), image::Digest::of(content));
        self.put(&name, content);
        self.put(&names::digest(&name), digest.file_text(&name).as_bytes());
        digest
    }
    fn choose_for(&self, info: &StorageInfo, txid: u64) -> Result<ArenaFile, Unfit> {
        let newest = Newest { txid: Txid(txid), copies: vec![self.current.join(names::image(Txid(txid)))] };
        arena::choose(&self.disk, &self.path, info, &newest, std::slice::from_ref(&self.current))
    }
    fn choose(&self, txid: u64) -> Result<ArenaFile, Unfit> {
        self.choose_for(&info(), txid)
    }
}

#[test]
fn a_file_is_chosen_by_the_edits_that_lead_to_it() {
    let w = Chosen::new();
    w.image(60, b"older");
    assert_eq!(w.choose(60).unwrap().identity().txid, TXID);
    // the same numbers from another history: a backup, a recovery
    w.put(&names::finalized(Txid(61), TXID), b"others");
    assert!(matches!(w.choose(60), Err(Unfit::OtherEdits)));
    w.disk.remove_file(&w.current.join(names::finalized(Txid(61), TXID))).unwrap();
    assert!(matches!(w.choose(60), Err(Unfit::OtherEdits)));
}

#[test]
fn all_edits_since_the_newest_image_must_be_those_of_the_file() {
    let (first, last) = (names::finalized(Txid(1), Txid(60)), names::finalized(Txid(61), TXID));
    let w = Chosen::since(1);
    w.image(0, b"formatted");
    assert_eq!(w.choose(0).unwrap().log_end().unwrap().first, Txid(1));
    // newer images that come between change nothing
    assert!(w.choose(60).is_ok());
    // a record was taken out of a segment before the last one
    w.put(&first, b"edits 2");
    assert!(matches!(w.choose(0), Err(Unfit::OtherEdits)));
    w.put(&first, b"edits 1");
    assert!(w.choose(0).is_ok());
    w.disk.remove_file(&w.current.join(&first)).unwrap();
    assert!(matches!(w.choose(0), Err(Unfit::OtherEdits)));
    // an image that is older than all the file knows of
    let w = Chosen::since(61);
    assert!(w.choose(60).is_ok());
    assert!(matches!(w.choose(0), Err(Unfit::OtherEdits)));
    // copies of a segment that differ: nobody knows which one counts
    let other = PathBuf::from("/other/current");
    w.disk.create_directories(&other, 0o700).unwrap();
    let folders = [w.current.clone(), other.clone()];
    let put = |text: &[u8]| w.disk.open(&other.join(&last), Open::Truncate).unwrap().write_all_at(text, 0).unwrap();
    put(b"edits 61");
    assert!(LogEnd::find(&w.disk, &folders, Txid(61), TXID).is_some());
    put(b"edits 62");
    assert!(LogEnd::find(&w.disk, &folders, Txid(61), TXID).is_none());
}

#[test]
fn a_file_is_chosen_by_the_image_that_was_made_from_it() {
    let w = Chosen::new();
    let digest = w.image(77, b"image");
    assert!(matches!(w.choose(77), Err(Unfit::OtherImage(_))), "not bound to any");
    arena::bind(&w.disk, &w.path, &digest).unwrap();
    assert_eq!(w.choose(77).unwrap().binding(), Some(digest));
    // the edits need not be there then
    w.disk.remove_file(&w.current.join(names::finalized(Txid(61), TXID))).unwrap();
    assert!(w.choose(77).is_ok());
    w.image(77, b"another image of the same number");
    assert!(matches!(w.choose(77), Err(Unfit::OtherImage(_))));
    w.image(78, b"newer");
    assert!(matches!(w.choose(78), Err(Unfit::NewerImage(Txid(78)))));
}

#[test]
fn a_file_of_another_file_system_is_told() {
    let w = Chosen::new();
    w.image(60, b"older");
    let others = [
        StorageInfo { namespace_id: 6, ..info() },
        StorageInfo { cluster_id: "CID-2".into(), ..info() },
        StorageInfo { block_pool_id: "BP-2".into(), ..info() },
        StorageInfo { ctime: 4, ..info() },
        StorageInfo { layout: LayoutVersion(-66), ..info() },
    ];
    for other in others {
        assert!(matches!(w.choose_for(&other, 60), Err(Unfit::Identity)), "{other:?}");
    }
    // under the name of another transaction
    let renamed = w.current.join(names::arena(Txid(60)));
    w.disk.rename(&w.path, &renamed).unwrap();
    let newest = Newest { txid: Txid(60), copies: Vec::new() };
    let chosen = arena::choose(&w.disk, &renamed, &info(), &newest, std::slice::from_ref(&w.current));
    assert!(matches!(chosen, Err(Unfit::Damaged(_))));
}

/// Whatever Hadoop puts into an image: snapshots, attributes, open files, policies, tokens.
#[test]
fn states_of_real_images_come_back() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/fsimage/3.5.0");
    let mut tried = 0;
    for scenario in std::fs::read_dir(&golden).expect("golden images").map(|entry| entry.expect("entry").path()) {
        let Ok(names) = std::fs::read_dir(scenario.join("current")) else { continue };
        for path in names.map(|entry| entry.expect("entry").path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if !matches!(names::kind(&name), names::Kind::Image(_)) {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            // images of what is not supported yet are refused by the loader; its own tests say which
            let Ok(loaded) = image::load(&bytes, image::Digest::of(&bytes), empty()) else { continue };
            let (disk, current) = simulated();
            let mut state = loaded.state;
            let file = write(&disk, &current, &mut state, None).unwrap();
            let restored = load(&disk, &file).unwrap();
            assert_eq!(restored.digest(), state.digest(), "{}", path.display());
            assert_eq!(restored.tree.check(&restored.store), state.tree.check(&state.store), "{}", path.display());
            tried += 1;
        }
    }
    assert!(tried >= 20, "{tried} images");
}
