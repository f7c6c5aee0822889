//! Directories: their own diffs, what was made and deleted between two snapshots, and what is below.

use super::super::Gone;
use super::super::diff::{DirectoryDiff, exactly, later_prior};
use super::set::InodeSet;
use super::walk::{Children, Next};
use super::{CHUNK, CURRENT, Cleaner, Known, NONE, Step, Task};
use record::{Features, InodeHandle, KindTag};
use std::sync::Arc;
use vocab::SnapshotId;

/// A task for each child of a directory.
#[derive(Debug)]
pub(super) struct Below {
    children: Children,
    task: Task,
    /// Children that are left out.
    excluded: Arc<InodeSet>,
    /// The diff of the directory whose deleted list is left out, too.
    without: Option<SnapshotId>,
}

/// What the lists of a diff hold is being looked up.
#[derive(Debug)]
pub(super) struct Gather {
    directory: InodeHandle,
    /// The diff.
    diff: SnapshotId,
    /// Names of the created list, then entries of the deleted list that were looked at.
    at: usize,
    with_deleted: bool,
    /// What the created list stands for; of a diff that is to be merged only the inodes.
    created: Vec<Gone>,
    made: InodeSet,
    deleted: InodeSet,
    /// Names that stand for nothing of what is wanted.
    others: Vec<Box<[u8]>>,
    then: Then,
}

/// What comes after that.
#[derive(Debug)]
enum Then {
    /// The diff is put together with the one of the snapshot that goes.
    Merge { snapshot: SnapshotId },
    /// The same of a subtree that was renamed and has lost its new place.
    MergeTarget { snapshot: SnapshotId },
    /// All that was made is freed.
    Destroy,
    /// What was made before the diffs were put together is cleaned, or freed.
    Made { snapshot: SnapshotId, made: InodeSet, destroy: bool },
}

