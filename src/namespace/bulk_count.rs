//! Counting the use of quota directories in bulk: arena page by arena page, by as many threads as the caller has. Nothing walks the tree; a
//! directory knows which quota directory it counts for and which storage policy is in effect below it, and each inode asks its parent.

use crate::quota::{self, QuotaRecord};
use crate::{Tree, side};
use hashbrown::HashMap;
use record::{Features, InodeHandle, KindTag, Store};
use vocab::quota::Usage;
use vocab::storage_policy::UNSPECIFIED;

/// How the pages are shared out: given how many there are, how many sums are made, and what adds a page to such sums.
pub type Share<'s> = &'s dyn Fn(u32, usize, &(dyn Fn(u32, &mut [Usage]) + Sync)) -> Vec<Usage>;

/// What a directory hands down.
#[derive(Clone, Copy)]
struct Owner {
    /// Place of the quota directory that it counts for.
    quota: u32,
    storage_policy: u8,
}

/// A quota directory.
struct Counted {
    directory: InodeHandle,
    /// Place of the one above; of the root its own.
    above: u32,
}

/// What all threads look at.
pub(crate) struct Count<'a> {
    tree: &'a Tree,
    store: &'a Store,
    owners: HashMap<InodeHandle, Owner>,
    /// The root first, and each after those above it.
    quotas: Vec<Counted>,
}

impl<'a> Count<'a> {
    /// Over a tree whose directories with children are `parents`. `None` if one of them is not below the root.
    pub(crate) fn new(tree: &'a Tree, store: &'a Store, parents: &[InodeHandle]) -> Option<Count<'a>> {
        let mut count = Count { tree, store, owners: HashMap::with_capacity(parents.len()), quotas: Vec::new() };
        let storage_policy = tree.own_storage_policy(store, tree.root);
        count.owners.insert(tree.root, Owner { quota: 0, storage_policy });
        count.quotas.push(Counted { directory: tree.root, above: 0 });
        let mut chain = Vec::new();
        for parent in parents {
            if !count.resolve(*parent, parents.len(), &mut chain) {
                return None;
            }
        }
        // quota directories without children; those that no directory lists count nothing
        let quotas: Vec<InodeHandle> = tree.all_quotas().map(|(directory, _): (_, QuotaRecord)| directory).collect();
        for directory in quotas {
            count.resolve(directory, parents.len() + 1, &mut chain);
        }
        Some(count)
    }

    /// Learns what a directory and those above it hand down; `false` if it is not below the root.
    fn resolve(&mut self, directory: InodeHandle, most: usize, chain: &mut Vec<InodeHandle>) -> bool {
        chain.clear();
        let (mut at, mut owner) = (directory, None);
        while owner.is_none() {
            owner = self.owners.get(&at).copied();
            if owner.is_none() {
                chain.push(at);
                match self.store.parent(at) {
                    Some(above) if chain.len() <= most => at = above,
                    _ => return false,
                }
            }
        }
        let Some(mut owner) = owner else { return false };
        for directory in chain.iter().rev() {
            let own = self.tree.own_storage_policy(self.store, *directory);
            if own != UNSPECIFIED {
                owner.storage_policy = own;
            }
            if self.store.features(*directory).contains(Features::QUOTA) {
                self.quotas.push(Counted { directory: *directory, above: owner.quota });
                owner.quota = self.quotas.len() as u32 - 1;
            }
            self.owners.insert(*directory, owner);
        }
        true
    }

    /// How many sums there are.
    pub(crate) fn sums(&self) -> usize {
        self.quotas.len()
    }

    /// Adds the inodes of a page.
    pub(crate) fn add_page(&self, page: u32, sums: &mut [Usage]) {
        let mut last: Option<(InodeHandle, Owner)> = None;
        for inode in self.store.inodes_of_page(page) {
            let parent = if inode == self.tree.root { Some(inode) } else { self.store.parent(inode) };
            // an inode that no directory lists counts nothing
            let Some(parent) = parent else { continue };
            let owner = match last {
                Some((known, owner)) if known == parent => owner,
                _ => match self.owners.get(&parent) {
                    Some(owner) => *owner,
                    None => continue,
                },
            };
            last = Some((parent, owner));
            if self.store.kind(inode) == KindTag::Directory {
                let own = self.owners.get(&inode).unwrap_or(&owner);
                sums[own.quota as usize].namespace += 1;
                continue;
            }
            let sum = &mut sums[owner.quota as usize];
            sum.namespace += 1;
            if let Some(shape) = self.tree.file_shape_below(self.store, inode, owner.storage_policy) {
                quota::add(sum, &self.tree.blocks_usage(self.store, inode, &shape, 0));
            }
        }
    }

    /// The use of each quota directory: what is below it included.
    pub(crate) fn finish(self, mut sums: Vec<Usage>) -> Vec<(InodeHandle, Usage)> {
        for at in (1..sums.len()).rev() {
            let below = sums[at];
            quota::add(&mut sums[self.quotas[at].above as usize], &below);
        }
        self.quotas.iter().map(|counted| counted.directory).zip(sums).collect()
    }
}

impl Tree {
    /// Sets the use of every quota directory, and the number of inodes. `false`, and nothing done, if a walk has to tell.
    pub(crate) fn count_shared(&mut self, store: &Store, parents: &[InodeHandle], share: Share<'_>) -> bool {
        let Some(count) = Count::new(self, store, parents) else { return false };
        let sums = share(store.inode_page_count(), count.sums(), &|page, sums| count.add_page(page, sums));
        let used = count.finish(sums);
        self.inode_count = used.first().map_or(0, |(_, usage)| usage.namespace.unsigned_abs());
        for (directory, usage) in used {
            self.edit_quota(directory, |record| record.usage = usage);
        }
        debug_assert!(self.quotas.contains(side::key(self.root)));
        true
    }
}
