//! What quotas count at every step is what a count of the whole finds: files that are written, names that snapshots know, policies that change.

use super::shown::otherwise;
use super::{World, block, permission};
use crate::{Effects, Fit, Mode, State};
use edit::Record;
use edit::record::{AddClose, RenameOption};
use record::{Features, InodeHandle, KindTag};
use std::borrow::Cow;
use vocab::{Block, GenerationStamp, TimeMs};

/// What happens, with paths and numbers to be made sense of where it happens: a list of these can be made shorter.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: u8,
    a: u8,
    b: u8,
    n: u8,
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn step(&mut self) -> Step {
        let [kind, a, b, n, ..] = self.next().to_le_bytes();
        Step { kind, a, b, n }
    }
}

/// Names of what is made.
const NAMES: [&str; 3] = ["x", "y", "z"];

fn path(of: &str) -> Cow<'static, [u8]> {
    Cow::Owned(if of.is_empty() { b"/".to_vec() } else { of.as_bytes().to_vec() })
}

fn pick<T: Clone>(list: &[T], n: u8) -> Option<T> {
    list.get(usize::from(n) % list.len().max(1)).cloned()
}

/// A path and what is there.
type There = (String, InodeHandle);

impl World {
    fn all(&self) -> Vec<There> {
        let mut all = Vec::new();
        let mut open = vec![(String::new(), self.state.tree.root())];
        while let Some((path, inode)) = open.pop() {
            if self.state.store.kind(inode) == KindTag::Directory {
                for child in self.state.tree.children(&self.state.store, inode) {
                    let name = String::from_utf8_lossy(self.state.store.name(child)).into_owned();
                    open.push((format!("{path}/{name}"), child));
                }
            }
            all.push((path, inode));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
    fn of_kind(&self, kind: KindTag, open: Option<bool>) -> Vec<There> {
        let is_open = |inode| self.state.store.features(inode).contains(Features::CONSTRUCTION);
        let fits = |(_, inode): &There| {
            self.state.store.kind(*inode) == kind && open.is_none_or(|open| open == is_open(*inode))
        };
        self.all().into_iter().filter(fits).collect()
    }
    fn has_snapshots(&self, inode: InodeHandle) -> bool {
        self.state.tree.snapshot_roots_below(&self.state.store, inode).iter().any(|root| !root.snapshots.is_empty())
    }
    fn list(&self, file: InodeHandle) -> Vec<Block> {
        self.state.store.blocks_of(file).iter().map(|b| self.state.store.block_core(*b)).collect()
    }
    fn new_block(&mut self, length: u64) -> Block {
        let id = self.id().0;
        block(id, id, length)
    }

    /// The record of a step, if there is anything to do it with.
    fn record(&mut self, step: Step) -> Option<Record<'static>> {
        let Step { kind, a, b, n } = step;
        let time = TimeMs(1_000 + i64::from(self.next as i32));
        let length = 1 + u64::from(n) % 100;
        match kind % 20 {
            0 | 1 => {
                let (above, _) = pick(&self.of_kind(KindTag::Directory, None), a)?;
                let path = path(&format!("{above}/{}", NAMES[usize::from(b) % 3]));
                let inode_id = self.id();
                let (acl, xattrs) = (vec![], vec![]);
                Some(Record::Mkdir { inode_id, path, mtime: time, atime: time, permission: permission(), acl, xattrs })
            }
            2 | 3 => self.create(a, b),
            4 | 5 => {
                let (file, inode) = pick(&self.of_kind(KindTag::File, Some(true)), a)?;
                let penultimate = self.list(inode).last().map(|b| Block { length, ..*b });
                let last = self.new_block(0);
                Some(Record::AddBlock { path: path(&file), penultimate, last, rpc: None })
            }
            6 | 7 => {
                let (file, inode) = pick(&self.of_kind(KindTag::File, Some(true)), a)?;
                let mut blocks = self.list(inode);
                if let Some(last) = blocks.last_mut() {
                    last.length = length;
                }
                let add = self.add_record("/", blocks);
                let close = AddClose { path: path(&file), ..add };
                Some(Record::Close(Box::new(close)))
            }
            8 => self.append(a, n),
            9 => self.truncate(a, b, n),
            10..=12 => self.rename(a, b, n, time),
            13 => {
                let (gone, inode) = pick(&self.all(), a).filter(|(p, _)| !p.is_empty())?;
                if self.state.tree.deletion_cuts_stripes(&self.state.store, inode) {
                    return None;
                }
                Some(Record::Delete { path: path(&gone), time, rpc: None })
            }
            14..=17 => self.snapshot_record(step, time),
            18 => match n % 3 {
                0 => {
                    let (file, _) = pick(&self.of_kind(KindTag::File, None), a)?;
                    Some(Record::SetReplication { path: path(&file), replication: 1 + u16::from(b) % 4 })
                }
                1 => {
                    let (file, _) = pick(&self.all(), a)?;
                    let policy = [0, 2, 7, 10, 12][usize::from(b) % 5];
                    Some(Record::SetStoragePolicy { path: path(&file), policy })
                }
                _ => self.concat(a, b, time),
            },
            _ => {
                let (directory, _) = pick(&self.of_kind(KindTag::Directory, None), a)?;
                let limit = if b % 4 == 0 { -1 } else { 1 << 40 };
                Some(Record::SetQuota { path: path(&directory), namespace: limit, space: limit })
            }
        }
    }

    fn create(&mut self, a: u8, b: u8) -> Option<Record<'static>> {
        let (above, _) = pick(&self.of_kind(KindTag::Directory, None), a)?;
        let mut add = self.add_record("/", vec![]);
        add.path = path(&format!("{above}/{}", NAMES[usize::from(b) % 3]));
        if self.find(std::str::from_utf8(&add.path).ok()?).is_some() {
            return None;
        }
        Some(Record::Add(Box::new(add)))
    }

