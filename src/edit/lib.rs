//! Purpose: edit records and their bytes at every layout version; the numbered rules of replay (FORMAT.md).
//! Called by: state (fit, apply), storage (journals, replay), tools (viewers).
//! Calls: vocab, hadoop-proto (three protobuf bodies inside records).
//! Never: does I/O, resolves a path, decides whether a record fits.
//! Invariants: decoding is total: any bytes give a record, "need more", or an error that names offset and reason; encoding then decoding gives the same record.

pub mod record;
pub use record::Record;
