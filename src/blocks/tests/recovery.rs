use super::*;
use vocab::Refusal;

fn open(w: &mut World, id: i64, on: &[u32]) -> (BlockHandle, Block) {
    let (b, block) = w.block_in(id, 3, BlockState::UnderConstruction);
    let targets: Vec<_> =
        on.iter().map(|n| w.blocks.find_storage(&format!("uuid-{n}"), &format!("DS-{n}")).expect("there")).collect();
    w.blocks.begin_construction(&w.store, b, &targets);
    (b, block)
}

#[test]
fn a_written_block_becomes_complete() {
    let mut w = World::new(Settings::default());
    for n in 1..=3 {
        w.node(n);
    }
    let (b, block) = open(&mut w, 1, &[1, 2, 3]);
    assert_eq!(w.blocks.locate(&w.store, b).locations.len(), 3);
    let commit = Block { length: 77, ..block };
    assert_eq!(w.blocks.check_commit(&w.store, b, &commit), Ok(true));
    let stale = Block { stamp: GenerationStamp(1_000), ..commit };
    assert_eq!(
        w.blocks.check_commit(&w.store, b, &stale),
        Err(Refusal::io("Commit block with mismatching GS. NN has blk_1_1001, client submits blk_1_1000"))
    );
    w.store.edit_block(b, |i| i.block = commit);
    w.blocks.block_committed(&mut w.store, b);
    assert_eq!(w.store.block_state(b), BlockState::Committed);
    assert_eq!(w.blocks.check_commit(&w.store, b, &commit), Ok(false));
    w.received(2, commit);
    assert_eq!(w.store.block_state(b), BlockState::Complete);
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.pending_copies, stats.low_redundancy), (1, 0), "the other two are on their way");
    w.received(1, commit);
    w.received(3, commit);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).pending_copies, 0);
    assert_eq!(w.blocks.open_block_count(), 0);
    w.check();
}

#[test]
fn replicas_that_missed_a_pipeline_recovery_are_forgotten() {
    let mut w = World::new(Settings::default());
    for n in 1..=3 {
        w.node(n);
    }
    let (b, block) = open(&mut w, 1, &[1, 2, 3]);
    w.received(3, block);
    let newer = Block { stamp: GenerationStamp(1_002), ..block };
    w.store.edit_block(b, |i| i.block = newer);
    w.blocks.block_updated(&mut w.store, b);
    assert_eq!(w.holders(1), [w.number(3)]);
    w.blocks.drop_stale_replicas(&mut w.store, b);
    assert_eq!(w.holders(1), [], "no reader is sent to what the new pipeline left behind");
    let pipeline = [1, 2].map(|n| w.blocks.find_storage(&format!("uuid-{n}"), &format!("DS-{n}")).expect("there"));
    w.blocks.begin_construction(&w.store, b, &pipeline);
    w.received(1, newer);
    w.blocks.block_committed(&mut w.store, b);
    assert_eq!(w.store.block_state(b), BlockState::Complete);
    w.report(3, &[block]);
    w.received(2, newer);
    assert_eq!(w.blocks.count(&w.store, b).live, 2);
    assert!(!w.holders(1).contains(&w.number(3)));
    w.check();
}

#[test]
fn the_node_heard_from_last_leads_a_recovery() {
    let mut w = World::new(Settings::default());
    for n in 1..=3 {
        w.node(n);
    }
    let (b, block) = open(&mut w, 1, &[1, 2, 3]);
    w.pass(1_000);
    w.beat(2);
    assert!(w.blocks.begin_recovery(&mut w.store, b, GenerationStamp(1_005)));
    assert_eq!(w.beat(1), []);
    let commands = w.beat(2);
    let [Command::Recover(list)] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!((list[0].block, list[0].recovery_id, list[0].locations.len()), (block, 1_005, 3));
    assert_eq!(w.beat(2), [], "ordered once");
    assert!(w.blocks.begin_recovery(&mut w.store, b, GenerationStamp(1_006)));
    assert_eq!(w.beat(2), [], "another one leads the next try");
    let led: Vec<u32> = [1, 3].into_iter().filter(|n| !w.beat(*n).is_empty()).collect();
    assert_eq!(led.len(), 1);
    let refusal = w.blocks.check_commit(&w.store, b, &block).expect_err("in recovery");
    assert_eq!(refusal, Refusal::io("Commit or complete block blk_1_1001, whereas it is under recovery."));
}

#[test]
fn stale_nodes_are_left_out_of_a_recovery() {
    let mut w = World::new(Settings::default());
    for n in 1..=3 {
        w.node(n);
    }
    let (b, _) = open(&mut w, 1, &[1, 2, 3]);
    w.pass(30_000);
    w.beat(1);
    w.beat(2);
    w.blocks.begin_recovery(&mut w.store, b, GenerationStamp(1_005));
    let orders: Vec<_> = [1, 2].into_iter().flat_map(|n| w.beat(n)).collect();
    let [Command::Recover(list)] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!(list[0].locations.len(), 2);
}

