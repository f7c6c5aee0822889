//! Striped groups: what is missing is rebuilt, what leaves is copied, what is double goes. The expected orders are those of Hadoop's NameNode.

use super::World;
use crate::redundancy::Level;
use crate::*;
use record::{BlockHandle, BlockInfo};
use vocab::{Block, BlockId, BlockState, GenerationStamp, ReplicaState};

/// Number of RS-3-2-1024k.
const RS_3_2: u8 = 2;
const MIB: u64 = 1 << 20;

impl World {
    /// A complete group of RS-3-2 with `length` bytes that nobody has.
    fn group(&mut self, number: i64, length: u64) -> (BlockHandle, Block) {
        let block = Block { id: BlockId(i64::MIN + 16 * number), length, stamp: GenerationStamp(1_001) };
        let b = self.store.add_block(&BlockInfo {
            block,
            replication: 1,
            state: BlockState::Complete,
            erasure_coding_policy: RS_3_2,
            ..BlockInfo::default()
        });
        self.blocks.block_added(&self.store, b);
        (b, block)
    }
    /// An internal block as its DataNode has it.
    fn unit(&self, group: Block, index: u8) -> Block {
        let stripe = self.blocks.stripes[&RS_3_2];
        Block { id: BlockId(group.id.0 + i64::from(index)), length: stripe.unit_length(group.length, index), ..group }
    }
    /// A group whose internal block `i` is on node `i + 1`, each on a rack of its own if `racks` says so.
    fn spread(&mut self, nodes: u32, racks: bool, length: u64) -> (BlockHandle, Block) {
        for n in 1..=nodes {
            let rack = if racks { format!("/r{n}") } else { DEFAULT_RACK.to_owned() };
            self.node_on(n, &rack);
        }
        let (b, group) = self.group(1, length);
        for index in 0..5 {
            self.received(u32::from(index) + 1, self.unit(group, index));
        }
        (b, group)
    }
    fn count(&self, b: BlockHandle) -> Count {
        self.blocks.count(&self.store, b)
    }
    fn kill(&mut self, n: u32) {
        self.blocks.fatal_disk_error(&self.registration(n)).expect("known");
        self.drain();
    }
    fn rebuilds(&mut self, n: u32) -> Vec<Rebuild> {
        let orders = self.beat(n).into_iter();
        orders.flat_map(|c| if let Command::Rebuild(list) = c { list } else { Vec::new() }).collect()
    }
    fn level(&self, group: Block) -> Option<Level> {
        self.blocks.low.level(group.id)
    }
}

#[test]
fn a_lost_unit_is_rebuilt_from_the_others() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    assert_eq!((w.count(b).live, w.level(group)), (5, None));
    w.kill(2);
    assert_eq!((w.count(b).live, w.level(group)), (4, Some(Level::Low)));
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.groups.groups, stats.groups.low_redundancy, stats.low_redundancy), (1, 1, 1));
    w.round();
    let rebuild = w.rebuilds(6).pop().expect("the only node left without a block gets the order");
    assert_eq!(rebuild.group, group);
    assert_eq!(rebuild.policy, RS_3_2);
    assert_eq!(rebuild.live, [0, 2, 3, 4]);
    assert_eq!(rebuild.sources, [1, 3, 4, 5].map(|n| w.number(n)));
    assert_eq!(rebuild.targets.iter().map(|t| t.node).collect::<Vec<_>>(), [w.number(6)]);
    assert_eq!(rebuild.excluded, [0u8; 0]);
    assert_eq!((w.level(group), w.blocks.pending.count(group.id)), (None, 1));
    // no second order while the first is out
    w.round();
    assert!((1..=6).all(|n| n == 2 || w.rebuilds(n).is_empty()));
    w.received(6, w.unit(group, 1));
    assert_eq!((w.count(b).live, w.blocks.pending.count(group.id)), (5, 0));
    assert_eq!(w.level(group), None);
    w.check();
}

