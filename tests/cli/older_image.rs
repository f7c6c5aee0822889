//! The newest image is bad in every directory.

use super::Case;
use crate::support::namenode::{Kind, NameNode};
use crate::support::skip;
use crate::trials::client::Client;
use std::fs;
use std::path::PathBuf;

impl Case {
    fn image(&self, txid: u64) -> PathBuf {
        self.name().join(format!("current/fsimage_{txid:019}"))
    }
    fn connected(&self) -> Client {
        let authority = self.site.get("fs.defaultFS");
        let port = authority.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Client::connect(port, "hdfs")
    }
}

#[test]
fn an_older_image_with_all_edits_is_started_from() {
    if Kind::under_test() == Kind::Java {
        return skip("Java gives up with the newest image");
    }
    let case = Case::formatted("older-image");
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.connected().mkdirs("/a/below").expect("mkdirs"));
    node.stop();
    // an image that ends in the middle, with the digest of what it should have been
    let whole = fs::read(case.image(0)).expect("readable");
    fs::write(case.image(2), &whole[..whole.len() / 2]).expect("writable");
    let digest = fs::read_to_string(case.image(0).with_extension("md5")).expect("readable");
    let names = [0, 2].map(|txid| format!("fsimage_{txid:019}"));
    fs::write(case.image(2).with_extension("md5"), digest.replace(&names[0], &names[1])).expect("writable");

    let edits = fs::read_dir(case.name().join("current")).expect("readable").map(|e| e.expect("entry").path());
    let first = edits.into_iter().find(|p| p.to_string_lossy().contains("edits_0000000000000000001-")).expect("edits");
    let aside = case.name().join("aside");
    fs::rename(&first, &aside).expect("renamed");
    case.run(&[]).expect(1, "is corrupt with MD5 checksum of");
    fs::rename(&aside, &first).expect("renamed");

    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.connected().exists("/a/below"));
    let log = fs::read_to_string(case.site.folder().join("namenode.log")).expect("a log");
    assert!(log.contains("STARTED FROM THE OLDER IMAGE for txid 0"), "{log}");
    node.stop();
    // a whole image was saved at once, so that the next start needs neither
    let node = NameNode::start(Kind::under_test(), &case.site);
    assert!(case.connected().exists("/a/below"));
    let log = fs::read_to_string(case.site.folder().join("namenode.log")).expect("a log");
    let last = log.rsplit("Starting NameNode").next().expect("a start");
    assert!(last.contains("Loaded image for txid") && !last.contains("OLDER IMAGE"), "{last}");
    node.stop();
}
