//! Images loaded and saved by several threads, in every form, are those of one thread.

use namespace::build::Build;
use record::{BlockInfo, Features, Inode, InodeHandle, InodeKind, Store};
use state::{RootAttributes, State};
use storage::image::{
    Codec, Digest, ImageError, Loaded, Loading, SaveContext, SaveOptions, SubSections, encode_with, load_input,
};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::quota::Quota;
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, Block, BlockId, BlockState, GenerationStamp, InodeId, LayoutVersion, Mode, TimeMs, Txid};

const CONTEXT: SaveContext =
    SaveContext { layout: LayoutVersion::CURRENT, namespace_id: 5, txid: Txid(77), expanded_string_tables: true };
const LEGACY_LIMIT: i64 = 5_000;
/// Files of a directory that several threads share.
const LARGE: i64 = 40_000;

fn empty() -> State {
    State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: Mode::new(0o755) })
}

fn mix(n: i64) -> i64 {
    let z = (n as u64).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ z >> 31) as i64
}

/// A file with blocks of every kind, sides of every kind now and then.
fn file(store: &mut Store, build: &mut Build, id: i64, name: &str) -> InodeHandle {
    let (user, group) = (store.intern_user(&format!("u{}", id % 40)), store.intern_group(&format!("g{}", id % 7)));
    let replication = 1 + (id % 4) as u16;
    let kind = InodeKind::File { replication, block_size: 1 << 27, storage_policy: 0, erasure_coding_policy: 0 };
    let mtime = TimeMs(if id % 997 == 0 { -5 } else { id });
    let (mode, atime) = (Mode::new(0o640), TimeMs(id / 2));
    let inode =
        Inode { id: InodeId(id), parent: None, user, group, mode, mtime, atime, features: Features::NONE, kind };
    let file = build.add(store, &inode, name.as_bytes());
    let open = id % 53 == 0;
    if open {
        build.open(store, file, &format!("client-{}", id % 5), "host");
    }
    let count = [1, 1, 1, 1, 0, 2, 3, 9][(id % 8) as usize];
    for at in 0..count {
        let legacy = id % 31 == 0;
        let number = if legacy { mix(id * 10 + at) } else { 1 << 30 | (id * 10 + at) };
        let stamp = GenerationStamp(if legacy { 1_000 + at } else { 10_000 + id });
        let block = Block { id: BlockId(number), length: 5 + at as u64, stamp };
        let last = open && at + 1 == count;
        let state = if last { BlockState::UnderConstruction } else { BlockState::Complete };
        store.push_block(file, &BlockInfo { block, replication, open, state, ..BlockInfo::default() });
    }
    store.settle(file);
    if id % 19 == 0 {
        let name = Some("u3".into());
        let entry = AclEntry { scope: AclScope::Access, kind: AclKind::User, name, permission: Action(5) };
        build.set_acl(store, file, &[entry]);
    }
    if id % 23 == 0 {
        let xattr = Xattr {
            namespace: XattrNamespace::User,
            name: format!("a{}", id % 3).as_str().into(),
            value: [1, 2][..].into(),
        };
        build.set_xattrs(store, file, &[xattr]);
    }
    file
}

