//! Purpose: deleting: the present state of something that snapshots know, and whole snapshots. What no snapshot needs any more is freed.
//! Called by: the tree's deletions, reclaim (slices of a snapshot's deletion).
//! Calls: the rest of snapshot, record, quota.
//! Never: is interrupted between what a reader could see half done: each step leaves every snapshot but the deleted one as it was.
//! Invariants: steps are done in the order in which a recursion would do them, so that one long hold and many short ones come to the same.
//!
//! As Hadoop's `cleanSubtree` and `destroyAndCollectBlocks`: `snapshot` is what is deleted ([`SnapshotId::CURRENT`] for the present), `prior` the
//! latest snapshot before it that keeps what it needs ([`SnapshotId::NONE`] if none does). A recursion would not bear being interrupted: what is left
//! to do lies on a stack of steps, the next one on top.

mod destroy;
mod directory;
mod file;
mod mark;
mod merge;
mod set;
mod tally;
mod walk;

use super::diff::{later_prior, prior};
use super::{Gone, Link};
use crate::reclaim::{BlockSink, Waiting};
use crate::{Tree, quota};
use destroy::TakeOut;
use directory::{Below, Gather};
use mark::Mark;
use merge::Merge;
use record::{Features, InodeHandle, KindTag, Store};
use set::InodeSet;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::vec;
use tally::Tally;
use vocab::quota::Usage;
use vocab::{InodeId, SnapshotId, TimeMs};

const CURRENT: SnapshotId = SnapshotId::CURRENT;
const NONE: SnapshotId = SnapshotId::NONE;

/// Names of a list that are looked at in one step.
const CHUNK: usize = 64;

/// What a deletion freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reclaimed {
    /// Inodes.
    pub inodes: u64,
}

/// A deletion under way.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    /// What is left to do; the last one is next.
    steps: Vec<Step>,
    /// Inodes freed so far: lists that are being walked may still name them.
    freed: InodeSet,
    /// What a walk goes into that takes this snapshot away; everything where that was not found out.
    marked: Option<(SnapshotId, InodeSet)>,
    /// Directory whose snapshot goes, or the one that what goes was in.
    root: Option<InodeHandle>,
}

/// What is to be done with an entry of a list.
#[derive(Clone, Copy, Debug)]
enum Task {
    Clean { snapshot: SnapshotId, prior: SnapshotId },
    CleanDeleted { post: SnapshotId, prior: SnapshotId },
    DestroyTargetSubtree { snapshot: SnapshotId, prior: SnapshotId },
    Destroy,
    TakeOutAndDestroy { directory: InodeHandle },
}

/// A piece of work.
#[derive(Debug)]
enum Step {
    CleanInode {
        inode: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
    },
    Mark(Mark),
    DropEmptyDirectory(InodeHandle),
    Each(vec::IntoIter<Gone>, Task),
    Below(Box<Below>),
    Gather(Box<Gather>),
    /// A directory's own diffs were put together: what is below it, and what its lists have got.
    AfterMerge {
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        known: Box<Known>,
    },
    AfterBelow {
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        known: Box<Known>,
    },
    /// Entries that a deleted list has got, of which those up to a place were looked at.
    Came {
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        known: Box<Known>,
        at: usize,
        found: Vec<Gone>,
    },
    Merge(Box<Merge>),
    /// The created list of a diff becomes this one.
    SetCreated {
        directory: InodeHandle,
        diff: SnapshotId,
        created: Vec<Box<[u8]>>,
    },
    TakeOut(Box<TakeOut>),
    TakeOutAll {
        directory: InodeHandle,
        diff: SnapshotId,
        entries: Vec<Gone>,
        at: usize,
    },
    TargetBelow {
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        excluded: Arc<InodeSet>,
    },
    Destroy(Gone),
    DestroyDiffs(vec::IntoIter<super::DirectoryDiff>),
    DestroyChildren(InodeHandle),
    /// Lists that nobody reads any more.
    Discard(Vec<Box<[u8]>>, Vec<Gone>),
    DiscardNames(BTreeSet<Box<[u8]>>),
    /// What is about to be freed is being counted, to be taken off these quotas.
    GiveBack(Box<Tally>, Vec<InodeId>),
}

/// What the diff of the prior snapshot had before another one was put together with it.
#[derive(Debug, Default)]
struct Known {
    /// What its created list stood for.
    made: InodeSet,
    /// What its deleted list had.
    went: Arc<InodeSet>,
}

/// One deletion at work.
pub(crate) struct Cleaner<'a> {
    tree: &'a mut Tree,
    store: &'a mut Store,
    sink: &'a mut dyn BlockSink,
    job: &'a mut Cleanup,
    /// Work done, in steps of about the same length.
    spent: u64,
}

