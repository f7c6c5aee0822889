//! Refusals as Java clients expect them: class name, text, code. The only home of Java exception class names.

use std::borrow::Cow;
use vocab::Refusal;
use vocab::refusal::{PermissionDenied, QuotaExceeded};

/// `RpcErrorCodeProto`: what kind of failure; codes of 10 and above are fatal to the connection.
pub use hadoop_proto::common::rpc_response_header_proto::RpcErrorCodeProto as ErrorCode;

/// An error answer of a call. Clients rebuild the Java exception from the class name and the text, and match on both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteException {
    /// Full Java class name.
    pub class: Cow<'static, str>,
    /// What `getMessage()` of the rebuilt exception begins with.
    pub message: String,
    /// Kind of failure.
    pub code: ErrorCode,
}

impl RemoteException {
    /// An error of the application, the usual kind: the connection goes on.
    pub fn application(class: &'static str, message: impl Into<String>) -> RemoteException {
        RemoteException { class: Cow::Borrowed(class), message: message.into(), code: ErrorCode::ErrorApplication }
    }
    /// Whether the connection ends with this answer.
    pub fn is_fatal(&self) -> bool {
        self.code as i32 >= ErrorCode::FatalUnknown as i32
    }
    /// The protocol has no method of this name (`RpcNoSuchMethodException`).
    pub fn no_such_method(method: &str, protocol: &str) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::NO_SUCH_METHOD),
            message: format!("Unknown method {method} called on {protocol} protocol."),
            code: ErrorCode::ErrorNoSuchMethod,
        }
    }
    /// The port does not serve this protocol (`RpcNoSuchProtocolException`).
    pub fn no_such_protocol(protocol: &str) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::NO_SUCH_PROTOCOL),
            message: format!("Unknown protocol: {protocol}"),
            code: ErrorCode::ErrorNoSuchProtocol,
        }
    }
    /// The port serves this protocol in another version (`RPC$VersionMismatch`).
    pub fn protocol_version(protocol: &str, client: u64, server: u64) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::VERSION_MISMATCH),
            message: format!("Protocol {protocol} version mismatch. (client = {client}, server = {server})"),
            code: ErrorCode::ErrorRpcVersionMismatch,
        }
    }
    /// A call that Hadoop knows and this server does not do (`UnsupportedOperationException`).
    pub fn unsupported(message: impl Into<String>) -> RemoteException {
        RemoteException::application(class::UNSUPPORTED_OPERATION, message)
    }
    /// The request body is no message of its type (`InvalidProtocolBufferException`).
    pub fn bad_request(message: impl Into<String>) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::INVALID_PROTOCOL_BUFFER),
            message: message.into(),
            code: ErrorCode::ErrorApplication,
        }
    }
    /// An offence against the protocol of the connection, which closes with this answer (`RpcServerException`).
    pub fn fatal(code: ErrorCode, message: impl Into<String>) -> RemoteException {
        RemoteException { class: Cow::Borrowed(class::RPC_SERVER), message: message.into(), code }
    }
    /// The client speaks another version of the RPC protocol (`RPC$VersionMismatch`).
    pub fn ipc_version(server: u8, client: i8) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::VERSION_MISMATCH),
            message: format!("Server IPC version {server} cannot communicate with client version {client}"),
            code: ErrorCode::FatalVersionMismatch,
        }
    }
    /// The connection header asks for an authentication protocol that does not exist (`IpcException`).
    pub fn auth_protocol(number: i8) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::IPC),
            message: format!("Unknown auth protocol:{number}"),
            code: ErrorCode::FatalUnauthorized,
        }
    }
    /// A real user may not act for this user (`AuthorizationException`).
    pub fn unauthorized(message: impl Into<String>) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::AUTHORIZATION),
            message: message.into(),
            code: ErrorCode::FatalUnauthorized,
        }
    }
    /// The SASL exchange broke its own rules (`AccessControlException`).
    pub fn negotiation_refused(message: impl Into<String>) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::ACCESS_CONTROL),
            message: message.into(),
            code: ErrorCode::FatalUnauthorized,
        }
    }
    /// A token that is not in force proves nothing (`InvalidToken`).
    pub fn token_refused(message: impl Into<String>) -> RemoteException {
        let (class, message) = (Cow::Borrowed(class::INVALID_TOKEN), message.into());
        RemoteException { class, message, code: ErrorCode::FatalUnauthorized }
    }
    /// A name node that is not active cannot tell whether a token is in force (`StandbyException`).
    pub fn token_on_standby(message: impl Into<String>) -> RemoteException {
        let (class, message) = (Cow::Borrowed(class::STANDBY), message.into());
        RemoteException { class, message, code: ErrorCode::FatalUnauthorized }
    }
    /// A SASL message that has no place in the exchange (`SaslException`).
    pub fn sasl(code: ErrorCode, message: impl Into<String>) -> RemoteException {
        RemoteException { class: Cow::Borrowed(class::SASL), message: message.into(), code }
    }
}

