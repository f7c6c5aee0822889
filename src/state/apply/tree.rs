//! Names: directories, symlinks, deletes, renames.

use super::Context;
use crate::fit::Plan;
use crate::{Applied, RetryPayload, State};
use edit::Record;
use edit::record::Permission;
use record::{Features, Inode, InodeHandle, InodeKind};
use vocab::{InodeId, Mode, TimeMs};

impl State {
    pub(super) fn apply_tree(&mut self, cx: &mut Context<'_>, record: &Record<'_>, plan: Plan) -> Applied {
        match (record, plan) {
            (Record::Mkdir { inode_id, path, mtime, permission, acl, xattrs, .. }, Plan::Create { parent, .. }) => {
                let kind = InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 };
                let directory = self.make(*inode_id, parent, path, permission, *mtime, TimeMs(0), kind);
                if !acl.is_empty() {
                    self.tree.apply_logical_acl(&mut self.store, directory, acl);
                }
                if !xattrs.is_empty() {
                    self.set_xattrs(directory, xattrs.clone());
                }
                self.applied(directory)
            }
            (
                Record::Symlink { inode_id, path, target, mtime, atime, permission, rpc },
                Plan::Create { parent, .. },
            ) => {
                let link = self.make(*inode_id, parent, path, permission, *mtime, *atime, InodeKind::Symlink);
                self.tree.set_symlink_target(&mut self.store, link, target);
                self.remember(cx, *rpc, RetryPayload::Done);
                self.applied(link)
            }
            (Record::Delete { time, rpc, .. }, Plan::Delete(inode)) => {
                let id = self.store.inode_id(inode);
                let removed = self.remove_at(cx, inode, Some(*time));
                self.remember(cx, *rpc, RetryPayload::Answer(true));
                Applied { inode: Some(id), removed }
            }
            (Record::RenameOld { time, rpc, .. }, Plan::Rename { inode, parent, name, .. }) => {
                self.move_inode(cx, inode, parent, &name, *time, None);
                self.remember(cx, *rpc, RetryPayload::Answer(true));
                self.applied(inode)
            }
            (Record::RenameOld { rpc, .. }, Plan::Inode(inode)) => {
                self.remember(cx, *rpc, RetryPayload::Answer(true));
                self.applied(inode)
            }
            (Record::Rename { time, rpc, .. }, Plan::Rename { inode, parent, name, replaces }) => {
                let removed = self.move_inode(cx, inode, parent, &name, *time, replaces);
                self.remember(cx, *rpc, RetryPayload::Done);
                Applied { inode: Some(self.store.inode_id(inode)), removed }
            }
            (record, Plan::Inode(inode)) => self.apply_attributes(cx, record, inode),
            (record, plan) => unreachable!("a plan of another record: {plan:?} for {record:?}"),
        }
    }

    fn make(
        &mut self,
        id: InodeId,
        parent: InodeHandle,
        path: &[u8],
        permission: &Permission<'_>,
        mtime: TimeMs,
        atime: TimeMs,
        kind: InodeKind,
    ) -> InodeHandle {
        let inode = Inode {
            id,
            parent: None,
            user: self.store.intern_user(&permission.user),
            group: self.store.intern_group(&permission.group),
            mode: Mode::new(permission.mode),
            mtime,
            atime,
            features: Features::NONE,
            kind,
        };
        self.raise_inode(id);
        self.tree.capture_arrival(&mut self.store, parent, vocab::path::name(path));
        let made = self.tree.add(&mut self.store, parent, &inode, vocab::path::name(path));
        self.tree.touch(&mut self.store, parent, mtime);
        made
    }

    /// Moves an inode to where nothing is, or what is there goes; both parents get the time, quota use moves along. Gives how many inodes went.
    fn move_inode(
        &mut self,
        cx: &mut Context<'_>,
        inode: InodeHandle,
        parent: InodeHandle,
        name: &[u8],
        time: TimeMs,
        replaces: Option<InodeHandle>,
    ) -> u64 {
        let latest = match replaces {
            Some(old) => self.tree.latest_snapshot(&self.store, old),
            None => self.tree.latest_snapshot_below(&self.store, parent),
        };
        self.capture_move(inode);
        let removed = replaces.map_or(0, |old| self.remove_at(cx, old, None));
        let State { store, tree, .. } = self;
        if tree.snapshots.is_empty() {
            let Some(from) = store.parent(inode) else { unreachable!("the root is never renamed") };
            tree.rename(store, inode, parent, name);
            tree.touch(store, from, time);
            tree.touch(store, parent, time);
        } else {
            tree.move_captured(store, inode, parent, name, time, latest);
        }
        removed
    }
}
