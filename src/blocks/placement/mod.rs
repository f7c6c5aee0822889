//! Purpose: where replicas go, and which of too many are deleted (Hadoop's `BlockPlacementPolicyDefault`,
//! for striped groups `BlockPlacementPolicyRackFaultTolerant`).
//! Called by: `ops` (new blocks, additional DataNodes), redundancy (copies, excess replicas).
//! Calls: registry, topology, policies.
//! Never: changes anything: a choice is a value.
//! Invariants: chosen targets are on distinct nodes in service, none of them excluded; a choice to delete never takes the last replica of a rack
//! while another rack has two.

mod apart;
mod chooser;
mod excess;
mod load;

pub(crate) use apart::split_location;
pub use apart::{Apart, Spread};
pub use excess::{choose_duplicates, choose_excess};

use crate::{Blocks, NodeNumber, VolumeState, policies};
use chooser::Chooser;
use hashbrown::HashSet;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use record::StorageNumber;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vocab::StorageKind;
use vocab::storage_policy::UNSPECIFIED;
use vocab::time::MonotonicMs;

/// A volume with its node and medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Target {
    /// Volume.
    pub storage: StorageNumber,
    /// Its DataNode.
    pub node: NodeNumber,
    /// Its medium.
    pub kind: StorageKind,
}

/// What is asked of placement.
#[derive(Clone, Debug, Default)]
pub struct TargetRequest<'a> {
    /// Node that writes, where the writer is one; see [`Blocks::node_at`].
    pub writer: Option<NodeNumber>,
    /// Rack of a writer that is no node.
    pub writer_location: Option<&'a str>,
    /// How many more replicas.
    pub replicas: usize,
    /// Size a replica may grow to, in bytes.
    pub block_size: u64,
    /// Storage policy number.
    pub storage_policy: u8,
    /// Replicas that are there already; they count for racks and media.
    pub existing: &'a [StorageNumber],
    /// Nodes that are no targets.
    pub excluded: &'a [NodeNumber],
    /// Nodes that the client would like, tried first in this order.
    pub favored: &'a [NodeNumber],
    /// Not on the writer's node, if there is another way.
    pub no_local_write: bool,
    /// Not on the writer's rack, if there is another way.
    pub no_local_rack: bool,
    /// Pay no attention to where the writer is.
    pub ignore_client_locality: bool,
    /// Whether these are the first replicas of a block.
    pub new_block: bool,
    /// Whether they are internal blocks of a striped group: these are spread evenly over all racks.
    pub striped: bool,
}

/// What placement found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// New targets, in pipeline order from the writer; may be fewer than asked.
    pub targets: Vec<Target>,
    /// Nodes that were excluded in the end: those of the request and those tried in vain or taken.
    pub excluded: usize,
}

