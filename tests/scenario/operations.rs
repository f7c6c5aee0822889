//! Which operations and edit records the scenarios have. None may be without one, but for those that are named here with the reason.

use super::line::Line;
use super::scenarios;
use edit::Opcode;
use ops::Operation::{self, *};
use ops::table::TABLE;
use std::collections::BTreeSet;

/// Operations that are answered above the engine, or by what no scenario has; each with where its test is.
const ELSEWHERE: &[(Operation, &str)] = &[
    (FinalizeUpgrade, "directories of an upgrade are the binary's: tests/golden.rs asks it of one"),
    (UpgradeStatus, "the same: tests/golden.rs"),
    (GetEditsFromTxid, "events are made of records in the server: its tests in service/convert/events.rs"),
    (GetErasureCodingCodecs, "a constant of the server: tests/differential/generate.rs asks both for it"),
    (GetEcTopologyResultForPolicies, "judged in the server: tests/differential/facts.rs asks both for it"),
    (GetDataEncryptionKey, "data transfer is not encrypted: an empty answer, tests/differential/facts.rs"),
    (GetSlowDatanodeReport, "nothing is measured: an empty answer, tests/differential/facts.rs"),
    (Msync, "an empty answer; what it waits for is in the header of the reply"),
];

/// The operations that a command asks for; empty for what users cannot ask.
fn asked(line: &Line) -> &'static [Operation] {
    match line.name.as_str() {
        "mkdir" => &[Mkdirs],
        "create" => &[Create],
        "rename" => &[Rename],
        "rename2" => &[Rename2],
        "delete" => &[Delete],
        "concat" => &[Concat],
        "symlink" => &[CreateSymlink],
        "allow-snapshot" => &[AllowSnapshot],
        "disallow-snapshot" => &[DisallowSnapshot],
        "snapshot" => &[CreateSnapshot],
        "rename-snapshot" => &[RenameSnapshot],
        "delete-snapshot" => &[DeleteSnapshot],
        "add-block" => &[AddBlock],
        "complete" => &[Complete],
        "abandon" => &[AbandonBlock],
        "fsync" => &[Fsync],
        "append" => &[Append],
        "truncate" => &[Truncate],
        "recover-lease" => &[RecoverLease],
        "renew-lease" => &[RenewLease],
        "new-stamp" => &[UpdateBlockForPipeline],
        "update-pipeline" => &[UpdatePipeline],
        "additional-datanode" => &[GetAdditionalDatanode],
        "chmod" => &[SetPermission],
        "chown" => &[SetOwner],
        "times" => &[SetTimes],
        "setrep" => &[SetReplication],
        "quota" => &[SetQuota],
        "policy" if line.has("unset") => &[UnsetStoragePolicy],
        "policy" => &[SetStoragePolicy],
        "satisfy" => &[SatisfyStoragePolicy],
        "acl" => match line.text(1).as_str() {
            "modify" => &[ModifyAclEntries],
            "remove" => &[RemoveAclEntries],
            "set" => &[SetAcl],
            "remove-default" => &[RemoveDefaultAcl],
            _ => &[RemoveAcl],
        },
        "set-xattr" => &[SetXattr],
        "remove-xattr" => &[RemoveXattr],
        _ => asked_of_features(line),
    }
}

fn asked_of_features(line: &Line) -> &'static [Operation] {
    match line.name.as_str() {
        "ec-add" => &[AddErasureCodingPolicies],
        "ec-enable" => &[EnableErasureCodingPolicy],
        "ec-disable" => &[DisableErasureCodingPolicy],
        "ec-remove" => &[RemoveErasureCodingPolicy],
        "ec-set" => &[SetErasureCodingPolicy],
        "ec-unset" => &[UnsetErasureCodingPolicy],
        "ec-policies" => &[GetErasureCodingPolicies],
        "ec-of" => &[GetErasureCodingPolicy],
        "pool-add" => &[AddCachePool],
        "pool-modify" => &[ModifyCachePool],
        "pool-remove" => &[RemoveCachePool],
        "pools" => &[ListCachePools],
        "cache" => &[AddCacheDirective],
        "cache-modify" => &[ModifyCacheDirective],
        "uncache" => &[RemoveCacheDirective],
        "directives" => &[ListCacheDirectives],
        "zone" => &[CreateEncryptionZone],
        "zones" => &[ListEncryptionZones],
        "zone-of" => &[GetEzForPath, GetEnclosingRoot],
        "reencrypt" => &[ReencryptEncryptionZone],
        "reencryption" => &[ListReencryptionStatus],
        "token" => &[GetDelegationToken],
        "renew" => &[RenewDelegationToken],
        "cancel" => &[CancelDelegationToken],
        "corrupt" => &[ReportBadBlocks],
        "exclude" | "include" | "maintenance" => &[RefreshNodes],
        "save" | "checkpoint" => &[SaveNamespace],
        "roll" => &[RollEdits],
        "safe-mode" => &[SetSafeMode],
        "rolling-upgrade" => &[RollingUpgrade],
        "bandwidth" => &[SetBalancerBandwidth],
        "restores" => &[RestoreFailedStorage],
        _ => asked_of_facts(line),
    }
}

