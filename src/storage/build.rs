//! Gives arena files the mark of what laid out their content: a number over the sources of all crates that decide how the state lies in memory.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Crates beside this one whose structures are written down.
const CRATES: [&str; 7] = ["vocab", "mem", "record", "namespace", "blocks", "state", "storage/arena"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn main() {
    let layers = Path::new("..");
    let mut found = Vec::new();
    for name in CRATES {
        println!("cargo::rerun-if-changed={}", layers.join(name).display());
        sources(&layers.join(name), &mut found);
    }
    found.sort();
    let mut hash = DefaultHasher::new();
    for path in found {
        path.hash(&mut hash);
        fs::read(&path).unwrap_or_default().hash(&mut hash);
    }
    for variable in ["CARGO_PKG_VERSION", "TARGET"] {
        std::env::var(variable).unwrap_or_default().hash(&mut hash);
    }
    println!("cargo::rustc-env=IRONROOT_MEMORY_LAYOUT={:016x}", hash.finish());
}