impl Blocks {
    pub(crate) fn random(&self) -> SmallRng {
        let n = self.draws.fetch_add(1, Ordering::Relaxed);
        SmallRng::seed_from_u64(self.seed ^ n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The node on a host, by address or name; any one of several.
    pub fn node_at(&self, host: &str) -> Option<NodeNumber> {
        match self.registry.by_host(host) {
            [] => None,
            [one] => Some(*one),
            several => Some(several[self.random().random_range(0..several.len())]),
        }
    }

    /// Chooses targets. Never fails: fewer than asked come back where there are no more.
    pub fn choose_targets(&self, request: &TargetRequest<'_>, now: MonotonicMs) -> Placement {
        let mut excluded: HashSet<NodeNumber> = request.excluded.iter().copied().collect();
        let mut placed: Vec<Target> = Vec::new();
        // favoured nodes first: each gets a replica if it is a good target (HDFS-2576)
        for n in request.favored {
            if placed.len() == request.replicas {
                break;
            }
            let mut c = Chooser::new(self, request, &placed, excluded.clone(), now);
            if let Some(t) = c.on_node(*n) {
                excluded.insert(t.node);
                placed.push(t);
            }
        }
        // then nodes of their groups
        for n in request.favored {
            if placed.len() == request.replicas || placed.iter().any(|t| t.node == *n) {
                continue;
            }
            let mut c = Chooser::new(self, request, &placed, excluded.clone(), now);
            if let Some(t) = c.near_favored(*n) {
                excluded.insert(t.node);
                placed.push(t);
            }
        }
        let rest = request.replicas - placed.len();
        if rest > 0 {
            excluded = self.choose_rest(request, rest, &mut placed, excluded, now);
        }
        let count = excluded.len();
        self.order_pipeline(request, &mut placed);
        Placement { targets: placed, excluded: count }
    }

    fn choose_rest(
        &self,
        request: &TargetRequest<'_>,
        rest: usize,
        placed: &mut Vec<Target>,
        excluded: HashSet<NodeNumber>,
        now: MonotonicMs,
    ) -> HashSet<NodeNumber> {
        let avoid_node = request.writer.filter(|w| request.no_local_write && !excluded.contains(w));
        if avoid_node.is_some() || request.no_local_rack {
            let mut narrowed = excluded.clone();
            narrowed.extend(avoid_node);
            if request.no_local_rack
                && let Some(rack) = self.writer_rack(request)
            {
                narrowed.extend(self.registry.nodes().filter(|n| *n.rack == *rack).map(|n| n.number));
            }
            let mut c = Chooser::new(self, request, placed, narrowed, now);
            c.choose(rest);
            if c.chosen().len() == rest {
                placed.extend_from_slice(c.chosen());
                return excluded;
            }
        }
        let mut c = Chooser::new(self, request, placed, excluded, now);
        c.choose(rest);
        placed.extend_from_slice(c.chosen());
        c.into_excluded()
    }

    pub(crate) fn writer_rack(&self, request: &TargetRequest<'_>) -> Option<Arc<str>> {
        match request.writer {
            Some(w) => self.registry.node(w).map(|n| n.rack.clone()),
            None => request.writer_location.map(Arc::from),
        }
    }

    /// Orders targets so that each hop of the pipeline is as short as can be, beginning at the writer.
    fn order_pipeline(&self, request: &TargetRequest<'_>, targets: &mut [Target]) {
        let place = |n: NodeNumber| {
            let node = self.registry.node(n).expect("targets are nodes");
            (&*node.location, &*node.id.uuid)
        };
        let mut from = match request.writer {
            Some(w) if self.registry.node(w).is_some() => place(w),
            _ => match targets.first() {
                Some(t) => place(t.node),
                None => return,
            },
        };
        for i in 0..targets.len() {
            let nearest = (i..targets.len())
                .min_by_key(|j| crate::topology::distance(from, place(targets[*j].node)))
                .expect("there is one");
            targets[i..=nearest].rotate_right(1);
            from = place(targets[i].node);
        }
    }

    /// How many more racks a block needs that has replicas or internal blocks on these storages and should be on `wanted` racks, or on all.
    pub(crate) fn racks_lacking(&self, storages: &[StorageNumber], wanted: u32) -> usize {
        let topology = &self.registry.topology;
        if !topology.ever_multi_rack() {
            return 0;
        }
        let mut racks: Vec<&str> = storages.iter().filter_map(|s| self.rack_of(*s)).collect();
        racks.sort_unstable();
        racks.dedup();
        if racks.len() >= topology.rack_count() { 0 } else { (wanted as usize).saturating_sub(racks.len()) }
    }

    /// A volume of the node on this medium with room for a block; random among those that fit.
    pub(crate) fn room_on(
        &self,
        node: NodeNumber,
        kind: StorageKind,
        block_size: u64,
        random: &mut SmallRng,
    ) -> Option<Target> {
        let node = self.registry.node(node)?;
        let required = block_size.saturating_mul(self.settings.min_blocks_for_write);
        let scheduled = block_size
            .saturating_mul(u64::from(node.scheduled[0][kind as usize]) + u64::from(node.scheduled[1][kind as usize]));
        let mut remaining = 0u64;
        let mut fitting = smallvec::SmallVec::<[StorageNumber; 12]>::new();
        for v in self.registry.volumes_of(node) {
            if v.state == VolumeState::Normal && v.kind == kind && v.remaining >= required {
                remaining = remaining.saturating_add(v.remaining);
                fitting.push(v.number);
            }
        }
        if fitting.is_empty() || required > remaining.saturating_sub(scheduled) {
            return None;
        }
        let storage = fitting[random.random_range(0..fitting.len())];
        Some(Target { storage, node: node.number, kind })
    }

    /// Whether a node has any volume of this medium that could take a block.
    pub(crate) fn has_kind(&self, node: NodeNumber, kind: StorageKind) -> bool {
        self.registry
            .node(node)
            .is_some_and(|n| self.registry.volumes_of(n).any(|v| v.kind == kind && v.state == VolumeState::Normal))
    }

    /// The storage policy in force.
    pub(crate) fn policy(&self, id: u8) -> &'static policies::StoragePolicy {
        let set = self.settings.storage_policies && id != UNSPECIFIED;
        policies::by_id(if set { id } else { self.settings.default_policy })
    }
}
