//! Open files and their writers: leases, recovery, append, truncate, concat.

use super::*;
use crate::admin::lease_check::check_leases;
use crate::read::file_info::*;
use crate::read::summary::get_quota_usage;
use crate::status::LocatedBlocks;
use crate::write::append::{Append, Appended, RecoverLease};
use crate::write::concat::Concat;
use crate::write::create::Create;
use crate::write::pipeline::UpdateBlockForPipeline;
use crate::write::storage_policy::SetStoragePolicy;
use crate::write::truncate::Truncate;
use vocab::{GenerationStamp, StorageKind};

const ON: &str = "10.1.1.1";

impl World {
    fn append(&mut self, path: &str, client: &str, new_block: bool) -> Result<Appended, Refusal> {
        self.write(&superuser(), &Append { path: path.into(), client: client.into(), new_block })
    }
    fn recover(&mut self, path: &str, client: &str) -> Result<bool, Refusal> {
        self.write(&superuser(), &RecoverLease { path: path.into(), client: client.into() })
    }
    fn concat(&mut self, target: &str, sources: &[&str]) -> Result<(), Refusal> {
        let sources = sources.iter().map(|s| s.as_bytes().to_vec()).collect();
        self.write(&superuser(), &Concat { target: target.into(), sources })
    }
    fn truncate(&mut self, path: &str, new_length: i64) -> Result<bool, Refusal> {
        self.truncate_as(path, new_length, false)
    }
    fn truncate_as(&mut self, path: &str, new_length: i64, keeps_blocks: bool) -> Result<bool, Refusal> {
        self.write(&superuser(), &Truncate { path: path.into(), new_length, client: "cutter".into(), keeps_blocks })
    }
    fn located(&self, path: &str) -> (u64, LocatedBlocks) {
        let who = superuser();
        self.view(&who, |v| {
            let (status, located) = get_located_file_info(v, path.as_bytes()).unwrap().unwrap();
            (status.length, located.unwrap())
        })
    }
    fn lengths(&self, path: &str) -> Vec<u64> {
        self.located(path).1.blocks.iter().map(|b| b.located.block.length).collect()
    }
    fn closed(&self, path: &str) -> bool {
        let who = superuser();
        self.view(&who, |v| is_file_closed(v, path.as_bytes()).unwrap())
    }
    /// The primary of a recovery tells its end.
    fn recovered(&mut self, block: Block, new_stamp: GenerationStamp, new_length: u64) -> Result<(), Refusal> {
        let commit = crate::datanode::CommitBlockSynchronization {
            pool: "BP-1".into(),
            block,
            new_stamp,
            new_length,
            close_file: true,
            delete_block: false,
            targets: vec![(self.registration(1).id, "DS-1".into())],
        };
        self.turn(&superuser(), |t| commit.run(t))
    }
    fn recovery_order(&mut self, n: u32) -> Option<Recovery> {
        self.beat(n)
            .into_iter()
            .find_map(|c| if let Command::Recover(list) = c { list.into_iter().next() } else { None })
    }
}

/// T01: concat onto a target that has no blocks.
#[test]
fn t01_concat_onto_a_target_without_blocks() {
    let mut w = World::with_datanodes(1);
    w.write_file("/c/s1", &[10]);
    w.write_file("/c/s2", &[20]);
    w.create("/c/t");
    w.concat("/c/t", &["/c/s1", "/c/s2"]).unwrap();
    assert_eq!(w.lengths("/c/t"), [10, 20]);
    assert!(!w.exists("/c/s1") && !w.exists("/c/s2"));
    let now = w.now.wall;
    let who = superuser();
    w.view(&who, |v| {
        for path in [&b"/c/t"[..], b"/c"] {
            assert_eq!(get_file_info(v, path).unwrap().unwrap().mtime, now);
        }
    });
    w.restart();
    assert_eq!(w.lengths("/c/t"), [10, 20]);
}

