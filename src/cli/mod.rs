//! Purpose: command lines: our own (`ironroot`, `ironroot namenode`) and Hadoop's start options behind `namenode`.
//! Called by: `main`.
//! Calls: clap.
//! Never: starts anything; reads a configuration file.
//! Invariants: whatever `hdfs namenode` accepts is parsed as it parses it, abbreviations and case included.

pub mod startup;

use clap::{Parser, Subcommand};
use std::ffi::OsString;

/// An HDFS NameNode. Without a command: a NameNode on loopback with its data in ./data.
#[derive(Parser, Debug)]
#[command(name = "ironroot", version)]
pub struct Arguments {
    /// Run so many real Hadoop DataNodes beside it (fetched through Maven; needs Java).
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub with_datanodes: u16,
    /// Folder for the embedded NameNode's data.
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub data: std::path::PathBuf,
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
}
