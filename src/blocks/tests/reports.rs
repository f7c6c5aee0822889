use super::*;
use vocab::Refusal;

/// T86: after a restart DataNodes go on without registering; nothing they say counts until they do.
#[test]
fn namenode_restarts_under_its_datanodes_kubernetes_hdfs_42() {
    let mut w = World::stopped(Settings { safe_extension_ms: 0, safe_threshold: 1.0, ..Settings::default() });
    let block = w.block(1, 1).1;
    w.start(0);
    assert_eq!(w.beat(1), [Command::Register]);
    let id = w.registration(1);
    let volume = w.volume_id(1);
    let refusal = w.blocks.begin_report(&id, &volume, w.now).expect_err("not registered");
    assert_eq!(refusal, Refusal::io(format!("ProcessReport from dead or unregistered node: {id}")));
    assert!(w.blocks.safe_mode.is_on());
    w.register_on(1, "/r");
    w.register_on(1, "/r");
    assert_eq!(w.beat(1), []);
    w.report(1, &[block]);
    w.blocks.safe_mode_check(w.now);
    assert!(!w.blocks.safe_mode.is_on());
    w.check();
}

#[test]
fn a_report_adds_and_takes_away() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    let blocks: Vec<Block> = (1..=10).map(|i| w.block(i, 1).1).collect();
    w.report(1, &blocks[..7]);
    assert_eq!((1..=10).filter(|i| w.holders(*i) == [n]).count(), 7);
    w.report(1, &blocks[3..]);
    let held: Vec<i64> = (1..=10).filter(|i| w.holders(*i) == [n]).collect();
    assert_eq!(held, [4, 5, 6, 7, 8, 9, 10]);
    w.check();
}

#[test]
fn what_comes_during_a_report_is_not_missing_from_it() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    let (a, b) = (w.block(1, 1).1, w.block(2, 1).1);
    w.received(1, a);
    let (id, volume) = (w.registration(1), w.volume_id(1));
    let Ok(ReportStart::Go(mut report)) = w.blocks.begin_report(&id, &volume, w.now) else { panic!("taken") };
    w.received(1, b);
    let mut list = [Reported { block: a, state: ReplicaState::Finalized }].into_iter();
    while w.blocks.report_slice(&mut w.store, &mut report, &mut list, 1) {}
    while w.blocks.finish_report(&mut w.store, &mut report, 1, w.now) {}
    assert_eq!((w.holders(1), w.holders(2)), (vec![n], vec![n]));
    w.check();
}

#[test]
fn an_overtaken_report_changes_nothing_more() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    let a = w.block(1, 1).1;
    w.received(1, a);
    let (id, volume) = (w.registration(1), w.volume_id(1));
    let Ok(ReportStart::Go(mut report)) = w.blocks.begin_report(&id, &volume, w.now) else { panic!("taken") };
    w.report(1, &[a]);
    let mut none = std::iter::empty();
    assert!(!w.blocks.report_slice(&mut w.store, &mut report, &mut none, 1));
    assert!(!w.blocks.finish_report(&mut w.store, &mut report, 100, w.now));
    assert_eq!(w.holders(1), [n]);
}

#[test]
fn unknown_replicas_are_deleted_but_not_on_the_word_of_a_first_report() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let stray = Block { id: BlockId(99), length: 1, stamp: GenerationStamp(1_001) };
    w.register_on(1, "/default-rack");
    w.beat(1);
    w.report(1, &[stray]);
    w.round();
    assert_eq!(w.deletions(1), []);
    w.report(1, &[stray]);
    w.round();
    assert_eq!(w.deletions(1), [99]);
    assert_eq!(w.deletions(1), [], "ordered once");
    w.received(1, stray);
    w.round();
    assert_eq!(w.deletions(1), [99], "an incremental report is enough");
}

#[test]
fn no_deletion_in_start_up() {
    let mut w = World::stopped(Settings { safe_threshold: 1.0, ..Settings::default() });
    w.block(1, 1);
    w.start(0);
    w.register_on(1, "/r");
    w.beat(1);
    let stray = Block { id: BlockId(99), length: 1, stamp: GenerationStamp(1_001) };
    w.report(1, &[]);
    w.report(1, &[stray]);
    w.received(1, stray);
    w.blocks.leave_safe_mode(false);
    w.round();
    assert_eq!(w.deletions(1), []);
}

