//! allowSnapshot, disallowSnapshot, createSnapshot, renameSnapshot, deleteSnapshot. Order of checks and words are those of Hadoop's `FSDirSnapshotOp`
//! and `SnapshotManager`.

use crate::checks::{check_absolute, invalid_path};
use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::snapshot::Root;
use namespace::{Resolved, Walk};
use record::{InodeHandle, KindTag};
use state::RetryPayload;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::{InodeId, Refusal, TimeMs};

fn snapshot(text: String) -> Refusal {
    Refusal::Snapshot(text.into())
}

/// The directory of a path.
///
/// # Errors
/// `FileNotFound`, `PathIsNotDirectory`.
pub(crate) fn directory_of(view: &View<'_>, resolved: &Resolved<'_>) -> Result<InodeHandle, Refusal> {
    directory_as(view, resolved, || resolved.path_text())
}

/// As [`directory_of`], for a path that is shown otherwise.
pub(crate) fn directory_as(
    view: &View<'_>,
    resolved: &Resolved<'_>,
    shown: impl FnOnce() -> Arc<str>,
) -> Result<InodeHandle, Refusal> {
    match resolved.last() {
        None => Err(Refusal::not_found(format!("Directory does not exist: {}", shown()))),
        Some(inode) if view.state.store.kind(inode) == KindTag::Directory => Ok(inode),
        Some(_) => Err(Refusal::PathIsNotDirectory(shown())),
    }
}

/// The snapshots of a directory that allows them. The root always does, though with room for none until it is told to.
///
/// # Errors
/// As [`directory_of`]; `Snapshot`.
pub(crate) fn root_of<'a>(
    view: &View<'a>,
    resolved: &Resolved<'_>,
) -> Result<(InodeHandle, Option<&'a Root>), Refusal> {
    let directory = directory_of(view, resolved)?;
    let root = view.state.tree.snapshot_root(&view.state.store, directory);
    // a snapshot itself has none
    let is_snapshot = root.is_some_and(|root| root.by_id(resolved.snapshot()).is_some());
    if is_snapshot || root.is_none() && directory != view.state.tree.root() {
        return Err(snapshot(format!("Directory is not a snapshottable directory: {}", resolved.path_text())));
    }
    Ok((directory, root))
}

/// Walks the path of a directory whose snapshots change; the caller must own it.
fn owned<'p>(view: &View<'_>, path: &'p [u8]) -> Result<Resolved<'p>, Refusal> {
    let resolved = view.resolve(path, Walk::Write)?;
    if view.settings.permissions {
        view.check_owner(&resolved)?;
    }
    Ok(resolved)
}

/// Walks the path of a directory that gets or loses its permission to have snapshots; the caller is a superuser.
///
/// Quirk: a_file_above_a_directory_to_allow_is_no_access_refusal: unlike other calls these two name the file as it is
fn walked<'p>(view: &View<'_>, path: &'p [u8]) -> Result<Resolved<'p>, Refusal> {
    check_absolute(path)?;
    // reserved names mean nothing here either
    if path.starts_with(b"/.reserved/") {
        return Err(Refusal::not_found(format!("Directory does not exist: {}", view.path_text(path))));
    }
    let resolved = view.state.tree.resolve(&view.state.store, path)?;
    view.checker().traverse_unchecked(&resolved)?;
    if resolved.is_past() {
        return Err(Refusal::SnapshotIsReadOnly);
    }
    Ok(resolved)
}

fn check_name(view: &View<'_>, name: &[u8], path: &[u8]) -> Result<(), Refusal> {
    if name.contains(&b'/') {
        return Err(Refusal::HadoopIllegalArgument("Snapshot name cannot contain \"/\"".into()));
    }
    let limit = view.settings.component_length;
    if name == b".snapshot" {
        return Err(Refusal::HadoopIllegalArgument("\".snapshot\" is a reserved name.".into()));
    }
    if limit != 0 && name.len() > limit {
        let (parent, child) = (view.path_text(path), view.path_text(name));
        return Err(Refusal::ComponentTooLong { limit, length: name.len(), parent, child });
    }
    Ok(())
}

/// Lets a directory have snapshots.
#[derive(Clone, Debug)]
pub struct AllowSnapshot {
    /// Path.
    pub path: Vec<u8>,
}

