//! Purpose: what a record means for the state as it is: it fits (with its handles resolved), is a no-op by rule, or contradicts the state.
//! Called by: ops (before a record is appended), storage (replay).
//! Calls: namespace (walks), record, edit (rules).
//! Never: changes anything; lets a record through that `apply` could not carry out.
//! Invariants: the rules are those of edit/FORMAT.md; what a feature without operations needs is refused by the feature's name.

pub(crate) mod attributes;
mod caches;
mod files;
mod snapshots;
mod tree;

use crate::State;
use edit::Record;
use edit::rules::Rule;
use namespace::{Place, Walker};
use record::{InodeHandle, KindTag};
use smallvec::SmallVec;
use vocab::{InodeId, Policy};

/// Whether a record can be applied to the state as it is.
#[derive(Debug)]
pub enum Fit {
    /// It can; the handles are resolved.
    Fits(Fitted),
    /// It changes nothing, by this rule of replay. `apply` is not called.
    NoOp(Rule),
    /// It contradicts the state: on replay the log and the image do not belong together, live it is a broken invariant.
    Mismatch(Mismatch),
}

/// A contradiction, worded as Hadoop logs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch(pub String);

impl Mismatch {
    pub(crate) fn new(text: impl Into<String>) -> Mismatch {
        Mismatch(text.into())
    }
}

/// Resolved handles of a record; valid until the state changes, consumed by `apply`.
#[derive(Debug)]
pub struct Fitted {
    pub(crate) plan: Plan,
}

/// What a fitted record will do.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Counters and tables only.
    Tables,
    /// A record that only raises the last inode id to its own.
    RaiseInode,
    /// A new inode below `parent`, after the one at its name is deleted.
    Create { parent: InodeHandle, replaces: Option<InodeHandle> },
    /// One inode changes.
    Inode(InodeHandle),
    /// One inode leaves.
    Delete(InodeHandle),
    /// An inode gets another parent and name.
    Rename { inode: InodeHandle, parent: InodeHandle, name: Vec<u8>, replaces: Option<InodeHandle> },
    /// Blocks of the sources go to the target.
    Concat { target: InodeHandle, sources: SmallVec<[InodeHandle; 8]> },
}

/// Who applies: what follows from a transition differs, the transition does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A call of the active name node.
    Live,
    /// Replay at start-up.
    Restart,
    /// Tailing of the active's journal.
    Standby,
}

/// What a caller may want to know of a transition that has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// The inode made or changed, where there is one.
    pub inode: Option<InodeId>,
    /// Number of inodes that a delete (or an overwrite) has removed so far; more may go in slices.
    pub removed: u64,
}

/// Anything but a fit, on the way out.
pub(crate) enum Unfit {
    NoOp(Rule),
    Mismatch(Mismatch),
}

impl From<Mismatch> for Unfit {
    fn from(m: Mismatch) -> Unfit {
        Unfit::Mismatch(m)
    }
}

