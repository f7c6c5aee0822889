//! Lines about a file and its blocks.

use super::walk::Entry;
use super::{Asked, Check};
use blocks::{AdminState, Apart};
use ops::read::fsck::{BlockCheck, FileCheck, Replica};
use ops::write::delete::Delete;
use std::fmt::Write as _;

/// Replicas by the states that count separately.
struct Replicas {
    live: u32,
    decommissioned: u32,
    decommissioning: u32,
    entering: u32,
    maintenance: u32,
}

impl Replicas {
    fn of(check: &BlockCheck) -> Replicas {
        let count = &check.count;
        Replicas {
            live: count.live,
            decommissioned: count.decommissioned,
            decommissioning: count.decommissioning,
            entering: count.maintenance_for_read,
            maintenance: count.maintenance_not_for_read,
        }
    }
    fn all(&self) -> u32 {
        self.live + self.decommissioned + self.decommissioning + self.entering + self.maintenance
    }
}

/// Sums over the blocks of one file.
#[derive(Default)]
struct Sums {
    missing: u64,
    missing_bytes: u64,
    corrupt: u64,
    corrupt_bytes: u64,
    low: u64,
    misplaced: u64,
}

/// Whether a block cannot be read: no replica, or too few internal blocks of a group.
fn is_missing(block: &BlockCheck) -> bool {
    let all = Replicas::of(block).all();
    if block.striped { all < block.minimum } else { all == 0 }
}

impl Check {
    /// All lines of a file.
    pub(super) fn report_file(&mut self, file: &Entry, check: &FileCheck) {
        if check.open && !self.asked.open {
            self.totals(file).add_open(file.length, check.located as u64);
            return;
        }
        self.head(file, check);
        let mut sums = Sums::default();
        let mut report = String::new();
        for (number, block) in check.blocks.iter().enumerate() {
            self.count(file, block, &mut sums);
            self.block_lines(file, block, &mut sums);
            self.add_to_report(&mut report, number, block);
        }
        if let Some(last) = &check.last {
            let (name, length, expected) = (self.name(last), last.block.length, last.replicas.len());
            let number = check.blocks.len();
            let expected = if self.asked.replicas() { expected } else { last.kinds.len() };
            let text = format!("\nUnder Construction Block:\n{number}. {name} len={length} Expected_repl={expected}");
            report += &text;
            report += &replicas(&self.asked, last);
        }
        self.tail(file, &sums, &report);
    }

    fn totals(&mut self, file: &Entry) -> &mut super::Totals {
        if file.coding.is_some() { &mut self.striped } else { &mut self.replicated }
    }

    fn name(&self, block: &BlockCheck) -> String {
        let pool = &self.shared.identity.block_pool;
        format!("{pool}:blk_{}_{}", block.block.id.0, block.block.stamp.0)
    }

    fn head(&mut self, file: &Entry, check: &FileCheck) {
        let totals = self.totals(file);
        totals.files += 1;
        totals.bytes += file.length;
        totals.blocks += check.located as u64;
        let files = totals.files;
        let (path, length, blocks) = (&file.path, file.length, check.located);
        let redundancy = match &file.coding {
            Some(policy) => format!("erasure-coded: policy={policy},"),
            None => format!("replicated: replication={},", file.replication),
        };
        let mark = if check.open && self.asked.open { ", OPENFORWRITE: " } else { ": " };
        if self.asked.files || check.open {
            self.out.put(&format!("{path} {length} bytes, {redundancy} {blocks} block(s){mark}"));
        } else if files.is_multiple_of(100) {
            self.out.put(".");
        }
    }

