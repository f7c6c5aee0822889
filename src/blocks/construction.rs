//! Blocks that are being written or recovered: where their replicas are expected (Hadoop's `BlockUnderConstructionFeature`).

use crate::placement::Target;
use crate::{Blocks, NodeNumber};
use record::{BlockHandle, StorageNumber, Store};
use smallvec::SmallVec;
use vocab::erasure_coding::REPLICATION;
use vocab::{Block, BlockId, BlockState, GenerationStamp, Refusal, ReplicaState};

/// A place where a replica of an open block should be or was reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Volume.
    pub storage: StorageNumber,
    /// Index within a striped group, 0 for others.
    pub index: u8,
    /// Stamp last known of the replica.
    pub stamp: GenerationStamp,
    /// State last reported; being written where nothing was.
    pub state: ReplicaState,
    /// Whether it was asked to lead a recovery already.
    pub(crate) tried: bool,
}

/// What is known of an open block beyond its record.
#[derive(Clone, Debug)]
pub struct Construction {
    /// Id, length and stamp.
    pub block: Block,
    /// Places, the pipeline's order first.
    pub expected: SmallVec<[Expected; 3]>,
    /// Stamp that the running recovery will give.
    pub recovery_id: Option<GenerationStamp>,
    /// For a truncate: what the recovery makes of the block.
    pub truncate: Option<Block>,
}

impl Construction {
    pub(crate) fn new(block: Block) -> Construction {
        Construction { block, expected: SmallVec::new(), recovery_id: None, truncate: None }
    }
    /// A place; `index` of an internal block of a striped group, 0 for others.
    pub(crate) fn expect_as(&mut self, storage: StorageNumber, index: u8, block: Block) {
        let state = ReplicaState::BeingWritten;
        self.expected.push(Expected { storage, index, stamp: block.stamp, state, tried: false });
    }
}

impl Blocks {
    /// Where the replicas of an open block are expected, in pipeline order; empty for others.
    pub fn expected(&self, id: BlockId) -> SmallVec<[StorageNumber; 3]> {
        self.construction.get(&id).map(|c| c.expected.iter().map(|e| e.storage).collect()).unwrap_or_default()
    }
    /// What is known of an open block.
    pub fn construction(&self, id: BlockId) -> Option<&Construction> {
        self.construction.get(&id)
    }
    /// Says that the recovery of an open block is to cut it: `cut` has the length and stamp that it will have.
    pub fn set_truncate(&mut self, id: BlockId, cut: Block) {
        if let Some(c) = self.construction.get_mut(&id) {
            c.truncate = Some(cut);
        }
    }
    /// How many blocks are open (being written, committed or in recovery).
    pub fn open_block_count(&self) -> u64 {
        self.open_blocks
    }
    /// Blocks that are, or may be, not complete; those of open files that nobody has spoken of since the start are not among them.
    pub fn open_block_ids(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.construction.keys().copied()
    }

    /// Says where an open block is being written: after addBlock with its targets, after updatePipeline with the new pipeline. The
    /// block's record is up to date.
    pub fn begin_construction(&mut self, store: &Store, b: BlockHandle, targets: &[StorageNumber]) {
        let info = store.block(b);
        let (block, striped) = (info.block, info.erasure_coding_policy != REPLICATION);
        let c = self.construction.entry(block.id).or_insert_with(|| Construction::new(block));
        let fresh = c.expected.is_empty();
        c.block = block;
        c.expected.clear();
        (0u8..).zip(targets).for_each(|(index, t)| c.expect_as(*t, if striped { index } else { 0 }, block));
        c.recovery_id = None;
        if fresh {
            targets.iter().for_each(|t| self.schedule(*t, 1));
        }
    }

    /// Counts a block as on its way to a volume's node, so that placement leaves room for it.
    pub(crate) fn schedule(&mut self, storage: StorageNumber, by: u32) {
        if let Some((node, kind)) = self.registry.volume(storage).map(|v| (v.node, v.kind))
            && let Some(node) = self.registry.node_mut(node)
        {
            node.scheduled[0][kind as usize] += by;
        }
    }

