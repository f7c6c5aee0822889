//! Purpose: what the site files, the command line and Hadoop's defaults say; the one place that spells Hadoop keys.
//! Called by: node, cli; the `/conf` page through the server's hooks.
//! Calls: the file system (site files), nothing of the engine.
//! Never: holds state of the file system; decides anything at run time.
//! Invariants: a key is read only through `settings::Reader` (and `identify` and `output`, which name theirs), so that the
//! registry's `honoured` column is what is really read; `registry` knows every key of Hadoop 3.5.0.

mod address;
mod configuration;
pub mod embedded;
mod environment;
mod error;
mod load;
mod log4j;
mod output;
mod reconfigure;
mod registry;
pub mod settings;
mod values;
mod xml;

pub use address::HostPort;
pub use configuration::{Configuration, Property};
pub use environment::Environment;
pub use error::ConfigError;
#[cfg(test)]
use load::load;
pub use load::{Source, default_directory, take_generic_options};
pub use log4j::audit_appenders;
pub use reconfigure::{Changed, Effect, changed, reconfigurable};
pub use registry::{not_honoured, registry};

#[cfg(test)]
mod tests;