/// A refusal without a text is told by its class, as a stack trace begins.
fn or_class(text: &str, class: &str) -> String {
    if text.is_empty() { class.to_owned() } else { text.to_owned() }
}

impl From<&Refusal> for RemoteException {
    fn from(refusal: &Refusal) -> RemoteException {
        let (class, message) = class_and_text(refusal);
        RemoteException::application(class, message)
    }
}

impl From<Refusal> for RemoteException {
    fn from(refusal: Refusal) -> RemoteException {
        RemoteException::from(&refusal)
    }
}

const READ_ONLY: &str = "Modification on a read-only snapshot is disallowed";
const RETRY_START: &str = "Preconditions for creating a file failed because of a transient error, retry create later.";

/// Java class and text of a refusal.
fn class_and_text(refusal: &Refusal) -> (&'static str, String) {
    match refusal {
        Refusal::FileNotFound(text) => (class::FILE_NOT_FOUND, text.to_string()),
        Refusal::FileAlreadyExists(text) => (class::FILE_ALREADY_EXISTS, text.to_string()),
        Refusal::ParentNotDirectory(text) => (class::PARENT_NOT_DIRECTORY, text.to_string()),
        // the quotes are those of Hadoop's PathIOException, around all of the text it was given
        Refusal::PathIsNotEmptyDirectory(path) => {
            (class::PATH_IS_NOT_EMPTY_DIRECTORY, format!("`{path} is non empty': Directory is not empty"))
        }
        Refusal::NoErasureCodingPolicy(text) => (class::NO_EC_POLICY_SET, text.to_string()),
        Refusal::PathIsNotDirectory(path) => (class::PATH_IS_NOT_DIRECTORY, format!("`{path}': Is not a directory")),
        Refusal::InvalidPath(text) => (class::INVALID_PATH, text.to_string()),
        Refusal::PermissionDenied(denied) => (class::ACCESS_CONTROL, permission_denied(denied)),
        Refusal::AccessControl(text) => (class::ACCESS_CONTROL, text.to_string()),
        Refusal::SuperuserRequired(user) => {
            (class::ACCESS_CONTROL, format!("Access denied for user {user}. Superuser privilege is required"))
        }
        Refusal::SafeMode { what, status } => {
            (class::SAFE_MODE, format!("{what}. Name node is in safe mode.\n{status}"))
        }
        Refusal::Standby(text) => (class::STANDBY, text.to_string()),
        Refusal::Retriable(text) => (class::RETRIABLE, text.to_string()),
        Refusal::ObserverRetryOnActive(text) => (class::OBSERVER_RETRY_ON_ACTIVE, text.to_string()),
        Refusal::LeaseExpired(text) => (class::LEASE_EXPIRED, text.to_string()),
        Refusal::AlreadyBeingCreated(text) => (class::ALREADY_BEING_CREATED, text.to_string()),
        Refusal::RecoveryInProgress(text) => (class::RECOVERY_IN_PROGRESS, text.to_string()),
        Refusal::NotReplicatedYet(path) => (class::NOT_REPLICATED_YET, format!("Not replicated yet: {path}")),
        Refusal::NamespaceQuota(quota) => (class::NAMESPACE_QUOTA, namespace_quota(quota)),
        Refusal::SpaceQuota(quota) => (class::SPACE_QUOTA, space_quota(quota)),
        Refusal::KindQuota(quota, kind) => (class::KIND_QUOTA, kind_quota(quota, kind.name())),
        Refusal::ComponentTooLong { limit, length, parent, child } => (
            class::COMPONENT_TOO_LONG,
            format!(
                "The maximum path component name limit of {child} in directory {parent} is exceeded: limit={limit} length={length}"
            ),
        ),
        Refusal::DirectoryItems { path, limit, count } => {
            (class::DIRECTORY_ITEMS, directory_items(path, *limit, *count))
        }
        Refusal::UnresolvedPath { preceding, remainder, target, .. } => {
            (class::UNRESOLVED_PATH, resolved(preceding, remainder, target))
        }
        Refusal::ListingStartNotFound(text) => (class::LISTING_START_NOT_FOUND, text.to_string()),
        Refusal::Snapshot(text) => (class::SNAPSHOT, text.to_string()),
        Refusal::SnapshotIsReadOnly => (class::SNAPSHOT_ACCESS, READ_ONLY.to_owned()),
        Refusal::Acl(text) => (class::ACL, text.to_string()),
        Refusal::XattrNotFound(text) => (class::XATTR_NOT_FOUND, text.to_string()),
        Refusal::NoTarget(text) => (class::IO, text.to_string()),
        Refusal::UnknownBlock(block) => (class::IO, format!("blk_{} does not exist.", block.0)),
        Refusal::OutOfLegacyStamps => (class::OUT_OF_LEGACY_STAMPS, "Out of V1 (legacy) generation stamps".to_owned()),
        Refusal::UnregisteredNode(text) => (class::UNREGISTERED_NODE, text.to_string()),
        Refusal::InvalidReportLease(text) => (class::INVALID_REPORT_LEASE, text.to_string()),
        Refusal::DisallowedDatanode(text) => (class::DISALLOWED_DATANODE, text.to_string()),
        Refusal::IncorrectVersion(text) => (class::INCORRECT_VERSION, text.to_string()),
        Refusal::RetryStartFile => (class::RETRY_START_FILE, RETRY_START.to_owned()),
        Refusal::UnknownCryptoVersion(known) => (class::UNKNOWN_CRYPTO_VERSION, unknown_crypto_version(known)),
        Refusal::InvalidToken(text) => (class::INVALID_TOKEN, text.to_string()),
        Refusal::Unsupported(text) => (class::UNSUPPORTED_OPERATION, text.to_string()),
        Refusal::UnsupportedAction(text) => (class::UNSUPPORTED_ACTION, text.to_string()),
        Refusal::InvalidRequest(text) => (class::INVALID_REQUEST, text.to_string()),
        Refusal::HadoopIllegalArgument(text) => (class::HADOOP_ILLEGAL_ARGUMENT, text.to_string()),
        Refusal::IllegalArgument(text) => (class::ILLEGAL_ARGUMENT, text.to_string()),
        Refusal::IllegalState(text) => (class::ILLEGAL_STATE, or_class(text, class::ILLEGAL_STATE)),
        Refusal::Assertion(text) => (class::ASSERTION, text.to_string()),
        Refusal::StringIndex(text) => (class::STRING_INDEX, text.to_string()),
        Refusal::RollingUpgrade(text) => (class::ROLLING_UPGRADE, text.to_string()),
        Refusal::InconsistentStorage(text) => (class::INCONSISTENT_STORAGE, text.to_string()),
        Refusal::Io(text) => (class::IO, text.to_string()),
    }
}

