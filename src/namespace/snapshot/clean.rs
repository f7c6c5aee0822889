//! Deleting: the present state of something that snapshots know, and whole snapshots. What no snapshot needs any more is freed at once.
//!
//! As Hadoop's `cleanSubtree` and `destroyAndCollectBlocks`: `snapshot` is what is deleted ([`SnapshotId::CURRENT`] for the present), `prior` the
//! latest snapshot before it that keeps what it needs ([`SnapshotId::NONE`] if none does).

use super::diff::{exactly, last, later_prior, prior};
use super::{DirectoryDiff, FileDiff, Gone, Link};
use crate::reclaim::BlockSink;
use crate::{Tree, quota};
use record::{BlockHandle, Blocks, Features, InodeHandle, KindTag, Store};
use std::collections::{HashSet, VecDeque};
use vocab::quota::Usage;
use vocab::{SnapshotId, TimeMs};

const CURRENT: SnapshotId = SnapshotId::CURRENT;
const NONE: SnapshotId = SnapshotId::NONE;

/// What a deletion freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reclaimed {
    /// Inodes.
    pub inodes: u64,
}

/// One deletion under way.
pub(crate) struct Cleaner<'a> {
    tree: &'a mut Tree,
    store: &'a mut Store,
    sink: &'a mut dyn BlockSink,
    /// Inodes freed so far: lists that are being walked may still name them.
    freed: HashSet<InodeHandle>,
}

impl Tree {
    /// Deletes a child that the latest snapshot knows: it stays in the past, and what was made below it since the snapshot is freed.
    /// With a time, which its directory gets, its attributes are kept first; a rename over it has none, and does not.
    pub fn delete_into_snapshot(
        &mut self,
        store: &mut Store,
        sink: &mut dyn BlockSink,
        child: InodeHandle,
        time: Option<TimeMs>,
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
        let mut cleaner = Cleaner { tree: self, store, sink, freed: HashSet::new() };
        cleaner.clean(&gone, CURRENT, latest);
        Reclaimed { inodes: cleaner.freed.len() as u64 }
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

    /// Deletes a snapshot of a directory; `time` becomes the directory's modification time.
    pub fn delete_snapshot(
        &mut self,
        store: &mut Store,
        sink: &mut dyn BlockSink,
        directory: InodeHandle,
        name: &[u8],
        time: Option<TimeMs>,
    ) -> Reclaimed {
        let root = self.snapshot_root(store, directory);
        let Some(id) = root.and_then(|r| r.snapshot(name)).map(|s| s.id) else { return Reclaimed::default() };
        let mut prior = NONE;
        let mut above = Some(directory);
        while let Some(inode) = above {
            prior = later_prior(self.snapshots.directory_diffs(inode), id, prior);
            above = store.parent(inode);
        }
        let mut cleaner = Cleaner { tree: self, store, sink, freed: HashSet::new() };
        cleaner.clean_inode(directory, id, prior);
        let inodes = cleaner.freed.len() as u64;
        self.forget_snapshot(store.inode_id(directory), name);
        if let Some(time) = time {
            self.touch(store, directory, time);
        }
        Reclaimed { inodes }
    }

    /// Frees a detached inode that has a past or is renamed, with all below it. Gives how many inodes went.
    pub(crate) fn destroy_detached(&mut self, store: &mut Store, sink: &mut dyn BlockSink, inode: InodeHandle) -> u64 {
        let entry = self.entry(inode);
        let mut cleaner = Cleaner { tree: self, store, sink, freed: HashSet::new() };
        cleaner.destroy(&entry);
        cleaner.freed.len() as u64
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

impl Cleaner<'_> {
    /// Adds to the quotas from a directory up, if they count it.
    fn adjust(&mut self, directory: InodeHandle, before: &Usage, after: &Usage) {
        if before != after && self.tree.is_counted(self.store, directory) {
            self.tree.add_usage(self.store, directory, &quota::difference(after, before));
        }
    }

    /// Deletes something that a directory holds as of `snapshot`.
    fn clean(&mut self, entry: &Gone, snapshot: SnapshotId, mut prior: SnapshotId) {
        if self.freed.contains(&entry.inode) {
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
                    self.clean_directory(inode, snapshot, prior);
                    self.drop_empty_directory(inode);
                } else if whole {
                    self.destroy_inode(inode);
                } else {
                    self.clean_below(inode, snapshot, prior, &HashSet::new());
                }
            }
            KindTag::Symlink | KindTag::Reference if whole => self.destroy_inode(inode),
            KindTag::Symlink | KindTag::Reference => {}
        }
    }

