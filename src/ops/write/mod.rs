//! Purpose: operations that log edit records.
//! Called by: engine, through the `Write` trait.
//! Calls: state, namespace, blocks, edit, vocab.
//! Never: changes durable state except through `Turn::log`.
//! Invariants: a refusal leaves state and journal as they were, unless the operation says otherwise.

pub mod access_time;
pub mod acl;
pub mod add_block;
pub mod append;
pub mod attributes;
pub mod caches;
pub mod complete;
pub mod concat;
pub mod create;
pub mod delete;
pub mod erasure_coding;
pub mod lease;
pub mod mkdirs;
pub mod new_node;
pub mod pipeline;
pub mod quota;
pub mod reencrypt;
pub mod rename;
pub mod snapshots;
pub mod storage_policy;
pub mod symlink;
pub mod tokens;
pub mod truncate;
pub mod xattr;
pub mod zones;
