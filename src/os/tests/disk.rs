//! The real disk and the simulated one keep the same promises.

use os::disk::{Disk, Locked, Open};
use os::sim::{Fault, SimDisk};
use os::{RealDisk, durable};
use std::path::{Path, PathBuf};

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ironroot-os-{}-{name}", std::process::id()));
    _ = std::fs::remove_dir_all(&path);
    path
}

/// Runs `check` on an empty directory of a real and of a simulated disk.
fn both(name: &str, check: impl Fn(&dyn Disk, &Path)) {
    let root = scratch(name);
    let real = RealDisk::default();
    real.create_directories(&root, 0o700).unwrap();
    check(&real, &root);
    std::fs::remove_dir_all(&root).unwrap();
    let simulated = SimDisk::new(1);
    simulated.create_directories(Path::new("/a/b"), 0o700).unwrap();
    check(&simulated, Path::new("/a/b"));
}

#[test]
fn files_are_written_read_renamed_and_removed() {
    both("files", |disk, root| {
        let (a, b) = (root.join("a"), root.join("b"));
        let file = disk.open(&a, Open::CreateNew).unwrap();
        file.write_all_at(b"hello", 3).unwrap();
        assert_eq!(file.length().unwrap(), 8);
        assert_eq!(disk.read(&a).unwrap(), b"\0\0\0hello");
        file.set_length(4).unwrap();
        file.sync_data().unwrap();
        assert!(disk.open(&a, Open::CreateNew).is_err());
        disk.hard_link(&a, &b).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["a", "b"]);
        disk.remove_file(&a).unwrap();
        durable::replace(disk, &a, b"new").unwrap();
        durable::rename(disk, &a, &b).unwrap();
        assert_eq!(disk.read(&b).unwrap(), b"new");
        assert!(disk.metadata(&a).unwrap().is_none());
        assert_eq!(disk.metadata(&b).unwrap().unwrap().length, 3);
        disk.create_directories(&root.join("d/e"), 0o700).unwrap();
        disk.rename(&root.join("d"), &root.join("f")).unwrap();
        assert!(disk.metadata(&root.join("f/e")).unwrap().unwrap().is_directory);
        disk.remove_directory(&root.join("f")).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["b"]);
    });
}

#[test]
fn a_lock_keeps_the_same_process_out_too() {
    both("lock", |disk, root| {
        let path = root.join("in_use.lock");
        let Locked::Ours(lock) = disk.try_lock(&path, "1@here").unwrap() else { panic!() };
        assert_eq!(disk.metadata(&path).unwrap().unwrap().length, 6);
        assert!(matches!(disk.try_lock(&path, "1@here").unwrap(), Locked::Theirs(holder) if holder == "1@here"));
        drop(lock);
        assert!(disk.metadata(&path).unwrap().is_none());
        assert!(matches!(disk.try_lock(&path, "2@here").unwrap(), Locked::Ours(_)));
    });
}

#[test]
fn what_was_synced_survives_and_the_rest_may_not() {
    let path = Path::new("/f");
    let mut outcomes = std::collections::HashSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let file = disk.open(path, Open::CreateNew).unwrap();
        file.write_all_at(&[1; 1024], 0).unwrap();
        file.sync_data().unwrap();
        disk.sync_directory(Path::new("/")).unwrap();
        file.write_all_at(&[2; 1024], 512).unwrap();
        disk.rename(path, Path::new("/g")).unwrap();
        let disk = disk.crash();
        let name = disk.list(Path::new("/")).unwrap();
        assert_eq!(name.len(), 1);
        let content = disk.read(&Path::new("/").join(&name[0])).unwrap();
        assert_eq!(content[..512], [1; 512]);
        outcomes.insert((name, content.get(512).copied(), content.get(1024).copied()));
    }
    assert!(outcomes.len() >= 8, "{outcomes:?}");
}

#[test]
fn a_failed_sync_may_lose_writes_that_a_later_sync_does_not_bring_back() {
    let lost = (0..50).filter(|seed| {
        let disk = SimDisk::new(*seed);
        let file = disk.open(Path::new("/f"), Open::CreateNew).unwrap();
        disk.sync_directory(Path::new("/")).unwrap();
        disk.fault_at(disk.calls() + 2, Fault::Io);
        file.write_all_at(b"x", 0).unwrap();
        assert!(file.sync_data().is_err());
        assert_eq!(disk.read(Path::new("/f")).unwrap(), b"x", "programs still see it");
        file.sync_data().unwrap();
        let disk = disk.crash();
        disk.read(Path::new("/f")).unwrap().is_empty()
    });
    assert!((10..40).contains(&lost.count()));
}

#[test]
fn a_replaced_file_is_old_or_new_after_a_crash_at_any_call() {
    for seed in 0..40 {
        for call in 1.. {
            let disk = SimDisk::new(seed);
            durable::replace(&disk, Path::new("/f"), b"old").unwrap();
            disk.fault_at(disk.calls() + call, Fault::Stop);
            let done = durable::replace(&disk, Path::new("/f"), b"newer").is_ok();
            let disk = disk.crash();
            let content = disk.read(Path::new("/f")).unwrap();
            assert!(content == b"newer" || content == b"old" && !done, "{seed} {call} {content:?}");
            if done {
                break;
            }
        }
    }
}

#[test]
fn faults_are_what_they_say() {
    let disk = SimDisk::new(3);
    let file = disk.open(Path::new("/f"), Open::CreateNew).unwrap();
    disk.fault_at(2, Fault::NoSpace);
    assert_eq!(file.write_at(b"abcd", 0).unwrap_err().raw_os_error(), Some(28));
    disk.fault_at(3, Fault::Short);
    assert_eq!(file.write_at(b"abcd", 0).unwrap(), 2);
    disk.fault_at(4, Fault::Stop);
    assert!(file.write_at(b"abcd", 0).is_err());
    assert!(file.sync_data().is_err() && disk.open(Path::new("/g"), Open::CreateNew).is_err());
}

#[test]
fn mapped_memory_is_aligned_private_and_given_back() {
    both("mapping", |disk, root| {
        let path = root.join("a");
        let file = disk.open(&path, Open::CreateNew).unwrap();
        let content: Vec<u8> = (0..20_480u32).map(|at| (at / 7) as u8).collect();
        file.write_all_at(&content, 0).unwrap();
        let memory = file.map(4_096, 12_288, 1 << 21).unwrap();
        assert_eq!((memory.as_ptr().align_offset(1 << 21), memory.len()), (0, 1 << 21));
        assert_eq!(memory[..12_288], content[4_096..16_384]);
        assert!(memory[12_288..].iter().all(|byte| *byte == 0));
        os::mapping::populate(memory);
        memory.fill(9);
        assert_eq!(disk.read(&path).unwrap(), content);
        let (first, rest) = memory.split_at_mut(1 << 20);
        os::mapping::give_back(first);
        assert_eq!(rest[17], 9);
        os::mapping::give_back(rest);
        assert_eq!(file.map(0, 0, 4_096).unwrap(), [0; 4_096]);
    });
}
