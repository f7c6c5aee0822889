//! What changed between two snapshots, or a snapshot and the present (Hadoop's `SnapshotDiffInfo` and `SnapshotDiffListingInfo`).

use super::diff::{Sum, at};
use super::{AttributeCopy, Gone, Link};
use crate::Tree;
use record::{InodeHandle, InodeKind, KindTag, Store};
use std::cmp::Ordering;
use std::collections::HashMap;
use vocab::path::compare_names;
use vocab::{InodeId, SnapshotId};

/// What a report is of.
///
/// Quirk: a_report_of_a_snapshot_leaves_out_its_top: Hadoop makes a copy of a directory for each snapshot of it, which has no diffs and is above nothing
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// The directory.
    pub directory: InodeHandle,
    /// Whether the path named a snapshot of the directory itself.
    pub is_snapshot: bool,
}

/// One line of a report. Paths are relative to the directory that was asked of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// `M`, `+`, `-` or `R`.
    pub label: char,
    /// What changed.
    pub path: Vec<u8>,
    /// Where it was renamed to.
    pub target: Option<Vec<u8>>,
}

/// One entry of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Directory that the entry is of.
    pub directory: InodeId,
    /// The inode.
    pub id: InodeId,
    /// Relative path.
    pub path: Vec<u8>,
    /// Whether it stands for a renamed inode.
    pub is_reference: bool,
    /// Where it was renamed to.
    pub target: Option<Vec<u8>>,
}

/// Raw material of a report, as clients put it together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Whether the first snapshot is the earlier one.
    pub from_earlier: bool,
    /// Inodes that changed.
    pub modified: Vec<Item>,
    /// Names made.
    pub created: Vec<Item>,
    /// Names gone.
    pub deleted: Vec<Item>,
    /// Where the next page begins; nowhere after the last one.
    pub next: Option<Cursor>,
}

/// A place in a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// Relative path of what changed.
    pub path: Vec<u8>,
    /// Of its names made, then those gone, how many were told; `None`: nor was it itself.
    pub told: Option<usize>,
}

/// Inodes that are looked at for a page, which may then have less than it could hold: it is made in one hold.
const LOOKS: usize = 500;

/// A changed directory with its names that came and went, or a changed file. Of a page only the names that may be told in it, each with its place
/// among all of the directory, those that came first.
struct Changed {
    inode: InodeHandle,
    path: Vec<u8>,
    created: Vec<(usize, Gone)>,
    deleted: Vec<(usize, Gone)>,
}

#[derive(Default)]
struct Rename {
    source: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

struct Walk<'a> {
    tree: &'a Tree,
    store: &'a Store,
    scope: Scope,
    earlier: SnapshotId,
    later: SnapshotId,
    changed: Vec<Changed>,
    renames: HashMap<InodeHandle, Rename>,
    /// Names on the way to what the page begins with.
    start: Vec<Vec<u8>>,
    /// Names of the directory that the page begins with that were told before.
    told: usize,
    /// How many entries are wanted, and found.
    wanted: usize,
    found: usize,
    /// How many inodes may be looked at, and the path of the next one if that was too few.
    looks: usize,
    stopped: Option<Vec<u8>>,
}

fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = parent.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

impl Tree {
    /// The report between two states of what is below a directory.
    pub fn snapshot_diff(&self, store: &Store, scope: Scope, from: SnapshotId, to: SnapshotId) -> Vec<Change> {
        if from == to {
            return Vec::new();
        }
        let mut walk = self.diff_walk(store, scope, from, to);
        walk.run();
        walk.report(from < to)
    }

