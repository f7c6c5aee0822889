//! Storage kinds and policies. The wire's numbers of kinds are not the Java ordinals that the core uses.

use hadoop_proto::hdfs::{BlockStoragePolicyProto, StorageTypeProto, StorageTypesProto};
use vocab::StorageKind;
use vocab::storage_policy::StoragePolicy;

/// The wire's number of a kind.
pub fn kind_to_wire(kind: StorageKind) -> StorageTypeProto {
    match kind {
        StorageKind::RamDisk => StorageTypeProto::RamDisk,
        StorageKind::Ssd => StorageTypeProto::Ssd,
        StorageKind::Disk => StorageTypeProto::Disk,
        StorageKind::Archive => StorageTypeProto::Archive,
        StorageKind::Provided => StorageTypeProto::Provided,
        StorageKind::Nvdimm => StorageTypeProto::Nvdimm,
    }
}

/// The kind of a wire number.
pub fn kind_from_wire(kind: StorageTypeProto) -> StorageKind {
    match kind {
        StorageTypeProto::RamDisk => StorageKind::RamDisk,
        StorageTypeProto::Ssd => StorageKind::Ssd,
        StorageTypeProto::Disk => StorageKind::Disk,
        StorageTypeProto::Archive => StorageKind::Archive,
        StorageTypeProto::Provided => StorageKind::Provided,
        StorageTypeProto::Nvdimm => StorageKind::Nvdimm,
    }
}

/// A list of kinds.
pub fn kinds(list: &[StorageKind]) -> StorageTypesProto {
    StorageTypesProto { storage_types: list.iter().map(|k| kind_to_wire(*k) as i32).collect() }
}

/// A policy; empty fallback lists are left out, as Java does.
pub fn policy(policy: &StoragePolicy) -> BlockStoragePolicyProto {
    let some = |list: &[StorageKind]| (!list.is_empty()).then(|| kinds(list));
    BlockStoragePolicyProto {
        policy_id: policy.id.into(),
        name: policy.name.to_owned(),
        creation_policy: kinds(policy.kinds),
        creation_fallback_policy: some(policy.creation_fallbacks),
        replication_fallback_policy: some(policy.replication_fallbacks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::storage_policy::POLICIES;

    #[test]
    fn kinds_round_trip_under_other_numbers() {
        for kind in StorageKind::ALL {
            assert_eq!(kind_from_wire(kind_to_wire(kind)), kind);
            assert_eq!(kind_to_wire(kind).as_str_name(), kind.name());
        }
    }

    /// As `getStoragePolicies` of 3.5.0 lists them.
    #[test]
    fn policies_without_fallbacks_leave_them_out() {
        let cold = policy(&POLICIES[1]);
        assert_eq!((cold.policy_id, cold.name.as_str()), (2, "COLD"));
        assert_eq!((cold.creation_fallback_policy, cold.replication_fallback_policy), (None, None));
        let hot = policy(&POLICIES[3]);
        assert_eq!(hot.replication_fallback_policy, Some(StorageTypesProto { storage_types: vec![3] }));
        assert_eq!(hot.creation_fallback_policy, None);
    }
}
