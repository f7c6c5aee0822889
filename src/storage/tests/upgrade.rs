//! Upgrade, rollback and finalize, step by step, and what a crash in between leaves.

use os::Os;
use os::disk::Open;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use storage::{Directories, Location, Roles, StorageError, StorageInfo, upgrade, version};
use vocab::LayoutVersion;

const ROOTS: [&str; 2] = ["/a", "/b"];

fn locations() -> Vec<Location> {
    let roles = Roles { image: true, edits: true, required: false };
    ROOTS.iter().map(|root| Location { root: Path::new(root).into(), roles }).collect()
}

fn info(layout: i32, ctime: i64) -> StorageInfo {
    StorageInfo {
        layout: LayoutVersion(layout),
        namespace_id: 5,
        cluster_id: "CID-x".into(),
        ctime,
        block_pool_id: "BP-1-127.0.0.1-2".into(),
    }
}

fn put(os: &Os, path: &Path, text: &str) {
    os.disk.open(path, Open::Truncate).unwrap().write_all_at(text.as_bytes(), 0).unwrap();
}

/// Two directories of this layout with an image and a log.
fn old(layout: i32) -> Os {
    let (os, _, _) = Os::simulated(3);
    for root in ROOTS {
        let current = Path::new(root).join("current");
        os.disk.create_directories(&current, 0o700).unwrap();
        for name in ["fsimage_0000000000000000004", "edits_0000000000000000001-0000000000000000004", "seen_txid"] {
            put(&os, &current.join(name), name);
        }
        version::write(&os, &current, &info(layout, 1)).unwrap();
    }
    os
}

fn files(os: &Os) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), ROOTS.map(PathBuf::from).to_vec());
    while let Some(folder) = folders.pop() {
        for name in os.disk.list(&folder).unwrap() {
            let path = folder.join(&name);
            if os.disk.metadata(&path).unwrap().unwrap().is_directory {
                folders.push(path);
            } else if name != "in_use.lock" {
                found.insert(path.clone(), os.disk.read(&path).unwrap());
            }
        }
    }
    found
}

/// The whole upgrade up to a step: 1 `current` is put aside, 2 there is a new image, 3 VERSION in the first directory, 4 in both, 5 done.
fn upgraded(os: &Os, steps: usize) {
    let directories = Directories::open(&locations(), os).unwrap();
    let old = directories.formatted_info().unwrap().clone();
    upgrade::check(&*os.disk, &directories, old.layout).unwrap();
    let new = upgrade::identity(os, &old, "10.0.0.1", Some("ignored"));
    assert_eq!(
        (new.layout, &*new.cluster_id, &*new.block_pool_id),
        (LayoutVersion::CURRENT, "CID-x", "BP-1-127.0.0.1-2")
    );
    let folders = directories.folders();
    let all: [&dyn Fn(); 5] = [
        &|| upgrade::begin(&directories, os, 0o700).unwrap(),
        &|| folders.iter().for_each(|current| put(os, &current.join("fsimage_0000000000000000005"), "new")),
        &|| version::write(os, &folders[0], &new).unwrap(),
        &|| version::write(os, &folders[1], &new).unwrap(),
        &|| upgrade::end(&directories, os).unwrap(),
    ];
    all.iter().take(steps).for_each(|step| step());
}

#[test]
fn the_state_of_before_is_kept_and_comes_back() {
    let os = old(-67);
    let before = files(&os);
    upgraded(&os, 5);
    let after = files(&os);
    for root in ROOTS {
        let edits = "edits_0000000000000000001-0000000000000000004";
        for (name, there) in
            [("VERSION", true), (edits, true), ("fsimage_0000000000000000005", true), ("seen_txid", false)]
        {
            assert_eq!(after.contains_key(&Path::new(root).join("current").join(name)), there, "{name}");
        }
    }
    for (path, content) in &before {
        let root: PathBuf = path.components().take(2).collect();
        let kept = root.join("previous").join(path.file_name().unwrap());
        assert_eq!(after.get(&kept), Some(content), "{}", kept.display());
    }
    let again = Directories::open(&locations(), &os).unwrap();
    let error = upgrade::check(&*os.disk, &again, LayoutVersion(-67)).unwrap_err().to_string();
    assert!(
        error.ends_with("previous fs state should not exist during upgrade. Finalize or rollback first."),
        "{error}"
    );
    assert_eq!(upgrade::roll_back(&again, &os).unwrap(), ROOTS.map(PathBuf::from));
    assert_eq!(files(&os), before);
    let error = upgrade::roll_back(&again, &os).unwrap_err().to_string();
    assert_eq!(error, "Cannot rollback. None of the storage directories contain previous fs state.");
}

