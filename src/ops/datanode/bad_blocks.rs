//! Bad replicas, as readers and DataNodes find them (`reportBadBlocks` of both protocols).

use crate::Turn;
use blocks::DatanodeId;
use vocab::{Block, Refusal};

/// A block with the places where it is bad.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadBlock {
    /// The block as the caller knows it.
    pub block: Block,
    /// DataNodes and storage ids; an absent storage id means whichever the DataNode has it on.
    pub places: Vec<(DatanodeId, Option<String>)>,
}

/// Marks replicas as corrupt. What is not known is passed over; blocks before one that is refused stay marked.
///
/// # Errors
/// A DataNode that never registered (`Io`) or that another address serves (`UnregisteredNode`).
pub fn report_bad_blocks(turn: &mut Turn<'_>, bad: &[BadBlock]) -> Result<(), Refusal> {
    let state = turn.soft();
    for b in bad {
        for (node, storage) in &b.places {
            state.blocks.report_bad(&mut state.store, &b.block, node, storage.as_deref())?;
        }
    }
    Ok(())
}
