//! Variable sizes over pages: each page belongs to one size class and is cut into slots of it; a page without live slots goes back to all.
//!
//! So whatever is freed can be used again: by the same size at once, by any size when its page is empty. Nothing is moved.

use crate::page::{PAGE_BYTES, Pages};
use crate::persist::{Malformed, PageSets, RestReader, RestWriter, expect};
use bytemuck::{Pod, Zeroable};

const NONE: u32 = u32::MAX;

/// What is known of a page. Small against the page, and rebuilt from nothing: kept beside, not in it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Meta {
    class: u16,
    live: u16,
    /// Slots never used yet start here.
    fresh: u16,
    /// First freed slot, plus one; the chain runs through the slots' first two bytes.
    free: u16,
    slot_bytes: u32,
    /// Neighbours in the list of pages of this class that have room.
    previous: u32,
    next: u32,
}

impl Meta {
    fn slots(&self) -> u16 {
        (PAGE_BYTES as u32 / self.slot_bytes) as u16
    }
    fn full(&self) -> bool {
        self.live == self.slots()
    }
}

/// Slots by class. A slot has at least two bytes.
pub(crate) struct Slab {
    pages: Pages,
    metas: Vec<Meta>,
    /// First page with room, by class.
    open: Vec<u32>,
    empty: Vec<u32>,
    page_max: u32,
}

impl Slab {
    /// With so many classes and at most so many pages.
    pub(crate) fn new(classes: usize, page_max: u32) -> Slab {
        Slab { pages: Pages::new(), metas: Vec::new(), open: vec![NONE; classes], empty: Vec::new(), page_max }
    }

    fn unlink(&mut self, page: u32) {
        let Meta { previous, next, class, .. } = self.metas[page as usize];
        match previous {
            NONE => self.open[usize::from(class)] = next,
            _ => self.metas[previous as usize].next = next,
        }
        if next != NONE {
            self.metas[next as usize].previous = previous;
        }
    }
    fn link(&mut self, page: u32) {
        let class = usize::from(self.metas[page as usize].class);
        let next = self.open[class];
        (self.metas[page as usize].previous, self.metas[page as usize].next) = (NONE, next);
        if next != NONE {
            self.metas[next as usize].previous = page;
        }
        self.open[class] = page;
    }

    fn open_page(&mut self, class: usize, slot_bytes: usize) -> u32 {
        let page = self.empty.pop().unwrap_or_else(|| {
            assert!(self.pages.len() < self.page_max, "no more pages for variable-size data");
            self.pages.add()
        });
        let slot_bytes = slot_bytes as u32;
        let meta = Meta { class: class as u16, live: 0, fresh: 0, free: 0, slot_bytes, previous: NONE, next: NONE };
        match self.metas.get_mut(page as usize) {
            Some(old) => *old = meta,
            None => self.metas.push(meta),
        }
        self.link(page);
        page
    }

    /// Takes a slot of a class, whose size is `slot_bytes`: page and number within it. Its content is whatever was there.
    pub(crate) fn take(&mut self, class: usize, slot_bytes: usize) -> (u32, u32) {
        let page = match self.open[class] {
            NONE => self.open_page(class, slot_bytes),
            page => page,
        };
        let meta = self.metas[page as usize];
        debug_assert_eq!(meta.slot_bytes as usize, slot_bytes);
        let slot = if meta.free != 0 {
            let slot = meta.free - 1;
            let at = usize::from(slot) * slot_bytes;
            let bytes = &self.pages.page(page).0;
            self.metas[page as usize].free = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
            slot
        } else {
            self.metas[page as usize].fresh += 1;
            meta.fresh
        };
        self.metas[page as usize].live += 1;
        if self.metas[page as usize].full() {
            self.unlink(page);
        }
        (page, u32::from(slot))
    }

    /// Gives a slot back.
    pub(crate) fn free(&mut self, page: u32, slot: u32) {
        let meta = self.metas[page as usize];
        assert!(meta.live > 0 && slot < u32::from(meta.fresh), "a slot freed that was never taken");
        if meta.full() {
            self.link(page);
        }
        let meta = &mut self.metas[page as usize];
        meta.live -= 1;
        if meta.live == 0 {
            self.unlink(page);
            self.empty.push(page);
            return;
        }
        let next = std::mem::replace(&mut meta.free, slot as u16 + 1);
        let at = slot as usize * meta.slot_bytes as usize;
        self.pages.page_mut(page).0[at..at + 2].copy_from_slice(&next.to_le_bytes());
    }

