//! What the past counts of quotas. A directory counts, besides what is in it, all that its deleted lists hold; an inode that was renamed out of a
//! snapshot counts there as it was at the snapshot, and where it lies now.

use super::diff::last;
use super::{Gone, Link};
use crate::{Tree, quota};
use record::{BlockHandle, InodeHandle, KindTag, Store};
use vocab::SnapshotId;
use vocab::quota::Usage;
use vocab::storage_policy::UNSPECIFIED;

impl Tree {
    /// What the deleted lists of a directory with this storage policy count.
    ///
    /// Quirk: an_older_name_counts_what_a_snapshot_has_of_it: Hadoop counts as of the last snapshot that the name was in, though that one be deleted
    /// (then as it is now), but only when it starts: its counts before and after a restart differ
    pub(crate) fn past_usage(&self, store: &Store, directory: InodeHandle, inherited: u8) -> Usage {
        let mut usage = Usage::default();
        for diff in self.snapshots.directory_diffs(directory) {
            for gone in &diff.deleted {
                // a name of before a rename counts as of its diff, so that no change elsewhere changes what is counted here
                let when = match gone.link {
                    Link::Named { .. } => diff.snapshot,
                    Link::Plain | Link::Renamed => SnapshotId::CURRENT,
                };
                quota::add(&mut usage, &self.entry_usage(store, gone, when, inherited));
            }
        }
        usage
    }

    /// What something counts that a directory with this storage policy held at a snapshot.
    pub(crate) fn entry_usage(&self, store: &Store, entry: &Gone, snapshot: SnapshotId, inherited: u8) -> Usage {
        self.usage_at(store, entry.inode, seen_at(entry, snapshot), inherited)
    }

    /// What an inode with all below it counts as of a snapshot, below a directory with this storage policy.
    pub(crate) fn usage_at(&self, store: &Store, inode: InodeHandle, snapshot: SnapshotId, inherited: u8) -> Usage {
        self.usage_below(store, inode, snapshot, inherited, &mut Vec::new())
    }

    /// The same below the directories of `way`. Where a diff went with its snapshot, its directory is seen as it is now, and directories that were
    /// renamed to and fro may then lie in each other: each counts once on its way, and everything but once, where it was.
    fn usage_below(
        &self,
        store: &Store,
        inode: InodeHandle,
        snapshot: SnapshotId,
        inherited: u8,
        way: &mut Vec<InodeHandle>,
    ) -> Usage {
        if snapshot == SnapshotId::CURRENT {
            return self.subtree_usage_below(store, inode, inherited);
        }
        match store.kind(inode) {
            KindTag::Directory if way.contains(&inode) => Usage::default(),
            KindTag::Directory => {
                let mut usage = Usage { namespace: 1, ..Usage::default() };
                let own = self.own_storage_policy(store, inode);
                let inherited = if own == UNSPECIFIED { inherited } else { own };
                way.push(inode);
                let mut add = |child: Gone| {
                    if self.was_there(store, inode, &child, snapshot) {
                        quota::add(&mut usage, &self.usage_below(store, child.inode, snapshot, inherited, way));
                    }
                };
                if self.snapshots.directory_diffs(inode).is_empty() {
                    self.children(store, inode).for_each(|child| add(self.entry(child)));
                } else {
                    self.children_at(store, inode, snapshot).into_iter().for_each(add);
                }
                way.pop();
                usage
            }
            KindTag::File => self.file_usage_at(store, inode, snapshot, inherited),
            KindTag::Symlink | KindTag::Reference => Usage { namespace: 1, ..Usage::default() },
        }
    }

    pub(super) fn file_usage_at(&self, store: &Store, file: InodeHandle, snapshot: SnapshotId, inherited: u8) -> Usage {
        let Some(shape) = self.file_shape_below(store, file, inherited) else { return Usage::default() };
        let known = last(self.snapshots.file_diffs(file));
        let mut usage = if known == SnapshotId::CURRENT || shape.stripe.is_some() {
            self.blocks_usage(store, file, &shape, 0)
        } else {
            // the length of a last block that is being written is not durable
            let last = store.last_block(file).filter(|_| shape.open);
            let bytes = self.bytes_at(store, file, snapshot, |b| Some(b) != last);
            quota::block_usage(bytes, self.replication_at(store, file, snapshot), shape.storage_policy)
        };
        usage.namespace = 1;
        usage
    }

    /// What one replica of a file with diffs takes as of a snapshot: the length kept for it, or, if nothing was since, what its blocks have that `counts`.
    pub(crate) fn bytes_at(
        &self,
        store: &Store,
        file: InodeHandle,
        snapshot: SnapshotId,
        counts: impl Fn(BlockHandle) -> bool,
    ) -> u64 {
        if last(self.snapshots.file_diffs(file)) >= snapshot {
            return self.file_length_at(store, file, snapshot);
        }
        store.blocks_of(file).into_iter().filter(|b| counts(*b)).map(|b| store.block_core(b).length).sum()
    }

    /// Replication of a file as of a snapshot.
    pub(crate) fn replication_at(&self, store: &Store, file: InodeHandle, snapshot: SnapshotId) -> u16 {
        match self.inode_at(store, file, snapshot).kind {
            record::InodeKind::File { replication, .. } => replication,
            _ => 0,
        }
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

#[cfg(test)]
mod tests {
    use super::super::diff::DirectoryDiff;
    use super::super::{Gone, Link, References};
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
        tree.snapshots.note_older_name(b, &diff.deleted[0]);
        tree.snapshots.references.insert(a, References { names: vec![one], target: None });
        tree.snapshots.directories.insert(b, vec![diff]);
        assert_eq!([a, b].map(|top| tree.usage_at(&store, top, one, 0).namespace), [2, 2]);
        assert_eq!([a, b].map(|top| tree.usage_at(&store, top, SnapshotId::CURRENT, 0).namespace), [4, 3]);
    }
}
