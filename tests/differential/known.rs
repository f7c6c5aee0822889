//! Where ours answers otherwise on purpose.

use crate::trials::client::Refusal;

/// Whether Java's refusal is a fault of its own that ours does not have.
pub fn refusal(method: &str, java: &Refusal) -> bool {
    // a length for the last block of a file that has none; a rename of the root
    matches!(method, "fsync" | "rename") && java.class == "java.lang.NullPointerException"
}

/// Parts of messages that are not compared.
pub fn field(message: &str, field: &str) -> bool {
    matches!(
        (message, field),
        // tokens are empty without security
        ("LocatedBlockProto", "blockToken" | "blockTokens" | "isCached")
            // Java's use by kind drifts: appends count by the default policy, nothing takes that back, a restart forgets it
            | ("QuotaUsageProto", "typeQuotaInfos")
            // so does the space that it keeps for a quota (its own content summary, which is compared, says otherwise)
            | ("QuotaUsageProto", "spaceConsumed")
            // what proves a token, and where the log is: of each name node's own
            | ("TokenProto", "identifier" | "password")
            | ("GetCurrentEditLogTxidResponseProto", "txid")
            | ("RollEditsResponseProto", "newSegmentTxId")
            | ("EventsListProto", "syncTxid" | "firstTxid" | "lastTxid")
            // of the process, not of the file system
            | ("DatanodeInfoProto", "lastUpdate" | "lastUpdateMonotonic" | "lastBlockReportTime")
            | ("DatanodeInfoProto", "lastBlockReportMonotonic" | "numBlocks")
    )
}
