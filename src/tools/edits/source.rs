//! Records out of a binary log or its XML.

use super::parse;
use super::sink::Sink;
use crate::tools::failure::Failure;
use crate::tools::stanza::{Stanza, broken};
use edit::error::{DecodeError, Reason};
use os::RealDisk;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io::BufReader;
use std::path::Path;
use storage::journal::reader::{ReadError, SegmentReader};
use vocab::{LayoutVersion, Txid};

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
    let mut reader =
        SegmentReader::open(&RealDisk::default(), path, edit::frame::RECORD_MAX).map_err(|e| told(path, e))?;
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
        ReadError::Header(DecodeError { reason: Reason::HeaderTruncated, .. }) => {
            Failure::content("Reached EOF when reading log header")
        }
        ReadError::Header(DecodeError { reason: Reason::HeaderLayout(layout), .. }) => {
            let current = LayoutVersion::CURRENT.0;
            let what = format!("Unexpected version of the file system log file: {layout}.");
            Failure::Content(format!("{what} Current version = {current}."))
        }
        other => other.into(),
    }
}

/// Reads the XML of a log.
pub(super) fn xml(path: &Path, options: Options, sink: &mut Sink) -> Result<(), Failure> {
    let file = std::fs::File::open(path).map_err(|error| told(path, error.into()))?;
    let mut reader = Reader::from_reader(BufReader::new(file));
    let (mut buffer, mut layout, mut next) = (Vec::new(), None, None);
    loop {
        buffer.clear();
        let name = match reader.read_event_into(&mut buffer).map_err(broken)? {
            Event::Eof => break,
            Event::Start(start) => start.name().as_ref().to_owned(),
            _ => continue,
        };
        match (name.as_str(), layout) {
            ("EDITS", None) => {}
            ("EDITS_VERSION", None) => {
                let text = Stanza::read(&mut reader, 1)?.into_text();
                let number = text.parse().map_err(|_| Failure::Content(format!("For input string: \"{text}\"")))?;
                layout = Some(LayoutVersion(number));
                sink.start(LayoutVersion(number))?;
            }
            ("RECORD", Some(_)) => {
                let stanza = Stanza::read(&mut reader, 1)?;
                let data = stanza.expect("DATA")?;
                let record = parse::record(stanza.text("OPCODE")?, data)?;
                let txid = numbered(&mut next, Txid(data.number("TXID")?), options);
                sink.record(txid, &record)?;
            }
            (_, None) => return Err(Failure::content("expected <EDITS/>")),
            (_, Some(_)) => return Err(Failure::content("expected a <RECORD> tag")),
        }
    }
    layout.map(|_| ()).ok_or_else(|| Failure::content("expecting </EDITS>"))
}
