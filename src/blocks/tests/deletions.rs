use super::*;

fn three_nodes(settings: Settings) -> World {
    let mut w = World::new(settings);
    for n in 1..=4 {
        w.node(n);
    }
    w
}

#[test]
fn a_deleted_block_leaves_all_nodes() {
    let mut w = three_nodes(Settings { invalidate_node_share: 1.0, ..Settings::default() });
    let block = w.block(1, 3).1;
    (1..=3).for_each(|n| w.received(n, block));
    w.remove(1);
    w.check();
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).pending_deletions, 3);
    w.round();
    assert_eq!((w.deletions(1), w.deletions(2), w.deletions(3), w.deletions(4)), (vec![1], vec![1], vec![1], vec![]));
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).pending_deletions, 0);
}

#[test]
fn a_lower_replication_sheds_the_rest() {
    let mut w = three_nodes(Settings { invalidate_node_share: 1.0, ..Settings::default() });
    let (b, block) = w.block(1, 3);
    (1..=3).for_each(|n| w.received(n, block));
    w.store.edit_block(b, |i| i.replication = 1);
    w.blocks.replication_changed(&mut w.store, b, 3);
    assert_eq!(w.blocks.count(&w.store, b), Count { live: 1, excess: 2, ..Count::default() });
    w.round();
    let gone: Vec<u32> = (1..=3).filter(|n| w.deletions(*n) == [1]).collect();
    assert_eq!(gone.len(), 2);
    gone.iter().for_each(|n| w.incremental(*n, block, IncrementalKind::Deleted));
    assert_eq!(w.holders(1).len(), 1);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).excess, 0);
    w.check();
}

#[test]
fn excess_is_postponed_while_a_volume_is_stale() {
    let mut w = three_nodes(Settings { invalidate_node_share: 1.0, ..Settings::default() });
    let (b, block) = w.block(1, 2);
    (1..=2).for_each(|n| w.received(n, block));
    w.blocks.mark_all_stale();
    w.received(3, block);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).postponed, 1);
    assert_eq!(w.blocks.count(&w.store, b).live, 3);
    for n in 1..=3 {
        w.beat(n);
        w.report(n, &[block]);
    }
    w.blocks.rescan_postponed(&mut w.store, 100);
    assert_eq!(w.blocks.count(&w.store, b), Count { live: 2, excess: 1, ..Count::default() });
    w.check();
}

#[test]
fn the_delete_hint_names_the_replica_that_goes() {
    let mut w = three_nodes(Settings::default());
    let (b, block) = w.block(1, 2);
    (1..=2).for_each(|n| w.received(n, block));
    let (node, volume) = (w.number(3), w.volume_id(3));
    let entry = IncrementalEntry { block, kind: IncrementalKind::Received, delete_hint: Some("uuid-2") };
    w.blocks.incremental_report(&mut w.store, node, &volume, [entry].into_iter(), w.now).expect("taken");
    let excess =
        w.store.replicas(b).into_iter().find(|r| r.flags.contains(record::ReplicaFlags::SPARE_1)).expect("one");
    assert_eq!(w.blocks.volume_info(excess.storage).expect("there").node, w.number(2));
}

#[test]
fn racks_are_kept_when_replicas_are_shed() {
    let mut w = World::new(Settings::default());
    w.node_on(1, "/a");
    w.node_on(2, "/a");
    w.node_on(3, "/b");
    let (b, block) = w.block(1, 3);
    (1..=3).for_each(|n| w.received(n, block));
    w.store.edit_block(b, |i| i.replication = 2);
    w.blocks.replication_changed(&mut w.store, b, 3);
    let excess: Vec<_> = w
        .store
        .replicas(b)
        .into_iter()
        .filter(|r| r.flags.contains(record::ReplicaFlags::SPARE_1))
        .map(|r| w.blocks.volume_info(r.storage).expect("there").node)
        .collect();
    assert_eq!(excess.len(), 1);
    assert_ne!(excess[0], w.number(3), "the only one on its rack stays");
}

/// A replica queued as excess is the last one when its peers die before the order leaves: it stays.
#[test]
fn the_last_replica_is_never_deleted() {
    let mut w = three_nodes(Settings { invalidate_node_share: 1.0, ..Settings::default() });
    let (b, block) = w.block(1, 2);
    (1..=2).for_each(|n| w.received(n, block));
    w.store.edit_block(b, |i| i.replication = 1);
    w.blocks.replication_changed(&mut w.store, b, 2);
    w.round();
    let excess =
        w.store.replicas(b).into_iter().find(|r| r.flags.contains(record::ReplicaFlags::SPARE_1)).expect("one");
    let doomed = w.blocks.volume_info(excess.storage).expect("there").node;
    let (doomed, other) = if doomed == w.number(1) { (1, 2) } else { (2, 1) };
    w.blocks.fatal_disk_error(&w.registration(other)).expect("known");
    w.drain();
    assert_eq!(w.deletions(doomed), []);
    assert_eq!(w.blocks.count(&w.store, b).live, 1);
    w.check();
}

#[test]
fn deletions_wait_after_start_and_are_limited() {
    let mut w = three_nodes(Settings {
        startup_deletion_delay_ms: 5_000,
        invalidate_limit: 60,
        heartbeat_interval_ms: 3_000,
        invalidate_node_share: 1.0,
        ..Settings::default()
    });
    for i in 1..=100 {
        let block = w.block(i, 1).1;
        w.received(1, block);
    }
    (1..=100).for_each(|i| w.remove(i));
    w.round();
    assert_eq!(w.deletions(1), []);
    w.pass(5_000);
    w.round();
    assert_eq!(w.deletions(1).len(), 60);
    w.round();
    assert_eq!(w.deletions(1).len(), 40);
}

/// Too many replicas of a block that was finished with enough of them stay until the file is closed; what comes later is looked at at once.
#[test]
fn replicas_of_open_files_go_when_the_file_is_closed() {
    let mut w = World::new(Settings::default());
    (1..=4).for_each(|n| _ = w.node(n));
    let (b, block) = w.block_in(1, 1, BlockState::UnderConstruction);
    w.store.set_block_open(b, true);
    for n in 1..=3 {
        w.received(n, block);
    }
    w.blocks.block_committed(&mut w.store, b);
    assert_eq!((w.store.block_state(b), w.blocks.count(&w.store, b).live), (BlockState::Complete, 3));
    w.blocks.block_closed(&mut w.store, b);
    assert_eq!((w.blocks.count(&w.store, b).live, w.blocks.count(&w.store, b).excess), (1, 2));
    w.received(4, block);
    assert_eq!((w.blocks.count(&w.store, b).live, w.blocks.count(&w.store, b).excess), (1, 3));
    w.check();
}
