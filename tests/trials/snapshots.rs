//! Snapshots as people found them.
use std::time::Duration;

use hadoop_proto::hdfs::*;

use super::client::{Answer, Client, refused};
use super::datanode::DataNode;
use super::fixture::{Fixture, shared};
use super::write;
use crate::support::http::jmx;
use crate::support::work::wait_until;

pub fn allow(client: &Client, root: &str) {
    let request = AllowSnapshotRequestProto { snapshot_root: root.to_owned() };
    let _: AllowSnapshotResponseProto = client.call("allowSnapshot", &request).expect("allowSnapshot");
}

fn snapshot(client: &Client, root: &str, name: &str) {
    try_snapshot(client, root, name).expect("createSnapshot");
}

pub fn try_snapshot(client: &Client, root: &str, name: &str) -> Answer<()> {
    let request = CreateSnapshotRequestProto { snapshot_root: root.to_owned(), snapshot_name: Some(name.to_owned()) };
    client.call::<CreateSnapshotResponseProto>("createSnapshot", &request).map(drop)
}

/// Entries of a report as `M path` and `R path -> target`.
fn difference(client: &Client, root: &str, from: &str, to: &str) -> Answer<Vec<String>> {
    let request = GetSnapshotDiffReportRequestProto {
        snapshot_root: root.to_owned(),
        from_snapshot: from.to_owned(),
        to_snapshot: to.to_owned(),
    };
    let answer: GetSnapshotDiffReportResponseProto = client.call("getSnapshotDiffReport", &request)?;
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let entry = |entry: &SnapshotDiffReportEntryProto| match &entry.target_path {
        Some(target) => format!("{} {} -> {}", entry.modification_label, text(&entry.fullpath), text(target)),
        None => format!("{} {}", entry.modification_label, text(&entry.fullpath)),
    };
    Ok(answer.diff_report.diff_report_entries.iter().map(entry).collect())
}

/// apache/ozone#5177, #5040.
#[test]
fn t31_snapshot_diff_rename_away_and_back() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    client.mkdirs("/t31").expect("mkdirs");
    client.touch("/t31/foo").expect("create");
    allow(&client, "/t31");
    snapshot(&client, "/t31", "s0");
    assert!(client.rename("/t31/foo", "/t31/bar").expect("rename"));
    assert!(client.rename("/t31/bar", "/t31/foo").expect("rename"));
    snapshot(&client, "/t31", "s1");
    assert_eq!(difference(&client, "/t31", "s0", "s1").expect("report"), ["M ", "R foo -> foo"]);
    assert_eq!(difference(&client, "/t31", "s0", "s0").expect("report"), [""; 0]);
    assert_eq!(difference(&client, "/t31", "", "").expect("report"), [""; 0]);
    refused(difference(&client, "/t31", "s0", "nosuch"), "SnapshotException", "nosuch");
    // away for good, into another directory, and over another file
    client.mkdirs("/t31/d").expect("mkdirs");
    client.touch("/t31/over").expect("create");
    snapshot(&client, "/t31", "s2");
    client.rename2("/t31/foo", "/t31/over", true).expect("rename2");
    assert!(client.rename("/t31/over", "/t31/d/in").expect("rename"));
    snapshot(&client, "/t31", "s3");
    let mut entries = difference(&client, "/t31", "s2", "s3").expect("report");
    entries.sort();
    assert_eq!(entries, ["- over", "M ", "M d", "R foo -> d/in"]);
}

/// Entries of all pages of a report, sorted, and the number of pages.
fn paged(client: &Client, root: &str, from: &str, to: &str) -> (Vec<String>, usize) {
    let (mut entries, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let request = GetSnapshotDiffReportListingRequestProto {
            snapshot_root: root.to_owned(),
            from_snapshot: from.to_owned(),
            to_snapshot: to.to_owned(),
            cursor,
        };
        let answer: GetSnapshotDiffReportListingResponseProto =
            client.call("getSnapshotDiffReportListing", &request).expect("getSnapshotDiffReportListing");
        let page = answer.diff_report;
        pages += 1;
        let lists = [("M", page.modified_entries), ("+", page.created_entries), ("-", page.deleted_entries)];
        for (label, list) in lists {
            entries.extend(list.iter().map(|entry| {
                let path = String::from_utf8_lossy(&entry.fullpath).into_owned();
                let target = entry.target_path.as_ref().map(|target| String::from_utf8_lossy(target).into_owned());
                format!("{label} {path} {target:?} {} {:?}", entry.is_reference, entry.file_id)
            }));
        }
        match page.cursor {
            Some(next) if !(next.start_path.is_empty() && next.index == -1) => cursor = Some(next),
            _ => break,
        }
        assert!(pages < 100, "pages without an end");
    }
    entries.sort();
    (entries, pages)
}