/// T02: concat preconditions, one by one.
#[test]
fn t02_concat_preconditions() {
    let mut w = World::with_datanodes(1);
    w.write_file("/c/t", &[5]);
    w.write_file("/c/s", &[10]);
    w.write_file("/d/other", &[10]);
    w.create("/c/empty");
    w.open("/c/open", "c");
    let op = Create { block_size: 2 * MIB, ..World::create_op("/c/large", "writer") };
    let id = w.write(&superuser(), &op).unwrap().id;
    let block = w.add_block("/c/large", id, "writer", None).unwrap().located.block;
    let block = Block { length: 7, ..block };
    w.received(1, block);
    assert_eq!(w.complete("/c/large", id, "writer", Some(block)), Ok(true));
    let before = w.logged();
    for (target, sources) in [
        ("/c/open", &["/c/s"][..]),
        ("/c/t", &["/c/empty"]),
        ("/c/t", &["/c/open"]),
        ("/c/t", &["/c/s", "/c/s"]),
        ("/c/t", &["/c/t"]),
        ("/c/t", &["/d/other"]),
        ("/c/t", &["/c/large"]),
    ] {
        let refused = w.concat(target, sources);
        assert!(matches!(refused, Err(Refusal::HadoopIllegalArgument(_))), "{sources:?}: {refused:?}");
    }
    assert_eq!(w.concat("/c/t", &[]), Err(Refusal::IllegalArgument("No sources given".into())));
    assert!(matches!(w.concat("/.reserved/raw/c/t", &["/c/s"]), Err(Refusal::Io(_))));
    assert_eq!(w.logged(), before);
    let small = Create { replication: 1, ..World::create_op("/c/small", "writer") };
    let id = w.write(&superuser(), &small).unwrap().id;
    let block = Block { length: 3, ..w.add_block("/c/small", id, "writer", None).unwrap().located.block };
    w.received(1, block);
    w.complete("/c/small", id, "writer", Some(block)).unwrap();
    assert_eq!(w.concat("/c/t", &["/c/small"]), Ok(()), "another replication is accepted");
}

/// T03: append while another client, or the same one, holds the lease.
#[test]
fn t03_append_while_the_lease_is_held() {
    let mut w = World::new();
    w.open("/l/f", "A");
    let refused = |text: &str| Refusal::AlreadyBeingCreated(text.into());
    assert_eq!(
        w.append("/l/f", "B", false),
        Err(refused(&format!(
            "Failed to APPEND_FILE /l/f for B on {ON} because this file lease is currently owned by A on {ON}"
        )))
    );
    assert_eq!(
        w.append("/l/f", "A", false),
        Err(refused(&format!(
            "Failed to APPEND_FILE /l/f for A on {ON} because A is already the current lease holder."
        )))
    );
    assert_eq!(
        w.write(&superuser(), &World::create_op("/l/f", "B")).map(|s| s.id),
        Err(refused(&format!(
            "Failed to CREATE_FILE /l/f for B on {ON} because this file lease is currently owned by A on {ON}"
        )))
    );
}

/// T04: append after the soft limit starts recovery, then tells others to wait.
#[test]
fn t04_append_after_the_soft_limit() {
    let mut w = World::with_datanodes(1);
    let id = w.open("/l/g", "A");
    let block = w.add_block("/l/g", id, "A", None).unwrap().located.block;
    w.receiving(1, block);
    w.pass(61_000);
    w.beat(1);
    let refused = |text: String| Err(Refusal::RecoveryInProgress(text.into()));
    assert_eq!(
        w.append("/l/g", "B", false),
        refused(format!(
            "Failed to APPEND_FILE /l/g for B on {ON} because lease recovery is in progress. Try again later."
        ))
    );
    let order = w.recovery_order(1).expect("a recovery command");
    assert!(order.recovery_id > block.stamp.0);
    assert_eq!(
        w.append("/l/g", "B", false),
        refused(format!(
            "Failed to APPEND_FILE /l/g for B on {ON} because another recovery is in progress by A on {ON}"
        ))
    );
    w.recovered(block, GenerationStamp(order.recovery_id), 100).unwrap();
    assert!(w.closed("/l/g"));
    let stamped = Block { length: 100, stamp: GenerationStamp(order.recovery_id), ..block };
    w.received(1, stamped);
    let appended = w.append("/l/g", "B", false).unwrap();
    assert_eq!((appended.status.length, appended.last.unwrap().located.block.length), (100, 100));
}

