//! The id index: from ids that are handed out in sequence, and of which any part may be gone again, to handles.
//!
//! Ids are grouped by 4,096. A group takes one of four forms, by how many of its ids are live:
//!
//! | form  | live ids       | layout in words                                                     | bytes per id |
//! |-------|----------------|---------------------------------------------------------------------|--------------|
//! | empty | 0              | none, not even in the directory                                     |              |
//! | list  | to 320         | count, handles, then sorted 16-bit low parts                        | 6            |
//! | rank  | 256 to 3,072   | count, bitmap of 4,096, 64 counts of what is before, handles        | 4.2 to 6.5   |
//! | dense | from 2,688     | 4,096 handles, 0 for none                                           | 4 to 6.1     |
//!
//! The directory is a [`Table`], so ids may be anywhere in 64 bits. A lookup touches the directory and the group, both in constant time. Groups are
//! repacked when they cross a boundary (with some hysteresis), which costs a few microseconds then and needs no work in the background.

use super::table::Table;
use crate::page::Pages;
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};
use crate::prefetch::prefetch;
use crate::words::Words;
use std::num::NonZeroU32;

const GROUP_BITS: u32 = 12;
const GROUP: usize = 1 << GROUP_BITS;
const LIST_MAX: usize = 320;
const RANK_MIN: usize = 256;
const RANK_MAX: usize = 3_072;
const DENSE_MIN: usize = 2_688;

/// Marks the count word of a rank group.
const RANK: u32 = 1 << 31;
/// Lookups whose waits for memory overlap.
const TOGETHER: usize = 64;
/// Words before the handles of a rank group: count, bitmap, counts of what is before each 64 bits.
const RANK_HEAD: usize = 1 + GROUP / 32 + GROUP / 64 / 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    List(usize),
    Rank(usize),
    Dense,
}

/// The form of a group, by the size of its slot and its first word.
#[inline]
fn form(words: &[u32]) -> Form {
    if words.len() == GROUP {
        return Form::Dense;
    }
    match words[0] {
        n if n & RANK != 0 => Form::Rank((n ^ RANK) as usize),
        n => Form::List(n as usize),
    }
}

fn list_words(n: usize) -> usize {
    1 + n + n.div_ceil(2)
}
fn rank_words(n: usize) -> usize {
    RANK_HEAD + n
}

/// Low parts of a list group.
fn keys(words: &[u32], n: usize) -> &[u16] {
    &bytemuck::cast_slice(&words[1 + n..list_words(n)])[..n]
}
/// Where a key would stand if the keys of a group were evenly spread.
fn guess(keys: usize, low: usize) -> usize {
    low * keys / GROUP
}
/// A search from where the key would stand if all were evenly spread, in steps that double: mostly one cache line is looked at. Before it a look
/// at the last key: many ids that are looked for are new ones, and come after all others.
fn search(keys: &[u16], low: usize) -> Result<usize, usize> {
    let key = low as u16;
    if keys.last().is_none_or(|last| *last < key) {
        return Err(keys.len());
    }
    let (at, mut step) = (guess(keys.len(), low), 8);
    let (mut from, mut to) = (at, at);
    if keys[at] < key {
        while to < keys.len() && keys[to] < key {
            (from, to, step) = (to + 1, to + step, step * 2);
        }
        to = keys.len().min(to + 1);
    } else {
        while from > 0 && keys[from] >= key {
            (to, from, step) = (from, from.saturating_sub(step), step * 2);
        }
        to += 1;
    }
    match keys[from..to].binary_search(&key) {
        Ok(found) => Ok(from + found),
        Err(before) => Err(from + before),
    }
}
fn bits(words: &[u32], word: usize) -> u64 {
    u64::from(words[1 + 2 * word]) | u64::from(words[2 + 2 * word]) << 32
}
/// Counts of ids before each 64 bits of a rank group.
fn before(words: &[u32]) -> &[u16] {
    bytemuck::cast_slice(&words[1 + GROUP / 32..RANK_HEAD])
}
/// Where the handle of `low` stands in a rank group, and whether it is there.
#[inline]
fn rank(words: &[u32], low: usize) -> (usize, bool) {
    let bits = bits(words, low / 64);
    let below = bits & ((1u64 << (low % 64)) - 1);
    (RANK_HEAD + usize::from(before(words)[low / 64]) + below.count_ones() as usize, bits >> (low % 64) & 1 == 1)
}
/// Sets or clears the bit of `low` and carries the counts.
fn flip(words: &mut [u32], low: usize, add: bool) {
    words[1 + low / 32] ^= 1 << (low % 32);
    let counts: &mut [u16] = bytemuck::cast_slice_mut(&mut words[1 + GROUP / 32..RANK_HEAD]);
    for count in &mut counts[low / 64 + 1..] {
        *count = if add { *count + 1 } else { *count - 1 };
    }
}

