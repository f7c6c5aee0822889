//! getBlockLocations.

use crate::View;
use crate::status::LocatedBlocks;
use vocab::{Action, InodeId, Refusal};

/// What getBlockLocations answers, and the file whose access time is due ([`crate::write::access_time`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockLocations {
    /// The blocks.
    pub blocks: LocatedBlocks,
    /// Set if the access time is older than the precision: the caller runs `TouchAccessTime` afterwards.
    pub touch: Option<InodeId>,
}

/// getBlockLocations: blocks of a file that touch `length` bytes from `offset` on.
///
/// # Errors
/// `FileNotFound`, READ access, negative ranges, `SafeMode` where a block has no location yet.
pub fn get_block_locations(view: &View<'_>, path: &[u8], offset: i64, length: i64) -> Result<BlockLocations, Refusal> {
    let text = view.path_text(path);
    if offset < 0 {
        return Err(Refusal::IllegalArgument(format!("Negative offset is not supported. File: {text}").into()));
    }
    if length < 0 {
        return Err(Refusal::IllegalArgument(format!("Negative length is not supported. File: {text}").into()));
    }
    let resolved = view.resolve_before_access(path)?;
    let file = view.file_of(&resolved)?;
    check_readable_by_superuser(view, file, &resolved)?;
    view.check_inode(&resolved, Action::READ)?;
    let mut blocks = view.past_blocks(file, resolved.snapshot(), offset as u64, length as u64, &view.reader());
    blocks.encryption = view.encryption_of_path(&resolved);
    if blocks.blocks.iter().any(|b| b.located.locations.is_empty()) {
        view.check_safe_mode(|| format!("Zero blocklocations for {text}"))?;
    }
    let touch = (!resolved.is_past() && view.wants_access_time(file)).then(|| view.state.store.inode_id(file));
    Ok(BlockLocations { blocks, touch })
}

/// A file may be closed to superusers by an attribute of its own.
fn check_readable_by_superuser(
    view: &View<'_>,
    file: record::InodeHandle,
    resolved: &namespace::Resolved<'_>,
) -> Result<(), Refusal> {
    let (namespace, name) = (vocab::xattr::XattrNamespace::Security, "hdfs.unreadable.by.superuser");
    let mark = if resolved.is_past() {
        let all = view.state.tree.xattrs_at(file, resolved.snapshot());
        all.iter().any(|x| x.namespace == namespace && &*x.name == name)
    } else {
        view.state.tree.xattr(file, namespace, name).is_some()
    };
    if mark && view.settings.permissions && view.is_superuser() {
        let user = &view.caller.user;
        let text = format!("Access is denied for {user} since the superuser is not allowed to perform this operation.");
        return Err(Refusal::AccessControl(text.into()));
    }
    Ok(())
}
