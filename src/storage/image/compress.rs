//! Compressed sections in the forms that Hadoop's codecs give them.
//!
//! Zlib, gzip, bzip2 and zstandard are plain streams. Snappy and LZ4 are blocks (`BlockCompressorStream`): the length of the content in four
//! big-endian bytes, then chunks, each with its compressed length before it, until they hold that much content. A length of 0 is the end.

use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{self, Read, Write};

/// Content of a block that is written. Hadoop's decompressors have buffers of 256 KiB.
const BLOCK_BYTES: usize = 128 << 10;
/// Most that is believed of a length before the bytes are there.
const LENGTH_MAX: usize = 64 << 20;

/// How sections are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // names of formats
pub enum Codec {
    Zlib,
    Deflate,
    Gzip,
    Bzip2,
    Snappy,
    Lz4,
    Zstandard,
}

impl Codec {
    const CLASSES: [(Codec, &'static str); 7] = [
        (Codec::Zlib, "org.apache.hadoop.io.compress.DefaultCodec"),
        (Codec::Deflate, "org.apache.hadoop.io.compress.DeflateCodec"),
        (Codec::Gzip, "org.apache.hadoop.io.compress.GzipCodec"),
        (Codec::Bzip2, "org.apache.hadoop.io.compress.BZip2Codec"),
        (Codec::Snappy, "org.apache.hadoop.io.compress.SnappyCodec"),
        (Codec::Lz4, "org.apache.hadoop.io.compress.Lz4Codec"),
        (Codec::Zstandard, "org.apache.hadoop.io.compress.ZStandardCodec"),
    ];

    /// The codec of a Java class name.
    pub fn of_class(name: &str) -> Option<Codec> {
        Codec::CLASSES.iter().find(|(_, class)| *class == name).map(|(codec, _)| *codec)
    }
    /// Its Java class name, as it stands in images and configurations.
    pub fn class(self) -> &'static str {
        Codec::CLASSES.iter().find(|(codec, _)| *codec == self).map_or("", |(_, class)| class)
    }

    /// What a stream was before it was compressed.
    pub(super) fn decoder<'a>(self, stream: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Codec::Zlib | Codec::Deflate => Box::new(ZlibDecoder::new(stream)),
            Codec::Gzip => Box::new(MultiGzDecoder::new(stream)),
            Codec::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(stream)),
            Codec::Zstandard => Box::new(zstd::stream::read::Decoder::new(stream)?),
            Codec::Snappy | Codec::Lz4 => Box::new(BlockDecoder {
                stream: io::BufReader::with_capacity(BLOCK_BYTES, stream),
                snappy: self == Codec::Snappy,
                left: 0,
                content: Vec::new(),
                at: 0,
            }),
        })
    }

    /// A stream to be compressed.
    pub(super) fn encoder(self) -> io::Result<Encoder> {
        let level = Compression::default();
        Ok(match self {
            Codec::Zlib | Codec::Deflate => Encoder::Zlib(ZlibEncoder::new(Vec::new(), level)),
            Codec::Gzip => Encoder::Gzip(GzEncoder::new(Vec::new(), level)),
            Codec::Bzip2 => Encoder::Bzip2(bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best())),
            Codec::Zstandard => Encoder::Zstandard(zstd::stream::write::Encoder::new(Vec::new(), 3)?),
            Codec::Snappy | Codec::Lz4 => {
                Encoder::Blocks(BlockEncoder { snappy: self == Codec::Snappy, pending: Vec::new(), out: Vec::new() })
            }
        })
    }
}

