use super::*;

fn racks(w: &World, placement: &Placement) -> Vec<String> {
    placement.targets.iter().map(|t| w.blocks.node(t.node).expect("there").location.to_string()).collect()
}

fn request(n: usize) -> TargetRequest<'static> {
    TargetRequest { replicas: n, block_size: 128 << 20, new_block: true, ..TargetRequest::default() }
}

fn two_racks() -> World {
    let mut w = World::new(Settings::default());
    for n in 1..=3 {
        w.node_on(n, "/a");
    }
    for n in 4..=6 {
        w.node_on(n, "/b");
    }
    w
}

#[test]
fn local_node_then_two_on_another_rack() {
    let w = two_racks();
    for _ in 0..50 {
        let r = TargetRequest { writer: Some(w.number(2)), ..request(3) };
        let p = w.blocks.choose_targets(&r, w.now.monotonic);
        assert_eq!(p.targets[0].node, w.number(2));
        assert_eq!(racks(&w, &p), ["/a", "/b", "/b"]);
    }
}

#[test]
fn never_all_on_one_rack() {
    let w = two_racks();
    for _ in 0..50 {
        let p = w.blocks.choose_targets(&request(3), w.now.monotonic);
        let mut r = racks(&w, &p);
        assert_eq!(r.len(), 3);
        r.sort();
        r.dedup();
        assert_eq!(r.len(), 2);
    }
    let p = w.blocks.choose_targets(&request(6), w.now.monotonic);
    assert_eq!(p.targets.len(), 6);
    assert_eq!(w.blocks.choose_targets(&request(9), w.now.monotonic).targets.len(), 6, "as many as there are");
}

#[test]
fn no_local_write_falls_back() {
    let mut w = World::new(Settings::default());
    let one = w.node(1);
    let two = w.node(2);
    let r = TargetRequest { writer: Some(one), no_local_write: true, ..request(1) };
    assert_eq!(w.blocks.choose_targets(&r, w.now.monotonic).targets[0].node, two);
    let r = TargetRequest { replicas: 2, ..r };
    assert_eq!(w.blocks.choose_targets(&r, w.now.monotonic).targets.len(), 2);
}

#[test]
fn excluded_and_favoured() {
    let mut w = World::new(Settings::default());
    let nodes: Vec<_> = (1..=4).map(|n| w.node(n)).collect();
    for _ in 0..20 {
        let r = TargetRequest { excluded: &nodes[..2], favored: &nodes[3..], ..request(2) };
        let p = w.blocks.choose_targets(&r, w.now.monotonic);
        let mut chosen: Vec<_> = p.targets.iter().map(|t| t.node).collect();
        chosen.sort_unstable();
        assert_eq!(chosen, nodes[2..]);
    }
    let r = TargetRequest { excluded: &nodes, ..request(1) };
    let p = w.blocks.choose_targets(&r, w.now.monotonic);
    assert_eq!((p.targets.len(), p.excluded), (0, 4));
}

/// T29: a policy whose medium nobody has: none for COLD, the fallback for ALL_SSD.
#[test]
fn a_policy_whose_storage_type_nobody_has_no_required_storage_type() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let cold = TargetRequest { storage_policy: 2, ..request(1) };
    let p = w.blocks.choose_targets(&cold, w.now.monotonic);
    assert_eq!((p.targets.len(), p.excluded), (0, 0));
    let ssd = TargetRequest { storage_policy: 12, ..request(1) };
    assert_eq!(w.blocks.choose_targets(&ssd, w.now.monotonic).targets[0].kind, StorageKind::Disk);
}

#[test]
fn full_and_busy_nodes_are_no_targets() {
    let mut w = World::new(Settings::default());
    let nodes: Vec<_> = (1..=3).map(|n| w.node(n)).collect();
    let full = TargetRequest { block_size: 91 * GIB, ..request(1) };
    assert_eq!(w.blocks.choose_targets(&full, w.now.monotonic).targets.len(), 0);
    let id = w.registration(1);
    let beat = Heartbeat { xceivers: 100, ..w.figures(1) };
    w.blocks.heartbeat(&mut w.store, &id, &beat, w.now).expect("heartbeat");
    for _ in 0..20 {
        assert_ne!(w.blocks.choose_targets(&request(1), w.now.monotonic).targets[0].node, nodes[0]);
    }
    let local = TargetRequest { writer: Some(nodes[0]), ..request(1) };
    assert_eq!(w.blocks.choose_targets(&local, w.now.monotonic).targets[0].node, nodes[0], "its own writer may");
}

