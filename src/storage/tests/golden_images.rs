//! Images that real Hadoop wrote: loaded, or refused by the name of the feature that is not supported; saved and loaded again with the
//! same digest of state.

use namespace::Tree;
use state::{RootAttributes, State};
use std::path::{Path, PathBuf};
use storage::image::{Digest, ImageError, Loaded, SaveContext, encode, load, read_digest_file};
use vocab::{LayoutVersion, Mode};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/fsimage/3.5.0")
}

fn empty() -> State {
    State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: Mode::new(0o755) })
}

/// All images of a scenario, with the digests in the files beside them.
fn images(scenario: &str) -> Vec<(String, Vec<u8>, Digest)> {
    let folder = golden().join(scenario).join("current");
    let mut out = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("folder") {
        let name = entry.expect("entry").file_name().into_string().expect("name");
        if name.starts_with("fsimage_") && !name.ends_with(".md5") {
            let bytes = std::fs::read(folder.join(&name)).expect("image");
            let digest_name = format!("{name}.md5");
            let text = std::fs::read(folder.join(&digest_name)).expect("digest");
            let digest = read_digest_file(&text, &digest_name, &name).expect("digest file");
            out.push((name, bytes, digest));
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!out.is_empty(), "{scenario} has images");
    out
}

fn save(loaded: &Loaded, expanded: bool) -> (Vec<u8>, Digest) {
    let mut bytes = Vec::new();
    let context = SaveContext {
        layout: LayoutVersion::CURRENT,
        namespace_id: loaded.namespace_id,
        txid: loaded.txid,
        expanded_string_tables: expanded,
    };
    let digest = encode(&loaded.state, context, &mut |chunk| bytes.extend_from_slice(chunk)).expect("encodes");
    (bytes, digest)
}

#[track_caller]
fn round_trip(scenario: &str) {
    for (name, bytes, digest) in images(scenario) {
        let first = load(&bytes, digest, empty()).unwrap_or_else(|e| panic!("{scenario}/{name}: {e}"));
        assert!(name.ends_with(&format!("{:019}", first.txid.0)), "{scenario}/{name}: txid {}", first.txid);
        for expanded in [false, true] {
            let (saved, digest) = save(&first, expanded);
            let second = load(&saved, digest, empty()).unwrap_or_else(|e| panic!("{scenario}/{name} saved: {e}"));
            assert_eq!(first.state.digest(), second.state.digest(), "{scenario}/{name}");
            assert_eq!((first.txid, first.namespace_id), (second.txid, second.namespace_id));
            let tree: &Tree = &second.state.tree;
            assert_eq!(tree.inode_count(), first.state.tree.inode_count());
            assert_eq!(tree.check(&second.state.store), Vec::<String>::new(), "{scenario}/{name}");
        }
    }
}

#[test]
fn scenarios_of_supported_features_come_back_whole() {
    for scenario in [
        "empty",
        "basic",
        "wide",
        "tokens",
        "symlinks",
        "rolling",
        "rolling-finalized",
        "small",
        "ec",
        "open",
        "in-progress",
        "root-snapshot",
        "ordered",
        "symlinks-snapshot",
        "snapshots",
        "compressed",
        "cache",
        "ez",
    ] {
        round_trip(scenario);
    }
}

/// Java reads the field from an image, but writes it into none.
#[test]
fn an_image_keeps_the_default_replication_of_a_pool() {
    let (_, bytes, digest) = images("cache").pop().expect("newest image");
    let mut loaded = load(&bytes, digest, empty()).unwrap_or_else(|e| panic!("{e}"));
    let (name, pool) =
        loaded.state.caches.pools_after("").map(|(n, p, _)| (n.clone(), p.clone())).next().expect("a pool");
    assert_eq!(pool.default_replication, 1);
    loaded.state.caches.put_pool(name.clone(), state::CachePool { default_replication: 3, ..pool });
    let (saved, digest) = save(&loaded, true);
    let again = load(&saved, digest, empty()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.state.caches.pool(&name).map(|pool| pool.default_replication), Some(3));
}

#[test]
fn a_deleted_inode_that_the_image_lacks_is_forgotten() {
    // the image lists a deleted symlink that its INODE section does not have
    let (_, bytes, digest) = images("symlinks-snapshot").pop().expect("newest image");
    let loaded = load(&bytes, digest, empty()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.state.tree.check(&loaded.state.store), Vec::<String>::new());
    assert!(loaded.state.tree.snapshots.count() > 0);
}

#[test]
fn every_damaged_byte_is_an_answer() {
    let (_, bytes, _) = images("basic").pop().expect("image");
    let mut seed = 12345u64;
    for _ in 0..1000 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut damaged = bytes.clone();
        let at = (seed >> 33) as usize % damaged.len();
        if seed & 1 == 0 {
            damaged[at] ^= 1 << (seed >> 8 & 7);
        } else {
            damaged.truncate(at);
        }
        let _ = load(&damaged, Digest::of(&damaged), empty());
    }
    assert!(load(&bytes, Digest([0; 16]), empty()).is_err_and(|e| matches!(e, ImageError::Digest(_))));
}

