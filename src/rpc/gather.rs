//! Gathering under load: a thread to which calls come in a steady stream sleeps a little before it looks for more, so that it serves several for
//! one wake-up, one read and one write, as network cards do with their interrupts. What other threads have done meanwhile, such as making answers
//! durable, ends the sleep for as long as that takes: answers do not wait for calls.
//!
//! It must not cost anybody who is alone, or one of a few, a moment: their next calls come only after their answers, so that waiting gathers
//! nothing. Whether there is a stream, and how long a pause is worth it, is therefore tried now and then.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Pause with which a stream begins, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_micros(2_400)];
/// Pause that shows whether there is a stream.
const TRIAL: Duration = Duration::from_millis(1);
/// Calls that come during that one if there is.
const STREAM_CALLS: usize = 12;
/// Calls found at once that make a trial worth while.
const BURST_CALLS: usize = 4;
/// Calls of a look for which no longer pause is tried.
const ENOUGH_CALLS: usize = 40;
/// Looks from one trial of another pause to the next, and from a trial that showed no stream to the next.
const LOOKS_AFTER: [u32; 2] = [32, 1_024];
/// A look with fewer calls is dull, and so many in a row end a stream.
const DULL_CALLS: usize = 3;
const DULL_LOOKS: u32 = 8;

/// What is tried at a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Trial {
    #[default]
    None,
    /// Whether there is a stream.
    Stream,
    /// Whether twice the pause finds more calls, by a quarter at least: between pauses calls come too, so that they are never twice as many.
    Longer,
    /// Whether half the pause finds nearly as many.
    Shorter,
}

/// What a thread knows of its load.
#[derive(Debug, Default)]
struct Gathering {
    /// Calls since the last look.
    calls: usize,
    /// The pause before each look; zero if there is no stream.
    pause: Duration,
    /// Calls of a usual look, times 8, over the last few.
    usual: usize,
    /// What the last pause tried.
    trial: Trial,
    /// What is tried next while there is a stream.
    next: Trial,
    /// Looks until a trial may be made.
    looks: u32,
    dull: u32,
    /// The end of a pause that was interrupted.
    until: Option<Instant>,
}

impl Gathering {
    /// How long to sleep before the next look.
    fn pause(&mut self) -> Duration {
        let calls = std::mem::take(&mut self.calls);
        self.judge(calls);
        self.dull = if calls < DULL_CALLS { self.dull + 1 } else { 0 };
        if self.dull >= DULL_LOOKS {
            self.pause = Duration::ZERO;
        }
        self.looks = self.looks.saturating_sub(1);
        if self.pause.is_zero() {
            if self.looks > 0 || calls < BURST_CALLS {
                return Duration::ZERO;
            }
            self.trial = Trial::Stream;
            return TRIAL;
        }
        if self.looks > 0 {
            return self.pause;
        }
        self.looks = LOOKS_AFTER[0];
        self.trial = self.next;
        match self.trial {
            Trial::Longer => {
                self.next = Trial::Shorter;
                if self.usual / 8 >= ENOUGH_CALLS {
                    self.trial = Trial::None;
                    return self.pause;
                }
                (self.pause * 2).min(PAUSES[1])
            }
            _ => {
                self.next = Trial::Longer;
                self.pause / 2
            }
        }
    }

    fn is_most(&self, calls: usize) -> bool {
        !self.pause.is_zero() && calls * 2 * 8 >= self.usual.max(8)
    }

    /// What the calls found after a pause say of it.
    fn judge(&mut self, calls: usize) {
        let adopt = |gathering: &mut Gathering, pause: Duration| {
            gathering.pause = pause.clamp(PAUSES[0], PAUSES[1]);
            gathering.usual = calls * 8;
        };
        match std::mem::take(&mut self.trial) {
            Trial::None => self.usual = self.usual - self.usual / 8 + calls,
            Trial::Stream if calls >= STREAM_CALLS => {
                adopt(self, PAUSES[0]);
                self.usual = 0;
                self.next = Trial::Longer;
                self.looks = LOOKS_AFTER[0];
            }
            Trial::Stream => self.looks = LOOKS_AFTER[1],
            Trial::Longer if calls * 8 * 4 >= self.usual * 5 => adopt(self, self.pause * 2),
            Trial::Shorter if calls * 8 * 10 >= self.usual * 9 => adopt(self, self.pause / 2),
            Trial::Longer | Trial::Shorter => {}
        }
    }
}

