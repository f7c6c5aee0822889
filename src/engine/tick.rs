//! Periodic work, each kind in a task of its own and in slices, so that no hold of the lock is long.

use crate::{Engine, HaState, blocking};
use ops::datanode::Work;
use state::State;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often what is done.
#[derive(Clone, Copy, Debug)]
pub struct TickSettings {
    /// How long answers of at-most-once calls are kept (`dfs.namenode.retrycache.expirytime.millis`), in milliseconds.
    pub retry_expiry_ms: u64,
    /// How often the length of the open segment is looked at (`dfs.namenode.edit.log.autoroll.check.interval.ms`).
    pub roll_check: Duration,
    /// Transactions in the open segment after which it is ended.
    pub roll_transactions: u64,
    /// How often what is to be cached is looked at (`dfs.namenode.path.based.cache.refresh.interval.ms`); `None` for never.
    pub cache_refresh: Option<Duration>,
}

/// Pause between rounds of block work and housekeeping.
const SECOND: Duration = Duration::from_secs(1);
/// Remembered answers forgotten, and blocks or replicas dealt with, between two looks at the clock: what a block costs varies a hundredfold with what is
/// to be decided about it.
const FORGOTTEN: usize = 256;
const BLOCKS: usize = 32;

impl Engine {
    /// Starts all periodic work. The tasks end with the runtime or when aborted; none is in the middle of a hold then.
    pub fn start_ticks(self: &Arc<Self>, settings: TickSettings) -> Vec<JoinHandle<()>> {
        let mut tasks = vec![
            tokio::spawn(self.clone().watch_blocks()),
            tokio::spawn(self.clone().free_detached()),
            tokio::spawn(self.clone().keep_house(settings.retry_expiry_ms)),
            tokio::spawn(self.clone().roll_long_segments(settings.roll_check, settings.roll_transactions)),
            tokio::spawn(self.clone().make_checkpoints()),
            tokio::spawn(self.clone().move_in()),
        ];
        tasks.extend(settings.cache_refresh.map(|every| tokio::spawn(self.clone().scan_caches(every))));
        tasks
    }

    /// Dead nodes, safe mode, redundancy.
    async fn watch_blocks(self: Arc<Self>) {
        let mut work = Work::default();
        work.budget = BLOCKS;
        let mut pause = tokio::time::interval(SECOND);
        loop {
            pause.tick().await;
            let engine = self.clone();
            work = blocking(move || {
                while engine.gate().state() == HaState::Active && engine.block_slice(&mut work) {}
                work
            })
            .await;
        }
    }

    /// Goes on with the work on blocks; whether there is more.
    fn block_slice(&self, work: &mut Work) -> bool {
        let (now, mut died, mut left_safe_mode) = (self.now(), Vec::new(), false);
        let more = self.lock().write_slice("blockWork", |state, slice| {
            loop {
                let more = work.step(state, now);
                died.append(&mut work.died);
                left_safe_mode |= work.left_safe_mode;
                if !more || slice.is_over() {
                    return more;
                }
            }
        });
        for node in &died {
            tracing::warn!(node = ?node, "DataNode lost: no heartbeat");
        }
        if left_safe_mode {
            tracing::info!("safe mode is off");
        }
        more
    }

    /// Frees subtrees that were cut off, as soon as there are any.
    async fn free_detached(self: Arc<Self>) {
        loop {
            self.reclaim_notified().await;
            self.reclaim_all().await;
        }
    }

    /// Slots for reuse and old answers.
    async fn keep_house(self: Arc<Self>, retry_expiry_ms: u64) {
        let mut pause = tokio::time::interval(SECOND);
        loop {
            pause.tick().await;
            self.lock().write("slots", |state| state.store.tick());
            let now = self.now().monotonic;
            self.in_slices("retryCache", move |state| state.retry.expire(now, retry_expiry_ms, FORGOTTEN)).await;
        }
    }

    async fn roll_long_segments(self: Arc<Self>, every: Duration, transactions: u64) {
        let mut pause = tokio::time::interval(every.max(SECOND));
        loop {
            pause.tick().await;
            let open = self.journal().last_assigned().0.saturating_sub(self.journal().segment().0);
            if open > transactions && self.gate().state() == HaState::Active {
                tracing::info!(transactions = open, "rolling the edit log: the open segment is long");
                // the only refusal is that of the role gate, which may have closed just now
                drop(self.roll().await);
            }
        }
    }

    /// Repeats a small step until it says that nothing is left, in slices, on a thread that serves no connections.
    pub(crate) async fn in_slices(
        self: &Arc<Self>,
        what: &'static str,
        mut step: impl FnMut(&mut State) -> bool + Send + 'static,
    ) {
        let engine = self.clone();
        blocking(move || {
            while engine.lock().write_slice(what, |state, slice| {
                while step(state) {
                    if slice.is_over() {
                        return true;
                    }
                }
                false
            }) {}
        })
        .await;
    }
}
