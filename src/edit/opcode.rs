//! Opcodes: number, Hadoop's name, the layout that brought each.

use vocab::LayoutVersion;

macro_rules! opcodes {
    ($($variant:ident = $number:literal, $name:literal, $since:literal;)*) => {
        /// Kind of an edit record (Hadoop's `FSEditLogOpCodes`, same numbers).
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // FORMAT.md has the table
        pub enum Opcode { $($variant = $number,)* }

        impl Opcode {
            /// All opcodes that can be read, by number.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];

            /// The opcode of a byte; `None` for the two obsolete DataNode ones (5, 6), padding (255) and unknown numbers.
            pub const fn from_number(number: u8) -> Option<Opcode> {
                match number { $($number => Some(Opcode::$variant),)* _ => None }
            }
            /// The name in Hadoop's viewers and logs, such as `OP_ADD`.
            pub const fn name(self) -> &'static str {
                match self { $(Opcode::$variant => $name,)* }
            }
            /// The layout version that brought it (0: there from the beginning).
            pub const fn since(self) -> LayoutVersion {
                match self { $(Opcode::$variant => LayoutVersion($since),)* }
            }
        }
    };
}

opcodes! {
    Add = 0, "OP_ADD", 0;
    RenameOld = 1, "OP_RENAME_OLD", 0;
    Delete = 2, "OP_DELETE", 0;
    Mkdir = 3, "OP_MKDIR", 0;
    SetReplication = 4, "OP_SET_REPLICATION", 0;
    SetPermissions = 7, "OP_SET_PERMISSIONS", 0;
    SetOwner = 8, "OP_SET_OWNER", 0;
    Close = 9, "OP_CLOSE", 0;
    SetGenstampV1 = 10, "OP_SET_GENSTAMP_V1", 0;
    SetNamespaceQuota = 11, "OP_SET_NS_QUOTA", -16;
    ClearNamespaceQuota = 12, "OP_CLEAR_NS_QUOTA", -16;
    Times = 13, "OP_TIMES", -17;
    SetQuota = 14, "OP_SET_QUOTA", -18;
    Rename = 15, "OP_RENAME", -21;
    Concat = 16, "OP_CONCAT_DELETE", -22;
    Symlink = 17, "OP_SYMLINK", -23;
    GetDelegationToken = 18, "OP_GET_DELEGATION_TOKEN", -24;
    RenewDelegationToken = 19, "OP_RENEW_DELEGATION_TOKEN", -24;
    CancelDelegationToken = 20, "OP_CANCEL_DELEGATION_TOKEN", -24;
    UpdateMasterKey = 21, "OP_UPDATE_MASTER_KEY", -24;
    ReassignLease = 22, "OP_REASSIGN_LEASE", -36;
    EndLogSegment = 23, "OP_END_LOG_SEGMENT", -38;
    StartLogSegment = 24, "OP_START_LOG_SEGMENT", -38;
    UpdateBlocks = 25, "OP_UPDATE_BLOCKS", -40;
    CreateSnapshot = 26, "OP_CREATE_SNAPSHOT", -43;
    DeleteSnapshot = 27, "OP_DELETE_SNAPSHOT", -43;
    RenameSnapshot = 28, "OP_RENAME_SNAPSHOT", -43;
    AllowSnapshot = 29, "OP_ALLOW_SNAPSHOT", -43;
    DisallowSnapshot = 30, "OP_DISALLOW_SNAPSHOT", -43;
    SetGenstampV2 = 31, "OP_SET_GENSTAMP_V2", -46;
    AllocateBlockId = 32, "OP_ALLOCATE_BLOCK_ID", -46;
    AddBlock = 33, "OP_ADD_BLOCK", -48;
    AddCacheDirective = 34, "OP_ADD_CACHE_DIRECTIVE", -51;
    RemoveCacheDirective = 35, "OP_REMOVE_CACHE_DIRECTIVE", -51;
    AddCachePool = 36, "OP_ADD_CACHE_POOL", -51;
    ModifyCachePool = 37, "OP_MODIFY_CACHE_POOL", -51;
    RemoveCachePool = 38, "OP_REMOVE_CACHE_POOL", -51;
    ModifyCacheDirective = 39, "OP_MODIFY_CACHE_DIRECTIVE", -51;
    SetAcl = 40, "OP_SET_ACL", -53;
    RollingUpgradeStart = 41, "OP_ROLLING_UPGRADE_START", -55;
    RollingUpgradeFinalize = 42, "OP_ROLLING_UPGRADE_FINALIZE", -55;
    SetXattr = 43, "OP_SET_XATTR", -57;
    RemoveXattr = 44, "OP_REMOVE_XATTR", -57;
    SetStoragePolicy = 45, "OP_SET_STORAGE_POLICY", -60;
    Truncate = 46, "OP_TRUNCATE", -61;
    Append = 47, "OP_APPEND", -62;
    SetQuotaByKind = 48, "OP_SET_QUOTA_BY_STORAGETYPE", -63;
    AddErasureCodingPolicy = 49, "OP_ADD_ERASURE_CODING_POLICY", -64;
    EnableErasureCodingPolicy = 50, "OP_ENABLE_ERASURE_CODING_POLICY", -64;
    DisableErasureCodingPolicy = 51, "OP_DISABLE_ERASURE_CODING_POLICY", -64;
    RemoveErasureCodingPolicy = 52, "OP_REMOVE_ERASURE_CODING_POLICY", -64;
}

