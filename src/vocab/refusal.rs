//! Why an operation was refused: a closed set, cheap to make; class names and texts are made at the rim
//! (`observe::remote_exception`), which is the only place that knows Java.

use crate::{Action, BlockId, Mode, StorageKind};
use std::sync::Arc;

/// Path bytes as the client gave or the server resolved them, for messages.
pub type PathText = Arc<str>;

/// A refusal. State and journal are unchanged by the call that gets one, except where the operation says otherwise.
///
/// Variants carry what the message needs, not the message; `Other*` variants carry a text where Hadoop's class is general and the text
/// belongs to a single operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A path or id that does not exist; the text is the whole message, since Hadoop words it differently by operation.
    FileNotFound(Arc<str>),
    /// The target exists.
    FileAlreadyExists(Arc<str>),
    /// A component that must be a directory is not.
    ParentNotDirectory(Arc<str>),
    /// A directory that must be empty is not: `path is non empty`.
    PathIsNotEmptyDirectory(PathText),
    /// A path that must be a directory is not (`PathIsNotDirectoryException`).
    PathIsNotDirectory(PathText),
    /// A name or path that may not be created.
    InvalidPath(Arc<str>),
    /// POSIX permission check failed.
    PermissionDenied(Box<PermissionDenied>),
    /// Access refused for another reason (superuser, sticky bit, owner); the text is the whole message.
    AccessControl(Arc<str>),
    /// Only superusers may; holds the user. The rim adds which operation it was.
    SuperuserRequired(Arc<str>),
    /// The name node is in safe mode; `what` opens the message ("Cannot create directory /x"), `status` is the safe mode's own text.
    SafeMode {
        /// What was asked, as Hadoop words it.
        what: Arc<str>,
        /// Text of the safe mode.
        status: Arc<str>,
    },
    /// The service is not active here: `Operation category WRITE is not supported in state standby...`.
    Standby(Arc<str>),
    /// Try again later, here.
    Retriable(Arc<str>),
    /// Writes and reads of an observer that must go to the active.
    ObserverRetryOnActive(Arc<str>),
    /// Lease of another client, or none.
    LeaseExpired(Arc<str>),
    /// The file is being written already.
    AlreadyBeingCreated(Arc<str>),
    /// Lease recovery is on its way.
    RecoveryInProgress(Arc<str>),
    /// The last blocks have too few replicas yet.
    NotReplicatedYet(PathText),
    /// Namespace quota.
    NamespaceQuota(Box<QuotaExceeded>),
    /// Space quota.
    SpaceQuota(Box<QuotaExceeded>),
    /// Quota by storage kind.
    KindQuota(Box<QuotaExceeded>, StorageKind),
    /// Component longer than allowed.
    ComponentTooLong {
        /// Limit in bytes.
        limit: usize,
        /// Actual length in bytes.
        length: usize,
        /// Parent directory.
        parent: PathText,
        /// The component itself.
        child: Arc<str>,
    },
    /// Too many entries in a directory.
    DirectoryItems {
        /// The directory.
        path: PathText,
        /// Limit.
        limit: usize,
        /// Count that would result.
        count: usize,
    },
    /// A symlink on the way: the client resolves it and asks again.
    UnresolvedPath {
        /// Path as asked.
        path: PathText,
        /// What precedes the link.
        preceding: PathText,
        /// What follows it.
        remainder: PathText,
        /// The link's target.
        target: PathText,
    },
    /// A listing that is to go on after something that is gone (`DirectoryListingStartAfterNotFoundException`).
    ListingStartNotFound(Arc<str>),
    /// A directory without an erasure coding policy of its own (`NoECPolicySetException`).
    NoErasureCodingPolicy(Arc<str>),
    /// Snapshot rules.
    Snapshot(Arc<str>),
    /// A change of something in a snapshot (`SnapshotAccessControlException`).
    SnapshotIsReadOnly,
    /// ACL rules.
    Acl(Arc<str>),
    /// An extended attribute that is not there (`XAttrNotFoundException`).
    XattrNotFound(Arc<str>),
    /// Nobody has enough storage of the wanted kinds, or no DataNode qualifies.
    NoTarget(Arc<str>),
    /// A block or replica that the server does not know or that has another stamp.
    UnknownBlock(BlockId),
    /// No stamp is left for blocks with random ids (`OutOfLegacyGenerationStampsException`).
    OutOfLegacyStamps,
    /// An unregistered or foreign DataNode; the text is the whole message.
    UnregisteredNode(Arc<str>),
    /// A DataNode that may not register.
    DisallowedDatanode(Arc<str>),
    /// A full block report under a lease that is not out for its DataNode; the text is the whole message.
    InvalidReportLease(Arc<str>),
    /// A DataNode of another software version or layout.
    IncorrectVersion(Arc<str>),
    /// A file in an encryption zone for which there is no key yet (`RetryStartFileException`).
    RetryStartFile,
    /// A client that knows no version of the encryption protocol that the zone has; holds those it knows, by number.
    UnknownCryptoVersion(Arc<[i32]>),
    /// A delegation token that is not in force; the text is the whole message (`InvalidToken`).
    InvalidToken(Arc<str>),
    /// Known to Hadoop, not done here (yet), or switched off.
    Unsupported(Arc<str>),
    /// A call that is switched off (`UnsupportedActionException`).
    UnsupportedAction(Arc<str>),
    /// A request that contradicts itself or names what is not there (`InvalidRequestException`).
    InvalidRequest(Arc<str>),
    /// Arguments against `HadoopIllegalArgumentException`'s rules.
    HadoopIllegalArgument(Arc<str>),
    /// Arguments against `IllegalArgumentException`'s rules.
    IllegalArgument(Arc<str>),
    /// State against the call's rules (`IllegalStateException`).
    IllegalState(Arc<str>),
    /// What Java's name node answers by a failed assertion (`AssertionError`).
    Assertion(Arc<str>),
    /// What it answers where it looks for a letter that a text lacks (`StringIndexOutOfBoundsException`).
    StringIndex(Arc<str>),
    /// Rolling upgrade rules.
    RollingUpgrade(Arc<str>),
    /// Storage directories against the call's rules (`InconsistentFSStateException`).
    InconsistentStorage(Arc<str>),
    /// Retention of an operation that Hadoop answers with plain `IOException` and this text.
    Io(Arc<str>),
}

/// What a permission refusal says: user, wanted access, and the inode that decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermissionDenied {
    /// Who asked.
    pub user: Arc<str>,
    /// What was wanted.
    pub access: Action,
    /// Path of the inode that refused.
    pub path: PathText,
    /// Its owner.
    pub owner: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Whether it is a directory.
    pub directory: bool,
    /// Its mode.
    pub mode: Mode,
}

/// What a quota refusal says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotaExceeded {
    /// The directory whose quota it is.
    pub path: PathText,
    /// Its limit.
    pub quota: i64,
    /// Use that would result.
    pub count: i64,
}

impl Refusal {
    /// A plain `IOException` with this text.
    pub fn io(text: impl Into<Arc<str>>) -> Refusal {
        Refusal::Io(text.into())
    }
    /// `FileNotFoundException` with this text.
    pub fn not_found(text: impl Into<Arc<str>>) -> Refusal {
        Refusal::FileNotFound(text.into())
    }
}
