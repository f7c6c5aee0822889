//! Purpose: memory for a namespace of a billion files: pages, arenas of plain records, byte and list stores, id indexes, delta-coded runs.
//! Called by: `record`, and the layers above for side structures of their own (`namespace`: child lists; `blocks`: runs).
//! Calls: nothing.
//! Never: lends a reference to a record; knows what a file or a block is; locks, logs, reads a clock or a file.
//! Invariants: every byte that must survive lies in a 64 KiB page, holds no pointer, and is written only through [`page::Pages::page_mut`],
//! which stamps the page with the current epoch.

pub mod arena;
pub mod bytes;
#[cfg(not(miri))]
mod chunk;
pub mod counting;
pub mod index;
pub mod intern;
pub mod lists;
pub mod page;
pub mod runs;
mod slab;
mod varint;
mod words;
