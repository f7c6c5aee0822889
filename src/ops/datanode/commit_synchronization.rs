//! The end of a block recovery, told by its primary (`FSNamesystem.commitBlockSynchronization`).

use crate::Turn;
use blocks::{DatanodeId, block_text};
use edit::Record;
use record::{BlockHandle, Features, InodeHandle, StorageNumber};
use std::borrow::Cow;
use std::sync::Arc;
use vocab::erasure_coding::{REPLICATION, UNITS_MAX};
use vocab::{Block, BlockState, GenerationStamp, Refusal};

/// What the primary says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitBlockSynchronization {
    /// Block pool, for messages.
    pub pool: Arc<str>,
    /// The block as it was when the recovery began.
    pub block: Block,
    /// Its stamp now: the recovery id.
    pub new_stamp: GenerationStamp,
    /// Its length now, in bytes.
    pub new_length: u64,
    /// Whether the file is to be closed.
    pub close_file: bool,
    /// Whether the block is to be removed, since no replica has anything.
    pub delete_block: bool,
    /// Where the recovered replicas are: DataNodes and their storage ids.
    pub targets: Vec<(DatanodeId, String)>,
}

impl CommitBlockSynchronization {
    /// Takes the result over: the block's new stamp and length, or its removal, and the close of the file, are logged. A block that is
    /// complete already is left alone.
    ///
    /// # Errors
    /// `SafeMode`; `Io` for an unknown block or another recovery than the one that runs; `FileNotFound` for a file being deleted;
    /// `IllegalState` for the removal of another block than the last and a close; `UnregisteredNode` for a target that another address serves.
    pub fn run(&self, turn: &mut Turn<'_>) -> Result<(), Refusal> {
        turn.view().check_safe_mode(|| "Cannot commitBlockSynchronization while in safe mode".to_owned())?;
        let Some((file, stored)) = self.find(turn)? else { return Ok(()) };
        let view = turn.view();
        let store = &view.state.store;
        let last = store.last_block(file);
        let complete = |b: BlockHandle| store.block_state(b) == BlockState::Complete;
        if (!view.state.is_open(file) || complete(stored)) && last.is_none_or(complete) {
            return Ok(());
        }
        let Some(last) = last else { return Ok(()) };
        let id = store.block_core(last).id;
        let recovery = view.state.blocks.recovery_id(id).unwrap_or_default();
        if recovery != self.new_stamp {
            return Err(Refusal::io(format!(
                "The recovery id {} does not match current recovery id {recovery} for block {}",
                self.new_stamp,
                self.text()
            )));
        }
        if self.delete_block {
            if id == self.block.id {
                turn.drop_last_block(file);
            } else if self.close_file {
                // named is what a truncate copies, or a block before the last: what is not complete would stay in a closed file
                let text = block_text(&store.block_core(last));
                let state = store.block_state(last);
                return Err(Refusal::IllegalState(format!("Unexpected block state: {text} is {state:?}").into()));
            }
        } else {
            self.take_over(turn, file, last)?;
        }
        if self.close_file {
            turn.close_file(file);
        } else if !self.delete_block {
            let view = turn.view();
            let path = view.state.tree.path_of(&view.state.store, file);
            let blocks = view.block_list(file);
            turn.log(Record::UpdateBlocks { path: Cow::Owned(path), blocks, rpc: None });
        }
        turn.soft().end_recovery_attempt(id);
        Ok(())
    }

    fn text(&self) -> String {
        format!("{}:{}", self.pool, block_text(&self.block))
    }

    /// The file and the stored block; nothing where the block to be deleted is gone already.
    fn find(&self, turn: &Turn<'_>) -> Result<Option<(InodeHandle, BlockHandle)>, Refusal> {
        let state = turn.view().state;
        let store = &state.store;
        // of a truncate into a new block the old one is named, which may have left the file system
        let into = state.blocks.truncated_into(self.block.id).and_then(|id| store.find_block(id));
        let Some(stored) = into.or_else(|| store.find_block(self.block.id)) else {
            if self.delete_block {
                return Ok(None);
            }
            return Err(Refusal::io(format!("Block (={}) not found", self.text())));
        };
        let info = store.block(stored);
        let file = store.block_file(stored).filter(|_| !info.deleted);
        let Some(file) = file else {
            return Err(Refusal::io(format!(
                "The blockCollection of {} is null, likely because the file owning this block was deleted and the block \
                 removal is delayed",
                block_text(&info.block)
            )));
        };
        let mut above = Some(file);
        while let Some(inode) = above {
            if store.features(inode).contains(Features::DETACHED) {
                let path = String::from_utf8_lossy(&state.tree.path_of(store, file)).into_owned();
                return Err(Refusal::not_found(format!("File not found: {path}, likely due to delayed block removal")));
            }
            above = store.parent(inode);
        }
        Ok(Some((file, stored)))
    }

    /// Gives the last block its new stamp, length and places.
    fn take_over(&self, turn: &mut Turn<'_>, file: InodeHandle, last: BlockHandle) -> Result<(), Refusal> {
        let state = turn.soft();
        let was = state.store.block_core(last);
        let recovered = Block { id: was.id, length: self.new_length, stamp: self.new_stamp };
        // of a striped group the list has a place for each internal block, one without a DataNode where there is none
        let striped = state.store.block(last).erasure_coding_policy != REPLICATION;
        let mut on: Vec<(StorageNumber, u8)> = Vec::new();
        for (at, (node, storage)) in self.targets.iter().enumerate() {
            if state.blocks.is_known(node)? {
                let found = state.blocks.find_storage(&node.uuid, storage);
                let index = if striped { at as u8 } else { 0 };
                on.extend(found.filter(|_| !striped || at < UNITS_MAX as usize).map(|s| (s, index)));
            }
        }
        state.end_recovery(last, recovered, &on);
        if self.close_file {
            let before = if self.block.id == was.id { self.block } else { was };
            state.blocks.settle_recovery(&mut state.store, last, before, &on);
            state.commit_block(last, recovered)?;
            state.blocks.force_complete(&mut state.store, last);
        }
        debug_assert!(state.store.last_block(file).is_some());
        Ok(())
    }
}
