//! Erasure coding policies: how the blocks of a file are split over DataNodes (Hadoop's `ErasureCodingPolicy`, `SystemErasureCodingPolicies`).

use std::sync::Arc;

/// Number of "no erasure coding", as in edit records and inodes.
pub const REPLICATION: u8 = 0;
/// Name under which a directory says that files below it are replicated, whatever is set above it.
pub const REPLICATION_NAME: &str = "replication";
/// Ids from here on are those of policies that administrators added; clients know those below by their ids.
pub const FIRST_USER_DEFINED: u8 = 64;
/// The last id.
pub const LAST: u8 = 127;
/// Most data and parity blocks of one group.
pub const UNITS_MAX: u32 = 16;
/// Attribute (of the system namespace) by which a directory has a policy.
pub const XATTR: &str = "hdfs.erasurecoding.policy";
/// Codecs with the coders that a Java name node names, first choice first.
pub const CODECS: [(&str, &str); 3] =
    [("rs", "rs_native, rs_java"), ("rs-legacy", "rs-legacy_java"), ("xor", "xor_native, xor_java")];

/// Id, name, codec, data units, parity units; all with cells of 1 MiB.
const BUILT_IN: [(u8, &str, &str, u8, u8); 5] = [
    (1, "RS-6-3-1024k", "rs", 6, 3),
    (2, "RS-3-2-1024k", "rs", 3, 2),
    (3, "RS-LEGACY-6-3-1024k", "rs-legacy", 6, 3),
    (4, "XOR-2-1-1024k", "xor", 2, 1),
    (5, "RS-10-4-1024k", "rs", 10, 4),
];

/// Whether new directories and files may get a policy. Numbered as `ErasureCodingPolicyState`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
#[allow(missing_docs)]
pub enum PolicyState {
    #[default]
    Disabled = 1,
    Enabled = 2,
    Removed = 3,
}

impl PolicyState {
    /// The state of a number.
    pub fn of(number: u64) -> Option<PolicyState> {
        [PolicyState::Disabled, PolicyState::Enabled, PolicyState::Removed].into_iter().find(|s| *s as u64 == number)
    }
}

/// How a block group is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Stripe {
    /// Data blocks of a group.
    pub data_units: u8,
    /// Parity blocks of a group.
    pub parity_units: u8,
    /// Bytes of a cell.
    pub cell_size: u32,
}

impl Stripe {
    /// Whether directories and files may get it: one with data, parity and cells.
    pub fn is_usable(&self) -> bool {
        self.data_units > 0 && self.parity_units > 0 && self.cell_size.cast_signed() > 0
    }

    /// Data and parity blocks.
    pub fn units(&self) -> u8 {
        self.data_units + self.parity_units
    }

    /// Bytes of one internal block of a group with `bytes` of data (`StripedBlockUtil.getInternalBlockLength`). Parity blocks are as long as the first.
    pub fn unit_length(&self, bytes: u64, index: u8) -> u64 {
        let cell = u64::from(self.cell_size.max(1));
        let stripe = cell * u64::from(self.data_units.max(1));
        let before = if index < self.data_units { u64::from(index) * cell } else { 0 };
        bytes / stripe * cell + (bytes % stripe).saturating_sub(before).min(cell)
    }

    /// Bytes on all disks of a group with `bytes` of data (`StripedBlockUtil.spaceConsumedByStripedBlock`).
    pub fn space_used(&self, bytes: u64) -> u64 {
        let cell = u64::from(self.cell_size.max(1));
        let stripe = cell * u64::from(self.data_units.max(1));
        let parity_block = bytes / stripe * cell + (bytes % stripe).min(cell);
        bytes + parity_block * u64::from(self.parity_units)
    }
}

/// Data and parity blocks as an image or a log tells them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Units {
    /// Data blocks of a group.
    pub data: i32,
    /// Parity blocks of a group.
    pub parity: i32,
}

impl Units {
    /// Whether a policy in an image or a log may say so.
    ///
    /// Quirk: policies_of_no_units_are_kept_and_not_used: Hadoop lets policies of no data or no parity blocks be added, set and saved, and of
    /// any numbers whose sum, which may overflow, is no more than 16
    pub fn is_legal(self) -> bool {
        self.data.wrapping_add(self.parity) <= UNITS_MAX.cast_signed()
    }

    /// The layout with them; of numbers that no group has, one that is not usable.
    pub fn stripe(self, cell_size: u32) -> Stripe {
        let units = |n: i32| u8::try_from(n).ok().filter(|n| u32::from(*n) <= UNITS_MAX).unwrap_or(0);
        Stripe { data_units: units(self.data), parity_units: units(self.parity), cell_size }
    }
}

