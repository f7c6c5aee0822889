//! Truncates within a block that make a new one of it: real DataNodes do, what is kept reads back, and what an image of ours tells of it does not
//! disturb Hadoop.
use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::{Kind, NameNode};
use crate::support::work::WorkDir;
use std::path::PathBuf;

const WRITTEN: usize = 900_000;
const KEPT: usize = 500_001;

/// What the files have at first, and a local file with that.
fn written(work: &WorkDir) -> (Vec<u8>, PathBuf) {
    let bytes: Vec<u8> = (0..WRITTEN as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let local = work.join("written");
    std::fs::write(&local, &bytes).expect("a local file");
    (bytes, local)
}

#[test]
fn a_truncate_during_a_rolling_upgrade_loses_nothing() {
    let _turn = cluster_turn();
    let settings = [("dfs.replication", "2")];
    let Some(mut cluster) = Cluster::start("truncated", Kind::under_test(), 2, &settings) else { return };
    let work = WorkDir::new("truncated-files");
    let (bytes, local) = written(&work);
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

/// An image of ours tells what a truncate under way makes a block of: Hadoop's NameNode and viewer pass over that, and ours goes on with the
/// truncate after them.
#[test]
fn java_passes_over_what_an_image_tells_of_a_truncate() {
    if Kind::under_test() == Kind::Java {
        return crate::support::skip("Java's images do not tell of truncates");
    }
    let _turn = cluster_turn();
    let Some(mut cluster) = Cluster::start("truncated-image", Kind::Ironroot, 1, &[("dfs.replication", "1")]) else {
        return;
    };
    let work = WorkDir::new("truncated-image-files");
    let (bytes, local) = written(&work);
    cluster.client.ok(&["dfs", "-mkdir", "/d"]);
    cluster.client.ok(&["dfs", "-put", local.to_str().expect("UTF-8"), "/d/file"]);
    cluster.client.ok(&["dfsadmin", "-allowSnapshot", "/d"]);
    cluster.client.ok(&["dfs", "-createSnapshot", "/d", "s"]);
    // nobody is there to make the new block
    let away = cluster.datanodes.remove(0).kill();
    cluster.client.ok(&["dfs", "-truncate", &KEPT.to_string(), "/d/file"]);
    cluster.client.ok(&["dfsadmin", "-safemode", "enter"]);
    cluster.client.ok(&["dfsadmin", "-saveNamespace"]);
    let tree = cluster.client.ok(&["api", "tree", "/"]);
    cluster.stop_namenode();

    let current = std::fs::read_dir(cluster.work.join("name/current")).expect("a folder");
    let images = current.map(|entry| entry.expect("readable").path());
    let image = images.filter(|path| path.extension().is_none() && path.to_string_lossy().contains("/fsimage_")).max();
    let image = image.expect("an image");
    // the key of field 1001, a message
    let told = std::fs::read(&image).expect("an image").windows(2).any(|two| two == [0xca, 0x3e]);
    assert!(told, "{}: nothing of the truncate", image.display());
    let xml = work.join("image.xml");
    cluster.client.ok(&["oiv", "-p", "XML", "-i", image.to_str().expect("UTF-8"), "-o", xml.to_str().expect("UTF-8")]);
    let xml = std::fs::read_to_string(xml).expect("oiv wrote");
    let open = xml.split("<FileUnderConstructionSection>").nth(1).and_then(|rest| rest.split("</File").next());
    assert!(open.is_some_and(|open| open.contains("<path>/d/file</path>")), "{open:?}");
    assert!(xml.trim_end().ends_with("</fsimage>"), "not to the end");

    let java = NameNode::start(Kind::Java, &cluster.site);
    // a client finds an idle connection dead by using it
    cluster.client.run(&["dfs", "-ls", "/"]);
    assert_eq!(cluster.client.ok(&["api", "tree", "/"]), tree, "as Java loads it");
    java.stop();

    cluster.datanodes.push(away.restart(cluster.hadoop));
    cluster.start_namenode(Kind::Ironroot);
    cluster.client.ok(&["api", "recover", "/d/file"]);
    for (path, length) in [("/d/file", KEPT), ("/d/.snapshot/s/file", WRITTEN)] {
        let back = work.join(&length.to_string());
        cluster.client.ok(&["dfs", "-get", path, back.to_str().expect("UTF-8")]);
        assert!(std::fs::read(&back).expect("read back") == bytes[..length], "{path}");
    }
}