fn directory_items(path: &str, limit: usize, count: usize) -> String {
    format!("The directory item limit of {path} is exceeded: limit={limit} items={count}")
}

fn unknown_crypto_version(known: &[i32]) -> String {
    let version = |number: i32, unknown: Option<i32>| {
        let (description, number) = if number == 2 { ("Encryption zones", 2) } else { ("Unknown", 1) };
        let unknown = unknown.map_or_else(|| "null".to_owned(), |unknown| unknown.to_string());
        format!("CryptoProtocolVersion{{description='{description}', version={number}, unknownValue={unknown}}}")
    };
    let is_unknown = |number: &i32| *number != 2;
    let given: Vec<_> = known.iter().map(|number| version(*number, Some(*number).filter(is_unknown))).collect();
    // Java's constant remembers the last number that it stood for
    let last = known.iter().copied().rfind(is_unknown);
    format!(
        "No crypto protocol versions provided by the client are supported. Client provided: [{}] NameNode supports: [{}, {}]",
        given.join(", "),
        version(1, last),
        version(2, None)
    )
}

fn permission_denied(denied: &PermissionDenied) -> String {
    let PermissionDenied { user, access, path, owner, group, directory, mode } = denied;
    let kind = if *directory { 'd' } else { '-' };
    let access = access.name();
    format!("Permission denied: user={user}, access={access}, inode=\"{path}\":{owner}:{group}:{kind}{mode}")
}

