//! Starts that succeed, and starts that are refused.
use super::{Case, files};
use crate::support::namenode::{Kind, NameNode};
use crate::support::work::free_port;
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

/// Both ports can be bound again.
fn ports_are_free(case: &Case) {
    for key in ["fs.defaultFS", "dfs.namenode.http-address"] {
        let place = case.site.get(key).trim_start_matches("hdfs://");
        TcpListener::bind(place).unwrap_or_else(|e| panic!("{key} {place}: {e}"));
    }
}

/// apache-spark-on-k8s/kubernetes-HDFS#49, #65; hortonworks/ansible-hortonworks#60
#[test]
fn t64_name_directory_empty_or_missing() {
    let mut case = Case::new("unformatted");
    let missing = format!(
        "Directory {} is in an inconsistent state: storage directory does not exist or is not accessible.",
        case.name().display()
    );
    case.refused(&[], 1, &missing);
    fs::create_dir(case.name()).unwrap();
    case.refused(&[], 1, "NameNode is not formatted.");
    ports_are_free(&case);
    case.run(&["-format", "-nonInteractive"]).expect(0, "");
    fs::create_dir(case.work.join("second")).unwrap();
    let both = format!("{},{}", case.uri("name"), case.uri("second"));
    case.site.set("dfs.namenode.name.dir", both);
    NameNode::start(Kind::under_test(), &case.site).stop();
    let read = |folder: &str, file: &str| fs::read(case.work.join(folder).join("current").join(file)).unwrap();
    for file in ["VERSION", "fsimage_0000000000000000000", "seen_txid"] {
        let cut = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).lines().skip(1).collect::<String>();
        assert_eq!(cut(read("name", file)), cut(read("second", file)), "{file}");
    }
    ports_are_free(&case);
}

#[test]
fn a_file_is_no_directory() {
    let case = Case::new("file");
    fs::write(case.name(), "something").unwrap();
    case.refused(&[], 1, "storage directory does not exist or is not accessible.");
}

/// bigdatafoundation/docker-hadoop#19; big-data-europe/docker-spark#78; docker/compose#229
#[test]
fn t67_default_or_unparsable_file_system_address() {
    let mut case = Case::formatted("default-fs");
    let rpc = case.site.get("fs.defaultFS").trim_start_matches("hdfs://").to_owned();
    let no_authority = "Invalid URI for NameNode address (check fs.defaultFS): file:/// has no authority.";
    case.site.set("fs.defaultFS", "file:///");
    case.refused(&[], 1, no_authority);
    case.site.set("fs.defaultFS", "hdfs://nn_1:8020");
    case.refused(&[], 1, "Does not contain a valid host:port authority: nn_1:8020");
    // an address of its own wins
    case.site.set("dfs.namenode.rpc-address", &rpc);
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(std::net::TcpStream::connect(&rpc).is_ok());
    node.stop();
}

#[test]
fn ports_in_use() {
    let mut case = Case::formatted("ports");
    let (http, rpc) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let (taken_http, taken_rpc) = (TcpListener::bind(&http).unwrap(), TcpListener::bind(&rpc).unwrap());
    case.site.set("dfs.namenode.http-address", &http).set("dfs.namenode.rpc-address", &rpc);
    case.refused(&[], 1, &format!("Port in use: {http}"));
    drop(taken_http);
    let problem = "java.net.BindException: Address already in use";
    let before = files(&case.name());
    let ended = case.run(&[]);
    ended.expect(1, "Problem binding to [");
    ended.expect(1, problem);
    if Kind::under_test() == Kind::Ironroot {
        assert_eq!(files(&case.name()), before);
    }
    drop(taken_rpc);
    NameNode::start(Kind::under_test(), &case.site).stop();
}

#[test]
fn signals_end_it_in_order() {
    let case = Case::formatted("signals");
    for (round, (signal, code)) in [("TERM", 143), ("INT", 130), ("HUP", 129)].into_iter().enumerate() {
        let mut node = NameNode::start(Kind::under_test(), &case.site);
        assert!(case.name().join("in_use.lock").exists());
        node.process().signal(signal);
        assert_eq!(node.process().wait(Duration::from_secs(20)).code(), Some(code), "{signal}");
        assert!(!case.name().join("in_use.lock").exists(), "the lock is gone");
        let first = 2 * round + 1;
        if Kind::under_test() == Kind::Ironroot {
            let segment = case.current(&format!("edits_{first:019}-{:019}", first + 1));
            assert!(segment.exists(), "the segment has its final name");
        }
        ports_are_free(&case);
    }
}

#[test]
fn a_killed_one_starts_again() {
    let case = Case::formatted("killed");
    NameNode::start(Kind::under_test(), &case.site).kill();
    assert!(case.current("edits_inprogress_0000000000000000001").exists());
    NameNode::start(Kind::under_test(), &case.site).stop();
    assert!(case.current("edits_0000000000000000001-0000000000000000001").exists());
}

#[test]
fn lock_held_elsewhere() {
    let mut case = Case::formatted("locked");
    let node = NameNode::start(Kind::under_test(), &case.site);
    let other = case.site.clone();
    case.site.set("fs.defaultFS", format!("hdfs://127.0.0.1:{}", free_port()));
    case.site.set("dfs.namenode.http-address", format!("127.0.0.1:{}", free_port()));
    let text = format!("Cannot lock storage {}. The directory is already locked", case.name().display());
    case.refused(&[], 1, &text);
    case.site = other;
    case.site.write();
    node.stop();
}

