//! The one table of operations. The role gate, the retry cache, names in metrics, refusals and audit lines, and the compatibility matrix are derived from it;
//! the columns for safe mode and observers say what Hadoop does and await their readers.

/// What an operation needs of the name node's role (Hadoop's `OperationCategory`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Category {
    /// Reads state; an observer or a standby that allows stale reads may serve it.
    Read,
    /// Changes state, or must see the newest; the active only.
    Write,
    /// Checkpoint traffic between name nodes.
    Checkpoint,
    /// Rolls or reads the journal; the active only.
    Journal,
    /// Served in every role.
    Unchecked,
}

/// What a repeated call does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Retry {
    /// Simply runs again.
    Idempotent,
    /// Is answered from the retry cache, keyed by client id and call id.
    AtMostOnce,
}

/// What safe mode does to the operation. The words of the refusal are in the operation itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum SafeModeRule {
    /// Served.
    Served,
    /// Refused.
    Refused,
    /// Served but for the part that needs locations or writes (access times, locations of a file without any).
    Partly,
    /// Only served in safe mode.
    Required,
}

/// How an observer treats a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Observer {
    /// Not a read, or of no concern to observers.
    Never,
    /// A read that need not be aligned with the caller's state id.
    Plain,
    /// A read that waits for the caller's state id.
    Coordinated,
    /// Coordinated, and may log an access time: an observer sends the caller to the active then.
    CoordinatedAccessTime,
    /// A read that only the active answers.
    ActiveOnly,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The operation.
    pub operation: Operation,
    /// Name of the method of `ClientNamenodeProtocol`; also the metrics name.
    pub method: &'static str,
    /// Role rule.
    pub category: Category,
    /// Repetition rule.
    pub retry: Retry,
    /// Safe mode rule.
    pub safe_mode: SafeModeRule,
    /// Observer rule.
    pub observer: Observer,
    /// `cmd=` of the audit line; empty where Hadoop writes none.
    pub audit: &'static str,
    /// Whether this name node does it.
    pub implemented: bool,
}

macro_rules! operations {
    ($($variant:ident $method:literal $category:ident $retry:ident $safe:ident $observer:ident $audit:literal $implemented:literal;)*) => {
        /// Every operation of `ClientNamenodeProtocol`, in the order of its declaration.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // the names are the protocol's
        pub enum Operation { $($variant),* }
        /// The table, indexed by [`Operation`].
        pub const TABLE: &[Row] = &[$(Row {
            operation: Operation::$variant, method: $method, category: Category::$category, retry: Retry::$retry,
            safe_mode: SafeModeRule::$safe, observer: Observer::$observer, audit: $audit, implemented: $implemented,
        }),*];
    };
}