#[test]
fn a_rebuild_that_does_not_arrive_is_ordered_again() {
    let mut w = World::new(Settings::default());
    let (_, group) = w.spread(6, false, 10 * MIB);
    w.kill(2);
    w.round();
    assert_eq!(w.rebuilds(6).len(), 1);
    w.pass(w.blocks.settings.pending_timeout_ms + 1);
    (1..=6).filter(|n| *n != 2).for_each(|n| drop(w.beat(n)));
    while w.blocks.expire_pending(&mut w.store, 10, w.now) {}
    assert_eq!(w.level(group), Some(Level::Low));
    w.round();
    assert_eq!(w.rebuilds(6).len(), 1);
}

#[test]
fn two_lost_units_are_rebuilt_by_one_order() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(7, false, 10 * MIB);
    w.kill(1);
    w.kill(5);
    assert_eq!(w.level(group), Some(Level::Highest));
    w.round();
    let rebuild = [6, 7].into_iter().flat_map(|n| w.rebuilds(n)).next().expect("ordered");
    assert_eq!((rebuild.live.as_slice(), rebuild.targets.len()), (&[1u8, 2, 3][..], 2));
    w.received(6, w.unit(group, 0));
    w.received(7, w.unit(group, 4));
    assert_eq!((w.count(b).live, w.level(group)), (5, None));
    w.check();
}

#[test]
fn a_group_with_too_few_units_is_missing_until_one_returns() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    (1..=3).for_each(|n| w.kill(n));
    assert_eq!((w.count(b).live, w.level(group)), (2, Some(Level::Corrupt)));
    let stats = w.blocks.stats(&w.store, w.now.monotonic);
    assert_eq!((stats.missing, stats.missing_single, stats.groups.missing), (1, 0, 1));
    w.round();
    assert!((4..=6).all(|n| w.rebuilds(n).is_empty()));
    w.register_on(1, DEFAULT_RACK);
    w.beat(1);
    w.report(1, &[w.unit(group, 0)]);
    assert_eq!(w.level(group), Some(Level::Highest));
    w.check();
}

#[test]
fn a_short_group_wants_no_more_units_than_have_content() {
    let mut w = World::new(Settings::default());
    (1..=4).for_each(|n| _ = w.node(n));
    let (b, group) = w.group(1, 10);
    for (n, index) in [(1, 0), (2, 3)] {
        w.received(n, w.unit(group, index));
    }
    assert_eq!(w.unit(group, 3).length, 10);
    assert_eq!((w.count(b).live, w.level(group)), (2, Some(Level::Low)));
    w.received(3, w.unit(group, 4));
    assert_eq!((w.count(b).live, w.level(group)), (3, None));
}

#[test]
fn a_busy_source_is_neither_read_nor_rebuilt() {
    let mut w = World::new(Settings { max_streams: 1, ..Settings::default() });
    let (_, group) = w.spread(6, false, 10 * MIB);
    // node 1 has an order already
    let (other, block) = w.block(1, 2);
    w.received(1, block);
    w.round();
    assert_eq!(w.blocks.pending.len(), 1, "a copy is ordered");
    w.kill(2);
    w.round();
    let rebuild = w.rebuilds(6).pop().expect("ordered");
    assert_eq!((rebuild.live.as_slice(), rebuild.excluded.as_slice()), (&[2u8, 3, 4][..], &[0u8][..]));
    assert_eq!(w.blocks.pending.count(group.id), 1);
    assert_eq!(w.count(other).live, 1);
}