    /// A directory whose last diff went has no past.
    fn drop_empty_directory(&mut self, inode: InodeHandle) {
        let empty = self.tree.snapshots.directories.get(&inode).is_some_and(Vec::is_empty);
        if empty && !self.freed.contains(&inode) {
            self.tree.snapshots.directories.remove(&inode);
            let features = self.store.features(inode);
            self.store.set_features(inode, features.without(Features::SNAPSHOT_DIFFS));
        }
    }

    fn clean_below(
        &mut self,
        directory: InodeHandle,
        snapshot: SnapshotId,
        prior: SnapshotId,
        excluded: &HashSet<InodeHandle>,
    ) {
        let when = if snapshot != CURRENT && prior != NONE { prior } else { snapshot };
        for child in self.tree.children_at(self.store, directory, when) {
            if snapshot == CURRENT || !excluded.contains(&child.inode) {
                self.clean(&child, snapshot, prior);
            }
        }
    }

    fn clean_directory(&mut self, directory: InodeHandle, snapshot: SnapshotId, mut prior: SnapshotId) {
        if snapshot == CURRENT {
            self.tree.capture(self.store, directory, prior);
            if let Some(at) = self.diffs(directory).len().checked_sub(1) {
                self.destroy_created(directory, at);
            }
            return self.clean_below(directory, snapshot, prior, &HashSet::new());
        }
        prior = later_prior(self.diffs(directory), snapshot, prior);
        let (mut made, mut went) = (HashSet::new(), HashSet::new());
        if let Some(at) = exactly(self.diffs(directory), prior) {
            made.extend(self.created(directory, at).iter().map(|e| e.inode));
            went.extend(self.diffs(directory)[at].deleted.iter().map(|g| g.inode));
        }
        self.delete_directory_diff(directory, snapshot, prior);
        self.clean_below(directory, snapshot, prior, &went);
        let Some(at) = exactly(self.diffs(directory), prior) else { return };
        if !made.is_empty() {
            self.clean_made(directory, at, snapshot, &made);
        }
        for gone in self.diffs(directory)[at].deleted.clone() {
            if !went.contains(&gone.inode) {
                self.clean_deleted(gone, snapshot, prior);
            }
        }
    }

    /// Of what was made between the prior snapshot and the one deleted, the copies for the latter go; all of it where nobody needs it.
    fn clean_made(&mut self, directory: InodeHandle, at: usize, snapshot: SnapshotId, made: &HashSet<InodeHandle>) {
        let references = self.tree.snapshots.references.get(&directory);
        let ways = references.map_or(1, |r| r.names.len() + usize::from(r.target.is_some()));
        let is_last = at + 1 == self.diffs(directory).len();
        let destroy = ways == 1 && is_last && !self.tree.is_present(self.store, directory);
        for entry in self.created(directory, at) {
            if !made.contains(&entry.inode) || self.freed.contains(&entry.inode) {
                continue;
            }
            if destroy {
                let name: Box<[u8]> = entry.name(self.store).into();
                self.take_out(directory, &entry);
                if let Some(diff) = self.tree.snapshots.directories.get_mut(&directory).and_then(|d| d.get_mut(at))
                    && let Ok(at) = diff.find_created(&name)
                {
                    diff.created.remove(at);
                }
                self.destroy(&entry);
            } else {
                self.clean(&entry, snapshot, NONE);
            }
        }
    }

    fn diffs(&self, directory: InodeHandle) -> &[DirectoryDiff] {
        self.tree.snapshots.directory_diffs(directory)
    }

