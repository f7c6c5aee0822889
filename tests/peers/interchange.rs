//! One name directory, two programs: the Java NameNode and the one under test take it over from each other.
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::{Kind, NameNode};
use crate::support::work::free_port;

/// Ours formats and begins; Java takes over, gives back, three times, with work in between.
#[test]
fn java_takes_over_and_gives_back() {
    give_and_take(Kind::under_test(), Kind::Java, 3);
}

/// The same beginning with a directory that Java formatted and wrote.
#[test]
fn takes_over_from_java() {
    give_and_take(Kind::Java, Kind::under_test(), 1);
}

fn give_and_take(first: Kind, second: Kind, times: u64) {
    let _turn = cluster_turn();
    let settings = [("dfs.replication", "2")];
    let Some(mut cluster) = Cluster::start("interchange", first, 2, &settings) else { return };
    for time in 0..times {
        for (turn, successor) in [second, first].into_iter().enumerate() {
            let seed = 100 * time + turn as u64;
            work(&cluster, seed);
            if (time + turn as u64).is_multiple_of(2) {
                checkpoint(&cluster);
                work(&cluster, seed + 50);
            }
            refuses_a_held_directory(&cluster, successor);
            hand_over(&mut cluster, successor);
        }
    }
}

/// Operations of all kinds, with content on the DataNodes.
fn work(cluster: &Cluster, seed: u64) {
    let client = &cluster.client;
    client.ok(&["load", "start", "/load", "4", &seed.to_string()]);
    std::thread::sleep(Duration::from_millis(1500));
    client.ok(&["load", "stop"]);
    let folder = format!("/work{seed}");
    client.ok(&["dfs", "-mkdir", "-p", &format!("{folder}/deep/er")]);
    client.ok(&["api", "write", &format!("{folder}/deep/file"), "2500000", &seed.to_string()]);
    client.ok(&["dfs", "-touch", "-m", "-t", "20200102:030405", &format!("{folder}/deep/file")]);
    // in the future, so that looking at the file does not change it
    client.ok(&["dfs", "-touch", "-a", "-t", "20990102:030405", &format!("{folder}/deep/file")]);
    client.ok(&["dfs", "-touchz", &format!("{folder}/deep/empty")]);
    client.ok(&["dfs", "-chmod", "1753", &format!("{folder}/deep/er")]);
    client.ok(&["dfs", "-chmod", "640", &format!("{folder}/deep/file")]);
    client.ok(&["dfs", "-chown", "-R", "alice:staff", &format!("{folder}/deep")]);
    client.ok(&["dfs", "-setrep", "1", &format!("{folder}/deep/empty")]);
    client.ok(&["dfs", "-mkdir", &format!("{folder}/tätig \u{1F980} 漢字")]);
    client.ok(&["dfs", "-mv", &format!("{folder}/deep"), &format!("{folder}/moved")]);
}

fn checkpoint(cluster: &Cluster) {
    cluster.client.ok(&["dfsadmin", "-safemode", "enter"]);
    cluster.client.ok(&["dfsadmin", "-saveNamespace"]);
    cluster.client.ok(&["dfsadmin", "-safemode", "leave"]);
    cluster.client.ok(&["dfsadmin", "-rollEdits"]);
}

/// A second NameNode on other ports must end by itself and leave the owner in peace.
fn refuses_a_held_directory(cluster: &Cluster, kind: Kind) {
    let mut site = cluster.site.copy_to(cluster.work.join("second"));
    site.set("fs.defaultFS", format!("hdfs://127.0.0.1:{}", free_port()));
    site.set("dfs.namenode.http-address", format!("127.0.0.1:{}", free_port()));
    let before = files(&name_folder(cluster));
    let mut second = NameNode::launch(kind, &site, &[]);
    let status = second.process().wait(Duration::from_secs(60));
    let log = second.process().log_tail();
    assert_eq!(status.code(), Some(1), "{kind:?} beside the owner\n{log}");
    assert!(log.contains("The directory is already locked"), "the message says why: {log}");
    assert_eq!(files(&name_folder(cluster)), before, "{kind:?} touched a directory it does not own");
    cluster.client.ok(&["dfs", "-ls", "/"]);
}

