//! createSymlink. Off unless a setting says otherwise, as in Hadoop.

use super::new_node::CreateModes;
use crate::checks::invalid_path;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use edit::record::Permission;
use namespace::resolve::is_exactly_reserved;
use namespace::{Place, Walk};
use std::borrow::Cow;
use vocab::limits::PATH_LENGTH_MAX;
use vocab::path::is_valid_name;
use vocab::quota::Usage;
use vocab::{Action, Refusal};

/// Makes a symbolic link.
#[derive(Clone, Debug)]
pub struct CreateSymlink {
    /// Where it points; any text.
    pub target: Vec<u8>,
    /// Path of the link.
    pub link: Vec<u8>,
    /// Mode of ancestors that are made.
    pub modes: CreateModes,
    /// Whether missing ancestors are made.
    pub create_parents: bool,
}

impl Write for CreateSymlink {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::CreateSymlink;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        // the target may be of another file system, with limits of its own
        view.check_path_length("createSymlink", &self.link).map_err(|refusal| match refusal {
            Refusal::Io(_) => Refusal::io(format!("Symlink path exceeds {PATH_LENGTH_MAX} character limit")),
            other => other,
        })?;
        if !view.settings.symlinks {
            return Err(Refusal::Unsupported("Symlinks not supported".into()));
        }
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        let text = view.path_text(&self.link);
        view.check_safe_mode(|| format!("Cannot create symlink {text}"))?;
        if !is_valid_name(&self.link) {
            return Err(invalid_path(&format!("Invalid link name: {text}")));
        }
        if self.target.is_empty() || self.target.starts_with(b"/.reserved/") || is_exactly_reserved(&self.target) {
            return Err(invalid_path(&format!("Invalid target name: {}", view.path_text(&self.target))));
        }
        let resolved = view.resolve(&self.link, Walk::WriteLink)?;
        if !self.create_parents {
            view.check_parent_directory(&resolved)?;
        }
        if resolved.last().is_some() {
            let text = format!(
                "failed to create link {} either because the filename is invalid or the file exists",
                resolved.path_text()
            );
            return Err(Refusal::Io(text.into()));
        }
        view.check_ancestor(&resolved, Action::WRITE)?;
        view.check_object_count()?;
        let parent = turn.make_ancestors(&resolved, self.modes, true)?;
        let view = turn.view();
        view.check_new_name(parent, &resolved, resolved.depth())?;
        let one = Usage { namespace: 1, ..Usage::default() };
        view.state.tree.verify_quota(&view.state.store, parent, None, &one)?;
        let (user, group) = (&*turn.caller().user, view.new_group(parent));
        let record = Record::Symlink {
            inode_id: turn.next_inode_id(),
            path: resolved.plain(),
            target: Cow::Borrowed(&self.target),
            mtime: view.now.wall,
            atime: view.now.wall,
            permission: Permission { user: user.into(), group: (&*group).into(), mode: 0o777 },
            rpc: view.caller.rpc_ids,
        };
        turn.log_at(&record, &[Place { parent: Some(parent), last: None }]);
        Ok(())
    }
}
