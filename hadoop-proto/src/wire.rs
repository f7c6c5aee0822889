//! Protobuf's wire format by hand: a total reader over borrowed bytes and a writer onto any buffer. For the places where
//! messages are walked or written without building a message value.

use bytes::BufMut;

/// Why bytes are not wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The bytes end inside a field.
    Truncated,
    /// A varint of more than ten bytes.
    VarintTooLong,
    /// Field number zero, or an end of group that belongs to no group.
    BadTag,
    /// A wire type that does not exist.
    BadWireType(u8),
    /// Groups nested deeper than parsers allow.
    TooDeep,
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WireError::Truncated => write!(f, "bytes end inside a field"),
            WireError::VarintTooLong => write!(f, "varint longer than ten bytes"),
            WireError::BadTag => write!(f, "invalid field tag"),
            WireError::BadWireType(t) => write!(f, "invalid wire type {t}"),
            WireError::TooDeep => write!(f, "nested too deep"),
        }
    }
}

impl std::error::Error for WireError {}

/// The low three bits of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WireType {
    /// Base-128 integer.
    Varint = 0,
    /// Eight bytes, little endian.
    Fixed64 = 1,
    /// Length and bytes.
    Bytes = 2,
    /// Opens a group.
    StartGroup = 3,
    /// Closes a group.
    EndGroup = 4,
    /// Four bytes, little endian.
    Fixed32 = 5,
}

impl WireType {
    fn of(tag: u32) -> Result<WireType, WireError> {
        match tag & 7 {
            0 => Ok(WireType::Varint),
            1 => Ok(WireType::Fixed64),
            2 => Ok(WireType::Bytes),
            3 => Ok(WireType::StartGroup),
            4 => Ok(WireType::EndGroup),
            5 => Ok(WireType::Fixed32),
            other => Err(WireError::BadWireType(other as u8)),
        }
    }
}

/// The value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Any integer, bool or enum.
    Varint(u64),
    /// Eight bytes as they stand.
    Fixed64(u64),
    /// `string`, `bytes`, a message, or packed values.
    Bytes(&'a [u8]),
    /// Four bytes as they stand.
    Fixed32(u32),
}

/// Groups inside groups that [`Cursor`] follows before it gives up.
const MAX_GROUP_DEPTH: usize = 100;

