//! Purpose: the tree of names: children, resolution, access checks, quotas, leases, ACLs, attributes; everything of an inode that is not a block.
//! Called by: state (fit and apply), ops (reads and checks), storage (bulk construction from an image).
//! Calls: record (inode records by handle), vocab.
//! Never: touches the block map or a DataNode, decides what a record does (state does), reads a clock or a setting.
//! Invariants: `check` lists them; a detached subtree is invisible at once and freed in slices.

/// The namespace half of the file system: all but the inode records themselves, which live in `record::Store`.
#[derive(Debug, Default)]
pub struct Tree {}