impl Write for AllowSnapshot {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::AllowSnapshot;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot allow snapshot for {}", view.path_text(&self.path)))?;
        let resolved = walked(&view, &self.path)?;
        let directory = directory_as(&view, &resolved, || view.path_text(&self.path))?;
        let (tree, store) = (&view.state.tree, &view.state.store);
        let mut others: Vec<_> = tree.snapshots.roots().filter(|(_, root)| root.directory != directory).collect();
        in_order_of_hadoop(&mut others);
        for (_, other) in others {
            let which = if tree.is_below(store, other.directory, directory) {
                "subdirectory"
            } else if tree.is_below(store, directory, other.directory) {
                "ancestor"
            } else {
                continue;
            };
            return Err(snapshot(format!(
                "Nested snapshottable directories not allowed: path={}, the {which} {} is already a snapshottable directory.",
                view.path_text(&self.path),
                view.path_text(&tree.path_of(store, other.directory))
            )));
        }
        if tree.snapshot_root(store, directory).is_none() {
            let root = Cow::Owned(resolved.path());
            turn.log(Record::AllowSnapshot { root });
        }
        Ok(())
    }
}

/// Of several directories that are in the way Hadoop names the first of a hash map by inode id (`ConcurrentHashMap`).
fn in_order_of_hadoop(roots: &mut [(InodeId, &Root)]) {
    let buckets = (roots.len() as u64 * 4 / 3 + 1).next_power_of_two().max(16);
    let bucket = |id: InodeId| {
        let folded = (id.0 as u64 ^ id.0 as u64 >> 32) & u64::from(u32::MAX);
        (folded ^ folded >> 16) & (buckets - 1)
    };
    roots.sort_by_key(|(id, _)| (bucket(*id), *id));
}

/// Takes that permission back.
#[derive(Clone, Debug)]
pub struct DisallowSnapshot {
    /// Path.
    pub path: Vec<u8>,
}

impl Write for DisallowSnapshot {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::DisallowSnapshot;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot disallow snapshot for {}", view.path_text(&self.path)))?;
        let resolved = walked(&view, &self.path)?;
        let directory = directory_as(&view, &resolved, || view.path_text(&self.path))?;
        let Some(root) = view.state.tree.snapshot_root(&view.state.store, directory) else { return Ok(()) };
        if !root.snapshots.is_empty() {
            return Err(snapshot(format!(
                "The directory {} has snapshot(s). Please redo the operation after removing all the snapshots.",
                view.path_text(&self.path)
            )));
        }
        let root = Cow::Owned(resolved.path());
        turn.log(Record::DisallowSnapshot { root });
        Ok(())
    }
}

/// Takes a snapshot. Answers its path.
#[derive(Clone, Debug)]
pub struct CreateSnapshot {
    /// Path of the directory.
    pub path: Vec<u8>,
    /// Name; empty for one made of the time.
    pub name: Vec<u8>,
}

