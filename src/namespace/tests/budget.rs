//! The byte budget: what one file costs, measured from the arenas and child lists. `BUDGET.md` beside the crate is its printed form; run with `BUDGET_WRITE=1` to
//! write it anew.

use mem::runs::RunBuilder;
use namespace::children::Lists;
use record::*;
use std::fmt::Write;
use vocab::{Block, BlockId, GenerationStamp, InodeId, Mode, TimeMs};

/// Enough that pages begun and not full count for little.
const FILES: u64 = 300_000;
const PER_DIRECTORY: u64 = 100;

/// Builds a namespace of files with one block, three replicas and names of 24 bytes.
struct Builder {
    store: Store,
    lists: Lists,
    /// Child list of every directory; files are put into the last one.
    directories: Vec<u32>,
    next_inode: i64,
    next_block: i64,
    /// Whether files are made under construction, as by a client, or as they are in an image; and whether they are closed then.
    open: bool,
    close: bool,
}

impl Builder {
    fn new(open: bool, close: bool) -> Builder {
        Builder {
            store: Store::new(),
            lists: Lists::default(),
            directories: Vec::new(),
            next_inode: 16_385,
            next_block: 1 << 30,
            open,
            close,
        }
    }
    fn add(&mut self) -> InodeHandle {
        self.next_inode += 1;
        self.next_block += 1;
        let inode = Inode {
            id: InodeId(self.next_inode),
            parent: InodeHandle::from_raw(1),
            user: UserId(1),
            group: GroupId(1),
            mode: Mode::new(0o644),
            mtime: TimeMs(1_700_000_000_000 + self.next_inode),
            atime: TimeMs(1_700_000_000_000 + self.next_inode),
            features: if self.open { Features::CONSTRUCTION } else { Features::NONE },
            kind: InodeKind::File {
                replication: 3,
                block_size: 128 << 20,
                storage_policy: 0,
                erasure_coding_policy: 0,
            },
        };
        let block = Block { id: BlockId(self.next_block), length: 100 << 20, stamp: GenerationStamp(self.next_block) };
        let h = self.store.add_inode(&inode, format!("part-{:019}", self.next_inode).as_bytes());
        let b = self.store.push_block(h, &BlockInfo { block, replication: 3, ..BlockInfo::default() });
        for n in 0..3 {
            let storage = StorageNumber(((self.next_block * 7 + n * 1_000) % 3_000) as u32);
            self.store.add_replica(b, Replica { storage, ..Replica::default() });
        }
        if self.close {
            self.store.set_features(h, Features::NONE);
            self.store.settle(h);
        }
        let list = self.directories.last_mut().expect("a directory");
        *list = self.lists.insert(&self.store, *list, h).expect("a new name");
        h
    }
    /// Removes a file from a directory.
    fn remove(&mut self, h: InodeHandle, directory: usize) {
        let list = &mut self.directories[directory];
        (_, *list) = self.lists.remove(&self.store, *list, self.store.name(h)).expect("a name that is there");
        self.store.take_blocks(h).into_iter().for_each(|b| self.store.remove_block(b));
        self.store.remove_inode(h);
    }
    /// Bytes per file by part: records, names, indexes, child arrays, runs.
    fn measure(&self) -> [f64; 7] {
        // One storage in 3,000 as a sample: what it holds of blocks that lie as densely as these.
        let mut run = RunBuilder::new();
        let mut seed = 1u64;
        let mut id = 1 << 30;
        let density = (self.next_block - (1 << 30)) as u64 / self.store.block_count();
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            id += 1 + (seed >> 33) as i64 % (2_000 * density as i64);
            run.push(id);
        }
        let run = run.finish();
        let memory = self.store.memory();
        let per = |bytes: usize| bytes as f64 / self.store.inode_count() as f64;
        [
            per(memory.inodes),
            per(memory.blocks) + per(memory.lists),
            per(memory.names),
            per(memory.inode_index),
            per(memory.block_index),
            per(self.lists.memory_bytes()),
            3.0 * run.memory_bytes() as f64 / run.len() as f64,
        ]
    }
}

const PARTS: [&str; 7] = [
    "inode record, with the block if fused",
    "block record",
    "name of 24 bytes",
    "inode id index",
    "block id index",
    "child array",
    "storage runs, 3 replicas",
];

fn fresh(open: bool) -> [f64; 7] {
    let mut builder = Builder::new(open, false);
    for n in 0..FILES {
        if n % PER_DIRECTORY == 0 {
            builder.directories.push(0);
        }
        builder.add();
        if n % 500 == 0 {
            builder.store.tick();
        }
    }
    builder.measure()
}

/// Each file that stays is followed by four that are removed a while later, and by ids that others used up: a twentieth of all ids is live.
fn aged() -> [f64; 7] {
    let mut builder = Builder::new(true, true);
    let mut doomed = std::collections::VecDeque::new();
    for n in 0..FILES / 2 {
        if n % PER_DIRECTORY == 0 {
            builder.directories.push(0);
        }
        builder.add();
        for _ in 0..4 {
            doomed.push_back((builder.add(), builder.directories.len() - 1));
            if doomed.len() > 3_000 {
                let (h, directory) = doomed.pop_front().unwrap();
                builder.remove(h, directory);
            }
        }
        builder.next_inode += 15;
        builder.next_block += 15;
        if n % 500 == 0 {
            builder.store.tick();
        }
    }
    doomed.into_iter().for_each(|(h, directory)| builder.remove(h, directory));
    builder.measure()
}

fn core_sum(parts: &[f64; 7]) -> f64 {
    parts[..6].iter().sum()
}

#[test]
fn bytes_per_file() {
    let columns = [("fresh, fused", fresh(false)), ("fresh, open", fresh(true)), ("aged, fused", aged())];
    let mut text = String::from(
        "# What a file costs in memory\n\n\
         Bytes per file with one block, three replicas and a name of 24 bytes, in directories of 100; measured from the arenas by\n\
         `tests/budget.rs`, which also writes this page (`BUDGET_WRITE=1 cargo test -p namespace --test budget`). *Aged*: ids are a twentieth live,\n\
         and four of five files ever made were removed again.\n\n| part |",
    );
    columns.iter().for_each(|(title, _)| write!(text, " {title} |").unwrap());
    text.push_str("\n|---|--:|--:|--:|\n");
    for (at, part) in PARTS.iter().enumerate() {
        if at == 6 {
            write!(text, "| **sum** |").unwrap();
            columns.iter().for_each(|(_, parts)| write!(text, " **{:.1}** |", core_sum(parts)).unwrap());
            text.push('\n');
        }
        write!(text, "| {part} |").unwrap();
        columns.iter().for_each(|(_, parts)| write!(text, " {:.1} |", parts[at]).unwrap());
        text.push('\n');
    }
    text.push_str("\nGates: 112 fresh, 125 aged, without the runs. Java 3.5: 316 bytes per inode with 1.23 blocks, before any replica.\n\
         A child costs 4 bytes for its handle and 1 for its tag; in a directory of more than 128 children 8 in a full leaf.\n");
    println!("{text}");
    assert!(core_sum(&columns[0].1) <= 112.0, "a fresh file costs too much");
    assert!(core_sum(&columns[2].1) <= 125.0, "an aged file costs too much");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/BUDGET.md");
    if std::env::var_os("BUDGET_WRITE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "BUDGET.md is stale: run with BUDGET_WRITE=1");
}
