//! Random histories against naive twins: where replicas are, and that obeying orders never destroys the last one.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NODES: u32 = 5;
const IDS: i64 = 12;

#[derive(Clone, Debug)]
enum Op {
    Register(u32),
    Report(u32, Vec<i64>),
    Received(u32, i64),
    Deleted(u32, i64),
    Add(i64),
    Remove(i64),
    Die(u32),
    Drain(u8),
    Beat(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let (node, id) = (1..=NODES, 1..=IDS);
    prop_oneof![
        2 => node.clone().prop_map(Op::Register),
        4 => (node.clone(), proptest::collection::vec(1..=IDS, 0..8)).prop_map(|(n, v)| Op::Report(n, v)),
        8 => (node.clone(), id.clone()).prop_map(|(n, b)| Op::Received(n, b)),
        4 => (node.clone(), id.clone()).prop_map(|(n, b)| Op::Deleted(n, b)),
        4 => id.clone().prop_map(Op::Add),
        2 => id.prop_map(Op::Remove),
        1 => node.clone().prop_map(Op::Die),
        1 => (0u8..10).prop_map(Op::Drain),
        2 => node.prop_map(Op::Beat),
    ]
}

fn rack(n: u32) -> &'static str {
    if n.is_multiple_of(2) { "/a" } else { "/b" }
}

fn finalized(id: i64) -> Block {
    Block { id: BlockId(id), length: 10, stamp: GenerationStamp(1_001) }
}

/// Which nodes hold which existing blocks, as reports said; dead nodes hold nothing.
#[derive(Default)]
struct Twin {
    blocks: BTreeMap<i64, BTreeSet<u32>>,
    alive: BTreeSet<u32>,
}

impl Twin {
    fn apply(&mut self, w: &mut World, op: &Op) {
        match op {
            Op::Register(n) => {
                // a returning node comes back before or after its replicas were forgotten: make it after
                w.drain();
                w.register_on(*n, DEFAULT_RACK);
                self.alive.insert(*n);
            }
            Op::Report(n, ids) if self.alive.contains(n) => {
                let list: Vec<Block> = ids.iter().map(|i| finalized(*i)).collect();
                w.report(*n, &list);
                for (id, holders) in &mut self.blocks {
                    if ids.contains(id) {
                        holders.insert(*n);
                    } else {
                        holders.remove(n);
                    }
                }
            }
            Op::Received(n, id) if self.alive.contains(n) => {
                w.received(*n, finalized(*id));
                if let Some(holders) = self.blocks.get_mut(id) {
                    holders.insert(*n);
                }
            }
            Op::Deleted(n, id) if self.alive.contains(n) => {
                w.incremental(*n, finalized(*id), IncrementalKind::Deleted);
                if let Some(holders) = self.blocks.get_mut(id) {
                    holders.remove(n);
                }
            }
            Op::Add(id) if !self.blocks.contains_key(id) => {
                // the order to delete an earlier block of this id must not hit the new one: ids are never used twice
                w.blocks.invalidation = Default::default();
                w.block(*id, 9);
                self.blocks.insert(*id, BTreeSet::new());
            }
            Op::Remove(id) if self.blocks.remove(id).is_some() => w.remove(*id),
            Op::Die(n) if self.alive.remove(n) => {
                let id = w.registration(*n);
                w.blocks.fatal_disk_error(&id).expect("known");
                for holders in self.blocks.values_mut() {
                    holders.remove(n);
                }
            }
            Op::Drain(budget) => drop(w.blocks.drain(&mut w.store, *budget as usize)),
            Op::Beat(n) => drop(w.beat(*n)),
            _ => {}
        }
    }

