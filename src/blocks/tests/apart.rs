//! Replicas in upgrade domains and node groups of their own.

use super::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Nodes 1 to 6 on two racks: 1 to 3 on the first; each rack has a node of each of three upgrade domains.
fn domains(factor: usize) -> World {
    let mut w = World::new(Settings { apart: Apart::UpgradeDomains(factor), ..Settings::default() });
    for n in 1..=6 {
        let entry = HostEntry { host: format!("dn{n}").into(), port: 0 };
        w.blocks.hosts.domains.push((entry, format!("ud{}", n % 3).into()));
        w.node_on(n, if n <= 3 { "/r1" } else { "/r2" });
    }
    w
}

fn domain(w: &World, n: NodeNumber) -> Arc<str> {
    w.blocks.node(n).expect("there").upgrade_domain.clone().expect("given")
}

fn request(replicas: usize) -> TargetRequest<'static> {
    TargetRequest { replicas, block_size: 1, new_block: true, ..TargetRequest::default() }
}

#[test]
fn targets_are_in_upgrade_domains_of_their_own() {
    let w = domains(3);
    for _ in 0..50 {
        let targets = w.blocks.choose_targets(&request(3), w.now.monotonic).targets;
        let distinct: BTreeSet<_> = targets.iter().map(|t| domain(&w, t.node)).collect();
        assert_eq!((targets.len(), distinct.len()), (3, 3));
        // more than the factor may share one
        assert_eq!(w.blocks.choose_targets(&request(4), w.now.monotonic).targets.len(), 4);
    }
}

#[test]
fn a_block_in_too_few_domains_gets_a_copy_in_another() {
    let mut w = domains(3);
    // 1 and 4 share a domain, on two racks
    let block = w.block(1, 3).1;
    [1, 4, 2].into_iter().for_each(|n| w.received(n, block));
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).badly_distributed, 1);
    w.round();
    let copies: Vec<_> = [1, 4, 2].into_iter().flat_map(|n| w.transfers(n)).collect();
    let [(1, targets)] = &copies[..] else { panic!("{copies:?}") };
    assert!(targets.len() == 1 && &*domain(&w, targets[0]) == "ud0", "{targets:?}");
    // then one of the two that share goes
    let three = if targets[0] == w.number(3) { 3 } else { 6 };
    w.received(three, block);
    w.round();
    let gone: Vec<u32> = (1..=6).filter(|n| !w.deletions(*n).is_empty()).collect();
    assert!(gone == [1] || gone == [4], "{gone:?}");
    w.check();
}

#[test]
fn fewer_domains_than_replicas_suffice_if_the_factor_says_so() {
    let mut w = domains(2);
    let block = w.block(1, 3).1;
    [1, 4, 2].into_iter().for_each(|n| w.received(n, block));
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).badly_distributed, 0);
}

/// Eight nodes on two racks with two groups each.
fn groups() -> World {
    let mut w = World::new(Settings { apart: Apart::NodeGroups, ..Settings::default() });
    for n in 1..=8 {
        let (rack, group) = ((n - 1) / 4 + 1, (n - 1) / 2 % 2 + 1);
        w.node_on(n, &format!("/d/r{rack}/g{rack}{group}"));
    }
    w
}

#[test]
fn targets_are_in_node_groups_of_their_own() {
    let w = groups();
    let location = |n: NodeNumber| w.blocks.node(n).expect("there").location.clone();
    for _ in 0..50 {
        let request = TargetRequest { writer: Some(w.number(1)), ..request(3) };
        let targets = w.blocks.choose_targets(&request, w.now.monotonic).targets;
        let distinct: BTreeSet<_> = targets.iter().map(|t| location(t.node)).collect();
        assert_eq!((targets.len(), distinct.len(), targets[0].node), (3, 3, w.number(1)));
        assert!(distinct.iter().any(|l| l.starts_with("/d/r2/")), "{distinct:?}");
        // where the writer's own node is out of question, its group comes before its rack
        let excluded = [w.number(1)];
        let near = TargetRequest { writer: Some(w.number(1)), excluded: &excluded, ..request };
        assert_eq!(w.blocks.choose_targets(&near, w.now.monotonic).targets[0].node, w.number(2));
    }
    // there are four groups
    assert_eq!(w.blocks.choose_targets(&request(5), w.now.monotonic).targets.len(), 4);
}

#[test]
fn of_too_many_replicas_one_of_a_shared_group_goes() {
    let mut w = groups();
    let block = w.block(1, 3).1;
    [1, 3, 5].into_iter().for_each(|n| w.received(n, block));
    w.received(2, block);
    w.round();
    let gone: Vec<u32> = (1..=8).filter(|n| !w.deletions(*n).is_empty()).collect();
    assert!(gone == [1] || gone == [2], "{gone:?}");
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).badly_distributed, 0);
}

#[test]
fn without_a_rack_a_node_is_in_the_default_group() {
    let mut w = groups();
    let n = w.node(9);
    let node = w.blocks.node(n).expect("there");
    assert_eq!((&*node.location, &*node.rack), ("/default-rack/default-nodegroup", "/default-rack"));
}
