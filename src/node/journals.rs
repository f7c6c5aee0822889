//! The edit log opened for writing, and what happens when its directories fail.

use super::StartError;
use super::load::Loaded;
use crate::config::settings::Settings;
use os::Os;
use std::io;
use std::path::Path;
use std::sync::Arc;
use storage::journal::{Journal, JournalFailed, LocalJournal, Membership, Observer, Options, PREALLOCATION};

/// Logs what happens to journals, and ends the process when too few are left.
#[derive(Debug)]
struct Watch;

impl Observer for Watch {
    fn dropped(&self, label: &str, error: &io::Error) {
        tracing::error!("Error: edit log directory {label} failed and is left out: {error}");
    }
    fn restored(&self, label: &str) {
        tracing::info!("Edit log directory {label} is in use again");
    }
    /// Nothing more can become durable, so nothing more may be acknowledged: every answer that rests on an undurable record is still at the fence,
    /// and goes with the process.
    fn failed(&self, failure: &JournalFailed) {
        tracing::error!(
            "FATAL: {} The last durable transaction is {}. Exiting with status 1.",
            failure.reason,
            failure.durable
        );
        std::process::exit(1);
    }
    fn seen_txid_failed(&self, current: &Path, error: &io::Error) {
        tracing::error!("seen_txid could not be written in {}: {error}", current.display());
    }
}

/// Opens the next segment in all edits directories.
///
/// # Errors
/// Too few of them could begin one.
pub fn open(loaded: &Loaded, settings: &Settings, os: &Os) -> Result<Journal, StartError> {
    let edits = loaded.directories.list.iter().filter(|directory| directory.location.roles.edits);
    let members = edits.map(|directory| {
        let label = directory.location.root.display().to_string();
        let target = LocalJournal::new(os.disk.clone(), &directory.current(), &label, PREALLOCATION);
        Membership { target: Box::new(target), required: directory.location.roles.required }
    });
    let options = Options {
        layout: loaded.layout(),
        minimum: settings.directories.minimum_edits as usize,
        restore: settings.directories.restore_failed,
        seen: loaded.directories.folders(),
        ..Options::default()
    };
    Journal::open(members.collect(), loaded.last.next(), options, os, Arc::new(Watch))
        .map_err(|failure| StartError::Journal(failure.to_string()))
}
