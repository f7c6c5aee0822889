//! Access control lists, as stored: the extended entries only; owner, mask and other live in the mode.

use crate::Action;
use std::sync::Arc;

/// Whom an entry speaks of (Hadoop's `AclEntryType`, same numbers).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum AclKind {
    User = 0,
    Group = 1,
    Mask = 2,
    Other = 3,
}

/// Whether an entry counts for access or is inherited by new children.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum AclScope {
    Access = 0,
    Default = 1,
}

/// One entry. An unnamed user or group entry has no name.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct AclEntry {
    /// Scope.
    pub scope: AclScope,
    /// Kind.
    pub kind: AclKind,
    /// User or group name.
    pub name: Option<Arc<str>>,
    /// Granted bits.
    pub permission: Action,
}
