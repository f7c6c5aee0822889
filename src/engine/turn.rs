//! Calls that may change state: prepare, decide under the lock, wait at the fence.

use crate::{Engine, Slice};
use edit::Record;
use ops::context::{Log, Turn, View, Write};
use state::{Effects, Mode, State};
use storage::journal::Journal;
use vocab::time::Now;
use vocab::{Caller, Refusal, Txid};

/// The journal as the operations see it: somewhere to append.
struct JournalLog<'a>(&'a Journal);

impl Log for JournalLog<'_> {
    fn append(&mut self, record: &Record<'_>) -> Txid {
        self.0.append(record)
    }
    fn append_lazy(&mut self, record: &Record<'_>) -> Txid {
        self.0.append_lazy(record)
    }
}

/// A value that was decided, and the transaction that must be durable before anybody may see it.
#[derive(Debug)]
pub struct Decided<R> {
    /// The answer.
    pub answer: R,
    /// The highest transaction assigned when the answer was decided.
    pub rests_on: Txid,
}

impl<R> Decided<R> {
    /// The same with what `f` makes of the answer.
    pub fn map<T>(self, f: impl FnOnce(R) -> T) -> Decided<T> {
        Decided { answer: f(self.answer), rests_on: self.rests_on }
    }
}

/// Who looks at the state just before and just after an operation, under the operation's own hold of the lock.
pub trait Witness: Send {
    /// Before the operation runs.
    fn before(&mut self, view: &View<'_>);
    /// After it succeeded. `repeated`: it was answered from the retry cache.
    fn after(&mut self, view: &View<'_>, repeated: bool);
}

impl Engine {
    /// As [`Engine::write`], with a witness.
    pub fn write_witnessed<W: Write>(
        &self,
        operation: &W,
        caller: &Caller,
        witness: &mut dyn Witness,
    ) -> Decided<Result<W::Reply, Refusal>> {
        self.decide(operation, caller, |turn, prepared| {
            let repeated = turn.cached().is_some();
            witness.before(&turn.view());
            let reply = operation.run(turn, prepared)?;
            witness.after(&turn.view(), repeated);
            Ok(reply)
        })
    }

    /// Runs an operation of the table: role gate, prepare, run. What comes of it has not passed the fence, which refusals wait at too: they may
    /// rest on what another call has just logged.
    pub fn write<W: Write>(&self, operation: &W, caller: &Caller) -> Decided<Result<W::Reply, Refusal>> {
        self.decide(operation, caller, |turn, prepared| operation.run(turn, prepared))
    }

    /// Prepares under a read hold, unless that is not worth one, and runs under a write hold.
    fn decide<W: Write>(
        &self,
        operation: &W,
        caller: &Caller,
        run: impl FnOnce(&mut Turn<'_>, W::Prepared) -> Result<W::Reply, Refusal>,
    ) -> Decided<Result<W::Reply, Refusal>> {
        let name = W::OPERATION.row().method;
        let apart = || self.view(name, caller, |view| operation.prepare(view)).map(Some);
        let prepared = self.pass(W::OPERATION).and_then(|()| if W::PREPARES_APART { apart() } else { Ok(None) });
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => return Decided { answer: Err(refusal), rests_on: self.journal().last() },
        };
        self.turn(name, caller, |turn| {
            let prepared = match prepared {
                Some(prepared) => prepared,
                None => operation.prepare(&turn.view())?,
            };
            run(turn, prepared)
        })
    }

    /// Runs `f` under the write hold with a turn of its own. `name` is for the account of holds.
    pub fn turn<R>(&self, name: &'static str, caller: &Caller, f: impl FnOnce(&mut Turn<'_>) -> R) -> Decided<R> {
        let (now, settings, mut effects) = (self.now(), self.settings(), Effects::new(Mode::Live));
        let held = |state: &mut State| self.turn_held(state, now, &settings, caller, &mut effects, f);
        let decided = self.lock().write(name, held);
        self.follow(&effects);
        decided
    }

    /// The same for a slice of long work. Blocks, and gives way to others afterwards.
    pub fn turn_slice<R>(
        &self,
        name: &'static str,
        caller: &Caller,
        f: impl FnOnce(&mut Turn<'_>, Slice) -> R,
    ) -> Decided<R> {
        let (now, settings, mut effects) = (self.now(), self.settings(), Effects::new(Mode::Live));
        let held = |state: &mut State, slice| {
            self.turn_held(state, now, &settings, caller, &mut effects, |turn| f(turn, slice))
        };
        let decided = self.lock().write_slice(name, held);
        self.follow(&effects);
        decided
    }

    fn turn_held<R>(
        &self,
        state: &mut State,
        now: Now,
        settings: &ops::Settings,
        caller: &Caller,
        effects: &mut Effects,
        f: impl FnOnce(&mut Turn<'_>) -> R,
    ) -> Decided<R> {
        let mut log = JournalLog(self.journal());
        // under the hold: the end of a rolling upgrade changes it together with the log
        let policy = self.policy.load();
        let mut turn = Turn::new(state, &mut log, settings, &policy, now, caller, effects);
        let answer = f(&mut turn);
        self.cleanup.note(state);
        Decided { answer, rests_on: self.journal().last() }
    }

    /// Runs `f` under a read hold.
    pub fn view<R>(&self, name: &'static str, caller: &Caller, f: impl FnOnce(&View<'_>) -> R) -> R {
        let (now, settings) = (self.now(), self.settings());
        self.lock().read(name, |state| {
            let policy = self.policy.load();
            f(&View { state, settings: &settings, policy: &policy, now, caller })
        })
    }

    /// The same for a slice of long work. Blocks, and gives way to others afterwards.
    pub fn view_slice<R>(&self, name: &'static str, caller: &Caller, f: impl FnOnce(&View<'_>, Slice) -> R) -> R {
        let (now, settings) = (self.now(), self.settings());
        self.lock().read_slice(name, |state, slice| {
            let policy = self.policy.load();
            f(&View { state, settings: &settings, policy: &policy, now, caller }, slice)
        })
    }

    /// Waits until what the answer rests on is durable, then gives it out. If the journals fail for good the process ends before this returns.
    pub async fn fence<R>(&self, decided: Decided<R>) -> R {
        if self.journal().watermark().wait(decided.rests_on).await.is_err() {
            // the failed journals end the process; an answer that rests on a lost record must not leave before that
            std::future::pending::<()>().await;
        }
        decided.answer
    }
}
