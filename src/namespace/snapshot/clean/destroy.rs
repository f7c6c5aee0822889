//! Freeing what nothing needs any more in a place, and the inode itself once no place knows it.

use super::super::Gone;
use super::super::diff::last;
use super::tally::Tally;
use super::{CHUNK, CURRENT, Cleaner, NONE, Step, Task};
use crate::snapshot::Link;
use record::{InodeHandle, KindTag};
use vocab::{InodeId, SnapshotId};

/// An entry that leaves a directory before it is freed; what it counts is being counted.
#[derive(Debug)]
pub(super) struct TakeOut {
    directory: InodeHandle,
    entry: Gone,
    tally: Tally,
}

impl Cleaner<'_> {
    /// Takes an entry that is about to be freed out of the present children of a directory, if it is there, and off the quotas.
    pub(super) fn begin_take_out(&mut self, directory: InodeHandle, entry: &Gone) {
        if self.job.freed.contains(entry.inode) {
            return;
        }
        let mut tally = Tally::default();
        tally.count(entry, CURRENT, self.tree.storage_policy(self.store, directory), true);
        self.take_out(Box::new(TakeOut { directory, entry: entry.clone(), tally }));
    }

    pub(super) fn take_out(&mut self, mut take_out: Box<TakeOut>) {
        for _ in 0..CHUNK / 4 {
            take_out.tally.step(self.tree, self.store);
        }
        if !take_out.tally.is_done() {
            self.spent += CHUNK as u64 / 16;
            return self.then([Step::TakeOut(take_out)]);
        }
        let TakeOut { directory, entry, tally } = *take_out;
        let inode = entry.inode;
        let seen = self.tree.seen_as_of_any(self.store, inode);
        self.adjust(directory, tally.usage());
        let there = self.tree.child(self.store, directory, entry.name(self.store)) == Some(inode);
        if there && self.store.parent(inode) == Some(directory) {
            self.tree.unlink(self.store, inode);
        }
        // a snapshot that has no diff of the directory saw it there
        self.tree.gone_from_views(self.store, &seen);
        let left = self.tree.seen_as_of_any(self.store, inode);
        self.tree.left_in_views(self.store, &left);
    }

    /// Counts on, and takes what was counted off quotas that what is detached was below.
    pub(super) fn give_back(&mut self, mut tally: Box<Tally>, charged: Vec<InodeId>) {
        for _ in 0..CHUNK / 4 {
            tally.step(self.tree, self.store);
        }
        if tally.is_done() {
            return self.tree.give_back(self.store, &charged, tally.usage());
        }
        self.spent += CHUNK as u64 / 16;
        self.then([Step::GiveBack(tally, charged)]);
    }

    /// Takes all entries out that a diff's created list stands for, then frees them.
    pub(super) fn take_out_all(&mut self, directory: InodeHandle, diff: SnapshotId, entries: Vec<Gone>, at: usize) {
        match entries.get(at).cloned() {
            Some(entry) => {
                self.then([Step::TakeOutAll { directory, diff, entries, at: at + 1 }]);
                self.begin_take_out(directory, &entry);
            }
            None => self.then([
                Step::SetCreated { directory, diff, created: Vec::new() },
                Step::Each(entries.into_iter(), Task::Destroy),
            ]),
        }
    }

    /// Frees something that nothing needs in this place any more; the inode itself, if no other place knows it.
    pub(super) fn destroy(&mut self, entry: &Gone) {
        let inode = entry.inode;
        if self.job.freed.contains(inode) {
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

    pub(super) fn destroy_inode(&mut self, inode: InodeHandle) {
        if self.store.kind(inode) != KindTag::Directory {
            return self.free(inode);
        }
        let diffs = self.tree.snapshots.directories.remove(&inode).unwrap_or_default();
        self.then([Step::DestroyDiffs(diffs.into_iter()), Step::DestroyChildren(inode)]);
    }

    /// Takes the last child of a directory that goes, or frees it with none left.
    pub(super) fn destroy_children(&mut self, directory: InodeHandle) {
        let (list, count) = self.store.children(directory);
        match self.tree.lists.pop(list) {
            Some((child, list)) => {
                self.store.set_children(directory, list, count - 1);
                let entry = self.tree.entry(child);
                self.then([Step::DestroyChildren(directory)]);
                self.destroy(&entry);
            }
            None => self.free(directory),
        }
    }

    /// Frees an inode with its blocks, wherever they are held.
    pub(super) fn free(&mut self, inode: InodeHandle) {
        if !self.job.freed.insert(inode) {
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
            && !self.job.freed.contains(parent)
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
