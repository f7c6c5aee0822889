//! Records that fit although they look odd.

use super::*;
use vocab::{BlockState, RpcIds};

#[test]
fn add_of_a_missing_path_with_blocks_is_an_open_file() {
    let mut w = World::new();
    w.open("/f", &[block(1, 1, 100), block(2, 1, 30)]);
    assert!(w.is_open("/f"));
    assert_eq!(w.blocks("/f").len(), 2);
}

#[test]
fn add_of_a_closed_file_is_the_old_append() {
    let mut w = World::new();
    let id = w.file("/f", &[block(1, 1, 30)]);
    let add = AddClose { client_name: "later".into(), ..w.add_record("/f", vec![block(1, 1, 30)]) };
    w.apply(&Record::Add(Box::new(add)));
    let file = w.find("/f").unwrap();
    assert_eq!((w.state.store.inode_id(file), w.is_open("/f")), (id, true));
    assert_eq!(w.state.tree.construction(file).unwrap().client, "later");
    let again = AddClose { client_name: "third".into(), ..w.add_record("/f", vec![block(1, 1, 40), block(2, 1, 0)]) };
    w.apply(&Record::Add(Box::new(again)));
    assert_eq!(w.state.tree.construction(file).unwrap().client, "later", "stays open for its first holder");
    assert_eq!(w.blocks("/f"), [block(1, 1, 40), block(2, 1, 0)]);
}

#[test]
fn add_with_overwrite_deletes_the_old_file() {
    let mut w = World::new();
    w.open("/f", &[block(1, 1, 30)]);
    let add = AddClose { overwrite: true, ..w.add_record("/f", vec![]) };
    w.apply(&Record::Add(Box::new(add)));
    assert_eq!((w.state.store.block_count(), w.state.tree.inode_count(), w.state.tree.leases.len()), (0, 2, 1));
}

#[test]
fn closes_and_updates_change_lengths_stamps_and_counts() {
    let mut w = World::new();
    w.open("/f", &[block(1, 1, 100), block(2, 1, 0)]);
    w.apply(&World::close_record("/f", &[block(1, 1, 100)]));
    assert_eq!(w.blocks("/f"), [block(1, 1, 100)], "one block less: the last is removed");
    w.open("/g", &[block(3, 1, 100)]);
    w.apply(&World::close_record(
        "/g",
        &[block(3, 9, 80), block(4, 1, 7)].map(|b| if b.id.0 == 3 { block(3, 1, 80) } else { b }),
    ));
    assert_eq!(w.blocks("/g"), [block(3, 1, 80), block(4, 1, 7)], "more blocks: they are added");
    w.apply(&update_blocks("/g", &[block(3, 1, 60), block(4, 5, 9)]));
    assert_eq!(
        (w.blocks("/g"), w.is_open("/g")),
        (vec![block(3, 1, 60), block(4, 5, 9)], false),
        "also in a closed file"
    );
    w.apply(&add_block("/g", Some(block(4, 5, 10)), block(6, 6, 0)));
    assert_eq!((w.blocks("/g").len(), w.is_open("/g")), (3, false));
}

#[test]
fn add_block_completes_the_penultimate_block() {
    let mut w = World::new();
    w.open("/f", &[block(1, 1, 0)]);
    w.apply(&add_block("/f", Some(block(1, 1, 64)), block(2, 2, 0)));
    assert_eq!(w.blocks("/f"), [block(1, 1, 64), block(2, 2, 0)]);
    let file = w.find("/f").unwrap();
    let state = |at| w.state.store.block_state(w.state.store.block_at(file, at).unwrap());
    assert_eq!((state(0), state(1)), (BlockState::Complete, BlockState::UnderConstruction));
}

#[test]
fn reassign_of_another_holders_lease() {
    let mut w = World::new();
    w.open("/f", &[]);
    w.apply(&Record::ReassignLease { holder: "nobody".into(), path: b"/f"[..].into(), new_holder: "next".into() });
    assert!(w.state.tree.leases.get("next").is_some() && w.state.tree.leases.get("client").is_none());
}

#[test]
fn truncate_at_boundaries_and_within_a_block() {
    let mut w = World::new();
    w.file("/f", &[block(1, 1, 100), block(2, 1, 100), block(3, 1, 50)]);
    w.apply(&truncate("/f", 200, None));
    assert_eq!((w.blocks("/f").len(), w.is_open("/f")), (2, false));
    w.apply(&truncate("/f", 130, Some(block(2, 9, 100))));
    assert_eq!(w.blocks("/f"), [block(1, 1, 100), block(2, 1, 100)], "as it was until the recovery ends");
    assert!(w.is_open("/f"));
    w.file("/g", &[block(5, 1, 100)]);
    w.apply(&truncate("/g", 30, Some(block(6, 2, 30))));
    assert_eq!(w.blocks("/g"), [block(6, 2, 30)], "copied into a new block");
    w.file("/h", &[block(7, 1, 100), block(8, 1, 1)]);
    w.apply(&truncate("/h", 0, None));
    assert!(w.blocks("/h").is_empty());
}

