//! Nodes that leave, for good or for maintenance: refreshed hosts files, and the walks over their blocks in slices (Hadoop's
//! `DatanodeAdminManager` and its default monitor).

use crate::{AdminState, Blocks, Hosts, NodeNumber};
use record::{BlockHandle, StorageNumber, Store};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vocab::TimeMs;
use vocab::time::{MonotonicMs, Now};
use vocab::{BlockId, BlockState};

/// What still keeps a node from being decommissioned or from its maintenance, as of the last walk over its blocks.
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
    /// Blocks of open files that are not safe elsewhere.
    open: Vec<BlockId>,
}

/// Walks under way.
#[derive(Debug, Default)]
pub struct Leaving {
    status: BTreeMap<NodeNumber, LeavingStatus>,
    /// Blocks of open files that keep a node, as of the last walk over its blocks.
    open: BTreeMap<NodeNumber, Vec<BlockId>>,
    walks: BTreeMap<NodeNumber, Walk>,
    /// When the next walk over a leaving node may begin.
    next: BTreeMap<NodeNumber, MonotonicMs>,
    /// Nodes that are walked over, as many as the settings allow.
    tracked: BTreeSet<NodeNumber>,
    /// Nodes that wait for others to be done with.
    waiting: VecDeque<NodeNumber>,
    /// When the present interval began, and how many blocks were looked at in it.
    interval: (MonotonicMs, u64),
    /// Nodes that serve again: their blocks may have too many replicas now.
    returned: BTreeMap<NodeNumber, Walk>,
}

impl Blocks {
    /// Takes refreshed include and exclude lists: nodes not included are shut out with their next heartbeat, those listed for maintenance that
    /// has not expired go into it, excluded ones begin to leave, the others serve (again).
    pub fn refresh_hosts(&mut self, hosts: Hosts, now: Now) {
        self.tick_clock(now);
        self.hosts = hosts;
        for n in self.registry.numbers() {
            let id = self.registry.node(n).expect("listed").id.clone();
            let domain = self.hosts.upgrade_domain(&id);
            let node = self.registry.node_mut(n).expect("listed");
            node.upgrade_domain = domain;
            if !self.hosts.is_included(&id) {
                self.registry.node_mut(n).expect("listed").disallowed = true;
            } else if let Some(expires) = self.maintenance_of(n, now.wall) {
                self.start_maintenance(n, expires);
            } else if self.hosts.is_excluded(&id) {
                self.start_decommission(n);
            } else {
                self.stop_maintenance(n);
                self.stop_decommission(n);
            }
        }
    }

    /// When the maintenance ends that the lists ask for, if they do and that is not over yet.
    fn maintenance_of(&self, n: NodeNumber, now: TimeMs) -> Option<TimeMs> {
        self.hosts.maintenance_expiry(&self.registry.node(n)?.id).filter(|expires| expires.0 > now.0)
    }

    /// What the lists ask of a node that registers.
    pub(crate) fn begin_by_lists(&mut self, n: NodeNumber, now: Now) {
        let Some(node) = self.registry.node(n) else { return };
        if self.hosts.is_excluded(&node.id) {
            self.start_decommission(n);
        } else if let Some(expires) = self.maintenance_of(n, now.wall) {
            self.start_maintenance(n, expires);
        }
    }

    /// Tells a node to leave. A dead one is decommissioned at once: it holds nothing that could be copied.
    pub fn start_decommission(&mut self, n: NodeNumber) {
        let Some(node) = self.registry.node_mut(n) else { return };
        if matches!(node.admin, AdminState::Decommissioning | AdminState::Decommissioned) {
            return;
        }
        if node.alive {
            node.admin = AdminState::Decommissioning;
            self.begin_leave(n);
        } else {
            node.admin = AdminState::Decommissioned;
            self.end_leave(n);
        }
        self.registry.recount();
    }

    /// Lets a leaving or decommissioned node serve again.
    pub fn stop_decommission(&mut self, n: NodeNumber) {
        let Some(node) = self.registry.node_mut(n) else { return };
        if matches!(node.admin, AdminState::Decommissioning | AdminState::Decommissioned) {
            node.admin = AdminState::Normal;
            self.serve_again(n);
        }
    }

