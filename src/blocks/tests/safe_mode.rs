use super::*;

#[test]
fn start_up_ends_after_the_extension() {
    let mut w = World::stopped(Settings::default());
    let blocks: Vec<Block> = (1..=1000).map(|i| w.block(i, 3).1).collect();
    w.start(0);
    assert_eq!(w.blocks.safe_mode.blocks(), (0, 1000));
    w.register_on(1, "/r");
    w.beat(1);
    w.report(1, &blocks[..998]);
    w.blocks.safe_mode_check(w.now);
    assert_eq!(w.blocks.safe_mode.startup(), Startup::Pending);
    w.received(1, blocks[998]);
    w.blocks.safe_mode_check(w.now);
    assert_eq!(w.blocks.safe_mode.startup(), Startup::Extension);
    w.check();
    w.pass(29_999);
    w.blocks.safe_mode_check(w.now);
    assert!(w.blocks.safe_mode.is_on());
    w.pass(1);
    w.blocks.safe_mode_check(w.now);
    assert!(!w.blocks.safe_mode.is_on());
    while w.blocks.scan_step(&mut w.store, 2) {}
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.low_redundancy, stats.missing, stats.highest_priority), (1000, 1, 999));
}

/// What has too few replicas is looked for once that is of use, while safe mode is still on.
#[test]
fn queues_begin_at_their_own_threshold() {
    let mut w = World::stopped(Settings { queues_threshold: 0.5, ..Settings::default() });
    let blocks: Vec<Block> = (1..=1000).map(|i| w.block(i, 3).1).collect();
    w.start(0);
    w.register_on(1, "/r");
    w.beat(1);
    w.report(1, &blocks[..499]);
    w.blocks.safe_mode_check(w.now);
    assert!(!w.blocks.populating_queues());
    w.received(1, blocks[499]);
    w.blocks.safe_mode_check(w.now);
    assert!(w.blocks.populating_queues());
    assert_eq!(w.blocks.safe_mode.startup(), Startup::Pending);
    while w.blocks.scan_step(&mut w.store, 2) {}
    blocks[500..].iter().for_each(|block| w.received(1, *block));
    w.blocks.safe_mode_check(w.now);
    w.pass(30_000);
    w.blocks.safe_mode_check(w.now);
    assert!(!w.blocks.safe_mode.is_on());
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.low_redundancy, stats.missing, stats.highest_priority), (1000, 0, 1000));
    w.check();
}

#[test]
fn an_empty_file_system_is_never_in_start_up() {
    let w = World::new(Settings::default());
    assert!(!w.blocks.safe_mode.is_on());
}

/// A thousandth of a few blocks is none: nothing to wait for.
#[test]
fn a_single_block_is_not_waited_for() {
    let mut w = World::stopped(Settings::default());
    w.block(1, 1);
    w.start(0);
    assert!(!w.blocks.safe_mode.is_on());
}

#[test]
fn live_nodes_may_be_asked_for() {
    let mut w = World::stopped(Settings { safe_datanodes_min: 1, safe_extension_ms: 0, ..Settings::default() });
    w.start(0);
    assert_eq!(
        w.blocks.safe_mode.status(w.now.monotonic),
        "The reported blocks 0 has reached the threshold 0.9990 of total blocks 0. The number of live datanodes 0 needs an \
         additional 1 live datanodes to reach the minimum number 1.\nSafe mode will be turned off automatically once the \
         thresholds have been reached."
    );
    w.register_on(1, "/r");
    w.blocks.safe_mode_check(w.now);
    assert!(!w.blocks.safe_mode.is_on());
}

#[test]
fn replicas_from_the_future_keep_it_on() {
    let mut w = World::stopped(Settings { safe_extension_ms: 0, safe_threshold: 1.0, ..Settings::default() });
    let block = w.block(1, 1).1;
    w.start(0);
    w.register_on(1, "/r");
    w.beat(1);
    w.report(1, &[block, Block { id: BlockId(50), length: 123, stamp: GenerationStamp(2_001) }]);
    w.blocks.safe_mode_check(w.now);
    assert!(w.blocks.safe_mode.is_on());
    assert!(w.blocks.safe_mode.status(w.now.monotonic).contains("will cause loss of 123 byte(s)"));
    assert!(!w.blocks.leave_safe_mode(false));
    assert!(w.blocks.leave_safe_mode(true));
    assert!(!w.blocks.safe_mode.is_on());
}

#[test]
fn no_commands_in_safe_mode() {
    let mut w = World::new(Settings { invalidate_node_share: 1.0, ..Settings::default() });
    w.node(1);
    let block = w.block(1, 1).1;
    w.received(1, block);
    w.remove(1);
    w.round();
    w.blocks.safe_mode.enter_manual();
    assert_eq!(
        w.blocks.safe_mode.status(w.now.monotonic),
        "It was turned on manually. Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off."
    );
    assert_eq!(w.beat(1), []);
    w.blocks.leave_safe_mode(false);
    assert_eq!(w.deletions(1), [1]);
}

#[test]
fn a_committed_block_counts_once_it_is_complete() {
    let mut w = World::stopped(Settings { safe_threshold: 1.0, ..Settings::default() });
    w.block(1, 1);
    let (b, block) = w.block_in(2, 1, BlockState::UnderConstruction);
    w.start(1);
    assert_eq!(w.blocks.safe_mode.blocks(), (0, 1));
    w.register_on(1, "/r");
    w.beat(1);
    w.report(1, &[block]);
    assert_eq!(w.blocks.safe_mode.blocks(), (0, 1));
    w.blocks.block_committed(&mut w.store, b);
    assert_eq!(w.store.block_state(b), BlockState::Complete);
    assert_eq!(w.blocks.safe_mode.blocks(), (1, 2));
    w.check();
}
