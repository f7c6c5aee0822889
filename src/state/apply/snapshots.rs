//! Snapshots, and what every other change leaves behind for them.

use super::Context;
use crate::joint::Release;
use crate::{Applied, RetryPayload, State};
use edit::Record;
use namespace::reclaim::STEP_WEIGHT;
use record::{InodeHandle, KindTag};
use vocab::{SnapshotId, TimeMs};

impl State {
    pub(super) fn apply_snapshots(
        &mut self,
        cx: &mut Context<'_>,
        record: &Record<'_>,
        directory: InodeHandle,
    ) -> Applied {
        let State { store, tree, .. } = self;
        let mut removed = 0;
        match record {
            Record::AllowSnapshot { .. } => tree.allow_snapshots(store, directory),
            Record::DisallowSnapshot { .. } => tree.disallow_snapshots(store, directory),
            Record::CreateSnapshot { root, name, mtime, rpc } => {
                let id = tree.take_snapshot(store, directory, name, *mtime);
                if cx.policy.snapshot_captures_open_files {
                    self.capture_open_files(directory, id);
                }
                let path = String::from_utf8_lossy(root);
                let path = format!("{}/.snapshot/{}", path.trim_end_matches('/'), String::from_utf8_lossy(name));
                self.remember(cx, *rpc, RetryPayload::Path(path.into()));
            }
            Record::RenameSnapshot { old, new, mtime, rpc, .. } => {
                if old != new {
                    tree.rename_snapshot(store, directory, old, new, *mtime);
                }
                self.remember(cx, *rpc, RetryPayload::Done);
            }
            Record::DeleteSnapshot { name, mtime, rpc, .. } => {
                removed = self.apply_delete_snapshot(cx, directory, name, *mtime);
                self.remember(cx, *rpc, RetryPayload::Done);
            }
            other => unreachable!("no record of snapshots: {other:?}"),
        }
        Applied { removed, ..self.applied(directory) }
    }

    /// Deletes a snapshot; where only the oldest may go, a later one is marked instead, under a name that nobody else takes.
    ///
    /// Quirk: a_mark_has_the_time_of_its_record: Hadoop's has that of the clock, and another one after each replay
    fn apply_delete_snapshot(
        &mut self,
        cx: &mut Context<'_>,
        directory: InodeHandle,
        name: &[u8],
        time: Option<TimeMs>,
    ) -> u64 {
        let State { store, tree, .. } = self;
        let id = tree.snapshot_root(store, directory).and_then(|r| r.snapshot(name)).map(|s| s.id);
        let oldest = tree.snapshots.directory_diffs(directory).first().map(|d| d.snapshot);
        if cx.policy.ordered_snapshot_deletion && id != oldest {
            if let Some(id) = id {
                tree.mark_snapshot_deleted(store, directory, name);
                let marked = [name, b"#", id.0.to_string().as_bytes()].concat();
                tree.rename_snapshot(store, directory, name, &marked, time);
            }
            return 0;
        }
        tree.delete_snapshot(store, directory, name, time);
        self.free_first(cx)
    }

    /// Keeps for a new snapshot how long the open files below its directory are.
    fn capture_open_files(&mut self, directory: InodeHandle, snapshot: SnapshotId) {
        let open: Vec<InodeHandle> = self
            .tree
            .leases
            .iter()
            .flat_map(|lease| &lease.files)
            .filter_map(|id| self.store.find_inode(*id))
            .filter(|file| self.tree.is_below(&self.store, *file, directory))
            .collect();
        for file in open {
            self.capture_for(file, snapshot);
        }
    }

    /// Keeps an inode as it is for the latest snapshot that knows it, before it changes.
    pub(super) fn capture(&mut self, inode: InodeHandle) {
        if !self.tree.snapshots.is_empty() {
            let latest = self.tree.latest_snapshot(&self.store, inode);
            self.capture_for(inode, latest);
        }
    }

    fn capture_for(&mut self, inode: InodeHandle, latest: SnapshotId) {
        self.tree.capture(&mut self.store, inode, latest);
        if let Some(length) = self.logged_length(inode) {
            self.tree.limit_captured_length(&self.store, inode, latest, length);
        }
    }

    /// What a client has committed and no record says yet is no length that a replay would find: what it would find, where they differ.
    fn logged_length(&self, inode: InodeHandle) -> Option<u64> {
        if self.uncommitted.is_empty() || self.store.kind(inode) != KindTag::File || !self.is_open(inode) {
            return None;
        }
        let blocks = self.store.blocks_of(inode);
        Some(blocks.iter().map(|b| self.logged_block(self.store.block_core(*b)).length).sum())
    }

    /// Keeps what snapshots know of an inode that is about to be renamed.
    pub(super) fn capture_move(&mut self, inode: InodeHandle) {
        if !self.tree.snapshots.is_empty() {
            let length = self.logged_length(inode);
            self.tree.capture_move(&mut self.store, inode, length);
        }
    }

    /// [`State::capture`] with the block list of a file.
    pub(super) fn capture_blocks(&mut self, file: InodeHandle) {
        if !self.tree.snapshots.is_empty() {
            let latest = self.tree.latest_snapshot(&self.store, file);
            self.tree.capture_blocks(&mut self.store, file, latest);
        }
    }

    /// Takes an inode out of the present, its directory gets the time (`None` where a rename puts another one in its place, and tells the time
    /// itself). What a snapshot knows stays in the past, anything else is cut off. Gives
    /// how many inodes were freed so far.
    pub(super) fn remove_at(&mut self, cx: &mut Context<'_>, inode: InodeHandle, time: Option<TimeMs>) -> u64 {
        // what a rename puts something over has nothing below it, and is gone before the rename goes on
        let budget = time.map_or(u64::MAX, |_| self.freed_at_once(cx).div_ceil(STEP_WEIGHT));
        let State { store, tree, blocks, uncommitted, .. } = self;
        let roots: Vec<InodeHandle> =
            tree.snapshot_roots_below(store, inode).into_iter().map(|root| root.directory).collect();
        for directory in roots {
            tree.disallow_snapshots(store, directory);
        }
        let parent = store.parent(inode);
        if tree.snapshots.is_empty() {
            if let (Some(parent), Some(time)) = (parent, time) {
                tree.touch(store, parent, time);
            }
            return self.remove(cx, inode);
        }
        if tree.is_kept_by_snapshot(store, inode) {
            let sink = &mut Release { blocks, uncommitted };
            let removed = tree.delete_into_snapshot(store, sink, inode, time, budget).inodes;
            self.free_later(cx);
            return removed;
        }
        let latest = tree.latest_snapshot(store, inode);
        if time.is_some() {
            tree.capture(store, inode, latest);
        }
        tree.capture_departure(store, inode, latest);
        if let (Some(parent), Some(time)) = (parent, time) {
            tree.touch_captured(store, parent, time, latest);
        }
        self.remove(cx, inode)
    }
}
