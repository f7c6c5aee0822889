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

    /// The layout in which images and edits are written: that of the directories while a rolling upgrade runs from one that can be gone back to,
    /// else the present one (`FSNamesystem.getEffectiveLayoutVersion`).
    pub const fn effective(directories: LayoutVersion, rolling_upgrade: bool) -> LayoutVersion {
        let can_go_back = directories.0 <= LayoutVersion::MINIMUM_COMPATIBLE.0;
        if rolling_upgrade && can_go_back { directories } else { LayoutVersion::CURRENT }
    }
    /// Whether files of this layout have the given feature.
    ///
    /// Quirk: layouts_of_old_release_lines: releases 0.20.2xx, 0.22, 0.23, 1.2 and 1.3 took layout versions beyond those of features that they
    /// do not have.
    pub const fn supports(self, feature: Feature) -> bool {
        let (before, added) = self.lineage();
        if before <= feature as i32 {
            return true;
        }
        let mut i = 0;
        while i < added.len() {
            if added[i] as i32 == feature as i32 {
                return true;
            }
            i += 1;
        }
        false
    }
    /// The layout whose features all are in this one, and the features that are besides.
    const fn lineage(self) -> (i32, &'static [Feature]) {
        match self.0 {
            -31 | -32 => (-19, &[Feature::DelegationToken]),
            -33 => (-27, &[]),
            -34 => (-30, &[]),
            -41 => (-19, &[Feature::DelegationToken, Feature::Concat]),
            -44 => (
                -19,
                &[
                    Feature::DelegationToken,
                    Feature::Concat,
                    Feature::FsimageNameOptimization,
                    Feature::AddInodeId,
                    Feature::Snapshot,
                ],
            ),
            other => (other, &[]),
        }
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

impl Feature {
    /// Its name in refusals; only those are named that a layout in effect may lack.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::AppendNewBlock => "APPEND_NEW_BLOCK",
            Feature::QuotaByStorageType => "QUOTA_BY_STORAGE_TYPE",
            Feature::ErasureCoding => "ERASURE_CODING",
            Feature::ExpandedStringTable => "EXPANDED_STRING_TABLE",
            Feature::SnapshotModificationTime => "SNAPSHOT_MODIFICATION_TIME",
            Feature::NvdimmSupport => "NVDIMM_SUPPORT",
            _ => "TRUNCATE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_layout_is_written_while_a_rolling_upgrade_can_be_undone() {
        let effective = |layout, rolling| LayoutVersion::effective(LayoutVersion(layout), rolling).0;
        assert_eq!((effective(-63, true), effective(-61, true), effective(-67, true)), (-63, -61, -67));
        // not what a name node of that release could read
        assert_eq!((effective(-60, true), effective(-63, false)), (-67, -67));
    }

    #[test]
    fn layouts_of_old_release_lines() {
        let has = |layout: i32, feature| LayoutVersion(layout).supports(feature);
        assert!(has(-32, Feature::StickyBit) && has(-32, Feature::DelegationToken));
        assert!(!has(-32, Feature::Concat) && !has(-32, Feature::EditsChecksum));
        assert!(has(-33, Feature::FsimageChecksum) && !has(-33, Feature::EditsChecksum));
        assert!(has(-34, Feature::FsimageNameOptimization) && !has(-34, Feature::Federation));
        assert!(has(-41, Feature::Concat) && !has(-41, Feature::TxidBasedLayout));
        assert!(has(-44, Feature::AddInodeId) && !has(-44, Feature::StoredTxids));
        assert!(has(-45, Feature::OptimizeSnapshotInodes) && has(-54, Feature::ExtendedAcl));
        assert!(!has(-62, Feature::QuotaByStorageType) && has(-67, Feature::QuotaByStorageType));
    }
}
