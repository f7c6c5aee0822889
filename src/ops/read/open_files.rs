//! listOpenFiles: files being written, by inode id.

use crate::View;
use crate::checks::check_absolute;
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
    check_absolute(path)?;
    view.check_superuser()
}

/// Which open files are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// All.
    All,
    /// Those that keep nodes from leaving.
    BlockingLeave,
}

/// listOpenFiles: files with an id above `after`, below `path`. Superusers only.
///
/// # Errors
/// Those of [`may_list_open_files`].
pub fn list_open_files(view: &View<'_>, after: InodeId, path: &[u8], which: Which) -> Result<OpenFiles, Refusal> {
    may_list_open_files(view, path)?;
    let (tree, store) = (&view.state.tree, &view.state.store);
    let file_of = |block| store.find_block(block).and_then(|b| store.block_file(b)).map(|file| store.inode_id(file));
    let mut ids: Vec<InodeId> = match which {
        Which::All => tree.leases.iter().flat_map(|l| l.files.iter().copied()).collect(),
        Which::BlockingLeave => view.state.blocks.blocking_leave().filter_map(file_of).collect(),
    };
    ids.retain(|id| *id > after);
    ids.sort_unstable();
    ids.dedup();
    let limit = view.settings.open_files_limit;
    let Some(below) = normal(path) else { return Ok(OpenFiles { entries: Vec::new(), has_more: false }) };
    let mut entries = Vec::new();
    for id in ids {
        let Some(file) = tree.find(store, id) else { continue };
        let Some(construction) = tree.construction(file) else { continue };
        let full = tree.path_of(store, file);
        if !components(&full).take(below.len()).eq(below.iter().copied()) {
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

/// Components of a path as Java's `Path` has it, without `.` and `..`; `None` if that is no path of this file system: `//x/y` names another host's, and
/// nothing is above the root.
fn normal(path: &[u8]) -> Option<Vec<&[u8]>> {
    let names_a_host = path.strip_prefix(b"//").is_some_and(|host| host.first().is_some_and(|byte| *byte != b'/'));
    if names_a_host {
        return None;
    }
    let mut normal = Vec::new();
    for part in components(path) {
        match part {
            b"." => {}
            b".." => drop(normal.pop()?),
            _ => normal.push(part),
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn paths_are_normalized() {
        let shown = |path: &str| normal(path.as_bytes()).map(|parts| String::from_utf8(parts.join(&b'/')).unwrap());
        assert_eq!(shown("/"), Some(String::new()));
        assert_eq!(shown("//"), Some(String::new()));
        assert_eq!(shown("////"), Some(String::new()));
        assert_eq!(shown("///a//b"), Some("a/b".to_owned()), "of the host without a name, which is this one");
        assert_eq!(shown("/a//b/"), Some("a/b".to_owned()));
        assert_eq!(shown("/a/./b/../c"), Some("a/c".to_owned()));
        assert_eq!(shown("//a/b"), None);
        assert_eq!(shown("/../a"), None);
    }
}
