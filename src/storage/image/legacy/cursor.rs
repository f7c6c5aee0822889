//! The primitive forms of the old image: Java's `DataOutput` and Hadoop's `Writable`.

use super::SECTION;
use crate::image::summary::ImageError;
use vocab::layout::{Feature, LayoutVersion};
use vocab::{Block, BlockId, GenerationStamp};

/// Longest block: the 48 bits that Hadoop has for the size of a block.
const BLOCK_LENGTH_MAX: u64 = (1 << 48) - 1;

/// Reads from the front of the file.
pub(super) struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
    layout: LayoutVersion,
}

/// Owner, group, mode.
#[derive(Clone, Copy)]
pub(super) struct Permission<'a> {
    pub user: &'a [u8],
    pub group: &'a [u8],
    pub mode: u16,
}

impl<'a> Cursor<'a> {
    pub fn new(file: &'a [u8], layout: LayoutVersion) -> Cursor<'a> {
        Cursor { file, at: 0, layout }
    }
    pub fn has(&self, feature: Feature) -> bool {
        self.layout.supports(feature)
    }
    pub fn remaining(&self) -> usize {
        self.file.len() - self.at
    }
    /// An error at the present place.
    pub fn content(&self, what: &str) -> ImageError {
        ImageError::Content { section: SECTION, what: format!("{what} (offset {})", self.at) }
    }
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], ImageError> {
        if count > self.remaining() {
            return Err(self.content("ends too early"));
        }
        let bytes = &self.file[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImageError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
    pub fn bool(&mut self) -> Result<bool, ImageError> {
        Ok(self.array::<1>()? != [0])
    }
    pub fn u16(&mut self) -> Result<u16, ImageError> {
        Ok(u16::from_be_bytes(self.array()?))
    }
    pub fn i32(&mut self) -> Result<i32, ImageError> {
        Ok(i32::from_be_bytes(self.array()?))
    }
    pub fn i64(&mut self) -> Result<i64, ImageError> {
        Ok(i64::from_be_bytes(self.array()?))
    }
    /// A count of things of at least `least` bytes each.
    pub fn count(&mut self, least: usize) -> Result<usize, ImageError> {
        let count = self.i32()?;
        match usize::try_from(count) {
            Ok(n) if n <= self.remaining() / least => Ok(n),
            _ => Err(self.content(&format!("has an impossible count of {count}"))),
        }
    }
    /// `WritableUtils.readVLong`
    pub fn vlong(&mut self) -> Result<i64, ImageError> {
        let first = self.array::<1>()?[0] as i8;
        if first >= -112 {
            return Ok(i64::from(first));
        }
        let negative = first < -120;
        let length = if negative { -120 - i32::from(first) } else { -112 - i32::from(first) };
        let magnitude = self.take(length as usize)?.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        Ok(if negative { !(magnitude as i64) } else { magnitude as i64 })
    }
    pub fn vint(&mut self) -> Result<i32, ImageError> {
        let value = self.vlong()?;
        i32::try_from(value).map_err(|_| self.content(&format!("has a number of {value} where 32 bits are enough")))
    }
    /// `Text`: variable-length count and bytes.
    pub fn text(&mut self) -> Result<&'a [u8], ImageError> {
        let count = self.vint()?;
        match usize::try_from(count) {
            Ok(count) => self.take(count),
            Err(_) => Err(self.content(&format!("has a text of {count} bytes"))),
        }
    }
    /// 16-bit count and bytes: names, and `UTF8` of old.
    pub fn bytes(&mut self) -> Result<&'a [u8], ImageError> {
        let count = self.u16()?;
        self.take(usize::from(count))
    }
    pub fn permission(&mut self) -> Result<Permission<'a>, ImageError> {
        Ok(Permission { user: self.text()?, group: self.text()?, mode: self.u16()? })
    }
    pub fn blocks(&mut self, count: usize) -> Result<Vec<Block>, ImageError> {
        if count > self.remaining() / 24 {
            return Err(self.content(&format!("has an impossible count of {count} blocks")));
        }
        (0..count)
            .map(|_| {
                let (id, length, stamp) = (self.i64()?, self.i64()?, self.i64()?);
                let possible = u64::try_from(length).ok().filter(|length| *length <= BLOCK_LENGTH_MAX);
                let length = possible.ok_or_else(|| self.content(&format!("has a block of {length} bytes")))?;
                Ok(Block { id: BlockId(id), length, stamp: GenerationStamp(stamp) })
            })
            .collect()
    }
}
