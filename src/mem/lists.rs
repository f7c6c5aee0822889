//! Lists of 32-bit numbers of any length: blocks of a file, replicas of a block, small child arrays.
//!
//! A list is named by a handle that changes when the list outgrows its slot, so every call that may move it gives the handle back. As with records no
//! reference is lent: [`Lists::with`] shows the numbers to a closure, from which they cannot escape.

use crate::page::Pages;
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter, expect};
use crate::words::{NUMBER_LIMIT, PAGE_WORDS, Words, capacity_for};
use smallvec::SmallVec;
use std::num::NonZeroU32;

/// Handle of a list.
pub type ListHandle = NonZeroU32;

/// A copy of a list.
pub type ListCopy = SmallVec<[u32; 8]>;

/// Lists of numbers. In its slot a list is its length followed by its numbers; one that needs more than a page is kept apart.
pub struct Lists {
    words: Words,
    apart: Vec<Vec<u32>>,
    apart_free: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Lists {
        Lists::new()
    }
}

fn apart_index(h: ListHandle) -> Option<usize> {
    h.get().checked_sub(NUMBER_LIMIT).map(|at| at as usize)
}

impl Lists {
    /// No list.
    pub fn new() -> Lists {
        Lists { words: Words::new(), apart: Vec::new(), apart_free: Vec::new() }
    }

    /// Makes a list.
    pub fn add(&mut self, items: &[u32]) -> ListHandle {
        let h = self.room(items.len());
        self.write(h, items.len()).copy_from_slice(items);
        h
    }
    /// A place for `length` numbers.
    fn room(&mut self, length: usize) -> ListHandle {
        if length < PAGE_WORDS {
            return self.words.take(length + 1);
        }
        let at = self.apart_free.pop().unwrap_or_else(|| {
            self.apart.push(Vec::new());
            self.apart.len() as u32 - 1
        });
        NonZeroU32::new(NUMBER_LIMIT + at).expect("above zero")
    }
    /// Sets the length and shows the numbers to be written.
    fn write(&mut self, h: ListHandle, length: usize) -> &mut [u32] {
        if let Some(at) = apart_index(h) {
            self.apart[at].resize(length, 0);
            return &mut self.apart[at];
        }
        let slot = self.words.get_mut(h);
        slot[0] = length as u32;
        &mut slot[1..=length]
    }
    #[inline]
    pub(crate) fn read(&self, h: ListHandle) -> &[u32] {
        if let Some(at) = apart_index(h) {
            return &self.apart[at];
        }
        let slot = self.words.get(h);
        &slot[1..=slot[0] as usize]
    }

    /// Forgets a list.
    pub fn remove(&mut self, h: ListHandle) {
        if let Some(at) = apart_index(h) {
            self.apart[at] = Vec::new();
            self.apart_free.push(at as u32);
        } else {
            self.words.free(h);
        }
    }

    /// Its length.
    pub fn len(&self, h: ListHandle) -> usize {
        self.read(h).len()
    }
    /// Whether it has no numbers.
    pub fn is_empty(&self, h: ListHandle) -> bool {
        self.len(h) == 0
    }
    /// One number.
    pub fn get(&self, h: ListHandle, at: usize) -> Option<u32> {
        self.read(h).get(at).copied()
    }
    /// A copy.
    pub fn copy(&self, h: ListHandle) -> ListCopy {
        ListCopy::from_slice(self.read(h))
    }
    /// Shows the numbers to a closure (a search in place, say).
    pub fn with<T>(&self, h: ListHandle, look: impl FnOnce(&[u32]) -> T) -> T {
        look(self.read(h))
    }
    /// Changes numbers in place; the length stays.
    pub fn edit<T>(&mut self, h: ListHandle, edit: impl FnOnce(&mut [u32]) -> T) -> T {
        let length = self.len(h);
        edit(self.write(h, length))
    }

