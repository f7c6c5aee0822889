//! The sums at the end.

use crate::service::Shared;
use std::fmt;

/// Which blocks are summed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Replicated,
    Striped,
}

/// Sums over the files of a kind.
pub(super) struct Totals {
    kind: Kind,
    replication: u16,
    minimum: u16,
    pub files: u64,
    pub bytes: u64,
    pub blocks: u64,
    open_files: u64,
    open_bytes: u64,
    open_blocks: u64,
    pub replicas: u64,
    pub expected: u64,
    pub below_minimum: u64,
    pub minimally: u64,
    pub excessive: u64,
    pub low: u64,
    pub misplaced: u64,
    pub missing_replicas: u64,
    pub decommissioned: u64,
    pub decommissioning: u64,
    pub entering_maintenance: u64,
    pub in_maintenance: u64,
    pub corrupt_files: u64,
    corrupt: u64,
    corrupt_bytes: u64,
    missing: u64,
    missing_bytes: u64,
    /// Blocks on too few racks that were queued for copies because that was asked for.
    pub queued: u64,
}

/// Words that differ between the kinds.
struct Words {
    blocks: &'static str,
    block: &'static str,
    below: &'static str,
    minimally: &'static str,
    over: &'static str,
    under: &'static str,
    misplaced: &'static str,
    average: &'static str,
    missing: &'static str,
    corrupt: &'static str,
    missing_replicas: &'static str,
    decommissioned: &'static str,
    decommissioning: &'static str,
    missing_upper: &'static str,
    corrupt_upper: &'static str,
}

const REPLICATED: Words = Words {
    blocks: "blocks",
    block: "block",
    below: "UNDER MIN REPL'D BLOCKS:\t",
    minimally: "Minimally replicated blocks:\t",
    over: "Over-replicated blocks:\t",
    under: "Under-replicated blocks:\t",
    misplaced: "Mis-replicated blocks:\t\t",
    average: "Average block replication:\t",
    missing: "Missing blocks:\t\t",
    corrupt: "Corrupt blocks:\t\t",
    missing_replicas: "Missing replicas:\t\t",
    decommissioned: "DecommissionedReplicas:\t",
    decommissioning: "DecommissioningReplicas:\t",
    missing_upper: "MISSING BLOCKS:\t",
    corrupt_upper: "CORRUPT BLOCKS: \t",
};
const STRIPED: Words = Words {
    blocks: "block groups",
    block: "block group",
    below: "UNRECOVERABLE BLOCK GROUPS:\t",
    minimally: "Minimally erasure-coded block groups:\t",
    over: "Over-erasure-coded block groups:\t",
    under: "Under-erasure-coded block groups:\t",
    misplaced: "Unsatisfactory placement block groups:\t",
    average: "Average block group size:\t",
    missing: "Missing block groups:\t\t",
    corrupt: "Corrupt block groups:\t\t",
    missing_replicas: "Missing internal blocks:\t",
    decommissioned: "Decommissioned internal blocks:\t",
    decommissioning: "Decommissioning internal blocks:\t",
    missing_upper: "MISSING BLOCK GROUPS:\t",
    corrupt_upper: "CORRUPT BLOCK GROUPS: \t",
};

impl Totals {
    pub(super) fn new(kind: Kind, shared: &Shared) -> Totals {
        let settings = shared.engine.settings();
        Totals {
            kind,
            replication: settings.replication,
            minimum: settings.replication_min,
            files: 0,
            bytes: 0,
            blocks: 0,
            open_files: 0,
            open_bytes: 0,
            open_blocks: 0,
            replicas: 0,
            expected: 0,
            below_minimum: 0,
            minimally: 0,
            excessive: 0,
            low: 0,
            misplaced: 0,
            missing_replicas: 0,
            decommissioned: 0,
            decommissioning: 0,
            entering_maintenance: 0,
            in_maintenance: 0,
            queued: 0,
            corrupt_files: 0,
            corrupt: 0,
            corrupt_bytes: 0,
            missing: 0,
            missing_bytes: 0,
        }
    }
    pub(super) fn is_healthy(&self) -> bool {
        self.missing == 0 && self.corrupt == 0
    }
    pub(super) fn add_open(&mut self, bytes: u64, blocks: u64) {
        self.open_files += 1;
        self.open_bytes += bytes;
        self.open_blocks += blocks;
    }
    pub(super) fn add_corrupt(&mut self, bytes: u64) {
        self.corrupt += 1;
        self.corrupt_bytes += bytes;
    }
    pub(super) fn add_missing(&mut self, bytes: u64) {
        self.missing += 1;
        self.missing_bytes += bytes;
    }