fn edit(case: &Case, file: &str, change: impl Fn(String) -> String) {
    let path = case.current(file);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, change(text)).unwrap();
}

fn without(text: &str, key: &str) -> String {
    text.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn damaged_version() {
    let case = Case::formatted("version");
    let good = fs::read_to_string(case.current("VERSION")).unwrap();
    let inconsistent = format!("Directory {} is in an inconsistent state: ", case.name().display());
    for (text, problem) in [
        (without(&good, "clusterID"), format!("{inconsistent}file VERSION has clusterID missing.")),
        (without(&good, "layoutVersion"), format!("{inconsistent}file VERSION has layoutVersion missing.")),
        (good.replace("layoutVersion=-67", "layoutVersion=-99"), "Unexpected version of storage directory".to_owned()),
        (
            good.replace("layoutVersion=-67", "layoutVersion=-63"),
            "File system image contains an old layout version -63".to_owned(),
        ),
        (good.replace("namespaceID=", "namespaceID=x"), "For input string: \"x".to_owned()),
        (good.replace("NAME_NODE", "DATA_NODE"), "Incompatible node types".to_owned()),
    ] {
        edit(&case, "VERSION", |_| text.clone());
        case.refused(&[], 1, &problem);
    }
    edit(&case, "VERSION", |_| good.clone());
    NameNode::start(Kind::under_test(), &case.site).stop();
}

#[test]
fn foreign_cluster_id() {
    let mut case = Case::formatted("foreign");
    let both = format!("{},{}", case.uri("name"), case.uri("second"));
    case.site.set("dfs.namenode.name.dir", case.uri("second"));
    case.run(&["-format", "-nonInteractive"]).expect(0, "");
    case.site.set("dfs.namenode.name.dir", both);
    let text = format!("Directory {} is in an inconsistent state: ", case.work.join("second").display());
    case.refused(&[], 1, &text);
}

#[test]
fn image_digests() {
    let case = Case::formatted("digest");
    let digest = case.current("fsimage_0000000000000000000.md5");
    let good = fs::read_to_string(&digest).unwrap();
    fs::remove_file(&digest).unwrap();
    case.refused(&[], 1, "No MD5 file found corresponding to image file");
    let other = if good.starts_with('0') { '1' } else { '0' };
    fs::write(&digest, format!("{other}{}", &good[1..])).unwrap();
    case.refused(&[], 1, "is corrupt with MD5 checksum of");
    fs::write(&digest, &good).unwrap();
    let image = case.current("fsimage_0000000000000000000");
    let bytes = fs::read(&image).unwrap();
    let mut damaged = bytes.clone();
    damaged[100] ^= 1;
    fs::write(&image, &damaged).unwrap();
    case.refused(&[], 1, "is corrupt with MD5 checksum of");
    fs::remove_file(&image).unwrap();
    case.refused(&[], 1, "No valid image files found");
    fs::write(&image, &bytes).unwrap();
    NameNode::start(Kind::under_test(), &case.site).stop();
}

#[test]
fn gap_in_edits() {
    let case = Case::formatted("gap");
    for _ in 0..3 {
        let node = NameNode::start(Kind::under_test(), &case.site);
        node.kill();
    }
    // three segments of one record each, the last one open
    let second = case.current("edits_0000000000000000002-0000000000000000002");
    let bytes = fs::read(&second).unwrap();
    fs::remove_file(&second).unwrap();
    let ended = case.run(&[]);
    ended.expect(1, "Gap in transactions. Expected to be able to read up until at least txid 3");
    fs::write(&second, bytes).unwrap();
    NameNode::start(Kind::under_test(), &case.site).stop();
}

/// What this version does not do is refused before anything is opened, and the key is named.
#[test]
fn configurations_of_later_versions() {
    if Kind::under_test() == Kind::Java {
        return;
    }
    let case = Case::formatted("later-keys");
    for (key, value, text) in [
        (
            "hadoop.security.authentication",
            "kerberos",
            "hadoop.security.authentication = kerberos is not supported yet",
        ),
        ("dfs.http.policy", "HTTPS_ONLY", "dfs.http.policy other than HTTP_ONLY is not supported yet"),
        (
            "dfs.namenode.edits.dir",
            "qjournal://a:8485;b:8485;c:8485/x",
            "qjournal://a:8485;b:8485;c:8485/x is not supported",
        ),
        ("hadoop.security.group.mapping", "org.example.Groups", "hadoop.security.group.mapping = org.example.Groups"),
    ] {
        let site = case.site.clone().with(key, value);
        let other = Case { work: crate::support::work::WorkDir::new("later-key"), site };
        let before = files(&case.name());
        other.run(&[]).expect(1, text);
        assert_eq!(files(&case.name()), before, "{key}");
        case.site.write();
    }
}

#[test]
fn keys_without_effect_are_named_once() {
    let mut case = Case::formatted("no-effect");
    if Kind::under_test() == Kind::Java {
        return;
    }
    case.site.set("dfs.namenode.missing.checkpoint.periods.before.shutdown", "4");
    case.site.set("fs.defaultFS", "file:///");
    let ended = case.run(&[]);
    assert_eq!(ended.code, Some(1));
    case.site.set("fs.defaultFS", format!("hdfs://127.0.0.1:{}", free_port()));
    let node = NameNode::start(Kind::Ironroot, &case.site);
    let log = fs::read_to_string(case.site.folder().join("namenode.log")).unwrap();
    let named = "Set, but without effect in this version: dfs.namenode.missing.checkpoint.periods.before.shutdown";
    assert_eq!(log.matches(named).count(), 1, "{log}");
    node.stop();
}
