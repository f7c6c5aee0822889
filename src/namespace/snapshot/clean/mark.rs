//! Which directories a snapshot's deletion has to go into: those above something that it changes. Without that each deletion would walk over all that the
//! directory with the snapshot ever held.

use super::super::diff::exactly;
use super::set::InodeSet;
use super::{CHUNK, Cleaner, Step};
use crate::Tree;
use record::InodeHandle;
use vocab::SnapshotId;

/// The search for them: in which table of the past it is, and after which inode.
#[derive(Debug)]
pub(super) struct Mark {
    snapshot: SnapshotId,
    table: u8,
    after: Option<InodeHandle>,
}

impl Mark {
    pub(super) fn new(snapshot: SnapshotId) -> Mark {
        Mark { snapshot, table: 0, after: None }
    }
}

impl Cleaner<'_> {
    /// Marks what leads to some more inodes that have a diff of the snapshot, or were renamed: what those hold may depend on the deletion though they have no
    /// diff of it.
    pub(super) fn mark(&mut self, mut mark: Mark) {
        let past = &self.tree.snapshots;
        let of = |inode: InodeHandle, concerned: bool| (inode, concerned);
        let some: Vec<(InodeHandle, bool)> = match mark.table {
            0 => {
                let all = past.directories.after(mark.after).take(CHUNK);
                all.map(|(inode, diffs)| of(*inode, exactly(diffs, mark.snapshot).is_some())).collect()
            }
            1 => {
                let all = past.files.after(mark.after).take(CHUNK);
                all.map(|(inode, diffs)| of(*inode, exactly(&diffs.list, mark.snapshot).is_some())).collect()
            }
            2 => {
                let all = past.references.after(mark.after).take(CHUNK);
                all.map(|(inode, _)| of(*inode, past.directories.contains_key(inode))).collect()
            }
            _ => return,
        };
        (mark.table, mark.after) = match some.last().filter(|_| some.len() == CHUNK) {
            Some((last, _)) => (mark.table, Some(*last)),
            None => (mark.table + 1, None),
        };
        let (_, marked) = self.job.marked.get_or_insert_with(|| (mark.snapshot, InodeSet::default()));
        for (inode, _) in some.into_iter().filter(|(_, concerned)| *concerned) {
            mark_up(self.tree, self.store, inode, marked);
        }
        self.then([Step::Mark(mark)]);
    }
}

/// Marks an inode with all that holds it, by its present name or an older one.
fn mark_up(tree: &Tree, store: &record::Store, inode: InodeHandle, marked: &mut InodeSet) {
    let mut open = vec![inode];
    while let Some(inode) = open.pop() {
        if !marked.insert(inode) {
            continue;
        }
        open.extend(store.parent(inode));
        if let Some(references) = tree.snapshots.references.get(&inode) {
            let older = references.names.iter().filter_map(|last| tree.snapshots.older_names.get(&(inode, *last)));
            open.extend(older.map(|older| older.directory));
        }
    }
}
