//! What a large subtree uses, counted in slices before an operation that must know it: otherwise its own hold would be as long as the subtree is large.

use crate::Engine;
use std::sync::Arc;
use tokio::sync::MutexGuard;
use vocab::InodeId;

/// Inodes counted between two looks at the clock.
const BATCH: usize = 256;
/// How often a count is begun again that others have made useless.
const ATTEMPTS: usize = 3;

/// A count that is kept up to date as long as this lives.
#[derive(Debug)]
pub struct Counted<'e> {
    engine: &'e Engine,
    _one: MutexGuard<'e, ()>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.engine.lock().write("countEnd", |state| state.tree.end_count(&state.store));
    }
}

impl Engine {
    /// Counts what is below a directory. Where that fails (too much is moved about in it meanwhile, there are snapshots), the operation counts it in its
    /// own hold.
    pub async fn count_use(self: &Arc<Self>, top: InodeId) -> Counted<'_> {
        let counted = Counted { engine: self, _one: self.counts.lock().await };
        for _ in 0..ATTEMPTS {
            let begun = self.lock().write("countBegin", |state| {
                let found = state.tree.find(&state.store, top);
                found.map(|top| state.tree.begin_count(&state.store, top)).is_some()
            });
            if begun {
                self.in_slices("count", |state| state.tree.count_step(&state.store, BATCH)).await;
            }
            if !begun || self.lock().read("countDone", |state| state.tree.has_count()) {
                break;
            }
        }
        counted
    }
}