    /// What the created list of a diff stands for.
    fn created(&self, directory: InodeHandle, at: usize) -> Vec<Gone> {
        let names = &self.diffs(directory)[at].created;
        names.iter().filter_map(|name| self.tree.created_entry(self.store, directory, at, name)).collect()
    }

    /// Frees what was made after the `at`th snapshot of a directory.
    fn destroy_created(&mut self, directory: InodeHandle, at: usize) {
        let created = self.created(directory, at);
        for entry in &created {
            if !self.freed.contains(&entry.inode) {
                self.take_out(directory, entry);
            }
        }
        if let Some(diff) = self.tree.snapshots.directories.get_mut(&directory).and_then(|d| d.get_mut(at)) {
            diff.created.clear();
        }
        created.iter().for_each(|entry| self.destroy(entry));
    }

    /// Takes an entry that is about to be freed out of the present children of a directory, if it is there, and off the quotas.
    fn take_out(&mut self, directory: InodeHandle, entry: &Gone) {
        let inode = entry.inode;
        let seen = self.tree.seen_as_of_any(self.store, inode);
        let usage = self.tree.entry_usage(self.store, entry, CURRENT, self.tree.storage_policy(self.store, directory));
        self.adjust(directory, &usage, &Usage::default());
        let there = self.tree.child(self.store, directory, entry.name(self.store)) == Some(inode);
        if there && self.store.parent(inode) == Some(directory) {
            self.tree.unlink(self.store, inode);
        }
        // a snapshot that has no diff of the directory saw it there
        self.tree.gone_from_views(self.store, &seen);
        let left = self.tree.seen_as_of_any(self.store, inode);
        self.tree.left_in_views(self.store, &left);
    }

    /// Removes a snapshot from a directory's diffs: what came after it is put together with the diff before, or goes.
    fn delete_directory_diff(&mut self, directory: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        let Some(at) = exactly(self.diffs(directory), snapshot) else { return };
        let policy = self.tree.storage_policy(self.store, directory);
        let before = self.tree.past_usage(self.store, directory, policy);
        let Some(diffs) = self.tree.snapshots.directories.get_mut(&directory) else { return };
        let unneeded = if at == 0 && prior == NONE {
            diffs.remove(0).deleted
        } else if at == 0 || diffs[at - 1].snapshot != prior {
            diffs[at].snapshot = prior;
            Vec::new()
        } else {
            let removed = diffs.remove(at);
            let previous = &mut diffs[at - 1];
            let unneeded = previous.combine(self.store, &removed);
            previous.copy = previous.copy.take().or(removed.copy);
            unneeded
        };
        let after = self.tree.past_usage(self.store, directory, policy);
        self.adjust(directory, &before, &after);
        for gone in unneeded {
            self.destroy(&gone);
        }
    }

    /// Something that was deleted after the snapshot that goes, and is now in the prior one's list: what was made and deleted in between goes.
    fn clean_deleted(&mut self, top: Gone, post: SnapshotId, prior: SnapshotId) {
        let mut queue = VecDeque::from([top]);
        while let Some(entry) = queue.pop_front() {
            let inode = entry.inode;
            if self.freed.contains(&inode) {
                continue;
            }
            if let Link::Named { last, .. } = entry.link {
                let references = self.tree.snapshots.references.get(&inode);
                let is_only = references.is_some_and(|r| r.names.last() == Some(&last) && r.target.is_none());
                if last >= post && is_only {
                    queue.push_back(Gone { inode, link: Link::Plain });
                } else if last >= post {
                    self.clean(&entry, post, prior);
                }
                continue;
            }
            match self.store.kind(inode) {
                KindTag::File => self.delete_file_diff(inode, post, prior),
                KindTag::Directory => {
                    let own = exactly(self.diffs(inode), prior);
                    if let Some(at) = own {
                        self.destroy_created(inode, at);
                    }
                    let children = self.tree.children_at(self.store, inode, prior);
                    let went = own.map(|at| &self.diffs(inode)[at]);
                    let kept = |c: &Gone| went.is_none_or(|d| d.find_deleted(self.store, c.name(self.store)).is_err());
                    queue.extend(children.into_iter().filter(kept));
                }
                KindTag::Symlink | KindTag::Reference => {}
            }
        }
    }

