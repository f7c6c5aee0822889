//! Moving an inode to another directory and name, and removing a single one.

use crate::{Tree, quota};
use record::{Features, InodeHandle, KindTag, Store};
use vocab::quota::Usage;
use vocab::storage_policy::UNSPECIFIED;

impl Tree {
    /// Moves an inode below `parent` under `name`, which must be free. Quota use moves along; where no quota directory sees a difference, the
    /// subtree is not walked.
    pub fn rename(&mut self, store: &mut Store, inode: InodeHandle, parent: InodeHandle, name: &[u8]) {
        let before = self.usage_to_move(store, inode, parent);
        self.rename_counted(store, inode, parent, name, before);
    }

    /// What an inode counts that is about to move; `None` where no quota directory sees a difference.
    pub(crate) fn usage_to_move(&self, store: &Store, inode: InodeHandle, parent: InodeHandle) -> Option<Usage> {
        let moved = store.parent(inode).is_some_and(|from| self.move_changes_usage(store, from, parent, inode));
        moved.then(|| self.subtree_usage_known(store, inode))
    }

    /// [`Tree::rename`] of what [`Tree::usage_to_move`] has counted.
    pub(crate) fn rename_counted(
        &mut self,
        store: &mut Store,
        inode: InodeHandle,
        parent: InodeHandle,
        name: &[u8],
        before: Option<Usage>,
    ) {
        let Some(from) = store.parent(inode) else { return };
        let inherited = |tree: &Tree, store: &Store| tree.storage_policy(store, inode);
        let policy = inherited(self, store);
        self.count_move(store, inode, parent, before.is_some());
        self.unlink(store, inode);
        store.rename(inode, name);
        let linked = self.link(store, parent, inode);
        debug_assert!(linked, "the name is free");
        if let Some(before) = before {
            // the same, unless its kinds are others
            let after = if inherited(self, store) == policy { before } else { self.recount(store, inode) };
            self.add_usage(store, from, &quota::negated(&before));
            self.add_usage(store, parent, &after);
        }
    }

    /// Whether a move between two directories changes what any quota directory counts.
    fn move_changes_usage(&self, store: &Store, from: InodeHandle, to: InodeHandle, inode: InodeHandle) -> bool {
        if from == to {
            return false;
        }
        let inherits = self.own_storage_policy(store, inode) == UNSPECIFIED;
        if inherits && self.storage_policy(store, from) != self.storage_policy(store, to) {
            return true;
        }
        if self.only_root_has_quota(store) {
            return false;
        }
        let common = self.common_ancestor(store, from, to);
        self.has_quota_below(store, from, common) || self.has_quota_below(store, to, common)
    }

    /// Whether `directory`, or one above it below `top`, has a quota.
    pub fn has_quota_below(&self, store: &Store, mut directory: InodeHandle, top: InodeHandle) -> bool {
        while directory != top {
            if store.features(directory).contains(Features::QUOTA) {
                return true;
            }
            let Some(above) = store.parent(directory) else { break };
            directory = above;
        }
        false
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
            None => self.counted(top).unwrap_or_else(|| self.subtree_usage(store, top)),
        }
    }

    /// What a subtree would count below another directory, whose storage policy it would have unless it has its own.
    pub fn subtree_usage_in(&self, store: &Store, top: InodeHandle, directory: InodeHandle) -> Usage {
        let policy = self.storage_policy(store, directory);
        let here = store.parent(top).map_or(policy, |above| self.storage_policy(store, above));
        if policy == here || self.own_storage_policy(store, top) != UNSPECIFIED {
            return self.subtree_usage_known(store, top);
        }
        self.subtree_usage_below(store, top, policy)
    }

    /// Removes an inode without children and blocks. Quota use is the caller's.
    pub fn remove_emptied(&mut self, store: &mut Store, inode: InodeHandle) {
        if store.kind(inode) == KindTag::Directory {
            self.lose_count();
        }
        self.close(store, inode);
        self.unlink(store, inode);
        self.forget_sides(inode, store.features(inode));
        store.remove_inode(inode);
        self.inode_count -= 1;
    }
}
