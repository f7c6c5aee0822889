//! Whose an inode is, for audit lines: nobody asks for it, so nothing is checked.

use crate::View;
use std::sync::Arc;
use vocab::{InodeId, Mode};

/// The inode of a path, symlinks not followed.
pub fn id_of_path(view: &View<'_>, path: &[u8]) -> Option<InodeId> {
    let inode = view.state.tree.resolve(&view.state.store, path).ok()?.last()?;
    Some(view.state.store.inode_id(inode))
}

/// Owner, group and mode.
pub fn owner_of(view: &View<'_>, id: InodeId) -> Option<(Arc<str>, Arc<str>, Mode)> {
    let store = &view.state.store;
    let inode = store.inode(view.state.tree.find(store, id)?);
    Some((store.user_name(inode.user).clone(), store.group_name(inode.group).clone(), inode.mode))
}

/// The same of what a path names, in the present or the past.
pub fn owner_of_path(view: &View<'_>, path: &[u8]) -> Option<(Arc<str>, Arc<str>, Mode)> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let resolved = tree.resolve(store, path).ok()?;
    let inode = tree.inode_at(store, resolved.last()?, resolved.snapshot());
    Some((store.user_name(inode.user).clone(), store.group_name(inode.group).clone(), inode.mode))
}
