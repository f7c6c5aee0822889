//! A directory's diff of the snapshot that goes is put together with the one before it, or goes with it.
//!
//! First the lists of both are put together beside them, then it is counted what quotas count less, then the new lists take the place of the old ones in
//! one step: whoever reads the past meanwhile finds all of it before, or all of it after.

use super::super::diff::{DirectoryDiff, exactly};
use super::super::{Gone, Link};
use super::tally::Tally;
use super::{CHUNK, CURRENT, Cleaner, NONE, Step, Task};
use record::{InodeHandle, Store};
use std::cmp::Ordering;
use vocab::SnapshotId;
use vocab::path::compare_names;

/// How a diff goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// With all that it holds: nothing before it is kept.
    Whole,
    /// It becomes the diff of the prior snapshot, which has none.
    Renumbered,
    /// It is put together with the one before.
    Combined,
}

/// A merge under way.
#[derive(Debug)]
pub(super) struct Merge {
    directory: InodeHandle,
    snapshot: SnapshotId,
    prior: SnapshotId,
    how: How,
    lists: Lists,
    /// Entries of the diff that goes of which the use was looked at, and then of those that nobody needs.
    counted: usize,
    tally: Tally,
    /// Storage policy of the directory.
    policy: u8,
}

/// Two diffs being put together: how far each list was read, and what came of it.
#[derive(Debug, Default)]
struct Lists {
    read: Read,
    created: Vec<Box<[u8]>>,
    deleted: Vec<Gone>,
    unneeded: Vec<Gone>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Read {
    earlier_created: usize,
    earlier_deleted: usize,
    later_created: usize,
    later_deleted: usize,
}

impl Lists {
    /// Reads up to a chunk of names; whether there are more.
    fn read_on(&mut self, store: &Store, earlier: &DirectoryDiff, later: &DirectoryDiff) -> bool {
        for _ in 0..CHUNK {
            let read = self.read;
            let heads = [
                earlier.created.get(read.earlier_created).map(|name| &**name),
                earlier.deleted.get(read.earlier_deleted).map(|gone| gone.name(store)),
                later.created.get(read.later_created).map(|name| &**name),
                later.deleted.get(read.later_deleted).map(|gone| gone.name(store)),
            ];
            let first = heads.iter().flatten().copied().min_by(|a, b| compare_names(a, b));
            let Some(name) = first else { return false };
            let has = heads.map(|head| head.is_some_and(|head| compare_names(head, name) == Ordering::Equal));
            let was = has[1].then(|| &earlier.deleted[read.earlier_deleted]);
            let went = has[3].then(|| &later.deleted[read.later_deleted]);
            let mut is_created = has[0];
            match went {
                Some(gone) if has[0] => {
                    // made after the earlier snapshot and deleted after the later one
                    self.unneeded.push(gone.clone());
                    is_created = has[2];
                }
                Some(gone) if was.is_none() => {
                    self.deleted.push(gone.clone());
                    is_created = has[2];
                }
                Some(_) => {}
                None => is_created |= has[2],
            }
            self.deleted.extend(was.cloned());
            if is_created {
                self.created.push(name.into());
            }
            self.read.earlier_created += usize::from(has[0]);
            self.read.earlier_deleted += usize::from(has[1]);
            self.read.later_created += usize::from(has[2]);
            self.read.later_deleted += usize::from(has[3]);
        }
        true
    }
}

impl Cleaner<'_> {
    /// Removes a snapshot from a directory's diffs.
    pub(super) fn begin_merge(&mut self, directory: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        let diffs = self.diffs(directory);
        let Some(at) = exactly(diffs, snapshot) else { return };
        let how = if at == 0 && prior == NONE {
            How::Whole
        } else if at == 0 || diffs[at - 1].snapshot != prior {
            How::Renumbered
        } else {
            How::Combined
        };
        let merge = Merge {
            directory,
            snapshot,
            prior,
            how,
            lists: Lists::default(),
            counted: 0,
            tally: Tally::default(),
            policy: self.tree.storage_policy(self.store, directory),
        };
        self.then([Step::Merge(Box::new(merge))]);
    }

