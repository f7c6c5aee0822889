//! mkdirs: a directory with its missing ancestors, one record each.

use super::new_node::CreateModes;
use crate::{Operation, Turn, View, Write};
use namespace::Walk;
use record::KindTag;
use vocab::{Action, Refusal};

/// Makes a directory. Answers true, also if it exists.
///
/// Quirk: `mkdirs_keeps_ancestors_when_a_quota_ends_it`: a refusal half way leaves the ancestors made so far, as in Hadoop.
#[derive(Clone, Debug)]
pub struct Mkdirs {
    /// Path.
    pub path: Vec<u8>,
    /// Mode of the last directory.
    pub modes: CreateModes,
    /// Whether missing ancestors are made too.
    pub create_parents: bool,
}

impl Write for Mkdirs {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::Mkdirs;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_path_length("mkdirs", &self.path)
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot create directory {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Create)?;
        if let Some(inode) = resolved.last() {
            return match view.state.store.kind(inode) {
                KindTag::File => Err(Refusal::FileAlreadyExists(
                    format!("Path is not a directory: {}", view.path_text(&self.path)).into(),
                )),
                _ => Ok(true),
            };
        }
        view.check_ancestor(&resolved, Action::WRITE)?;
        if !self.create_parents {
            view.check_parent_directory(&resolved)?;
        }
        view.check_object_count()?;
        let parent = turn.make_ancestors(&resolved, self.modes, false)?;
        turn.make_directory(parent, &resolved, resolved.depth(), self.modes)?;
        Ok(true)
    }
}
