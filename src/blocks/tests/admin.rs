use super::*;

fn walk(w: &mut World) {
    while w.blocks.admin_step(&mut w.store, 3, w.now) {}
}

fn exclude(w: &mut World, nodes: &[u32]) {
    let excluded = nodes.iter().map(|n| HostEntry::parse(&format!("10.0.0.{n}"))).collect();
    w.blocks.refresh_hosts(Hosts { excluded, ..Hosts::default() }, w.now);
}

fn state(w: &World, n: u32) -> AdminState {
    w.blocks.node(w.number(n)).expect("there").admin
}

fn with_blocks() -> World {
    let mut w = World::new(Settings { work_multiplier: 100, invalidate_node_share: 1.0, ..Settings::default() });
    for n in 1..=4 {
        w.node(n);
    }
    for i in 1..=5 {
        let block = w.block(i, 2).1;
        w.received(1, block);
        w.received(2, block);
    }
    w
}

/// Copies what is ordered of node `n` until it orders nothing more.
fn copy_from(w: &mut World, n: u32) {
    for _ in 0..10 {
        w.round();
        for (id, targets) in w.transfers(n) {
            let block = w.store.block(w.store.find_block(BlockId(id)).expect("there")).block;
            for t in targets {
                let uuid = w.blocks.node(t).expect("there").id.uuid.clone();
                w.received(uuid["uuid-".len()..].parse().expect("number"), block);
            }
        }
    }
}

#[test]
fn a_node_stays_while_a_striped_group_needs_its_internal_block() {
    let mut w = World::new(Settings::default());
    let group = Block { id: BlockId(i64::MIN + 16), length: 10, stamp: GenerationStamp(1_001) };
    let b = w.store.add_block(&BlockInfo {
        block: group,
        replication: 1,
        state: BlockState::Complete,
        erasure_coding_policy: 1,
        ..BlockInfo::default()
    });
    w.blocks.block_added(&w.store, b);
    // one cell of data, and the parity of RS-6-3
    for (n, index) in [(1, 0), (2, 6), (3, 7), (4, 8)] {
        w.node(n);
        w.received(n, Block { id: BlockId(group.id.0 + index), ..group });
    }
    assert_eq!(w.holders(group.id.0).len(), 4);
    exclude(&mut w, &[1]);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::Decommissioning);
    assert_eq!(w.blocks.leaving_status(w.number(1)).expect("leaving").low_redundancy, 1);
}

#[test]
fn a_node_leaves_once_its_blocks_are_elsewhere() {
    let mut w = with_blocks();
    exclude(&mut w, &[1]);
    assert_eq!(state(&w, 1), AdminState::Decommissioning);
    walk(&mut w);
    assert_eq!(w.blocks.leaving_status(w.number(1)).expect("leaving").low_redundancy, 5);
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.low_redundancy, stats.decommissioning, stats.in_service), (5, 1, 3));
    for _ in 0..3 {
        copy_from(&mut w, 1);
        copy_from(&mut w, 2);
    }
    assert!((1..=5).all(|i| w.holders(i).len() == 3));
    w.pass(30_000);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::Decommissioned);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).decommissioned_live, 1);
    let r = TargetRequest { replicas: 4, block_size: 1, new_block: true, ..TargetRequest::default() };
    let p = w.blocks.choose_targets(&r, w.now.monotonic);
    assert!(p.targets.len() == 3 && p.targets.iter().all(|t| t.node != w.number(1)));
    w.check();
    // back in service there are too many replicas
    exclude(&mut w, &[]);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::Normal);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).excess, 5);
    w.check();
}

/// T88: a node that dies while it leaves does not keep another one from leaving, and resumes when it returns.
#[test]
fn node_lost_while_decommissioning_hdfs_16303() {
    let mut w = with_blocks();
    let lone = w.block(9, 1).1;
    w.received(1, lone);
    exclude(&mut w, &[1, 2]);
    walk(&mut w);
    w.blocks.fatal_disk_error(&w.registration(1)).expect("known");
    w.drain();
    for _ in 0..5 {
        copy_from(&mut w, 2);
    }
    w.pass(30_000);
    walk(&mut w);
    assert_eq!((state(&w, 1), state(&w, 2)), (AdminState::Decommissioning, AdminState::Decommissioned));
    let leaving: Vec<_> = w.blocks.datanode_report(ReportKind::Decommissioning).iter().map(|n| n.number).collect();
    assert_eq!(leaving, [w.number(1)]);
    assert!(!w.blocks.node(w.number(1)).expect("there").alive);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).decommissioning, 1, "as the report says");
    w.register_on(1, DEFAULT_RACK);
    w.beat(1);
    w.report(1, &[lone]);
    assert_eq!(state(&w, 1), AdminState::Decommissioning);
    for _ in 0..3 {
        copy_from(&mut w, 1);
    }
    w.pass(30_000);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::Decommissioned);
    w.check();
}

