//! The periodic work of the block half, in steps that fit one hold of the lock (Hadoop's HeartbeatManager, RedundancyMonitor and
//! SafeModeMonitor).

use blocks::{NodeNumber, Round};
use state::State;
use vocab::time::{MonotonicMs, Now};

/// Replicas or blocks handled in one step, unless the caller says otherwise.
const STEP: usize = 256;
/// How many of them one block counts for that is considered for copying: choosing targets takes that much longer.
const COPY_WEIGHT: usize = 4;
/// Interval of the checks for dead nodes and of safe mode.
const CHECK_MS: u64 = 1_000;

/// What is left to do between steps. The engine keeps one and calls [`Work::step`] about once a second, and again at once while it says
/// that there is more.
#[derive(Debug)]
pub struct Work {
    /// Replicas or blocks handled in one step, at least 1. The engine measures its holds and sets this so that they are short.
    pub budget: usize,
    round: Option<Round>,
    /// What the end of a round still has to do.
    closing: Option<Closing>,
    round_begun: MonotonicMs,
    checked: MonotonicMs,
    /// Nodes that died in the last step, for the log.
    pub died: Vec<NodeNumber>,
    /// Whether safe mode was left in the last step, for the log.
    pub left_safe_mode: bool,
}

/// The end of a round, a step each.
#[derive(Clone, Copy, Debug)]
enum Closing {
    Pending,
    /// With how many blocks are still to be looked at.
    Postponed(usize),
    Excess,
}

impl Default for Work {
    fn default() -> Work {
        Work {
            budget: STEP,
            round: None,
            closing: None,
            round_begun: MonotonicMs::default(),
            checked: MonotonicMs::default(),
            died: Vec::new(),
            left_safe_mode: false,
        }
    }
}

impl Work {
    /// One bounded step; whether there is more to do at once.
    pub fn step(&mut self, state: &mut State, now: Now) -> bool {
        self.died.clear();
        self.left_safe_mode = false;
        let State { blocks, store, .. } = state;
        let step = self.budget.max(1);
        if now.monotonic.since(self.checked) >= CHECK_MS {
            self.checked = now.monotonic;
            self.died = blocks.heartbeat_check(now);
            let was_on = blocks.safe_mode.is_on();
            blocks.safe_mode_check(now);
            self.left_safe_mode = was_on && !blocks.safe_mode.is_on();
            return true;
        }
        if blocks.drain(store, step) || blocks.scan_step(store, step) || blocks.admin_step(store, step, now) {
            return true;
        }
        if let Some(round) = &mut self.round {
            if blocks.round_step(store, round, step.div_ceil(COPY_WEIGHT), now) {
                return true;
            }
            self.round = None;
            self.closing = Some(Closing::Pending);
            return true;
        }
        if let Some(closing) = self.closing {
            self.closing = match closing {
                Closing::Pending => {
                    let more = blocks.expire_pending(store, step, now);
                    let postponed = blocks.settings.postponed_rescan.min(blocks.postponed_count());
                    Some(if more { Closing::Pending } else { Closing::Postponed(postponed) })
                }
                Closing::Postponed(0) => Some(Closing::Excess),
                Closing::Postponed(left) => {
                    blocks.rescan_postponed(store, step.min(left));
                    Some(Closing::Postponed(left.saturating_sub(step)))
                }
                Closing::Excess => {
                    blocks.retry_excess(store, step);
                    None
                }
            };
            return true;
        }
        if now.monotonic.since(self.round_begun) >= blocks.settings.redundancy_interval_ms {
            self.round_begun = now.monotonic;
            self.round = Some(blocks.begin_round(now));
            return true;
        }
        false
    }
}
