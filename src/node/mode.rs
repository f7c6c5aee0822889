//! What a start does with the storage directories before it serves.

use super::upgrade::Upgrade;

/// How the NameNode was started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum StartMode {
    /// The directories are of the present layout, and are loaded.
    #[default]
    Regular,
    /// They become so, and keep what they were.
    Upgrade(Upgrade),
    /// They may be older: a rolling upgrade runs, and its layout is kept until it is finalized.
    RollingUpgradeStarted,
    /// They go back to where a rolling upgrade began.
    RollingUpgradeRollback,
    /// They are empty, and become what the directories of a checkpointer hold.
    ImportCheckpoint,
}

impl StartMode {
    /// The upgrade, if that is what it is.
    pub(super) fn upgrade(&self) -> Option<&Upgrade> {
        if let StartMode::Upgrade(upgrade) = self { Some(upgrade) } else { None }
    }
}