fn namespace_quota(exceeded: &QuotaExceeded) -> String {
    let QuotaExceeded { path, quota, count } = exceeded;
    format!(
        "The NameSpace quota (directories and files) of directory {path} is exceeded: quota={quota} file count={count}"
    )
}

fn space_quota(exceeded: &QuotaExceeded) -> String {
    let QuotaExceeded { path, quota, count } = exceeded;
    format!(
        "The DiskSpace quota of {path} is exceeded: quota = {quota} B = {} but diskspace consumed = {count} B = {}",
        byte_count(*quota),
        byte_count(*count)
    )
}

fn kind_quota(exceeded: &QuotaExceeded, kind: &str) -> String {
    format!(
        "Quota by storage type : {kind} on path : {} is exceeded. quota = {} but space consumed = {}",
        exceeded.path,
        byte_count(exceeded.quota),
        byte_count(exceeded.count)
    )
}

/// What a client asks for next when `target` stands at the end of `preceding` and `remainder` follows (`UnresolvedPathException`'s text).
fn resolved(preceding: &str, remainder: &str, target: &str) -> String {
    let join = |parent: &str, child: &str| match child {
        "" => parent.to_owned(),
        child if child.starts_with('/') => child.to_owned(),
        child => format!("{}/{child}", parent.trim_end_matches('/')),
    };
    join(&join(preceding, target), remainder)
}

/// A count of bytes as Hadoop prints it for people: `1 KB`, `1.50 KB`, `8.00 EB`; whole units have no decimals.
pub fn byte_count(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    let size = u128::from(bytes.unsigned_abs());
    let mut power = (0..=6u32).rev().find(|p| size >> (10 * p) > 0).unwrap_or(0);
    let hundredths = |power: u32| (size * 100 + (1 << (10 * power)) / 2) >> (10 * power);
    // what rounds to 1024 of a unit is one of the next
    if size & ((1 << (10 * power)) - 1) != 0 && hundredths(power) >= 102_400 {
        power += 1;
    }
    let unit = ["B", "KB", "MB", "GB", "TB", "PB", "EB"][power as usize];
    if size & ((1 << (10 * power)) - 1) == 0 {
        return format!("{sign}{} {unit}", size >> (10 * power));
    }
    let hundredths = hundredths(power);
    format!("{sign}{}.{:02} {unit}", hundredths / 100, hundredths % 100)
}

