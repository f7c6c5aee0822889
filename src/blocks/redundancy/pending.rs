//! Copies that were ordered and are not reported yet (Hadoop's `PendingReconstructionBlocks`).

use crate::NodeNumber;
use mem::sharded::{PiecedQueue, ShardedMap};
use smallvec::SmallVec;
use vocab::BlockId;
use vocab::time::MonotonicMs;

#[derive(Debug)]
struct Entry {
    since: MonotonicMs,
    targets: SmallVec<[NodeNumber; 2]>,
}

/// Copies under way, by block.
#[derive(Debug, Default)]
pub struct Pending {
    entries: ShardedMap<BlockId, Entry>,
    /// Entries in order of their time; those that were renewed or removed are skipped.
    order: PiecedQueue<(MonotonicMs, BlockId)>,
}

impl Pending {
    /// Adds targets of a block; its timeout starts anew.
    pub fn add(&mut self, id: BlockId, targets: &[NodeNumber], now: MonotonicMs) {
        let entry = self.entries.get_or_insert_with(id, || Entry { since: now, targets: SmallVec::new() });
        for t in targets {
            if !entry.targets.contains(t) {
                entry.targets.push(*t);
            }
        }
        entry.since = now;
        self.order.push_back((now, id));
    }
    /// A copy arrived. Whether it was the last one under way.
    pub fn arrived(&mut self, id: BlockId, node: NodeNumber) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.targets.retain(|t| *t != node);
        let done = entry.targets.is_empty();
        if done {
            self.entries.remove(&id);
        }
        done
    }
    /// Copies under way.
    pub fn count(&self, id: BlockId) -> u32 {
        self.entries.get(&id).map_or(0, |e| e.targets.len() as u32)
    }
    /// Where they go.
    pub fn targets(&self, id: BlockId) -> SmallVec<[NodeNumber; 2]> {
        self.entries.get(&id).map(|e| e.targets.clone()).unwrap_or_default()
    }
    /// Blocks, when their last copy was ordered, and how many are under way; in no order.
    pub fn entries(&self) -> impl Iterator<Item = (BlockId, MonotonicMs, usize)> + '_ {
        self.entries.iter().map(|(id, entry)| (*id, entry.since, entry.targets.len()))
    }
    /// Drops a block.
    pub fn remove(&mut self, id: BlockId) {
        self.entries.remove(&id);
    }
    /// Blocks with copies under way.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Looks at the oldest `budget` orders, and takes out the blocks whose copies did not arrive within `age_ms`, with the nodes that owe one; whether
    /// there may be more.
    pub fn expire(
        &mut self,
        now: MonotonicMs,
        age_ms: u64,
        budget: usize,
    ) -> (Vec<(BlockId, SmallVec<[NodeNumber; 2]>)>, bool) {
        let mut out = Vec::new();
        // orders of copies that have arrived are in the queue too
        for _ in 0..budget {
            match self.order.front() {
                Some((since, _)) if now.since(*since) > age_ms => {
                    let (since, id) = self.order.pop_front().expect("there is a front");
                    if self.entries.get(&id).is_some_and(|e| e.since == since) {
                        out.push((id, self.entries.remove(&id).expect("seen").targets));
                    }
                }
                _ => return (out, false),
            }
        }
        (out, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_arrive_or_expire() {
        let mut p = Pending::default();
        p.add(BlockId(1), &[NodeNumber(1), NodeNumber(2)], MonotonicMs(0));
        p.add(BlockId(2), &[NodeNumber(1)], MonotonicMs(5));
        assert_eq!(p.count(BlockId(1)), 2);
        assert!(!p.arrived(BlockId(1), NodeNumber(1)));
        p.add(BlockId(1), &[NodeNumber(3)], MonotonicMs(50));
        assert_eq!(
            p.expire(MonotonicMs(40), 30, 1),
            (Vec::new(), true),
            "the renewed one is not late, but was looked at"
        );
        let (late, more) = p.expire(MonotonicMs(40), 30, 10);
        assert_eq!((late.len(), more), (1, false));
        assert_eq!(late[0].0, BlockId(2));
        assert!(!p.arrived(BlockId(1), NodeNumber(2)) && p.arrived(BlockId(1), NodeNumber(3)));
        assert!(p.is_empty());
    }
}
