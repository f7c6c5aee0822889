//! Striped files whose diffs hold blocks. Hadoop's name node keeps the block list of a file that is renamed out of a snapshot, and stops
//! (`IllegalStateException`) when a deletion cuts a striped one back to such a list: in a call, and in every replay of its record.

use super::diff::{OfSnapshot, exactly, later_prior};
use super::{FileDiff, Snapshots};
use crate::Tree;
use record::{InodeHandle, InodeKind, Store};
use vocab::SnapshotId;
use vocab::erasure_coding::REPLICATION;

const CURRENT: SnapshotId = SnapshotId::CURRENT;
const NONE: SnapshotId = SnapshotId::NONE;

impl Snapshots {
    /// To be called when the diffs of a file have got blocks.
    pub(super) fn note_held_stripes(&mut self, file: InodeHandle) {
        let of_stripes = |d: &FileDiff| {
            let kind = d.copy.as_ref().map(|copy| &copy.inode.kind);
            let striped = matches!(kind, Some(InodeKind::File { erasure_coding_policy, .. }) if *erasure_coding_policy != REPLICATION);
            striped && d.blocks.is_some()
        };
        if self.file_diffs(file).iter().any(of_stripes) {
            self.held_stripes.insert(file);
        }
    }

    /// The same of all files, at the end of a load.
    pub(super) fn note_all_held_stripes(&mut self) {
        let all: Vec<InodeHandle> = self.files.keys().copied().collect();
        all.into_iter().for_each(|file| self.note_held_stripes(file));
    }
}

/// Whether Hadoop would cut a file that is gone from the present back to blocks of a diff when this snapshot goes.
fn cuts(diffs: &[FileDiff], snapshot: SnapshotId, prior: SnapshotId) -> bool {
    let newest_holds = |diffs: &[FileDiff]| diffs.last().is_some_and(|d| d.blocks.is_some());
    if snapshot == CURRENT {
        return newest_holds(diffs);
    }
    let prior = later_prior(diffs, snapshot, prior);
    let Some(at) = exactly(diffs, snapshot).filter(|at| diffs[*at].blocks.is_none()) else { return false };
    let rest = match at {
        0 if prior == NONE => &diffs[1..],
        0 => return false,
        _ if diffs[at - 1].snapshot() != prior => return false,
        _ if at + 1 == diffs.len() => &diffs[..at],
        _ => diffs,
    };
    newest_holds(rest)
}

impl Tree {
    /// Whether Hadoop's name node would stop while it deletes an inode with all below it.
    pub fn deletion_cuts_stripes(&self, store: &Store, top: InodeHandle) -> bool {
        let held = self.snapshots.held_stripes.iter().filter(|file| self.is_below(store, **file, top));
        held.into_iter().any(|file| self.removal_cuts(store, *file, top))
    }

    fn removal_cuts(&self, store: &Store, file: InodeHandle, top: InodeHandle) -> bool {
        let diffs = self.snapshots.file_diffs(file);
        if self.is_present(store, file) {
            let latest = self.latest_snapshot(store, file);
            if latest != CURRENT && self.slot_in_latest(store, file, latest) {
                let gets_one =
                    diffs.last().is_none_or(|d| d.snapshot < latest) && self.is_recorded(store, file, latest);
                return !gets_one && cuts(diffs, CURRENT, latest);
            }
        } else if self.is_kept_by_snapshot(store, top) {
            return false;
        }
        let Some(references) = self.snapshots.references.get(&file) else { return false };
        let Some(prior) = references.names.last().map(|last| self.prior_diff(file, *last)) else { return false };
        let newest = diffs.last().map_or(CURRENT, OfSnapshot::snapshot);
        let snapshot = if newest != CURRENT && newest > prior { newest } else { CURRENT };
        references.target.is_some() && cuts(diffs, snapshot, prior)
    }

    /// Whether Hadoop's name node would stop while it deletes a snapshot.
    pub fn snapshot_deletion_cuts_stripes(&self, store: &Store, snapshot: SnapshotId) -> bool {
        self.snapshots.held_stripes.iter().filter(|file| self.snapshots.is_deleted(**file)).any(|file| {
            let mut prior = NONE;
            let mut above = store.parent(*file);
            while let Some(directory) = above {
                prior = later_prior(self.snapshots.directory_diffs(directory), snapshot, prior);
                above = store.parent(directory);
            }
            cuts(self.snapshots.file_diffs(*file), snapshot, prior)
        })
    }
}
