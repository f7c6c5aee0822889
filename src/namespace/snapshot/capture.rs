//! What a change leaves behind for the latest snapshot, before it is made.

use super::Gone;
use super::diff::{DirectoryDiff, FileDiff, last};
use crate::Tree;
use record::{Features, InodeHandle, KindTag, Store};
use std::sync::Arc;
use vocab::{SnapshotId, TimeMs};

impl Tree {
    /// Whether a change of an inode belongs into the latest snapshot: the inode is in it, and not one whose past is kept where it was renamed from.
    pub(super) fn is_recorded(&self, store: &Store, inode: InodeHandle, latest: SnapshotId) -> bool {
        if !self.in_latest(store, inode, latest) {
            return false;
        }
        let target = self.snapshots.references.get(&inode).and_then(|r| r.target);
        !target.is_some_and(|target| target != SnapshotId::CURRENT && target >= latest)
    }

    /// Keeps the attributes of an inode for the latest snapshot, unless it has them or does not know the inode.
    pub fn capture(&mut self, store: &mut Store, inode: InodeHandle, latest: SnapshotId) {
        if store.kind(inode) == KindTag::File {
            self.with_views(store, inode, |tree, store| tree.capture_uncounted(store, inode, latest));
        } else {
            self.capture_uncounted(store, inode, latest);
        }
    }

    /// The same where the caller brings quotas along.
    pub(super) fn capture_uncounted(&mut self, store: &mut Store, inode: InodeHandle, latest: SnapshotId) {
        if latest == SnapshotId::CURRENT || !self.is_recorded(store, inode, latest) {
            return;
        }
        match store.kind(inode) {
            KindTag::Directory => {
                let copy = self.attributes(store, inode);
                let diff = self.directory_diff(store, inode, latest);
                diff.copy.get_or_insert_with(|| Arc::new(copy));
            }
            KindTag::File => self.capture_file(store, inode, latest),
            KindTag::Symlink | KindTag::Reference => {}
        }
    }
    /// The same of a file that is about to be cut: the newest diff gets the block list, unless it has one.
    ///
    /// Quirk: a_file_renamed_out_of_a_snapshot_and_truncated_keeps_its_past: Hadoop holds blocks only in a diff that it makes for this very
    /// truncate, and loses those of a file whose diff a rename has made
    pub fn capture_blocks(&mut self, store: &mut Store, file: InodeHandle, latest: SnapshotId) {
        self.capture(store, file, latest);
        self.hold_blocks(store, file);
    }
    /// Keeps for the latest snapshot what it knows of an inode that is about to be renamed: of a file the block list too, as Hadoop does.
    /// `length` is that of the logged blocks, where the file has others.
    pub fn capture_move(&mut self, store: &mut Store, inode: InodeHandle, length: Option<u64>) {
        let latest = self.latest_snapshot(store, inode);
        if !self.slot_in_latest(store, inode, latest) {
            return;
        }
        self.capture(store, inode, latest);
        if let Some(length) = length {
            self.limit_captured_length(store, inode, latest, length);
        }
        if store.kind(inode) == KindTag::File && self.is_recorded(store, inode, latest) {
            self.hold_blocks(store, inode);
            self.snapshots.note_held_stripes(inode);
        }
    }
    fn hold_blocks(&mut self, store: &Store, file: InodeHandle) {
        let diff = self.snapshots.files.get_mut(&file).and_then(|d| d.list.last_mut());
        let Some(diff) = diff.filter(|d| d.blocks.is_none()) else { return };
        let mut end = 0;
        let within = |b: &record::BlockHandle| {
            let before = end;
            end += store.block_core(*b).length;
            before < diff.length
        };
        diff.blocks = Some(store.blocks_of(file).into_iter().take_while(within).collect());
    }
    /// [`Tree::capture`] for the latest snapshot there is.
    pub fn capture_latest(&mut self, store: &mut Store, inode: InodeHandle) {
        let latest = self.latest_snapshot(store, inode);
        self.capture(store, inode, latest);
    }

    fn capture_file(&mut self, store: &mut Store, file: InodeHandle, latest: SnapshotId) {
        let length = self.file_length(store, file);
        let copy = self.attributes(store, file);
        let features = store.features(file);
        store.set_features(file, features.with(Features::SNAPSHOT_DIFFS));
        let diffs = &mut self.snapshots.files.or_default(file).list;
        if diffs.last().is_none_or(|d| d.snapshot < latest) {
            diffs.push(FileDiff { snapshot: latest, length, copy: None, blocks: None });
        }
        let Some(diff) = diffs.last_mut() else { return };
        diff.copy.get_or_insert_with(|| Arc::new(copy));
    }