/// Some directories of many files, one of them with thousands, of two with more; `quotas` and policies make the tree be walked when it is loaded.
fn filled(directories: i64, quotas: bool) -> State {
    let mut state = empty();
    state.store = Store::new();
    state.sequences.stamp_v1_limit = GenerationStamp(LEGACY_LIMIT);
    state.store.set_legacy_limit(GenerationStamp(LEGACY_LIMIT));
    let (store, mut id) = (&mut state.store, InodeId::ROOT.0);
    let mut build = Build::new(store);
    let directory = |store: &mut Store, build: &mut Build, id: i64, name: &str| {
        let storage_policy = if quotas && id % 7 == 0 { 12 } else { 0 };
        let kind = InodeKind::Directory { children: 0, child_count: 0, storage_policy };
        let (user, group) = (store.intern_user("hdfs"), store.intern_group("staff"));
        let (mode, time) = (Mode::new(0o755), TimeMs(id));
        let features = Features::NONE;
        let inode =
            Inode { id: InodeId(id), parent: None, user, group, mode, mtime: time, atime: TimeMs(0), features, kind };
        build.add(store, &inode, name.as_bytes())
    };
    let root = directory(store, &mut build, id, "");
    let mut top = Vec::new();
    for d in 0..directories {
        id += 1;
        let parent = directory(store, &mut build, id, &format!("d{d:06}"));
        if quotas && d % 3 == 0 {
            build.set_quota(store, parent, Quota { namespace: Some(10_000), ..Quota::default() });
        }
        top.push(parent);
        let files = match (d, directories) {
            (1, 2) => LARGE,
            (1, _) => 3_000,
            _ => 20 + d % 50,
        };
        let mut children = Vec::new();
        for f in 0..files {
            id += 1;
            children.push(file(store, &mut build, id, &format!("file-{f:05}-{}", "x".repeat((id % 30) as usize))));
        }
        build.set_children(store, parent, &children).expect("in order");
    }
    build.set_children(store, root, &top).expect("in order");
    state.tree = build.finish(store).expect("a root");
    state.sequences.inode = InodeId(id);
    state
}

fn save(state: &State, options: &SaveOptions) -> (Vec<u8>, Digest) {
    let mut bytes = Vec::new();
    let digest = encode_with(state, CONTEXT, options, &mut |piece| bytes.extend_from_slice(piece)).expect("encodes");
    assert_eq!(digest, Digest::of(&bytes));
    (bytes, digest)
}

fn load(bytes: &[u8], digest: Digest, threads: usize) -> Result<Loaded, ImageError> {
    load_input(&bytes, digest, empty(), Loading { threads, small_bytes: 0, ..Loading::default() })
}

const ALONE: SaveOptions = SaveOptions { codec: None, parallel: None, threads: 1, threads_from: 0 };
const TOGETHER: SaveOptions = SaveOptions { threads: 3, ..ALONE };

#[test]
fn threads_load_and_save_what_one_does() {
    for quotas in [false, true] {
        let state = filled(60, quotas);
        let before = state.digest();
        assert_eq!(state.tree.check(&state.store), Vec::<String>::new());
        for options in [ALONE, TOGETHER] {
            let (bytes, digest) = save(&state, &options);
            for threads in [1, 2, 5] {
                let loaded = load(&bytes, digest, threads).unwrap_or_else(|e| panic!("{threads} threads: {e}"));
                assert_eq!(loaded.state.digest(), before, "{threads} threads, quotas {quotas}");
                assert_eq!(loaded.state.tree.check(&loaded.state.store), Vec::<String>::new());
                assert_eq!(loaded.state.tree.inode_count(), state.tree.inode_count());
            }
        }
    }
}

#[test]
fn every_codec_with_and_without_sub_sections_comes_back() {
    let state = filled(40, false);
    let before = state.digest();
    let parallel = Some(SubSections { threshold: 100, target: 5 });
    let codecs = [Codec::Zlib, Codec::Deflate, Codec::Gzip, Codec::Bzip2, Codec::Snappy, Codec::Lz4, Codec::Zstandard];
    for codec in codecs.into_iter().map(Some).chain([None]) {
        for parallel in [None, parallel] {
            for options in [ALONE, TOGETHER] {
                let (bytes, digest) = save(&state, &SaveOptions { codec, parallel, ..options });
                for threads in [1, 3] {
                    let loaded =
                        load(&bytes, digest, threads).unwrap_or_else(|e| panic!("{codec:?} {parallel:?}: {e}"));
                    assert_eq!(loaded.state.digest(), before, "{codec:?} {parallel:?} {threads}");
                }
            }
        }
    }
}

