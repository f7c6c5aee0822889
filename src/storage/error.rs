//! Why storage cannot be used. The first lines of the texts are Hadoop's, since scripts and people look for them; what follows names the file.

use std::io;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// A failure of storage. None of them has changed anything on disk, unless its text says so.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was used.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Hadoop's `InconsistentFSStateException`.
    #[error("Directory {} is in an inconsistent state: {reason}", directory.display())]
    Inconsistent {
        /// The storage directory.
        directory: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// No directory is formatted.
    #[error("NameNode is not formatted.")]
    NotFormatted,
    /// A directory whose VERSION says layout 0.
    #[error("NameNode directory {} is not formatted.", .0.display())]
    DirectoryNotFormatted(PathBuf),
    /// Another process holds the directory.
    #[error("Cannot lock storage {}. The directory is already locked\nIt is held by {holder}.", directory.display())]
    Locked {
        /// The storage directory.
        directory: PathBuf,
        /// What its lock file says.
        holder: String,
    },
    /// A layout newer than this software's (Hadoop's `IncorrectVersionException`).
    #[error("Unexpected version of storage directory {}. Reported: {reported}. Expecting = -67.", directory.display())]
    UnexpectedVersion {
        /// The storage directory.
        directory: PathBuf,
        /// Its layout.
        reported: i32,
    },
    /// An older layout, and no upgrade was asked for.
    #[error(
        "File system image contains an old layout version {0}.\nAn upgrade to version -67 is required.\nPlease restart NameNode with the \"-rollingUpgrade started\" option if a rolling upgrade is already started; or restart NameNode with the \"-upgrade\" option to start a new upgrade."
    )]
    OldLayout(i32),
    /// A layout that no upgrade reaches from; 0 is that of directories without VERSION.
    #[error(
        "*********** Upgrade is not supported from this  older version {0} of storage to the current version. Please upgrade to Hadoop-0.18 or a later version and then upgrade to current version. Old layout version is {told} and latest layout version this software version can upgrade from is -16. ************",
        told = ancient(.0)
    )]
    TooOldToUpgrade(i32),
    /// The state from before an upgrade is of another layout than this software's.
    #[error(
        "Cannot rollback to storage version {0} using this version of the NameNode, which uses storage version -67. Please use the previous version of HDFS to perform the rollback."
    )]
    RollbackLayout(i32),
    /// Directories of before transaction ids, whose files cannot be used (Hadoop's `FSImagePreTransactionalStorageInspector`).
    #[error("{0}")]
    Pretransactional(String),
    /// No directory keeps a state from before an upgrade.
    #[error("Cannot rollback. None of the storage directories contain previous fs state.")]
    NothingToRollBack,
    /// A property of VERSION is no number.
    #[error("For input string: \"{value}\"\n{key} in {}", path.display())]
    Number {
        /// The file.
        path: PathBuf,
        /// The property.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// A property of VERSION names no kind of node.
    #[error("storageType {value} in {} is not known", path.display())]
    NodeType {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
    },
    /// namespaceID is 0.
    #[error("Must know namespace ID before initting edit log")]
    NoNamespaceId,
    /// No image in any directory, or none in a directory whose `seen_txid` can be read.
    #[error("No valid image files found{0}")]
    NoImage(String),
    /// Edits are missing.
    #[error(
        "Gap in transactions. Expected to be able to read up until at least txid {needed} but unable to find any edit logs containing txid {missing}"
    )]
    Gap {
        /// Transaction up to which there must be edits (`seen_txid`).
        needed: Txid,
        /// The first that is missing.
        missing: Txid,
    },
    /// Open segments of an earlier run could not be finalized in enough directories.
    #[error("recoverUnfinalizedSegments failed for too many journals\n{0}")]
    Recovery(String),
    /// The log cannot be read where it must.
    #[error("Error replaying edit log at offset {offset}.  Expected transaction ID was {expected}\n{}: {reason}", path.display())]
    Replay {
        /// The file.
        path: PathBuf,
        /// Offset of the record in it.
        offset: u64,
        /// Transaction that should have been there.
        expected: Txid,
        /// What is wrong.
        reason: String,
    },
    /// A transaction is missing inside a segment.
    #[error("There appears to be a gap in the edit log.  We expected txid {expected}, but got txid {got}.\n{}", path.display())]
    GapInside {
        /// The file.
        path: PathBuf,
        /// What should have come.
        expected: Txid,
        /// What came.
        got: Txid,
    },
    /// A transaction comes again, or too late.
    #[error(
        "There appears to be an out-of-order edit in the edit log.  We expected txid {expected}, but got txid {got}.\n{}",
        path.display()
    )]
    OutOfOrder {
        /// The file.
        path: PathBuf,
        /// What should have come.
        expected: Txid,
        /// What came.
        got: Txid,
    },
    /// Formatting is not allowed, or was refused.
    #[error("{0}")]
    Format(String),
}

impl StorageError {
    /// Adds the path to an error of the operating system.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> StorageError + '_ {
        move |source| StorageError::Io { path: path.to_owned(), source }
    }
}

/// A layout in the words for one that is too old.
fn ancient(layout: &i32) -> String {
    if *layout == 0 { "'too old'".to_owned() } else { layout.to_string() }
}
