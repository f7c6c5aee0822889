//! Images of before the protobuf format, written here by hand in each of their forms, and the directories that hold them.

use os::Os;
use os::disk::Open;
use state::{RootAttributes, State};
use std::path::Path;
use storage::image::{ImageError, Loaded, legacy};
use storage::{Directories, Location, Roles, pretransactional};
use vocab::layout::{Feature, LayoutVersion};
use vocab::{GenerationStamp, InodeId, Mode, Txid};

fn empty() -> State {
    State::new(RootAttributes { user: "", group: "", mode: Mode::new(0o755) })
}

/// Writes an image.
struct Writer {
    layout: LayoutVersion,
    bytes: Vec<u8>,
    next_id: i64,
}

impl Writer {
    fn has(&self, feature: Feature) -> bool {
        self.layout.supports(feature)
    }
    fn i16(&mut self, value: i16) {
        self.bytes.extend(value.to_be_bytes());
    }
    fn i32(&mut self, value: i32) {
        self.bytes.extend(value.to_be_bytes());
    }
    fn i64(&mut self, value: i64) {
        self.bytes.extend(value.to_be_bytes());
    }
    fn name(&mut self, name: &str) {
        self.i16(name.len() as i16);
        self.bytes.extend(name.as_bytes());
    }
    fn permission(&mut self, mode: i16) {
        for text in ["alice", "staff"] {
            self.bytes.push(text.len() as u8);
            self.bytes.extend(text.as_bytes());
        }
        self.i16(mode);
    }

    fn start(layout: i32, inodes: i64) -> Writer {
        let mut w = Writer { layout: LayoutVersion(layout), bytes: Vec::new(), next_id: 16_385 };
        w.i32(layout);
        if w.has(Feature::AddLayoutFlags) {
            w.i32(0);
        }
        w.i32(77);
        w.i64(inodes);
        w.i64(1_005);
        if w.has(Feature::SequentialBlockId) {
            w.i64(9_000);
            w.i64(2_000);
            w.i64(1 << 31);
        }
        if w.has(Feature::StoredTxids) {
            w.i64(42);
        }
        if w.has(Feature::AddInodeId) {
            w.i64(20_000);
        }
        if w.has(Feature::Snapshot) {
            w.i32(3);
            w.i32(0);
        }
        if w.has(Feature::FsimageCompression) {
            w.bytes.push(0);
        }
        w
    }

    /// What all inodes begin with, after their name.
    fn inode(&mut self, replication: i16, block_size: i64, blocks: i32) {
        if self.has(Feature::AddInodeId) {
            self.i64(self.next_id);
            self.next_id += 1;
        }
        self.i16(replication);
        self.i64(1_000);
        if self.has(Feature::FileAccessTime) {
            self.i64(2_000);
        }
        self.i64(block_size);
        self.i32(blocks);
    }

    fn directory(&mut self, namespace: i64, space: i64) {
        self.inode(0, 0, -1);
        self.i64(namespace);
        if self.has(Feature::DiskspaceQuota) {
            self.i64(space);
        }
        if self.has(Feature::Snapshot) {
            self.bytes.extend([0, 0]);
        }
        self.permission(0o750);
    }

    fn file(&mut self, blocks: &[i64]) {
        self.inode(3, 4_096, blocks.len() as i32);
        self.blocks(blocks);
        if self.has(Feature::Snapshot) {
            self.i32(-1);
        }
        self.permission(0o640);
    }

    fn blocks(&mut self, blocks: &[i64]) {
        for id in blocks {
            self.i64(*id);
            self.i64(100);
            self.i64(1_004);
        }
    }

