//! Detached subtrees: invisible at once, freed in slices. What a deleted snapshot held waits in the same queue (`snapshot::clean`).
//!
//! A subtree leaves the tree by one unlink. Its inodes, blocks, side tables and leases go in slices, children before their directory. What it used
//! of quotas above is given back in the step that cuts it off if it is small, so that there is room before the answer; else as it is freed: until the
//! last slice the use of quota directories above is higher than what they hold, never lower. Ids of detached inodes are found no more
//! ([`Tree::find`]), and nobody can reach them by path.

use crate::codec::add_use;
use crate::side::key;
use crate::snapshot::Cleanup;
use crate::{Tree, quota};
use mem::persist::{Malformed, RestReader, RestWriter};
use record::{Features, InodeHandle, KindTag, Store};
use vocab::InodeId;
use vocab::storage_policy::UNSPECIFIED;

/// Inodes of a subtree, at most, whose use of quotas is added up and given back when it is cut off: a fraction of a slice of time.
const SETTLED_AT_ONCE: u64 = 2_048;
/// Blocks of a file that are freed in one step.
const BLOCKS_AT_ONCE: usize = 64;
/// Steps with what has a past that are done at once: mostly all there are, so that nobody has to wait for the rest.
const STEPS_AT_ONCE: u64 = 16;
/// For how many inodes or blocks a step of a snapshot's deletion counts: it looks at some dozens of names.
pub const STEP_WEIGHT: u64 = 8;

/// A subtree waiting to be freed.
#[derive(Debug)]
pub struct Detached {
    /// Quota directories that were above it and still count it.
    charged: Vec<InodeId>,
    /// Storage policy that it inherited from above.
    storage_policy: u8,
    /// Walk within the subtree: from its top down to the inode that is next, each the last child of the one before.
    open: Vec<InodeHandle>,
}

impl Detached {
    pub(crate) fn write_rest(&self, rest: &mut RestWriter) {
        let Detached { charged, storage_policy, open } = self;
        rest.u8(*storage_policy);
        rest.length(charged.len());
        charged.iter().for_each(|id| rest.i64(id.0));
        rest.length(open.len());
        open.iter().for_each(|inode| rest.u32(inode.raw()));
    }
    pub(crate) fn restore(rest: &mut RestReader<'_>) -> Result<Detached, Malformed> {
        let storage_policy = rest.u8()?;
        let charged = (0..rest.length(8)?).map(|_| rest.i64().map(InodeId)).collect::<Result<_, _>>()?;
        let handle = |raw| InodeHandle::from_raw(raw).ok_or(Malformed("an inode to be freed"));
        let open = (0..rest.length(4)?).map(|_| rest.u32().and_then(handle)).collect::<Result<_, _>>()?;
        Ok(Detached { charged, storage_policy, open })
    }
}

/// Something that waits to be done in slices, in the order of the log.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// A subtree to be freed.
    Subtree(Detached),
    /// What a deleted snapshot held.
    Snapshot(Box<Cleanup>),
}

/// Who takes the blocks of a file that goes; `state` passes the block half.
pub trait BlockSink {
    /// Takes all blocks of the file out of the store.
    fn release(&mut self, store: &mut Store, file: InodeHandle);
    /// Takes a block that is in no file's list any more out of the store.
    fn drop_block(&mut self, store: &mut Store, b: record::BlockHandle);
    /// Sets the wanted replicas of a block.
    fn set_replication(&mut self, store: &mut Store, b: record::BlockHandle, replication: u16);
}

impl Tree {
    /// Cuts a subtree off. It is invisible from now on; [`Tree::reclaim`] frees it.
    pub fn detach(&mut self, store: &mut Store, top: InodeHandle) {
        let parent = store.parent(top);
        let storage_policy = parent.map_or(UNSPECIFIED, |p| self.storage_policy(store, p));
        let mut charged = Vec::new();
        let mut above = parent;
        if above.is_some() && self.only_root_has_quota(store) {
            charged.push(store.inode_id(self.root));
            above = None;
        }
        while let Some(directory) = above {
            if store.features(directory).contains(Features::QUOTA) {
                charged.push(store.inode_id(directory));
            }
            above = store.parent(directory);
        }
        if let Some(counted) = self.count_departure(store, top).map(|counted| store.inode_id(counted))
            && !charged.contains(&counted)
        {
            charged.push(counted);
        }
        self.unlink(store, top);
        let features = store.features(top);
        store.set_features(top, features.with(Features::DETACHED));
        let mut job = Detached { charged, storage_policy, open: vec![top] };
        if !job.charged.is_empty() && self.has_at_most(store, top, SETTLED_AT_ONCE) {
            let usage = self.subtree_usage_below(store, top, storage_policy);
            self.give_back(store, &job.charged, &usage);
            job.charged.clear();
        }
        self.detached.push_back(Waiting::Subtree(job));
    }

    /// A directory has no quota any more: what is freed is nothing to it.
    pub(crate) fn uncharge(&mut self, directory: InodeId) {
        for waiting in &mut self.detached {
            if let Waiting::Subtree(job) = waiting {
                job.charged.retain(|id| *id != directory);
            }
        }
    }

    /// Whether anything waits to be freed.
    pub fn has_detached(&self) -> bool {
        !self.detached.is_empty()
    }

