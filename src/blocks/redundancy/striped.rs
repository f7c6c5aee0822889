//! Striped groups: internal blocks that are lost are rebuilt from the others, those on leaving nodes copied, duplicates deleted (Hadoop's
//! `ErasureCodingWork`).

use super::Level;
use crate::counting::Standing;
use crate::mailbox::{Rebuild, Transfer};
use crate::placement::{Target, TargetRequest, choose_duplicates};
use crate::policies::ChooseKinds;
use crate::{AdminState, Blocks, NodeNumber};
use record::{BlockHandle, BlockInfo, Replica, StorageNumber, Store};
use smallvec::SmallVec;
use vocab::time::Now;
use vocab::{Block, BlockId};

/// What a group can be rebuilt or copied from.
#[derive(Debug, Default)]
struct Sources {
    /// Nodes that can serve, each internal block once before any is repeated.
    nodes: SmallVec<[(u8, NodeNumber); 16]>,
    /// Internal blocks on nodes that have work enough: they are there, but are neither read nor to be rebuilt.
    busy: SmallVec<[u8; 4]>,
    /// Live storages, which placement counts.
    live: SmallVec<[StorageNumber; 16]>,
    /// All nodes that have any, good or bad: no targets.
    containing: Vec<NodeNumber>,
}

impl Sources {
    fn indices(&self) -> SmallVec<[u8; 16]> {
        self.nodes.iter().map(|(index, _)| *index).collect()
    }

    /// Whether every internal block of a group with `data` blocks of content is somewhere (bit by index).
    fn has_all(&self, data: u32, first_parity: u8, units: u8) -> bool {
        let there = self.nodes.iter().map(|(index, _)| index).chain(&self.busy).fold(0u16, |bits, i| bits | 1 << i);
        let all = (0..data as u8).chain(first_parity..units).fold(0u16, |bits, i| bits | 1 << i);
        there & all == all
    }
}

impl Blocks {
    /// Orders what a group in the queues needs: a copy of an internal block on another rack, copies of those on leaving nodes, or the rebuilding
    /// of those that are gone.
    pub(super) fn order_units(&mut self, store: &mut Store, level: Level, b: BlockHandle, now: Now) {
        let info = store.block(b);
        let Some(stripe) = self.stripe(&info) else { return };
        let sources = self.unit_sources(store, b, level);
        // Hadoop does not begin with fewer sources than it takes to decode, nor while an order for the group is out
        let data = self.minimum(&info, 0);
        if (sources.nodes.len() as u32) < data || self.pending.count(info.block.id) > 0 {
            return;
        }
        let count = self.count(store, b);
        let required = self.required_live(&info, &count);
        if count.live >= required {
            return self.copy_to_another_rack(store, &info, &sources, now);
        }
        let leaving = count.decommissioning + count.maintenance_for_read;
        let lost = (required - count.live).saturating_sub(leaving);
        let more = if lost > 0 { lost } else { required - count.live };
        let targets = self.unit_targets(&info, &sources, &[], more as usize, now);
        if targets.is_empty() {
            return;
        }
        if leaving > 0 && sources.has_all(data, stripe.data_units, stripe.units()) {
            let from = self.leaving_sources(&sources);
            let copies: Vec<_> = from.into_iter().zip(targets).collect();
            copies.iter().for_each(|((index, node), target)| self.order_unit_copy(&info, *index, *node, *target));
            self.await_units(&info, copies.iter().map(|(_, target)| *target), now);
        } else {
            self.await_units(&info, targets.iter().copied(), now);
            let rebuild = Rebuild {
                group: info.block,
                policy: info.erasure_coding_policy,
                sources: sources.nodes.iter().map(|(_, node)| *node).collect(),
                live: sources.indices().to_vec(),
                excluded: sources.busy.to_vec(),
                targets,
            };
            let first = rebuild.targets[0].node;
            self.registry.node_mut(first).expect("a target").mailbox.rebuilds.push_back(rebuild);
        }
        self.requeue(store, b);
    }

    /// All internal blocks are there, on too few racks: one of the most crowded rack is copied to a rack without any.
    fn copy_to_another_rack(&mut self, store: &Store, info: &BlockInfo, sources: &Sources, now: Now) {
        let rack = |n: &NodeNumber| self.registry.node(*n).map(|node| node.rack.clone());
        let there: Vec<_> = sources.live.iter().filter_map(|s| self.rack_of(*s)).collect();
        let on = |r: &str| there.iter().filter(|other| **other == r).count();
        let covered: Vec<NodeNumber> = self.registry.nodes().filter(|n| on(&n.rack) > 0).map(|n| n.number).collect();
        let Some(target) = self.unit_targets(info, sources, &covered, 1, now).pop() else { return };
        let crowded = sources.nodes.iter().max_by_key(|(_, node)| rack(node).map_or(0, |r| on(&r)));
        let Some((index, node)) = crowded.copied() else { return };
        self.order_unit_copy(info, index, node, target);
        self.await_units(info, [target].into_iter(), now);
        if let Some(b) = store.find_block(info.block.id) {
            self.requeue(store, b);
        }
    }

