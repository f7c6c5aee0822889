//! Slots of 32-bit words in size classes: what lists and index pages lie in.

use crate::page::{PAGE_BYTES, Pages};
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};
use crate::slab::Slab;
use std::num::NonZeroU32;

/// Words in a page, and the most that a slot can have.
pub(crate) const PAGE_WORDS: usize = PAGE_BYTES / 4;
/// The smallest slot: 4,096 of them in a page make 12 bits.
const SLOT_BITS: u32 = 12;
/// Slot numbers end here, so that users have the numbers above to themselves: 60 GiB of slots.
pub(crate) const NUMBER_LIMIT: u32 = 0xf000_0000;

const CLASS_COUNT: usize = 15 + 24 + 24 + 31;

/// Words by class: steps of an eighth or less up to 512, then the fractions of a page.
const CLASSES: [u16; CLASS_COUNT] = {
    let (mut classes, mut at, mut words) = ([0; CLASS_COUNT], 0, 4);
    while words <= 512 {
        classes[at] = words as u16;
        at += 1;
        words += if words < 32 {
            2
        } else if words < 128 {
            4
        } else {
            16
        };
    }
    let mut parts = 31;
    while parts > 0 {
        classes[at] = (PAGE_WORDS / parts) as u16;
        at += 1;
        parts -= 1;
    }
    assert!(at == CLASS_COUNT);
    classes
};

/// The smallest class of at least so many words.
pub(crate) fn class_of(words: usize) -> usize {
    CLASSES.partition_point(|c| usize::from(*c) < words)
}

/// Words that a slot for `words` words really has.
pub(crate) fn capacity_for(words: usize) -> usize {
    usize::from(CLASSES[class_of(words)])
}

/// Slots of words, by number: never 0, below [`NUMBER_LIMIT`].
pub(crate) struct Words {
    slab: Slab,
}

fn place(number: NonZeroU32) -> (u32, u32) {
    let at = number.get() - 1;
    (at >> SLOT_BITS, at & ((1 << SLOT_BITS) - 1))
}

impl Words {
    pub(crate) fn new() -> Words {
        Words { slab: Slab::new(CLASS_COUNT, NUMBER_LIMIT >> SLOT_BITS) }
    }
    /// A slot of at least `words` words (at most [`PAGE_WORDS`]), with whatever was in it.
    pub(crate) fn take(&mut self, words: usize) -> NonZeroU32 {
        let class = class_of(words);
        let (page, slot) = self.slab.take(class, usize::from(CLASSES[class]) * 4);
        NonZeroU32::new((page << SLOT_BITS | slot) + 1).expect("one or more")
    }
    pub(crate) fn free(&mut self, number: NonZeroU32) {
        let (page, slot) = place(number);
        self.slab.free(page, slot);
    }
    /// A slot for `words` words with the first `used` words of this one: the same if it is large enough.
    pub(crate) fn grow(&mut self, number: NonZeroU32, used: usize, words: usize) -> NonZeroU32 {
        if words <= self.capacity(number) { number } else { self.relocate(number, used, words) }
    }
    /// A slot for `used` words with those of this one: the same unless it is larger than need be by more than a sixteenth.
    pub(crate) fn shrink(&mut self, number: NonZeroU32, used: usize) -> NonZeroU32 {
        if capacity_for(used + used / 16) >= self.capacity(number) { number } else { self.relocate(number, used, used) }
    }
    pub(crate) fn relocate(&mut self, number: NonZeroU32, used: usize, words: usize) -> NonZeroU32 {
        let new = self.take(words);
        // piece by piece: a buffer for the largest slot would cost more to clear than most slots to copy
        let mut piece = [0; 64];
        for start in (0..used).step_by(piece.len()) {
            let end = used.min(start + piece.len());
            let piece = &mut piece[..end - start];
            piece.copy_from_slice(&self.get(number)[start..end]);
            self.get_mut(new)[start..end].copy_from_slice(piece);
        }
        self.free(number);
        new
    }
    /// A number for side tables about slots of which `per_page` are in a page.
    pub(crate) fn ordinal(number: NonZeroU32, per_page: usize) -> usize {
        let (page, slot) = place(number);
        page as usize * per_page + slot as usize
    }
    #[inline]
    pub(crate) fn get(&self, number: NonZeroU32) -> &[u32] {
        let (page, slot) = place(number);
        bytemuck::cast_slice(self.slab.bytes(page, slot))
    }
    #[inline]
    pub(crate) fn get_mut(&mut self, number: NonZeroU32) -> &mut [u32] {
        let (page, slot) = place(number);
        bytemuck::cast_slice_mut(self.slab.bytes_mut(page, slot))
    }
    /// Words of the slot.
    #[inline]
    pub(crate) fn capacity(&self, number: NonZeroU32) -> usize {
        usize::from(CLASSES[self.slab.class(place(number).0)])
    }
    pub(crate) fn slab(&self) -> &Slab {
        &self.slab
    }
    pub(crate) fn slab_mut(&mut self) -> &mut Slab {
        &mut self.slab
    }
}

impl Persist for Words {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.slab.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.slab.page_sets_mut(sets);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        self.slab.write_rest(rest);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Words, Malformed> {
        let slab = Words::new().slab.restore(pages, rest, |class| usize::from(CLASSES[class]) * 4)?;
        Ok(Words { slab })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_ascend_and_waste_little() {
        assert!(CLASSES.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(CLASSES[CLASS_COUNT - 1] as usize, PAGE_WORDS);
        for words in 1..=4_096 {
            let capacity = capacity_for(words);
            assert!(capacity >= words && (capacity < 6 || capacity * 3 <= words * 4), "{words} in {capacity}");
        }
    }
}
