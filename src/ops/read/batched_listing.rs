//! getBatchedListing: pages of several directories in one call.

use super::listing::{
    ListingVisitor, Page, check_no_snapshots, list_directory, list_past, list_reserved, list_snapshots,
};
use crate::View;
use namespace::resolve::is_exactly_reserved;
use namespace::{Resolved, Walk};
use record::KindTag;
use vocab::{Action, Refusal};

/// Who takes a batched listing. `begin` and `end` bracket the entries of one directory.
pub trait BatchedVisitor: ListingVisitor {
    /// Entries of the `index`th path follow.
    fn begin(&mut self, index: usize);
    /// The entries of that path end for this call; so many remain.
    fn end(&mut self, remaining: usize);
    /// The `index`th path is refused; the others go on.
    fn refused(&mut self, index: usize, refusal: Refusal);
}

/// Where a listing goes on: behind a name of one of the paths.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BatchedStart {
    /// Number of the path.
    pub index: usize,
    /// Name in that directory; empty for all of it.
    pub name: Vec<u8>,
}

/// getBatchedListing: gives where the next call goes on, `None` at the end; up to `dfs.batched.ls.limit` paths per call, up to `dfs.ls.limit` entries.
///
/// Quirk: `t15_batched_listing_is_complete`: every entry comes exactly once; Hadoop can end early with locations.
///
/// # Errors
/// Too many paths; a path that is not absolute.
pub fn get_batched_listing(
    view: &View<'_>,
    paths: &[Vec<u8>],
    start: &BatchedStart,
    need_location: bool,
    visitor: &mut dyn BatchedVisitor,
) -> Result<Option<BatchedStart>, Refusal> {
    let most = view.settings.batched_listing_limit;
    if paths.len() > most {
        return Err(Refusal::IllegalArgument(format!("Too many source paths ({} > {most})", paths.len()).into()));
    }
    let mut name = &*start.name;
    let mut left = view.settings.listing_limit;
    for (index, path) in paths.iter().enumerate().skip(start.index) {
        if left == 0 {
            return Ok(Some(BatchedStart { index, name: name.to_vec() }));
        }
        match list_one(view, index, path, name, need_location, &mut left, visitor) {
            Ok(None) => {}
            Ok(Some(name)) => return Ok(Some(BatchedStart { index, name })),
            // An assertion is no answer for one path: it ends the call, as in Java.
            Err(refusal @ Refusal::Assertion(_)) => return Err(refusal),
            Err(refusal) => visitor.refused(index, refusal),
        }
        name = b"";
    }
    Ok(None)
}

/// Remembers the last name that went to a visitor.
struct LastName<'a> {
    inner: &'a mut dyn BatchedVisitor,
    last: Vec<u8>,
}

impl ListingVisitor for LastName<'_> {
    fn entry(&mut self, status: &crate::status::FileStatus<'_>, located: Option<&crate::status::LocatedBlocks>) {
        self.last = status.name.to_vec();
        self.inner.entry(status, located);
    }
}

/// One path. Gives the name to go on after if entries remain.
fn list_one(
    view: &View<'_>,
    index: usize,
    path: &[u8],
    start_after: &[u8],
    need_location: bool,
    left: &mut usize,
    visitor: &mut dyn BatchedVisitor,
) -> Result<Option<Vec<u8>>, Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    if is_exactly_reserved(path) {
        visitor.begin(index);
        let page = list_reserved(view, visitor);
        visitor.end(0);
        *left = left.saturating_sub(page.given);
        return Ok(None);
    }
    if resolved.is_past() {
        return list_one_past(view, index, &resolved, start_after, need_location, left, visitor);
    }
    check_no_snapshots(view, &resolved)?;
    let Some(inode) = resolved.last() else {
        return Err(Refusal::not_found(format!("Path {} does not exist", view.path_text(path))));
    };
    let policy = view.state.tree.storage_policy(&view.state.store, inode);
    if view.state.store.kind(inode) != KindTag::Directory {
        visitor.begin(index);
        let status = view.status(inode, b"", policy);
        let located =
            (need_location && status.kind == KindTag::File).then(|| view.all_located_blocks(inode, &view.reader()));
        visitor.entry(&status, located.as_ref());
        visitor.end(0);
        *left -= 1;
        return Ok(None);
    }
    view.check_inode(&resolved, Action::READ_EXECUTE)?;
    visitor.begin(index);
    let mut names = LastName { inner: visitor, last: start_after.to_vec() };
    let page = list_directory(view, inode, policy, start_after, need_location, *left, &mut names);
    let last = names.last;
    visitor.end(page.remaining);
    *left -= page.given;
    Ok((page.remaining > 0).then_some(last))
}

/// [`list_one`] in the past.
fn list_one_past(
    view: &View<'_>,
    index: usize,
    resolved: &Resolved<'_>,
    start_after: &[u8],
    need_location: bool,
    left: &mut usize,
    visitor: &mut dyn BatchedVisitor,
) -> Result<Option<Vec<u8>>, Refusal> {
    if resolved.last().is_none() && resolved.snapshots_of().is_none() {
        return Err(Refusal::not_found(format!("Path {} does not exist", resolved.path_text())));
    }
    if resolved.last().is_some_and(|inode| view.state.store.kind(inode) == KindTag::Directory) {
        view.check_inode(resolved, Action::READ_EXECUTE)?;
    }
    visitor.begin(index);
    let mut names = LastName { inner: visitor, last: start_after.to_vec() };
    let page = match resolved.snapshots_of() {
        Some(_) => Some(list_snapshots(view, resolved, start_after, *left, &mut names)),
        None => list_past(view, resolved, start_after, need_location, *left, &mut names),
    };
    let (page, last) = (page.unwrap_or(Page::default()), names.last);
    visitor.end(page.remaining);
    *left = left.saturating_sub(page.given);
    Ok((page.remaining > 0).then_some(last))
}