/// The successor must show the same tree and content; the viewers must read all that was left to it.
fn hand_over(cluster: &mut Cluster, successor: Kind) {
    let tree = cluster.client.ok(&["api", "tree", "/"]);
    let from = cluster.namenode().kind();
    cluster.stop_namenode();
    viewers_read_all(cluster);
    cluster.start_namenode(successor);
    let seen = cluster.client.ok(&["api", "tree", "/"]);
    let mut differences = Vec::new();
    for (left, right) in tree.lines().zip(seen.lines()).filter(|(left, right)| left != right) {
        differences.push(format!("- {left}\n+ {right}"));
    }
    let counts = (tree.lines().count(), seen.lines().count());
    assert!(counts.0 == counts.1 && differences.is_empty(), "{from:?} to {successor:?}: {counts:?} {differences:#?}");
    let check = cluster.client.run(&["load", "check", "all"]);
    assert!(check.exit == 0, "{from:?} to {successor:?}:\n{}{}", check.out, check.err);
    if successor == Kind::Java {
        let fsck = cluster.client.run(&["fsck", "/"]);
        assert!(fsck.out.contains("is HEALTHY"), "{}{}", fsck.out, fsck.err);
    }
}

/// `oiv -p XML` and `oev -p xml` over every image and segment.
fn viewers_read_all(cluster: &Cluster) {
    let output = cluster.work.join("view.xml");
    let out = output.to_str().expect("UTF-8");
    let (mut images, mut logs) = (0, 0);
    for file in files(&name_folder(cluster)) {
        let name = file.file_name().expect("a file").to_str().expect("UTF-8").to_owned();
        let input = file.to_str().expect("UTF-8");
        if name.starts_with("fsimage_") && !name.ends_with(".md5") {
            cluster.client.ok(&["oiv", "-p", "XML", "-i", input, "-o", out]);
            let xml = std::fs::read_to_string(&output).expect("oiv wrote");
            assert!(xml.trim_end().ends_with("</fsimage>"), "{name}: not to the end");
            let claimed = between(&xml, "<numInodes>", "</numInodes>");
            assert_eq!(claimed, Some(xml.matches("<inode>").count().to_string()), "{name}");
            images += 1;
        } else if name.starts_with("edits_") {
            cluster.client.ok(&["oev", "-p", "xml", "-i", input, "-o", out]);
            let xml = std::fs::read_to_string(&output).expect("oev wrote");
            check_transactions(&name, &xml);
            logs += 1;
        }
    }
    assert!(images > 0 && logs > 0, "{images} images and {logs} segments");
}

/// The transactions of a segment follow each other from the first to the last that its name tells.
fn check_transactions(name: &str, xml: &str) {
    let number = |text: &str| text.parse::<u64>().expect("a transaction id");
    let ids: Vec<u64> = xml.split("<TXID>").skip(1).map(|rest| number(&rest[..rest.find('<').expect("XML")])).collect();
    let range: Vec<u64> = name.split(['_', '-']).filter_map(|part| part.parse().ok()).collect();
    let Some(&first) = range.first() else { panic!("{name}: no transaction id in the name") };
    let last = *ids.last().unwrap_or_else(|| panic!("{name}: empty"));
    assert_eq!(ids, (first..=last).collect::<Vec<_>>(), "{name}");
    assert!(range.len() == 1 || range[1] == last, "{name} ends with {last}");
}

fn between(text: &str, open: &str, close: &str) -> Option<String> {
    let from = text.find(open)? + open.len();
    Some(text[from..from + text[from..].find(close)?].to_owned())
}

fn name_folder(cluster: &Cluster) -> PathBuf {
    cluster.work.join("name/current")
}

/// The files of a folder in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}

/// Java works on the directory between a checkpoint of ours and our next start, with and without an image of its own: the memory that was written
/// down is not what there is any more.
#[test]
fn java_runs_between_a_checkpoint_and_a_restart() {
    if Kind::under_test() == Kind::Java {
        return crate::support::skip("Java has no arena files");
    }
    let _turn = cluster_turn();
    let settings = [("dfs.namenode.checkpoint.txns", "10"), ("dfs.namenode.checkpoint.check.period", "1")];
    let Some(mut cluster) = Cluster::start("between", Kind::Ironroot, 1, &settings) else { return };
    for (round, saves) in [false, true].into_iter().enumerate() {
        for n in 0..15 {
            cluster.client.ok(&["dfs", "-mkdir", "-p", &format!("/ours{round}/{n}")]);
        }
        let arena = || files(&name_folder(&cluster)).iter().any(|path| path.to_string_lossy().contains("/arena_"));
        crate::support::work::wait_until(Duration::from_secs(60), "a checkpoint was made", arena);
        cluster.stop_namenode();
        cluster.start_namenode(Kind::Java);
        cluster.client.ok(&["dfs", "-mkdir", "-p", &format!("/theirs{round}/a")]);
        cluster.client.ok(&["dfs", "-rm", "-r", "-skipTrash", &format!("/ours{round}/3")]);
        if saves {
            checkpoint(&cluster);
        }
        let tree = cluster.client.ok(&["api", "tree", "/"]);
        cluster.stop_namenode();
        cluster.start_namenode(Kind::Ironroot);
        assert_eq!(cluster.client.ok(&["api", "tree", "/"]), tree, "saves: {saves}");
    }
}