    /// Sends a node into maintenance, or changes when its maintenance ends. One that is dead or decommissioned is in maintenance at once, and any
    /// if no replica needs to be elsewhere.
    pub fn start_maintenance(&mut self, n: NodeNumber, expires: TimeMs) {
        let nothing_needed = self.settings.maintenance_replication_min == 0;
        let Some(node) = self.registry.node_mut(n) else { return };
        node.maintenance_expires = expires;
        if matches!(node.admin, AdminState::EnteringMaintenance | AdminState::InMaintenance) {
            return;
        }
        if !node.alive || node.admin == AdminState::Decommissioned || nothing_needed {
            node.admin = AdminState::InMaintenance;
            self.end_leave(n);
        } else {
            node.admin = AdminState::EnteringMaintenance;
            self.begin_leave(n);
        }
        self.registry.recount();
    }

    /// Ends a node's maintenance. Of a dead one the replicas, which counted so far, are forgotten.
    pub fn stop_maintenance(&mut self, n: NodeNumber) {
        let Some(node) = self.registry.node_mut(n) else { return };
        if !matches!(node.admin, AdminState::EnteringMaintenance | AdminState::InMaintenance) {
            return;
        }
        node.admin = AdminState::Normal;
        node.maintenance_expires = TimeMs(0);
        if !node.alive && !node.draining {
            node.draining = true;
            let volumes = node.volumes.clone();
            self.registry.drains.extend(volumes);
        }
        self.serve_again(n);
    }

    fn begin_leave(&mut self, n: NodeNumber) {
        self.end_leave(n);
        self.leaving.status.insert(n, LeavingStatus { since: self.clock, ..LeavingStatus::default() });
        self.leaving.returned.remove(&n);
        self.leaving.waiting.push_back(n);
    }

    fn end_leave(&mut self, n: NodeNumber) {
        self.leaving.status.remove(&n);
        self.leaving.open.remove(&n);
        self.leaving.walks.remove(&n);
        self.leaving.next.remove(&n);
        self.leaving.tracked.remove(&n);
        self.leaving.waiting.retain(|waiting| *waiting != n);
    }

    fn serve_again(&mut self, n: NodeNumber) {
        self.end_leave(n);
        if let Some(node) = self.registry.node(n).filter(|node| node.alive) {
            let volumes = node.volumes.iter().copied().collect();
            self.leaving.returned.insert(n, Walk { volumes, ..Walk::default() });
        }
        self.registry.recount();
    }

    /// Blocks of open files that keep nodes from leaving.
    pub fn blocking_leave(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.leaving.open.values().flatten().copied()
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
        let interval_ms = self.settings.decommission_interval_ms;
        if now.monotonic.since(self.leaving.interval.0) >= interval_ms {
            self.leaving.interval = (now.monotonic, 0);
        }
        if let Some(n) = self.leaving.walks.keys().next().copied() {
            let budget = match self.settings.decommission_backoff {
                Some((most, _)) if self.low.waiting() >= most => return false,
                Some((_, at_a_time)) => budget.min(at_a_time),
                None if self.leaving.interval.1 >= self.settings.decommission_blocks_per_interval => return false,
                None => budget,
            };
            self.leaving.interval.1 += budget as u64;
            let mut walk = self.leaving.walks.remove(&n).expect("seen");
            if self.walk_step(store, &mut walk, budget, true) {
                self.leaving.walks.insert(n, walk);
            } else {
                self.end_walk(n, walk, now);
            }
            return true;
        }
        self.expire_maintenance(now.wall);
        self.begin_walks(now)
    }

    /// Ends maintenance whose time is over.
    ///
    /// Quirk: nodes_in_maintenance_do_not_count_as_tracked: Hadoop counts them, so that enough of them keep all other nodes from leaving
    fn expire_maintenance(&mut self, now: TimeMs) {
        let over = |node: &&crate::Node| {
            matches!(node.admin, AdminState::EnteringMaintenance | AdminState::InMaintenance)
                && node.maintenance_expires.0 < now.0
        };
        let over: Vec<NodeNumber> = self.registry.nodes().filter(over).map(|node| node.number).collect();
        over.into_iter().for_each(|n| self.stop_maintenance(n));
    }

