//! Purpose: the bytes of Hadoop's protocols: message types, descriptors and service tables compiled from `schema/*.proto`.
//! Called by: rpc, observe, storage, server and tests; whoever reads or writes Hadoop's wire and file formats.
//! Calls: nothing of this project.
//! Never: gives a message a meaning, does I/O, keeps state between calls.
//! Invariants: every decoder is total: any bytes give a value or an error, never a panic.

pub mod frame;
pub mod packed_blocks;
pub mod services;
pub mod shape;
pub mod view;
pub mod wire;

/// Encoded `FileDescriptorSet` of the whole schema, for reflection and for tests.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

#[allow(missing_docs, rust_2018_idioms, clippy::all)]
mod packages {
    include!(concat!(env!("OUT_DIR"), "/packages.rs"));
}

pub use packages::hadoop::hdfs::{datanode, datanodelifeline, fsimage, namenode, qjournal};
pub use packages::hadoop::{common, fs, hdfs};
pub use prost::Message;
pub use shape::{DecodeError, decode, decode_lossy};
