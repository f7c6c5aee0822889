//! getFileInfo, getFileLinkInfo, getLocatedFileInfo, isFileClosed, getPreferredBlockSize, checkAccess, getLinkTarget.

use crate::View;
use crate::status::{FileStatus, LocatedBlocks, reserved_status};
use namespace::resolve::is_exactly_reserved;
use namespace::{Resolved, Walk};
use record::{Features, InodeHandle, KindTag};
use vocab::{Action, Refusal};

/// The inode of a path, or `None`. Superusers get `None` also where an ancestor is a file; others a refusal.
fn find<'p>(view: &View<'_>, path: &'p [u8], walk: Walk) -> Result<Option<Resolved<'p>>, Refusal> {
    match view.resolve(path, walk) {
        Ok(resolved) => Ok(Some(resolved).filter(|r| r.last().is_some() || r.snapshots_of().is_some())),
        Err(Refusal::AccessControl(_) | Refusal::PermissionDenied(_)) if view.is_superuser() => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

fn status_of<'a>(view: &View<'a>, path: &[u8], walk: Walk) -> Result<Option<FileStatus<'a>>, Refusal> {
    let found = find(view, path, walk)?;
    if is_exactly_reserved(path) {
        return Ok(Some(reserved_status()));
    }
    Ok(found.and_then(|found| match found.snapshots_of() {
        Some(directory) => snapshots_status(view, directory),
        None => view.status_of_path(&found),
    }))
}

/// Status of `.snapshot` itself: a directory with nothing of its own.
fn snapshots_status<'a>(view: &View<'a>, directory: InodeHandle) -> Option<FileStatus<'a>> {
    let allowed =
        directory == view.state.tree.root() || view.state.store.features(directory).contains(Features::SNAPSHOTTABLE);
    allowed.then(|| FileStatus { id: vocab::InodeId(-1), mode: vocab::Mode::new(0o777), ..reserved_status() })
}

/// getFileInfo: status of what a path names, symlinks followed by the client; `None` if there is nothing.
///
/// # Errors
/// Access along the path; `UnresolvedPath` for symlinks.
pub fn get_file_info<'a>(view: &View<'a>, path: &[u8]) -> Result<Option<FileStatus<'a>>, Refusal> {
    status_of(view, path, Walk::Read)
}

/// getFileLinkInfo: as [`get_file_info`], of a symlink itself.
///
/// # Errors
/// As [`get_file_info`].
pub fn get_file_link_info<'a>(view: &View<'a>, path: &[u8]) -> Result<Option<FileStatus<'a>>, Refusal> {
    status_of(view, path, Walk::ReadLink)
}

/// getLocatedFileInfo: as [`get_file_info`], with all blocks of a file.
///
/// # Errors
/// As [`get_file_info`].
pub fn get_located_file_info<'a>(
    view: &View<'a>,
    path: &[u8],
) -> Result<Option<(FileStatus<'a>, Option<LocatedBlocks>)>, Refusal> {
    let Some(found) = find(view, path, Walk::Read)? else {
        return Ok(is_exactly_reserved(path).then(|| (reserved_status(), None)));
    };
    if let Some(directory) = found.snapshots_of() {
        return Ok(snapshots_status(view, directory).map(|status| (status, None)));
    }
    let file = found.last().filter(|inode| view.state.store.kind(*inode) == KindTag::File);
    let Some(status) = view.status_of_path(&found) else { return Ok(None) };
    // an empty last block lies beyond the length
    let located = file.map(|file| view.past_blocks(file, found.snapshot(), 0, status.length, &view.reader()));
    Ok(Some((status, located)))
}

/// isFileClosed.
///
/// # Errors
/// `FileNotFound` for what is missing or no file; access.
pub fn is_file_closed(view: &View<'_>, path: &[u8]) -> Result<bool, Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    Ok(!view.state.is_open(view.file_named(resolved.last(), &view.path_text(path))?))
}

/// getPreferredBlockSize, in bytes.
///
/// # Errors
/// `FileNotFound` for what is missing or no file; access.
pub fn get_preferred_block_size(view: &View<'_>, path: &[u8]) -> Result<u64, Refusal> {
    let resolved = view.resolve(path, Walk::ReadLink)?;
    let file = view.file_of(&resolved)?;
    Ok(view.state.tree.file_shape(&view.state.store, file).map_or(0, |s| s.block_size))
}

/// checkAccess: whether the caller has this access.
///
/// # Errors
/// `FileNotFound`, `PermissionDenied`.
pub fn check_access(view: &View<'_>, path: &[u8], action: Action) -> Result<(), Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    if resolved.last().is_none() {
        return Err(Refusal::not_found(format!("Path not found: {}", resolved.path_text())));
    }
    view.check_inode(&resolved, action)
}

/// getLinkTarget.
///
/// # Errors
/// `FileNotFound`, `Io` for what is no symlink; access.
pub fn get_link_target<'a>(view: &View<'a>, path: &[u8]) -> Result<&'a [u8], Refusal> {
    let no_link = || Refusal::io(format!("Path {} is not a symbolic link", view.path_text(path)));
    let found = find(view, path, Walk::ReadLink)?;
    if is_exactly_reserved(path) || found.as_ref().is_some_and(|found| found.snapshots_of().is_some()) {
        return Err(no_link());
    }
    let Some(inode) = found.and_then(|found| found.last()) else {
        return Err(Refusal::not_found(format!("File does not exist: {}", view.path_text(path))));
    };
    if view.state.store.kind(inode) != KindTag::Symlink {
        return Err(no_link());
    }
    Ok(view.state.tree.symlink_target(inode))
}
