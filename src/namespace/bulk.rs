//! Bulk loading: side tables filled by hand of one thread while others encode records, and a count of everything that needs no walk where nothing
//! in the tree asks for one.

pub use crate::bulk_count::Share;

use crate::build::{Build, BuildError};
use crate::codec::{encode_acl, encode_xattrs};
use crate::erasure_coding::{Policies, is_policy};
use crate::quota::{self, FileShape, QuotaRecord, plain_space};
use crate::side::key;
use crate::{Tree, construction};
use mem::bulk::Clock;
use mem::side::SideTable;
use record::{InodeHandle, Linker, Store};
use std::collections::BTreeSet;
use vocab::Block;
use vocab::acl::AclEntry;
use vocab::encryption::is_zone;
use vocab::quota::{Quota, Usage};
use vocab::xattr::Xattr;

/// What a side table says of an inode. The record carries the feature bit already.
#[derive(Clone, Debug)]
pub enum Side {
    /// ACL entries, at least one.
    Acl(Vec<AclEntry>),
    /// Extended attributes, at least one.
    Xattrs(Vec<Xattr>),
    /// Limits of a directory, at least one.
    Quota(Quota),
    /// Lease holder and its host.
    Construction(String, String),
    /// Target of a symlink.
    Symlink(Vec<u8>),
}

/// Side tables being filled.
#[derive(Debug, Default)]
pub struct Sides {
    acls: SideTable,
    xattrs: SideTable,
    quotas: SideTable,
    constructions: SideTable,
    symlinks: SideTable,
    /// An attribute names an erasure coding policy.
    coded: bool,
    /// Roots of encryption zones.
    zones: BTreeSet<InodeHandle>,
    scratch: Vec<u8>,
}

impl Sides {
    /// Enters what is known of an inode.
    pub fn put(&mut self, inode: InodeHandle, side: &Side) {
        let bytes = &mut self.scratch;
        bytes.clear();
        let table = match side {
            Side::Acl(entries) => {
                encode_acl(entries, bytes);
                &mut self.acls
            }
            Side::Xattrs(all) => {
                encode_xattrs(all, bytes);
                self.coded |= all.iter().any(is_policy);
                if all.iter().any(is_zone) {
                    self.zones.insert(inode);
                }
                &mut self.xattrs
            }
            Side::Quota(limits) => {
                let record = QuotaRecord { limits: *limits, usage: Usage::default() };
                bytes.extend_from_slice(&crate::codec::encode_quota(&record));
                &mut self.quotas
            }
            Side::Construction(client, machine) => {
                construction::encode(construction::Construction { client, machine }, bytes);
                &mut self.constructions
            }
            Side::Symlink(target) => {
                bytes.extend_from_slice(target);
                &mut self.symlinks
            }
        };
        table.set(key(inode), bytes);
    }
}

/// What workers have summed up over inodes, each by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Use of all files, as if no directory had a storage policy.
    pub usage: Usage,
    /// A directory has a storage policy.
    pub policies: bool,
    /// Inodes that have a parent.
    pub linked: u64,
}

impl Totals {
    /// Adds those of another part.
    pub fn add(&mut self, more: &Totals) {
        quota::add(&mut self.usage, &more.usage);
        self.policies |= more.policies;
        self.linked += more.linked;
    }
    /// Adds the use of a file.
    #[inline]
    pub fn add_file(&mut self, shape: &FileShape, blocks: &[Block]) {
        if shape.is_plain() {
            for block in blocks {
                self.usage.space = self.usage.space.saturating_add(plain_space(block.length, shape.replication));
            }
            return;
        }
        for (at, block) in blocks.iter().enumerate() {
            let last = at + 1 == blocks.len();
            let used = if last { shape.last(block) } else { shape.full(block) };
            quota::add(&mut self.usage, &used);
        }
    }
}

impl Build {
    /// Goes on from records and side tables that were made in bulk. Of `root` the loader knows that its id is the root's, and whether it is
    /// a directory. The clock tells how long memory takes to come.
    pub fn of_bulk(root: InodeHandle, has_root: bool, sides: Sides, erasure_coding: Policies, clock: Clock) -> Build {
        let Sides { acls, xattrs, quotas, constructions, symlinks, coded, zones, .. } = sides;
        let mut tree =
            Tree { acls, xattrs, quotas, constructions, symlinks, erasure_coding, zones, ..Build::bare(root) };
        tree.erasure_coding.on_directories |= coded;
        tree.lists.set_filling(Some(clock));
        Build::from_parts(tree, has_root)
    }

    /// The root's record.
    pub fn root(&self) -> InodeHandle {
        self.tree.root
    }
    /// Sets the child list of a directory while others link: in order of names, with the [`crate::children::tag`] of each. `false`, and only the
    /// count set, if there are too many for that: to be given to [`Build::put_children`] later.
    ///
    /// # Errors
    /// [`BuildError::TwoLists`].
    pub fn put_tagged(
        &mut self,
        linker: &Linker<'_>,
        parent: InodeHandle,
        children: &[InodeHandle],
        tags: &[u8],
    ) -> Result<bool, BuildError> {
        if children.is_empty() {
            return Ok(true);
        }
        if linker.child_count(parent) > 0 {
            return Err(BuildError::TwoLists(linker.id(parent)));
        }
        let list = self.tree.lists.set_tagged(children, tags);
        linker.set_children(parent, list.unwrap_or(0), children.len() as u32);
        Ok(list.is_some())
    }
    /// Sets the child list of a directory: in order of names, and linked to it already.
    pub fn put_children(&mut self, store: &mut Store, parent: InodeHandle, children: &[InodeHandle]) {
        let list = self.tree.lists.set_sorted(store, children);
        store.set_children(parent, list, children.len() as u32);
    }

    /// As [`Build::finish`], with sums that were made beside loading. They are the answer where no directory but the root counts and every inode
    /// is below it; else all inodes are looked at once more, as `share` shares them out. `parents` are all directories with children;
    /// `below_root`: each of them has the root somewhere above it.
    ///
    /// # Errors
    /// [`BuildError::NoRoot`].
    pub fn finish_bulk(
        mut self,
        store: &mut Store,
        totals: &Totals,
        parents: &[InodeHandle],
        below_root: bool,
        share: Share<'_>,
    ) -> Result<Tree, BuildError> {
        self.tree.lists.set_filling(None);
        let tree = &self.tree;
        if !tree.snapshots.is_empty() {
            return self.finish(store);
        }
        let only_root = tree.quotas.len() <= usize::from(tree.quotas.contains(key(tree.root)));
        let whole = below_root && totals.linked + 1 == store.inode_count();
        if !only_root || totals.policies || !whole {
            return self.finish_shared(store, parents, share);
        }
        let namespace = i64::try_from(store.inode_count()).unwrap_or(i64::MAX);
        self.finish_counted(store, &Usage { namespace, ..totals.usage })
    }
}
