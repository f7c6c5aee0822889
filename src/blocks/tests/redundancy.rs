use super::*;

fn dead(w: &mut World, n: u32) {
    let expiry = w.blocks.settings.expiry_ms();
    let others: Vec<u32> =
        (1..=9).filter(|m| *m != n && w.blocks.node_by_uuid(&format!("uuid-{m}")).is_some()).collect();
    w.pass(expiry / 2 + 1);
    others.iter().for_each(|m| drop(w.beat(*m)));
    w.pass(expiry / 2 + 1);
    assert_eq!(w.blocks.heartbeat_check(w.now), [w.number(n)]);
    w.drain();
}

#[test]
fn a_dead_nodes_blocks_are_copied() {
    let mut w = World::new(Settings::default());
    for n in 1..=4 {
        w.node(n);
    }
    let (b, block) = w.block(1, 3);
    (1..=3).for_each(|n| w.received(n, block));
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).low_redundancy, 0);
    dead(&mut w, 1);
    w.check();
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.live, stats.dead, stats.low_redundancy, stats.expired_heartbeats), (3, 1, 1, 1));
    w.round();
    let sent: Vec<_> = [2, 3].into_iter().flat_map(|n| w.transfers(n)).collect();
    assert_eq!(sent, [(1, vec![w.number(4)])]);
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.low_redundancy, stats.pending_copies), (0, 1));
    w.received(4, block);
    assert_eq!(w.blocks.count(&w.store, b).live, 3);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).pending_copies, 0);
    w.check();
}

#[test]
fn a_node_that_comes_back_makes_an_excess_replica() {
    let mut w = World::new(Settings { invalidate_node_share: 1.0, ..Settings::default() });
    for n in 1..=4 {
        w.node(n);
    }
    let (b, block) = w.block(1, 3);
    (1..=3).for_each(|n| w.received(n, block));
    dead(&mut w, 1);
    w.round();
    w.beat(2);
    w.beat(3);
    w.received(4, block);
    assert_eq!(w.beat(1), [Command::Register]);
    w.register_on(1, DEFAULT_RACK);
    w.beat(1);
    w.report(1, &[block]);
    // decided by the next round only: while the report was taken the volume's content was not known to be up to date
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).postponed, 1);
    w.blocks.rescan_postponed(&mut w.store, 100);
    assert_eq!(w.blocks.count(&w.store, b), Count { live: 3, excess: 1, ..Count::default() });
    w.check();
}

#[test]
fn late_copies_are_ordered_again() {
    let mut w = World::new(Settings::default());
    w.node(1);
    w.node(2);
    let (_, block) = w.block(1, 2);
    w.received(1, block);
    w.round();
    assert_eq!(w.transfers(1).len(), 1);
    w.round();
    assert_eq!(w.transfers(1).len(), 0);
    w.pass(300_001);
    w.beat(2);
    w.blocks.expire_pending(&mut w.store, 100, w.now);
    w.round();
    assert_eq!(w.transfers(1), [(1, vec![w.number(2)])]);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).timed_out_copies, 1);
}

#[test]
fn nodes_send_few_copies_at_a_time() {
    let mut w = World::new(Settings { work_multiplier: 100, ..Settings::default() });
    w.node(1);
    w.node(2);
    for i in 1..=20 {
        let block = w.block(i, 2).1;
        w.received(1, block);
    }
    w.round();
    // the last replica may be sent up to the hard limit, but two leave with one heartbeat
    assert_eq!(w.transfers(1).len(), 2);
    assert_eq!(w.transfers(1).len(), 2);
    assert_eq!(w.transfers(1).len(), 0);
}

#[test]
fn missing_blocks() {
    let mut w = World::new(Settings::default());
    w.node(1);
    w.node(2);
    let (_, one) = w.block(1, 1);
    let (b, two) = w.block(2, 2);
    w.received(1, one);
    w.received(1, two);
    dead(&mut w, 1);
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.missing, stats.missing_single, stats.low_redundancy), (2, 1, 2));
    w.round();
    assert_eq!(w.transfers(2), []);
    assert!(w.blocks.locate(&w.store, b).locations.is_empty());
    w.register_on(1, DEFAULT_RACK);
    w.beat(1);
    w.report(1, &[one, two]);
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.missing, stats.low_redundancy, stats.highest_priority), (0, 1, 1));
    w.check();
}

#[test]
fn a_second_rack_spreads_blocks() {
    let mut w = World::new(Settings::default());
    w.node_on(1, "/a");
    w.node_on(2, "/a");
    let (b, block) = w.block(1, 2);
    w.received(1, block);
    w.received(2, block);
    w.node_on(3, "/b");
    // found by the next look at the block
    w.blocks.replication_changed(&mut w.store, b, 0);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).badly_distributed, 1);
    w.round();
    let sent: Vec<_> = [1, 2].into_iter().flat_map(|n| w.transfers(n)).collect();
    assert_eq!(sent, [(1, vec![w.number(3)])]);
    w.received(3, block);
    assert_eq!(w.blocks.count(&w.store, b), Count { live: 2, excess: 1, ..Count::default() });
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).badly_distributed, 0);
}

#[test]
fn a_volume_that_heartbeats_drop_is_forgotten() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    w.node(2);
    let (_, block) = w.block(1, 2);
    w.received(1, block);
    w.received(2, block);
    let mut beat = w.figures(1);
    beat.volumes[0].volume.id = "DS-new".into();
    let id = w.registration(1);
    w.blocks.heartbeat(&mut w.store, &id, &beat, w.now).expect("heartbeat");
    w.drain();
    assert_eq!(w.holders(1), [w.number(2)]);
    let node = w.blocks.node(n).expect("there");
    let ids: Vec<_> = w.blocks.volumes_of(node).map(|v| v.id.to_string()).collect();
    assert_eq!(ids, ["DS-new"]);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).low_redundancy, 1);
    w.check();
}

fn bad(w: &mut World, block: &Block, n: u32, storage: Option<&str>) -> Result<(), vocab::Refusal> {
    let id = w.registration(n).id;
    w.blocks.report_bad(&mut w.store, block, &id, storage)
}

#[test]
fn a_client_reports_a_bad_replica() {
    let mut w = World::new(Settings { invalidate_node_share: 1.0, ..Settings::default() });
    for n in 1..=3 {
        w.node(n);
    }
    let (b, block) = w.block(1, 2);
    w.received(1, block);
    w.received(2, block);
    bad(&mut w, &block, 1, Some("DS-1")).expect("known");
    assert_eq!(w.blocks.count(&w.store, b), Count { live: 1, corrupt: 1, ..Count::default() });
    let located = w.blocks.locate(&w.store, b);
    assert_eq!(located.locations.iter().map(|t| t.node).collect::<Vec<_>>(), [w.number(2)]);
    w.round();
    assert_eq!(w.transfers(2), [(1, vec![w.number(3)])]);
    assert_eq!(w.deletions(1), []);
    w.received(3, block);
    w.round();
    assert_eq!(w.deletions(1), [1]);
    bad(&mut w, &block, 2, Some("DS-2")).expect("known");
    bad(&mut w, &block, 3, None).expect("known");
    assert!(w.blocks.locate(&w.store, b).corrupt, "only bad ones are left: better those than none");
    assert_eq!(w.blocks.locate(&w.store, b).locations.len(), 2);
    let refusal = bad(&mut w, &block, 9, None).expect_err("unknown node");
    assert!(
        matches!(refusal, vocab::Refusal::Io(text) if text.starts_with("Cannot mark blk_1_1001 as corrupt because datanode"))
    );
    w.check();
}
