//! The few settings that change what applying an edit record does: an explicit input, the same for live calls, restart and standby.

use crate::LayoutVersion;

/// Inputs of `apply` besides state and record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Layout version written to images and edits (older than current during a rolling upgrade).
    pub effective_layout: LayoutVersion,
    /// `dfs.namenode.snapshot.deletion.ordered`.
    pub ordered_snapshot_deletion: bool,
    /// `dfs.namenode.snapshot.capture.openfiles`.
    pub snapshot_captures_open_files: bool,
    /// `dfs.namenode.snapshot.skip.capture.accesstime-only-change`.
    pub snapshot_skips_access_time: bool,
    /// `dfs.namenode.replication.min`.
    pub replication_min: u16,
    /// `dfs.replication.max`: replayed records are brought into these limits.
    pub replication_max: u16,
    /// Whether answers of at-most-once calls are kept (`dfs.namenode.enable.retrycache`).
    pub retry_cache: bool,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            effective_layout: LayoutVersion::CURRENT,
            ordered_snapshot_deletion: false,
            snapshot_captures_open_files: false,
            snapshot_skips_access_time: false,
            replication_min: 1,
            replication_max: 512,
            retry_cache: true,
        }
    }
}
