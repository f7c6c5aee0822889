use super::twin::Twin;
use crate::*;
use vocab::{Block, BlockId, BlockState, GenerationStamp, InodeId, Mode, SnapshotId, TimeMs};

/// Xorshift: the same run for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit.max(1)
    }
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
    /// Mostly ordinary, now and then at or beyond the edge of a packed field.
    fn number(&mut self, ordinary: i64) -> i64 {
        if !self.chance(12) {
            return self.below(ordinary as u64) as i64;
        }
        let edge = self.pick(&[40u32, 42, 47, 48, 62]);
        let at = 1i64 << edge;
        self.pick(&[at - 1, at, at + 1, -1, i64::MIN, i64::MAX, -at, 0])
    }
    fn kind(&mut self, known: &[InodeHandle]) -> InodeKind {
        let policy = self.pick(&[0u8, 7, 12, 255]);
        match self.below(10) {
            0 | 1 => InodeKind::Directory {
                children: self.next() as u32,
                child_count: self.next() as u32,
                storage_policy: policy,
            },
            2 => InodeKind::Symlink,
            3 if !known.is_empty() => InodeKind::Reference {
                kind: self.pick(&[ReferenceKind::WithName, ReferenceKind::WithCount, ReferenceKind::DstReference]),
                referred: self.pick(known),
                snapshot: self.pick(&[SnapshotId::NONE, SnapshotId::CURRENT, SnapshotId(7), SnapshotId(i32::MIN)]),
            },
            _ => InodeKind::File {
                replication: self.pick(&[1, 3, 3, 3, 10, u16::MAX]),
                block_size: self.pick(&[0, 128 << 20, 256 << 20, u64::MAX]),
                storage_policy: policy,
                erasure_coding_policy: self.pick(&[0, 0, 0, 1, 255]),
            },
        }
    }
    fn inode(&mut self, known: &[InodeHandle]) -> Inode {
        let features = if self.chance(3) { self.next() as u16 } else { 0 };
        Inode {
            id: InodeId(self.number(1 << 14)),
            parent: if known.is_empty() || self.chance(4) { None } else { Some(self.pick(known)) },
            user: UserId(self.pick(&[0, 1, 2, 3, 1 << 24, u32::MAX])),
            group: GroupId(self.pick(&[0, 1, 2, u32::MAX])),
            mode: Mode::new(self.next() as u16),
            mtime: TimeMs(self.number(1 << 41)),
            atime: TimeMs(self.number(1 << 41)),
            features: Features(features),
            kind: self.kind(known),
        }
    }
    fn name(&mut self) -> Vec<u8> {
        let length = if self.chance(50) { 1_000 + self.below(300) } else { self.below(40) };
        (0..length).map(|_| self.next() as u8).collect()
    }
    fn block(&mut self) -> BlockInfo {
        let mut id = self.number(1 << 14);
        if self.chance(5) {
            id = i64::MIN + (id & ((1 << 50) - 16));
        }
        let calm = !self.chance(4);
        BlockInfo {
            block: Block {
                id: BlockId(id),
                length: self.number(128 << 20) as u64,
                stamp: GenerationStamp(self.number(1 << 13)),
            },
            replication: self.pick(&[3, 3, 3, 1, u16::MAX]),
            state: if calm {
                BlockState::Complete
            } else {
                self.pick(&[BlockState::UnderConstruction, BlockState::UnderRecovery, BlockState::Committed])
            },
            open: !calm && self.chance(2),
            deleted: false,
            storage_policy: self.pick(&[0, 7, 255]),
            erasure_coding_policy: self.pick(&[0, 0, 1]),
        }
    }
    fn replica(&mut self) -> Replica {
        Replica {
            storage: StorageNumber(self.pick(&[0, 1, 2, 3, 77, StorageNumber::MAX.0])),
            index: if self.chance(8) { self.below(16) as u8 } else { 0 },
            flags: ReplicaFlags(if self.chance(4) { self.below(16) as u8 } else { 0 }),
        }
    }
}

