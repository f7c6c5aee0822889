//! Files: create, addBlock, complete, and their reports from the field.

use super::namespace::modes;
use super::*;
use crate::read::file_info::*;
use crate::status::LocatedBlock;
use crate::write::add_block::AddBlock;
use crate::write::complete::{Complete, Fsync};
use crate::write::create::Create;
use vocab::InodeId;

impl World {
    pub fn create_op(path: &str, client: &str) -> Create {
        Create {
            versions: vec![2],
            data_key: None,
            path: path.into(),
            modes: modes(0o644),
            client: client.into(),
            create: true,
            overwrite: false,
            create_parents: true,
            replication: 3,
            block_size: MIB,
            lazy_persist: false,
            should_replicate: false,
            erasure_coding_policy: None,
            storage_policy: None,
        }
    }
    pub fn open(&mut self, path: &str, client: &str) -> InodeId {
        self.write(&superuser(), &World::create_op(path, client)).unwrap().id
    }
    /// An empty closed file.
    pub fn create(&mut self, path: &str) -> InodeId {
        let id = self.open(path, "maker");
        assert_eq!(self.complete(path, id, "maker", None), Ok(true));
        id
    }
    pub fn add_block(
        &mut self,
        path: &str,
        file: InodeId,
        client: &str,
        previous: Option<Block>,
    ) -> Result<LocatedBlock, Refusal> {
        let op = AddBlock {
            path: path.into(),
            file,
            client: client.into(),
            previous,
            previous_pool: None,
            excluded: vec![],
            favored: vec![],
            no_local_write: false,
            no_local_rack: false,
            ignore_client_locality: false,
        };
        self.write(&superuser(), &op)
    }
    pub fn complete(&mut self, path: &str, file: InodeId, client: &str, last: Option<Block>) -> Result<bool, Refusal> {
        self.write(&superuser(), &Complete { path: path.into(), file, client: client.into(), last, last_pool: None })
    }
    /// A closed file of these block lengths, on DataNode 1.
    pub fn write_file(&mut self, path: &str, lengths: &[u64]) -> InodeId {
        let id = self.open(path, "writer");
        let mut previous = None;
        for length in lengths {
            let mut block = self.add_block(path, id, "writer", previous).unwrap().located.block;
            block.length = *length;
            self.received(1, block);
            previous = Some(block);
        }
        assert_eq!(self.complete(path, id, "writer", previous), Ok(true));
        id
    }
}

#[test]
fn write_a_file() {
    let mut w = World::with_datanodes(3);
    let id = w.open("/dir/f", "c1");
    let first = w.add_block("/dir/f", id, "c1", None).unwrap();
    assert_eq!((first.offset, first.located.locations.len()), (0, 3));
    let again = w.add_block("/dir/f", id, "c1", None).unwrap();
    assert_eq!(again.located.block, first.located.block, "a repeated call gets the same block");
    let block = Block { length: MIB, ..first.located.block };
    let second = w.add_block("/dir/f", id, "c1", Some(block)).unwrap();
    assert_eq!(second.offset, MIB);
    let last = Block { length: 10, ..second.located.block };
    assert_eq!(w.complete("/dir/f", id, "c1", Some(last)), Ok(false), "no replica yet");
    w.received(1, block);
    assert_eq!(w.complete("/dir/f", id, "c1", Some(last)), Ok(false));
    w.received(2, last);
    assert_eq!(w.complete("/dir/f", id, "c1", Some(last)), Ok(true));
    assert_eq!(w.complete("/dir/f", id, "c1", Some(last)), Ok(true), "a repeated close");
    let who = superuser();
    w.view(&who, |v| {
        let (status, located) = get_located_file_info(v, b"/dir/f").unwrap().unwrap();
        assert_eq!((status.length, status.replication, status.block_size), (MIB + 10, 3, MIB));
        let located = located.unwrap();
        assert_eq!((located.blocks.len(), located.file_length, located.last_complete), (2, MIB + 10, true));
        assert!(!located.under_construction);
        assert_eq!(is_file_closed(v, b"/dir/f"), Ok(true));
    });
    assert!(matches!(w.add_block("/dir/f", id, "c1", None), Err(Refusal::LeaseExpired(_))));
}

