//! Purpose: command lines: our own (`ironroot`, `ironroot namenode`) and Hadoop's start options behind `namenode`.
//! Called by: `main`.
//! Calls: clap, config (loads it), node and tools (do the work).
//! Never: opens a storage directory or a port itself.
//! Invariants: whatever `hdfs namenode` accepts is parsed as it parses it, abbreviations and case included.

mod embedded;
mod hadoop;
mod namenode;
mod question;
pub mod startup;
mod supervise;

use crate::{node, tools};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An HDFS NameNode. Without a command: a NameNode on loopback with its data in ./data.
#[derive(Parser, Debug)]
#[command(name = "ironroot", version)]
pub struct Arguments {
    /// Run so many real Hadoop DataNodes beside it (fetched through Maven; needs Java).
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub with_datanodes: u16,
    /// Folder for the embedded NameNode's data.
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub data: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// As `hdfs namenode`: configured by HADOOP_CONF_DIR, with Hadoop's start options.
    #[command(disable_help_flag = true)]
    Namenode {
        /// Start options as Hadoop spells them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        options: Vec<OsString>,
    },
    /// As `hdfs oiv`: views an image; -p XML|ReverseXML|Delimited|FileDistribution|DetectCorruption|Web.
    #[command(disable_help_flag = true)]
    Oiv {
        /// Options as Hadoop spells them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        options: Vec<OsString>,
    },
    /// As `hdfs oev`: views an edit log; -p xml|stats|binary.
    #[command(disable_help_flag = true)]
    Oev {
        /// Options as Hadoop spells them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        options: Vec<OsString>,
    },
    /// Compares two images by meaning; order and numbering do not count. Exit status 1 if they differ.
    ImageDiff {
        /// The one image.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// Tells what a NameNode needs for an image: inodes, blocks, memory by part, time to load.
    Size {
        /// The image.
        image: PathBuf,
    },
    /// Becomes another program that ends when this program's parent ends.
    #[command(hide = true)]
    Supervise {
        /// Process id of the parent, the program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, num_args = 2..)]
        words: Vec<OsString>,
    },
    /// Makes an image from an arena file: started by a NameNode that has just written one.
    #[command(hide = true)]
    EncodeImage {
        /// Its form.
        #[command(flatten)]
        form: node::Form,
        /// The arena file.
        arena: PathBuf,
        /// Folders for the image.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
    },
}

/// Parses the process's arguments and does what they say; the exit code of the process.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Command::Namenode { options }) => namenode::run(&words(&options)),
        Some(Command::Oiv { options }) => tools::view_image(&words(&options)),
        Some(Command::ImageDiff { first, second }) => tools::compare_images(&first, &second),
        Some(Command::Size { image }) => tools::estimate_size(&image),
        Some(Command::Oev { options }) => tools::view_edits(&words(&options)),
        Some(Command::Supervise { words }) => supervise::run(&words),
        Some(Command::EncodeImage { form, arena, folders }) => encode_image(&arena, &folders, &form),
        None => embedded::run(&arguments.data, arguments.with_datanodes),
    }
}

fn words(options: &[OsString]) -> Vec<String> {
    options.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The hidden command: what it says goes to its parent.
fn encode_image(arena: &Path, folders: &[PathBuf], form: &node::Form) -> ExitCode {
    match node::encode_image(arena, folders, form) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