    /// ` (12.5 %)`, where there are blocks.
    fn share(&self, part: u64, whole: u64) -> String {
        if self.blocks == 0 { String::new() } else { percent(part, whole) }
    }

    fn alarm(&self, f: &mut fmt::Formatter<'_>, words: &Words) -> fmt::Result {
        const STARS: &str = "\n  ********************************";
        if self.corrupt_files == 0 && self.below_minimum == 0 {
            return Ok(());
        }
        f.write_str(STARS)?;
        if self.below_minimum > 0 {
            write!(f, "\n  {}{}", words.below, self.below_minimum)?;
            f.write_str(&self.share(self.below_minimum, self.blocks))?;
            if self.kind == Kind::Replicated {
                write!(f, "\n  MINIMAL BLOCK REPLICATION:\t{}", self.minimum)?;
            }
        }
        if self.corrupt_files > 0 {
            write!(f, "\n  CORRUPT FILES:\t{}", self.corrupt_files)?;
            if self.missing_bytes > 0 {
                let (word, number) = (words.missing_upper, self.missing);
                write!(f, "\n  {word}{number}\n  MISSING SIZE:\t\t{} B", self.missing_bytes)?;
            }
            if self.corrupt > 0 {
                let (word, number) = (words.corrupt_upper, self.corrupt);
                write!(f, "\n  {word}{number}\n  CORRUPT SIZE:\t\t{} B", self.corrupt_bytes)?;
            }
        }
        f.write_str(STARS)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = if self.kind == Kind::Replicated { &REPLICATED } else { &STRIPED };
        write!(f, " Total size:\t{} B", self.bytes)?;
        if self.open_bytes > 0 {
            write!(f, " (Total open files size: {} B)", self.open_bytes)?;
        }
        write!(f, "\n Total files:\t{}", self.files)?;
        if self.open_files > 0 {
            write!(f, " (Files currently being written: {})", self.open_files)?;
        }
        write!(f, "\n Total {} (validated):\t{}", words.blocks, self.blocks)?;
        if let Some(average) = self.bytes.checked_div(self.blocks) {
            write!(f, " (avg. {} size {average} B)", words.block)?;
        }
        if self.open_blocks > 0 {
            let what = if self.kind == Kind::Replicated { "file blocks" } else { "file block groups" };
            write!(f, " (Total open {what} (not validated): {})", self.open_blocks)?;
        }
        self.alarm(f, words)?;
        for (word, number) in [
            (words.minimally, self.minimally),
            (words.over, self.excessive),
            (words.under, self.low),
            (words.misplaced, self.misplaced),
        ] {
            write!(f, "\n {word}{number}{}", self.share(number, self.blocks))?;
        }
        if self.kind == Kind::Replicated {
            write!(f, "\n Default replication factor:\t{}", self.replication)?;
        }
        let average = if self.blocks == 0 { 0.0 } else { self.replicas as f32 / self.blocks as f32 };
        write!(f, "\n {}{}", words.average, java(average))?;
        write!(f, "\n {}{}\n {}{}", words.missing, self.missing, words.corrupt, self.corrupt)?;
        write!(f, "\n {}{}", words.missing_replicas, self.missing_replicas)?;
        if self.replicas > 0 {
            f.write_str(&percent(self.missing_replicas, self.expected))?;
        }
        for (word, number) in [
            (words.decommissioned, self.decommissioned),
            (words.decommissioning, self.decommissioning),
            ("EnteringMaintenanceReplicas:\t", self.entering_maintenance),
            ("InMaintenanceReplicas:\t", self.in_maintenance),
        ] {
            if number > 0 {
                write!(f, "\n {word}{number}")?;
            }
        }
        write!(f, "\n Blocks queued for replication:\t{}", self.queued)
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!(" ({} %)", java((part * 100) as f32 / whole as f32))
}

/// A float as Java's `Float.toString` has it.
fn java(value: f32) -> String {
    match value.abs() {
        0.0 | 1e-3..1e7 => format!("{value:?}"),
        _ if value.is_finite() => {
            let text = format!("{value:E}");
            let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
            let point = if digits.contains('.') { "" } else { ".0" };
            format!("{digits}{point}E{exponent}")
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn floats_as_java_prints_them() {
        let shown = [0.0, 100.0, 7.692_307_5, 0.000_5, 1.0e7, f32::NAN].map(super::java);
        assert_eq!(shown, ["0.0", "100.0", "7.6923075", "5.0E-4", "1.0E7", "NaN"]);
    }
}
