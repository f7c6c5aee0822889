//! How many replicas of which standing a block has (Hadoop's `NumberReplicas`). Of a striped group each internal block counts once, however
//! many DataNodes have it.

use crate::{AdminState, Blocks, Node, NodeNumber, Volume, VolumeState};
use record::{BlockHandle, BlockInfo, Replica, ReplicaFlags, StorageNumber, Store};
use smallvec::SmallVec;
use vocab::erasure_coding::{REPLICATION, Stripe};
use vocab::{Block, BlockId, BlockState};

/// The replica is more than needed and queued for deletion.
pub(crate) const EXCESS: ReplicaFlags = ReplicaFlags::SPARE_1;

/// Replicas of a block by standing. Those on dead nodes and failed volumes count nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // Hadoop's names
pub struct Count {
    pub live: u32,
    pub read_only: u32,
    pub decommissioning: u32,
    pub decommissioned: u32,
    pub maintenance_for_read: u32,
    pub maintenance_not_for_read: u32,
    pub corrupt: u32,
    pub excess: u32,
    /// Live internal blocks of a striped group of which another copy is live; they are not in `live`.
    pub redundant: u32,
    /// Of all of these, those on volumes whose content is not known to be up to date.
    pub stale: u32,
}

impl Count {
    /// Replicas on nodes that leave or are in maintenance.
    pub fn out_of_service(&self) -> u32 {
        self.decommissioning + self.decommissioned + self.maintenance()
    }
    /// Replicas on nodes in or entering maintenance.
    pub fn maintenance(&self) -> u32 {
        self.maintenance_for_read + self.maintenance_not_for_read
    }
    /// Replicas that let a block be completed.
    pub fn usable(&self) -> u32 {
        self.live + self.decommissioning + self.maintenance_for_read
    }
}

/// Standing of one replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Absent,
    Live,
    ReadOnly,
    Decommissioning,
    Decommissioned,
    MaintenanceForRead,
    MaintenanceNotForRead,
    Corrupt,
    Excess,
}

impl Blocks {
    /// Standing of a replica, with its volume and node; `None` where its volume is gone.
    pub(crate) fn standing(&self, replica: Replica) -> Option<(Standing, &Volume, &Node)> {
        let volume = self.registry.volume(replica.storage)?;
        let node = self.registry.node(volume.node)?;
        if volume.state == VolumeState::Failed {
            return Some((Standing::Absent, volume, node));
        }
        let standing = if !node.alive && node.admin != AdminState::InMaintenance {
            Standing::Absent
        } else if replica.flags.contains(ReplicaFlags::CORRUPT) {
            Standing::Corrupt
        } else if self.safe_mode.is_startup() {
            if replica.flags.contains(EXCESS) { Standing::Excess } else { Standing::Live }
        } else if volume.state == VolumeState::ReadOnlyShared {
            Standing::ReadOnly
        } else {
            match node.admin {
                AdminState::Decommissioning => Standing::Decommissioning,
                AdminState::Decommissioned => Standing::Decommissioned,
                AdminState::InMaintenance => Standing::MaintenanceNotForRead,
                AdminState::EnteringMaintenance => Standing::MaintenanceForRead,
                AdminState::Normal if replica.flags.contains(EXCESS) => Standing::Excess,
                AdminState::Normal => Standing::Live,
            }
        };
        Some((standing, volume, node))
    }

    /// Counts a block's replicas.
    pub fn count(&self, store: &Store, b: BlockHandle) -> Count {
        let (info, replicas) = store.block_and_replicas(b);
        self.count_of(info.erasure_coding_policy != REPLICATION, &replicas)
    }
    /// Counts these replicas of a block or of a striped group.
    pub(crate) fn count_of(&self, striped: bool, replicas: &[Replica]) -> Count {
        let mut count = Count::default();
        // internal blocks met so far, as bits
        let (mut live, mut leaving) = (0u16, 0u16);
        for replica in replicas {
            let Some((standing, volume, _)) = self.standing(*replica) else { continue };
            let unit = 1u16 << replica.index;
            match standing {
                Standing::Absent => continue,
                Standing::Live if striped && live & unit != 0 => count.redundant += 1,
                Standing::Live => {
                    count.live += 1;
                    live |= unit;
                }
                Standing::ReadOnly => count.read_only += 1,
                Standing::Decommissioning if striped => leaving |= unit,
                Standing::Decommissioning => count.decommissioning += 1,
                Standing::Decommissioned => count.decommissioned += 1,
                Standing::MaintenanceForRead => count.maintenance_for_read += 1,
                Standing::MaintenanceNotForRead => count.maintenance_not_for_read += 1,
                Standing::Corrupt => count.corrupt += 1,
                Standing::Excess => count.excess += 1,
            }
            count.stale += u32::from(volume.contents_stale);
        }
        // one that is live elsewhere need not be copied away
        count.decommissioning += (leaving & !live).count_ones();
        count
    }

