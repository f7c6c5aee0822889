//! Where an inode is counted besides its present place: in older names of renamed directories above it, or of itself.
//!
//! An older name counts what a snapshot has of it ([`Tree::past_usage`]). What is below it then is fixed, but for files without a diff of that snapshot:
//! those count as they are now. So whatever changes the count of a file, or its storage policy, changes that of the names it is seen through; this finds
//! them from the file upwards, so that no other file is looked at.

use super::DirectoryDiff;
use super::diff::{at, last};
use super::{Gone, OlderName};
use crate::{Tree, quota};
use record::{InodeHandle, KindTag, Store};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashSet};
use vocab::SnapshotId;
use vocab::erasure_coding::REPLICATION;
use vocab::quota::Usage;
use vocab::storage_policy::UNSPECIFIED;

/// A view of an inode: something counts it as of a snapshot.
#[derive(Clone, Copy, Debug)]
struct View {
    /// The directory that has the older name in a deleted list.
    holder: InodeHandle,
    snapshot: SnapshotId,
    /// Storage policy that the inode inherits in this view.
    inherited: u8,
}

impl Tree {
    /// Runs a change of what an inode (a directory with all below it) counts, and brings along what it counts where the past sees it.
    pub fn with_views<R>(
        &mut self,
        store: &mut Store,
        inode: InodeHandle,
        change: impl FnOnce(&mut Tree, &mut Store) -> R,
    ) -> R {
        let seen = self.seen_in_views(store, inode);
        let result = change(self, store);
        self.changed_in_views(store, inode, &seen);
        result
    }

    /// What a change that [`Tree::with_views`] cannot run has to hand over to [`Tree::changed_in_views`].
    pub fn seen_in_views(&self, store: &Store, inode: InodeHandle) -> SeenInViews {
        // what a diff tells of a file stays as it is; a striped one counts as it is now
        let told = store.kind(inode) == KindTag::File && store.own_erasure_coding_policy(inode) == REPLICATION;
        let known = if told { last(self.snapshots.file_diffs(inode)) } else { SnapshotId::CURRENT };
        self.seen_after(store, inode, if known == SnapshotId::CURRENT { SnapshotId::NONE } else { known })
    }
    /// The same of a change that the last diff of a file is part of.
    pub(super) fn seen_with_last_diff(&self, store: &Store, file: InodeHandle) -> SeenInViews {
        let before = self.snapshots.file_diffs(file).iter().rev().nth(1);
        self.seen_after(store, file, before.map_or(SnapshotId::NONE, |diff| diff.snapshot))
    }

    /// The same of a change that any diff may be part of.
    pub(crate) fn seen_as_of_any(&self, store: &Store, inode: InodeHandle) -> SeenInViews {
        self.seen_after(store, inode, SnapshotId::NONE)
    }
    /// Ends a change that freed the inode, or after which it may be seen elsewhere.
    pub(super) fn gone_from_views(&mut self, store: &Store, seen: &SeenInViews) {
        self.add_to_holders(store, seen, quota::negated);
    }
    /// After that: where it is seen still.
    pub(super) fn left_in_views(&mut self, store: &Store, seen: &SeenInViews) {
        self.add_to_holders(store, seen, |usage| *usage);
    }
    fn add_to_holders(&mut self, store: &Store, seen: &SeenInViews, delta: impl Fn(&Usage) -> Usage) {
        for (view, usage) in seen.views.iter().zip(&seen.before) {
            if self.is_counted(store, view.holder) {
                self.add_usage(store, view.holder, &delta(usage));
            }
        }
    }

    fn seen_after(&self, store: &Store, inode: InodeHandle, after: SnapshotId) -> SeenInViews {
        let mut views = SmallVec::new();
        if !self.snapshots.references.is_empty() {
            for snapshot in self.times_of_views(store, inode, after) {
                self.views_at(store, inode, snapshot, &mut views);
            }
        }
        let before = views.iter().map(|view| self.seen_usage(store, inode, view)).collect();
        SeenInViews { views, before }
    }
    /// Ends a change that began with [`Tree::seen_in_views`].
    pub fn changed_in_views(&mut self, store: &Store, inode: InodeHandle, seen: &SeenInViews) {
        for (view, before) in seen.views.iter().zip(&seen.before) {
            // what is counted within the inode itself is its own matter
            if store.kind(inode) == KindTag::Directory && self.is_below(store, view.holder, inode) {
                continue;
            }
            let after = self.seen_usage(store, inode, view);
            if after != *before && self.is_counted(store, view.holder) {
                self.add_usage(store, view.holder, &quota::difference(&after, before));
            }
        }
    }

