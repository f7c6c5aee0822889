//! The `ironroot` binary.
fn main() {}
