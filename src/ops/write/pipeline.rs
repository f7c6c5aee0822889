//! updateBlockForPipeline, updatePipeline, getAdditionalDatanode: a writer that lost a DataNode goes on with the others.

use super::add_block::show;
use crate::status::LocatedBlock;
use crate::{Operation, Turn, View, Write};
use blocks::{NodeNumber, TargetRequest, block_text};
use edit::Record;
use record::{BlockHandle, InodeHandle, StorageNumber};
use std::borrow::Cow;
use std::sync::Arc;
use vocab::{Block, BlockState, InodeId, Refusal};

impl View<'_> {
    /// The open file that a block under construction belongs to (`FSNamesystem.checkUCBlock`).
    fn block_in_writing(&self, block: &Block, client: &str) -> Result<(InodeHandle, BlockHandle), Refusal> {
        let named = self.pool_block_text(block);
        self.check_safe_mode(|| format!("Cannot get a new generation stamp and an access token for block {named}"))?;
        let store = &self.state.store;
        let Some(b) = store.find_block(block.id).filter(|b| !store.block(*b).deleted) else {
            return Err(Refusal::io(format!("{named} does not exist.")));
        };
        let state = self.state.blocks.state_of(store, b);
        if state != BlockState::UnderConstruction {
            return Err(Refusal::io(format!(
                "Unexpected BlockUCState: {named} is {} but not UNDER_CONSTRUCTION",
                state_name(state)
            )));
        }
        let file = store.block_file(b).filter(|f| self.state.is_open(*f) && self.state.tree.is_attached(store, *f));
        let Some(file) = file else {
            return Err(Refusal::io(format!(
                "The file {} belonged to does not exist or it is not under construction.",
                block_text(&store.block_core(b))
            )));
        };
        match self.state.tree.construction(file) {
            Some(c) if *c.client == *client => Ok((file, b)),
            _ => Err(Refusal::LeaseExpired(
                format!("Lease mismatch: {named} is accessed by a non lease holder {client}").into(),
            )),
        }
    }
}

fn state_name(state: BlockState) -> &'static str {
    match state {
        BlockState::Complete => "COMPLETE",
        BlockState::UnderConstruction => "UNDER_CONSTRUCTION",
        BlockState::UnderRecovery => "UNDER_RECOVERY",
        BlockState::Committed => "COMMITTED",
    }
}

/// A new generation stamp for a block being written. Answers the block with it and its locations.
#[derive(Clone, Debug)]
pub struct UpdateBlockForPipeline {
    /// The block.
    pub block: Block,
    /// Lease holder.
    pub client: Arc<str>,
}

impl Write for UpdateBlockForPipeline {
    type Prepared = ();
    type Reply = LocatedBlock;
    const OPERATION: Operation = Operation::UpdateBlockForPipeline;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<LocatedBlock, Refusal> {
        turn.view().block_in_writing(&self.block, &self.client)?;
        let stamp = turn.next_stamp_of(&self.block)?;
        let block = Block { stamp, ..self.block };
        let state = turn.view().state;
        let group = state.store.find_block(block.id);
        let indices = group.and_then(|b| state.blocks.locate(&state.store, b).indices);
        let located = blocks::Located { block, locations: Vec::new(), indices, corrupt: false, complete: false };
        Ok(LocatedBlock { offset: u64::MAX, located })
    }
}

/// The pipeline of a block changed: a newer stamp, other DataNodes.
#[derive(Clone, Debug)]
pub struct UpdatePipeline {
    /// Lease holder.
    pub client: Arc<str>,
    /// The block as it was.
    pub old: Block,
    /// The same block with its new stamp and length.
    pub new: Block,
    /// The new pipeline: uuids of DataNodes and their storage ids.
    pub targets: Vec<(Arc<str>, Arc<str>)>,
}

