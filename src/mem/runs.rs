//! Sets of block ids in little memory: which blocks a storage holds.
//!
//! A run is a sorted list of leaves of up to [`LEAF_MAX`] ids; a leaf keeps its first id in full and the others as varint differences, about
//! two bytes each for a storage that holds one block in some thousand. A full block report rebuilds the run; single changes are spliced into
//! their leaf in place, which costs less than a microsecond, so no separate set of pending changes is needed.

use crate::varint;

/// Most ids in one leaf.
pub const LEAF_MAX: usize = 512;
/// Leaves are filled so far by a rebuild, which leaves room for what comes after it.
const LEAF_FILL: usize = 448;
/// A leaf with fewer ids looks for a neighbour to merge with.
const LEAF_MIN: usize = 96;

#[derive(Clone, Debug)]
struct Leaf {
    first: i64,
    /// The highest id, so that ids in order are appended without a walk.
    last: i64,
    count: u16,
    /// Differences of each id but the first from the one before it.
    deltas: Vec<u8>,
}

impl Leaf {
    fn of(ids: &[i64]) -> Leaf {
        let mut deltas = Vec::with_capacity(ids.len() * 2);
        for pair in ids.windows(2) {
            varint::put(&mut deltas, pair[1].wrapping_sub(pair[0]) as u64);
        }
        deltas.shrink_to_fit();
        Leaf { first: ids[0], last: ids[ids.len() - 1], count: ids.len() as u16, deltas }
    }

    fn iter(&self) -> LeafIter<'_> {
        LeafIter { deltas: &self.deltas, at: 0, next: self.first, left: usize::from(self.count) }
    }

    /// Replaces the differences in `range` by the given ones.
    fn splice(&mut self, range: std::ops::Range<usize>, new: &[u64]) {
        let mut bytes = Vec::with_capacity(20);
        new.iter().for_each(|d| varint::put(&mut bytes, *d));
        let growth = bytes.len().saturating_sub(range.len());
        if self.deltas.capacity() - self.deltas.len() < growth {
            self.deltas.reserve_exact(growth + 30);
        }
        self.deltas.splice(range, bytes);
    }

    /// Where the first id not below `id` stands.
    fn seek(&self, id: i64) -> Seek {
        let (mut at, mut before, mut value) = (0, self.first, self.first);
        let mut start = 0;
        for nth in 0..self.count {
            if nth > 0 {
                start = at;
                before = value;
                value = value.wrapping_add(varint::take(&self.deltas, &mut at) as i64);
            }
            if value >= id {
                return Seek { nth, before, value, delta: start..at };
            }
        }
        Seek { nth: self.count, before: value, value, delta: at..at }
    }

    fn insert(&mut self, id: i64) -> bool {
        if id > self.last {
            if self.deltas.capacity() - self.deltas.len() < 10 {
                self.deltas.reserve_exact(40);
            }
            varint::put(&mut self.deltas, id.wrapping_sub(self.last) as u64);
            self.last = id;
            self.count += 1;
            return true;
        }
        let seek = self.seek(id);
        if seek.nth < self.count && seek.value == id {
            return false;
        }
        if seek.nth == 0 {
            self.splice(0..0, &[self.first.wrapping_sub(id) as u64]);
            self.first = id;
        } else {
            self.splice(seek.delta, &[id.wrapping_sub(seek.before) as u64, seek.value.wrapping_sub(id) as u64]);
        }
        self.count += 1;
        true
    }

    /// Removes an id of a leaf that has others too.
    fn remove(&mut self, id: i64) -> bool {
        let seek = self.seek(id);
        if seek.nth == self.count || seek.value != id {
            return false;
        }
        let mut at = seek.delta.end;
        let last = seek.nth + 1 == self.count;
        let next = if last { 0 } else { varint::take(&self.deltas, &mut at) };
        if seek.nth == 0 {
            self.first = self.first.wrapping_add(next as i64);
            self.splice(0..at, &[]);
        } else if last {
            self.splice(seek.delta, &[]);
            self.last = seek.before;
        } else {
            let joined = (seek.value.wrapping_sub(seek.before) as u64).wrapping_add(next);
            self.splice(seek.delta.start..at, &[joined]);
        }
        self.count -= 1;
        true
    }
}

struct Seek {
    /// Number within the leaf, `count` if all ids are smaller.
    nth: u16,
    /// The id before it.
    before: i64,
    /// The id found.
    value: i64,
    /// Bytes of its difference.
    delta: std::ops::Range<usize>,
}

struct LeafIter<'a> {
    deltas: &'a [u8],
    at: usize,
    next: i64,
    left: usize,
}

