//! Records that contradict the state end a load.

use super::*;
use edit::record::RenameOption;
use vocab::StorageKind;

#[test]
fn names() {
    let mut w = World::new();
    w.mkdir("/d");
    w.file("/f", &[]);
    for path in ["/no/x", "/f/x"] {
        let record = w.mkdir_record(path);
        w.expect_mismatch(&record);
        let add = w.add_record(path, vec![]);
        w.expect_mismatch(&Record::Add(Box::new(add)));
    }
    let add = w.add_record("/d", vec![]);
    w.expect_mismatch(&Record::Add(Box::new(add)));
    for inode_id in [InodeId(0), InodeId::ROOT] {
        let add = AddClose { inode_id, ..w.add_record("/new", vec![]) };
        w.expect_mismatch(&Record::Add(Box::new(add)));
    }
    let rename = |src: &'static str, dst: &'static str, options| Record::Rename {
        src: src.as_bytes().into(),
        dst: dst.as_bytes().into(),
        time: TimeMs(1),
        options,
        rpc: None,
    };
    w.expect_mismatch(&rename("/nope", "/x", vec![RenameOption::None]));
    w.expect_mismatch(&rename("/f", "/no/x", vec![RenameOption::None]));
    w.file("/g", &[]);
    w.expect_mismatch(&rename("/f", "/g", vec![RenameOption::None]));
    w.expect_mismatch(&rename("/d", "/d/below", vec![RenameOption::None]));
    w.apply(&rename("/f", "/g", vec![RenameOption::Overwrite]));
}

#[test]
fn closes() {
    let mut w = World::new();
    w.mkdir("/d");
    w.expect_mismatch(&World::close_record("/nope", &[]));
    w.expect_mismatch(&World::close_record("/d", &[]));
    w.file("/f", &[]);
    assert_eq!(w.expect_mismatch(&World::close_record("/f", &[])), "File is not under construction: /f");
}

/// T60: a close that disagrees on a generation stamp.
#[test]
fn t60_close_that_disagrees_on_a_generation_stamp() {
    let mut w = World::new();
    w.open("/f", &[block(11, 1001, 5), block(12, 1002, 5)]);
    let text = w.expect_mismatch(&World::close_record("/f", &[block(11, 1009, 5), block(12, 1002, 5)]));
    assert_eq!(
        text,
        "Mismatched block IDs or generation stamps, attempting to replace block blk_11_1001 with blk_11_1009 as block # 0/2 of /f"
    );
    w.expect_mismatch(&World::close_record("/f", &[block(13, 1001, 5), block(12, 1002, 5)]));
    w.apply(&World::close_record("/f", &[block(11, 1001, 5), block(12, 1007, 5)]));
    assert_eq!(w.blocks("/f")[1], block(12, 1007, 5));
}

#[test]
fn block_lists() {
    let mut w = World::new();
    let three = [block(1, 1, 5), block(2, 1, 5), block(3, 1, 5)];
    w.open("/f", &three);
    assert_eq!(
        w.expect_mismatch(&update_blocks("/f", &three[..1])),
        "Trying to remove more than one block from file /f"
    );
    w.expect_mismatch(&update_blocks("/nope", &three));
    w.file("/g", &[block(8, 1, 5)]);
    assert_eq!(
        w.expect_mismatch(&update_blocks("/g", &[])),
        "Trying to remove a block from file /g which is not under construction."
    );
    w.expect_mismatch(&update_blocks("/g", &[block(8, 1, 5), block(2, 1, 5)]));
    w.expect_mismatch(&add_block("/f", Some(block(2, 1, 5)), block(9, 1, 0)));
    w.expect_mismatch(&add_block("/f", Some(block(3, 9, 5)), block(9, 1, 0)));
    w.expect_mismatch(&add_block("/f", None, block(9, 1, 0)));
    w.expect_mismatch(&add_block("/f", Some(three[2]), three[0]));
    w.open("/empty", &[]);
    w.expect_mismatch(&add_block("/empty", Some(block(3, 1, 5)), block(9, 1, 0)));
    w.expect_mismatch(&add_block("/nope", None, block(9, 1, 0)));
}