impl Tree {
    /// Deletes a child that the latest snapshot knows: it stays in the past, and what was made below it since the snapshot is freed: as much of it as
    /// about so many steps find, the rest by [`Tree::reclaim`], before anything that waits already. With a time, which its directory gets, its
    /// attributes are kept first; a rename over it has none, and does not.
    pub fn delete_into_snapshot(
        &mut self,
        store: &mut Store,
        sink: &mut dyn BlockSink,
        child: InodeHandle,
        time: Option<TimeMs>,
        budget: u64,
    ) -> Reclaimed {
        let latest = self.latest_snapshot(store, child);
        let Some(parent) = store.parent(child) else { return Reclaimed::default() };
        if time.is_some() {
            self.capture(store, child, latest);
        }
        let gone = self.remove_into_snapshot(store, child, latest);
        if let Some(time) = time {
            self.touch_captured(store, parent, time, latest);
        }
        let mut job = Cleanup { root: Some(parent), ..Cleanup::default() };
        let mut cleaner = Cleaner { tree: self, store, sink, job: &mut job, spent: 0 };
        cleaner.clean(&gone, CURRENT, latest);
        cleaner.run(budget);
        let inodes = job.freed.len();
        if !job.is_done() {
            self.cleanups += 1;
            self.detached.push_front(Waiting::Snapshot(Box::new(job)));
        }
        Reclaimed { inodes }
    }

    /// Whether a child would stay in the past if it were deleted.
    pub fn is_kept_by_snapshot(&self, store: &Store, child: InodeHandle) -> bool {
        let latest = self.latest_snapshot(store, child);
        latest != CURRENT && self.slot_in_latest(store, child, latest)
    }

    /// Takes a child out of the present and into the deleted list of the latest snapshot, which knows it.
    fn remove_into_snapshot(&mut self, store: &mut Store, child: InodeHandle, latest: SnapshotId) -> Gone {
        let gone = self.entry(child);
        let Some(parent) = store.parent(child) else { return gone };
        self.capture_removal(store, parent, gone.clone(), latest);
        self.unlink(store, child);
        store.set_parent(child, Some(parent));
        let features = store.features(child);
        store.set_features(child, features.with(Features::SNAPSHOT_ONLY));
        gone
    }

    /// Deletes a snapshot of a directory; `time` becomes the directory's modification time. Nobody sees the snapshot from now on; what it held is
    /// freed by [`Tree::reclaim`].
    pub fn delete_snapshot(&mut self, store: &mut Store, directory: InodeHandle, name: &[u8], time: Option<TimeMs>) {
        let root = self.snapshot_root(store, directory);
        let Some(id) = root.and_then(|r| r.snapshot(name)).map(|s| s.id) else { return };
        let mut prior = NONE;
        let mut above = Some(directory);
        while let Some(inode) = above {
            prior = later_prior(self.snapshots.directory_diffs(inode), id, prior);
            above = store.parent(inode);
        }
        self.forget_snapshot(store.inode_id(directory), name);
        if let Some(time) = time {
            self.touch(store, directory, time);
        }
        let steps = vec![Step::CleanInode { inode: directory, snapshot: id, prior }, Step::Mark(Mark::new(id))];
        let job = Cleanup { steps, root: Some(directory), ..Cleanup::default() };
        self.cleanups += 1;
        self.detached.push_back(Waiting::Snapshot(Box::new(job)));
    }

    /// Goes on with a deletion for about so many steps. Gives how many it did and how many inodes it freed; it is over when nothing is left.
    pub(crate) fn clean_on(
        &mut self,
        store: &mut Store,
        sink: &mut dyn BlockSink,
        job: &mut Cleanup,
        budget: u64,
    ) -> (u64, u64) {
        let before = job.freed.len();
        let mut cleaner = Cleaner { tree: self, store, sink, job, spent: 0 };
        cleaner.run(budget);
        let spent = cleaner.spent;
        (spent, job.freed.len() - before)
    }

    /// Whether a snapshot's deletion is under way, or one of something that snapshots know.
    pub fn has_cleanup(&self) -> bool {
        self.cleanups > 0
    }

    /// Whether a change of an inode, or an answer about it, has to wait for the end of a snapshot's deletion: it has a past or lies below something
    /// that has, or it lies above the snapshot's directory.
    pub fn waits_for_cleanup(&self, store: &Store, inode: InodeHandle) -> bool {
        if !self.has_cleanup() {
            return false;
        }
        let mut roots = self.detached.iter().filter_map(|waiting| match waiting {
            Waiting::Snapshot(job) => job.root,
            Waiting::Subtree(_) => None,
        });
        self.has_past_above(store, inode) || roots.any(|root| self.is_below(store, root, inode))
    }

