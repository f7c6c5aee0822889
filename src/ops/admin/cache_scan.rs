//! The scan of what is to be cached (Hadoop's `CacheReplicationMonitor`), in steps that fit one hold of the lock.
//!
//! First all directives are looked at: what they need and have is counted, and each block of theirs is wanted so often in memory. Then
//! all blocks that are wanted, or are in memory all the same: which DataNodes are to take them in or to let them go.

use crate::read::caches::to_be_cached;
use record::{InodeHandle, KindTag, Store};
use state::State;
use state::caches::CacheUse;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::time::Now;
use vocab::{BlockId, BlockState};

/// Where a scan is.
#[derive(Debug)]
enum Phase {
    Directives {
        /// The directive that is looked at next, or the last that was, and the child that was.
        at: i64,
        child: Option<Vec<u8>>,
    },
    Blocks {
        after: Option<BlockId>,
    },
}

/// One scan after another.
#[derive(Debug, Default)]
pub struct CacheScan {
    number: u64,
    phase: Option<Phase>,
    uses: BTreeMap<i64, CacheUse>,
    /// Bytes needed in each pool, of those counted so far.
    pools: BTreeMap<Arc<str>, i64>,
}

impl CacheScan {
    /// Begins a scan, whether or not the last one has ended.
    pub fn begin(&mut self) {
        self.number += 1;
        self.phase = Some(Phase::Directives { at: 0, child: None });
        self.uses.clear();
        self.pools.clear();
    }

    /// Looks at up to `budget` files or blocks; whether there is more to do.
    pub fn step(&mut self, state: &mut State, now: Now, budget: usize) -> bool {
        match self.phase.take() {
            None => return false,
            Some(Phase::Directives { at, child }) => self.directives(state, now, (at, child), budget),
            Some(Phase::Blocks { after }) => self.blocks(state, after, budget),
        }
        self.phase.is_some()
    }

    fn directives(&mut self, state: &mut State, now: Now, from: (i64, Option<Vec<u8>>), budget: usize) {
        let (mut at, mut child) = from;
        let mut left = budget;
        while left > 0 {
            // in the middle of a directory the directive is looked up again: it may have gone
            let next = state.caches.directives_after(if child.is_some() { at - 1 } else { at }).next();
            let Some((id, directive)) = next.map(|(id, directive, _)| (id, directive.clone())) else {
                state.caches.set_uses(&self.uses);
                self.phase = Some(Phase::Blocks { after: None });
                return;
            };
            if id != at {
                child = None;
            }
            at = id;
            left -= 1;
            let room = left.max(1);
            let begins = child.is_none();
            let used = self.uses.entry(id).or_default();
            if begins {
                *used = CacheUse::default();
            }
            let over = directive.expiry.0 > 0 && directive.expiry <= now.wall;
            let Some(inode) = to_be_cached(state, &directive.path).filter(|_| !over) else {
                child = None;
                continue;
            };
            let files: Vec<InodeHandle> = if state.store.kind(inode) == KindTag::File {
                vec![inode]
            } else {
                let after = child.as_deref().unwrap_or_default();
                state.tree.children_after(&state.store, inode, after).0.take(room).collect()
            };
            let whole = state.store.kind(inode) == KindTag::File || files.len() < room;
            child = files.last().filter(|_| !whole).map(|last| state.store.name(*last).to_vec());
            left = left.saturating_sub(files.len());
            let limit = state.caches.pool(&directive.pool).map_or(0, |pool| pool.limit);
            for file in files {
                if state.store.kind(file) != KindTag::File {
                    continue;
                }
                let needed = i64::try_from(settled_length(&state.store, file))
                    .unwrap_or(i64::MAX)
                    .saturating_mul(directive.replication.into());
                used.files_needed += 1;
                used.bytes_needed = used.bytes_needed.saturating_add(needed);
                let pool = self.pools.entry(directive.pool.clone()).or_default();
                *pool = pool.saturating_add(needed);
                if *pool > limit {
                    continue;
                }
                let cached = want(state, file, directive.replication, self.number);
                used.bytes_cached = used.bytes_cached.saturating_add(cached);
                used.files_cached += i64::from(cached == needed);
            }
            if child.is_some() {
                break;
            }
        }
        self.phase = Some(Phase::Directives { at, child });
    }

    fn blocks(&mut self, state: &mut State, mut after: Option<BlockId>, budget: usize) {
        let State { blocks, store, .. } = state;
        for _ in 0..budget {
            let Some(id) = blocks.caching.next(after) else {
                blocks.caching.tell_at_once();
                return;
            };
            blocks.decide_caching(store, id, self.number);
            after = Some(id);
        }
        self.phase = Some(Phase::Blocks { after });
    }
}

/// Length of a file without its last block, if that is not complete.
fn settled_length(store: &Store, file: InodeHandle) -> u64 {
    let count = store.block_count_of(file);
    let blocks = (0..count).filter_map(|at| store.block_at(file, at).map(|b| (at, store.block(b))));
    let settled = blocks.filter(|(at, info)| at + 1 < count || info.state == BlockState::Complete);
    settled.map(|(_, info)| info.block.length).sum()
}

/// Wants the complete blocks of a file so often in memory. Gives the bytes that are there already.
fn want(state: &mut State, file: InodeHandle, replication: i16, scan: u64) -> i64 {
    let State { blocks, store, .. } = state;
    let wanted = usize::try_from(replication).unwrap_or(0);
    let mut cached = 0i64;
    for b in store.blocks_of(file) {
        let info = store.block(b);
        if info.state == BlockState::Complete {
            let there = blocks.caching.want(info.block.id, replication, scan).min(wanted);
            cached = cached
                .saturating_add(i64::try_from(info.block.length).unwrap_or(i64::MAX).saturating_mul(there as i64));
        }
    }
    cached
}
