//! Purpose: the NameNode's settings as one tree of Rust types, each field beside the key it comes from.
//! Called by: node (assembly), cli.
//! Calls: the configuration through `Reader` only.
//! Never: changes after it was read; `-refresh` style commands read a new one.
//! Invariants: every key a field comes from is marked `honoured` in the registry, and no other (a test compares).

mod address;
mod audit;
mod blocks;
mod caching;
mod encryption;
mod groups;
mod identity;
mod namespace;
mod passwords;
mod placement;
mod reader;
mod security;
mod slow;
mod storage;
mod support;
mod transport;

pub use address::Addresses;
pub use audit::Audit;
pub use blocks::{
    BlockReports, DatanodeHosts, DatanodeLiveness, HostsForm, LeavingWalks, Placement, RackMapping, Redundancy,
    SafeMode, Topology,
};
pub use caching::Caching;
pub use encryption::{KEY_PROVIDER, KEYS_OF_TRUSTSTORE, Keys, Reencryption, WarmUp};
pub use groups::Groups;
pub use identity::{Identity, identify, is_local_host};
pub use namespace::{Limits, NamespaceFeatures, Permissions, ServerDefaults};
pub use placement::{Apart, PlacementPolicy};
pub use reader::Reader;
pub use security::{Authentication, KEYS_OF_POLICY, Named, ProxyUser, Tokens};
pub use slow::SlowNodes;
pub use storage::{Checkpoints, EditLog, Format, Location, StorageDirectories};
pub use transport::{Http, HttpPolicy, RetryCache, Rpc};

use super::values::Unit;
use super::{ConfigError, Configuration};
use std::collections::BTreeMap;

/// All settings of one NameNode.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name service and NameNode id.
    pub identity: Identity,
    /// Where it listens.
    pub addresses: Addresses,
    /// Name and edits directories.
    pub directories: StorageDirectories,
    /// Rules for `-format`.
    pub format: Format,
    /// The edit log.
    pub edit_log: EditLog,
    /// When checkpoints are made and what is kept.
    pub checkpoints: Checkpoints,
    /// Limits of the tree and of answers about it.
    pub limits: Limits,
    /// What the tree supports.
    pub features: NamespaceFeatures,
    /// Permission checking.
    pub permissions: Permissions,
    /// What clients are told to use.
    pub server_defaults: ServerDefaults,
    /// Safe mode.
    pub safe_mode: SafeMode,
    /// Replication and its repair.
    pub redundancy: Redundancy,
    /// Choice of targets.
    pub placement: Placement,
    /// Heartbeats and staleness.
    pub liveness: DatanodeLiveness,
    /// Slow peers and disks.
    pub slow_nodes: SlowNodes,
    /// Block reports.
    pub block_reports: BlockReports,
    /// Which DataNodes may register.
    pub datanode_hosts: DatanodeHosts,
    /// Racks.
    pub topology: Topology,
    /// RPC servers.
    pub rpc: Rpc,
    /// Retry cache.
    pub retry_cache: RetryCache,
    /// Centralized caching.
    pub caching: Caching,
    /// HTTP server.
    pub http: Http,
    /// How callers prove who they are. The node refuses to start on what it does not support.
    pub authentication: Authentication,
    /// Keys of encryption zones.
    pub keys: Keys,
    /// Re-encryption of zones.
    pub reencryption: Reencryption,
    /// Delegation tokens.
    pub tokens: Tokens,
    /// The audit log.
    pub audit: Audit,
    /// Which holds of the state lock are told of in the log.
    pub lock_reporting: engine::Reporting,
    /// Group mapping.
    pub groups: Groups,
    /// Users that may act for others, by name.
    pub proxy_users: BTreeMap<String, ProxyUser>,
    /// What there is to say about the values; to be logged once.
    pub warnings: Vec<String>,
}

/// The part that `-format` and `-metadataVersion` need: an address that cannot be used does not stop them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineSettings {
    /// Name and edits directories.
    pub directories: StorageDirectories,
    /// Rules for `-format`.
    pub format: Format,
    /// Group of the root.
    pub superuser_group: String,
}

impl OfflineSettings {
    /// Reads them, after `identify`.
    pub fn read(configuration: &Configuration) -> Result<OfflineSettings, ConfigError> {
        let reader = &Reader::new(configuration);
        Ok(OfflineSettings {
            directories: StorageDirectories::read(reader)?,
            format: Format::read(reader)?,
            superuser_group: Permissions::read(reader)?.superuser_group,
        })
    }
}

impl Settings {
    /// Reads all of them. Call `identify` on the configuration first; it lets the keys of this NameNode's ids count.
    pub fn read(configuration: &Configuration, identity: Identity) -> Result<Settings, ConfigError> {
        Settings::read_with(&Reader::new(configuration), identity)
    }

    /// The same for a reader whose record of keys is wanted afterwards.
    pub fn read_with(reader: &Reader<'_>, identity: Identity) -> Result<Settings, ConfigError> {
        let directories = StorageDirectories::read(reader)?;
        if !directories.shared_edits.is_empty() && !identity.high_availability {
            return Err(ConfigError::Contradiction(
                "Invalid configuration: a shared edits dir must not be specified if HA is not enabled.".into(),
            ));
        }
        let mut settings = Settings {
            identity,
            addresses: Addresses::read(reader)?,
            directories,
            format: Format::read(reader)?,
            edit_log: EditLog::read(reader)?,
            checkpoints: Checkpoints::read(reader)?,
            limits: Limits::read(reader)?,
            features: NamespaceFeatures::read(reader)?,
            permissions: Permissions::read(reader)?,
            server_defaults: ServerDefaults::read(reader)?,
            safe_mode: SafeMode::read(reader)?,
            redundancy: Redundancy::read(reader)?,
            placement: Placement::read(reader)?,
            liveness: DatanodeLiveness::read(reader)?,
            slow_nodes: SlowNodes::read(reader)?,
            block_reports: BlockReports::read(reader)?,
            datanode_hosts: DatanodeHosts::read(reader)?,
            topology: Topology::read(reader)?,
            rpc: Rpc::read(reader)?,
            retry_cache: RetryCache::read(reader)?,
            caching: Caching::read(reader)?,
            http: Http::read(reader)?,
            authentication: Authentication::read(reader)?,
            keys: Keys::read(reader)?,
            reencryption: Reencryption::read(reader)?,
            tokens: Tokens::read(reader)?,
            audit: Audit::read(reader)?,
            lock_reporting: lock_reporting(reader)?,
            groups: Groups::read(reader)?,
            proxy_users: security::proxy_users(reader)?,
            warnings: Vec::new(),
        };
        settings.warnings = reader.warnings();
        Ok(settings)
    }
}

/// `dfs.namenode.{read,write}-lock-reporting-threshold-ms`, `dfs.lock.suppress.warning.interval`. Below 0 is as 0.
fn lock_reporting(reader: &Reader<'_>) -> Result<engine::Reporting, ConfigError> {
    let threshold = |key| Ok::<_, ConfigError>(u64::try_from(reader.long(key)?).unwrap_or(0));
    let interval = reader.duration("dfs.lock.suppress.warning.interval", Unit::Milliseconds)?;
    Ok(engine::Reporting {
        reads_ms: threshold("dfs.namenode.read-lock-reporting-threshold-ms")?,
        writes_ms: threshold("dfs.namenode.write-lock-reporting-threshold-ms")?,
        interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests;