impl Write for CreateSnapshot {
    type Prepared = ();
    type Reply = Arc<str>;
    const OPERATION: Operation = Operation::CreateSnapshot;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_path_length("createSnapshot", &self.path)
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<Arc<str>, Refusal> {
        if let Some(RetryPayload::Path(path)) = turn.cached().map(|e| &e.payload) {
            return Ok(path.clone());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot create snapshot for {}", view.path_text(&self.path)))?;
        let resolved = owned(&view, &self.path)?;
        let name = if self.name.is_empty() {
            default_name(view.now.wall).into_bytes()
        } else if matches!(&self.name[..], b"." | b".." | b".snapshot" | b".reserved")
            || self.name.iter().any(|b| matches!(b, b'/' | b':'))
        {
            return Err(invalid_path(&format!("Invalid snapshot name: {}", view.path_text(&self.name))));
        } else {
            self.name.clone()
        };
        check_name(&view, &name, &self.path)?;
        let (_, root) = root_of(&view, &resolved)?;
        check_room(&view, root, &name)?;
        let (path, mtime, rpc) = (Cow::Owned(resolved.path()), view.snapshot_time(), view.caller.rpc_ids);
        let answer = snapshot_path(&self.path, &name);
        turn.log(Record::CreateSnapshot { root: path, name: Cow::Owned(name), mtime, rpc });
        Ok(answer)
    }
}

fn check_room(view: &View<'_>, root: Option<&Root>, name: &[u8]) -> Result<(), Refusal> {
    let limit = |count: usize, most: usize, kind: &str| {
        let text = format!("there are already {count} snapshot(s) and the {kind} snapshot limit is {most}");
        if count >= most { Err(snapshot(format!("Failed to create snapshot: {text}"))) } else { Ok(()) }
    };
    limit(view.state.tree.snapshots.count(), view.settings.snapshots_of_all, "file system")?;
    let (count, quota) = root.map_or((0, 0), |r| (r.snapshots.len(), r.quota as usize));
    if count + 1 > quota {
        let text = format!("there are already {count} snapshot(s) and the snapshot quota is {quota}");
        return Err(snapshot(format!("Failed to add snapshot: {text}")));
    }
    limit(count, view.settings.snapshots_of_directory, "per directory")?;
    if root.is_some_and(|r| r.snapshot(name).is_some()) {
        let name = view.path_text(name);
        let text = format!("Failed to add snapshot: there is already a snapshot with the same name \"{name}\".");
        return Err(snapshot(text));
    }
    Ok(())
}

/// Path of a snapshot as clients name it.
fn snapshot_path(root: &[u8], name: &[u8]) -> Arc<str> {
    let root = String::from_utf8_lossy(root);
    let name = String::from_utf8_lossy(name);
    format!("{}/.snapshot/{name}", root.strip_suffix('/').unwrap_or(&root)).into()
}

/// `s20261130-111235.098`, in UTC.
fn default_name(time: TimeMs) -> String {
    let ms = time.0.max(0);
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    // days since 1970-01-01 as a date of the Gregorian calendar, counted from March of year 0
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    format!("s{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}.{:03}", of_day % 1_000)
}

/// Gives a snapshot another name.
#[derive(Clone, Debug)]
pub struct RenameSnapshot {
    /// Path of the directory.
    pub path: Vec<u8>,
    /// Name.
    pub old: Vec<u8>,
    /// New name.
    pub new: Vec<u8>,
}

impl Write for RenameSnapshot {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::RenameSnapshot;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        if self.new.is_empty() {
            return Err(Refusal::io("The new snapshot name is null or empty."));
        }
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot rename snapshot for {}", view.path_text(&self.path)))?;
        let resolved = owned(&view, &self.path)?;
        check_name(&view, &self.new, &self.path)?;
        let (_, root) = root_of(&view, &resolved)?;
        let path = view.path_text(&self.path);
        let there = |name: &[u8]| root.is_some_and(|r| r.snapshot(name).is_some());
        if !there(&self.old) {
            let name = view.path_text(&self.old);
            return Err(snapshot(format!("The snapshot {name} does not exist for directory {path}")));
        }
        if self.new != self.old && there(&self.new) {
            let name = view.path_text(&self.new);
            return Err(snapshot(format!("The snapshot {name} already exists for directory {path}")));
        }
        let (root, mtime, rpc) = (Cow::Owned(resolved.path()), view.snapshot_time(), view.caller.rpc_ids);
        let (old, new) = (Cow::Borrowed(&self.old[..]), Cow::Borrowed(&self.new[..]));
        turn.log(Record::RenameSnapshot { root, old, new, mtime, rpc });
        Ok(())
    }
}

/// Deletes a snapshot.
#[derive(Clone, Debug)]
pub struct DeleteSnapshot {
    /// Path of the directory.
    pub path: Vec<u8>,
    /// Name.
    pub name: Vec<u8>,
}

