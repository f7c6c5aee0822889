//! What an operation is given: a view to read, a turn to write.

use crate::{Operation, Settings};
use edit::Record;
use namespace::{Place, Walker};
use state::{Applied, Effects, Fit, Mode, Paths, RetryEntry, State};
use vocab::time::Now;
use vocab::{Caller, Policy, Refusal, Txid};

/// Where records go. The engine implements it over its journals; tests over a vector.
pub trait Log {
    /// Appends a record that the caller waits for, and gives its transaction number.
    fn append(&mut self, record: &Record<'_>) -> Txid;
    /// Appends a record that nobody waits for (access times).
    fn append_lazy(&mut self, record: &Record<'_>) -> Txid;
}

/// State to read, under a read or a write hold.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The file system.
    pub state: &'a State,
    /// Settings of operations.
    pub settings: &'a Settings,
    /// Settings that `apply` obeys.
    pub policy: &'a Policy,
    /// Both clocks, read once for the call.
    pub now: Now,
    /// Who asks.
    pub caller: &'a Caller,
}

/// State to change, under the write hold.
pub struct Turn<'a> {
    state: &'a mut State,
    log: &'a mut dyn Log,
    settings: &'a Settings,
    policy: &'a Policy,
    now: Now,
    caller: &'a Caller,
    effects: &'a mut Effects,
}

impl<'a> Turn<'a> {
    /// A turn for one call.
    pub fn new(
        state: &'a mut State,
        log: &'a mut dyn Log,
        settings: &'a Settings,
        policy: &'a Policy,
        now: Now,
        caller: &'a Caller,
        effects: &'a mut Effects,
    ) -> Turn<'a> {
        state.set_clock(now);
        Turn { state, log, settings, policy, now, caller, effects }
    }

    /// The same as a view.
    pub fn view(&self) -> View<'_> {
        View { state: self.state, settings: self.settings, policy: self.policy, now: self.now, caller: self.caller }
    }

    /// Fits, appends and applies one record. That the record fits was planned by the operation; a mismatch is a broken invariant, found before
    /// anything is written.
    ///
    /// # Panics
    /// If the record does not fit the state.
    pub fn log(&mut self, record: Record<'_>) -> Applied {
        self.transition(&record, Paths::Walk(&mut Walker::default()), false)
    }

    /// As [`Turn::log`], where the operation has walked the record's paths itself: `places` are what a walk would find now, in the order of the
    /// fields.
    pub fn log_at(&mut self, record: &Record<'_>, places: &[Place]) -> Applied {
        self.transition(record, Paths::Known(places), false)
    }

    /// As [`Turn::log`], with a record that nobody waits for.
    pub fn log_lazy(&mut self, record: Record<'_>) -> Applied {
        self.transition(&record, Paths::Walk(&mut Walker::default()), true)
    }

    fn transition(&mut self, record: &Record<'_>, paths: Paths<'_>, lazy: bool) -> Applied {
        match self.state.fit_at(record, self.policy, paths) {
            Fit::Fits(fitted) => {
                if lazy {
                    self.log.append_lazy(record);
                } else {
                    self.log.append(record);
                }
                self.state.apply(record, fitted, self.policy, Mode::Live, self.effects)
            }
            other => panic!("broken invariant: planned record does not fit ({other:?}): {record:?}"),
        }
    }

    /// Who asks.
    pub fn caller(&self) -> &'a Caller {
        self.caller
    }

    /// What this call answered before, if it is a repetition of an at-most-once call.
    pub fn cached(&self) -> Option<&RetryEntry> {
        self.state.retry.get(self.caller.rpc_ids.as_ref()?)
    }

    /// The state, for soft changes: locations, recovery, committed blocks, ages of leases. Nothing durable may be changed through it.
    pub fn soft(&mut self) -> &mut State {
        self.state
    }
}

/// An operation that may change state.
pub trait Write: Send + Sync {
    /// What `prepare` works out.
    type Prepared: Send;
    /// What the caller gets.
    type Reply: Send + 'static;
    /// Its row in the table.
    const OPERATION: Operation;
    /// Whether `prepare` works something out, so that it is worth a hold of its own.
    const PREPARES_APART: bool = size_of::<Self::Prepared>() > 0;
    /// Work before the write hold, under a short read hold; may be repeated. Chooses block targets, for instance.
    ///
    /// # Errors
    /// Refuses early what would be refused anyway.
    fn prepare(&self, view: &View<'_>) -> Result<Self::Prepared, Refusal>;
    /// Under the write hold: a refusal, or records logged one by one and one reply.
    ///
    /// # Errors
    /// The refusal of the call.
    fn run(&self, turn: &mut Turn<'_>, prepared: Self::Prepared) -> Result<Self::Reply, Refusal>;
}