#[test]
fn a_unit_on_a_leaving_node_is_copied_not_rebuilt() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    w.blocks.start_decommission(w.number(1));
    while w.blocks.admin_step(&mut w.store, 100, w.now) {}
    assert_eq!((w.count(b).live, w.count(b).decommissioning, w.level(group)), (4, 1, Some(Level::Low)));
    w.round();
    assert!((1..=6).all(|n| n == 1 || w.rebuilds(n).is_empty()));
    let orders = w.beat(1);
    let [Command::Transfer(copies)] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!(copies[0].block, w.unit(group, 0), "the internal block with its own length");
    assert_eq!(copies[0].targets.iter().map(|t| t.node).collect::<Vec<_>>(), [w.number(6)]);
    w.received(6, w.unit(group, 0));
    assert_eq!((w.count(b).live, w.count(b).decommissioning), (5, 0));
    w.pass(w.blocks.settings.decommission_interval_ms);
    while w.blocks.admin_step(&mut w.store, 100, w.now) {}
    assert_eq!(w.blocks.node(w.number(1)).expect("there").admin, AdminState::Decommissioned);
    w.check();
}

#[test]
fn what_is_lost_is_rebuilt_before_what_leaves_is_copied() {
    let mut w = World::new(Settings::default());
    let (_, group) = w.spread(7, false, 10 * MIB);
    w.blocks.start_decommission(w.number(1));
    w.kill(2);
    w.round();
    let rebuild = [6, 7].into_iter().flat_map(|n| w.rebuilds(n)).next().expect("ordered");
    assert_eq!((rebuild.live.as_slice(), rebuild.targets.len()), (&[0u8, 2, 3, 4][..], 1));
    w.received(if rebuild.targets[0].node == w.number(6) { 6 } else { 7 }, w.unit(group, 1));
    w.round();
    let orders = w.beat(1);
    assert!(matches!(&orders[..], [Command::Transfer(copies)] if copies[0].block.id == group.id), "{orders:?}");
}

#[test]
fn a_duplicate_goes_and_the_last_copy_stays() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    w.received(6, w.unit(group, 0));
    assert_eq!((w.count(b).live, w.count(b).excess), (5, 1));
    w.round();
    let gone: Vec<_> = [1, 6].into_iter().filter(|n| w.deletions(*n) == [group.id.0]).collect();
    assert_eq!(gone.len(), 1, "by the id of the internal block");
    w.incremental(gone[0], w.unit(group, 0), IncrementalKind::Deleted);
    assert_eq!((w.count(b).live, w.count(b).excess), (5, 0));
    w.check();
}

#[test]
fn an_order_to_delete_a_duplicate_is_void_when_the_other_is_gone() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    w.received(6, w.unit(group, 0));
    let is_excess = |w: &World, n| w.blocks.excess.contains(w.number(n), group.id);
    let (doomed, other) = if is_excess(&w, 1) { (1, 6) } else { (6, 1) };
    w.kill(other);
    w.round();
    assert_eq!(w.deletions(doomed), [0i64; 0]);
    assert_eq!((w.count(b).live, w.level(group)), (5, None));
    w.check();
}

#[test]
fn a_bad_unit_is_marked_alone_and_goes_once_it_is_rebuilt() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    let (id, bad) = (w.registration(3).id, w.unit(group, 2));
    w.blocks.report_bad(&mut w.store, &bad, &id, None).expect("known");
    assert_eq!((w.count(b).live, w.count(b).corrupt, w.level(group)), (4, 1, Some(Level::Low)));
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).groups.corrupt, 1);
    w.round();
    let rebuild = w.rebuilds(6).pop().expect("ordered");
    assert_eq!(rebuild.live, [0, 1, 3, 4]);
    w.received(6, w.unit(group, 2));
    assert_eq!((w.count(b).live, w.count(b).corrupt), (5, 0));
    w.round();
    assert_eq!(w.deletions(3), [group.id.0 + 2]);
    w.check();
}

#[test]
fn a_unit_of_another_length_is_corrupt() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    // 10 MiB in cells of 1 MiB: four, three and three
    assert_eq!([0, 1, 2, 3].map(|i| w.unit(group, i).length / MIB), [4, 3, 3, 4]);
    w.report(2, &[Block { length: 4 * MIB, ..w.unit(group, 1) }]);
    assert_eq!((w.count(b).live, w.count(b).corrupt), (4, 1));
    w.check();
}