thread_local! {
    static GATHERING: RefCell<Gathering> = RefCell::default();
    static SLEEPER: Arc<Sleeper> = Arc::new(Sleeper { thread: std::thread::current(), woken: AtomicUsize::new(0) });
}

/// Calls were taken on this thread.
pub(crate) fn taken(calls: usize) {
    GATHERING.with_borrow_mut(|gathering| gathering.calls += calls);
}

/// Whether so many calls of one connection are most of what comes to this thread at a time, and more of them are looked for only after a pause.
/// Then nobody waits in vain if the thread does something for them now.
pub(crate) fn is_most(calls: usize) -> bool {
    GATHERING.with_borrow(|gathering| gathering.is_most(calls))
}

/// To be called by each thread that serves connections before it waits for them (`tokio::runtime::Builder::on_thread_park`).
pub fn before_wait() {
    let until = GATHERING.with_borrow_mut(|gathering| match gathering.until.take() {
        Some(until) => Some(until),
        None => Some(gathering.pause()).filter(|pause| !pause.is_zero()).map(|pause| Instant::now() + pause),
    });
    let Some(until) = until else { return };
    SLEEPER.with(|sleeper| {
        if !sleeper.sleep(until) {
            GATHERING.with_borrow_mut(|gathering| gathering.until = Some(until));
        }
    });
}

/// A thread that pauses.
#[derive(Debug)]
struct Sleeper {
    thread: Thread,
    /// Connections that other threads have woken and that were not looked at yet.
    woken: AtomicUsize,
}

impl Sleeper {
    /// Sleeps; false if it is woken before the time.
    fn sleep(&self, until: Instant) -> bool {
        loop {
            if self.woken.load(Ordering::Acquire) > 0 {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::park_timeout(left);
        }
    }
}

const IDLE: u8 = 0;
const WOKEN: u8 = 1;
const GONE: u8 = 2;

/// The waker of a connection: ends the pause of the thread that serves it, if another thread wakes it.
struct Alarm {
    waker: Waker,
    sleeper: Arc<Sleeper>,
    state: AtomicU8,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        // what the thread finds itself needs no alarm: it is not asleep
        let alarms = std::thread::current().id() != self.sleeper.thread.id() && self.change(IDLE, WOKEN);
        if alarms {
            self.sleeper.woken.fetch_add(1, Ordering::AcqRel);
        }
        self.waker.wake_by_ref();
        if alarms {
            self.sleeper.thread.unpark();
        }
    }
}

impl Alarm {
    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
    /// The connection is looked at, or gone: what woke it is done with.
    fn settle(&self, to: u8) {
        if self.state.swap(to, Ordering::AcqRel) == WOKEN {
            self.sleeper.woken.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// A connection whose thread does not oversleep what other threads do for it.
pub(crate) struct Alert<F> {
    future: F,
    alarm: Option<(Arc<Alarm>, Waker)>,
}

impl<F> Alert<F> {
    pub(crate) fn new(future: F) -> Alert<F> {
        Alert { future, alarm: None }
    }
    /// The alarm of this thread.
    fn alarm(&mut self, waker: &Waker) -> &Waker {
        let fits =
            |alarm: &Alarm| SLEEPER.with(|here| Arc::ptr_eq(here, &alarm.sleeper)) && alarm.waker.will_wake(waker);
        match &self.alarm {
            Some((alarm, _)) if fits(alarm) => alarm.settle(IDLE),
            _ => {
                self.retire();
                let sleeper = SLEEPER.with(Arc::clone);
                let alarm = Arc::new(Alarm { waker: waker.clone(), sleeper, state: AtomicU8::new(IDLE) });
                self.alarm = Some((alarm.clone(), Waker::from(alarm)));
            }
        }
        &self.alarm.as_ref().expect("set above").1
    }
    fn retire(&mut self) {
        if let Some((alarm, _)) = self.alarm.take() {
            alarm.settle(GONE);
        }
    }
}

impl<F: Future + Unpin> Future for Alert<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let waker = self.alarm(context.waker()).clone();
        Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker))
    }
}

