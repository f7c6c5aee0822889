//! `-format` and `-metadataVersion`: what is done to directories without a running NameNode.

use super::{StartError, host_address, places};
use crate::config::settings::OfflineSettings;
use os::Os;
use state::{RootAttributes, State};
use std::io;
use std::path::Path;
use storage::image::{self, SaveContext};
use storage::{StorageError, StorageInfo, format, version};
use vocab::{LayoutVersion, Mode, Txid};

/// Mode of the root directory of a new file system.
const ROOT_MODE: u16 = 0o755;

/// What to do about directories that are not empty.
pub trait Consent {
    /// Whether this directory may be overwritten. `shown` is how Hadoop names it.
    ///
    /// # Errors
    /// The question cannot be asked.
    fn overwrite(&mut self, shown: &str) -> io::Result<bool>;
}

/// Formats all directories; `false` if that was not allowed.
///
/// # Errors
/// A directory is in use or cannot be written; or formatting is forbidden.
pub fn format(
    settings: &OfflineSettings,
    cluster_id: Option<&str>,
    user: &str,
    consent: &mut dyn Consent,
) -> Result<bool, StartError> {
    let os = Os::real();
    let places = places::locations(&settings.directories);
    if !settings.format.allowed {
        return Err(StartError::Unsupported(settings.format.not_allowed()));
    }
    let info = StorageInfo::new(&os, &host_address(), cluster_id);
    tracing::info!("Formatting using clusterid: {}", info.cluster_id);
    let occupied = format::with_data(&places, &os)?;
    if settings.format.again_disabled && !occupied.is_empty() {
        let text = "NameNode format aborted as reformat is disabled for this cluster.";
        return Err(StartError::Unsupported(text.to_owned()));
    }
    for root in &occupied {
        if !consent.overwrite(&places::shown(root)).map_err(StartError::system("standard input"))? {
            return Ok(false);
        }
    }
    tracing::info!("Allocated new BlockPoolId: {}", info.block_pool_id);
    let root = RootAttributes { user, group: &settings.superuser_group, mode: Mode::new(ROOT_MODE) };
    let state = State::new(root);
    let context = context(LayoutVersion::CURRENT, &info, Txid(0));
    let mut write = |current: &Path| -> Result<(), StorageError> {
        image::save(&*os.disk, &[current.to_owned()], &state, context).map(drop).map_err(|error| match error {
            image::SaveError::NoDirectory(mut failed) if !failed.is_empty() => {
                let failed = failed.remove(0);
                StorageError::Io { path: failed.current, source: failed.error }
            }
            other => StorageError::Format(other.to_string()),
        })
    };
    let mode = u32::from(settings.directories.permission);
    let formatted = format::format(&places, &info, format::Existing::Overwrite, mode, &os, &mut write)?;
    for directory in &formatted.list {
        tracing::info!("Storage directory {} has been successfully formatted.", directory.location.root.display());
    }
    Ok(true)
}

/// What an image says besides the state.
pub fn context(layout: LayoutVersion, info: &StorageInfo, txid: Txid) -> SaveContext {
    SaveContext { layout, namespace_id: info.namespace_id.cast_unsigned(), txid, expanded_string_tables: true }
}

/// The layout on disk and that of this software, as two lines.
///
/// # Errors
/// No directory is formatted, or its VERSION is damaged.
pub fn metadata_version(settings: &OfflineSettings) -> Result<String, StartError> {
    let os = Os::real();
    let mut layout = None;
    for place in places::locations(&settings.directories) {
        let current = place.root.join("current");
        layout = layout.or(match version::read(&*os.disk, &place.root, &current) {
            Ok(info) => Some(info.layout.0),
            // a newer layout is told, not refused
            Err(StorageError::UnexpectedVersion { reported, .. }) => Some(reported),
            Err(error) => return Err(error.into()),
        });
    }
    let layout = layout.ok_or(StorageError::NotFormatted)?;
    Ok(format!("HDFS Image Version: {layout}\nSoftware format version: {}\n", LayoutVersion::CURRENT.0))
}

/// A new cluster id.
pub fn new_cluster_id() -> String {
    version::new_cluster_id(&Os::real())
}
