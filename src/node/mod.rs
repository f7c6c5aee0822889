//! Purpose: assembly of the NameNode: from settings to a running process and back to a stopped one; formatting.
//! Called by: cli.
//! Calls: every layer below.
//! Never: decides an operation; spells a configuration key; writes to disk before a load has succeeded.
//! Invariants: ports are closed and directory locks given up on every way out; a failed start leaves the directories as they were.

mod arena;
mod audit;
mod bar;
mod convert;
mod encode;
mod error;
mod format;
mod host;
mod hosts_json;
mod import;
mod journals;
mod load;
pub mod logging;
mod mode;
mod online;
mod places;
mod policy;
mod ports;
mod recover;
mod reload;
mod resources;
mod rolling;
mod run;
mod secrets;
mod signals;
mod ticks;
mod upgrade;

pub use encode::{Form, encode_image};
pub use error::StartError;
pub use format::{Consent, format, metadata_version, new_cluster_id};
pub use host::{host_address, host_name};
pub use mode::StartMode;
pub use recover::recover;
pub use run::{Launch, Serving, run};
pub use upgrade::{Upgrade, roll_back, upgrade_only};

use crate::config::settings::Settings;
use storage::purge::Retention;

/// The Hadoop release whose formats and protocols are spoken.
pub const HADOOP_VERSION: &str = "3.5.0";
/// Its revision, which DataNodes compare with theirs.
pub const HADOOP_REVISION: &str = "dbcc7cd797100e6b32cd84f85b53a5193a5f9af0";

/// What is kept of old images and edits.
fn retention(settings: &Settings) -> Retention {
    let checkpoints = &settings.checkpoints;
    Retention {
        images: checkpoints.images_kept as usize,
        extra_edits: checkpoints.extra_transactions_kept,
        extra_segments: checkpoints.extra_segments_kept as usize,
    }
}
