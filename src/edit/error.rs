//! Why bytes are no edit record, or a record cannot be written.

use crate::Opcode;
use vocab::LayoutVersion;

/// What is wrong with the bytes at an offset. The texts are ours; the sentence of a failed load around them is storage's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs)] // each variant's text is its documentation
pub enum Reason {
    #[error("the log header is cut short")]
    HeaderTruncated,
    #[error("layout version {0} in the log header is not supported (this software: -67)")]
    HeaderLayout(i32),
    #[error("{0} layout flags in the log header, but none are known")]
    HeaderFlags(i32),
    #[error("invalid opcode {0}")]
    UnknownOpcode(u8),
    #[error("the record has size {size}, but the largest allowed is {max}")]
    TooLarge { size: i64, max: usize },
    #[error("the record has size {0}, but the smallest possible is 17")]
    TooSmall(i64),
    #[error("the checksum is {stored:#010x}, but the bytes give {computed:#010x}")]
    Checksum { stored: u32, computed: u32 },
    #[error("byte {0:#04x} after the end marker, where only fill bytes may be")]
    AfterEnd(u8),
    #[error("the body ends in the middle of a field")]
    BodyTooShort,
    #[error("{0} bytes are left after the last field of the body")]
    BodyTooLong(usize),
    #[error("a count of {0} is not possible")]
    Count(i64),
    #[error("a field is no legal UTF-8")]
    Text,
    #[error("a number is written as text that is none")]
    Number,
    #[error("{value} is no legal value of {field}")]
    Value { field: &'static str, value: i64 },
    #[error("a client id of {length} bytes with call id {call_id}")]
    RpcIds { length: usize, call_id: i32 },
    #[error("an embedded protobuf message is broken")]
    Protobuf,
}

/// Where decoding failed and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {offset} of the record: {reason}")]
pub struct DecodeError {
    /// Bytes from the start of the record (or of the header).
    pub offset: usize,
    /// What is wrong.
    pub reason: Reason,
}

/// The record cannot be written at the layout that is in effect (a rolling upgrade from an older one).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} cannot be written at layout {}", opcode.name(), layout.0)]
pub struct EncodeError {
    /// What was to be written.
    pub opcode: Opcode,
    /// The layout in effect.
    pub layout: LayoutVersion,
}