struct Pair {
    random: Random,
    store: Store,
    twin: Twin,
    inodes: Vec<InodeHandle>,
    /// Blocks that are in no list, by both names.
    loose: Vec<(BlockHandle, u32)>,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut pair = Pair {
            random: Random(seed),
            store: Store::new(),
            twin: Twin::default(),
            inodes: Vec::new(),
            loose: Vec::new(),
        };
        // Some blocks have a stamp from before.
        let limit = GenerationStamp(1 << 10);
        pair.store.set_legacy_limit(limit);
        pair.twin.limit = limit;
        pair
    }

    fn files(&mut self) -> Vec<InodeHandle> {
        let store = &self.store;
        let from = self.random.below(self.inodes.len() as u64) as usize;
        let around = self.inodes[from..].iter().chain(&self.inodes[..from]);
        around.copied().filter(|h| store.kind(*h) == KindTag::File).take(2).collect()
    }
    /// Some block: of a file, or a loose one.
    fn some_block(&mut self) -> Option<(BlockHandle, u32)> {
        if self.random.chance(6) && !self.loose.is_empty() {
            return Some(self.random.pick(&self.loose));
        }
        let file = self.files().into_iter().find(|h| self.store.block_count_of(*h) > 0)?;
        let at = self.random.below(self.store.block_count_of(file) as u64) as usize;
        Some((self.store.block_at(file, at).unwrap(), self.twin.inodes[&file].blocks[at]))
    }

    fn check_block(&self, b: BlockHandle, t: u32) {
        let twin = &self.twin.blocks[&t];
        assert_eq!(self.store.block(b), twin.info);
        assert_eq!((self.store.block_core(b), self.store.block_state(b)), (twin.info.block, twin.info.state));
        assert_eq!(self.store.block_file(b), twin.file);
        assert_eq!(&self.store.replicas(b)[..], &twin.replicas[..]);
        assert_eq!(self.store.replica_count(b), twin.replicas.len());
    }
    fn check_inode(&self, h: InodeHandle) {
        let twin = &self.twin.inodes[&h];
        assert_eq!(self.store.inode(h), twin.inode);
        assert_eq!(self.store.name(h), &twin.name[..]);
        let (i, s) = (&twin.inode, &self.store);
        assert_eq!((s.inode_id(h), s.parent(h), s.owner(h)), (i.id, i.parent, (i.user, i.group)));
        assert_eq!((s.kind(h), s.mode(h), s.features(h)), (i.kind.tag(), i.mode, i.features));
        assert_eq!(s.features_and_parent(h), (i.features, i.parent));
        assert_eq!(s.times(h), (i.mtime, i.atime));
        self.check_file(h, i);
        let blocks = self.store.blocks_of(h);
        assert_eq!(blocks.len(), twin.blocks.len());
        assert_eq!(self.store.block_count_of(h), twin.blocks.len());
        assert_eq!(self.store.last_block(h), blocks.last().copied());
        for (at, (b, t)) in blocks.iter().zip(&twin.blocks).enumerate() {
            assert_eq!(self.store.block_at(h, at), Some(*b));
            self.check_block(*b, *t);
        }
        assert_eq!(self.store.block_at(h, blocks.len()), None);
    }
    fn check_file(&self, h: InodeHandle, inode: &Inode) {
        let s = &self.store;
        let own = (s.own_storage_policy(h), s.own_erasure_coding_policy(h));
        match inode.kind {
            InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy } => {
                let features = inode.features;
                let facts = FileFacts { block_size, replication, storage_policy, erasure_coding_policy, features };
                assert_eq!((s.file(h), own), (Some(facts), (storage_policy, erasure_coding_policy)));
            }
            InodeKind::Directory { storage_policy, .. } => assert_eq!((s.file(h), own), (None, (storage_policy, 0))),
            _ => assert_eq!((s.file(h), own), (None, (0, 0))),
        }
    }
    fn check_all(&self) {
        assert_eq!(self.store.inode_count(), self.twin.inodes.len() as u64);
        assert_eq!(self.store.block_count(), self.twin.blocks.len() as u64);
        assert_eq!(self.store.blocks().count(), self.twin.blocks.len());
        let mut all = self.inodes.clone();
        all.sort();
        assert!(self.store.inodes().eq(all));
        self.inodes.iter().for_each(|h| self.check_inode(*h));
        self.loose.iter().for_each(|(b, t)| self.check_block(*b, *t));
        let mut ids: Vec<_> = self.twin.inode_ids.iter().map(|(id, h)| (*id, *h)).collect();
        ids.sort();
        assert!(self.store.inodes_by_id(InodeId(i64::MIN)).eq(ids.iter().copied()));
        for (id, h) in ids {
            assert_eq!(self.store.find_inode(id), Some(h));
            assert_eq!(
                self.store.find_inode(InodeId(id.0 ^ 1 << 20)),
                self.twin.inode_ids.get(&InodeId(id.0 ^ 1 << 20)).copied()
            );
        }
        let ids: Vec<BlockId> =
            self.twin.blocks.values().flat_map(|b| [b.info.block.id, BlockId(b.info.block.id.0 ^ 4)]).collect();
        let mut found = Vec::new();
        self.store.find_blocks(&ids, &mut found);
        assert!(found.iter().copied().eq(ids.iter().map(|id| self.store.find_block(*id))));
        for block in self.twin.blocks.values() {
            for id in
                [block.info.block.id, BlockId(block.info.block.id.0 | 9), BlockId(block.info.block.id.0 ^ 1 << 40)]
            {
                let found =
                    self.store.find_block(id).map(|b| (self.store.block(b).block, self.store.replicas(b).to_vec()));
                let twin = self
                    .twin
                    .find_block(id)
                    .map(|t| (self.twin.blocks[&t].info.block, self.twin.blocks[&t].replicas.clone()));
                assert_eq!(found, twin, "{id}");
            }
        }
    }

    fn step(&mut self) {
        let many = self.inodes.len() as u64 > 1_500;
        match self.random.below(100) {
            0..=9 if !many => self.add_inode(),
            10..=13 if !many => self.add_file(),
            0..=16 => self.remove_inode(),
            17..=29 => self.edit_inode(),
            30..=44 => self.change_list(),
            45..=59 => self.edit_block(),
            60..=79 => self.change_replicas(),
            80..=94 => {
                if let Some(h) = self.files().first().copied() {
                    self.store.settle(h);
                    self.check_inode(h);
                }
            }
            95..=97 => {
                // Never many: what is loose no longer changes shape.
                while let Some((b, t)) = self.loose.pop() {
                    self.store.remove_block(b);
                    self.twin.remove_block(t);
                }
            }
            _ => self.store.tick(),
        }
    }
    fn add_inode(&mut self) {
        let (inode, name) = (self.random.inode(&self.inodes), self.random.name());
        let h = self.store.add_inode(&inode, &name);
        self.twin.add_inode(h, &inode, &name);
        self.inodes.push(h);
        self.check_inode(h);
    }
    fn add_file(&mut self) {
        let mut inode = self.random.inode(&self.inodes);
        inode.kind =
            InodeKind::File { replication: 3, block_size: 1 << 27, storage_policy: 0, erasure_coding_policy: 0 };
        let name = self.random.name();
        let count = self.random.pick(&[0, 1, 1, 1, 2, 9]);
        let blocks: Vec<BlockInfo> = (0..count).map(|_| self.random.block()).collect();
        let h = self.store.add_file(&inode, &name, &blocks);
        self.twin.add_inode(h, &inode, &name);
        blocks.iter().for_each(|b| {
            self.twin.push_block(h, b);
        });
        self.inodes.push(h);
        self.check_inode(h);
    }
    fn remove_inode(&mut self) {
        let Some(at) =
            (self.random.below(self.inodes.len() as u64) as usize).checked_sub(0).filter(|at| *at < self.inodes.len())
        else {
            return;
        };
        let h = self.inodes.swap_remove(at);
        let taken = if self.random.chance(2) { self.store.take_blocks(h) } else { Blocks::new() };
        if taken.is_empty() {
            // Left attached, the blocks are detached by the removal itself; their handles are known if none is fused.
            let blocks = self.store.set_blocks(h, &self.store.blocks_of(h).clone());
            let twins = self.twin.remove_inode(h);
            self.store.remove_inode(h);
            self.loose.extend(blocks.into_iter().zip(twins));
        } else {
            let twins = self.twin.remove_inode(h);
            self.store.remove_inode(h);
            self.loose.extend(taken.into_iter().zip(twins));
        }
    }
    fn edit_inode(&mut self) {
        if self.inodes.is_empty() {
            return;
        }
        let h = self.random.pick(&self.inodes);
        let other = self.random.inode(&self.inodes);
        let same_kind = other.kind.tag() == self.store.kind(h) || self.store.block_count_of(h) == 0;
        let change: Box<dyn Fn(&mut Inode)> = match self.random.below(10) {
            0 => Box::new(|i: &mut Inode| i.id = other.id),
            1 => Box::new(|i: &mut Inode| (i.mtime, i.atime) = (other.mtime, other.atime)),
            2 if same_kind => Box::new(|i: &mut Inode| i.kind = other.kind.clone()),
            3 => Box::new(|i: &mut Inode| (i.user, i.group, i.mode) = (other.user, other.group, other.mode)),
            4 => {
                self.store.set_parent(h, other.parent);
                Box::new(|i: &mut Inode| i.parent = other.parent)
            }
            5 => {
                self.store.set_features(h, other.features);
                Box::new(|i: &mut Inode| i.features = other.features)
            }
            6 => {
                self.store.set_times(h, other.mtime, other.atime);
                Box::new(|i: &mut Inode| (i.mtime, i.atime) = (other.mtime, other.atime))
            }
            7 => {
                let name = self.random.name();
                self.store.rename(h, &name);
                self.twin.inodes.get_mut(&h).unwrap().name = name;
                Box::new(|_: &mut Inode| {})
            }
            8 => Box::new(|i: &mut Inode| i.features = Features::NONE),
            _ => Box::new(|i: &mut Inode| i.id = InodeId(other.id.0 & 0xfff)),
        };
        self.store.edit_inode(h, &change);
        self.twin.edit_inode(h, &change);
        self.check_inode(h);
    }
    fn change_list(&mut self) {
        let files = self.files();
        let Some(h) = files.first().copied() else { return };
        match self.random.below(12) {
            0..=5 => {
                let info = self.random.block();
                self.store.push_block(h, &info);
                self.twin.push_block(h, &info);
            }
            6 | 7 => {
                let (b, t) = (self.store.remove_last_block(h), self.twin.remove_last_block(h));
                assert_eq!(b.is_some(), t.is_some());
                self.loose.extend(b.zip(t));
            }
            8 => {
                let (b, t) = (self.store.take_blocks(h), self.twin.take_blocks(h));
                self.loose.extend(b.into_iter().zip(t));
            }
            9 | 10 if files.len() == 2 => {
                self.store.move_blocks(files[1], h);
                self.twin.move_blocks(files[1], h);
                self.check_inode(files[1]);
            }
            _ => {
                let mut list = self.store.blocks_of(h);
                list.reverse();
                self.store.set_blocks(h, &list);
                self.twin.inodes.get_mut(&h).unwrap().blocks.reverse();
            }
        }
        self.check_inode(h);
    }
    fn edit_block(&mut self) {
        let Some((b, t)) = self.some_block() else { return };
        let other = self.random.block();
        let which = self.random.below(6);
        let change = |i: &mut BlockInfo| match which {
            0 => i.block.id = other.block.id,
            1 => i.block = other.block,
            2 => (i.state, i.open) = (other.state, other.open),
            3 => (i.state, i.open) = (BlockState::Complete, false),
            4 => (i.replication, i.storage_policy) = (other.replication, other.storage_policy),
            _ => i.block.length = other.block.length,
        };
        self.store.edit_block(b, change);
        self.twin.edit_block(t, change);
        self.check_block(b, t);
    }
    fn change_replicas(&mut self) {
        let Some((b, t)) = self.some_block() else { return };
        let replica = self.random.replica();
        match self.random.below(10) {
            0..=5 => assert_eq!(self.store.add_replica(b, replica), self.twin.add_replica(t, replica)),
            6 | 7 => assert_eq!(
                self.store.remove_replica(b, replica.storage),
                self.twin.retain_replicas(t, |r| r.storage != replica.storage)
            ),
            8 => assert_eq!(
                self.store.remove_internal_replica(b, replica.storage, replica.index),
                self.twin.retain_replicas(t, |r| (r.storage, r.index) != (replica.storage, replica.index))
            ),
            _ => {
                let all: Vec<Replica> = (0..self.random.below(16)).map(|_| self.random.replica()).collect();
                self.store.set_replicas(b, &all);
                self.twin.blocks.get_mut(&t).unwrap().replicas = all;
            }
        }
        self.check_block(b, t);
    }
}

