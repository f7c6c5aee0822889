//! Purpose: looking at files while nothing serves them: the viewers `oiv` and `oev`, `image-diff`, `size`.
//! Called by: cli.
//! Calls: storage (sections of images, segments), edit (records), hadoop-proto (messages of images), the standard streams.
//! Never: changes a name directory, talks to a server, holds a namespace where a stream of messages does.
//! Invariants: what the viewers write equals, byte for byte, what Hadoop's own write from the same file.

mod difference;
mod edits;
mod failure;
mod image;
mod options;
mod size;
mod stanza;
mod text;
mod xml;

pub use difference::run as compare_images;
pub use edits::run as view_edits;
pub use image::run as view_image;
pub use size::run as estimate_size;

use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

/// Exit status of Hadoop's tools for whatever went wrong (-1).
const FAILED: u8 = 255;

/// The end of a run: its failure as Hadoop's tools tell it, after the words that this one begins with, and the exit status.
fn ended(result: Result<(), Failure>, opening: &str) -> ExitCode {
    match result {
        Ok(()) => return ExitCode::SUCCESS,
        // Whoever read the output has gone away.
        Err(Failure::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        Err(Failure::Refused(text)) => eprintln!("{text}"),
        Err(failure) => eprintln!("{opening}{failure}"),
    }
    ExitCode::from(FAILED)
}

/// Writes the usage, with what was wrong before it.
fn usage(complaint: Option<&str>, text: &str) {
    let mut out = std::io::stdout().lock();
    _ = complaint.map_or(Ok(()), |complaint| writeln!(out, "{complaint}"));
    _ = write!(out, "{text}");
}
