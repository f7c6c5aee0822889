//! Purpose: the fixed-size records of inodes and blocks, and the [`Store`] that owns their arenas, names, owners and indexes.
//! Called by: `namespace` (inode half), `blocks` (block half), `state` (which owns the one store), `storage` (load and save), `ops` and `server` (reads).
//! Calls: `mem`, `vocab`.
//! Never: knows a rule of HDFS (who may, what follows); lends a reference to a record; locks, logs, reads a clock or a file.
//! Invariants: what goes in comes out at natural width, whatever the packed layout; every attached block is in the list of the file it names;
//! every inode that is no reference is in the id index; every block is in exactly one block index.

mod block;
mod distinct;
mod handle;
mod inode;
mod layout;
mod store;

pub use block::{BlockInfo, Blocks, Replica, ReplicaFlags, Replicas, StorageNumber};
pub use handle::{BlockHandle, InodeHandle};
pub use inode::{Features, FileFacts, GroupId, Inode, InodeKind, KindTag, ReferenceKind, UserId};
pub use store::{
    Bulk, BulkBlocks, BulkIndex, BulkInode, BulkParts, BulkWorker, Linker, Memory, Owner, PartIds, Store, Twice,
};
