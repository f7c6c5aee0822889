//! Renames: the old call, which answers false, and the new one, which raises.
use super::client::{Client, refused};
use super::fixture::shared;
use super::write;

fn tree(client: &Client, root: &str) {
    for folder in ["d", "d/sub", "e", "full/x", "full2/x"] {
        assert!(client.mkdirs(&format!("{root}/{folder}")).expect("mkdirs"));
    }
    for file in ["f", "g"] {
        client.touch(&format!("{root}/{file}")).expect("create");
    }
}

/// apache/iceberg#1559, spotify/snakebite#30.
#[test]
fn t09_old_rename_reports_refusals_as_false() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    tree(&client, "/t09");
    let rename =
        |src: &str, dst: &str| client.rename(&format!("/t09{src}"), &format!("/t09{dst}")).expect("no exception");
    assert!(!rename("/f", "/g"), "onto a file");
    assert!(rename("/f", "/d"), "into a directory");
    assert!(client.exists("/t09/d/f") && !client.exists("/t09/f"));
    assert!(rename("/g", "/g"), "a file onto itself");
    assert!(!rename("/none", "/x"), "no source");
    assert!(!rename("/g", "/none/x"), "no parent");
    assert!(!rename("/d", "/d/sub/x"), "into its own subtree");
    assert!(!client.rename("/", "/t09/x").expect("no exception"), "the root");
    assert!(client.exists("/t09/g") && client.exists("/t09/d/sub"));
}

/// apache/iceberg#1559: commits rest on it.
#[test]
fn t09_of_racing_renames_onto_one_name_exactly_one_succeeds() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    for round in 0..20 {
        let racers: Vec<_> = (0..4)
            .map(|racer| {
                let file = format!("/t09-race/{round}-{racer}");
                client.touch(&file).expect("create");
                let client = node.superuser();
                std::thread::spawn(move || {
                    client.rename(&file, &format!("/t09-race/final-{round}")).expect("no exception")
                })
            })
            .collect();
        let won = racers.into_iter().filter_map(|racer| racer.join().expect("no panic").then_some(())).count();
        assert_eq!(won, 1, "round {round}");
    }
}

/// jacobstanley/hadoop-tools#14.
#[test]
fn t10_new_rename_raises_and_overwrites_only_what_it_may() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    tree(&client, "/t10");
    let rename = |src: &str, dst: &str, over: bool| client.rename2(&format!("/t10{src}"), &format!("/t10{dst}"), over);
    refused(rename("/f", "/g", false), "org.apache.hadoop.fs.FileAlreadyExistsException", "");
    refused(
        rename("/full", "/full2", true),
        "java.io.IOException",
        "rename destination directory is not empty: /t10/full2",
    );
    rename("/full", "/e", true).expect("onto an empty directory");
    assert!(client.exists("/t10/e/x"));
    refused(rename("/f", "/f", true), "org.apache.hadoop.fs.FileAlreadyExistsException", "");
    refused(rename("/f", "/d", true), "java.io.IOException", "must both be");
    refused(rename("/f", "/none/x", false), "java.io.FileNotFoundException", "");
    refused(rename("/f", "/g/x", false), "ParentNotDirectoryException", "");
    refused(rename("/none", "/x", false), "java.io.FileNotFoundException", "");
    assert!(client.exists("/t10/f") && client.exists("/t10/g"));
}

/// jacobstanley/hadoop-tools#14: what was overwritten is deleted on the DataNodes.
#[test]
fn t10_blocks_of_an_overwritten_file_are_sent_for_deletion() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    let mut datanode = node.datanode();
    let old = write(&client, &mut datanode, "/t10-over/old", &[1000]);
    client.touch("/t10-over/new").expect("create");
    client.rename2("/t10-over/new", "/t10-over/old", true).expect("rename2");
    assert_eq!(client.status("/t10-over/old").length, 0);
    datanode.wait_for_invalidation(old[0].block_id);
}