/// A map from ids to handles (which are never 0).
pub struct IdIndex {
    directory: Table,
    words: Words,
    /// Live ids of each dense group, by its slot: those have no room for a count.
    dense_counts: Vec<u16>,
    len: u64,
    /// Entries of a group being taken apart, and those of the one being made.
    old: Vec<(u16, u32)>,
    merged: Vec<(u16, u32)>,
}

impl Default for IdIndex {
    fn default() -> IdIndex {
        IdIndex::new()
    }
}

fn split(id: i64) -> (i64, usize) {
    (id >> GROUP_BITS, id as usize & (GROUP - 1))
}

impl IdIndex {
    /// No id.
    pub fn new() -> IdIndex {
        IdIndex::of(Table::new(), Words::new(), Vec::new(), 0)
    }
    fn of(directory: Table, words: Words, dense_counts: Vec<u16>, len: u64) -> IdIndex {
        IdIndex { directory, words, dense_counts, len, old: Vec::new(), merged: Vec::new() }
    }
    /// Gets memory for so many ids, handed out without large gaps.
    pub fn reserve(&mut self, ids: u64) {
        self.words.slab_mut().reserve((ids * 4).div_ceil(crate::page::PAGE_BYTES as u64) as usize);
    }

    fn group(&self, number: i64) -> Option<NonZeroU32> {
        self.directory.get(number).and_then(NonZeroU32::new)
    }
    fn form(&self, slot: NonZeroU32) -> Form {
        form(self.words.get(slot))
    }