    /// The same as a listing: a page of at most `limit` entries.
    pub fn snapshot_diff_listing(
        &self,
        store: &Store,
        scope: Scope,
        (from, to): (SnapshotId, SnapshotId),
        start: &Cursor,
        limit: usize,
    ) -> Listing {
        let mut listing = Listing { from_earlier: from < to, ..Listing::default() };
        if from == to {
            return listing;
        }
        let mut walk = self.diff_walk(store, scope, from, to);
        walk.start = start.path.split(|b| *b == b'/').filter(|name| !name.is_empty()).map(Into::into).collect();
        // a directory that is told of already counts as found again
        walk.wanted = limit.saturating_add(usize::from(start.told.is_some()));
        walk.told = start.told.unwrap_or(0);
        walk.looks = LOOKS;
        walk.run();
        listing.next = walk.stopped.take().map(|path| Cursor { path, told: None });
        let mut room = limit;
        for (at, change) in walk.changed.iter().enumerate() {
            let told = if at == 0 && change.path == start.path { start.told } else { None };
            let stopped = walk.list(change, told, &mut room, &mut listing);
            if let Some(told) = stopped {
                listing.next = Some(Cursor { path: change.path.clone(), told });
                break;
            }
        }
        listing
    }

    fn diff_walk<'a>(&'a self, store: &'a Store, scope: Scope, from: SnapshotId, to: SnapshotId) -> Walk<'a> {
        let (earlier, later) = (from.min(to), from.max(to));
        let (changed, renames, start) = (Vec::new(), HashMap::new(), Vec::new());
        Walk {
            tree: self,
            store,
            scope,
            earlier,
            later,
            changed,
            renames,
            start,
            told: 0,
            wanted: usize::MAX,
            found: 0,
            looks: usize::MAX,
            stopped: None,
        }
    }
}

impl<'a> Walk<'a> {
    fn run(&mut self) {
        let top = Gone { inode: self.scope.directory, link: Link::Plain };
        let start = std::mem::take(&mut self.start);
        self.enter(&top, Vec::new(), Some(&start));
    }

    /// Puts what is to be told of a change into a page, of which `room` is left; where it stopped if that was too little.
    fn list(
        &self,
        change: &Changed,
        told: Option<usize>,
        room: &mut usize,
        listing: &mut Listing,
    ) -> Option<Option<usize>> {
        let store = self.store;
        let directory = store.inode_id(change.inode);
        let item = |id, path, target: Option<Vec<u8>>, is_reference| Item { directory, id, path, is_reference, target };
        if told.is_none() {
            if *room == 0 {
                return Some(None);
            }
            *room -= 1;
            let is_directory = store.kind(change.inode) == KindTag::Directory;
            listing.modified.push(item(directory, change.path.clone(), None, is_directory));
        }
        let created = change.created.iter().map(|made| (true, made));
        for (is_made, (at, entry)) in created.chain(change.deleted.iter().map(|gone| (false, gone))) {
            if *room == 0 {
                return Some(Some(*at));
            }
            *room -= 1;
            let (id, path) = (store.inode_id(entry.inode), join(&change.path, entry.name(store)));
            if is_made {
                listing.created.push(item(id, path, None, entry.link != Link::Plain));
            } else {
                let target = self.target_of(entry);
                let is_reference = target.is_some();
                listing.deleted.push(item(id, path, target, is_reference));
            }
        }
        None
    }

