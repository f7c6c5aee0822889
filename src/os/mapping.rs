//! Parts of files as memory of our own: private mappings. What is written to them never reaches the file.
//!
//! A mapping is handed out as memory that lives for good, so that who holds it needs no word of where it came from; [`give_back`] ends it early. Reading
//! mapped memory whose page cannot be read from the disk any more is a SIGBUS: read the file once before, do not map for long, and see `lost`.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;

/// Bytes of the kernel's pages, at least.
const KERNEL_PAGE: usize = 4_096;

/// Zeros at a multiple of `alignment`, a power of two; at least `length` bytes and a multiple of `alignment`.
fn reserve(length: usize, alignment: usize) -> io::Result<(*mut c_void, usize)> {
    assert!(alignment.is_power_of_two() && alignment >= KERNEL_PAGE);
    let length = length.next_multiple_of(alignment).max(alignment);
    let wide = length.checked_add(alignment).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
    let base = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            wide,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )?
    };
    let below = base.align_offset(alignment);
    // SAFETY: `below` is less than `alignment`, so both parts given back lie within the mapping just made, around the part kept.
    unsafe {
        let kept = base.byte_add(below);
        if below > 0 {
            munmap(base, below)?;
        }
        if below < alignment {
            munmap(kept.byte_add(length), alignment - below)?;
        }
        Ok((kept, length))
    }
}

/// # Safety
/// `base` and `length` as [`reserve`] gave them, and nothing else refers to that memory.
unsafe fn lend(base: *mut c_void, length: usize) -> &'static mut [u8] {
    // SAFETY: the caller's promise; the mapping is readable, writable and initialised.
    unsafe { std::slice::from_raw_parts_mut(base.cast(), length) }
}

/// Maps `length` bytes of a file from `offset` on (both multiples of 4,096) to the beginning of memory at a multiple of `alignment`. It is as long as need
/// be to end at one too; behind `length` there are zeros.
pub(crate) fn map(file: impl AsFd, offset: u64, length: usize, alignment: usize) -> io::Result<&'static mut [u8]> {
    let (base, whole) = reserve(length, alignment)?;
    if length > 0 {
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE);
        // SAFETY: replaces the beginning of the mapping just reserved, which nothing refers to yet.
        unsafe { mmap(base, length, access, flags, file, offset)? };
    }
    // SAFETY: reserved above, handed out once.
    Ok(unsafe { lend(base, whole) })
}

/// The same for a file that can only be read: a copy.
pub(crate) fn copy(
    read_at: &dyn Fn(&mut [u8], u64) -> io::Result<usize>,
    offset: u64,
    length: usize,
    alignment: usize,
) -> io::Result<&'static mut [u8]> {
    let (base, whole) = reserve(length, alignment)?;
    // SAFETY: reserved above, handed out once.
    let memory = unsafe { lend(base, whole) };
    let mut filled = 0;
    while filled < length {
        match read_at(&mut memory[filled..length], offset + filled as u64) {
            Ok(0) => return give_back_and(memory, io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) => return give_back_and(memory, error),
        }
    }
    Ok(memory)
}
fn give_back_and<T>(memory: &'static mut [u8], error: io::Error) -> io::Result<T> {
    give_back(memory);
    Err(error)
}

/// Asks for mapped memory to be there before it is used. A hint.
pub fn populate(memory: &[u8]) {
    if memory.as_ptr().cast::<c_void>().align_offset(KERNEL_PAGE) == 0 && !memory.is_empty() {
        // SAFETY: reads ahead what is mapped; changes nothing that a program can see. An old kernel refuses.
        let _ = unsafe { madvise(memory.as_ptr().cast_mut().cast(), memory.len(), Advice::LinuxPopulateRead) };
    }
}

/// Ends a mapping, or a part of one in whole kernel pages. Other memory is left alone.
pub fn give_back(memory: &'static mut [u8]) {
    let (base, length) = (memory.as_mut_ptr().cast::<c_void>(), memory.len());
    if length > 0 && base.align_offset(KERNEL_PAGE) == 0 && length.is_multiple_of(KERNEL_PAGE) {
        // SAFETY: the caller had these whole pages exclusively and for good, and gives them up: nothing can refer to them any more. Where the kernel is
        // out of areas the range stays, unused.
        let _ = unsafe { munmap(base, length) };
    }
}
