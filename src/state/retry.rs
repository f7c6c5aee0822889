//! Answers of at-most-once calls, so that a repeated call is answered and not done again. Filled by `apply` from the ids in the records;
//! soft: it is not in the image, and its ages do not count for the digest.

use mem::sharded::{PiecedQueue, ShardedMap};
use std::sync::Arc;
use vocab::time::MonotonicMs;
use vocab::{Block, InodeId, RpcIds};

/// What the caller received, as far as it cannot be made from the state alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RetryPayload {
    /// Success without a value.
    Done,
    /// A boolean answer.
    Answer(bool),
    /// A create or append: the file.
    File(InodeId),
    /// An append that goes on with a partial last block.
    Append(InodeId, Option<Block>),
    /// A cache directive's id.
    Id(i64),
    /// A snapshot's path.
    Path(Arc<str>),
}

/// One remembered call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryEntry {
    /// What it answered.
    pub payload: RetryPayload,
    /// When it was made, on the clock given to [`RetryCache::expire`].
    pub made: MonotonicMs,
}

/// The cache.
#[derive(Debug, Default)]
pub struct RetryCache {
    entries: ShardedMap<RpcIds, RetryEntry>,
    order: PiecedQueue<(MonotonicMs, RpcIds)>,
    now: MonotonicMs,
}

impl RetryCache {
    /// What a call with these ids answered before.
    pub fn get(&self, ids: &RpcIds) -> Option<&RetryEntry> {
        self.entries.get(ids)
    }
    /// Remembers an answer.
    pub fn insert(&mut self, ids: RpcIds, payload: RetryPayload) {
        self.entries.insert(ids, RetryEntry { payload, made: self.now });
        self.order.push_back((self.now, ids));
    }
    /// Number of remembered calls.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Sets the clock that new entries are stamped with.
    pub fn set_now(&mut self, now: MonotonicMs) {
        self.now = now;
    }
    /// Moves the clock and forgets calls older than `age_ms` milliseconds, at most `budget` of them. Returns whether more remain.
    pub fn expire(&mut self, now: MonotonicMs, age_ms: u64, budget: usize) -> bool {
        self.now = now;
        for _ in 0..budget {
            match self.order.front() {
                Some((made, ids)) if now.since(*made) > age_ms => {
                    if self.entries.get(ids).is_some_and(|e| e.made == *made) {
                        self.entries.remove(ids);
                    }
                    self.order.pop_front();
                }
                _ => return false,
            }
        }
        true
    }
}