impl<F> Drop for Alert<F> {
    fn drop(&mut self) {
        self.retire();
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
            before = gathering.pause();
            before
        };
        (0..looks).map(|_| look()).collect()
    }

    #[test]
    fn a_few_clients_meet_no_pause_but_a_rare_trial() {
        for clients in 1..STREAM_CALLS {
            let pauses = pauses(&mut Gathering::default(), 10_000, |_| clients);
            let trials = pauses.iter().filter(|pause| **pause == TRIAL).count();
            assert!(if clients < BURST_CALLS { trials == 0 } else { trials <= 10 }, "{clients}: {trials}");
            assert!(pauses.iter().all(|pause| pause.is_zero() || *pause == TRIAL), "{clients}");
        }
    }

    #[test]
    fn a_stream_is_gathered_until_it_ends() {
        // calls a second, whatever is done with them; the thread is woken for each but for a burst at the beginning
        for (rate, longest, least) in [(14_000, 2_400, 1_600), (60_000, 800, 400), (400_000, 400, 200)] {
            let stream = |pause: Duration| 1 + pause.as_micros() as usize * rate / 1_000_000;
            let mut gathering = Gathering { calls: BURST_CALLS, ..Gathering::default() };
            let during = pauses(&mut gathering, 1_000, stream);
            assert_eq!(during[0], TRIAL);
            let of = |micros| Duration::from_micros(micros);
            assert!(during[500..].iter().all(|pause| (of(least / 2)..=of(longest)).contains(pause)), "{rate}");
            assert!((of(least)..=of(longest)).contains(&gathering.pause), "{rate}: {:?}", gathering.pause);
            let after = pauses(&mut gathering, 100, |_| 1);
            assert!(after.iter().filter(|pause| **pause > Duration::ZERO).count() < DULL_LOOKS as usize, "{rate}");
        }
    }

    #[test]
    fn clients_that_wait_for_their_answers_are_not_kept_waiting_for_nothing() {
        // 24 clients whose next calls come soon after their answers: more than these never come, however long the pause
        let clients = |pause: Duration| (pause.as_micros() as usize / 10).min(24);
        let mut gathering = Gathering { calls: BURST_CALLS, ..Gathering::default() };
        pauses(&mut gathering, 1_000, clients);
        assert!(gathering.pause <= Duration::from_micros(400), "{:?}", gathering.pause);
    }

    #[test]
    fn a_connection_that_brings_most_calls_of_a_stream_is_told_from_others() {
        let mut gathering = Gathering { calls: BURST_CALLS, ..Gathering::default() };
        assert!(!gathering.is_most(BURST_CALLS), "there is no stream yet");
        pauses(&mut gathering, 200, |_| 20);
        let most: Vec<usize> = (0..=20).filter(|calls| gathering.is_most(*calls)).collect();
        assert_eq!(most, (10..=20).collect::<Vec<_>>());
        pauses(&mut gathering, 100, |_| 1);
        assert!(!gathering.is_most(1), "the stream has ended");
    }

    #[test]
    fn what_other_threads_wake_ends_a_pause_once() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::AcqRel);
            }
        }
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let mut context = Context::from_waker(&waker);
        let given = std::cell::RefCell::new(None);
        let mut alert = Alert::new(std::future::poll_fn(|context| {
            given.replace(Some(context.waker().clone()));
            Poll::<()>::Pending
        }));
        let mut poll = || {
            assert!(Pin::new(&mut alert).poll(&mut context).is_pending());
            given.take().expect("a waker")
        };
        let sleep = || SLEEPER.with(|sleeper| sleeper.sleep(Instant::now() + Duration::from_millis(5)));
        let waker = poll();
        assert!(sleep(), "nobody wakes it");
        waker.wake_by_ref();
        assert!(sleep(), "it is this thread that found something");
        let woken = waker.clone();
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1));
            woken.wake_by_ref();
            woken.wake();
        });
        let began = Instant::now();
        assert!(!SLEEPER.with(|sleeper| sleeper.sleep(began + Duration::from_secs(60))));
        other.join().unwrap();
        assert!(!sleep(), "the connection was not looked at yet");
        let waker = poll();
        assert!(sleep());
        drop(alert);
        std::thread::spawn(move || waker.wake()).join().unwrap();
        assert!(sleep(), "it is gone");
        assert_eq!(count.0.load(Ordering::Acquire), 4);
    }
}
