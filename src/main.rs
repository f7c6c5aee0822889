//! The `ironroot` binary.

#[allow(dead_code, unused_imports, reason = "read by the node's assembly, which is not here yet")]
mod config;

fn main() {}
