//! Sections of an image, message by message, in bounded memory: for viewers, which look at a file without loading it.

use super::input::{Input, Range};
use super::summary::{ImageError, SectionName, Summary};
use std::io::{BufReader, ErrorKind, Read};

const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of the longest length that a message may have before it.
const LENGTH_BYTES_MAX: u32 = 5;

/// Reads the messages of one section in the order of the file, whatever codec and sub-sections it is written with. Nothing but one message
/// and what the codec needs is held.
pub struct SectionReader<'a> {
    summary: &'a Summary,
    input: &'a dyn Input,
    name: SectionName,
    /// Streams not begun yet, the last one first.
    streams: Vec<super::summary::Section>,
    stream: Option<BufReader<Box<dyn Read + 'a>>>,
    message: Vec<u8>,
}

impl<'a> SectionReader<'a> {
    /// Of a section of the image; `None` if it has no such section.
    pub fn open(input: &'a dyn Input, summary: &'a Summary, name: SectionName) -> Option<SectionReader<'a>> {
        summary.section(name)?;
        let mut streams = summary.streams(name);
        streams.reverse();
        Some(SectionReader { summary, input, name, streams, stream: None, message: Vec::new() })
    }

    /// The next message; `None` at the end of the section.
    ///
    /// # Errors
    /// [`ImageError`] where the file, the codec or a length is not right.
    #[allow(clippy::should_implement_trait)] // it lends
    pub fn next(&mut self) -> Result<Option<&[u8]>, ImageError> {
        let failed = |error: std::io::Error| ImageError::Read(error.to_string());
        let length = loop {
            let Some(stream) = &mut self.stream else {
                let Some(section) = self.streams.pop() else { return Ok(None) };
                let stream = self.summary.open(Range::new(self.input, section))?;
                self.stream = Some(BufReader::with_capacity(BUFFER_BYTES, stream));
                continue;
            };
            match length(stream).map_err(failed)? {
                Some(length) => break length,
                None => self.stream = None,
            }
        };
        self.message.clear();
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let count = stream.take(u64::from(length)).read_to_end(&mut self.message).map_err(failed)?;
        if count < length as usize {
            let what = "the section ends within a message".to_owned();
            return Err(ImageError::Content { section: self.name.text(), what });
        }
        Ok(Some(&self.message))
    }
}

/// The length before a message; `None` at the end of the stream.
fn length(stream: &mut impl Read) -> std::io::Result<Option<u32>> {
    let mut value = 0u64;
    for at in 0..LENGTH_BYTES_MAX {
        let mut byte = [0];
        match stream.read_exact(&mut byte) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && at == 0 => return Ok(None),
            other => other?,
        }
        value |= u64::from(byte[0] & 0x7f) << (7 * at);
        if byte[0] & 0x80 == 0 {
            let fits = i32::try_from(value).map_err(|_| ErrorKind::InvalidData)?;
            return Ok(Some(fits as u32));
        }
    }
    Err(ErrorKind::InvalidData.into())
}
