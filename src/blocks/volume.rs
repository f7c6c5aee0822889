//! A storage of a DataNode: one volume, with its figures and the state of its reports.

use crate::NodeNumber;
use record::StorageNumber;
use std::sync::Arc;
use vocab::StorageKind;

/// State of a storage as its DataNode reports it, or as the NameNode concludes (Hadoop's `DatanodeStorage.State`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum VolumeState {
    /// Writable.
    #[default]
    Normal = 0,
    /// Shared read-only storage: its replicas do not count for redundancy.
    ReadOnlyShared = 1,
    /// Failed: the heartbeats do not list it any more.
    Failed = 2,
}

/// Identity of a storage as messages carry it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeId {
    /// Id, such as `DS-...`; unique within the DataNode.
    pub id: Arc<str>,
    /// State.
    pub state: VolumeState,
    /// Medium.
    pub kind: StorageKind,
}

/// Figures of one storage in a heartbeat, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // as in the heartbeat message
pub struct VolumeReport {
    pub volume: VolumeId,
    pub failed: bool,
    pub capacity: u64,
    pub dfs_used: u64,
    pub remaining: u64,
    pub block_pool_used: u64,
    pub non_dfs_used: u64,
    pub mount: Option<Arc<str>>,
}

/// A storage.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its number, as replica entries hold it.
    pub number: StorageNumber,
    /// The DataNode it belongs to.
    pub node: NodeNumber,
    /// Its id within the DataNode.
    pub id: Arc<str>,
    /// Medium.
    pub kind: StorageKind,
    /// State.
    pub state: VolumeState,
    /// Figures of the last heartbeat, in bytes.
    pub capacity: u64,
    /// Used by all block pools.
    pub dfs_used: u64,
    /// Free for HDFS.
    pub remaining: u64,
    /// Used by this block pool.
    pub block_pool_used: u64,
    /// Used by others.
    pub non_dfs_used: u64,
    /// Where it is mounted on its host.
    pub mount: Option<Arc<str>>,
    /// Full reports since the last registration.
    pub reports: u32,
    /// Whether its content may differ from what is known here: true from start or failover until a full report that began after the
    /// first heartbeat since. While it is, no decision to delete rests on its replicas.
    pub contents_stale: bool,
    /// Whether a heartbeat came since start or failover.
    pub heartbeat_since_failover: bool,
    /// Changes with every full report that begins and with every registration: a report under way notices that it is overtaken.
    pub(crate) report_epoch: u32,
    /// Blocks that came during a full report under way: their absence from it means nothing.
    pub(crate) came_during_report: Option<hashbrown::HashSet<i64>>,
    /// Ids of the blocks it holds.
    pub(crate) blocks: mem::runs::Run,
}

impl Volume {
    /// How many blocks it holds.
    pub fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }
}
