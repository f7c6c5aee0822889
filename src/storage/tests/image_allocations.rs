//! Loading and saving an image allocates nothing per inode: what grows with the namespace are the pages that hold it.

use mem::counting::Counting;
use namespace::build::Build;
use record::{BlockInfo, Features, Inode, InodeKind, Store};
use state::{RootAttributes, State};
use storage::image::{Loading, SaveContext, SaveOptions, encode_with, load_input};
use vocab::{Block, BlockId, GenerationStamp, InodeId, LayoutVersion, Mode, TimeMs, Txid};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONTEXT: SaveContext =
    SaveContext { layout: LayoutVersion::CURRENT, namespace_id: 5, txid: Txid(7), expanded_string_tables: true };
const FILES: i64 = 100;

fn empty() -> State {
    State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: Mode::new(0o755) })
}

/// Directories of 100 files each, of one block or two.
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
        for f in 0..FILES {
            id += 1;
            let kind =
                InodeKind::File { replication: 3, block_size: 1 << 27, storage_policy: 0, erasure_coding_policy: 0 };
            let file = build.add(store, &inode(id, kind), format!("file-{f:03}").as_bytes());
            for at in 0..1 + f % 2 {
                let block =
                    Block { id: BlockId((1 << 30) + id * 2 + at), length: 5, stamp: GenerationStamp(1_000 + id) };
                store.push_block(file, &BlockInfo { block, replication: 3, ..BlockInfo::default() });
            }
            children.push(file);
        }
        build.set_children(store, parent, &children).expect("in order");
    }
    build.set_children(store, root, &top).expect("in order");
    state.tree = build.finish(store).expect("a root");
    state.sequences.inode = InodeId(id);
    state
}

/// Allocations of a load and of a save.
fn counted(directories: i64) -> (u64, u64) {
    let state = filled(directories);
    let options = SaveOptions { codec: None, parallel: None, threads: 1, threads_from: 0 };
    let mut bytes = Vec::new();
    let digest = encode_with(&state, CONTEXT, &options, &mut |piece| bytes.extend_from_slice(piece)).expect("encodes");
    let mut loaded = None;
    let fresh = empty();
    let load = Counting::count(|| {
        let loading = Loading { threads: 1, small_bytes: 0, ..Loading::default() };
        loaded = Some(load_input(&&bytes[..], digest, fresh, loading).expect("loads"));
    });
    let state = loaded.expect("loaded").state;
    let save = Counting::count(|| _ = encode_with(&state, CONTEXT, &options, &mut |_| {}).expect("encodes"));
    (load, save)
}

/// Compares two sizes: of so many inodes more, at most one in `rare` may cost an allocation.
fn compare(few: i64, many: i64, rare: u64) {
    let (small, large) = (counted(few), counted(many));
    let inodes = (many - few) as u64 * (FILES as u64 + 1);
    for (what, small, large) in [("load", small.0, large.0), ("save", small.1, large.1)] {
        let more = large.saturating_sub(small);
        assert!(more * rare < inodes, "{what}: {small} allocations, {large} for {inodes} inodes more");
    }
}

#[test]
fn allocations_do_not_grow_with_inodes() {
    // what grows: the first 32 pages of each structure, which are allocated one by one, and vectors that double
    compare(200, 1_000, 1_000);
}

#[test]
#[ignore = "five million inodes: for a build with optimisation"]
fn from_one_to_five_million_only_vectors_double() {
    compare(10_000, 50_000, 20_000);
}
