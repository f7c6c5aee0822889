//! Nodes that leave: refreshed hosts files, and decommissioning in slices (Hadoop's `DatanodeAdminManager` and its default monitor).

use crate::{AdminState, Blocks, Hosts, NodeNumber};
use record::{BlockHandle, StorageNumber, Store};
use std::collections::{BTreeMap, VecDeque};
use vocab::time::{MonotonicMs, Now};
use vocab::{BlockId, BlockState};

/// What still keeps a node from being decommissioned, as of the last walk over its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeavingStatus {
    /// Blocks without enough live replicas elsewhere.
    pub low_redundancy: u64,
    /// Those of them with no live replica elsewhere at all.
    pub only_here: u64,
    /// Those of them in files being written.
    pub open: u64,
    /// When it was told to leave.
    pub since: MonotonicMs,
}

/// A walk over the blocks of a node's volumes.
#[derive(Debug, Default)]
struct Walk {
    volumes: VecDeque<StorageNumber>,
    cursor: Option<i64>,
    found: LeavingStatus,
}

/// Walks under way.
#[derive(Debug, Default)]
pub struct Leaving {
    status: BTreeMap<NodeNumber, LeavingStatus>,
    walks: BTreeMap<NodeNumber, Walk>,
    /// When the next walk over a leaving node may begin.
    next: BTreeMap<NodeNumber, MonotonicMs>,
    /// Nodes that serve again: their blocks may have too many replicas now.
    returned: BTreeMap<NodeNumber, Walk>,
}

impl Blocks {
    /// Takes refreshed include and exclude lists: nodes not included are shut out with their next heartbeat, excluded ones begin to leave, the
    /// others serve (again).
    pub fn refresh_hosts(&mut self, hosts: Hosts, now: Now) {
        self.tick_clock(now);
        self.hosts = hosts;
        for n in self.registry.numbers() {
            let id = self.registry.node(n).expect("listed").id.clone();
            let domain = self.hosts.upgrade_domain(&id);
            let node = self.registry.node_mut(n).expect("listed");
            node.upgrade_domain = domain;
            if !self.hosts.is_included(&node.id) {
                self.registry.node_mut(n).expect("listed").disallowed = true;
            } else if self.hosts.is_excluded(&node.id) {
                self.start_decommission(n);
            } else {
                self.stop_decommission(n);
            }
        }
    }

    /// Tells a node to leave. A dead one is decommissioned at once: it holds nothing that could be copied.
    pub fn start_decommission(&mut self, n: NodeNumber) {
        let Some(node) = self.registry.node_mut(n) else { return };
        if node.admin != AdminState::Normal {
            return;
        }
        if !node.alive {
            node.admin = AdminState::Decommissioned;
            return;
        }
        node.admin = AdminState::Decommissioning;
        self.leaving.status.insert(n, LeavingStatus { since: self.clock, ..LeavingStatus::default() });
        self.leaving.returned.remove(&n);
        self.registry.recount();
    }

    /// Lets a leaving or decommissioned node serve again.
    pub fn stop_decommission(&mut self, n: NodeNumber) {
        let Some(node) = self.registry.node_mut(n) else { return };
        if !matches!(node.admin, AdminState::Decommissioning | AdminState::Decommissioned) {
            return;
        }
        node.admin = AdminState::Normal;
        let alive = node.alive;
        let volumes = node.volumes.iter().copied().collect();
        self.leaving.status.remove(&n);
        self.leaving.walks.remove(&n);
        self.leaving.next.remove(&n);
        if alive {
            self.leaving.returned.insert(n, Walk { volumes, ..Walk::default() });
        }
        self.registry.recount();
    }

    /// What keeps a node from being decommissioned; `None` if it is not leaving.
    pub fn leaving_status(&self, n: NodeNumber) -> Option<LeavingStatus> {
        self.leaving.status.get(&n).copied()
    }

