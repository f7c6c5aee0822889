//! The tree: limits, features, permissions, and what clients are told.

use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::values::Unit;
use std::time::Duration;
use vocab::storage_policy;

/// Limits of the tree and of answers about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a path component, 0 for no limit (`dfs.namenode.fs-limits.max-component-length`).
    pub component_bytes: u64,
    /// Children of a directory (`dfs.namenode.fs-limits.max-directory-items`).
    pub directory_items: u32,
    /// Smallest block size (`dfs.namenode.fs-limits.min-block-size`).
    pub min_block_bytes: u64,
    /// Blocks of a file (`dfs.namenode.fs-limits.max-blocks-per-file`).
    pub blocks_per_file: u64,
    /// Extended attributes of an inode (`dfs.namenode.fs-limits.max-xattrs-per-inode`).
    pub xattrs_per_inode: u32,
    /// Bytes of name and value of one (`dfs.namenode.fs-limits.max-xattr-size`).
    pub xattr_bytes: u64,
    /// Inodes and blocks together, 0 for no limit (`dfs.namenode.max.objects`).
    pub objects: u64,
    /// Inodes that a content summary counts at a time, 0 for no limit of its own (`dfs.content-summary.limit`).
    pub summary_slice: u32,
    /// Microseconds it rests then (`dfs.content-summary.sleep-microsec`).
    pub summary_rest_micros: u64,
    /// Files in one answer about corrupt ones (`dfs.namenode.max-corrupt-file-blocks-returned`).
    pub corrupt_files_returned: u32,
    /// Entries of one partial listing (`dfs.ls.limit`); 1000 if set to 0 or less.
    pub listing_entries: u32,
    /// Paths of one batched listing (`dfs.batched.ls.limit`).
    pub batched_listing_paths: u32,
    /// Open files of one answer (`dfs.namenode.list.openfiles.num.responses`).
    pub open_files_listed: u32,
    /// Zones of one answer (`dfs.namenode.list.encryption.zones.num.responses`).
    pub zones_listed: u32,
    /// Re-encryptions of one answer (`dfs.namenode.list.reencryption.status.num.responses`).
    pub reencryption_listed: u32,
    /// Events of one answer about the log (`dfs.namenode.inotify.max.events.per.rpc`).
    pub events_per_call: i32,
}

impl Limits {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Limits, ConfigError> {
        const ITEMS: &str = "dfs.namenode.fs-limits.max-directory-items";
        let xattr_bytes = xattr_bytes(reader)?;
        let xattrs_per_inode = xattrs_per_inode(reader)?;
        let directory_items = reader.int(ITEMS)?;
        if !(1..=6_400_000).contains(&directory_items) {
            let problem = format!("Cannot set {ITEMS} to a value less than 1 or greater than 6400000");
            return Err(ConfigError::Contradiction(problem));
        }
        let listing = reader.int("dfs.ls.limit")?;
        let batched_listing_paths = positive(reader, "dfs.batched.ls.limit", "must be greater than zero")?;
        let open_files_listed =
            positive(reader, "dfs.namenode.list.openfiles.num.responses", "must be a positive integer.")?;
        Ok(Limits {
            component_bytes: reader.bytes("dfs.namenode.fs-limits.max-component-length")?,
            directory_items: directory_items.unsigned_abs(),
            min_block_bytes: reader.bytes("dfs.namenode.fs-limits.min-block-size")?,
            blocks_per_file: reader.amount("dfs.namenode.fs-limits.max-blocks-per-file", 0)?,
            xattrs_per_inode,
            xattr_bytes,
            objects: reader.amount("dfs.namenode.max.objects", 0)?,
            summary_slice: reader.count("dfs.content-summary.limit", 0)?,
            summary_rest_micros: reader.amount("dfs.content-summary.sleep-microsec", 0)?,
            corrupt_files_returned: reader.count("dfs.namenode.max-corrupt-file-blocks-returned", 1)?,
            listing_entries: if listing > 0 { listing.unsigned_abs() } else { 1000 },
            batched_listing_paths,
            open_files_listed,
            zones_listed: positive(
                reader,
                "dfs.namenode.list.encryption.zones.num.responses",
                "must be a positive integer.",
            )?,
            reencryption_listed: positive(
                reader,
                "dfs.namenode.list.reencryption.status.num.responses",
                "must be a positive integer.",
            )?,
            events_per_call: reader.int("dfs.namenode.inotify.max.events.per.rpc")?,
        })
    }
}

