//! Layout versions of the NameNode's disk formats: negative numbers, newer ones are smaller.

/// A layout version such as -67.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(transparent)]
pub struct LayoutVersion(pub i32);

impl LayoutVersion {
    /// What Hadoop 3.4 and 3.5 write, and we.
    pub const CURRENT: LayoutVersion = LayoutVersion(-67);
    /// The newest layout version to which a rolling downgrade from [`LayoutVersion::CURRENT`] is possible.
    pub const MINIMUM_COMPATIBLE: LayoutVersion = LayoutVersion(-61);

    /// Whether files of this layout have the given feature.
    pub const fn supports(self, feature: Feature) -> bool {
        self.0 <= feature as i32
    }
    /// Whether this layout is newer than `other`.
    pub const fn newer_than(self, other: LayoutVersion) -> bool {
        self.0 < other.0
    }
}

/// Features by the layout version that brought them (Hadoop's `LayoutVersion.Feature` and `NameNodeLayoutVersion.Feature`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
#[allow(missing_docs)] // the names are Hadoop's and the table of layout versions in edit/FORMAT.md describes each
pub enum Feature {
    NamespaceQuota = -16,
    FileAccessTime = -17,
    DiskspaceQuota = -18,
    StickyBit = -19,
    AppendRbwDir = -20,
    AtomicRename = -21,
    Concat = -22,
    Symlinks = -23,
    DelegationToken = -24,
    FsimageCompression = -25,
    FsimageChecksum = -26,
    EditsChecksum = -28,
    FsimageNameOptimization = -30,
    Federation = -35,
    LeaseReassignment = -36,
    StoredTxids = -37,
    TxidBasedLayout = -38,
    EditlogOpOptimization = -39,
    OptimizePersistBlocks = -40,
    AddInodeId = -42,
    Snapshot = -43,
    OptimizeSnapshotInodes = -45,
    SequentialBlockId = -46,
    EditlogSupportRetrycache = -47,
    EditlogAddBlock = -48,
    AddDatanodeAndStorageUuids = -49,
    AddLayoutFlags = -50,
    Caching = -51,
    ProtobufFormat = -52,
    ExtendedAcl = -53,
    RollingUpgrade = -55,
    EditlogLength = -56,
    Xattrs = -57,
    CreateOverwrite = -58,
    XattrsNamespaceExt = -59,
    BlockStoragePolicy = -60,
    Truncate = -61,
    AppendNewBlock = -62,
    QuotaByStorageType = -63,
    ErasureCoding = -64,
    ExpandedStringTable = -65,
    SnapshotModificationTime = -66,
    NvdimmSupport = -67,
}