    /// Frees all that a snapshot after `prior` and the present held of a subtree that was renamed here and deleted.
    fn destroy_target_subtree(&mut self, entry: &Gone, snapshot: SnapshotId, prior: SnapshotId) {
        let inode = entry.inode;
        if self.freed.contains(&inode) {
            return;
        }
        if matches!(entry.link, Link::Named { .. }) && snapshot != CURRENT {
            return self.clean(entry, snapshot, prior);
        }
        match self.store.kind(inode) {
            KindTag::File => self.clean_file(inode, snapshot, prior),
            KindTag::Directory => {
                let mut excluded = HashSet::new();
                if let Some(at) = exactly(self.diffs(inode), prior) {
                    excluded.extend(self.diffs(inode)[at].deleted.iter().map(|g| g.inode));
                }
                if snapshot != CURRENT {
                    self.delete_directory_diff(inode, snapshot, prior);
                }
                if let Some(at) = exactly(self.diffs(inode), prior) {
                    self.destroy_created(inode, at);
                }
                for child in self.tree.children_at(self.store, inode, prior) {
                    if !excluded.contains(&child.inode) {
                        self.destroy_target_subtree(&child, snapshot, prior);
                    }
                }
            }
            KindTag::Symlink | KindTag::Reference => {}
        }
    }

    /// Frees something that nothing needs in this place any more; the inode itself, if no other place knows it.
    fn destroy(&mut self, entry: &Gone) {
        let inode = entry.inode;
        if self.freed.contains(&inode) {
            return;
        }
        match entry.link {
            Link::Plain => self.destroy_inode(inode),
            Link::Renamed => self.destroy_target(entry),
            Link::Named { last, .. } => self.destroy_name(entry, last),
        }
    }

    fn destroy_target(&mut self, entry: &Gone) {
        let inode = entry.inode;
        if self.tree.drop_reference(entry) == 0 {
            return self.destroy_inode(inode);
        }
        let prior = self.tree.prior_of(entry);
        let latest = match self.store.kind(inode) {
            KindTag::Directory => last(self.diffs(inode)),
            _ => last(self.tree.snapshots.file_diffs(inode)),
        };
        let snapshot = if latest != CURRENT && latest > prior { latest } else { CURRENT };
        self.store.set_parent(inode, None);
        match self.store.kind(inode) {
            KindTag::File => {
                self.tree.drop_lease(self.store, inode);
                if let Some(diffs) = self.tree.snapshots.files.get_mut(&inode) {
                    diffs.deleted = true;
                }
                self.clean_file(inode, snapshot, prior);
            }
            KindTag::Directory => {
                let referred = Gone { inode, link: Link::Plain };
                self.destroy_target_subtree(&referred, snapshot, prior);
            }
            KindTag::Symlink | KindTag::Reference => {}
        }
    }

    fn destroy_name(&mut self, entry: &Gone, last: SnapshotId) {
        let inode = entry.inode;
        let snapshot = self.tree.prior_diff(inode, last);
        if self.tree.drop_reference(entry) == 0 {
            return self.destroy_inode(inode);
        }
        let prior = self.tree.prior_of(entry);
        if snapshot == NONE || snapshot == CURRENT || prior != NONE && snapshot <= prior {
            return;
        }
        self.clean_inode(inode, snapshot, prior);
    }

    fn destroy_inode(&mut self, inode: InodeHandle) {
        if self.store.kind(inode) == KindTag::Directory {
            for diff in self.tree.snapshots.directories.remove(&inode).unwrap_or_default() {
                for gone in diff.deleted {
                    self.destroy(&gone);
                }
            }
            while let Some((child, list)) = self.tree.lists.pop(self.store.children(inode).0) {
                let count = self.store.children(inode).1;
                self.store.set_children(inode, list, count - 1);
                let entry = self.tree.entry(child);
                self.destroy(&entry);
            }
        }
        self.free(inode);
    }

