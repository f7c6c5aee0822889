//! Records out of a binary log or its XML.

use super::sink::Sink;
use crate::tools::failure::Failure;
use os::RealDisk;
use std::path::Path;
use storage::journal::reader::{ReadError, SegmentReader};
use vocab::Txid;

/// What is done about a log that is not whole.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Number the records anew, one by one from the first.
    pub(super) renumber: bool,
    /// Go on after what cannot be read.
    pub(super) recover: bool,
}

/// Reads a binary log.
pub(super) fn binary(path: &Path, options: Options, sink: &mut Sink) -> Result<(), Failure> {
    let mut reader = SegmentReader::open(&RealDisk::default(), path, edit::frame::RECORD_MAX).map_err(|e| told(path, e))?;
    sink.start(reader.layout())?;
    let mut next = None;
    loop {
        match reader.next() {
            Ok(None) => return Ok(()),
            Ok(Some(frame)) => {
                let txid = numbered(&mut next, frame.txid, options);
                sink.record(txid, &frame.record)?;
            }
            Err(error) if options.recover && !matches!(error, ReadError::Io(_)) => {
                eprintln!("Got exception while reading stream!  Resyncing.  {error}");
                if !reader.skip_damage()? {
                    return Ok(());
                }
            }
            Err(error) => {
                eprintln!("Got exception at position {}", reader.offset());
                return Err(told(path, error));
            }
        }
    }
}

/// The number that a record gets.
fn numbered(next: &mut Option<Txid>, txid: Txid, options: Options) -> Txid {
    if !options.renumber {
        return txid;
    }
    let number = next.unwrap_or(if txid.0 == 0 { Txid(1) } else { txid });
    *next = Some(number.next());
    number
}

/// An error in Hadoop's words where it has any.
fn told(path: &Path, error: ReadError) -> Failure {
    match error {
        ReadError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Failure::Content(path.display().to_string())
        }
        ReadError::Truncated => Failure::content("Premature EOF from inputStream"),
        other => other.into(),
    }
}

/// Reads the XML of a log.
pub(super) fn xml(_path: &Path, _options: Options, _sink: &mut Sink) -> Result<(), Failure> {
    Err(Failure::content("not yet"))
}
