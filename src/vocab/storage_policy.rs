//! Storage policies: which media the replicas of a block go to (Hadoop's `BlockStoragePolicySuite`). Data only; placement is elsewhere.

use crate::StorageKind;
use crate::StorageKind::{Archive, Disk, Nvdimm, Provided, RamDisk, Ssd};

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
    /// Set by the creator of a file only, never later.
    pub copy_on_create: bool,
}

/// "Nothing set": inherited, in the end HOT.
pub const UNSPECIFIED: u8 = 0;
/// Number of the default policy.
pub const HOT: u8 = 7;
/// Number of the memory policy.
pub const LAZY_PERSIST: u8 = 15;

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

/// The policy of a number.
pub fn by_id(id: u8) -> Option<&'static StoragePolicy> {
    POLICIES.iter().find(|p| p.id == id)
}

/// The policy of a name, whatever the case.
pub fn by_name(name: &str) -> Option<&'static StoragePolicy> {
    POLICIES.iter().find(|p| p.name.eq_ignore_ascii_case(name))
}

impl StoragePolicy {
    /// Media that the replicas count against in quotas: the list, its last entry repeated; memory is not counted.
    pub fn counted_kinds(&self, replication: u16) -> impl Iterator<Item = StorageKind> + use<> {
        let last = self.kinds[self.kinds.len() - 1];
        let listed = self.kinds.iter().copied().filter(|k| *k != RamDisk);
        listed.chain(std::iter::repeat(last).filter(|k| *k != RamDisk)).take(replication as usize)
    }
}