    /// Frees about so many inodes and blocks, or does a fraction of as many steps of what a deleted snapshot leaves to be done. Gives how many inodes
    /// it freed.
    pub fn reclaim(&mut self, store: &mut Store, sink: &mut dyn BlockSink, budget: u64) -> u64 {
        let (mut spent, mut freed) = (0, 0);
        while spent < budget {
            match self.detached.pop_front() {
                None => break,
                Some(Waiting::Subtree(mut job)) => {
                    let mut past = None;
                    while spent < budget && past.is_none() {
                        let Some(inode) = job.open.pop() else { break };
                        if !self.snapshots.is_empty() && self.has_past(store, inode) {
                            let (steps, gone);
                            (steps, gone, past) = self.free_with_past(store, sink, &job, inode);
                            (spent, freed) = (spent + STEP_WEIGHT * steps, freed + gone);
                            continue;
                        }
                        let (work, gone) = self.free_step(store, sink, &mut job, inode);
                        (spent, freed) = (spent + work, freed + gone);
                    }
                    if !job.open.is_empty() {
                        self.detached.push_front(Waiting::Subtree(job));
                    }
                    if let Some(past) = past {
                        self.cleanups += 1;
                        self.detached.push_front(Waiting::Snapshot(past));
                    }
                }
                Some(Waiting::Snapshot(mut job)) => {
                    let (steps, gone) = self.clean_on(store, sink, &mut job, (budget - spent).div_ceil(STEP_WEIGHT));
                    (spent, freed) = (spent + STEP_WEIGHT * steps, freed + gone);
                    if job.is_done() {
                        self.cleanups -= 1;
                    } else {
                        self.detached.push_front(Waiting::Snapshot(job));
                    }
                }
            }
        }
        freed
    }

    /// Takes the last child of an inode, or frees one that has none (left), but for most blocks of a long file. Gives how many inodes and blocks it
    /// dealt with, and how many inodes it freed.
    fn free_step(
        &mut self,
        store: &mut Store,
        sink: &mut dyn BlockSink,
        job: &mut Detached,
        inode: InodeHandle,
    ) -> (u64, u64) {
        let (list, count) = store.children(inode);
        if let Some((child, list)) = self.lists.pop(list) {
            store.set_children(inode, list, count - 1);
            job.open.extend([inode, child]);
            return (0, 0);
        }
        let blocks = store.block_count_of(inode);
        if blocks > BLOCKS_AT_ONCE {
            self.free_last_blocks(store, sink, job, inode, blocks - BLOCKS_AT_ONCE);
            job.open.push(inode);
            return (BLOCKS_AT_ONCE as u64, 0);
        }
        self.free_inode(store, sink, job, inode);
        (1 + blocks as u64, 1)
    }

    /// Frees the blocks of a file from one on.
    fn free_last_blocks(
        &mut self,
        store: &mut Store,
        sink: &mut dyn BlockSink,
        job: &Detached,
        file: InodeHandle,
        from: usize,
    ) {
        self.close(store, file);
        if let Some(shape) = self.detached_shape(store, job, file) {
            self.give_back(store, &job.charged, &self.blocks_usage(store, file, &shape, from));
        }
        let blocks = store.blocks_of(file);
        store.set_blocks(file, &blocks[..from]);
        for b in &blocks[from..] {
            sink.drop_block(store, *b);
        }
    }

    /// Whether an inode has diffs, or was renamed out of a snapshot.
    fn has_past(&self, store: &Store, inode: InodeHandle) -> bool {
        store.features(inode).contains(Features::SNAPSHOT_DIFFS) || self.snapshots.references(inode).is_some()
    }

    /// Frees an inode that has a past, with all below it. Gives how many steps it did and how many inodes it freed, and what is left to do if that is
    /// much: it is done before the rest of the subtree.
    fn free_with_past(
        &mut self,
        store: &mut Store,
        sink: &mut dyn BlockSink,
        job: &Detached,
        inode: InodeHandle,
    ) -> (u64, u64, Option<Box<Cleanup>>) {
        let above = store.parent(inode).map_or(UNSPECIFIED, |above| self.storage_policy(store, above));
        let inherited = if above == UNSPECIFIED { job.storage_policy } else { above };
        let mut past = Box::new(Cleanup::of_detached(self.entry(inode), job.charged.clone(), inherited));
        let (steps, gone) = self.clean_on(store, sink, &mut past, STEPS_AT_ONCE);
        (steps, gone, (!past.is_done()).then_some(past))
    }

    /// Takes something freed off the quotas that were above.
    pub(crate) fn give_back(&mut self, store: &Store, charged: &[InodeId], usage: &vocab::quota::Usage) {
        let usage = quota::negated(usage);
        for id in charged {
            if let Some(directory) = store.find_inode(*id) {
                self.count_freed(directory, &usage);
                self.quotas.edit(key(directory), |bytes| add_use(bytes, &usage));
            }
        }
    }

    /// What decides what a file that is being freed counts; nothing where that was given back before.
    fn detached_shape(&self, store: &Store, job: &Detached, file: InodeHandle) -> Option<quota::FileShape> {
        if job.charged.is_empty() {
            return None;
        }
        let mut shape = self.file_shape(store, file)?;
        if shape.storage_policy == UNSPECIFIED {
            shape.storage_policy = job.storage_policy;
        }
        Some(shape)
    }

    fn free_inode(&mut self, store: &mut Store, sink: &mut dyn BlockSink, job: &Detached, inode: InodeHandle) {
        let mut usage = vocab::quota::Usage { namespace: 1, ..Default::default() };
        if let Some(shape) = self.detached_shape(store, job, inode) {
            quota::add(&mut usage, &self.blocks_usage(store, inode, &shape, 0));
        }
        self.give_back(store, &job.charged, &usage);
        self.close(store, inode);
        if store.kind(inode) == KindTag::File {
            sink.release(store, inode);
        }
        self.forget_sides(inode, store.features(inode));
        store.remove_inode(inode);
        self.inode_count -= 1;
    }
}
