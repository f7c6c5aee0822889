//! Purpose: DataNodes, their volumes and reports, where replicas are, where they should be, and safe mode (Hadoop's `blockmanagement`).
//! Called by: state (blocks that come, change and go), ops (targets, locations, DataNode calls, rounds).
//! Calls: record (block and replica records by handle), mem, vocab.
//! Never: reads the tree, knows protobuf, locks, logs, sleeps, reads a clock; orders a deletion that could take a last good replica.
//! Invariants: `check` lists them; handles never outlive a call, queues hold ids; all state here is soft.

mod account;
mod admin;
mod caching;
mod check;
mod construction;
mod counting;
mod heartbeat;
mod hints;
mod hosts;
mod inspect;
mod locate;
mod mailbox;
mod node;
mod node_blocks;
pub mod placement;
pub mod policies;
mod recovery;
pub mod redundancy;
mod registry;
pub mod report;
mod safe_mode;
mod settings;
mod slow;
mod stats;
mod table;
mod topology;
mod truncation;
mod version;
mod volume;

pub use account::{Account, Names};
pub use admin::LeavingStatus;
pub use caching::Caching;
pub use construction::{Construction, Expected, block_text};
pub use counting::Count;
pub use heartbeat::{Heartbeat, HeartbeatAnswer};
pub use hosts::{HostEntry, Hosts};
pub use inspect::{Inspection, Place, RackSpread};
pub use locate::{Located, Reader};
pub use mailbox::{Command, Mailbox, NO_ACK, Rebuild, Recovery, Transfer};
pub use node::{AdminState, DatanodeId, Node, NodeNumber, NodeStats, VolumeFailures, with_port};
pub use node_blocks::NodeBlocks;
pub use placement::{Apart, Placement, Spread, Target, TargetRequest};
pub use redundancy::Round;
pub use registry::{Registration, Resolved, StorageInfo};
pub use report::{FullReport, IncrementalEntry, IncrementalKind, ReportContext, ReportStart, Reported};
pub use safe_mode::{SafeMode, Startup};
pub use settings::{AvailableSpace, Settings};
pub use slow::{DiskLatency, PeerLatency, SlowPeer};
pub use stats::{GroupStats, ReportKind, Stats};
pub use table::{Blocks, Counters};
pub use topology::{DEFAULT_RACK, Topology, distance};
pub use version::compare_versions;
pub use volume::{Volume, VolumeId, VolumeReport, VolumeState};

#[cfg(test)]
mod tests;