impl Opcode {
    /// Whether a log of the given layout may hold it.
    pub const fn in_layout(self, layout: LayoutVersion) -> bool {
        layout.0 <= self.since().0
    }
}

impl crate::Record<'_> {
    /// The opcode of this record.
    pub fn opcode(&self) -> Opcode {
        use crate::Record as R;
        match self {
            R::Add(_) => Opcode::Add,
            R::Close(_) => Opcode::Close,
            R::RenameOld { .. } => Opcode::RenameOld,
            R::Delete { .. } => Opcode::Delete,
            R::Mkdir { .. } => Opcode::Mkdir,
            R::SetReplication { .. } => Opcode::SetReplication,
            R::SetPermissions { .. } => Opcode::SetPermissions,
            R::SetOwner { .. } => Opcode::SetOwner,
            R::SetGenstampV1 { .. } => Opcode::SetGenstampV1,
            R::SetNamespaceQuota { .. } => Opcode::SetNamespaceQuota,
            R::ClearNamespaceQuota { .. } => Opcode::ClearNamespaceQuota,
            R::Times { .. } => Opcode::Times,
            R::SetQuota { .. } => Opcode::SetQuota,
            R::Rename { .. } => Opcode::Rename,
            R::Concat { .. } => Opcode::Concat,
            R::Symlink { .. } => Opcode::Symlink,
            R::GetDelegationToken { .. } => Opcode::GetDelegationToken,
            R::RenewDelegationToken { .. } => Opcode::RenewDelegationToken,
            R::CancelDelegationToken { .. } => Opcode::CancelDelegationToken,
            R::UpdateMasterKey { .. } => Opcode::UpdateMasterKey,
            R::ReassignLease { .. } => Opcode::ReassignLease,
            R::EndLogSegment => Opcode::EndLogSegment,
            R::StartLogSegment => Opcode::StartLogSegment,
            R::UpdateBlocks { .. } => Opcode::UpdateBlocks,
            R::CreateSnapshot { .. } => Opcode::CreateSnapshot,
            R::DeleteSnapshot { .. } => Opcode::DeleteSnapshot,
            R::RenameSnapshot { .. } => Opcode::RenameSnapshot,
            R::AllowSnapshot { .. } => Opcode::AllowSnapshot,
            R::DisallowSnapshot { .. } => Opcode::DisallowSnapshot,
            R::SetGenstampV2 { .. } => Opcode::SetGenstampV2,
            R::AllocateBlockId { .. } => Opcode::AllocateBlockId,
            R::AddBlock { .. } => Opcode::AddBlock,
            R::AddCacheDirective { .. } => Opcode::AddCacheDirective,
            R::RemoveCacheDirective { .. } => Opcode::RemoveCacheDirective,
            R::AddCachePool { .. } => Opcode::AddCachePool,
            R::ModifyCachePool { .. } => Opcode::ModifyCachePool,
            R::RemoveCachePool { .. } => Opcode::RemoveCachePool,
            R::ModifyCacheDirective { .. } => Opcode::ModifyCacheDirective,
            R::SetAcl { .. } => Opcode::SetAcl,
            R::RollingUpgradeStart { .. } => Opcode::RollingUpgradeStart,
            R::RollingUpgradeFinalize { .. } => Opcode::RollingUpgradeFinalize,
            R::SetXattr { .. } => Opcode::SetXattr,
            R::RemoveXattr { .. } => Opcode::RemoveXattr,
            R::SetStoragePolicy { .. } => Opcode::SetStoragePolicy,
            R::Truncate { .. } => Opcode::Truncate,
            R::Append { .. } => Opcode::Append,
            R::SetQuotaByKind { .. } => Opcode::SetQuotaByKind,
            R::AddErasureCodingPolicy { .. } => Opcode::AddErasureCodingPolicy,
            R::EnableErasureCodingPolicy { .. } => Opcode::EnableErasureCodingPolicy,
            R::DisableErasureCodingPolicy { .. } => Opcode::DisableErasureCodingPolicy,
            R::RemoveErasureCodingPolicy { .. } => Opcode::RemoveErasureCodingPolicy,
        }
    }
}