    /// The handle of an id.
    #[inline]
    pub fn get(&self, id: i64) -> Option<NonZeroU32> {
        let (number, low) = split(id);
        let slot = self.group(number)?;
        self.get_in(slot, low)
    }
    /// As [`IdIndex::get`], for many ids that are near each other: `near` keeps the group of the last one. It must be `None` after any change.
    #[inline]
    pub fn get_near(&self, near: &mut Option<(i64, NonZeroU32)>, id: i64) -> Option<NonZeroU32> {
        let (number, low) = split(id);
        match *near {
            Some((last, slot)) if last == number => self.get_in(slot, low),
            _ => {
                let slot = self.group(number)?;
                *near = Some((number, slot));
                self.get_in(slot, low)
            }
        }
    }
    /// Asks for the memory that [`IdIndex::get`] will look at, for batches of lookups whose waits then overlap. `near` is as for
    /// [`IdIndex::get_near`].
    pub fn prefetch_near(&self, near: &mut Option<(i64, NonZeroU32)>, id: i64) {
        let (number, low) = split(id);
        let slot = match *near {
            Some((last, slot)) if last == number => slot,
            _ => {
                let Some(slot) = self.group(number) else { return };
                *near = Some((number, slot));
                slot
            }
        };
        let words = self.words.get(slot);
        // The handle itself in a dense group; in a rank group, whose first word is not at hand yet, the bits and counts it is found by.
        if words.len() == GROUP {
            return prefetch(&words[low]);
        }
        prefetch(&words[(1 + low / 32).min(words.len() - 1)]);
        prefetch(&words[(1 + GROUP / 32 + low / 128).min(words.len() - 1)]);
    }
    /// Looks up many ids in any order, so that their waits for memory overlap; `found` is told the handle of each in their order.
    pub fn get_each(&self, ids: &[i64], mut found: impl FnMut(Option<NonZeroU32>)) {
        let mut near = None;
        for ids in ids.chunks(TOGETHER) {
            let mut slots = [None; TOGETHER];
            for (slot, id) in slots.iter_mut().zip(ids) {
                let number = split(*id).0;
                *slot = match near {
                    Some((last, slot)) if last == number => slot,
                    _ => self.group(number),
                };
                near = Some((number, *slot));
                if let Some(slot) = *slot {
                    prefetch(&self.words.get(slot)[0]);
                }
            }
            for (slot, id) in slots.iter().zip(ids) {
                if let Some(slot) = *slot {
                    self.prefetch_in(slot, split(*id).1);
                }
            }
            for (slot, id) in slots.iter().zip(ids) {
                found(slot.and_then(|slot| self.get_in(slot, split(*id).1)));
            }
        }
    }
    /// Asks for the memory of a group that a lookup will need, as far as its first word, which is looked at, tells.
    fn prefetch_in(&self, slot: NonZeroU32, low: usize) {
        let words = self.words.get(slot);
        match form(words) {
            Form::Dense => prefetch(&words[low]),
            Form::Rank(n) => {
                prefetch(&words[1 + low / 32]);
                prefetch(&words[1 + GROUP / 32 + low / 128]);
                prefetch(&words[(RANK_HEAD + guess(n, low)).min(words.len() - 1)]);
            }
            Form::List(n) => {
                let at = guess(n, low);
                prefetch(&words[(1 + n + at / 2).min(words.len() - 1)]);
                prefetch(&words[(1 + at).min(words.len() - 1)]);
            }
        }
    }
    fn get_in(&self, slot: NonZeroU32, low: usize) -> Option<NonZeroU32> {
        let words = self.words.get(slot);
        match form(words) {
            Form::Dense => NonZeroU32::new(words[low]),
            Form::Rank(_) => match rank(words, low) {
                (at, true) => NonZeroU32::new(words[at]),
                _ => None,
            },
            Form::List(n) => search(keys(words, n), low).ok().and_then(|at| NonZeroU32::new(words[1 + at])),
        }
    }

    /// Sets the handle of an id; the old one comes back.
    pub fn insert(&mut self, id: i64, handle: NonZeroU32) -> Option<NonZeroU32> {
        let (number, low) = split(id);
        let Some(slot) = self.group(number) else {
            let slot = self.build(&[(low as u16, handle.get())]);
            self.directory.insert(number, slot.get());
            self.len += 1;
            return None;
        };
        let (old, moved) = match self.form(slot) {
            Form::Dense => (self.insert_dense(slot, low, handle.get()), slot),
            Form::Rank(n) => self.insert_rank(slot, n, low, handle.get()),
            Form::List(n) => self.insert_list(slot, n, low, handle.get()),
        };
        if moved != slot {
            self.directory.insert(number, moved.get());
        }
        self.len += u64::from(old == 0);
        NonZeroU32::new(old)
    }
    fn insert_dense(&mut self, slot: NonZeroU32, low: usize, handle: u32) -> u32 {
        let old = std::mem::replace(&mut self.words.get_mut(slot)[low], handle);
        self.dense_counts[Words::ordinal(slot, 4)] += u16::from(old == 0);
        old
    }
    fn insert_rank(&mut self, slot: NonZeroU32, n: usize, low: usize, handle: u32) -> (u32, NonZeroU32) {
        let (at, there) = rank(self.words.get(slot), low);
        if there {
            return (std::mem::replace(&mut self.words.get_mut(slot)[at], handle), slot);
        }
        if n == RANK_MAX {
            return (0, self.rebuild_with(slot, low, handle));
        }
        let slot = self.words.grow(slot, rank_words(n), rank_words(n + 1));
        let words = self.words.get_mut(slot);
        words.copy_within(at..rank_words(n), at + 1);
        words[at] = handle;
        words[0] += 1;
        flip(words, low, true);
        (0, slot)
    }
    fn insert_list(&mut self, slot: NonZeroU32, n: usize, low: usize, handle: u32) -> (u32, NonZeroU32) {
        let at = match search(keys(self.words.get(slot), n), low) {
            Ok(at) => return (std::mem::replace(&mut self.words.get_mut(slot)[1 + at], handle), slot),
            Err(at) => at,
        };
        if n == LIST_MAX {
            return (0, self.rebuild_with(slot, low, handle));
        }
        let slot = self.words.grow(slot, list_words(n), list_words(n + 1));
        let words = self.words.get_mut(slot);
        words.copy_within(1 + n..list_words(n), 2 + n);
        words.copy_within(1 + at..1 + n, 2 + at);
        words[1 + at] = handle;
        words[0] += 1;
        let keys: &mut [u16] = bytemuck::cast_slice_mut(&mut words[2 + n..list_words(n + 1)]);
        keys.copy_within(at..n, at + 1);
        keys[at] = low as u16;
        (0, slot)
    }