    /// Looks at up to `budget` blocks of leaving nodes, begins new walks when their time has come and ends the leave of nodes whose blocks are
    /// all safe elsewhere. Whether there is more to do at once.
    pub fn admin_step(&mut self, store: &mut Store, budget: usize, now: Now) -> bool {
        self.tick_clock(now);
        if self.safe_mode.is_on() || !self.populating_queues() {
            return false;
        }
        if let Some(n) = self.leaving.returned.keys().next().copied() {
            let mut walk = self.leaving.returned.remove(&n).expect("seen");
            if self.walk_step(store, &mut walk, budget, false) {
                self.leaving.returned.insert(n, walk);
            }
            return true;
        }
        if let Some(n) = self.leaving.walks.keys().next().copied() {
            let mut walk = self.leaving.walks.remove(&n).expect("seen");
            if self.walk_step(store, &mut walk, budget, true) {
                self.leaving.walks.insert(n, walk);
            } else {
                self.end_walk(n, walk, now);
            }
            return true;
        }
        self.begin_walks(now)
    }

    fn begin_walks(&mut self, now: Now) -> bool {
        let mut any = false;
        for n in self.leaving.status.keys().copied().collect::<Vec<_>>() {
            let due = self.leaving.next.get(&n).is_none_or(|t| now.monotonic >= *t);
            let Some(node) = self.registry.node(n) else {
                self.leaving.status.remove(&n);
                continue;
            };
            if !due {
                continue;
            }
            if node.alive {
                let volumes = node.volumes.iter().copied().collect();
                self.leaving.walks.insert(n, Walk { volumes, ..Walk::default() });
                any = true;
            } else {
                // it cannot be copied from; it is done with once nothing in the whole cluster lacks replicas, else it waits without
                // keeping others from leaving (HDFS-16303)
                if self.low.is_empty() && self.pending.is_empty() {
                    self.decommissioned(n);
                }
                self.leaving.next.insert(n, MonotonicMs(now.monotonic.0 + self.settings.decommission_interval_ms));
            }
        }
        any
    }

    fn end_walk(&mut self, n: NodeNumber, walk: Walk, now: Now) {
        self.leaving.next.insert(n, MonotonicMs(now.monotonic.0 + self.settings.decommission_interval_ms));
        let Some(status) = self.leaving.status.get_mut(&n) else { return };
        *status = LeavingStatus { since: status.since, ..walk.found };
        let Some(node) = self.registry.node(n) else { return };
        let reported = self.registry.volumes_of(node).all(|v| v.reports > 0);
        if walk.found.low_redundancy == 0 && reported && node.alive {
            self.decommissioned(n);
        }
    }

    fn decommissioned(&mut self, n: NodeNumber) {
        self.registry.node_mut(n).expect("a leaving node").admin = AdminState::Decommissioned;
        self.leaving.status.remove(&n);
        self.leaving.next.remove(&n);
    }

    /// Looks at the next blocks of a walk; whether there are more.
    fn walk_step(&mut self, store: &mut Store, walk: &mut Walk, budget: usize, leaving: bool) -> bool {
        let Some(s) = walk.volumes.front().copied() else { return false };
        let start = walk.cursor.map_or(i64::MIN, |id| id.saturating_add(1));
        let ids: Vec<i64> =
            self.registry.volume(s).map(|v| v.blocks.iter_from(start).take(budget).collect()).unwrap_or_default();
        walk.cursor = ids.last().copied();
        if ids.len() < budget {
            walk.volumes.pop_front();
            walk.cursor = None;
        }
        for id in ids {
            let Some(b) = store.find_block(BlockId(id)) else { continue };
            self.review(store, b);
            if leaving {
                self.weigh(store, b, &mut walk.found);
            }
        }
        !walk.volumes.is_empty()
    }

    /// Counts a block that is not safe without the leaving node.
    fn weigh(&self, store: &Store, b: BlockHandle, found: &mut LeavingStatus) {
        let info = store.block(b);
        if info.deleted || self.is_safe_elsewhere(store, b) {
            return;
        }
        found.low_redundancy += 1;
        found.open += u64::from(info.open);
        found.only_here += u64::from(self.count(store, b).live == 0);
    }

    fn is_safe_elsewhere(&self, store: &Store, b: BlockHandle) -> bool {
        let info = store.block(b);
        let live = self.count(store, b).live;
        if info.state != BlockState::Complete {
            return live >= u32::from(self.settings.replication_min);
        }
        let wanted = match self.stripes.get(&info.erasure_coding_policy) {
            // nothing rebuilds internal blocks: a node that has one must not leave while the group needs it
            Some(stripe) => self.minimum(&info, 0) + u32::from(stripe.parity_units),
            None => u32::from(info.replication).min(u32::from(self.settings.replication_default)),
        };
        live >= wanted && self.well_placed(store, b)
    }
}
