//! Blocks with too few replicas, by urgency (Hadoop's `LowRedundancyBlocks`).

use mem::sharded::ShardedMap;
use std::collections::BTreeMap;
use vocab::BlockId;

/// Urgency; the numbers are Hadoop's queues.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Level {
    /// One replica left, or only leaving ones.
    Highest = 0,
    /// Less than a third of the wanted ones.
    VeryLow = 1,
    /// Fewer than wanted.
    Low = 2,
    /// Enough, but on too few racks.
    BadlyDistributed = 3,
    /// None but corrupt ones: the block is missing.
    Corrupt = 4,
}

impl Level {
    /// Urgency of a block with so many live (or coming), out of service, read-only and wanted replicas.
    pub fn of(live: u32, out_of_service: u32, read_only: u32, wanted: u32) -> Level {
        match live {
            _ if live >= wanted => Level::BadlyDistributed,
            0 if out_of_service > 0 || read_only > 0 => Level::Highest,
            0 => Level::Corrupt,
            1 => Level::Highest,
            _ if live * 3 < wanted => Level::VeryLow,
            _ => Level::Low,
        }
    }

    /// Urgency of a striped group that lacks internal blocks, or racks: `data` of them are enough to read it, `parity` more may be lost.
    pub fn of_group(live: u32, out_of_service: u32, data: u32, parity: u32) -> Level {
        match live {
            _ if live >= data + parity => Level::BadlyDistributed,
            _ if live < data && live + out_of_service < data => Level::Corrupt,
            _ if live <= data => Level::Highest,
            _ if (live - data) * 3 < parity + 1 => Level::VeryLow,
            _ => Level::Low,
        }
    }
}

/// What a queued block is: which of the two accounts it belongs to, and whether it is one of those that wanted a single replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// Replicated, more than once.
    Replicated,
    /// Replicated, one replica wanted.
    Single,
    /// A striped group.
    Group,
}

/// The queues.
#[derive(Debug, Default)]
pub struct LowRedundancy {
    /// Where each block stands: level, ticket and sort.
    place: ShardedMap<BlockId, (Level, u64, Sort)>,
    queues: [BTreeMap<u64, BlockId>; 5],
    /// Ticket after which each queue is walked on.
    cursor: [u64; 5],
    next: u64,
    rounds: u32,
    corrupt_single: usize,
    /// Striped groups at each level.
    groups: [usize; 5],
}

