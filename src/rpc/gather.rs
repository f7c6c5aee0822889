//! Gathering under load: a thread to which calls come in a steady stream sleeps a little before it looks for more, so that it serves several for
//! one wake-up, one read and one write, as network cards do with their interrupts.
//!
//! It must not cost anybody who is alone, or one of a few, a moment: their next calls come only after their answers, so that waiting gathers
//! nothing. Whether there is a stream is therefore tried now and then by a longer pause.

use std::cell::RefCell;
use std::time::Duration;

/// Pause while there is a stream.
const PAUSE: Duration = Duration::from_micros(200);
/// Pause that shows whether there is one.
const TRIAL: Duration = Duration::from_millis(1);
/// Calls that come during a trial if there is one.
const STREAM_CALLS: usize = 6;
/// Calls found at once that make a trial worth while.
const BURST_CALLS: usize = 4;
/// Looks from one trial that succeeded to the next, and from one that did not.
const LOOKS_AFTER: [u32; 2] = [256, 1_024];
/// Looks in a row with a call at most that end a stream.
const DULL_LOOKS: u32 = 8;

/// What a thread knows of its load.
#[derive(Debug, Default)]
struct Gathering {
    /// Calls since the last look.
    calls: usize,
    /// Whether a trial has shown a stream.
    stream: bool,
    /// Whether the last pause was a trial.
    trial: bool,
    /// Looks until a trial may be made.
    looks: u32,
    dull: u32,
}

impl Gathering {
    /// How long to sleep before the next look.
    fn pause(&mut self) -> Option<Duration> {
        let calls = std::mem::take(&mut self.calls);
        if std::mem::take(&mut self.trial) {
            self.stream = calls >= STREAM_CALLS;
            self.looks = LOOKS_AFTER[usize::from(!self.stream)];
        }
        self.dull = if calls < 2 { self.dull + 1 } else { 0 };
        self.stream &= self.dull < DULL_LOOKS;
        self.looks = self.looks.saturating_sub(1);
        self.trial = self.looks == 0 && (self.stream || calls >= BURST_CALLS);
        match (self.trial, self.stream) {
            (true, _) => Some(TRIAL),
            (false, true) => Some(PAUSE),
            (false, false) => None,
        }
    }
}

thread_local! {
    static GATHERING: RefCell<Gathering> = RefCell::default();
}

/// Calls were taken on this thread.
pub(crate) fn taken(calls: usize) {
    GATHERING.with_borrow_mut(|gathering| gathering.calls += calls);
}

/// To be called by each thread that serves connections before it waits for them (`tokio::runtime::Builder::on_thread_park`).
pub fn before_wait() {
    if let Some(pause) = GATHERING.with_borrow_mut(Gathering::pause) {
        std::thread::sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pauses of `looks` looks, each of which finds what `calls` says of the pause before it.
    fn pauses(gathering: &mut Gathering, looks: usize, calls: impl Fn(Duration) -> usize) -> Vec<Duration> {
        let mut before = Duration::ZERO;
        let mut look = || {
            gathering.calls += calls(before);
            before = gathering.pause().unwrap_or_default();
            before
        };
        (0..looks).map(|_| look()).collect()
    }

    #[test]
    fn a_few_clients_meet_no_pause_but_a_rare_trial() {
        for clients in 1..STREAM_CALLS {
            let pauses = pauses(&mut Gathering::default(), 10_000, |_| clients);
            assert!(pauses.iter().all(|pause| *pause != PAUSE), "{clients}");
            let trials = pauses.iter().filter(|pause| **pause == TRIAL).count();
            assert!(if clients < BURST_CALLS { trials == 0 } else { trials <= 10 }, "{clients}: {trials}");
        }
    }

    #[test]
    fn a_stream_is_gathered_until_it_ends() {
        // 20,000 calls a second; the thread is woken for each but for a burst at the beginning
        let stream = |pause: Duration| 1 + pause.as_micros() as usize / 50;
        let mut gathering = Gathering { calls: BURST_CALLS, ..Gathering::default() };
        let during = pauses(&mut gathering, 1_000, stream);
        assert_eq!(during[0], TRIAL);
        assert!(during[1..].iter().filter(|pause| **pause == TRIAL).count() <= 4);
        assert!(during[1..].iter().all(|pause| *pause > Duration::ZERO));
        let after = pauses(&mut gathering, 100, |_| 1);
        assert_eq!(after.iter().filter(|pause| **pause > Duration::ZERO).count(), DULL_LOOKS as usize - 1);
    }
}
