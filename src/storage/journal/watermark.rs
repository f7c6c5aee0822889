//! How far the journals are durable, and those who wait for it.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use vocab::Txid;

/// Too few journals are left: nothing beyond `durable` will ever be. The text is what Hadoop logs when it ends for this reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct JournalFailed {
    /// What happened.
    pub reason: Arc<str>,
    /// The last durable transaction.
    pub durable: Txid,
}

/// The highest durable transaction, and its waiters. Clones are the same watermark.
///
/// Waiters are woken exactly once, when their transaction is covered or the journals have failed: thousands may be parked.
#[derive(Clone, Debug, Default)]
pub struct Watermark(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    durable: AtomicU64,
    /// The highest transaction that somebody has asked for.
    wanted: AtomicU64,
    /// Who makes transactions durable, as soon as they are wanted.
    flusher: OnceLock<Thread>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    failed: Option<JournalFailed>,
    /// By transaction and order of arrival.
    wakers: BTreeMap<(u64, u64), Waker>,
    arrivals: u64,
}

impl Watermark {
    /// A watermark that stands at the given transaction.
    pub fn at(durable: Txid) -> Watermark {
        let watermark = Watermark::default();
        watermark.0.durable.store(durable.0, Ordering::Release);
        watermark
    }

    /// The highest transaction that every journal in use holds durably.
    pub fn durable(&self) -> Txid {
        Txid(self.0.durable.load(Ordering::Acquire))
    }

    /// The failure that ended it, if any.
    pub fn failed(&self) -> Option<JournalFailed> {
        self.0.waiting.lock().failed.clone()
    }

    /// Names the thread that is woken when somebody begins to wait.
    pub(crate) fn serve_on(&self, flusher: Thread) {
        _ = self.0.flusher.set(flusher);
    }

    /// Has that thread look whether there is something to do.
    pub(crate) fn wake_flusher(&self) {
        self.0.wake_flusher();
    }

    /// The highest transaction that somebody has asked for.
    pub(crate) fn wanted(&self) -> u64 {
        self.0.wanted.load(Ordering::Acquire)
    }

    /// Waits until `txid` is durable; that somebody waits is what makes the journals write. Cheap when it is already: no lock.
    pub fn wait(&self, txid: Txid) -> Wait {
        Wait { inner: self.0.clone(), txid: txid.0, key: None }
    }

    /// As [`Watermark::wait`], holding up the thread.
    ///
    /// # Errors
    /// The journals have failed before `txid` was durable.
    pub fn wait_blocking(&self, txid: Txid) -> Result<(), JournalFailed> {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut wait = self.wait(txid);
        loop {
            match Pin::new(&mut wait).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    /// Moves up to `durable` and wakes those whom it covers.
    pub(crate) fn advance(&self, durable: Txid) {
        let due = {
            let mut waiting = self.0.waiting.lock();
            debug_assert!(waiting.failed.is_none() && durable >= self.durable());
            self.0.durable.store(durable.0, Ordering::Release);
            let later = waiting.wakers.split_off(&(durable.0 + 1, 0));
            std::mem::replace(&mut waiting.wakers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// Ends it: all who wait get the failure.
    pub(crate) fn fail(&self, reason: &str) -> JournalFailed {
        let (failed, due) = {
            let mut waiting = self.0.waiting.lock();
            let failed = JournalFailed { reason: reason.into(), durable: self.durable() };
            let failed = waiting.failed.get_or_insert(failed).clone();
            (failed, std::mem::take(&mut waiting.wakers))
        };
        due.into_values().for_each(Waker::wake);
        failed
    }
}

impl Inner {
    fn want(&self, txid: u64) {
        self.wanted.fetch_max(txid, Ordering::AcqRel);
        self.wake_flusher();
    }
    /// Costs a system call only if the thread sleeps.
    fn wake_flusher(&self) {
        if let Some(flusher) = self.flusher.get() {
            flusher.unpark();
        }
    }
}

/// The wait of [`Watermark::wait`]. Dropping it gives the wait up.
#[derive(Debug)]
pub struct Wait {
    inner: Arc<Inner>,
    txid: u64,
    key: Option<(u64, u64)>,
}

impl Future for Wait {
    type Output = Result<(), JournalFailed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let covered = |inner: &Inner| inner.durable.load(Ordering::Acquire) >= this.txid;
        if covered(&this.inner) {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = this.inner.waiting.lock();
        if covered(&this.inner) {
            return Poll::Ready(Ok(()));
        }
        if let Some(failed) = &waiting.failed {
            return Poll::Ready(Err(failed.clone()));
        }
        let key = *this.key.get_or_insert_with(|| {
            waiting.arrivals += 1;
            (this.txid, waiting.arrivals)
        });
        match waiting.wakers.get_mut(&key) {
            Some(waker) => waker.clone_from(context.waker()),
            None => _ = waiting.wakers.insert(key, context.waker().clone()),
        }
        drop(waiting);
        this.inner.want(this.txid);
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.inner.waiting.lock().wakers.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_covered_waiters_are_woken_and_only_once() {
        let watermark = Watermark::at(Txid(0));
        let counts: Vec<_> = (1..=1000).map(|_| Arc::new(Count(AtomicUsize::new(0)))).collect();
        let mut waits: Vec<_> = (1..=1000).map(|txid| watermark.wait(Txid(txid))).collect();
        for (wait, count) in waits.iter_mut().zip(&counts) {
            let waker = Waker::from(count.clone());
            assert!(Pin::new(wait).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(waits.remove(10)); // gives up
        watermark.advance(Txid(400));
        watermark.advance(Txid(500));
        let woken: Vec<_> = counts.iter().map(|count| count.0.load(Ordering::Relaxed)).collect();
        assert!(woken[..500].iter().enumerate().all(|(i, n)| *n == usize::from(i != 10)));
        assert!(woken[500..].iter().all(|n| *n == 0));
        let failed = watermark.fail("no journal is left");
        assert_eq!(failed.durable, Txid(500));
        assert_eq!(watermark.wait_blocking(Txid(501)), Err(failed));
        assert_eq!(watermark.wait_blocking(Txid(500)), Ok(()));
    }

    #[test]
    fn a_blocked_thread_goes_on() {
        let watermark = Watermark::at(Txid(3));
        let other = watermark.clone();
        let thread = std::thread::spawn(move || other.wait_blocking(Txid(5)));
        while watermark.0.waiting.lock().wakers.is_empty() {
            std::thread::yield_now();
        }
        watermark.advance(Txid(5));
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
}
