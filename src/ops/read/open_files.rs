//! listOpenFiles: files being written, by inode id.

use crate::View;
use crate::checks::not_absolute;
use std::sync::Arc;
use vocab::path::components;
use vocab::{InodeId, Refusal};

/// One open file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenFile {
    /// Inode id.
    pub id: InodeId,
    /// Full path.
    pub path: Vec<u8>,
    /// Lease holder.
    pub client: Arc<str>,
    /// Host of the client.
    pub machine: Arc<str>,
}

/// A page of open files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenFiles {
    /// Entries by rising id.
    pub entries: Vec<OpenFile>,
    /// Whether more follow.
    pub has_more: bool,
}

/// Whether the caller may list open files below the path, which is looked at first.
///
/// # Errors
/// A path that is not absolute, then `SuperuserRequired`.
pub fn may_list_open_files(view: &View<'_>, path: &[u8]) -> Result<(), Refusal> {
    if path.first() != Some(&b'/') {
        return Err(not_absolute(path));
    }
    view.check_superuser()
}

/// listOpenFiles: files with an id above `after`, below `path`. Superusers only.
///
/// # Errors
/// Those of [`may_list_open_files`].
pub fn list_open_files(view: &View<'_>, after: InodeId, path: &[u8]) -> Result<OpenFiles, Refusal> {
    may_list_open_files(view, path)?;
    let (tree, store) = (&view.state.tree, &view.state.store);
    let mut ids: Vec<InodeId> =
        tree.leases.iter().flat_map(|l| l.files.iter().copied()).filter(|id| *id > after).collect();
    ids.sort_unstable();
    let limit = view.settings.open_files_limit;
    let mut entries = Vec::new();
    for id in ids {
        let Some(file) = tree.find(store, id) else { continue };
        let Some(construction) = tree.construction(file) else { continue };
        let full = tree.path_of(store, file);
        let below = components(path).count();
        if !components(&full).take(below).eq(components(path)) {
            continue;
        }
        if entries.len() == limit {
            return Ok(OpenFiles { entries, has_more: true });
        }
        entries.push(OpenFile {
            id,
            path: full,
            client: construction.client.into(),
            machine: construction.machine.into(),
        });
    }
    Ok(OpenFiles { entries, has_more: false })
}
