//! How fast the store is filled and read. Runs small as a test; `SPEED_FILES=20000000 cargo test --release -p record --test speed -- --nocapture`
//! prints figures that mean something.

use record::*;
use std::time::Instant;
use vocab::{Block, BlockId, GenerationStamp, InodeId, Mode, TimeMs};

fn file(id: i64) -> Inode {
    Inode {
        id: InodeId(id),
        parent: InodeHandle::from_raw(1),
        user: UserId(1 + (id % 3) as u32),
        group: GroupId(1),
        mode: Mode::new(0o644),
        mtime: TimeMs(1_700_000_000_000 + id),
        atime: TimeMs(1_700_000_000_000 + id),
        features: Features::NONE,
        kind: InodeKind::File { replication: 3, block_size: 128 << 20, storage_policy: 0, erasure_coding_policy: 0 },
    }
}
fn block(id: i64) -> BlockInfo {
    let block = Block { id: BlockId((1 << 30) + id), length: 100 << 20, stamp: GenerationStamp(1_000 + id) };
    BlockInfo { block, replication: 3, ..BlockInfo::default() }
}

/// Reports one replica of every block again, 32 blocks at a time; how many were new.
fn report_in_batches(store: &mut Store, files: i64, order: impl Fn(i64) -> i64) -> u64 {
    let mut sum = 0;
    let (mut ids, mut found) = (Vec::new(), Vec::new());
    for n in 0..files {
        ids.push(BlockId((1 << 30) + order(n)));
        if ids.len() == 32 || n + 1 == files {
            store.find_blocks(&ids, &mut found);
            for (id, b) in ids.drain(..).zip(&found) {
                let b = b.unwrap();
                assert_eq!(store.block_core(b).id, id);
                sum += u64::from(store.add_replica(b, Replica { storage: StorageNumber(1), ..Replica::default() }));
            }
        }
    }
    sum
}

#[test]
fn fill_and_read() {
    let files: i64 = std::env::var("SPEED_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let mut store = Store::new();
    let mut begin = Instant::now();
    let mut lap = |what: &str, sum: u64| {
        println!("{what:<32} {:>8.1} ns each   (sum {sum:x})", begin.elapsed().as_nanos() as f64 / files as f64);
        begin = Instant::now();
    };
    store.reserve(files as u64, 0);
    let mut name = *b"part-00000-of-0000000000";
    for id in 1..=files {
        let (mut digits, mut at) = (id, 23);
        while digits > 0 {
            name[at] = b'0' + (digits % 10) as u8;
            (digits, at) = (digits / 10, at - 1);
        }
        store.add_file(&file(id), &name, &[block(id)]);
    }
    lap("add a file with one block", store.inode_count());
    // A stride prime to everything: each access is a miss once the store outgrows the caches.
    let order = |n: i64| 1 + (n as i128 * 7_919_993 % files as i128) as i64;
    let mut sum = 0;
    for n in 0..files {
        let b = store.find_block(BlockId((1 << 30) + order(n))).unwrap();
        (0..3).for_each(|r| {
            sum += u64::from(store.add_replica(b, Replica { storage: StorageNumber(r), ..Replica::default() }));
        });
    }
    lap("find a block, add 3 replicas", sum);
    assert_eq!(sum, 3 * files as u64);
    sum = 0;
    sum += report_in_batches(&mut store, files, order);
    lap("report it again, in batches", sum);
    assert_eq!(sum, 0);
    for n in 0..files {
        let b = store.find_block(BlockId((1 << 30) + order(n))).unwrap();
        assert_eq!(store.block_core(b).id, BlockId((1 << 30) + order(n)));
        sum += u64::from(store.add_replica(b, Replica { storage: StorageNumber(1), ..Replica::default() }));
    }
    lap("report it again, one by one", sum);
    sum = 0;
    for n in 0..files {
        let h = store.find_inode(InodeId(order(n))).unwrap();
        sum += store.inode(h).mtime.0 as u64 + store.name(h).len() as u64 + store.blocks_of(h).len() as u64;
    }
    lap("find an inode, stat it", sum);
    sum = 0;
    for h in store.inodes() {
        sum += store.inode(h).id.0 as u64;
    }
    lap("walk in arena order", sum);
    assert_eq!(sum, (files * (files + 1) / 2) as u64);
    for n in 0..files {
        let h = store.find_inode(InodeId(order(n))).unwrap();
        store.take_blocks(h).into_iter().for_each(|b| store.remove_block(b));
        store.remove_inode(h);
        if n % 1_000 == 0 {
            store.tick();
        }
    }
    lap("remove", store.inode_count());
    assert_eq!((store.inode_count(), store.block_count()), (0, 0));
}
