//! Purpose: memory for a namespace of a billion files: pages, arenas of plain records, byte and list stores, id indexes, side tables,
//! delta-coded runs.
//! Called by: `record`; `blocks` (runs of block ids); `namespace`, `state` and `storage` (writing down and rebuilding).
//! Calls: nothing.
//! Never: lends a reference to a record; knows what a file or a block is; locks, logs, reads a clock or a file.
//! Invariants: every record, name, list and index entry lies in a 64 KiB page, holds no pointer, and is written only through
//! [`page::Pages::page_mut`], which stamps the page with the current epoch; what lies beside the pages (free lists, directories, oversize items) is
//! small and can be written down whole.

pub mod arena;
pub mod bulk;
pub mod bytes;
#[cfg(not(miri))]
mod chunk;
pub mod counting;
pub mod index;
pub mod intern;
pub mod lists;
pub mod nodes;
pub mod page;
pub mod persist;
mod populate;
mod prefetch;
pub mod runs;
pub mod sharded;
pub mod side;
mod slab;
mod varint;
mod words;

pub use prefetch::prefetch;