#[test]
fn like_its_naive_twin() {
    for seed in [1, 0xbeef, 20_26] {
        let mut pair = Pair::new(seed);
        let (mut fused, mut unfused) = (0, 0);
        for n in 0..200_000 {
            let before = pair.store.fused;
            pair.step();
            fused += pair.store.fused.saturating_sub(before);
            unfused += before.saturating_sub(pair.store.fused);
            if n % 20_000 == 0 {
                pair.check_all();
            }
        }
        pair.check_all();
        assert!(
            fused > 1_000 && unfused > 1_000,
            "{fused} fused, {unfused} unfused: the run does not test what it should"
        );
        println!(
            "seed {seed}: {} inodes, {} blocks, {fused} fused, {unfused} unfused",
            pair.inodes.len(),
            pair.store.block_count()
        );
        while let Some(h) = pair.inodes.pop() {
            pair.store.remove_inode(h);
        }
        let blocks: Vec<_> = pair.store.blocks().collect();
        blocks.into_iter().for_each(|b| pair.store.remove_block(b));
        let store = &pair.store;
        assert!(store.names.is_empty() && store.inode_ids.is_empty() && store.fused == 0);
        assert!(store.block_ids.is_empty() && store.striped_ids.is_empty() && store.legacy_ids.is_empty());
        assert!(store.wide_inodes.is_empty() && store.wide_blocks.is_empty());
    }
}

