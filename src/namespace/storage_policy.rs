//! Storage policies along the tree: a file or directory without one of its own has that of the nearest directory above.

use crate::{Tree, quota};
use record::{InodeHandle, InodeKind, KindTag, Store};
use vocab::SnapshotId;
use vocab::erasure_coding::REPLICATION;
use vocab::storage_policy::{HOT, UNSPECIFIED};

/// Policies that a striped file may have: HOT, COLD, ALL_SSD (Hadoop's `checkStoragePolicySuitableForECStripedMode`).
const SUIT_STRIPES: [u8; 3] = [HOT, 2, 12];

/// Inodes below a directory whose use by kind is counted anew in the hold that changes its policy.
const COUNTED_AT_ONCE: u64 = 1 << 14;

impl Tree {
    /// The policy number set on the inode itself, 0 for none.
    pub fn own_storage_policy(&self, store: &Store, inode: InodeHandle) -> u8 {
        store.own_storage_policy(inode)
    }

    /// The same of a directory at a snapshot.
    pub fn storage_policy_at(&self, store: &Store, directory: InodeHandle, snapshot: SnapshotId) -> u8 {
        match self.inode_at(store, directory, snapshot).kind {
            InodeKind::Directory { storage_policy, .. } => storage_policy,
            _ => UNSPECIFIED,
        }
    }

    /// The policy number in effect, 0 if nothing is set up to the root. Symlinks have none, striped files only what suits stripes.
    pub fn storage_policy(&self, store: &Store, inode: InodeHandle) -> u8 {
        let policy = self.nearest_storage_policy(store, inode);
        if policy == UNSPECIFIED || SUIT_STRIPES.contains(&policy) {
            return policy;
        }
        let striped = store.kind(inode) == KindTag::File && store.own_erasure_coding_policy(inode) != REPLICATION;
        if striped { UNSPECIFIED } else { policy }
    }

    fn nearest_storage_policy(&self, store: &Store, inode: InodeHandle) -> u8 {
        if !store.may_have_directory_policies() {
            return self.own_storage_policy(store, inode);
        }
        let mut current = Some(inode);
        while let Some(inode) = current {
            let own = self.own_storage_policy(store, inode);
            if own != UNSPECIFIED {
                return own;
            }
            current = store.parent(inode);
        }
        UNSPECIFIED
    }

    /// Sets the policy of a file or directory; 0 unsets it. What quotas count by kind follows at once.
    ///
    /// Quirk: use_by_kind_follows_a_change_of_policy: in Hadoop's it does so at the next start, and until then falls below zero when the file is deleted.
    /// Below a directory of very many inodes it does that here too, since to count them would take too long.
    pub fn set_storage_policy(&mut self, store: &mut Store, inode: InodeHandle, policy: u8) {
        if policy == self.own_storage_policy(store, inode) {
            return;
        }
        if store.kind(inode) == KindTag::Directory {
            self.lose_count();
        }
        if !self.has_at_most(store, inode, COUNTED_AT_ONCE) {
            return Tree::put_storage_policy(store, inode, policy);
        }
        let seen = self.seen_as_of_any(store, inode);
        let before = self.subtree_usage(store, inode);
        Tree::put_storage_policy(store, inode, policy);
        let after = self.recount(store, inode);
        if let Some(parent) = store.parent(inode) {
            self.add_usage(store, parent, &quota::difference(&after, &before));
        }
        self.changed_in_views(store, inode, &seen);
    }

    fn put_storage_policy(store: &mut Store, inode: InodeHandle, policy: u8) {
        store.edit_inode(inode, |i| match &mut i.kind {
            InodeKind::Directory { storage_policy, .. } | InodeKind::File { storage_policy, .. } => {
                *storage_policy = policy
            }
            InodeKind::Symlink | InodeKind::Reference { .. } => {}
        });
    }
}
