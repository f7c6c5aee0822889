//! What `fit` says about a record, and what `apply` is given and gives back.

use vocab::InodeId;

/// Whether a record can be applied to the state as it is.
#[derive(Debug)]
pub enum Fit {
    /// It can; the handles are resolved.
    Fits(Fitted),
    /// It changes nothing, by this numbered rule of replay. `apply` is not called.
    NoOp(NoOpRule),
    /// It contradicts the state: on replay the log and the image do not belong together, live it is a broken invariant.
    Mismatch(Mismatch),
    /// It belongs to a feature that is not done here; nothing was changed.
    Unsupported(Unsupported),
}

/// A rule by which Hadoop tolerates a record that has nothing to do. FORMAT.md of `edit` numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoOpRule {
    /// A delete of a path that does not exist.
    DeleteOfMissing,
    /// A rename whose source or target does not fit: Hadoop's unprotected rename answers false.
    RenameRefused,
}

/// A contradiction, worded as Hadoop logs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch(pub String);

/// A feature by name, for the refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// The feature, such as "snapshots".
    pub feature: &'static str,
}

/// Resolved handles of a record; valid until the state changes, consumed by `apply`.
#[derive(Debug)]
pub struct Fitted {
    pub(crate) plan: crate::Plan,
}

/// Who applies: what follows from a transition differs, the transition does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A call of the active name node.
    Live,
    /// Replay at start-up.
    Restart,
    /// Tailing of the active's journal.
    Standby,
}

/// What a caller may want to know of a transition that has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// The inode made or changed, where there is one.
    pub inode: Option<InodeId>,
    /// Number of inodes that a delete (or an overwrite) removed.
    pub removed: u64,
}
