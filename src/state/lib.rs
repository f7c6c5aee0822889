//! Purpose: the whole file system as one value: namespace and blocks joined, and the one transition that changes them (`fit`, `apply`).
//! Called by: ops (live calls), storage (image, replay), engine.
//! Calls: record, namespace, blocks, edit, vocab.
//! Never: locks, logs, reads a clock, a file or a setting; invents an id, a stamp or a time.
//! Invariants: live state == state replayed from its records == state saved and reloaded, as `digest` sees it; `apply` cannot fail after `fit`.

pub mod effects;
pub mod fit;
pub mod retry;
pub mod sequences;
pub mod tokens;

pub use effects::{Effect, Effects};
pub use fit::{Applied, Fit, Fitted, Mismatch, Mode, Unsupported};
pub use retry::{RetryCache, RetryEntry, RetryPayload};
pub use sequences::Sequences;

/// The whole file system.
#[derive(Default)]
pub struct State {
    /// Records of inodes and blocks.
    pub store: record::Store,
    /// Names, permissions, quotas, leases.
    pub tree: namespace::Tree,
    /// Last ids and stamps handed out.
    pub sequences: Sequences,
    /// Answers of at-most-once calls.
    pub retry: RetryCache,
    /// Delegation tokens and master keys.
    pub tokens: tokens::Tokens,
}

/// What a fitted record will do.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Nothing but counters.
    Counters,
}

impl State {
    /// Whether `record` can be applied, with its paths resolved.
    pub fn fit(&self, record: &edit::Record<'_>, policy: &vocab::Policy) -> Fit {
        let _ = (record, policy, &self.tree);
        Fit::Unsupported(Unsupported { feature: "records" })
    }
    /// The one transition. Cannot fail, invents nothing.
    pub fn apply(
        &mut self,
        record: &edit::Record<'_>,
        fitted: Fitted,
        policy: &vocab::Policy,
        mode: Mode,
        effects: &mut Effects,
    ) -> Applied {
        let _ = (record, policy, mode, effects);
        match fitted.plan {
            Plan::Counters => Applied::default(),
        }
    }
}
