//! What metaSave writes of the blocks: queues, deletions, corrupt replicas and DataNodes, in the lines of Hadoop's `BlockManager.metaSave`. In steps,
//! since the queues may be as long as the namespace is large: what changes between two steps may be told as it was or as it is.

use crate::counting::Standing;
use crate::redundancy::Level;
use crate::{AdminState, Blocks, Node, NodeNumber, ReportKind, VolumeState, block_text};
use record::{BlockHandle, Store};
use std::fmt::Write;
use vocab::BlockId;
use vocab::time::{MonotonicMs, Now, TimeMs};

/// What the account needs from elsewhere.
pub struct Names<'a> {
    /// Path of the file that a block belongs to.
    pub path: &'a dyn Fn(BlockId) -> Option<Vec<u8>>,
    /// A time as `Mon Nov 30 19:33:40 UTC 2026`.
    pub date: &'a dyn Fn(TimeMs) -> String,
}

/// How far an account is.
#[derive(Clone, Debug)]
enum Part {
    Head,
    /// A queue, behind a ticket.
    Queue(Level, u64),
    /// Blocks of which nothing can be decided yet, behind one.
    Postponed(Option<BlockId>),
    /// Copies under way that are still to be told.
    Pending(Vec<(BlockId, MonotonicMs, usize)>),
    /// Deletions of a node and of those after it, behind a block of it.
    Deletions(NodeNumber, Option<BlockId>),
    /// Corrupt blocks that are still to be told, the last one first.
    Corrupt(Vec<BlockId>),
    Nodes,
    End,
}

/// An account under way: step it under one hold after another until it is done.
#[derive(Clone, Debug)]
pub struct Account {
    part: Part,
    text: String,
}

/// Queues in the order of the account; that of the missing blocks comes last.
const QUEUES: [Level; 5] = [Level::Highest, Level::VeryLow, Level::Low, Level::BadlyDistributed, Level::Corrupt];

impl Account {
    /// Begins, behind these lines.
    pub fn new(text: String) -> Account {
        Account { part: Part::Head, text }
    }

    /// The lines since this was last called.
    pub fn take_text(&mut self) -> String {
        let room = String::with_capacity(self.text.capacity());
        std::mem::replace(&mut self.text, room)
    }

    /// The lines so far, but for those taken before.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Goes on with up to `budget` blocks; whether it is done.
    pub fn step(&mut self, blocks: &Blocks, store: &Store, now: Now, names: &Names<'_>, budget: usize) -> bool {
        let out = &mut self.text;
        self.part = match std::mem::replace(&mut self.part, Part::End) {
            Part::Head => {
                blocks.account_of_counts(out);
                Part::Queue(QUEUES[0], 0)
            }
            Part::Queue(level, after) => {
                let mut last = None;
                for (ticket, id) in blocks.low.after(level, after).take(budget) {
                    blocks.account_of_block(store, id, names, out);
                    last = Some(ticket);
                }
                let next = QUEUES.iter().position(|queue| *queue == level).and_then(|at| QUEUES.get(at + 1));
                match (last, next) {
                    (Some(ticket), _) => Part::Queue(level, ticket),
                    (None, Some(next)) => {
                        if *next == Level::Corrupt {
                            let missing = blocks.low.at(Level::Corrupt);
                            let _ = writeln!(out, "Metasave: Blocks currently missing: {missing}");
                        }
                        Part::Queue(*next, 0)
                    }
                    (None, None) => {
                        out.push_str("Mis-replicated blocks that have been postponed:\n");
                        Part::Postponed(None)
                    }
                }
            }
            Part::Postponed(after) => {
                let mut last = None;
                for id in blocks.postponed.after(after).take(budget) {
                    blocks.account_of_block(store, id, names, out);
                    last = Some(id);
                }
                if last.is_some() {
                    Part::Postponed(last)
                } else {
                    let _ = writeln!(out, "Metasave: Blocks being reconstructed: {}", blocks.pending.len());
                    Part::Pending(blocks.pending.entries().collect())
                }
            }
            Part::Pending(mut left) => {
                for (id, since, copies) in left.drain(left.len().saturating_sub(budget)..) {
                    blocks.account_of_copies(store, (id, since, copies), now, names, out);
                }
                if left.is_empty() { blocks.account_of_all_deletions(out) } else { Part::Pending(left) }
            }
            Part::Deletions(node, after) => blocks.account_of_deletions(node, after, budget, out),
            Part::Corrupt(mut left) => {
                for id in left.drain(left.len().saturating_sub(budget)..).rev() {
                    blocks.account_of_corrupt(store, id, out);
                }
                if left.is_empty() { Part::Nodes } else { Part::Corrupt(left) }
            }
            Part::Nodes => {
                let nodes = blocks.datanode_report(ReportKind::All);
                let _ = writeln!(out, "Metasave: Number of datanodes: {}", nodes.len());
                nodes.into_iter().for_each(|node| account_of_node(node, &(names.date)(node.last_update_wall), out));
                Part::End
            }
            Part::End => Part::End,
        };
        matches!(self.part, Part::End)
    }
}

