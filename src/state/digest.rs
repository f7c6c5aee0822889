//! A number over everything durable and derived, independent of the order in which records lie in their arenas. Equal for live, replayed and reloaded
//! state once nothing waits to be freed. Soft things are not in it: block states, committed lengths that no record has yet, locations, leases' ages,
//! the retry cache, access times of directories (no image has them), use by storage kind (it follows a policy change only at the next load).

use crate::State;
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
        let mut open = vec![self.tree.root()];
        while let Some(inode) = open.pop() {
            sum = sum.wrapping_add(self.inode_digest(inode));
            if self.store.kind(inode) == KindTag::Directory {
                open.extend(self.tree.children(&self.store, inode));
            }
        }
        let s = &self.sequences;
        let mut pair = Pair::new("state");
        pair.add(&sum).add(&self.tree.inode_count());
        pair.add(&s.inode)
            .add(&s.block)
            .add(&s.block_group)
            .add(&s.stamp_v1)
            .add(&s.stamp)
            .add(&s.stamp_v1_limit)
            .add(&s.rolling_upgrade_start);
        let t = &self.tokens;
        pair.add(&t.current_key).add(&t.sequence).add(&t.keys).add(&t.tokens);
        pair.add(&self.preserved).add(self.tree.erasure_coding.all());
        Digest(pair.finish())
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
            pair.add(&Quota { namespace, ..quota.limits }).add(&quota.usage.namespace).add(&quota.usage.space);
        }
        if let Some(construction) = self.tree.construction(handle) {
            pair.add(construction.client).add(construction.machine);
        }
        pair.finish()
    }
}