    /// Sets the handles of many ids, which ascend (equal ones included: the last counts). `twice` is told of each id that had a handle already, with
    /// the old and the new one. A group that is new is built at once in the form that suits it.
    pub fn insert_ascending(&mut self, entries: &[(i64, u32)], twice: &mut impl FnMut(i64, u32, u32)) {
        debug_assert!(entries.is_sorted_by_key(|(id, _)| *id));
        let mut group = std::mem::take(&mut self.merged);
        for run in entries.chunk_by(|a, b| a.0 >> GROUP_BITS == b.0 >> GROUP_BITS) {
            let number = run[0].0 >> GROUP_BITS;
            if self.group(number).is_some() || run.len() < 2 {
                self.merged = group;
                self.insert_run(number, run, twice);
                group = std::mem::take(&mut self.merged);
                continue;
            }
            group.clear();
            for (id, handle) in run {
                let low = split(*id).1 as u16;
                match group.last_mut() {
                    Some(last) if last.0 == low => twice(*id, std::mem::replace(&mut last.1, *handle), *handle),
                    _ => group.push((low, *handle)),
                }
            }
            let slot = self.build(&group);
            self.directory.insert(number, slot.get());
            self.len += group.len() as u64;
        }
        self.merged = group;
    }
    /// Sets handles of ids of one group, in place where it is dense and one by one else; many at once rebuild it.
    fn insert_run(&mut self, number: i64, run: &[(i64, u32)], twice: &mut impl FnMut(i64, u32, u32)) {
        let dense = self.group(number).filter(|slot| self.form(*slot) == Form::Dense);
        if dense.is_none() && run.len() >= 64 {
            return self.merge_run(number, run, twice);
        }
        for (id, handle) in run {
            let new = NonZeroU32::new(*handle).expect("handles are never 0");
            if let Some(old) = self.insert(*id, new) {
                twice(*id, old.get(), *handle);
            }
        }
    }
    fn merge_run(&mut self, number: i64, run: &[(i64, u32)], twice: &mut impl FnMut(i64, u32, u32)) {
        let Some(slot) = self.group(number) else { return };
        let (mut old, mut merged) = (std::mem::take(&mut self.old), std::mem::take(&mut self.merged));
        self.collect(slot, &mut old);
        merged.clear();
        let mut left = &old[..];
        for (id, handle) in run {
            let low = split(*id).1 as u16;
            let below = left.iter().take_while(|(known, _)| *known < low).count();
            merged.extend_from_slice(&left[..below]);
            left = &left[below..];
            match (left.first(), merged.last_mut()) {
                (Some((known, before)), _) if *known == low => {
                    twice(*id, *before, *handle);
                    merged.push((low, *handle));
                    left = &left[1..];
                }
                (_, Some(last)) if last.0 == low => twice(*id, std::mem::replace(&mut last.1, *handle), *handle),
                _ => merged.push((low, *handle)),
            }
        }
        merged.extend_from_slice(left);
        self.len += (merged.len() - old.len()) as u64;
        self.words.free(slot);
        let slot = self.build(&merged);
        self.directory.insert(number, slot.get());
        (self.old, self.merged) = (old, merged);
    }

