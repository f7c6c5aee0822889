//! Recovery of a block whose writer is gone: who leads it, and what it comes to (Hadoop's `initializeBlockRecovery` and
//! `commitBlockSynchronization`).

use crate::placement::Target;
use crate::redundancy::CorruptReason;
use crate::{Blocks, Construction, NodeNumber, Recovery};
use record::{BlockHandle, BlockInfo, StorageNumber, Store};
use vocab::time::MonotonicMs;
use vocab::{Block, BlockId, BlockState, GenerationStamp};

impl Blocks {
    /// Starts (again) the recovery of an open block under a new stamp: the expected place whose node was heard from last and that did not
    /// lead yet gets the order. `false` if there is no place at all, so that no one can lead.
    pub fn begin_recovery(&mut self, store: &mut Store, b: BlockHandle, recovery_id: GenerationStamp) -> bool {
        let info = store.block(b);
        let id = info.block.id;
        store.edit_block(b, |i| i.state = BlockState::UnderRecovery);
        let c = self.construction.entry(id).or_insert_with(|| Construction::new(info.block));
        c.recovery_id = Some(recovery_id);
        if c.expected.is_empty() {
            store.replicas(b).iter().for_each(|r| c.expect_as(r.storage, r.index, info.block));
        }
        self.expect_copies(store, id);
        let c = self.construction.get_mut(&id).expect("entered above");
        if c.expected.is_empty() {
            return false;
        }
        let alive = |s: StorageNumber, r: &crate::registry::Registry| {
            r.volume(s).and_then(|v| r.node(v.node)).filter(|n| n.alive).map(|n| (n.number, n.last_update))
        };
        if c.expected.iter().all(|e| e.tried || alive(e.storage, &self.registry).is_none()) {
            c.expected.iter_mut().for_each(|e| e.tried = false);
        }
        let mut best: Option<(usize, NodeNumber, MonotonicMs)> = None;
        for (i, e) in c.expected.iter().enumerate().filter(|(_, e)| !e.tried) {
            if let Some((node, at)) = alive(e.storage, &self.registry)
                && best.is_none_or(|(.., t)| at > t)
            {
                best = Some((i, node, at));
            }
        }
        if let Some((i, primary, _)) = best {
            c.expected[i].tried = true;
            let node = self.registry.node_mut(primary).expect("alive");
            if !node.mailbox.recover.contains(&id) {
                node.mailbox.recover.push_back(id);
            }
        }
        true
    }

    /// Starts the recovery that cuts the last block of a file: to `truncated` in place (the same id, the length that stays), or, where the old
    /// block is kept, from `truncated` (that old block) into the new block `b`.
    pub fn begin_truncate(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        recovery_id: GenerationStamp,
        truncated: Block,
    ) -> bool {
        let block = store.block_core(b);
        if truncated.id != block.id {
            self.begin_copy(store, truncated, block);
        }
        let led = self.begin_recovery(store, b, recovery_id);
        if let Some(c) = self.construction.get_mut(&store.block_core(b).id) {
            c.truncate = Some(truncated);
        }
        led
    }

    /// The order for the primary, made when its heartbeat comes: stale nodes are left out where two or more fresh ones remain.
    pub(crate) fn recovery_order(&self, store: &Store, id: BlockId, now: MonotonicMs) -> Option<Recovery> {
        let b = store.find_block(id)?;
        let info = store.block(b);
        let c = self.construction.get(&id)?;
        let recovery_id = c.recovery_id?;
        if info.state != BlockState::UnderRecovery || info.deleted {
            return None;
        }
        let places = |fresh: bool| -> (Vec<Target>, Vec<u8>) {
            c.expected
                .iter()
                .filter_map(|e| Some((self.target(e.storage)?, e.index)))
                .filter(|(t, _)| {
                    let node = self.registry.node(t.node).expect("target of a node");
                    node.alive && (!fresh || !node.is_stale(now, self.settings.stale_interval_ms))
                })
                .unzip()
        };
        let (mut locations, mut indices) = places(true);
        if locations.len() <= 1 {
            (locations, indices) = places(false);
        }
        let units = self.stripe(&info).map(|_| (info.erasure_coding_policy, indices));
        let (block, truncate) = match c.truncate {
            // copied: the old block is recovered into the new one
            Some(old) if old.id != id => (old, Some(info.block)),
            other => (info.block, other),
        };
        // a DataNode takes the recovery's id from what it makes
        let truncate = truncate.map(|made| Block { stamp: recovery_id, ..made });
        Some(Recovery { block, locations, recovery_id: recovery_id.0, truncate, units })
    }

    /// Stamp that the running recovery of a block will give; `None` where none runs.
    pub fn recovery_id(&self, id: BlockId) -> Option<GenerationStamp> {
        self.construction.get(&id)?.recovery_id
    }

    /// A recovery came to its end: the block has its new stamp and length, and just these replicas, each with its index within a striped group (0
    /// for other blocks). It stays open.
    pub fn end_recovery(&mut self, store: &mut Store, b: BlockHandle, recovered: Block, on: &[(StorageNumber, u8)]) {
        store.edit_block(b, |i| {
            i.block = recovered;
            i.state = BlockState::UnderConstruction;
        });
        let c = self.construction.entry(recovered.id).or_insert_with(|| Construction::new(recovered));
        let before = std::mem::replace(c, Construction::new(recovered));
        on.iter().for_each(|(s, index)| c.expect_as(*s, *index, recovered));
        self.end_truncation(store, &before);
    }

    /// After [`Blocks::end_recovery`] of a file that is closed: the primary has seen the replicas finalized, so they count at once; those left on
    /// other nodes are corrupt.
    pub fn settle_recovery(&mut self, store: &mut Store, b: BlockHandle, old: Block, on: &[(StorageNumber, u8)]) {
        for (s, index) in on {
            self.add_stored(store, b, *s, *index, None);
        }
        let block = store.block_core(b);
        let info = store.block(b);
        let reason = match (block.stamp != old.stamp, block.length != old.length) {
            (true, _) => CorruptReason::StampMismatch,
            (false, true) => CorruptReason::SizeMismatch,
            (false, false) => return,
        };
        for r in store.replicas(b) {
            if !on.iter().any(|(s, _)| *s == r.storage) {
                let old = Blocks::on_storage(&BlockInfo { block: old, ..info }, r);
                self.mark_corrupt(store, b, r.storage, &old, reason);
            }
        }
    }

    /// Makes a committed block complete whatever its replicas: its recovery has just ended, so nothing more will come by itself.
    pub fn force_complete(&mut self, store: &mut Store, b: BlockHandle) {
        if store.block_state(b) != BlockState::Complete {
            store.edit_block(b, |i| i.state = BlockState::Complete);
            self.block_completed(store, b);
            self.block_closed(store, b); // it is, in a moment
        }
    }
}