impl Write for UpdatePipeline {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::UpdatePipeline;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| "Pipeline not updated".to_owned())?;
        let (file, b) = view.block_in_writing(&self.old, &self.client)?;
        let last = view.state.store.block_core(b);
        let (old, new) = (view.pool_block_text(&self.old), view.pool_block_text(&self.new));
        if self.new.stamp <= last.stamp {
            let last = show(Some(&last));
            return Err(Refusal::io(format!(
                "Update {old} but the new block {new} does not have a larger generation stamp than the last block {last}"
            )));
        }
        if self.new.length < last.length {
            return Err(Refusal::io(format!(
                "Update {old} (size={}) to a smaller size block {new} (size={})",
                self.old.length, self.new.length
            )));
        }
        if self.old.id != self.new.id {
            return Err(Refusal::io(format!("{old} and {new} has different block identifier")));
        }
        let mut blocks = view.block_list(file);
        if let Some(last) = blocks.last_mut().filter(|l| l.id == self.new.id) {
            *last = self.new;
        }
        let path = view.state.tree.path_of(&view.state.store, file);
        let rpc = view.caller.rpc_ids;
        let found = |(node, storage): &(Arc<str>, Arc<str>)| view.state.blocks.find_storage(node, storage);
        let targets: Vec<StorageNumber> = self.targets.iter().filter_map(found).collect();
        turn.log(Record::UpdateBlocks { path: Cow::Owned(path), blocks, rpc });
        let state = turn.soft();
        if let Some(b) = state.store.find_block(self.new.id) {
            // what the nodes of the old pipeline have is of an old stamp until they report the new one
            state.blocks.drop_stale_replicas(&mut state.store, b);
            // An empty pipeline says nothing: the places stay.
            if !self.targets.is_empty() {
                state.blocks.begin_construction(&state.store, b, &targets);
            }
        }
        Ok(())
    }
}

/// More DataNodes for the pipeline of a block. A read: nothing is logged.
#[derive(Clone, Debug)]
pub struct GetAdditionalDatanode {
    /// Path, for messages and old clients.
    pub path: Vec<u8>,
    /// File id, 0 from old clients.
    pub file: InodeId,
    /// The block.
    pub block: Block,
    /// The present pipeline: uuids of DataNodes and their storage ids.
    pub existing: Vec<(Arc<str>, Arc<str>)>,
    /// DataNodes that are no targets.
    pub excluded: Vec<NodeNumber>,
    /// How many more.
    pub count: usize,
    /// Lease holder.
    pub client: Arc<str>,
}

impl GetAdditionalDatanode {
    /// Answers the block with the present pipeline and the new targets.
    ///
    /// # Errors
    /// Switched off, safe mode, lease.
    pub fn run(&self, view: &View<'_>) -> Result<LocatedBlock, Refusal> {
        if !view.settings.replace_datanode {
            return Err(Refusal::Unsupported(
                "This feature is disabled.  Please refer to dfs.client.block.write.replace-datanode-on-failure.enable configuration property."
                    .into(),
            ));
        }
        view.check_safe_mode(|| {
            format!(
                "Cannot add datanode; src={}, blk={}",
                view.path_text(&self.path),
                view.pool_block_text(&self.block)
            )
        })?;
        let resolved = view.resolve_file(&self.path, self.file)?;
        let file = view.leased_file(&resolved, Some(&self.client), self.file)?;
        let blocks = &view.state.blocks;
        let machine = view.state.tree.construction(file).map_or("", |c| c.machine);
        let existing: Vec<StorageNumber> =
            self.existing.iter().filter_map(|(n, s)| blocks.find_storage(n, s)).collect();
        let shape = view.state.tree.file_shape(&view.state.store, file);
        let request = TargetRequest {
            writer: blocks.node_at(machine),
            replicas: self.count,
            block_size: shape.map_or(0, |s| s.block_size),
            storage_policy: shape.map_or(0, |s| s.storage_policy),
            existing: &existing,
            excluded: &self.excluded,
            ..TargetRequest::default()
        };
        let placement = blocks.choose_targets(&request, view.now.monotonic);
        // the client finds the new one by what it did not have before
        let present = existing.iter().filter(|_| self.count > 0);
        let mut locations: Vec<_> = present.filter_map(|s| blocks.target(*s)).collect();
        locations.extend(placement.targets);
        let located = blocks::Located { block: self.block, locations, indices: None, corrupt: false, complete: false };
        Ok(LocatedBlock { offset: u64::MAX, located })
    }
}
