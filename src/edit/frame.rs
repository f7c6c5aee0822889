//! Files and frames: the header of a log, the frame of each record (opcode, length, transaction id, body, checksum), fill bytes.

use crate::error::{DecodeError, Reason};
use crate::fields::Fields;
use crate::{Opcode, Record, body};
use vocab::layout::Feature;
use vocab::{LayoutVersion, Txid};

/// Opcode byte of fill after the last record (`OP_INVALID`).
pub const FILL: u8 = 0xff;
/// Smallest frame of a layout with lengths: opcode, length, transaction id, checksum.
pub const FRAME_MIN: usize = 17;
/// Bytes of the header that is written: layout version and number of layout flags.
pub const HEADER_LENGTH: usize = 8;
/// Default of `dfs.namenode.max.op.size`.
pub const RECORD_MAX: usize = 50 << 20;
/// The oldest layout whose logs may be read (Hadoop's `LAST_UPGRADABLE_LAYOUT_VERSION`).
pub const OLDEST_LAYOUT: LayoutVersion = LayoutVersion(-16);

/// A decoded record with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Transaction id; 0 in layouts before -37, which store none.
    pub txid: Txid,
    /// The record.
    pub record: Record<'a>,
    /// Bytes of the whole frame.
    pub length: usize,
}

/// What stands at the start of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded<T> {
    /// A record.
    Frame(T),
    /// Fill: the log ends here. All bytes of the buffer are fill; whoever has more bytes checks them with [`check_fill`].
    Fill,
    /// The record goes on after the buffer; at least that many bytes from its start are needed.
    NeedMore(usize),
}

/// A frame seen from outside: what a scan needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Opcode byte, known or not.
    pub opcode: u8,
    /// Transaction id.
    pub txid: Txid,
    /// Bytes of the whole frame.
    pub length: usize,
    /// Whether checksum and bytes agree.
    pub intact: bool,
}

/// Appends the header of a log of the given layout.
pub fn put_header(layout: LayoutVersion, out: &mut Vec<u8>) {
    out.extend_from_slice(&layout.0.to_be_bytes());
    if layout.supports(Feature::AddLayoutFlags) {
        out.extend_from_slice(&0i32.to_be_bytes());
    }
}

/// Reads the header: the layout and its bytes (4 before -50, else 8).
///
/// # Errors
/// `HeaderTruncated`; `HeaderLayout` for layouts newer than ours or older than any upgrade allows; `HeaderFlags`.
pub fn header(bytes: &[u8]) -> Result<(LayoutVersion, usize), DecodeError> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).ok_or(DecodeError { offset: bytes.len(), reason: Reason::HeaderTruncated })?;
        Ok(i32::from_be_bytes([word[0], word[1], word[2], word[3]]))
    };
    let layout = LayoutVersion(word(0)?);
    if layout.newer_than(LayoutVersion::CURRENT) || OLDEST_LAYOUT.newer_than(layout) {
        return Err(DecodeError { offset: 0, reason: Reason::HeaderLayout(layout.0) });
    }
    if !layout.supports(Feature::AddLayoutFlags) {
        return Ok((layout, 4));
    }
    match word(4)? {
        0 => Ok((layout, HEADER_LENGTH)),
        flags => Err(DecodeError { offset: 4, reason: Reason::HeaderFlags(flags) }),
    }
}

/// Checks that nothing but fill (0xFF or 0x00) stands in bytes after the first 0xFF.
///
/// # Errors
/// `AfterEnd` with the offset of the first other byte.
pub fn check_fill(bytes: &[u8]) -> Result<(), DecodeError> {
    match bytes.iter().position(|byte| *byte != FILL && *byte != 0) {
        None => Ok(()),
        Some(offset) => Err(DecodeError { offset, reason: Reason::AfterEnd(bytes[offset]) }),
    }
}

/// Decodes the record at the start of `bytes`, checksum first. Strings are borrowed from `bytes`. `max` is the largest frame allowed.
///
/// # Errors
/// Any bytes give a record, fill, "need more" or an error with offset and reason.
pub fn decode(bytes: &[u8], layout: LayoutVersion, max: usize) -> Result<Decoded<Frame<'_>>, DecodeError> {
    match bytes.first() {
        None => return Ok(Decoded::NeedMore(1)),
        Some(&FILL) => return check_fill(bytes).map(|()| Decoded::Fill),
        Some(_) if !layout.supports(Feature::EditlogLength) => return decode_unframed(bytes, layout, max),
        Some(_) => {}
    }
    let hop = match hop(bytes, layout, max)? {
        Decoded::Frame(hop) => hop,
        Decoded::Fill => return Ok(Decoded::Fill),
        Decoded::NeedMore(count) => return Ok(Decoded::NeedMore(count)),
    };
    record(bytes, layout, &hop).map(Decoded::Frame)
}

