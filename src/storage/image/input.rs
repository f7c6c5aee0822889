//! Where the bytes of an image come from: memory, or a file that is read piece by piece.

use super::digest::Digest;
use super::md5sum::Md5Sum;
use super::summary::{ImageError, Section};
use os::disk::File;
use std::io::{self, Read};

/// Bytes that may be read by several threads at once.
pub trait Input: Sync {
    /// How many there are.
    fn length(&self) -> u64;
    /// Reads at an offset; fewer bytes than asked for are no error, 0 is the end.
    ///
    /// # Errors
    /// As the disk's.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Input for &[u8] {
    fn length(&self) -> u64 {
        self.len() as u64
    }
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// An open file.
pub struct FileInput {
    file: Box<dyn File>,
    length: u64,
}

impl FileInput {
    /// Of a file that nobody changes.
    ///
    /// # Errors
    /// As the disk's.
    pub fn new(file: Box<dyn File>) -> io::Result<FileInput> {
        let length = file.length()?;
        Ok(FileInput { file, length })
    }
}

impl Input for FileInput {
    fn length(&self) -> u64 {
        self.length
    }
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }
}

fn failed(error: io::Error) -> ImageError {
    ImageError::Read(error.to_string())
}

/// Some bytes, all of which must be there.
pub(super) fn bytes_at(input: &dyn Input, offset: u64, length: u64) -> Result<Vec<u8>, ImageError> {
    let length = usize::try_from(length).map_err(|_| ImageError::UnrecognizedFormat)?;
    let (mut bytes, mut filled) = (vec![0; length], 0);
    while filled < length {
        match input.read_at(&mut bytes[filled..], offset + filled as u64).map_err(failed)? {
            0 => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
            count => filled += count,
        }
    }
    Ok(bytes)
}

/// Bytes are digested in pieces that stay in a core's cache between being read and being digested.
const PIECE_BYTES: usize = 256 << 10;

/// A part of an input, read in order.
pub(super) struct Range<'a> {
    input: &'a dyn Input,
    offset: u64,
    end: u64,
}

impl<'a> Range<'a> {
    pub(super) fn new(input: &'a dyn Input, section: Section) -> Range<'a> {
        Range { input, offset: section.offset, end: section.offset + section.length }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.offset == self.end
    }
}

impl Read for Range<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX).min(bytes.len()).min(PIECE_BYTES);
        if most == 0 {
            return Ok(0);
        }
        let count = self.input.read_at(&mut bytes[..most], self.offset)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.offset += count as u64;
        Ok(count)
    }
}

/// Reads an input from its beginning to its end and digests all of it; some of it is handed to others on the way.
pub(super) struct Digester<'a> {
    input: &'a dyn Input,
    offset: u64,
    digest: Md5Sum,
    scratch: Vec<u8>,
}

impl<'a> Digester<'a> {
    pub(super) fn new(input: &'a dyn Input) -> Digester<'a> {
        Digester { input, offset: 0, digest: Md5Sum::new(), scratch: Vec::new() }
    }
    fn take(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(PIECE_BYTES);
        let count = self.input.read_at(&mut bytes[..most], self.offset)?;
        self.digest.update(&bytes[..count]);
        self.offset += count as u64;
        Ok(count)
    }
    /// How far it is.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
    /// Goes on to an offset; what is between is digested only.
    pub(super) fn skip_to(&mut self, offset: u64) -> Result<(), ImageError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(PIECE_BYTES, 0);
        while self.offset < offset {
            let most = usize::try_from(offset - self.offset).unwrap_or(usize::MAX).min(PIECE_BYTES);
            if self.take(&mut scratch[..most]).map_err(failed)? == 0 {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        self.scratch = scratch;
        Ok(())
    }
    /// What comes next up to an offset, to be read.
    pub(super) fn up_to(&mut self, end: u64) -> DigestedRange<'_, 'a> {
        DigestedRange { digester: self, end }
    }
    /// The digest of all.
    pub(super) fn finish(mut self) -> Result<Digest, ImageError> {
        self.skip_to(self.input.length())?;
        Ok(self.digest.finish())
    }
}

/// A part of what a digester reads.
pub(super) struct DigestedRange<'d, 'a> {
    digester: &'d mut Digester<'a>,
    end: u64,
}

impl Read for DigestedRange<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.digester.offset).unwrap_or(usize::MAX).min(bytes.len());
        if most == 0 {
            return Ok(0);
        }
        match self.digester.take(&mut bytes[..most])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}
