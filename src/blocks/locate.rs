//! Where a reader finds a block.

use crate::counting::Standing;
use crate::placement::Target;
use crate::topology::distance;
use crate::{AdminState, Blocks, NodeNumber};
use rand::seq::SliceRandom;
use record::{BlockHandle, ReplicaFlags, Store};
use vocab::erasure_coding::REPLICATION;
use vocab::time::MonotonicMs;
use vocab::{Block, BlockState};

/// Replicas of a block for a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// Id, length and stamp.
    pub block: Block,
    /// Where, nearest first once [`Blocks::sort_locations`] was called.
    pub locations: Vec<Target>,
    /// Of a striped group, which internal block each place has; none for other blocks.
    pub indices: Option<Vec<u8>>,
    /// Whether all replicas are corrupt.
    pub corrupt: bool,
    /// Whether the block is complete.
    pub complete: bool,
}

/// Where a reader is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader<'a> {
    /// Its node, where it runs on one.
    pub node: Option<NodeNumber>,
    /// Else its rack, where that is known.
    pub location: Option<&'a str>,
}

/// Places and, of a striped group, what they have.
fn split(striped: bool, places: impl Iterator<Item = (Target, u8)>) -> (Vec<Target>, Option<Vec<u8>>) {
    let (locations, indices) = places.unzip();
    (locations, striped.then_some(indices))
}

impl Blocks {
    /// Replicas of a block in no order: expected places of an open one; of others the good ones, or the corrupt ones if there is no other.
    pub fn locate(&self, store: &Store, b: BlockHandle) -> Located {
        let info = store.block(b);
        let (block, striped) = (info.block, info.erasure_coding_policy != REPLICATION);
        if info.state != BlockState::Complete
            && let Some(c) = self.construction.get(&block.id)
        {
            let places = c.expected.iter().filter_map(|e| Some((self.target(e.storage)?, e.index)));
            let (locations, indices) = split(striped, places);
            return Located { block, locations, indices, corrupt: false, complete: false };
        }
        let replicas = store.replicas(b);
        if replicas.is_empty() && info.state == BlockState::Complete {
            let (locations, indices) = split(striped, self.hinted(store, b).into_iter());
            return Located { block, locations, indices, corrupt: false, complete: true };
        }
        let up = |s| self.volume_is_up(s);
        let total = replicas.iter().filter(|r| up(r.storage)).count();
        let bad = replicas.iter().filter(|r| up(r.storage) && r.flags.contains(ReplicaFlags::CORRUPT)).count();
        // a group is whole as long as enough internal blocks are good
        let corrupt =
            bad > 0 && if striped { self.count(store, b).live < self.minimum(&info, 0) } else { bad == total };
        let places = replicas
            .iter()
            .filter(|r| corrupt || !r.flags.contains(ReplicaFlags::CORRUPT))
            .filter(|r| {
                self.standing(**r)
                    .is_some_and(|(s, ..)| !matches!(s, Standing::Absent | Standing::MaintenanceNotForRead))
            })
            .filter_map(|r| Some((self.target(r.storage)?, r.index)));
        let (locations, indices) = split(striped, places);
        Located { block, locations, indices, corrupt, complete: info.state == BlockState::Complete }
    }

    /// Sorts locations for a reader: nodes in service before leaving and stale ones, then by distance, equally near ones in random order.
    pub fn sort_locations(&self, located: &mut Located, reader: &Reader<'_>, now: MonotonicMs) {
        if let Some(indices) = &mut located.indices {
            // a reader needs most of a group's places, whatever their distance: only those on nodes out of service go to the end
            let mut places: Vec<(Target, u8)> = located.locations.drain(..).zip(indices.drain(..)).collect();
            places.sort_by_key(|(t, _)| self.reluctance(t.node, now));
            (located.locations, *indices) = places.into_iter().unzip();
            return;
        }
        located.locations.shuffle(&mut self.random());
        let here = reader.node.and_then(|n| self.registry.node(n)).map(|n| (n.location.clone(), n.number));
        located.locations.sort_by_key(|t| {
            let reluctance = self.reluctance(t.node, now);
            let Some(node) = self.registry.node(t.node) else { return (reluctance, u32::MAX, 0) };
            if self.settings.random_for_read {
                return (reluctance, 0, 0); // they are shuffled
            }
            let near = match (&here, reader.location) {
                (Some((_, n)), _) if *n == t.node => 0,
                (Some((rack, _)), _) => distance((rack, "reader"), (&node.location, "node")),
                (None, Some(rack)) => distance((rack, "reader"), (&node.location, "node")),
                (None, None) => 0,
            };
            let second = match &self.settings {
                settings if settings.load_for_read => node.stats.xceivers,
                settings if settings.medium_for_read => t.kind as u32,
                _ => 0,
            };
            (reluctance, near, second)
        });
    }

    /// How late a place on this node comes, whatever its distance: by its state, then stale ones, then slow ones.
    fn reluctance(&self, n: NodeNumber, now: MonotonicMs) -> (u8, bool, bool) {
        let Some(node) = self.registry.node(n) else { return (3, true, true) };
        let state = match node.admin {
            AdminState::Decommissioned => 3,
            AdminState::Decommissioning => 2,
            AdminState::EnteringMaintenance => 1,
            _ => 0,
        };
        let settings = &self.settings;
        let stale = settings.avoid_stale_for_read && node.is_stale(now, settings.stale_interval_ms);
        (state, stale, settings.avoid_slow_for_read && self.is_slow(n))
    }
}
