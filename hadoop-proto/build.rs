//! Compiles `schema/*.proto` with a compiler written in Rust, so that building needs no `protoc`, and writes the service table.

use prost::Message;
use prost_build::Config;
use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=schema");
    let mut files: Vec<PathBuf> =
        fs::read_dir("schema").expect("schema folder").map(|e| e.expect("schema entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "proto"));
    files.sort();
    let mut set = protox::compile(&files, ["schema"]).unwrap_or_else(|e| panic!("{e:?}"));
    for file in &mut set.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("OUT_DIR"));
    fs::write(out.join("descriptors.bin"), set.encode_to_vec()).expect("write descriptors");
    Config::new()
        .bytes(["."])
        .btree_map(["."])
        .include_file("packages.rs")
        .compile_fds(set)
        .unwrap_or_else(|e| panic!("{e}"));
}