    /// Takes over pages that were filled from their first slot on: each with its class and number of slots in use. The others are empty.
    pub(crate) fn adopt(&mut self, pages: Pages, used: &[(u32, usize, u32)], slot_bytes: impl Fn(usize) -> usize) {
        let none =
            Meta { class: 0, live: 0, fresh: 0, free: 0, slot_bytes: slot_bytes(0) as u32, previous: NONE, next: NONE };
        self.metas = vec![none; pages.len() as usize];
        self.pages = pages;
        for (page, class, slots) in used {
            let meta = &mut self.metas[*page as usize];
            meta.class = *class as u16;
            meta.slot_bytes = slot_bytes(*class) as u32;
            (meta.live, meta.fresh) = (*slots as u16, *slots as u16);
            if !meta.full() {
                self.link(*page);
            }
        }
        self.empty = (0..self.pages.len()).filter(|page| self.metas[*page as usize].live == 0).collect();
    }

    /// Class of a page.
    #[inline]
    pub(crate) fn class(&self, page: u32) -> usize {
        usize::from(self.metas[page as usize].class)
    }
    #[inline]
    fn range(&self, page: u32, slot: u32) -> std::ops::Range<usize> {
        let bytes = self.metas[page as usize].slot_bytes as usize;
        slot as usize * bytes..(slot as usize + 1) * bytes
    }
    /// Bytes of a slot.
    #[inline]
    pub(crate) fn bytes(&self, page: u32, slot: u32) -> &[u8] {
        &self.pages.page(page).0[self.range(page, slot)]
    }
    /// The first bytes of a slot, as many as its class says: for stores whose classes are lengths.
    #[inline]
    pub(crate) fn class_bytes(&self, page: u32, slot: u32) -> &[u8] {
        let Meta { class, slot_bytes, .. } = self.metas[page as usize];
        let start = slot as usize * slot_bytes as usize;
        &self.pages.page(page).0[start..start + usize::from(class)]
    }
    /// Bytes of a slot, to write.
    pub(crate) fn bytes_mut(&mut self, page: u32, slot: u32) -> &mut [u8] {
        let range = self.range(page, slot);
        &mut self.pages.page_mut(page).0[range]
    }

    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }
    pub(crate) fn bump_epoch(&mut self) -> u32 {
        self.pages.bump_epoch()
    }
    /// Gets memory for so many pages.
    pub(crate) fn reserve(&mut self, pages: usize) {
        self.pages.reserve(pages);
        self.metas.reserve(pages.saturating_sub(self.metas.len()));
    }
    /// Bytes held, those of free slots and of empty pages included.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pages.memory_bytes() + self.metas.len() * size_of::<Meta>()
    }
    /// Bytes in pages that any class may take.
    pub(crate) fn empty_bytes(&self) -> usize {
        self.empty.len() * PAGE_BYTES
    }

    pub(crate) fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        sets.push(&self.pages);
    }
    pub(crate) fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        sets.push(&mut self.pages);
    }
    pub(crate) fn write_rest(&self, rest: &mut RestWriter) {
        let Slab { pages: _, metas, open, empty, page_max: _ } = self;
        rest.plain(metas);
        rest.plain(open);
        rest.plain(empty);
    }
    /// Fills a slab that was just made, with as many classes as the one written down. `slot_bytes` gives the size of a class.
    pub(crate) fn restore(
        mut self,
        pages: &mut PageSets,
        rest: &mut RestReader<'_>,
        slot_bytes: impl Fn(usize) -> usize,
    ) -> Result<Slab, Malformed> {
        self.pages = pages.take()?;
        self.metas = rest.plain()?;
        let open: Vec<u32> = rest.plain()?;
        self.empty = rest.plain()?;
        let count = self.pages.len();
        expect(self.metas.len() == count as usize && count <= self.page_max, "one meta for each page")?;
        expect(open.len() == self.open.len(), "one open page for each class")?;
        let exists = |page: &u32| *page < count || *page == NONE;
        expect(open.iter().all(exists) && self.empty.iter().all(|page| *page < count), "pages that exist")?;
        for meta in &self.metas {
            let class = usize::from(meta.class);
            let sound = class < open.len()
                && meta.slot_bytes as usize == slot_bytes(class)
                && meta.live <= meta.fresh
                && meta.fresh <= meta.slots()
                && meta.free <= meta.fresh
                && exists(&meta.previous)
                && exists(&meta.next);
            expect(sound, "a sound meta")?;
        }
        self.open = open;
        Ok(self)
    }
}