    /// Takes an id out; its handle comes back.
    pub fn remove(&mut self, id: i64) -> Option<NonZeroU32> {
        let (number, low) = split(id);
        let slot = self.group(number)?;
        let old = self.get_in(slot, low)?;
        self.len -= 1;
        let left = match self.form(slot) {
            Form::Dense => self.remove_dense(slot, low),
            Form::Rank(n) => self.remove_rank(slot, n, low),
            Form::List(n) => self.remove_list(slot, n, low),
        };
        match left {
            Some(same) if same == slot => {}
            Some(moved) => {
                self.directory.insert(number, moved.get());
            }
            None => {
                self.directory.remove(number);
            }
        }
        Some(old)
    }
    fn remove_dense(&mut self, slot: NonZeroU32, low: usize) -> Option<NonZeroU32> {
        self.words.get_mut(slot)[low] = 0;
        let count = &mut self.dense_counts[Words::ordinal(slot, 4)];
        *count -= 1;
        Some(if usize::from(*count) < DENSE_MIN { self.rebuild(slot) } else { slot })
    }
    fn remove_rank(&mut self, slot: NonZeroU32, n: usize, low: usize) -> Option<NonZeroU32> {
        let words = self.words.get_mut(slot);
        let (at, _) = rank(words, low);
        words.copy_within(at + 1..rank_words(n), at);
        words[0] -= 1;
        flip(words, low, false);
        Some(if n - 1 < RANK_MIN { self.rebuild(slot) } else { self.words.shrink(slot, rank_words(n - 1)) })
    }
    fn remove_list(&mut self, slot: NonZeroU32, n: usize, low: usize) -> Option<NonZeroU32> {
        if n == 1 {
            self.words.free(slot);
            return None;
        }
        let words = self.words.get_mut(slot);
        let keys: &mut [u16] = bytemuck::cast_slice_mut(&mut words[1 + n..list_words(n)]);
        let at = keys[..n].binary_search(&(low as u16)).expect("an id looked up before");
        keys.copy_within(at + 1..n, at);
        words.copy_within(2 + at..1 + n, 1 + at);
        words.copy_within(1 + n..list_words(n), n);
        words[0] -= 1;
        Some(self.words.shrink(slot, list_words(n - 1)))
    }

    /// Live ids of a group with their handles, in order.
    fn entries(&self, slot: NonZeroU32) -> Vec<(u16, u32)> {
        let mut entries = Vec::new();
        self.collect(slot, &mut entries);
        entries
    }
    /// The same in place of what `out` held.
    fn collect(&self, slot: NonZeroU32, out: &mut Vec<(u16, u32)>) {
        out.clear();
        let words = self.words.get(slot);
        match form(words) {
            Form::Dense => out.extend((0u16..).zip(words.iter().copied()).filter(|(_, h)| *h != 0)),
            Form::List(n) => out.extend(keys(words, n).iter().copied().zip(words[1..=n].iter().copied())),
            Form::Rank(n) => {
                let mut handles = words[RANK_HEAD..RANK_HEAD + n].iter();
                for word in 0..GROUP / 64 {
                    let mut left = bits(words, word);
                    while let (true, Some(handle)) = (left != 0, handles.as_slice().first()) {
                        out.push((word as u16 * 64 + left.trailing_zeros() as u16, *handle));
                        left &= left - 1;
                        handles.next();
                    }
                }
            }
        }
    }
    /// A new group of these ids, in the form that suits their number.
    fn build(&mut self, entries: &[(u16, u32)]) -> NonZeroU32 {
        let n = entries.len();
        if n > RANK_MAX {
            let slot = self.words.take(GROUP);
            let words = self.words.get_mut(slot);
            words.fill(0);
            entries.iter().for_each(|(low, handle)| words[usize::from(*low)] = *handle);
            let ordinal = Words::ordinal(slot, 4);
            self.dense_counts.resize(self.dense_counts.len().max(ordinal + 1), 0);
            self.dense_counts[ordinal] = n as u16;
            return slot;
        }
        // Between the bounds of two forms the smaller form is a list below its maximum, a rank group above it.
        let is_list = n < RANK_MIN.midpoint(LIST_MAX);
        let slot = self.words.take(if is_list { list_words(n) } else { rank_words(n) });
        let words = self.words.get_mut(slot);
        if is_list {
            words[0] = n as u32;
            entries.iter().zip(&mut words[1..]).for_each(|((_, handle), word)| *word = *handle);
            let keys: &mut [u16] = bytemuck::cast_slice_mut(&mut words[1 + n..list_words(n)]);
            entries.iter().zip(keys).for_each(|((low, _), key)| *key = *low);
        } else {
            words[..RANK_HEAD].fill(0);
            words[0] = RANK | n as u32;
            entries.iter().zip(&mut words[RANK_HEAD..]).for_each(|((_, handle), word)| *word = *handle);
            entries.iter().for_each(|(low, _)| words[1 + usize::from(*low) / 32] |= 1 << (low % 32));
            let counts: [u16; GROUP / 64] = std::array::from_fn(|w| bits(words, w).count_ones() as u16);
            let target: &mut [u16] = bytemuck::cast_slice_mut(&mut words[1 + GROUP / 32..RANK_HEAD]);
            let mut sum = 0;
            for (before, count) in target.iter_mut().zip(counts) {
                *before = sum;
                sum += count;
            }
        }
        slot
    }
    /// Gives a group the form that suits its number of ids now.
    fn rebuild(&mut self, slot: NonZeroU32) -> NonZeroU32 {
        let entries = self.entries(slot);
        self.words.free(slot);
        self.build(&entries)
    }
    fn rebuild_with(&mut self, slot: NonZeroU32, low: usize, handle: u32) -> NonZeroU32 {
        let mut entries = self.entries(slot);
        let at = entries.partition_point(|(l, _)| usize::from(*l) < low);
        entries.insert(at, (low as u16, handle));
        self.words.free(slot);
        self.build(&entries)
    }

