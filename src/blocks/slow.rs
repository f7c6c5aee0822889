//! Slow peers and slow disks, as DataNodes tell of them in their heartbeats (Hadoop's `SlowPeerTracker` and `SlowDiskTracker`).
//! Latencies are in milliseconds.

use crate::{Blocks, Node, NodeNumber, with_port};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::time::MonotonicMs;

/// What a DataNode says of a peer that answers later than others.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PeerLatency {
    /// Latency of the peer.
    pub latency: f64,
    /// Median of all peers.
    pub median: f64,
    /// Median absolute deviation of all peers.
    pub deviation: f64,
    /// Latency above which a peer is slow.
    pub limit: f64,
}

/// Mean latencies of a disk; `None` where it is not slow.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DiskLatency {
    /// Of operations on names.
    pub metadata: Option<f64>,
    /// Of reads.
    pub read: Option<f64>,
    /// Of writes.
    pub write: Option<f64>,
}

impl DiskLatency {
    fn worst(&self) -> f64 {
        [self.metadata, self.read, self.write].into_iter().flatten().fold(0.0, f64::max)
    }
}

/// A peer that others report, with the reporters in the order of their names.
pub type SlowPeer = (Arc<str>, Vec<(Arc<str>, PeerLatency)>);

/// What is known of slow nodes and disks.
#[derive(Debug, Default)]
pub struct Slow {
    /// By slow peer and reporter, both addresses with a port: when it was reported last.
    peers: HashMap<Arc<str>, BTreeMap<Arc<str>, (MonotonicMs, PeerLatency)>>,
    /// By the reporter's address and the disk.
    disks: BTreeMap<Arc<str>, (MonotonicMs, DiskLatency)>,
    /// The slowest disks as of the last look at them.
    slowest_disks: (MonotonicMs, Vec<(Arc<str>, DiskLatency)>),
    /// Nodes that placement and reads avoid, and when they were collected.
    avoided: (Option<MonotonicMs>, HashSet<NodeNumber>),
}

impl Blocks {
    /// Takes what a heartbeat says of peers and disks.
    pub(crate) fn take_slow(&mut self, n: NodeNumber, beat: &crate::Heartbeat, now: MonotonicMs) {
        let Some(id) = self.registry.node(n).map(|node| &node.id) else { return };
        let reporter: Arc<str> = with_port(&id.ip, id.ipc_port).into();
        if self.settings.peer_stats {
            // nodes are collected from the start on, before anyone can have told of one
            self.slow.avoided.0.get_or_insert(now);
            for (peer, latency) in &beat.slow_peers {
                self.slow.peers.entry(peer.clone()).or_default().insert(reporter.clone(), (now, *latency));
            }
        }
        if self.settings.disk_stats {
            for (disk, latency) in &beat.slow_disks {
                self.slow.disks.insert(format!("{reporter}:{disk}").into(), (now, *latency));
            }
            if now.since(self.slow.slowest_disks.0) > self.settings.outlier_interval_ms {
                self.look_at_disks(now);
            }
        }
    }

    /// Reports count for three of their intervals.
    fn is_recent(&self, reported: MonotonicMs, now: MonotonicMs) -> bool {
        now.since(reported) < self.settings.outlier_interval_ms.saturating_mul(3)
    }

    fn look_at_disks(&mut self, now: MonotonicMs) {
        let mut disks = std::mem::take(&mut self.slow.disks);
        disks.retain(|_, (reported, _)| self.is_recent(*reported, now));
        let mut slowest: Vec<_> = disks.iter().map(|(disk, (_, latency))| (disk.clone(), *latency)).collect();
        slowest.sort_by(|a, b| b.1.worst().total_cmp(&a.1.worst()));
        slowest.truncate(self.settings.slow_disks_reported);
        slowest.reverse(); // the slowest last
        self.slow.disks = disks;
        self.slow.slowest_disks = (now, slowest);
    }

    /// The slowest disks, the slowest last: address of the DataNode with the disk, and latencies. `None` if there is none.
    pub fn slow_disks(&self) -> Option<&[(Arc<str>, DiskLatency)]> {
        Some(&*self.slow.slowest_disks.1).filter(|disks| self.settings.disk_stats && !disks.is_empty())
    }

    /// The `limit` peers that most others report, the most reported last. `None` if peers are not measured.
    pub fn slow_peers(&self, limit: usize, now: MonotonicMs) -> Option<Vec<SlowPeer>> {
        if !self.settings.peer_stats {
            return None;
        }
        let mut peers: Vec<SlowPeer> = Vec::new();
        for (peer, reporters) in &self.slow.peers {
            let recent = reporters.iter().filter(|(_, (reported, _))| self.is_recent(*reported, now));
            let recent: Vec<_> = recent.map(|(reporter, (_, latency))| (reporter.clone(), *latency)).collect();
            if !recent.is_empty() {
                peers.push((peer.clone(), recent));
            }
        }
        peers.sort_by(|a, b| (Reverse(a.1.len()), &a.0).cmp(&(Reverse(b.1.len()), &b.0)));
        peers.truncate(limit);
        peers.reverse();
        Some(peers)
    }

    /// The nodes of all reported peers.
    pub fn slow_nodes(&self, now: MonotonicMs) -> Vec<&Node> {
        self.nodes_of_peers(self.registry.numbers().len(), now).filter_map(|n| self.registry.node(n)).collect()
    }

    fn nodes_of_peers(&self, limit: usize, now: MonotonicMs) -> impl Iterator<Item = NodeNumber> {
        let host = |peer: &str| {
            let (host, _) = peer.rsplit_once(':')?;
            self.node_at(host.trim_start_matches('[').trim_end_matches(']'))
        };
        self.slow_peers(limit, now).unwrap_or_default().into_iter().filter_map(move |(peer, _)| host(&peer))
    }

    /// Collects the nodes to be avoided anew when it is time, and forgets old reports.
    pub(crate) fn collect_slow(&mut self, now: MonotonicMs) {
        if !self.settings.peer_stats {
            self.slow.peers.clear();
            self.slow.avoided = (None, HashSet::new());
            return;
        }
        if self.slow.avoided.0.is_some_and(|at| now.since(at) < self.settings.slow_collect_interval_ms) {
            return;
        }
        let avoided = self.nodes_of_peers(self.settings.slow_nodes_collected, now).collect();
        self.slow.avoided = (Some(now), avoided);
        let mut peers = std::mem::take(&mut self.slow.peers);
        peers.retain(|_, reporters| {
            reporters.retain(|_, (reported, _)| self.is_recent(*reported, now));
            !reporters.is_empty()
        });
        self.slow.peers = peers;
    }

    /// Whether the node is one of those collected as slow.
    pub fn is_slow(&self, n: NodeNumber) -> bool {
        self.slow.avoided.1.contains(&n)
    }
}
