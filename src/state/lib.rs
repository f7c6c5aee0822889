//! Purpose: the whole file system as one value: namespace and blocks joined, and the one transition that changes them (`fit`, `apply`).
//! Called by: ops (live calls), storage (image, replay), engine.
//! Calls: record, namespace, blocks, edit, vocab; mem (page sets, to write them down).
//! Never: locks, logs, reads a clock, a file or a setting; invents an id, a stamp or a time.
//! Invariants: live state == state replayed from its records == state saved and reloaded, as `digest` sees it; `apply` cannot fail after `fit`.

mod apply;
pub mod caches;
pub mod digest;
pub mod effects;
pub mod fit;
mod joint;
mod persist;
mod replay;
pub mod retry;
pub mod sequences;
pub mod tokens;

pub use caches::{CacheDirective, CachePool, CacheUse, Caches};
pub use digest::Digest;
pub use effects::{Effect, Effects};
pub use fit::{Applied, Fit, Fitted, Mismatch, Mode, Paths};
pub use namespace::RootAttributes;
pub use namespace::snapshot::PastCopy;
pub use replay::Replay;
pub use retry::{RetryCache, RetryEntry, RetryPayload};
pub use sequences::Sequences;

use hashbrown::HashMap;
use namespace::Tree;
use std::collections::VecDeque;
use std::fmt;
use vocab::time::{MonotonicMs, Now};
use vocab::xattr::XattrNamespace;
use vocab::{Block, BlockId, BlockState, InodeId};

/// The whole file system.
pub struct State {
    /// Records of inodes and blocks.
    pub store: record::Store,
    /// Names, permissions, quotas, leases.
    pub tree: Tree,
    /// DataNodes and where blocks are. All of it is soft.
    pub blocks: blocks::Blocks,
    /// Last ids and stamps handed out.
    pub sequences: Sequences,
    /// Answers of at-most-once calls.
    pub retry: RetryCache,
    /// Delegation tokens and master keys.
    pub tokens: tokens::Tokens,
    /// What is to be kept in the memory of DataNodes.
    pub caches: Caches,
    /// Files and directories whose blocks are to be moved to where their storage policies want them, in the order they were asked for (soft:
    /// each has an attribute that says so).
    pub satisfier: VecDeque<InodeId>,
    /// Last blocks that a client has committed without a record yet, as the journal knows them: what a restart would find.
    uncommitted: HashMap<BlockId, Block>,
    /// Whether a rolling upgrade was finalized since the start and none has begun again: DataNodes are told (soft).
    pub rolling_upgrade_finalized: bool,
    /// About how many inodes and blocks a live deletion frees in its own hold; the rest goes in slices (soft).
    pub freed_at_once: u64,
    /// When the recovery of a block was last begun (soft).
    recoveries: HashMap<BlockId, MonotonicMs>,
}

/// The attribute of what is to satisfy its storage policy.
pub const SATISFY_XATTR: (XattrNamespace, &str) = (XattrNamespace::User, "hdfs.sps");

/// A recovery that has not ended after this time is begun again (Hadoop: 30 heartbeats).
const RECOVERY_TIMEOUT_MS: u64 = 90_000;

impl State {
    /// An empty file system, as a format leaves it.
    pub fn new(root: RootAttributes<'_>) -> State {
        let mut store = record::Store::new();
        let tree = Tree::new(&mut store, root);
        State::from_parts(store, tree, Sequences::default(), tokens::Tokens::default())
    }

    /// A file system of loaded parts, with no DataNode yet; `blocks` may be replaced by one with other settings before any block is reported.
    pub fn from_parts(store: record::Store, tree: Tree, sequences: Sequences, tokens: tokens::Tokens) -> State {
        State {
            store,
            tree,
            blocks: blocks::Blocks::default(),
            sequences,
            retry: RetryCache::default(),
            tokens,
            caches: Caches::default(),
            satisfier: VecDeque::new(),
            uncommitted: HashMap::new(),
            rolling_upgrade_finalized: false,
            freed_at_once: joint::FREED_AT_ONCE,
            recoveries: HashMap::new(),
        }
    }

    /// Tells the soft parts (leases, retry cache) what time it is. To be called with every call and tick.
    pub fn set_clock(&mut self, now: Now) {
        self.tree.leases.set_now(now.monotonic);
        self.retry.set_now(now.monotonic);
    }

    /// Begins to serve, once, after image and log are loaded: safe mode opens with the complete blocks as its total, and clients get the whole
    /// time of a lease again, however long the load took.
    pub fn start(&mut self, now: Now) {
        self.set_clock(now);
        self.tree.leases.renew_all();
        for policy in self.tree.erasure_coding.all().values() {
            self.blocks.set_stripe(policy.id, policy.stripe);
        }
        let files = self.tree.leases.iter().flat_map(|lease| &lease.files);
        let open = files
            .filter_map(|id| self.store.find_inode(*id))
            .flat_map(|file| self.store.blocks_of(file))
            .filter(|b| self.store.block_state(*b) != BlockState::Complete)
            .count();
        self.blocks.start(&self.store, open as u64, self.sequences.stamp, now);
    }

    /// Queues what was asked to satisfy its storage policy before this process began, by number of the inode. Walks all extended attributes.
    pub fn queue_for_satisfier(&mut self) {
        let asked = self.tree.with_xattr(SATISFY_XATTR.0, SATISFY_XATTR.1).into_iter();
        let asked = asked.filter(|inode| self.has_something_to_satisfy(*inode));
        let mut ids: Vec<InodeId> = asked.map(|inode| self.store.inode_id(inode)).collect();
        ids.sort_unstable();
        self.satisfier = ids.into();
    }
    /// Whether blocks could have to move: a file without blocks has none.
    pub fn has_something_to_satisfy(&self, inode: record::InodeHandle) -> bool {
        self.store.kind(inode) != record::KindTag::File || self.store.block_count_of(inode) > 0
    }

    /// Whether the recovery of a block may begin now: none runs, or the last one is too old to be waited for.
    pub fn begin_recovery_attempt(&mut self, id: BlockId) -> bool {
        let now = self.tree.leases.now();
        self.recoveries.retain(|_, begun| now.since(*begun) <= RECOVERY_TIMEOUT_MS);
        if self.recoveries.contains_key(&id) {
            return false;
        }
        self.recoveries.insert(id, now);
        true
    }
    /// The recovery of a block has ended.
    pub fn end_recovery_attempt(&mut self, id: BlockId) {
        self.recoveries.remove(&id);
    }

    /// Frees about so many inodes and blocks of subtrees that were cut off, or does a fraction of as many steps of a snapshot's deletion. Returns
    /// whether more wait.
    pub fn reclaim(&mut self, budget: u64) -> bool {
        self.free_detached(budget);
        self.tree.has_detached()
    }

    /// The last block of an open file as the journal has it: with the length that was last logged, whatever a client committed since.
    pub fn logged_block(&self, block: Block) -> Block {
        self.uncommitted.get(&block.id).copied().unwrap_or(block)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("inodes", &self.tree.inode_count())
            .field("sequences", &self.sequences)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
