//! Memory for one chunk straight from the kernel: aligned to its size, zero until touched, never copied by an allocator.

#![allow(unsafe_code)] // mapping memory, and reading what is mapped

use super::page::ChunkPages;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a chunk: what one huge page covers.
const CHUNK_BYTES: usize = size_of::<ChunkPages>();

/// Owner of a mapped chunk.
pub(crate) struct MappedChunk {
    pages: NonNull<ChunkPages>,
    /// Whether the memory was handed in and is not ours to unmap.
    lent: bool,
}

// SAFETY: a chunk owns its mapping as a box owns its allocation; it is plain bytes, without ties to a thread.
unsafe impl Send for MappedChunk {}
// SAFETY: shared references to a chunk only read.
unsafe impl Sync for MappedChunk {}

fn map(bytes: usize) -> *mut c_void {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory that exists.
    match unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) } {
        Ok(base) => base,
        Err(_) => std::alloc::handle_alloc_error(std::alloc::Layout::new::<ChunkPages>()),
    }
}
/// # Safety
/// The range must be mapped by [`map`], and nothing may refer to it any more.
unsafe fn unmap(base: *mut c_void, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's promise. Unmapping what is mapped fails only where the kernel is out of areas; the range then stays, unused.
        let _ = unsafe { munmap(base, bytes) };
    }
}

impl MappedChunk {
    /// A chunk of zeros. Out of memory ends the process, as it does for every allocation.
    pub(crate) fn new() -> MappedChunk {
        MappedChunk::several(1, false).pop().expect("one")
    }
    /// Several chunks of zeros, side by side, in one call: mapping waits for whoever is being given memory. `huge`: they are to be huge pages.
    pub(crate) fn several(count: usize, huge: bool) -> Vec<MappedChunk> {
        // Kernels from 6.7 on align mappings of this size by themselves.
        let bytes = count * CHUNK_BYTES;
        let mut base = map(bytes);
        if !base.cast::<ChunkPages>().is_aligned() {
            // SAFETY: the mapping just made, which nothing refers to.
            unsafe { unmap(base, bytes) };
            base = MappedChunk::map_aligned(bytes);
        }
        if huge {
            // SAFETY: the mapping just made; the advice changes no content.
            let _ = unsafe { madvise(base, bytes, Advice::LinuxHugepage) };
        }
        let at = |number: usize| base.wrapping_byte_add(number * CHUNK_BYTES).cast();
        let chunk = |number| MappedChunk { pages: NonNull::new(at(number)).expect("never at 0"), lent: false };
        (0..count).map(chunk).collect()
    }
    /// Has the kernel put memory behind all of it now, in one call.
    pub(crate) fn populate(&mut self) {
        let base = self.pages.as_ptr().cast();
        // SAFETY: the chunk's own mapping, exclusively borrowed; populating changes no content. Where the kernel does not know how, pages
        // come one by one.
        let _ = unsafe { madvise(base, CHUNK_BYTES, Advice::LinuxPopulateWrite) };
    }
    /// Gives the kernel back what lies behind the first `bytes` (a multiple of 4,096) of memory of our own; it is zero from now on.
    pub(crate) fn give_back_from(&mut self, bytes: usize) {
        if self.lent || bytes >= CHUNK_BYTES {
            return;
        }
        // SAFETY: within the chunk's own anonymous mapping, exclusively borrowed; zeros are a valid value. Where the kernel refuses, all stays.
        let _ = unsafe {
            madvise(self.pages.as_ptr().cast::<c_void>().byte_add(bytes), CHUNK_BYTES - bytes, Advice::LinuxDontNeed)
        };
    }
    /// Memory that was handed in for good.
    pub(crate) fn lent(memory: &'static mut ChunkPages) -> MappedChunk {
        MappedChunk { pages: NonNull::from(memory), lent: true }
    }
    /// Whether it was handed in.
    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }
    /// Memory that was handed in, back to who handed it in; `None` for memory of our own, which is given to the kernel.
    pub(crate) fn give_back(self) -> Option<&'static mut ChunkPages> {
        // SAFETY: the exclusive reference that `lent` consumed; dropping `self` does not touch lent memory, and nothing else refers to it.
        self.lent.then(|| unsafe { &mut *self.pages.as_ptr() })
    }
    /// The last aligned part of a mapping larger by a chunk; the last, since mappings grow downwards and neighbours become one area.
    fn map_aligned(bytes: usize) -> *mut c_void {
        let wide = map(bytes + CHUNK_BYTES);
        let below = wide.align_offset(CHUNK_BYTES);
        let below = if below == 0 { CHUNK_BYTES } else { below };
        // SAFETY: `below` is at most a chunk, by which the mapping is larger; the parts given back are those around what is kept.
        unsafe {
            let base = wide.byte_add(below);
            unmap(wide, below);
            unmap(base.byte_add(bytes), CHUNK_BYTES - below);
            base
        }
    }
}

impl Deref for MappedChunk {
    type Target = ChunkPages;
    #[inline]
    fn deref(&self) -> &ChunkPages {
        // SAFETY: mapped and aligned since `new`, until dropped; any bytes (zeros at first) are a valid value.
        unsafe { self.pages.as_ref() }
    }
}
impl DerefMut for MappedChunk {
    #[inline]
    fn deref_mut(&mut self) -> &mut ChunkPages {
        // SAFETY: as above; the owner is borrowed exclusively, and nothing else refers to the mapping.
        unsafe { self.pages.as_mut() }
    }
}
impl Drop for MappedChunk {
    fn drop(&mut self) {
        if !self.lent {
            // SAFETY: the chunk's own mapping; its owner is going away.
            unsafe { unmap(self.pages.as_ptr().cast(), CHUNK_BYTES) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_zero_and_one_area() {
        let base = MappedChunk::map_aligned(3 * CHUNK_BYTES);
        assert!(base.cast::<ChunkPages>().is_aligned());
        // SAFETY: mapped above, not used.
        unsafe { unmap(base, 3 * CHUNK_BYTES) };
        let mut chunks: Vec<MappedChunk> = (0..4).map(|_| MappedChunk::new()).collect();
        chunks.extend(MappedChunk::several(5, true));
        drop(chunks.remove(6));
        for (n, chunk) in (1u8..).zip(&mut chunks) {
            assert!(std::ptr::from_ref(&**chunk).is_aligned());
            assert!(chunk.0[31].0.iter().all(|b| *b == 0));
            chunk.0[31].0[65_535] = n;
        }
        assert!((1u8..).zip(&chunks).all(|(n, chunk)| chunk.0[31].0[65_535] == n));
        chunks[0].0[2].0[7] = 5;
        chunks[0].give_back_from(3 << 16);
        assert_eq!((chunks[0].0[2].0[7], chunks[0].0[31].0[65_535]), (5, 0));
        chunks[0].0[31].0[65_535] = 9;
        chunks[1].give_back_from(CHUNK_BYTES);
        assert_eq!((chunks[0].0[31].0[65_535], chunks[1].0[31].0[65_535]), (9, 2));
    }
}
