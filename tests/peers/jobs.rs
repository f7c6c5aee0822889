//! Jobs as clusters run them, in the client's own process: words are counted, files written and read in parallel, trees copied and balanced.
use super::data::wait_for_replicas;
use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::jobs::Jobs;
use crate::support::namenode::Kind;

#[test]
fn map_reduce_and_distcp() {
    let _turn = cluster_turn();
    let settings = [("dfs.replication", "2")];
    let Some(cluster) = Cluster::start("jobs", Kind::under_test(), 2, &settings) else { return };
    let Some(jobs) = Jobs::of(&cluster) else { return };
    let local = cluster.work.join("words");
    std::fs::write(&local, "a b a\nc a b\n".repeat(1_000)).expect("a local file");
    cluster.client.ok(&["dfs", "-mkdir", "-p", "/in"]);
    cluster.client.ok(&["dfs", "-put", local.to_str().expect("UTF-8"), "/in"]);
    jobs.ok(&cluster, &[], &["org.apache.hadoop.examples.ExampleDriver", "wordcount", "/in", "/out"]);
    assert_eq!(cluster.client.ok(&["dfs", "-cat", "/out/part-r-00000"]), "a\t3000\nb\t2000\nc\t1000\n");

    let here = ["-Dtest.build.data=/benchmarks"];
    for what in ["-write", "-append", "-read"] {
        jobs.ok(&cluster, &here, &["org.apache.hadoop.fs.TestDFSIO", what, "-nrFiles", "3", "-fileSize", "2MB"]);
    }
    let summary = cluster.client.ok(&["dfs", "-count", "/benchmarks/TestDFSIO/io_data"]);
    assert_eq!(summary.split_whitespace().collect::<Vec<_>>(), ["1", "3", "12582912", "/benchmarks/TestDFSIO/io_data"]);

    let copy = ["org.apache.hadoop.tools.DistCp", "-pugpt", "/benchmarks", "/copy"];
    jobs.ok(&cluster, &[], &copy);
    let tree = |root: &str| {
        let names = cluster.client.ok(&["dfs", "-ls", "-R", "-C", root]);
        let files = names.lines().filter(|name| cluster.client.run(&["dfs", "-test", "-f", name]).exit == 0);
        files
            .map(|name| (name[root.len()..].to_owned(), cluster.client.ok(&["api", "digest", name])))
            .collect::<Vec<_>>()
    };
    let (from, to) = (tree("/benchmarks"), tree("/copy"));
    assert!(from.len() > 5 && from == to, "{from:?}\n{to:?}");
    // a snapshot and what changed since it
    cluster.client.ok(&["dfsadmin", "-allowSnapshot", "/benchmarks"]);
    cluster.client.ok(&["dfsadmin", "-allowSnapshot", "/copy"]);
    for root in ["/benchmarks", "/copy"] {
        cluster.client.ok(&["dfs", "-createSnapshot", root, "s1"]);
    }
    cluster.client.ok(&["dfs", "-rm", "-skipTrash", "/benchmarks/TestDFSIO/io_data/test_io_0"]);
    cluster.client.ok(&["dfs", "-mv", "/benchmarks/TestDFSIO/io_read", "/benchmarks/moved"]);
    cluster.client.ok(&["dfs", "-touchz", "/benchmarks/new"]);
    cluster.client.ok(&["dfs", "-createSnapshot", "/benchmarks", "s2"]);
    let sync = ["org.apache.hadoop.tools.DistCp", "-update", "-diff", "s1", "s2", "/benchmarks", "/copy"];
    jobs.ok(&cluster, &[], &sync);
    let (from, to) = (tree("/benchmarks"), tree("/copy"));
    assert_eq!(from, to);
    assert!(from.iter().any(|(name, _)| name == "/moved/_SUCCESS"));
}

/// DataNodes with little room and simulated disks, filled; the balancer moves blocks to one that comes later.
#[test]
fn a_balancer_fills_a_new_node() {
    let _turn = cluster_turn();
    let settings = [
        ("dfs.replication", "2"),
        ("dfs.datanode.fsdataset.factory", "org.apache.hadoop.hdfs.server.datanode.SimulatedFSDataset$Factory"),
        ("dfs.datanode.simulateddatastorage.capacity", "120000000"),
        ("dfs.balancer.getBlocks.min-block-size", "1"),
    ];
    let Some(mut cluster) = Cluster::start("balancer", Kind::under_test(), 2, &settings) else { return };
    cluster.client.ok(&["api", "write", "/big", "40000000", "5"]);
    cluster.add_datanode();
    cluster.namenode().wait_for_datanodes(3);
    let new = cluster.datanodes.last().expect("the new one").transfer_address().to_owned();
    let mut java = cluster.hadoop.java(&cluster.site, "256m", "INFO");
    java.args(["org.apache.hadoop.hdfs.server.balancer.Balancer", "-threshold", "5"]);
    let output = java.output().expect("java");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}", output.status);
    let there =
        |cluster: &Cluster| cluster.blocks("/big").iter().filter(|block| block.locations.contains(&new)).count();
    assert!(there(&cluster) > 10, "{} blocks moved\n{text}", there(&cluster));
    wait_for_replicas(&cluster, "/big", 2, None);
    assert!(there(&cluster) > 10, "what was moved stays where it is");
}
