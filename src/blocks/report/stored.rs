//! Changes of a block's replicas, and all that depends on them.

use super::Reported;
use super::reported::index_of;
use crate::counting::EXCESS;
use crate::redundancy::CorruptReason;
use crate::{Blocks, DatanodeId, NodeNumber, VolumeState};
use record::{BlockHandle, BlockInfo, Replica, ReplicaFlags, Replicas, StorageNumber, Store};
use vocab::erasure_coding::REPLICATION;
use vocab::{Block, BlockState, Refusal};

/// What recording a replica changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Put {
    /// There is one more.
    Added,
    /// One that was corrupt or excess is good again.
    Cleared,
    /// Nothing that counts.
    Same,
}

impl Blocks {
    /// Safe-mode account around a change of a complete block's replicas.
    pub(crate) fn with_safe_count<T>(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        change: impl FnOnce(&mut Blocks, &mut Store) -> T,
    ) -> T {
        if !self.safe_mode.counts() || store.block_state(b) != BlockState::Complete {
            return change(self, store);
        }
        let before = self.is_safe(store, b);
        let result = change(self, store);
        let after = self.is_safe(store, b);
        self.safe_mode.adjust_safe(i64::from(after) - i64::from(before));
        result
    }

    /// A finalized replica is on this volume; `index` of an internal block of a striped group, 0 for others. `hint` is the node that a balancer
    /// moved it from.
    pub(crate) fn add_stored(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        storage: StorageNumber,
        index: u8,
        hint: Option<NodeNumber>,
    ) {
        let (info, mut replicas) = store.block_and_replicas(b);
        self.add_known(store, b, &info, &mut replicas, storage, index, hint);
    }

    /// The same, of a block that is at hand with its replicas; they are up to date afterwards.
    pub(crate) fn add_known(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        info: &BlockInfo,
        replicas: &mut Replicas,
        storage: StorageNumber,
        index: u8,
        hint: Option<NodeNumber>,
    ) {
        let Some(node) = self.node_of(storage) else { return };
        let complete = info.state == BlockState::Complete;
        let counts = complete && self.safe_mode.counts();
        let striped = info.erasure_coding_policy != REPLICATION;
        let before = if counts { self.count_of(striped, replicas).live } else { 0 };
        let put = self.put_replica(store, b, info, replicas, storage, index);
        if counts && matches!(put, Put::Added | Put::Cleared) {
            let live = self.count_of(striped, replicas).live;
            let least = self.minimum(info, self.settings.safe_replication_min);
            self.safe_mode.adjust_safe(i64::from(live >= least) - i64::from(before >= least));
        }
        if !complete && !self.complete_if_enough(store, b) {
            return;
        }
        if self.populating_queues() {
            self.review_after(store, b, (put == Put::Added).then_some(node), hint);
        }
    }

    /// Records the replica; one on another volume of the same node moves.
    fn put_replica(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        info: &BlockInfo,
        replicas: &mut Replicas,
        storage: StorageNumber,
        index: u8,
    ) -> Put {
        let id = info.block.id;
        let node = self.node_of(storage).expect("a volume's node");
        let old = replicas.iter().find(|r| self.node_of(r.storage) == Some(node)).copied();
        if let Some(old) = old {
            if old.storage == storage {
                // a replica of the right stamp has come after one of the wrong stamp
                if old.flags.contains(ReplicaFlags::CORRUPT)
                    && self.corrupt.remove(id, node, Some(CorruptReason::StampMismatch))
                {
                    self.flag(store, b, old, ReplicaFlags::CORRUPT, false);
                    *replicas = store.replicas(b);
                    return Put::Cleared;
                }
                return Put::Same;
            }
            replicas.retain(|r| r.storage != old.storage);
            if let Some(v) = self.registry.volume_mut(old.storage) {
                v.blocks.remove(id.0);
            }
            self.corrupt.remove(id, node, None);
            self.excess.remove(node, id);
        }
        replicas.push(Replica { storage, index, flags: ReplicaFlags::NONE });
        store.set_replicas(b, replicas);
        let volume = self.registry.volume_mut(storage).expect("a volume");
        volume.blocks.insert(id.0);
        if let Some(came) = &mut volume.came_during_report {
            came.insert(id.0);
        }
        match old {
            None => Put::Added,
            // marks do not move with it
            Some(old) if old.flags != ReplicaFlags::NONE => Put::Cleared,
            Some(_) => Put::Same,
        }
    }

    /// Sets or clears a mark of a replica.
    pub(crate) fn flag(&mut self, store: &mut Store, b: BlockHandle, replica: Replica, mark: ReplicaFlags, on: bool) {
        let bits = if on { replica.flags.0 | mark.0 } else { replica.flags.0 & !mark.0 };
        store.add_replica(b, Replica { flags: ReplicaFlags(bits), ..replica });
    }

    /// A replica is gone: deleted, lost with its node or volume, or missing from a report.
    pub(crate) fn remove_replica(&mut self, store: &mut Store, b: BlockHandle, storage: StorageNumber) -> bool {
        let id = store.block_core(b).id;
        let removed = self.with_safe_count(store, b, |blocks, store| {
            if let Some(v) = blocks.registry.volume_mut(storage) {
                v.blocks.remove(id.0);
            }
            store.remove_replica(b, storage)
        });
        if !removed {
            return false;
        }
        if let Some(node) = self.node_of(storage) {
            self.excess.remove(node, id);
            self.corrupt.remove(id, node, None);
        }
        if self.populating_queues() {
            self.review(store, b);
        }
        true
    }