fn plain_file(id: i64) -> Inode {
    let kind = InodeKind::File { replication: 3, block_size: 1 << 27, storage_policy: 0, erasure_coding_policy: 0 };
    Inode {
        id: InodeId(id),
        parent: None,
        user: UserId(0),
        group: GroupId(0),
        mode: Mode::new(0o644),
        mtime: TimeMs(1),
        atime: TimeMs(1),
        features: Features::NONE,
        kind,
    }
}
fn plain_block(id: i64, stamp: i64) -> BlockInfo {
    let block = Block { id: BlockId(id), length: 5, stamp: GenerationStamp(stamp) };
    BlockInfo { block, replication: 3, ..BlockInfo::default() }
}

#[test]
fn a_fused_handle_survives_unfusing() {
    let mut store = Store::new();
    let h = store.add_file(&plain_file(7), b"f", &[plain_block(1, 1001)]);
    let fused = store.last_block(h).unwrap();
    assert_eq!(store.fused, 1);
    store.set_features(h, Features::CONSTRUCTION);
    assert_eq!(store.fused, 0);
    store.edit_block(fused, |b| (b.state, b.open) = (BlockState::UnderConstruction, true));
    assert_eq!(store.block(fused), store.block(store.last_block(h).unwrap()));
    assert_ne!(store.find_block(BlockId(1)), Some(fused));
    // Not while it is being written, nor with a state of its own; but once it is closed.
    store.settle(h);
    store.set_features(h, Features::NONE);
    store.settle(h);
    assert_eq!(store.fused, 0);
    store.edit_block(fused, |b| (b.state, b.open) = (BlockState::Complete, false));
    store.settle(h);
    assert_eq!((store.fused, store.find_block(BlockId(1))), (1, Some(fused)));
    assert_eq!(store.block_file(fused), Some(h));
}

