//! Encryption zones with a real key server, real clients and a real DataNode.
use std::time::Duration;

use crate::support::cluster::{Cluster, client_site};
use crate::support::cluster_turn;
use crate::support::kms::KeyServer;
use crate::support::namenode::Kind;
use crate::support::work::{WorkDir, wait_until};

/// `hdfs crypto WORDS`: what it printed, and whether it succeeded.
fn crypto(cluster: &Cluster, words: &[&str]) -> (String, bool) {
    let site = client_site(&cluster.site, cluster.work.path());
    let mut java = cluster.hadoop.java(&site, "256m", "ERROR");
    let output = java.arg("org.apache.hadoop.hdfs.tools.CryptoAdmin").args(words).output().expect("java");
    let text = [&output.stdout[..], &output.stderr].concat();
    (String::from_utf8_lossy(&text).trim().to_owned(), output.status.success())
}

#[test]
fn files_are_encrypted_in_a_zone_and_read_back() {
    let _turn = cluster_turn();
    let keeper = WorkDir::new("zones-keys");
    let Some(keys) = KeyServer::start(keeper.path()) else { return };
    let settings =
        [("hadoop.security.key.provider.path", keys.address.as_str()), ("dfs.namenode.reencrypt.sleep.interval", "1s")];
    let Some(mut cluster) = Cluster::start("zones", Kind::under_test(), 1, &settings) else { return };
    let site = client_site(&cluster.site, cluster.work.path());
    site.write();
    keys.keys(&site, &["create", "key1", "-size", "128"]);
    cluster.client.ok(&["dfs", "-mkdir", "/z", "/plain"]);
    assert_eq!(
        crypto(&cluster, &["-createZone", "-keyName", "none", "-path", "/z"]).0,
        "RemoteException: Key none doesn't exist."
    );
    let made = crypto(&cluster, &["-createZone", "-keyName", "key1", "-path", "/z"]);
    assert_eq!(made, ("Added encryption zone /z".to_owned(), true));
    assert_eq!(crypto(&cluster, &["-listZones"]).0, "/z  key1");

    let text = b"nobody reads this on a disk\n".repeat(100_000);
    let local = cluster.work.join("text");
    std::fs::write(&local, &text).expect("own folder");
    let name = local.display().to_string();
    cluster.client.ok(&["dfs", "-put", &name, "/z/text"]);
    let cat = |path: &str| {
        let output = cluster.hadoop.shell(&site).args(["-cat", path]).output().expect("java");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert!(cat("/z/text") == text, "what was put comes back");
    let raw = cat("/.reserved/raw/z/text");
    assert_eq!(raw.len(), text.len());
    assert!(!raw.windows(16).any(|bytes| bytes == &text[..16]), "nothing of it lies on the disk");
    let info = crypto(&cluster, &["-getFileEncryptionInfo", "-path", "/z/text"]).0;
    assert!(info.contains("keyName: key1, ezKeyVersionName: key1@0"), "{info}");
    let moved = cluster.client.run(&["dfs", "-mv", "/z/text", "/plain/text"]);
    assert!(moved.err.contains("/z/text can't be moved from an encryption zone."), "{moved:?}");
    cluster.client.ok(&["dfs", "-cp", "/z/text", "/z/copy"]);

    keys.keys(&site, &["roll", "key1"]);
    keys.keys(&site, &["invalidateCache", "key1"]);
    let begun = crypto(&cluster, &["-reencryptZone", "-start", "-path", "/z"]);
    assert!(begun.1, "{begun:?}");
    wait_until(Duration::from_secs(60), "the zone is re-encrypted", || {
        crypto(&cluster, &["-listReencryptionStatus"]).0.contains("Completed")
    });
    let info = crypto(&cluster, &["-getFileEncryptionInfo", "-path", "/z/text"]).0;
    assert!(info.contains("ezKeyVersionName: key1@1"), "{info}");
    assert!(cat("/z/text") == text, "and is read as before");

    cluster.stop_namenode();
    cluster.start_namenode(Kind::under_test());
    assert!(crypto(&cluster, &["-listZones"]).0.ends_with("/z  key1"));
    cluster.client.ok(&["dfs", "-put", &name, "/z/after"]);
    // a zone is as good on the Java name node
    cluster.stop_namenode();
    cluster.start_namenode(Kind::Java);
    let site = client_site(&cluster.site, cluster.work.path());
    for path in ["/z/text", "/z/after"] {
        let output = cluster.hadoop.shell(&site).args(["-cat", path]).output().expect("java");
        assert!(output.stdout == text, "{path}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
