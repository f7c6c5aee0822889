//! append, recoverLease: a file that exists is opened again, or taken from a writer that is gone.

use super::lease::LeaseTaker;
use crate::status::{FileStatus, LocatedBlock};
use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::Walk;
use record::{InodeHandle, KindTag};
use state::RetryPayload;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::layout::Feature;
use vocab::storage_policy::LAZY_PERSIST;
use vocab::{Action, Block, BlockState, InodeId, Refusal};

/// Opens a closed file for append. Answers its status and, unless a new block was asked for or the last one is full, that block.
#[derive(Clone, Debug)]
pub struct Append {
    /// Path.
    pub path: Vec<u8>,
    /// Lease holder.
    pub client: Arc<str>,
    /// `CreateFlag.NEW_BLOCK`: leave the last block as it is.
    pub new_block: bool,
}

/// What an append answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appended {
    /// The block to go on with.
    pub last: Option<LocatedBlock>,
    /// The file.
    pub status: FileStatus<'static>,
}

impl Write for Append {
    type Prepared = ();
    type Reply = Appended;
    const OPERATION: Operation = Operation::Append;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        // the record of an append came with the feature; no release stopped just before it
        view.check_feature(Feature::AppendNewBlock)
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<Appended, Refusal> {
        if let Some(RetryPayload::Append(id, block)) = turn.cached().map(|e| e.payload.clone()) {
            let view = turn.view();
            let mut status = view.status_of_id(id)?;
            let last = block.and_then(|block| view.last_as_it_was(id, block));
            if let Some(last) = &last {
                status.length = last.offset + last.located.block.length;
            }
            return Ok(Appended { last, status });
        }
        let file = self.check(turn)?;
        let path = turn.view().state.tree.path_of(&turn.view().state.store, file);
        let machine = turn.view().client_machine();
        let rpc = turn.view().caller.rpc_ids;
        turn.log(Record::Append {
            path: Cow::Owned(path),
            client_name: self.client.to_string().into(),
            client_machine: machine.into(),
            new_block: self.new_block,
            rpc,
        });
        let view = turn.view();
        let status = view.own_status(file).into_owned();
        let store = &view.state.store;
        let last = store.last_block(file).filter(|b| self.new_block || store.block_state(*b) != BlockState::Complete);
        let last = last.map(|b| {
            let mut last = view.last_for_append(b, status.length);
            if self.new_block {
                last.located.locations.clear();
                last.located.indices = None; // nor is a group told as one
                last.offset = u64::MAX;
            }
            last
        });
        Ok(Appended { last, status })
    }
}

impl Append {
    fn check(&self, turn: &mut Turn<'_>) -> Result<InodeHandle, Refusal> {
        let view = turn.view();
        let text = view.path_text(&self.path);
        view.check_safe_mode(|| format!("Cannot append to file{text}"))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        if resolved.last().is_some_and(|i| view.state.store.kind(i) == KindTag::Directory) {
            let text = resolved.path_text();
            return Err(Refusal::FileAlreadyExists(
                format!("Cannot append to directory {text}; already exists as a directory.").into(),
            ));
        }
        view.check_inode(&resolved, Action::WRITE)?;
        let Some(file) = resolved.last() else {
            return Err(Refusal::not_found(format!(
                "Failed to append to non-existent file {} for client {}",
                resolved.path_text(),
                view.client_machine()
            )));
        };
        if view.state.tree.storage_policy(&view.state.store, file) == LAZY_PERSIST {
            return Err(Refusal::Unsupported(
                format!("Cannot append to lazy persist file {}", resolved.path_text()).into(),
            ));
        }
        if !self.new_block && view.state.tree.erasure_coding_policy(&view.state.store, file).is_some() {
            return Err(Refusal::Unsupported(
                "Append on EC file without new block is not supported. Use NEW_BLOCK create flag while appending file."
                    .into(),
            ));
        }
        let (path, machine) = (resolved.path_text(), view.client_machine());
        turn.take_lease(LeaseTaker::AppendFile, file, &path, &self.client, &machine, false)?;
        let view = turn.view();
        let store = &view.state.store;
        if let Some(b) = store.last_block(file) {
            if store.block_state(b) == BlockState::Committed {
                return Err(Refusal::Retriable(
                    format!(
                        "append: lastBlock={} of src={path} is COMMITTED but not yet COMPLETE.",
                        blocks::block_text(&store.block_core(b))
                    )
                    .into(),
                ));
            }
            let live = view.state.blocks.count(store, b).live;
            let enough =
                live >= u32::from(view.settings.replication_min) || live as usize >= view.state.blocks.live_count();
            if store.block_state(b) == BlockState::Complete && !enough {
                return Err(Refusal::io(format!(
                    "append: lastBlock={} of src={path} is not sufficiently replicated yet.",
                    blocks::block_text(&store.block_core(b))
                )));
            }
            view.verify_reopen_quota(file, &store.block_core(b))?;
        }
        Ok(file)
    }
}

impl View<'_> {
    /// A block that an append went on with, as it was told then: the writer may be further by now.
    fn last_as_it_was(&self, id: InodeId, block: Block) -> Option<LocatedBlock> {
        let store = &self.state.store;
        let file = self.state.tree.find(store, id)?;
        let mut offset = 0;
        for b in store.blocks_of(file) {
            let stored = store.block_core(b);
            if stored.id == block.id {
                let located = blocks::Located { block, ..self.state.blocks.locate(store, b) };
                return Some(LocatedBlock { offset, located });
            }
            offset += stored.length;
        }
        None
    }

    fn last_for_append(&self, b: record::BlockHandle, file_length: u64) -> LocatedBlock {
        let located = self.state.blocks.locate(&self.state.store, b);
        LocatedBlock { offset: file_length - located.block.length, located }
    }

    /// Whether the rest of a last block fits the quotas, now that it may be filled.
    // Quirk: appends_count_by_kind_only_under_a_policy: Hadoop counts the rest by storage kind through the default policy where no policy is
    // set, never takes that back, and forgets it at the next restart. Here figures are the same live and after a replay, so it is not followed.
    pub(crate) fn verify_reopen_quota(&self, file: InodeHandle, last: &Block) -> Result<(), Refusal> {
        let (tree, store) = (&self.state.tree, &self.state.store);
        let (Some(shape), Some(parent)) = (tree.file_shape(store, file), store.parent(file)) else { return Ok(()) };
        let open = namespace::quota::FileShape { open: true, ..shape };
        tree.verify_quota(store, parent, None, &namespace::quota::difference(&open.last(last), &shape.full(last)))
    }
}

/// Takes a file from its writer. Answers whether it is closed.
#[derive(Clone, Debug)]
pub struct RecoverLease {
    /// Path.
    pub path: Vec<u8>,
    /// Who asks; gets the lease while the recovery runs.
    pub client: Arc<str>,
}

impl Write for RecoverLease {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::RecoverLease;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot recover the lease of {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        let file = view.file_of(&resolved)?;
        if !view.state.is_open(file) {
            return Ok(true);
        }
        view.check_inode(&resolved, Action::WRITE)?;
        let (path, machine) = (resolved.path_text(), view.client_machine());
        turn.take_lease(LeaseTaker::RecoverLease, file, &path, &self.client, &machine, true)
    }
}
