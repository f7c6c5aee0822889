//! getListing and getBatchedListing: entries go to a visitor as they are walked.

use crate::View;
use crate::status::{FileStatus, LocatedBlocks, reserved_status};
use blocks::Reader;
use namespace::erasure_coding::policy_named_by;
use namespace::resolve::is_exactly_reserved;
use namespace::{Resolved, Walk};
use record::{InodeHandle, KindTag};
use vocab::path::compare_names;
use vocab::storage_policy::UNSPECIFIED;
use vocab::{Action, Mode, Refusal, SnapshotId};

/// Who takes the entries of a listing.
pub trait ListingVisitor {
    /// One entry, with all its blocks if locations were asked for and it is a file.
    fn entry(&mut self, status: &FileStatus<'_>, located: Option<&LocatedBlocks>);
}

impl ListingVisitor for Vec<(FileStatus<'static>, Option<LocatedBlocks>)> {
    fn entry(&mut self, status: &FileStatus<'_>, located: Option<&LocatedBlocks>) {
        self.push((status.clone().into_owned(), located.cloned()));
    }
}

/// Where paths are raw, entries are told as they are stored.
struct AsStored<'v>(&'v mut dyn ListingVisitor, bool);

impl ListingVisitor for AsStored<'_> {
    fn entry(&mut self, status: &FileStatus<'_>, located: Option<&LocatedBlocks>) {
        if self.1 {
            self.0.entry(&status.clone().raw(true), located);
        } else {
            self.0.entry(status, located);
        }
    }
}

/// What a listing says besides its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// Entries given.
    pub given: usize,
    /// Entries after them.
    pub remaining: usize,
}

/// getListing: a page of a directory, or the status of a file. `None` if the path does not exist.
///
/// # Errors
/// Access along the path and READ_EXECUTE of the directory; `UnresolvedPath`.
pub fn get_listing(
    view: &View<'_>,
    path: &[u8],
    start_after: &[u8],
    need_location: bool,
    visitor: &mut dyn ListingVisitor,
) -> Result<Option<Page>, Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    let start_after = resolve_start(view, start_after)?;
    let is_directory = |inode: InodeHandle| view.state.store.kind(inode) == KindTag::Directory;
    if resolved.last().is_some_and(is_directory) {
        view.check_inode(&resolved, Action::READ_EXECUTE)?;
    }
    if is_exactly_reserved(path) {
        return Ok(Some(list_reserved(view, visitor)));
    }
    let mut as_stored = AsStored(visitor, resolved.raw);
    let visitor: &mut dyn ListingVisitor = &mut as_stored;
    if resolved.snapshots_of().is_some() {
        return Ok(Some(list_snapshots(view, &resolved, &start_after, view.settings.listing_limit, visitor)));
    }
    check_no_snapshots(view, &resolved)?;
    let Some(inode) = resolved.last() else { return Ok(None) };
    if resolved.is_past() {
        let limit = view.settings.listing_limit;
        return Ok(list_past(view, &resolved, &start_after, need_location, limit, visitor));
    }
    let policy = view.state.tree.storage_policy(&view.state.store, inode);
    if !is_directory(inode) {
        let mut budget = view.settings.listing_limit as i64;
        give(view, inode, b"", policy, need_location.then(|| view.reader()).as_ref(), visitor, &mut budget);
        return Ok(Some(Page { given: 1, remaining: 0 }));
    }
    Ok(Some(list_directory(view, inode, policy, &start_after, need_location, view.settings.listing_limit, visitor)))
}

/// That a path is not the list of snapshots of a directory that has none.
pub(super) fn check_no_snapshots(view: &View<'_>, resolved: &Resolved<'_>) -> Result<(), Refusal> {
    let directory = resolved.parent().filter(|parent| view.state.store.kind(*parent) == KindTag::Directory);
    if resolved.depth() == 0 || resolved.name() != b".snapshot" || resolved.last().is_some() {
        return Ok(());
    }
    let path = resolved.path_to(resolved.depth() - 1);
    if directory.is_none() {
        return Err(Refusal::not_found(format!("Directory does not exist: {}", view.path_text(&path))));
    }
    let directory = path;
    let text = format!("Directory is not a snapshottable directory: {}", view.path_text(&directory));
    Err(Refusal::Snapshot(text.into()))
}

/// The snapshots of a directory as entries of `.snapshot`, after a name.
pub(super) fn list_snapshots(
    view: &View<'_>,
    resolved: &Resolved<'_>,
    start_after: &[u8],
    limit: usize,
    visitor: &mut dyn ListingVisitor,
) -> Page {
    let Some(directory) = resolved.snapshots_of() else { return Page::default() };
    let above = &resolved.inodes()[..resolved.depth().min(resolved.inodes().len())];
    let Some(root) = view.state.tree.snapshot_root(&view.state.store, directory) else { return Page::default() };
    let from = root.snapshots.partition_point(|s| compare_names(&s.name, start_after).is_le());
    let from = if start_after.is_empty() { 0 } else { from };
    let rest = &root.snapshots[from..];
    for snapshot in rest.iter().take(limit) {
        // Quirk: snapshots_in_a_listing_count_the_children_of_now: as in Hadoop; asked by path they count their own
        let children = view.state.store.children(directory).1;
        let mut status = view.past_status(above, snapshot.name.to_vec(), 0, snapshot.id);
        // Quirk: snapshots_in_a_listing_have_the_coding_policy_of_now: where they had none of their own
        if policy_named_by(&snapshot.root.xattrs).is_none() {
            status.set_erasure_coding(view.state.tree.erasure_coding_policy(&view.state.store, directory));
        }
        visitor.entry(&FileStatus { children, ..status }, None);
    }
    let given = rest.len().min(limit);
    Page { given, remaining: rest.len() - given }
}

