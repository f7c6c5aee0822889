//! delete: a file or a whole directory. It is invisible at once; large trees are freed in slices.

use crate::checks::invalid_path;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::resolve::is_exactly_reserved;
use namespace::{Walk, Wanted};
use state::RetryPayload;
use vocab::{Action, Refusal};

/// Deletes a path. Answers false if there is nothing to delete (or it is the root).
#[derive(Clone, Debug)]
pub struct Delete {
    /// Path.
    pub path: Vec<u8>,
    /// Whether a directory with children may go.
    pub recursive: bool,
}

impl Write for Delete {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::Delete;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        if let Some(RetryPayload::Answer(answer)) = turn.cached().map(|e| &e.payload) {
            return Ok(*answer);
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot delete {}", view.path_text(&self.path)))?;
        if is_exactly_reserved(&self.path) {
            return Err(invalid_path(&view.path_text(&self.path)));
        }
        let resolved = view.resolve(&self.path, Walk::WriteLink)?;
        let wanted =
            Wanted { parent: Some(Action::WRITE), subtree: Some(Action::ALL), ignore_empty: true, ..Wanted::default() };
        view.check(&resolved, wanted)?;
        let Some(inode) = resolved.last() else { return Ok(false) };
        if view.state.store.children(inode).1 > 0 {
            if !self.recursive {
                return Err(Refusal::PathIsNotEmptyDirectory(resolved.path_text()));
            }
            view.check_protected(&resolved)?;
        }
        if resolved.depth() == 0 {
            return Ok(false);
        }
        view.check_without_snapshots(inode)?;
        view.check_stripes_of_snapshots(inode)?;
        let record = Record::Delete { path: resolved.plain(), time: view.now.wall, rpc: view.caller.rpc_ids };
        turn.log_at(&record, &[resolved.place()]);
        Ok(true)
    }
}