#[test]
fn a_random_id_of_the_old_time_is_fused_too() {
    let mut store = Store::new();
    store.set_legacy_limit(GenerationStamp(1 << 33));
    let replica = |number| Replica { storage: StorageNumber(number), ..Replica::default() };
    // ids of 64 bits, and those around the width of a usual one; stamps of 32 bits and around
    for id in [i64::MIN, i64::MIN + 16, -77, -1, (1 << 48) - 1, 1 << 48, i64::MAX] {
        for (stamp, fits) in
            [(1, true), (0xff_ffff, true), (1 << 24, true), (0xffff_ffff, true), (1 << 32, id == (1 << 48) - 1)]
        {
            let block = plain_block(id, stamp);
            let h = store.add_file(&plain_file(7), b"f", &[block]);
            assert_eq!(store.fused_block(h), fits.then_some(block.block), "{id} {stamp}");
            let b = store.last_block(h).unwrap();
            for number in [0xff_fffe, 3, 0x80_0000] {
                assert!(store.add_replica(b, replica(number)));
            }
            let told = |store: &Store| {
                (store.block(store.last_block(h).unwrap()), store.replicas(store.last_block(h).unwrap()))
            };
            let before = told(&store);
            assert_eq!((before.0, before.1.len()), (block, 3));
            // another stamp, that of a usual time and back; open, and closed again
            for other in [(1 << 32) + 5, stamp] {
                store.edit_block(b, |b| b.block.stamp = GenerationStamp(other));
                assert_eq!(store.block(store.last_block(h).unwrap()).block.stamp.0, other);
            }
            store.set_features(h, Features::CONSTRUCTION);
            assert_eq!((store.fused_block(h), told(&store)), (None, before.clone()));
            store.set_features(h, Features::NONE);
            store.settle(h);
            assert_eq!((store.fused_block(h).is_some(), told(&store)), (fits, before));
            assert_eq!(store.find_block(BlockId(id)), store.last_block(h));
            store.take_blocks(h).into_iter().for_each(|b| store.remove_block(b));
            assert_eq!((store.find_block(BlockId(id)), store.blocks_of(h).len()), (None, 0));
            store.remove_inode(h);
        }
    }
}