/// Decodes the record that [`hop`] has found at the start of `bytes`, without another look at the checksum.
///
/// # Errors
/// The frame is not intact, or its body is no record.
pub fn record<'a>(bytes: &'a [u8], layout: LayoutVersion, hop: &Hop) -> Result<Frame<'a>, DecodeError> {
    if !layout.supports(Feature::EditlogLength) {
        return match decode_unframed(bytes, layout, usize::MAX)? {
            Decoded::Frame(frame) => Ok(frame),
            _ => Err(DecodeError { offset: bytes.len(), reason: Reason::BodyTooShort }),
        };
    }
    let end = hop.length - 4;
    if !hop.intact {
        return Err(checksum_error(bytes, end));
    }
    let opcode =
        Opcode::from_number(hop.opcode).ok_or(DecodeError { offset: 0, reason: Reason::UnknownOpcode(hop.opcode) })?;
    let mut fields = Fields::new(&bytes[..end], 13, layout);
    let record = body::decode(opcode, &mut fields)?;
    match fields.remaining() {
        0 => Ok(Frame { txid: hop.txid, record, length: hop.length }),
        left => fields.fail(Reason::BodyTooLong(left)),
    }
}

fn checksum_error(bytes: &[u8], end: usize) -> DecodeError {
    let stored = u32::from_be_bytes([bytes[end], bytes[end + 1], bytes[end + 2], bytes[end + 3]]);
    DecodeError { offset: end, reason: Reason::Checksum { stored, computed: crc32fast::hash(&bytes[..end]) } }
}

/// Looks at the frame at the start of `bytes` without decoding its body (unless the layout has no lengths).
///
/// # Errors
/// A length that is not possible; fill with other bytes in it; before -56 all that decoding can find.
pub fn hop(bytes: &[u8], layout: LayoutVersion, max: usize) -> Result<Decoded<Hop>, DecodeError> {
    match bytes.first() {
        None => return Ok(Decoded::NeedMore(1)),
        Some(&FILL) => return check_fill(bytes).map(|()| Decoded::Fill),
        Some(_) => {}
    }
    if !layout.supports(Feature::EditlogLength) {
        return Ok(match decode_unframed(bytes, layout, max)? {
            Decoded::Frame(f) => Decoded::Frame(Hop { opcode: bytes[0], txid: f.txid, length: f.length, intact: true }),
            Decoded::Fill => Decoded::Fill,
            Decoded::NeedMore(count) => Decoded::NeedMore(count),
        });
    }
    let mut fields = Fields::new(bytes, 1, layout);
    let Ok(length) = fields.i32() else { return Ok(Decoded::NeedMore(FRAME_MIN)) };
    let size = i64::from(length) + 5;
    if size < FRAME_MIN as i64 {
        return Err(DecodeError { offset: 1, reason: Reason::TooSmall(size) });
    }
    if size > max as i64 {
        return Err(DecodeError { offset: 1, reason: Reason::TooLarge { size, max } });
    }
    let length = size as usize;
    if bytes.len() < length {
        return Ok(Decoded::NeedMore(length));
    }
    let txid = Txid(fields.i64()? as u64);
    let stored = Fields::new(bytes, length - 4, layout).u32()?;
    Ok(Decoded::Frame(Hop { opcode: bytes[0], txid, length, intact: stored == crc32fast::hash(&bytes[..length - 4]) }))
}

/// Layouts before -56 have no length: the body must be decoded to find its end, then the checksum (since -28) is compared.
fn decode_unframed(bytes: &[u8], layout: LayoutVersion, max: usize) -> Result<Decoded<Frame<'_>>, DecodeError> {
    let opcode =
        Opcode::from_number(bytes[0]).ok_or(DecodeError { offset: 0, reason: Reason::UnknownOpcode(bytes[0]) })?;
    let mut fields = Fields::new(bytes, 1, layout);
    let decoded = (|| {
        let txid = if layout.supports(Feature::StoredTxids) { Txid(fields.i64()? as u64) } else { Txid(0) };
        let record = body::decode(opcode, &mut fields)?;
        let end = fields.position();
        let stored = if layout.supports(Feature::EditsChecksum) { Some(fields.u32()?) } else { None };
        Ok((txid, record, end, stored))
    })();
    match decoded {
        Ok((_, _, end, Some(stored))) if stored != crc32fast::hash(&bytes[..end]) => Err(checksum_error(bytes, end)),
        Ok((txid, record, _, _)) => Ok(Decoded::Frame(Frame { txid, record, length: fields.position() })),
        Err(DecodeError { reason: Reason::BodyTooShort, .. }) if bytes.len() < max => {
            Ok(Decoded::NeedMore(bytes.len() + 1))
        }
        Err(DecodeError { reason: Reason::BodyTooShort, .. }) => {
            Err(DecodeError { offset: 0, reason: Reason::TooLarge { size: bytes.len() as i64 + 1, max } })
        }
        Err(error) => Err(error),
    }
}
