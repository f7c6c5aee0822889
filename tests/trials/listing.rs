//! Listings: pages, order, and several directories at once.
use std::collections::BTreeSet;

use hadoop_proto::hdfs::*;

use super::client::refused;
use super::fixture::{Fixture, shared};
use super::write;

/// apache/hawq#1497, apache/opendal#1938.
#[test]
fn t12_paging_a_listing_past_the_end_and_between_names() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    for n in 0..2500 {
        client.mkdirs(&format!("/t12/p/n{n:04}")).expect("mkdirs");
    }
    let page = |after: &str, locations| {
        client.listing("/t12/p", after.as_bytes(), locations).expect("getListing").expect("a directory")
    };
    let mut after = String::new();
    for (entries, remaining) in [(1000, 1500), (1000, 500), (500, 0)] {
        let page = page(&after, false);
        assert_eq!((page.partial_listing.len(), page.remaining_entries), (entries, remaining));
        after = String::from_utf8(page.partial_listing.last().expect("not empty").path.to_vec()).expect("UTF-8");
    }
    let past = page(&after, false);
    assert_eq!((past.partial_listing.len(), past.remaining_entries), (0, 0), "past the end");
    let between = page("n0999x", false);
    assert_eq!(between.partial_listing[0].path.as_ref(), b"n1000", "between names");
    let mut names = BTreeSet::new();
    let mut after = String::new();
    loop {
        let page = page(&after, true);
        for entry in &page.partial_listing {
            after = String::from_utf8(entry.path.to_vec()).expect("UTF-8");
            assert!(names.insert(after.clone()), "{after} twice");
        }
        if page.remaining_entries == 0 {
            break;
        }
    }
    assert_eq!(names.len(), 2500, "with locations");
    client.mkdirs("/t12/empty").expect("mkdirs");
    let empty = client.listing("/t12/empty", b"", false).expect("getListing").expect("a directory");
    assert_eq!((empty.partial_listing.len(), empty.remaining_entries), (0, 0));
    assert!(client.listing("/t12/missing", b"", false).expect("no exception").is_none());
}

/// Names of one directory in HDFS's order: bytes compared as signed numbers.
const ORDERED: [&str; 6] = ["\u{e9}", "\u{4e2d}", "\u{1f600}", "Z", "a", "~"];

/// Azure/azure-data-lake-store-java#37: the like of it elsewhere.
#[test]
fn t14_order_of_names_that_are_not_ascii() {
    let Some(mut fixture) = Fixture::start("t14", &[("dfs.ls.limit", "2")]) else { return };
    let client = fixture.superuser();
    for name in ["Z", "a", "~", "\u{e9}", "\u{4e2d}", "\u{1f600}"] {
        client.mkdirs(&format!("/o/{name}")).expect("mkdirs");
    }
    assert_eq!(client.names("/o"), ORDERED, "while it runs");
    client.save_namespace();
    fixture.restart();
    assert_eq!(fixture.superuser().names("/o"), ORDERED, "after an image was loaded");
}

/// apache/hadoop#1725 (comment of 2022-12): completeness is what counts.
#[test]
fn t15_batched_listing_of_large_directories_is_complete() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    for n in 0..1200 {
        client.touch(&format!("/t15/d1/f{n:04}")).expect("create");
    }
    write(&client, &mut node.datanode(), "/t15/d2/g", &[100]);
    let paths: Vec<String> = ["/t15/d1", "/t15/missing", "/t15/d2"].map(str::to_owned).into();
    let (mut names, mut missing, mut after) = (BTreeSet::new(), 0, Vec::new().into());
    loop {
        let request = GetBatchedListingRequestProto { paths: paths.clone(), start_after: after, need_location: true };
        let page: GetBatchedListingResponseProto = client.call("getBatchedListing", &request).expect("no exception");
        for listing in &page.listings {
            if let Some(exception) = &listing.exception {
                assert_eq!((listing.parent_idx, exception.class_name.as_str()), (1, "java.io.FileNotFoundException"));
                missing += 1;
            }
            for entry in &listing.partial_listing {
                let name = format!("{}/{}", listing.parent_idx, String::from_utf8_lossy(&entry.path));
                assert!(names.insert(name.clone()), "{name} twice");
            }
        }
        if !page.has_more {
            break;
        }
        after = page.start_after;
    }
    assert_eq!((names.len(), missing), (1201, 1));
    assert!(names.contains("2/g"));
}

/// apache/arrow#3209, #1552, #3123.
#[test]
fn t13_missing_paths_are_absent_or_an_error_by_call() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    client.mkdirs("/t13/d").expect("mkdirs");
    client.touch("/t13/f").expect("create");
    let missing = "/t13/nope";
    assert!(client.file_info(missing).expect("getFileInfo").is_none());
    assert!(client.listing(missing, b"", false).expect("getListing").is_none());
    let link: GetFileLinkInfoResponseProto =
        client.call("getFileLinkInfo", &GetFileLinkInfoRequestProto { src: missing.into() }).expect("getFileLinkInfo");
    assert!(link.fs.is_none());
    assert!(!client.delete(missing, true).expect("delete"));
    assert!(!client.set_replication(missing, 2).expect("setReplication"));
    let absent = "File does not exist: /t13/nope";
    refused(client.block_locations(missing), "java.io.FileNotFoundException", absent);
    refused(client.content_summary(missing), "java.io.FileNotFoundException", absent);
    refused(client.is_file_closed(missing), "java.io.FileNotFoundException", absent);
    let acl = |src: &str| {
        let request = GetAclStatusRequestProto { src: src.into() };
        client.call::<GetAclStatusResponseProto>("getAclStatus", &request)
    };
    refused(acl(missing), "java.io.FileNotFoundException", "cannot find /t13/nope");
    assert_eq!(acl("/t13/d").expect("getAclStatus").result.owner, "hdfs");
    let not_a_file = "Path is not a file: /t13/d";
    refused(client.block_locations("/t13/d"), "java.io.FileNotFoundException", not_a_file);
    refused(client.is_file_closed("/t13/d"), "java.io.FileNotFoundException", not_a_file);
    assert!(!client.set_replication("/t13/d", 2).expect("setReplication"));
    assert_eq!(client.content_summary("/t13/d").expect("getContentSummary").directory_count, 1);
    // below a file: nothing there for the superuser, a refusal for others
    let below = client.file_info("/t13/f/x");
    let alice = node.client("alice").file_info("/t13/f/x");
    refused(alice, "AccessControlException", "/t13/f (is not a directory)");
    assert!(below.is_ok_and(|status| status.is_none()));
}
