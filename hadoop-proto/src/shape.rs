//! Shapes of the messages, and the two things a parser of Java's kind does that prost does not: it takes `string` fields
//! that are not UTF-8, and it refuses messages that lack required fields.

use crate::wire::{Cursor, Sink, Value, WireError, WireType};
use prost::{Message, bytes::Bytes};
use std::borrow::Cow;
use std::fmt::Write as _;

/// How a field is encoded.
#[derive(Debug)]
pub enum Kind {
    /// Any integer or bool.
    Varint,
    /// Eight bytes.
    Fixed64,
    /// Four bytes.
    Fixed32,
    /// `string`.
    Text,
    /// `bytes`.
    Bytes,
    /// Its known values, sorted.
    Enum(&'static [i32]),
    /// A message of this shape.
    Message(&'static Shape),
}

/// What a walk must know about one field.
#[derive(Debug)]
pub struct Field {
    /// Number on the wire.
    pub number: u32,
    /// Name in the schema.
    pub name: &'static str,
    /// May occur more than once; integers and enums then also packed.
    pub repeated: bool,
    /// Encoding.
    pub kind: Kind,
}

/// What a walk must know about one message type.
#[derive(Debug)]
pub struct Shape {
    /// Full name, for example `hadoop.hdfs.MkdirsRequestProto`.
    pub name: &'static str,
    /// Numbers of the required fields, as declared.
    pub required: &'static [u32],
    /// Sorted by number.
    pub fields: &'static [Field],
}

/// Message types that know their shape: all of the schema.
pub trait Shaped {
    /// The shape.
    const SHAPE: &'static Shape;
}

// Names are made of the package, the outer messages and the message, so that they are unique and can be read back.
#[allow(non_upper_case_globals)]
mod generated {
    use super::{Field, Kind, Shape, Shaped};
    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));
}

pub use generated::SHAPES;

/// The shape of the message of this full name.
pub fn by_name(name: &str) -> Option<&'static Shape> {
    SHAPES.binary_search_by(|shape| shape.name.cmp(name)).ok().map(|at| SHAPES[at])
}

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes are no protobuf message of this type.
    Malformed(String),
    /// Paths of required fields that are missing, as Java lists them: `src, previous.poolId, excludeNodes[0].id`.
    MissingRequired(String),
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Malformed(why) => write!(f, "malformed message: {why}"),
            DecodeError::MissingRequired(paths) => write!(f, "Message missing required fields: {paths}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Decodes like a Java peer would. The hot path is prost's decode plus one walk over the bytes for the required fields;
/// only messages that prost refuses are rewritten and tried again.
pub fn decode<M: Message + Default + Shaped>(bytes: Bytes) -> Result<M, DecodeError> {
    let message = decode_lossy(bytes.clone())?;
    match missing_required(M::SHAPE, &bytes) {
        Some(paths) => Err(DecodeError::MissingRequired(paths)),
        None => Ok(message),
    }
}

/// [`decode`] without the check for required fields; missing ones read as zero or empty.
pub fn decode_lossy<M: Message + Default + Shaped>(bytes: Bytes) -> Result<M, DecodeError> {
    let refused = match M::decode(bytes.clone()) {
        Ok(message) => return Ok(message),
        Err(e) => e,
    };
    match normalize(M::SHAPE, &bytes) {
        Ok(clean) => M::decode(clean.as_slice()).map_err(|e| DecodeError::Malformed(e.to_string())),
        Err(_) => Err(DecodeError::Malformed(refused.to_string())),
    }
}

/// What [`decode`] would refuse, for a request that nobody reads.
///
/// # Errors
/// Bytes that are no message of this shape, and messages that lack required fields.
pub fn check(shape: &Shape, bytes: &[u8]) -> Result<(), DecodeError> {
    normalize(shape, bytes).map_err(|error| DecodeError::Malformed(error.to_string()))?;
    missing_required(shape, bytes).map_or(Ok(()), |paths| Err(DecodeError::MissingRequired(paths)))
}

/// Text as Java reads it: what is not UTF-8 becomes U+FFFD.
///
/// Quirk: text_reads_like_java: an encoded surrogate is one U+FFFD in Java, where [`String::from_utf8_lossy`] makes one of each byte.
pub fn java_text(bytes: &[u8]) -> Cow<'_, str> {
    let mut rest = match std::str::from_utf8(bytes) {
        Ok(text) => return Cow::Borrowed(text),
        Err(_) => bytes,
    };
    let mut text = String::with_capacity(bytes.len() + 8);
    while let Err(e) = std::str::from_utf8(rest) {
        let (valid, bad) = rest.split_at(e.valid_up_to());
        text += &String::from_utf8_lossy(valid);
        text.push(char::REPLACEMENT_CHARACTER);
        let skip = match bad {
            [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => 3,
            [0xED, 0xA0..=0xBF, ..] => 2,
            _ => e.error_len().unwrap_or(bad.len()),
        };
        rest = &bad[skip..];
    }
    text += &String::from_utf8_lossy(rest);
    Cow::Owned(text)
}

/// Nesting that Java and prost allow.
const MAX_DEPTH: usize = 100;

impl Shape {
    /// The field of this number.
    pub fn field(&self, number: u32) -> Option<&'static Field> {
        self.fields.binary_search_by_key(&number, |f| f.number).ok().map(|i| &self.fields[i])
    }
}

