//! Purpose: edit records and their bytes at every layout version; the numbered rules of replay (FORMAT.md).
//! Called by: state (fit, apply), ops and engine (records to log), storage (journals, replay), the binary's node assembly.
//! Calls: vocab.
//! Never: does I/O, resolves a path, decides whether a record fits.
//! Invariants: decoding is total: any bytes give a record, "need more", or an error that names offset and reason; encoding then decoding gives the same record.

mod body;
mod encode;
pub mod error;
mod fields;
pub mod frame;
pub mod java_text;
mod legacy;
mod opcode;
mod protobuf;
pub mod record;
pub mod rules;
pub mod xml;

pub use encode::encode;
pub use error::{DecodeError, EncodeError};
pub use frame::{Decoded, Frame, decode};
pub use opcode::Opcode;
pub use record::Record;
pub use rules::Rule;
