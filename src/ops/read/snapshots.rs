//! getSnapshottableDirListing, getSnapshotListing, getSnapshotDiffReport, as they are where there is no snapshot: the root alone allows
//! snapshots, from birth and with a quota of none.

use crate::View;
use namespace::{Resolved, Walk};
use record::KindTag;
use vocab::{Action, Refusal};

/// getSnapshotListing: that the path is a directory which allows snapshots; there is none to list.
///
/// # Errors
/// `FileNotFound`, `PathIsNotDirectory`, `ParentNotDirectory`, `Snapshot` for a directory that does not allow any; access.
pub fn get_snapshot_listing(view: &View<'_>, path: &[u8]) -> Result<(), Refusal> {
    let resolved = view.state.tree.resolve(&view.state.store, path)?;
    // Quirk: a_file_above_a_snapshot_root_is_no_access_refusal: unlike other reads this one names the file as it is
    let checker = view.checker();
    if view.settings.permissions {
        checker.traverse(&resolved)?
    } else {
        checker.traverse_unchecked(&resolved)?
    }
    view.check_inode(&resolved, Action::READ)?;
    if !is_root(view, &resolved, |path| Refusal::PathIsNotDirectory(path.into()))? {
        let text = format!("Directory is not a snapshottable directory: {}", resolved.path_text());
        return Err(Refusal::Snapshot(text.into()));
    }
    Ok(())
}

/// getSnapshotDiffReport and its paged form, between two snapshots; an empty name stands for the present state.
///
/// # Errors
/// `FileNotFound`; `Snapshot` for paths that are not below a directory with snapshots, and for names of snapshots; access.
pub fn get_snapshot_diff(view: &View<'_>, path: &[u8], from: &str, to: &str) -> Result<(), Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    // what is read lies below it
    view.check_inode(&resolved, Action::EXECUTE)?;
    let snapshot = |text: String| Refusal::Snapshot(text.into());
    if !is_root(view, &resolved, |path| Refusal::AccessControl(format!("{path} (is not a directory)").into()))? {
        let path = resolved.path_text();
        return Err(snapshot(format!("The path {path} is neither snapshottable nor under a snapshot root!")));
    }
    match [from, to].into_iter().find(|name| !name.is_empty()) {
        Some(name) => Err(snapshot(format!("Cannot find the snapshot of directory / with name {name}"))),
        None => Ok(()),
    }
}

/// Whether an existing directory is the root.
fn is_root(view: &View<'_>, resolved: &Resolved<'_>, no_directory: fn(&str) -> Refusal) -> Result<bool, Refusal> {
    let path = resolved.path_text();
    let Some(inode) = resolved.last() else {
        return Err(Refusal::not_found(format!("Directory does not exist: {path}")));
    };
    if view.state.store.kind(inode) != KindTag::Directory {
        return Err(no_directory(&path));
    }
    Ok(inode == view.state.tree.root())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{World, superuser};

    #[test]
    fn a_file_above_a_snapshot_root_is_no_access_refusal() {
        let mut w = World::new();
        let caller = superuser();
        w.create("/f");
        let listing = w.view(&caller, |v| get_snapshot_listing(v, b"/f/x"));
        assert!(matches!(listing, Err(Refusal::ParentNotDirectory(_))), "{listing:?}");
        let diff = w.view(&caller, |v| get_snapshot_diff(v, b"/f/x", "a", "b"));
        assert!(matches!(diff, Err(Refusal::AccessControl(_))), "{diff:?}");
    }
}
