//! Reading the fields of a record's body. Every method checks bounds; a failure names the offset.

use crate::error::{DecodeError, Reason};
use crate::java_text;
use crate::record::{Bytes, Permission, Text};
use std::borrow::Cow;
use vocab::layout::Feature;
use vocab::time::TimeMs;
use vocab::{Block, BlockId, GenerationStamp, LayoutVersion, RpcIds};

pub(crate) type Result<T> = std::result::Result<T, DecodeError>;

/// A cursor over one record, from its opcode on.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    pub layout: LayoutVersion,
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8], at: usize, layout: LayoutVersion) -> Fields<'a> {
        Fields { bytes, at, layout }
    }
    pub fn position(&self) -> usize {
        self.at
    }
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }
    pub fn has(&self, feature: Feature) -> bool {
        self.layout.supports(feature)
    }
    pub fn fail<T>(&self, reason: Reason) -> Result<T> {
        Err(DecodeError { offset: self.at, reason })
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => self.fail(Reason::BodyTooShort),
        }
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }
    pub fn bool(&mut self) -> Result<bool> {
        Ok(self.u8()? != 0)
    }
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }
    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Hadoop's variable-length integer (`WritableUtils`).
    pub fn vlong(&mut self) -> Result<i64> {
        let first = self.u8()? as i8;
        if first >= -112 {
            return Ok(i64::from(first));
        }
        let negative = first < -120;
        let length = if negative { -120 - i32::from(first) } else { -112 - i32::from(first) };
        let magnitude =
            self.take(length as usize)?.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)) as i64;
        Ok(if negative { !magnitude } else { magnitude })
    }
    pub fn vint(&mut self) -> Result<i32> {
        let start = self.at;
        let value = self.vlong()?;
        i32::try_from(value).map_err(|_| DecodeError { offset: start, reason: Reason::Count(value) })
    }
    /// A count of things that take at least `least` bytes each: more than fit the rest of the body are impossible.
    pub fn count(&self, count: i64, least: usize) -> Result<usize> {
        match usize::try_from(count) {
            Ok(n) if n <= self.remaining() / least.max(1) => Ok(n),
            Ok(_) => self.fail(Reason::BodyTooShort),
            Err(_) => self.fail(Reason::Count(count)),
        }
    }

    /// A `str` of the format: 16-bit count and Java's form of UTF-8.
    pub fn str(&mut self) -> Result<Text<'a>> {
        let start = self.at;
        let count = self.u16()?;
        let bytes = self.take(usize::from(count))?;
        java_text::to_utf8(bytes).ok_or(DecodeError { offset: start, reason: Reason::Text })
    }
    /// A `str` that is a path or a name.
    pub fn path(&mut self) -> Result<Bytes<'a>> {
        Ok(match self.str()? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
    }
    /// A `str` in which the empty one stands for "absent".
    pub fn str_or_absent(&mut self) -> Result<Option<Text<'a>>> {
        Ok(Some(self.str()?).filter(|text| !text.is_empty()))
    }
    /// A `text` of the format: variable-length count and ordinary UTF-8; Java replaces what is malformed.
    pub fn text(&mut self) -> Result<Text<'a>> {
        let count = i64::from(self.vint()?);
        let count = self.count(count, 1)?;
        Ok(String::from_utf8_lossy(self.take(count)?))
    }

    /// A point in time; before -39 it was decimal text.
    pub fn time(&mut self) -> Result<TimeMs> {
        self.number().map(TimeMs)
    }
    /// A 64-bit number; before -39 it was decimal text.
    pub fn number(&mut self) -> Result<i64> {
        if self.has(Feature::EditlogOpOptimization) { self.i64() } else { self.decimal() }
    }
    /// A 16-bit number; before -39 it was decimal text.
    pub fn short(&mut self) -> Result<u16> {
        if self.has(Feature::EditlogOpOptimization) {
            return self.u16();
        }
        let start = self.at;
        let value = self.decimal()?;
        i16::try_from(value).map(|v| v as u16).map_err(|_| DecodeError { offset: start, reason: Reason::Number })
    }
    fn decimal(&mut self) -> Result<i64> {
        let start = self.at;
        let text = self.str()?;
        text.parse().map_err(|_| DecodeError { offset: start, reason: Reason::Number })
    }

    pub fn permission(&mut self) -> Result<Permission<'a>> {
        Ok(Permission { user: self.text()?, group: self.text()?, mode: self.u16()? })
    }

    /// Blocks in full form: id, length, stamp as 64-bit numbers.
    pub fn blocks_full(&mut self) -> Result<Vec<Block>> {
        let count = i64::from(self.i32()?);
        let count = self.count(count, 24)?;
        let mut blocks = Vec::with_capacity(count);
        for _ in 0..count {
            blocks.push(Block {
                id: BlockId(self.i64()?),
                length: self.i64()? as u64,
                stamp: GenerationStamp(self.i64()?),
            });
        }
        Ok(blocks)
    }
    /// Blocks in compact form: lengths and stamps as differences to the block before.
    pub fn blocks_compact(&mut self) -> Result<Vec<Block>> {
        let count = i64::from(self.vint()?);
        let count = self.count(count, 10)?;
        let mut blocks = Vec::with_capacity(count);
        let (mut length, mut stamp) = (0i64, 0i64);
        for _ in 0..count {
            let id = BlockId(self.i64()?);
            length = length.wrapping_add(self.vlong()?);
            stamp = stamp.wrapping_add(self.vlong()?);
            blocks.push(Block { id, length: length as u64, stamp: GenerationStamp(stamp) });
        }
        Ok(blocks)
    }

    /// Client id and call id of the RPC, since -47; the empty id with call id -2 stands for "none".
    pub fn rpc(&mut self) -> Result<Option<RpcIds>> {
        if !self.has(Feature::EditlogSupportRetrycache) {
            return Ok(None);
        }
        let start = self.at;
        let length = usize::from(self.u16()?);
        let client_id = self.take(length)?;
        let call_id = self.i32()?;
        match <[u8; 16]>::try_from(client_id) {
            Ok(client_id) => Ok(Some(RpcIds { client_id, call_id })),
            Err(_) if length == 0 && call_id == NO_CALL_ID => Ok(None),
            Err(_) => Err(DecodeError { offset: start, reason: Reason::RpcIds { length, call_id } }),
        }
    }
}

/// Call id of records that no tracked RPC made (Hadoop's `RpcConstants.INVALID_CALL_ID`).
pub(crate) const NO_CALL_ID: i32 = -2;