/// As above, the paged call: one entry a page, then all in one.
#[test]
fn t31_pages_of_a_report_hold_what_one_page_does() {
    let limit = "dfs.namenode.snapshotdiff.listing.limit";
    let Some(mut fixture) = Fixture::start("t31", &[(limit, "1")]) else { return };
    let client = fixture.superuser();
    client.mkdirs("/s").expect("mkdirs");
    for file in ["foo", "other"] {
        client.touch(&format!("/s/{file}")).expect("create");
    }
    allow(&client, "/s");
    snapshot(&client, "/s", "s0");
    assert!(client.rename("/s/foo", "/s/bar").expect("rename"));
    assert!(client.rename("/s/bar", "/s/foo").expect("rename"));
    snapshot(&client, "/s", "s1");
    client.touch("/s/more").expect("create");
    assert!(client.delete("/s/other", false).expect("delete"));
    snapshot(&client, "/s", "s2");
    let ask = |client: &Client| {
        let pairs = [("s0", "s1"), ("s0", "s2"), ("s1", "s2"), ("s2", "s0"), ("s0", "s0")];
        pairs.map(|(from, to)| paged(client, "/s", from, to))
    };
    let one_by_one = ask(&client);
    fixture.site.set(limit, 1000);
    fixture.restart();
    let at_once = ask(&fixture.superuser());
    for (small, large) in one_by_one.iter().zip(&at_once) {
        assert_eq!(small.0, large.0);
        assert_eq!(large.1, 1, "{large:?}");
        assert!(small.1 + 1 >= small.0.len(), "one entry a page: {small:?}");
    }
    assert_eq!(at_once[0].0.len(), 3, "M of the directory, and foo gone and come: {at_once:?}");
    assert!(at_once[4].0.is_empty());
}

/// apache/hadoop#5738 (HDFS-17045).
#[test]
fn t34_file_renamed_out_of_a_snapshottable_tree_can_be_deleted() {
    for restarts in [false, true] {
        let Some(mut fixture) = Fixture::start("t34", &[("dfs.namenode.safemode.extension", "0")]) else { return };
        let mut datanode = DataNode::start(fixture.port(), 1);
        let mut client = fixture.superuser();
        let step = |fixture: &mut Fixture, datanode: &mut DataNode, client: &mut Client| {
            if !restarts {
                return;
            }
            client.save_namespace();
            fixture.restart();
            datanode.reconnect(fixture.port());
            datanode.join();
            *client = fixture.superuser();
            let safe = || client.safe_mode(SafeModeActionProto::SafemodeGet).expect("setSafeMode");
            wait_until(Duration::from_secs(10), "safe mode ended", || !safe());
        };
        let blocks = |fixture: &Fixture| {
            jmx(fixture.http_port(), "FSNamesystemState", "BlocksTotal").and_then(|total| total.as_i64())
        };
        client.mkdirs("/abc").expect("mkdirs");
        client.mkdirs("/p").expect("mkdirs");
        allow(&client, "/abc");
        let written = write(&client, &mut datanode, "/abc/foo", &[1000]);
        snapshot(&client, "/abc", "s1");
        step(&mut fixture, &mut datanode, &mut client);
        assert!(client.rename("/abc/foo", "/p/bar").expect("rename"));
        step(&mut fixture, &mut datanode, &mut client);
        assert!(client.delete("/p/bar", false).expect("delete"));
        step(&mut fixture, &mut datanode, &mut client);
        assert!(!client.exists("/p/bar"));
        let past = client.block_locations("/abc/.snapshot/s1/foo").expect("getBlockLocations").expect("a file");
        assert_eq!((past.file_length, past.blocks.len()), (1000, 1));
        assert_eq!(blocks(&fixture), Some(1));
        let request = DeleteSnapshotRequestProto { snapshot_root: "/abc".to_owned(), snapshot_name: "s1".to_owned() };
        let _: DeleteSnapshotResponseProto = client.call("deleteSnapshot", &request).expect("deleteSnapshot");
        wait_until(Duration::from_secs(10), "no block is left", || blocks(&fixture) == Some(0));
        datanode.wait_for_invalidation(written[0].block_id);
        step(&mut fixture, &mut datanode, &mut client);
        assert_eq!(client.names("/p"), [""; 0]);
    }
}
