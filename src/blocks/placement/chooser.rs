//! One choice of targets.

use super::load::Loads;
use super::{Apart, Target, TargetRequest};
use crate::policies::{ChooseKinds, StoragePolicy};
use crate::topology::Scope;
use crate::{AvailableSpace, Blocks, NodeNumber};
use hashbrown::{HashMap, HashSet};
use rand::RngExt;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::sync::Arc;
use vocab::StorageKind;
use vocab::time::MonotonicMs;

/// Nodes tried in vain before all are looked at one by one.
const PATIENCE: usize = 16;

/// Nobody is left that qualifies.
struct Shortfall;

pub(super) struct Chooser<'a> {
    blocks: &'a Blocks,
    request: &'a TargetRequest<'a>,
    policy: &'static StoragePolicy,
    random: SmallRng,
    now: MonotonicMs,
    excluded: HashSet<NodeNumber>,
    /// What was excluded before anything was tried.
    excluded_by_request: HashSet<NodeNumber>,
    /// What was excluded at the end of a first attempt that fell short.
    excluded_at_first: Option<HashSet<NodeNumber>>,
    /// Existing replicas first, then what was chosen.
    results: Vec<Target>,
    existing: usize,
    max_per_rack: usize,
    avoid_stale: bool,
    loads: Loads,
    /// Media still wanted, by ordinal.
    kinds: [usize; 6],
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        blocks: &'a Blocks,
        request: &'a TargetRequest<'a>,
        placed: &[Target],
        mut excluded: HashSet<NodeNumber>,
        now: MonotonicMs,
    ) -> Chooser<'a> {
        let mut results: Vec<Target> = request.existing.iter().filter_map(|s| blocks.target(*s)).collect();
        results.extend_from_slice(placed);
        excluded.extend(results.iter().map(|t| t.node));
        results.iter().for_each(|t| excluded.extend(blocks.group_of(t.node)));
        let evenly = request.striped || blocks.settings.spread_evenly;
        let limit = if evenly { even_rack_limit } else { rack_limit };
        let max_per_rack = limit(blocks, results.len(), request.replicas - placed.len());
        Chooser {
            blocks,
            request,
            policy: blocks.policy(request.storage_policy),
            random: blocks.random(),
            now,
            excluded_by_request: excluded.clone(),
            excluded,
            excluded_at_first: None,
            existing: results.len(),
            results,
            max_per_rack,
            avoid_stale: blocks.avoids_stale_for_write(now),
            loads: Loads::new(blocks),
            kinds: [0; 6],
        }
    }

    pub(super) fn chosen(&self) -> &[Target] {
        &self.results[self.existing..]
    }
    /// Nodes excluded or tried in vain; with fallbacks, those of the first attempt, as Hadoop counts them in its refusals.
    pub(super) fn into_excluded(self) -> HashSet<NodeNumber> {
        self.excluded_at_first.unwrap_or(self.excluded)
    }

    /// A replica on this very node, if it is a good target.
    pub(super) fn on_node(&mut self, node: NodeNumber) -> Option<Target> {
        self.want_one();
        if self.excluded.contains(&node) || !self.blocks.registry.topology.contains(node) || !self.good(node, false) {
            return None;
        }
        let before = self.results.len();
        self.take(node, None).then(|| self.results[before])
    }

    /// One more replica is wanted, on a medium of the policy.
    fn want_one(&mut self) {
        let wanted = self.existing + 1;
        let present: Vec<StorageKind> = self.results.iter().map(|t| t.kind).collect();
        for kind in self.policy.choose_available(wanted as u16, &present, &[], true) {
            self.kinds[kind as usize] += 1;
        }
    }

    /// Chooses up to `n` targets, with fallbacks: stale nodes when fresh ones run out, then the policy's other media.
    pub(super) fn choose(&mut self, n: usize) {
        let room = self.blocks.registry.topology.node_count().saturating_sub(self.results.len());
        let goal = self.results.len() + n.min(room);
        let first_excluded = self.excluded.clone();
        let mut unavailable: Vec<StorageKind> = Vec::new();
        while self.results.len() < goal {
            let present: Vec<StorageKind> = self.results.iter().map(|t| t.kind).collect();
            let new_block = self.request.new_block;
            self.kinds = [0; 6];
            let wanted = self.policy.choose_available(goal as u16, &present, &unavailable, new_block);
            wanted.iter().for_each(|k| self.kinds[*k as usize] += 1);
            let missing = wanted.len();
            if missing == 0 || self.attempt(missing).is_ok() && self.results.len() >= goal {
                break;
            }
            if self.avoid_stale {
                self.avoid_stale = false;
            } else {
                let before = unavailable.len();
                for kind in wanted {
                    if self.kinds[kind as usize] > 0 && !unavailable.contains(&kind) {
                        unavailable.push(kind);
                    }
                }
                if unavailable.len() == before {
                    break;
                }
            }
            let tried = std::mem::replace(&mut self.excluded, first_excluded.clone());
            self.excluded_at_first.get_or_insert(tried);
            self.exclude_chosen();
        }
    }

    /// What was chosen is not chosen again, nor what is in one node group with it.
    fn exclude_chosen(&mut self) {
        for t in &self.results {
            self.excluded.insert(t.node);
            self.excluded.extend(self.blocks.group_of(t.node));
        }
    }

    fn rack(&self, node: NodeNumber) -> Arc<str> {
        self.blocks.registry.node(node).expect("a node").rack.clone()
    }

    fn attempt(&mut self, n: usize) -> Result<(), Shortfall> {
        if self.request.striped || self.blocks.settings.spread_evenly { self.evenly(n) } else { self.in_order(n) }
    }

    /// The order for striped groups: as many on each rack as on any other; what is left over then, and where a rack has too few nodes, on the others.
    fn evenly(&mut self, n: usize) -> Result<(), Shortfall> {
        let (total, limit) = (self.results.len() + n, self.max_per_rack);
        let racks = self.blocks.registry.topology.rack_count().max(1);
        let mut outcome = if total < racks || total % racks == 0 { self.once(n) } else { self.level_by_level(total) };
        // one more on each rack, until it comes out or does not help
        let mut least = limit;
        while outcome.is_err() && self.results.len() < total && least < total {
            self.exclude_results();
            if self.request.new_block {
                // as in Hadoop, nodes that the writer excluded come back before a new block gets too few: a writer that must have them all fails
                self.excluded.clear();
                self.exclude_chosen();
            }
            let before = self.results.len();
            least += 1;
            self.max_per_rack = least;
            outcome = self.once(total - before);
            if self.results.len() == before {
                least = least.max(self.rack_counts().into_values().max().unwrap_or(0));
            }
        }
        self.max_per_rack = limit;
        if self.results.len() >= total { Ok(()) } else { outcome.and(Err(Shortfall)) }
    }

    /// Fills all racks but for the last node of each that the limit allows, then the rest.
    fn level_by_level(&mut self, total: usize) -> Result<(), Shortfall> {
        let limit = self.max_per_rack;
        let full = limit.saturating_sub(1);
        let above: usize = self.rack_counts().into_values().map(|count| count.saturating_sub(full)).sum();
        let room = full * self.blocks.registry.topology.rack_count();
        let first = (total - self.results.len()).min(room.saturating_sub(self.results.len() - above));
        self.max_per_rack = full;
        let filled = self.once(first);
        self.max_per_rack = limit;
        filled?;
        self.exclude_results();
        self.once(total - self.results.len())
    }

    /// One near the writer, the others anywhere.
    fn once(&mut self, n: usize) -> Result<(), Shortfall> {
        if n == 0 {
            return Ok(());
        }
        self.local_storage()?;
        self.anywhere(n - 1, Scope::Any)
    }

    /// Nodes tried in vain may be tried again.
    fn exclude_results(&mut self) {
        self.excluded = self.excluded_by_request.clone();
        self.exclude_chosen();
    }

    fn rack_counts(&self) -> HashMap<Arc<str>, usize> {
        let mut counts = HashMap::new();
        for t in &self.results {
            *counts.entry(self.rack(t.node)).or_insert(0) += 1;
        }
        counts
    }

    /// The order of the default policy: the writer's node, another rack, the same rack as the second, then anywhere.
    fn in_order(&mut self, n: usize) -> Result<(), Shortfall> {
        let mut left = n;
        let already = self.results.len();
        if already == 0 {
            self.local_storage()?;
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
        let first = self.rack(self.results[0].node);
        if already <= 1 {
            self.remote_rack(&first)?;
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
        if already <= 2 {
            let second = self.rack(self.results[1].node);
            if first == second {
                self.remote_rack(&first)?;
            } else if self.request.new_block {
                self.local_rack(Some(self.results[1].node), &second)?;
            } else {
                let rack = self.blocks.writer_rack(self.request).unwrap_or(first);
                self.local_rack(self.request.writer, &rack)?;
            }
            left -= 1;
        }
        self.anywhere(left, Scope::Any)
    }

    fn local_storage(&mut self) -> Result<(), Shortfall> {
        let rack = self.blocks.writer_rack(self.request);
        let (Some(rack), false) = (rack, self.request.ignore_client_locality) else {
            return self.anywhere(1, Scope::Any);
        };
        if let Some(writer) = self.request.writer
            && self.blocks.settings.prefer_local_node
            && self.blocks.registry.topology.contains(writer)
            && !self.prefers_other(writer, &rack)
            && self.excluded.insert(writer)
            && self.good(writer, false)
            && self.take(writer, None)
        {
            return Ok(());
        }
        if let Some(writer) = self.request.writer
            && self.in_group(writer)
        {
            return Ok(());
        }
        self.local_rack(self.request.writer, &rack)
    }

    /// A random node of the node group that `of` is in, if there are groups.
    fn in_group(&mut self, of: NodeNumber) -> bool {
        let mut group = self.blocks.group_of(of);
        group.shuffle(&mut self.random);
        group
            .into_iter()
            .any(|n| self.excluded.insert(n) && self.good(n, self.blocks.settings.consider_load) && self.take(n, None))
    }

    /// A replica in the node group of a node that the client would like.
    pub(super) fn near_favored(&mut self, node: NodeNumber) -> Option<Target> {
        self.want_one();
        let before = self.results.len();
        self.in_group(node).then(|| self.results[before])
    }

    /// Of two nodes mostly the one of which less is used; the first where they are alike.
    fn emptier(&mut self, weigh: AvailableSpace, a: NodeNumber, b: NodeNumber, own: bool) -> NodeNumber {
        let used = |n: NodeNumber| {
            let stats = self.blocks.registry.node(n).map(|node| node.stats).unwrap_or_default();
            stats.dfs_used as f64 * 100.0 / stats.capacity.max(1) as f64
        };
        let (of_a, of_b) = (used(a), used(b));
        let alike =
            of_a.max(of_b) < f64::from(weigh.tolerance_limit) && (of_a - of_b).abs() < f64::from(weigh.tolerance);
        if a == b || alike || own && of_a < 50.0 {
            return a;
        }
        let (less, more) = if of_a < of_b { (a, b) } else { (b, a) };
        if self.random.random_range(0..100) < weigh.preference { less } else { more }
    }

    /// Whether the writer's own node is passed over for another one of its rack, because so much of it is used.
    fn prefers_other(&mut self, writer: NodeNumber, rack: &str) -> bool {
        let Some(weigh) = self.blocks.settings.available_space.filter(|weigh| weigh.local) else { return false };
        let (blocks, excluded) = (self.blocks, &self.excluded);
        let accept = |c: NodeNumber| c != writer && !excluded.contains(&c);
        let Some(other) = blocks.registry.topology.choose(Scope::In(rack), &mut self.random, accept) else {
            return false;
        };
        self.good(other, blocks.settings.consider_load) && self.emptier(weigh, writer, other, true) == other
    }

    fn local_rack(&mut self, near: Option<NodeNumber>, rack: &str) -> Result<(), Shortfall> {
        if self.anywhere(1, Scope::In(rack)).is_ok() {
            return Ok(());
        }
        // the rack of another replica, then anywhere
        if let Some(other) = self.results.iter().map(|t| t.node).find(|n| Some(*n) != near) {
            let rack = self.rack(other);
            if self.anywhere(1, Scope::In(&rack)).is_ok() {
                return Ok(());
            }
        }
        self.anywhere(1, Scope::Any)
    }

    fn remote_rack(&mut self, rack: &str) -> Result<(), Shortfall> {
        self.anywhere(1, Scope::NotIn(rack)).or_else(|_| self.anywhere(1, Scope::In(rack)))
    }

    /// `n` random nodes of the scope.
    fn anywhere(&mut self, mut n: usize, scope: Scope<'_>) -> Result<(), Shortfall> {
        let mut in_vain = 0;
        while n > 0 {
            if in_vain == PATIENCE {
                return self.one_by_one(n, scope);
            }
            let mut found = None;
            for kind in StorageKind::ALL {
                if self.kinds[kind as usize] == 0 {
                    continue;
                }
                let (blocks, excluded) = (self.blocks, &self.excluded);
                let accept = |c: NodeNumber| !excluded.contains(&c) && blocks.has_kind(c, kind);
                if let Some(node) = blocks.registry.topology.choose(scope, &mut self.random, accept) {
                    let node = match blocks.settings.available_space {
                        Some(weigh) => {
                            let other = blocks.registry.topology.choose(scope, &mut self.random, accept);
                            self.emptier(weigh, node, other.unwrap_or(node), false)
                        }
                        None => node,
                    };
                    found = Some((node, kind));
                    break;
                }
            }
            let Some((node, kind)) = found else { return Err(Shortfall) };
            self.excluded.insert(node);
            if self.good(node, self.blocks.settings.consider_load) && self.take(node, Some(kind)) {
                n -= 1;
            } else {
                in_vain += 1;
            }
        }
        Ok(())
    }

    /// The same where few nodes qualify: every node of the scope is tried once, in random order, so that a full cluster costs one walk over it.
    fn one_by_one(&mut self, mut n: usize, scope: Scope<'_>) -> Result<(), Shortfall> {
        for kind in StorageKind::ALL {
            if self.kinds[kind as usize] == 0 {
                continue;
            }
            let (blocks, excluded) = (self.blocks, &self.excluded);
            let accept = |c: NodeNumber| !excluded.contains(&c) && blocks.has_kind(c, kind);
            for node in blocks.registry.topology.shuffled(scope, &mut self.random, accept) {
                if n == 0 || self.kinds[kind as usize] == 0 {
                    break;
                }
                self.excluded.insert(node);
                if self.good(node, blocks.settings.consider_load) && self.take(node, Some(kind)) {
                    n -= 1;
                }
            }
        }
        if n == 0 { Ok(()) } else { Err(Shortfall) }
    }

    /// Puts a replica on the node, on the first wanted medium it has room on.
    fn take(&mut self, node: NodeNumber, only: Option<StorageKind>) -> bool {
        for kind in StorageKind::ALL {
            if self.kinds[kind as usize] == 0 || only.is_some_and(|k| k != kind) {
                continue;
            }
            if let Some(t) = self.blocks.room_on(node, kind, self.request.block_size, &mut self.random) {
                self.kinds[kind as usize] -= 1;
                self.excluded.insert(node);
                self.excluded.extend(self.blocks.group_of(node));
                self.results.push(t);
                return true;
            }
        }
        false
    }

    fn good(&self, n: NodeNumber, consider_load: bool) -> bool {
        let Some(node) = self.blocks.registry.node(n) else { return false };
        if !node.alive || !node.in_service() {
            return false;
        }
        if self.avoid_stale && node.is_stale(self.now, self.blocks.settings.stale_interval_ms) {
            return false;
        }
        if consider_load && self.loads.is_busy(self.blocks, node) {
            return false;
        }
        let settings = &self.blocks.settings;
        if settings.avoid_slow_for_write && settings.peer_stats && self.blocks.is_slow(n) {
            return false;
        }
        let same_rack = self.results.iter().filter(|t| self.rack(t.node) == node.rack).count();
        same_rack < self.max_per_rack && !self.shares_domain(node)
    }

    /// Whether a replica chosen before is in the same upgrade domain, while there are fewer than must differ.
    fn shares_domain(&self, node: &crate::Node) -> bool {
        let Apart::UpgradeDomains(factor) = self.blocks.settings.apart else { return false };
        let Some(domain) = node.upgrade_domain.as_deref().filter(|_| self.results.len() < factor) else {
            return false;
        };
        let chosen = self.results.iter().filter_map(|t| self.blocks.registry.node(t.node));
        chosen.filter_map(|n| self.blocks.share(n)).any(|of_chosen| *of_chosen == *domain)
    }
}

/// Most replicas on one rack.
fn rack_limit(blocks: &Blocks, chosen: usize, wanted: usize) -> usize {
    let topology = &blocks.registry.topology;
    let total = (chosen + wanted).min(topology.node_count());
    let racks = topology.rack_count();
    if racks <= 1 || total <= 1 {
        return total.max(1);
    }
    let limit = (total - 1) / racks + 2;
    if limit == total { limit - 1 } else { limit }
}

/// The same where replicas are spread evenly over all racks.
fn even_rack_limit(blocks: &Blocks, chosen: usize, wanted: usize) -> usize {
    let topology = &blocks.registry.topology;
    let total = (chosen + wanted).min(topology.node_count());
    let racks = topology.rack_count();
    if racks <= 1 || total <= 1 { total.max(1) } else { (total - 1) / racks + 1 }
}