#[test]
fn later_reports_are_discarded_in_start_up() {
    let mut w = World::stopped(Settings::default());
    let (a, b) = (w.block(1, 1).1, w.block(2, 1).1);
    w.start(0);
    w.register_on(1, "/r");
    w.beat(1);
    w.report(1, &[a]);
    w.report(1, &[b]);
    assert_eq!((w.holders(1).len(), w.holders(2).len()), (1, 0));
}

#[test]
fn a_wrong_length_or_stamp_is_corrupt() {
    let mut w = World::new(Settings::default());
    for n in 1..=3 {
        w.node(n);
    }
    let (b, block) = w.block(1, 3);
    w.received(1, block);
    w.received(2, Block { length: 9, ..block });
    w.received(3, Block { stamp: GenerationStamp(1_000), ..block });
    // the one of an earlier stamp is a leftover of a pipeline recovery and goes at once
    assert_eq!(w.blocks.count(&w.store, b), Count { live: 1, corrupt: 1, ..Count::default() });
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).corrupt, 1);
    w.check();
    w.round();
    assert_eq!(w.deletions(3), [1]);
    assert_eq!(w.deletions(2), [], "kept until there are enough good ones");
    w.incremental(3, block, IncrementalKind::Deleted);
    w.node(4);
    w.received(3, block);
    w.received(4, block);
    w.round();
    assert_eq!(w.deletions(2), [1]);
    w.check();
}

#[test]
fn a_good_replica_clears_a_wrong_stamp() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    let (b, block) = w.block(1, 3);
    w.received(1, Block { stamp: GenerationStamp(1_000), ..block });
    assert_eq!(w.blocks.count(&w.store, b).corrupt, 1);
    w.received(1, block);
    assert_eq!(w.blocks.count(&w.store, b).live, 1);
    assert_eq!(w.holders(1), [n]);
    w.check();
}

#[test]
fn a_replica_moves_between_volumes_of_a_node() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    let (b, block) = w.block(1, 1);
    w.received(1, block);
    let other = VolumeId { id: "DS-other".into(), state: VolumeState::Normal, kind: StorageKind::Ssd };
    let entry = IncrementalEntry { block, kind: IncrementalKind::Received, delete_hint: None };
    w.blocks.incremental_report(&mut w.store, n, &other, [entry].into_iter(), w.now).expect("taken");
    assert_eq!(w.holders(1), [n]);
    let storage = w.store.replicas(b)[0].storage;
    assert_eq!(&*w.blocks.volume_info(storage).expect("there").id, "DS-other");
    w.check();
}

#[test]
fn leases_guard_full_reports() {
    let mut w = World::new(Settings { report_leases_max: 1, ..Settings::default() });
    w.node(1);
    w.node(2);
    let ask = |w: &mut World, n: u32| {
        let beat = Heartbeat { wants_lease: true, ..w.figures(n) };
        let id = w.registration(n);
        w.blocks.heartbeat(&mut w.store, &id, &beat, w.now).expect("heartbeat").lease_id
    };
    let lease = ask(&mut w, 1);
    assert_ne!(lease, 0);
    assert_eq!(ask(&mut w, 2), 0);
    let context = ReportContext { total_rpcs: 1, rpc: 0, report_id: 0xab, lease_id: lease };
    let (one, two) = (w.registration(1), w.registration(2));
    assert_eq!(w.blocks.check_lease(&one, &context, w.now), Ok(()));
    let text = format!("Block report 0xab was rejected as lease 0x{lease:x} is invalid");
    assert_eq!(w.blocks.check_lease(&two, &context, w.now), Err(Refusal::InvalidReportLease(text.into())));
    w.blocks.end_report(&one, Some(&context));
    assert_ne!(ask(&mut w, 2), 0);
}

#[test]
fn contents_are_stale_until_a_report_after_a_heartbeat() {
    let mut w = World::new(Settings::default());
    w.register_on(1, "/r");
    let id = w.registration(1);
    w.report(1, &[]);
    assert!(!w.blocks.end_report(&id, None), "no heartbeat yet");
    w.beat(1);
    let last = ReportContext { total_rpcs: u32::MAX, rpc: u32::MAX, report_id: 0, lease_id: 0 };
    assert!(!w.blocks.end_report(&id, Some(&last)), "any numbers");
    assert!(!w.blocks.end_report(&id, None));
    w.report(1, &[]);
    assert!(w.blocks.end_report(&id, None));
    w.blocks.mark_all_stale();
    assert!(!w.blocks.end_report(&id, None));
}