#[test]
fn a_report_of_another_unit_changes_nothing_of_the_known_one() {
    let mut w = World::new(Settings::default());
    let (b, group) = w.spread(6, false, 10 * MIB);
    w.incremental(1, w.unit(group, 4), IncrementalKind::Deleted);
    assert_eq!(w.count(b).live, 5);
    let (id, bad) = (w.registration(1).id, w.unit(group, 4));
    w.blocks.report_bad(&mut w.store, &bad, &id, None).expect("known");
    assert_eq!((w.count(b).live, w.count(b).corrupt), (5, 0));
    w.check();
}

#[test]
fn units_on_too_few_racks_are_copied_to_another() {
    let mut w = World::new(Settings::default());
    for (n, rack) in [(1, "/a"), (2, "/a"), (3, "/b"), (4, "/b"), (5, "/b"), (6, "/b"), (7, "/c")] {
        w.node_on(n, rack);
    }
    let (b, group) = w.group(1, 10 * MIB);
    for index in 0..5 {
        w.received(u32::from(index) + 1, w.unit(group, index));
    }
    assert_eq!(w.level(group), Some(Level::BadlyDistributed));
    w.round();
    let copies: Vec<_> = (1..=7).flat_map(|n| w.transfers(n).into_iter().map(move |t| (n, t))).collect();
    let [(from, (id, targets))] = &copies[..] else { panic!("{copies:?}") };
    assert!((3..=5).contains(from), "from the rack that has most");
    assert_eq!(targets[..], [w.number(7)]);
    let copied = Block { id: BlockId(*id), ..w.unit(group, (*id - group.id.0) as u8) };
    w.received(7, copied);
    assert_eq!((w.count(b).live, w.count(b).excess, w.level(group)), (5, 1, None));
    w.check();
}

#[test]
fn a_group_is_spread_evenly_over_the_racks() {
    let mut w = World::new(Settings::default());
    for n in 0..12 {
        w.node_on(n, &format!("/r{}", n % 4));
    }
    let request = |replicas| TargetRequest {
        replicas,
        block_size: MIB,
        new_block: true,
        striped: true,
        ..TargetRequest::default()
    };
    for (units, most) in [(5, 2), (8, 2), (9, 3), (4, 1), (3, 1), (12, 3)] {
        let chosen = w.blocks.choose_targets(&request(units), w.now.monotonic).targets;
        let mut racks = [0; 4];
        chosen.iter().for_each(|t| racks[(t.node.0 % 4) as usize] += 1);
        assert_eq!((chosen.len(), *racks.iter().max().expect("four")), (units, most), "{racks:?}");
    }
    // three racks lose their nodes but for one each: the fourth takes the rest
    for n in (4..12).filter(|n| n % 4 != 0) {
        w.kill(n);
    }
    let chosen = w.blocks.choose_targets(&request(6), w.now.monotonic).targets;
    assert_eq!(chosen.len(), 6);
}

#[test]
fn a_group_is_safe_with_as_many_units_as_have_content() {
    let mut w = World::stopped(Settings { safe_extension_ms: 0, ..Settings::default() });
    let (_, long) = w.group(1, 10 * MIB);
    let (_, short) = w.group(2, 10);
    w.start(0);
    (1..=5).for_each(|n| {
        w.register_on(n, DEFAULT_RACK);
        w.beat(n);
    });
    w.report(1, &[w.unit(long, 0), w.unit(short, 0)]);
    assert_eq!(w.blocks.safe_mode.blocks(), (1, 2));
    w.report(2, &[w.unit(long, 1)]);
    w.report(3, &[w.unit(long, 1)]);
    assert_eq!(w.blocks.safe_mode.blocks(), (1, 2), "the same internal block twice is no second one");
    w.check();
    w.report(4, &[w.unit(long, 4)]);
    assert_eq!(w.blocks.safe_mode.blocks(), (2, 2));
    w.check();
}

