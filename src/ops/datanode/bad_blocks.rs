//! Bad replicas, as readers and DataNodes find them (`reportBadBlocks` of both protocols).

use crate::Turn;
use blocks::{DatanodeId, block_text};
use std::sync::Arc;
use vocab::{Block, Refusal, StorageKind};

/// A block with the places where it is bad.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadBlock {
    /// The pool that the caller says it is of.
    pub pool: Arc<str>,
    /// The block as the caller knows it.
    pub block: Block,
    /// Where.
    pub places: Vec<BadPlace>,
}

/// Where a replica is bad.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadPlace {
    /// The DataNode.
    pub node: DatanodeId,
    /// Its volume; without, whichever the DataNode has the block on.
    pub storage: Option<String>,
    /// Kind of the volume, for messages.
    pub kind: Option<StorageKind>,
}

/// Marks replicas as corrupt. What is not known is passed over; blocks before one that is refused stay marked.
///
/// # Errors
/// A DataNode that never registered (`Io`) or that another address serves (`UnregisteredNode`).
pub fn report_bad_blocks(turn: &mut Turn<'_>, bad: &[BadBlock]) -> Result<(), Refusal> {
    let state = turn.soft();
    for b in bad.iter().filter(|b| !b.places.is_empty()) {
        if state.store.find_block(b.block.id).is_none() {
            continue;
        }
        for place in &b.places {
            if !state.blocks.is_known(&place.node)? {
                return Err(unknown_node(b, place));
            }
            state.blocks.report_bad(&mut state.store, &b.block, &place.node, place.storage.as_deref())?;
        }
    }
    Ok(())
}

/// As Hadoop words it, the place printed as a client's `DatanodeInfoWithStorage`.
fn unknown_node(bad: &BadBlock, place: &BadPlace) -> Refusal {
    let (pool, block, node) = (&bad.pool, block_text(&bad.block), &place.node);
    let storage = place.storage.as_deref().unwrap_or("null");
    let kind = place.kind.map_or("null", StorageKind::name);
    Refusal::io(format!(
        "Cannot mark {pool}:{block} as corrupt because datanode DatanodeInfoWithStorage[{node},{storage},{kind}] ({}) does not exist",
        node.uuid
    ))
}