#[test]
fn scheduled_blocks_take_room() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let storage = w.blocks.find_storage("uuid-1", "DS-1").expect("there");
    let (b, block) = w.block_in(1, 1, BlockState::UnderConstruction);
    w.blocks.begin_construction(&w.store, b, &[storage]);
    let big = TargetRequest { block_size: 50 * GIB, ..request(1) };
    assert_eq!(w.blocks.choose_targets(&big, w.now.monotonic).targets.len(), 0);
    w.received(1, block);
    assert_eq!(w.blocks.choose_targets(&big, w.now.monotonic).targets.len(), 1);
}

#[test]
fn stale_nodes_are_avoided_if_asked() {
    let mut w = World::new(Settings { avoid_stale_for_write: true, ..Settings::default() });
    let nodes: Vec<_> = (1..=3).map(|n| w.node(n)).collect();
    w.pass(30_000);
    w.beat(2);
    w.beat(3);
    for _ in 0..20 {
        let p = w.blocks.choose_targets(&request(2), w.now.monotonic);
        assert!(p.targets.iter().all(|t| t.node != nodes[0]));
    }
    assert_eq!(w.blocks.choose_targets(&request(3), w.now.monotonic).targets.len(), 3, "unless they are needed");
}

#[test]
fn readers_get_the_nearest_first() {
    let mut w = two_racks();
    let (b, block) = w.block(1, 3);
    for n in [1, 4, 5] {
        w.received(n, block);
    }
    let reader = Reader { node: Some(w.number(5)), location: None };
    for _ in 0..20 {
        let mut located = w.blocks.locate(&w.store, b);
        w.blocks.sort_locations(&mut located, &reader, w.now.monotonic);
        let nodes: Vec<_> = located.locations.iter().map(|t| t.node).collect();
        assert_eq!(nodes, [w.number(5), w.number(4), w.number(1)]);
    }
}

/// Shares of targets that nodes with 10, 50 and 90 percent used get, of 300 choices of one.
fn shares(available_space: Option<AvailableSpace>) -> [usize; 3] {
    let mut w = World::new(Settings { available_space, consider_load: false, ..Settings::default() });
    for (n, used) in [(1, 10), (2, 50), (3, 90)] {
        w.node(n);
        let mut beat = w.figures(n);
        beat.volumes[0].dfs_used = used * GIB;
        beat.volumes[0].remaining = (100 - used) * GIB;
        let who = w.registration(n);
        w.blocks.heartbeat(&mut w.store, &who, &beat, w.now).expect("heartbeat");
    }
    let request = TargetRequest { replicas: 1, block_size: 1, new_block: true, ..TargetRequest::default() };
    let mut seen = [0; 3];
    for _ in 0..300 {
        let target = w.blocks.choose_targets(&request, w.now.monotonic).targets[0];
        let n = (1..=3).position(|n| w.number(n) == target.node).expect("one of the three");
        seen[n] += 1;
    }
    seen
}

#[test]
fn nodes_with_more_space_are_chosen_more_often() {
    let plain = shares(None);
    assert!(plain.iter().all(|n| (60..=140).contains(n)), "{plain:?}");
    let space = AvailableSpace { preference: 100, tolerance: 5, tolerance_limit: 100, local: false };
    // of two draws the emptier one: 5 in 9, 3 in 9, 1 in 9
    let [empty, half, full] = shares(Some(space));
    assert!(empty > half && half > full && full < 60 && empty > 130, "{empty} {half} {full}");
    let alike = shares(Some(AvailableSpace { tolerance: 90, ..space }));
    assert!(alike.iter().all(|n| (60..=140).contains(n)), "{alike:?}");
}

#[test]
fn replicas_on_as_many_racks_as_there_can_be() {
    let mut w = World::new(Settings { spread_evenly: true, ..Settings::default() });
    for n in 1..=6 {
        w.node_on(n, &format!("/r{}", n % 3));
    }
    let request =
        TargetRequest { writer: Some(w.number(1)), replicas: 3, block_size: 1, new_block: true, ..Default::default() };
    for _ in 0..20 {
        let targets = w.blocks.choose_targets(&request, w.now.monotonic).targets;
        let racks: std::collections::BTreeSet<_> =
            targets.iter().map(|t| w.blocks.node(t.node).expect("there").location.clone()).collect();
        assert_eq!((targets.len(), racks.len()), (3, 3), "{targets:?}");
    }
    // two racks are too few for three replicas
    let block = w.block(1, 3).1;
    [1, 2, 4].into_iter().for_each(|n| w.received(n, block));
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).badly_distributed, 1);
}

