//! Random operations against a naive file system: a sorted map from path to entry. What the two answer and what they hold must be the same; the
//! digest law and the invariants of the tree are checked along the way, and the whole log is replayed at the end.

use super::*;
use crate::read::file_info::get_file_info;
use crate::write::quota::{RESET, UNCHANGED};
use record::KindTag;
use std::collections::BTreeMap;

/// A reproducible source of choices.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
    fn path(&mut self) -> String {
        const NAMES: [&str; 5] = ["a", "b", "é", "😀", "x y"];
        (0..1 + self.roll(4)).map(|_| format!("/{}", NAMES[self.roll(5) as usize])).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Directory,
    File,
}

/// The naive twin: every path that exists, but the root.
#[derive(Default)]
struct Naive(BTreeMap<String, Kind>);

impl Naive {
    fn get(&self, path: &str) -> Option<Kind> {
        if path.is_empty() { Some(Kind::Directory) } else { self.0.get(path).copied() }
    }
    fn parent(path: &str) -> &str {
        &path[..path.rfind('/').unwrap_or(0)]
    }
    fn below(&self, path: &str) -> Vec<String> {
        self.0.keys().filter(|p| p.starts_with(&format!("{path}/"))).cloned().collect()
    }
    /// Whether an ancestor is a file.
    fn blocked(&self, path: &str) -> bool {
        let mut above = Self::parent(path);
        while !above.is_empty() {
            if self.get(above) == Some(Kind::File) {
                return true;
            }
            above = Self::parent(above);
        }
        false
    }
    fn make_parents(&mut self, path: &str) {
        let mut above = Self::parent(path);
        while !above.is_empty() {
            self.0.insert(above.to_owned(), Kind::Directory);
            above = Self::parent(above);
        }
    }
    fn mkdirs(&mut self, path: &str) -> Option<bool> {
        if self.blocked(path) || self.get(path) == Some(Kind::File) {
            return None;
        }
        self.make_parents(path);
        self.0.insert(path.to_owned(), Kind::Directory);
        Some(true)
    }
    fn create(&mut self, path: &str, overwrite: bool) -> Option<()> {
        if self.blocked(path) || self.get(path) == Some(Kind::Directory) || self.get(path).is_some() && !overwrite {
            return None;
        }
        self.make_parents(path);
        self.0.insert(path.to_owned(), Kind::File);
        Some(())
    }
    fn delete(&mut self, path: &str, recursive: bool) -> Option<bool> {
        if self.blocked(path) {
            return None;
        }
        if self.get(path).is_none() {
            return Some(false);
        }
        let below = self.below(path);
        if !below.is_empty() && !recursive {
            return None;
        }
        self.0.retain(|p, _| !below.contains(p));
        self.0.remove(path);
        Some(true)
    }
    fn shift(&mut self, source: &str, target: &str) {
        for old in self.below(source).into_iter().chain([source.to_owned()]) {
            let kind = self.0.remove(&old).unwrap();
            self.0.insert(format!("{target}{}", &old[source.len()..]), kind);
        }
    }
    fn rename(&mut self, source: &str, target: &str) -> Option<bool> {
        if self.blocked(source) || self.blocked(target) {
            return None;
        }
        let mut target = target.to_owned();
        if self.get(&target) == Some(Kind::Directory) {
            target.push_str(&source[source.rfind('/').unwrap_or(0)..]);
        }
        if self.get(source).is_none() {
            return Some(false);
        }
        if source == target {
            return Some(true);
        }
        let inside = target.starts_with(&format!("{source}/"));
        let parent = self.get(Self::parent(&target));
        if inside || self.get(&target).is_some() || parent != Some(Kind::Directory) {
            return Some(false);
        }
        self.shift(source, &target);
        Some(true)
    }
    fn rename2(&mut self, source: &str, target: &str, overwrite: bool) -> Option<()> {
        if self.blocked(source) || self.blocked(target) || source == target || target.starts_with(&format!("{source}/"))
        {
            return None;
        }
        let kind = self.get(source)?;
        if let Some(old) = self.get(target)
            && (old != kind || !overwrite || !self.below(target).is_empty())
        {
            return None;
        }
        if self.get(Self::parent(target)) != Some(Kind::Directory) {
            return None;
        }
        self.0.remove(target);
        self.shift(source, target);
        Some(())
    }
}