#[test]
fn a_striped_group_is_never_fused() {
    let mut store = Store::new();
    store.set_legacy_limit(GenerationStamp(1_000));
    let h = store.add_file(&plain_file(7), b"f", &[plain_block(i64::MIN + 32, 2_000)]);
    assert_eq!((store.fused, store.block_count_of(h)), (0, 1));
}

#[test]
fn each_block_is_in_the_index_of_its_kind() {
    let mut store = Store::new();
    let group = i64::MIN + 32;
    let h = store.add_file(
        &plain_file(7),
        b"f",
        &[plain_block(1 << 30, 2_000), plain_block(group, 2_000), plain_block(-77, 500)],
    );
    let of = |store: &Store, id: i64| store.find_block(BlockId(id)).map(|b| store.block(b).block.id.0);
    // Without a limit the last one passes for striped, as it does in Hadoop: its group is looked for.
    assert_eq!((of(&store, group + 9), of(&store, -77), of(&store, -76)), (Some(group), Some(-77), Some(-77)));
    store.set_legacy_limit(GenerationStamp(1_000));
    assert_eq!((of(&store, group + 9), of(&store, -77), of(&store, -76)), (Some(group), Some(-77), None));
    assert_eq!((of(&store, 1 << 30), of(&store, group + 16)), (Some(1 << 30), None));
    assert_eq!((store.legacy_ids.len(), store.striped_ids.len(), store.block_ids.len()), (1, 1, 1));
    // A new stamp takes a block out of the old time.
    let legacy = store.block_at(h, 2).unwrap();
    store.edit_block(legacy, |b| b.block.stamp = GenerationStamp(3_000));
    assert_eq!((store.legacy_ids.len(), of(&store, -76)), (0, Some(-77)));
}

