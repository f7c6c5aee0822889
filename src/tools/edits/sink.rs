//! What becomes of records: XML, a binary log, or counts.

use crate::tools::failure::Failure;
use edit::{Opcode, Record};
use std::collections::BTreeMap;
use std::io::Write;
use vocab::{LayoutVersion, Txid};

enum Form {
    Xml,
    Binary,
    Statistics { counts: BTreeMap<u8, u64> },
}

/// Where records go.
pub(super) struct Sink {
    form: Form,
    layout: LayoutVersion,
    /// Whether the log's header was read: before that nothing is written.
    started: bool,
    out: Box<dyn Write>,
    text: String,
    bytes: Vec<u8>,
}

impl Sink {
    /// For a processor's name, in any case.
    pub(super) fn new(processor: &str, out: Box<dyn Write>) -> Result<Sink, Failure> {
        let form = match processor.to_lowercase().as_str() {
            "xml" => Form::Xml,
            "binary" => Form::Binary,
            "stats" => Form::Statistics { counts: BTreeMap::new() },
            _ => {
                let valid = "(valid processors: xml, binary, stats)";
                return Err(Failure::Content(format!("Unknown processor {processor} {valid}")));
            }
        };
        Ok(Sink { form, layout: LayoutVersion::CURRENT, started: false, out, text: String::new(), bytes: Vec::new() })
    }

    /// The layout of the log, before its first record.
    ///
    /// Quirk: binary_logs_have_the_layout_of_today: whatever the layout of the log that the XML was made of.
    pub(super) fn start(&mut self, layout: LayoutVersion) -> Result<(), Failure> {
        let layout = if matches!(self.form, Form::Binary) { LayoutVersion::CURRENT } else { layout };
        self.layout = layout;
        self.started = true;
        match &self.form {
            Form::Xml => self.out.write_all(edit::xml::opening(layout).as_bytes())?,
            Form::Binary => {
                edit::frame::put_header(layout, &mut self.bytes);
                self.out.write_all(&self.bytes)?;
            }
            Form::Statistics { .. } => {}
        }
        Ok(())
    }

    /// One record.
    pub(super) fn record(&mut self, txid: Txid, record: &Record<'_>) -> Result<(), Failure> {
        match &mut self.form {
            Form::Xml => {
                self.text.clear();
                edit::xml::record(txid, record, &mut self.text);
                self.out.write_all(self.text.as_bytes())?;
            }
            Form::Binary => {
                self.bytes.clear();
                edit::encode(record, txid, self.layout, &mut self.bytes)
                    .map_err(|error| Failure::Content(error.to_string()))?;
                self.out.write_all(&self.bytes)?;
            }
            Form::Statistics { counts } => *counts.entry(record.opcode() as u8).or_default() += 1,
        }
        Ok(())
    }

    /// The end, with what went wrong if anything did.
    pub(super) fn close(&mut self, failure: Option<&Failure>) -> Result<(), Failure> {
        match (&self.form, failure) {
            _ if !self.started => {}
            (Form::Xml, None) => self.out.write_all(edit::xml::CLOSING.as_bytes())?,
            (Form::Xml, Some(failure)) => {
                let opened = edit::xml::CLOSING.trim_end();
                writeln!(self.out, "{opened}<ERROR>{failure}</ERROR>")?;
            }
            (Form::Statistics { counts }, _) => {
                let text = statistics(self.layout, counts);
                self.out.write_all(text.as_bytes())?;
            }
            (Form::Binary, _) => {}
        }
        self.out.flush()?;
        Ok(())
    }
}

/// The table of counts: every opcode that Hadoop names, obsolete ones included.
fn statistics(layout: LayoutVersion, counts: &BTreeMap<u8, u64>) -> String {
    use std::fmt::Write;
    const OBSOLETE: [(u8, &str); 2] = [(5, "OP_DATANODE_ADD"), (6, "OP_DATANODE_REMOVE")];
    let mut names: BTreeMap<u8, &str> = Opcode::ALL.iter().map(|opcode| (*opcode as u8, opcode.name())).collect();
    names.extend(OBSOLETE);
    let mut text = format!("    {:<30.30}      : {}\n", "VERSION", layout.0);
    for (number, name) in names {
        let count = counts.get(&number).copied().unwrap_or_default();
        _ = writeln!(text, "    {name:<30.30} ({number:>3}): {count}");
    }
    _ = writeln!(text, "    {:<30.30} ({:>3}): 0", "OP_INVALID", -1);
    text
}
