//! `-format` and the options that need no running NameNode.
use super::{Case, files};
use crate::support::namenode::{Kind, NameNode};
use std::collections::BTreeMap;

fn version(case: &Case) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(case.current("VERSION")).expect("VERSION");
    text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

#[test]
fn usage_is_no_failure() {
    let case = Case::formatted("usage");
    for words in [&["-bogus"][..], &["-genclusterid", "-bogus"], &["-metadataVersion", "x"], &["-format", "-clusterid"]]
    {
        case.refused(words, 0, "Usage: hdfs namenode [-backup] | \n\t[-checkpoint] | \n");
    }
    let help = case.run(&["-h"]);
    help.expect(0, "Usage: hdfs namenode");
    assert!(help.stdout.starts_with("Usage: hdfs namenode"), "{}", help.stdout);
}

#[test]
fn a_format_makes_what_hadoop_makes() {
    let case = Case::formatted("format");
    let names: Vec<_> = files(&case.name()).into_keys().map(|path| path.display().to_string()).collect();
    let root = case.name().display().to_string();
    let expected = ["", "/VERSION", "/fsimage_0000000000000000000", "/fsimage_0000000000000000000.md5", "/seen_txid"];
    assert_eq!(names, expected.map(|name| format!("{root}/current{name}")));
    assert_eq!(std::fs::read_to_string(case.current("seen_txid")).unwrap(), "0\n");
    let version = version(&case);
    assert_eq!(version["layoutVersion"], "-67");
    assert!(version["clusterID"].starts_with("CID-") && version["blockpoolID"].starts_with("BP-"), "{version:?}");
}

/// apache-spark-on-k8s/kubernetes-HDFS#50
#[test]
fn t66_format_over_existing_data() {
    let case = Case::formatted("reformat");
    let root = format!("Storage Directory root= {}; location= null", case.name().display());
    let question = format!("Re-format filesystem in {root} ? (Y or N) ");
    let non_interactive =
        format!("Running in non-interactive mode, and data appears to exist in {root}. Not formatting.");
    case.refused(&["-format", "-nonInteractive"], 1, &non_interactive);

    case.run(&["-format", "-force"]).expect(0, &format!("Data exists in {root}. Formatting anyway."));
    case.run(&["-format", "-force", "-clusterid", "CID-x"]).expect(0, "Formatting using clusterid: CID-x");
    assert_eq!(version(&case)["clusterID"], "CID-x");
    if Kind::under_test() == Kind::Java {
        return; // the supervisor of the tests' JVM reads the answers away; they were tried by hand
    }

    let before = files(case.work.path());
    case.run_with(&["-format"], "N\n").expect(1, &format!("{question}Format aborted in {root}"));
    case.run_with(&["-format"], "maybe\nno\n").expect(1, &format!("{question}Invalid input: maybe"));
    assert_eq!(files(case.work.path()), before);

    let old = version(&case);
    case.run_with(&["-format"], "Y\n").expect(0, &question);
    let new = version(&case);
    for id in ["clusterID", "namespaceID", "blockpoolID"] {
        assert_ne!(old[id], new[id], "{id}");
    }
}

/// An input that ends is no consent. (A Java NameNode asks for ever.)
#[test]
fn format_without_an_answer() {
    if Kind::under_test() == Kind::Ironroot {
        Case::formatted("no-answer").refused(&["-format"], 1, "Re-format filesystem in Storage Directory root= ");
    }
}

/// A Java NameNode formats under the feet of another; we do not.
#[test]
fn format_of_a_directory_in_use() {
    if Kind::under_test() == Kind::Ironroot {
        let case = Case::formatted("format-in-use");
        let node = NameNode::start(Kind::Ironroot, &case.site);
        // written a moment after it serves
        let begun = || std::fs::read_to_string(case.current("seen_txid")).is_ok_and(|text| text == "1\n");
        crate::support::work::wait_until(std::time::Duration::from_secs(10), "the segment was noted", begun);
        let before = files(&case.name());
        let text = format!("Cannot lock storage {}. The directory is already locked", case.name().display());
        case.run(&["-format", "-force"]).expect(1, &text);
        let after = files(&case.name());
        let changed = after.keys().filter(|path| before.get(*path) != after.get(*path));
        assert_eq!(changed.collect::<Vec<_>>(), Vec::<&std::path::PathBuf>::new());
        assert_eq!(before.len(), after.len());
        node.stop();
    }
}

#[test]
fn format_that_is_forbidden() {
    let mut case = Case::formatted("forbidden");
    case.site.set("dfs.reformat.disabled", "true");
    let text = "NameNode format aborted as reformat is disabled for this cluster.";
    case.refused(&["-format", "-force"], 1, text);
    case.refused(&["-format", "-nonInteractive"], 1, text);
    case.site.set("dfs.namenode.support.allow.format", "false");
    let text =
        "The option dfs.namenode.support.allow.format is set to false for this filesystem, so it cannot be formatted.";
    case.refused(&["-format", "-force"], 1, text);
}

#[test]
fn metadata_version() {
    let case = Case::new("metadata");
    case.refused(&["-metadataVersion"], 1, &case.current("VERSION").display().to_string());
    case.run(&["-format", "-nonInteractive"]).expect(0, "");
    let before = files(case.work.path());
    let ended = case.run(&["-metadataVersion"]);
    ended.expect(0, "");
    assert_eq!(ended.stdout, "HDFS Image Version: -67\nSoftware format version: -67\n");
    assert_eq!(files(case.work.path()), before);
}

#[test]
fn cluster_ids() {
    let ended = Case::new("clusterid").run(&["-genclusterid"]);
    ended.expect(0, "Generated new cluster id: CID-");
    assert_eq!(ended.stdout, "");
}

/// What is not done yet says so and touches nothing.
#[test]
fn options_of_later_versions() {
    if Kind::under_test() == Kind::Java {
        return;
    }
    let case = Case::formatted("later");
    for option in ["-backup", "-checkpoint"] {
        case.refused(&[option], 1, &format!("The start option {option} is not supported yet."));
    }
}
