//! Records that make, move and remove names.

use super::{Mismatch, Plan, Planned, Unfit, missing, text};
use crate::State;
use edit::record::RenameOption;
use edit::rules::Rule;
use namespace::Resolved;
use record::{InodeHandle, KindTag};
use vocab::InodeId;
use vocab::path::{components, name};

impl State {
    pub(super) fn plan_mkdir(&self, id: InodeId, path: &[u8]) -> Planned {
        let resolved = self.walk(path)?;
        if resolved.last().is_some() {
            // Rule 6: nothing but the id counter moves.
            return Ok(Plan::RaiseInode);
        }
        let parent = self.parent_directory(&resolved)?;
        self.fresh_inode(id, path)?;
        Ok(Plan::Create { parent, replaces: None })
    }

    pub(super) fn plan_symlink(&self, id: InodeId, path: &[u8]) -> Planned {
        let resolved = self.walk(path)?;
        if resolved.last().is_some() {
            return Err(Mismatch::new(format!("The path of a new symlink exists: {}", text(path))).into());
        }
        let parent = self.parent_directory(&resolved)?;
        self.fresh_inode(id, path)?;
        Ok(Plan::Create { parent, replaces: None })
    }

    pub(super) fn plan_delete(&self, path: &[u8]) -> Planned {
        let resolved = self.walk(path)?;
        match resolved.last() {
            None => Err(Unfit::NoOp(Rule::DeleteMissing)),
            Some(inode) if inode == self.tree.root() => Err(Unfit::NoOp(Rule::DeleteRoot)),
            Some(inode) => Ok(Plan::Delete(inode)),
        }
    }

    /// The two-argument rename: into the target if that is a directory; refusals are no-ops.
    pub(super) fn plan_rename_old(&self, src: &[u8], dst: &[u8]) -> Planned {
        let from = self.walk(src)?;
        let Some(inode) = from.last().filter(|i| *i != self.tree.root()) else {
            return Err(Unfit::NoOp(Rule::RenameOldSourceMissing));
        };
        let mut target = dst.to_vec();
        if self.walk(dst)?.last().is_some_and(|d| self.store.kind(d) == KindTag::Directory) {
            target.push(b'/');
            target.extend_from_slice(name(src));
        }
        let to = self.walk(&target)?;
        match to.last() {
            Some(target) if target == inode => return Ok(Plan::Inode(inode)), // onto itself
            Some(_) => return Err(Unfit::NoOp(Rule::RenameOldTargetExists)),
            None => {}
        }
        let parent = to.parent().filter(|p| self.store.kind(*p) == KindTag::Directory);
        let Some(parent) = parent else { return Err(Unfit::NoOp(Rule::RenameOldTargetParentMissing)) };
        self.not_below(&from, &to)?;
        Ok(Plan::Rename { inode, parent, name: to.name().to_vec(), replaces: None })
    }

    pub(super) fn plan_rename(&self, src: &[u8], dst: &[u8], options: &[RenameOption]) -> Planned {
        let from = self.walk(src)?;
        let inode = from.last().ok_or_else(|| missing(src))?;
        let to = self.walk(dst)?;
        let parent = self.parent_directory(&to)?;
        let replaces = to.last();
        if let Some(target) = replaces {
            self.may_replace(inode, target, &to, options)?;
        }
        self.not_below(&from, &to)?;
        Ok(Plan::Rename { inode, parent, name: to.name().to_vec(), replaces })
    }

    fn may_replace(
        &self,
        inode: InodeHandle,
        target: InodeHandle,
        to: &Resolved<'_>,
        options: &[RenameOption],
    ) -> Result<(), Unfit> {
        let refuse = |why: &str| Err(Mismatch::new(format!("{why}: {}", to.path_text())).into());
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

    fn not_below(&self, from: &Resolved<'_>, to: &Resolved<'_>) -> Result<(), Unfit> {
        if from.depth() == 0 || components(&from.path()).eq(components(&to.path()).take(from.depth())) {
            return Err(
                Mismatch::new(format!("Rename of {} below itself: {}", from.path_text(), to.path_text())).into()
            );
        }
        Ok(())
    }
}
