//! One difference between a snapshot and what came after it; lists of them.

use record::{BlockHandle, Inode, InodeHandle, Store};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use vocab::SnapshotId;
use vocab::acl::AclEntry;
use vocab::path::compare_names;
use vocab::quota::Quota;
use vocab::xattr::Xattr;

/// Attributes of an inode as they were. Of `inode` count owner, group, mode, times, and of the kind all but child list and child count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeCopy {
    /// The name it had.
    pub name: Box<[u8]>,
    /// The record.
    pub inode: Inode,
    /// Stored ACL entries.
    pub acl: Vec<AclEntry>,
    /// Extended attributes.
    pub xattrs: Vec<Xattr>,
    /// Quota of a directory.
    pub quota: Quota,
}

/// How a deleted list (or a child list as it was) holds an inode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Link {
    /// By itself.
    Plain,
    /// As one that a rename had brought (Hadoop's `DstReference`).
    Renamed,
    /// Under a name that it had before a rename, up to and with this snapshot (Hadoop's `WithName`).
    Named {
        /// The name.
        name: Arc<[u8]>,
        /// The last snapshot that knows it.
        last: SnapshotId,
    },
}

/// An inode in a deleted list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The inode itself.
    pub inode: InodeHandle,
    /// How it is held.
    pub link: Link,
}

impl Gone {
    /// The last snapshot that knows it, if it is an older name.
    pub fn last(&self) -> Option<SnapshotId> {
        match self.link {
            Link::Named { last, .. } => Some(last),
            Link::Plain | Link::Renamed => None,
        }
    }
    /// Its name in the directory.
    pub fn name<'a>(&'a self, store: &'a Store) -> &'a [u8] {
        match &self.link {
            Link::Named { name, .. } => name,
            _ => store.name(self.inode),
        }
    }
}

/// What was different of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryDiff {
    /// The snapshot before the change.
    pub snapshot: SnapshotId,
    /// How many children there were at the time of the snapshot.
    pub children: u32,
    /// Whether the snapshot is one of this very directory.
    pub is_root: bool,
    /// Attributes, if they changed since.
    pub copy: Option<Arc<AttributeCopy>>,
    /// Names made since, in name order.
    pub created: Vec<Box<[u8]>>,
    /// Inodes that went since, in name order.
    pub deleted: Vec<Gone>,
}

/// What was different of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileDiff {
    /// The snapshot before the change.
    pub snapshot: SnapshotId,
    /// Length in bytes at the time of the snapshot.
    pub length: u64,
    /// Attributes, if they changed since.
    pub copy: Option<Arc<AttributeCopy>>,
    /// Blocks, if the list was cut since.
    pub blocks: Option<Vec<BlockHandle>>,
}

/// Anything of one snapshot.
pub(crate) trait OfSnapshot {
    fn snapshot(&self) -> SnapshotId;
}
impl OfSnapshot for DirectoryDiff {
    fn snapshot(&self) -> SnapshotId {
        self.snapshot
    }
}
impl OfSnapshot for FileDiff {
    fn snapshot(&self) -> SnapshotId {
        self.snapshot
    }
}

/// Position of the diff that says how things were at `snapshot`: its own, or the next later one; `None` if nothing changed since.
pub(crate) fn at<D: OfSnapshot>(diffs: &[D], snapshot: SnapshotId) -> Option<usize> {
    if snapshot == SnapshotId::CURRENT {
        return None;
    }
    let at = diffs.partition_point(|d| d.snapshot() < snapshot);
    (at < diffs.len()).then_some(at)
}

/// Position of the diff of exactly this snapshot.
pub(crate) fn exactly<D: OfSnapshot>(diffs: &[D], snapshot: SnapshotId) -> Option<usize> {
    diffs.binary_search_by(|d| d.snapshot().cmp(&snapshot)).ok()
}

/// The last snapshot in a list, [`SnapshotId::CURRENT`] if there is none.
pub(crate) fn last<D: OfSnapshot>(diffs: &[D]) -> SnapshotId {
    diffs.last().map_or(SnapshotId::CURRENT, OfSnapshot::snapshot)
}

/// The snapshot in a list that is the anchor or, failing that (or where `exclusive`), the one before; [`SnapshotId::NONE`] if none is.
pub(crate) fn prior<D: OfSnapshot>(diffs: &[D], anchor: SnapshotId, exclusive: bool) -> SnapshotId {
    if anchor == SnapshotId::CURRENT {
        let last = last(diffs);
        return if exclusive && last == anchor { SnapshotId::NONE } else { last };
    }
    let before = diffs.partition_point(|d| if exclusive { d.snapshot() < anchor } else { d.snapshot() <= anchor });
    before.checked_sub(1).map_or(SnapshotId::NONE, |at| diffs[at].snapshot())
}