impl LowRedundancy {
    /// Puts a block at a level, at the end of its queue if it was at another or none.
    pub fn put(&mut self, id: BlockId, level: Level, sort: Sort) {
        if self.place.get(&id).is_some_and(|(l, _, s)| *l == level && *s == sort) {
            return;
        }
        self.remove(id);
        self.next += 1;
        self.queues[level as usize].insert(self.next, id);
        self.place.insert(id, (level, self.next, sort));
        self.corrupt_single += usize::from(level == Level::Corrupt && sort == Sort::Single);
        self.groups[level as usize] += usize::from(sort == Sort::Group);
    }
    /// Takes a block out; whether it was in.
    pub fn remove(&mut self, id: BlockId) -> bool {
        let Some((level, ticket, sort)) = self.place.remove(&id) else { return false };
        self.queues[level as usize].remove(&ticket);
        self.corrupt_single -= usize::from(level == Level::Corrupt && sort == Sort::Single);
        self.groups[level as usize] -= usize::from(sort == Sort::Group);
        true
    }
    /// Level of a block.
    pub fn level(&self, id: BlockId) -> Option<Level> {
        self.place.get(&id).map(|p| p.0)
    }
    /// Blocks in all queues.
    pub fn len(&self) -> usize {
        self.place.len()
    }
    /// Those of them that can be copied.
    pub fn waiting(&self) -> usize {
        self.len() - self.at(Level::Corrupt)
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }
    /// Blocks at a level.
    pub fn at(&self, level: Level) -> usize {
        self.queues[level as usize].len()
    }
    /// Striped groups at a level; the others are replicated blocks.
    pub fn groups_at(&self, level: Level) -> usize {
        self.groups[level as usize]
    }
    /// Striped groups in all queues.
    pub fn groups(&self) -> usize {
        self.groups.iter().sum()
    }
    /// Missing blocks of which one replica was wanted.
    pub fn missing_single(&self) -> usize {
        self.corrupt_single
    }
    /// Ids at a level, in queue order, behind a ticket; each with its ticket to go on from.
    pub fn after(&self, level: Level, ticket: u64) -> impl Iterator<Item = (u64, BlockId)> + '_ {
        self.queues[level as usize].range(ticket + 1..).map(|(t, id)| (*t, *id))
    }

    /// Picks up to `n` blocks for work, most urgent first, each queue walked on from where the last round stopped. When every queue is at
    /// its end, or after `restart` rounds, the walk begins anew. Missing blocks are not picked: there is nothing to copy from.
    pub fn pick(&mut self, n: usize, restart: u32) -> Vec<(Level, BlockId)> {
        self.rounds += 1;
        if self.rounds > restart {
            self.restart();
        }
        let mut out = Vec::new();
        for level in [Level::Highest, Level::VeryLow, Level::Low, Level::BadlyDistributed] {
            let q = level as usize;
            for (ticket, id) in self.queues[q].range(self.cursor[q] + 1..).take(n - out.len()) {
                out.push((level, *id));
                self.cursor[q] = *ticket;
            }
        }
        let at_end = (0..4).all(|q| self.queues[q].last_key_value().is_none_or(|(t, _)| *t <= self.cursor[q]));
        if at_end {
            self.restart();
        }
        out
    }

    fn restart(&mut self) {
        self.cursor = [0; 5];
        self.rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        for (live, out, ro, wanted, level) in [
            (3, 0, 0, 3, Level::BadlyDistributed),
            (0, 1, 0, 3, Level::Highest),
            (0, 0, 1, 3, Level::Highest),
            (0, 0, 0, 3, Level::Corrupt),
            (1, 0, 0, 3, Level::Highest),
            (2, 0, 0, 7, Level::VeryLow),
            (2, 0, 0, 3, Level::Low),
        ] {
            assert_eq!(Level::of(live, out, ro, wanted), level, "{live} {out} {ro} {wanted}");
        }
    }

    /// The order of `LowRedundancyBlocks.getPriorityStriped`, asked of Hadoop 3.5.0.
    #[test]
    fn levels_of_groups() {
        for (live, out, data, parity, level) in [
            (9, 0, 6, 3, Level::BadlyDistributed),
            (8, 0, 6, 3, Level::Low),
            (7, 0, 6, 3, Level::VeryLow),
            (6, 0, 6, 3, Level::Highest),
            (5, 0, 6, 3, Level::Corrupt),
            (5, 1, 6, 3, Level::Highest),
            (4, 1, 6, 3, Level::Corrupt),
            (4, 0, 3, 2, Level::Low),
            (3, 0, 3, 2, Level::Highest),
            (0, 0, 1, 2, Level::Corrupt),
            (11, 0, 10, 4, Level::VeryLow),
            (12, 0, 10, 4, Level::Low),
        ] {
            assert_eq!(Level::of_group(live, out, data, parity), level, "{live} {out} {data} {parity}");
        }
    }

    #[test]
    fn picks_go_on_and_start_over() {
        let mut low = LowRedundancy::default();
        for n in 0..5 {
            low.put(BlockId(n), Level::Low, Sort::Replicated);
        }
        low.put(BlockId(9), Level::Highest, Sort::Replicated);
        low.put(BlockId(8), Level::Corrupt, Sort::Single);
        let ids = |v: Vec<(Level, BlockId)>| v.into_iter().map(|(_, b)| b.0).collect::<Vec<_>>();
        assert_eq!(ids(low.pick(3, 100)), [9, 0, 1]);
        assert_eq!(ids(low.pick(3, 100)), [2, 3, 4]);
        assert_eq!(ids(low.pick(2, 100)), [9, 0], "all were at their ends");
        assert_eq!((low.len(), low.at(Level::Corrupt), low.missing_single()), (7, 1, 1));
        low.put(BlockId(8), Level::Low, Sort::Group);
        assert_eq!((low.at(Level::Corrupt), low.missing_single()), (0, 0));
        assert_eq!((low.groups_at(Level::Low), low.groups()), (1, 1));
        assert!(low.remove(BlockId(8)) && !low.remove(BlockId(8)));
    }
}
