//! Arenas of plain records of one size, addressed by 32-bit numbers.
//!
//! A reference to a record is never lent: [`Arena::get`] copies out, [`Arena::edit`] is the only way to write. A record may thus be moved, frozen
//! or read from elsewhere between two calls, and every write passes the door of [`crate::page`].

use crate::page::{PAGE_BYTES, Pages};
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter, expect};
use bytemuck::Pod;
use std::num::NonZeroU32;

/// A record: plain bytes, a power of two of them, no pointers. All zero means vacant.
pub trait Record: Pod {
    /// Whether the slot holds a record (as opposed to being free).
    fn is_live(&self) -> bool;
    /// A free slot that remembers the next free one (0 for none).
    fn vacant(next: u32) -> Self;
    /// What [`Record::vacant`] was given.
    fn next_vacant(&self) -> u32;
}

/// The highest number a slot can have, so that users have the top bit to themselves.
pub const SLOT_MAX: u32 = (1 << 31) - 1;

/// A chain of free slots, linked through the slots themselves.
#[derive(Clone, Copy, Default)]
struct Chain {
    head: u32,
    tail: u32,
}

/// Records of type `R`, in slots 1 to [`SLOT_MAX`].
///
/// Slots of removed records are used again after a grace period: not before the second [`Arena::tick`] from then on, which the owner calls.
pub struct Arena<R> {
    pages: Pages,
    /// The next slot never used.
    fresh: u32,
    live: u64,
    free: u32,
    /// Freed since the last tick, and between the last two.
    grace: [Chain; 2],
    record: std::marker::PhantomData<R>,
}

impl<R: Record> Default for Arena<R> {
    fn default() -> Arena<R> {
        Arena::new()
    }
}

impl<R: Record> Arena<R> {
    /// Slots in a page.
    pub const PAGE_SLOTS: u32 = {
        assert!(size_of::<R>().is_power_of_two() && size_of::<R>() >= 8 && size_of::<R>() <= PAGE_BYTES);
        (PAGE_BYTES / size_of::<R>()) as u32
    };

    /// No record.
    pub fn new() -> Arena<R> {
        let record = std::marker::PhantomData;
        Arena { pages: Pages::new(), fresh: 1, live: 0, free: 0, grace: [Chain::default(); 2], record }
    }

    /// An arena over pages that were filled up to slot `fresh`, with `live` records; all others below it are `vacant`.
    pub(crate) fn of_pages(pages: Pages, fresh: u32, live: u64, vacant: impl Iterator<Item = u32>) -> Arena<R> {
        let mut arena = Arena { pages, fresh, live, ..Arena::new() };
        for slot in vacant {
            let next = arena.free;
            *arena.slot_mut(slot) = R::vacant(next);
            arena.free = slot;
        }
        arena
    }

    /// Gets memory for `records` more records.
    pub fn reserve(&mut self, records: u64) {
        let slots = u64::from(self.fresh) + records;
        self.pages.reserve(slots.div_ceil(u64::from(Self::PAGE_SLOTS)) as usize);
    }

    #[inline]
    fn slot(&self, slot: u32) -> &R {
        &self.pages.view::<R>(slot / Self::PAGE_SLOTS)[(slot % Self::PAGE_SLOTS) as usize]
    }
    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut R {
        &mut self.pages.view_mut::<R>(slot / Self::PAGE_SLOTS)[(slot % Self::PAGE_SLOTS) as usize]
    }

    /// Puts a live record into a slot.
    pub fn add(&mut self, record: R) -> NonZeroU32 {
        assert!(record.is_live(), "a record that does not say it is live");
        let slot = if self.free != 0 {
            let slot = self.free;
            self.free = self.slot(slot).next_vacant();
            slot
        } else {
            assert!(self.fresh <= SLOT_MAX, "arena full: 2^31 records");
            while self.pages.len() <= self.fresh / Self::PAGE_SLOTS {
                self.pages.add();
            }
            self.fresh += 1;
            self.fresh - 1
        };
        *self.slot_mut(slot) = record;
        self.live += 1;
        NonZeroU32::new(slot).expect("slot 0 is never given out")
    }

    /// The record, copied out. Asking for a slot without one is a broken invariant.
    #[inline]
    pub fn get(&self, slot: NonZeroU32) -> R {
        let record = *self.slot(slot.get());
        assert!(record.is_live(), "no record in slot {slot}");
        record
    }

    /// Asks for the memory of a record that will be read soon.
    pub fn prefetch(&self, slot: NonZeroU32) {
        if slot.get() < self.fresh {
            crate::prefetch::prefetch(self.slot(slot.get()));
        }
    }

    /// Whether the slot holds a record; any number may be asked for.
    pub fn is_live(&self, slot: NonZeroU32) -> bool {
        slot.get() < self.fresh && self.slot(slot.get()).is_live()
    }

    /// Changes a record: the only write door.
    #[inline]
    pub fn edit<T>(&mut self, slot: NonZeroU32, edit: impl FnOnce(&mut R) -> T) -> T {
        let record = self.slot_mut(slot.get());
        assert!(record.is_live(), "no record in slot {slot}");
        let answer = edit(record);
        debug_assert!(record.is_live(), "an edit made slot {slot} vacant");
        answer
    }

    /// Frees a slot.
    pub fn remove(&mut self, slot: NonZeroU32) {
        let next = self.grace[0].head;
        let record = self.slot_mut(slot.get());
        assert!(record.is_live(), "no record in slot {slot}");
        *record = R::vacant(next);
        self.grace[0].head = slot.get();
        if next == 0 {
            self.grace[0].tail = slot.get();
        }
        self.live -= 1;
    }

