//! Truncates within a block while a rolling upgrade runs: real DataNodes make a new block of the old one, and what is kept reads back.
use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::Kind;
use crate::support::work::WorkDir;

const WRITTEN: usize = 900_000;
const KEPT: usize = 500_001;

#[test]
fn a_truncate_during_a_rolling_upgrade_loses_nothing() {
    let _turn = cluster_turn();
    let settings = [("dfs.replication", "2")];
    let Some(mut cluster) = Cluster::start("truncated", Kind::under_test(), 2, &settings) else { return };
    let work = WorkDir::new("truncated-files");
    let bytes: Vec<u8> = (0..WRITTEN as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let local = work.join("written");
    std::fs::write(&local, &bytes).expect("a local file");
    let local = local.to_str().expect("UTF-8");
    for path in ["/waits", "/dies"] {
        cluster.client.ok(&["dfs", "-put", local, path]);
    }
    cluster.client.ok(&["dfsadmin", "-safemode", "enter"]);
    cluster.client.ok(&["dfsadmin", "-rollingUpgrade", "prepare"]);
    let kept = KEPT.to_string();
    let old = cluster.blocks("/waits");
    cluster.client.ok(&["dfs", "-truncate", &kept, "/waits"]);
    cluster.client.ok(&["api", "recover", "/waits"]);
    let new = cluster.blocks("/waits");
    assert_ne!(old[0].name, new[0].name, "another block");
    // the name node may die before the DataNodes tell that the new block is made
    cluster.client.ok(&["dfs", "-truncate", &kept, "/dies"]);
    cluster.kill_namenode();
    cluster.start_namenode(Kind::under_test());
    cluster.client.ok(&["api", "recover", "/dies"]);
    for path in ["/waits", "/dies"] {
        let back = work.join(&path[1..]);
        cluster.client.ok(&["dfs", "-get", path, back.to_str().expect("UTF-8")]);
        assert!(std::fs::read(&back).expect("read back") == bytes[..KEPT], "{path}");
    }
}