fn asked_of_facts(line: &Line) -> &'static [Operation] {
    match line.name.as_str() {
        "stat" => &[GetFileLinkInfo],
        "info" => &[GetFileInfo],
        "located" => &[GetLocatedFileInfo],
        "ls" => &[GetListing],
        "ls-many" => &[GetBatchedListing],
        "read" | "open" => &[GetBlockLocations],
        "block-size" => &[GetPreferredBlockSize],
        "closed" => &[IsFileClosed],
        "access" => &[CheckAccess],
        "target" => &[GetLinkTarget],
        "summary" => &[GetContentSummary],
        "usage" => &[GetQuotaUsage],
        "get-policy" => &[GetStoragePolicy],
        "storage-policies" => &[GetStoragePolicies],
        "get-acl" => &[GetAclStatus],
        "get-xattrs" => &[GetXattrs],
        "list-xattrs" => &[ListXattrs],
        "open-files" => &[ListOpenFiles],
        "corrupt-files" => &[ListCorruptFileBlocks],
        "snapshottable" => &[GetSnapshottableDirListing],
        "snapshots" => &[GetSnapshotListing],
        "diff" => &[GetSnapshotDiffReport],
        "diff-pages" => &[GetSnapshotDiffReportListing],
        "defaults" => &[GetServerDefaults],
        "figures" => &[GetFsStats, GetFsReplicatedBlockStats, GetFsEcBlockGroupStats],
        "datanodes" if line.has("storages") => &[GetDatanodeStorageReport],
        "datanodes" => &[GetDatanodeReport],
        "meta-save" => &[MetaSave],
        "txid" => &[GetCurrentEditLogTxid],
        "ha-state" => &[GetHaServiceState],
        _ => &[],
    }
}

/// All commands of all scenarios.
fn commands() -> Vec<Line> {
    let text = |path| std::fs::read_to_string(path).expect("a scenario");
    let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("    ");
    let parse = |line: &str| Line::parse(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    scenarios().iter().flat_map(|path| text(path).lines().filter(is_command).map(parse).collect::<Vec<_>>()).collect()
}

#[test]
fn every_operation_is_in_a_scenario() {
    let done: BTreeSet<Operation> = commands().iter().flat_map(asked).copied().collect();
    let excepted: BTreeSet<Operation> = ELSEWHERE.iter().map(|(operation, _)| *operation).collect();
    let names = |all: Vec<Operation>| all.iter().map(|operation| operation.row().method).collect::<Vec<_>>();
    let lacking = TABLE.iter().filter(|row| row.implemented && !done.contains(&row.operation));
    let lacking = lacking.map(|row| row.operation).filter(|operation| !excepted.contains(operation)).collect();
    assert_eq!(names(lacking), Vec::<&str>::new(), "operations without a scenario");
    let both = done.intersection(&excepted).copied().collect();
    assert_eq!(names(both), Vec::<&str>::new(), "operations that are excepted and have one");
}

/// That the logs of all scenarios together have every record, by its opcode; those of older releases too.
pub fn check_records(seen: &BTreeSet<u8>) {
    let lacking = Opcode::ALL.iter().filter(|opcode| !seen.contains(&(**opcode as u8)));
    assert_eq!(lacking.map(|opcode| opcode.name()).collect::<Vec<_>>(), Vec::<&str>::new(), "records in no log");
}

#[test]
#[should_panic(expected = "OP_ADD")]
fn a_record_without_a_log_is_found() {
    let all = Opcode::ALL.iter().map(|opcode| *opcode as u8);
    check_records(&all.filter(|opcode| *opcode != Opcode::Add as u8).collect());
}
