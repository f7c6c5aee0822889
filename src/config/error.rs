//! What can be wrong with a configuration. All of these are for the administrator: each names the file or the key.

use std::path::PathBuf;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file is there but cannot be read.
    #[error("cannot read {}: {source}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not a well-formed configuration. `line` counts from 1.
    #[error("error parsing conf {file}: line {line}: {problem}")]
    Xml {
        /// Path or resource name.
        file: String,
        /// Line of the mistake.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// An include without a fallback that cannot be found.
    #[error("Fetch fail on include for '{href}' with no fallback while loading '{file}'")]
    Include {
        /// The missing file as it was written.
        href: String,
        /// The file that wanted it.
        file: String,
    },
    /// `${...}` does not come to an end.
    #[error("Variable substitution depth too large: {depth} {expression}")]
    Substitution {
        /// Steps that were made.
        depth: usize,
        /// The value as written.
        expression: String,
    },
    /// A value that does not fit its key. `problem` is the text Java's parsers give.
    #[error("{problem} (configuration property '{key}')")]
    Value {
        /// The key.
        key: String,
        /// What is wrong with the value.
        problem: String,
    },
    /// Values that contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// A generic option without its argument.
    #[error("Missing argument for option: {0}")]
    Option(String),
}