impl Field {
    /// Whether a value of this wire type is a value of the field; others are unknown fields to a Java parser.
    fn takes(&self, value: &Value<'_>) -> bool {
        match (&self.kind, value) {
            (Kind::Varint | Kind::Enum(_), Value::Varint(_))
            | (Kind::Fixed64, Value::Fixed64(_))
            | (Kind::Fixed32, Value::Fixed32(_))
            | (Kind::Text | Kind::Bytes | Kind::Message(_), Value::Bytes(_)) => true,
            (_, Value::Bytes(_)) => self.repeated,
            _ => false,
        }
    }
}

/// The same message in bytes that prost accepts: text made UTF-8, fields of a wire type that does not fit dropped.
fn normalize(shape: &Shape, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    normalize_into(shape, bytes, &mut out, 0)?;
    Ok(out)
}

fn normalize_into(shape: &Shape, bytes: &[u8], out: &mut Vec<u8>, depth: usize) -> Result<(), WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TooDeep);
    }
    for field in Cursor::new(bytes).fields() {
        let (number, value) = field?;
        let known = shape.field(number);
        if known.is_some_and(|f| !f.takes(&value)) {
            continue;
        }
        match (known.map(|f| &f.kind), value) {
            (_, Value::Varint(v)) => out.put_varint_field(number, v),
            (_, Value::Fixed64(v)) => {
                out.put_tag(number, WireType::Fixed64);
                out.extend_from_slice(&v.to_le_bytes());
            }
            (_, Value::Fixed32(v)) => {
                out.put_tag(number, WireType::Fixed32);
                out.extend_from_slice(&v.to_le_bytes());
            }
            (Some(Kind::Text), Value::Bytes(b)) => out.put_bytes_field(number, java_text(b).as_bytes()),
            (Some(Kind::Message(inner)), Value::Bytes(b)) => {
                let mut nested = Vec::with_capacity(b.len());
                normalize_into(inner, b, &mut nested, depth + 1)?;
                out.put_bytes_field(number, &nested);
            }
            (_, Value::Bytes(b)) => out.put_bytes_field(number, b),
        }
    }
    Ok(())
}

/// Paths of the required fields that the message lacks, or none; malformed bytes are left to the decoder.
pub fn missing_required(shape: &Shape, bytes: &[u8]) -> Option<String> {
    let mut paths = String::new();
    let _malformed = find_missing(shape, bytes, &mut String::new(), &mut paths, 0);
    (!paths.is_empty()).then_some(paths)
}

fn find_missing(
    shape: &Shape,
    bytes: &[u8],
    prefix: &mut String,
    paths: &mut String,
    depth: usize,
) -> Result<(), WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TooDeep);
    }
    let (mut seen, mut messages) = (0u64, 0u64);
    for field in Cursor::new(bytes).fields() {
        let (number, value) = field?;
        let Ok(at) = shape.fields.binary_search_by_key(&number, |f| f.number) else { continue };
        if !shape.fields[at].takes(&value) {
            continue;
        }
        // Quirk: decode_judges_like_java: a number outside an enum is an unknown field to Java, so that the field counts as missing.
        if let (Kind::Enum(known), Value::Varint(v)) = (&shape.fields[at].kind, value)
            && known.binary_search(&(v as i32)).is_err()
        {
            continue;
        }
        let bit = 1u64 << at;
        seen |= bit;
        if matches!(shape.fields[at].kind, Kind::Message(_)) {
            messages |= bit;
        }
    }
    for number in shape.required {
        if let Ok(at) = shape.fields.binary_search_by_key(number, |f| f.number)
            && seen & (1 << at) == 0
        {
            let separator = if paths.is_empty() { "" } else { ", " };
            let _ = write!(paths, "{separator}{prefix}{}", shape.fields[at].name);
        }
    }
    for (at, field) in shape.fields.iter().enumerate() {
        if messages & (1 << at) != 0
            && let Kind::Message(inner) = &field.kind
        {
            find_missing_in(field, inner, bytes, prefix, paths, depth)?;
        }
    }
    Ok(())
}

/// Looks into the messages of one field; a single message that comes in parts is the merge of its parts.
fn find_missing_in(
    field: &Field,
    inner: &Shape,
    bytes: &[u8],
    prefix: &mut String,
    paths: &mut String,
    depth: usize,
) -> Result<(), WireError> {
    let length = prefix.len();
    let mut merged: Cow<'_, [u8]> = Cow::Borrowed(&[]);
    let mut index = 0;
    for occurrence in Cursor::new(bytes).fields() {
        let (number, value) = occurrence?;
        let Value::Bytes(part) = value else { continue };
        if number != field.number {
            continue;
        }
        if field.repeated {
            let _ = write!(prefix, "{}[{index}].", field.name);
            let found = find_missing(inner, part, prefix, paths, depth + 1);
            prefix.truncate(length);
            found?;
            index += 1;
        } else if merged.is_empty() {
            merged = Cow::Borrowed(part);
        } else {
            merged.to_mut().extend_from_slice(part);
        }
    }
    if !field.repeated {
        let _ = write!(prefix, "{}.", field.name);
        let found = find_missing(inner, &merged, prefix, paths, depth + 1);
        prefix.truncate(length);
        found?;
    }
    Ok(())
}
