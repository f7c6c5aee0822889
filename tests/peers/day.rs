//! A day in the life of a small cluster: writers and nodes that are killed, a node that comes back with what it had, one that is decommissioned,
//! disks that are full, a name node that dies; at its end everything reads back, nothing is short of replicas, and no replica is left over.
use std::collections::BTreeMap;
use std::time::Duration;

use super::data::{REPAIR_LIMIT, take, wait_for_replicas};
use crate::support::cluster::{Cluster, client_site};
use crate::support::cluster_turn;
use crate::support::driver::HadoopClient;
use crate::support::namenode::Kind;
use crate::support::work::wait_until;

const FILES: u64 = 24;

/// What was written: digest and length of each path.
type Written = BTreeMap<String, String>;

#[test]
fn a_day_of_a_small_cluster() {
    let _turn = cluster_turn();
    let work = crate::support::work::WorkDir::new("day-lists");
    let exclude = work.join("exclude");
    std::fs::write(&exclude, "").expect("a list");
    let settings = [
        ("dfs.hosts.exclude", exclude.to_str().expect("UTF-8")),
        ("dfs.namenode.decommission.interval", "1"),
        ("dfs.namenode.safemode.threshold-pct", "1.0"),
        // While three of five disks are full, a reader at one of the two others makes its load more than twice the mean, and a write at
        // that moment is refused, as in Hadoop.
        ("dfs.namenode.redundancy.considerLoad", "false"),
    ];
    let Some(mut cluster) = Cluster::start("day", Kind::under_test(), 5, &settings) else { return };
    let mut written = morning(&cluster);
    killed_writers(&cluster, &mut written);
    a_node_dies_under_a_writer(&mut cluster, &mut written);
    a_node_is_away_and_comes_back(&mut cluster, &mut written);
    a_node_is_decommissioned(&mut cluster, &exclude, &written);
    disks_are_full(&mut cluster, &mut written);
    the_name_node_dies(&mut cluster, &mut written);
    evening(&cluster, &written);
}

fn write(cluster: &Cluster, written: &mut Written, path: &str, bytes: u64, seed: u64) {
    let digest = cluster.client.ok(&["api", "write", path, &bytes.to_string(), &seed.to_string()]);
    written.insert(path.to_owned(), digest);
}

fn read_all(cluster: &Cluster, written: &Written, when: &str) {
    for (path, digest) in written {
        assert_eq!(&cluster.client.ok(&["api", "digest", path]), digest, "{path} {when}");
    }
}

/// Files of up to four blocks.
fn morning(cluster: &Cluster) -> Written {
    let mut written = Written::new();
    for n in 0..FILES {
        let path = format!("/day/{}/f{n}", n % 4);
        write(cluster, &mut written, &path, 1 + n * 1_234_567 % 4_000_000, n);
    }
    written
}

/// Two writers that die in the middle of a block: what they had flushed is there once the lease is recovered.
fn killed_writers(cluster: &Cluster, written: &mut Written) {
    let doomed = HadoopClient::start(cluster.hadoop, &client_site(&cluster.site, &cluster.work.join("doomed")));
    for n in ["1", "2"] {
        doomed.ok(&["api", "write-slowly", n, &format!("/day/killed{n}"), "9000000", n, "65536", "40"]);
    }
    wait_until(REPAIR_LIMIT, "both files had blocks", || {
        ["1", "2"].iter().all(|n| {
            let path = format!("/day/killed{n}");
            cluster.client.run(&["dfs", "-test", "-e", &path]).exit == 0 && cluster.blocks(&path).len() > 1
        })
    });
    drop(doomed);
    for n in ["1", "2"] {
        let path = format!("/day/killed{n}");
        cluster.client.ok(&["api", "recover", &path]);
        let digest = cluster.client.ok(&["api", "digest", &path]);
        assert!(!digest.ends_with("\t0\n"), "{path}: a whole block was written and acknowledged");
        written.insert(path, digest);
    }
}