    /// Whether an inode or one above it has a past.
    pub fn has_past_above(&self, store: &Store, inode: InodeHandle) -> bool {
        let past = Features::SNAPSHOT_DIFFS.with(Features::SNAPSHOTTABLE);
        let mut current = Some(inode);
        while let Some(inode) = current {
            let (features, parent) = store.features_and_parent(inode);
            if features.intersects(past) || self.snapshots.references.contains_key(&inode) {
                return true;
            }
            current = parent;
        }
        false
    }

    /// Whether quotas above an inode count it: in the present, or in a deleted list.
    pub fn is_counted(&self, store: &Store, inode: InodeHandle) -> bool {
        let mut top = inode;
        loop {
            if store.features(top).contains(Features::DETACHED) {
                return false;
            }
            match store.parent(top) {
                Some(parent) => top = parent,
                None => return top == self.root(),
            }
        }
    }

    /// Whether an inode is in the present, not only in the past or cut off.
    pub fn is_present(&self, store: &Store, inode: InodeHandle) -> bool {
        let mut top = inode;
        loop {
            if store.features(top).intersects(Features::SNAPSHOT_ONLY.with(Features::DETACHED)) {
                return false;
            }
            match store.parent(top) {
                Some(parent) => top = parent,
                None => return top == self.root(),
            }
        }
    }

    /// The last snapshot of the name that an inode had before this place of it.
    fn prior_of(&self, entry: &Gone) -> SnapshotId {
        let Some(references) = self.snapshots.references.get(&entry.inode) else { return NONE };
        let before = match entry.link {
            Link::Named { last, .. } => references.names.partition_point(|n| *n < last),
            _ => references.names.len(),
        };
        before.checked_sub(1).map_or(NONE, |at| self.prior_diff(entry.inode, references.names[at]))
    }

    /// The snapshot of an inode's diffs that is the anchor or the one before.
    pub(super) fn prior_diff(&self, inode: InodeHandle, anchor: SnapshotId) -> SnapshotId {
        if let Some(diffs) = self.snapshots.directories.get(&inode) {
            return prior(diffs, anchor, false);
        }
        self.snapshots.files.get(&inode).map_or(NONE, |d| prior(&d.list, anchor, false))
    }

    /// Takes one way to an inode away; gives how many are left.
    fn drop_reference(&mut self, entry: &Gone) -> usize {
        let Some(references) = self.snapshots.references.get_mut(&entry.inode) else { return 0 };
        match entry.link {
            Link::Named { last, .. } => {
                references.names.retain(|n| *n != last);
                self.snapshots.older_names.remove(&(entry.inode, last));
            }
            _ => references.target = None,
        }
        let left = references.names.len() + usize::from(references.target.is_some());
        if left == 0 {
            self.snapshots.references.remove(&entry.inode);
        }
        left
    }
}

impl Cleanup {
    /// Frees something detached that has a past or is renamed, with all below it, after taking what it counts off the quotas that count it.
    pub(crate) fn of_detached(entry: Gone, charged: Vec<InodeId>, inherited: u8) -> Cleanup {
        let mut steps = vec![Step::Destroy(entry.clone())];
        if !charged.is_empty() {
            let mut tally = Box::new(Tally::default());
            tally.count(&entry, CURRENT, inherited, false);
            steps.push(Step::GiveBack(tally, charged));
        }
        Cleanup { steps, ..Cleanup::default() }
    }

