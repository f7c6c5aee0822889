//! Side tables: what few records have (ACLs, attributes, quotas, fields that do not fit), as byte strings by a 32- or 64-bit key.
//!
//! A table is an index of keys and a store of lists, so it lies in pages and is checkpointed like them. As with [`crate::bytes`] the bytes are lent:
//! a change needs the table exclusively, which rules it out while they are.

use crate::index::table::Table;
use crate::lists::{ListHandle, Lists};
use crate::page::Pages;
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};

/// Byte strings by key.
///
/// A string is a list of words: its bytes, filled up to whole words, of which the last byte says how many were added (1 to 4).
#[derive(Default)]
pub struct SideTable {
    index: Table,
    values: Lists,
    scratch: Vec<u32>,
}

impl std::fmt::Debug for SideTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SideTable").field("len", &self.len()).finish()
    }
}

fn handle(raw: u32) -> ListHandle {
    ListHandle::new(raw).expect("only handles of lists are entered")
}

/// Bytes of the string in these words.
fn unfilled(words: &[u32]) -> usize {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    bytes.len() - usize::from(bytes.last().copied().unwrap_or(0))
}

impl SideTable {
    /// No entry.
    pub fn new() -> SideTable {
        SideTable::default()
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: i64) -> Option<&[u8]> {
        self.index.get(key).map(|raw| self.value(raw))
    }
    fn value(&self, raw: u32) -> &[u8] {
        let words = self.values.read(handle(raw));
        &bytemuck::cast_slice(words)[..unfilled(words)]
    }
    /// Whether there is a value.
    pub fn contains(&self, key: i64) -> bool {
        self.index.get(key).is_some()
    }

    /// Sets the value of a key; `true` if it had none.
    pub fn set(&mut self, key: i64, value: &[u8]) -> bool {
        let words = value.len() / 4 + 1;
        self.scratch.clear();
        self.scratch.resize(words, 0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.scratch);
        bytes[..value.len()].copy_from_slice(value);
        bytes[words * 4 - 1] = (words * 4 - value.len()) as u8;
        match self.index.get(key) {
            None => {
                let raw = self.values.add(&self.scratch).get();
                self.index.insert(key, raw);
                true
            }
            Some(raw) => {
                let new = self.values.replace(handle(raw), &self.scratch).get();
                if new != raw {
                    self.index.insert(key, new);
                }
                false
            }
        }
    }

    /// Changes the bytes of a value in place; the length stays. `None` if there is no value.
    pub fn edit<T>(&mut self, key: i64, edit: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
        let raw = self.index.get(key)?;
        Some(self.values.edit(handle(raw), |words| {
            let length = unfilled(words);
            edit(&mut bytemuck::cast_slice_mut(words)[..length])
        }))
    }

    /// Takes the value of a key out; `false` if there was none.
    pub fn remove(&mut self, key: i64) -> bool {
        let removed = self.index.remove(key);
        if let Some(raw) = removed {
            self.values.remove(handle(raw));
        }
        removed.is_some()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.index.len() as usize
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.index.iter().map(|(key, raw)| (key, self.value(raw)))
    }
    /// How many slices [`SideTable::slice`] has.
    pub fn slices(&self) -> u32 {
        self.index.pages().len()
    }
    /// The entries of one slice (up to some 4,400), for walks in steps. An entry that is there all the time is seen at least once, whatever changes
    /// between the steps, if they go on until [`SideTable::slices`] of then.
    pub fn slice(&self, slice: u32) -> impl Iterator<Item = (i64, &[u8])> {
        self.index.page_entries(slice).map(|(key, raw)| (key, self.value(raw)))
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.values.memory_bytes()
    }
    /// Begins the next epoch.
    pub fn bump_epoch(&mut self) -> u32 {
        self.values.bump_epoch();
        self.index.bump_epoch()
    }
}

impl Persist for SideTable {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.index.page_sets(sets);
        self.values.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.index.page_sets_mut(sets);
        self.values.page_sets_mut(sets);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        let SideTable { index, values, scratch: _ } = self;
        index.write_rest(rest);
        values.write_rest(rest);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<SideTable, Malformed> {
        let index = Table::restore(pages, rest)?;
        Ok(SideTable { index, values: Lists::restore(pages, rest)?, scratch: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn string(length: usize, seed: u32) -> Vec<u8> {
        (0..length).map(|i| (i as u32 ^ seed) as u8).collect()
    }

    proptest! {
        #[test]
        fn like_a_map(ops in prop::collection::vec((0u8..4, prop_oneof![-20i64..20, any::<i64>()], 0usize..50, any::<u32>()), 0..300)) {
            let (mut table, mut map) = (SideTable::new(), HashMap::<i64, Vec<u8>>::new());
            for (op, key, length, seed) in ops {
                match op {
                    0 | 1 => {
                        // now and then around and beyond a page
                        let length = if length > 47 { 65_528 - 49 + length } else { length };
                        let value = string(length, seed);
                        prop_assert_eq!(table.set(key, &value), map.insert(key, value).is_none());
                    }
                    2 => prop_assert_eq!(table.remove(key), map.remove(&key).is_some()),
                    _ => {
                        let turn = |bytes: &mut [u8]| bytes.iter_mut().for_each(|b| *b ^= seed as u8);
                        prop_assert_eq!(table.edit(key, turn).is_some(), map.contains_key(&key));
                        if let Some(value) = map.get_mut(&key) {
                            turn(value);
                        }
                    }
                }
                prop_assert_eq!(table.get(key), map.get(&key).map(|v| &v[..]));
                prop_assert_eq!(table.contains(key), map.contains_key(&key));
                prop_assert_eq!(table.len(), map.len());
            }
            let all: HashMap<i64, Vec<u8>> = table.iter().map(|(k, v)| (k, v.to_vec())).collect();
            prop_assert_eq!(&all, &map);
            let sliced: HashMap<i64, Vec<u8>> =
                (0..table.slices()).flat_map(|s| table.slice(s)).map(|(k, v)| (k, v.to_vec())).collect();
            prop_assert_eq!(sliced, map);
        }
    }

    #[test]
    fn a_walk_in_slices_misses_nothing_that_stays() {
        let mut table = SideTable::new();
        (0..20_000).for_each(|key| {
            table.set(key, &key.to_le_bytes());
        });
        let (mut seen, mut slice, mut next) = (std::collections::HashSet::new(), 0, 20_000);
        while slice < table.slices() {
            seen.extend(table.slice(slice).map(|(key, _)| key));
            slice += 1;
            (next..next + 5_000).for_each(|key| {
                table.set(key, b"");
            });
            next += 5_000 * i64::from(slice < 10);
        }
        assert!((0..20_000).all(|key| seen.contains(&key)));
    }

    #[test]
    fn small_values_take_little() {
        let mut table = SideTable::new();
        (0..100_000).for_each(|key| {
            table.set(key, &[7; 11]);
        });
        assert!(table.memory_bytes() / table.len() <= 44, "{} bytes each", table.memory_bytes() / table.len());
        let held = table.memory_bytes();
        (0..100_000).for_each(|key| {
            table.remove(key);
        });
        assert!(table.is_empty());
        (0..100_000).for_each(|key| {
            table.set(key, &[7; 15]);
        });
        assert!(table.memory_bytes() <= held + held / 2);
    }
}
