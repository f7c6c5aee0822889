//! Records of a log, one after another: what a restart and a standby do.

use crate::{Effect, Effects, Fit, Mismatch, Mode, Paths, State};
use edit::{Record, Rule};
use namespace::Walker;
use vocab::Policy;

/// Applies records of a log in order, to one state.
#[derive(Debug)]
pub struct Replay {
    mode: Mode,
    walker: Walker,
    effects: Effects,
}

impl Replay {
    /// For a restart or a standby.
    pub fn new(mode: Mode) -> Replay {
        Replay { mode, walker: Walker::default(), effects: Effects::new(mode) }
    }

    /// Fits and applies one record; what it cut off is freed. `Some` where it is a no-op, by that rule.
    ///
    /// # Errors
    /// It contradicts the state; nothing was changed.
    pub fn apply(&mut self, state: &mut State, record: &Record<'_>, policy: &Policy) -> Result<Option<Rule>, Mismatch> {
        match state.fit_at(record, policy, Paths::Walk(&mut self.walker)) {
            Fit::Fits(fitted) => {
                self.effects.items.clear();
                state.apply(record, fitted, policy, self.mode, &mut self.effects);
                if self.effects.items.contains(&Effect::Reclaim) {
                    while state.reclaim(u64::MAX) {}
                }
                Ok(None)
            }
            Fit::NoOp(rule) => Ok(Some(rule)),
            Fit::Mismatch(mismatch) => Err(mismatch),
        }
    }
}
