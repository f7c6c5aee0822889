//! The collector of ordered deletion: snapshots that were deleted while older ones kept them go when they have become the oldest of their directory
//! (Hadoop's `SnapshotDeletionGc`).

use crate::Turn;
use edit::Record;
use namespace::snapshot::Snapshot;
use record::InodeHandle;
use std::borrow::Cow;

/// Deletes one snapshot that waits for it, if there is one; gives its path. Nothing happens in safe mode.
pub fn collect_deleted(turn: &mut Turn<'_>) -> Option<String> {
    let view = turn.view();
    if view.state.blocks.safe_mode.is_on() || !view.policy.ordered_snapshot_deletion {
        return None;
    }
    let (tree, store) = (&view.state.tree, &view.state.store);
    let oldest = |directory: InodeHandle| tree.snapshots.directory_diffs(directory).first().map(|d| d.snapshot);
    let (directory, snapshot) = tree.snapshots.roots().find_map(|(_, root)| {
        let snapshot = root.by_id(oldest(root.directory)?).filter(|s| Snapshot::is_deleted(s))?;
        (!tree.snapshot_deletion_cuts_stripes(store, snapshot.id)).then_some((root.directory, snapshot))
    })?;
    let (root, name) = (tree.path_of(store, directory), snapshot.name.to_vec());
    let (directory, title) = (String::from_utf8_lossy(&root), String::from_utf8_lossy(&name));
    let path = format!("{}/.snapshot/{title}", directory.trim_end_matches('/'));
    let time = Some(view.now.wall);
    turn.log(Record::DeleteSnapshot { root: Cow::Owned(root), name: Cow::Owned(name), mtime: time, rpc: None });
    Some(path)
}