#[test]
fn a_node_that_is_not_included_any_more_is_shut_out() {
    let mut w = with_blocks();
    w.blocks.refresh_hosts(Hosts { included: vec![HostEntry::parse("10.0.0.2")], ..Hosts::default() }, w.now);
    let (who, figures) = (w.registration(1), w.figures(1));
    let refusal = w.blocks.heartbeat(&mut w.store, &who, &figures, w.now).expect_err("shut out");
    assert_eq!(
        refusal,
        vocab::Refusal::DisallowedDatanode(
            "Datanode denied communication with namenode because the host is not in the include-list: 10.0.0.1:9866"
                .into()
        )
    );
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).dead, 1);
    assert_eq!(w.beat(2), []);
}

#[test]
fn an_excluded_node_registers_and_leaves() {
    let mut w = World::new(Settings::default());
    w.blocks.hosts.excluded = [HostEntry::parse("10.0.0.1")].into_iter().collect();
    w.node(1);
    assert_eq!(state(&w, 1), AdminState::Decommissioning);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::Decommissioned, "it holds nothing");
}

/// T78: a host of the include list that never starts is a dead node without an id, and drops nothing else.
#[test]
fn dead_nodes_with_a_listed_host_that_never_registered_hdfs_17559() {
    let mut w = World::new(Settings::default());
    let included = vec![HostEntry::parse("dn9.example"), HostEntry::parse("10.0.0.1")];
    w.blocks.hosts =
        Hosts { included, excluded: [HostEntry::parse("dn9.example")].into_iter().collect(), ..Hosts::default() };
    w.node(1);
    let missing = w.blocks.never_registered();
    assert_eq!(missing.len(), 1);
    let node = &missing[0];
    let seen = (&*node.id.host, &*node.id.uuid, node.admin, node.alive);
    assert_eq!(seen, ("dn9.example", "", AdminState::Decommissioned, false));
    assert_eq!(w.blocks.datanode_report(ReportKind::All).len(), 1);
}

fn send_to_maintenance(w: &mut World, nodes: &[u32], expires: i64) {
    let maintenance = nodes.iter().map(|n| (HostEntry::parse(&format!("10.0.0.{n}")), TimeMs(expires))).collect();
    w.blocks.refresh_hosts(Hosts { maintenance, ..Hosts::default() }, w.now);
}

#[test]
fn a_node_rests_once_each_of_its_blocks_has_a_replica_elsewhere() {
    let mut w = with_blocks();
    let lone = w.block(9, 1).1;
    w.received(1, lone);
    send_to_maintenance(&mut w, &[1], i64::MAX);
    assert_eq!(state(&w, 1), AdminState::EnteringMaintenance);
    walk(&mut w);
    // five blocks of two replicas have the other one; only the lone one is in the way, and it alone is copied
    let status = w.blocks.leaving_status(w.number(1)).expect("leaving");
    assert_eq!((status.low_redundancy, status.only_here), (1, 1));
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).low_redundancy, 1);
    copy_from(&mut w, 1);
    assert_eq!(w.holders(9).len(), 2);
    assert!((1..=5).all(|i| w.holders(i).len() == 2));
    w.pass(30_000);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::InMaintenance);
    // dead in maintenance its replicas count on; nothing is copied
    w.blocks.fatal_disk_error(&w.registration(1)).expect("known");
    w.drain();
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).maintenance_dead, 1);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).low_redundancy, 0);
    assert_eq!(w.holders(1).len(), 2);
    // it is told to serve while it is dead: now they are gone
    send_to_maintenance(&mut w, &[], 0);
    w.drain();
    assert_eq!(state(&w, 1), AdminState::Normal);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).low_redundancy, 5);
    w.check();
}

#[test]
fn maintenance_expires() {
    let mut w = with_blocks();
    let expires = w.now.wall.0 + 60_000;
    send_to_maintenance(&mut w, &[1], expires);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::InMaintenance);
    // a reader is not sent to it
    let b = w.store.find_block(BlockId(1)).expect("there");
    let nodes: Vec<_> = w.blocks.locate(&w.store, b).locations.iter().map(|t| t.node).collect();
    assert_eq!(nodes, [w.number(2)]);
    w.pass(60_001);
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::Normal);
    // lists that ask for maintenance that is over ask for nothing
    send_to_maintenance(&mut w, &[1], expires);
    assert_eq!(state(&w, 1), AdminState::Normal);
    w.check();
}

#[test]
fn from_decommissioning_to_maintenance_and_back() {
    let mut w = with_blocks();
    exclude(&mut w, &[1]);
    assert_eq!(state(&w, 1), AdminState::Decommissioning);
    send_to_maintenance(&mut w, &[1], i64::MAX);
    assert_eq!(state(&w, 1), AdminState::EnteringMaintenance);
    exclude(&mut w, &[1]);
    assert_eq!(state(&w, 1), AdminState::Decommissioning);
    for _ in 0..4 {
        walk(&mut w);
        copy_from(&mut w, 1);
        copy_from(&mut w, 2);
        w.pass(30_000);
    }
    walk(&mut w);
    assert_eq!(state(&w, 1), AdminState::Decommissioned);
    send_to_maintenance(&mut w, &[1], i64::MAX);
    assert_eq!(state(&w, 1), AdminState::InMaintenance, "at once");
    w.blocks.fatal_disk_error(&w.registration(3)).expect("known");
    send_to_maintenance(&mut w, &[1, 3], i64::MAX);
    assert_eq!(state(&w, 3), AdminState::InMaintenance, "a dead one at once");
    w.check();
}

