//! After a restart from memory: where replicas were is told to readers, and to nobody else.

use super::*;
use mem::persist::{RestReader, RestWriter};

/// The process after `world`, with the same store, before anybody has registered.
fn restarted(world: World) -> World {
    let mut rest = RestWriter::new();
    world.blocks.write_hints(&mut rest);
    let floor = world.blocks.storage_ceiling();
    let mut next = World::stopped(world.blocks.settings.clone());
    next.store = world.store;
    next.store.set_storage_floor(floor);
    next.blocks.set_storage_floor(floor);
    next.blocks.restore_hints(&mut RestReader::new(&rest.finish())).unwrap();
    next.start(0);
    next
}
fn places(w: &World, b: BlockHandle) -> Vec<String> {
    let located = w.blocks.locate(&w.store, b);
    let uuid = |t: &Target| w.blocks.registry.node(t.node).unwrap().id.uuid.to_string();
    let mut all: Vec<_> = located.locations.iter().map(uuid).collect();
    all.sort();
    all
}

#[test]
fn readers_see_hints_of_registered_nodes_until_these_have_reported() {
    let mut w = World::new(Settings { safe_threshold: 1.0, safe_extension_ms: 0, ..Settings::default() });
    let (b, block) = w.block(1, 2);
    for n in [1, 2] {
        w.node(n);
        w.received(n, block);
    }
    assert_eq!(places(&w, b), ["uuid-1", "uuid-2"]);
    let mut w = restarted(w);
    assert_eq!(places(&w, b), Vec::<String>::new(), "nobody has registered");
    assert!(w.blocks.safe_mode.is_startup());
    w.register_on(2, DEFAULT_RACK);
    assert_eq!(places(&w, b), Vec::<String>::new(), "its volumes are not known yet");
    w.beat(2);
    assert_eq!(places(&w, b), ["uuid-2"]);
    // neither safe mode nor redundancy counts it
    assert_eq!((w.blocks.safe_mode.blocks(), w.blocks.count(&w.store, b).live), ((0, 1), 0));
    assert_eq!(w.holders(1), []);
    w.check();
    // what it reports takes the place of what was remembered, whether it has the block or not
    w.report(2, &[]);
    assert_eq!(places(&w, b), Vec::<String>::new());
    w.register_on(1, DEFAULT_RACK);
    w.beat(1);
    assert_eq!(places(&w, b), ["uuid-1"]);
    w.report(1, &[block]);
    assert_eq!((places(&w, b), w.holders(1)), (vec!["uuid-1".to_owned()], vec![w.number(1)]));
    assert_eq!(w.blocks.safe_mode.blocks(), (1, 1));
    w.check();
}

#[test]
fn hints_outlive_a_second_restart_and_order_nothing() {
    let mut w = World::new(Settings { safe_extension_ms: 0, ..Settings::default() });
    let (b, block) = w.block(1, 1);
    for n in [1, 2, 3] {
        w.node(n);
        w.received(n, block);
    }
    let mut w = restarted(restarted(w));
    for n in [1, 2, 3] {
        w.register_on(n, DEFAULT_RACK);
        w.beat(n);
    }
    assert_eq!(places(&w, b), ["uuid-1", "uuid-2", "uuid-3"]);
    w.blocks.leave_safe_mode(true);
    w.pass(3_600_000);
    w.round();
    for n in [1, 2, 3] {
        assert_eq!(
            (w.deletions(n), w.transfers(n)),
            (vec![], vec![]),
            "three of one are no excess while they are hints"
        );
    }
}