operations! {
    GetBlockLocations "getBlockLocations" Read Idempotent Partly CoordinatedAccessTime "open" true;
    GetServerDefaults "getServerDefaults" Read Idempotent Served Coordinated "" true;
    Create "create" Write AtMostOnce Refused Never "create" true;
    Append "append" Write AtMostOnce Refused Never "append" true;
    SetReplication "setReplication" Write Idempotent Refused Never "setReplication" true;
    SetStoragePolicy "setStoragePolicy" Write Idempotent Refused Never "setStoragePolicy" true;
    UnsetStoragePolicy "unsetStoragePolicy" Write Idempotent Refused Never "unsetStoragePolicy" true;
    GetStoragePolicy "getStoragePolicy" Read Idempotent Served Coordinated "" true;
    GetStoragePolicies "getStoragePolicies" Read Idempotent Served Coordinated "" true;
    SetPermission "setPermission" Write Idempotent Refused Never "setPermission" true;
    SetOwner "setOwner" Write Idempotent Refused Never "setOwner" true;
    AbandonBlock "abandonBlock" Write Idempotent Refused Never "" true;
    AddBlock "addBlock" Write Idempotent Refused Never "" true;
    GetAdditionalDatanode "getAdditionalDatanode" Write Idempotent Refused Never "" true;
    Complete "complete" Write Idempotent Refused Never "" true;
    ReportBadBlocks "reportBadBlocks" Write Idempotent Served Never "reportBadBlocks" true;
    Concat "concat" Write AtMostOnce Refused Never "concat" true;
    Truncate "truncate" Write Idempotent Refused Never "truncate" true;
    Rename "rename" Write AtMostOnce Refused Never "rename" true;
    Rename2 "rename2" Write AtMostOnce Refused Never "rename" true;
    Delete "delete" Write AtMostOnce Refused Never "delete" true;
    Mkdirs "mkdirs" Write Idempotent Refused Never "mkdirs" true;
    GetListing "getListing" Read Idempotent Partly Coordinated "listStatus" true;
    GetBatchedListing "getBatchedListing" Read Idempotent Partly Coordinated "listStatus" true;
    RenewLease "renewLease" Write Idempotent Refused Never "" true;
    RecoverLease "recoverLease" Write Idempotent Refused Never "" true;
    GetFsStats "getFsStats" Read Idempotent Served Plain "" true;
    GetFsReplicatedBlockStats "getFsReplicatedBlockStats" Read Idempotent Served Plain "" true;
    GetFsEcBlockGroupStats "getFsECBlockGroupStats" Read Idempotent Served Plain "" true;
    GetDatanodeReport "getDatanodeReport" Unchecked Idempotent Served Plain "datanodeReport" true;
    GetDatanodeStorageReport "getDatanodeStorageReport" Unchecked Idempotent Served Plain "getDatanodeStorageReport" true;
    GetPreferredBlockSize "getPreferredBlockSize" Read Idempotent Served Coordinated "" true;
    SetSafeMode "setSafeMode" Unchecked Idempotent Served Never "safemode" true;
    SaveNamespace "saveNamespace" Unchecked AtMostOnce Required Never "saveNamespace" true;
    RollEdits "rollEdits" Journal Idempotent Refused Never "rollEditLog" true;
    RestoreFailedStorage "restoreFailedStorage" Unchecked Idempotent Served Never "restoreFailedStorage" true;
    RefreshNodes "refreshNodes" Unchecked Idempotent Served Never "refreshNodes" true;
    FinalizeUpgrade "finalizeUpgrade" Unchecked Idempotent Served Never "finalizeUpgrade" true;
    UpgradeStatus "upgradeStatus" Unchecked Idempotent Served Never "" true;
    RollingUpgrade "rollingUpgrade" Unchecked Idempotent Served Never "rollingUpgrade" true;
    ListCorruptFileBlocks "listCorruptFileBlocks" Read Idempotent Served Coordinated "" true;
    MetaSave "metaSave" Unchecked Idempotent Served Never "metaSave" true;
    GetFileInfo "getFileInfo" Read Idempotent Partly Coordinated "getfileinfo" true;
    GetLocatedFileInfo "getLocatedFileInfo" Read Idempotent Partly Coordinated "getfileinfo" true;
    AddCacheDirective "addCacheDirective" Write AtMostOnce Refused Never "addCacheDirective" true;
    ModifyCacheDirective "modifyCacheDirective" Write AtMostOnce Refused Never "modifyCacheDirective" true;
    RemoveCacheDirective "removeCacheDirective" Write AtMostOnce Refused Never "removeCacheDirective" true;
    ListCacheDirectives "listCacheDirectives" Read Idempotent Served Coordinated "listCacheDirectives" true;
    AddCachePool "addCachePool" Write AtMostOnce Refused Never "addCachePool" true;
    ModifyCachePool "modifyCachePool" Write AtMostOnce Refused Never "modifyCachePool" true;
    RemoveCachePool "removeCachePool" Write AtMostOnce Refused Never "removeCachePool" true;
    ListCachePools "listCachePools" Read Idempotent Served Coordinated "listCachePools" true;
    GetFileLinkInfo "getFileLinkInfo" Read Idempotent Partly Coordinated "getfileinfo" true;
    GetContentSummary "getContentSummary" Read Idempotent Served Coordinated "contentSummary" true;
    SetQuota "setQuota" Write Idempotent Refused Never "setQuota" true;
    Fsync "fsync" Write Idempotent Refused Never "" true;
    SetTimes "setTimes" Write Idempotent Refused Never "setTimes" true;
    CreateSymlink "createSymlink" Write AtMostOnce Refused Never "createSymlink" true;
    GetLinkTarget "getLinkTarget" Read Idempotent Served Coordinated "getfileinfo" true;
    UpdateBlockForPipeline "updateBlockForPipeline" Write Idempotent Refused Never "" true;
    UpdatePipeline "updatePipeline" Write AtMostOnce Refused Never "" true;
    GetDelegationToken "getDelegationToken" Write Idempotent Refused Never "getDelegationToken" true;
    RenewDelegationToken "renewDelegationToken" Write Idempotent Refused Never "renewDelegationToken" true;
    CancelDelegationToken "cancelDelegationToken" Write Idempotent Refused Never "cancelDelegationToken" true;
    SetBalancerBandwidth "setBalancerBandwidth" Unchecked Idempotent Served Never "setBalancerBandwidth" true;
    GetDataEncryptionKey "getDataEncryptionKey" Unchecked Idempotent Served Coordinated "" true;
    CreateSnapshot "createSnapshot" Write AtMostOnce Refused Never "createSnapshot" true;
    RenameSnapshot "renameSnapshot" Write AtMostOnce Refused Never "renameSnapshot" true;
    AllowSnapshot "allowSnapshot" Write Idempotent Refused Never "allowSnapshot" true;
    DisallowSnapshot "disallowSnapshot" Write Idempotent Refused Never "disallowSnapshot" true;
    GetSnapshottableDirListing "getSnapshottableDirListing" Read Idempotent Served Coordinated "listSnapshottableDirectory" true;
    GetSnapshotListing "getSnapshotListing" Read Idempotent Served Coordinated "ListSnapshot" true;
    DeleteSnapshot "deleteSnapshot" Write AtMostOnce Refused Never "deleteSnapshot" true;
    GetSnapshotDiffReport "getSnapshotDiffReport" Read Idempotent Served Coordinated "computeSnapshotDiff" true;
    GetSnapshotDiffReportListing "getSnapshotDiffReportListing" Read Idempotent Served Coordinated "computeSnapshotDiff" true;
    IsFileClosed "isFileClosed" Read Idempotent Served Coordinated "isFileClosed" true;
    ModifyAclEntries "modifyAclEntries" Write Idempotent Refused Never "modifyAclEntries" true;
    RemoveAclEntries "removeAclEntries" Write Idempotent Refused Never "removeAclEntries" true;
    RemoveDefaultAcl "removeDefaultAcl" Write Idempotent Refused Never "removeDefaultAcl" true;
    RemoveAcl "removeAcl" Write Idempotent Refused Never "removeAcl" true;
    SetAcl "setAcl" Write Idempotent Refused Never "setAcl" true;
    GetAclStatus "getAclStatus" Read Idempotent Served Coordinated "getAclStatus" true;
    SetXattr "setXAttr" Write AtMostOnce Refused Never "setXAttr" true;
    GetXattrs "getXAttrs" Read Idempotent Served Coordinated "getXAttrs" true;
    ListXattrs "listXAttrs" Read Idempotent Served Coordinated "listXAttrs" true;
    RemoveXattr "removeXAttr" Write AtMostOnce Refused Never "removeXAttr" true;
    CheckAccess "checkAccess" Read Idempotent Served Coordinated "checkAccess" true;
    CreateEncryptionZone "createEncryptionZone" Write AtMostOnce Refused Never "createEncryptionZone" true;
    ListEncryptionZones "listEncryptionZones" Read Idempotent Served Coordinated "listEncryptionZones" true;
    ReencryptEncryptionZone "reencryptEncryptionZone" Write AtMostOnce Refused Never "reencryption" true;
    ListReencryptionStatus "listReencryptionStatus" Read Idempotent Served Coordinated "listReencryptionStatus" true;
    GetEzForPath "getEZForPath" Read Idempotent Served Coordinated "getEZForPath" true;
    SetErasureCodingPolicy "setErasureCodingPolicy" Write AtMostOnce Refused Never "setErasureCodingPolicy" true;
    UnsetErasureCodingPolicy "unsetErasureCodingPolicy" Write AtMostOnce Refused Never "unsetErasureCodingPolicy" true;
    GetEcTopologyResultForPolicies "getECTopologyResultForPolicies" Unchecked Idempotent Served Plain "getECTopologyResultForPolicies" true;
    GetCurrentEditLogTxid "getCurrentEditLogTxid" Read Idempotent Served Coordinated "" true;
    GetEditsFromTxid "getEditsFromTxid" Read Idempotent Served Coordinated "" true;
    GetErasureCodingPolicies "getErasureCodingPolicies" Read Idempotent Served Coordinated "getErasureCodingPolicies" true;
    AddErasureCodingPolicies "addErasureCodingPolicies" Write AtMostOnce Refused Never "addErasureCodingPolicies" true;
    RemoveErasureCodingPolicy "removeErasureCodingPolicy" Write AtMostOnce Refused Never "removeErasureCodingPolicy" true;
    EnableErasureCodingPolicy "enableErasureCodingPolicy" Write AtMostOnce Refused Never "enableErasureCodingPolicy" true;
    DisableErasureCodingPolicy "disableErasureCodingPolicy" Write AtMostOnce Refused Never "disableErasureCodingPolicy" true;
    GetErasureCodingPolicy "getErasureCodingPolicy" Read Idempotent Served Coordinated "getErasureCodingPolicy" true;
    GetErasureCodingCodecs "getErasureCodingCodecs" Read Idempotent Served Coordinated "getErasureCodingCodecs" true;
    GetQuotaUsage "getQuotaUsage" Read Idempotent Served ActiveOnly "quotaUsage" true;
    ListOpenFiles "listOpenFiles" Read Idempotent Served Coordinated "listOpenFiles" true;
    Msync "msync" Write Idempotent Served ActiveOnly "" true;
    SatisfyStoragePolicy "satisfyStoragePolicy" Write AtMostOnce Refused Never "satisfyStoragePolicy" true;
    GetHaServiceState "getHAServiceState" Unchecked Idempotent Served Plain "" true;
    GetSlowDatanodeReport "getSlowDatanodeReport" Unchecked Idempotent Served Plain "slowDataNodesReport" true;
    GetEnclosingRoot "getEnclosingRoot" Read Idempotent Served Coordinated "getEZForPath" true;
}

impl Row {
    /// What Hadoop calls the operation in refusals to users who are no superusers.
    pub fn title(&self) -> &'static str {
        match self.operation {
            Operation::AddBlock => "getAdditionalBlock",
            Operation::Complete => "completeFile",
            _ if self.audit.is_empty() => self.method,
            _ => self.audit,
        }
    }
}

impl Operation {
    /// The operation's row.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
    /// The operation of a method name.
    pub fn of_method(method: &str) -> Option<Operation> {
        TABLE.iter().find(|row| row.method == method).map(|row| row.operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_indexed_by_their_operation() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.operation as usize, i);
            assert_eq!(Operation::of_method(row.method), Some(row.operation));
        }
    }

    #[test]
    fn every_method_of_the_protocol_once() {
        // ClientNamenodeProtocol has 111 methods, 29 of them at-most-once.
        assert_eq!(TABLE.len(), 111);
        assert_eq!(TABLE.iter().filter(|r| r.retry == Retry::AtMostOnce).count(), 29);
        assert_eq!(
            TABLE
                .iter()
                .filter(|r| matches!(r.observer, Observer::Coordinated | Observer::CoordinatedAccessTime))
                .count(),
            35
        );
    }
}