#[test]
fn a_removed_group_is_deleted_unit_by_unit() {
    let mut w = World::new(Settings::default());
    let (_, group) = w.spread(5, false, 10 * MIB);
    w.remove(group.id.0);
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).groups.pending_deletions, 5);
    w.pass(w.blocks.settings.redundancy_interval_ms);
    for _ in 0..20 {
        w.round();
    }
    for n in 1..=5 {
        assert_eq!(w.deletions(n), [group.id.0 + i64::from(n) - 1]);
    }
    w.check();
}

#[test]
fn recovery_of_a_group_names_its_units() {
    let mut w = World::new(Settings::default());
    (1..=5).for_each(|n| _ = w.node(n));
    let block = Block { id: BlockId(i64::MIN + 16), length: 0, stamp: GenerationStamp(1_001) };
    let b = w.store.add_block(&BlockInfo {
        block,
        replication: 1,
        state: BlockState::UnderConstruction,
        open: true,
        erasure_coding_policy: RS_3_2,
        ..BlockInfo::default()
    });
    w.blocks.block_opened(&w.store, b);
    let storages: Vec<_> =
        (1..=5).map(|n| w.blocks.find_storage(&format!("uuid-{n}"), &format!("DS-{n}")).expect("there")).collect();
    w.blocks.begin_construction(&w.store, b, &storages);
    w.blocks.begin_recovery(&mut w.store, b, GenerationStamp(1_002));
    let orders: Vec<_> = (1..=5).flat_map(|n| w.beat(n)).collect();
    let [Command::Recover(list)] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!(list[0].units, Some((RS_3_2, vec![0, 1, 2, 3, 4])));
    // units 0, 1 and 4 were recovered
    let recovered = Block { length: 2 * MIB, stamp: GenerationStamp(1_002), ..block };
    let on = [0, 1, 4].map(|i: u8| (storages[usize::from(i)], i));
    w.blocks.end_recovery(&mut w.store, b, recovered, &on);
    w.blocks.settle_recovery(&mut w.store, b, block, &on);
    let mut units: Vec<_> = w.store.replicas(b).iter().map(|r| r.index).collect();
    units.sort_unstable();
    assert_eq!(units, [0, 1, 4]);
    w.check();
    let r = Reported { block: Block { id: BlockId(block.id.0 + 4), ..recovered }, state: ReplicaState::Finalized };
    w.report_states(5, &[r]);
    assert_eq!(w.store.replicas(b).len(), 3);
}

#[test]
fn duplicates_of_a_group_that_lacks_others_stay_until_one_of_them_comes() {
    let mut w = World::new(Settings::default());
    (1..=4).for_each(|n| _ = w.node(n));
    let block = Block { id: BlockId(i64::MIN + 16), length: 10, stamp: GenerationStamp(1_001) };
    let b = w.store.add_block(&BlockInfo {
        block,
        replication: 1,
        state: BlockState::UnderConstruction,
        open: true,
        erasure_coding_policy: RS_3_2,
        ..BlockInfo::default()
    });
    w.blocks.block_opened(&w.store, b);
    (1..=3).for_each(|n| w.received(n, w.unit(block, 0)));
    w.blocks.block_committed(&mut w.store, b);
    let count = w.count(b);
    assert_eq!(w.store.block_state(b), BlockState::Complete);
    assert_eq!((count.live, count.redundant, count.excess), (1, 2, 0));
    assert_eq!(w.level(block), None, "what an open file lacks is looked at when it is closed");
    w.blocks.block_closed(&mut w.store, b);
    assert_eq!(w.level(block), Some(Level::Highest));
    w.received(4, w.unit(block, 3));
    let count = w.count(b);
    assert_eq!((count.live, count.redundant, count.excess), (2, 0, 2));
    w.check();
}
