//! Purpose: `oev`, the viewer of edit logs, with the options, processors and output of Hadoop's.
//! Called by: cli.
//! Calls: storage (segments), edit (records and their XML), the output file.
//! Never: checks that a record fits a state; holds more than one record.
//! Invariants: a log of the layout of today, written as XML and made binary again, is the same log.

mod parse;
mod sink;
mod source;

use super::failure::Failure;
use super::options::{Given, Known};
use sink::Sink;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

static USAGE: &str = include_str!("usage.txt");

static OPTIONS: [Known; 7] = [
    Known::valued("o", Some("outputFile")),
    Known::valued("i", Some("inputFile")),
    Known::valued("p", Some("processor")),
    Known::flag("v", Some("verbose")),
    Known::flag("f", Some("fix-txids")),
    Known::flag("r", Some("recover")),
    Known::flag("h", Some("help")),
];

/// Options that every Hadoop tool takes, with the value after them.
const GENERIC: [&str; 7] = ["-conf", "-D", "-fs", "-jt", "-files", "-libjars", "-archives"];

/// Runs the viewer with the words after `oev`.
pub fn run(words: &[String]) -> ExitCode {
    let mut rest = Vec::new();
    let mut all = words.iter();
    while let Some(word) = all.next() {
        if GENERIC.contains(&word.as_str()) {
            _ = all.next();
        } else {
            rest.push(word.clone());
        }
    }
    if rest.is_empty() || matches!(&rest[..], [word] if word == "-h" || word == "--help") {
        super::usage(None, USAGE);
        return ExitCode::SUCCESS;
    }
    let missing = |given: &Given| ["o", "i"].into_iter().filter(|name| !given.has(name)).collect::<Vec<_>>();
    let complaint = match Given::parse(&OPTIONS, &rest) {
        Ok(given) => match missing(&given)[..] {
            [] => return super::ended(process(&given), "Encountered exception. Exiting: "),
            [one] => format!("Missing required option: {one}"),
            [..] => format!("Missing required options: {}", missing(&given).join(", ")),
        },
        Err(complaint) => complaint,
    };
    super::usage(Some(&format!("Error parsing command-line options: {complaint}")), USAGE);
    ExitCode::from(super::FAILED)
}

fn process(given: &Given) -> Result<(), Failure> {
    let value = |name| given.value(name).unwrap_or_default();
    let (input, output, processor) = (value("i"), value("o"), given.value("p").unwrap_or("xml"));
    let verbose = given.has("v");
    if verbose {
        println!("input  [{input}]");
        println!("output [{output}]");
    }
    let is_xml = input.to_lowercase().ends_with("xml");
    match (is_xml, processor.to_lowercase().as_str()) {
        (true, "xml") => {
            let text = "XML format input file is not allowed to be processed by XML processor.";
            return Err(Failure::Refused(text.to_owned()));
        }
        (false, "binary") => {
            let text = "Binary format input file is not allowed to be processed by Binary processor.";
            return Err(Failure::Refused(text.to_owned()));
        }
        _ => {}
    }
    let file = BufWriter::new(File::create(output)?);
    // bytes are not for the eye
    let shown = verbose && !processor.eq_ignore_ascii_case("binary");
    let out: Box<dyn Write> = if shown { Box::new(Tee(file, io::stdout())) } else { Box::new(file) };
    let mut sink = Sink::new(processor, out)?;
    let options = source::Options { renumber: given.has("f"), recover: given.has("r") };
    let path = Path::new(input);
    let read = if is_xml { source::xml(path, options, &mut sink) } else { source::binary(path, options, &mut sink) };
    sink.close(read.as_ref().err())?;
    read
}

/// Writes everything twice.
struct Tee(BufWriter<File>, io::Stdout);

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        self.1.write_all(bytes)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        self.1.flush()
    }
}
