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
    pub mode: Mode,
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
    let inode = view.inode_of(&resolved)?;
    let store = &view.state.store;
    let (user, group) = store.owner(inode);
    Ok(AclStatus {
        owner: store.user_name(user).clone(),
        group: store.group_name(group).clone(),
        mode: store.mode(inode),
        entries: view.state.tree.acl(inode),
    })
}
