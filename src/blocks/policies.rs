//! Storage policies: which media the replicas of a block go to (Hadoop's `BlockStoragePolicySuite`).

use smallvec::SmallVec;
use vocab::StorageKind;
use vocab::StorageKind::{Archive, Disk, Nvdimm, Provided, RamDisk, Ssd};

/// A list of media.
pub type Kinds = SmallVec<[StorageKind; 4]>;

/// A storage policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoragePolicy {
    /// Number, as in inodes and edit records.
    pub id: u8,
    /// Name.
    pub name: &'static str,
    /// Media of the replicas; the last one repeats.
    pub kinds: &'static [StorageKind],
    /// What stands in for missing media when a block is created.
    pub creation_fallbacks: &'static [StorageKind],
    /// What stands in when a replica is made later.
    pub replication_fallbacks: &'static [StorageKind],
    /// Whether new files inherit it from their creator's choice only (cannot be set on a file later).
    pub copy_on_create: bool,
}

/// Number of the default policy.
pub const HOT: u8 = 7;

/// The built-in policies, by number.
pub const POLICIES: [StoragePolicy; 8] = [
    policy(1, "PROVIDED", &[Provided, Disk], &[Provided, Disk], &[Provided, Disk], false),
    policy(2, "COLD", &[Archive], &[], &[], false),
    policy(5, "WARM", &[Disk, Archive], &[Disk, Archive], &[Disk, Archive], false),
    policy(7, "HOT", &[Disk], &[], &[Archive], false),
    policy(10, "ONE_SSD", &[Ssd, Disk], &[Ssd, Disk], &[Ssd, Disk], false),
    policy(12, "ALL_SSD", &[Ssd], &[Disk], &[Disk], false),
    policy(14, "ALL_NVDIMM", &[Nvdimm], &[Disk], &[Disk], false),
    policy(15, "LAZY_PERSIST", &[RamDisk, Disk], &[Disk], &[Disk], true),
];

const fn policy(
    id: u8,
    name: &'static str,
    kinds: &'static [StorageKind],
    creation_fallbacks: &'static [StorageKind],
    replication_fallbacks: &'static [StorageKind],
    copy_on_create: bool,
) -> StoragePolicy {
    StoragePolicy { id, name, kinds, creation_fallbacks, replication_fallbacks, copy_on_create }
}

/// The policy of a number; 0 (nothing set) and numbers without a policy are HOT.
pub fn by_id(id: u8) -> &'static StoragePolicy {
    POLICIES.iter().find(|p| p.id == id).unwrap_or(&POLICIES[3])
}

/// The policy of a name, whatever the case.
pub fn by_name(name: &str) -> Option<&'static StoragePolicy> {
    POLICIES.iter().find(|p| p.name.eq_ignore_ascii_case(name))
}

impl StoragePolicy {
    /// Media for all of `replication` replicas: the list, its last entry repeated. Memory is passed over: how much of it is used is not
    /// known here, so that the DataNode decides about it.
    pub fn choose(&self, replication: u16) -> Kinds {
        let lasting = self.kinds.iter().copied().filter(|k| *k != RamDisk);
        let last = lasting.clone().next_back();
        lasting.chain(last.into_iter().cycle()).take(replication as usize).collect()
    }

    /// Media of replicas beyond what the policy wants, when `present` are there.
    pub fn excess(&self, replication: u16, present: &[StorageKind]) -> Kinds {
        let mut over = Kinds::from_slice(present);
        take_away(&mut over, &self.choose(replication));
        over
    }

    /// Media for the replicas still missing when `chosen` are there, with fallbacks for `unavailable` ones; those without a fallback are
    /// left out. A replica on a medium the policy does not want counts for a missing one that would fall back to that medium.
    pub fn choose_available(
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