#[test]
fn load_is_compared_among_like_nodes_and_by_volume() {
    let mut w = World::new(Settings::default());
    // four idle archive nodes, two busy ones with a fast medium, one of these much busier
    let kinds = [
        StorageKind::Archive,
        StorageKind::Archive,
        StorageKind::Archive,
        StorageKind::Archive,
        StorageKind::Disk,
        StorageKind::Disk,
    ];
    for (n, (xceivers, kind)) in (1u32..).zip([1, 1, 1, 1, 60, 90].into_iter().zip(kinds)) {
        w.node(n);
        let (who, mut beat) = (w.registration(n), Heartbeat { xceivers, ..w.figures(n) });
        beat.volumes[0].volume = VolumeId { id: format!("DS-{n}-2").into(), kind, ..beat.volumes[0].volume.clone() };
        w.blocks.heartbeat(&mut w.store, &who, &beat, w.now).expect("heartbeat");
    }
    let on_disk = |w: &World, copies: usize| {
        let chosen = w.blocks.choose_targets(&request(copies), w.now.monotonic).targets;
        let mut nodes: Vec<_> = chosen.iter().filter(|t| t.kind == StorageKind::Disk).map(|t| t.node).collect();
        nodes.sort_unstable();
        nodes
    };
    let [five, six] = [w.number(5), w.number(6)];
    // the mean of all is 26 and two thirds: both have more than twice that
    assert_eq!(on_disk(&w, 2), []);
    // among nodes with disks it is 75
    w.blocks.settings.consider_load_by_kind = true;
    assert_eq!(on_disk(&w, 2), [five, six]);
    // and a node has one volume or two: 154 threads on these make 22 each
    w.blocks.settings.consider_load_by_volume = true;
    assert_eq!(on_disk(&w, 2), []);
    w.blocks.settings.consider_load_factor = 1.0;
    w.blocks.settings.consider_load_by_volume = false;
    assert_eq!(on_disk(&w, 1), [five]);
}

#[test]
fn of_equally_near_nodes_the_less_busy_or_the_faster_come_first() {
    let mut w = World::new(Settings { load_for_read: true, ..Settings::default() });
    let nodes = [(1, 30, StorageKind::Disk), (2, 10, StorageKind::Archive), (3, 20, StorageKind::Ssd)];
    for (n, xceivers, kind) in nodes {
        w.node(n);
        let (who, mut beat) = (w.registration(n), Heartbeat { xceivers, ..w.figures(n) });
        beat.volumes[0].volume = VolumeId { id: format!("DS-{n}-2").into(), kind, ..beat.volumes[0].volume.clone() };
        w.blocks.heartbeat(&mut w.store, &who, &beat, w.now).expect("heartbeat");
    }
    let (b, block) = w.block(1, 3);
    for (n, _, kind) in nodes {
        let volume = VolumeId { id: format!("DS-{n}-2").into(), state: VolumeState::Normal, kind };
        let entry = IncrementalEntry { block, kind: IncrementalKind::Received, delete_hint: None };
        let node = w.number(n);
        w.blocks.incremental_report(&mut w.store, node, &volume, [entry].into_iter(), w.now).expect("a report");
    }
    let sorted = |w: &World| {
        let mut located = w.blocks.locate(&w.store, b);
        w.blocks.sort_locations(&mut located, &Reader::default(), w.now.monotonic);
        located.locations.iter().map(|t| t.node).collect::<Vec<_>>()
    };
    for _ in 0..10 {
        assert_eq!(sorted(&w), [w.number(2), w.number(3), w.number(1)]);
    }
    w.blocks.settings = Settings { medium_for_read: true, ..Settings::default() };
    for _ in 0..10 {
        assert_eq!(sorted(&w), [w.number(3), w.number(1), w.number(2)]);
    }
}

#[test]
fn locations_in_random_order_if_asked() {
    let mut w = two_racks();
    w.blocks.settings.random_for_read = true;
    let (b, block) = w.block(1, 3);
    for n in [1, 4, 5] {
        w.received(n, block);
    }
    let reader = Reader { node: Some(w.number(5)), location: None };
    let first = |w: &World| {
        let mut located = w.blocks.locate(&w.store, b);
        w.blocks.sort_locations(&mut located, &reader, w.now.monotonic);
        located.locations[0].node
    };
    let firsts: std::collections::BTreeSet<_> = (0..100).map(|_| first(&w)).collect();
    assert_eq!(firsts.len(), 3, "far nodes come first as well");
}

#[test]
fn what_a_writer_excluded_comes_back_before_a_new_block_is_on_too_few_nodes() {
    let mut w = World::new(Settings { spread_evenly: true, ..Settings::default() });
    let nodes: Vec<_> = (1..=3).map(|n| w.node_on(n, &format!("/r{n}"))).collect();
    let excluded = [nodes[0]];
    let new = TargetRequest { excluded: &excluded, ..request(3) };
    assert_eq!(
        w.blocks.choose_targets(&TargetRequest { new_block: true, ..new.clone() }, w.now.monotonic).targets.len(),
        3
    );
    let more = TargetRequest { new_block: false, ..new };
    let targets = w.blocks.choose_targets(&more, w.now.monotonic).targets;
    assert!(targets.len() == 2 && targets.iter().all(|t| t.node != nodes[0]), "no copy goes there");
}