    /// Makes the list `length` long, moving it if its slot is too small or needlessly large; new numbers are zero.
    pub fn resize(&mut self, h: ListHandle, length: usize) -> ListHandle {
        let before = self.len(h);
        let fits = match apart_index(h) {
            Some(_) => length >= PAGE_WORDS / 2,
            // A slot is left only when at most two thirds of it are wanted, so that a length that swings does not move the list each time.
            None => length < self.words.capacity(h) && capacity_for(length + 1) * 3 > self.words.capacity(h) * 2,
        };
        if fits {
            let items = self.write(h, length);
            if before < length {
                items[before..].fill(0);
            }
            return h;
        }
        let mut items = Vec::with_capacity(length);
        items.extend_from_slice(&self.read(h)[..before.min(length)]);
        items.resize(length, 0);
        self.remove(h);
        self.add(&items)
    }
    /// Puts a number at the end.
    pub fn push(&mut self, h: ListHandle, item: u32) -> ListHandle {
        self.insert(h, self.len(h), item)
    }
    /// Puts a number before the `at`th.
    pub fn insert(&mut self, h: ListHandle, at: usize, item: u32) -> ListHandle {
        let length = self.len(h);
        assert!(at <= length, "insert at {at} of {length}");
        let h = self.resize(h, length + 1);
        self.edit(h, |items| {
            items.copy_within(at..length, at + 1);
            items[at] = item;
        });
        h
    }
    /// Takes the `at`th number out.
    pub fn remove_at(&mut self, h: ListHandle, at: usize) -> ListHandle {
        let length = self.len(h);
        self.edit(h, |items| items.copy_within(at + 1.., at));
        self.resize(h, length - 1)
    }
    /// Replaces all numbers.
    pub fn replace(&mut self, h: ListHandle, items: &[u32]) -> ListHandle {
        let h = self.resize(h, items.len());
        self.edit(h, |old| old.copy_from_slice(items));
        h
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.words.slab().memory_bytes()
            + self.apart.iter().map(|l| l.capacity() * 4 + size_of::<Vec<u32>>()).sum::<usize>()
    }
    /// Begins the next epoch. Lists kept apart carry no stamp: they are few and written down whole.
    pub fn bump_epoch(&mut self) -> u32 {
        self.words.slab_mut().bump_epoch()
    }
    /// The pages: epoch, stamps.
    pub fn pages(&self) -> &Pages {
        self.words.slab().pages()
    }
}

impl Persist for Lists {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.words.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.words.page_sets_mut(sets);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        let Lists { words, apart, apart_free } = self;
        words.write_rest(rest);
        rest.length(apart.len());
        apart.iter().for_each(|list| rest.plain(list));
        rest.plain(apart_free);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Lists, Malformed> {
        let words = Words::restore(pages, rest)?;
        let mut apart: Vec<Vec<u32>> = Vec::new();
        for _ in 0..rest.length(8)? {
            apart.push(rest.plain()?);
        }
        let apart_free: Vec<u32> = rest.plain()?;
        expect(apart_free.iter().all(|at| (*at as usize) < apart.len()), "vacant places")?;
        Ok(Lists { words, apart, apart_free })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn like_vectors(ops in prop::collection::vec((0u8..8, any::<u32>(), 0usize..60), 0..400)) {
            let mut lists = Lists::new();
            let mut twin: Vec<(ListHandle, Vec<u32>)> = Vec::new();
            for (op, value, size) in ops {
                let which = value as usize % twin.len().max(1);
                let Some((h, list)) = twin.get_mut(which).filter(|_| op != 0) else {
                    // Now and then a list around the size of a page.
                    let size = if size > 57 { PAGE_WORDS - 60 + size } else { size };
                    let items: Vec<u32> = (0..size as u32).map(|i| i ^ value).collect();
                    twin.push((lists.add(&items), items));
                    continue;
                };
                match op {
                    1..=3 => {
                        let at = size % (list.len() + 1);
                        *h = lists.insert(*h, at, value);
                        list.insert(at, value);
                    }
                    4 if !list.is_empty() => {
                        let at = size % list.len();
                        *h = lists.remove_at(*h, at);
                        list.remove(at);
                    }
                    5 => {
                        *h = lists.resize(*h, size);
                        list.resize(size, 0);
                    }
                    6 => {
                        let items: Vec<u32> = (0..size as u32 * 300).collect();
                        *h = lists.replace(*h, &items);
                        *list = items;
                    }
                    _ => {
                        lists.remove(*h);
                        twin.swap_remove(which);
                    }
                }
            }
            for (h, list) in &twin {
                prop_assert_eq!(&lists.copy(*h)[..], &list[..]);
                prop_assert_eq!(lists.len(*h), list.len());
                prop_assert_eq!(lists.get(*h, 3), list.get(3).copied());
            }
        }
    }
}
