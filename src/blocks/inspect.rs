//! What somebody who checks files is shown of a block and its replicas (Hadoop's `NamenodeFsck`).

use crate::counting::{Count, EXCESS};
use crate::redundancy::CorruptReason;
use crate::{Blocks, Node, Volume, VolumeState};
use record::{BlockHandle, ReplicaFlags, Store};
use std::collections::BTreeSet;
use vocab::BlockState;
use vocab::erasure_coding::REPLICATION;
use vocab::time::MonotonicMs;

/// A replica, or a place where one is expected.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its DataNode.
    pub node: &'a Node,
    /// Its volume.
    pub volume: &'a Volume,
    /// Number within a striped group.
    pub index: u8,
    /// Why it is corrupt, if it is.
    pub corrupt: Option<CorruptReason>,
    /// It is more than needed.
    pub excess: bool,
    /// Nothing was heard from the DataNode for a while.
    pub stale_node: bool,
}

/// Racks that a block is on and should be on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RackSpread {
    /// Racks with a replica.
    pub racks: usize,
    /// Racks that there should be.
    pub required: usize,
    /// Racks that there are.
    pub all: usize,
}

impl RackSpread {
    /// Whether the block is spread as far as it can be.
    pub fn suffices(&self) -> bool {
        self.required <= self.racks || self.racks >= self.all
    }
}

/// A block as it stands.
#[derive(Clone, Debug)]
pub struct Inspection<'a> {
    /// Replicas by standing.
    pub count: Count,
    /// Replicas that there should be.
    pub wanted: u32,
    /// Fewest replicas that it can be read from.
    pub minimum: u32,
    /// It is a striped group.
    pub striped: bool,
    /// Replicas of a complete block; else where they are expected.
    pub places: Vec<Place<'a>>,
}

impl Blocks {
    /// All of a block.
    pub fn inspect<'a>(&'a self, store: &Store, b: BlockHandle, now: MonotonicMs) -> Inspection<'a> {
        let info = store.block(b);
        let construction = self.construction.get(&info.block.id).filter(|_| info.state != BlockState::Complete);
        let places = match construction {
            Some(c) => c.expected.iter().filter_map(|e| self.place(e.storage, e.index, now)).collect(),
            None => {
                let replicas = store.replicas(b).into_iter();
                let place = |r: record::Replica| {
                    let place = self.place(r.storage, r.index, now)?;
                    let reasons = self.corrupt.of(info.block.id);
                    let reason = reasons.iter().find(|(node, _)| *node == place.node.number).map(|(_, reason)| *reason);
                    let corrupt =
                        r.flags.contains(ReplicaFlags::CORRUPT).then(|| reason.unwrap_or(CorruptReason::None));
                    Some(Place { corrupt, excess: r.flags.contains(EXCESS), ..place })
                };
                replicas.filter_map(place).collect()
            }
        };
        Inspection {
            count: self.count(store, b),
            wanted: self.wanted(&info),
            minimum: self.minimum(&info, self.settings.replication_min),
            striped: info.erasure_coding_policy != REPLICATION,
            places,
        }
    }

    fn place(&self, storage: record::StorageNumber, index: u8, now: MonotonicMs) -> Option<Place<'_>> {
        let volume = self.registry.volume(storage).filter(|volume| volume.state != VolumeState::Failed)?;
        let node = self.registry.node(volume.node)?;
        let stale_node = node.is_stale(now, self.settings.stale_interval_ms);
        Some(Place { node, volume, index, corrupt: None, excess: false, stale_node })
    }

    /// How a block with replicas in these racks is spread: replicated ones want two racks, striped ones as many as they have blocks.
    pub fn rack_spread<'a>(&self, racks: impl Iterator<Item = &'a str>, wanted: usize, striped: bool) -> RackSpread {
        let topology = &self.registry.topology;
        let evenly = striped || self.settings.spread_evenly;
        if !striped && !topology.ever_multi_rack() {
            return RackSpread { racks: 1, required: 1, all: 1 };
        }
        let (racks, all) = (racks.collect::<BTreeSet<_>>().len(), topology.rack_count());
        RackSpread { racks, required: wanted.min(if evenly { all } else { 2 }), all }
    }
}
