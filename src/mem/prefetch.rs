//! Asking for memory ahead of its use: independent misses overlap, dependent ones add up.

#![allow(unsafe_code)] // the intrinsic is unsafe by signature

/// Asks the processor to fetch the cache line of a value. A hint: changes nothing, reads nothing; does nothing where there is no such instruction.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86-64; a prefetch of any address has no effect that a program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}