#[test]
fn long_lists_of_blocks_and_groups() {
    let mut store = Store::new();
    let h = store.add_inode(&plain_file(7), b"f");
    for id in 0..40_000 {
        store.push_block(h, &plain_block(id, 1001));
    }
    assert_eq!((store.block_count_of(h), store.block_count()), (40_000, 40_000));
    assert_eq!(store.block(store.block_at(h, 30_000).unwrap()).block.id, BlockId(30_000));
    let group = store.block_at(h, 5).unwrap();
    for index in 0..14 {
        assert!(store.add_replica(group, Replica { storage: StorageNumber(9), index, flags: ReplicaFlags::NONE }));
    }
    assert_eq!(store.replicas(group).iter().map(|r| r.index).collect::<Vec<_>>(), (0..14).collect::<Vec<_>>());
    assert!(store.remove_internal_replica(group, StorageNumber(9), 3) && store.remove_replica(group, StorageNumber(9)));
    store.take_blocks(h).into_iter().for_each(|b| store.remove_block(b));
    assert_eq!((store.block_count(), store.block_ids.len()), (0, 0));
}

#[test]
fn more_classes_than_codes_overflow_and_come_back() {
    let mut store = Store::new();
    let sized = |n: u64| Inode {
        kind: InodeKind::File { replication: 1, block_size: n, storage_policy: 0, erasure_coding_policy: 0 },
        ..plain_file(n as i64)
    };
    let handles: Vec<_> =
        (0..70_000).map(|n| store.add_file(&sized(n), b"f", &[plain_block(n as i64, 1001)])).collect();
    assert!(!store.wide_inodes.is_empty() && store.fused < 70_000);
    for (n, h) in (0..).zip(&handles) {
        assert_eq!(store.inode(*h), sized(n));
    }
    let last = *handles.last().unwrap();
    store.edit_inode(last, |i| i.kind = plain_file(0).kind);
    store.edit_inode(last, |i| i.kind = sized(3).kind);
    store.settle(last);
    assert_eq!(store.inode(last).kind, sized(3).kind);
    assert_eq!(store.wide_inodes.len() as u64 + store.fused, 70_000);
}

#[test]
fn epochs_know_what_was_written() {
    let mut store = Store::new();
    let handles: Vec<_> = (0..5_000).map(|n| store.add_file(&plain_file(n), b"f", &[plain_block(n, 1001)])).collect();
    let epoch = store.bump_epoch();
    store.inode(handles[7]);
    store.name(handles[7]);
    assert_eq!(store.inodes.pages().stamped_since(epoch).count(), 0);
    store.set_parent(handles[4_000], None);
    store.rename(handles[4_000], b"g");
    assert_eq!(store.inodes.pages().stamped_since(epoch).collect::<Vec<_>>(), [3]);
    assert_eq!(store.names.pages().stamped_since(epoch).count(), 1);
}
