//! Where ours answers otherwise on purpose.

use crate::trials::client::Refusal;
use prost_reflect::{DynamicMessage, Value};
use std::collections::HashSet;

/// Hadoop reads the name quota of a directory that has none, but one of space by kind, from an image as the largest number there is: before a
/// restart it says that there is none.
pub fn same_quota(message: &str, field: &str, java: &Value, ours: &Value) -> bool {
    let numbers = java.as_u64().zip(ours.as_u64());
    let none = |n: u64| n == u64::MAX || n == i64::MAX as u64;
    matches!(message, "ContentSummaryProto" | "QuotaUsageProto")
        && field == "quota"
        && numbers.is_some_and(|(java, ours)| none(java) && none(ours))
}

/// Hadoop compares attributes of the past by identity: what was replaced by an equal one, or read from an image, counts as modified. Takes such
/// entries out of Java's report, which ours does not have; how many.
pub fn modified_by_identity(java: &mut DynamicMessage, ours: &DynamicMessage) -> usize {
    let report = |message: &DynamicMessage| message.get_field_by_name("diffReport").map(|r| r.into_owned());
    let (Some(Value::Message(mut of_java)), Some(Value::Message(of_ours))) = (report(java), report(ours)) else {
        return 0;
    };
    let mut taken = 0;
    for list in ["diffReportEntries", "modifiedEntries"] {
        let entries = |message: &DynamicMessage| match message.get_field_by_name(list).map(|v| v.into_owned()) {
            Some(Value::List(entries)) => entries,
            _ => Vec::new(),
        };
        let path = |entry: &Value| -> Option<Vec<u8>> {
            let entry = entry.as_message()?;
            let label = entry.get_field_by_name("modificationLabel");
            let is_modified = label.is_none_or(|label| label.as_str() == Some("M"));
            is_modified.then(|| entry.get_field_by_name("fullpath")?.as_bytes().map(|b| b.to_vec()))?
        };
        let known: HashSet<Vec<u8>> = entries(&of_ours).iter().filter_map(path).collect();
        let mut kept = entries(&of_java);
        let before = kept.len();
        kept.retain(|entry| path(entry).is_none_or(|path| known.contains(&path)));
        if kept.len() < before {
            taken += before - kept.len();
            of_java.set_field_by_name(list, Value::List(kept));
        }
    }
    java.set_field_by_name("diffReport", Value::Message(of_java));
    taken
}

/// After a start Hadoop lists open files that only snapshots hold, and until then it does not. Takes those out of its list that are not there by its
/// own word; how many.
pub fn open_only_in_the_past(java: &mut DynamicMessage, mut is_there: impl FnMut(&str, u64) -> bool) -> u64 {
    let Some(Value::List(mut entries)) = java.get_field_by_name("entries").map(|v| v.into_owned()) else { return 0 };
    let before = entries.len();
    entries.retain(|entry| {
        let field = |name: &str| entry.as_message()?.get_field_by_name(name).map(|v| v.into_owned());
        let (path, id) = (field("path"), field("id").and_then(|id| id.as_i64()));
        let path = path.as_ref().and_then(|path| path.as_str());
        path.zip(id).is_none_or(|(path, id)| is_there(path, id as u64))
    });
    let taken = before - entries.len();
    if taken > 0 {
        java.set_field_by_name("entries", Value::List(entries));
    }
    taken as u64
}

/// What Hadoop keeps for a quota and counts anew only as it starts: renames out of snapshots leave it one or two off. Its own content summary,
/// which is compared, says otherwise.
pub fn drifts(message: &str, field: &str) -> bool {
    message == "QuotaUsageProto" && matches!(field, "fileAndDirectoryCount" | "spaceConsumed" | "typeQuotaInfos")
}

/// Of several directories below one Hadoop names that which its hash table has first.
pub fn first_of_nested(text: &str) -> &str {
    text.split(", the subdirectory").next().unwrap_or_default()
}

/// Whether Java's refusal is a fault of its own that ours does not have.
pub fn refusal(method: &str, java: &Refusal) -> bool {
    // a length for the last block of a file that has none; a rename of the root
    matches!(method, "fsync" | "rename") && java.class == "java.lang.NullPointerException"
        // places of a group of which one DataNode has more than its share
        || java.class == "java.lang.ArrayIndexOutOfBoundsException"
}

/// Whether a call asks for figures of queues.
pub fn is_of_queues(method: &str) -> bool {
    matches!(method, "getFsStats" | "getFsReplicatedBlockStats" | "getFsECBlockGroupStats")
}

/// Whether a message counts blocks in queues, or what scans find, which both work off in their own time.
pub fn counts_of_queues(message: &str) -> bool {
    matches!(
        message,
        "GetFsStatsResponseProto"
            | "GetFsReplicatedBlockStatsResponseProto"
            | "GetFsECBlockGroupStatsResponseProto"
            | "CacheDirectiveStatsProto"
            | "CachePoolStatsProto"
    )
}

/// Parts of messages that are not compared.
pub fn field(message: &str, field: &str) -> bool {
    matches!(
        (message, field),
        // tokens are empty without security
        ("LocatedBlockProto", "blockToken" | "blockTokens" | "isCached")
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
