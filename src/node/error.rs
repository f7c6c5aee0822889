//! Why the NameNode does not start. All of these are for the administrator; none has changed anything on disk unless its text says so.

use crate::config::ConfigError;
use std::io;
use storage::StorageError;
use storage::replay::ReplayError;

/// The reason, worded as the log of a Hadoop NameNode has it where that has one.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// It asks for something that this version does not do.
    #[error("{0}")]
    Unsupported(String),
    /// The directories cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// No copy of the newest image can be loaded.
    #[error("Failed to load FSImage file, see error(s) above for more info.\n{0}")]
    Image(String),
    /// The edit log does not fit the image.
    #[error("{0}")]
    Edits(String),
    /// No new image could be written.
    #[error("{0}")]
    Save(String),
    /// The edit log cannot be opened for writing.
    #[error("Error: starting log segment failed for too many journals\n{0}")]
    Journal(String),
    /// The HTTP port is taken or not ours.
    #[error("Port in use: {address}\n{problem}")]
    HttpPort {
        /// `host:port`
        address: String,
        /// Why.
        problem: String,
    },
    /// An RPC port is taken or not ours.
    #[error(
        "Problem binding to [{address}] java.net.BindException: {problem}; For more details see:  http://wiki.apache.org/hadoop/BindException"
    )]
    RpcPort {
        /// `host:port`
        address: String,
        /// Why.
        problem: String,
    },
    /// The operating system refused something else.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
}

impl From<ReplayError<String>> for StartError {
    fn from(error: ReplayError<String>) -> StartError {
        match error {
            ReplayError::Storage(error) => error.into(),
            ReplayError::Apply { txid, offset, path, error } => StartError::Edits(format!(
                "Encountered exception on operation at transaction {txid}, offset {offset} of {path}: {error}"
            )),
        }
    }
}

impl StartError {
    /// For errors of the operating system that have no path.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
        move |error| StartError::System { what, error }
    }
}