/// A file or a directory as it was.
pub(super) fn list_past(
    view: &View<'_>,
    resolved: &Resolved<'_>,
    start_after: &[u8],
    need_location: bool,
    limit: usize,
    visitor: &mut dyn ListingVisitor,
) -> Option<Page> {
    let (state, snapshot, inode) = (view.state, resolved.snapshot(), resolved.last()?);
    let reader = need_location.then(|| view.reader());
    let mut budget = limit as i64;
    let policy = view.past_policy(inode, snapshot);
    if state.store.kind(inode) != KindTag::Directory {
        give_past(view, resolved.inodes(), (Vec::new(), policy, snapshot), reader.as_ref(), visitor, &mut budget);
        return Some(Page { given: 1, remaining: 0 });
    }
    let children = state.tree.children_at(&state.store, inode, snapshot);
    let from = children.partition_point(|c| compare_names(c.name(&state.store), start_after).is_le());
    let rest = &children[if start_after.is_empty() { 0 } else { from }..];
    let mut given = 0;
    let mut path = resolved.inodes().to_vec();
    for child in rest.iter().take(limit) {
        let name = child.name(&state.store).to_vec();
        path.push(child.inode);
        let policy = match state.tree.own_storage_policy(&state.store, child.inode) {
            UNSPECIFIED => policy,
            own => own,
        };
        give_past(view, &path, (name, policy, snapshot), reader.as_ref(), visitor, &mut budget);
        path.pop();
        given += 1;
        if budget <= 0 {
            break;
        }
    }
    Some(Page { given, remaining: rest.len() - given })
}

fn give_past(
    view: &View<'_>,
    path: &[InodeHandle],
    (name, policy, snapshot): (Vec<u8>, u8, SnapshotId),
    reader: Option<&Reader<'_>>,
    visitor: &mut dyn ListingVisitor,
    budget: &mut i64,
) {
    let status = view.past_status(path, name, policy, snapshot);
    let file = path.last().filter(|_| status.kind == KindTag::File);
    if let (Some(reader), Some(inode)) = (reader, file) {
        let inode = *inode;
        let located = view.past_blocks(inode, snapshot, 0, i64::MAX as u64, reader);
        *budget -= located.blocks.len() as i64 * i64::from(status.replication);
        visitor.entry(&status, Some(&located));
    } else {
        visitor.entry(&status, None);
    }
}

/// A start name that is a whole path below `/.reserved` stands for the last name of what it resolves to.
fn resolve_start(view: &View<'_>, start_after: &[u8]) -> Result<Vec<u8>, Refusal> {
    if !start_after.starts_with(b"/.reserved/") {
        return Ok(start_after.to_vec());
    }
    let resolved: Result<Resolved<'_>, Refusal> = view.state.tree.resolve(&view.state.store, start_after);
    resolved.map(|r| r.name().to_vec()).map_err(|_| {
        Refusal::ListingStartNotFound(format!("Can't find startAfter {}", view.path_text(start_after)).into())
    })
}

/// Children after a name, up to a limit of entries and of locations (`dfs.ls.limit` both).
pub(super) fn list_directory(
    view: &View<'_>,
    directory: InodeHandle,
    policy: u8,
    start_after: &[u8],
    need_location: bool,
    limit: usize,
    visitor: &mut dyn ListingVisitor,
) -> Page {
    let state = view.state;
    let (children, before) = state.tree.children_after(&state.store, directory, start_after);
    let total = state.store.children(directory).1 as usize - before;
    let mut budget = limit as i64;
    let mut given = 0;
    let reader = need_location.then(|| view.reader());
    for child in children.take(limit) {
        let own = state.tree.own_storage_policy(&state.store, child);
        let policy = if own == UNSPECIFIED { policy } else { own };
        give(view, child, state.store.name(child), policy, reader.as_ref(), visitor, &mut budget);
        given += 1;
        if budget <= 0 {
            break;
        }
    }
    Page { given, remaining: total - given }
}

fn give<'a>(
    view: &View<'a>,
    inode: InodeHandle,
    name: &'a [u8],
    policy: u8,
    reader: Option<&Reader<'_>>,
    visitor: &mut dyn ListingVisitor,
    budget: &mut i64,
) {
    let status = view.status(inode, name, policy);
    if let Some(reader) = reader.filter(|_| status.kind == KindTag::File) {
        let located = view.all_located_blocks(inode, reader);
        *budget -= located.blocks.len() as i64 * i64::from(status.replication);
        visitor.entry(&status, Some(&located));
    } else {
        visitor.entry(&status, None);
    }
}

/// The two virtual directories below `/.reserved`.
pub(super) fn list_reserved(view: &View<'_>, visitor: &mut dyn ListingVisitor) -> Page {
    let (created, group) = (view.settings.created, &view.settings.super_group);
    for name in [&b".inodes"[..], b"raw"] {
        let (name, group, mode) = (name.into(), group.clone(), Mode::new(0o770));
        visitor.entry(&FileStatus { name, group, mode, mtime: created, atime: created, ..reserved_status() }, None);
    }
    Page { given: 2, remaining: 0 }
}
