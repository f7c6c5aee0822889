//! Truncates that make a new block of an old one: where the old one is, until the new one is made (Hadoop keeps the old block in its block map
//! as the `truncateBlock` of the new one).
//!
//! The old block may leave the file system at once (a rolling upgrade runs) or meanwhile (its last snapshot is deleted). Whatever happens,
//! no replica of it is deleted before the new block is closed or gone. Where the old one is is soft; what is made of what is durable: log, image and
//! arena file tell of it.

use crate::{Blocks, Construction, NO_ACK};
use record::{StorageNumber, Store};
use smallvec::SmallVec;
use vocab::{Block, BlockId, BlockState, ReplicaState};

/// A block that a truncate makes another one of.
#[derive(Clone, Debug)]
pub(crate) struct Truncation {
    /// The block that is made.
    into: BlockId,
    /// Where the old one is, once it has left the file system; its record says so before.
    places: SmallVec<[StorageNumber; 3]>,
}

impl Blocks {
    /// A truncate makes the open block `new` of `old`, which may leave the store now or has left it. Called from `apply`, and again when the
    /// recovery begins: where the old one was is known by then.
    pub fn begin_copy(&mut self, store: &Store, old: Block, new: Block) {
        let fresh = || Truncation { into: new.id, places: SmallVec::new() };
        self.truncations.entry(old.id).or_insert_with(fresh).into = new.id;
        self.construction.entry(new.id).or_insert_with(|| Construction::new(new)).truncate = Some(old);
        self.expect_copies(store, new.id);
    }

    /// The new block is made where the old one is: places that have become known are added.
    pub(crate) fn expect_copies(&mut self, store: &Store, new: BlockId) {
        let Some(c) = self.construction.get_mut(&new) else { return };
        let Some(old) = c.truncate.filter(|old| old.id != new) else { return };
        let places: SmallVec<[StorageNumber; 3]> = match (store.find_block(old.id), self.truncations.get(&old.id)) {
            (Some(b), _) => store.replicas(b).iter().map(|r| r.storage).collect(),
            (None, Some(truncation)) => truncation.places.clone(),
            (None, None) => return,
        };
        let node = |s: StorageNumber| self.registry.volume(s).map(|v| v.node);
        for storage in places {
            if !c.expected.iter().any(|e| e.storage == storage || node(e.storage) == node(storage)) {
                c.expect_as(storage, 0, c.block);
            }
        }
    }

    /// The open block that a truncate makes of another one, which may have left the file system meanwhile.
    pub fn truncated_into(&self, old: BlockId) -> Option<BlockId> {
        self.truncations.get(&old).map(|t| t.into)
    }

    /// The open blocks that truncates cut, each with what [`crate::Construction::truncate`] says of it.
    pub fn truncates(&self) -> impl Iterator<Item = (BlockId, Block)> + '_ {
        self.construction.iter().filter_map(|(id, c)| Some((*id, c.truncate?)))
    }

    /// Goes on, after a start, with what [`Blocks::truncates`] told: the last block of a file that is open.
    pub fn resume_truncate(&mut self, store: &Store, id: BlockId, truncate: Block) {
        let Some(b) = store.find_block(id).filter(|b| store.block_state(*b) != BlockState::Complete) else { return };
        let block = store.block_core(b);
        self.construction.entry(id).or_insert_with(|| Construction::new(block)).truncate = Some(truncate);
        if truncate.id != id {
            self.begin_copy(store, truncate, block);
        }
    }

    /// The old block leaves the file system: its replicas stay. `false` if nothing is made of it.
    pub(crate) fn keep_removed(&mut self, old: BlockId, places: impl Iterator<Item = StorageNumber>) -> bool {
        let Some(truncation) = self.truncations.get_mut(&old) else { return false };
        truncation.places = places.collect();
        true
    }

    /// A replica of an unknown block was reported. Whether it is what a new block is made of; then it stays, and that block may be made there.
    pub(crate) fn report_source(
        &mut self,
        store: &Store,
        storage: StorageNumber,
        replica: &Block,
        state: ReplicaState,
    ) -> bool {
        let Some(truncation) = self.truncations.get_mut(&replica.id) else { return false };
        let into = truncation.into;
        let old = self.construction.get(&into).and_then(|c| c.truncate);
        let sound = state == ReplicaState::Finalized
            && old.is_some_and(|old| (old.stamp, old.length) == (replica.stamp, replica.length));
        if sound && !truncation.places.contains(&storage) {
            truncation.places.push(storage);
            self.expect_copies(store, into);
        }
        true
    }

    /// A replica of a block was deleted by its DataNode.
    pub(crate) fn forget_source(&mut self, old: BlockId, storage: StorageNumber) {
        if let Some(truncation) = self.truncations.get_mut(&old) {
            truncation.places.retain(|s| *s != storage);
        }
    }

    /// A truncate into a new block is over: if nothing has the old one any more, its replicas go now.
    pub(crate) fn end_truncation(&mut self, store: &Store, construction: &Construction) {
        let Some(old) = construction.truncate.filter(|old| old.id != construction.block.id) else { return };
        let Some(truncation) = self.truncations.remove(&old.id) else { return };
        if store.find_block(old.id).is_some() {
            return;
        }
        for node in truncation.places.iter().filter_map(|s| self.node_of(*s)).collect::<SmallVec<[_; 3]>>() {
            self.invalidate(node, Block { length: NO_ACK, ..old });
        }
    }
}
