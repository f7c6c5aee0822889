//! Which media blocks lie on, and whether their storage policies want them there (Hadoop's `StoragePolicySummary`).

use std::collections::BTreeMap;
use std::fmt;
use vocab::StorageKind;
use vocab::storage_policy::{POLICIES, StoragePolicy, by_id};

/// Blocks by media and policy.
#[derive(Default)]
pub(super) struct StorageSummary {
    counts: BTreeMap<(Vec<StorageKind>, u8), u64>,
    blocks: u64,
}

impl StorageSummary {
    /// Adds a block that lies on `kinds` and whose file has a policy.
    pub(super) fn add(&mut self, kinds: &[StorageKind], policy: u8) {
        let mut kinds = kinds.to_vec();
        kinds.sort();
        *self.counts.entry((kinds, policy)).or_default() += 1;
        self.blocks += 1;
    }
}

/// The policy that puts replicas on just these media (sorted): its own list, the last one repeated.
fn policy_of(kinds: &[StorageKind]) -> Option<&'static StoragePolicy> {
    POLICIES.iter().find(|policy| {
        let mut own = policy.kinds.to_vec();
        own.sort();
        let (Some(last), true) = (own.last(), own.len() <= kinds.len()) else { return false };
        kinds.starts_with(&own) && kinds[own.len()..].iter().all(|kind| kind == last)
    })
}

/// `DISK:2,ARCHIVE:1(WARM)`.
fn describe(kinds: &[StorageKind], policy: Option<&StoragePolicy>) -> String {
    let counts = StorageKind::ALL.iter().map(|kind| (kind, kinds.iter().filter(|k| *k == kind).count()));
    let parts = counts.filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{}:{count}", kind.name()));
    let text = parts.collect::<Vec<_>>().join(",");
    policy.map_or_else(|| text.clone(), |policy| format!("{text}({})", policy.name))
}

/// `12.5000%`, with groups of thousands never needed.
fn percent(part: u64, whole: u64) -> String {
    format!("{:.4}%", part as f64 / whole as f64 * 100.0)
}

impl fmt::Display for StorageSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<_> = self.counts.iter().collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let mut other = String::new();
        f.write_str("\nBlocks satisfying the specified storage policy:")?;
        f.write_str("\nStorage Policy                  # of blocks       % of blocks\n")?;
        for ((kinds, specified), count) in rows {
            let (actual, specified) = (policy_of(kinds), by_id(*specified));
            let (text, share) = (describe(kinds, actual), percent(*count, self.blocks));
            match (actual, specified) {
                (Some(actual), Some(specified)) if actual.id == specified.id => {
                    writeln!(f, "{text:<25} {count:>10}  {share:>20}")?;
                }
                _ => {
                    let name = specified.map_or("", |policy| policy.name);
                    other += &format!("{text:<35} {name:<20} {count:>10}  {share:>20}\n");
                }
            }
        }
        if other.is_empty() {
            return f.write_str("\nAll blocks satisfy specified storage policy.\n");
        }
        f.write_str("\nBlocks NOT satisfying the specified storage policy:")?;
        f.write_str("\nStorage Policy                  Specified Storage Policy      # of blocks       % of blocks\n")?;
        f.write_str(&other)
    }
}
