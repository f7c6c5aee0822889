//! A journal in a local directory: segments as files.

use super::buffer::{Batch, Piece};
use super::set::Target;
use crate::names;
use edit::frame;
use os::disk::{Disk, File, Open};
use os::durable;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vocab::{LayoutVersion, Txid};

/// A journal in a directory (`current` of a storage directory). Segments are preallocated, so that a sync writes data only.
#[derive(Debug)]
pub struct LocalJournal {
    disk: Arc<dyn Disk>,
    current: PathBuf,
    label: String,
    /// Bytes by which an open segment grows (1 MiB in Hadoop).
    preallocation: usize,
    open: Option<OpenSegment>,
}

#[derive(Debug)]
struct OpenSegment {
    file: Box<dyn File>,
    path: PathBuf,
    /// Where the next record goes.
    position: u64,
    /// Bytes of the file, fill included.
    length: u64,
    unsynced: bool,
}

impl LocalJournal {
    /// A journal in `current`; nothing is written before its first segment begins. `label` is what messages call it.
    pub fn new(disk: Arc<dyn Disk>, current: &Path, label: &str, preallocation: usize) -> LocalJournal {
        LocalJournal { disk, current: current.to_owned(), label: label.to_owned(), preallocation, open: None }
    }

    /// Makes the file of a segment: header and fill are durable before it gets its name, so that a crash never leaves a broken header.
    fn start(&mut self, first: Txid, layout: LayoutVersion) -> io::Result<()> {
        let path = self.current.join(names::in_progress(first));
        if self.disk.metadata(&path)?.is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists already", path.display())));
        }
        let temporary = durable::temporary(&path);
        let file = self.disk.open(&temporary, Open::Truncate)?;
        let mut content = Vec::with_capacity(self.preallocation);
        frame::put_header(layout, &mut content);
        let position = content.len() as u64;
        content.resize(content.len().max(self.preallocation), frame::FILL);
        write_pieces(&*file, &content, 0)?;
        file.sync_all()?;
        durable::rename(&*self.disk, &temporary, &path)?;
        self.open = Some(OpenSegment { file, path, position, length: content.len() as u64, unsynced: false });
        Ok(())
    }

    fn end(&mut self, first: Txid, last: Txid) -> io::Result<()> {
        let segment = self.open.take().ok_or_else(no_segment)?;
        segment.file.set_length(segment.position)?;
        segment.file.sync_all()?;
        durable::rename(&*self.disk, &segment.path, &self.current.join(names::finalized(first, last)))
    }

    fn apply(&mut self, batch: &Batch) -> io::Result<()> {
        for piece in &batch.pieces {
            match piece {
                Piece::Start { first, layout } => self.start(*first, *layout)?,
                Piece::Records { bytes, .. } => {
                    self.open.as_mut().ok_or_else(no_segment)?.write(bytes, self.preallocation)?
                }
                Piece::End { first, last } => self.end(*first, *last)?,
            }
        }
        match &mut self.open {
            Some(segment) => segment.sync(),
            None => Ok(()),
        }
    }
}

/// Bytes of fill that are written at a time. Linux keeps what came with one write together in its cache, and each record that is written into such
/// a folio later pays for all of its blocks.
const PIECE_BYTES: usize = 16 << 10;

fn write_pieces(file: &dyn File, bytes: &[u8], mut at: u64) -> io::Result<()> {
    for piece in bytes.chunks(PIECE_BYTES) {
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

fn no_segment() -> io::Error {
    io::Error::other("no segment is open")
}

impl OpenSegment {
    fn write(&mut self, bytes: &[u8], preallocation: usize) -> io::Result<()> {
        let end = self.position + bytes.len() as u64;
        if end > self.length {
            // What a crash leaves unwritten is then a sector of fill, or of zeros where the file grew: both can be told from damage.
            let grow = (end - self.length).next_multiple_of(preallocation.max(1) as u64);
            write_pieces(&*self.file, &vec![frame::FILL; grow as usize], self.length)?;
            self.length += grow;
        }
        self.file.write_all_at(bytes, self.position)?;
        self.position = end;
        self.unsynced = true;
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.file.sync_data()?;
            self.unsynced = false;
        }
        Ok(())
    }
}

impl Target for LocalJournal {
    fn label(&self) -> &str {
        &self.label
    }
    fn commit(&mut self, batch: &Batch) -> io::Result<()> {
        let result = self.apply(batch);
        if result.is_err() {
            // Never again touched: what a failed write or sync has left is for the next recovery to judge.
            self.open = None;
        }
        result
    }
    fn room(&self) -> usize {
        self.open.as_ref().map_or(0, |segment| (segment.length - segment.position) as usize)
    }
}
