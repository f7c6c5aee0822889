//! What metaSave writes of the blocks: queues, deletions, corrupt replicas and DataNodes, in the lines of Hadoop's `BlockManager.metaSave`.

use crate::counting::Standing;
use crate::redundancy::Level;
use crate::{AdminState, Blocks, Node, NodeNumber, ReportKind, VolumeState, block_text};
use record::{BlockHandle, Store};
use std::fmt::Write;
use vocab::BlockId;
use vocab::time::{Now, TimeMs};

/// What the account needs from elsewhere.
pub struct Names<'a> {
    /// Path of the file that a block belongs to.
    pub path: &'a dyn Fn(BlockId) -> Option<Vec<u8>>,
    /// A time as `Mon Nov 30 19:33:40 UTC 2026`.
    pub date: &'a dyn Fn(TimeMs) -> String,
}

impl Blocks {
    /// The account, one line each.
    pub fn account(&self, store: &Store, now: Now, names: &Names<'_>) -> String {
        let mut out = String::new();
        let count = |kind| self.datanode_report(kind).len();
        let _ = writeln!(out, "Live Datanodes: {}", count(ReportKind::Live));
        let _ = writeln!(out, "Dead Datanodes: {}", count(ReportKind::Dead));
        let missing = self.low.at(Level::Corrupt);
        let _ = writeln!(out, "Metasave: Blocks waiting for reconstruction: {}", self.low.len() - missing);
        for level in [Level::Highest, Level::VeryLow, Level::Low, Level::BadlyDistributed] {
            self.low.after(level, 0).for_each(|(_, id)| self.account_of_block(store, id, names, &mut out));
        }
        let _ = writeln!(out, "Metasave: Blocks currently missing: {missing}");
        self.low.after(Level::Corrupt, 0).for_each(|(_, id)| self.account_of_block(store, id, names, &mut out));
        out.push_str("Mis-replicated blocks that have been postponed:\n");
        self.postponed.ids().for_each(|id| self.account_of_block(store, id, names, &mut out));
        let _ = writeln!(out, "Metasave: Blocks being reconstructed: {}", self.pending.len());
        for (id, since, copies) in self.pending.entries() {
            let Some(b) = store.find_block(id) else { continue };
            let began = (names.date)(TimeMs(now.wall.0 - now.monotonic.since(since) as i64));
            // the hours, minutes and seconds of the date
            let began = began.split(' ').nth(3).unwrap_or_default();
            let block = block_text(&store.block_core(b));
            let _ = writeln!(out, "{block} StartTime: {began} NumReconstructInProgress: {copies}");
        }
        self.account_of_deletions(&mut out);
        self.account_of_corrupt(store, &mut out);
        let nodes = self.datanode_report(ReportKind::All);
        let _ = writeln!(out, "Metasave: Number of datanodes: {}", nodes.len());
        nodes.into_iter().for_each(|node| account_of_node(node, &(names.date)(node.last_update_wall), &mut out));
        out
    }

    /// File, counts and places of a block.
    fn account_of_block(&self, store: &Store, id: BlockId, names: &Names<'_>, out: &mut String) {
        let Some(b) = store.find_block(id) else { return };
        let count = self.count(store, b);
        let left = count.decommissioned + count.decommissioning;
        match (names.path)(id) {
            Some(path) => drop(write!(out, "{}: ", String::from_utf8_lossy(&path))),
            None => out.push_str("[orphaned]: "),
        }
        let missing = if count.live + left == 0 { " MISSING" } else { "" };
        let _ = write!(
            out,
            "{}{missing} (replicas: live: {} decommissioning and decommissioned: {left} corrupt: {} in excess: {} maintenance mode: {}) ",
            block_text(&store.block_core(b)),
            count.live,
            count.corrupt,
            count.excess,
            count.maintenance(),
        );
        for replica in store.replicas(b) {
            let Some((standing, volume, node)) = self.standing(replica) else { continue };
            let state = match standing {
                Standing::Corrupt => "(corrupt)",
                Standing::Decommissioned | Standing::Decommissioning => "(decommissioned)",
                Standing::MaintenanceForRead | Standing::MaintenanceNotForRead => "(maintenance)",
                _ => "",
            };
            let stale = if volume.contents_stale { " (block deletions maybe out of date)" } else { "" };
            let _ = write!(out, " {}{state}{stale} : ", node.id);
        }
        out.push('\n');
    }