fn a_node_dies_under_a_writer(cluster: &mut Cluster, written: &mut Written) {
    cluster.client.ok(&["api", "write-slowly", "writer", "/day/slow", "6000000", "77", "65536", "25"]);
    wait_until(REPAIR_LIMIT, "the first block was being written", || {
        cluster.client.run(&["dfs", "-test", "-e", "/day/slow"]).exit == 0 && !cluster.blocks("/day/slow").is_empty()
    });
    let block = cluster.blocks("/day/slow").pop().expect("a block");
    let dead = take(cluster, &block.locations[0]).kill();
    let digest = cluster.client.ok(&["api", "join", "writer"]);
    written.insert("/day/slow".to_owned(), digest);
    // it is back before it counts as dead
    let hadoop = cluster.hadoop;
    cluster.datanodes.push(dead.restart(hadoop));
    read_all(cluster, written, "after a node died under a writer");
}

/// While a node is away files are deleted, appended to and written anew, so that what it brings back is partly of no use.
fn a_node_is_away_and_comes_back(cluster: &mut Cluster, written: &mut Written) {
    let address = cluster.blocks("/day/0/f20")[0].locations[0].clone();
    let away = take(cluster, &address).kill();
    wait_until(REPAIR_LIMIT, "the dead DataNode was noticed", || {
        cluster.namenode().count("NumDeadDataNodes") == Some(1)
    });
    for n in [1, 2, 3] {
        let path = format!("/day/{}/f{n}", n % 4);
        cluster.client.ok(&["dfs", "-rm", "-skipTrash", &path]);
        written.remove(&path);
    }
    for n in [5_u64, 6, 7] {
        let path = format!("/day/{}/f{n}", n % 4);
        let digest = cluster.client.ok(&["api", "append", &path, "300000", &n.to_string()]);
        written.insert(path, digest);
    }
    for n in [8, 9] {
        write(cluster, written, &format!("/day/{}/f{n}", n % 4), 1_500_000, 1_000 + n);
    }
    wait_until(REPAIR_LIMIT, "nothing was under-replicated", || {
        cluster.namenode().count("UnderReplicatedBlocks") == Some(0)
    });
    read_all(cluster, written, "while a node is away");
    let hadoop = cluster.hadoop;
    cluster.datanodes.push(away.restart(hadoop));
    cluster.namenode().wait_for_datanodes(5);
    read_all(cluster, written, "with a node that came back with old data");
}

fn a_node_is_decommissioned(cluster: &mut Cluster, exclude: &std::path::Path, written: &Written) {
    let address = cluster.blocks("/day/0/f20")[0].locations[0].clone();
    std::fs::write(exclude, format!("{address}\n")).expect("a list");
    cluster.client.ok(&["dfsadmin", "-refreshNodes"]);
    wait_until(REPAIR_LIMIT, "the node was decommissioned", || {
        let report = cluster.client.ok(&["dfsadmin", "-report"]);
        let of_node = report.split(&format!("Name: {address}")).nth(1).unwrap_or_default();
        of_node.lines().take(4).any(|line| line == "Decommission Status : Decommissioned")
    });
    // without it nothing is missing
    let gone = take(cluster, &address).kill();
    wait_until(REPAIR_LIMIT, "the decommissioned node was dead", || {
        cluster.namenode().count("NumDeadDataNodes") == Some(1)
    });
    assert_eq!(cluster.namenode().count("UnderReplicatedBlocks"), Some(0));
    read_all(cluster, written, "without the decommissioned node");
    std::fs::write(exclude, "").expect("a list");
    cluster.client.ok(&["dfsadmin", "-refreshNodes"]);
    let hadoop = cluster.hadoop;
    cluster.datanodes.push(gone.restart(hadoop));
    cluster.namenode().wait_for_datanodes(5);
}

/// Bytes that a DataNode keeps for others: all that a disk can have, or none.
const RESERVED: [&str; 2] = ["1152921504606846976", "0"];

