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

/// The shortest pause and the longest.
const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_micros(4_800)];
/// Pause that shows whether there is a stream, and the one that a stream begins with.
const TRIAL: Duration = Duration::from_millis(2);
const BEGIN: Duration = Duration::from_millis(1);
/// Calls that come during that one if there is.
const STREAM_CALLS: u32 = 12;
/// Calls found at once that make a trial worth while.
const BURST_CALLS: u32 = 4;
/// Calls of a look for which no longer pause is tried; with twice as many it is too long.
const ENOUGH_CALLS: f64 = 48.0;
/// Looks with the chosen pause from one trial of another to the next.
const USUAL_LOOKS: u32 = 64;
/// Looks with another pause, by which that is judged.
const TRIED_LOOKS: u32 = 8;
/// Calls a second with twice the pause, as a part of those with the chosen one, for which it is worth it: equal but for chance.
const LONGER_RATE: f64 = 0.95;
/// The same with half the pause: more than by chance; or calls a look, where the rest of the pause finds nothing.
const SHORTER_RATE: f64 = 1.05;
const SHORTER_LOOK: f64 = 0.9;
/// Looks from a trial that showed no stream to the next.
const IDLE_LOOKS: u32 = 1_024;
/// A look with fewer calls is dull, and so many in a row end a stream.
const DULL_CALLS: u32 = 3;
const DULL_LOOKS: u32 = 8;

/// What is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Trial {
    #[default]
    None,
    /// Whether there is a stream.
    Stream,
    /// Whether with twice the pause as many calls come in a second: then they come cheaper.
    Longer,
    /// Whether with half the pause more calls come in a second, or nearly as many in a look.
    Shorter,
}

/// What looks have found.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    looks: u32,
    calls: u32,
    time: Duration,
}

impl Found {
    fn add(&mut self, calls: u32, time: Duration) {
        *self = Found { looks: self.looks + 1, calls: self.calls + calls, time: self.time + time };
    }
    fn a_look(&self) -> f64 {
        f64::from(self.calls) / f64::from(self.looks.max(1))
    }
    fn a_second(&self) -> f64 {
        f64::from(self.calls) / self.time.as_secs_f64().max(1e-6)
    }
}

/// What a thread knows of its load.
#[derive(Debug, Default)]
struct Gathering {
    /// Calls since the last look.
    calls: u32,
    /// The pause before each look; zero if there is no stream.
    pause: Duration,
    trial: Trial,
    /// What is tried next while there is a stream.
    next: Trial,
    /// Looks until a trial ends or may begin.
    left: u32,
    /// What was found since it began, and with the chosen pause before that.
    found: Found,
    usual: Found,
    dull: u32,
    /// When the last pause was asked for.
    looked: Option<Instant>,
    /// The end of a pause that was interrupted.
    until: Option<Instant>,
}

impl Gathering {
    /// How long to sleep before the next look; `time` is how long ago the last one was.
    fn pause(&mut self, time: Duration) -> Duration {
        let calls = std::mem::take(&mut self.calls);
        self.dull = if calls < DULL_CALLS { self.dull + 1 } else { 0 };
        self.left = self.left.saturating_sub(1);
        if self.trial == Trial::Stream {
            let stream = calls >= STREAM_CALLS;
            let (pause, left) = if stream { (BEGIN, TRIED_LOOKS) } else { (Duration::ZERO, IDLE_LOOKS) };
            let Gathering { dull, looked, .. } = *self;
            *self = Gathering { pause, left, dull, looked, next: Trial::Longer, ..Gathering::default() };
        } else if self.dull >= DULL_LOOKS {
            self.pause = Duration::ZERO;
        }
        if self.pause.is_zero() {
            if self.left > 0 || calls < BURST_CALLS {
                return Duration::ZERO;
            }
            self.trial = Trial::Stream;
            return TRIAL;
        }
        self.found.add(calls, time);
        if self.left == 0 {
            self.judge();
        }
        match self.trial {
            Trial::Longer => (self.pause * 2).min(PAUSES[1]),
            Trial::Shorter => self.pause / 2,
            Trial::None | Trial::Stream => self.pause,
        }
    }

