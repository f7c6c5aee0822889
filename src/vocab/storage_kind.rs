//! Kinds of storage media.

/// Storage type of a volume; the numbers are the Java ordinals that edit records and block tokens use
/// (the wire's `StorageTypeProto` numbers differ and live with the protobuf schema).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
#[repr(u8)]
#[allow(missing_docs)] // the names say it all
pub enum StorageKind {
    RamDisk = 0,
    Ssd = 1,
    #[default]
    Disk = 2,
    Archive = 3,
    Provided = 4,
    Nvdimm = 5,
}

impl StorageKind {
    /// All kinds, in ordinal order.
    pub const ALL: [StorageKind; 6] = [
        StorageKind::RamDisk,
        StorageKind::Ssd,
        StorageKind::Disk,
        StorageKind::Archive,
        StorageKind::Provided,
        StorageKind::Nvdimm,
    ];

    /// The kind of a Java ordinal.
    pub fn from_ordinal(n: u8) -> Option<StorageKind> {
        Self::ALL.get(n as usize).copied()
    }
    /// The name Hadoop uses in configuration, JMX and block tokens.
    pub fn name(self) -> &'static str {
        ["RAM_DISK", "SSD", "DISK", "ARCHIVE", "PROVIDED", "NVDIMM"][self as usize]
    }
    /// Whether a quota by this type can be set (not for memory, which is transient).
    pub fn supports_quota(self) -> bool {
        !matches!(self, StorageKind::RamDisk)
    }
}