    /// State of a block as clients and DataNodes meet it. One that a truncate cuts is in recovery, also after a start, before anybody leads one: its
    /// replicas are longer than it is to be, so nobody may finish it or go on with it.
    pub fn state_of(&self, store: &Store, b: BlockHandle) -> BlockState {
        match store.block_state(b) {
            BlockState::UnderConstruction
                if self.construction.get(&store.block_core(b).id).is_some_and(|c| c.truncate.is_some()) =>
            {
                BlockState::UnderRecovery
            }
            state => state,
        }
    }

    /// Looks whether a client may commit an open block with this length and stamp. `Ok(false)`: it is committed or complete already.
    ///
    /// # Errors
    /// A block in recovery, another stamp. Quirk: a_commit_may_be_shorter: the length is the client's word.
    pub fn check_commit(&self, store: &Store, b: BlockHandle, commit: &Block) -> Result<bool, Refusal> {
        let info = store.block(b);
        match self.state_of(store, b) {
            BlockState::Complete | BlockState::Committed => Ok(false),
            BlockState::UnderRecovery => Err(Refusal::io(format!(
                "Commit or complete block {}, whereas it is under recovery.",
                block_text(commit)
            ))),
            BlockState::UnderConstruction if commit.stamp != info.block.stamp => Err(Refusal::io(format!(
                "Commit block with mismatching GS. NN has {}, client submits {}",
                block_text(&info.block),
                block_text(commit)
            ))),
            BlockState::UnderConstruction => Ok(true),
        }
    }

    /// The client has finished an open block; its length and stamp are in the record. It becomes committed, and complete as soon as enough
    /// replicas are reported. Replicas of older stamps are forgotten.
    pub fn block_committed(&mut self, store: &mut Store, b: BlockHandle) {
        let info = store.block(b);
        if info.state == BlockState::Complete {
            return;
        }
        store.edit_block(b, |i| i.state = BlockState::Committed);
        if let Some(c) = self.construction.get_mut(&info.block.id) {
            c.block = info.block;
        }
        self.drop_stale_replicas(store, b);
        self.complete_if_enough(store, b);
    }

    /// Makes a committed block complete if enough replicas are there. Whether the block is complete now.
    pub fn complete_if_enough(&mut self, store: &mut Store, b: BlockHandle) -> bool {
        match store.block_state(b) {
            BlockState::Complete => true,
            BlockState::Committed if self.has_minimum(store, b) => {
                store.edit_block(b, |i| i.state = BlockState::Complete);
                self.block_completed(store, b);
                true
            }
            _ => false,
        }
    }

    /// Forgets replicas whose reported stamp is not the block's: they missed a pipeline recovery (Hadoop's `removeStaleReplicas`).
    pub fn drop_stale_replicas(&mut self, store: &mut Store, b: BlockHandle) {
        let info = store.block(b);
        let Some(c) = self.construction.get(&info.block.id) else { return };
        let stale: SmallVec<[StorageNumber; 4]> =
            c.expected.iter().filter(|e| e.stamp != info.block.stamp).map(|e| e.storage).collect();
        for storage in stale {
            self.remove_replica(store, b, storage);
        }
    }

    /// The writers' replicas that are not reported yet will come by themselves: no copies are ordered for them before the timeout.
    pub(crate) fn expect_writers_replicas(&mut self, store: &Store, b: BlockHandle, construction: &Construction) {
        if !self.populating_queues() {
            return;
        }
        let there = store.replicas(b);
        // of a group, only where each internal block with content had its place
        let info = store.block(b);
        if self.stripe(&info).is_some() && self.wanted(&info) as usize != construction.expected.len() {
            return;
        }
        let coming: SmallVec<[NodeNumber; 3]> = construction
            .expected
            .iter()
            .filter(|e| !there.iter().any(|r| r.storage == e.storage))
            .filter_map(|e| self.node_of(e.storage))
            .filter(|n| self.registry.node(*n).is_some_and(|n| n.alive))
            .collect();
        if !coming.is_empty() {
            self.pending.add(construction.block.id, &coming, self.clock);
        }
    }

    /// A volume with its node, as commands and answers name it.
    pub fn target(&self, storage: StorageNumber) -> Option<Target> {
        let v = self.registry.volume(storage)?;
        Some(Target { storage, node: v.node, kind: v.kind })
    }
}

/// A block as Hadoop prints it: `blk_<id>_<stamp>`.
pub fn block_text(block: &Block) -> String {
    format!("blk_{}_{}", block.id, block.stamp)
}
