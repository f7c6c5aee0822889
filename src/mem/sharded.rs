//! A hash table in many parts, and a queue in many pieces, for what grows to millions of entries under a lock: a table that grows moves all of its
//! entries at once, tens of milliseconds at a million; here an insertion moves those of one part at most.
//!
//! Not in pages: for what is soft and made anew after a start.

use hashbrown::{DefaultHashBuilder, HashTable, hash_table::Entry};
use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// Parts of a table. At ten million entries a part has 10,000, which move in a fraction of a millisecond.
const PARTS: usize = 1_024;
/// Entries of a piece of a queue.
const PIECE: usize = 4_096;

/// A hash table in parts. Its own room is some 32 KiB, taken with the first entry.
pub struct ShardedMap<K, V> {
    parts: Vec<HashTable<(K, V)>>,
    hasher: DefaultHashBuilder,
    len: usize,
}

impl<K, V> Default for ShardedMap<K, V> {
    fn default() -> ShardedMap<K, V> {
        ShardedMap { parts: Vec::new(), hasher: DefaultHashBuilder::default(), len: 0 }
    }
}

impl<K, V> fmt::Debug for ShardedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedMap").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The part of a hash: by bits that a part itself does not go by (the lowest and the seven highest).
fn part_of(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}

impl<K: Hash + Eq, V> ShardedMap<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let hash = self.hasher.hash_one(key);
        self.parts.get(part_of(hash))?.find(hash, |(k, _)| k == key).map(|(_, value)| value)
    }
    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let hash = self.hasher.hash_one(key);
        self.parts.get_mut(part_of(hash))?.find_mut(hash, |(k, _)| k == key).map(|(_, value)| value)
    }
    /// Whether the key is there.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }
    /// The value of a key, made if it is not there.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if self.parts.is_empty() {
            self.parts.resize_with(PARTS, HashTable::new);
        }
        let hash = self.hasher.hash_one(&key);
        let hasher = &self.hasher;
        let part = &mut self.parts[part_of(hash)];
        match part.entry(hash, |(k, _)| *k == key, |(k, _)| hasher.hash_one(k)) {
            Entry::Occupied(there) => &mut there.into_mut().1,
            Entry::Vacant(free) => {
                self.len += 1;
                &mut free.insert((key, make())).into_mut().1
            }
        }
    }
    /// Puts a value; gives the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let mut value = Some(value);
        let there = self.get_or_insert_with(key, || value.take().expect("made once"));
        value.map(|value| std::mem::replace(there, value))
    }
    /// Takes a key out; gives its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        let found = self.parts.get_mut(part_of(hash))?.find_entry(hash, |(k, _)| k == key).ok()?;
        self.len -= 1;
        Some(found.remove().0.1)
    }
    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.parts.iter().flat_map(|part| part.iter()).map(|(key, value)| (key, value))
    }
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// First in, first out; in pieces, none of which ever moves.
#[derive(Clone, Debug)]
pub struct PiecedQueue<T> {
    pieces: VecDeque<VecDeque<T>>,
}

impl<T> Default for PiecedQueue<T> {
    fn default() -> PiecedQueue<T> {
        PiecedQueue { pieces: VecDeque::new() }
    }
}

impl<T> PiecedQueue<T> {
    /// Puts one at the end.
    pub fn push_back(&mut self, value: T) {
        match self.pieces.back_mut().filter(|piece| piece.len() < PIECE) {
            Some(piece) => piece.push_back(value),
            None => self.pieces.push_back(VecDeque::from([value])),
        }
    }
    /// The first.
    pub fn front(&self) -> Option<&T> {
        self.pieces.front()?.front()
    }
    /// Takes the first out.
    pub fn pop_front(&mut self) -> Option<T> {
        let piece = self.pieces.front_mut()?;
        let first = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn as_a_map_of_one_part() {
        let (mut map, mut twin) = (ShardedMap::default(), HashMap::new());
        for n in 0..50_000u64 {
            let key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 7_919;
            match n % 3 {
                0 | 1 => assert_eq!(map.insert(key, n), twin.insert(key, n)),
                _ => assert_eq!(map.remove(&key), twin.remove(&key)),
            }
            assert_eq!(map.get(&(n % 7_919)), twin.get(&(n % 7_919)));
        }
        assert_eq!(map.len(), twin.len());
        assert!(!map.is_empty());
        assert_eq!(map.iter().map(|(k, v)| (*k, *v)).collect::<HashMap<_, _>>(), twin);
        *map.get_or_insert_with(7_920, || 1) += 1;
        *map.get_mut(&7_920).expect("there") += 1;
        assert_eq!((map.insert(7_920, 4), map.contains_key(&7_920), map.contains_key(&7_921)), (Some(3), true, false));
    }

    /// What an insertion may cost at most: the entries of one part.
    #[test]
    fn no_part_is_large() {
        let mut map = ShardedMap::default();
        assert_eq!((map.parts.len(), map.get(&1)), (0, None));
        (0..400_000u64).for_each(|n| _ = map.insert(n, ()));
        let largest = map.parts.iter().map(HashTable::len).max();
        assert!(largest < Some(2 * 400_000 / PARTS), "{largest:?}");
    }

    #[test]
    fn a_queue_in_pieces() {
        let mut queue = PiecedQueue::default();
        assert_eq!((queue.front().copied(), queue.pop_front()), (None, None));
        (0..10_000).for_each(|n| queue.push_back(n));
        for n in 0..10_000 {
            assert_eq!((queue.front().copied(), queue.pop_front()), (Some(n), Some(n)));
        }
        assert_eq!((queue.front(), queue.pieces.len()), (None, 0));
    }
}
