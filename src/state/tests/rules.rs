//! The numbered rules: records that change nothing although nothing is wrong.

use super::*;
use edit::record::Token;
use vocab::xattr::{Xattr, XattrNamespace};

#[test]
fn rules_1_and_2_deletes() {
    let w = World::new();
    w.expect_no_op(&delete("/nope"), Rule::DeleteMissing);
    w.expect_no_op(&delete("/nope/below"), Rule::DeleteMissing);
    w.expect_no_op(&delete("/"), Rule::DeleteRoot);
}

#[test]
fn rules_3_to_5_old_renames() {
    let mut w = World::new();
    w.mkdir("/d");
    w.mkdir("/d/f");
    w.file("/f", &[]);
    w.file("/g", &[]);
    w.expect_no_op(&rename_old("/nope", "/x"), Rule::RenameOldSourceMissing);
    w.expect_no_op(&rename_old("/f", "/g"), Rule::RenameOldTargetExists);
    w.expect_no_op(&rename_old("/f", "/d"), Rule::RenameOldTargetExists);
    w.expect_no_op(&rename_old("/f", "/no/x"), Rule::RenameOldTargetParentMissing);
    w.apply(&rename_old("/f", "/f")); // onto itself: done, and remembered as that
    assert!(w.find("/f").is_some());
    w.apply(&rename_old("/g", "/d"));
    assert!(w.find("/d/g").is_some() && w.find("/g").is_none());
}

#[test]
fn rule_6_mkdir_of_what_exists_raises_the_id() {
    let mut w = World::new();
    w.mkdir("/d");
    w.file("/f", &[]);
    w.next = 20_000;
    for path in ["/d", "/f"] {
        let record = w.mkdir_record(path);
        let before = w.state.tree.inode_count();
        w.apply(&record);
        assert_eq!((w.state.sequences.inode.0, w.state.tree.inode_count()), (w.next, before));
    }
}

#[test]
fn rules_7_and_8_replication() {
    let mut w = World::new();
    w.mkdir("/d");
    let set = |path: &'static str, replication| Record::SetReplication { path: path.as_bytes().into(), replication };
    w.expect_no_op(&set("/nope", 2), Rule::SetReplicationMissing);
    w.expect_no_op(&set("/d", 2), Rule::SetReplicationDirectory);
    w.file("/f", &[]);
    w.apply(&set("/f", 9_999));
    let file = w.find("/f").unwrap();
    assert_eq!(w.state.tree.file_shape(&w.state.store, file).unwrap().replication, 512, "clamped into the limits");
}

#[test]
fn rule_9_append_of_an_open_file() {
    let mut w = World::new();
    w.open("/f", &[block(1, 1, 7)]);
    let append = Record::Append {
        path: b"/f"[..].into(),
        client_name: "other".into(),
        client_machine: "h".into(),
        new_block: false,
        rpc: None,
    };
    w.expect_no_op(&append, Rule::AppendOpen);
}

#[test]
fn rule_10_attribute_that_is_not_set() {
    let mut w = World::new();
    w.mkdir("/d");
    let xattr = Xattr { namespace: XattrNamespace::User, name: "k".into(), value: b"v"[..].into() };
    let remove = Record::RemoveXattr { path: b"/d"[..].into(), xattrs: vec![xattr.clone()], rpc: None };
    w.expect_no_op(&remove, Rule::RemoveXattrAbsent);
    w.apply(&Record::SetXattr { path: b"/d"[..].into(), xattrs: vec![xattr], rpc: None });
    w.apply(&remove);
    assert!(w.state.tree.xattrs(w.find("/d").unwrap()).is_empty());
}

#[test]
fn rules_14_to_16_tokens() {
    let mut w = World::new();
    let token = |sequence_number, master_key_id| Token {
        owner: "o".into(),
        renewer: "r".into(),
        real_user: "".into(),
        issue_date: TimeMs(1),
        max_date: TimeMs(2),
        sequence_number,
        master_key_id,
    };
    w.expect_no_op(&Record::GetDelegationToken { token: token(1, 1), expiry: TimeMs(5) }, Rule::TokenWithoutKey);
    w.apply(&Record::UpdateMasterKey { id: 1, expiry: TimeMs(9), key: Some(b"secret"[..].into()) });
    w.expect_no_op(&Record::RenewDelegationToken { token: token(1, 1), expiry: TimeMs(6) }, Rule::RenewTokenMissing);
    w.expect_no_op(&Record::CancelDelegationToken { token: token(1, 1) }, Rule::CancelTokenMissing);
    w.apply(&Record::GetDelegationToken { token: token(1, 1), expiry: TimeMs(5) });
    w.expect_mismatch(&Record::GetDelegationToken { token: token(1, 1), expiry: TimeMs(5) });
    w.apply(&Record::RenewDelegationToken { token: token(1, 1), expiry: TimeMs(6) });
    assert_eq!(w.state.tokens.tokens[&1].expiry, TimeMs(6));
    w.apply(&Record::CancelDelegationToken { token: token(1, 1) });
    assert_eq!((w.state.tokens.tokens.len(), w.state.tokens.sequence), (0, 1));
}

#[test]
fn rule_19_rolling_upgrades() {
    let mut w = World::new();
    w.expect_no_op(&Record::RollingUpgradeFinalize { time: TimeMs(1) }, Rule::RollingUpgradeFinalizeNone);
    w.apply(&Record::RollingUpgradeStart { time: TimeMs(1) });
    w.expect_mismatch(&Record::RollingUpgradeStart { time: TimeMs(2) });
    w.apply(&Record::RollingUpgradeFinalize { time: TimeMs(3) });
    assert_eq!(w.state.sequences.rolling_upgrade_start, None);
}

#[test]
fn rules_20_to_22_segments_and_empty_changes() {
    let mut w = World::new();
    w.mkdir("/d");
    w.expect_no_op(&Record::StartLogSegment, Rule::SegmentBoundary);
    w.expect_no_op(&Record::EndLogSegment, Rule::SegmentBoundary);
    let unchanged = TimeMs(-1);
    w.expect_no_op(&Record::Times { path: b"/d"[..].into(), mtime: unchanged, atime: unchanged }, Rule::TimesUnchanged);
    w.expect_no_op(&Record::SetOwner { path: b"/d"[..].into(), user: None, group: None }, Rule::SetOwnerUnchanged);
}

#[test]
fn rule_12_and_features_that_are_refused_by_name() {
    let mut w = World::new();
    w.mkdir("/d");
    let root = || b"/d"[..].into();
    w.expect_no_op(&Record::DisallowSnapshot { root: root() }, Rule::DisallowSnapshotNotAllowed);
    let zone =
        Xattr { namespace: XattrNamespace::Raw, name: "hdfs.crypto.encryption.zone".into(), value: b""[..].into() };
    let striped = AddClose { erasure_coding_policy: 1, ..w.add_record("/e", vec![]) };
    for (record, feature) in [
        (Record::AllowSnapshot { root: root() }, "snapshots"),
        (Record::SetXattr { path: root(), xattrs: vec![zone], rpc: None }, "encryption zones"),
        (Record::RemoveCachePool { name: "p".into(), rpc: None }, "centralized caching"),
        (Record::EnableErasureCodingPolicy { name: "RS-6-3-1024k".into(), rpc: None }, "erasure coding"),
        (Record::Add(Box::new(striped)), "erasure coding"),
    ] {
        match w.fit(&record) {
            Fit::Unsupported(found) => assert_eq!(found.feature, feature),
            other => panic!("{other:?}: {record:?}"),
        }
    }
}
