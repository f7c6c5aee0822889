//! Purpose: operations that log edit records.
//! Called by: engine, through the `Write` trait.
//! Calls: state, namespace, blocks, edit, vocab.
//! Never: changes durable state except through `Turn::log`.
//! Invariants: a refusal leaves state and journal as they were, unless the operation says otherwise.

pub mod add_block;
pub mod complete;
pub mod create;
pub mod delete;
pub mod lease;
pub mod mkdirs;
pub mod new_node;
pub mod rename;
