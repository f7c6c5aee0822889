//! The past out of an image.

use super::{AttributeCopy, DirectoryDiff, FileDiff, Link, Snapshot};
use crate::Tree;
use crate::build::Build;
use record::{Features, InodeHandle, KindTag, Store};
use std::collections::HashSet;
use std::sync::Arc;
use vocab::path::compare_names;

impl Build {
    /// Number of the next snapshot.
    pub fn set_snapshot_counter(&mut self, counter: u32) {
        self.tree.snapshots.counter = counter;
    }
    /// Lets a directory have snapshots.
    pub fn allow_snapshots(&mut self, store: &mut Store, directory: InodeHandle) {
        self.tree.allow_snapshots(store, directory);
    }
    /// Enters a snapshot. `false` if its directory allows none or has one of that name.
    pub fn add_snapshot(&mut self, store: &Store, directory: InodeHandle, snapshot: Snapshot) -> bool {
        let Some(root) = self.tree.snapshots.roots.get_mut(&store.inode_id(directory)) else { return false };
        match root.snapshots.binary_search_by(|s| compare_names(&s.name, &snapshot.name)) {
            Ok(_) => false,
            Err(at) => {
                root.snapshots.insert(at, snapshot);
                true
            }
        }
    }
    /// The attributes of a snapshot's root, for the diff that says it has them.
    pub fn snapshot_copy(
        &self,
        store: &Store,
        directory: InodeHandle,
        id: vocab::SnapshotId,
    ) -> Option<Arc<AttributeCopy>> {
        self.tree.snapshots.roots.get(&store.inode_id(directory))?.by_id(id).map(|s| s.root.clone())
    }
    /// A present inode's attributes, to make a copy of.
    pub fn attributes(&self, store: &Store, inode: InodeHandle) -> AttributeCopy {
        self.tree.attributes(store, inode)
    }
    /// Says that an inode is known under a name it had, or lies where a rename put it.
    pub fn add_reference(&mut self, inode: InodeHandle, link: &Link, target: Option<vocab::SnapshotId>) {
        let references = self.tree.snapshots.references.or_default(inode);
        if let Link::Named { last, .. } = link
            && let Err(at) = references.names.binary_search(last)
        {
            references.names.insert(at, *last);
        }
        references.target = target.or(references.target);
    }
    /// Enters the diffs of a directory, by ascending snapshot. What their deleted lists hold gets its place.
    pub fn set_directory_diffs(&mut self, store: &mut Store, directory: InodeHandle, mut diffs: Vec<DirectoryDiff>) {
        for diff in &mut diffs {
            diff.deleted.sort_by(|a, b| compare_names(a.name(store), b.name(store)));
            for gone in diff.deleted.iter().filter(|g| !matches!(g.link, Link::Named { .. })) {
                store.set_parent(gone.inode, Some(directory));
                let features = store.features(gone.inode);
                store.set_features(gone.inode, features.with(Features::SNAPSHOT_ONLY));
            }
        }
        for gone in diffs.iter().flat_map(|diff| &diff.deleted) {
            self.tree.snapshots.note_older_name(directory, gone);
        }
        self.tree.snapshots.directories.insert(directory, diffs);
        let features = store.features(directory);
        store.set_features(directory, features.with(Features::SNAPSHOT_DIFFS));
    }
    /// Enters the diffs of a file, by ascending snapshot.
    pub fn set_file_diffs(&mut self, store: &mut Store, file: InodeHandle, list: Vec<FileDiff>) {
        self.tree.snapshots.files.or_default(file).list = list;
        self.tree.snapshots.note_held_stripes(file);
        let features = store.features(file);
        store.set_features(file, features.with(Features::SNAPSHOT_DIFFS));
    }
}

impl Tree {
    /// Tops of what only snapshots hold: the inodes of deleted lists, and renamed ones whose new place is gone.
    pub fn past_tops(&self) -> Vec<InodeHandle> {
        let mut tops = Vec::new();
        let mut orphans = HashSet::new();
        for gone in self.snapshots.directories.values().flatten().flat_map(|d| &d.deleted) {
            let orphan = || self.snapshots.references.get(&gone.inode).is_none_or(|r| r.target.is_none());
            match gone.link {
                Link::Plain | Link::Renamed => tops.push(gone.inode),
                Link::Named { .. } if orphan() && orphans.insert(gone.inode) => tops.push(gone.inode),
                Link::Named { .. } => {}
            }
        }
        tops
    }

    /// All inodes that only snapshots hold.
    pub fn past_inodes(&self, store: &Store) -> Vec<InodeHandle> {
        let mut all = Vec::new();
        let mut open = self.past_tops();
        while let Some(inode) = open.pop() {
            all.push(inode);
            if store.kind(inode) == KindTag::Directory {
                open.extend(self.children(store, inode));
            }
        }
        all
    }

    /// At the end of a load: which files are gone from the present.
    pub(crate) fn mark_past_files(&mut self, store: &Store) {
        let gone: Vec<InodeHandle> =
            self.snapshots.files.keys().copied().filter(|file| !self.is_present(store, *file)).collect();
        for file in gone {
            if let Some(diffs) = self.snapshots.files.get_mut(&file) {
                diffs.deleted = true;
            }
        }
    }
}

impl Build {
    /// Gives all blocks of a file with diffs, those of the diffs included, what the file's highest replication asks for.
    pub fn settle_replication(&mut self, store: &mut Store, file: InodeHandle) {
        let Some(shape) = self.tree.file_shape_below(store, file, vocab::storage_policy::UNSPECIFIED) else { return };
        let mut blocks = self.tree.past_blocks(store, file);
        blocks.extend(store.blocks_of(file));
        for b in blocks {
            store.edit_block(b, |i| {
                i.replication = shape.replication;
                i.storage_policy = shape.storage_policy;
                i.erasure_coding_policy = shape.erasure_coding_policy;
            });
        }
    }
}