    fn compare(&self, w: &World) {
        for (id, holders) in &self.blocks {
            let b = w.store.find_block(BlockId(*id)).expect("there");
            let seen: BTreeSet<u32> = w
                .blocks
                .locate(&w.store, b)
                .locations
                .iter()
                .map(|t| w.blocks.node(t.node).expect("there").id.uuid["uuid-".len()..].parse().expect("number"))
                .collect();
            assert_eq!(&seen, holders, "block {id}");
            assert_eq!(w.blocks.count(&w.store, b).live as usize, holders.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn locations_equal_those_of_a_map_of_sets(ops in proptest::collection::vec(op(), 1..80), startup in any::<bool>()) {
        let mut w = World::stopped(Settings::default());
        let mut twin = Twin::default();
        if startup {
            // one report per registration is taken in start-up; the twin takes all
            w.blocks.settings.safe_threshold = 0.0;
        }
        w.start(0);
        for op in &ops {
            twin.apply(&mut w, op);
            w.check();
            twin.compare(&w);
        }
    }

    #[test]
    fn obeying_orders_never_destroys_the_last_replica(seed in any::<u64>(), steps in 50usize..400) {
        let mut cluster = Cluster::new(seed, false);
        for _ in 0..steps {
            cluster.step();
            cluster.world.check();
        }
        cluster.settle();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same with replicas that go bad and are reported, while all nodes stay up: a node that comes back would bring its bad replicas
    /// as good ones until its own scan finds them.
    #[test]
    fn obeying_orders_never_destroys_the_last_good_replica(seed in any::<u64>(), steps in 50usize..400) {
        let mut cluster = Cluster::new(seed, true);
        for _ in 0..steps {
            cluster.step();
            cluster.world.check();
        }
        cluster.settle();
    }
}

/// Simulated DataNodes with disks, which obey orders and report what they hold, some of it late.
struct Cluster {
    world: World,
    disks: BTreeMap<u32, BTreeSet<i64>>,
    running: BTreeSet<u32>,
    wanted: BTreeMap<i64, u16>,
    next: i64,
    random: rand::rngs::SmallRng,
    /// Replicas that went bad: with them, nodes do not stop.
    rot: bool,
    bad: BTreeSet<(u32, i64)>,
    /// Incremental reports on their way.
    post: Vec<(u32, i64, IncrementalKind)>,
}

impl Cluster {
    fn new(seed: u64, rot: bool) -> Cluster {
        use rand::SeedableRng;
        let settings = Settings { invalidate_node_share: 1.0, pending_timeout_ms: 60_000, ..Settings::default() };
        let mut world = World::new(settings);
        let mut disks = BTreeMap::new();
        for n in 1..=NODES {
            world.node_on(n, rack(n));
            disks.insert(n, BTreeSet::new());
        }
        Cluster {
            world,
            disks,
            running: (1..=NODES).collect(),
            wanted: BTreeMap::new(),
            next: 1,
            random: rand::rngs::SmallRng::seed_from_u64(seed),
            rot,
            bad: BTreeSet::new(),
            post: Vec::new(),
        }
    }

    fn pick(&mut self, n: u32) -> u32 {
        use rand::RngExt;
        self.random.random_range(0..n)
    }

    fn any_id(&mut self) -> Option<i64> {
        let at = self.pick(self.wanted.len().max(1) as u32) as usize;
        self.wanted.keys().nth(at).copied()
    }

    fn step(&mut self) {
        let node = self.pick(NODES) + 1;
        self.world.pass(3_000);
        match self.pick(20) {
            0..=3 => self.create(),
            4..=9 => self.beat(node),
            10 | 11 => self.deliver(),
            12 => self.report(node),
            13 => self.set_replication(),
            14 => {
                if let Some(id) = self.any_id() {
                    self.wanted.remove(&id);
                    self.world.remove(id);
                }
            }
            15..=17 if self.rot => self.go_bad(node),
            15 => drop(self.running.remove(&node)),
            16 => drop(self.running.insert(node)),
            17 => self.expire(),
            18 => self.world.blocks.mark_all_stale(),
            _ => self.rounds(),
        }
    }

    /// A reader finds a replica of this node bad and says so.
    fn go_bad(&mut self, node: u32) {
        let Some(id) = self.any_id() else { return };
        let known = self.world.holders(id).contains(&self.world.number(node));
        if known && self.disks[&node].contains(&id) && self.good(id).count() > 1 {
            self.bad.insert((node, id));
            let on = self.world.registration(node).id;
            self.world.blocks.report_bad(&mut self.world.store, &finalized(id), &on, None).expect("known");
        }
    }

    fn good(&self, id: i64) -> impl Iterator<Item = u32> + '_ {
        self.disks.iter().filter(move |(n, d)| d.contains(&id) && !self.bad.contains(&(**n, id))).map(|(n, _)| *n)
    }

    fn create(&mut self) {
        let id = self.next;
        self.next += 1;
        let replication = self.pick(3) as u16 + 1;
        self.world.block(id, replication);
        self.wanted.insert(id, replication);
        for _ in 0..replication {
            let n = self.pick(NODES) + 1;
            if self.running.contains(&n) {
                self.disks.get_mut(&n).expect("disk").insert(id);
                self.post.push((n, id, IncrementalKind::Received));
            }
        }
    }

    fn set_replication(&mut self) {
        let replication = self.pick(4) as u16 + 1;
        let Some(id) = self.any_id() else { return };
        let b = self.world.store.find_block(BlockId(id)).expect("there");
        let old = self.wanted.insert(id, replication).expect("there");
        self.world.store.edit_block(b, |i| i.replication = replication);
        self.world.blocks.replication_changed(&mut self.world.store, b, old);
    }

    fn registered(&self, n: u32) -> bool {
        self.world.blocks.node(self.world.number(n)).is_some_and(|node| node.registered)
    }

    fn beat(&mut self, n: u32) {
        if !self.running.contains(&n) {
            return;
        }
        for command in self.world.beat(n) {
            match command {
                Command::Register => self.world.register_on(n, rack(n)),
                Command::Invalidate(list) => list.iter().for_each(|b| self.delete(n, b.id.0)),
                Command::Transfer(list) => {
                    for t in list {
                        for target in t.targets {
                            let to = self.world.blocks.node(target.node).expect("there").id.uuid["uuid-".len()..]
                                .parse()
                                .expect("number");
                            let whole =
                                self.disks[&n].contains(&t.block.id.0) && !self.bad.contains(&(n, t.block.id.0));
                            if self.running.contains(&to) && whole {
                                self.disks.get_mut(&to).expect("disk").insert(t.block.id.0);
                                self.post.push((to, t.block.id.0, IncrementalKind::Received));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn delete(&mut self, n: u32, id: i64) {
        if self.disks.get_mut(&n).expect("disk").remove(&id) {
            self.post.retain(|(m, b, k)| !(*m == n && *b == id && *k == IncrementalKind::Received));
            self.post.push((n, id, IncrementalKind::Deleted));
            self.bad.remove(&(n, id));
            let left = self.good(id).next().is_some();
            assert!(left || !self.wanted.contains_key(&id), "the last replica of block {id} was deleted");
        }
    }

    /// The incremental reports of one node arrive, in order.
    fn deliver(&mut self) {
        let n = self.pick(NODES) + 1;
        self.flush(n);
    }

    fn flush(&mut self, n: u32) {
        if !self.running.contains(&n) || !self.registered(n) {
            return;
        }
        let (mine, rest) = std::mem::take(&mut self.post).into_iter().partition(|(m, ..)| *m == n);
        self.post = rest;
        let mine: Vec<(u32, i64, IncrementalKind)> = mine;
        for (_, id, kind) in mine {
            self.world.incremental(n, finalized(id), kind);
        }
    }

    /// A DataNode sends its incremental reports before a full one.
    fn report(&mut self, n: u32) {
        self.flush(n);
        if self.running.contains(&n) && self.registered(n) {
            let list: Vec<Block> = self.disks[&n].iter().map(|id| finalized(*id)).collect();
            self.world.report(n, &list);
        }
    }

    fn expire(&mut self) {
        self.world.pass(400_000);
        let running: Vec<u32> = self.running.iter().copied().collect();
        running.into_iter().for_each(|n| self.beat(n));
        self.world.pass(231_000);
        self.world.blocks.heartbeat_check(self.world.now);
        self.world.blocks.drain(&mut self.world.store, 3);
    }

    fn rounds(&mut self) {
        self.world.drain();
        self.world.blocks.expire_pending(&mut self.world.store, 100, self.world.now);
        self.world.blocks.rescan_postponed(&mut self.world.store, 100);
        self.world.round();
    }

    /// With all nodes up and everything delivered, every block that is somewhere reaches what was asked of it.
    fn settle(&mut self) {
        self.running = (1..=NODES).collect();
        for _ in 0..12 {
            self.world.pass(70_000);
            for n in 1..=NODES {
                self.beat(n);
                self.beat(n);
                self.report(n);
            }
            self.rounds();
            (1..=NODES).for_each(|n| self.beat(n));
            (1..=NODES).for_each(|n| self.flush(n));
            self.world.check();
        }
        for (id, wanted) in &self.wanted {
            let known_bad = |n: u32| self.bad.contains(&(n, *id));
            let holders = self.disks.iter().filter(|(n, d)| d.contains(id) && !known_bad(**n)).count();
            let b = self.world.store.find_block(BlockId(*id)).expect("there");
            let known = self.world.blocks.count(&self.world.store, b);
            // a node with a bad replica is no target for a good one, and the others may be too many on one rack
            let no_room = known.corrupt > 0;
            let reached = holders == *wanted as usize || no_room;
            assert!(holders == 0 || reached, "block {id}: {holders} of {wanted}; {known:?}");
        }
        let stray = self.disks.values().flatten().filter(|id| !self.wanted.contains_key(id)).count();
        assert_eq!(stray, 0, "replicas of removed blocks are deleted");
    }
}
