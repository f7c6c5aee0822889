//! Moving an inode where snapshots know it, or its directories.

use super::{Gone, Link};
use crate::Tree;
use record::{InodeHandle, Store};
use vocab::{SnapshotId, TimeMs};

impl Tree {
    /// Moves an inode below `parent` under `name`, which must be free. Both directories get the time. What the latest snapshot knows of the inode
    /// it keeps under the old name ([`Tree::capture_move`] comes first). `latest` is the latest snapshot of the target's path before anything there was replaced.
    pub fn move_captured(
        &mut self,
        store: &mut Store,
        inode: InodeHandle,
        parent: InodeHandle,
        name: &[u8],
        time: TimeMs,
        latest: SnapshotId,
    ) {
        let Some(from) = store.parent(inode) else { return };
        // before what is noted for snapshots, which for a moment sees the inode in two places
        let usage = self.usage_to_move(store, inode, parent);
        let from_latest = self.latest_snapshot(store, inode);
        let known = self.slot_in_latest(store, inode, from_latest);
        let gone = if known {
            Gone { inode, link: Link::Named { name: store.name(inode).into(), last: from_latest } }
        } else {
            self.entry(inode)
        };
        let was_renamed = gone.link != Link::Plain;
        self.capture_removal(store, from, gone.clone(), from_latest);
        if was_renamed {
            let references = self.snapshots.references.or_default(inode);
            if known && let Err(at) = references.names.binary_search(&from_latest) {
                references.names.insert(at, from_latest);
            }
            references.target = Some(latest);
            self.snapshots.note_older_name(from, &gone);
        }
        self.capture_creation(store, parent, name, latest);
        self.rename_counted(store, inode, parent, name, usage);
        if known {
            let policy = self.storage_policy(store, from);
            let kept = self.entry_usage(store, &gone, from_latest, policy);
            self.add_usage(store, from, &kept);
        }
        // the new child's own time counts first, as in Hadoop, and is not recorded
        let made = store.inode(inode).mtime;
        self.touch(store, parent, made);
        self.touch_captured(store, from, time, from_latest);
        self.touch_captured(store, parent, time, latest);
    }
}
