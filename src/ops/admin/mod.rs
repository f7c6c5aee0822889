//! Purpose: operations for administrators and the periodic work on leases and deleted snapshots.
//! Called by: server, engine (ticks).
//! Calls: state, blocks, vocab.
//! Never: writes files; that is the engine's and the storage's part of an administrator's call.
//! Invariants: what needs a superuser says so before anything else.

pub mod cache_scan;
pub mod datanode_report;
pub mod get_blocks;
pub mod lazy_persist;
pub mod lease_check;
pub mod safe_mode;
pub mod snapshot_collect;