    fn count(&mut self, file: &Entry, block: &BlockCheck, sums: &mut Sums) {
        let replicas = Replicas::of(block);
        let wanted = if block.striped { block.wanted } else { file.replication.into() };
        let (all, missing) = (replicas.all(), is_missing(block));
        let totals = self.totals(file);
        totals.decommissioned += u64::from(replicas.decommissioned);
        totals.decommissioning += u64::from(replicas.decommissioning);
        totals.entering_maintenance += u64::from(replicas.entering);
        totals.in_maintenance += u64::from(replicas.maintenance);
        totals.replicas += u64::from(all);
        totals.expected += u64::from(wanted);
        totals.below_minimum += u64::from(all < block.minimum);
        totals.minimally += u64::from(all >= block.minimum);
        totals.excessive += u64::from(replicas.live > wanted);
        if block.corrupt {
            totals.add_corrupt(block.block.length);
            sums.corrupt += 1;
            sums.corrupt_bytes += block.block.length;
        }
        if all < wanted && !missing {
            totals.missing_replicas += u64::from(wanted - all);
            totals.low += 1;
        }
        totals.misplaced += u64::from(is_misplaced(block));
        if missing && !block.corrupt {
            totals.add_missing(block.block.length);
            sums.missing += 1;
            sums.missing_bytes += block.block.length;
        }
        if self.asked.policies {
            self.storage.add(&block.kinds, file.policy);
        }
    }

    fn block_lines(&mut self, file: &Entry, block: &BlockCheck, sums: &mut Sums) {
        let replicas = Replicas::of(block);
        let wanted = if block.striped { block.wanted } else { file.replication.into() };
        let (path, name) = (&file.path, self.name(block));
        if block.corrupt {
            let pool = self.shared.identity.block_pool.clone();
            self.out.put(&format!("\n{path}: CORRUPT blockpool {pool} block blk_{}\n", block.block.id.0));
        }
        if replicas.all() < wanted && !is_missing(block) {
            sums.low += 1;
            if !self.asked.files {
                self.out.put(&format!("\n{path}: "));
            }
            let Replicas { live, decommissioned, decommissioning, entering, maintenance } = replicas;
            let rest = match self.asked.maintenance {
                true => {
                    format!("{entering}, entering maintenance replica(s) and {maintenance} in maintenance replica(s).")
                }
                false => ".".to_owned(),
            };
            self.out.line(&format!(
                " Under replicated {name}. Target Replicas is {wanted} but found {live} live replica(s), {decommissioned} \
                 decommissioned replica(s), {decommissioning} decommissioning replica(s){rest}"
            ));
        }
        if is_misplaced(block) {
            sums.misplaced += 1;
            if !self.asked.files {
                if sums.low == 0 {
                    self.out.line("");
                }
                self.out.put(&format!("{path}: "));
            }
            let why = why_misplaced(block);
            self.out.line(&format!(" Replica placement policy is violated for {name}. {why}"));
        }
    }

    fn add_to_report(&self, report: &mut String, number: usize, block: &BlockCheck) {
        if !self.asked.blocks {
            return;
        }
        *report += &format!("{number}. {} len={}", self.name(block), block.block.length);
        let missing = is_missing(block) && !block.corrupt;
        if missing {
            *report += " MISSING!";
        }
        if !missing || block.striped {
            *report += &format!(" Live_repl={}", block.count.live);
            *report += &replicas(&self.asked, block);
        }
        report.push('\n');
    }

    fn tail(&mut self, file: &Entry, sums: &Sums, report: &str) {
        let path = &file.path;
        let bad = sums.missing > 0 || sums.corrupt > 0;
        let all = [("MISSING", sums.missing, sums.missing_bytes), ("CORRUPT", sums.corrupt, sums.corrupt_bytes)];
        let told: Vec<String> = all
            .iter()
            .filter(|(_, blocks, _)| *blocks > 0)
            .map(|(what, blocks, bytes)| format!("{what} {blocks} blocks of total size {bytes} B"))
            .collect();
        for text in &told {
            let line = if self.asked.files { format!(" {text}\n") } else { format!("\n{path}: {text}.") };
            self.out.put(&line);
        }
        if bad {
            self.totals(file).corrupt_files += 1;
        } else if self.asked.files && sums.low == 0 && sums.misplaced == 0 {
            self.out.put(" OK\n");
        }
        if self.asked.files && self.asked.blocks {
            self.out.line(report);
        }
    }

