//! Purpose: `oiv`, the viewer of images, with the options, processors and output of Hadoop's.
//! Called by: cli.
//! Calls: storage (sections), hadoop-proto (messages), the output file or the standard output.
//! Never: loads a namespace; needs the digest beside the image.
//! Invariants: one message is held at a time; Delimited and DetectCorruption hold names of directories and parents besides, Web all inodes.

mod corruption;
mod delimited;
mod diffs;
mod distribution;
pub(super) mod entries;
mod inodes;
mod rebuild;
mod reverse;
pub(super) mod source;
mod tree;
mod view;
mod web;

use super::failure::Failure;
use super::options::{Given, Known};
use source::Image;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

static USAGE: &str = include_str!("usage.txt");
const BUFFER_BYTES: usize = 1 << 20;

static OPTIONS: [Known; 13] = [
    Known::valued("i", Some("inputFile")),
    Known::valued("o", Some("outputFile")),
    Known::valued("p", Some("processor")),
    Known::flag("h", Some("help")),
    Known::valued("maxSize", None),
    Known::valued("step", None),
    Known::flag("format", None),
    Known::valued("addr", None),
    Known::valued("delimiter", None),
    Known::flag("sp", None),
    Known::flag("ec", None),
    Known::valued("t", Some("temp")),
    Known::valued("m", Some("multiThread")),
];

/// Runs the viewer with the words after `oiv`.
pub fn run(words: &[String]) -> ExitCode {
    if words.is_empty() || matches!(words, [word] if word == "-h" || word == "--help") {
        super::usage(None, USAGE);
        return ExitCode::SUCCESS;
    }
    let given = match Given::parse(&OPTIONS, words) {
        Ok(given) if given.has("i") => given,
        _ => {
            super::usage(Some("Error parsing command-line options: "), USAGE);
            return ExitCode::from(super::FAILED);
        }
    };
    if given.has("h") {
        super::usage(None, USAGE);
        return ExitCode::from(super::FAILED);
    }
    match process(&given) {
        // Whoever has asked for a processor that is not there is told all of them.
        Err(Failure::Refused(text)) => {
            eprintln!("{text}");
            super::usage(None, USAGE);
            ExitCode::from(super::FAILED)
        }
        Err(failure @ Failure::Reconstruction(_)) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
        Err(failure @ Failure::Thrown(..)) => {
            eprintln!("Exception in thread \"main\" {failure}");
            ExitCode::FAILURE
        }
        other => super::ended(other, "Encountered exception.  Exiting: "),
    }
}

fn process(given: &Given) -> Result<(), Failure> {
    let input = Path::new(given.value("i").unwrap_or_default());
    let processor = given.value("p").unwrap_or("Web").to_uppercase();
    let number = |name: &str| -> Result<i64, Failure> {
        let text = given.value(name).unwrap_or("0");
        text.parse().map_err(|_| Failure::content(format!("For input string: \"{text}\"")))
    };
    match processor.as_str() {
        "XML" => view::write(&opened(input)?, output(given)?),
        "FILEDISTRIBUTION" => {
            let step = number("step")?;
            let step = i32::try_from(step).map_err(|_| Failure::content(format!("For input string: \"{step}\"")))?;
            let ranges = distribution::Ranges { max_size: number("maxSize")?, step, readable: given.has("format") };
            distribution::write(&opened(input)?, ranges, &mut output(given)?)
        }
        "REVERSEXML" => reverse::write(input, Path::new(given.value("o").unwrap_or("-")))
            .map_err(|failure| Failure::Reconstruction(failure.to_string())),
        "DETECTCORRUPTION" => {
            corruption::write(&opened(input)?, given.value("delimiter").unwrap_or("\t"), &mut output(given)?)
        }
        "DELIMITED" => {
            let columns = delimited::Columns {
                delimiter: given.value("delimiter").unwrap_or("\t"),
                storage_policy: given.has("sp"),
                erasure_coding: given.has("ec"),
            };
            delimited::write(&opened(input)?, &columns, &mut output(given)?)
        }
        "WEB" => web::serve(|| opened(input), given.value("addr").unwrap_or("localhost:5978")),
        _ => Err(Failure::Refused(format!("Invalid processor specified : {}", given.value("p").unwrap_or("Web")))),
    }
}

/// The image; whatever is no image is told in Hadoop's words.
fn opened(path: &Path) -> Result<Image, Failure> {
    Image::open(path).map_err(|failure| match failure {
        Failure::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            Failure::content(format!("{} (No such file or directory)", path.display()))
        }
        Failure::Image(storage::image::ImageError::UnrecognizedFormat) => Failure::content("Unrecognized FSImage"),
        other => other,
    })
}

/// Where the result goes: a file, or the standard output for `-`.
fn output(given: &Given) -> Result<BufWriter<Box<dyn Write>>, Failure> {
    let sink: Box<dyn Write> = match given.value("o") {
        None | Some("-") => Box::new(io::stdout().lock()),
        Some(path) => Box::new(File::create(path)?),
    };
    Ok(BufWriter::with_capacity(BUFFER_BYTES, sink))
}
