//! Purpose: operations that only look: functions over a view that give plain values or feed a visitor.
//! Called by: server, under a read hold.
//! Calls: state, namespace, blocks, vocab.
//! Never: changes anything; logs an edit record (the access time of a read is an operation of its own).
//! Invariants: what is not there is `None` or a refusal exactly where Hadoop has it so.

pub mod acl_status;
pub mod batched_listing;
pub mod block_locations;
pub mod caches;
pub mod corrupt_files;
pub mod defaults;
pub mod erasure_coding;
pub mod file_info;
pub mod fsck;
pub mod listing;
pub mod meta_save;
pub mod open_files;
pub mod owner;
pub mod snapshots;
pub mod statistics;
pub mod summary;
pub mod zones;
