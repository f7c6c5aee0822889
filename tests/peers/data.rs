//! File content through real DataNodes.
use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::Kind;

#[test]
fn small_file_through_three_datanodes() {
    let _turn = cluster_turn();
    let Some(cluster) = Cluster::start("small", Kind::under_test(), 3, &[]) else { return };
    let written = cluster.client.ok(&["api", "write", "/f", "3000000", "1"]);
    assert_eq!(cluster.client.ok(&["api", "digest", "/f"]), written);
    assert_eq!(cluster.blocks("/f").len(), 3);
}