    /// Frees an inode with its blocks, wherever they are held.
    fn free(&mut self, inode: InodeHandle) {
        if !self.freed.insert(inode) {
            return;
        }
        self.tree.close(self.store, inode);
        if self.store.kind(inode) == KindTag::File {
            for b in self.tree.past_blocks(self.store, inode) {
                self.sink.drop_block(self.store, b);
            }
            self.sink.release(self.store, inode);
        }
        // a deleted directory may list it still
        if let Some(parent) = self.store.parent(inode)
            && !self.freed.contains(&parent)
            && self.tree.child(self.store, parent, self.store.name(inode)) == Some(inode)
        {
            self.tree.unlink(self.store, inode);
        }
        self.tree.snapshots.files.remove(&inode);
        self.tree.snapshots.held_stripes.remove(&inode);
        for last in self.tree.snapshots.references.remove(&inode).unwrap_or_default().names {
            self.tree.snapshots.older_names.remove(&(inode, last));
        }
        self.tree.snapshots.roots.remove(&self.store.inode_id(inode));
        self.tree.forget_sides(inode, self.store.features(inode));
        self.store.remove_inode(inode);
        self.tree.inode_count -= 1;
    }
}

impl Cleaner<'_> {
    fn clean_file(&mut self, file: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        self.adjusting(file, |cleaner| cleaner.clean_file_unadjusted(file, snapshot, prior));
    }

    /// Runs a step that changes or frees a file, and brings along what it counts, here and where the past sees it.
    fn adjusting(&mut self, file: InodeHandle, change: impl FnOnce(&mut Self)) {
        let parent = self.store.parent(file);
        let before = self.tree.inode_usage(self.store, file);
        let seen = self.tree.seen_as_of_any(self.store, file);
        change(self);
        let gone = self.freed.contains(&file);
        let after = if gone { Usage::default() } else { self.tree.inode_usage(self.store, file) };
        if let Some(parent) = parent {
            self.adjust(parent, &before, &after);
        }
        if gone {
            self.tree.gone_from_views(self.store, &seen);
        } else {
            self.tree.changed_in_views(self.store, file, &seen);
        }
    }

    fn clean_file_unadjusted(&mut self, file: InodeHandle, snapshot: SnapshotId, mut prior: SnapshotId) {
        if snapshot == CURRENT {
            self.tree.drop_lease(self.store, file);
        }
        if !self.tree.snapshots.files.contains_key(&file) {
            match (snapshot, prior) {
                (CURRENT, NONE) => self.destroy_inode(file),
                (CURRENT, _) => self.drop_empty_block(file),
                _ => {}
            }
            return;
        }
        if snapshot == CURRENT {
            if !self.tree.snapshots.is_deleted(file) {
                self.tree.capture_uncounted(self.store, file, prior);
                if let Some(diffs) = self.tree.snapshots.files.get_mut(&file) {
                    diffs.deleted = true;
                }
            }
            self.collect_blocks(file);
        } else {
            prior = later_prior(self.tree.snapshots.file_diffs(file), snapshot, prior);
            self.delete_file_diff_unadjusted(file, snapshot, prior);
        }
        if !self.freed.contains(&file) && self.tree.snapshots.file_diffs(file).is_empty() {
            self.tree.snapshots.files.remove(&file);
            let features = self.store.features(file);
            self.store.set_features(file, features.without(Features::SNAPSHOT_DIFFS));
        }
    }

    /// An open file that only the past holds does not need a last block without bytes.
    fn drop_empty_block(&mut self, file: InodeHandle) {
        let open = self.store.features(file).contains(Features::CONSTRUCTION);
        let empty = self.store.last_block(file).filter(|b| self.store.block(*b).block.length == 0);
        if let Some(b) = empty.filter(|_| open) {
            let rest: Blocks = self.store.blocks_of(file).into_iter().filter(|x| *x != b).collect();
            self.keep_blocks(file, &rest);
        }
    }

    /// Makes `kept` the block list of a file; what left it and is in no diff is freed.
    fn keep_blocks(&mut self, file: InodeHandle, kept: &[BlockHandle]) {
        let old = self.store.set_blocks(file, kept);
        let kept = self.store.blocks_of(file);
        let past = self.tree.past_blocks(self.store, file);
        for b in old.into_iter().filter(|b| !kept.contains(b) && !past.contains(b)) {
            self.sink.drop_block(self.store, b);
        }
    }

    /// Frees the blocks that neither the present nor the last diff of a file needs, or the file.
    fn collect_blocks(&mut self, file: InodeHandle) {
        let diffs = self.tree.snapshots.file_diffs(file);
        let deleted = self.tree.snapshots.is_deleted(file);
        let Some(last) = diffs.last() else {
            if deleted {
                self.free(file);
            }
            return;
        };
        let blocks = self.store.blocks_of(file);
        let kept = match &last.blocks {
            Some(held) if !held.is_empty() => blocks.iter().zip(held).take_while(|(a, b)| a == b).count(),
            _ => {
                let most = if deleted { last.length } else { self.tree.file_length(self.store, file) };
                let mut size = 0;
                let mut n = 0;
                while n < blocks.len() && most > size {
                    size += self.store.block(blocks[n]).block.length;
                    n += 1;
                }
                n
            }
        };
        if kept < blocks.len() {
            self.keep_blocks(file, &blocks[..kept]);
        }
    }

    /// Removes a snapshot from a file's diffs.
    fn delete_file_diff(&mut self, file: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        self.adjusting(file, |cleaner| cleaner.delete_file_diff_unadjusted(file, snapshot, prior));
    }

    fn delete_file_diff_unadjusted(&mut self, file: InodeHandle, snapshot: SnapshotId, prior: SnapshotId) {
        let Some(at) = exactly(self.tree.snapshots.file_diffs(file), snapshot) else { return };
        let Some(diffs) = self.tree.snapshots.files.get_mut(&file).map(|d| &mut d.list) else { return };
        let removed = if at == 0 && prior == NONE {
            diffs.remove(0)
        } else if at == 0 || diffs[at - 1].snapshot != prior {
            diffs[at].snapshot = prior;
            return;
        } else {
            let mut removed = diffs.remove(at);
            let previous = &mut diffs[at - 1];
            previous.copy = previous.copy.take().or(removed.copy.take());
            removed
        };
        self.collect_removed(file, removed);
        if self.freed.contains(&file) {
            return;
        }
        let replication = self.tree.block_replication(self.store, file);
        if self.tree.file_shape(self.store, file).is_some_and(|s| s.stripe.is_none()) {
            for b in self.store.blocks_of(file) {
                self.sink.set_replication(self.store, b, replication);
            }
        }
    }

    /// Frees the blocks that only a removed diff needed; an earlier diff without a list of its own takes its list.
    fn collect_removed(&mut self, file: InodeHandle, removed: FileDiff) {
        // an empty list is none after a restart
        let Some(blocks) = removed.blocks.filter(|held| !held.is_empty()) else {
            if self.tree.snapshots.is_deleted(file) {
                self.collect_blocks(file);
            }
            return;
        };
        let earlier = self.tree.snapshots.files.get_mut(&file);
        let earlier = earlier.and_then(|d| d.list.iter_mut().rev().find(|d| d.snapshot < removed.snapshot));
        if let Some(diff) = earlier.filter(|d| d.blocks.is_none()) {
            let mut size = 0;
            let store = &*self.store;
            let held = blocks.iter().take_while(|b| {
                let within = size < diff.length;
                size += store.block(**b).block.length;
                within
            });
            diff.blocks = Some(held.copied().collect());
        }
        let present = self.store.blocks_of(file);
        let past = self.tree.past_blocks(self.store, file);
        for b in blocks {
            if !present.contains(&b) && !past.contains(&b) {
                self.sink.drop_block(self.store, b);
            }
        }
    }
}