fn inode(state: &State, path: &str) -> record::InodeHandle {
    state.tree.resolve(&state.store, path.as_bytes()).expect("resolves").last().expect(path)
}

#[test]
fn a_quota_of_kinds_alone_comes_back_alone() {
    let (_, bytes, digest) = images("basic").pop().expect("newest image");
    let state = load(&bytes, digest, empty()).expect("loads").state;
    let quota = state.tree.quota(&state.store, inode(&state, "/quota/ssd")).expect("has a quota");
    assert_eq!((quota.limits.namespace, quota.limits.space), (None, None));
    assert!(quota.limits.by_kind.iter().any(Option::is_some));
}

#[test]
fn storage_policies_of_directories_are_attributes_in_the_image() {
    let (_, bytes, digest) = images("basic").pop().expect("newest image");
    let first = load(&bytes, digest, empty()).expect("loads");
    let (saved, digest) = save(&first, true);
    let second = load(&saved, digest, empty()).expect("saved image loads");
    for loaded in [first, second] {
        let state = loaded.state;
        let directory = inode(&state, "/policy/ALL_SSD");
        assert_eq!(state.tree.own_storage_policy(&state.store, directory), 12);
        assert!(state.tree.xattrs(directory).is_empty(), "it is no attribute of the directory any more");
    }
}

/// The image of a scenario of another release, loaded, saved at today's layout and loaded again.
fn saved_again(release: &str, scenario: &str, name: &str) -> Loaded {
    let path = golden().join("..").join(release).join(scenario).join("current").join(name);
    let bytes = std::fs::read(path).expect("image");
    let first = load(&bytes, Digest::of(&bytes), empty()).unwrap_or_else(|e| panic!("{release}/{scenario}: {e}"));
    let (saved, digest) = save(&first, false);
    let second = load(&saved, digest, empty()).unwrap_or_else(|e| panic!("{release}/{scenario} saved: {e}"));
    assert_eq!(first.state.digest(), second.state.digest(), "{release}/{scenario}");
    second
}

/// Snapshottable directories in each other, the inner one's snapshots deleted.
#[test]
fn a_root_diff_may_be_of_the_snapshot_of_a_directory_above() {
    let state = saved_again("3.3.6", "nested", "fsimage_0000000000000000627").state;
    assert_eq!(state.tree.check(&state.store), Vec::<String>::new());
    assert_eq!(state.tree.snapshots.count(), 26);
}

#[test]
fn what_concat_took_is_in_no_created_list() {
    let state = saved_again("2.7.3", "snapshots-concat", "fsimage_0000000000000001040").state;
    assert_eq!(state.tree.check(&state.store), Vec::<String>::new());
}