    /// Ends a grace interval: slots freed before the previous tick can be used again.
    pub fn tick(&mut self) {
        let due = std::mem::take(&mut self.grace[1]);
        self.grace[1] = std::mem::take(&mut self.grace[0]);
        if due.head != 0 {
            let free = self.free;
            *self.slot_mut(due.tail) = R::vacant(free);
            self.free = due.head;
        }
    }

    /// How many records there are.
    pub fn len(&self) -> u64 {
        self.live
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// How many pages are in use; see [`Arena::page_slots`].
    pub fn page_count(&self) -> u32 {
        self.pages.len()
    }
    /// The live slots of one page, for walks in slices.
    pub fn page_slots(&self, page: u32) -> impl Iterator<Item = NonZeroU32> + '_ {
        let first = page * Self::PAGE_SLOTS;
        let records = self.pages.view::<R>(page);
        records.iter().zip(first..).filter(|(r, _)| r.is_live()).filter_map(|(_, slot)| NonZeroU32::new(slot))
    }
    /// All live slots in ascending order.
    pub fn slots(&self) -> impl Iterator<Item = NonZeroU32> + '_ {
        (0..self.page_count()).flat_map(|page| self.page_slots(page))
    }

    /// The pages: epoch, stamps, memory.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }
    /// The words of all records, to be changed by several threads at once.
    pub fn shared_words(&mut self) -> crate::bulk::SharedWords<'_> {
        self.pages.shared_words()
    }
    /// Begins the next epoch.
    pub fn bump_epoch(&mut self) -> u32 {
        self.pages.bump_epoch()
    }
    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.pages.memory_bytes()
    }
}

impl<R: Record> Persist for Arena<R> {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        sets.push(&self.pages);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        sets.push(&mut self.pages);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        let Arena { pages: _, fresh, live, free, grace: [young, old], record: _ } = self;
        rest.u64(*live);
        [*fresh, *free, young.head, young.tail, old.head, old.tail].into_iter().for_each(|slot| rest.u32(slot));
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Arena<R>, Malformed> {
        let (pages, live) = (pages.take()?, rest.u64()?);
        let mut slots = [0; 6];
        for slot in &mut slots {
            *slot = rest.u32()?;
        }
        let [fresh, free, young_head, young_tail, old_head, old_tail] = slots;
        let room = u64::from(pages.len()) * u64::from(Self::PAGE_SLOTS);
        expect(fresh >= 1 && u64::from(fresh) <= room.max(1) && live < u64::from(fresh), "slots within the pages")?;
        expect(slots[1..].iter().all(|slot| *slot < fresh), "free slots that were used")?;
        let grace = [Chain { head: young_head, tail: young_tail }, Chain { head: old_head, tail: old_tail }];
        Ok(Arena { pages, fresh, live, free, grace, record: std::marker::PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Copy, Pod, Zeroable, PartialEq, Debug)]
    #[repr(C)]
    struct Pair {
        tag: u32,
        value: u32,
    }
    impl Record for Pair {
        fn is_live(&self) -> bool {
            self.tag == 1
        }
        fn vacant(next: u32) -> Pair {
            Pair { tag: 0, value: next }
        }
        fn next_vacant(&self) -> u32 {
            self.value
        }
    }

    proptest! {
        #[test]
        fn like_a_map(ops in prop::collection::vec((0u8..8, any::<u32>()), 0..400)) {
            let (mut arena, mut map) = (Arena::<Pair>::new(), BTreeMap::new());
            for (op, value) in ops {
                let some = map.keys().nth(value as usize % map.len().max(1)).copied();
                match (op, some) {
                    (0..=3, _) => {
                        let slot = arena.add(Pair { tag: 1, value });
                        prop_assert!(map.insert(slot, value).is_none());
                    }
                    (4, Some(slot)) => {
                        arena.edit(slot, |r| r.value = value);
                        map.insert(slot, value);
                    }
                    (5 | 6, Some(slot)) => {
                        arena.remove(slot);
                        map.remove(&slot);
                        prop_assert!(!arena.is_live(slot));
                    }
                    _ => arena.tick(),
                }
                prop_assert_eq!(arena.len(), map.len() as u64);
            }
            prop_assert!(arena.slots().eq(map.keys().copied()));
            prop_assert!(map.iter().all(|(slot, value)| arena.get(*slot).value == *value));
        }
    }

    #[test]
    fn freed_slots_rest_for_two_ticks() {
        let mut arena = Arena::<Pair>::new();
        let one = Pair { tag: 1, value: 0 };
        let slots: Vec<_> = (0..3).map(|_| arena.add(one)).collect();
        arena.remove(slots[0]);
        arena.tick();
        arena.remove(slots[1]);
        assert!(!slots.contains(&arena.add(one)));
        arena.tick();
        assert_eq!(arena.add(one), slots[0]);
        assert!(!slots.contains(&arena.add(one)));
        arena.tick();
        assert_eq!(arena.add(one), slots[1]);
    }

    #[test]
    fn edits_stamp_their_page_only() {
        let mut arena = Arena::<Pair>::new();
        arena.reserve(20_000);
        let slots: Vec<_> = (0..20_000).map(|value| arena.add(Pair { tag: 1, value })).collect();
        assert_eq!(arena.page_count(), 3);
        let epoch = arena.bump_epoch();
        arena.get(slots[0]);
        arena.edit(slots[9_000], |r| r.value = 0);
        assert_eq!(arena.pages().stamped_since(epoch).collect::<Vec<_>>(), [1]);
    }
}
