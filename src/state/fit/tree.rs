//! Records that make, move and remove names.

use super::{Mismatch, Paths, Plan, Planned, Unfit, missing, text};
use crate::State;
use edit::record::RenameOption;
use edit::rules::Rule;
use record::{InodeHandle, KindTag};
use vocab::InodeId;
use vocab::path::name;

impl State {
    pub(super) fn plan_mkdir(&self, id: InodeId, path: &[u8], paths: &mut Paths<'_>) -> Planned {
        let place = self.place(path, paths)?;
        if place.last.is_some() {
            // Rule 6: nothing but the id counter moves.
            return Ok(Plan::RaiseInode);
        }
        let parent = self.parent_directory(&place, path)?;
        self.fresh_inode(id, path)?;
        Ok(Plan::Create { parent, replaces: None })
    }

    pub(super) fn plan_symlink(&self, id: InodeId, path: &[u8], paths: &mut Paths<'_>) -> Planned {
        let place = self.place(path, paths)?;
        if place.last.is_some() {
            return Err(Mismatch::new(format!("The path of a new symlink exists: {}", text(path))).into());
        }
        let parent = self.parent_directory(&place, path)?;
        self.fresh_inode(id, path)?;
        Ok(Plan::Create { parent, replaces: None })
    }

    pub(super) fn plan_delete(&self, path: &[u8], paths: &mut Paths<'_>) -> Planned {
        match self.place(path, paths)?.last {
            None => Err(Unfit::NoOp(Rule::DeleteMissing)),
            Some(inode) if inode == self.tree.root() => Err(Unfit::NoOp(Rule::DeleteRoot)),
            Some(inode) => {
                self.without_snapshots(inode, path)?;
                Ok(Plan::Delete(inode))
            }
        }
    }

    /// The two-argument rename: into the target if that is a directory; refusals are no-ops.
    pub(super) fn plan_rename_old(&self, src: &[u8], dst: &[u8], paths: &mut Paths<'_>) -> Planned {
        let Some(inode) = self.place(src, paths)?.last.filter(|i| *i != self.tree.root()) else {
            return Err(Unfit::NoOp(Rule::RenameOldSourceMissing));
        };
        let (mut to, mut new_name) = (self.place(dst, paths)?, self.name_in(dst));
        if let Some(directory) = to.last.filter(|d| self.store.kind(*d) == KindTag::Directory) {
            new_name = name(src).to_vec();
            to = namespace::Place { parent: Some(directory), last: self.tree.child(&self.store, directory, &new_name) };
        }
        match to.last {
            Some(target) if target == inode => return Ok(Plan::Inode(inode)), // onto itself
            Some(_) => return Err(Unfit::NoOp(Rule::RenameOldTargetExists)),
            None => {}
        }
        let parent = to.parent.filter(|p| self.store.kind(*p) == KindTag::Directory);
        let Some(parent) = parent else { return Err(Unfit::NoOp(Rule::RenameOldTargetParentMissing)) };
        // Rule 23: Hadoop logs a rename of a directory onto itself as it was asked, and reads it as one into itself
        self.not_below(inode, parent, src, dst).map_err(|_| Unfit::NoOp(Rule::RenameOldBelowItself))?;
        Ok(Plan::Rename { inode, parent, name: new_name, replaces: None })
    }

    pub(super) fn plan_rename(
        &self,
        src: &[u8],
        dst: &[u8],
        options: &[RenameOption],
        paths: &mut Paths<'_>,
    ) -> Planned {
        let inode = self.place(src, paths)?.last.ok_or_else(|| missing(src))?;
        let to = self.place(dst, paths)?;
        let parent = self.parent_directory(&to, dst)?;
        if let Some(target) = to.last {
            self.may_replace(inode, target, dst, options)?;
        }
        self.not_below(inode, parent, src, dst)?;
        Ok(Plan::Rename { inode, parent, name: self.name_in(dst), replaces: to.last })
    }

    /// The name that a path gives to a new inode.
    fn name_in(&self, path: &[u8]) -> Vec<u8> {
        if !path.starts_with(b"/.reserved/") {
            return name(path).to_vec();
        }
        // a path by inode id may end in the id
        self.tree.resolve(&self.store, path).map_or_else(|_| name(path).to_vec(), |r| r.name().to_vec())
    }

    fn may_replace(
        &self,
        inode: InodeHandle,
        target: InodeHandle,
        to: &[u8],
        options: &[RenameOption],
    ) -> Result<(), Unfit> {
        let refuse = |why: &str| Err(Mismatch::new(format!("{why}: {}", text(to))).into());
        if !options.contains(&RenameOption::Overwrite) {
            return refuse("rename destination already exists");
        }
        if inode == target {
            return refuse("rename onto itself");
        }
        let directory = |i| self.store.kind(i) == KindTag::Directory;
        if directory(inode) != directory(target) {
            return refuse("source and destination of a rename must both be directories");
        }
        if self.store.children(target).1 > 0 {
            return refuse("rename destination directory is not empty");
        }
        Ok(())
    }

    /// That a directory is not the inode itself or below it.
    fn not_below(&self, inode: InodeHandle, directory: InodeHandle, from: &[u8], to: &[u8]) -> Result<(), Unfit> {
        // nothing is below a file, not even a file itself where `directory` is one
        let mut above = Some(directory).filter(|_| self.store.kind(inode) == KindTag::Directory);
        while let Some(current) = above {
            if current == inode {
                let text = format!("Rename of {} below itself: {}", text(from), text(to));
                return Err(Mismatch(text).into());
            }
            above = self.store.parent(current);
        }
        Ok(())
    }
}