    fn append(&self, a: u8, n: u8) -> Option<Record<'static>> {
        let (file, _) = pick(&self.of_kind(KindTag::File, Some(false)), a)?;
        let (client_name, client_machine) = ("c".into(), "m".into());
        Some(Record::Append {
            path: path(&file),
            client_name,
            client_machine,
            new_block: n.is_multiple_of(4),
            rpc: None,
        })
    }

    fn rename(&self, a: u8, b: u8, n: u8, time: TimeMs) -> Option<Record<'static>> {
        let (source, inode) = pick(&self.all(), a).filter(|(p, _)| !p.is_empty())?;
        let (above, _) = pick(&self.of_kind(KindTag::Directory, None), b)?;
        let target = format!("{above}/{}", NAMES[usize::from(n) % 3]);
        let old = self.find(&target);
        let cuts = |old| self.state.tree.deletion_cuts_stripes(&self.state.store, old);
        if self.has_snapshots(inode) || old.is_some_and(|old| self.has_snapshots(old) || cuts(old)) {
            return None;
        }
        let (tree, store) = (&self.state.tree, &self.state.store);
        let above = self.find(&above)?;
        let moves_one = !tree.snapshot_roots_below(store, inode).is_empty();
        if moves_one && tree.snapshots.roots().any(|(_, root)| tree.is_below(store, above, root.directory)) {
            return None;
        }
        let options = vec![RenameOption::Overwrite];
        Some(Record::Rename { src: path(&source), dst: path(&target), time, options, rpc: None })
    }

    /// Snapshots allowed, taken or deleted.
    fn snapshot_record(&self, step: Step, time: TimeMs) -> Option<Record<'static>> {
        let Step { kind, a, b, .. } = step;
        match kind % 20 {
            14 => {
                let (root, inode) = pick(&self.of_kind(KindTag::Directory, None), a)?;
                let (tree, store) = (&self.state.tree, &self.state.store);
                let mut others = tree.snapshots.roots().map(|(_, r)| r.directory).filter(|r| *r != inode);
                if others.any(|r| tree.is_below(store, r, inode) || tree.is_below(store, inode, r)) {
                    return None;
                }
                Some(Record::AllowSnapshot { root: path(&root) })
            }
            15 | 16 => {
                let (root, _) = self.snapshottable(a)?;
                let name = Cow::Owned(format!("s{}", self.state.tree.snapshots.counter).into_bytes());
                Some(Record::CreateSnapshot { root: path(&root), name, mtime: Some(time), rpc: None })
            }
            _ => {
                let (root, inode) = self.snapshottable(a)?;
                let root_of = self.state.tree.snapshot_root(&self.state.store, inode)?;
                let snapshot = pick(&root_of.snapshots, b)?;
                if self.state.tree.snapshot_deletion_cuts_stripes(&self.state.store, snapshot.id) {
                    return None;
                }
                let name = Cow::Owned(snapshot.name.to_vec());
                Some(Record::DeleteSnapshot { root: path(&root), name, mtime: Some(time), rpc: None })
            }
        }
    }

    fn snapshottable(&self, a: u8) -> Option<There> {
        let allowed = |(_, inode): &There| self.state.store.features(*inode).contains(Features::SNAPSHOTTABLE);
        let all: Vec<There> = self.of_kind(KindTag::Directory, None).into_iter().filter(allowed).collect();
        pick(&all, a)
    }

    fn truncate(&mut self, a: u8, b: u8, n: u8) -> Option<Record<'static>> {
        let (file, inode) = pick(&self.of_kind(KindTag::File, Some(false)), a)?;
        if self.state.tree.file_shape(&self.state.store, inode)?.stripe.is_some() {
            return None;
        }
        let length = self.state.tree.file_length(&self.state.store, inode);
        let new_length = length * u64::from(b) / 256;
        let mut end = 0;
        let cut = self.state.store.blocks_of(inode).into_iter().find(|b| {
            let before = end;
            end += self.state.store.block_core(*b).length;
            before < new_length && new_length < end
        });
        let copies = cut
            .is_some_and(|cut| n.is_multiple_of(4) || self.state.tree.truncate_is_kept(&self.state.store, inode, cut));
        let block = cut.map(|cut| self.state.store.block_core(cut));
        let block = block
            .map(|old| if copies { self.new_block(0) } else { Block { stamp: GenerationStamp(self.id().0), ..old } });
        let (client_name, client_machine) = ("c".into(), "m".into());
        let time = TimeMs(self.next);
        Some(Record::Truncate {
            path: Cow::Owned(file.into_bytes()),
            client_name,
            client_machine,
            new_length,
            time,
            block,
        })
    }

    fn concat(&mut self, a: u8, b: u8, time: TimeMs) -> Option<Record<'static>> {
        let closed = self.of_kind(KindTag::File, Some(false));
        let (target, to) = pick(&closed, a)?;
        let (source, from) = pick(&closed, b)?;
        let (tree, store) = (&self.state.tree, &self.state.store);
        let known = tree.is_kept_by_snapshot(store, from)
            || tree.snapshots.references(from).is_some_and(|r| !r.names.is_empty());
        let below_one = store.parent(from) == store.parent(to);
        let whole = !self.list(from).is_empty() && !self.list(to).is_empty();
        if from == to || known || !below_one || !whole {
            return None;
        }
        let sources = vec![Cow::Owned(source.into_bytes())];
        Some(Record::Concat { target: Cow::Owned(target.into_bytes()), sources, time, rpc: None })
    }

    /// Every quota directory that counts otherwise than a count of the whole.
    fn drift(&self) -> Vec<String> {
        let State { tree, store, .. } = &self.state;
        let mut wrong = Vec::new();
        for (path, inode) in self.all() {
            let Some(record) = tree.quota(store, inode) else { continue };
            let counted = tree.subtree_usage(store, inode);
            if counted != record.usage {
                wrong.push(format!("{path}: {:?}, counted {counted:?}", record.usage));
            }
        }
        wrong
    }
}
/// Runs steps until something drifts; what was applied, and what is wrong.
fn run(steps: &[Step]) -> Option<(usize, Vec<String>, Vec<String>)> {
    let mut w = World::new();
    let mut log = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Some(record) = w.record(*step) else { continue };
        let Fit::Fits(fitted) = w.fit(&record) else { continue };
        log.push(format!("{record:?}"));
        let shown = w.shown();
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            w.state.apply(&record, fitted, &w.policy, Mode::Restart, &mut Effects::new(Mode::Restart));
            while w.state.reclaim(1_000) {}
        }));
        if done.is_err() {
            return Some((at, log, vec!["a broken invariant".into()]));
        }
        let mut wrong = w.state.tree.check(&w.state.store);
        wrong.extend(w.drift());
        wrong.extend(otherwise(&shown, &w.shown()));
        if !wrong.is_empty() {
            return Some((at, log, wrong));
        }
    }
    None
}

