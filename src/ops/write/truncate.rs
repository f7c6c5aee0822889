//! truncate: a file becomes shorter. At a block's end that is all; within a block a recovery cuts the replicas.

use super::lease::LeaseTaker;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::Walk;
use record::InodeHandle;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::storage_policy::LAZY_PERSIST;
use vocab::{Action, Block, BlockState, Refusal};

/// Cuts a file. Answers true if it is closed at its new length, false if replicas are being cut.
#[derive(Clone, Debug)]
pub struct Truncate {
    /// Path.
    pub path: Vec<u8>,
    /// Length wanted, in bytes.
    pub new_length: i64,
    /// Lease holder while the last block is cut.
    pub client: Arc<str>,
    /// Whether the directories may be rolled back, since an upgrade of them is not finalized: then a block that is cut is kept as it was.
    pub keeps_blocks: bool,
}

impl Write for Truncate {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::Truncate;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        if self.new_length < 0 {
            let text = format!("Cannot truncate to a negative file size: {}.", self.new_length);
            return Err(Refusal::HadoopIllegalArgument(text.into()));
        }
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot truncate for {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_inode(&resolved, Action::WRITE)?;
        let file = view.file_of(&resolved)?;
        let (path, machine) = (resolved.path_text(), view.client_machine());
        if view.state.tree.erasure_coding_policy(&view.state.store, file).is_some() {
            return Err(Refusal::Unsupported(format!("Cannot truncate file with striped block {path}").into()));
        }
        if view.state.tree.storage_policy(&view.state.store, file) == LAZY_PERSIST {
            return Err(Refusal::Unsupported(format!("Cannot truncate lazy persist file {path}").into()));
        }
        if let Some(answer) = self.repeated(&view, file, &path, &machine)? {
            return Ok(answer);
        }
        turn.take_lease(LeaseTaker::TruncateFile, file, &path, &self.client, &machine, false)?;
        let view = turn.view();
        let (old, new) = (view.state.tree.file_length(&view.state.store, file), self.new_length as u64);
        if old == new {
            return Ok(true);
        }
        if old < new {
            return Err(Refusal::HadoopIllegalArgument(
                format!("Cannot truncate to a larger file size. Current size: {old}, truncate size: {new}.").into(),
            ));
        }
        let cut = self.cut_block(turn, file, new)?;
        let time = turn.view().now.wall;
        turn.log(Record::Truncate {
            path: Cow::Owned(resolved.path()),
            client_name: self.client.to_string().into(),
            client_machine: machine.into(),
            new_length: new,
            time,
            block: cut.map(|(recorded, _)| recorded),
        });
        if let (Some((recorded, truncated)), Some(b)) = (cut, turn.view().state.store.last_block(file)) {
            let state = turn.soft();
            state.begin_recovery_attempt(recorded.id);
            state.blocks.begin_truncate(&mut state.store, b, recorded.stamp, truncated);
        }
        Ok(cut.is_none())
    }
}

impl Truncate {
    /// The same truncate again while its recovery runs answers false; another one is refused.
    fn repeated(&self, view: &View<'_>, file: InodeHandle, path: &str, machine: &str) -> Result<Option<bool>, Refusal> {
        let store = &view.state.store;
        let Some(last) = store.last_block(file).map(|b| store.block(b)) else { return Ok(None) };
        let cut = view.state.blocks.construction(last.block.id).and_then(|c| c.truncate);
        let Some(cut) = cut.filter(|_| last.state == BlockState::UnderRecovery) else { return Ok(None) };
        let before = view.state.tree.file_length(store, file) - last.block.length;
        if before + cut.length == self.new_length as u64 {
            return Ok(Some(false));
        }
        let holder = &self.client;
        Err(Refusal::AlreadyBeingCreated(
            format!("Failed to TRUNCATE_FILE {path} for {holder} on {machine} because {path} is being truncated.")
                .into(),
        ))
    }

    /// The block that the new length lies within, as the record has it (under a new stamp; its length is still the old one, as in Hadoop's) and
    /// as its recovery needs it.
    fn cut_block(
        &self,
        turn: &mut Turn<'_>,
        file: InodeHandle,
        new_length: u64,
    ) -> Result<Option<(Block, Block)>, Refusal> {
        let view = turn.view();
        let store = &view.state.store;
        let mut end = 0;
        for b in store.blocks_of(file) {
            let block = store.block_core(b);
            end += block.length;
            if end == new_length {
                return Ok(None);
            }
            if end > new_length {
                if new_length == end - block.length {
                    return Ok(None);
                }
                view.verify_reopen_quota(file, &block)?;
                let copy = self.keeps_blocks
                    || view.state.sequences.rolling_upgrade_start.is_some()
                    || view.state.tree.truncate_is_kept(store, file, b);
                return self.truncate_block(turn, block, new_length - (end - block.length), copy).map(Some);
            }
        }
        Ok(None)
    }

    /// In place under a new stamp, or, during an upgrade or where a snapshot needs it, into a new block, since the old one may be wanted back.
    fn truncate_block(
        &self,
        turn: &mut Turn<'_>,
        block: Block,
        kept: u64,
        copy: bool,
    ) -> Result<(Block, Block), Refusal> {
        if !copy {
            let stamp = turn.next_stamp_of(&block)?;
            return Ok((Block { stamp, ..block }, Block { stamp, length: kept, ..block }));
        }
        let id = turn.next_block_id();
        turn.log(Record::AllocateBlockId { id: id.0 });
        let stamp = turn.next_stamp();
        Ok((Block { id, length: kept, stamp }, block))
    }
}
