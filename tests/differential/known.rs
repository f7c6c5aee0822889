//! Where ours answers otherwise on purpose.

/// Methods whose answers are not compared, each with the reason.
pub const METHODS: [(&str, &str); 0] = [];

/// Parts of messages that are not compared.
pub fn field(message: &str, field: &str) -> bool {
    matches!(
        (message, field),
        // of the process: tokens are empty without security, ports and ids of storages differ
        ("LocatedBlockProto", "blockToken" | "blockTokens" | "isCached")
            | ("DatanodeInfoProto", "lastUpdate" | "lastUpdateMonotonic" | "lastBlockReportTime" | "lastBlockReportMonotonic" | "numBlocks")
            | ("StorageInfoProto", "namespceID" | "clusterID" | "cTime")
            | ("HeartbeatResponseProto", "fullBlockReportLeaseId")
    )
}
