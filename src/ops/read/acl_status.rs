//! getAclStatus.

use crate::View;
use crate::write::acl::check_enabled;
use namespace::Walk;
use std::sync::Arc;
use vocab::acl::AclEntry;
use vocab::{Mode, Refusal};

/// Owner, mode and stored entries of an inode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AclStatus {
    /// Owner.
    pub owner: Arc<str>,
    /// Group.
    pub group: Arc<str>,
    /// Mode; its group bits are the mask where there are access entries.
    ///
    /// `None` of `.snapshot`, behind which there is no inode.
    pub mode: Option<Mode>,
    /// Extended entries, access before default.
    pub entries: Vec<AclEntry>,
}

/// getAclStatus.
///
/// # Errors
/// `Acl` where ACLs are off, `FileNotFound`, access along the path.
pub fn get_acl_status(view: &View<'_>, path: &[u8]) -> Result<AclStatus, Refusal> {
    check_enabled(view)?;
    let resolved = view.resolve(path, Walk::Read)?;
    if resolved.snapshots_of().is_some() {
        // there is nothing behind `.snapshot` itself
        return Ok(AclStatus { owner: "".into(), group: "".into(), mode: None, entries: Vec::new() });
    }
    let inode = view.inode_of(&resolved)?;
    let (tree, store) = (&view.state.tree, &view.state.store);
    let then = tree.inode_at(store, inode, resolved.snapshot());
    Ok(AclStatus {
        owner: store.user_name(then.user).clone(),
        group: store.group_name(then.group).clone(),
        mode: Some(then.mode),
        entries: tree.acl_at(inode, resolved.snapshot()),
    })
}