    /// The replica of a block on a node, whichever volume it is on.
    pub(crate) fn replica_on(&self, store: &Store, b: BlockHandle, node: NodeNumber) -> Option<Replica> {
        store.replicas(b).into_iter().find(|r| self.node_of(r.storage) == Some(node))
    }

    /// Racks of the replicas that count as live.
    pub(crate) fn live_storages(&self, store: &Store, b: BlockHandle) -> SmallVec<[StorageNumber; 4]> {
        store
            .replicas(b)
            .into_iter()
            .filter(|r| self.standing(*r).is_some_and(|(s, ..)| s == Standing::Live))
            .map(|r| r.storage)
            .collect()
    }

    /// Whether a block counts as safe in safe mode: enough live replicas.
    pub(crate) fn is_safe(&self, store: &Store, b: BlockHandle) -> bool {
        self.count(store, b).live >= self.minimum(&store.block(b), self.settings.safe_replication_min)
    }

    /// Whether enough replicas are reported for a committed block to be complete.
    pub fn has_minimum(&self, store: &Store, b: BlockHandle) -> bool {
        self.count(store, b).usable() >= self.minimum(&store.block(b), self.settings.replication_min)
    }

    /// Fewest replicas that a block can be read from: of a striped group as many internal blocks as have data, else `replicas`.
    pub(crate) fn minimum(&self, info: &BlockInfo, replicas: u16) -> u32 {
        self.stripe(info).map_or(replicas.into(), |stripe| data_blocks(info, &stripe))
    }

    /// Replicas, or internal blocks, that a block is to have (Hadoop's `getExpectedRedundancyNum`): a group that does not fill its data blocks has fewer.
    pub(crate) fn wanted(&self, info: &BlockInfo) -> u32 {
        match self.stripe(info) {
            Some(stripe) => data_blocks(info, &stripe) + u32::from(stripe.parity_units),
            None => info.replication.into(),
        }
    }

    /// Replicas that must be live for a block to need no work: the wanted ones, less those in maintenance as long as the minimum for
    /// maintenance stays.
    pub(crate) fn required_live(&self, info: &BlockInfo, count: &Count) -> u32 {
        let wanted = self.wanted(info);
        if count.maintenance() == 0 {
            return wanted;
        }
        let floor = self.minimum(info, self.settings.maintenance_replication_min.min(info.replication));
        wanted.saturating_sub(count.maintenance()).max(floor)
    }

    /// Layout of a striped group; `None` for replicated blocks.
    pub(crate) fn stripe(&self, info: &BlockInfo) -> Option<Stripe> {
        self.stripes.get(&info.erasure_coding_policy).copied()
    }

    /// The replica as its DataNode knows it: of a striped group the internal block, under its own id. The length stays the group's, as in Hadoop's
    /// `getBlockOnStorage`.
    pub(crate) fn on_storage(info: &BlockInfo, replica: Replica) -> Block {
        Block { id: BlockId(info.block.id.0 + i64::from(replica.index)), ..info.block }
    }

    /// Whether `named`, an id on a DataNode, is this replica: of a striped group it must be the same internal block.
    pub(crate) fn is_same_unit(info: &BlockInfo, replica: Replica, named: BlockId) -> bool {
        info.erasure_coding_policy == REPLICATION || named.index_in_group() == replica.index
    }
}

/// Internal blocks with data; all data blocks as long as the length is not final.
fn data_blocks(info: &BlockInfo, stripe: &Stripe) -> u32 {
    let units = u64::from(stripe.data_units);
    match info.state {
        BlockState::Complete | BlockState::Committed => {
            let cells = info.block.length.saturating_sub(1) / u64::from(stripe.cell_size.max(1)) + 1;
            cells.min(units) as u32
        }
        BlockState::UnderConstruction | BlockState::UnderRecovery => units as u32,
    }
}
