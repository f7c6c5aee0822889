//! Reading the past: children, attributes, lengths and blocks as they were at a snapshot.

use super::diff::{Sum, at};
use super::{AttributeCopy, Gone, Link};
use crate::Tree;
use record::{Blocks, Features, Inode, InodeHandle, InodeKind, KindTag, Store};
use std::sync::Arc;
use vocab::SnapshotId;
use vocab::acl::AclEntry;
use vocab::path::compare_names;
use vocab::quota::Quota;
use vocab::xattr::Xattr;

/// A child of a directory at some time: the inode and how it was held.
pub type Entry = Gone;

impl Tree {
    /// A present child as an entry.
    pub(crate) fn entry(&self, inode: InodeHandle) -> Entry {
        let renamed = self.snapshots.references.get(&inode).is_some_and(|r| r.target.is_some());
        Gone { inode, link: if renamed { Link::Renamed } else { Link::Plain } }
    }

    /// The child of a directory at a snapshot.
    pub fn child_at(&self, store: &Store, directory: InodeHandle, name: &[u8], snapshot: SnapshotId) -> Option<Entry> {
        let diffs = self.snapshots.directory_diffs(directory);
        for diff in at(diffs, snapshot).map_or(&[][..], |from| &diffs[from..]) {
            if let Some(before) = diff.before(store, name) {
                return before.cloned();
            }
        }
        self.child(store, directory, name).map(|child| self.entry(child))
    }

    /// What the name in the created list of the `index`th diff stands for: what it was until it went, or the present child.
    pub(crate) fn created_entry(
        &self,
        store: &Store,
        directory: InodeHandle,
        index: usize,
        name: &[u8],
    ) -> Option<Entry> {
        for diff in &self.snapshots.directory_diffs(directory)[index + 1..] {
            if let Some(before) = diff.before(store, name) {
                return before.cloned();
            }
        }
        self.child(store, directory, name).map(|child| self.entry(child))
    }

    /// All children of a directory at a snapshot, in name order.
    pub fn children_at(&self, store: &Store, directory: InodeHandle, snapshot: SnapshotId) -> Vec<Entry> {
        self.children_from(store, directory, snapshot, b"").collect()
    }

