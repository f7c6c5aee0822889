//! The numbered rules: records that change nothing although nothing is wrong.

use super::*;
use edit::record::Token;
use vocab::erasure_coding::PolicyState;
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
fn rule_23_old_renames_of_directories_below_themselves() {
    let mut w = World::new();
    w.mkdir("/d");
    w.mkdir("/d/e");
    for target in ["/d", "/d/x", "/d/e"] {
        w.expect_no_op(&rename_old("/d", target), Rule::RenameOldBelowItself);
    }
    assert!(w.find("/d/e").is_some());
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
    w.apply(&Record::SetXattr { path: b"/d"[..].into(), xattrs: vec![xattr], given: true, rpc: None });
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
fn rule_12_disallow() {
    let mut w = World::new();
    w.mkdir("/d");
    let root = || b"/d"[..].into();
    w.expect_no_op(&Record::DisallowSnapshot { root: root() }, Rule::DisallowSnapshotNotAllowed);
}

#[test]
fn a_log_may_add_policies_of_no_units() {
    let mut w = World::new();
    let add = |data_units, parity_units| Record::AddErasureCodingPolicy {
        codec: "rs".into(),
        data_units,
        parity_units,
        cell_size: 65_536,
        options: Vec::new(),
        rpc: None,
    };
    let odd = [(0, 2), (2, 0), (0, 0), (-1, 2), (-5, 2), (i32::MAX, i32::MAX)];
    odd.into_iter().for_each(|(data, parity)| _ = w.apply(&add(data, parity)));
    w.expect_mismatch(&add(17, 0));
    w.expect_no_op(&add(-5, 2), Rule::ErasureCodingPolicyExists);
    for (data, parity) in odd {
        let name = format!("RS-{data}-{parity}-64k");
        w.apply(&Record::EnableErasureCodingPolicy { name: name.clone().into(), rpc: None });
        let policy = w.state.tree.erasure_coding.by_name(&name).expect("was added");
        assert!(policy.state == PolicyState::Enabled && !policy.stripe.is_usable(), "{policy:?}");
    }
}

#[test]
fn rules_17_and_18_erasure_coding_policies() {
    let mut w = World::new();
    let add = |cell_size: u32| Record::AddErasureCodingPolicy {
        codec: "rs".into(),
        data_units: 2,
        parity_units: 1,
        cell_size,
        options: vec![("key".into(), "value".into())],
        rpc: None,
    };
    let enable = |name: &'static str| Record::EnableErasureCodingPolicy { name: name.into(), rpc: None };
    let disable = |name: &'static str| Record::DisableErasureCodingPolicy { name: name.into(), rpc: None };
    let remove = |name: &'static str| Record::RemoveErasureCodingPolicy { name: name.into(), rpc: None };
    let fresh = w.state.digest();
    w.apply(&add(65_536));
    w.apply(&add(131_072));
    w.expect_no_op(&add(65_536), Rule::ErasureCodingPolicyExists);
    // an image that says so is not loaded
    [0, 1 << 31].into_iter().for_each(|cell_size| _ = w.expect_mismatch(&add(cell_size)));
    let ids: Vec<_> = w.state.tree.erasure_coding.all().keys().copied().collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 64, 65]);
    let added = w.state.digest();
    assert_ne!(added, fresh, "policies are durable");
    w.expect_no_op(&disable("RS-2-1-64k"), Rule::ErasureCodingPolicyUnchanged);
    w.apply(&enable("RS-2-1-64k"));
    assert_ne!(w.state.digest(), added, "so is their state");
    w.expect_no_op(&enable("RS-2-1-64k"), Rule::ErasureCodingPolicyUnchanged);
    w.apply(&disable("RS-2-1-64k"));
    assert_eq!(w.state.digest(), added);
    w.apply(&remove("RS-2-1-64k"));
    w.expect_no_op(&add(65_536), Rule::ErasureCodingPolicyExists);
    for record in [enable("none"), disable("none"), remove("none"), remove("RS-6-3-1024k")] {
        w.expect_mismatch(&record);
    }
}

#[test]
fn the_default_policy_counts_as_enabled_until_it_is_disabled() {
    let mut w = World::new();
    let enabled = |w: &World| {
        let policies = &w.state.tree.erasure_coding;
        policies.is_enabled(policies.by_id(1).expect("built in"), "RS-6-3-1024k")
    };
    let before = w.state.digest();
    assert!(enabled(&w));
    w.apply(&Record::DisableErasureCodingPolicy { name: "RS-6-3-1024k".into(), rpc: None });
    assert!(!enabled(&w));
    assert_eq!(w.state.digest(), before, "nothing of that is saved");
    w.apply(&Record::EnableErasureCodingPolicy { name: "RS-6-3-1024k".into(), rpc: None });
    assert!(enabled(&w));
    assert_ne!(w.state.digest(), before);
}

#[test]
fn striped_files_have_striped_groups_and_count_their_parity() {
    let mut w = World::new();
    w.mkdir("/d");
    let group = |n: i64, length| block(i64::MIN + 16 * n, 1001, length);
    let striped =
        |w: &mut World, path, policy| AddClose { erasure_coding_policy: policy, ..w.add_record(path, vec![]) };
    let unknown = striped(&mut w, "/d/unknown", 64);
    w.expect_mismatch(&Record::Add(Box::new(unknown)));
    let add = striped(&mut w, "/d/f", 2);
    w.apply(&Record::Add(Box::new(AddClose { block_size: 2 << 20, replication: 7, ..add })));
    let add_block = |last| Record::AddBlock { path: b"/d/f"[..].into(), penultimate: None, last, rpc: None };
    w.expect_mismatch(&add_block(block(1_073_741_825, 1001, 0)));
    w.apply(&add_block(group(1, 0)));
    let used = |w: &World| w.state.tree.quota(&w.state.store, w.state.tree.root()).expect("has one").usage.space;
    assert_eq!(used(&w), 5 * (2 << 20), "an open group counts in full");
    w.apply(&World::close_record("/d/f", &[group(1, 1000)]));
    assert_eq!(used(&w), 3000);
    let file = w.find("/d/f").expect("is there");
    assert_eq!(w.state.tree.file_shape(&w.state.store, file).expect("a file").replication, 1);
    let set = Record::SetReplication { path: b"/d/f"[..].into(), replication: 3 };
    w.expect_no_op(&set, Rule::SetReplicationDirectory);
    let plain = w.add_record("/d/plain", vec![group(2, 10)]);
    w.expect_mismatch(&Record::Add(Box::new(plain)));
    w.file("/d/plain", &[block(1_073_741_825, 1001, 10)]);
    w.expect_mismatch(&Record::Concat {
        target: b"/d/f"[..].into(),
        sources: vec![b"/d/plain"[..].into()],
        time: TimeMs(1),
        rpc: None,
    });
}