/// T05: recoverLease and isFileClosed answers.
#[test]
fn t05_recover_lease_and_is_file_closed() {
    let mut w = World::with_datanodes(1);
    w.create("/r/closed");
    assert_eq!(w.recover("/r/closed", "B"), Ok(true));
    w.open("/r/empty", "A");
    assert_eq!(w.recover("/r/empty", "B"), Ok(true));
    assert!(w.closed("/r/empty"));
    let id = w.open("/r/open", "A");
    let block = w.add_block("/r/open", id, "A", None).unwrap().located.block;
    assert_eq!(w.recover("/r/open", "B"), Ok(false));
    assert!(!w.closed("/r/open"));
    let order = w.recovery_order(1).expect("a recovery command");
    w.recovered(block, GenerationStamp(order.recovery_id), 9).unwrap();
    assert!(w.closed("/r/open"));
    assert_eq!(w.recover("/r/open", "B"), Ok(true));
    assert_eq!(w.recover("/r/none", "B"), Err(Refusal::not_found("File does not exist: /r/none")));
    assert_eq!(w.recover("/r", "B"), Err(Refusal::not_found("Path is not a file: /r")));
}

/// T21: append to a partial block, or into a new block.
#[test]
fn t21_append_to_a_partial_block_or_a_new_one() {
    let mut w = World::with_datanodes(1);
    w.write_file("/a/f", &[MIB, MIB / 2]);
    let appended = w.append("/a/f", "B", false).unwrap();
    let last = appended.last.unwrap();
    assert_eq!((last.offset, last.located.block.length, last.located.locations.len()), (MIB, MIB / 2, 1));
    assert_eq!(appended.status.length, MIB + MIB / 2);
    let block = last.located.block;
    assert_eq!(w.complete("/a/f", appended.status.id, "B", Some(block)), Ok(true));
    let appended = w.append("/a/f", "C", true).unwrap();
    let id = appended.status.id;
    assert!(appended.last.as_ref().unwrap().located.locations.is_empty());
    let next = w.add_block("/a/f", id, "C", Some(block)).unwrap();
    let next = Block { length: MIB, ..next.located.block };
    w.received(1, next);
    assert_eq!(w.complete("/a/f", id, "C", Some(next)), Ok(true));
    let check = |w: &World| {
        let (length, located) = w.located("/a/f");
        assert_eq!(length, 2 * MIB + MIB / 2);
        assert_eq!(located.blocks.iter().map(|b| b.offset).collect::<Vec<_>>(), [0, MIB, MIB + MIB / 2]);
    };
    check(&w);
    assert!(w.append("/a/f", "D", false).unwrap().last.is_none(), "a full last block");
    w.complete("/a/f", id, "D", Some(next)).unwrap();
    w.restart();
    check(&w);
}