    /// How many ids there are.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// All ids with their handles, by ascending id. Sorts the group numbers first (one for 4,096 ids).
    pub fn iter(&self) -> impl Iterator<Item = (i64, NonZeroU32)> + '_ {
        self.iter_from(i64::MIN)
    }
    /// The same from `start` on; for walks in slices that go on where the last one ended.
    pub fn iter_from(&self, start: i64) -> impl Iterator<Item = (i64, NonZeroU32)> + '_ {
        let mut groups: Vec<(i64, u32)> =
            self.directory.iter().filter(|(number, _)| *number >= start >> GROUP_BITS).collect();
        groups.sort_unstable();
        groups.into_iter().flat_map(move |(number, slot)| {
            let entries = NonZeroU32::new(slot).map(|slot| self.entries(slot)).unwrap_or_default();
            entries.into_iter().filter_map(move |(low, handle)| {
                let id = number << GROUP_BITS | i64::from(low);
                NonZeroU32::new(handle).filter(|_| id >= start).map(|handle| (id, handle))
            })
        })
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.directory.memory_bytes() + self.words.slab().memory_bytes() + self.dense_counts.len() * 2
    }
    /// Begins the next epoch.
    pub fn bump_epoch(&mut self) -> u32 {
        self.directory.bump_epoch();
        self.words.slab_mut().bump_epoch()
    }
}

impl Persist for IdIndex {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.directory.page_sets(sets);
        self.words.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.directory.page_sets_mut(sets);
        self.words.page_sets_mut(sets);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        let IdIndex { directory, words, dense_counts, len, old: _, merged: _ } = self;
        directory.write_rest(rest);
        words.write_rest(rest);
        rest.plain(dense_counts);
        rest.u64(*len);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<IdIndex, Malformed> {
        let directory = Table::restore(pages, rest)?;
        let words = Words::restore(pages, rest)?;
        let dense_counts = rest.plain()?;
        Ok(IdIndex::of(directory, words, dense_counts, rest.u64()?))
    }
}

// A list or rank group must never get a slot of the size that tells dense groups.
const _: () = assert!(RANK_HEAD + RANK_MAX <= 3_276 && LIST_MAX < RANK_MAX);

#[cfg(test)]
mod tests;
