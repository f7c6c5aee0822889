//! From a path to inodes: plain paths, `/.reserved/.inodes/<id>/...` and `/.reserved/raw/...`.

use crate::Tree;
use crate::ways::{Ranges, Way};
use record::{Features, InodeHandle, KindTag, Store};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::path::components;
use vocab::{InodeId, Refusal, SnapshotId};

const RESERVED: &[u8] = b".reserved";
const INODES: &[u8] = b".inodes";
const RAW: &[u8] = b"raw";
const SNAPSHOT: &[u8] = b".snapshot";

/// A path with the inodes along it, as far as they exist. Holds no borrow of the state.
#[derive(Clone, Debug)]
pub struct Resolved<'p> {
    text: Cow<'p, [u8]>,
    parts: Ranges,
    inodes: SmallVec<[InodeHandle; 16]>,
    /// Whether the path was below `/.reserved/raw`.
    pub raw: bool,
    /// Set for a path through a snapshot.
    past: Option<Past>,
}

/// Where a path goes into the past.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Past {
    /// Depth of the component `.snapshot`.
    depth: usize,
    /// The snapshot; `None` if there is no such one, or the path ends before its name.
    snapshot: Option<SnapshotId>,
}

/// Text of path bytes for messages.
pub fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

impl<'p> Resolved<'p> {
    /// Number of components; 0 for the root.
    pub fn depth(&self) -> usize {
        self.parts.len()
    }
    /// The `i`th component below the root.
    pub fn component(&self, i: usize) -> &[u8] {
        let (start, end) = self.parts[i];
        &self.text[start as usize..end as usize]
    }
    /// All components.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.parts.iter().map(|(start, end)| &self.text[*start as usize..*end as usize])
    }
    /// The last component; empty for the root.
    pub fn name(&self) -> &[u8] {
        if self.parts.is_empty() { b"" } else { self.component(self.parts.len() - 1) }
    }
    /// Existing inodes from the root on: at least the root.
    pub fn inodes(&self) -> &[InodeHandle] {
        &self.inodes
    }
    /// The inode that the whole path names.
    pub fn last(&self) -> Option<InodeHandle> {
        self.inode(self.depth())
    }
    /// The inode at depth `i` (0 is the root).
    pub fn inode(&self, i: usize) -> Option<InodeHandle> {
        self.inodes.get(i).copied()
    }
    /// The inode above the last component; `None` for the root or if it does not exist.
    pub fn parent(&self) -> Option<InodeHandle> {
        self.inode(self.depth().checked_sub(1)?)
    }
    /// As [`Resolved::parent`], where `.snapshot` is no level: above the name of a snapshot lies the directory that it was taken of.
    pub fn above(&self) -> Option<InodeHandle> {
        let snapshots = self.past.map(|past| past.depth);
        match snapshots.filter(|depth| depth + 1 == self.depth()) {
            Some(depth) => self.inode(depth - 1),
            None => self.parent(),
        }
    }
    /// The deepest inode that exists.
    pub fn deepest(&self) -> InodeHandle {
        self.inodes[self.inodes.len() - 1]
    }
    /// The snapshot that all inodes of the path are looked at in, those above the directory of the snapshot too (as in Hadoop);
    /// [`SnapshotId::CURRENT`] for the present.
    pub fn snapshot(&self) -> SnapshotId {
        self.past.and_then(|past| past.snapshot).unwrap_or(SnapshotId::CURRENT)
    }
    /// Whether the path goes into the past: nothing there can be changed.
    pub fn is_past(&self) -> bool {
        self.past.is_some()
    }
    /// The directory whose snapshots the path names, if it ends with `.snapshot`.
    pub fn snapshots_of(&self) -> Option<InodeHandle> {
        self.past.filter(|past| past.depth == self.depth()).and_then(|past| self.inode(past.depth - 1))
    }
    /// The path in plain form: one slash before each component, `/` for the root. Raw paths lose their prefix.
    pub fn path(&self) -> Vec<u8> {
        self.path_to(self.depth())
    }
    /// The same, borrowed where it was written so.
    pub fn plain(&self) -> Cow<'_, [u8]> {
        self.plain_to(self.depth())
    }
    /// The plain path of the first `depth` components, borrowed where it was written so.
    pub fn plain_to(&self, depth: usize) -> Cow<'_, [u8]> {
        let mut end = 0;
        for part in &self.parts[..depth] {
            if part.0 != end + 1 {
                return self.path_to(depth).into();
            }
            end = part.1;
        }
        if depth > 0 { Cow::Borrowed(&self.text[..end as usize]) } else { Cow::Borrowed(b"/") }
    }
    /// The plain path of the first `depth` components.
    pub fn path_to(&self, depth: usize) -> Vec<u8> {
        if depth == 0 {
            return b"/".to_vec();
        }
        let mut path = Vec::with_capacity(self.text.len());
        for part in self.components().take(depth) {
            path.push(b'/');
            path.extend_from_slice(part);
        }
        path
    }
    /// [`Resolved::path`] as text.
    pub fn path_text(&self) -> Arc<str> {
        text(&self.plain())
    }
    /// The same without a borrow of the path.
    pub fn into_owned(self) -> Resolved<'static> {
        Resolved {
            text: Cow::Owned(self.text.into_owned()),
            parts: self.parts,
            inodes: self.inodes,
            raw: self.raw,
            past: self.past,
        }
    }
}