#[test]
fn damage_is_told_alike_by_one_and_by_several() {
    let state = filled(8, false);
    let (bytes, digest) = save(&state, &ALONE);
    assert!(load(&bytes, Digest([0; 16]), 3).is_err_and(|e| matches!(e, ImageError::Digest(_))));
    assert!(load(&bytes[..bytes.len() - 1], digest, 3).is_err_and(|e| matches!(e, ImageError::Digest(_))));
    let (mut told, mut seed) = (0, 99u64);
    for round in 0..150 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut damaged = bytes.clone();
        let at = (seed >> 33) as usize % damaged.len();
        if round % 3 == 0 {
            damaged.truncate(at)
        } else {
            damaged[at] ^= 1 << (seed >> 8 & 7)
        }
        let digest = Digest::of(&damaged);
        let text = |threads| load(&damaged, digest, threads).map(|l| l.state.digest()).map_err(|e| e.to_string());
        let (alone, together) = (text(1), text(3));
        match (&alone, &together) {
            // which of two directories that list an inode is told depends on who came first
            (Err(a), Err(b)) if a.contains("is in two directories") || b.contains("is in two directories") => {}
            _ => assert_eq!(alone, together, "round {round}, byte {at}"),
        }
        told += usize::from(alone.is_err());
    }
    assert!(told > 50, "{told}");
}

#[test]
fn an_inode_or_a_block_that_comes_twice_is_told() {
    let state = filled(3, false);
    let (bytes, _) = save(&state, &ALONE);
    // a later record takes the id of an earlier one: both ids have three bytes
    let varint = |mut n: u64| {
        let mut out = vec![0x10];
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out
    };
    let (first, second) = (varint(16_390), varint(16_420));
    let at = bytes.windows(second.len()).position(|w| w == second).expect("the record");
    let mut twice = bytes.clone();
    twice[at..at + first.len()].copy_from_slice(&first);
    for threads in [1, 3] {
        let error = load(&twice, Digest::of(&twice), threads).err().map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some("section INODE: inode 16390 is listed twice"), "{threads}");
    }
}

/// A directory that is linked by several threads, whole and with two children in the wrong order, one that is missing, or one that is there twice.
#[test]
fn a_large_directory_is_shared() {
    let state = filled(2, false);
    let (bytes, digest) = save(&state, &ALONE);
    for threads in [1, 2, 3] {
        let loaded = load(&bytes, digest, threads).unwrap_or_else(|e| panic!("{threads} threads: {e}"));
        assert_eq!(loaded.state.digest(), state.digest());
        assert_eq!(loaded.state.tree.check(&loaded.state.store), Vec::<String>::new());
    }
    // its first file; all ids have three bytes
    let first = InodeId::ROOT.0 + 23;
    let varint = |n: i64| [n as u8 | 0x80, (n >> 7) as u8 | 0x80, (n >> 14) as u8];
    let list: Vec<u8> = (0..LARGE).flat_map(|n| varint(first + n)).collect();
    let begin = bytes.windows(list.len()).position(|window| window == list).expect("its list");
    for at in [0, 1, 13_332, 13_333, 19_999, 20_000, 26_666, LARGE - 2] {
        let place = begin + 3 * at as usize;
        let mut swapped = bytes.clone();
        swapped[place..place + 6].rotate_left(3);
        let mut missing = bytes.clone();
        missing[place..place + 3].copy_from_slice(&varint(1_000_000));
        let mut twice = bytes.clone();
        twice.copy_within(place..place + 3, place + 3);
        for (damaged, reason) in [(swapped, "order"), (missing, "does not have"), (twice, "order")] {
            let text = |threads| load(&damaged, Digest::of(&damaged), threads).err().map(|e| e.to_string());
            let alone = text(1).expect("refused");
            assert!(alone.contains(reason), "{alone}");
            assert_eq!((text(2), text(3)), (Some(alone.clone()), Some(alone)), "{at}");
        }
    }
}