/// 1 to 32,768; refused in Hadoop's words, which have the key where one expects the value.
fn xattr_bytes(reader: &Reader<'_>) -> Result<u64, ConfigError> {
    const KEY: &str = "dfs.namenode.fs-limits.max-xattr-size";
    let wrong = |bound: &str| {
        Err(ConfigError::Contradiction(format!("The maximum size of an xattr should be {bound}: ({KEY}).")))
    };
    match reader.long_bytes(KEY)? {
        ..=0 => wrong("> 0"),
        32_769.. => wrong("<= maximum size hard limit 32768"),
        bytes => Ok(bytes.unsigned_abs()),
    }
}

fn xattrs_per_inode(reader: &Reader<'_>) -> Result<u32, ConfigError> {
    const KEY: &str = "dfs.namenode.fs-limits.max-xattrs-per-inode";
    let problem = || format!("Cannot set a negative limit on the number of xattrs per inode ({KEY}).");
    u32::try_from(reader.int(KEY)?).map_err(|_| ConfigError::Contradiction(problem()))
}

fn lazy_persist_scrub(reader: &Reader<'_>) -> Result<Option<Duration>, ConfigError> {
    const KEY: &str = "dfs.namenode.lazypersist.file.scrub.interval.sec";
    match u64::try_from(reader.int(KEY)?) {
        Ok(seconds) => Ok((seconds > 0).then(|| Duration::from_secs(seconds))),
        Err(_) => Err(ConfigError::Contradiction(format!("{KEY} must be zero (for disable) or greater than zero."))),
    }
}

fn default_policy(reader: &Reader<'_>) -> Result<u8, ConfigError> {
    const KEY: &str = "dfs.storage.default.policy";
    let policy = storage_policy::by_name(&reader.text(KEY)?).map(|policy| policy.id);
    policy.ok_or_else(|| reader.wrong(KEY, "is no storage policy"))
}

/// A count over 0, refused in Hadoop's words.
fn positive(reader: &Reader<'_>, key: &'static str, problem: &str) -> Result<u32, ConfigError> {
    match reader.int(key)? {
        count if count > 0 => Ok(count.unsigned_abs()),
        _ => Err(ConfigError::Contradiction(format!("{key} {problem}"))),
    }
}

/// What the tree supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFeatures {
    /// `dfs.namenode.acls.enabled`
    pub acls: bool,
    /// Default ACLs win over the client's umask (`dfs.namenode.posix.acl.inheritance.enabled`).
    pub posix_acl_inheritance: bool,
    /// `dfs.namenode.xattrs.enabled`
    pub xattrs: bool,
    /// `dfs.storage.policy.enabled`
    pub storage_policies: bool,
    /// `dfs.quota.by.storage.type.enabled`
    pub quota_by_storage_type: bool,
    /// Only the oldest snapshot can go, others are only marked (`dfs.namenode.snapshot.deletion.ordered`).
    pub ordered_snapshot_deletion: bool,
    /// Snapshots hold the length of open files (`dfs.namenode.snapshot.capture.openfiles`).
    pub snapshots_capture_open_files: bool,
    /// Snapshots do not record that only an access time changed
    /// (`dfs.namenode.snapshot.skip.capture.accesstime-only-change`).
    pub snapshots_skip_access_time: bool,
    /// Most snapshots of one directory (`dfs.namenode.snapshot.max.limit`).
    pub snapshots_of_directory: u32,
    /// Most snapshots of all (`dfs.namenode.snapshot.filesystem.limit`).
    pub snapshots_of_all: u32,
    /// Entries of a page of what changed between snapshots (`dfs.namenode.snapshotdiff.listing.limit`).
    pub snapshot_changes_listed: u32,
    /// Whether that may be asked of what is below a directory with snapshots (`dfs.namenode.snapshotdiff.allow.snap-root-descendant`).
    pub snapshot_reports_below: bool,
    /// How often a snapshot that was deleted out of order is looked for (`dfs.namenode.snapshot.deletion.ordered.gc.period.ms`).
    pub snapshot_collect_interval: Duration,
    /// Access times are kept this exactly; none if they are not kept (`dfs.namenode.accesstime.precision`).
    pub access_time_precision: Option<Duration>,
    /// Directories that cannot be deleted unless empty (`fs.protected.directories`).
    pub protected_directories: Vec<String>,
    /// Whether that covers what is below them (`dfs.protected.subdirectories.enable`).
    pub protect_below: bool,
    /// A lease that nobody renewed is recovered after this (`dfs.namenode.lease-hard-limit-sec`).
    pub lease_hard_limit: Duration,
    /// How often leases are looked at (`dfs.namenode.lease-recheck-interval-ms`).
    pub lease_check_interval: Duration,
    /// Committed blocks of a file that need not be complete when it is closed
    /// (`dfs.namenode.file.close.num-committed-allowed`).
    pub committed_blocks_at_close: u32,
    /// Erasure coding policy that is enabled at every start, empty for none (`dfs.namenode.ec.system.default.policy`).
    pub erasure_coding_default: String,
    /// Largest cell of a policy that is added, in bytes (`dfs.namenode.ec.policies.max.cellsize`).
    pub erasure_coding_cell_max: u32,
    /// Whether policies may be added (`dfs.namenode.ec.userdefined.policy.allowed`).
    pub erasure_coding_user_defined: bool,
    /// Whether files are to be moved to where their storage policies want them (`dfs.storage.policy.satisfier.mode`).
    pub storage_policy_satisfier: bool,
    /// How often lazily persisted files without replicas are deleted (`dfs.namenode.lazypersist.file.scrub.interval.sec`); `None` for never.
    pub lazy_persist_scrub: Option<Duration>,
    /// Number of the storage policy where none is set (`dfs.storage.default.policy`).
    pub default_policy: u8,
    /// What may wait for that (`dfs.storage.policy.satisfier.max.outstanding.paths`).
    pub satisfier_queue: u32,
    /// Whether only superusers set storage policies (`dfs.storage.policy.permissions.superuser-only`).
    pub storage_policies_of_superusers: bool,
    /// `dfs.namenode.get-blocks.check.operation`
    pub get_blocks_is_a_read: bool,
}