/// Java class names.
pub mod class {
    #![allow(missing_docs)] // the values say it all
    pub const IO: &str = "java.io.IOException";
    pub const CLASS_NOT_FOUND: &str = "java.lang.ClassNotFoundException";
    pub const FILE_NOT_FOUND: &str = "java.io.FileNotFoundException";
    pub const FILE_SYSTEM: &str = "java.nio.file.FileSystemException";
    pub const NO_SUCH_FILE: &str = "java.nio.file.NoSuchFileException";
    pub const ACCESS_DENIED: &str = "java.nio.file.AccessDeniedException";
    pub const INVALID_FILE_PATH: &str = "java.nio.file.InvalidPathException";
    pub const ILLEGAL_ARGUMENT: &str = "java.lang.IllegalArgumentException";
    pub const ILLEGAL_STATE: &str = "java.lang.IllegalStateException";
    pub const UNSUPPORTED_OPERATION: &str = "java.lang.UnsupportedOperationException";
    pub const RETRY_START_FILE: &str = "org.apache.hadoop.hdfs.server.namenode.RetryStartFileException";
    pub const UNKNOWN_CRYPTO_VERSION: &str = "org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException";
    pub const INVALID_TOKEN: &str = "org.apache.hadoop.security.token.SecretManager$InvalidToken";
    pub const SASL: &str = "javax.security.sasl.SaslException";
    pub const HADOOP_ILLEGAL_ARGUMENT: &str = "org.apache.hadoop.HadoopIllegalArgumentException";
    pub const FILE_ALREADY_EXISTS: &str = "org.apache.hadoop.fs.FileAlreadyExistsException";
    pub const PATH_IS_NOT_DIRECTORY: &str = "org.apache.hadoop.fs.PathIsNotDirectoryException";
    pub const NO_EC_POLICY_SET: &str = "org.apache.hadoop.hdfs.protocol.NoECPolicySetException";
    pub const UNSUPPORTED_ACTION: &str = "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException";
    pub const ASSERTION: &str = "java.lang.AssertionError";
    pub const STRING_INDEX: &str = "java.lang.StringIndexOutOfBoundsException";
    pub const LISTING_START_NOT_FOUND: &str = "org.apache.hadoop.fs.DirectoryListingStartAfterNotFoundException";
    pub const INVALID_PATH: &str = "org.apache.hadoop.fs.InvalidPathException";
    pub const INVALID_REQUEST: &str = "org.apache.hadoop.fs.InvalidRequestException";
    pub const EOF: &str = "java.io.EOFException";
    pub const PARENT_NOT_DIRECTORY: &str = "org.apache.hadoop.fs.ParentNotDirectoryException";
    pub const PATH_IS_NOT_EMPTY_DIRECTORY: &str = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException";
    pub const SERVICE_FAILED: &str = "org.apache.hadoop.ha.ServiceFailedException";
    pub const ACL: &str = "org.apache.hadoop.hdfs.protocol.AclException";
    pub const ALREADY_BEING_CREATED: &str = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException";
    pub const COMPONENT_TOO_LONG: &str =
        "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException";
    pub const DIRECTORY_ITEMS: &str =
        "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException";
    pub const KIND_QUOTA: &str = "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException";
    pub const NAMESPACE_QUOTA: &str = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException";
    pub const RECOVERY_IN_PROGRESS: &str = "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException";
    pub const ROLLING_UPGRADE: &str = "org.apache.hadoop.hdfs.protocol.RollingUpgradeException";
    pub const SNAPSHOT: &str = "org.apache.hadoop.hdfs.protocol.SnapshotException";
    pub const SNAPSHOT_ACCESS: &str = "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException";
    pub const SPACE_QUOTA: &str = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException";
    pub const XATTR_NOT_FOUND: &str = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException";
    pub const OUT_OF_LEGACY_STAMPS: &str =
        "org.apache.hadoop.hdfs.server.blockmanagement.OutOfLegacyGenerationStampsException";
    pub const UNREGISTERED_NODE: &str = "org.apache.hadoop.hdfs.protocol.UnregisteredNodeException";
    pub const UNRESOLVED_PATH: &str = "org.apache.hadoop.hdfs.protocol.UnresolvedPathException";
    pub const INCONSISTENT_STORAGE: &str = "org.apache.hadoop.hdfs.server.common.InconsistentFSStateException";
    pub const INCORRECT_VERSION: &str = "org.apache.hadoop.hdfs.server.common.IncorrectVersionException";
    pub const LEASE_EXPIRED: &str = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException";
    pub const NOT_REPLICATED_YET: &str = "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException";
    pub const SAFE_MODE: &str = "org.apache.hadoop.hdfs.server.namenode.SafeModeException";
    pub const INVALID_REPORT_LEASE: &str = "org.apache.hadoop.hdfs.server.protocol.InvalidBlockReportLeaseException";
    pub const DISALLOWED_DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DisallowedDatanodeException";
    pub const IPC: &str = "org.apache.hadoop.ipc.IpcException";
    pub const OBSERVER_RETRY_ON_ACTIVE: &str = "org.apache.hadoop.ipc.ObserverRetryOnActiveException";
    pub const RETRIABLE: &str = "org.apache.hadoop.ipc.RetriableException";
    pub const VERSION_MISMATCH: &str = "org.apache.hadoop.ipc.RPC$VersionMismatch";
    pub const NO_SUCH_METHOD: &str = "org.apache.hadoop.ipc.RpcNoSuchMethodException";
    pub const NO_SUCH_PROTOCOL: &str = "org.apache.hadoop.ipc.RpcNoSuchProtocolException";
    pub const RPC_SERVER: &str = "org.apache.hadoop.ipc.RpcServerException";
    pub const STANDBY: &str = "org.apache.hadoop.ipc.StandbyException";
    pub const ACCESS_CONTROL: &str = "org.apache.hadoop.security.AccessControlException";
    pub const AUTHORIZATION: &str = "org.apache.hadoop.security.authorize.AuthorizationException";
    pub const INVALID_PROTOCOL_BUFFER: &str = "org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use vocab::{Action, Mode, StorageKind};