    pub(super) fn merge(&mut self, mut merge: Box<Merge>) {
        let diffs = self.tree.snapshots.directory_diffs(merge.directory);
        let Some(at) = exactly(diffs, merge.snapshot) else { return };
        let later = &diffs[at];
        if let Some(earlier) = at.checked_sub(1).map(|at| &diffs[at]).filter(|_| merge.how == How::Combined)
            && merge.lists.read_on(self.store, earlier, later)
        {
            return self.then([Step::Merge(merge)]);
        }
        if !merge.tally.is_done() {
            for _ in 0..CHUNK / 4 {
                merge.tally.step(self.tree, self.store);
            }
            self.spent += CHUNK as u64 / 16;
            return self.then([Step::Merge(merge)]);
        }
        if merge.count_on(later) {
            return self.then([Step::Merge(merge)]);
        }
        self.end_merge(*merge);
    }

    fn end_merge(&mut self, merge: Merge) {
        let Merge { directory, snapshot, prior, how, lists, tally, .. } = merge;
        let Some(diffs) = self.tree.snapshots.directories.get_mut(&directory) else { return };
        let Some(at) = exactly(diffs, snapshot) else { return };
        let (unneeded, created, deleted) = match how {
            How::Whole => {
                let removed = diffs.remove(at);
                (removed.deleted, removed.created, Vec::new())
            }
            How::Renumbered => {
                diffs[at].snapshot = prior;
                (Vec::new(), Vec::new(), Vec::new())
            }
            How::Combined => {
                let removed = diffs.remove(at);
                let earlier = &mut diffs[at - 1];
                earlier.copy = earlier.copy.take().or(removed.copy);
                let old = (
                    std::mem::replace(&mut earlier.created, lists.created),
                    std::mem::replace(&mut earlier.deleted, lists.deleted),
                );
                self.then([Step::Discard(removed.created, removed.deleted)]);
                (lists.unneeded, old.0, old.1)
            }
        };
        self.adjust(directory, tally.usage());
        self.then([Step::Each(unneeded.into_iter(), Task::Destroy), Step::Discard(created, deleted)]);
    }
}

impl Merge {
    /// Looks at what quotas count of some more entries, before and after; whether there are more.
    fn count_on(&mut self, later: &DirectoryDiff) -> bool {
        let (snapshot, prior, policy) = (self.snapshot, self.prior, self.policy);
        let from = self.counted;
        let Merge { how, lists, tally, counted, .. } = self;
        let when = |gone: &Gone| match gone.link {
            Link::Named { .. } => snapshot,
            Link::Plain | Link::Renamed => CURRENT,
        };
        if from < later.deleted.len() {
            let until = later.deleted.len().min(from + CHUNK);
            for gone in &later.deleted[from..until] {
                if *how == How::Whole {
                    tally.count(gone, when(gone), policy, true);
                } else if matches!(gone.link, Link::Named { .. }) {
                    // an older name counts as of the diff that has it
                    tally.count(gone, snapshot, policy, true);
                    tally.count(gone, prior, policy, false);
                }
            }
            *counted = until;
            return true;
        }
        let from = from - later.deleted.len();
        let until = lists.unneeded.len().min(from + CHUNK);
        for gone in &lists.unneeded[from.min(until)..until] {
            match gone.link {
                // taken away above as of the one snapshot, and added as of the other
                Link::Named { .. } => tally.count(gone, prior, policy, true),
                Link::Plain | Link::Renamed => tally.count(gone, CURRENT, policy, true),
            }
        }
        *counted = later.deleted.len() + until;
        until < lists.unneeded.len() || !tally.is_done()
    }
}