#[test]
fn nobody_can_lead_without_a_place() {
    let mut w = World::new(Settings::default());
    let (b, block) = open(&mut w, 1, &[]);
    assert!(!w.blocks.begin_recovery(&mut w.store, b, GenerationStamp(1_005)));
    w.node(1);
    w.report_states(1, &[Reported { block, state: ReplicaState::WaitingToBeRecovered }]);
    assert!(w.blocks.begin_recovery(&mut w.store, b, GenerationStamp(1_006)));
    assert!(matches!(&w.beat(1)[..], [Command::Recover(_)]));
}

/// After a start nobody leads the recovery yet; the writer's own word would give the block a length that its replicas are not to have.
#[test]
fn what_a_truncate_cuts_is_in_recovery_from_the_start() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let (b, block) = open(&mut w, 1, &[1]);
    assert_eq!(w.blocks.state_of(&w.store, b), BlockState::UnderConstruction);
    w.blocks.resume_truncate(&w.store, block.id, Block { length: 4, ..block });
    assert_eq!(w.blocks.state_of(&w.store, b), BlockState::UnderRecovery);
    let refusal = w.blocks.check_commit(&w.store, b, &block).expect_err("being cut");
    assert_eq!(refusal, Refusal::io("Commit or complete block blk_1_1001, whereas it is under recovery."));
    w.blocks.end_recovery(&mut w.store, b, Block { length: 4, ..block }, &[]);
    assert_eq!(w.blocks.check_commit(&w.store, b, &block), Ok(true));
}

#[test]
fn a_truncate_says_what_is_left() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let (b, block) = w.block(1, 1);
    w.received(1, block);
    w.store.edit_block(b, |i| i.state = BlockState::UnderConstruction);
    w.blocks.block_reopened(&w.store, b);
    let cut = Block { length: 4, stamp: GenerationStamp(1_009), ..block };
    assert!(w.blocks.begin_truncate(&mut w.store, b, GenerationStamp(1_009), cut));
    let commands = w.beat(1);
    let [Command::Recover(list)] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!((list[0].block, list[0].truncate, list[0].recovery_id), (block, Some(cut), 1_009));
}

#[test]
fn room_is_set_aside_once_per_block() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let (b, _) = open(&mut w, 1, &[1]);
    let storage = w.blocks.expected(BlockId(1))[0];
    w.blocks.begin_construction(&w.store, b, &[storage]);
    assert_eq!(w.blocks.node(w.number(1)).expect("there").blocks_scheduled(), 1);
}

#[test]
fn a_leader_that_registers_anew_still_gets_its_order() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let (b, block) = open(&mut w, 1, &[1]);
    let gone = w.block(2, 1).1;
    w.received(1, gone);
    assert!(w.blocks.begin_recovery(&mut w.store, b, GenerationStamp(1_005)));
    w.remove(2);
    w.round();
    w.register_on(1, DEFAULT_RACK);
    let orders = w.beat(1);
    let [Command::Recover(recoveries)] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!((recoveries[0].block, recoveries[0].recovery_id), (block, 1_005));
    assert_eq!(w.deletions(1), [2], "and what it is to delete");
}

#[test]
fn a_truncate_into_a_new_block_is_led_by_a_node_with_the_old_one() {
    let mut w = World::new(Settings::default());
    for n in 1..=2 {
        w.node(n);
    }
    let old = w.block(1, 2).1;
    (1..=2).for_each(|n| w.received(n, old));
    let (b, new) = w.block_in(2, 2, BlockState::UnderConstruction);
    assert!(w.blocks.begin_truncate(&mut w.store, b, GenerationStamp(1_009), old));
    let orders: Vec<Command> = (1..=2).flat_map(|n| w.beat(n)).collect();
    let [Command::Recover(recoveries)] = &orders[..] else { panic!("{orders:?}") };
    let order = &recoveries[0];
    let expected = Block { stamp: GenerationStamp(1_009), ..new };
    assert_eq!((order.block, order.truncate, order.recovery_id), (old, Some(expected), 1_009));
    assert_eq!(order.locations.len(), 2);
    // what knew the old block is deleted: its replicas stay until the new one is made of them
    w.remove(1);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).pending_deletions, 0);
    assert_eq!(w.blocks.truncated_into(old.id), Some(new.id));
    let made = Block { length: 4, stamp: GenerationStamp(1_009), ..new };
    let on: Vec<_> = [1, 2]
        .iter()
        .map(|n| (w.blocks.find_storage(&format!("uuid-{n}"), &format!("DS-{n}")).expect("there"), 0))
        .collect();
    w.blocks.end_recovery(&mut w.store, b, made, &on);
    assert_eq!(w.blocks.truncated_into(old.id), None);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).pending_deletions, 2);
}