/// Reads wire format from the front of borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// An unsigned varint of up to ten bytes; bits above the 64th are dropped, as Java drops them.
    #[inline(always)] // as `field`; out of line, the cursor would live in memory
    pub fn varint(&mut self) -> Result<u64, WireError> {
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*first))
            }
            _ => self.long_varint(),
        }
    }

    /// One of several bytes: eight at once where so many are there.
    #[inline(always)]
    fn long_varint(&mut self) -> Result<u64, WireError> {
        if let Some(head) = self.rest.first_chunk() {
            let word = u64::from_le_bytes(*head);
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                let bits = ends.trailing_zeros() + 1;
                self.rest = &self.rest[bits as usize / 8..];
                return Ok(gather(word & (u64::MAX >> (64 - bits))));
            }
        }
        let (value, length) = any_varint(self.rest)?;
        self.rest = &self.rest[length..];
        Ok(value)
    }

    /// A `sint64`.
    #[inline]
    pub fn zigzag(&mut self) -> Result<i64, WireError> {
        self.varint().map(unzigzag)
    }

    /// Four bytes, little endian.
    pub fn fixed32(&mut self) -> Result<u32, WireError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*head))
    }

    /// Eight bytes, little endian.
    pub fn fixed64(&mut self) -> Result<u64, WireError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*head))
    }

    /// A length and as many bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
        let (head, rest) = self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Field number and wire type, or none at the end.
    #[inline]
    pub fn tag(&mut self) -> Result<Option<(u32, WireType)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        // Java keeps 32 bits of a tag.
        let tag = self.varint()? as u32;
        if tag >> 3 == 0 {
            return Err(WireError::BadTag);
        }
        Ok(Some((tag >> 3, WireType::of(tag)?)))
    }

    /// Steps over the value that follows a tag.
    pub fn skip(&mut self, number: u32, wire_type: WireType) -> Result<(), WireError> {
        match wire_type {
            WireType::StartGroup => self.skip_group(number),
            WireType::EndGroup => Err(WireError::BadTag),
            _ => self.value(wire_type).map(|_| ()),
        }
    }

    fn skip_group(&mut self, number: u32) -> Result<(), WireError> {
        let mut open = vec![number];
        while let Some(innermost) = open.last() {
            match self.tag()?.ok_or(WireError::Truncated)? {
                (_, WireType::StartGroup) if open.len() >= MAX_GROUP_DEPTH => return Err(WireError::TooDeep),
                (inner, WireType::StartGroup) => open.push(inner),
                (end, WireType::EndGroup) if end == *innermost => drop(open.pop()),
                (_, WireType::EndGroup) => return Err(WireError::BadTag),
                (_, wire_type) => drop(self.value(wire_type)?),
            }
        }
        Ok(())
    }

    #[inline]
    fn value(&mut self, wire_type: WireType) -> Result<Value<'a>, WireError> {
        match wire_type {
            WireType::Varint => self.varint().map(Value::Varint),
            WireType::Fixed64 => self.fixed64().map(Value::Fixed64),
            WireType::Bytes => self.bytes().map(Value::Bytes),
            WireType::Fixed32 => self.fixed32().map(Value::Fixed32),
            WireType::StartGroup | WireType::EndGroup => Err(WireError::BadTag),
        }
    }

    /// The next field that is not a group, or none at the end.
    #[inline(always)] // the loops of image and reports consist of little else
    pub fn field(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        let (number, value) = match self.rest {
            [] => return Ok(None),
            // almost every tag has one byte
            [tag @ 8..0x80, rest @ ..] if matches!(tag & 7, 0 | 1 | 2 | 5) => {
                self.rest = rest;
                let value = match tag & 7 {
                    0 => Value::Varint(self.varint()?),
                    1 => Value::Fixed64(self.fixed64()?),
                    2 => Value::Bytes(self.bytes()?),
                    _ => Value::Fixed32(self.fixed32()?),
                };
                (u32::from(*tag >> 3), value)
            }
            _ => return self.any_field(),
        };
        Ok(Some((number, value)))
    }

    #[cold]
    fn any_field(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        while let Some((number, wire_type)) = self.tag()? {
            if wire_type != WireType::StartGroup {
                return Ok(Some((number, self.value(wire_type)?)));
            }
            self.skip_group(number)?;
        }
        Ok(None)
    }

    /// All fields that are left; ends after the first error.
    pub fn fields(self) -> Fields<'a> {
        Fields { cursor: self }
    }
}

/// Iterator of [`Cursor::fields`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let field = self.cursor.field();
        if field.is_err() {
            self.cursor.rest = &[];
        }
        field.transpose()
    }
}

/// Value and length of a varint of any length. Not a method of the cursor, which then stays in registers.
#[inline(never)]
fn any_varint(bytes: &[u8]) -> Result<(u64, usize), WireError> {
    if bytes.len() < 8
        && let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk())
    {
        // four to seven bytes are left, as where a length ends a block: the halves overlap, which does no harm
        let low = u64::from(u32::from_le_bytes(*first));
        let word = low | u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
        let bits = (!word & 0x8080_8080_8080_8080).trailing_zeros() + 1;
        if bits as usize <= 8 * bytes.len() {
            return Ok((gather(word & (u64::MAX >> (64 - bits))), bits as usize / 8));
        }
    }
    let mut value = 0u64;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * i);
        if *byte < 0x80 {
            return Ok((value, i + 1));
        }
    }
    Err(if bytes.len() < 10 { WireError::Truncated } else { WireError::VarintTooLong })
}

