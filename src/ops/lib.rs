//! Purpose: one file per operation: what it asks, checks, logs and answers. No protobuf, no Java class names.
//! Called by: engine (runs them), server (makes requests of wire messages and wire messages of replies).
//! Calls: state, namespace, blocks, edit, vocab.
//! Never: locks, syncs, reads a clock or a file; changes durable state except through `Turn::log`.
//! Invariants: a refusal leaves state and journal unchanged unless the operation's documentation says otherwise.

pub mod admin;
pub mod checks;
pub mod context;
pub mod datanode;
pub mod encryption;
pub mod read;
pub mod settings;
pub mod status;
pub mod table;
pub mod write;

pub use context::{Log, Turn, View, Write};
pub use settings::Settings;
pub use table::Operation;

#[cfg(test)]
mod tests;
