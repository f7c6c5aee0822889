//! Records of snapshots.

use super::{Mismatch, Paths, Plan, Planned, Unfit, text};
use crate::State;
use edit::Record;
use edit::rules::Rule;
use namespace::snapshot::Root;
use record::{InodeHandle, KindTag};

impl State {
    pub(super) fn plan_snapshots(&self, record: &Record<'_>, paths: &mut Paths<'_>) -> Planned {
        match record {
            Record::AllowSnapshot { root } => match self.snapshot_directory(root, paths)? {
                (_, Some(_)) => Err(Unfit::NoOp(Rule::AllowSnapshotTwice)),
                (directory, None) => Ok(Plan::Inode(directory)),
            },
            Record::DisallowSnapshot { root } => match self.snapshot_directory(root, paths)? {
                (_, None) => Err(Unfit::NoOp(Rule::DisallowSnapshotNotAllowed)),
                (_, Some(allowed)) if !allowed.snapshots.is_empty() => refuse("The directory has snapshots", root),
                (directory, Some(_)) => Ok(Plan::Inode(directory)),
            },
            Record::CreateSnapshot { root, name, .. } => match self.snapshot_directory(root, paths)? {
                (_, None) => refuse("The directory is not snapshottable", root),
                (_, Some(allowed)) if allowed.snapshot(name).is_some() => {
                    refuse("The name of a snapshot is taken", name)
                }
                (directory, Some(_)) => Ok(Plan::Inode(directory)),
            },
            Record::DeleteSnapshot { root, name, .. } => match self.snapshot_directory(root, paths)? {
                (_, None) => refuse("The directory is not snapshottable", root),
                (_, Some(allowed)) if allowed.snapshot(name).is_none() => Err(Unfit::NoOp(Rule::DeleteSnapshotMissing)),
                (directory, Some(_)) => Ok(Plan::Inode(directory)),
            },
            Record::RenameSnapshot { root, old, new, .. } => match self.snapshot_directory(root, paths)? {
                (_, None) => refuse("The directory is not snapshottable", root),
                (_, Some(allowed)) if allowed.snapshot(old).is_none() => refuse("There is no such snapshot", old),
                (_, Some(allowed)) if old != new && allowed.snapshot(new).is_some() => {
                    refuse("The name of a snapshot is taken", new)
                }
                (directory, Some(_)) => Ok(Plan::Inode(directory)),
            },
            other => Err(Mismatch::new(format!("A record that nothing handles: {other:?}")).into()),
        }
    }

    fn snapshot_directory(&self, path: &[u8], paths: &mut Paths<'_>) -> Result<(InodeHandle, Option<&Root>), Unfit> {
        let inode = self.existing(path, paths)?;
        if self.store.kind(inode) != KindTag::Directory {
            return Err(Mismatch::new(format!("Path is not a directory: {}", text(path))).into());
        }
        Ok((inode, self.tree.snapshot_root(&self.store, inode)))
    }

    /// That nothing which goes has snapshots of its own.
    pub(super) fn without_snapshots(&self, inode: InodeHandle, path: &[u8]) -> Result<(), Unfit> {
        if self.tree.snapshot_roots_below(&self.store, inode).iter().any(|root| !root.snapshots.is_empty()) {
            return Err(Mismatch::new(format!("A directory with snapshots goes: {}", text(path))).into());
        }
        Ok(())
    }
}

fn refuse<T>(why: &str, what: &[u8]) -> Result<T, Unfit> {
    Err(Mismatch::new(format!("{why}: {}", text(what))).into())
}
