//! Compiles `schema/*.proto` with a compiler written in Rust, so that building needs no `protoc`: message types by
//! prost-build, and beside them the table of services and the shapes of the messages.

#[path = "build/services.rs"]
mod services;
#[path = "build/shapes.rs"]
mod shapes;

use prost::Message;
use prost_build::Config;
use prost_types::DescriptorProto;
use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=schema");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=build.rs");
    let mut files: Vec<PathBuf> =
        fs::read_dir("schema").expect("schema folder").map(|e| e.expect("schema entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "proto"));
    files.sort();
    let mut set = protox::compile(&files, ["schema"]).unwrap_or_else(|e| panic!("{e:?}"));
    for file in &mut set.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("OUT_DIR"));
    let write = |name: &str, content: &[u8]| fs::write(out.join(name), content).expect("write generated file");
    write("descriptors.bin", &set.encode_to_vec());
    write("services.rs", services::generate(&set).as_bytes());
    write("shapes.rs", shapes::generate(&set).as_bytes());
    // Required fields among the deprecated ones must still be filled in: no lint for them in the code.
    set.file.iter_mut().flat_map(|f| &mut f.message_type).for_each(allow_deprecated);
    Config::new()
        .bytes(["."])
        .btree_map(["."])
        .include_file("packages.rs")
        .compile_fds(set)
        .unwrap_or_else(|e| panic!("{e}"));
}

fn allow_deprecated(message: &mut DescriptorProto) {
    message.field.iter_mut().filter_map(|f| f.options.as_mut()).for_each(|o| o.deprecated = None);
    message.nested_type.iter_mut().for_each(allow_deprecated);
}
