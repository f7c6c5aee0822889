//! The periodic work of the block half, in steps that fit one hold of the lock (Hadoop's HeartbeatManager, RedundancyMonitor and
//! SafeModeMonitor).

use blocks::{NodeNumber, Round};
use state::State;
use vocab::time::{MonotonicMs, Now};

/// Replicas or blocks handled in one step.
const STEP: usize = 256;
/// Blocks considered for copying in one step: choosing targets takes some microseconds each.
const COPIES: usize = 64;
/// Interval of the checks for dead nodes and of safe mode.
const CHECK_MS: u64 = 1_000;

/// What is left to do between steps. The engine keeps one and calls [`Work::step`] about once a second, and again at once while it says
/// that there is more.
#[derive(Debug, Default)]
pub struct Work {
    round: Option<Round>,
    round_begun: MonotonicMs,
    checked: MonotonicMs,
    /// Nodes that died in the last step, for the log.
    pub died: Vec<NodeNumber>,
    /// Whether safe mode was left in the last step, for the log.
    pub left_safe_mode: bool,
}

impl Work {
    /// One bounded step; whether there is more to do at once.
    pub fn step(&mut self, state: &mut State, now: Now) -> bool {
        self.died.clear();
        self.left_safe_mode = false;
        let State { blocks, store, .. } = state;
        if now.monotonic.since(self.checked) >= CHECK_MS {
            self.checked = now.monotonic;
            self.died = blocks.heartbeat_check(now);
            let was_on = blocks.safe_mode.is_on();
            blocks.safe_mode_check(now);
            self.left_safe_mode = was_on && !blocks.safe_mode.is_on();
        }
        if blocks.drain(store, STEP) || blocks.scan_step(store) || blocks.admin_step(store, STEP, now) {
            return true;
        }
        if let Some(round) = &mut self.round {
            if blocks.round_step(store, round, COPIES, now) {
                return true;
            }
            self.round = None;
            blocks.expire_pending(store, STEP, now);
            blocks.rescan_postponed(store, STEP);
            blocks.retry_excess(store, STEP);
            return false;
        }
        if now.monotonic.since(self.round_begun) >= blocks.settings.redundancy_interval_ms {
            self.round_begun = now.monotonic;
            self.round = Some(blocks.begin_round(now));
            return true;
        }
        false
    }
}