pub(crate) type Planned = Result<Plan, Unfit>;

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where the paths of a record lead.
#[derive(Debug)]
pub enum Paths<'p> {
    /// It is found by walking them.
    Walk(&'p mut Walker),
    /// Who made the record has walked them under the same hold: in the order of the record's fields, sources of a concat last.
    Known(&'p [Place]),
}

impl State {
    /// Whether `record` can be applied, with its paths resolved.
    pub fn fit(&self, record: &Record<'_>, policy: &Policy) -> Fit {
        self.fit_at(record, policy, Paths::Walk(&mut Walker::default()))
    }

    /// As [`State::fit`], where something is known of the paths already. Known places must be those that a walk would find.
    pub fn fit_at(&self, record: &Record<'_>, _policy: &Policy, mut paths: Paths<'_>) -> Fit {
        match self.plan(record, &mut paths) {
            Ok(plan) => Fit::Fits(Fitted { plan }),
            Err(Unfit::NoOp(rule)) => Fit::NoOp(rule),
            Err(Unfit::Mismatch(mismatch)) => Fit::Mismatch(mismatch),
        }
    }

    fn plan(&self, record: &Record<'_>, paths: &mut Paths<'_>) -> Planned {
        match record {
            Record::Add(add) => self.plan_add(add, paths),
            Record::Close(close) => self.plan_close(close, paths),
            Record::AddBlock { path, penultimate, last, .. } => {
                self.plan_add_block(path, penultimate.as_ref(), last, paths)
            }
            Record::UpdateBlocks { path, blocks, .. } => self.plan_update_blocks(path, blocks, paths),
            Record::Append { path, .. } => self.plan_append(path, paths),
            Record::Truncate { path, new_length, block, .. } => {
                self.plan_truncate(path, *new_length, block.as_ref(), paths)
            }
            Record::Concat { target, sources, .. } => self.plan_concat(target, sources, paths),
            Record::ReassignLease { path, .. } => self.plan_reassign(path, paths),
            Record::Mkdir { inode_id, path, .. } => self.plan_mkdir(*inode_id, path, paths),
            Record::Symlink { inode_id, path, .. } => self.plan_symlink(*inode_id, path, paths),
            Record::Delete { path, .. } => self.plan_delete(path, paths),
            Record::RenameOld { src, dst, .. } => self.plan_rename_old(src, dst, paths),
            Record::Rename { src, dst, options, .. } => self.plan_rename(src, dst, options, paths),
            Record::AllowSnapshot { .. }
            | Record::DisallowSnapshot { .. }
            | Record::CreateSnapshot { .. }
            | Record::DeleteSnapshot { .. }
            | Record::RenameSnapshot { .. } => self.plan_snapshots(record, paths),
            Record::StartLogSegment | Record::EndLogSegment => Err(Unfit::NoOp(Rule::SegmentBoundary)),
            other => self.plan_attributes(other, paths),
        }
    }

    /// Where a path of a record leads.
    pub(crate) fn place(&self, path: &[u8], paths: &mut Paths<'_>) -> Result<Place, Unfit> {
        let place = match paths {
            Paths::Known([place, rest @ ..]) => {
                let place = *place;
                *paths = Paths::Known(rest);
                debug_assert_eq!(self.walk(path).ok(), Some(place), "where {} leads", text(path));
                return Ok(place);
            }
            Paths::Walk(walker) => walker.place(&self.tree, &self.store, path),
            Paths::Known([]) => return self.walk(path),
        };
        place.ok_or_else(|| missing(path))
    }
    /// Walks a path of a record.
    fn walk(&self, path: &[u8]) -> Result<Place, Unfit> {
        let resolved = self.tree.resolve(&self.store, path).map_err(|_| missing(path))?;
        if resolved.is_past() {
            return Err(missing(path));
        }
        Ok(resolved.place())
    }
    /// The inode of a path.
    pub(crate) fn existing(&self, path: &[u8], paths: &mut Paths<'_>) -> Result<InodeHandle, Unfit> {
        self.place(path, paths)?.last.ok_or_else(|| missing(path))
    }
    /// The file of a path.
    pub(crate) fn file(&self, path: &[u8], paths: &mut Paths<'_>) -> Result<InodeHandle, Unfit> {
        let inode = self.existing(path, paths)?;
        match self.store.kind(inode) {
            KindTag::File => Ok(inode),
            _ => Err(Mismatch::new(format!("Path is not a file: {}", text(path))).into()),
        }
    }
    /// The directory above a path's last component.
    pub(crate) fn parent_directory(&self, place: &Place, path: &[u8]) -> Result<InodeHandle, Unfit> {
        let parent = place.parent.ok_or_else(|| Mismatch::new(format!("Parent does not exist: {}", text(path))))?;
        match self.store.kind(parent) {
            KindTag::Directory => Ok(parent),
            _ => Err(Mismatch::new(format!("Parent is not a directory: {}", text(path))).into()),
        }
    }
    /// That an id from a record can be given to a new inode.
    pub(crate) fn fresh_inode(&self, id: InodeId, path: &[u8]) -> Result<(), Unfit> {
        if id == InodeId::GRANDFATHERED {
            return Err(Mismatch::new(format!("The record for {} has no inode id", text(path))).into());
        }
        match self.store.find_inode(id) {
            Some(_) => Err(Mismatch::new(format!("The inode id {id} of {} is in use", text(path))).into()),
            None => Ok(()),
        }
    }
}

pub(crate) fn missing(path: &[u8]) -> Unfit {
    Mismatch::new(format!("File does not exist: {}", text(path))).into()
}
