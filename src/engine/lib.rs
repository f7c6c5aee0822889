//! Purpose: the conductor: one lock around the state, one order of edit records, one fence before anything leaves; and the periodic work.
//! Called by: server, the binary's node assembly.
//! Calls: ops (what an operation does), state, storage (journal, image, arena files), mem (frozen pages), os (clocks, mappings).
//! Never: knows a message format or a configuration key; hands out a guard of the state lock; holds the lock over an await.
//! Invariants: the order of records in the journal is the order of their application; no reply of a write call, no refusal of one and no
//! DataNode command is returned before the highest transaction assigned when it was decided is durable.

mod caching;
mod checkpoint;
mod cleanup;
mod count;
mod gate;
mod lock;
mod online;
mod rolling;
mod stack;
mod tick;
mod turn;

pub use checkpoint::Checkpoints;
pub use count::Counted;
pub use gate::{Gate, HaState};
pub use lock::{HOLD_BUCKETS_MICROS, HoldTimes, LongHolds, Reporting, Slice, StateLock};
pub use online::{Encoded, ImageEncoder, NotMade, Online, OnlineSettings};
pub use rolling::RollingUpgrade;
pub use tick::TickSettings;
pub use turn::{Decided, Witness};

use arc_swap::{ArcSwap, Guard};
use ops::table::Operation;
use os::clock::Clock;
use state::{Effect, Effects, State};
use std::sync::Arc;
use storage::journal::Journal;
use tokio::sync::Notify;
use vocab::time::{MonotonicMs, Now, TimeMs};
use vocab::{Policy, Refusal};

/// Inodes and blocks freed between two looks at the clock.
const RECLAIMED: u64 = 32;

/// Does long work on a thread that serves no connections.
pub(crate) async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}

/// The running name node, below its protocols. Shared by all services.
#[derive(Debug)]
pub struct Engine {
    state: StateLock<State>,
    journal: Journal,
    gate: Gate,
    settings: ArcSwap<ops::Settings>,
    policy: ArcSwap<Policy>,
    clock: Arc<dyn Clock>,
    reclaim: Notify,
    cleanup: cleanup::Cleanup,
    cache_scans: caching::CacheScans,
    /// Who counts what a subtree uses, one at a time.
    counts: tokio::sync::Mutex<()>,
    checkpoints: Checkpoints,
    online: Option<online::Online>,
}

impl Engine {
    /// Takes over a loaded state and its open journal.
    pub fn new(
        state: State,
        journal: Journal,
        settings: ops::Settings,
        policy: Policy,
        clock: Arc<dyn Clock>,
        ha: HaState,
        checkpoints: Checkpoints,
    ) -> Engine {
        let reclaim = Notify::new();
        if state.tree.has_detached() {
            // what an earlier process cut off and had not freed when it wrote its state down
            reclaim.notify_one();
        }
        Engine {
            state: StateLock::new(state),
            journal,
            gate: Gate::new(ha),
            settings: ArcSwap::from_pointee(settings),
            policy: ArcSwap::from_pointee(policy),
            clock,
            reclaim,
            cleanup: cleanup::Cleanup::default(),
            cache_scans: caching::CacheScans::default(),
            counts: tokio::sync::Mutex::default(),
            checkpoints,
            online: None,
        }
    }

    /// Whether an operation may pass in the present role.
    ///
    /// # Errors
    /// [`Refusal::Standby`].
    pub fn pass(&self, operation: Operation) -> Result<(), Refusal> {
        self.gate.pass(operation.row().category)
    }

    /// The role gate.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }
    /// The account of lock holds; the state itself is reached by views and turns only.
    pub fn lock(&self) -> &StateLock<State> {
        &self.state
    }
    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
    /// Where images go.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }
    /// Returns when subtrees wait to be freed.
    pub(crate) async fn reclaim_notified(&self) {
        self.reclaim.notified().await;
    }
    /// Frees inodes of subtrees that were cut off, for a slice of time. Returns whether more wait. Blocks.
    pub fn reclaim_slice(&self) -> bool {
        self.lock().write_slice("reclaim", |state, slice| {
            let mut more = state.reclaim(RECLAIMED);
            while more && !slice.is_over() {
                more = state.reclaim(RECLAIMED);
            }
            self.cleanup.note(state);
            more
        })
    }

    /// Frees all that was cut off, slice by slice.
    pub(crate) async fn reclaim_all(self: &Arc<Self>) {
        let engine = self.clone();
        blocking(move || while engine.reclaim_slice() {}).await;
    }
    /// Both clocks.
    pub fn now(&self) -> Now {
        Now { wall: TimeMs(self.clock.wall_ms()), monotonic: MonotonicMs(self.clock.monotonic_ms()) }
    }
    /// What the operations go by now.
    pub fn settings(&self) -> Guard<Arc<ops::Settings>> {
        self.settings.load()
    }
    /// Other settings for the operations to come.
    pub fn set_settings(&self, settings: ops::Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// Acts on what followed from a hold.
    fn follow(&self, effects: &Effects) {
        for effect in &effects.items {
            match effect {
                Effect::Reclaim => self.reclaim.notify_one(),
                Effect::Caching => self.cache_scans.want(),
                Effect::LeaseReassigned(_) | Effect::Tokens | Effect::RollingUpgrade { .. } => {}
            }
        }
    }
}
