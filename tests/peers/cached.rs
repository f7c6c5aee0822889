//! Blocks in the memory of real DataNodes.
use std::time::Duration;

use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::Kind;
use crate::support::work::wait_until;

const LIMIT: Duration = Duration::from_secs(60);

/// What is asked for is taken in and let go, the statistics say so, and clients learn where it is.
#[test]
fn directives_bring_blocks_into_memory_and_out_of_it() {
    let _turn = cluster_turn();
    let settings = [
        ("dfs.blocksize", "4096"),
        ("dfs.datanode.max.locked.memory", "65536"),
        ("dfs.cachereport.intervalMsec", "500"),
        ("dfs.namenode.path.based.cache.refresh.interval.ms", "1000"),
    ];
    let Some(cluster) = Cluster::start("cached", Kind::under_test(), 2, &settings) else { return };
    cluster.client.ok(&["api", "write", "/file", "10000", "7"]);
    let admin = |words: &[&str]| cluster.client.ok(&[&["cacheadmin"], words].concat());
    admin(&["-addPool", "pool"]);
    admin(&["-addDirective", "-path", "/file", "-pool", "pool", "-replication", "2"]);
    // needed, cached, files needed, files cached
    let figures = || {
        let listed = admin(&["-listDirectives", "-stats"]);
        let line = listed.lines().find(|line| line.contains("/file")).unwrap_or_else(|| panic!("{listed}")).to_owned();
        line.split_whitespace().rev().take(4).map(str::to_owned).collect::<Vec<_>>()
    };
    wait_until(LIMIT, "both replicas are in memory", || figures() == ["1", "1", "20000", "20000"]);
    let cached = || cluster.client.ok(&["api", "cached", "/file"]);
    assert_eq!(cached().trim(), "2\n2\n2");
    admin(&["-removeDirectives", "-path", "/file"]);
    wait_until(LIMIT, "nothing is in memory", || cached().trim() == "0\n0\n0");
}
