//! Purpose: a naive twin of the namespace and many thousand random calls to both, with the laws that hold after each: equal answers, live state equals replayed
//! and reloaded state, every prefix of the log is legal.
//! Called by: the integration test binary.
//! Calls: ops, state, edit and storage's image codec, in memory; never the binary.
//! Never: shares a line of code with what it checks: the twin knows maps of paths, nothing else.
//! Invariants: a run is a function of its seed, which every failure names.

mod fuzz;
mod generate;
pub mod laws;
mod twin;
mod wide;
mod world;
