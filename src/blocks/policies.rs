//! Storage policies at work: which media the replicas of a block go to. The policies themselves are words of `vocab`.

use smallvec::SmallVec;
use vocab::StorageKind;
use vocab::StorageKind::RamDisk;
use vocab::storage_policy;

pub use vocab::storage_policy::{HOT, StoragePolicy};

/// A list of media.
pub type Kinds = SmallVec<[StorageKind; 4]>;

/// The policy of a number; 0 (nothing set) and numbers without a policy are HOT.
pub fn by_id(id: u8) -> &'static StoragePolicy {
    storage_policy::by_id(id).unwrap_or_else(|| storage_policy::by_id(HOT).expect("HOT is built in"))
}

/// Choices of media by a policy.
pub trait ChooseKinds {
    /// Media for all of `replication` replicas: the list, its last entry repeated. Memory is passed over: how much of it is used is not
    /// known here, so that the DataNode decides about it.
    fn choose(&self, replication: u16) -> Kinds;
    /// Media of replicas beyond what the policy wants, when `present` are there.
    fn excess(&self, replication: u16, present: &[StorageKind]) -> Kinds;
    /// Media for the replicas still missing when `chosen` are there, with fallbacks for `unavailable` ones; those without a fallback are
    /// left out. A replica on a medium the policy does not want counts for a missing one that would fall back to that medium.
    fn choose_available(
        &self,
        replication: u16,
        chosen: &[StorageKind],
        unavailable: &[StorageKind],
        new_block: bool,
    ) -> Kinds;
}

impl ChooseKinds for StoragePolicy {
    fn choose(&self, replication: u16) -> Kinds {
        let lasting = self.kinds.iter().copied().filter(|k| *k != RamDisk);
        let last = lasting.clone().next_back();
        lasting.chain(last.into_iter().cycle()).take(replication as usize).collect()
    }

    fn excess(&self, replication: u16, present: &[StorageKind]) -> Kinds {
        let mut over = Kinds::from_slice(present);
        take_away(&mut over, &self.choose(replication));
        over
    }

    fn choose_available(
        &self,
        replication: u16,
        chosen: &[StorageKind],
        unavailable: &[StorageKind],
        new_block: bool,
    ) -> Kinds {
        let fallbacks = if new_block { self.creation_fallbacks } else { self.replication_fallbacks };
        let fallback = fallbacks.iter().find(|f| !unavailable.contains(f)).copied();
        let mut missing = self.choose(replication);
        take_away(&mut missing, chosen);
        let mut out: Kinds =
            missing.into_iter().filter_map(|k| if unavailable.contains(&k) { fallback } else { Some(k) }).collect();
        take_away(&mut out, &self.excess(replication, chosen));
        out
    }
}

fn take_away(list: &mut Kinds, others: &[StorageKind]) {
    for kind in others {
        if let Some(at) = list.iter().position(|k| k == kind) {
            list.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::StorageKind::{Archive, Disk, Ssd};
    use vocab::storage_policy::by_name;

    #[test]
    fn lists_repeat_their_last_medium() {
        assert_eq!(by_id(7).choose(3)[..], [Disk, Disk, Disk]);
        assert_eq!(by_id(5).choose(3)[..], [Disk, Archive, Archive]);
        assert_eq!(by_id(10).choose(1)[..], [Ssd]);
        assert_eq!(by_id(15).choose(3)[..], [Disk, Disk, Disk]);
        assert_eq!(by_id(0).name, "HOT");
        assert_eq!(by_name("all_ssd").map(|p| p.id), Some(12));
    }

    /// Answers of Hadoop 3.5.0: one line per question, `C policy replication chosen unavailable new = media` or
    /// `E policy replication present = excess`; media by ordinal behind a dot.
    #[test]
    fn choices_are_hadoops() {
        let kinds = |text: &str| -> Kinds {
            text.bytes().skip(1).filter_map(|b| StorageKind::from_ordinal(b - b'0')).collect()
        };
        let mut lines = 0;
        for line in include_str!("tests/policies.txt").lines() {
            let w: Vec<&str> = line.split(' ').collect();
            let policy = by_id(w[1].parse().expect("id"));
            let replication = w[2].parse().expect("replication");
            let answer = match w[0] {
                "E" => policy.excess(replication, &kinds(w[3])),
                _ => policy.choose_available(replication, &kinds(w[3]), &kinds(w[4]), w[5] == "1"),
            };
            assert_eq!(answer, kinds(w[w.len() - 1]), "{line}");
            lines += 1;
        }
        assert!(lines > 1_000);
    }
}