    /// Looks who has what of a group (Hadoop's `chooseSourceDatanodes` and `adjustSrcNodesAndIndices`).
    fn unit_sources(&self, store: &Store, b: BlockHandle, level: Level) -> Sources {
        let mut sources = Sources::default();
        let mut repeated: SmallVec<[(u8, NodeNumber); 4]> = SmallVec::new();
        let mut met = 0u16;
        for r in store.replicas(b) {
            let Some((standing, _, node)) = self.standing(r) else { continue };
            sources.containing.push(node.number);
            if standing == Standing::Live {
                sources.live.push(r.storage);
            }
            let usable = matches!(
                standing,
                Standing::Live | Standing::Decommissioning | Standing::MaintenanceForRead | Standing::ReadOnly
            );
            if !usable || !node.alive {
                continue;
            }
            let leaving = matches!(node.admin, AdminState::Decommissioning | AdminState::EnteringMaintenance);
            let limit = if level == Level::Highest || leaving {
                self.settings.max_streams_hard
            } else {
                self.settings.max_streams
            };
            if node.mailbox.orders() >= limit as usize {
                if matches!(standing, Standing::Live | Standing::Decommissioning) {
                    sources.busy.push(r.index);
                }
            } else if met & 1 << r.index == 0 {
                met |= 1 << r.index;
                sources.nodes.push((r.index, node.number));
            } else {
                repeated.push((r.index, node.number));
            }
        }
        // Hadoop keeps a group's places in the order of its internal blocks
        sources.nodes.sort_by_key(|(index, _)| *index);
        repeated.sort_by_key(|(index, _)| *index);
        sources.busy.sort_unstable();
        sources.nodes.extend(repeated);
        sources
    }

    /// Sources on nodes that leave, of which no node in service has the internal block.
    fn leaving_sources(&self, sources: &Sources) -> Vec<(u8, NodeNumber)> {
        let node = |n: NodeNumber| self.registry.node(n);
        let serves = |n: NodeNumber| node(n).is_some_and(|n| n.in_service());
        let served = sources.nodes.iter().filter(|(_, n)| serves(*n)).fold(0u16, |bits, (i, _)| bits | 1 << i);
        let leaves = |n: NodeNumber| {
            node(n).is_some_and(|n| matches!(n.admin, AdminState::Decommissioning | AdminState::EnteringMaintenance))
        };
        let mut met = served;
        let mut out = Vec::new();
        for (index, n) in &sources.nodes {
            if leaves(*n) && met & 1 << index == 0 {
                met |= 1 << index;
                out.push((*index, *n));
            }
        }
        out
    }

    fn unit_targets(
        &self,
        info: &BlockInfo,
        sources: &Sources,
        beside: &[NodeNumber],
        more: usize,
        now: Now,
    ) -> Vec<Target> {
        let mut excluded = sources.containing.clone();
        excluded.extend(self.pending.targets(info.block.id));
        excluded.extend(beside);
        let request = TargetRequest {
            writer: sources.nodes.first().map(|(_, node)| *node),
            replicas: more,
            block_size: info.block.length,
            storage_policy: info.storage_policy,
            existing: &sources.live,
            excluded: &excluded,
            striped: true,
            ..TargetRequest::default()
        };
        self.choose_targets(&request, now.monotonic).targets
    }

    /// An internal block is sent as it is.
    fn order_unit_copy(&mut self, info: &BlockInfo, index: u8, from: NodeNumber, target: Target) {
        let Some(stripe) = self.stripe(info) else { return };
        let block = Block {
            id: BlockId(info.block.id.0 + i64::from(index)),
            length: stripe.unit_length(info.block.length, index),
            ..info.block
        };
        let transfer = Transfer { block, targets: vec![target] };
        self.registry.node_mut(from).expect("a source").mailbox.unit_transfers.push_back(transfer);
    }

    fn await_units(&mut self, info: &BlockInfo, targets: impl Iterator<Item = Target>, now: Now) {
        let targets: SmallVec<[Target; 4]> = targets.collect();
        targets.iter().for_each(|t| self.schedule(t.storage, 1));
        let nodes: SmallVec<[NodeNumber; 4]> = targets.iter().map(|t| t.node).collect();
        if !nodes.is_empty() {
            self.pending.add(info.block.id, &nodes, now.monotonic);
        }
    }

    /// Queues the deletion of all but one copy of each internal block; the one that a balancer wants to go first, if there is another.
    pub(super) fn shed_duplicates(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        live: &[Target],
        units: &[u8],
        hint: Option<NodeNumber>,
    ) {
        let info = store.block(b);
        let mut left: Vec<(Target, u8)> = live.iter().copied().zip(units.iter().copied()).collect();
        let copies = |left: &[(Target, u8)], unit: u8| left.iter().filter(|(_, u)| *u == unit).count();
        if let Some(at) = left.iter().position(|(t, unit)| Some(t.node) == hint && copies(&left, *unit) > 1) {
            let (gone, _) = left.swap_remove(at);
            self.mark_excess(store, b, gone.storage);
        }
        let mut distinct: Vec<u8> = left.iter().map(|(_, unit)| *unit).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let kinds: Vec<_> = left.iter().map(|(t, _)| t.kind).collect();
        let mut excess_kinds = self.policy(info.storage_policy).excess(distinct.len() as u16, &kinds);
        for unit in distinct {
            let available: Vec<Target> = left.iter().map(|(t, _)| *t).collect();
            let candidates: Vec<Target> = left.iter().filter(|(_, u)| *u == unit).map(|(t, _)| *t).collect();
            for gone in choose_duplicates(self, &available, &candidates, &mut excess_kinds, self.clock) {
                left.retain(|(t, _)| t.storage != gone.storage);
                self.mark_excess(store, b, gone.storage);
            }
        }
    }

    /// Whether the group can spare this replica: another good one has the same internal block.
    pub(super) fn has_other_unit(&self, store: &Store, b: BlockHandle, replica: Replica) -> bool {
        store.replicas(b).into_iter().any(|other| {
            other.index == replica.index
                && other.storage != replica.storage
                && self.standing(other).is_some_and(|(standing, ..)| standing == Standing::Live)
        })
    }
}
