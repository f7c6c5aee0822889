//! What replicas keep apart from each other besides racks: upgrade domains (Hadoop's `BlockPlacementPolicyWithUpgradeDomain`) or node groups
//! (`BlockPlacementPolicyWithNodeGroup`).

use crate::{Blocks, Node, NodeNumber};
use record::StorageNumber;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a policy keeps apart besides racks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Apart {
    /// Nothing.
    #[default]
    Racks,
    /// Nodes that are upgraded together; so many different ones are enough.
    UpgradeDomains(usize),
    /// Nodes that share a host: the last part of a location, below the rack.
    NodeGroups,
}

/// How a replicated block is spread over what its policy keeps apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spread {
    /// What is kept apart.
    pub apart: Apart,
    /// Those that have a replica, sorted.
    pub there: Vec<Arc<str>>,
    /// Replicas that there should be.
    pub wanted: usize,
}

impl Spread {
    /// How many more there should be with a replica.
    pub fn lacking(&self) -> usize {
        let required = match self.apart {
            Apart::Racks => 0,
            Apart::UpgradeDomains(factor) => self.wanted.min(factor),
            Apart::NodeGroups => self.wanted,
        };
        required.saturating_sub(self.there.len())
    }
}

/// Where a location with node groups ends and the group begins: the rack, and the group with its slash.
pub(crate) fn split_location(location: &str) -> (&str, &str) {
    location.split_at(location.rfind('/').unwrap_or(0))
}

impl Blocks {
    /// What a replica on this node shares with others that must be apart; `None` if only racks count.
    pub(super) fn share(&self, node: &Node) -> Option<Arc<str>> {
        match self.settings.apart {
            Apart::Racks => None,
            // without a domain it is one of its own
            Apart::UpgradeDomains(_) => {
                Some(node.upgrade_domain.clone().unwrap_or_else(|| node.id.transfer_address().into()))
            }
            Apart::NodeGroups => Some(split_location(&node.location).1.into()),
        }
    }

    /// How a block with replicas on these nodes is spread over what its policy keeps apart.
    pub fn spread<'a>(&self, nodes: impl Iterator<Item = &'a Node>, wanted: usize) -> Spread {
        let there: BTreeSet<Arc<str>> = nodes.filter_map(|node| self.share(node)).collect();
        Spread { apart: self.settings.apart, there: there.into_iter().collect(), wanted }
    }

    /// How many more replicas it takes until those on these storages are where they should be.
    pub(crate) fn misplaced(&self, storages: &[StorageNumber], wanted: u32, striped: bool) -> usize {
        if striped || self.settings.spread_evenly {
            return self.racks_lacking(storages, wanted);
        }
        let racks = self.racks_lacking(storages, wanted.min(2));
        let nodes = storages.iter().filter_map(|s| self.node_of(*s)).filter_map(|n| self.registry.node(n));
        racks.max(self.spread(nodes, wanted as usize).lacking())
    }

    /// Nodes of the same node group, where there are any.
    pub(super) fn group_of(&self, n: NodeNumber) -> Vec<NodeNumber> {
        let Some(node) = self.registry.node(n).filter(|_| self.settings.apart == Apart::NodeGroups) else {
            return Vec::new();
        };
        let members = self.registry.topology.members(&node.rack).iter().copied();
        members.filter(|m| self.registry.node(*m).is_some_and(|m| m.location == node.location)).collect()
    }
}
