//! Purpose: the viewers, compared byte for byte with what Hadoop's wrote from the same files.
//! Called by: tests/main.rs.
//! Calls: the binary under test, as a process.
//! Never: needs Java.
//! Invariants: what is expected was written by Hadoop (tests/golden).

mod edits;
mod images;
mod round_trip;
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs the binary in the time zone that the golden files were written in.
fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ironroot")).args(words).env("TZ", "UTC").output().expect("the binary starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Says where two texts part, instead of printing both.
fn assert_same(ours: &[u8], theirs: &[u8], what: &str) {
    if ours == theirs {
        return;
    }
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(ours.len().min(theirs.len()));
    let around = |all: &[u8]| {
        String::from_utf8_lossy(&all[at.saturating_sub(80).min(all.len())..(at + 80).min(all.len())]).into_owned()
    };
    panic!("{what} differs at byte {at}:\n{}\n-- expected --\n{}", around(ours), around(theirs));
}
