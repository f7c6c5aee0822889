//! What can go wrong in a tool.

use storage::image::ImageError;
use storage::journal::reader::ReadError;

/// Why a tool stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// A file cannot be read or written, or the output.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The image.
    #[error("{0}")]
    Image(#[from] ImageError),
    /// The edit log.
    #[error("{0}")]
    Edits(#[from] ReadError),
    /// The content of the input.
    #[error("{0}")]
    Content(String),
    /// No image can be made of the XML; told as it is.
    #[error("OfflineImageReconstructor failed: {0}")]
    Reconstruction(String),
    /// What Hadoop's tool does not catch: class and text of the exception.
    #[error("{0}")]
    Thrown(String),
    /// What was asked for; told as it is.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    pub(super) fn content(what: impl Into<String>) -> Failure {
        Failure::Content(what.into())
    }
}