#[test]
fn finalize_deletes_the_state_of_before() {
    let os = old(-63);
    upgraded(&os, 5);
    for root in ROOTS {
        assert!(upgrade::finalize(&*os.disk, Path::new(root)).unwrap());
        assert!(!upgrade::finalize(&*os.disk, Path::new(root)).unwrap(), "there is nothing more to do");
    }
    assert!(files(&os).keys().all(|path| !path.display().to_string().contains("previous")));
}

#[test]
fn an_older_layout_is_for_the_older_release() {
    let os = old(-63);
    upgraded(&os, 5);
    let before = files(&os);
    let directories = Directories::open(&locations(), &os).unwrap();
    let error = upgrade::roll_back(&directories, &os).unwrap_err().to_string();
    assert!(error.starts_with("Cannot rollback to storage version -63 using this version of the NameNode"), "{error}");
    assert_eq!(files(&os), before);
    let error = upgrade::check(&*os.disk, &directories, LayoutVersion(-15)).unwrap_err().to_string();
    assert!(error.contains("Old layout version is -15"), "{error}");
}

/// Until VERSION is there an upgrade is undone by the next start, from then on it is completed, each directory for itself.
#[test]
fn half_done_upgrades_are_settled() {
    for steps in 1..5 {
        let os = old(-63);
        let before = files(&os);
        upgraded(&os, steps);
        let directories = Directories::open(&locations(), &os).unwrap();
        let now = files(&os);
        for (at, root) in ROOTS.iter().enumerate() {
            let of = |files: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
                files.iter().filter(|(path, _)| path.starts_with(root)).map(|(p, c)| (p.clone(), c.clone())).collect()
            };
            let done = steps >= 3 + at;
            assert_eq!(directories.list[at].has_previous(&*os.disk).unwrap(), done, "{steps} steps, {root}");
            assert!(done || of(&now) == of(&before), "{steps} steps, {root}");
        }
    }
}

#[test]
fn ids_are_made_where_there_were_none() {
    let (os, _, _) = Os::simulated(4);
    let old = StorageInfo { cluster_id: String::new(), block_pool_id: String::new(), ..info(-32, 0) };
    let given = upgrade::identity(&os, &old, "10.0.0.1", Some("mine"));
    assert_eq!((given.namespace_id, &*given.cluster_id), (5, "mine"));
    assert!(given.block_pool_id.starts_with("BP-") && given.block_pool_id.contains("-10.0.0.1-"));
    assert!(upgrade::identity(&os, &old, "10.0.0.1", None).cluster_id.starts_with("CID-"));
}

#[test]
fn images_of_before_upgrades_are_refused() {
    for (layout, refused) in [(-3i32, true), (-32, false)] {
        let os = old(-67);
        let image = Path::new("/b/image");
        os.disk.create_directories(image, 0o700).unwrap();
        os.disk.open(&image.join("fsimage"), Open::Truncate).unwrap().write_all_at(&layout.to_be_bytes(), 0).unwrap();
        let opened = Directories::open(&locations(), &os).map(drop).map_err(|error| error.to_string());
        assert_eq!(opened.is_err(), refused, "{opened:?}");
        assert!(!refused || opened.unwrap_err() == StorageError::TooOldToUpgrade(0).to_string());
    }
    for (layout, told) in [(0, "'too old'"), (-15, "-15")] {
        let text = StorageError::TooOldToUpgrade(layout).to_string();
        assert!(
            text.contains(&format!("from this  older version {layout} of storage to the current version.")),
            "{text}"
        );
        assert!(text.contains(&format!(" Old layout version is {told} and latest layout version")), "{text}");
    }
}
