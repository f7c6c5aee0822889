//! rename in its two forms: the old one answers false where it cannot, the new one says why and may replace its target.

use crate::checks::invalid_path;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use edit::record::RenameOption;
use namespace::quota::difference;
use namespace::resolve::is_exactly_reserved;
use namespace::{Resolved, Walk, Wanted};
use record::{InodeHandle, KindTag};
use state::RetryPayload;
use vocab::quota::Usage;
use vocab::{Action, Refusal};

/// The two-argument rename. Into the target if that is a directory; answers false for most refusals.
#[derive(Clone, Debug)]
pub struct Rename {
    /// Source.
    pub source: Vec<u8>,
    /// Target.
    pub target: Vec<u8>,
}

/// The rename with options.
#[derive(Clone, Debug)]
pub struct Rename2 {
    /// Source.
    pub source: Vec<u8>,
    /// Target.
    pub target: Vec<u8>,
    /// Whether an existing target is replaced.
    pub overwrite: bool,
    /// Whether this is a move to trash: it needs the rights of a delete.
    pub to_trash: bool,
}

fn check_access(view: &View<'_>, from: &Resolved<'_>, to: &Resolved<'_>, to_trash: bool) -> Result<(), Refusal> {
    let subtree = to_trash.then_some(Action::ALL);
    view.check(from, Wanted { parent: Some(Action::WRITE), subtree, ignore_empty: to_trash, ..Wanted::default() })?;
    view.check_ancestor(to, Action::WRITE)?;
    view.check_protected(from)
}

/// The source, which must exist and not be the root.
fn source(from: &Resolved<'_>) -> Result<InodeHandle, Refusal> {
    let inode =
        from.last().ok_or_else(|| Refusal::not_found(format!("rename source {} is not found.", from.path_text())))?;
    if from.depth() == 0 {
        return Err(Refusal::io("rename source cannot be the root"));
    }
    Ok(inode)
}

fn check_target(view: &View<'_>, inode: InodeHandle, from: &Resolved<'_>, to: &Resolved<'_>) -> Result<(), Refusal> {
    let (source, target) = (from.plain(), to.plain());
    let tree = &view.state.tree;
    if view.state.store.kind(inode) == KindTag::Symlink && tree.symlink_target(inode) == &*target {
        let text = format!("Cannot rename symlink {} to its target {}", from.path_text(), to.path_text());
        return Err(Refusal::FileAlreadyExists(text.into()));
    }
    if target.strip_prefix(&source[..]).is_some_and(|rest| rest.first() == Some(&b'/')) {
        let text =
            format!("Rename destination {} is a directory or file under source {}", to.path_text(), from.path_text());
        return Err(Refusal::Io(text.into()));
    }
    if is_exactly_reserved(&source) || is_exactly_reserved(&target) {
        return Err(invalid_path("Cannot rename to or from /.reserved"));
    }
    Ok(())
}

/// Limits of names and directories, then quotas above the target that are not above the source.
fn check_limits(view: &View<'_>, inode: InodeHandle, from: &Resolved<'_>, to: &Resolved<'_>) -> Result<(), Refusal> {
    let (Some(old_parent), Some(parent)) = (from.parent(), to.parent()) else { return Ok(()) };
    view.check_name(parent, to, to.depth())?;
    let (tree, store) = (&view.state.tree, &view.state.store);
    if old_parent != parent {
        view.check_directory_items(parent, to, to.depth())?;
    }
    if tree.snapshots.is_empty() && (old_parent == parent || tree.only_root_has_quota(store)) {
        return Ok(());
    }
    // Quirk: a_rename_into_snapshots_counts_as_new: all quotas above the target are asked, those above the source too, if a snapshot knows the
    // directory that both are in; as if nothing went where it was
    let common = if old_parent == parent { parent } else { tree.common_ancestor(store, old_parent, parent) };
    let latest = match to.last() {
        Some(old) => tree.latest_snapshot(store, old),
        None => tree.latest_snapshot_below(store, parent),
    };
    let counts_as_new = tree.in_latest(store, common, latest);
    if !counts_as_new && (parent == common || !tree.has_quota_below(store, parent, common)) {
        return Ok(());
    }
    let gone = to.last().map_or(Usage::default(), |old| tree.subtree_usage_known(store, old));
    let delta = difference(&tree.subtree_usage_in(store, inode, parent), &gone);
    tree.verify_quota(store, parent, Some(common).filter(|_| !counts_as_new), &delta)
}