impl From<Stripe> for Units {
    fn from(stripe: Stripe) -> Units {
        Units { data: stripe.data_units.into(), parity: stripe.parity_units.into() }
    }
}

/// A policy.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct ErasureCodingPolicy {
    /// Number, as files have it.
    pub id: u8,
    /// Name, as directories have it.
    pub name: Arc<str>,
    /// Codec.
    pub codec: Arc<str>,
    /// Data and parity blocks as they were told.
    pub units: Units,
    /// Layout of a block group.
    pub stripe: Stripe,
    /// Options of the codec that Hadoop does not interpret, by key.
    pub options: Vec<(Arc<str>, Arc<str>)>,
    /// State as it is saved.
    pub state: PolicyState,
}

impl ErasureCodingPolicy {
    /// A disabled policy under the name that its codec and layout give it.
    pub fn new(
        id: u8,
        codec: &str,
        units: Units,
        cell_size: u32,
        mut options: Vec<(Arc<str>, Arc<str>)>,
    ) -> ErasureCodingPolicy {
        options.sort();
        let Units { data, parity } = units;
        let name = format!("{}-{data}-{parity}-{}k", codec.to_uppercase(), cell_size / 1024).into();
        let (codec, stripe) = (codec.into(), units.stripe(cell_size));
        ErasureCodingPolicy { id, name, codec, units, stripe, options, state: PolicyState::Disabled }
    }

    /// Whether it is one that every file system has.
    pub fn is_built_in(&self) -> bool {
        self.id < FIRST_USER_DEFINED
    }

    /// The policy as Java prints it.
    pub fn describe(&self) -> String {
        let ErasureCodingPolicy { id, name, codec, units, stripe, options, .. } = self;
        let (Units { data, parity }, cell_size) = (units, stripe.cell_size);
        let options: String = options.iter().map(|(key, value)| format!(", {key}={value}")).collect();
        format!(
            "ErasureCodingPolicy=[Name={name}, Schema=[ECSchema=[Codec={codec}, numDataUnits={data}, numParityUnits={parity}{options}]], CellSize={cell_size}, Id={id}]"
        )
    }

    /// The policies that every file system has, disabled.
    pub fn built_in() -> impl Iterator<Item = ErasureCodingPolicy> {
        BUILT_IN.into_iter().map(|(id, name, codec, data_units, parity_units)| {
            let units = Units { data: data_units.into(), parity: parity_units.into() };
            ErasureCodingPolicy {
                id,
                name: name.into(),
                codec: codec.into(),
                units,
                stripe: units.stripe(1 << 20),
                options: Vec::new(),
                state: PolicyState::Disabled,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_of_a_group_as_hadoop_counts_it() {
        let stripe = |data_units, parity_units, cell_size| Stripe { data_units, parity_units, cell_size };
        for (stripe, bytes, used) in [
            (stripe(3, 2, 1 << 20), 1000, 3000),
            (stripe(6, 3, 1 << 20), 1000, 4000),
            (stripe(3, 2, 1 << 20), 3 << 20, 5 << 20),
            (stripe(2, 1, 65_536), 100_000, 165_536),
            (stripe(2, 1, 65_536), 200_000, 331_072),
            (stripe(2, 1, 65_536), 0, 0),
        ] {
            assert_eq!(stripe.space_used(bytes), used, "{stripe:?} {bytes}");
        }
    }

    #[test]
    fn names_follow_from_codec_and_layout() {
        for policy in ErasureCodingPolicy::built_in() {
            let named = ErasureCodingPolicy::new(policy.id, &policy.codec, policy.units, 1 << 20, Vec::new());
            assert_eq!(named, policy);
        }
    }

    #[test]
    fn units_of_which_no_group_is_are_told_as_they_are_and_not_used() {
        for (data, parity, legal) in [
            (6, 3, true),
            (16, 0, true),
            (16, 1, false),
            (-1, 2, true),
            (20, -10, true),
            (i32::MAX, i32::MAX, true),
            (i32::MIN, -1, false),
        ] {
            let units = Units { data, parity };
            assert_eq!(units.is_legal(), legal, "{units:?}");
            let policy = ErasureCodingPolicy::new(70, "rs", units, 1 << 20, Vec::new());
            assert_eq!((&*policy.name, policy.units), (&*format!("RS-{data}-{parity}-1024k"), units));
            assert_eq!(policy.stripe.is_usable(), (data, parity) == (6, 3) || (data, parity) == (16, 1));
            assert!(u32::from(policy.stripe.units()) <= 2 * UNITS_MAX);
        }
    }
}
