//! Images for others: a real SecondaryNameNode makes a checkpoint of ours, and an administrator fetches an image.
use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::Kind;
use crate::support::work::free_port;

#[test]
fn a_secondary_name_node_makes_a_checkpoint() {
    let _turn = cluster_turn();
    let kind = Kind::under_test();
    let settings = [("dfs.namenode.checkpoint.period", "1"), ("dfs.namenode.num.checkpoints.retained", "5")];
    let Some(mut cluster) = Cluster::start("secondary", kind, 0, &settings) else { return };
    cluster.client.ok(&["dfs", "-mkdir", "-p", "/a/b"]);
    let mut site = cluster.site.copy_to(cluster.work.join("secondary-conf"));
    site.set("dfs.namenode.checkpoint.dir", format!("file://{}", cluster.work.join("secondary").display()));
    site.set("dfs.namenode.secondary.http-address", format!("127.0.0.1:{}", free_port()));
    site.write();
    for round in 0..2 {
        cluster.client.ok(&["dfs", "-touchz", &format!("/a/b/{round}")]);
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        let mut java = cluster.hadoop.java(&site, "512m", "INFO");
        java.args(["org.apache.hadoop.hdfs.server.namenode.SecondaryNameNode", "-checkpoint", "force"]);
        let output = java.output().expect("java");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{text}", output.status);
        let current = cluster.work.join("name/current");
        let mut images: Vec<String> = std::fs::read_dir(&current)
            .expect("the name directory")
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("fsimage_") && !name.ends_with(".md5"))
            .collect();
        images.sort();
        assert_eq!(images.len(), round + 2, "{images:?}\n{text}");
        let newest = images.last().expect("images");
        let theirs = std::fs::read(cluster.work.join("secondary/current").join(newest)).expect("the same image there");
        assert!(std::fs::read(current.join(newest)).expect("the image") == theirs);
        let fetched = cluster.work.join("fetched");
        std::fs::create_dir_all(&fetched).expect("a folder");
        cluster.client.ok(&["dfsadmin", "-fetchImage", fetched.to_str().expect("UTF-8")]);
        assert!(std::fs::read(fetched.join(newest)).expect("the fetched image") == theirs);
    }
    // the image that came is what the next start loads
    cluster.stop_namenode();
    cluster.start_namenode(kind);
    let listing = cluster.client.ok(&["dfs", "-ls", "-R", "-C", "/"]);
    assert_eq!(listing, "/a\n/a/b\n/a/b/0\n/a/b/1\n");
}