/// The steps without those that are not needed to go wrong.
fn shortest(mut steps: Vec<Step>) -> Vec<Step> {
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            match run(&fewer) {
                Some((last, ..)) => {
                    fewer.truncate(last + 1);
                    steps = fewer;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    steps
}

#[test]
fn live_use_is_what_a_count_finds() {
    let number = |name: &str, usual: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (first, seeds, length) = (number("QUOTA_SEED", 1), number("QUOTA_SEEDS", 20), number("QUOTA_STEPS", 400));
    for seed in first..first + seeds {
        let mut random = Random(seed);
        let steps: Vec<Step> = (0..length).map(|_| random.step()).collect();
        if let Some((at, ..)) = run(&steps) {
            let steps = shortest(steps[..=at].to_vec());
            let (_, log, wrong) = run(&steps).expect("still wrong");
            panic!("seed {seed}: {wrong:#?}\n{}", log.join("\n"));
        }
    }
}

#[test]
fn a_file_that_goes_with_its_last_snapshot_leaves_its_directory() {
    let steps = [
        [14, 165, 14, 240],
        [0, 41, 87, 220],
        [15, 103, 154, 213],
        [12, 49, 26, 101],
        [15, 78, 7, 152],
        [3, 103, 169, 22],
        [3, 69, 185, 191],
        [2, 48, 148, 65],
        [16, 235, 63, 126],
        [6, 181, 215, 96],
        [9, 193, 102, 196],
        [13, 22, 138, 204],
        [17, 96, 47, 168],
    ];
    let steps = steps.map(|[kind, a, b, n]| Step { kind, a, b, n });
    assert!(run(&steps).is_none(), "the deletion of the last snapshot met what it had freed");
}

#[test]
fn use_by_kind_follows_a_change_of_policy() {
    let mut w = World::new();
    w.mkdir("/d");
    w.open("/d/f", &[block(1, 1_001, 0)]);
    let ssd = |w: &World| w.state.tree.quota(&w.state.store, w.state.tree.root()).expect("the root's").usage.by_kind[1];
    assert_eq!(ssd(&w), 0);
    w.apply(&Record::SetStoragePolicy { path: b"/d"[..].into(), policy: 12 });
    assert_eq!(ssd(&w), 200, "two replicas of a block of 100");
    w.apply(&super::delete("/d"));
    while w.state.reclaim(100) {}
    assert_eq!(ssd(&w), 0, "not below zero");
}
