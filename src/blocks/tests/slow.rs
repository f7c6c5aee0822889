//! Peers and disks that DataNodes find slow.

use super::*;
use std::sync::Arc;

fn world(settings: Settings) -> World {
    let mut w = World::new(Settings { peer_stats: true, disk_stats: true, ..settings });
    for n in 1..=5 {
        w.node(n);
    }
    w
}

/// Node `n` tells of the peers.
fn tell(w: &mut World, n: u32, peers: &[u32]) -> bool {
    let latency = PeerLatency { latency: 90.0, median: 1.5, deviation: 0.5, limit: 4.0 };
    let slow_peers = peers.iter().map(|p| (format!("10.0.0.{p}:9867").into(), latency)).collect();
    let (who, beat) = (w.registration(n), Heartbeat { slow_peers, ..w.figures(n) });
    w.blocks.heartbeat(&mut w.store, &who, &beat, w.now).expect("heartbeat").slow
}

fn names(w: &World, limit: usize) -> Vec<(String, usize)> {
    let peers = w.blocks.slow_peers(limit, w.now.monotonic).expect("measured");
    peers.into_iter().map(|(peer, by)| (peer.to_string(), by.len())).collect()
}

#[test]
fn peers_reported_by_most_count_for_three_intervals() {
    let mut w = world(Settings { outlier_interval_ms: 10_000, ..Settings::default() });
    tell(&mut w, 1, &[2, 3]);
    tell(&mut w, 2, &[3]);
    assert_eq!(names(&w, 5), [("10.0.0.2:9867".to_owned(), 1), ("10.0.0.3:9867".to_owned(), 2)]);
    assert_eq!(names(&w, 1), [("10.0.0.3:9867".to_owned(), 2)]);
    let slow: Vec<_> = w.blocks.slow_nodes(w.now.monotonic).iter().map(|node| node.number).collect();
    assert_eq!(slow, [w.number(2), w.number(3)]);
    w.pass(29_999);
    tell(&mut w, 4, &[3]);
    w.pass(1);
    assert_eq!(names(&w, 5), [("10.0.0.3:9867".to_owned(), 1)], "what was told thirty seconds ago is old");
    w.blocks.settings.peer_stats = false;
    assert_eq!(w.blocks.slow_peers(5, w.now.monotonic), None);
}

#[test]
fn slow_nodes_are_avoided_if_asked() {
    let mut w = world(Settings {
        avoid_slow_for_read: true,
        avoid_slow_for_write: true,
        slow_nodes_collected: 1,
        slow_collect_interval_ms: 5_000,
        ..Settings::default()
    });
    for (n, peers) in [(1, &[3, 4][..]), (2, &[3])] {
        assert!(!tell(&mut w, n, peers), "collected in intervals only");
    }
    w.blocks.heartbeat_check(w.now);
    assert!(!tell(&mut w, 3, &[]), "the first collection is that of the start");
    w.pass(5_000);
    w.blocks.heartbeat_check(w.now);
    assert!(tell(&mut w, 3, &[]) && !tell(&mut w, 4, &[]), "one node is avoided: the one that most report");
    let request = TargetRequest { replicas: 5, block_size: 1, new_block: true, ..TargetRequest::default() };
    let chosen = w.blocks.choose_targets(&request, w.now.monotonic).targets;
    assert_eq!(chosen.len(), 4, "not even where nodes run out");
    assert!(chosen.iter().all(|t| t.node != w.number(3)));
    let (b, block) = w.block(1, 3);
    for n in [1, 3, 5] {
        w.received(n, block);
    }
    let reader = Reader { node: Some(w.number(3)), location: None };
    let mut located = w.blocks.locate(&w.store, b);
    w.blocks.sort_locations(&mut located, &reader, w.now.monotonic);
    assert_eq!(located.locations.last().map(|t| t.node), Some(w.number(3)), "last, although the reader is there");
}

#[test]
fn the_slowest_disks_of_the_last_intervals() {
    let settings = Settings { outlier_interval_ms: 10_000, slow_disks_reported: 2, ..Settings::default() };
    let mut w = world(settings);
    let tell = |w: &mut World, n: u32, disk: &str, write: f64| {
        let latency = DiskLatency { metadata: Some(1.0), read: None, write: Some(write) };
        let slow_disks = vec![(Arc::from(disk), latency)];
        let (who, beat) = (w.registration(n), Heartbeat { slow_disks, ..w.figures(n) });
        w.blocks.heartbeat(&mut w.store, &who, &beat, w.now).expect("heartbeat");
    };
    assert!(w.blocks.slow_disks().is_none());
    for (n, write) in [(1, 30.0), (2, 90.0), (3, 60.0)] {
        tell(&mut w, n, "/data", write);
    }
    w.pass(10_001);
    tell(&mut w, 4, "/data", 10.0);
    let shown: Vec<_> = w.blocks.slow_disks().expect("slow ones").iter().map(|(disk, _)| disk.to_string()).collect();
    assert_eq!(shown, ["10.0.0.3:9867:/data", "10.0.0.2:9867:/data"]);
    w.pass(20_000);
    tell(&mut w, 5, "/data", 20.0);
    let shown: Vec<_> = w.blocks.slow_disks().expect("slow ones").iter().map(|(disk, _)| disk.to_string()).collect();
    assert_eq!(shown, ["10.0.0.4:9867:/data", "10.0.0.5:9867:/data"]);
}
