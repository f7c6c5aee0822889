//! Purpose: the crash model: the engine over a disk that fails and forgets, ended at every one of its calls in turn, started again, and compared with what writers were told.
//! Called by: the integration test binary.
//! Calls: engine, ops, storage and os's simulated world; never the binary.
//! Never: touches the real disk or clock.
//! Invariants: what a writer was told is there after every end; what it was not told is there as a prefix of its records or not at all.

mod crash;
mod datanodes;
pub mod node;
pub mod script;
mod spoiled;
