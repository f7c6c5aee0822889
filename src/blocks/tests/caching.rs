//! Blocks in memory: what is reported, wanted and ordered.

use super::*;

const MEMORY: u64 = 15;

impl World {
    /// A heartbeat of a node that uses so much of its memory; what it says of caching.
    fn memory_beat(&mut self, n: u32, used: u64) -> Vec<Command> {
        let (id, figures) = (self.registration(n), self.figures(n));
        let figures = Heartbeat { cache_capacity: MEMORY, cache_used: used, ..figures };
        let commands = self.blocks.heartbeat(&mut self.store, &id, &figures, self.now).expect("heartbeat").commands;
        commands.into_iter().filter(|c| matches!(c, Command::Cache(_) | Command::Uncache(_))).collect()
    }
    fn cached(&mut self, n: u32, ids: &[i64]) {
        let node = self.number(n);
        self.blocks.cache_report(node, ids.iter().map(|id| BlockId(*id)));
    }
    fn is_cached(&self, id: i64, n: u32) -> bool {
        self.blocks.caching.is_cached(BlockId(id), self.number(n))
    }
    /// One scan that wants these blocks so often.
    fn scan(&mut self, number: u64, wanted: &[(i64, i16)]) {
        for (id, replication) in wanted {
            self.blocks.caching.want(BlockId(*id), *replication, number);
        }
        let mut after = None;
        while let Some(id) = self.blocks.caching.next(after) {
            self.blocks.decide_caching(&self.store, id, number);
            after = Some(id);
        }
        self.blocks.caching.tell_at_once();
    }
}

fn cache(ids: &[i64]) -> Vec<Command> {
    vec![Command::Cache(ids.iter().map(|id| BlockId(*id)).collect())]
}
fn uncache(ids: &[i64]) -> Vec<Command> {
    vec![Command::Uncache(ids.iter().map(|id| BlockId(*id)).collect())]
}

/// Two nodes with the same two blocks of 10 bytes.
fn world() -> World {
    let mut w = World::new(Settings::default());
    let blocks = [w.block(1, 2).1, w.block(2, 2).1];
    for n in [1, 2] {
        w.node(n);
        w.report(n, &blocks);
        w.memory_beat(n, 0);
    }
    w
}

#[test]
fn a_datanode_that_uses_no_memory_has_nothing_cached() {
    let mut w = world();
    w.scan(1, &[(1, 2)]);
    assert_eq!(w.memory_beat(1, 0), cache(&[1]));
    w.cached(1, &[1]);
    assert!(w.is_cached(1, 1) && !w.is_cached(1, 2));
    w.scan(2, &[]);
    assert_eq!(w.memory_beat(1, 10), uncache(&[1]));
    assert!(w.is_cached(1, 1), "until it says otherwise");
    w.memory_beat(1, 0);
    assert!(!w.is_cached(1, 1));
    w.scan(3, &[]);
    assert_eq!((w.memory_beat(1, 0), w.blocks.caching.len()), (vec![], 0));
}

#[test]
fn what_does_not_fit_is_not_ordered() {
    let mut w = world();
    w.scan(1, &[(1, 2), (2, 2)]);
    assert_eq!(w.memory_beat(1, 0), cache(&[1]), "both together are too much");
    w.cached(1, &[1]);
    w.scan(2, &[(2, 2)]);
    let both = [cache(&[2]), uncache(&[1])].concat();
    assert_eq!(w.memory_beat(1, 10), both, "what is to go makes room");
    w.cached(1, &[]);
    w.memory_beat(1, 0);
    w.scan(3, &[(2, 2)]);
    assert_eq!(w.memory_beat(1, 0), cache(&[2]));
}

#[test]
fn orders_are_repeated_after_a_while_or_a_scan() {
    let mut w = world();
    w.scan(1, &[(1, 2)]);
    assert_eq!(w.memory_beat(1, 0), cache(&[1]));
    assert_eq!(w.memory_beat(1, 0), []);
    w.pass(30_000);
    assert_eq!(w.memory_beat(1, 0), cache(&[1]));
    w.scan(2, &[(1, 2)]);
    assert_eq!(w.memory_beat(1, 0), cache(&[1]));
    w.cached(1, &[1]);
    w.scan(3, &[(1, 2)]);
    assert_eq!(w.memory_beat(1, 10), []);
}

#[test]
fn too_many_copies_are_let_go_and_kept_again_when_wanted_again() {
    let mut w = world();
    w.cached(1, &[1]);
    w.cached(2, &[1]);
    w.scan(1, &[(1, 1)]);
    let orders = [w.memory_beat(1, 10), w.memory_beat(2, 10)];
    assert!(orders.contains(&uncache(&[1])) && orders.contains(&vec![]), "{orders:?}");
    w.scan(2, &[(1, 3)]);
    assert_eq!([w.memory_beat(1, 10), w.memory_beat(2, 10)], [vec![], vec![]]);
}

#[test]
fn a_dead_datanode_has_nothing_in_memory_and_is_asked_for_nothing() {
    let mut w = world();
    w.cached(1, &[1]);
    w.scan(1, &[(1, 2)]);
    w.pass(w.blocks.settings.expiry_ms() + 1);
    w.memory_beat(2, 0);
    w.blocks.heartbeat_check(w.now);
    assert!(!w.is_cached(1, 1));
    w.scan(2, &[(1, 2)]);
    assert_eq!(w.memory_beat(2, 0), cache(&[1]));
}

#[test]
fn reports_count_for_nothing_where_caching_is_off() {
    let mut w = World::new(Settings { caching: false, ..Settings::default() });
    let (_, block) = w.block(1, 1);
    w.node(1);
    w.report(1, &[block]);
    w.cached(1, &[1]);
    assert!(!w.is_cached(1, 1));
}