/// T07: the length published by hsync survives a crash.
#[test]
fn t07_length_published_by_hsync_survives_a_crash() {
    let mut w = World::with_datanodes(3);
    let id = w.open("/h", "c1");
    w.add_block("/h", id, "c1", None).unwrap();
    let length = |w: &World| {
        let who = superuser();
        w.view(&who, |v| get_file_info(v, b"/h").unwrap().unwrap().length)
    };
    assert_eq!(length(&w), 0);
    w.write(&superuser(), &Fsync { path: b"/h".into(), file: id, client: "c1".into(), last_length: 1_000 }).unwrap();
    assert_eq!(length(&w), 1_000);
    w.restart();
    assert_eq!(length(&w), 1_000);
    let who = superuser();
    w.view(&who, |v| {
        let (_, located) = get_located_file_info(v, b"/h").unwrap().unwrap();
        let located = located.unwrap();
        assert!(located.under_construction && !located.last_complete && located.last.is_some());
    });
}

/// T22: at-most-once calls are answered from the retry cache, also after a restart.
#[test]
fn t22_at_most_once_calls() {
    let mut w = World::new();
    w.create("/x");
    let call = w.fresh_ids(&superuser());
    assert_eq!(w.delete(&call, "/x", false), Ok(true));
    assert_eq!(w.delete(&call, "/x", false), Ok(true));
    let other = w.fresh_ids(&superuser());
    assert_eq!(w.delete(&other, "/x", false), Ok(false));
    let create = w.fresh_ids(&superuser());
    let id = w.write(&create, &World::create_op("/y", "c")).unwrap().id;
    assert_eq!(w.write(&create, &World::create_op("/y", "c")).unwrap().id, id);
    let rename = w.fresh_ids(&superuser());
    assert_eq!(w.rename(&rename, "/y", "/z"), Ok(true));
    assert_eq!(w.rename(&rename, "/y", "/z"), Ok(true));
    w.restart();
    w.view(&call, |v| assert!(v.state.retry.get(&call.rpc_ids.unwrap()).is_some()));
    w.view(&rename, |v| assert!(v.state.retry.get(&rename.rpc_ids.unwrap()).is_some()));
}

#[test]
fn a_refused_overwrite_keeps_the_old_file() {
    let mut w = World::with_datanodes(1);
    w.mkdirs(&superuser(), "/q", 0o755).unwrap();
    w.write_file("/q/f", &[10]);
    w.settings.objects_max = 3;
    let op = Create { overwrite: true, ..World::create_op("/q/f", "c") };
    assert!(matches!(w.write(&superuser(), &op), Err(Refusal::Io(_))));
    assert!(w.exists("/q/f"));
    w.settings.objects_max = 0;
    let new = w.write(&superuser(), &op).unwrap();
    assert_eq!(new.length, 0);
    assert_eq!(w.state.store.block_count(), 0);
}

#[test]
fn ranges_of_a_file_being_written() {
    use crate::read::block_locations::get_block_locations;
    let mut w = World::with_datanodes(1);
    let id = w.open("/f", "c");
    let ranges = |w: &World, offset: i64, length: i64| {
        let who = superuser();
        w.view(&who, |v| {
            let located = get_block_locations(v, b"/f", offset, length).unwrap().blocks;
            (located.file_length, located.blocks.iter().map(|b| b.offset).collect::<Vec<_>>())
        })
    };
    assert_eq!(ranges(&w, 0, 100), (0, vec![]));
    let first = w.add_block("/f", id, "c", None).unwrap().located.block;
    assert_eq!(ranges(&w, 5, 100), (0, vec![0]), "an empty first block is always there");
    let first = Block { length: 100, ..first };
    w.received(1, first);
    w.add_block("/f", id, "c", Some(first)).unwrap();
    assert_eq!(ranges(&w, 0, 1), (100, vec![0]));
    assert_eq!(ranges(&w, 0, 101), (100, vec![0, 100]), "an empty last block, if the range goes beyond the rest");
    assert_eq!(ranges(&w, 100, 1), (100, vec![]));
    w.write(&superuser(), &Fsync { path: b"/f".into(), file: id, client: "c".into(), last_length: 40 }).unwrap();
    assert_eq!(ranges(&w, 120, 1), (100, vec![100]));
    assert_eq!(ranges(&w, 140, 1), (100, vec![]));
}

#[test]
fn a_block_size_fits_hadoops_file_records() {
    let mut w = World::new();
    let mut create = |block_size: u64| {
        let op = Create { block_size, ..World::create_op("/f", "c1") };
        w.write(&superuser(), &op).map(|_| ()).unwrap_err()
    };
    let text = |value: &str| Refusal::IllegalArgument(format!("Illagal value: PREFERRED_BLOCK_SIZE = {value}").into());
    assert_eq!(create(1 << 48), text("281474976710656 > MAX = 281474976710655"));
    let least = "is less than configured minimum value dfs.namenode.fs-limits.min-block-size=1048576";
    assert_eq!(create(-(1i64 << 31) as u64), Refusal::io(format!("Specified block size -2147483648 {least}")));
}
