//! Quotas and what counts against them.

use crate::StorageKind;

/// Limits of a directory: `None` means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Quota {
    /// Names (files and directories, itself included).
    pub namespace: Option<u64>,
    /// Bytes times replicas.
    pub space: Option<u64>,
    /// Bytes by storage kind, in ordinal order.
    pub by_kind: [Option<u64>; StorageKind::ALL.len()],
}

/// Use counted against [`Quota`]; signed, so that a difference is one too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Usage {
    /// Names.
    pub namespace: i64,
    /// Bytes times replicas.
    pub space: i64,
    /// Bytes by storage kind.
    pub by_kind: [i64; StorageKind::ALL.len()],
}