    /// Has blocks on too few racks looked at again, so that they are queued for copies; how many.
    pub(super) fn replicate(&mut self, file: &Entry, check: &FileCheck) {
        let misplaced = check.blocks.iter().filter(|block| is_misplaced(block));
        let ids: Vec<_> = misplaced.map(|block| block.block.id).collect();
        if ids.is_empty() {
            return;
        }
        let asked = &ids;
        let decided = self.shared.engine.turn("fsck", &self.caller, |turn| {
            let state = turn.soft();
            asked.iter().filter(|id| state.blocks.review_block(&mut state.store, **id)).count()
        });
        // what is ordered of DataNodes waits for the fence by itself
        self.totals(file).queued += decided.answer as u64;
    }

    /// Whether a file lost blocks and nobody writes it.
    pub(super) fn is_lost(&self, file: &Entry, check: &FileCheck) -> bool {
        let bad = check.blocks.iter().any(|block| block.corrupt || is_missing(block));
        if bad && check.open {
            tracing::info!("Fsck: ignoring open file {}", file.path);
        }
        bad && !check.open
    }

    pub(super) async fn delete(&self, file: &Entry) {
        let delete = Delete { path: file.path.clone().into_bytes(), recursive: true };
        let engine = &self.shared.engine;
        match engine.fence(engine.write(&delete, &self.caller)).await {
            Ok(_) => tracing::info!("Fsck: deleted corrupt file {}", file.path),
            Err(refusal) => tracing::error!("Fsck: error deleting corrupted file {}: {refusal:?}", file.path),
        }
    }
}

/// ` [replica, ...]`, if replicas are wanted.
fn replicas(asked: &Asked, block: &BlockCheck) -> String {
    if !asked.replicas() {
        return String::new();
    }
    let each: Vec<String> = block.replicas.iter().map(|replica| show(asked, block, replica)).collect();
    format!("  [{}]", each.join(", "))
}

fn show(asked: &Asked, block: &BlockCheck, replica: &Replica) -> String {
    let mut text = String::new();
    if block.striped && block.complete {
        text += &format!("blk_{}:", block.block.id.0 + i64::from(replica.index));
    }
    // writing to a string cannot fail
    let _ = match asked.racks {
        true => write!(text, "{}/{}", replica.rack, replica.address),
        false => {
            let (address, storage, kind) = (&replica.address, &replica.storage, replica.kind.name());
            write!(text, "DatanodeInfoWithStorage[{address},{storage},{kind}]")
        }
    };
    if asked.domains {
        text += &format!("(ud={})", replica.domain.as_deref().unwrap_or("undefined"));
    }
    if asked.details {
        text += &format!("({})", state(asked, replica));
    }
    text
}

fn state(asked: &Asked, replica: &Replica) -> &'static str {
    match replica.admin {
        AdminState::Decommissioned => "DECOMMISSIONED",
        AdminState::Decommissioning => "DECOMMISSIONING",
        AdminState::EnteringMaintenance if asked.maintenance => "ENTERING MAINTENANCE",
        AdminState::InMaintenance if asked.maintenance => "IN MAINTENANCE",
        _ if replica.corrupt.is_some() => "CORRUPT",
        _ if replica.excess => "EXCESS",
        _ if replica.stale_node => "STALE_NODE",
        _ if replica.stale_contents => "STALE_BLOCK_CONTENT",
        _ => "LIVE",
    }
}

fn is_misplaced(block: &BlockCheck) -> bool {
    !block.spread.suffices() || block.apart.lacking() > 0
}

/// What a misplaced block lacks.
fn why_misplaced(block: &BlockCheck) -> String {
    let mut why = Vec::new();
    if !block.spread.suffices() {
        let (more, all) = (block.spread.required - block.spread.racks, block.spread.all);
        why.push(format!(
            "Block should be additionally replicated on {more} more rack(s). Total number of racks in the cluster: {all}"
        ));
    }
    if block.apart.lacking() > 0 {
        let what = if block.apart.apart == Apart::NodeGroups { "node groups" } else { "upgrade domains" };
        let (wanted, there) = (block.apart.wanted, block.apart.there.join(", "));
        let count = block.apart.there.len();
        why.push(format!("The block has {wanted} replicas. But it only has {count} {what} [{there}]."));
    }
    why.join(" ")
}
