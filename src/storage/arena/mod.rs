//! Purpose: arena files: the state as it lies in memory, page by page, written while the server runs and mapped at a restart instead of parsing an image.
//! Called by: engine (checkpoints), the binary (restart; the process that encodes an image from one).
//! Calls: state and mem (page sets and what lies beside them), os (files, private mappings), the image's digest files, the journal's segments.
//! Never: is the truth: an image and its edits are. What does not fit in every respect is not used, whatever the reason.
//! Invariants: a file gets its final name only when all of it is durable; a state comes from one only after every checksum was compared. FORMAT.md.

mod choose;
mod format;
mod load;
mod write;

pub use choose::{candidate, choose, digest_of_all, named};
pub use format::{BUILD, Binding, Identity, LogEnd};
pub use load::{ArenaFile, Loaded};
pub use write::{Frozen, WriteError, bind, purge, write};

use crate::StorageError;
use std::path::PathBuf;
use vocab::Txid;

/// Why an arena file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It is no arena file, cut off, or changed.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It is of another release or build of this software, whose memory may be laid out otherwise.
    #[error("it was written by another build")]
    Build,
    /// It is of another file system, or of the same before or after an upgrade.
    #[error("it is of another file system")]
    Identity,
    /// An image says more than it.
    #[error("the image for txid {0} is newer")]
    NewerImage(Txid),
    /// An image for the same transaction is not the one that was made with it.
    #[error("the image for the same txid is another one: {}", .0.display())]
    OtherImage(PathBuf),
    /// The edits that lead to it are not there, or others are in their place.
    #[error("the edits up to its txid are not those that it was made from")]
    OtherEdits,
    /// Its storage numbers are used up.
    #[error("its storage numbers are used up")]
    StorageNumbers,
}