fn bad(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Content of blocks.
struct BlockDecoder<R> {
    stream: R,
    snappy: bool,
    /// Content of the block that its chunks have not given yet.
    left: usize,
    content: Vec<u8>,
    at: usize,
}

impl<R: Read> BlockDecoder<R> {
    /// A length; `None` at the end of the stream.
    fn length(&mut self) -> io::Result<Option<usize>> {
        let mut bytes = [0; 4];
        let mut filled = 0;
        while filled < 4 {
            match self.stream.read(&mut bytes[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        let length = u32::from_be_bytes(bytes) as usize;
        if length > LENGTH_MAX { Err(bad("a block beyond all measure")) } else { Ok(Some(length)) }
    }

    /// Makes content of the next chunk; `false` at the end.
    fn next(&mut self) -> io::Result<bool> {
        while self.left == 0 {
            match self.length()? {
                None | Some(0) => return Ok(false),
                Some(length) => self.left = length,
            }
        }
        let length = self.length()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut chunk = Vec::new();
        if (&mut self.stream).take(length as u64).read_to_end(&mut chunk)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.snappy {
            if snap::raw::decompress_len(&chunk).map_err(bad)? > self.left {
                return Err(bad("a chunk larger than its block"));
            }
            self.content = snap::raw::Decoder::new().decompress_vec(&chunk).map_err(bad)?;
        } else {
            self.content.resize(self.left, 0);
            let count = lz4_flex::block::decompress_into(&chunk, &mut self.content).map_err(bad)?;
            self.content.truncate(count);
        }
        if self.content.is_empty() {
            return Err(bad("a chunk of nothing"));
        }
        self.left = self.left.checked_sub(self.content.len()).ok_or_else(|| bad("a chunk larger than its block"))?;
        self.at = 0;
        Ok(true)
    }
}

impl<R: Read> Read for BlockDecoder<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() || (self.at == self.content.len() && !self.next()?) {
            return Ok(0);
        }
        let rest = &self.content[self.at..];
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// A stream being compressed into memory.
pub(super) enum Encoder {
    Zlib(ZlibEncoder<Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
    Bzip2(bzip2::write::BzEncoder<Vec<u8>>),
    Zstandard(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Blocks(BlockEncoder),
}

/// Content that is cut into blocks.
pub(super) struct BlockEncoder {
    snappy: bool,
    pending: Vec<u8>,
    out: Vec<u8>,
}

impl BlockEncoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut blocks = pending.chunks_exact(BLOCK_BYTES);
        blocks.try_for_each(|block| self.block(block))?;
        self.pending.extend_from_slice(blocks.remainder());
        Ok(())
    }
    fn block(&mut self, content: &[u8]) -> io::Result<()> {
        let chunk = if self.snappy {
            snap::raw::Encoder::new().compress_vec(content).map_err(bad)?
        } else {
            lz4_flex::block::compress(content)
        };
        self.out.extend_from_slice(&(content.len() as u32).to_be_bytes());
        self.out.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
        self.out.extend_from_slice(&chunk);
        Ok(())
    }
}

impl Encoder {
    /// Takes content; what has become of it so far goes to `out`.
    pub(super) fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let done = match self {
            Encoder::Zlib(e) => e.write_all(bytes).map(|()| e.get_mut())?,
            Encoder::Gzip(e) => e.write_all(bytes).map(|()| e.get_mut())?,
            Encoder::Bzip2(e) => e.write_all(bytes).map(|()| e.get_mut())?,
            Encoder::Zstandard(e) => e.write_all(bytes).map(|()| e.get_mut())?,
            Encoder::Blocks(e) => e.write(bytes).map(|()| &mut e.out)?,
        };
        out.append(done);
        Ok(())
    }
    /// Ends the stream.
    pub(super) fn finish(self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut rest = match self {
            Encoder::Zlib(e) => e.finish()?,
            Encoder::Gzip(e) => e.finish()?,
            Encoder::Bzip2(e) => e.finish()?,
            Encoder::Zstandard(e) => e.finish()?,
            Encoder::Blocks(mut e) => {
                let pending = std::mem::take(&mut e.pending);
                if !pending.is_empty() {
                    e.block(&pending)?;
                }
                e.out
            }
        };
        out.append(&mut rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_gives_back_what_it_was_given() {
        let mut seed = 5u64;
        let mut content = Vec::new();
        for n in 0..400_000u64 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(n);
            content.push(if seed >> 60 < 12 { b'a' } else { (seed >> 40) as u8 });
        }
        for (codec, class) in Codec::CLASSES {
            assert_eq!((Codec::of_class(class), codec.class()), (Some(codec), class));
            for length in [0, 1, 1000, BLOCK_BYTES, content.len()] {
                let (mut encoder, mut out) = (codec.encoder().unwrap(), Vec::new());
                content[..length].chunks(777).for_each(|piece| encoder.write(piece, &mut out).unwrap());
                encoder.finish(&mut out).unwrap();
                let mut read = Vec::new();
                if !out.is_empty() {
                    codec.decoder(&out[..]).unwrap().read_to_end(&mut read).unwrap();
                }
                assert_eq!(read, content[..length], "{codec:?} {length}");
                // damage is an answer, whatever it is
                for cut in [out.len() / 2, out.len().saturating_sub(1)] {
                    let _ = codec.decoder(&out[..cut]).and_then(|mut d| d.read_to_end(&mut Vec::new()));
                }
                for at in (0..out.len()).step_by(out.len() / 50 + 1) {
                    let mut damaged = out.clone();
                    damaged[at] ^= 0x41;
                    let _ = codec.decoder(&damaged[..]).and_then(|d| d.take(1 << 20).read_to_end(&mut Vec::new()));
                }
            }
        }
        assert_eq!(Codec::of_class("org.example.Codec"), None);
    }
}