#[test]
fn nodes_in_maintenance_do_not_count_as_tracked() {
    let mut w = World::new(Settings { decommission_tracked_max: 1, ..Settings::default() });
    for n in 1..=4 {
        w.node(n);
    }
    let block = w.block(1, 3).1;
    (1..=3).for_each(|n| w.received(n, block));
    send_to_maintenance(&mut w, &[4], i64::MAX);
    walk(&mut w);
    assert_eq!(state(&w, 4), AdminState::InMaintenance);
    let four = vec![(HostEntry::parse("10.0.0.4"), TimeMs(i64::MAX))];
    let excluded = [1, 2].map(|n| HostEntry::parse(&format!("10.0.0.{n}"))).into_iter().collect();
    w.blocks.refresh_hosts(Hosts { maintenance: four, excluded, ..Hosts::default() }, w.now);
    walk(&mut w);
    // one after the other: of the second nothing was looked at yet
    let low = |w: &World, n| w.blocks.leaving_status(w.number(n)).expect("leaving").low_redundancy;
    assert_eq!((low(&w, 1), low(&w, 2)), (1, 0));
}

#[test]
fn an_interval_looks_at_so_many_blocks() {
    let settings =
        Settings { decommission_blocks_per_interval: 6, decommission_interval_ms: 1_000, ..Settings::default() };
    let mut w = World::new(settings);
    for n in 1..=2 {
        w.node(n);
    }
    for i in 1..=20 {
        let block = w.block(i, 1).1;
        w.received(1, block);
    }
    exclude(&mut w, &[1]);
    for _ in 0..3 {
        walk(&mut w);
        assert_eq!(w.blocks.leaving_status(w.number(1)).expect("leaving").low_redundancy, 0, "the walk is not over");
        w.pass(1_000);
    }
    walk(&mut w);
    assert_eq!(w.blocks.leaving_status(w.number(1)).expect("leaving").low_redundancy, 20);
}

#[test]
fn a_balancer_gets_the_blocks_of_a_node_once_each() {
    let mut w = World::new(Settings::default());
    for n in 1..=2 {
        w.node(n);
    }
    for i in 1..=50 {
        let block = w.block(i, 1).1;
        w.received(1, block);
    }
    let id = w.registration(1).id;
    for _ in 0..20 {
        let mut walk = w.blocks.begin_node_blocks(&id, None).expect("known");
        let mut seen = Vec::new();
        loop {
            let ids = w.blocks.next_node_blocks(&mut walk, 7);
            if ids.is_empty() {
                break;
            }
            seen.extend(ids.iter().map(|id| id.0));
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=50).collect::<Vec<_>>());
    }
    let none = w.blocks.begin_node_blocks(&id, Some(StorageKind::Ssd)).expect("known");
    assert_eq!(w.blocks.next_node_blocks(&mut none.clone(), 7), []);
    let unknown = w.blocks.begin_node_blocks(&w.registration(9).id, None).expect_err("unknown");
    assert_eq!(unknown, vocab::Refusal::HadoopIllegalArgument("Datanode 10.0.0.9:9866 not found.".into()));
}

/// With the backoff monitor a walk stops while too many blocks wait for copies, whatever the interval allows.
#[test]
fn walks_wait_while_many_blocks_do() {
    let mut w = with_blocks();
    w.blocks.settings.decommission_backoff = Some((2, 1));
    exclude(&mut w, &[1]);
    walk(&mut w);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).low_redundancy, 2);
    copy_from(&mut w, 1);
    copy_from(&mut w, 2);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).low_redundancy, 0);
    for _ in 0..10 {
        w.pass(30_000);
        (1..=4).for_each(|n| drop(w.beat(n)));
        walk(&mut w);
        copy_from(&mut w, 1);
        copy_from(&mut w, 2);
    }
    assert_eq!(state(&w, 1), AdminState::Decommissioned);
    w.check();
}

/// A finished block of an open file keeps its only node from leaving, and is told as what does.
#[test]
fn open_files_that_keep_a_node_are_told() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let (b, block) = w.block_in(1, 1, BlockState::UnderConstruction);
    w.store.set_block_open(b, true);
    w.received(1, block);
    w.blocks.block_committed(&mut w.store, b);
    assert_eq!(w.blocks.blocking_leave().count(), 0);
    exclude(&mut w, &[1]);
    walk(&mut w);
    assert_eq!(w.blocks.blocking_leave().collect::<Vec<_>>(), [block.id]);
    w.blocks.stop_decommission(w.number(1));
    assert_eq!(w.blocks.blocking_leave().count(), 0);
}
