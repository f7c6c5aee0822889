//! Periodic work, each kind in a task of its own and in slices, so that no hold of the lock is long.

use crate::{Engine, HaState};
use ops::datanode::Work;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use vocab::limits::SLICE_MICROS;

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
/// Inodes freed, or remembered answers forgotten, in one hold: a fraction of a slice of time, since the clock is read only between holds.
const BATCH: usize = 256;

/// Longest hold wanted of work on blocks, in microseconds.
const BLOCK_WORK_MICROS: u128 = SLICE_MICROS as u128;
/// Replicas or blocks in the first step after a pause, and the most in any.
const BLOCK_WORK_STEPS: (usize, usize) = (16, 1_024);

/// How many blocks or replicas the next hold may deal with: what one costs varies a hundredfold with what is to be decided about it.
#[derive(Clone, Copy, Debug)]
pub struct BlockBudget(usize);

impl Default for BlockBudget {
    fn default() -> BlockBudget {
        BlockBudget(BLOCK_WORK_STEPS.0)
    }
}

impl BlockBudget {
    /// So many, at least 1.
    pub fn blocks(self) -> usize {
        self.0
    }
    /// The next one after a hold with this one took so long.
    pub fn after(self, spent: Duration) -> BlockBudget {
        let micros = spent.as_micros();
        BlockBudget(if micros > BLOCK_WORK_MICROS {
            // in proportion, so that one step too long is the last
            let fitting = self.0 as u128 * (BLOCK_WORK_MICROS / 2) / micros;
            (fitting as usize).clamp(1, BLOCK_WORK_STEPS.1)
        } else if micros < BLOCK_WORK_MICROS / 4 {
            (self.0 * 2).min(BLOCK_WORK_STEPS.1)
        } else {
            self.0
        })
    }
}

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
        let mut pause = tokio::time::interval(SECOND);
        loop {
            pause.tick().await;
            let mut budget = BlockBudget::default();
            loop {
                work.budget = budget.blocks();
                if self.gate().state() != HaState::Active {
                    break;
                }
                let now = self.now();
                let (more, spent) = self.lock().write("blockWork", |state| {
                    let since = Instant::now();
                    (work.step(state, now), since.elapsed())
                });
                budget = budget.after(spent);
                for node in &work.died {
                    tracing::warn!(node = ?node, "DataNode lost: no heartbeat");
                }
                if work.left_safe_mode {
                    tracing::info!("safe mode is off");
                }
                if !more {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Frees subtrees that were cut off, as soon as there are any.
    async fn free_detached(self: Arc<Self>) {
        loop {
            self.reclaim_notified().await;
            while self.slice(|engine| engine.reclaim_slice(BATCH as u64)) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Slots for reuse and old answers.
    async fn keep_house(self: Arc<Self>, retry_expiry_ms: u64) {
        let mut pause = tokio::time::interval(SECOND);
        loop {
            pause.tick().await;
            self.lock().write("slots", |state| state.store.tick());
            let now = self.now().monotonic;
            while self.slice(|engine| {
                engine.lock().write("retryCache", |state| state.retry.expire(now, retry_expiry_ms, BATCH))
            }) {
                tokio::task::yield_now().await;
            }
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

    /// Repeats small holds until a slice of time is used up or nothing is left; whether there is more. Others get the lock between holds.
    pub(crate) fn slice(&self, mut step: impl FnMut(&Engine) -> bool) -> bool {
        let since = Instant::now();
        while step(self) {
            if since.elapsed().as_micros() as u64 >= SLICE_MICROS {
                return true;
            }
        }
        false
    }
}