    /// Marks a replica corrupt. It is deleted at once where enough good ones are there, or where it is only a leftover of an earlier stamp;
    /// else the block needs another copy first.
    pub(crate) fn mark_corrupt(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        storage: StorageNumber,
        corrupted: &Block,
        reason: CorruptReason,
    ) {
        let info = store.block(b);
        let Some(node) = self.node_of(storage) else { return };
        if info.deleted {
            self.invalidate(node, *corrupted);
            return;
        }
        if self.replica_on(store, b, node).is_some_and(|r| !Blocks::is_same_unit(&info, r, corrupted.id)) {
            // a second internal block of the group on one node is not known here; the one that is known may be good
            return;
        }
        self.with_safe_count(store, b, |blocks, store| {
            let mut replicas = store.replicas(b);
            blocks.put_replica(store, b, &info, &mut replicas, storage, index_of(&info, corrupted));
            let replica = blocks.replica_on(store, b, node).expect("just put");
            blocks.flag(store, b, replica, ReplicaFlags::CORRUPT, true);
            blocks.corrupt.add(info.block.id, info.erasure_coding_policy != REPLICATION, node, reason);
        });
        let count = self.count(store, b);
        let wanted = self.wanted(&info);
        let minimum = count.usable() >= self.minimum(&info, self.settings.replication_min);
        let enough = count.usable() >= wanted;
        let more = minimum && count.live + count.corrupt > wanted;
        let leftover = minimum && info.block.stamp > corrupted.stamp;
        if enough || more || leftover {
            self.delete_corrupt(store, b, storage, corrupted);
        } else if self.populating_queues() {
            self.review(store, b);
        }
    }

    /// Queues a corrupt replica for deletion and forgets it, unless some replica's volume is not up to date and settings say to wait.
    pub(crate) fn delete_corrupt(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        storage: StorageNumber,
        corrupted: &Block,
    ) -> bool {
        if !self.populating_queues() {
            return false;
        }
        let count = self.count(store, b);
        if count.usable() == 0 || count.stale > 0 && !self.settings.delete_corrupt_immediately {
            self.postponed.add(store.block_core(b).id);
            return false;
        }
        let Some(node) = self.node_of(storage) else { return false };
        self.invalidate(node, *corrupted);
        self.remove_replica(store, b, storage);
        true
    }

    /// A client or a DataNode found a replica bad. Unknown blocks and nodes without the replica are ignored, as Hadoop does.
    ///
    /// # Errors
    /// A DataNode that is not known, or that another address serves.
    pub fn report_bad(
        &mut self,
        store: &mut Store,
        block: &Block,
        on: &DatanodeId,
        storage_id: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(b) = store.find_block(block.id) else { return Ok(()) };
        let Some(node) = self.identify_as(on, on)? else {
            return Err(Refusal::io(format!(
                "Cannot mark {} as corrupt because datanode {on} ({}) does not exist",
                crate::construction::block_text(&store.block_core(b)),
                on.uuid
            )));
        };
        let replica = match storage_id.and_then(|id| self.registry.find_volume(node, id)) {
            Some(s) => store.replicas(b).into_iter().find(|r| r.storage == s),
            None => self.replica_on(store, b, node),
        };
        if let Some(replica) = replica {
            self.mark_corrupt(store, b, replica.storage, block, CorruptReason::CorruptionReported);
        }
        Ok(())
    }

    /// Adds a replica to the account of those beyond the wanted number and queues its deletion.
    pub(crate) fn mark_excess(&mut self, store: &mut Store, b: BlockHandle, storage: StorageNumber) {
        let info = store.block(b);
        let Some(node) = self.node_of(storage) else { return };
        let Some(replica) = store.replicas(b).into_iter().find(|r| r.storage == storage) else { return };
        self.flag(store, b, replica, EXCESS, true);
        self.excess.add(node, info.block.id, self.clock);
        self.invalidate(node, Blocks::on_storage(&info, replica));
    }

    /// Whether reports about this volume change anything: it is known, not failed, and its node registered.
    pub(crate) fn reports_count(&self, storage: StorageNumber) -> bool {
        self.registry
            .volume(storage)
            .is_some_and(|v| v.state != VolumeState::Failed && self.registry.node(v.node).is_some_and(|n| n.registered))
    }

    /// An open block's replica was reported: remember where and in which state; once finalized it counts.
    pub(crate) fn report_open(&mut self, store: &mut Store, b: BlockHandle, storage: StorageNumber, r: &Reported) {
        let info = store.block(b);
        let (block, index) = (info.block, index_of(&info, &r.block));
        let node = self.node_of(storage);
        let registry = &self.registry;
        // after a restart nothing is expected anywhere until it is reported
        let c = self.construction.entry(block.id).or_insert_with(|| crate::Construction::new(block));
        match c.expected.iter_mut().find(|e| e.storage == storage) {
            Some(e) => {
                e.stamp = r.block.stamp;
                e.state = r.state;
            }
            None => {
                // a DataNode may choose another volume than it was told
                c.expected.retain(|e| registry.volume(e.storage).map(|v| v.node) != node);
                c.expect_as(storage, index, r.block);
                c.expected.last_mut().expect("just added").state = r.state;
            }
        }
    }
}
