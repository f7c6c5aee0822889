//! Calls about the whole that the stream does not ask, each once, of both.

use super::pair::Pair;

const CALLS: &[(&str, &str, &str)] = &[
    ("hdfs", "mkdirs", r#"src: "/facts/a/b" masked { perm: 493 } createParent: true"#),
    ("hdfs", "mkdirs", r#"src: "/facts/c" masked { perm: 448 } createParent: true"#),
    ("hdfs", "setStoragePolicy", r#"src: "/facts/c" policyName: "COLD""#),
    ("hdfs", "getBatchedListing", r#"startAfter: "" needLocation: false"#),
    (
        "hdfs",
        "getBatchedListing",
        r#"paths: "/facts" paths: "/none" paths: "/facts/a" startAfter: "" needLocation: true"#,
    ),
    ("alice", "getBatchedListing", r#"paths: "/facts/c" paths: "/facts" startAfter: "" needLocation: false"#),
    ("hdfs", "getPreferredBlockSize", r#"filename: "/facts""#),
    ("hdfs", "getPreferredBlockSize", r#"filename: "/none""#),
    ("hdfs", "getLocatedFileInfo", r#"src: "/facts""#),
    ("hdfs", "getLocatedFileInfo", r#"src: "/.reserved""#),
    ("hdfs", "getErasureCodingPolicy", r#"src: "/none""#),
    ("hdfs", "getErasureCodingPolicy", r#"src: "/.reserved""#),
    ("hdfs", "getECTopologyResultForPolicies", r#"policies: "RS-6-3-1024k""#),
    ("hdfs", "getECTopologyResultForPolicies", r#"policies: "none""#),
    ("hdfs", "getErasureCodingCodecs", ""),
    ("hdfs", "getErasureCodingPolicies", ""),
    ("hdfs", "getStoragePolicies", ""),
    ("hdfs", "getServerDefaults", ""),
    ("hdfs", "getDatanodeReport", "type: ALL"),
    ("hdfs", "getDatanodeReport", "type: DEAD"),
    ("hdfs", "getDatanodeReport", "type: IN_MAINTENANCE"),
    ("alice", "getDatanodeReport", "type: LIVE"),
    ("alice", "getDatanodeStorageReport", "type: LIVE"),
    ("hdfs", "getSlowDatanodeReport", ""),
    ("hdfs", "msync", ""),
    ("hdfs", "getHAServiceState", ""),
    ("hdfs", "upgradeStatus", ""),
    ("hdfs", "getDataEncryptionKey", ""),
    ("alice", "setBalancerBandwidth", "bandwidth: 1048576"),
    ("hdfs", "setBalancerBandwidth", "bandwidth: 1048576"),
    ("alice", "restoreFailedStorage", r#"arg: "true""#),
    ("hdfs", "restoreFailedStorage", r#"arg: "check""#),
    ("hdfs", "restoreFailedStorage", r#"arg: "true""#),
    ("hdfs", "restoreFailedStorage", r#"arg: "false""#),
    ("alice", "metaSave", r#"filename: "facts""#),
    ("alice", "refreshNodes", ""),
    ("alice", "finalizeUpgrade", ""),
    ("alice", "rollEdits", ""),
    ("alice", "getCurrentEditLogTxid", ""),
    ("hdfs", "getSnapshottableDirListing", ""),
    ("hdfs", "allowSnapshot", r#"snapshotRoot: "/facts""#),
    ("hdfs", "getSnapshottableDirListing", ""),
    ("alice", "getSnapshottableDirListing", ""),
    ("hdfs", "createSnapshot", r#"snapshotRoot: "/facts" snapshotName: "one""#),
    ("hdfs", "rename", r#"src: "/facts/a/b" dst: "/facts/b""#),
    ("hdfs", "mkdirs", r#"src: "/facts/new" masked { perm: 493 } createParent: true"#),
    ("hdfs", "createSnapshot", r#"snapshotRoot: "/facts" snapshotName: "two""#),
    ("hdfs", "renameSnapshot", r#"snapshotRoot: "/facts" snapshotOldName: "two" snapshotNewName: "2""#),
    ("hdfs", "getSnapshotListing", r#"snapshotRoot: "/facts""#),
    ("hdfs", "getSnapshotListing", r#"snapshotRoot: "/facts/a""#),
    ("hdfs", "getSnapshotListing", r#"snapshotRoot: "/none""#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/facts" fromSnapshot: "one" toSnapshot: "2""#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/facts" fromSnapshot: "2" toSnapshot: "one""#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/facts" fromSnapshot: "2" toSnapshot: "three""#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/" fromSnapshot: "one" toSnapshot: "2""#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/facts/a" fromSnapshot: "one" toSnapshot: """#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/facts/.snapshot/one" fromSnapshot: "three" toSnapshot: """#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/facts/.snapshot/one/a" fromSnapshot: "one" toSnapshot: """#),
    ("hdfs", "getSnapshotDiffReport", r#"snapshotRoot: "/facts/.snapshot" fromSnapshot: "one" toSnapshot: """#),
    (
        "hdfs",
        "getBatchedListing",
        r#"paths: "/facts/.snapshot" paths: "/facts/.snapshot/one/a" startAfter: "" needLocation: false"#,
    ),
];

#[test]
fn both_tell_the_same_of_the_whole() {
    let _turn = crate::support::cluster_turn();
    let Some(mut pair) = Pair::start("facts") else { return };
    for (user, name, request) in CALLS {
        let _ = pair.ask(user, name, request);
    }
    assert!(pair.differences().is_empty(), "{}", pair.differences().concat());
}
