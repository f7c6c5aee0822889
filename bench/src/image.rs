//! Load and save of an image in memory, on one thread.

use crate::world::{SAVED, World};
use std::time::Instant;
use storage::image::{Digest, encode, load};

/// Prints how long a state of so many files with one block each takes to be saved and loaded.
pub fn table(files: usize) -> Result<(), String> {
    let since = Instant::now();
    let mut world = World::new(3);
    world.populate(files);
    let made = since.elapsed().as_secs_f64();
    let mut image = Vec::new();
    let since = Instant::now();
    let digest = encode(&world.state, SAVED, &mut |bytes| image.extend_from_slice(bytes)).map_err(|e| e.to_string())?;
    let saved = since.elapsed().as_secs_f64();
    let before = world.state.digest();
    drop(world);
    let since = Instant::now();
    let found = Digest::of(&image);
    let digested = since.elapsed().as_secs_f64();
    assert_eq!(found, digest, "digest");
    let since = Instant::now();
    let loaded = load(&image, digest, World::empty()).map_err(|e| e.to_string())?;
    let whole = since.elapsed().as_secs_f64();
    assert_eq!(loaded.state.digest(), before, "what is loaded is what was saved");
    let line = |what: &str, seconds: f64| {
        let (rate, mb) = (files as f64 / seconds, image.len() as f64 / seconds / 1e6);
        println!("{what:<36} {seconds:>8.2} s {rate:>12.0} files/s {mb:>8.0} MB/s");
    };
    println!(
        "{files} files with one block each, image of {:.1} MB, digest {}\n",
        image.len() as f64 / 1e6,
        digest.hex()
    );
    line("create, addBlock, report, complete", made);
    line("save", saved);
    line("load", whole);
    line("  of it the digest", digested);
    Ok(())
}