    fn tail(&mut self, open: Option<(&str, i64)>) {
        self.i32(i32::from(open.is_some()));
        if let Some((path, block)) = open {
            self.name(path);
            if self.has(Feature::AddInodeId) {
                self.i64(16_388);
            }
            self.i16(3);
            self.i64(1_000);
            self.i64(4_096);
            self.i32(1);
            self.blocks(&[block]);
            self.permission(0o640);
            self.name("writer");
            self.name("host");
            self.i32(0);
        }
        if self.has(Feature::DelegationToken) {
            self.i32(6); // current key
            self.i32(1);
            self.bytes.extend([6, 100, 2, 0xaa, 0xbb]);
            self.i32(9); // sequence
            self.i32(1);
            self.bytes.extend([0, 1, b'o', 1, b'r', 0, 10, 20, 9, 6]);
            self.i64(15);
        }
        if self.has(Feature::Caching) {
            self.i64(1);
            self.i32(0);
            self.i32(0);
        }
    }
}

/// `/`, `/b` with a quota, `/b/f` with a block, open; `/a`.
fn image(layout: i32) -> Vec<u8> {
    let mut w = Writer::start(layout, 4);
    w.name("");
    w.directory(i64::from(i32::MAX), -1);
    if !w.has(Feature::FsimageNameOptimization) {
        for path in ["/b", "/a"] {
            w.name(path);
            w.directory(if path == "/b" { 10 } else { -1 }, -1);
        }
        w.name("/b/f");
        w.file(&[-7]);
    } else if !w.has(Feature::Snapshot) {
        w.name("");
        w.i32(2);
        for name in ["b", "a"] {
            w.name(name);
            w.directory(if name == "b" { 10 } else { -1 }, -1);
        }
        w.name("/b");
        w.i32(1);
        w.name("f");
        w.file(&[-7]);
    } else {
        w.i64(16_385);
        w.i32(0);
        w.i32(0); // snapshots of the root: none, none allowed
        w.i32(2);
        for name in ["b", "a"] {
            w.name(name);
            w.directory(if name == "b" { 10 } else { -1 }, -1);
        }
        w.i32(-1);
        w.i32(2);
        for (id, file) in [(16_386, true), (16_387, false)] {
            w.i64(id);
            w.i32(-1);
            w.i32(i32::from(file));
            if file {
                w.name("f");
                w.file(&[-7]);
            }
            w.i32(-1);
            w.i32(0);
        }
    }
    w.tail(Some(("/b/f", -7)));
    w.bytes
}

/// One layout of each form: full names without and with times of access and quotas; names with the path of their parent; ids; snapshots; all.
const LAYOUTS: [i32; 10] = [-16, -18, -24, -32, -33, -40, -42, -43, -47, -51];

fn load(bytes: &[u8]) -> Result<Loaded, ImageError> {
    legacy::load(bytes, empty())
}

#[test]
fn every_form_is_loaded() {
    for layout in LAYOUTS {
        let bytes = image(layout);
        assert!(legacy::is_legacy(&bytes));
        let loaded = load(&bytes).unwrap_or_else(|error| panic!("{layout}: {error}"));
        let layout = LayoutVersion(layout);
        assert_eq!((loaded.namespace_id, loaded.layout), (77, layout));
        assert_eq!(loaded.txid, Txid(if layout.supports(Feature::StoredTxids) { 42 } else { 0 }));
        let state = &loaded.state;
        assert_eq!(state.tree.inode_count(), 4, "{layout:?}");
        let find = |path: &[u8]| state.tree.resolve(&state.store, path).unwrap().last().expect("there");
        let id = |path: &[u8]| state.store.inode_id(find(path));
        // without ids in the image the root's record takes the first one, as in Hadoop
        let first = if layout.supports(Feature::AddInodeId) { 16_386 } else { 16_387 };
        assert_eq!([id(b"/"), id(b"/b"), id(b"/a")], [16_385, first, first + 1].map(InodeId), "{layout:?}");
        assert_eq!(id(b"/b/f"), InodeId(first + 2));
        let last = if layout.supports(Feature::AddInodeId) { 20_000 } else { 16_390 };
        assert_eq!(state.sequences.inode, InodeId(last), "the second record of the open file takes one too");
        let stamps = if layout.supports(Feature::SequentialBlockId) {
            (9_000, 2_000)
        } else {
            (1005 + (1 << 40), 1005 + (1 << 40))
        };
        assert_eq!(
            (state.sequences.stamp, state.sequences.stamp_v1_limit),
            (GenerationStamp(stamps.0), GenerationStamp(stamps.1))
        );
        let file = find(b"/b/f");
        let block = state.store.block(state.store.last_block(file).expect("a block"));
        assert_eq!((block.block.id.0, block.block.length, block.open), (-7, 100, true));
        assert_eq!(state.tokens.tokens.len(), usize::from(layout.supports(Feature::DelegationToken)));
    }
}

