//! delete: a file or a whole directory. It is invisible at once; large trees are freed in slices.

use crate::checks::invalid_path;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::resolve::is_exactly_reserved;
use namespace::{SubtreeCheck, Walk, Wanted};
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
        self.decide(turn, None)
    }
}

/// Inodes below a directory that are checked in the hold that deletes it.
const CHECKED_AT_ONCE: u64 = 1 << 10;

/// The check of a large directory before its deletion, in slices: of every directory in it the caller needs all rights. Whoever changes rights below
/// while it runs may be too late, as if the deletion had come before.
#[derive(Clone, Debug)]
pub struct DeleteCheck {
    delete: Delete,
    walk: SubtreeCheck,
    checked: Result<(), Refusal>,
}

impl DeleteCheck {
    /// Begins, if there is so much to check that it is better checked before.
    pub fn begin(view: &View<'_>, delete: &Delete) -> Option<DeleteCheck> {
        if !delete.recursive || !view.settings.permissions || view.is_superuser() {
            return None;
        }
        let directory = view.resolve(&delete.path, Walk::WriteLink).ok()?.last()?;
        let (tree, store) = (&view.state.tree, &view.state.store);
        let walk = SubtreeCheck::new(store.inode_id(directory));
        let is_large = !tree.has_at_most(store, directory, CHECKED_AT_ONCE);
        is_large.then(|| DeleteCheck { delete: delete.clone(), walk, checked: Ok(()) })
    }

    /// Goes on for up to `budget` inodes; whether it is done.
    pub fn step(&mut self, view: &View<'_>, budget: usize) -> bool {
        match view.checker().subtree_step(&mut self.walk, Action::ALL, true, budget) {
            Ok(done) => done,
            Err(refusal) => {
                self.checked = Err(refusal);
                true
            }
        }
    }
}

impl Write for DeleteCheck {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::Delete;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        self.delete.decide(turn, Some(&self.checked))
    }
}

impl Delete {
    /// Decides; `checked` is what a check of the subtree found, if there was one.
    fn decide(&self, turn: &mut Turn<'_>, checked: Option<&Result<(), Refusal>>) -> Result<bool, Refusal> {
        if let Some(RetryPayload::Answer(answer)) = turn.cached().map(|e| &e.payload) {
            return Ok(*answer);
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot delete {}", view.path_text(&self.path)))?;
        if is_exactly_reserved(&self.path) {
            return Err(invalid_path(&view.path_text(&self.path)));
        }
        let resolved = view.resolve(&self.path, Walk::WriteLink)?;
        let subtree = checked.is_none().then_some(Action::ALL);
        let wanted = Wanted { parent: Some(Action::WRITE), subtree, ignore_empty: true, ..Wanted::default() };
        view.check(&resolved, wanted)?;
        checked.cloned().unwrap_or(Ok(()))?;
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
