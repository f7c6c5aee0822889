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
    /// Media for all of `replication` replicas: the list, its last entry repeated. A memory medium is used once only.
    pub fn choose(&self, replication: u16) -> Kinds {
        let mut out = Kinds::new();
        let listed = self.kinds.iter().take(replication as usize).copied();
        out.extend(listed);
        let last = *self.kinds.last().expect("policies name media");
        while out.len() < replication as usize {
            if last == RamDisk {
                break;
            }
            out.push(last);
        }
        out
    }

    /// Media still missing when `chosen` are there already.
    pub fn missing(&self, replication: u16, chosen: &[StorageKind]) -> Kinds {
        let mut wanted = self.choose(replication);
        take_away(&mut wanted, chosen);
        wanted
    }

    /// Media of replicas beyond what the policy wants, when `present` are there.
    pub fn excess(&self, replication: u16, present: &[StorageKind]) -> Kinds {
        let wanted = self.choose(replication);
        let mut over = Kinds::from_slice(present);
        take_away(&mut over, &wanted);
        over
    }

    /// Media for the replicas still missing, with fallbacks for `unavailable` ones; those for which there is no fallback are left out.
    /// Hadoop's `chooseStorageTypes` with the same result when more media are unavailable than replicas are missing.
    pub fn choose_available(
        &self,
        replication: u16,
        chosen: &[StorageKind],
        unavailable: &[StorageKind],
        new_block: bool,
    ) -> Kinds {
        let wanted = self.choose(replication);
        // substitute per wanted replica before what is there is taken away, so that a fallback placed earlier counts for what it replaced
        let fallbacks = if new_block { self.creation_fallbacks } else { self.replication_fallbacks };
        let mut missing = wanted.clone();
        let mut over = Kinds::from_slice(chosen);
        take_away(&mut missing, chosen);
        take_away(&mut over, &wanted);
        let mut unplaced = 0usize;
        let mut out = Kinds::new();
        let mut replaced = Kinds::new();
        for kind in missing {
            if !unavailable.contains(&kind) {
                out.push(kind);
            } else if let Some(other) = fallbacks.iter().find(|f| !unavailable.contains(f)) {
                replaced.push(*other);
            } else {
                unplaced += 1;
            }
        }
        // replicas on media beyond the wanted ones stand in for missing ones: fewer are needed
        out.extend(replaced);
        let needed = (replication as usize).saturating_sub(chosen.len()).saturating_sub(unplaced);
        let _ = over;
        out.truncate(needed);
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
        assert_eq!(by_id(15).choose(3)[..], [RamDisk, Disk, Disk]);
        assert_eq!(by_id(0).name, "HOT");
        assert_eq!(by_name("all_ssd").map(|p| p.id), Some(12));
    }

    #[test]
    fn fallbacks() {
        assert_eq!(by_id(12).choose_available(3, &[], &[Ssd], true)[..], [Disk, Disk, Disk]);
        assert_eq!(by_id(2).choose_available(3, &[], &[Archive], true)[..], []);
        assert_eq!(by_id(7).choose_available(3, &[], &[Disk], true)[..], []);
        assert_eq!(by_id(7).choose_available(3, &[Disk], &[Disk], false)[..], [Archive, Archive]);
        assert_eq!(by_id(10).choose_available(3, &[Disk], &[Ssd], true)[..], [Disk, Disk]);
    }

    #[test]
    fn excess_media() {
        assert_eq!(by_id(7).excess(1, &[Disk, Ssd])[..], [Ssd]);
        assert_eq!(by_id(5).excess(2, &[Disk, Disk, Archive])[..], [Disk]);
    }
}
