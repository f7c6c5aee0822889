//! A number over everything durable and derived, independent of the order in which records lie in their arenas. Equal for live, replayed and reloaded
//! state once nothing waits to be freed. Soft things are not in it: block states, committed lengths that no record has yet, locations, leases' ages,
//! the retry cache, access times of directories (no image has them), use by storage kind (it follows a policy change of very many inodes only at the next load).

use crate::State;
use namespace::snapshot::{AttributeCopy, Link};
use record::{InodeHandle, InodeKind, KindTag};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use vocab::quota::Quota;

/// Digest of a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub u128);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Two independent hashes, 128 bits together.
struct Pair(DefaultHasher, DefaultHasher);

impl Pair {
    fn new(domain: &str) -> Pair {
        let mut pair = Pair(DefaultHasher::new(), DefaultHasher::new());
        pair.1.write_u64(0x9e37_79b9_7f4a_7c15);
        pair.add(domain);
        pair
    }
    fn add<T: Hash + ?Sized>(&mut self, value: &T) -> &mut Pair {
        value.hash(&mut self.0);
        value.hash(&mut self.1);
        self
    }
    fn finish(&self) -> u128 {
        u128::from(self.0.finish()) << 64 | u128::from(self.1.finish())
    }
}

impl State {
    /// The digest. Walks everything.
    pub fn digest(&self) -> Digest {
        let mut sum = 0u128;
        let mut open = self.tree.past_tops();
        open.push(self.tree.root());
        while let Some(inode) = open.pop() {
            sum = sum.wrapping_add(self.inode_digest(inode));
            if self.store.kind(inode) == KindTag::Directory {
                open.extend(self.tree.children(&self.store, inode));
            }
        }
        let s = &self.sequences;
        let mut pair = Pair::new("state");
        pair.add(&sum).add(&self.tree.inode_count()).add(&self.past_digest());
        pair.add(&s.inode)
            .add(&s.block)
            .add(&s.block_group)
            .add(&s.stamp_v1)
            .add(&s.stamp)
            .add(&s.stamp_v1_limit)
            .add(&s.rolling_upgrade_start);
        let t = &self.tokens;
        pair.add(&t.current_key).add(&t.sequence).add(&t.keys).add(&t.tokens);
        pair.add(self.tree.erasure_coding.all()).add(&self.caches.next_directive);
        self.caches.pools_after("").for_each(|(name, pool, _)| _ = pair.add(name).add(pool));
        self.caches.directives_after(0).for_each(|(id, directive, _)| _ = pair.add(&id).add(directive));
        Digest(pair.finish())
    }

    /// Snapshots, diffs and references.
    fn past_digest(&self) -> u128 {
        let past = &self.tree.snapshots;
        let mut sum = 0u128;
        let mut pair = Pair::new("snapshots");
        pair.add(&past.counter);
        for (id, root) in past.roots() {
            pair.add(&id).add(&root.quota);
            for snapshot in &root.snapshots {
                pair.add(&snapshot.id).add(&snapshot.name);
                self.copy_digest(&mut pair, Some(&snapshot.root));
            }
        }
        for inode in past.with_diffs() {
            let mut one = Pair::new("diffs");
            one.add(&self.store.inode_id(inode));
            for diff in past.directory_diffs(inode) {
                one.add(&diff.snapshot).add(&diff.children).add(&diff.is_root).add(&diff.created);
                self.copy_digest(&mut one, diff.copy.as_deref());
                for gone in &diff.deleted {
                    one.add(&self.store.inode_id(gone.inode)).add(gone.name(&self.store));
                    match gone.link {
                        Link::Plain => one.add(&0u8),
                        Link::Renamed => one.add(&1u8),
                        Link::Named { last, .. } => one.add(&last),
                    };
                }
            }
            for diff in past.file_diffs(inode) {
                one.add(&diff.snapshot).add(&diff.length);
                self.copy_digest(&mut one, diff.copy.as_deref());
                // an empty list and none are one in an image
                let blocks = diff.blocks.iter().flatten();
                let blocks: Vec<_> = blocks.map(|b| self.store.block_core(*b)).collect();
                one.add(&blocks);
            }
            one.add(&past.is_deleted(inode));
            sum = sum.wrapping_add(one.finish());
        }
        for inode in past.referred() {
            let mut one = Pair::new("references");
            if let Some(references) = past.references(inode) {
                one.add(&self.store.inode_id(inode)).add(&references.names).add(&references.target);
            }
            sum = sum.wrapping_add(one.finish());
        }
        pair.add(&sum);
        pair.finish()
    }

    fn copy_digest(&self, pair: &mut Pair, copy: Option<&AttributeCopy>) {
        let Some(copy) = copy else {
            pair.add(&0u8);
            return;
        };
        let inode = &copy.inode;
        pair.add(&copy.name).add(self.store.user_name(inode.user)).add(self.store.group_name(inode.group));
        pair.add(&inode.mode).add(&inode.mtime);
        match inode.kind {
            InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy } => {
                pair.add(&inode.atime).add(&replication).add(&block_size);
                pair.add(&storage_policy).add(&erasure_coding_policy);
            }
            InodeKind::Directory { storage_policy, .. } => {
                pair.add(&storage_policy);
            }
            InodeKind::Symlink | InodeKind::Reference { .. } => {}
        }
        let namespace = copy.quota.namespace.filter(|names| *names != i64::MAX as u64);
        pair.add(&copy.acl).add(&copy.xattrs).add(&Quota { namespace, ..copy.quota });
    }

    fn inode_digest(&self, handle: InodeHandle) -> u128 {
        let inode = self.store.inode(handle);
        let mut pair = Pair::new("inode");
        pair.add(&inode.id).add(self.store.name(handle)).add(&inode.parent.map(|p| self.store.inode_id(p)));
        pair.add(self.store.user_name(inode.user))
            .add(self.store.group_name(inode.group))
            .add(&inode.mode)
            .add(&inode.mtime);
        match inode.kind {
            InodeKind::Directory { child_count, storage_policy, .. } => {
                pair.add(&0u8).add(&child_count).add(&storage_policy);
            }
            InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy } => {
                pair.add(&1u8)
                    .add(&inode.atime)
                    .add(&replication)
                    .add(&block_size)
                    .add(&storage_policy)
                    .add(&erasure_coding_policy);
                for b in self.store.blocks_of(handle) {
                    let info = self.store.block(b);
                    pair.add(&self.logged_block(info.block))
                        .add(&info.replication)
                        .add(&self.store.block_file(b).map(|h| self.store.inode_id(h)));
                }
            }
            InodeKind::Symlink => {
                pair.add(&2u8).add(&inode.atime).add(self.tree.symlink_target(handle));
            }
            InodeKind::Reference { .. } => {
                pair.add(&3u8);
            }
        }
        pair.add(&self.tree.acl(handle)[..]).add(&self.tree.xattrs(handle)[..]);
        if let Some(quota) = self.tree.quota(&self.store, handle) {
            // the largest number of names is no limit: images turn one into the other
            let namespace = quota.limits.namespace.filter(|names| *names != i64::MAX as u64);
            pair.add(&Quota { namespace, ..quota.limits });
            if self.tree.is_attached(&self.store, handle) {
                pair.add(&quota.usage.namespace).add(&quota.usage.space);
            }
        }
        if let Some(construction) = self.tree.construction(handle) {
            pair.add(construction.client).add(construction.machine);
            let last = self.store.last_block(handle).map(|b| self.store.block_core(b).id);
            pair.add(&last.and_then(|id| self.blocks.construction(id)?.truncate));
        }
        pair.finish()
    }
}