/// One random operation on both.
fn step(w: &mut World, naive: &mut Naive, dice: &mut Dice) {
    let who = superuser();
    let (path, other) = (dice.path(), dice.path());
    match dice.roll(16) {
        0..4 => assert_eq!(w.mkdirs(&who, &path, 0o755).ok(), naive.mkdirs(&path), "mkdirs {path}"),
        4..8 => {
            let overwrite = dice.roll(2) == 0;
            let op = crate::write::create::Create { overwrite, ..World::create_op(&path, "maker") };
            let made = w.write(&who, &op);
            assert_eq!(made.is_ok(), naive.create(&path, overwrite).is_some(), "create {path} {overwrite}: {made:?}");
            if let Ok(status) = made {
                close(w, &path, status.id, dice);
            }
        }
        8..10 => {
            let recursive = dice.roll(3) > 0;
            assert_eq!(w.delete(&who, &path, recursive).ok(), naive.delete(&path, recursive), "delete {path}");
        }
        10..12 => assert_eq!(w.rename(&who, &path, &other).ok(), naive.rename(&path, &other), "rename {path} {other}"),
        12..14 => {
            let overwrite = dice.roll(2) == 0;
            assert_eq!(
                w.rename2(&path, &other, overwrite).ok(),
                naive.rename2(&path, &other, overwrite),
                "rename2 {path} {other}"
            );
        }
        14 => {
            let limit = if dice.roll(2) == 0 { RESET } else { 1 << 40 };
            let done = w.quota(&who, &path, limit, if dice.roll(2) == 0 { UNCHANGED } else { limit });
            assert_eq!(
                done.is_ok(),
                naive.get(&path) == Some(Kind::Directory) && !naive.blocked(&path),
                "quota {path}: {done:?}"
            );
        }
        _ => {
            let op = crate::write::attributes::SetReplication {
                path: path.clone().into(),
                replication: 1 + dice.roll(4) as u16,
            };
            let done = w.write(&who, &op);
            assert_eq!(done == Ok(true), naive.get(&path) == Some(Kind::File), "setReplication {path}: {done:?}");
        }
    }
}

/// Writes up to two blocks and closes; now and then leaves the file open.
fn close(w: &mut World, path: &str, id: vocab::InodeId, dice: &mut Dice) {
    let mut previous = None;
    for _ in 0..dice.roll(3) {
        let Ok(added) = w.add_block(path, id, "maker", previous) else { return };
        let block = Block { length: 1 + dice.roll(MIB), ..added.located.block };
        w.received(1, block);
        previous = Some(block);
    }
    if dice.roll(8) > 0 {
        assert_eq!(w.complete(path, id, "maker", previous), Ok(true));
    }
}

fn compare(w: &World, naive: &Naive) {
    let who = superuser();
    w.view(&who, |v| {
        assert_eq!(v.state.tree.inode_count(), naive.0.len() as u64 + 1);
        for (path, kind) in &naive.0 {
            let status = get_file_info(v, path.as_bytes()).unwrap().unwrap_or_else(|| panic!("{path} is missing"));
            assert_eq!(status.kind == KindTag::Directory, *kind == Kind::Directory, "{path}");
        }
    });
}

fn run(seed: u64, steps: usize) {
    let mut w = World::with_datanodes(1);
    w.checked = false;
    let (mut naive, mut dice) = (Naive::default(), Dice(seed));
    for i in 0..steps {
        step(&mut w, &mut naive, &mut dice);
        if i % 50 == 0 {
            w.check();
            compare(&w, &naive);
        }
        if i % 997 == 996 {
            w.restart();
            w.datanode(1);
        }
    }
    w.restart();
    compare(&w, &naive);
}

#[test]
fn random_operations_equal_a_naive_file_system() {
    for seed in 1..=4 {
        run(seed, 5_000);
    }
}
