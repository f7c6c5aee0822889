//! Erasure coded files on real DataNodes: when some die for good, what they had is rebuilt on others, and the bytes stay.
use std::time::Duration;

use super::data::take;
use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::Kind;
use crate::support::work::wait_until;

/// Deaths (12 s), reconstruction and its retries (10 s each) on a busy machine.
const REPAIR_LIMIT: Duration = Duration::from_secs(240);

/// A file of three blocks, the last one short, under a policy of `units` internal blocks (the last one has
/// `units_of_last`); `deaths` DataNodes die of as many more than it needs.
fn lose_units(name: &str, policy: &str, units: usize, units_of_last: usize, deaths: usize) {
    let _turn = cluster_turn();
    let settings = [("dfs.blocksize", "2097152")];
    let Some(mut cluster) = Cluster::start(name, Kind::under_test(), units + deaths, &settings) else { return };
    cluster.client.ok(&["ec", "-enablePolicy", "-policy", policy]);
    cluster.client.ok(&["dfs", "-mkdir", "/ec"]);
    cluster.client.ok(&["ec", "-setPolicy", "-path", "/ec", "-policy", policy]);
    let written = cluster.client.ok(&["api", "write", "/ec/f", "15000000", "9"]);
    let checksum = cluster.client.ok(&["dfs", "-checksum", "/ec/f"]);
    let count = |cluster: &Cluster, bean: &str, attribute: &str| {
        cluster.namenode().jmx(bean, attribute).and_then(|value| value.as_i64())
    };
    let is_whole = |cluster: &Cluster| {
        count(cluster, "ECBlockGroupsState", "LowRedundancyECBlockGroups") == Some(0)
            && count(cluster, "FSNamesystemState", "PendingReconstructionBlocks") == Some(0)
    };
    // a DataNode that was too busy to be chosen leaves a group an internal block short at first
    let all = |cluster: &Cluster| cluster.blocks("/ec/f").iter().map(|group| group.locations.len()).collect::<Vec<_>>();
    wait_until(REPAIR_LIMIT, "the file was whole", || {
        is_whole(&cluster) && all(&cluster).last() == Some(&units_of_last)
    });
    let groups = cluster.blocks("/ec/f");
    assert!(groups.iter().any(|group| group.locations.len() == units), "{groups:?}");
    let victims: Vec<String> = groups[0].locations[..deaths].to_vec();
    for victim in &victims {
        take(&mut cluster, victim).kill();
    }
    let dead = i64::try_from(deaths).expect("few");
    wait_until(REPAIR_LIMIT, "the deaths were noticed", || cluster.namenode().count("NumDeadDataNodes") == Some(dead));
    // read while internal blocks are missing
    assert_eq!(cluster.client.ok(&["api", "digest", "/ec/f"]), written);
    wait_until(REPAIR_LIMIT, "all internal blocks were there again", || {
        is_whole(&cluster)
            && cluster.blocks("/ec/f").iter().zip(&groups).all(|(now, then)| {
                now.locations.len() == then.locations.len() && victims.iter().all(|v| !now.locations.contains(v))
            })
    });
    assert_eq!(cluster.client.ok(&["api", "digest", "/ec/f"]), written);
    assert_eq!(cluster.client.ok(&["dfs", "-checksum", "/ec/f"]), checksum);
    let fsck = cluster.client.ok(&["fsck", "/ec", "-files", "-blocks", "-locations"]);
    assert!(fsck.contains("The filesystem under path '/ec' is HEALTHY"), "{fsck}");
    assert!(fsck.contains("Under-erasure-coded block groups:\t0"), "{fsck}");
    // what was rebuilt is good: the file is read from it when as many more DataNodes die
    let rebuilt: Vec<String> = cluster.blocks("/ec/f")[0].locations[units - deaths - 1..units - 1].to_vec();
    for victim in &rebuilt {
        take(&mut cluster, victim).kill();
    }
    assert_eq!(cluster.client.ok(&["api", "digest", "/ec/f"]), written);
}

#[test]
fn two_lost_units_of_five_are_rebuilt() {
    lose_units("striped-3-2", "RS-3-2-1024k", 5, 5, 2);
}

#[test]
fn a_lost_unit_of_nine_is_rebuilt() {
    lose_units("striped-6-3", "RS-6-3-1024k", 9, 6, 1);
}
