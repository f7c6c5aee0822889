//! Where the bytes of an image go: sections (each a compressed stream of its own, if there is a codec), in order, digested beside being written.

use super::super::compress::{Codec, Encoder};
use super::super::digest::Digest;
use super::super::md5sum::Md5Sum;
use super::super::summary::{ImageError, Section, SectionName, Summary};
use hadoop_proto::wire::Sink;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Bytes are handed on in pieces of about this size.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that may wait for the digest.
const WAITING: usize = 8;

/// The digest: here for a small image, by a thread of its own for a large one.
enum Digesting {
    Here(Box<Md5Sum>),
    Beside(SyncSender<Arc<Vec<u8>>>, JoinHandle<Md5Sum>),
}

/// An image on its way.
pub(super) struct Output<'a> {
    sink: &'a mut dyn FnMut(&[u8]),
    digesting: Digesting,
    buffer: Vec<u8>,
    /// Pieces handed on that the digest may still be at.
    recycled: Vec<Arc<Vec<u8>>>,
    written: u64,
    sections: Vec<Section>,
    codec: Option<Codec>,
    encoder: Option<Encoder>,
    /// Where the sub-section begun last begins, and whether anything is in it.
    sub_begun: u64,
    sub_content: bool,
}

fn failed(error: std::io::Error) -> ImageError {
    ImageError::Content { section: "summary", what: format!("cannot be compressed: {error}") }
}

impl<'a> Output<'a> {
    pub(super) fn new(codec: Option<Codec>, beside: bool, sink: &'a mut dyn FnMut(&[u8])) -> Output<'a> {
        let digesting = if beside {
            let (pieces, received) = sync_channel::<Arc<Vec<u8>>>(WAITING);
            let digest = std::thread::spawn(move || {
                let mut digest = Md5Sum::new();
                received.iter().for_each(|piece| digest.update(&piece[..]));
                digest
            });
            Digesting::Beside(pieces, digest)
        } else {
            Digesting::Here(Box::new(Md5Sum::new()))
        };
        Output {
            sink,
            digesting,
            buffer: Vec::new(),
            recycled: Vec::new(),
            written: 0,
            sections: Vec::new(),
            codec,
            encoder: None,
            sub_begun: 0,
            sub_content: false,
        }
    }

    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn flush(&mut self) {
        self.written += self.buffer.len() as u64;
        match &mut self.digesting {
            Digesting::Here(digest) => {
                digest.update(&self.buffer);
                (self.sink)(&self.buffer);
                self.buffer.clear();
            }
            Digesting::Beside(pieces, _) => {
                let piece = Arc::new(std::mem::take(&mut self.buffer));
                // the digest's thread ends after this sender only
                _ = pieces.send(piece.clone());
                (self.sink)(&piece);
                self.recycled.push(piece);
                self.buffer = self.spare();
            }
        }
    }
    /// The memory of a piece that the digest is done with, or new memory.
    fn spare(&mut self) -> Vec<u8> {
        let done = self.recycled.iter_mut().position(|piece| Arc::get_mut(piece).is_some());
        let spare = done.map(|at| self.recycled.swap_remove(at)).and_then(|piece| Arc::try_unwrap(piece).ok());
        let mut spare = spare.unwrap_or_else(|| Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 2)));
        spare.clear();
        spare
    }

    /// Bytes that are outside of sections.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }
    /// Content of the section.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), ImageError> {
        self.sub_content |= !bytes.is_empty();
        match &mut self.encoder {
            None => self.buffer.extend_from_slice(bytes),
            Some(encoder) => encoder.write(bytes, &mut self.buffer).map_err(failed)?,
        }
        if self.buffer.len() >= PIECE_BYTES {
            self.flush();
        }
        Ok(())
    }
    /// The same of a whole piece, which is handed on as it is where that spares copying it. Gives a buffer that may be filled again.
    pub(super) fn put_whole(&mut self, bytes: Vec<u8>) -> Result<Option<Vec<u8>>, ImageError> {
        if self.encoder.is_some() || matches!(self.digesting, Digesting::Here(_)) || bytes.is_empty() {
            self.put(&bytes)?;
            return Ok(Some(bytes));
        }
        if !self.buffer.is_empty() {
            self.flush();
        }
        self.sub_content = true;
        let spare = std::mem::replace(&mut self.buffer, bytes);
        self.flush();
        // what flushing has taken is of a piece that the digest is done with
        let done = std::mem::replace(&mut self.buffer, spare);
        Ok(Some(done))
    }
    /// A delimited message of the section.
    pub(super) fn message(&mut self, message: &[u8]) -> Result<(), ImageError> {
        if self.encoder.is_none() {
            self.buffer.put_delimited(message);
            self.sub_content = true;
            return self.put(&[]);
        }
        let mut delimited = Vec::with_capacity(message.len() + 5);
        delimited.put_delimited(message);
        self.put(&delimited)
    }

    fn begin_stream(&mut self) -> Result<(), ImageError> {
        self.sub_content = false;
        self.encoder = self.codec.map(Codec::encoder).transpose().map_err(failed)?;
        Ok(())
    }
    fn end_stream(&mut self) -> Result<(), ImageError> {
        if let Some(encoder) = self.encoder.take() {
            encoder.finish(&mut self.buffer).map_err(failed)?;
        }
        Ok(())
    }
    /// Begins a section; gives its offset.
    pub(super) fn begin(&mut self) -> Result<u64, ImageError> {
        self.sub_begun = self.offset();
        self.begin_stream()?;
        Ok(self.sub_begun)
    }
    /// Ends a sub-section here, and begins the next. `false`, and nothing done, if nothing is in it.
    pub(super) fn cut(&mut self, name: SectionName) -> Result<bool, ImageError> {
        if !self.sub_content {
            return Ok(false);
        }
        self.end_stream()?;
        let end = self.offset();
        self.sections.push(Section { name, offset: self.sub_begun, length: end - self.sub_begun });
        self.sub_begun = end;
        self.begin_stream()?;
        Ok(true)
    }
    /// Ends the section that began at `offset`; `subs` says whether it was cut, so that nothing came after the last cut.
    pub(super) fn end(&mut self, name: SectionName, offset: u64, subs: bool) -> Result<(), ImageError> {
        if subs {
            // of the stream begun after the last cut nothing is written
            self.encoder = None;
        } else {
            self.end_stream()?;
        }
        let length = self.offset() - offset;
        self.sections.push(Section { name, offset, length });
        Ok(())
    }

    /// Writes the table; the digest of all.
    pub(super) fn finish(mut self, layout: vocab::LayoutVersion) -> Digest {
        let sections = std::mem::take(&mut self.sections);
        let codec = self.codec.map(|codec| codec.class().to_owned());
        let summary = Summary { layout, codec, sections };
        self.buffer.extend(summary.encode());
        self.flush();
        let digest = match self.digesting {
            Digesting::Here(digest) => *digest,
            Digesting::Beside(pieces, digest) => {
                drop(pieces);
                digest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        };
        digest.finish()
    }
}