#[test]
fn truncates() {
    let mut w = World::new();
    w.file("/f", &[block(1, 1, 100), block(2, 1, 50)]);
    w.expect_mismatch(&truncate("/nope", 1, None));
    w.expect_mismatch(&truncate("/f", 151, None));
    w.expect_mismatch(&truncate("/f", 120, None));
    w.expect_mismatch(&truncate("/f", 100, Some(block(2, 2, 50))));
    w.expect_mismatch(&truncate("/f", 120, Some(block(1, 2, 20))));
}

#[test]
fn attributes_of_missing_paths() {
    let mut w = World::new();
    w.file("/f", &[]);
    let path = || b"/nope"[..].into();
    for record in [
        Record::SetPermissions { path: path(), mode: 0 },
        Record::SetOwner { path: path(), user: Some("u".into()), group: None },
        Record::Times { path: path(), mtime: TimeMs(1), atime: TimeMs(1) },
        Record::SetAcl { path: path(), entries: vec![] },
        Record::SetXattr { path: path(), xattrs: vec![], given: true, rpc: None },
        Record::RemoveXattr { path: path(), xattrs: vec![], rpc: None },
        Record::SetStoragePolicy { path: path(), policy: 7 },
        Record::SetQuota { path: path(), namespace: 1, space: 1 },
        Record::SetQuota { path: b"/f"[..].into(), namespace: 1, space: 1 },
        Record::SetQuotaByKind { path: b"/f"[..].into(), kind: StorageKind::Ssd, quota: 1 },
        Record::Concat { target: path(), sources: vec![b"/f"[..].into()], time: TimeMs(1), rpc: None },
        Record::Concat { target: b"/f"[..].into(), sources: vec![path()], time: TimeMs(1), rpc: None },
        Record::ReassignLease { holder: "a".into(), path: path(), new_holder: "b".into() },
        Record::ReassignLease { holder: "a".into(), path: b"/f"[..].into(), new_holder: "b".into() },
    ] {
        w.expect_mismatch(&record);
    }
}

#[test]
fn block_ids_below_the_counter() {
    let mut w = World::new();
    let first = BlockId::LAST_RESERVED_CONTIGUOUS.0 + 1;
    w.apply(&Record::AllocateBlockId { id: first + 5 });
    assert_eq!(
        w.expect_mismatch(&Record::AllocateBlockId { id: first }),
        format!("Cannot skip to less than the current value (={}), where newValue={first}", first + 5)
    );
    w.apply(&Record::AllocateBlockId { id: first + 5 });
    w.apply(&Record::AllocateBlockId { id: i64::MIN + 16 });
    assert_eq!(w.state.sequences.block_group.0, i64::MIN + 16);
}

/// Concat's sources are gone for good: one that a snapshot shows would leave nothing behind it.
#[test]
fn sources_of_concat_that_a_snapshot_shows() {
    let mut w = World::new();
    w.mkdir("/s");
    w.file("/s/x", &[block(11, 1001, 100)]);
    w.file("/s/y", &[block(12, 1002, 100)]);
    let root = || b"/s"[..].into();
    w.apply(&Record::AllowSnapshot { root: root() });
    w.apply(&Record::CreateSnapshot { root: root(), name: b"s1"[..].into(), mtime: Some(TimeMs(3)), rpc: None });
    w.file("/s/z", &[block(13, 1003, 100)]);
    let concat = |source: &'static [u8]| Record::Concat {
        target: b"/s/x"[..].into(),
        sources: vec![source.into()],
        time: TimeMs(4),
        rpc: None,
    };
    assert_eq!(w.expect_mismatch(&concat(b"/s/y")), "Concat: the source file /s/y is in snapshot");
    w.apply(&concat(b"/s/z"));
}