/// The later of `known` and the one of a list before `anchor`.
pub(crate) fn later_prior<D: OfSnapshot>(diffs: &[D], anchor: SnapshotId, known: SnapshotId) -> SnapshotId {
    let own = prior(diffs, anchor, true);
    if own != SnapshotId::CURRENT && own > known { own } else { known }
}

fn by_name<'a, T>(list: &'a [T], name: &[u8], of: impl Fn(&'a T) -> &'a [u8]) -> Result<usize, usize> {
    let order = |item: &'a T| -> Ordering { compare_names(of(item), name) };
    list.binary_search_by(order)
}

impl DirectoryDiff {
    /// A diff that says only how many children there were.
    pub(crate) fn new(snapshot: SnapshotId, children: u32) -> DirectoryDiff {
        DirectoryDiff { snapshot, children, is_root: false, copy: None, created: Vec::new(), deleted: Vec::new() }
    }
    pub(crate) fn find_created(&self, name: &[u8]) -> Result<usize, usize> {
        by_name(&self.created, name, |n| n)
    }
    pub(crate) fn find_deleted(&self, store: &Store, name: &[u8]) -> Result<usize, usize> {
        by_name(&self.deleted, name, |g| g.name(store))
    }
    /// Whether this diff knows of a name before its changes: the inode it was, or that there was none. `None` if it says nothing of it.
    pub(crate) fn before(&self, store: &Store, name: &[u8]) -> Option<Option<&Gone>> {
        if let Ok(at) = self.find_deleted(store, name) {
            return Some(Some(&self.deleted[at]));
        }
        self.find_created(name).is_ok().then_some(None)
    }
    /// A name was made.
    pub(crate) fn create(&mut self, name: &[u8]) {
        if let Err(at) = self.find_created(name) {
            self.created.insert(at, name.into());
        }
    }
    /// A name went: one made since the snapshot is forgotten (and given back), an older one kept.
    pub(crate) fn delete(&mut self, store: &Store, gone: Gone) -> Option<Gone> {
        let name = gone.name(store);
        if let Ok(at) = self.find_created(name) {
            self.created.remove(at);
            return Some(gone);
        }
        if let Err(at) = self.find_deleted(store, name) {
            self.deleted.insert(at, gone);
        }
        None
    }
}

/// What several diffs of a directory in a row say of its names together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum<'a> {
    /// Names made, in name order.
    pub(crate) created: Cow<'a, [Box<[u8]>]>,
    /// Inodes that went, in name order.
    pub(crate) deleted: Cow<'a, [Gone]>,
}

impl<'a> Sum<'a> {
    /// Takes time in proportion to the names only where more than one diff has any.
    pub(crate) fn of(store: &'a Store, diffs: &'a [DirectoryDiff]) -> Sum<'a> {
        let mut told = diffs.iter().filter(|diff| !(diff.created.is_empty() && diff.deleted.is_empty()));
        match (told.next(), told.next()) {
            (None, _) => return Sum::default(),
            (Some(only), None) => {
                return Sum { created: Cow::Borrowed(&only.created), deleted: Cow::Borrowed(&only.deleted) };
            }
            _ => {}
        }
        // of each name: what it was where it is told of first, and whether it was made where it is told of last
        let mut names: HashMap<&[u8], (Option<&Gone>, bool)> = HashMap::new();
        for diff in diffs {
            for gone in &diff.deleted {
                names.entry(gone.name(store)).and_modify(|told| told.1 = false).or_insert((Some(gone), false));
            }
            for name in &diff.created {
                names.entry(name).and_modify(|told| told.1 = true).or_insert((None, true));
            }
        }
        let mut created: Vec<Box<[u8]>> =
            names.iter().filter(|(_, told)| told.1).map(|(name, _)| Box::from(*name)).collect();
        created.sort_unstable_by(|a, b| compare_names(a, b));
        let mut deleted: Vec<Gone> = names.into_values().filter_map(|told| told.0.cloned()).collect();
        deleted.sort_unstable_by(|a, b| compare_names(a.name(store), b.name(store)));
        Sum { created: Cow::Owned(created), deleted: Cow::Owned(deleted) }
    }

    /// How many names came or went.
    pub(crate) fn len(&self) -> usize {
        self.created.len() + self.deleted.len()
    }
    pub(crate) fn has_deleted(&self, store: &Store, name: &[u8]) -> bool {
        by_name(&self.deleted, name, |gone| gone.name(store)).is_ok()
    }
}

/// A name in the order of lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Name(pub(crate) Box<[u8]>);

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        compare_names(&self.0, &other.0)
    }
}
impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
