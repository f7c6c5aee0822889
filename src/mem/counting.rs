//! An allocator that counts, for tests of claims such as "a lookup allocates nothing".

#![allow(unsafe_code)] // implementing an allocator is unsafe by its trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a count of allocations per thread. A test binary makes it its global allocator.
pub struct Counting;

impl Counting {
    /// How many allocations (growths included) `work` makes in this thread.
    pub fn count(work: impl FnOnce()) -> u64 {
        let before = ALLOCATIONS.get();
        work();
        ALLOCATIONS.get() - before
    }
}

fn tally() {
    // While a thread ends its count may be gone already.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator with its arguments unchanged; counting touches a thread-local integer only, which
// neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        tally();
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        tally();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        tally();
        // SAFETY: `pointer` came from `System` through this type, with this layout.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` through this type, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}
