//! The scrubber of lazily persisted files (Hadoop's `LazyPersistFileScrubber`): one that has lost a block, having been in memory only, is deleted.

use crate::Turn;
use edit::Record;
use record::InodeHandle;
use std::borrow::Cow;
use vocab::BlockId;
use vocab::storage_policy::LAZY_PERSIST;

/// A walk over the missing blocks.
#[derive(Clone, Debug, Default)]
pub struct LazyPersistScrub {
    ticket: u64,
    /// Files deleted in the last step.
    pub deleted: Vec<Vec<u8>>,
}

impl LazyPersistScrub {
    /// Looks at up to `budget` missing blocks; whether there may be more. Nothing happens in safe mode: replicas may still be reported.
    pub fn step(&mut self, turn: &mut Turn<'_>, budget: usize) -> bool {
        self.deleted.clear();
        let view = turn.view();
        if view.state.blocks.safe_mode.is_on() {
            return false;
        }
        let missing: Vec<(u64, BlockId)> = view.state.blocks.missing_blocks(self.ticket).take(budget).collect();
        let (more, time) = (missing.len() == budget, view.now.wall);
        for (ticket, block) in missing {
            self.ticket = ticket;
            let view = turn.view();
            let (tree, store) = (&view.state.tree, &view.state.store);
            let is_lazy = |file: &InodeHandle| {
                tree.is_attached(store, *file) && tree.storage_policy(store, *file) == LAZY_PERSIST
            };
            let file = store.find_block(block).and_then(|b| store.block_file(b)).filter(is_lazy);
            let Some(path) = file.map(|file| tree.path_of(store, file)) else { continue };
            turn.log(Record::Delete { path: Cow::Borrowed(&path), time, rpc: None });
            self.deleted.push(path);
        }
        more
    }
}
