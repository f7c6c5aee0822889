//! The deletion of a snapshot that goes on in slices: who waits for its end.

use crate::{Engine, blocking};
use state::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Whether such a deletion is under way.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    on: AtomicBool,
    ended: Notify,
}

impl Cleanup {
    /// To be called at the end of each hold that may have begun or ended one.
    pub(crate) fn note(&self, state: &State) {
        let on = state.tree.has_cleanup();
        if on != self.on.load(Ordering::Relaxed) {
            self.on.store(on, Ordering::Release);
            if !on {
                self.ended.notify_waiters();
            }
        }
    }
}

impl Engine {
    /// Whether a snapshot is being deleted.
    pub fn has_cleanup(&self) -> bool {
        self.cleanup.on.load(Ordering::Acquire)
    }

    /// Whether a call about a path has to wait for the end of a snapshot's deletion, so as to find what it leaves.
    pub fn waits_for_cleanup(&self, path: &[u8]) -> bool {
        self.has_cleanup()
            && self.lock().read("cleanup", |state| {
                let (tree, store) = (&state.tree, &state.store);
                tree.resolve(store, path).is_ok_and(|resolved| match resolved.last() {
                    Some(inode) => tree.waits_for_cleanup(store, inode),
                    // something new
                    None => tree.has_cleanup() && tree.has_past_above(store, resolved.deepest()),
                })
            })
    }

    /// Waits for the end of a snapshot's deletion.
    pub async fn cleanup_ended(&self) {
        loop {
            let ended = self.cleanup.ended.notified();
            if !self.has_cleanup() {
                return;
            }
            ended.await;
        }
    }

    /// Brings the deletion of a snapshot to its end, in slices, if one is under way.
    pub async fn end_cleanup(self: &Arc<Self>) {
        if self.has_cleanup() {
            let engine = self.clone();
            blocking(move || while engine.has_cleanup() && engine.reclaim_slice() {}).await;
            self.cleanup_ended().await;
        }
    }
}