    fn begin_walks(&mut self, now: Now) -> bool {
        let limit = self.settings.decommission_tracked_max;
        while (limit == 0 || self.leaving.tracked.len() < limit)
            && let Some(n) = self.leaving.waiting.pop_front()
        {
            self.leaving.tracked.insert(n);
        }
        let mut any = false;
        for n in self.leaving.tracked.iter().copied().collect::<Vec<_>>() {
            let due = self.leaving.next.get(&n).is_none_or(|t| now.monotonic >= *t);
            let Some(node) = self.registry.node(n) else {
                self.end_leave(n);
                continue;
            };
            if !due {
                continue;
            }
            if node.alive {
                let volumes = node.volumes.iter().copied().collect();
                self.leaving.walks.insert(n, Walk { volumes, ..Walk::default() });
                any = true;
                continue;
            }
            // it cannot be copied from; it is done with once nothing in the whole cluster lacks replicas, else it waits without
            // keeping others from leaving (HDFS-16303)
            if self.low.is_empty() && self.pending.is_empty() {
                self.left(n);
                continue;
            }
            self.leaving.next.insert(n, MonotonicMs(now.monotonic.0 + self.settings.decommission_interval_ms));
            if !self.leaving.waiting.is_empty() {
                self.leaving.tracked.remove(&n);
                self.leaving.waiting.push_back(n);
            }
        }
        any
    }

    fn end_walk(&mut self, n: NodeNumber, walk: Walk, now: Now) {
        self.leaving.next.insert(n, MonotonicMs(now.monotonic.0 + self.settings.decommission_interval_ms));
        let Some(status) = self.leaving.status.get_mut(&n) else { return };
        *status = LeavingStatus { since: status.since, ..walk.found };
        self.leaving.open.insert(n, walk.open);
        let Some(node) = self.registry.node(n) else { return };
        let reported = self.registry.volumes_of(node).all(|v| v.reports > 0);
        if walk.found.low_redundancy == 0 && reported && node.alive {
            self.left(n);
        }
    }

    /// What kept the node is done.
    fn left(&mut self, n: NodeNumber) {
        self.end_leave(n);
        let Some(node) = self.registry.node_mut(n) else { return };
        node.admin = match node.admin {
            AdminState::EnteringMaintenance => AdminState::InMaintenance,
            _ => AdminState::Decommissioned,
        };
        self.registry.recount();
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
                self.weigh(store, b, s, walk);
            }
        }
        !walk.volumes.is_empty()
    }

    /// Counts a block that is not safe without the leaving node, which has it on this volume.
    fn weigh(&self, store: &Store, b: BlockHandle, volume: StorageNumber, walk: &mut Walk) {
        let info = store.block(b);
        let node = self.node_of(volume).and_then(|n| self.registry.node(n));
        let maintenance = node.is_some_and(|node| node.admin == AdminState::EnteringMaintenance);
        if info.deleted || self.is_safe_elsewhere(store, b, maintenance) {
            return;
        }
        let found = &mut walk.found;
        found.low_redundancy += 1;
        if info.open {
            found.open += 1;
            walk.open.push(info.block.id);
        }
        found.only_here += u64::from(self.count(store, b).live == 0);
    }

    /// Whether the block has enough without a node that leaves, for maintenance or for good (Hadoop's `isSufficient`).
    fn is_safe_elsewhere(&self, store: &Store, b: BlockHandle, maintenance: bool) -> bool {
        let (info, count) = (store.block(b), self.count(store, b));
        let required = self.required_live(&info, &count);
        if count.live >= required && self.well_placed(store, b) {
            return true;
        }
        let enough = if maintenance {
            self.minimum(&info, self.settings.maintenance_replication_min.min(info.replication))
        } else if count.live >= required {
            return false;
        } else if info.state != BlockState::Complete {
            self.minimum(&info, self.settings.replication_min)
        } else {
            self.stripe(&info).map_or(self.settings.replication_default.into(), |_| self.wanted(&info))
        };
        count.live >= enough
    }
}