impl NamespaceFeatures {
    pub(super) fn read(reader: &Reader<'_>) -> Result<NamespaceFeatures, ConfigError> {
        let precision = reader.plain_duration("dfs.namenode.accesstime.precision", Unit::Milliseconds)?;
        let lease_check = positive(reader, "dfs.namenode.lease-recheck-interval-ms", "must be greater than zero")?;
        let collect =
            positive(reader, "dfs.namenode.snapshot.deletion.ordered.gc.period.ms", "must be greater than zero")?;
        Ok(NamespaceFeatures {
            acls: reader.boolean("dfs.namenode.acls.enabled")?,
            posix_acl_inheritance: reader.boolean("dfs.namenode.posix.acl.inheritance.enabled")?,
            xattrs: reader.boolean("dfs.namenode.xattrs.enabled")?,
            storage_policies: reader.boolean("dfs.storage.policy.enabled")?,
            quota_by_storage_type: reader.boolean("dfs.quota.by.storage.type.enabled")?,
            ordered_snapshot_deletion: reader.boolean("dfs.namenode.snapshot.deletion.ordered")?,
            snapshots_capture_open_files: reader.boolean("dfs.namenode.snapshot.capture.openfiles")?,
            snapshots_skip_access_time: reader.boolean("dfs.namenode.snapshot.skip.capture.accesstime-only-change")?,
            snapshots_of_directory: reader.count("dfs.namenode.snapshot.max.limit", 0)?,
            snapshots_of_all: reader.count("dfs.namenode.snapshot.filesystem.limit", 0)?,
            snapshot_changes_listed: reader.count("dfs.namenode.snapshotdiff.listing.limit", 1)?,
            snapshot_reports_below: reader.boolean("dfs.namenode.snapshotdiff.allow.snap-root-descendant")?,
            snapshot_collect_interval: Duration::from_millis(collect.into()),
            access_time_precision: (!precision.is_zero()).then_some(precision),
            protected_directories: reader.strings("fs.protected.directories")?,
            protect_below: reader.boolean("dfs.protected.subdirectories.enable")?,
            lease_hard_limit: reader.plain_duration("dfs.namenode.lease-hard-limit-sec", Unit::Seconds)?,
            lease_check_interval: Duration::from_millis(lease_check.into()),
            committed_blocks_at_close: reader.count("dfs.namenode.file.close.num-committed-allowed", 0)?,
            erasure_coding_default: reader.text("dfs.namenode.ec.system.default.policy")?,
            erasure_coding_cell_max: reader.count("dfs.namenode.ec.policies.max.cellsize", 0)?,
            erasure_coding_user_defined: reader.boolean("dfs.namenode.ec.userdefined.policy.allowed")?,
            storage_policy_satisfier: reader
                .text("dfs.storage.policy.satisfier.mode")?
                .eq_ignore_ascii_case("external"),
            lazy_persist_scrub: lazy_persist_scrub(reader)?,
            default_policy: default_policy(reader)?,
            satisfier_queue: reader.count("dfs.storage.policy.satisfier.max.outstanding.paths", 0)?,
            storage_policies_of_superusers: reader.boolean("dfs.storage.policy.permissions.superuser-only")?,
            get_blocks_is_a_read: reader.boolean("dfs.namenode.get-blocks.check.operation")?,
        })
    }
}

