//! complete, abandonBlock, fsync: the end of a file, of a block that could not be written, and of a piece that others may see.

use super::add_block::same;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::{Block, InodeId, Refusal};

/// Closes a file. Answers false until its blocks have enough replicas: the client asks again.
#[derive(Clone, Debug)]
pub struct Complete {
    /// Path, for messages and old clients.
    pub path: Vec<u8>,
    /// File id, 0 from old clients.
    pub file: InodeId,
    /// Lease holder.
    pub client: Arc<str>,
    /// The last block with its final length.
    pub last: Option<Block>,
    /// The pool that the client says it is of.
    pub last_pool: Option<Arc<str>>,
}

impl Write for Complete {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::Complete;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot complete file {}", view.path_text(&self.path)))?;
        if let Some(pool) = &self.last_pool {
            view.check_pool(pool)?;
        }
        let resolved = view.resolve_file(&self.path, self.file)?;
        let file = match view.leased_file(&resolved, Some(&self.client), self.file) {
            Err(Refusal::LeaseExpired(text)) => {
                // A repetition of a close that succeeded: the file is closed and ends with this block (HDFS-3031).
                let store = &view.state.store;
                let closed =
                    resolved.last().filter(|f| store.kind(*f) == record::KindTag::File && !view.state.is_open(*f));
                let Some(file) = closed else { return Err(Refusal::LeaseExpired(text)) };
                let last = store.last_block(file).map(|b| store.block_core(b));
                return if same(self.last.as_ref(), last.as_ref()) {
                    Ok(true)
                } else {
                    Err(Refusal::LeaseExpired(text))
                };
            }
            other => other?,
        };
        if !view.blocks_finished(file, false) {
            return Ok(false);
        }
        if let (Some(b), Some(last)) = (view.state.store.last_block(file), self.last) {
            turn.soft().commit_block(b, last)?;
        }
        if !turn.view().blocks_finished(file, true) {
            return Ok(false);
        }
        turn.close_file_at(file, resolved.plain());
        Ok(true)
    }
}

/// Gives up the last block of an open file. A block that is not the last is ignored.
#[derive(Clone, Debug)]
pub struct AbandonBlock {
    /// Path, for messages and old clients.
    pub path: Vec<u8>,
    /// File id, 0 from old clients.
    pub file: InodeId,
    /// Lease holder.
    pub client: Arc<str>,
    /// The block.
    pub block: Block,
}

impl Write for AbandonBlock {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::AbandonBlock;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| {
            format!("Cannot abandon block {} for file{}", view.pool_block_text(&self.block), view.path_text(&self.path))
        })?;
        let resolved = view.resolve_file(&self.path, self.file)?;
        let file = view.leased_file(&resolved, Some(&self.client), self.file)?;
        // Quirk: groups_are_not_abandoned: of a striped file nothing is given back
        let striped = view.state.tree.erasure_coding_policy(&view.state.store, file).is_some();
        let last = view.state.store.last_block(file).map(|b| view.state.store.block_core(b).id);
        if last == Some(self.block.id) && !striped {
            turn.drop_last_block(file);
        }
        Ok(())
    }
}

/// Persists the block list of an open file, and the length of its last block if one is given.
#[derive(Clone, Debug)]
pub struct Fsync {
    /// Path, for messages and old clients.
    pub path: Vec<u8>,
    /// File id, 0 from old clients.
    pub file: InodeId,
    /// Lease holder.
    pub client: Arc<str>,
    /// Length of the last block in bytes that readers may count on; not more than 0: unchanged.
    pub last_length: i64,
}

impl Write for Fsync {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::Fsync;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot fsync file {}", view.path_text(&self.path)))?;
        let resolved = view.resolve_file(&self.path, self.file)?;
        let file = view.leased_file(&resolved, Some(&self.client), self.file)?;
        let mut blocks = view.block_list(file);
        if let (Some(last), true) = (blocks.last_mut(), self.last_length > 0) {
            last.length = self.last_length as u64;
        }
        turn.log(Record::UpdateBlocks { path: Cow::Owned(resolved.path()), blocks, rpc: None });
        Ok(())
    }
}

/// Renews the lease of a client. One without a lease is ignored.
#[derive(Clone, Debug)]
pub struct RenewLease {
    /// Client name.
    pub client: Arc<str>,
}

impl Write for RenewLease {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::RenewLease;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_safe_mode(|| format!("Cannot renew lease for {}", self.client))
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        turn.soft().tree.leases.renew(&self.client);
        Ok(())
    }
}