impl Blocks {
    fn account_of_counts(&self, out: &mut String) {
        let count = |kind| self.datanode_report(kind).len();
        let _ = writeln!(out, "Live Datanodes: {}", count(ReportKind::Live));
        let _ = writeln!(out, "Dead Datanodes: {}", count(ReportKind::Dead));
        let waiting = self.low.len() - self.low.at(Level::Corrupt);
        let _ = writeln!(out, "Metasave: Blocks waiting for reconstruction: {waiting}");
    }

    fn account_of_copies(
        &self,
        store: &Store,
        (id, since, copies): (BlockId, MonotonicMs, usize),
        now: Now,
        names: &Names<'_>,
        out: &mut String,
    ) {
        let Some(b) = store.find_block(id) else { return };
        let began = (names.date)(TimeMs(now.wall.0 - now.monotonic.since(since) as i64));
        // the hours, minutes and seconds of the date
        let began = began.split(' ').nth(3).unwrap_or_default();
        let block = block_text(&store.block_core(b));
        let _ = writeln!(out, "{block} StartTime: {began} NumReconstructInProgress: {copies}");
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

    fn account_of_all_deletions(&self, out: &mut String) -> Part {
        let (all, nodes) = (self.invalidation.len(), self.invalidation.nodes());
        let _ = writeln!(out, "Metasave: Blocks {all} waiting deletion from {} datanodes.", nodes.len());
        self.account_of_next_node(nodes.first().copied(), out)
    }

    fn account_of_next_node(&self, node: Option<NodeNumber>, out: &mut String) -> Part {
        if let Some(node) = node {
            let _ = writeln!(out, "{}", self.name_of(node));
            return Part::Deletions(node, None);
        }
        out.push_str("Corrupt Blocks:\n");
        let mut ids: Vec<BlockId> = self.corrupt.ids().collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Part::Corrupt(ids)
    }

    /// A line of all deletions of a node, which may take many steps.
    fn account_of_deletions(&self, n: NodeNumber, after: Option<BlockId>, budget: usize, out: &mut String) -> Part {
        let mut last = None;
        for block in self.invalidation.after(n, after).take(budget) {
            if after.or(last).is_some() {
                out.push(',');
            }
            out.push_str(&block_text(block));
            last = Some(block.id);
        }
        if last.is_some() {
            return Part::Deletions(n, last);
        }
        out.push('\n');
        self.account_of_next_node(self.invalidation.nodes().into_iter().find(|next| *next > n), out)
    }

    fn account_of_corrupt(&self, store: &Store, id: BlockId, out: &mut String) {
        let Some(b) = store.find_block(id) else { return };
        for (node, reason) in self.corrupt.of(id) {
            self.account_of_replica(store, b, *node, reason.name(), out);
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
