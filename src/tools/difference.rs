//! `image-diff`: two images by meaning. The order of entries, the numbering of strings and of references, codecs and sub-sections do not count.

use super::failure::Failure;
use super::image::entries::{self, Key};
use super::image::source::Image;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Differences that are shown with their content; more are counted.
const SHOWN_MAX: usize = 1000;
/// Exit status when the images differ.
const DIFFERENT: u8 = 1;
/// Exit status when they cannot be compared.
const TROUBLE: u8 = 2;

/// Which of the two images an entry is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    First,
    Second,
    Both,
}

/// Compares two images and writes what differs: exit status 0 if nothing does, 1 if something does, 2 if an image cannot be read.
pub fn run(first: &Path, second: &Path) -> ExitCode {
    match compare(first, second, &mut BufWriter::new(std::io::stdout().lock())) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(DIFFERENT),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(TROUBLE)
        }
    }
}

/// Writes what differs; how many entries do.
fn compare(first: &Path, second: &Path, out: &mut impl Write) -> Result<usize, Failure> {
    let named =
        |path: &Path| Image::open(path).map_err(|error| Failure::Content(format!("{}: {error}", path.display())));
    let (first, second) = (named(first)?, named(second)?);
    let different = different(&first, &second)?;
    let mut shown: Vec<&Key> = different.keys().collect();
    shown.sort();
    let more = shown.len().saturating_sub(SHOWN_MAX);
    shown.truncate(SHOWN_MAX);
    let texts = [texts(&first, &shown)?, texts(&second, &shown)?];
    for key in &shown {
        let [first, second] = [0, 1].map(|image| texts[image].get(key).map_or("", String::as_str).trim_end());
        match different[*key] {
            In::First => writeln!(out, "- {key}: {first}")?,
            In::Second => writeln!(out, "+ {key}: {second}")?,
            In::Both => writeln!(out, "< {key}: {first}\n> {key}: {second}")?,
        }
    }
    if more > 0 {
        writeln!(out, "and {more} more")?;
    }
    out.flush()?;
    Ok(different.len())
}

/// The entries that differ. Of each entry of the first image a hash is held.
fn different(first: &Image, second: &Image) -> Result<HashMap<Key, In>, Failure> {
    let hasher = RandomState::new();
    let mut hashes = HashMap::new();
    entries::each(first, &mut |key, text| {
        hashes.insert(key, hasher.hash_one(text));
    })?;
    let mut different = HashMap::new();
    entries::each(second, &mut |key, text| match hashes.remove(&key) {
        None => _ = different.insert(key, In::Second),
        Some(hash) if hash != hasher.hash_one(text) => _ = different.insert(key, In::Both),
        Some(_) => {}
    })?;
    different.extend(hashes.into_keys().map(|key| (key, In::First)));
    Ok(different)
}

/// The texts of some entries of an image.
fn texts(image: &Image, keys: &[&Key]) -> Result<HashMap<Key, String>, Failure> {
    let mut texts = HashMap::new();
    if keys.is_empty() {
        return Ok(texts);
    }
    entries::each(image, &mut |key, text| {
        if keys.binary_search(&&key).is_ok() {
            texts.insert(key, text.to_owned());
        }
    })?;
    Ok(texts)
}