#[test]
fn stamps_below_the_counter_are_accepted() {
    let mut w = World::new();
    w.apply(&Record::SetGenstampV2 { stamp: GenerationStamp(2_000) });
    w.apply(&Record::SetGenstampV2 { stamp: GenerationStamp(1_500) });
    assert_eq!(w.state.sequences.stamp, GenerationStamp(1_500));
}

#[test]
fn quotas_of_every_form() {
    let mut w = World::new();
    w.mkdir("/d");
    w.file("/d/f", &[block(1, 1, 100)]);
    let limits = |w: &World| w.state.tree.quota(&w.state.store, w.find("/d").unwrap()).map(|q| q.limits);
    let path = || b"/d"[..].into();
    w.apply(&Record::SetNamespaceQuota { path: path(), quota: 7 });
    w.apply(&Record::SetQuota { path: path(), namespace: i64::MAX, space: 1_000 });
    assert_eq!(limits(&w).map(|l| (l.namespace, l.space)), Some((Some(7), Some(1_000))));
    w.apply(&Record::ClearNamespaceQuota { path: path() });
    w.apply(&Record::SetQuota { path: path(), namespace: -1, space: -1 });
    assert_eq!(limits(&w), None);
    let root = w.state.tree.root();
    w.apply(&Record::SetQuota { path: b"/"[..].into(), namespace: -1, space: 5 });
    assert_eq!(w.state.tree.quota(&w.state.store, root).unwrap().limits.namespace, Some(i64::MAX as u64));
}

/// T61 and T22: ids in records fill the retry cache; records without ids do not.
#[test]
fn t61_records_with_and_without_rpc_ids() {
    let mut w = World::new();
    let ids = RpcIds { client_id: [3; 16], call_id: 5 };
    w.file("/f", &[]);
    w.file("/g", &[]);
    w.apply(&delete("/f"));
    assert!(w.state.retry.is_empty());
    w.apply(&Record::Delete { path: b"/g"[..].into(), time: TimeMs(1), rpc: Some(ids) });
    assert_eq!(w.state.retry.get(&ids).map(|e| e.payload.clone()), Some(crate::RetryPayload::Answer(true)));
}

/// Every durable field counts for the digest; soft ones do not.
#[test]
fn the_digest_sees_every_durable_field() {
    let make = || {
        let mut w = World::new();
        w.mkdir("/d");
        w.file("/d/f", &[block(1, 1, 100)]);
        w.open("/d/open", &[block(2, 1, 10)]);
        w
    };
    let base = make().state.digest();
    assert_eq!(base, make().state.digest());
    let path = || b"/d/f"[..].into();
    let changes: Vec<Record<'static>> = vec![
        Record::SetPermissions { path: path(), mode: 0o600 },
        Record::SetOwner { path: path(), user: Some("x".into()), group: None },
        Record::SetOwner { path: path(), user: None, group: Some("x".into()) },
        Record::Times { path: path(), mtime: TimeMs(77), atime: TimeMs(-1) },
        Record::Times { path: path(), mtime: TimeMs(-1), atime: TimeMs(77) },
        Record::SetReplication { path: path(), replication: 3 },
        Record::SetStoragePolicy { path: path(), policy: 12 },
        Record::SetStoragePolicy { path: b"/d"[..].into(), policy: 12 },
        Record::SetQuota { path: b"/d"[..].into(), namespace: 9, space: -1 },
        update_blocks("/d/f", &[block(1, 2, 100)]),
        update_blocks("/d/f", &[block(1, 1, 99)]),
        update_blocks("/d/open", &[block(2, 1, 11)]),
        Record::ReassignLease { holder: "client".into(), path: b"/d/open"[..].into(), new_holder: "n".into() },
        rename_old("/d/f", "/d/g"),
        delete("/d/f"),
        Record::SetGenstampV2 { stamp: GenerationStamp(5_000) },
        Record::SetGenstampV1 { stamp: GenerationStamp(5_000) },
        Record::AllocateBlockId { id: 1 << 31 },
        Record::UpdateMasterKey { id: 1, expiry: TimeMs(1), key: None },
        Record::RollingUpgradeStart { time: TimeMs(1) },
        World::close_record("/d/open", &[block(2, 1, 10)]),
    ];
    for record in &changes {
        let mut w = make();
        w.apply(record);
        assert_ne!(w.state.digest(), base, "{record:?}");
    }
    let mut w = make();
    w.state.set_clock(vocab::time::Now { wall: TimeMs(5), monotonic: vocab::time::MonotonicMs(500) });
    w.state.tree.leases.renew_all();
    assert_eq!(w.state.digest(), base);
}

#[test]
fn a_start_gives_clients_the_whole_time_of_their_leases() {
    let mut w = World::new();
    w.open("/f", &[]);
    let now = vocab::time::Now { wall: TimeMs(5), monotonic: vocab::time::MonotonicMs(9_000_000) };
    w.state.start(now);
    assert!(!w.state.tree.leases.soft_expired("client"));
    assert_eq!(w.state.tree.leases.expired(1_200_000).count(), 0);
}