/// Blocks with random ids of the old time are told by their stamps, so what bumps one's stamp keeps to the stamps of that time, as long as there are any:
/// beyond them a negative id would be that of a striped group.
#[test]
fn new_stamps_of_blocks_of_the_old_time_are_of_that_time() {
    let mut w = World::with_datanodes(1);
    w.checked = false;
    for path in ["/o/append", "/o/cut", "/o/recover", "/o/none"] {
        w.write_file(path, &[100]);
    }
    // as if an older release had made them
    let limit = w.state.sequences.stamp.0 + 4;
    for state in [&mut w.state, &mut w.twin.state] {
        state.sequences.stamp_v1 = state.sequences.stamp;
        state.sequences.stamp_v1_limit = GenerationStamp(limit);
        state.sequences.stamp = GenerationStamp(limit + 100);
        state.store.set_legacy_limit(GenerationStamp(limit));
    }
    let appended = w.append("/o/append", "A", false).unwrap();
    let block = appended.last.unwrap().located.block;
    let bump = |w: &mut World, block| {
        let op = UpdateBlockForPipeline { block, client: "A".into() };
        w.write(&superuser(), &op).map(|located| located.located.block.stamp.0)
    };
    assert_eq!(bump(&mut w, block), Ok(limit - 3));
    assert_eq!(w.truncate("/o/cut", 7), Ok(false));
    let order = w.recovery_order(1).expect("a recovery command");
    assert_eq!(order.recovery_id, limit - 2);
    w.recovered(order.block, GenerationStamp(order.recovery_id), 7).unwrap();
    w.append("/o/recover", "B", false).unwrap();
    assert_eq!(w.recover("/o/recover", "C"), Ok(false));
    assert_eq!(w.recovery_order(1).map(|order| order.recovery_id), Some(limit - 1));
    assert_eq!(w.truncate("/o/none", 7), Err(Refusal::OutOfLegacyStamps));
    assert!(w.closed("/o/none") && w.lengths("/o/none") == [100]);
    assert_eq!(bump(&mut w, block), Err(Refusal::OutOfLegacyStamps));
    // new blocks have new stamps
    w.write_file("/o/new", &[5]);
    assert_eq!(w.located("/o/new").1.blocks[0].located.block.stamp.0, limit + 101);
    w.check();
}

/// The rest of a last block that is written again counts by storage kind where a policy is set, and nowhere else.
#[test]
fn appends_count_by_kind_only_under_a_policy() {
    let mut w = World::with_datanodes(1);
    let disk = |w: &World| {
        let who = superuser();
        w.view(&who, |v| get_quota_usage(v, b"/").unwrap().usage.by_kind[StorageKind::Disk as usize])
    };
    w.write_file("/plain/f", &[10]);
    w.append("/plain/f", "A", false).unwrap();
    assert_eq!(disk(&w), 0);
    w.mkdirs(&superuser(), "/hot", 0o755).unwrap();
    w.write(&superuser(), &SetStoragePolicy { path: "/hot".into(), policy: Some("HOT".into()) }).unwrap();
    w.write_file("/hot/f", &[10]);
    assert_eq!(disk(&w), 3 * 10);
    w.append("/hot/f", "A", false).unwrap();
    assert_eq!(disk(&w), 3 * MIB as i64);
}

#[test]
fn truncate_at_and_within_a_block() {
    let mut w = World::with_datanodes(1);
    w.write_file("/t/f", &[MIB, MIB, 100]);
    assert_eq!(w.truncate("/t/f", 2 * MIB as i64 + 100), Ok(true), "the same length");
    assert!(matches!(w.truncate("/t/f", 3 * MIB as i64), Err(Refusal::HadoopIllegalArgument(_))));
    assert!(matches!(w.truncate("/t/f", -1), Err(Refusal::HadoopIllegalArgument(_))));
    assert_eq!(w.truncate("/t/f", 2 * MIB as i64), Ok(true));
    assert_eq!(w.lengths("/t/f"), [MIB, MIB]);
    assert_eq!(w.truncate("/t/f", MIB as i64 + 7), Ok(false));
    assert!(!w.closed("/t/f"));
    assert_eq!(w.truncate("/t/f", MIB as i64 + 7), Ok(false), "again while it runs");
    let order = w.recovery_order(1).expect("a recovery command");
    assert_eq!(order.truncate.unwrap().length, 7);
    w.recovered(order.block, GenerationStamp(order.recovery_id), 7).unwrap();
    assert_eq!(w.located("/t/f").0, MIB + 7);
    assert!(w.closed("/t/f"));
    assert_eq!(w.truncate("/t/f", 0), Ok(true));
    assert_eq!(w.lengths("/t/f"), [0u64; 0]);
}