impl Iterator for LeafIter<'_> {
    type Item = i64;
    fn next(&mut self) -> Option<i64> {
        if self.left == 0 {
            return None;
        }
        let id = self.next;
        self.left -= 1;
        if self.left > 0 {
            self.next = id.wrapping_add(varint::take(self.deltas, &mut self.at) as i64);
        }
        Some(id)
    }
}

/// A set of ids, kept sorted and delta-coded.
///
/// Leaves are never empty and their ranges do not overlap: `leaf[i].last < leaf[i + 1].first`.
#[derive(Clone, Debug, Default)]
pub struct Run {
    leaves: Vec<Leaf>,
    len: usize,
}

impl Run {
    /// The empty set.
    pub fn new() -> Run {
        Run::default()
    }

    /// The set of these ids, in any order and with repetitions.
    pub fn from_unsorted(mut ids: Vec<i64>) -> Run {
        ids.sort_unstable();
        let mut builder = RunBuilder::new();
        ids.into_iter().for_each(|id| builder.push(id));
        builder.finish()
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The leaf that holds `id` if any does.
    fn leaf_of(&self, id: i64) -> usize {
        self.leaves.partition_point(|l| l.first <= id).saturating_sub(1)
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: i64) -> bool {
        self.leaves.get(self.leaf_of(id)).is_some_and(|leaf| {
            let seek = leaf.seek(id);
            seek.nth < leaf.count && seek.value == id
        })
    }

    /// Adds an id; `false` if it was there.
    pub fn insert(&mut self, id: i64) -> bool {
        let at = self.leaf_of(id);
        let Some(leaf) = self.leaves.get_mut(at) else {
            self.leaves.push(Leaf::of(&[id]));
            self.len = 1;
            return true;
        };
        if !leaf.insert(id) {
            return false;
        }
        self.len += 1;
        if usize::from(leaf.count) > LEAF_MAX {
            let ids: Vec<i64> = leaf.iter().collect();
            // Ids mostly grow: a leaf that overflows at its end keeps nearly all it has, so that leaves filled in order are full ones.
            let cut = if ids.last() == Some(&id) { LEAF_FILL } else { ids.len() / 2 };
            *leaf = Leaf::of(&ids[..cut]);
            self.leaves.insert(at + 1, Leaf::of(&ids[cut..]));
        }
        true
    }

    /// Takes an id away; `false` if it was not there.
    pub fn remove(&mut self, id: i64) -> bool {
        let at = self.leaf_of(id);
        let Some(leaf) = self.leaves.get_mut(at) else { return false };
        if leaf.count == 1 {
            if leaf.first != id {
                return false;
            }
            self.leaves.remove(at);
        } else {
            if !leaf.remove(id) {
                return false;
            }
            if usize::from(leaf.count) < LEAF_MIN {
                self.merge(at);
            }
        }
        self.len -= 1;
        true
    }

    /// Joins a small leaf with a neighbour if both fit one leaf well.
    fn merge(&mut self, at: usize) {
        for left in [at.wrapping_sub(1), at] {
            let (Some(a), Some(b)) = (self.leaves.get(left), self.leaves.get(left.wrapping_add(1))) else { continue };
            if usize::from(a.count + b.count) <= LEAF_FILL {
                let ids: Vec<i64> = a.iter().chain(b.iter()).collect();
                self.leaves[left] = Leaf::of(&ids);
                self.leaves.remove(left + 1);
                return;
            }
        }
    }

    /// All ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.leaves.iter().flat_map(Leaf::iter)
    }

    /// All ids from `start` on in ascending order; for walks in slices that go on where the last one ended.
    pub fn iter_from(&self, start: i64) -> impl Iterator<Item = i64> + '_ {
        let at = self.leaf_of(start);
        self.leaves[at.min(self.leaves.len())..].iter().flat_map(Leaf::iter).skip_while(move |id| *id < start)
    }

    /// All ids from the `rank`th on (0 is the first) in ascending order.
    pub fn iter_at(&self, mut rank: usize) -> impl Iterator<Item = i64> + '_ {
        let passed = |leaf: &&Leaf| {
            let whole = rank >= usize::from(leaf.count);
            rank -= if whole { usize::from(leaf.count) } else { 0 };
            whole
        };
        let leaf = self.leaves.iter().take_while(passed).count();
        self.leaves[leaf..].iter().flat_map(Leaf::iter).skip(rank)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.leaves.capacity() * size_of::<Leaf>() + self.leaves.iter().map(|l| l.deltas.capacity()).sum::<usize>()
    }
}