    /// Collects from an inode down. `way`: names that lead from here to what the page begins with, if it has not begun.
    fn enter(&mut self, entry: &Gone, path: Vec<u8>, way: Option<&[Vec<u8>]>) {
        if self.found > self.wanted || self.stopped.is_some() {
            return;
        }
        let (tree, store) = (self.tree, self.store);
        let inode = entry.inode;
        let told = if way.is_some_and(<[_]>::is_empty) { self.told } else { 0 };
        let (next, way) = match way.and_then(|way| way.split_first()) {
            Some((name, rest)) => (Some(name), Some(rest)),
            None => (None, None),
        };
        let begun = next.is_none();
        if begun {
            if self.looks == 0 {
                self.stopped = Some(path);
                return;
            }
            self.looks -= 1;
        }
        match store.kind(inode) {
            KindTag::File if begun && self.file_changed(inode) => {
                self.found += 1;
                self.changed.push(Changed { inode, path, created: Vec::new(), deleted: Vec::new() });
            }
            KindTag::Directory => {
                let (sum, attributes) = match self.scope {
                    Scope { directory, is_snapshot: true } if directory == inode => (Sum::default(), false),
                    _ => self.directory_change(inode),
                };
                if begun && (attributes || sum.len() > 0) {
                    self.found += 1 + sum.len().saturating_sub(told);
                    self.add_directory(inode, &path, &sum, told);
                }
                let mut begun = begun;
                let first = next.map_or(&b""[..], |name| name);
                for child in tree.children_from(store, inode, self.earlier, first) {
                    if self.found > self.wanted || self.stopped.is_some() {
                        return;
                    }
                    let name = child.name(store).to_vec();
                    let leads = !begun && next == Some(&name);
                    if !begun && !leads {
                        continue;
                    }
                    begun = true;
                    let stays = !sum.has_deleted(store, &name);
                    if stays || matches!(child.link, Link::Named { .. }) && self.target_of(&child).is_some() {
                        if let (false, Some(target)) = (stays, self.target_of(&child)) {
                            self.renames.entry(child.inode).or_default().target = Some(target);
                        }
                        self.enter(&child, join(&path, &name), if leads { way } else { None });
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds a directory with as many of its names, from one on, as may be wanted: there may be millions.
    fn add_directory(&mut self, inode: InodeHandle, path: &[u8], sum: &Sum<'_>, from: usize) {
        let later = |name: &[u8]| self.tree.child_at(self.store, inode, name, self.later);
        let (made, most) = (sum.created.len(), self.wanted.saturating_add(1));
        let all = (from..sum.len()).take(most);
        let created = all.clone().take_while(|at| *at < made);
        let created: Vec<(usize, Gone)> = created.filter_map(|at| Some((at, later(&sum.created[at])?))).collect();
        let deleted = all.skip_while(|at| *at < made).map(|at| (at, sum.deleted[at - made].clone()));
        let deleted: Vec<(usize, Gone)> = deleted.collect();
        for (_, entry) in created.iter().filter(|(_, e)| e.link != Link::Plain) {
            let target = join(path, entry.name(self.store));
            self.renames.entry(entry.inode).or_default().target.get_or_insert(target);
        }
        for (_, entry) in deleted.iter().filter(|(_, e)| matches!(e.link, Link::Named { .. })) {
            let source = join(path, entry.name(self.store));
            self.renames.entry(entry.inode).or_default().source = Some(source);
        }
        self.changed.push(Changed { inode, path: path.to_vec(), created, deleted });
    }

    /// Names that came and went of a directory, and whether its attributes changed.
    fn directory_change(&self, directory: InodeHandle) -> (Sum<'a>, bool) {
        let diffs = self.tree.snapshots.directory_diffs(directory);
        let end = at(diffs, self.later).unwrap_or(diffs.len());
        let Some(from) = at(diffs, self.earlier).filter(|from| *from < end) else {
            return (Sum::default(), false);
        };
        let sum = Sum::of(self.store, &diffs[from..end]);
        let mut first: Option<&AttributeCopy> = None;
        let mut changed = false;
        for diff in &diffs[from..end] {
            if let Some(copy) = &diff.copy {
                changed |= first.is_some_and(|first| !same_attributes(first, copy));
                first = first.or(Some(copy));
            }
        }
        if let Some(first) = first.filter(|_| !changed) {
            let after = diffs[end..].iter().find_map(|d| d.copy.as_deref());
            changed = match after {
                Some(copy) => !same_attributes(first, copy),
                None => !same_attributes(first, &self.tree.attributes(self.store, directory)),
            };
        }
        (sum, changed)
    }

    fn file_changed(&self, file: InodeHandle) -> bool {
        let diffs = self.tree.snapshots.file_diffs(file);
        let end = at(diffs, self.later).unwrap_or(diffs.len());
        let Some(from) = at(diffs, self.earlier).filter(|from| *from < end) else { return false };
        let later_length = diffs.get(end).map_or_else(|| self.tree.file_length(self.store, file), |d| d.length);
        if diffs[from].length != later_length {
            return true;
        }
        let Some(before) = diffs[from..end].iter().find_map(|d| d.copy.as_deref()) else { return false };
        match diffs[end..].iter().find_map(|d| d.copy.as_deref()) {
            Some(after) => !same_attributes(before, after),
            None => !same_attributes(before, &self.tree.attributes(self.store, file)),
        }
    }

    /// Where, below the scope, something that a deleted list holds under an old name lies in the later state.
    ///
    /// Quirk: a_report_knows_no_rename_after_its_snapshots: Hadoop takes the present place where the directory above was not below the scope at the
    /// later snapshot: a rename into it changes what reports of older snapshots say, and the target is in neither
    fn target_of(&self, entry: &Gone) -> Option<Vec<u8>> {
        let (tree, store) = (self.tree, self.store);
        if !matches!(entry.link, Link::Named { .. }) || self.scope.is_snapshot {
            return None;
        }
        let mut names: Vec<Vec<u8>> = Vec::new();
        let (mut inode, mut first) = (entry.inode, true);
        loop {
            if inode == self.scope.directory && !first {
                names.reverse();
                return Some(names.join(&b'/'));
            }
            first = false;
            let references = tree.snapshots.references.get(&inode);
            let old = references.and_then(|r| r.names.iter().find(|last| **last >= self.later));
            let (parent, name) = match old {
                Some(last) => {
                    let older = tree.snapshots.older_names.get(&(inode, *last))?;
                    (older.directory, older.name.to_vec())
                }
                None if references.is_some_and(|r| r.target.is_none()) => return None,
                None => (store.parent(inode)?, store.name(inode).to_vec()),
            };
            if tree.child_at(store, parent, &name, self.later).is_none_or(|c| c.inode != inode) {
                return None;
            }
            names.push(name);
            inode = parent;
        }
    }

    fn report(&mut self, from_earlier: bool) -> Vec<Change> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_by(|a, b| self.order(a.inode, b.inode));
        let (came, went) = if from_earlier { ('+', '-') } else { ('-', '+') };
        let mut report = Vec::new();
        for change in &changed {
            report.push(Change { label: 'M', path: change.path.clone(), target: None });
            let rename = |inode| {
                let rename: Option<&Rename> = self.renames.get(&inode);
                rename.and_then(|r| Some((r.source.clone()?, r.target.clone()?)))
            };
            let plain =
                |label, entry: &Gone| Change { label, path: join(&change.path, entry.name(self.store)), target: None };
            let renamed = |entry: &Gone| {
                let (source, target) = rename(entry.inode)?;
                let (path, target) = if from_earlier { (source, target) } else { (target, source) };
                Some(Change { label: 'R', path, target: Some(target) })
            };
            // a rename is told where its older name was, whichever way the report goes
            let made = change.created.iter().filter(|(_, entry)| renamed(entry).is_none());
            let made = made.map(|(_, entry)| plain(came, entry));
            let gone = change.deleted.iter().map(|(_, entry)| renamed(entry).unwrap_or_else(|| plain(went, entry)));
            report.extend(made);
            report.extend(gone);
        }
        report
    }

    /// Order of a report: by depth, then by names from the root on.
    fn order(&self, a: InodeHandle, b: InodeHandle) -> Ordering {
        let chain = |mut inode: InodeHandle| {
            let mut chain = vec![inode];
            while let Some(parent) = self.store.parent(inode) {
                chain.push(parent);
                inode = parent;
            }
            chain.reverse();
            chain
        };
        let (a, b) = (chain(a), chain(b));
        a.len().cmp(&b.len()).then_with(|| {
            let orders = a.iter().zip(&b).map(|(a, b)| compare_names(self.store.name(*a), self.store.name(*b)));
            orders.fold(Ordering::Equal, Ordering::then)
        })
    }
}

/// Whether two copies agree in what reports call attributes: times do not count.
fn same_attributes(a: &AttributeCopy, b: &AttributeCopy) -> bool {
    let kinds = match (&a.inode.kind, &b.inode.kind) {
        (InodeKind::Directory { storage_policy: a, .. }, InodeKind::Directory { storage_policy: b, .. }) => a == b,
        (a, b) => a == b,
    };
    let inode = |c: &AttributeCopy| (c.inode.user, c.inode.group, c.inode.mode);
    kinds && inode(a) == inode(b) && a.acl == b.acl && a.xattrs == b.xattrs && a.quota == b.quota
}