#[test]
fn a_truncate_that_keeps_the_old_block_loses_it_only_when_the_new_one_is_made() {
    let mut w = World::with_datanodes(1);
    w.write_file("/t/f", &[MIB]);
    let old = w.located("/t/f").1.blocks[0].located.block;
    let pending = |w: &World| w.state.blocks.stats(&w.state.store, w.now.monotonic).pending_deletions;
    assert_eq!(w.truncate_as("/t/f", 7, true), Ok(false));
    assert_eq!(pending(&w), 0);
    w.received(1, old);
    assert_eq!(pending(&w), 0, "nor is it unknown");
    let order = w.recovery_order(1).expect("a recovery command");
    let new = order.truncate.unwrap();
    assert_eq!((order.block, new.length, order.locations.len()), (old, 7, 1));
    assert!(new.id != old.id);
    // in the middle the process starts again: the log tells what is made of what, and the lease is recovered
    w.restart();
    w.datanode(1);
    w.received(1, old);
    assert_eq!(pending(&w), 0);
    w.pass(1_200_001);
    w.beat(1);
    assert_eq!(w.recover("/t/f", "other"), Ok(false));
    let again = w.recovery_order(1).expect("a recovery command");
    assert_eq!((again.block, again.truncate.unwrap().id, again.locations.len()), (old, new.id, 1));
    assert_eq!(again.truncate.unwrap().stamp.0, again.recovery_id, "where a DataNode reads it");
    let nothing = crate::datanode::CommitBlockSynchronization {
        pool: "BP-1".into(),
        block: old,
        new_stamp: GenerationStamp(again.recovery_id),
        new_length: 0,
        close_file: true,
        delete_block: true,
        targets: vec![],
    };
    let refused = w.turn(&superuser(), |t| nothing.run(t));
    assert!(matches!(refused, Err(Refusal::IllegalState(_))), "the file would be closed with a block that nobody made");
    assert!(!w.closed("/t/f"));
    w.recovered(old, GenerationStamp(again.recovery_id), 7).unwrap();
    assert!(w.closed("/t/f"));
    assert_eq!(w.lengths("/t/f"), [7]);
    assert_eq!(w.located("/t/f").1.blocks[0].located.block.id, new.id);
    assert_eq!(pending(&w), 1, "now the old one goes");
}

#[test]
fn the_old_block_of_a_truncate_goes_with_its_file() {
    for how in 0..3 {
        let mut w = World::with_datanodes(1);
        w.write_file("/t/f", &[MIB]);
        let pending = |w: &World| w.state.blocks.stats(&w.state.store, w.now.monotonic).pending_deletions;
        assert_eq!(w.truncate_as("/t/f", 7, true), Ok(false));
        w.rename(&superuser(), "/t/f", "/t/g").unwrap();
        assert_eq!(pending(&w), 0);
        match how {
            0 => drop(w.delete(&superuser(), "/t/g", false)),
            1 => drop(w.delete(&superuser(), "/t", true)),
            _ => {
                let over = Create { overwrite: true, ..World::create_op("/t/g", "other") };
                w.write(&superuser(), &over).unwrap();
            }
        }
        assert_eq!(pending(&w), 1, "{how}");
        assert_eq!(w.recovery_order(1), None);
    }
}

#[test]
fn leases_past_the_hard_limit_are_recovered() {
    let mut w = World::with_datanodes(1);
    w.open("/x/empty", "gone");
    let id = w.open("/x/written", "gone");
    let block = w.add_block("/x/written", id, "gone", None).unwrap().located.block;
    w.receiving(1, block);
    w.pass(1_200_001);
    w.beat(1);
    assert_eq!(w.turn(&superuser(), |t| check_leases(t, || "HDFS_NameNode-1".into())), 2);
    assert!(w.closed("/x/empty") && !w.closed("/x/written"));
    let file = w.state.tree.find(&w.state.store, id).unwrap();
    assert_eq!(w.state.tree.construction(file).unwrap().client, "HDFS_NameNode-1");
    assert!(w.recovery_order(1).is_some());
}
