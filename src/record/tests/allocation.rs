//! Claim: reading inodes and blocks, and recording replicas, allocates nothing.

use mem::counting::Counting;
use record::*;
use vocab::{Block, BlockId, GenerationStamp, InodeId};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn file(id: i64) -> Inode {
    Inode {
        id: InodeId(id),
        parent: None,
        user: UserId(0),
        group: GroupId(0),
        mode: Default::default(),
        mtime: vocab::TimeMs(1 << 40),
        atime: vocab::TimeMs(1 << 40),
        features: Features::NONE,
        kind: InodeKind::File { replication: 3, block_size: 128 << 20, storage_policy: 0, erasure_coding_policy: 0 },
    }
}
fn block(id: i64) -> BlockInfo {
    let block = Block { id: BlockId(id), length: 1 << 20, stamp: GenerationStamp(1001) };
    BlockInfo { block, replication: 3, ..BlockInfo::default() }
}

#[test]
fn reading_and_reporting_allocate_nothing() {
    let mut store = Store::new();
    for id in 0..2_000i64 {
        // One block, fused; or two, each with a record of its own.
        let blocks = [block(id * 2), block(id * 2 + 1)];
        store.add_file(&file(id), b"a name of some length", &blocks[..1 + (id % 2) as usize]);
    }
    let mut seen = 0u64;
    assert!(Counting::count(|| drop(Vec::<u8>::with_capacity(1))) == 1, "the count counts");
    let allocations = Counting::count(|| {
        for id in 0..2_000 {
            let h = store.find_inode(InodeId(id)).unwrap();
            let inode = store.inode(h);
            seen += inode.mtime.0 as u64 + store.name(h).len() as u64 + store.mode(h).bits() as u64;
            for b in store.blocks_of(h) {
                let id = store.block(b).block.id;
                assert_eq!(store.find_block(id), Some(b));
                (0..3).for_each(|n| {
                    store.add_replica(b, Replica { storage: StorageNumber(n), ..Replica::default() });
                });
                seen += store.replicas(b).len() as u64;
            }
            store.set_parent(h, None);
            store.edit_inode(h, |i| i.atime.0 += 1);
        }
    });
    assert_eq!(allocations, 0);
    assert!(seen > 0);
}
