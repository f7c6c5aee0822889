//! Purpose: from 64-bit ids to 32-bit handles, in constant time and little memory.
//! Called by: `record`: inode ids, block ids, striped groups ([`ids::IdIndex`]); random block ids of old ([`table::Table`]).
//! Calls: pages and words of this crate.
//! Never: holds a handle of 0; takes more than a page's worth of work for one change, whatever the size of the index.
//! Invariants: an id has at most one handle.

pub mod ids;
pub mod table;
