//! Calls in flight of one connection.

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Futures of calls. Each is polled once where it starts; those that are not done then are parked.
pub(crate) struct Calls<F> {
    /// Memory of the last call that was done at once, for the next one.
    spare: Option<Pin<Box<F>>>,
    parked: FuturesUnordered<Pin<Box<F>>>,
}

impl<F: Future> Calls<F> {
    pub(crate) fn new() -> Calls<F> {
        Calls { spare: None, parked: FuturesUnordered::new() }
    }
    /// Polls the future once; `None` if it is parked now.
    pub(crate) fn start(&mut self, future: F) -> Option<F::Output> {
        let mut slot = match self.spare.take() {
            Some(mut spare) => {
                spare.set(future);
                spare
            }
            None => Box::pin(future),
        };
        match slot.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => {
                self.spare = Some(slot);
                Some(output)
            }
            // parking polls again with a waker of its own, so that nothing that happened in between is missed
            Poll::Pending => {
                self.parked.push(slot);
                None
            }
        }
    }
    pub(crate) fn parked(&self) -> usize {
        self.parked.len()
    }
    /// The next parked call that is done; `None` if none is parked.
    pub(crate) async fn next(&mut self) -> Option<F::Output> {
        self.parked.next().await
    }
    /// A parked call that is done by now.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        self.parked.poll_next_unpin(cx)
    }
}
