//! POSIX access checks in the order and with the words of Hadoop's `FSPermissionChecker`.

use crate::Tree;
use crate::resolve::{Resolved, text};
use record::{InodeHandle, KindTag, Store};
use std::sync::Arc;
use vocab::acl::{AclKind, AclScope};
use vocab::refusal::PermissionDenied;
use vocab::{Action, Caller, InodeId, Mode, Refusal, SnapshotId};

/// How a path is walked (Hadoop's `DirOp`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Walk {
    Read,
    /// The last component may be a symlink.
    ReadLink,
    Write,
    WriteLink,
    Create,
    CreateLink,
}

impl Walk {
    /// Whether new names are made.
    pub fn creates(self) -> bool {
        matches!(self, Walk::Create | Walk::CreateLink)
    }
    /// Whether the path must exist and is only looked at.
    pub fn reads(self) -> bool {
        matches!(self, Walk::Read | Walk::ReadLink)
    }
    /// Whether a symlink at the end is followed (by the client).
    pub fn follows(self) -> bool {
        !matches!(self, Walk::ReadLink | Walk::WriteLink | Walk::CreateLink)
    }
}

/// What is asked of the inodes along a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// The caller must own the last one.
    pub owner: bool,
    /// Of the deepest existing ancestor.
    pub ancestor: Option<Action>,
    /// Of the parent.
    pub parent: Option<Action>,
    /// Of the inode itself.
    pub inode: Option<Action>,
    /// Of every directory below.
    pub subtree: Option<Action>,
    /// Directories without children are left out of the subtree check.
    pub ignore_empty: bool,
}

/// Checks for one caller.
#[derive(Clone, Copy)]
pub struct Checker<'a> {
    tree: &'a Tree,
    store: &'a Store,
    user: &'a str,
    groups: &'a [Arc<str>],
    superuser: bool,
}

/// Whether a caller is a superuser: the process owner or a member of the super group.
pub fn is_superuser(caller: &Caller, owner: &str, super_group: &str) -> bool {
    &*caller.user == owner || caller.groups.iter().any(|g| &**g == super_group)
}