    fn account_of_deletions(&self, out: &mut String) {
        let nodes = self.invalidation.nodes();
        let _ = writeln!(
            out,
            "Metasave: Blocks {} waiting deletion from {} datanodes.",
            self.invalidation.len(),
            nodes.len()
        );
        for n in nodes {
            let blocks: Vec<_> = self.invalidation.of(n).map(block_text).collect();
            let _ = writeln!(out, "{}\n{}", self.name_of(n), blocks.join(","));
        }
    }

    fn account_of_corrupt(&self, store: &Store, out: &mut String) {
        out.push_str("Corrupt Blocks:\n");
        let mut ids: Vec<BlockId> = self.corrupt.ids().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(b) = store.find_block(id) else { continue };
            for (node, reason) in self.corrupt.of(id) {
                self.account_of_replica(store, b, *node, reason.name(), out);
            }
        }
    }

    fn account_of_replica(&self, store: &Store, b: BlockHandle, n: NodeNumber, reason: &str, out: &mut String) {
        let Some(volume) = self.replica_on(store, b, n).and_then(|r| self.registry.volume(r.storage)) else { return };
        let state = match volume.state {
            VolumeState::Normal => "NORMAL",
            VolumeState::ReadOnlyShared => "READ_ONLY_SHARED",
            VolumeState::Failed => "FAILED",
        };
        let block = store.block_core(b);
        let _ = writeln!(
            out,
            "Block={}\tSize={}\tNode={}\tStorageID={}\tStorageState={state}\tTotalReplicas={}\tReason={reason}",
            block_text(&block),
            block.length,
            self.name_of(n),
            volume.id,
            store.replicas(b).into_iter().count(),
        );
    }

    fn name_of(&self, n: NodeNumber) -> String {
        self.registry.node(n).map(|node| node.id.to_string()).unwrap_or_default()
    }
}

/// A DataNode and its figures (Hadoop's `dumpDatanode`).
fn account_of_node(node: &Node, heard: &str, out: &mut String) {
    let s = &node.stats;
    let _ = write!(out, "{}", node.id);
    if &*node.location != crate::DEFAULT_RACK {
        let _ = write!(out, " {}", node.location);
    }
    if let Some(domain) = &node.upgrade_domain {
        let _ = write!(out, " {domain}");
    }
    out.push_str(match node.admin {
        AdminState::Decommissioned => " DD",
        AdminState::Decommissioning => " DP",
        AdminState::InMaintenance => " IM",
        AdminState::EnteringMaintenance => " EM",
        AdminState::Normal => " IN",
    });
    let size = |bytes: u64| format!("{bytes}({})", described(bytes));
    let percent = |part: u64, whole: u64| if whole == 0 { 100.0 } else { part as f32 * 100.0 / whole as f32 };
    let cache_left = s.cache_capacity.saturating_sub(s.cache_used);
    let _ = writeln!(
        out,
        " {} {} {:.2}% {} {} {} {:.2}% {} {heard}",
        size(s.capacity),
        size(s.dfs_used),
        percent(s.dfs_used, s.capacity),
        size(s.remaining),
        size(s.cache_capacity),
        size(s.cache_used),
        percent(s.cache_used, s.cache_capacity),
        size(cache_left),
    );
}

/// A number of bytes in the largest binary unit, two digits behind the point unless it comes out even.
fn described(bytes: u64) -> String {
    let power = (1..=6).rev().find(|power| bytes >= 1 << (10 * power));
    let Some(power) = power else { return format!("{bytes} B") };
    let (unit, symbol) = (1u64 << (10 * power), ["K", "M", "G", "T", "P", "E"][power - 1]);
    match bytes % unit {
        0 => format!("{} {symbol}B", bytes / unit),
        _ => format!("{:.2} {symbol}B", bytes as f64 / unit as f64),
    }
}
