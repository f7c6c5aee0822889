//! A DataNode as the NameNode knows it.

use crate::mailbox::Mailbox;
use record::StorageNumber;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use vocab::TimeMs;
use vocab::time::{MonotonicMs, Now};

/// Number of a DataNode within this process; given out in order of first registration, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct NodeNumber(pub u32);

/// What a DataNode says it is (Hadoop's `DatanodeID`).
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default)]
pub struct DatanodeId {
    /// Address of its data and control ports, without brackets.
    pub ip: Arc<str>,
    /// Host name.
    pub host: Arc<str>,
    /// Its own lasting id.
    pub uuid: Arc<str>,
    /// Data transfer port.
    pub transfer_port: u16,
    /// HTTP port.
    pub info_port: u16,
    /// HTTPS port, 0 for none.
    pub info_secure_port: u16,
    /// RPC port.
    pub ipc_port: u16,
}

impl DatanodeId {
    /// `ip:port` of the data transfer port; an IPv6 literal goes in brackets.
    pub fn transfer_address(&self) -> String {
        with_port(&self.ip, self.transfer_port)
    }
    /// `ip:port` of the HTTP port.
    pub fn info_address(&self) -> String {
        with_port(&self.ip, self.info_port)
    }
    /// `ip:port` of the HTTPS port.
    pub fn info_secure_address(&self) -> String {
        with_port(&self.ip, self.info_secure_port)
    }
}

/// An address with a port; a literal with colons goes in brackets so that the last colon is always the port's.
pub fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl fmt::Display for DatanodeId {
    /// The transfer address, as Hadoop prints a DataNode.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.transfer_address())
    }
}

/// Administrative state (Hadoop's `AdminStates`, same order as on the wire).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum AdminState {
    /// In service.
    #[default]
    Normal = 0,
    /// Being decommissioned: its replicas are copied away.
    Decommissioning = 1,
    /// Decommissioned.
    Decommissioned = 2,
    /// On its way into maintenance.
    EnteringMaintenance = 3,
    /// In maintenance.
    InMaintenance = 4,
}

/// Figures of the last heartbeat, summed over the volumes; bytes unless said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // as in the heartbeat message
pub struct NodeStats {
    pub capacity: u64,
    pub dfs_used: u64,
    pub remaining: u64,
    pub block_pool_used: u64,
    pub non_dfs_used: u64,
    pub cache_capacity: u64,
    pub cache_used: u64,
    /// Transfer threads in use.
    pub xceivers: u32,
    /// Copies being received or sent on the NameNode's order.
    pub transfers: u32,
    /// Volumes that failed since the DataNode started.
    pub volume_failures: u32,
}

/// What a DataNode says of its failed volumes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VolumeFailures {
    /// Locations of the failed volumes.
    pub locations: Vec<Arc<str>>,
    /// When the last one failed.
    pub last_failure: TimeMs,
    /// Estimate of the capacity lost, in bytes.
    pub capacity_lost: u64,
}

/// A registered DataNode.
#[derive(Debug)]
pub struct Node {
    /// Its number.
    pub number: NodeNumber,
    /// What it says it is.
    pub id: DatanodeId,
    /// Software version, such as `3.5.0`.
    pub software_version: Arc<str>,
    /// Rack, such as `/default-rack`.
    pub location: Arc<str>,
    /// The part of it that is the rack: all of it, unless there are node groups.
    pub rack: Arc<str>,
    /// Upgrade domain of the hosts file.
    pub upgrade_domain: Option<Arc<str>>,
    /// Administrative state.
    pub admin: AdminState,
    /// When its maintenance ends.
    pub maintenance_expires: TimeMs,
    /// Whether its heartbeats arrive. A node that never sent one is not alive.
    pub alive: bool,
    /// Whether it may send reports: set by a registration, cleared when it is declared dead or disallowed.
    pub registered: bool,
    /// Whether a refreshed hosts file shut it out.
    pub disallowed: bool,
    /// Its volumes, in the order they were first seen.
    pub volumes: SmallVec<[StorageNumber; 12]>,
    /// Figures of the last heartbeat.
    pub stats: NodeStats,
    /// Failed volumes as last told.
    pub volume_failures: Option<VolumeFailures>,
    /// Last heartbeat.
    pub last_update: MonotonicMs,
    /// Last heartbeat by the wall clock.
    pub last_update_wall: TimeMs,
    /// Last full report; zero for none.
    pub last_report: MonotonicMs,
    /// Last full report by the wall clock.
    pub last_report_wall: TimeMs,
    /// Whether a heartbeat came since the last registration.
    pub heartbeat_since_registration: bool,
    /// Blocks that writers were sent here for and that did not arrive yet, by storage kind: this interval and the last.
    pub(crate) scheduled: [[u32; 6]; 2],
    /// When the two intervals last changed places.
    pub(crate) scheduled_rolled: MonotonicMs,
    /// Commands waiting for the next heartbeat.
    pub mailbox: Mailbox,
    /// Replicas lost by its death or removal that are not worked off yet.
    pub(crate) draining: bool,
}

impl Node {
    /// A node that was not heard from yet.
    pub(crate) fn new(number: NodeNumber, id: DatanodeId, now: Now) -> Node {
        Node {
            number,
            id,
            software_version: "".into(),
            location: crate::DEFAULT_RACK.into(),
            rack: crate::DEFAULT_RACK.into(),
            upgrade_domain: None,
            admin: AdminState::Normal,
            maintenance_expires: TimeMs(0),
            alive: false,
            registered: false,
            disallowed: false,
            volumes: SmallVec::new(),
            stats: NodeStats::default(),
            volume_failures: None,
            last_update: now.monotonic,
            last_update_wall: now.wall,
            last_report: MonotonicMs(0),
            last_report_wall: TimeMs(0),
            heartbeat_since_registration: false,
            scheduled: [[0; 6]; 2],
            scheduled_rolled: now.monotonic,
            mailbox: Mailbox::default(),
            draining: false,
        }
    }
    /// Whether it serves: neither leaving, gone, nor in maintenance.
    pub fn in_service(&self) -> bool {
        self.admin == AdminState::Normal
    }
    /// Whether nothing was heard from it for `stale_ms`.
    pub fn is_stale(&self, now: MonotonicMs, stale_ms: u64) -> bool {
        now.since(self.last_update) >= stale_ms
    }
    /// Blocks that writers were sent here for and that did not arrive yet.
    pub fn blocks_scheduled(&self) -> u64 {
        self.scheduled.iter().flatten().map(|n| u64::from(*n)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T84: a DataNode on an IPv6 address gets well-formed addresses.
    #[test]
    fn datanode_on_an_ipv6_address_hdfs_17834() {
        let id = DatanodeId { ip: "::1".into(), transfer_port: 9866, info_port: 9864, ..DatanodeId::default() };
        assert_eq!(id.to_string(), "[::1]:9866");
        assert_eq!(id.info_address(), "[::1]:9864");
        let id = DatanodeId { ip: "127.0.0.1".into(), transfer_port: 9866, ..DatanodeId::default() };
        assert_eq!(id.to_string(), "127.0.0.1:9866");
    }
}