impl<'a> Checker<'a> {
    /// A checker for `caller`.
    pub fn new(tree: &'a Tree, store: &'a Store, caller: &'a Caller, superuser: bool) -> Checker<'a> {
        Checker { tree, store, user: &caller.user, groups: &caller.groups, superuser }
    }

    /// That every existing ancestor is a directory and, unless the caller is a superuser, may be traversed.
    ///
    /// # Errors
    /// `ParentNotDirectory`, `UnresolvedPath` for a symlink on the way, `PermissionDenied`.
    pub fn traverse(&self, path: &Resolved<'_>) -> Result<(), Refusal> {
        if self.superuser && !path.is_past() {
            // what has a child on the path is a directory
            let deepest = path.inodes().len().min(path.depth()).saturating_sub(1);
            return match path.inode(deepest) {
                Some(inode) if path.depth() > 0 => self.is_directory(path, deepest, inode),
                _ => Ok(()),
            };
        }
        for i in 0..path.depth() {
            let Some(inode) = path.inode(i) else { break };
            self.is_directory(path, i, inode)?;
            if !self.superuser {
                self.allowed(path, i, Action::EXECUTE)?;
            }
        }
        Ok(())
    }

    /// That every existing ancestor is a directory; what is checked where permissions are off.
    ///
    /// # Errors
    /// `ParentNotDirectory`, `UnresolvedPath`.
    pub fn traverse_unchecked(&self, path: &Resolved<'_>) -> Result<(), Refusal> {
        Checker { superuser: true, ..*self }.traverse(path)
    }

    fn is_directory(&self, path: &Resolved<'_>, i: usize, inode: InodeHandle) -> Result<(), Refusal> {
        if self.store.kind(inode) == KindTag::Directory {
            return Ok(());
        }
        if let Some(link) = self.tree.unresolved(self.store, path, i) {
            return Err(link);
        }
        Err(Refusal::ParentNotDirectory(format!("{} (is not a directory)", text(&path.path_to(i))).into()))
    }

    /// All checks of one call. Superusers pass.
    ///
    /// # Errors
    /// `PermissionDenied`, `AccessControl` (sticky bit, owner), and those of [`Checker::traverse`].
    pub fn check(&self, path: &Resolved<'_>, wanted: Wanted) -> Result<(), Refusal> {
        if self.superuser {
            return Ok(());
        }
        self.traverse(path)?;
        let depth = path.depth();
        if let (Some(parent), true) = (wanted.parent, depth > 0)
            && parent.implies(Action::WRITE)
            && path.last().is_some()
        {
            self.sticky(path)?;
        }
        if let (Some(ancestor), true) = (wanted.ancestor, depth > 0) {
            self.allowed(path, (path.inodes().len() - 1).min(depth - 1), ancestor)?;
        }
        if let (Some(parent), true) = (wanted.parent, depth > 0) {
            self.allowed(path, depth - 1, parent)?;
        }
        if let Some(inode) = wanted.inode {
            self.allowed(path, depth, inode)?;
        }
        if let (Some(subtree), Some(top)) = (wanted.subtree, path.last()) {
            match path.snapshot() {
                SnapshotId::CURRENT => self.subtree(top, subtree, wanted.ignore_empty)?,
                snapshot => self.subtree_then((top, path.path()), snapshot, subtree)?,
            }
        }
        if let (true, Some(inode)) = (wanted.owner, path.last())
            && **self.store.user_name(self.store.owner(inode).0) != *self.user
        {
            let text = format!("Permission denied. user={} is not the owner of inode={}", self.user, path.path_text());
            return Err(Refusal::AccessControl(text.into()));
        }
        Ok(())
    }

    /// That the inode at depth `i` grants `access`; one that does not exist grants everything.
    fn allowed(&self, path: &Resolved<'_>, i: usize, access: Action) -> Result<(), Refusal> {
        // a path that ends with `.snapshot`, or names none that there is, is looked at as of the latest one
        let snapshot = match path.snapshot() {
            SnapshotId::CURRENT if path.is_past() => self.tree.latest_snapshot(self.store, path.deepest()),
            snapshot => snapshot,
        };
        match path.inode(i) {
            Some(inode) if snapshot != SnapshotId::CURRENT => {
                self.allowed_then(inode, snapshot, access, || text(&path.path_to(i)))
            }
            Some(inode) if !self.permits(inode, access) => Err(self.denied(inode, text(&path.path_to(i)), access)),
            _ => Ok(()),
        }
    }

    fn denied(&self, inode: InodeHandle, path: Arc<str>, access: Action) -> Refusal {
        let (user, group) = self.store.owner(inode);
        Refusal::PermissionDenied(Box::new(PermissionDenied {
            user: self.user.into(),
            access,
            path,
            owner: self.store.user_name(user).clone(),
            group: self.store.group_name(group).clone(),
            directory: self.store.kind(inode) == KindTag::Directory,
            mode: self.store.mode(inode),
        }))
    }

    /// That a directory in a snapshot may be looked into; a refusal names it by where it is now.
    ///
    /// # Errors
    /// `PermissionDenied`.
    pub fn enter_then(&self, directory: InodeHandle, snapshot: SnapshotId, access: Action) -> Result<(), Refusal> {
        self.allowed_then(directory, snapshot, access, || text(&self.tree.path_of(self.store, directory)))
    }

    /// That an inode as it was at a snapshot granted `access`.
    fn allowed_then(
        &self,
        inode: InodeHandle,
        snapshot: SnapshotId,
        access: Action,
        path: impl Fn() -> Arc<str>,
    ) -> Result<(), Refusal> {
        let then = self.tree.inode_at(self.store, inode, snapshot);
        let acl = self.tree.acl_at(inode, snapshot);
        let owner = self.store.user_name(then.user);
        let group = self.store.group_name(then.group);
        let has_acl = acl.first().is_some_and(|e| e.scope == AclScope::Access);
        let owns = **owner == *self.user;
        let granted = if has_acl {
            let entries = acl.iter().map(|e| (e.scope, e.kind, e.name.as_deref(), e.permission));
            self.entries_permit(entries, then.mode, access, owns, group)
        } else if owns {
            then.mode.user().implies(access)
        } else if self.in_group(group) {
            then.mode.group().implies(access)
        } else {
            then.mode.other().implies(access)
        };
        if granted {
            return Ok(());
        }
        Err(Refusal::PermissionDenied(Box::new(PermissionDenied {
            user: self.user.into(),
            access,
            path: path(),
            owner: owner.clone(),
            group: group.clone(),
            directory: self.store.kind(inode) == KindTag::Directory,
            mode: then.mode,
        })))
    }

    fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| &**g == group)
    }

    /// Whether the inode grants `access` to the caller, as a user without special rights.
    pub fn permits(&self, inode: InodeHandle, access: Action) -> bool {
        let mode = self.store.mode(inode);
        let (user, group) = self.store.owner(inode);
        let owns = **self.store.user_name(user) == *self.user;
        if self.tree.has_access_acl(self.store, inode) {
            return self.acl_permits(inode, access, owns, group);
        }
        let granted = if owns {
            mode.user()
        } else if self.in_group(self.store.group_name(group)) {
            mode.group()
        } else {
            mode.other()
        };
        granted.implies(access)
    }

    /// The first entry that speaks of the caller decides, but among groups one that grants is enough; named and group entries are masked by the
    /// group bits of the mode.
    fn acl_permits(&self, inode: InodeHandle, access: Action, owns: bool, group: record::GroupId) -> bool {
        let mode = self.store.mode(inode);
        let entries = self.tree.acl_entries(inode).map(|e| (e.scope, e.kind, e.name, e.permission));
        self.entries_permit(entries, mode, access, owns, self.store.group_name(group))
    }

    fn entries_permit<'e>(
        &self,
        entries: impl Iterator<Item = (AclScope, AclKind, Option<&'e str>, Action)>,
        mode: Mode,
        access: Action,
        owns: bool,
        group: &str,
    ) -> bool {
        if owns {
            return mode.user().implies(access);
        }
        let masked = |granted: Action| Action(granted.0 & mode.group().0);
        let mut matched = false;
        for (_, kind, name, permission) in entries.take_while(|(scope, ..)| *scope == AclScope::Access) {
            match kind {
                AclKind::User if name == Some(self.user) => {
                    return masked(permission).implies(access);
                }
                AclKind::Group if self.in_group(name.unwrap_or(group)) => {
                    if masked(permission).implies(access) {
                        return true;
                    }
                    matched = true;
                }
                _ => {}
            }
        }
        !matched && mode.other().implies(access)
    }

    fn sticky(&self, path: &Resolved<'_>) -> Result<(), Refusal> {
        let (Some(parent), Some(inode)) = (path.parent(), path.last()) else { return Ok(()) };
        if !self.store.mode(parent).sticky() || !self.violates_sticky(parent, inode) {
            return Ok(());
        }
        let parent = self.describe(&self.store.inode(parent), &text(&path.path_to(path.depth() - 1)));
        Err(self.sticky_refusal(inode, &text(&path.path()), &parent))
    }

    fn violates_sticky(&self, parent: InodeHandle, inode: InodeHandle) -> bool {
        let owner = |h: InodeHandle| &**self.store.user_name(self.store.owner(h).0);
        owner(parent) != self.user && owner(inode) != self.user
    }

    /// `parent` is described.
    fn sticky_refusal(&self, inode: InodeHandle, path: &str, parent: &str) -> Refusal {
        let inode = self.describe(&self.store.inode(inode), path);
        let text = format!("Permission denied by sticky bit: user={}, path={inode}, parent={parent}", self.user);
        Refusal::AccessControl(text.into())
    }

    fn describe(&self, inode: &record::Inode, path: &str) -> String {
        let kind = if matches!(inode.kind, record::InodeKind::Directory { .. }) { 'd' } else { '-' };
        let (user, group) = (self.store.user_name(inode.user), self.store.group_name(inode.group));
        format!("\"{path}\":{user}:{group}:{kind}{}", inode.mode)
    }

    /// [`Checker::subtree`] of the past.
    ///
    /// Quirk: a_sticky_directory_of_the_past_is_told_as_the_top: by its own path, but with owner and mode of the directory that was asked of, as below
    /// one of the present; a renamed one by its newer name
    fn subtree_then(&self, top: (InodeHandle, Vec<u8>), snapshot: SnapshotId, access: Action) -> Result<(), Refusal> {
        let owner = |h: InodeHandle| &**self.store.user_name(self.tree.inode_at(self.store, h, snapshot).user);
        // refused are directories by where they are now, but for the one that the snapshot was taken of
        let is_root = self.tree.snapshot_root(self.store, top.0).is_some_and(|root| root.by_id(snapshot).is_some());
        let root = is_root.then_some(top.0);
        let as_told = self.tree.inode_at(self.store, top.0, if is_root { snapshot } else { SnapshotId::CURRENT });
        let mut open = vec![top];
        while let Some((directory, path)) = open.pop() {
            if self.store.kind(directory) != KindTag::Directory {
                continue;
            }
            self.allowed_then(directory, snapshot, access, || match root {
                Some(root) if root == directory => text(&path),
                _ => text(&self.tree.path_of(self.store, directory)),
            })?;
            let mine =
                !self.tree.inode_at(self.store, directory, snapshot).mode.sticky() || owner(directory) == self.user;
            for child in self.tree.children_at(self.store, directory, snapshot) {
                let below = |name: &[u8]| [path.as_slice(), b"/", name].concat();
                if !mine && owner(child.inode) != self.user {
                    let parent = self.describe(&as_told, &text(&path));
                    return Err(self.sticky_refusal(child.inode, &text(&below(child.name(self.store))), &parent));
                }
                open.push((child.inode, below(self.store.name(child.inode))));
            }
        }
        Ok(())
    }

    /// Every directory of a subtree must grant `access`, and sticky ones must not hold children of others.
    fn subtree(&self, top: InodeHandle, access: Action, ignore_empty: bool) -> Result<(), Refusal> {
        if self.store.kind(top) != KindTag::Directory {
            return Ok(());
        }
        let mut walk = SubtreeCheck::new(self.store.inode_id(top));
        self.subtree_step(&mut walk, access, ignore_empty, usize::MAX).map(drop)
    }

    /// Goes on with a check of a subtree, for up to `budget` inodes; whether it is done.
    ///
    /// # Errors
    /// `PermissionDenied` of the first directory that does not grant `access`, `AccessControl` of a child that a sticky one holds.
    pub fn subtree_step(
        &self,
        walk: &mut SubtreeCheck,
        access: Action,
        ignore_empty: bool,
        budget: usize,
    ) -> Result<bool, Refusal> {
        let path_of = |h: InodeHandle| text(&self.tree.path_of(self.store, h));
        let mut left = budget;
        while let Some((id, after)) = walk.next.take().or_else(|| walk.open.pop().map(|id| (id, Vec::new()))) {
            let found = self.tree.find(self.store, id);
            let Some(directory) = found.filter(|found| self.store.kind(*found) == KindTag::Directory) else { continue };
            let left_out = ignore_empty && self.store.children(directory).1 == 0;
            if !left_out && !self.permits(directory, access) {
                return Err(self.denied(directory, path_of(directory), access));
            }
            let sticky = self.store.mode(directory).sticky();
            for child in self.tree.children_after(self.store, directory, &after).0 {
                if sticky && self.violates_sticky(directory, child) {
                    let top = self.tree.find(self.store, walk.top).unwrap_or(directory);
                    let parent = self.describe(&self.store.inode(top), &path_of(directory));
                    return Err(self.sticky_refusal(child, &path_of(child), &parent));
                }
                if self.store.kind(child) == KindTag::Directory {
                    walk.open.push(self.store.inode_id(child));
                }
                left -= 1;
                if left == 0 {
                    walk.next = Some((id, self.store.name(child).to_vec()));
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// A check of all directories of a subtree that may stop after any number of inodes and go on in another hold of the lock; what vanished meanwhile is
/// skipped.
#[derive(Clone, Debug)]
pub struct SubtreeCheck {
    /// Where it began.
    top: InodeId,
    open: Vec<InodeId>,
    /// The directory that is looked into, behind its last child that was.
    next: Option<(InodeId, Vec<u8>)>,
}

impl SubtreeCheck {
    /// Of everything from an inode down.
    pub fn new(top: InodeId) -> SubtreeCheck {
        SubtreeCheck { top, open: vec![top], next: None }
    }
}
