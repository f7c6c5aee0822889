//! When what is to be cached is looked at: as soon as it changes, and now and then.

use crate::{Engine, HaState, blocking};
use ops::admin::cache_scan::CacheScan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Files or blocks looked at between two looks at the clock.
const STEP: usize = 64;

/// Scans that were asked for, and that are done.
#[derive(Debug, Default)]
pub(crate) struct CacheScans {
    wanted: AtomicU64,
    done: AtomicU64,
    /// Whether scans are made at all.
    on: AtomicBool,
    want: Notify,
    ended: Notify,
}

impl CacheScans {
    /// What is to be cached changed: a scan that began before does not count.
    pub(crate) fn want(&self) {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        self.want.notify_one();
    }
}

impl Engine {
    /// Waits until a scan has seen all that was to be cached when this was called (Hadoop: `waitForRescanIfNeeded`). Does not wait where nothing
    /// scans.
    pub async fn cache_scan(&self) {
        let scans = &self.cache_scans;
        let wanted = scans.wanted.load(Ordering::Acquire);
        loop {
            let ended = scans.ended.notified();
            let scanning = scans.on.load(Ordering::Acquire) && self.gate().state() == HaState::Active;
            if !scanning || scans.done.load(Ordering::Acquire) >= wanted {
                return;
            }
            ended.await;
        }
    }

    /// Scans, at the latest every so often.
    pub(crate) async fn scan_caches(self: Arc<Self>, every: Duration) {
        let (scans, mut scan, mut was_active) = (&self.cache_scans, CacheScan::default(), false);
        scans.on.store(true, Ordering::Release);
        loop {
            let active = self.gate().state() == HaState::Active;
            if active {
                let wanted = scans.wanted.load(Ordering::Acquire);
                scan.begin();
                let (engine, mut begun) = (self.clone(), scan);
                scan = blocking(move || {
                    while engine.cache_scan_slice(&mut begun) {}
                    begun
                })
                .await;
                scans.done.store(wanted, Ordering::Release);
            } else if was_active {
                self.lock().write("cacheScan", |state| state.caches.clear_uses());
            }
            was_active = active;
            scans.ended.notify_waiters();
            // whichever comes first
            _ = tokio::time::timeout(every.max(Duration::from_millis(1)), scans.want.notified()).await;
        }
    }

    fn cache_scan_slice(&self, scan: &mut CacheScan) -> bool {
        let now = self.now();
        self.lock().write_slice("cacheScan", |state, slice| {
            while scan.step(state, now, STEP) {
                if slice.is_over() {
                    return true;
                }
            }
            false
        })
    }
}