impl Tree {
    /// Walks a path. Never refuses for what is on the way: the walk ends at the last inode that exists, at a file or at a symlink; the access
    /// checks say what that means. Refused are only paths by inode id that name none.
    ///
    /// # Errors
    /// `FileNotFound` for `/.reserved/.inodes/<id>` of no inode.
    pub fn resolve<'p>(&self, store: &Store, path: &'p [u8]) -> Result<Resolved<'p>, Refusal> {
        // nearly no path is one of these, and all others need no look at their components
        if is_reserved(path) {
            let mut parts = components(path).skip(1);
            match parts.next() {
                Some(INODES) => {
                    if let Some(id) = parts.next() {
                        return self.resolve_by_id(store, path, id);
                    }
                }
                Some(RAW) => return Ok(self.resolve_raw(store, path)),
                _ => {}
            }
        }
        Ok(self.walk(store, Cow::Borrowed(path), false))
    }

    fn resolve_raw<'p>(&self, store: &Store, path: &'p [u8]) -> Resolved<'p> {
        let rest = after_components(path, 2);
        if components(rest).next() == Some(RESERVED) && components(rest).count() == 1 {
            return self.walk(store, Cow::Borrowed(path), true);
        }
        self.walk(store, Cow::Borrowed(rest), true)
    }

    fn resolve_by_id<'p>(&self, store: &Store, path: &'p [u8], id: &[u8]) -> Result<Resolved<'p>, Refusal> {
        let wrong = |what: &str| Refusal::not_found(format!("{what}: {}", text(path)));
        let number = std::str::from_utf8(id)
            .ok()
            .and_then(|s| s.parse::<i64>().ok())
            .ok_or_else(|| wrong("Invalid inode path"))?;
        let inode =
            self.find(store, InodeId(number)).ok_or_else(|| wrong("File for given inode path does not exist"))?;
        let mut rest = after_components(path, 3);
        let mut top = inode;
        if components(rest).next() == Some(b"..") {
            top = store.parent(inode).unwrap_or(self.root());
            rest = b"";
        }
        let mut full = self.path_of(store, top);
        full.push(b'/');
        full.extend_from_slice(rest);
        Ok(self.walk(store, Cow::Owned(full), false))
    }

    fn walk<'p>(&self, store: &Store, path: Cow<'p, [u8]>, raw: bool) -> Resolved<'p> {
        let (mut way, end) = self.ways.take(self.moves, &path, self.root());
        let known = way.ranges.len();
        if known == 0 {
            way.inodes.push(self.root());
        }
        debug_assert!(self.leads(store, &path, &way), "a remembered way leads elsewhere");
        way.split(&path, end);
        let mut current = way.inodes[known];
        for (start, end) in &way.ranges[known..] {
            let Some(child) = self.child(store, current, &path[*start as usize..*end as usize]) else { break };
            current = child;
            way.inodes.push(current);
        }
        // the last directory that exists above the end of the path
        let mut above = (way.inodes.len() - 1).min(way.ranges.len().saturating_sub(1));
        if above + 1 == way.inodes.len() && above > known && store.kind(way.inodes[above]) != KindTag::Directory {
            above -= 1;
        }
        if above > known {
            self.ways.remember(self.moves, &path, &way, above);
        }
        let mut resolved = Resolved { text: path, parts: way.ranges, inodes: way.inodes, raw, past: None };
        if resolved.inodes.len() <= resolved.depth() {
            self.walk_past(store, &mut resolved, current);
        }
        resolved
    }

    /// Whether a walk of these components finds these inodes.
    fn leads(&self, store: &Store, path: &[u8], way: &Way) -> bool {
        let name = |(start, end): &(u32, u32)| &path[*start as usize..*end as usize];
        let mut steps = way.inodes.windows(2).zip(&way.ranges);
        way.inodes[0] == self.root() && steps.all(|(two, part)| self.child(store, two[0], name(part)) == Some(two[1]))
    }

    /// Goes on where the present has no such child: by `.snapshot` into the past.
    fn walk_past(&self, store: &Store, resolved: &mut Resolved<'_>, directory: InodeHandle) {
        let depth = resolved.inodes.len();
        let allows = directory == self.root() || store.features(directory).contains(Features::SNAPSHOTTABLE);
        if !allows || resolved.component(depth - 1) != SNAPSHOT {
            return;
        }
        resolved.past = Some(Past { depth, snapshot: None });
        if depth == resolved.depth() {
            // as in Hadoop, who may look at the snapshots is told by the latest one
            let latest = self.latest_snapshot_below(store, directory);
            resolved.past = Some(Past { depth, snapshot: (latest != SnapshotId::CURRENT).then_some(latest) });
            return;
        }
        let root = self.snapshot_root(store, directory);
        let Some(snapshot) = root.and_then(|r| r.snapshot(resolved.component(depth))) else { return };
        resolved.past = Some(Past { depth, snapshot: Some(snapshot.id) });
        let mut current = directory;
        resolved.inodes.extend([current, current]);
        for i in depth + 1..resolved.depth() {
            let child = match store.kind(current) {
                KindTag::Directory => self.child_at(store, current, resolved.component(i), snapshot.id),
                _ => None,
            };
            let Some(child) = child else { break };
            current = child.inode;
            resolved.inodes.push(current);
        }
    }

    /// A path of which nothing but the root is known: for messages about inodes that are gone.
    pub fn unresolved_path<'p>(&self, path: &'p [u8]) -> Resolved<'p> {
        let mut way = Way::default();
        way.split(path, 0);
        if !way.ranges.is_empty() {
            way.inodes.push(self.root());
        }
        Resolved { text: Cow::Borrowed(path), parts: way.ranges, inodes: way.inodes, raw: false, past: None }
    }

    /// The child of a directory; `None` also for anything that is no directory.
    pub fn child(&self, store: &Store, directory: InodeHandle, name: &[u8]) -> Option<InodeHandle> {
        let (list, _) = store.children(directory);
        self.lists.get(store, list, name)
    }

    /// The inode of an id, if it is in the tree (not of a subtree that waits to be freed).
    pub fn find(&self, store: &Store, id: InodeId) -> Option<InodeHandle> {
        store.find_inode(id).filter(|h| self.is_attached(store, *h))
    }

    /// Whether the inode is reachable from the root.
    pub fn is_attached(&self, store: &Store, inode: InodeHandle) -> bool {
        self.detached.is_empty() && self.snapshots.is_empty() || self.is_present(store, inode)
    }

    /// The full path of an inode.
    pub fn path_of(&self, store: &Store, inode: InodeHandle) -> Vec<u8> {
        let mut chain: SmallVec<[InodeHandle; 16]> = SmallVec::new();
        let mut current = inode;
        while let Some(parent) = store.parent(current) {
            chain.push(current);
            current = parent;
        }
        if chain.is_empty() {
            return b"/".to_vec();
        }
        let mut path = Vec::with_capacity(chain.len() * 16);
        for inode in chain.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(store.name(*inode));
        }
        path
    }

    /// The resolved path of an inode, if it is `path` and its directory is one that paths have led through lately.
    pub fn resolve_known<'p>(&self, store: &Store, path: &'p [u8], inode: InodeHandle) -> Option<Resolved<'p>> {
        let (mut way, end) = self.ways.take(self.moves, path, self.root());
        let known = way.ranges.len();
        if known == 0 {
            return None;
        }
        way.split(path, end);
        let [(start, end)] = way.ranges[known..] else { return None };
        if store.parent(inode) != Some(way.inodes[known]) || store.name(inode) != &path[start as usize..end as usize] {
            return None;
        }
        way.inodes.push(inode);
        Some(Resolved { text: Cow::Borrowed(path), parts: way.ranges, inodes: way.inodes, raw: false, past: None })
    }

    /// The path of an inode as a resolved one.
    pub fn resolve_inode(&self, store: &Store, inode: InodeHandle) -> Resolved<'static> {
        let mut inodes: SmallVec<[InodeHandle; 16]> = SmallVec::new();
        inodes.push(inode);
        let mut top = inode;
        while let Some(above) = store.parent(top) {
            inodes.push(above);
            top = above;
        }
        if top != self.root() {
            return self.walk(store, Cow::Owned(self.path_of(store, inode)), false);
        }
        inodes.reverse();
        let mut text = Vec::with_capacity(inodes.len() * 24);
        let mut parts = SmallVec::new();
        for inode in &inodes[1..] {
            text.push(b'/');
            let start = text.len() as u32;
            text.extend_from_slice(store.name(*inode));
            parts.push((start, text.len() as u32));
        }
        if parts.is_empty() {
            text.push(b'/');
        }
        Resolved { text: Cow::Owned(text), parts, inodes, raw: false, past: None }
    }

    /// The refusal for a symlink at depth `i` of a path: the client goes on from its target.
    pub fn unresolved(&self, store: &Store, resolved: &Resolved<'_>, i: usize) -> Option<Refusal> {
        let link = resolved.inode(i).filter(|h| store.kind(*h) == KindTag::Symlink)?;
        let remainder = resolved.components().skip(i).collect::<Vec<_>>().join(&b'/');
        Some(Refusal::UnresolvedPath {
            path: resolved.path_text(),
            preceding: text(&resolved.path_to(i.saturating_sub(1))),
            remainder: text(&remainder),
            target: text(self.symlink_target(link)),
        })
    }
}

/// Whether the first component is `.reserved`.
pub(crate) fn is_reserved(path: &[u8]) -> bool {
    let start = path.iter().position(|b| *b != b'/').unwrap_or(path.len());
    path[start..].strip_prefix(RESERVED).is_some_and(|rest| rest.first().is_none_or(|b| *b == b'/'))
}

/// What is left of a path behind its first `n` components.
fn after_components(path: &[u8], n: usize) -> &[u8] {
    match components(path).nth(n) {
        Some(part) => &path[part.as_ptr() as usize - path.as_ptr() as usize..],
        None => b"",
    }
}

/// Whether the components are exactly `/.reserved`.
pub fn is_exactly_reserved(path: &[u8]) -> bool {
    is_reserved(path) && components(path).count() == 1
}