impl Write for Rename {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::Rename;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_path_length("rename", &self.target)
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        if let Some(RetryPayload::Answer(answer)) = turn.cached().map(|e| &e.payload) {
            return Ok(*answer);
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot rename {}", view.path_text(&self.source)))?;
        let from = view.resolve(&self.source, Walk::WriteLink)?;
        let mut to = view.resolve(&self.target, Walk::CreateLink)?;
        let mut into = Vec::new();
        if to.last().is_some_and(|d| view.state.store.kind(d) == KindTag::Directory) {
            into = to.path();
            into.push(b'/');
            into.extend_from_slice(from.name());
        }
        if !into.is_empty() {
            // Quirk: a_rename_into_a_directory_out_of_a_snapshot: Hadoop forgets here, until a restart, that a directory which a rename brought is in
            // a snapshot: that one shows what comes instead of what it has, and snapshots where it came from may not keep what it was
            to = view.state.tree.resolve(&view.state.store, &into)?;
        }
        check_access(&view, &from, &to, false)?;
        let Ok(inode) = source(&from) else { return Ok(false) };
        view.check_without_snapshots(inode)?;
        let (src, dst, places) = (from.plain(), to.plain(), [from.place(), to.place()]);
        let same = src == dst;
        let record = Record::RenameOld { src, dst, time: view.now.wall, rpc: view.caller.rpc_ids };
        if same {
            // Changes nothing, but Hadoop's log has it too. Of a directory its replay would make a move into itself.
            if view.state.store.kind(inode) != KindTag::Directory {
                turn.log_at(&record, &places);
            }
            return Ok(true);
        }
        match check_target(&view, inode, &from, &to) {
            Err(refusal @ Refusal::InvalidPath(_)) => return Err(refusal),
            Err(_) => return Ok(false),
            Ok(()) if to.last().is_some() || to.parent().is_none() => return Ok(false),
            Ok(()) => {}
        }
        view.check_snapshots_of_rename(inode, &from, &to)?;
        view.check_move_between_zones(&from, &to)?;
        check_limits(&view, inode, &from, &to)?;
        turn.log_at(&record, &places);
        Ok(true)
    }
}

impl Write for Rename2 {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::Rename2;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_path_length("rename", &self.target)
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot rename {}", view.path_text(&self.source)))?;
        let from = view.resolve(&self.source, Walk::WriteLink)?;
        let to = view.resolve(&self.target, Walk::CreateLink)?;
        check_access(&view, &from, &to, self.to_trash)?;
        let inode = source(&from)?;
        view.check_without_snapshots(inode)?;
        if from.plain() == to.plain() {
            let text = format!("The source {} and destination {} are the same", from.path_text(), to.path_text());
            return Err(Refusal::FileAlreadyExists(text.into()));
        }
        check_target(&view, inode, &from, &to)?;
        if to.depth() == 0 {
            return Err(Refusal::io("rename destination cannot be the root"));
        }
        if let Some(old) = to.last() {
            self.check_overwrite(&view, inode, old, &from, &to)?;
            view.check_without_snapshots(old)?;
        }
        match to.parent() {
            None => return Err(Refusal::not_found(format!("rename destination parent {} not found.", to.path_text()))),
            Some(parent) if view.state.store.kind(parent) != KindTag::Directory => {
                let text = format!("rename destination parent {} is a file.", to.path_text());
                return Err(Refusal::ParentNotDirectory(text.into()));
            }
            Some(_) => {}
        }
        view.check_snapshots_of_rename(inode, &from, &to)?;
        view.check_move_between_zones(&from, &to)?;
        check_limits(&view, inode, &from, &to)?;
        to.last().map_or(Ok(()), |old| view.check_stripes_of_snapshots(old))?;
        let mut options = Vec::with_capacity(2);
        if self.overwrite {
            options.push(RenameOption::Overwrite);
        }
        if self.to_trash {
            options.push(RenameOption::ToTrash);
        }
        if options.is_empty() {
            options.push(RenameOption::None);
        }
        let record = Record::Rename {
            src: from.plain(),
            dst: to.plain(),
            time: view.now.wall,
            options,
            rpc: view.caller.rpc_ids,
        };
        turn.log_at(&record, &[from.place(), to.place()]);
        Ok(())
    }
}

impl Rename2 {
    fn check_overwrite(
        &self,
        view: &View<'_>,
        inode: InodeHandle,
        old: InodeHandle,
        from: &Resolved<'_>,
        to: &Resolved<'_>,
    ) -> Result<(), Refusal> {
        let directory = |i| view.state.store.kind(i) == KindTag::Directory;
        let target = || to.path_text();
        if directory(inode) != directory(old) {
            return Err(Refusal::io(format!(
                "Source {} and destination {} must both be directories",
                from.path_text(),
                target()
            )));
        }
        if !self.overwrite {
            return Err(Refusal::FileAlreadyExists(format!("rename destination {} already exists", target()).into()));
        }
        if view.state.store.children(old).1 > 0 {
            return Err(Refusal::io(format!("rename destination directory is not empty: {}", target())));
        }
        Ok(())
    }
}