/// Permission checking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// `dfs.permissions.enabled`
    pub enabled: bool,
    /// Members are superusers (`dfs.permissions.superusergroup`).
    pub superuser_group: String,
    /// Owners may set quotas (`dfs.permissions.allow.owner.set.quota`).
    pub owner_sets_quota: bool,
    /// A content summary checks every directory below (`dfs.permissions.ContentSummary.subAccess`).
    pub content_summary_checks_below: bool,
    /// Who may use which protocol is looked at (`hadoop.security.authorization`).
    pub protocols: bool,
}

impl Permissions {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Permissions, ConfigError> {
        Ok(Permissions {
            enabled: reader.boolean("dfs.permissions.enabled")?,
            superuser_group: reader.text("dfs.permissions.superusergroup")?,
            owner_sets_quota: reader.boolean("dfs.permissions.allow.owner.set.quota")?,
            content_summary_checks_below: reader.boolean("dfs.permissions.ContentSummary.subAccess")?,
            protocols: reader.boolean("hadoop.security.authorization")?,
        })
    }
}

/// Checksum of a block's chunks (`dfs.checksum.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// `NULL`
    Null,
    /// `CRC32`
    Crc32,
    /// `CRC32C`
    Crc32C,
}

/// What clients are told to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDefaults {
    /// `dfs.blocksize`
    pub block_bytes: u64,
    /// `dfs.bytes-per-checksum`
    pub bytes_per_checksum: u32,
    /// `dfs.client-write-packet-size`
    pub packet_bytes: u32,
    /// `dfs.replication`
    pub replication: u16,
    /// `io.file.buffer.size`
    pub buffer_bytes: u32,
    /// `dfs.encrypt.data.transfer`
    pub encrypt_data_transfer: bool,
    /// Minutes that trash is kept, 0 for none (`fs.trash.interval`).
    pub trash_interval_minutes: i64,
    /// Minutes between the rounds of the emptier, 0 for as many as trash is kept (`fs.trash.checkpoint.interval`).
    pub trash_round_minutes: i64,
    /// Whether what the emptier does not know goes at once (`fs.trash.clean.trashroot.enable`).
    pub trash_cleans_root: bool,
    /// Where homes are (`dfs.user.home.dir.prefix`).
    pub homes: String,
    /// `dfs.checksum.type`
    pub checksum: Checksum,
    /// `hadoop.security.key.provider.path`, empty for none.
    pub key_provider: String,
    /// `dfs.namenode.snapshot.trashroot.enabled`
    pub snapshot_trash_root: bool,
}

impl ServerDefaults {
    pub(super) fn read(reader: &Reader<'_>) -> Result<ServerDefaults, ConfigError> {
        let checksum = match reader.text("dfs.checksum.type")?.as_str() {
            "NULL" => Checksum::Null,
            "CRC32" => Checksum::Crc32,
            "CRC32C" => Checksum::Crc32C,
            other => {
                return Err(ConfigError::Contradiction(format!("Invalid checksum type in dfs.checksum.type: {other}")));
            }
        };
        let replication = reader.count("dfs.replication", 1)?;
        Ok(ServerDefaults {
            block_bytes: reader.bytes("dfs.blocksize")?,
            bytes_per_checksum: reader.count("dfs.bytes-per-checksum", 1)?,
            packet_bytes: reader.count("dfs.client-write-packet-size", 1)?,
            replication: u16::try_from(replication)
                .map_err(|_| reader.wrong("dfs.replication", format!("{replication} is too much")))?,
            buffer_bytes: reader.count("io.file.buffer.size", 0)?,
            encrypt_data_transfer: reader.boolean("dfs.encrypt.data.transfer")?,
            trash_interval_minutes: reader.long("fs.trash.interval")?,
            trash_round_minutes: reader.long("fs.trash.checkpoint.interval")?,
            trash_cleans_root: reader.boolean("fs.trash.clean.trashroot.enable")?,
            homes: reader.text("dfs.user.home.dir.prefix")?,
            checksum,
            key_provider: reader.optional("hadoop.security.key.provider.path")?.unwrap_or_default(),
            snapshot_trash_root: reader.boolean("dfs.namenode.snapshot.trashroot.enabled")?,
        })
    }
}
