//! What a single reported replica means.

use super::Reported;
use crate::redundancy::CorruptReason;
use crate::{Blocks, NodeNumber};
use record::{BlockHandle, BlockInfo, ReplicaFlags, StorageNumber, Store};
use vocab::erasure_coding::Stripe;
use vocab::{Block, BlockId, BlockState, ReplicaState};

/// Whether a reported replica is corrupt by what its block's record says, and why; `stripe` is the layout of a striped group.
pub(crate) fn corrupt_by_report(info: &BlockInfo, stripe: Option<Stripe>, r: &Reported) -> Option<CorruptReason> {
    let stamp_differs = info.block.stamp != r.block.stamp;
    match (r.state, info.state) {
        (ReplicaState::Finalized, BlockState::Complete | BlockState::Committed) => {
            if stamp_differs {
                Some(CorruptReason::StampMismatch)
            } else {
                let length = match stripe {
                    Some(stripe) => stripe.unit_length(info.block.length, r.block.id.index_in_group()),
                    None => info.block.length,
                };
                (length != r.block.length).then_some(CorruptReason::SizeMismatch)
            }
        }
        (ReplicaState::Finalized, BlockState::UnderConstruction) => {
            (info.block.stamp > r.block.stamp).then_some(CorruptReason::StampMismatch)
        }
        (ReplicaState::Finalized, BlockState::UnderRecovery) => None,
        (ReplicaState::BeingWritten | ReplicaState::WaitingToBeRecovered, BlockState::Complete) => {
            if stamp_differs {
                Some(CorruptReason::StampMismatch)
            } else if r.state == ReplicaState::BeingWritten {
                // the report may be older than the end of the pipeline: a finalized replica will be reported (HDFS-2791)
                None
            } else {
                Some(CorruptReason::InvalidState)
            }
        }
        (ReplicaState::BeingWritten | ReplicaState::WaitingToBeRecovered, _) => None,
        // such are never reported by a working DataNode
        (ReplicaState::UnderRecovery | ReplicaState::Temporary, _) => Some(CorruptReason::InvalidState),
    }
}

/// Index of a striped group's internal block, 0 for others.
pub(super) fn index_of(info: &BlockInfo, reported: &Block) -> u8 {
    if info.erasure_coding_policy != 0 { reported.id.index_in_group() } else { 0 }
}

/// Whether the replica belongs to a block that is being written, as far as its state tells.
fn belongs_to_open(info: &BlockInfo, r: &Reported) -> bool {
    match r.state {
        ReplicaState::Finalized => matches!(info.state, BlockState::UnderConstruction | BlockState::UnderRecovery),
        ReplicaState::BeingWritten | ReplicaState::WaitingToBeRecovered => info.state != BlockState::Complete,
        ReplicaState::UnderRecovery | ReplicaState::Temporary => false,
    }
}

impl Blocks {
    /// Whether this replica is to be deleted, so that reports of it mean nothing: the order is queued or waits for the next heartbeat.
    pub(crate) fn deletion_is_due(&self, node: NodeNumber, block: &Block) -> bool {
        let ordered = self.registry.node(node).and_then(|n| n.mailbox.invalidate.get(&block.id));
        self.invalidation.contains(node, block) || ordered.is_some_and(|b| b.stamp == block.stamp)
    }

    /// Takes one replica of a report. `first`: of the first full report since the node registered: what is unknown is left alone then.
    /// The block's id as runs hold it, if the block is known.
    pub(crate) fn take_reported(
        &mut self,
        store: &mut Store,
        storage: StorageNumber,
        node: NodeNumber,
        r: &Reported,
        first: bool,
        hint: Option<NodeNumber>,
    ) -> Option<BlockId> {
        self.take_found(store, store.find_block(r.block.id), storage, node, r, first, hint)
    }

    /// The same, of a replica whose block was looked up.
    pub(super) fn take_found(
        &mut self,
        store: &mut Store,
        found: Option<BlockHandle>,
        storage: StorageNumber,
        node: NodeNumber,
        r: &Reported,
        first: bool,
        hint: Option<NodeNumber>,
    ) -> Option<BlockId> {
        let known = found.map(|b| (b, store.block_and_replicas(b))).filter(|(_, (info, _))| !info.deleted);
        let Some((b, (info, mut replicas))) = known else {
            if self.report_source(store, storage, &r.block, r.state) {
                return None;
            }
            // Quirk: unknown_replicas_are_deleted_but_not_on_the_word_of_a_first_report: Hadoop leaves them until the next full report
            if !first {
                self.invalidate(node, r.block);
            } else if self.safe_mode.is_startup() && r.block.stamp > self.last_stamp {
                self.futures.seen += 1;
                self.safe_mode.add_bytes_in_future(r.block.length, r.block.id.is_striped());
            }
            return None;
        };
        let id = Some(info.block.id);
        if self.deletion_is_due(node, &r.block) {
            return id;
        }
        if let Some(reason) = corrupt_by_report(&info, self.stripe(&info), r) {
            self.mark_corrupt(store, b, storage, &r.block, reason);
            return id;
        }
        if belongs_to_open(&info, r) {
            self.report_open(store, b, storage, r);
        }
        if r.state == ReplicaState::Finalized {
            let present = replicas.iter().find(|x| x.storage == storage);
            if present.is_none_or(|x| x.flags.contains(ReplicaFlags::CORRUPT)) {
                self.add_known(store, b, &info, &mut replicas, storage, index_of(&info, &r.block), hint);
            } else if first && self.populating_queues() {
                // the node was dead or away: its replica did not count and does again
                self.review(store, b);
            }
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::GenerationStamp;

    #[test]
    fn corruption_by_state_stamp_and_length() {
        use BlockState::{Committed, Complete, UnderConstruction};
        use CorruptReason::{InvalidState, SizeMismatch, StampMismatch};
        use ReplicaState::{BeingWritten, Finalized, Temporary, WaitingToBeRecovered};
        let stored = |state| BlockInfo {
            block: Block { id: BlockId(1), length: 10, stamp: GenerationStamp(1005) },
            state,
            ..BlockInfo::default()
        };
        for (replica, stamp, length, block, expected) in [
            (Finalized, 1005, 10, Complete, None),
            (Finalized, 1004, 10, Complete, Some(StampMismatch)),
            (Finalized, 1005, 9, Committed, Some(SizeMismatch)),
            (Finalized, 1004, 9, UnderConstruction, Some(StampMismatch)),
            (Finalized, 1006, 9, UnderConstruction, None),
            (Finalized, 1004, 9, BlockState::UnderRecovery, None),
            (BeingWritten, 1005, 3, Complete, None),
            (BeingWritten, 1004, 3, Complete, Some(StampMismatch)),
            (WaitingToBeRecovered, 1005, 10, Complete, Some(InvalidState)),
            (WaitingToBeRecovered, 1004, 3, Committed, None),
            (Temporary, 1005, 10, Complete, Some(InvalidState)),
        ] {
            let r = Reported { block: Block { id: BlockId(1), length, stamp: GenerationStamp(stamp) }, state: replica };
            assert_eq!(corrupt_by_report(&stored(block), None, &r), expected, "{replica:?} {stamp} {length} {block:?}");
        }
    }
}