    /// The same from a name on.
    pub(crate) fn children_from<'a>(
        &'a self,
        store: &'a Store,
        directory: InodeHandle,
        snapshot: SnapshotId,
        first: &[u8],
    ) -> impl Iterator<Item = Entry> + use<'a> {
        let diffs = self.snapshots.directory_diffs(directory);
        let sum = at(diffs, snapshot).map_or_else(Sum::default, |from| Sum::of(store, &diffs[from..]));
        let Sum { created, deleted } = sum;
        let mut next = deleted.partition_point(|gone| compare_names(gone.name(store), first).is_lt());
        let exactly = if first.is_empty() { None } else { self.child(store, directory, first) };
        let (after, _) = self.children_after(store, directory, first);
        let made = move |name: &[u8]| created.binary_search_by(|made| compare_names(made, name));
        let present = exactly.into_iter().chain(after).filter(move |child| made(store.name(*child)).is_err());
        let mut present = present.map(|child| self.entry(child)).peekable();
        std::iter::from_fn(move || match (present.peek(), deleted.get(next)) {
            (Some(now), Some(then)) if compare_names(then.name(store), now.name(store)).is_gt() => present.next(),
            (Some(_), None) => present.next(),
            (_, then) => {
                next += 1;
                then.cloned()
            }
        })
    }

    /// The attributes of an inode that a snapshot holds apart, if they changed since.
    fn copy_at(&self, inode: InodeHandle, snapshot: SnapshotId) -> Option<&Arc<AttributeCopy>> {
        if snapshot == SnapshotId::CURRENT {
            return None;
        }
        let directory = self.snapshots.directory_diffs(inode);
        if let Some(from) = at(directory, snapshot) {
            return directory[from..].iter().find_map(|d| d.copy.as_ref());
        }
        let file = self.snapshots.file_diffs(inode);
        at(file, snapshot).and_then(|from| file[from..].iter().find_map(|d| d.copy.as_ref()))
    }

    /// The present attributes of an inode, as a snapshot would keep them.
    pub(crate) fn attributes(&self, store: &Store, inode: InodeHandle) -> AttributeCopy {
        let mut record = store.inode(inode);
        record.parent = None;
        let kept = Features::ACL.with(Features::XATTRS).with(Features::QUOTA);
        record.features = Features(record.features.0 & kept.0);
        if let InodeKind::Directory { children, child_count, .. } = &mut record.kind {
            (*children, *child_count) = (0, 0);
        }
        AttributeCopy {
            acl: self.acl(inode),
            xattrs: self.xattrs(inode),
            name: store.name(inode).into(),
            quota: self.quota(store, inode).map_or(Quota::default(), |q| q.limits),
            inode: record,
        }
    }

    /// An inode as it was at a snapshot; its children, name and id are those of now.
    pub fn inode_at(&self, store: &Store, inode: InodeHandle, snapshot: SnapshotId) -> Inode {
        let now = store.inode(inode);
        let Some(copy) = self.copy_at(inode, snapshot) else { return now };
        let kind = match (&copy.inode.kind, &now.kind) {
            (InodeKind::Directory { storage_policy, .. }, InodeKind::Directory { children, child_count, .. }) => {
                let (children, child_count) = (*children, *child_count);
                InodeKind::Directory { children, child_count, storage_policy: *storage_policy }
            }
            (kind, _) => kind.clone(),
        };
        let sides = Features::ACL.with(Features::XATTRS).with(Features::QUOTA);
        let features = now.features.without(sides).with(copy.inode.features);
        Inode { id: now.id, parent: now.parent, features, kind, ..copy.inode.clone() }
    }
    /// ACL entries at a snapshot.
    pub fn acl_at(&self, inode: InodeHandle, snapshot: SnapshotId) -> Vec<AclEntry> {
        self.copy_at(inode, snapshot).map_or_else(|| self.acl(inode), |copy| copy.acl.clone())
    }
    /// Extended attributes at a snapshot.
    pub fn xattrs_at(&self, inode: InodeHandle, snapshot: SnapshotId) -> Vec<Xattr> {
        self.copy_at(inode, snapshot).map_or_else(|| self.xattrs(inode), |copy| copy.xattrs.clone())
    }
    /// Quota of a directory at a snapshot.
    pub fn quota_at(&self, store: &Store, inode: InodeHandle, snapshot: SnapshotId) -> Quota {
        let now = || self.quota(store, inode).map_or(Quota::default(), |q| q.limits);
        self.copy_at(inode, snapshot).map_or_else(now, |copy| copy.quota)
    }

    /// Length of a file at a snapshot, in bytes.
    pub fn file_length_at(&self, store: &Store, file: InodeHandle, snapshot: SnapshotId) -> u64 {
        let diffs = self.snapshots.file_diffs(file);
        at(diffs, snapshot).map_or_else(|| self.file_length(store, file), |at| diffs[at].length)
    }

    /// Blocks of a file at a snapshot: of the first diff from then on that holds a list, else the present ones.
    pub fn blocks_at(&self, store: &Store, file: InodeHandle, snapshot: SnapshotId) -> Blocks {
        let diffs = self.snapshots.file_diffs(file);
        let held = at(diffs, snapshot).and_then(|from| diffs[from..].iter().find_map(|d| d.blocks.as_ref()));
        held.map_or_else(|| store.blocks_of(file), |blocks| blocks.iter().copied().collect())
    }

    /// Replication of a file's blocks: the highest that the present or any snapshot wants.
    pub fn block_replication(&self, store: &Store, file: InodeHandle) -> u16 {
        let InodeKind::File { replication, .. } = store.inode(file).kind else { return 0 };
        let Some(diffs) = self.snapshots.files.get(&file) else { return replication };
        let copies = diffs.list.iter().filter_map(|d| d.copy.as_ref());
        let most = copies.filter_map(|c| match c.inode.kind {
            InodeKind::File { replication, .. } => Some(replication),
            _ => None,
        });
        let most = most.max().unwrap_or(0);
        if diffs.deleted { most } else { most.max(replication) }
    }

    /// The latest snapshot that a change of an inode has to be recorded in: of the directories above it and, if it is one, its own.
    /// [`SnapshotId::CURRENT`] if there is none. A directory that a rename brought goes by the snapshots of where it came from unless a later
    /// one was taken where it is.
    pub fn latest_snapshot(&self, store: &Store, inode: InodeHandle) -> SnapshotId {
        self.latest(store, inode, true)
    }
    /// The same for something about to be made in a directory.
    pub fn latest_snapshot_below(&self, store: &Store, directory: InodeHandle) -> SnapshotId {
        self.latest(store, directory, false)
    }

    fn latest(&self, store: &Store, inode: InodeHandle, is_last: bool) -> SnapshotId {
        if self.snapshots.is_empty() {
            return SnapshotId::CURRENT;
        }
        let mut chain = vec![inode];
        while let Some(parent) = store.parent(chain[chain.len() - 1]) {
            chain.push(parent);
        }
        let mut latest = SnapshotId::CURRENT;
        for (i, inode) in chain.iter().enumerate().rev() {
            if store.kind(*inode) != KindTag::Directory {
                break;
            }
            let own = super::diff::last(self.snapshots.directory_diffs(*inode));
            match self.snapshots.references.get(inode).and_then(|r| r.target) {
                None => {
                    if own != SnapshotId::CURRENT && (latest == SnapshotId::CURRENT || latest < own) {
                        latest = own;
                    }
                }
                Some(target) if i > 0 || !is_last => {
                    let src = latest == SnapshotId::CURRENT || target != SnapshotId::CURRENT && target >= latest;
                    if src {
                        latest = own;
                    }
                }
                Some(_) => {}
            }
        }
        latest
    }

    /// Whether an inode (whatever holds it) is part of the latest snapshot.
    pub fn in_latest(&self, store: &Store, inode: InodeHandle, latest: SnapshotId) -> bool {
        if latest == SnapshotId::CURRENT || latest == SnapshotId::NONE {
            return false;
        }
        // what was renamed was recorded then
        self.snapshots.references.get(&inode).is_some_and(|r| r.target.is_some())
            || self.slot_in_latest(store, inode, latest)
    }

    /// Whether the place of an inode in its directory is part of the latest snapshot: a place that a rename made may not be, though the inode is.
    pub(crate) fn slot_in_latest(&self, store: &Store, inode: InodeHandle, latest: SnapshotId) -> bool {
        if latest == SnapshotId::CURRENT || latest == SnapshotId::NONE {
            return false;
        }
        let Some(parent) = store.parent(inode) else { return true };
        self.in_latest(store, parent, latest)
            && self
                .child_at(store, parent, store.name(inode), latest)
                .is_some_and(|then| then.inode == inode && then.link == self.entry(inode).link)
    }
}
