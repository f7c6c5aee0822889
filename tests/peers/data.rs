//! File content through real DataNodes: writing, reading, and what happens when DataNodes die.
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::cluster::{Block, Cluster, client_site};
use crate::support::cluster_turn;
use crate::support::datanode::DataNode;
use crate::support::namenode::Kind;
use crate::support::work::wait_until;

const MIB: usize = 1 << 20;
/// Long enough for a death to be noticed (12 s) and repaired on a busy machine.
pub(super) const REPAIR_LIMIT: Duration = Duration::from_secs(120);

#[test]
fn three_hundred_megabytes_in_and_out() {
    let _turn = cluster_turn();
    let settings = [("dfs.blocksize", "16777216")];
    let Some(cluster) = Cluster::start("300mb", Kind::under_test(), 3, &settings) else { return };
    let local = cluster.work.join("local");
    write_noise(&local, 300 * MIB);
    let site = client_site(&cluster.site, cluster.work.path());
    let put = cluster.hadoop.shell(&site).arg("-put").arg(&local).arg("/big").status().expect("java");
    assert!(put.success(), "put: {put}");
    let mut cat = cluster.hadoop.shell(&site).args(["-cat", "/big"]).stdout(Stdio::piped()).spawn().expect("java");
    let equal = same_bytes(cat.stdout.take().expect("piped"), File::open(&local).expect("own file"));
    assert!(cat.wait().expect("own child").success());
    assert!(equal, "cat gives other bytes than put was given");
    let blocks = cluster.blocks("/big");
    assert_eq!(blocks.iter().map(|block| block.bytes).sum::<u64>(), 300 << 20);
    assert_eq!(blocks.len(), 19);
    // a file is complete with one reported replica of each block; the other reports, or on a busy machine the
    // repair of a pipeline that lost a node, may come after put has returned
    wait_for_replicas(&cluster, "/big", 3, None);
}

#[test]
fn datanode_killed_in_mid_write() {
    let _turn = cluster_turn();
    let settings = [("dfs.blocksize", "8388608")];
    let Some(mut cluster) = Cluster::start("midwrite", Kind::under_test(), 3, &settings) else { return };
    // 20 MB in about 4 s: two full blocks and a part
    let words = ["api", "write-slowly", "writer", "/slow", "20000000", "7", "131072", "25"];
    cluster.client.ok(&words);
    wait_until(REPAIR_LIMIT, "the first block was being written", || {
        cluster.client.run(&["dfs", "-test", "-e", "/slow"]).exit == 0 && !cluster.blocks("/slow").is_empty()
    });
    std::thread::sleep(Duration::from_millis(500)); // into the block
    let before = cluster.blocks("/slow").pop().expect("a block");
    assert_eq!(before.locations.len(), 3, "{before:?}");
    take(&mut cluster, &before.locations[1]).kill();
    let written = cluster.client.ok(&["api", "join", "writer"]);
    assert_eq!(cluster.client.ok(&["api", "digest", "/slow"]), written);
    let blocks = cluster.blocks("/slow");
    assert_eq!(blocks.len(), 3);
    let after = blocks.iter().find(|block| block.name == before.name).expect("the block that was recovered");
    assert!(after.generation_stamp > before.generation_stamp, "{before:?} {after:?}");
    assert!(!after.locations.contains(&before.locations[1]), "the dead one has an old replica: {after:?}");
    cluster.add_datanode();
    wait_for_replicas(&cluster, "/slow", 3, Some(&before.locations[1]));
    assert_eq!(cluster.client.ok(&["api", "digest", "/slow"]), written);
}

#[test]
fn datanode_killed_for_good_and_back() {
    let _turn = cluster_turn();
    let Some(mut cluster) = Cluster::start("death", Kind::under_test(), 4, &[]) else { return };
    let written = cluster.client.ok(&["api", "write", "/f", "9500000", "3"]);
    wait_for_replicas(&cluster, "/f", 3, None);
    let address = cluster.blocks("/f")[0].locations[0].clone();
    let victim = take(&mut cluster, &address).kill();
    wait_until(REPAIR_LIMIT, "the dead DataNode was noticed", || {
        cluster.namenode().count("NumDeadDataNodes") == Some(1)
    });
    wait_for_replicas(&cluster, "/f", 3, Some(&address));
    wait_until(REPAIR_LIMIT, "nothing was under-replicated", || {
        cluster.namenode().count("UnderReplicatedBlocks") == Some(0)
    });
    assert_eq!(cluster.client.ok(&["api", "digest", "/f"]), written);
    // it comes back with its replicas: one of four is now too many
    cluster.datanodes.push(victim.restart(cluster.hadoop));
    cluster.namenode().wait_for_datanodes(4);
    wait_for_replicas(&cluster, "/f", 3, None);
    wait_for_files(&cluster, 30);
    assert_eq!(cluster.client.ok(&["api", "digest", "/f"]), written);
}