    fn seen_usage(&self, store: &Store, inode: InodeHandle, view: &View) -> Usage {
        self.usage_at(store, inode, view.snapshot, view.inherited)
    }

    /// The snapshots after one as of which older names above an inode are counted.
    fn times_of_views(&self, store: &Store, inode: InodeHandle, after: SnapshotId) -> BTreeSet<SnapshotId> {
        let mut times = BTreeSet::new();
        let (mut seen, mut open) = (HashSet::new(), vec![inode]);
        while let Some(inode) = open.pop() {
            if !seen.insert(inode) {
                continue;
            }
            open.extend(store.parent(inode));
            let Some(references) = self.snapshots.references.get(&inode) else { continue };
            let from = references.names.partition_point(|n| *n <= after);
            for name in &references.names[from..] {
                let Some(older) = self.snapshots.older_names.get(&(inode, *name)) else { continue };
                open.push(older.directory);
                times.extend(self.diff_of_name(store, older, inode, *name).filter(|s| *s > after));
            }
        }
        times
    }

    /// The snapshot of the diff that has an older name.
    fn diff_of_name(
        &self,
        store: &Store,
        name: &OlderName,
        inode: InodeHandle,
        last: SnapshotId,
    ) -> Option<SnapshotId> {
        let diffs = self.snapshots.directory_diffs(name.directory);
        let until = at(diffs, last).map_or(diffs.len(), |at| at + usize::from(diffs[at].snapshot == last));
        let holds = |diff: &&DirectoryDiff| {
            let found = diff.find_deleted(store, &name.name);
            found.is_ok_and(|at| diff.deleted[at].inode == inode && diff.deleted[at].last() == Some(last))
        };
        diffs[..until].iter().rev().find(holds).map(|diff| diff.snapshot)
    }

    /// Where an inode was at a snapshot: its directory, and under which older name, if it was one.
    fn place_at(
        &self,
        store: &Store,
        inode: InodeHandle,
        snapshot: SnapshotId,
    ) -> Option<(InodeHandle, Option<Named<'_>>)> {
        let last = self.snapshots.references.get(&inode).and_then(|references| {
            let at = references.names.partition_point(|n| *n < snapshot);
            references.names.get(at).copied()
        });
        let Some(last) = last else { return store.parent(inode).map(|directory| (directory, None)) };
        let name = self.snapshots.older_names.get(&(inode, last))?;
        Some((name.directory, Some((last, name))))
    }

    /// Whether something that a directory is said to have had at a snapshot was there and not, under an older name, elsewhere.
    pub(super) fn was_there(&self, store: &Store, directory: InodeHandle, entry: &Gone, snapshot: SnapshotId) -> bool {
        self.place_at(store, entry.inode, snapshot)
            .is_some_and(|(there, named)| there == directory && named.map(|(last, _)| last) == entry.last())
    }

    fn views_at(&self, store: &Store, inode: InodeHandle, snapshot: SnapshotId, views: &mut SmallVec<[View; 2]>) {
        let (mut current, mut inherited, mut seen) = (inode, UNSPECIFIED, HashSet::new());
        while seen.insert(current) {
            let Some((directory, named)) = self.place_at(store, current, snapshot) else { return };
            let name = named.map_or_else(|| store.name(current), |(_, older)| &older.name);
            let there = self.child_at(store, directory, name, snapshot);
            if there.is_none_or(|there| there.inode != current || there.last() != named.map(|(last, _)| last)) {
                return;
            }
            if let Some((last, older)) = named
                && self.diff_of_name(store, older, current, last) == Some(snapshot)
            {
                let inherited = match inherited {
                    UNSPECIFIED => self.storage_policy(store, directory),
                    inherited => inherited,
                };
                views.push(View { holder: directory, snapshot, inherited });
            }
            if inherited == UNSPECIFIED {
                inherited = self.own_storage_policy(store, directory);
            }
            current = directory;
        }
    }
}

/// An older name and its last snapshot.
type Named<'a> = (SnapshotId, &'a OlderName);

/// Where the past sees an inode, and what it counted there.
#[derive(Debug)]
pub struct SeenInViews {
    views: SmallVec<[View; 2]>,
    before: SmallVec<[Usage; 2]>,
}
