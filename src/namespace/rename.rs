//! Moving an inode to another directory and name, and removing a single one.

use crate::{Tree, quota};
use record::{Features, InodeHandle, Store};
use vocab::quota::Usage;

impl Tree {
    /// Moves an inode below `parent` under `name`, which must be free. Quota use moves along; where no quota directory sees a difference, the
    /// subtree is not walked.
    pub fn rename(&mut self, store: &mut Store, inode: InodeHandle, parent: InodeHandle, name: &[u8]) {
        let Some(from) = store.parent(inode) else { return };
        let moved = self.move_changes_usage(store, from, parent, inode);
        let before = if moved { self.subtree_usage_known(store, inode) } else { Usage::default() };
        self.unlink(store, inode);
        store.rename(inode, name);
        let linked = self.link(store, parent, inode);
        debug_assert!(linked, "the name is free");
        if moved {
            let after = self.subtree_usage_known(store, inode);
            self.add_usage(store, from, &quota::negated(&before));
            self.add_usage(store, parent, &after);
        }
    }

    /// Whether a move between two directories changes what any quota directory counts.
    fn move_changes_usage(&self, store: &Store, from: InodeHandle, to: InodeHandle, inode: InodeHandle) -> bool {
        if from == to {
            return false;
        }
        let inherits = self.own_storage_policy(store, inode) == 0;
        if inherits && self.storage_policy(store, from) != self.storage_policy(store, to) {
            return true;
        }
        if self.only_root_has_quota(store) {
            return false;
        }
        let common = self.common_ancestor(store, from, to);
        let quota_below = |mut directory: InodeHandle| {
            while directory != common {
                if store.features(directory).contains(Features::QUOTA) {
                    return true;
                }
                let Some(above) = store.parent(directory) else { break };
                directory = above;
            }
            false
        };
        quota_below(from) || quota_below(to)
    }

    /// The deepest directory above (or equal to) both.
    pub fn common_ancestor(&self, store: &Store, a: InodeHandle, b: InodeHandle) -> InodeHandle {
        let depth = |mut inode: InodeHandle| {
            let mut depth = 0;
            while let Some(above) = store.parent(inode) {
                inode = above;
                depth += 1;
            }
            depth
        };
        let (mut a, mut b) = (a, b);
        let (mut depth_a, mut depth_b) = (depth(a), depth(b));
        while a != b {
            if depth_a >= depth_b {
                a = store.parent(a).unwrap_or(self.root);
                depth_a -= 1;
            } else {
                b = store.parent(b).unwrap_or(self.root);
                depth_b -= 1;
            }
        }
        a
    }

    /// What a subtree counts: from its own record if its top is a quota directory, else by walking it.
    pub fn subtree_usage_known(&self, store: &Store, top: InodeHandle) -> Usage {
        match self.quota(store, top) {
            Some(record) => record.usage,
            None => self.subtree_usage(store, top),
        }
    }

    /// Removes an inode without children and blocks. Quota use is the caller's.
    pub fn remove_emptied(&mut self, store: &mut Store, inode: InodeHandle) {
        self.close(store, inode);
        self.unlink(store, inode);
        self.forget_sides(inode, store.features(inode));
        store.remove_inode(inode);
        self.inode_count -= 1;
    }
}
