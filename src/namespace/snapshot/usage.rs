//! What the past counts of quotas. A directory counts, besides what is in it, all that its deleted lists hold; an inode that was renamed out of a
//! snapshot counts there as it was at the snapshot, and where it lies now.

use super::diff::last;
use super::{Gone, Link};
use crate::{Tree, quota};
use record::{BlockHandle, InodeHandle, KindTag, Store};
use vocab::SnapshotId;
use vocab::quota::Usage;

impl Tree {
    /// What a directory's deleted lists count.
    ///
    /// Quirk: an_older_name_counts_what_a_snapshot_has_of_it: Hadoop counts as of the last snapshot that the name was in, though that one be deleted
    /// (then as it is now), but only when it starts: its counts before and after a restart differ
    pub(crate) fn past_usage(&self, store: &Store, directory: InodeHandle) -> Usage {
        let mut usage = Usage::default();
        for diff in self.snapshots.directory_diffs(directory) {
            for gone in &diff.deleted {
                // a name of before a rename counts as of its diff, so that no change elsewhere changes what is counted here
                let when = match gone.link {
                    Link::Named { .. } => diff.snapshot,
                    Link::Plain | Link::Renamed => SnapshotId::CURRENT,
                };
                quota::add(&mut usage, &self.entry_usage(store, gone, when));
            }
        }
        usage
    }

    /// What something that a directory held at a snapshot counts.
    pub(crate) fn entry_usage(&self, store: &Store, entry: &Gone, snapshot: SnapshotId) -> Usage {
        self.usage_below(store, entry.inode, seen_at(entry, snapshot), &mut Vec::new())
    }

    /// What an inode with all below it counts as of a snapshot.
    pub(crate) fn usage_at(&self, store: &Store, inode: InodeHandle, snapshot: SnapshotId) -> Usage {
        self.usage_below(store, inode, snapshot, &mut Vec::new())
    }

    /// The same below the directories of `way`. Where a diff went with its snapshot, its directory is seen as it is now, and directories that were
    /// renamed to and fro may then lie in each other: each counts once on its way.
    fn usage_below(
        &self,
        store: &Store,
        inode: InodeHandle,
        snapshot: SnapshotId,
        way: &mut Vec<InodeHandle>,
    ) -> Usage {
        if snapshot == SnapshotId::CURRENT {
            return self.subtree_usage(store, inode);
        }
        match store.kind(inode) {
            KindTag::Directory if way.contains(&inode) => Usage::default(),
            KindTag::Directory => {
                let mut usage = Usage { namespace: 1, ..Usage::default() };
                way.push(inode);
                if self.snapshots.directory_diffs(inode).is_empty() {
                    for child in self.children(store, inode) {
                        quota::add(&mut usage, &self.usage_below(store, child, snapshot, way));
                    }
                } else {
                    for child in self.children_at(store, inode, snapshot) {
                        let when = seen_at(&child, snapshot);
                        quota::add(&mut usage, &self.usage_below(store, child.inode, when, way));
                    }
                }
                way.pop();
                usage
            }
            KindTag::File => self.file_usage_at(store, inode, snapshot),
            KindTag::Symlink | KindTag::Reference => Usage { namespace: 1, ..Usage::default() },
        }
    }

    fn file_usage_at(&self, store: &Store, file: InodeHandle, snapshot: SnapshotId) -> Usage {
        let known = last(self.snapshots.file_diffs(file));
        let shape = self.file_shape(store, file);
        let Some(shape) = shape.filter(|s| known != SnapshotId::CURRENT && s.stripe.is_none()) else {
            return self.inode_usage(store, file);
        };
        let (bytes, replication) = match store_replication(self, store, file, snapshot) {
            replication if known < snapshot => {
                let blocks = store.blocks_of(file).into_iter().map(|b| store.block(b));
                let whole = |b: &record::BlockInfo| b.state == vocab::BlockState::Complete || !shape.open;
                (blocks.filter(whole).map(|b| b.block.length).sum(), replication)
            }
            replication => (self.file_length_at(store, file, snapshot), replication),
        };
        let mut usage = quota::block_usage(bytes, replication, shape.storage_policy);
        usage.namespace = 1;
        usage
    }

    /// At the end of a load: use of the quota directories that only snapshots hold.
    pub(crate) fn count_past_quotas(&mut self, store: &Store) {
        if self.snapshots.is_empty() {
            return;
        }
        let past: Vec<InodeHandle> =
            self.all_quotas().map(|(directory, _)| directory).filter(|d| !self.is_present(store, *d)).collect();
        for directory in past {
            let usage = self.subtree_usage(store, directory);
            self.edit_quota(directory, |record| record.usage = usage);
        }
    }

    /// Blocks that only the diffs of a file hold.
    pub(crate) fn past_blocks(&self, store: &Store, file: InodeHandle) -> Vec<BlockHandle> {
        let diffs = self.snapshots.file_diffs(file);
        if diffs.iter().all(|d| d.blocks.is_none()) {
            return Vec::new();
        }
        let present = store.blocks_of(file);
        let mut past: Vec<BlockHandle> = Vec::new();
        for b in diffs.iter().flat_map(|d| d.blocks.iter().flatten()) {
            if !present.contains(b) && !past.contains(b) {
                past.push(*b);
            }
        }
        past
    }
}

/// As of which snapshot an entry is seen: an older name has an end.
fn seen_at(entry: &Gone, snapshot: SnapshotId) -> SnapshotId {
    match entry.link {
        Link::Named { last, .. } if snapshot == SnapshotId::CURRENT => last,
        _ => snapshot,
    }
}

/// Replication of a file as of a snapshot.
fn store_replication(tree: &Tree, store: &Store, file: InodeHandle, snapshot: SnapshotId) -> u16 {
    match tree.inode_at(store, file, snapshot).kind {
        record::InodeKind::File { replication, .. } => replication,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::diff::DirectoryDiff;
    use super::super::{Gone, Link};
    use crate::{RootAttributes, Tree};
    use record::{Features, Inode, InodeHandle, InodeKind, Store};
    use vocab::{InodeId, Mode, SnapshotId, TimeMs};

    fn directory(tree: &mut Tree, store: &mut Store, parent: InodeHandle, name: &str) -> InodeHandle {
        let inode = Inode {
            id: InodeId(tree.inode_count() as i64 + 20_000),
            parent: None,
            user: Default::default(),
            group: Default::default(),
            mode: Mode::new(0o755),
            mtime: TimeMs(0),
            atime: TimeMs(0),
            features: Features::NONE,
            kind: InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 },
        };
        tree.add(store, parent, &inode, name.as_bytes())
    }

    #[test]
    fn directories_that_lie_in_each_other_at_a_snapshot_count_once() {
        let mut store = Store::new();
        let mut tree = Tree::new(&mut store, RootAttributes { user: "u", group: "g", mode: Mode::new(0o755) });
        let root = tree.root();
        let a = directory(&mut tree, &mut store, root, "a");
        let b = directory(&mut tree, &mut store, a, "b");
        // b had a under an older name, and what it lay in then is no longer known
        let one = SnapshotId(1);
        let mut diff = DirectoryDiff::new(one, 1);
        diff.deleted.push(Gone { inode: a, link: Link::Named { name: b"old"[..].into(), last: one } });
        tree.snapshots.directories.insert(b, vec![diff]);
        assert_eq!([a, b].map(|top| tree.usage_at(&store, top, one).namespace), [2, 2]);
        assert_eq!([a, b].map(|top| tree.usage_at(&store, top, SnapshotId::CURRENT).namespace), [4, 3]);
    }
}
