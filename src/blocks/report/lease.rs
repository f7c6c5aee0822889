//! Leases of full reports: after a start not all DataNodes report at once (Hadoop's `BlockReportLeaseManager`).

use crate::{Blocks, NodeNumber};
use hashbrown::HashMap;
use rand::RngExt;
use std::collections::VecDeque;
use vocab::time::MonotonicMs;

/// Who may send a full report now.
#[derive(Debug, Default)]
pub struct Leases {
    /// Nodes without a lease, longest waiting first.
    waiting: VecDeque<NodeNumber>,
    given: HashMap<NodeNumber, (u64, MonotonicMs)>,
    /// Leases in order of their time; renewed and returned ones are skipped.
    order: VecDeque<(MonotonicMs, NodeNumber, u64)>,
    next_id: u64,
}

impl Leases {
    /// Makes a node known; it waits at the head (a node that never reported goes first).
    pub fn register(&mut self, node: NodeNumber) {
        if !self.waiting.contains(&node) && !self.given.contains_key(&node) {
            self.waiting.push_front(node);
        }
    }
    /// Forgets a node and its lease.
    pub fn unregister(&mut self, node: NodeNumber) {
        self.waiting.retain(|n| *n != node);
        self.given.remove(&node);
    }
    /// Gives a lease to a node that asks; 0 if too many are out.
    pub fn request(&mut self, node: NodeNumber, now: MonotonicMs, limit: usize, life_ms: u64) -> u64 {
        self.expire(now, life_ms);
        self.given.remove(&node);
        self.waiting.retain(|n| *n != node);
        if self.given.len() >= limit {
            self.waiting.push_back(node);
            return 0;
        }
        self.next_id = match self.next_id.wrapping_add(1) {
            0 => 1,
            id => id,
        };
        self.given.insert(node, (self.next_id, now));
        self.order.push_back((now, node, self.next_id));
        self.next_id
    }
    /// Whether a node holds this lease. Lease 0 is what administrators and old DataNodes report with: always good.
    pub fn check(&mut self, node: NodeNumber, id: u64, now: MonotonicMs, life_ms: u64) -> bool {
        if id == 0 {
            return true;
        }
        self.expire(now, life_ms);
        self.given.get(&node).is_some_and(|(held, _)| *held == id)
    }
    /// The report is done: the lease is free for another node.
    pub fn give_back(&mut self, node: NodeNumber) {
        if self.given.remove(&node).is_some() {
            self.waiting.push_back(node);
        }
    }
    fn expire(&mut self, now: MonotonicMs, life_ms: u64) {
        while let Some((since, node, id)) = self.order.front().copied() {
            let current = self.given.get(&node).is_some_and(|(held, _)| *held == id);
            if current && now.since(since) < life_ms {
                break;
            }
            self.order.pop_front();
            if current {
                self.give_back(node);
            }
        }
    }
}

impl Blocks {
    /// Gives the node a full-report lease if it may have one; 0 if not. Ids begin at a random number, so that a lease of an earlier process
    /// is not taken for one of this.
    pub(crate) fn request_lease(&mut self, node: NodeNumber, now: MonotonicMs) -> u64 {
        if self.leases.next_id == 0 {
            self.leases.next_id = self.random().random::<u64>() | 1;
        }
        self.leases.request(node, now, self.settings.report_leases_max, self.settings.report_lease_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_limited_and_expire() {
        let mut l = Leases::default();
        let nodes: Vec<NodeNumber> = (0..3).map(NodeNumber).collect();
        nodes.iter().for_each(|n| l.register(*n));
        let a = l.request(nodes[0], MonotonicMs(0), 2, 100);
        let b = l.request(nodes[1], MonotonicMs(10), 2, 100);
        assert!(a != 0 && b != 0 && a != b);
        assert_eq!(l.request(nodes[2], MonotonicMs(20), 2, 100), 0);
        assert!(l.check(nodes[0], a, MonotonicMs(20), 100));
        assert!(!l.check(nodes[1], a, MonotonicMs(20), 100), "another node's lease");
        assert!(l.check(nodes[2], 0, MonotonicMs(20), 100), "no lease is asked of old DataNodes");
        l.give_back(nodes[0]);
        assert!(!l.check(nodes[0], a, MonotonicMs(21), 100));
        assert_ne!(l.request(nodes[2], MonotonicMs(30), 2, 100), 0);
        assert!(!l.check(nodes[1], b, MonotonicMs(120), 100), "expired");
    }
}
