//! The settings that operations obey, as plain values; `config` spells their keys.

use std::sync::Arc;
use vocab::TimeMs;

/// Settings of operations. Durations in milliseconds, sizes in bytes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Block pool of this name space: messages name blocks by it, and blocks of another pool are refused.
    pub block_pool: Arc<str>,
    /// When the file system was made (`cTime` of VERSION): times of what only seems to be there, as `/.reserved/raw`.
    pub created: TimeMs,
    /// `dfs.permissions.enabled`.
    pub permissions: bool,
    /// The user that runs the name node: superuser.
    pub owner: Arc<str>,
    /// `dfs.permissions.superusergroup`: its members are superusers.
    pub super_group: Arc<str>,
    /// `dfs.namenode.acls.enabled`.
    pub acls: bool,
    /// `dfs.namenode.posix.acl.inheritance.enabled`.
    pub acl_inheritance: bool,
    /// `dfs.namenode.xattrs.enabled`.
    pub xattrs: bool,
    /// `dfs.namenode.fs-limits.max-xattrs-per-inode`.
    pub xattrs_per_inode: usize,
    /// `dfs.namenode.fs-limits.max-xattr-size`.
    pub xattr_size: usize,
    /// `dfs.namenode.fs-limits.max-component-length`, in bytes; 0 for no limit.
    pub component_length: usize,
    /// `dfs.namenode.fs-limits.max-directory-items`.
    pub directory_items: usize,
    /// `dfs.namenode.fs-limits.min-block-size`.
    pub block_size_min: u64,
    /// `dfs.namenode.fs-limits.max-blocks-per-file`.
    pub blocks_per_file: usize,
    /// `dfs.namenode.max.objects`; 0 for no limit.
    pub objects_max: u64,
    /// `dfs.replication`.
    pub replication: u16,
    /// `dfs.namenode.replication.min`.
    pub replication_min: u16,
    /// `dfs.replication.max`.
    pub replication_max: u16,
    /// `dfs.blocksize`.
    pub block_size: u64,
    /// `dfs.bytes-per-checksum`.
    pub bytes_per_checksum: u32,
    /// `dfs.checksum.type` (wire number: 0 none, 1 CRC32, 2 CRC32C).
    pub checksum_type: u8,
    /// `dfs.client-write-packet-size`.
    pub write_packet_size: u32,
    /// `io.file.buffer.size`.
    pub file_buffer_size: u32,
    /// `dfs.encrypt.data.transfer`.
    pub encrypt_data_transfer: bool,
    /// `fs.trash.interval` in minutes.
    pub trash_interval: u64,
    /// `hadoop.security.key.provider.path`.
    pub key_provider: Option<Arc<str>>,
    /// `dfs.namenode.snapshot.trashroot.enabled`.
    pub snapshot_trash_root: bool,
    /// `dfs.namenode.accesstime.precision`; 0 switches access times off.
    pub access_time_precision_ms: u64,
    /// `dfs.ls.limit`.
    pub listing_limit: usize,
    /// `dfs.namenode.snapshot.max.limit`: snapshots of one directory.
    pub snapshots_of_directory: usize,
    /// `dfs.namenode.snapshot.filesystem.limit`: snapshots of all.
    pub snapshots_of_all: usize,
    /// `dfs.namenode.snapshotdiff.listing.limit`: entries of a page of a report.
    pub snapshot_changes_listed: usize,
    /// `dfs.namenode.snapshotdiff.allow.snap-root-descendant`: whether reports are made of what is below a directory with snapshots.
    pub snapshot_reports_below: bool,
    /// `dfs.batched.ls.limit`.
    pub batched_listing_limit: usize,
    /// `dfs.namenode.list.openfiles.num.responses`.
    pub open_files_limit: usize,
    /// `dfs.namenode.list.encryption.zones.num.responses`.
    pub zones_listed: usize,
    /// `dfs.namenode.list.reencryption.status.num.responses`.
    pub reencryption_listed: usize,
    /// Whether delegation tokens are issued (`dfs.namenode.delegation.token.always-use`).
    pub tokens: bool,
    /// `dfs.namenode.delegation.key.update-interval`.
    pub token_key_interval_ms: u64,
    /// `dfs.namenode.delegation.token.max-lifetime`.
    pub token_lifetime_ms: u64,
    /// `dfs.namenode.delegation.token.renew-interval`.
    pub token_renewal_ms: u64,
    /// `dfs.namenode.inotify.max.events.per.rpc`; an answer ends with the record that reaches it.
    pub events_per_call: i32,
    /// `dfs.namenode.max.op.size`: bytes of the largest edit record that is read.
    pub record_bytes_max: usize,
    /// `dfs.namenode.list.cache.pools.num.responses`.
    pub cache_pools_listed: usize,
    /// `dfs.namenode.list.cache.directives.num.responses`.
    pub cache_directives_listed: usize,
    /// Inodes that a content summary counts before it lets others have their turn (`dfs.content-summary.limit`); 0 for no limit of its own.
    pub summary_slice: usize,
    /// Microseconds that it rests then (`dfs.content-summary.sleep-microsec`).
    pub summary_rest_micros: u64,
    /// Files in one answer to listCorruptFileBlocks (`dfs.namenode.max-corrupt-file-blocks-returned`).
    pub corrupt_files_limit: usize,
    /// `dfs.permissions.ContentSummary.subAccess`.
    pub summary_checks_subtree: bool,
    /// `dfs.namenode.file.close.num-committed-allowed`.
    pub committed_blocks_allowed: usize,
    /// `dfs.namenode.lease-hard-limit-sec` in milliseconds.
    pub lease_hard_limit_ms: u64,
    /// `dfs.client.block.write.replace-datanode-on-failure.enable`.
    pub replace_datanode: bool,
    /// `dfs.storage.policy.enabled`.
    pub storage_policies: bool,
    /// `dfs.quota.by.storage.type.enabled`.
    pub quota_by_kind: bool,
    /// `dfs.permissions.allow.owner.set.quota`.
    pub owner_sets_quota: bool,
    /// `fs.protected.directories`: cannot be deleted or renamed while not empty.
    pub protected_directories: Vec<Vec<u8>>,
    /// `dfs.protected.subdirectories.enable`.
    pub protected_subdirectories: bool,
    /// `dfs.namenode.ec.system.default.policy`: enabled at every start; empty for none.
    pub erasure_coding_default: Arc<str>,
    /// `dfs.namenode.ec.policies.max.cellsize`.
    pub erasure_coding_cell_max: u32,
    /// `dfs.namenode.ec.userdefined.policy.allowed`.
    pub erasure_coding_user_defined: bool,
    /// Whether `dfs.storage.policy.satisfier.mode` asks for a satisfier.
    pub storage_policy_satisfier: bool,
    /// `dfs.storage.default.policy`, by its number.
    pub default_policy: u8,
    /// `dfs.storage.policy.satisfier.max.outstanding.paths`: what may wait for it.
    pub satisfier_queue: usize,
    /// `dfs.storage.policy.permissions.superuser-only`: whether storage policies are set by superusers only.
    pub storage_policies_of_superusers: bool,
    /// Whether the blocks of a DataNode are told to balancers only where reads are served (`dfs.namenode.get-blocks.check.operation`).
    pub get_blocks_is_a_read: bool,
    /// Whether symbolic links may be made (no key in Hadoop; off).
    pub symlinks: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            block_pool: "".into(),
            created: TimeMs(0),
            permissions: true,
            owner: "hdfs".into(),
            super_group: "supergroup".into(),
            acls: true,
            acl_inheritance: true,
            xattrs: true,
            xattrs_per_inode: 32,
            xattr_size: 16_384,
            component_length: 255,
            directory_items: 1_048_576,
            block_size_min: 1_048_576,
            blocks_per_file: 10_000,
            objects_max: 0,
            replication: 3,
            replication_min: 1,
            replication_max: 512,
            block_size: 134_217_728,
            bytes_per_checksum: 512,
            checksum_type: 2,
            write_packet_size: 65_536,
            file_buffer_size: 4_096,
            encrypt_data_transfer: false,
            trash_interval: 0,
            key_provider: None,
            snapshot_trash_root: false,
            access_time_precision_ms: 3_600_000,
            listing_limit: 1_000,
            snapshots_of_directory: 65_536,
            snapshots_of_all: 65_536,
            snapshot_changes_listed: 1_000,
            snapshot_reports_below: true,
            batched_listing_limit: 100,
            open_files_limit: 1_000,
            zones_listed: 100,
            reencryption_listed: 100,
            tokens: false,
            token_key_interval_ms: 86_400_000,
            token_lifetime_ms: 604_800_000,
            token_renewal_ms: 86_400_000,
            events_per_call: 1_000,
            record_bytes_max: 52_428_800,
            cache_pools_listed: 100,
            cache_directives_listed: 100,
            summary_slice: 5_000,
            summary_rest_micros: 500,
            corrupt_files_limit: 100,
            summary_checks_subtree: false,
            committed_blocks_allowed: 0,
            lease_hard_limit_ms: 1_200_000,
            replace_datanode: true,
            storage_policies: true,
            quota_by_kind: true,
            owner_sets_quota: false,
            protected_directories: Vec::new(),
            protected_subdirectories: false,
            erasure_coding_default: "RS-6-3-1024k".into(),
            erasure_coding_cell_max: 4_194_304,
            erasure_coding_user_defined: true,
            storage_policy_satisfier: false,
            satisfier_queue: 10_000,
            default_policy: vocab::storage_policy::HOT,
            storage_policies_of_superusers: false,
            get_blocks_is_a_read: true,
            symlinks: false,
        }
    }
}
