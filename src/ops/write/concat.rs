//! concat: the blocks of several files of one directory go to the end of another.

use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::Walk;
use namespace::quota::{add, difference};
use record::InodeHandle;
use std::borrow::Cow;
use vocab::quota::Usage;
use vocab::{Action, Refusal};

/// Joins files. The sources are gone afterwards.
#[derive(Clone, Debug)]
pub struct Concat {
    /// Target.
    pub target: Vec<u8>,
    /// Sources, in order.
    pub sources: Vec<Vec<u8>>,
}

fn illegal(text: String) -> Refusal {
    Refusal::HadoopIllegalArgument(text.into())
}

impl Write for Concat {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::Concat;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        let text = view.path_text(&self.target);
        view.check_safe_mode(|| format!("Cannot concat {text}"))?;
        self.check_paths(&view)?;
        let resolved = view.resolve(&self.target, Walk::Write)?;
        view.check_inode(&resolved, Action::WRITE)?;
        if view.zone_of_path(&resolved).is_some() {
            return Err(illegal("concat can not be called for files in an encryption zone.".to_owned()));
        }
        let target = view.file_named(resolved.last(), &text)?;
        if view.state.is_open(target) {
            return Err(illegal(format!("concat: target file {text} is under construction")));
        }
        let sources = self.sources(&view, target, &resolved.path_text())?;
        check_quota(&view, target, &sources)?;
        let path_of = |inode| Cow::Owned(view.state.tree.path_of(&view.state.store, inode));
        let record = Record::Concat {
            target: path_of(target),
            sources: sources.iter().map(|s| path_of(*s)).collect(),
            time: view.now.wall,
            rpc: view.caller.rpc_ids,
        };
        turn.log(record);
        Ok(())
    }
}

/// That no snapshot knows a source, neither here nor under an older name.
fn check_not_in_snapshot(view: &View<'_>, file: InodeHandle, text: &str) -> Result<(), Refusal> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    if tree.is_kept_by_snapshot(store, file) {
        return Err(Refusal::Snapshot(format!("Concat: the source file {text} is in snapshot").into()));
    }
    if tree.snapshots.references(file).is_some_and(|r| !r.names.is_empty()) {
        let text = format!("Concat: the source file {text} is referred by some other reference in some snapshot.");
        return Err(Refusal::Snapshot(text.into()));
    }
    Ok(())
}

impl Concat {
    /// That there are paths, none of them of one that concat does not take.
    fn check_paths(&self, view: &View<'_>) -> Result<(), Refusal> {
        if self.target.is_empty() {
            return Err(Refusal::IllegalArgument("Target file name is empty".into()));
        }
        if self.sources.is_empty() {
            return Err(Refusal::IllegalArgument("No sources given".into()));
        }
        for path in std::iter::once(&self.target).chain(&self.sources) {
            if path.starts_with(b"/.reserved/raw") || path.starts_with(b"/.reserved/.inodes") {
                let text = view.path_text(path);
                return Err(Refusal::io(format!("Concat operation doesn't support .reserved relative path : {text}")));
            }
        }
        Ok(())
    }

    fn sources(&self, view: &View<'_>, target: InodeHandle, target_text: &str) -> Result<Vec<InodeHandle>, Refusal> {
        let (tree, store) = (&view.state.tree, &view.state.store);
        let Some(to) = tree.file_shape(store, target) else { return Ok(Vec::new()) };
        let mut sources: Vec<InodeHandle> = Vec::new();
        for path in &self.sources {
            let resolved = view.resolve(path, Walk::Write)?;
            view.check_inode(&resolved, Action::READ)?;
            view.check_parent(&resolved, Action::WRITE)?;
            let text = view.path_text(path);
            let file = view.file_named(resolved.last(), &text)?;
            if store.parent(file) != store.parent(target) {
                return Err(illegal(format!(
                    "Source file {text} is not in the same directory with the target {target_text}"
                )));
            }
            check_not_in_snapshot(view, file, &text)?;
            if file == target {
                return Err(illegal(format!(
                    "concat: the src file {text} is the same with the target file {target_text}"
                )));
            }
            if view.state.is_open(file) || store.block_count_of(file) == 0 {
                return Err(illegal(format!("concat: source file {text} is invalid or empty or underConstruction")));
            }
            let Some(shape) = tree.file_shape(store, file) else { continue };
            let from = shape.block_size;
            if from > to.block_size {
                return Err(illegal(format!(
                    "concat: source file {text} has preferred block size {from} which is greater than the target file's preferred block size {}",
                    to.block_size
                )));
            }
            if shape.erasure_coding_policy != to.erasure_coding_policy {
                return Err(illegal(format!(
                    "Source file {text} and target file {target_text} have different erasure coding policy"
                )));
            }
            if !sources.contains(&file) {
                sources.push(file);
            }
        }
        if sources.len() < self.sources.len() {
            return Err(illegal("concat: at least two of the source files are the same".to_owned()));
        }
        Ok(sources)
    }
}

/// Blocks take the target's replication: what that costs more must fit.
fn check_quota(view: &View<'_>, target: InodeHandle, sources: &[InodeHandle]) -> Result<(), Refusal> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let (Some(to), Some(parent)) = (tree.file_shape(store, target), store.parent(target)) else { return Ok(()) };
    let mut delta = Usage::default();
    for source in sources {
        if let Some(from) = tree.file_shape(store, *source) {
            let used = |shape| tree.blocks_usage(store, *source, shape, 0);
            add(&mut delta, &difference(&used(&to), &used(&from)));
        }
    }
    tree.verify_quota(store, parent, None, &delta)
}