/// Starts a DataNode anew with a full disk, or with an empty one.
fn restart_with_room(cluster: &mut Cluster, address: &str, room: bool) {
    let (hadoop, stopped) = (cluster.hadoop, take(cluster, address).kill());
    cluster.datanodes.push(stopped.restart_with(hadoop, "dfs.datanode.du.reserved", RESERVED[usize::from(room)]));
}

fn wait_for_full_disks(cluster: &Cluster, full: usize) {
    wait_until(REPAIR_LIMIT, &format!("{full} of 5 DataNodes were full"), || {
        let answer = cluster.client.ok(&["api", "datanodes"]);
        let without_room = answer.lines().filter(|line| line.ends_with("\t0")).count();
        cluster.namenode().count("NumLiveDataNodes") == Some(5) && without_room == full
    });
}

/// Writers go where there is room; with too little of it files have fewer replicas, which come once there is more.
fn disks_are_full(cluster: &mut Cluster, written: &mut Written) {
    let full: Vec<String> = cluster.datanodes[..3].iter().map(|node| node.transfer_address().to_owned()).collect();
    full[..2].iter().for_each(|address| restart_with_room(cluster, address, false));
    wait_for_full_disks(cluster, 2);
    read_all(cluster, written, "with two disks that are full");
    for n in 0..4 {
        let path = format!("/day/elsewhere{n}");
        write(cluster, written, &path, 1_800_000, 2_000 + n);
        wait_for_replicas(cluster, &path, 3, None);
        for block in cluster.blocks(&path) {
            assert!(block.locations.iter().all(|at| !full[..2].contains(at)), "{path}: {block:?}, full: {full:?}");
        }
    }
    restart_with_room(cluster, &full[2], false);
    wait_for_full_disks(cluster, 3);
    write(cluster, written, "/day/two", 1_200_000, 2_100);
    wait_for_replicas(cluster, "/day/two", 2, None);
    assert!(cluster.namenode().count("UnderReplicatedBlocks").is_some_and(|short| short >= 2));
    read_all(cluster, written, "with three disks that are full");
    full.iter().for_each(|address| restart_with_room(cluster, address, true));
    wait_for_full_disks(cluster, 0);
    wait_until(REPAIR_LIMIT, "nothing was under-replicated", || {
        cluster.namenode().count("UnderReplicatedBlocks") == Some(0)
    });
}

fn the_name_node_dies(cluster: &mut Cluster, written: &mut Written) {
    write(cluster, written, "/day/last", 2_500_000, 99);
    cluster.client.ok(&["dfs", "-rm", "-skipTrash", "/day/3/f11"]);
    written.remove("/day/3/f11");
    cluster.kill_namenode();
    std::thread::sleep(Duration::from_millis(500));
    cluster.start_namenode(Kind::under_test());
    read_all(cluster, written, "after the name node was killed");
}

fn evening(cluster: &Cluster, written: &Written) {
    // what a first report brings of deleted files goes with the next one
    for node in &cluster.datanodes {
        cluster.client.ok(&["dfsadmin", "-triggerBlockReport", node.ipc_address()]);
    }
    for path in written.keys() {
        wait_for_replicas(cluster, path, 3, None);
    }
    let replicas: usize = written.keys().map(|path| cluster.blocks(path).len() * 3).sum();
    wait_until(REPAIR_LIMIT, &format!("{replicas} replicas were on the disks"), || {
        cluster.datanodes.iter().map(|node| node.block_files().len()).sum::<usize>() == replicas
    });
    let fsck = cluster.client.ok(&["fsck", "/"]);
    assert!(fsck.ends_with("The filesystem under path '/' is HEALTHY\n"), "{fsck}");
    for line in ["Under-replicated blocks:\t0 (0.0 %)", "Over-replicated blocks:\t0 (0.0 %)", "Missing blocks:\t\t0"] {
        assert!(fsck.contains(line), "{line}: {fsck}");
    }
    read_all(cluster, written, "in the evening");
}