/// Any cut and any changed byte gives a state or an error, never a panic and never more memory than the file can ask for.
#[test]
fn damage_is_refused_or_loaded() {
    for layout in [-16, -32, -40, -51] {
        let good = image(layout);
        for length in 0..good.len() {
            assert!(load(&good[..length]).is_err(), "{layout}: cut at {length}");
        }
        for at in 0..good.len() {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                _ = load(&bytes);
            }
        }
        let longer = [&good[..], b"x"].concat();
        assert!(load(&longer).is_err());
    }
}

#[test]
fn names_that_are_reserved_today_are_refused() {
    for name in ["/.snapshot", "/.reserved"] {
        let mut w = Writer::start(-32, 2);
        w.name("");
        w.directory(-1, -1);
        w.name(name);
        w.directory(-1, -1);
        w.tail(None);
        let error = load(&w.bytes).err().expect("refused").to_string();
        assert!(error.contains("upgrade with the -renameReserved [key-value pairs] option"), "{error}");
    }
}

fn directories(os: &Os, roots: &[(&str, i64, &[&str])]) -> Directories {
    let roles = Roles { image: true, edits: true, required: false };
    let locations: Vec<Location> =
        roots.iter().map(|(root, ..)| Location { root: Path::new(root).into(), roles }).collect();
    for (root, time, files) in roots {
        let current = Path::new(root).join("current");
        os.disk.create_directories(&current, 0o700).unwrap();
        let put = |name: &str, bytes: &[u8]| {
            os.disk.open(&current.join(name), Open::Truncate).unwrap().write_all_at(bytes, 0).unwrap();
        };
        put("VERSION", b"namespaceID=77\ncTime=0\nstorageType=NAME_NODE\nlayoutVersion=-32\n");
        put("fstime", &time.to_be_bytes());
        files.iter().for_each(|name| put(name, &LayoutVersion(-32).0.to_be_bytes()));
    }
    Directories::open(&locations, os).unwrap()
}

#[test]
fn the_newest_checkpoint_counts() {
    let (os, _, _) = Os::simulated(1);
    let both = &["fsimage", "edits"][..];
    let found = directories(&os, &[("/a", 5, both), ("/b", 6, &["fsimage", "edits", "edits.new"]), ("/c", 4, both)]);
    let files = pretransactional::find(&*os.disk, &found, LayoutVersion(-32)).unwrap();
    assert_eq!(files.image, Path::new("/b/current/fsimage"));
    assert_eq!(files.edits, ["edits", "edits.new"].map(|name| Path::new("/b/current").join(name)));
    let nothing = &mut |_: edit::Record<'_>| Ok::<(), String>(());
    let last = pretransactional::replay(&*os.disk, &files.edits, 1 << 20, nothing).unwrap();
    assert_eq!(last, Txid(0), "logs without records are no transactions");
}

#[test]
fn image_and_log_must_be_of_one_checkpoint() {
    let (os, _, _) = Os::simulated(1);
    let found = directories(&os, &[("/a", 6, &["fsimage"]), ("/b", 5, &["edits"])]);
    let error = pretransactional::find(&*os.disk, &found, LayoutVersion(-32)).unwrap_err().to_string();
    assert!(
        error.starts_with("Inconsistent storage detected, image and edits checkpoint times do not match."),
        "{error}"
    );
    let (os, _, _) = Os::simulated(2);
    let found = directories(&os, &[("/a", 6, &["fsimage"])]);
    let error = pretransactional::find(&*os.disk, &found, LayoutVersion(-32)).unwrap_err().to_string();
    assert_eq!(error, "Edits file is not found in [/a]");
}
