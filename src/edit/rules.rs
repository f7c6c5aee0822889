//! The numbered rules of replay: records that change nothing although nothing is wrong. FORMAT.md has the table with what was seen on
//! a Hadoop 3.5.0 NameNode. Everything that neither fits nor falls under a rule is a mismatch and ends the load.

/// Why a record is a "no-op by rule". The numbers are those of FORMAT.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Rule {
    /// OP_DELETE of a path that does not exist, its parents included.
    DeleteMissing = 1,
    /// OP_DELETE of the root.
    DeleteRoot = 2,
    /// OP_RENAME_OLD whose source does not exist.
    RenameOldSourceMissing = 3,
    /// OP_RENAME_OLD onto an existing file, onto itself, or onto a directory that already holds the name.
    RenameOldTargetExists = 4,
    /// OP_RENAME_OLD whose target has no parent directory.
    RenameOldTargetParentMissing = 5,
    /// OP_MKDIR of a path that exists, as a directory or a file. The inode id still raises the counter, so whoever applies it may count it as a fit.
    MkdirExists = 6,
    /// OP_SET_REPLICATION of a missing path.
    SetReplicationMissing = 7,
    /// OP_SET_REPLICATION of a directory, or of an erasure coded file.
    SetReplicationDirectory = 8,
    /// OP_APPEND of a file that is open already: neither holder nor blocks change.
    AppendOpen = 9,
    /// OP_REMOVE_XATTR of an attribute that is not set (the path must exist).
    RemoveXattrAbsent = 10,
    /// OP_ALLOW_SNAPSHOT of a directory that is snapshottable already.
    AllowSnapshotTwice = 11,
    /// OP_DISALLOW_SNAPSHOT of a directory that is not snapshottable.
    DisallowSnapshotNotAllowed = 12,
    /// OP_DELETE_SNAPSHOT of a snapshot that does not exist (the directory must be snapshottable).
    DeleteSnapshotMissing = 13,
    /// OP_RENEW_DELEGATION_TOKEN of an unknown token.
    RenewTokenMissing = 14,
    /// OP_CANCEL_DELEGATION_TOKEN of an unknown token.
    CancelTokenMissing = 15,
    /// OP_GET_DELEGATION_TOKEN whose master key is unknown: the token can never be checked, so it is dropped.
    TokenWithoutKey = 16,
    /// OP_ADD_ERASURE_CODING_POLICY of a policy that exists.
    ErasureCodingPolicyExists = 17,
    /// OP_ENABLE_ or OP_DISABLE_ERASURE_CODING_POLICY of a policy that is in that state already.
    ErasureCodingPolicyUnchanged = 18,
    /// OP_ROLLING_UPGRADE_FINALIZE while no rolling upgrade is in progress.
    RollingUpgradeFinalizeNone = 19,
    /// OP_START_LOG_SEGMENT and OP_END_LOG_SEGMENT, wherever they stand.
    SegmentBoundary = 20,
    /// OP_TIMES with both times -1.
    TimesUnchanged = 21,
    /// OP_SET_OWNER with neither user nor group.
    SetOwnerUnchanged = 22,
    /// OP_RENAME_OLD of a directory to a place below itself.
    RenameOldBelowItself = 23,
}

impl Rule {
    /// The number in FORMAT.md.
    pub fn number(self) -> u8 {
        self as u8
    }
}
