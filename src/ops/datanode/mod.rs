//! Purpose: what DataNodes ask that is more than a call of the block half: the end of a block recovery, bad replicas; and the periodic work.
//! Called by: server (DatanodeProtocol; registrations, heartbeats and reports go to `blocks` directly), engine (ticks).
//! Calls: state, blocks, edit, vocab.
//! Never: reads a clock; runs longer than its budget; changes durable state except through `Turn::log`.
//! Invariants: all that a step leaves undone is found by the next one.

pub mod bad_blocks;
pub mod commit_synchronization;
pub mod work;

pub use bad_blocks::{BadBlock, BadPlace, report_bad_blocks};
pub use commit_synchronization::CommitBlockSynchronization;
pub use work::Work;

#[cfg(test)]
mod tests;
