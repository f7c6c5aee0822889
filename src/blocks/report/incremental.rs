//! Incremental reports.

use super::Reported;
use crate::{Blocks, NodeNumber, VolumeId};
use record::{BlockHandle, StorageNumber, Store};
use vocab::time::Now;
use vocab::{Block, Refusal, ReplicaState};

/// What happened to a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IncrementalKind {
    /// A writer opened it.
    Receiving,
    /// It is finalized.
    Received,
    /// It was deleted.
    Deleted,
}

/// One entry of an incremental report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncrementalEntry<'a> {
    /// Which, with its length.
    pub block: Block,
    /// What happened.
    pub kind: IncrementalKind,
    /// Uuid of the node that a balancer moved it from: its replica is the one to delete.
    pub delete_hint: Option<&'a str>,
}

impl Blocks {
    /// Takes what happened on one volume of a node.
    ///
    /// # Errors
    /// A node that is dead or not registered.
    pub fn incremental_report<'a>(
        &mut self,
        store: &mut Store,
        node: NodeNumber,
        volume: &VolumeId,
        entries: impl Iterator<Item = IncrementalEntry<'a>>,
        now: Now,
    ) -> Result<(), Refusal> {
        self.tick_clock(now);
        if !self.registry.node(node).is_some_and(|n| n.registered) {
            return Err(Refusal::io("Got incremental block report from unregistered or dead node"));
        }
        self.counters.incremental_reports += 1;
        let Some(storage) = self.registry.ensure_volume(node, volume) else {
            return Err(Refusal::io("too many storages"));
        };
        if !self.reports_count(storage) {
            return Ok(());
        }
        for entry in entries {
            match entry.kind {
                IncrementalKind::Deleted => {
                    if let Some(b) = store.find_block(entry.block.id) {
                        self.take_deleted(store, b, storage, &entry.block);
                    }
                    self.forget_source(entry.block.id, storage);
                    self.invalidation.remove(node, entry.block.id);
                    if let Some(node) = self.registry.node_mut(node) {
                        node.mailbox.invalidate.remove(&entry.block.id);
                    }
                }
                IncrementalKind::Receiving => {
                    let r = Reported { block: entry.block, state: ReplicaState::BeingWritten };
                    self.take_reported(store, storage, node, &r, false, None);
                }
                IncrementalKind::Received => {
                    self.unschedule(storage);
                    let hint = entry.delete_hint.and_then(|uuid| self.registry.by_uuid(uuid));
                    let r = Reported { block: entry.block, state: ReplicaState::Finalized };
                    self.take_reported(store, storage, node, &r, false, hint);
                    self.settle_pending(store, node, &entry.block);
                }
            }
        }
        Ok(())
    }

    /// A replica was deleted. Of a striped group another internal block may be on the same volume: that one stays.
    fn take_deleted(&mut self, store: &mut Store, b: BlockHandle, storage: StorageNumber, deleted: &Block) {
        let info = store.block(b);
        let there = store.replicas(b).into_iter().find(|r| r.storage == storage);
        if there.is_some_and(|replica| Blocks::is_same_unit(&info, replica, deleted.id)) {
            self.remove_replica(store, b, storage);
        }
    }

    /// A copy that was ordered has arrived; it may have been known already from a full report, so the block is looked at again.
    fn settle_pending(&mut self, store: &mut Store, node: NodeNumber, block: &Block) {
        let Some(b) = store.find_block(block.id) else { return };
        // of an internal block, that of its group
        let stored = store.block_core(b);
        if stored.stamp != block.stamp || !self.pending.targets(stored.id).contains(&node) {
            return;
        }
        if self.pending.arrived(stored.id, node) {
            self.counters.successful_re_replications += 1;
        }
        if self.populating_queues() {
            self.review(store, b);
        }
    }

    /// A block that was on its way to this volume's node has arrived.
    fn unschedule(&mut self, storage: record::StorageNumber) {
        let Some((node, kind)) = self.registry.volume(storage).map(|v| (v.node, v.kind as usize)) else { return };
        let Some(node) = self.registry.node_mut(node) else { return };
        // the older interval first, as it ends first
        for interval in [1, 0] {
            if node.scheduled[interval][kind] > 0 {
                node.scheduled[interval][kind] -= 1;
                return;
            }
        }
    }
}