impl Write for DeleteSnapshot {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::DeleteSnapshot;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        if self.name.is_empty() {
            return Err(Refusal::io("The snapshot name is null or empty."));
        }
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot delete snapshot for {}", view.path_text(&self.path)))?;
        let resolved = owned(&view, &self.path)?;
        let (_, root) = root_of(&view, &resolved)?;
        if root.is_none_or(|r| r.snapshot(&self.name).is_none()) {
            let (name, path) = (view.path_text(&self.name), resolved.path_text());
            return Err(snapshot(match view.policy.ordered_snapshot_deletion {
                true => format!("Cannot find the snapshot of directory {path} with name {name}"),
                false => format!("Cannot delete snapshot {name} from path {path}: the snapshot does not exist."),
            }));
        }
        let id = root.and_then(|r| r.snapshot(&self.name)).map(|s| s.id);
        let (tree, store) = (&view.state.tree, &view.state.store);
        if id.is_some_and(|id| tree.snapshot_deletion_cuts_stripes(store, id)) {
            return Err(cut_stripes());
        }
        let (root, mtime, rpc) = (Cow::Owned(resolved.path()), view.snapshot_time(), view.caller.rpc_ids);
        turn.log(Record::DeleteSnapshot { root, name: Cow::Borrowed(&self.name), mtime, rpc });
        Ok(())
    }
}

/// Hadoop's refusal, said of nothing.
fn cut_stripes() -> Refusal {
    Refusal::IllegalState("".into())
}

impl View<'_> {
    /// That Hadoop's name node could replay the record of a deletion.
    ///
    /// Quirk: striped_files_renamed_out_of_a_snapshot_are_not_deleted: Hadoop stops at a striped file that is to be cut back to the blocks that a
    /// snapshot holds of it, half of the deletion done in memory and none of it logged; here nothing is done
    ///
    /// # Errors
    /// `IllegalState`.
    pub(crate) fn check_stripes_of_snapshots(&self, inode: InodeHandle) -> Result<(), Refusal> {
        match self.state.tree.deletion_cuts_stripes(&self.state.store, inode) {
            true => Err(cut_stripes()),
            false => Ok(()),
        }
    }

    /// That nothing from an inode down has snapshots of its own, before it is deleted or renamed (`FSDirSnapshotOp.checkSnapshot`).
    ///
    /// # Errors
    /// `Snapshot`.
    pub(crate) fn check_without_snapshots(&self, inode: InodeHandle) -> Result<(), Refusal> {
        let (tree, store) = (&self.state.tree, &self.state.store);
        if tree.snapshots.root_count() == 0 {
            return Ok(());
        }
        match tree.snapshot_roots_below(store, inode).iter().find(|root| !root.snapshots.is_empty()) {
            None => Ok(()),
            Some(root) => {
                let path = self.path_text(&tree.path_of(store, root.directory));
                Err(snapshot(format!(
                    "The directory {path} cannot be deleted since {path} is snapshottable and already has snapshots"
                )))
            }
        }
    }

    /// That a rename brings no directory that allows snapshots below another one, and, where snapshots are deleted in order, nothing out of one.
    ///
    /// # Errors
    /// `Snapshot`.
    pub(crate) fn check_snapshots_of_rename(
        &self,
        inode: InodeHandle,
        from: &Resolved<'_>,
        to: &Resolved<'_>,
    ) -> Result<(), Refusal> {
        let (tree, store) = (&self.state.tree, &self.state.store);
        let Some(parent) = to.parent().filter(|_| tree.snapshots.root_count() > 0) else { return Ok(()) };
        let root_of = |below: InodeHandle| {
            let mut all = tree.snapshots.roots().map(|(_, root)| root.directory);
            all.find(|root| tree.is_below(store, below, *root))
        };
        let target_root = root_of(parent);
        if target_root.is_some() && !tree.snapshot_roots_below(store, inode).is_empty() {
            return Err(snapshot(format!(
                "Unable to rename because {} has snapshottable descendant directories and {} is a descent of a snapshottable directory, and HDFS does not support nested snapshottable directory.",
                from.path_text(),
                self.path_text(&tree.path_of(store, parent))
            )));
        }
        if self.policy.ordered_snapshot_deletion && from.parent().and_then(root_of) != target_root {
            let (source, target) = (from.path_text(), to.path_text());
            return Err(snapshot(format!("Source {source} and dest {target} are not under the same snapshot root.")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_the_time() {
        assert_eq!(default_name(TimeMs(1_796_037_155_098)), "s20261130-111235.098");
        assert_eq!(default_name(TimeMs(951_782_400_000)), "s20000229-000000.000");
        assert_eq!(default_name(TimeMs(0)), "s19700101-000000.000");
    }
}