/// Makes a [`Run`] from ids in ascending order, in as many slices as one likes.
#[derive(Debug, Default)]
pub struct RunBuilder {
    run: Run,
    open: Vec<i64>,
}

impl RunBuilder {
    /// Nothing yet.
    pub fn new() -> RunBuilder {
        RunBuilder::default()
    }
    /// Adds the next id. One that is not above its predecessor is inserted where it belongs, more slowly.
    pub fn push(&mut self, id: i64) {
        match self.open.last() {
            Some(last) if *last == id => return,
            Some(last) if *last > id => {
                self.close();
                self.run.insert(id);
                return;
            }
            None if self.run.leaves.last().is_some_and(|l| l.last >= id) => {
                self.run.insert(id);
                return;
            }
            _ => self.open.push(id),
        }
        if self.open.len() == LEAF_FILL {
            self.close();
        }
    }
    fn close(&mut self) {
        if !self.open.is_empty() {
            self.run.len += self.open.len();
            self.run.leaves.push(Leaf::of(&self.open));
            self.open.clear();
        }
    }
    /// The run.
    pub fn finish(mut self) -> Run {
        self.close();
        self.run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(run: &Run) {
        let ids: Vec<i64> = run.iter().collect();
        assert_eq!(ids.len(), run.len());
        assert!(ids.windows(2).all(|w| w[0] < w[1]));
        assert!(run.leaves.iter().all(|l| l.count > 0 && usize::from(l.count) <= LEAF_MAX));
        assert!(run.leaves.iter().all(|l| l.iter().last() == Some(l.last)));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(i64),
        Remove(i64),
        Span(i64, u16, u8),
        Cut(i64, u16),
    }

    fn op() -> impl Strategy<Value = Op> {
        let id = prop_oneof![0i64..3000, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
        prop_oneof![
            4 => id.clone().prop_map(Op::Insert),
            4 => id.prop_map(Op::Remove),
            1 => (0i64..3000, 1u16..1500, 1u8..4).prop_map(|(a, n, s)| Op::Span(a, n, s)),
            1 => (0i64..3000, 1u16..1500).prop_map(|(a, n)| Op::Cut(a, n)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn like_a_set(ops in prop::collection::vec(op(), 0..200), rebuild in any::<bool>()) {
            let (mut run, mut set) = (Run::new(), BTreeSet::new());
            for op in ops {
                match op {
                    Op::Insert(id) => prop_assert_eq!(run.insert(id), set.insert(id)),
                    Op::Remove(id) => prop_assert_eq!(run.remove(id), set.remove(&id)),
                    Op::Span(a, n, s) => (0..i64::from(n)).for_each(|i| {
                        assert_eq!(run.insert(a + i * i64::from(s)), set.insert(a + i * i64::from(s)));
                    }),
                    Op::Cut(a, n) => (a..a + i64::from(n)).for_each(|id| assert_eq!(run.remove(id), set.remove(&id))),
                }
                check(&run);
            }
            if rebuild {
                let mut ids: Vec<i64> = run.iter().collect();
                ids.reverse();
                run = Run::from_unsorted(ids);
                check(&run);
            }
            prop_assert!(run.iter().eq(set.iter().copied()));
            for id in [i64::MIN, -5, 0, 17, 1000, 2999, i64::MAX] {
                prop_assert_eq!(run.contains(id), set.contains(&id));
                prop_assert!(run.iter_from(id).eq(set.range(id..).copied()));
            }
        }

        #[test]
        fn builder_takes_any_order(ids in prop::collection::vec(prop_oneof![0i64..2000, any::<i64>()], 0..2000)) {
            let mut builder = RunBuilder::new();
            ids.iter().for_each(|id| builder.push(*id));
            let run = builder.finish();
            check(&run);
            prop_assert!(run.iter().eq(BTreeSet::from_iter(ids).into_iter()));
        }
    }

    #[test]
    fn three_bytes_per_replica_at_most() {
        // A storage that holds one block in 3,000, spread at random.
        let mut id = 1i64 << 30;
        let mut seed = 7u64;
        let mut builder = RunBuilder::new();
        for _ in 0..200_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            id += 1 + (seed >> 33) as i64 % 6000;
            builder.push(id);
        }
        let mut run = builder.finish();
        assert!(run.memory_bytes() < 3 * run.len(), "{} bytes for {}", run.memory_bytes(), run.len());
        // New blocks after the report, in order, and deletions all over.
        for _ in 0..100_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            id += 1 + (seed >> 33) as i64 % 6000;
            assert!(run.insert(id));
        }
        assert!(run.memory_bytes() < 3 * run.len(), "{} bytes for {}", run.memory_bytes(), run.len());
    }
}
