//! `-upgrade` of directories of this layout and of one of before transaction ids, and `-rollback`.
use super::{Case, files};
use crate::support::hadoop::SUPERUSER;
use crate::support::namenode::{Kind, NameNode};
use crate::support::work::wait_until;
use crate::trials::client::Client;
use std::time::Duration;

const UNDONE: &str = "Cannot rollback. None of the storage directories contain previous fs state.";

#[test]
fn an_upgrade_is_rolled_back_when_that_is_confirmed() {
    let case = Case::formatted("rollback");
    let before = files(&case.name());
    let none = case.run_with(&["-rollback"], "Y\n");
    none.expect(1, UNDONE);
    assert!(none.stderr.contains("This action is permanent and cannot be undone."), "{}", none.stderr);
    case.run(&["-upgradeOnly"]).expect(0, "Starting upgrade of local storage directories.");
    assert!(case.name().join("previous/VERSION").exists());
    let version = |folder: &str| std::fs::read_to_string(case.name().join(folder).join("VERSION")).expect("VERSION");
    let ctime = |text: String| text.lines().find(|line| line.starts_with("cTime=")).map(str::to_owned);
    assert_ne!(ctime(version("current")), ctime(version("previous")));

    let upgraded = files(&case.name());
    case.run_with(&["-rollback"], "what\nno\n").expect(1, "Rollback aborted.");
    assert_eq!(files(&case.name()), upgraded);
    let text = "previous fs state should not exist during upgrade. Finalize or rollback first.";
    case.refused(&["-upgradeOnly"], 1, text);

    case.run_with(&["-rollback"], "x\nYES\n").expect(0, "Roll back file system state? (Y or N) Invalid input: x");
    assert_eq!(files(&case.name()), before);
}

#[test]
fn a_cluster_id_is_for_directories_without_one() {
    let case = Case::formatted("clusterid");
    let before = std::fs::read_to_string(case.current("VERSION")).expect("VERSION");
    let id = before.lines().find(|line| line.starts_with("clusterID=")).expect("an id").to_owned();
    case.run(&["-upgradeOnly", "-clusterid", "mine"]).expect(0, "Ignoring given clusterid: mine");
    assert!(std::fs::read_to_string(case.current("VERSION")).expect("VERSION").contains(&id));
}

#[test]
fn names_are_not_changed_yet() {
    let case = Case::formatted("reserved");
    // directories of layouts with snapshots hold no such names
    case.run(&["-upgradeOnly", "-renameReserved", ".snapshot=.old"])
        .expect(0, "Starting upgrade of local storage directories.");
    for (pairs, text) in [
        ("foo", "Could not parse key-value pair foo"),
        ("a=b", "Unknown reserved path a"),
        (".snapshot=a/b", "Invalid rename path for .snapshot: a/b"),
    ] {
        case.refused(&["-upgrade", "-renameReserved", pairs], 1, text);
    }
    let old = Case::new("reserved-old");
    of_release_1(&old, &[]);
    old.refused(&["-upgrade", "-renameReserved"], 1, "The option -renameReserved is not supported yet");
}

/// A name directory as releases 1.x left it (layout -32): an empty file system, and these bytes of a log after it.
fn of_release_1(case: &Case, log: &[u8]) {
    let current = case.name().join("current");
    std::fs::create_dir_all(&current).expect("folder");
    let put = |name: &str, bytes: &[u8]| std::fs::write(current.join(name), bytes).expect("file");
    put("VERSION", b"namespaceID=77\ncTime=0\nstorageType=NAME_NODE\nlayoutVersion=-32\n");
    put("fstime", &1i64.to_be_bytes());
    let layout = (-32i32).to_be_bytes();
    let mut image = [&layout[..], &77i32.to_be_bytes(), &1i64.to_be_bytes(), &1_000i64.to_be_bytes()].concat();
    image.extend([0; 2 + 2 + 8 + 8 + 8]); // the root's name, replication, times, block size
    image.extend((-1i32).to_be_bytes());
    image.extend([i64::MAX.to_be_bytes(), (-1i64).to_be_bytes()].concat());
    image.extend(*b"\x04root\x0asupergroup\x01\xed");
    image.extend([0; 4 + 4 + 4 + 4 + 4]); // no open files, keys, tokens
    put("fsimage", &image);
    put("edits", &[&layout[..], log, &[0xff; 64]].concat());
}

/// OP_ADD (0) or OP_CLOSE (9) of `/f` in that layout, with the blocks (id, length) so far.
fn file_record(opcode: u8, blocks: &[(i64, i64)]) -> Vec<u8> {
    let mut record = vec![opcode, 0, 0, 0, 5];
    let text = |record: &mut Vec<u8>, text: &str| {
        record.extend((text.len() as u16).to_be_bytes());
        record.extend(text.as_bytes());
    };
    for value in ["/f", "1", "1326159496259", "1326159496259", "4096"] {
        text(&mut record, value);
    }
    record.extend((blocks.len() as u32).to_be_bytes());
    for (id, length) in blocks {
        record.extend([*id, *length, 1_001].map(i64::to_be_bytes).concat());
    }
    record.extend(*b"\x04root\x0asupergroup\x01\xa4");
    if opcode == 0 {
        text(&mut record, "client");
        text(&mut record, "host");
    }
    record
}

#[test]
fn closed_files_are_closed_again_in_old_logs() {
    let mut case = Case::new("release-1");
    case.site.set("dfs.namenode.safemode.threshold-pct", "0");
    let appended = [(-5, 100), (7, 50)];
    let log = [file_record(0, &[]), file_record(9, &appended[..1]), file_record(9, &appended)].concat();
    of_release_1(&case, &log);
    let port: u16 = case.site.get("fs.defaultFS").rsplit(':').next().and_then(|port| port.parse().ok()).expect("port");
    for options in [&["-upgrade"][..], &[]] {
        let namenode = NameNode::launch(Kind::under_test(), &case.site, options);
        let active = || namenode.jmx("NameNodeStatus", "State").is_some_and(|state| state == "active");
        wait_until(Duration::from_secs(30), "it was active", active);
        let client = Client::connect(port, SUPERUSER);
        let status = client.status("/f");
        assert_eq!((status.length, status.file_id()), (150, 16_387), "the root's record has taken the first id");
        let found = client.block_locations("/f").expect("locations").expect("a file");
        let blocks: Vec<(i64, i64)> =
            found.blocks.iter().map(|block| (block.b.block_id as i64, block.b.num_bytes() as i64)).collect();
        assert_eq!((blocks, found.under_construction), (appended.to_vec(), false));
        namenode.stop();
    }
}