/// The low seven bits of each byte, side by side.
#[inline]
fn gather(word: u64) -> u64 {
    let pairs = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// Signed value of a zigzag code.
pub fn unzigzag(code: u64) -> i64 {
    (code >> 1) as i64 ^ -((code & 1) as i64)
}

/// Zigzag code of a signed value.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Bytes that [`Sink::put_varint`] writes for this value.
pub fn varint_length(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Writes wire format to any buffer.
pub trait Sink: BufMut {
    /// An unsigned varint.
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value as u8);
    }

    /// Field number and wire type.
    fn put_tag(&mut self, number: u32, wire_type: WireType) {
        self.put_varint(u64::from(number) << 3 | wire_type as u64);
    }

    /// An integer field; negative `int32` and `int64` come sign-extended (`value as i64 as u64`).
    fn put_varint_field(&mut self, number: u32, value: u64) {
        self.put_tag(number, WireType::Varint);
        self.put_varint(value);
    }

    /// A length and the bytes.
    fn put_delimited(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put_slice(bytes);
    }

    /// A `string`, `bytes` or message field of known content.
    fn put_bytes_field(&mut self, number: u32, bytes: &[u8]) {
        self.put_tag(number, WireType::Bytes);
        self.put_delimited(bytes);
    }

    /// A message field.
    fn put_message_field(&mut self, number: u32, message: &impl prost::Message)
    where
        Self: Sized,
    {
        self.put_tag(number, WireType::Bytes);
        self.put_varint(message.encoded_len() as u64);
        message.encode_raw(self);
    }
}

impl<B: BufMut> Sink for B {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Varint by the definition, in 128 bits so that nothing overflows.
    fn naive_varint(bytes: &[u8]) -> Option<(u64, usize)> {
        let length = bytes.iter().position(|b| b & 0x80 == 0)? + 1;
        let value = (0..length).map(|i| u128::from(bytes[i] & 0x7F) << (7 * i).min(120)).sum::<u128>();
        (length <= 10).then_some((value as u64, length))
    }

    fn any_value() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(v, shift)| v >> shift)
    }

    proptest! {
        #[test]
        fn varint_like_its_definition(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80u8..], 0..14)) {
            let mut cursor = Cursor::new(&bytes);
            let read = cursor.varint().ok().map(|v| (v, bytes.len() - cursor.rest().len()));
            prop_assert_eq!(read, naive_varint(&bytes));
        }

        #[test]
        fn varint_round_trip(value in any_value()) {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            ours.put_varint(value);
            prost::encoding::encode_varint(value, &mut theirs);
            prop_assert_eq!(&ours, &theirs);
            prop_assert_eq!(ours.len(), varint_length(value));
            prop_assert_eq!(Cursor::new(&ours).varint(), Ok(value));
            prop_assert_eq!(unzigzag(value), if value % 2 == 0 { (value / 2) as i64 } else { -((value / 2) as i64) - 1 });
            prop_assert_eq!(zigzag(unzigzag(value)), value);
        }

        #[test]
        fn fields_round_trip(fields in prop::collection::vec((1u32..1 << 29, 0u8..5, any_value(), prop::collection::vec(any::<u8>(), 0..9)), 0..9)) {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for (number, kind, value, content) in &fields {
                match kind {
                    0 => { bytes.put_varint_field(*number, *value); expected.push((*number, Value::Varint(*value))); }
                    1 => { bytes.put_tag(*number, WireType::Fixed64); bytes.put_u64_le(*value); expected.push((*number, Value::Fixed64(*value))); }
                    2 => { bytes.put_tag(*number, WireType::Fixed32); bytes.put_u32_le(*value as u32); expected.push((*number, Value::Fixed32(*value as u32))); }
                    3 => { bytes.put_bytes_field(*number, content); expected.push((*number, Value::Bytes(content))); }
                    _ => { bytes.put_tag(*number, WireType::StartGroup); bytes.put_bytes_field(7, content); bytes.put_tag(*number, WireType::EndGroup); }
                }
            }
            let read: Result<Vec<_>, _> = Cursor::new(&bytes).fields().collect();
            prop_assert_eq!(read, Ok(expected));
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(Cursor::new(&bytes).fields().count() <= bytes.len());
        }
    }

    #[test]
    fn errors_are_named() {
        let error = |bytes: &[u8]| Cursor::new(bytes).fields().find_map(Result::err);
        assert_eq!(error(&[0x0A, 5, 1]), Some(WireError::Truncated));
        assert_eq!(error(&[0x00]), Some(WireError::BadTag));
        assert_eq!(error(&[0x0C]), Some(WireError::BadTag));
        assert_eq!(error(&[0x0F]), Some(WireError::BadWireType(7)));
        assert_eq!(error(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Some(WireError::VarintTooLong));
        assert_eq!(error(&[0x0B, 0x14]), Some(WireError::BadTag));
        assert_eq!(error(&[0x0B; 1000]), Some(WireError::TooDeep));
        assert_eq!(error(&[0x0D, 1, 2, 3]), Some(WireError::Truncated));
    }
}