    /// What was found says whether the pause tried becomes the chosen one; then the next trial begins, else the chosen one is used for a while.
    fn judge(&mut self) {
        let (found, tried) = (std::mem::take(&mut self.found), std::mem::take(&mut self.trial));
        let faster = found.a_second() / self.usual.a_second().max(1.0);
        let (worth, pause) = match tried {
            Trial::Longer => (faster >= LONGER_RATE, self.pause * 2),
            Trial::Shorter => {
                (faster >= SHORTER_RATE || found.a_look() >= self.usual.a_look() * SHORTER_LOOK, self.pause / 2)
            }
            Trial::None | Trial::Stream if found.a_look() >= 2.0 * ENOUGH_CALLS => (true, self.pause / 2),
            Trial::None | Trial::Stream => (true, self.pause),
        };
        if worth {
            self.pause = pause.clamp(PAUSES[0], PAUSES[1]);
            self.usual = found;
            self.trial = self.choose();
        } else {
            self.next = if tried == Trial::Longer { Trial::Shorter } else { Trial::Longer };
        }
        self.left = if self.trial == Trial::None { USUAL_LOOKS } else { TRIED_LOOKS };
    }

    /// What can be tried, from what is to be tried next.
    fn choose(&self) -> Trial {
        let longer = self.pause < PAUSES[1] && self.usual.a_look() < ENOUGH_CALLS;
        let shorter = self.pause > PAUSES[0];
        match self.next {
            Trial::Shorter if shorter => Trial::Shorter,
            _ if longer => Trial::Longer,
            _ if shorter => Trial::Shorter,
            _ => Trial::None,
        }
    }
}

thread_local! {
    static GATHERING: RefCell<Gathering> = RefCell::default();
    static SLEEPER: Arc<Sleeper> = Arc::new(Sleeper { thread: std::thread::current(), woken: AtomicUsize::new(0) });
}

/// Calls were taken on this thread.
pub(crate) fn taken(calls: u32) {
    GATHERING.with_borrow_mut(|gathering| gathering.calls += calls);
}

/// To be called by each thread that serves connections before it waits for them (`tokio::runtime::Builder::on_thread_park`).
pub fn before_wait() {
    let until = GATHERING.with_borrow_mut(|gathering| {
        gathering.until.take().or_else(|| {
            let now = Instant::now();
            let time = gathering.looked.replace(now).map_or(Duration::ZERO, |looked| now - looked);
            Some(gathering.pause(time)).filter(|pause| !pause.is_zero()).map(|pause| now + pause)
        })
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

    /// Time from a pause to the next that is no pause.
    const WORK: Duration = Duration::from_micros(150);

    /// Pauses of `looks` looks, each of which finds what `calls` says of the pause before it.
    fn pauses(gathering: &mut Gathering, looks: usize, calls: impl Fn(Duration) -> u32) -> Vec<Duration> {
        let mut before = Duration::ZERO;
        let mut look = || {
            gathering.calls += calls(before);
            before = gathering.pause(before + WORK);
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
        let of = Duration::from_micros;
        // calls a second, whatever is done with them
        for (rate, least, most) in
            [(7_000, 4_800, 4_800), (14_000, 3_200, 4_800), (60_000, 500, 1_600), (400_000, 200, 250)]
        {
            let stream = |pause: Duration| 1 + ((pause + WORK).as_micros() as u32 * (rate / 1_000)) / 1_000;
            let mut gathering = Gathering { calls: BURST_CALLS, ..Gathering::default() };
            assert_eq!(pauses(&mut gathering, 500, stream)[0], TRIAL);
            assert!((of(least)..=of(most)).contains(&gathering.pause), "{rate}: {:?}", gathering.pause);
            let after = pauses(&mut gathering, 100, |_| 1);
            assert!(after.iter().filter(|pause| **pause > Duration::ZERO).count() < DULL_LOOKS as usize, "{rate}");
        }
    }

    #[test]
    fn clients_that_wait_for_their_answers_are_not_kept_waiting_for_nothing() {
        // clients whose next calls come so long after their answers: more than there are never come, however long the pause
        for (clients, micros, most) in [(24, 10, 400), (64, 10, 800), (64, 60, 4_800)] {
            let found = |pause: Duration| (pause.as_micros() as u32 / micros).min(clients);
            let mut gathering = Gathering { calls: BURST_CALLS, ..Gathering::default() };
            let during = pauses(&mut gathering, 5_000, found);
            assert!(gathering.pause.as_micros() <= most, "{clients}: {:?}", gathering.pause);
            let longer = during[1_000..].iter().filter(|pause| pause.as_micros() > most).count();
            assert!(longer <= 5_000 / 8, "{clients}: {longer}");
        }
    }

    #[test]
    fn a_pause_that_finds_too_much_is_halved() {
        let mut gathering = Gathering { pause: PAUSES[1], left: 1, next: Trial::Longer, ..Gathering::default() };
        pauses(&mut gathering, 500, |pause| pause.as_micros() as u32 / 10);
        assert!(gathering.pause <= Duration::from_micros(600), "{:?}", gathering.pause);
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
