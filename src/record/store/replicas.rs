//! Replicas: in place up to three, else in a list.

use super::Store;
use super::fuse::{Place, replicas_fuse};
use crate::layout::block_field as f;
use crate::{BlockHandle, BlockInfo, Replica, ReplicaFlags, Replicas, StorageNumber};
use std::num::NonZeroU32;

/// A replica as a list holds it: storage 24, index 4, flags 4 bits.
fn pack(replica: &Replica) -> u32 {
    replica.storage.0 | u32::from(replica.index & 15) << 24 | u32::from(replica.flags.0) << 28
}
fn unpack(word: u32) -> Replica {
    Replica {
        storage: StorageNumber(word & 0xff_ffff),
        index: (word >> 24) as u8 & 15,
        flags: ReplicaFlags((word >> 28) as u8),
    }
}
fn check(replica: &Replica) {
    assert!(replica.storage <= StorageNumber::MAX, "a storage number has 24 bits");
    assert!(replica.index < 16 && replica.flags.0 < 16, "index and flags of a replica have four bits");
}

impl Store {
    /// Replicas of a block, in the order they were added.
    pub fn replicas(&self, b: BlockHandle) -> Replicas {
        self.without_hints(self.recorded(self.place(b)))
    }
    /// A block with its replicas, found in one look.
    pub fn block_and_replicas(&self, b: BlockHandle) -> (BlockInfo, Replicas) {
        let place = self.place(b);
        (self.info_at(&place), self.without_hints(self.recorded(place)))
    }
    fn without_hints(&self, mut all: Replicas) -> Replicas {
        if all.iter().any(|r| r.storage < self.storage_floor) {
            all.retain(|r| r.storage >= self.storage_floor);
        }
        all
    }
    /// Where an earlier incarnation of the server knew replicas to be, by its storage numbers; none once replicas were reported.
    pub fn hints(&self, b: BlockHandle) -> Replicas {
        let mut all = self.recorded(self.place(b));
        if all.iter().any(|r| r.storage >= self.storage_floor) {
            all.clear();
        }
        all
    }
    fn recorded(&self, place: Place) -> Replicas {
        match place {
            Place::Fused(record, _) => self.fused_replicas(&record),
            Place::Separate(slot) => {
                let record = self.blocks.get(slot);
                match record.list().and_then(NonZeroU32::new) {
                    Some(list) => self.lists.with(list, |items| items.iter().map(|w| unpack(*w)).collect()),
                    None => {
                        let mut all = Replicas::new();
                        for number in (0..3).map(|at| record.replica(at)).take_while(|number| *number != 0) {
                            all.push(Replica { storage: StorageNumber(number - 1), ..Replica::default() });
                        }
                        all
                    }
                }
            }
        }
    }
    /// How many replicas are recorded.
    pub fn replica_count(&self, b: BlockHandle) -> usize {
        self.replicas(b).len()
    }

    /// Records a replica. `false` if one of the same storage and index is there already; its flags are set anew.
    pub fn add_replica(&mut self, b: BlockHandle, replica: Replica) -> bool {
        check(&replica);
        let mut all = self.replicas(b);
        let known = all.iter_mut().find(|r| r.storage == replica.storage && r.index == replica.index);
        let new = known.is_none();
        match known {
            Some(same) if *same == replica => return false,
            Some(old) => *old = replica,
            None => all.push(replica),
        }
        self.write_replicas(b, &all);
        new
    }
    /// Forgets all replicas of a block on this storage. `false` if there is none.
    pub fn remove_replica(&mut self, b: BlockHandle, storage: StorageNumber) -> bool {
        self.retain_replicas(b, |r| r.storage != storage)
    }
    /// Forgets one internal block of a striped group on this storage. `false` if there is none.
    pub fn remove_internal_replica(&mut self, b: BlockHandle, storage: StorageNumber, index: u8) -> bool {
        self.retain_replicas(b, |r| r.storage != storage || r.index != index)
    }
    fn retain_replicas(&mut self, b: BlockHandle, keep: impl Fn(&Replica) -> bool) -> bool {
        let mut all = self.replicas(b);
        let before = all.len();
        all.retain(|r| keep(r));
        if all.len() == before {
            return false;
        }
        self.write_replicas(b, &all);
        true
    }
    /// Sets all replicas of a block at once.
    pub fn set_replicas(&mut self, b: BlockHandle, replicas: &[Replica]) {
        replicas.iter().for_each(check);
        self.write_replicas(b, replicas);
    }

    fn write_replicas(&mut self, b: BlockHandle, replicas: &[Replica]) {
        match self.place(b) {
            Place::Fused(_, h) if replicas_fuse(replicas) => self.write_fused_replicas(h, replicas),
            _ => {
                let slot = self.separate(b);
                self.write_separate_replicas(slot, replicas);
            }
        }
    }
    pub(super) fn write_separate_replicas(&mut self, slot: NonZeroU32, replicas: &[Replica]) {
        let list = self.blocks.get(slot).list().and_then(NonZeroU32::new);
        let in_place = replicas.len() <= 3 && replicas.iter().all(|r| r.index == 0 && r.flags == ReplicaFlags::NONE);
        if in_place {
            if let Some(list) = list {
                self.lists.remove(list);
            }
            self.blocks.edit(slot, |r| {
                r.set(f::LIST, 0);
                (0..3).for_each(|at| r.set_replica(at, replicas.get(at).map_or(0, |r| r.storage.0 + 1)));
            });
            return;
        }
        let words: smallvec::SmallVec<[u32; 16]> = replicas.iter().map(pack).collect();
        let list = match list {
            Some(list) => self.lists.replace(list, &words),
            None => self.lists.add(&words),
        };
        self.blocks.edit(slot, |r| r.set_list(list.get()));
    }
}