#[test]
fn setrep_and_delete_reach_the_disks() {
    let _turn = cluster_turn();
    let Some(cluster) = Cluster::start("setrep", Kind::under_test(), 3, &[("dfs.replication", "2")]) else { return };
    cluster.client.ok(&["dfs", "-mkdir", "-p", "/d/e"]);
    let written = cluster.client.ok(&["api", "write", "/d/e/f", "2500000", "5"]);
    wait_for_files(&cluster, 6);
    for (replication, files) in [("3", 9), ("1", 3), ("2", 6)] {
        cluster.client.ok(&["dfs", "-setrep", "-w", replication, "/d/e/f"]);
        wait_for_replicas(&cluster, "/d/e/f", replication.parse().expect("a number"), None);
        wait_for_files(&cluster, files);
        assert_eq!(cluster.client.ok(&["api", "digest", "/d/e/f"]), written);
    }
    cluster.client.ok(&["dfs", "-mv", "/d/e", "/moved"]);
    assert_eq!(cluster.client.ok(&["api", "digest", "/moved/f"]), written);
    cluster.client.ok(&["dfs", "-rm", "-r", "-skipTrash", "/moved"]);
    wait_for_files(&cluster, 0);
}

/// Takes the DataNode with a transfer address out of the cluster.
pub(super) fn take(cluster: &mut Cluster, address: &str) -> DataNode {
    let place = cluster.datanodes.iter().position(|node| node.transfer_address() == address);
    cluster.datanodes.remove(place.unwrap_or_else(|| panic!("no DataNode has {address}")))
}

/// Waits until every block has exactly `count` replicas, on distinct nodes and none on `dead`.
pub(super) fn wait_for_replicas(cluster: &Cluster, path: &str, count: usize, dead: Option<&str>) {
    let complete = |block: &Block| {
        let alive = dead.is_none_or(|dead| !block.locations.iter().any(|location| location == dead));
        alive && block.locations.len() == count && distinct(&block.locations) == count
    };
    let what = format!("{path} had {count} replicas of each block");
    wait_until(REPAIR_LIMIT, &what, || cluster.blocks(path).iter().all(complete));
}

/// Waits until the running DataNodes hold that many block files together.
fn wait_for_files(cluster: &Cluster, count: usize) {
    wait_until(REPAIR_LIMIT, &format!("{count} block files were on the DataNodes"), || {
        cluster.datanodes.iter().map(|node| node.block_files().len()).sum::<usize>() == count
    });
}

fn distinct(locations: &[String]) -> usize {
    locations.iter().collect::<std::collections::BTreeSet<_>>().len()
}

/// A file of that many pseudo-random bytes.
fn write_noise(path: &Path, bytes: usize) {
    let mut file = BufWriter::with_capacity(MIB, File::create(path).expect("local file"));
    let mut x = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..bytes / 8 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        file.write_all(&x.to_le_bytes()).expect("local disk");
    }
    file.flush().expect("local disk");
}

fn same_bytes(a: impl Read, b: impl Read) -> bool {
    let (mut a, mut b) = (BufReader::with_capacity(MIB, a), BufReader::with_capacity(MIB, b));
    let (mut left, mut right) = (vec![0; MIB], vec![0; MIB]);
    loop {
        let (n, m) = (fill(&mut a, &mut left), fill(&mut b, &mut right));
        if left[..n] != right[..m] {
            return false;
        }
        if n == 0 {
            return true;
        }
    }
}

/// Reads until the buffer is full or the source ends.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]).expect("readable") {
            0 => break,
            n => filled += n,
        }
    }
    filled
}