    /// The diff of a directory that takes changes since the latest snapshot, made if need be.
    pub(super) fn directory_diff(
        &mut self,
        store: &mut Store,
        directory: InodeHandle,
        latest: SnapshotId,
    ) -> &mut DirectoryDiff {
        let features = store.features(directory);
        if !features.contains(Features::SNAPSHOT_DIFFS) {
            store.set_features(directory, features.with(Features::SNAPSHOT_DIFFS));
        }
        let diffs = self.snapshots.directories.or_default(directory);
        let known = last(diffs);
        if known == SnapshotId::CURRENT || known < latest {
            diffs.push(DirectoryDiff::new(latest, store.children(directory).1));
        }
        let at = diffs.len() - 1;
        &mut diffs[at]
    }

    /// Keeps for the latest snapshot that a name is about to be made in a directory.
    pub fn capture_creation(&mut self, store: &mut Store, directory: InodeHandle, name: &[u8], latest: SnapshotId) {
        if self.in_latest(store, directory, latest) {
            self.directory_diff(store, directory, latest).create(name);
        }
    }

    /// Keeps for the latest snapshot that a child goes. `true` if a snapshot holds it now: then it must keep its parent.
    pub(crate) fn capture_removal(
        &mut self,
        store: &mut Store,
        directory: InodeHandle,
        gone: Gone,
        latest: SnapshotId,
    ) -> bool {
        self.in_latest(store, directory, latest) && {
            self.directory_diff(store, directory, latest);
            let diffs = self.snapshots.directories.get_mut(&directory).and_then(|d| d.last_mut());
            diffs.is_some_and(|diff| diff.delete(store, gone).is_none())
        }
    }

    /// As [`Tree::touch`], with the older attributes kept for the latest snapshot.
    pub fn touch_captured(&mut self, store: &mut Store, directory: InodeHandle, time: TimeMs, latest: SnapshotId) {
        if latest != SnapshotId::CURRENT && time > store.inode(directory).mtime {
            self.capture(store, directory, latest);
        }
        self.touch(store, directory, time);
    }

    /// [`Tree::capture_creation`] for the latest snapshot there is.
    pub fn capture_arrival(&mut self, store: &mut Store, directory: InodeHandle, name: &[u8]) {
        if !self.snapshots.is_empty() {
            let latest = self.latest_snapshot_below(store, directory);
            self.capture_creation(store, directory, name, latest);
        }
    }
    /// Keeps for the latest snapshot that a child goes which it does not know.
    pub fn capture_departure(&mut self, store: &mut Store, child: InodeHandle, latest: SnapshotId) {
        if let Some(parent) = store.parent(child).filter(|_| latest != SnapshotId::CURRENT) {
            let gone = self.entry(child);
            self.capture_removal(store, parent, gone, latest);
        }
    }

    /// Lowers the length that was just kept of a file.
    pub fn limit_captured_length(&mut self, store: &Store, file: InodeHandle, latest: SnapshotId, length: u64) {
        let seen = self.seen_with_last_diff(store, file);
        let diffs = self.snapshots.files.get_mut(&file).map(|d| &mut d.list);
        if let Some(diff) = diffs.and_then(|d| d.last_mut()).filter(|d| d.snapshot == latest) {
            diff.length = diff.length.min(length);
        }
        self.changed_in_views(store, file, &seen);
    }

    /// Whether a snapshot would hold a block of a file that is cut now.
    pub fn truncate_is_kept(&self, store: &Store, file: InodeHandle, b: record::BlockHandle) -> bool {
        if self.snapshots.is_empty() {
            return false;
        }
        let latest = self.latest_snapshot(store, file);
        let diffs = self.snapshots.file_diffs(file);
        let is_new = diffs.last().is_none_or(|d| d.snapshot < latest);
        if latest != SnapshotId::CURRENT && is_new && self.is_recorded(store, file, latest) {
            return true;
        }
        diffs.last().is_some_and(|d| d.blocks.is_none() && d.length > 0) || self.is_held_by_snapshot(file, b)
    }

    /// Whether a snapshot holds a block of a file on its own.
    pub fn is_held_by_snapshot(&self, file: InodeHandle, b: record::BlockHandle) -> bool {
        let diffs = self.snapshots.file_diffs(file);
        diffs.iter().any(|d| d.blocks.as_ref().is_some_and(|blocks| blocks.contains(&b)))
    }
}