impl Cleaner<'_> {
    pub(super) fn diffs(&self, directory: InodeHandle) -> &[DirectoryDiff] {
        self.tree.snapshots.directory_diffs(directory)
    }

    /// A directory whose last diff went has no past.
    pub(super) fn drop_empty_directory(&mut self, inode: InodeHandle) {
        let empty = self.tree.snapshots.directories.get(&inode).is_some_and(Vec::is_empty);
        if empty && !self.job.freed.contains(inode) {
            self.tree.snapshots.directories.remove(&inode);
            let features = self.store.features(inode);
            self.store.set_features(inode, features.without(Features::SNAPSHOT_DIFFS));
        }
    }

    /// The step that cleans what is below a directory.
    pub(super) fn below(
        &self,
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        excluded: Arc<InodeSet>,
    ) -> Step {
        let when = if snapshot != CURRENT && prior != NONE { prior } else { snapshot };
        let excluded = if snapshot == CURRENT { Arc::default() } else { excluded };
        let children = Children::new(self.tree, directory, when);
        Step::Below(Box::new(Below { children, task: Task::Clean { snapshot, prior }, excluded, without: None }))
    }

    pub(super) fn go_below(&mut self, mut below: Box<Below>) {
        loop {
            match below.children.next(self.tree, self.store) {
                Next::Over => return self.then([Step::DiscardNames(below.children.into_names())]),
                Next::Later => return self.then([Step::Below(below)]),
                Next::Child(child) => {
                    // what has no past and nothing below it is done at once
                    if self.has_nothing_to_clean(&child, below.task) {
                        self.spent += 1;
                        if self.spent.is_multiple_of(CHUNK as u64) {
                            return self.then([Step::Below(below)]);
                        }
                        continue;
                    }
                    let is_deleted = |of: SnapshotId| {
                        let diffs = self.diffs(below.children.directory);
                        let diff = exactly(diffs, of).map(|at| &diffs[at]);
                        diff.is_some_and(|d| d.find_deleted(self.store, child.name(self.store)).is_ok())
                    };
                    if self.job.freed.contains(child.inode)
                        || below.excluded.contains(child.inode)
                        || below.without.is_some_and(is_deleted)
                    {
                        continue;
                    }
                    let task = below.task;
                    self.then([Step::Below(below)]);
                    return self.perform(&child, task);
                }
            }
        }
    }

    /// Whether neither a child nor anything below it has anything of the snapshot that goes.
    fn has_nothing_to_clean(&self, child: &Gone, task: Task) -> bool {
        let Task::Clean { snapshot, .. } = task else { return false };
        if let Some((of, marked)) = &self.job.marked
            && *of == snapshot
            && !marked.contains(child.inode)
        {
            return true;
        }
        snapshot != CURRENT
            && !self.job.freed.contains(child.inode)
            && self.store.kind(child.inode) == KindTag::File
            && exactly(self.tree.snapshots.file_diffs(child.inode), snapshot).is_none()
    }

    pub(super) fn clean_directory(&mut self, directory: InodeHandle, snapshot: SnapshotId, mut prior: SnapshotId) {
        if snapshot == CURRENT {
            self.tree.capture(self.store, directory, prior);
            let last = self.diffs(directory).last().map(|diff| diff.snapshot);
            let below = self.below(directory, snapshot, prior, Arc::default());
            self.then([below]);
            if let Some(diff) = last {
                self.destroy_created(directory, diff);
            }
            return;
        }
        prior = later_prior(self.diffs(directory), snapshot, prior);
        match exactly(self.diffs(directory), prior) {
            Some(_) => self.begin_gather(directory, prior, true, Then::Merge { snapshot }),
            None => {
                let known = Box::default();
                self.then([Step::AfterMerge { directory, snapshot, prior, known }]);
                self.begin_merge(directory, snapshot, prior);
            }
        }
    }

    /// The created and deleted list of a directory after its diffs were put together and all below it was cleaned.
    pub(super) fn clean_lists(
        &mut self,
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        mut known: Box<Known>,
    ) {
        let Some(at) = exactly(self.diffs(directory), prior) else { return };
        let made = std::mem::take(&mut known.made);
        self.then([Step::Came { directory, snapshot, prior, known, at: 0, found: Vec::new() }]);
        if !made.is_empty() {
            // of what was made between the prior snapshot and the one deleted, the copies for the latter go; all of it where nobody needs it: a
            // directory that was renamed away has a diff of the last snapshot that knows it, and if that is this one and there is no other way to it,
            // no later one shows it. Any other directory may be shown by a later one though it has no diff of it
            let references = self.tree.snapshots.references.get(&directory);
            let is_only = references.is_some_and(|r| r.names.len() + usize::from(r.target.is_some()) == 1);
            let is_last = at + 1 == self.diffs(directory).len();
            let destroy = is_only && is_last && !self.tree.is_present(self.store, directory);
            self.begin_gather(directory, prior, false, Then::Made { snapshot, made, destroy });
        }
    }

    /// What a deleted list has got.
    pub(super) fn clean_came(
        &mut self,
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        known: Box<Known>,
        at: usize,
        mut found: Vec<Gone>,
    ) {
        let Some(diff) = exactly(self.diffs(directory), prior) else { return };
        let deleted = &self.tree.snapshots.directory_diffs(directory)[diff].deleted;
        if at < deleted.len() {
            let until = deleted.len().min(at + CHUNK);
            found.extend(deleted[at..until].iter().filter(|gone| !known.went.contains(gone.inode)).cloned());
            return self.then([Step::Came { directory, snapshot, prior, known, at: until, found }]);
        }
        self.then([Step::Each(found.into_iter(), Task::CleanDeleted { post: snapshot, prior })]);
    }

    fn begin_gather(&mut self, directory: InodeHandle, diff: SnapshotId, with_deleted: bool, then: Then) {
        let first = match then {
            // what was made does not matter
            Then::MergeTarget { .. } => {
                exactly(self.diffs(directory), diff).map_or(0, |at| self.diffs(directory)[at].created.len())
            }
            _ => 0,
        };
        let gather = Gather {
            directory,
            diff,
            at: first,
            with_deleted,
            created: Vec::new(),
            deleted: InodeSet::default(),
            made: InodeSet::default(),
            others: Vec::new(),
            then,
        };
        self.gather(Box::new(gather));
    }

    pub(super) fn gather(&mut self, mut gather: Box<Gather>) {
        let directory = gather.directory;
        let diffs = self.tree.snapshots.directory_diffs(directory);
        if let Some(index) = exactly(diffs, gather.diff) {
            let diff = &diffs[index];
            let all = diff.created.len() + if gather.with_deleted { diff.deleted.len() } else { 0 };
            let until = all.min(gather.at + CHUNK);
            for at in gather.at..until {
                let Some(name) = diff.created.get(at) else {
                    gather.deleted.insert(diff.deleted[at - diff.created.len()].inode);
                    continue;
                };
                // every later diff may say what it was
                self.spent += (diffs.len() - index) as u64 / CHUNK as u64;
                let entry = self.tree.created_entry(self.store, directory, index, name);
                let wanted = |entry: &Gone| match &gather.then {
                    Then::Made { made, .. } => made.contains(entry.inode) && !self.job.freed.contains(entry.inode),
                    Then::Merge { .. } | Then::MergeTarget { .. } | Then::Destroy => true,
                };
                match (entry.filter(wanted), &gather.then) {
                    (Some(entry), Then::Merge { .. } | Then::MergeTarget { .. }) => _ = gather.made.insert(entry.inode),
                    (Some(entry), _) => gather.created.push(entry),
                    (None, _) => gather.others.push(name.clone()),
                }
            }
            gather.at = until;
            if until < all {
                return self.then([Step::Gather(gather)]);
            }
        }
        self.gathered(*gather);
    }

    fn gathered(&mut self, gathered: Gather) {
        let Gather { directory, diff, created, made, deleted, others, then, .. } = gathered;
        match then {
            Then::Merge { snapshot } => {
                let known = Box::new(Known { made, went: Arc::new(deleted) });
                self.then([Step::AfterMerge { directory, snapshot, prior: diff, known }]);
                self.begin_merge(directory, snapshot, diff);
            }
            Then::MergeTarget { snapshot } => self.destroy_target_below(directory, snapshot, diff, Arc::new(deleted)),
            Then::Destroy => self.take_out_all(directory, diff, created, 0),
            Then::Made { snapshot, destroy: false, .. } => {
                self.then([Step::Each(created.into_iter(), Task::Clean { snapshot, prior: NONE })]);
            }
            Then::Made { destroy: true, .. } => self.then([
                Step::Each(created.into_iter(), Task::TakeOutAndDestroy { directory }),
                Step::SetCreated { directory, diff, created: others },
            ]),
        }
    }

    pub(super) fn set_created(&mut self, directory: InodeHandle, diff: SnapshotId, created: Vec<Box<[u8]>>) {
        let diffs = self.tree.snapshots.directories.get_mut(&directory);
        let diff = diffs.and_then(|diffs| exactly(diffs, diff).map(|at| &mut diffs[at]));
        if let Some(diff) = diff {
            let old = std::mem::replace(&mut diff.created, created);
            self.then([Step::Discard(old, Vec::new())]);
        }
    }

    /// Frees what was made after a snapshot of a directory.
    pub(super) fn destroy_created(&mut self, directory: InodeHandle, diff: SnapshotId) {
        self.begin_gather(directory, diff, false, Then::Destroy);
    }

    /// Something that was deleted after the snapshot that goes, and is now in the prior one's list: what was made and deleted in between goes.
    pub(super) fn clean_deleted(&mut self, entry: &Gone, post: SnapshotId, prior: SnapshotId) {
        let inode = entry.inode;
        if self.job.freed.contains(inode) {
            return;
        }
        if let Some(last) = entry.last() {
            let references = self.tree.snapshots.references.get(&inode);
            let is_only = references.is_some_and(|r| r.names.last() == Some(&last) && r.target.is_none());
            if last < post {
                return;
            }
            if !is_only {
                return self.clean(entry, post, prior);
            }
        }
        match self.store.kind(inode) {
            KindTag::File => self.delete_file_diff(inode, post, prior),
            KindTag::Directory => {
                let children = Children::new(self.tree, inode, prior);
                let task = Task::CleanDeleted { post, prior };
                let without = Some(prior);
                let below = Below { children, task, excluded: Arc::default(), without };
                self.then([Step::Below(Box::new(below))]);
                if exactly(self.diffs(inode), prior).is_some() {
                    self.destroy_created(inode, prior);
                }
            }
            KindTag::Symlink | KindTag::Reference => {}
        }
    }

    /// Frees all that a snapshot after `prior` and the present held of a subtree that was renamed here and deleted.
    pub(super) fn destroy_target_subtree(&mut self, entry: &Gone, snapshot: SnapshotId, prior: SnapshotId) {
        let inode = entry.inode;
        if self.job.freed.contains(inode) {
            return;
        }
        if entry.last().is_some() && snapshot != CURRENT {
            return self.clean(entry, snapshot, prior);
        }
        match self.store.kind(inode) {
            KindTag::File => self.clean_file(inode, snapshot, prior),
            KindTag::Directory if exactly(self.diffs(inode), prior).is_some() => {
                self.begin_gather(inode, prior, true, Then::MergeTarget { snapshot });
            }
            KindTag::Directory => self.destroy_target_below(inode, snapshot, prior, Arc::default()),
            KindTag::Symlink | KindTag::Reference => {}
        }
    }

    fn destroy_target_below(
        &mut self,
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        excluded: Arc<InodeSet>,
    ) {
        self.then([Step::TargetBelow { directory, snapshot, prior, excluded }]);
        if snapshot != CURRENT {
            self.begin_merge(directory, snapshot, prior);
        }
    }

    /// After the merge: what was made since the prior snapshot goes, then the same of what is below.
    pub(super) fn go_target_below(
        &mut self,
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        excluded: Arc<InodeSet>,
    ) {
        let children = Children::new(self.tree, directory, prior);
        let task = Task::DestroyTargetSubtree { snapshot, prior };
        self.then([Step::Below(Box::new(Below { children, task, excluded, without: None }))]);
        if exactly(self.diffs(directory), prior).is_some() {
            self.destroy_created(directory, prior);
        }
    }
}