    /// Whether all is done.
    pub(crate) fn is_done(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Cleaner<'_> {
    /// Does steps until about so many are done, or none is left.
    fn run(&mut self, budget: u64) {
        while self.spent < budget {
            let Some(step) = self.job.steps.pop() else { return };
            self.spent += 1;
            self.step(step);
        }
    }

    /// Puts steps on the stack, the first one to be done first.
    fn then<const N: usize>(&mut self, steps: [Step; N]) {
        self.job.steps.extend(steps.into_iter().rev());
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::CleanInode { inode, snapshot, prior } => self.clean_inode(inode, snapshot, prior),
            Step::Mark(mark) => self.mark(mark),
            Step::DropEmptyDirectory(directory) => self.drop_empty_directory(directory),
            Step::Each(mut entries, task) => {
                if let Some(entry) = entries.next() {
                    self.then([Step::Each(entries, task)]);
                    self.perform(&entry, task);
                }
            }
            Step::Below(below) => self.go_below(below),
            Step::Gather(gather) => self.gather(gather),
            Step::AfterMerge { directory, snapshot, prior, known } => {
                let excluded = known.went.clone();
                let below = self.below(directory, snapshot, prior, excluded);
                self.then([below, Step::AfterBelow { directory, snapshot, prior, known }]);
            }
            Step::AfterBelow { directory, snapshot, prior, known } => {
                self.clean_lists(directory, snapshot, prior, known);
            }
            Step::Came { directory, snapshot, prior, known, at, found } => {
                self.clean_came(directory, snapshot, prior, known, at, found);
            }
            Step::Merge(merge) => self.merge(merge),
            Step::SetCreated { directory, diff, created } => self.set_created(directory, diff, created),
            Step::TakeOut(take_out) => self.take_out(take_out),
            Step::TakeOutAll { directory, diff, entries, at } => self.take_out_all(directory, diff, entries, at),
            Step::TargetBelow { directory, snapshot, prior, excluded } => {
                self.go_target_below(directory, snapshot, prior, excluded);
            }
            Step::Destroy(entry) => self.destroy(&entry),
            Step::DestroyDiffs(mut diffs) => {
                if let Some(diff) = diffs.next() {
                    let deleted = Step::Each(diff.deleted.into_iter(), Task::Destroy);
                    self.then([deleted, Step::Discard(diff.created, Vec::new()), Step::DestroyDiffs(diffs)]);
                }
            }
            Step::DestroyChildren(directory) => self.destroy_children(directory),
            Step::Discard(mut names, mut entries) => {
                names.truncate(names.len().saturating_sub(8 * CHUNK));
                entries.truncate(entries.len().saturating_sub(8 * CHUNK));
                if !(names.is_empty() && entries.is_empty()) {
                    self.then([Step::Discard(names, entries)]);
                }
            }
            Step::GiveBack(tally, charged) => self.give_back(tally, charged),
            Step::DiscardNames(mut names) => {
                for _ in 0..4 * CHUNK {
                    names.pop_first();
                }
                if !names.is_empty() {
                    self.then([Step::DiscardNames(names)]);
                }
            }
        }
    }

    fn perform(&mut self, entry: &Gone, task: Task) {
        match task {
            Task::Clean { snapshot, prior } => self.clean(entry, snapshot, prior),
            Task::CleanDeleted { post, prior } => self.clean_deleted(entry, post, prior),
            Task::DestroyTargetSubtree { snapshot, prior } => self.destroy_target_subtree(entry, snapshot, prior),
            Task::Destroy => self.destroy(entry),
            Task::TakeOutAndDestroy { directory } => {
                self.then([Step::Destroy(entry.clone())]);
                self.begin_take_out(directory, entry);
            }
        }
    }

    /// Adds to the quotas from a directory up, if they count it.
    fn adjust(&mut self, directory: InodeHandle, delta: &Usage) {
        if *delta != Usage::default() && self.tree.is_counted(self.store, directory) {
            self.tree.add_usage(self.store, directory, delta);
        }
    }

    /// Deletes something that a directory holds as of `snapshot`.
    fn clean(&mut self, entry: &Gone, snapshot: SnapshotId, mut prior: SnapshotId) {
        if self.job.freed.contains(entry.inode) {
            return;
        }
        if entry.link != Link::Plain {
            if snapshot == CURRENT && prior == NONE {
                return self.destroy(entry);
            }
            if prior == NONE {
                prior = self.tree.prior_of(entry);
            }
            if snapshot != CURRENT && prior != NONE && snapshot <= prior {
                return;
            }
        }
        self.clean_inode(entry.inode, snapshot, prior);
    }

    fn clean_inode(&mut self, inode: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        let whole = snapshot == CURRENT && prior == NONE;
        match self.store.kind(inode) {
            KindTag::File => self.clean_file(inode, snapshot, prior),
            KindTag::Directory => {
                let has_past = self.tree.snapshots.directories.contains_key(&inode)
                    || self.store.features(inode).contains(Features::SNAPSHOTTABLE);
                if has_past {
                    self.then([Step::DropEmptyDirectory(inode)]);
                    self.clean_directory(inode, snapshot, prior);
                } else if whole {
                    self.destroy_inode(inode);
                } else {
                    let below = self.below(inode, snapshot, prior, Arc::default());
                    self.then([below]);
                }
            }
            KindTag::Symlink | KindTag::Reference if whole => self.destroy_inode(inode),
            KindTag::Symlink | KindTag::Reference => {}
        }
    }

    /// Brings what quotas count along when it falls from `before` to `after`.
    fn adjust_between(&mut self, directory: InodeHandle, before: &Usage, after: &Usage) {
        self.adjust(directory, &quota::difference(after, before));
    }
}