    fn says(refusal: Refusal, class: &str, message: &str) {
        let exception = RemoteException::from(refusal);
        assert_eq!((&*exception.class, &*exception.message), (class, message));
        assert_eq!(exception.code, ErrorCode::ErrorApplication);
        assert!(!exception.is_fatal());
    }

    /// Texts printed by the exception classes of Hadoop 3.5.0, or received from its NameNode.
    #[test]
    fn texts_of_hadoop() {
        let denied = PermissionDenied {
            user: "alice".into(),
            access: Action::WRITE,
            path: "/d".into(),
            owner: "super".into(),
            group: "supergroup".into(),
            directory: true,
            mode: Mode::new(0o755),
        };
        let access_control = "org.apache.hadoop.security.AccessControlException";
        says(
            Refusal::PermissionDenied(Box::new(denied.clone())),
            access_control,
            r#"Permission denied: user=alice, access=WRITE, inode="/d":super:supergroup:drwxr-xr-x"#,
        );
        let file =
            PermissionDenied { directory: false, access: Action::READ_EXECUTE, mode: Mode::new(0o640), ..denied };
        says(
            Refusal::PermissionDenied(Box::new(file)),
            access_control,
            r#"Permission denied: user=alice, access=READ_EXECUTE, inode="/d":super:supergroup:-rw-r-----"#,
        );
        says(
            Refusal::PathIsNotEmptyDirectory("/d".into()),
            "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
            "`/d is non empty': Directory is not empty",
        );
        says(
            Refusal::SafeMode {
                what: "Cannot create directory /sm".into(),
                status: "It was turned on manually.".into(),
            },
            "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "Cannot create directory /sm. Name node is in safe mode.\nIt was turned on manually.",
        );
        let quota = |quota, count| Box::new(QuotaExceeded { path: "/q".into(), quota, count });
        says(
            Refusal::NamespaceQuota(quota(3, 4)),
            "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
            "The NameSpace quota (directories and files) of directory /q is exceeded: quota=3 file count=4",
        );
        says(
            Refusal::SpaceQuota(quota(1 << 40, (1 << 40) + 5)),
            "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
            "The DiskSpace quota of /q is exceeded: quota = 1099511627776 B = 1 TB but diskspace consumed = 1099511627781 B = 1.00 TB",
        );
        says(
            Refusal::KindQuota(quota(1024, 3 << 30), StorageKind::Ssd),
            "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException",
            "Quota by storage type : SSD on path : /q is exceeded. quota = 1 KB but space consumed = 3 GB",
        );
    }

    #[test]
    fn texts_of_hadoop_about_limits_and_links() {
        says(
            Refusal::ComponentTooLong { limit: 255, length: 256, parent: "/dir".into(), child: "xxxx".into() },
            "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
            "The maximum path component name limit of xxxx in directory /dir is exceeded: limit=255 length=256",
        );
        says(
            Refusal::DirectoryItems { path: "/d".into(), limit: 64, count: 65 },
            "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException",
            "The directory item limit of /d is exceeded: limit=64 items=65",
        );
        says(
            Refusal::NotReplicatedYet("/f".into()),
            "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException",
            "Not replicated yet: /f",
        );
        let unresolved = |remainder: &str, target: &str| Refusal::UnresolvedPath {
            path: "/a/l/b".into(),
            preceding: "/a".into(),
            remainder: Arc::from(remainder),
            target: Arc::from(target),
        };
        let class = "org.apache.hadoop.hdfs.protocol.UnresolvedPathException";
        says(unresolved("b", "/t"), class, "/t/b");
        says(unresolved("", "t"), class, "/a/t");
    }

    /// Printed by Hadoop 3.5.0's `TraditionalBinaryPrefix.long2String(n, "B", 2)`.
    #[test]
    fn byte_counts_of_hadoop() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (1025, "1.00 KB"),
            (1536, "1.50 KB"),
            (1_048_575, "1.00 MB"),
            (1_048_577, "1.00 MB"),
            (-1, "-1 B"),
            (-1025, "-1.00 KB"),
            (-2048, "-2 KB"),
            (1_234_567_890_123, "1.12 TB"),
            (10_239, "10.00 KB"),
            (1_073_741_823, "1.00 GB"),
            (1_099_511_627_775, "1.00 TB"),
            (i64::MAX, "8.00 EB"),
            (i64::MIN, "-8 EB"),
            (i64::MIN + 1, "-8.00 EB"),
        ] {
            assert_eq!(byte_count(bytes), text);
        }
    }
}
