//! Periodic work: started with the ports, ended before the journal is closed.

use super::convert;
use super::resources::Resources;
use crate::config::settings::Settings;
use engine::{Engine, HaState, TickSettings};
use observe::progress::{Phase, StartupProgress, StepKind};
use ops::admin::lazy_persist::LazyPersistScrub;
use ops::admin::{lease_check, snapshot_collect};
use os::Os;
use server::service::{Shared, own_caller};
use std::sync::Arc;
use std::time::Duration;
use storage::Directories;
use tokio::task::JoinHandle;

/// Tasks that do it.
pub struct Ticks(Vec<JoinHandle<()>>);

impl Ticks {
    /// Starts all. Must be called in a tokio runtime.
    pub fn start(
        engine: &Arc<Engine>,
        settings: &Settings,
        os: &Os,
        progress: &Arc<StartupProgress>,
        directories: &Directories,
        shared: &Arc<Shared>,
    ) -> Ticks {
        let mut tasks = engine.start_ticks(TickSettings {
            retry_expiry_ms: u64::try_from(settings.retry_cache.expiry.as_millis()).unwrap_or(u64::MAX),
            roll_check: settings.edit_log.roll_check_interval,
            roll_transactions: settings.edit_log.roll_transactions,
            cache_refresh: Some(settings.caching.refresh).filter(|_| settings.caching.enabled),
        });
        let resources = Resources::new(&settings.directories, directories);
        tasks.push(tokio::spawn(resources.watch(engine.clone(), os.clone())));
        tasks.push(tokio::spawn(check_leases(engine.clone(), settings.features.lease_check_interval)));
        if let Some(keys) = &shared.keys {
            let warm_up = super::secrets::warm_up(engine.clone(), keys.clone(), settings.keys.warm_up);
            tasks.push(tokio::spawn(warm_up));
            let pace = convert::reencryption(settings);
            tasks.push(tokio::spawn(server::service::reencryption::work(shared.clone(), pace)));
        }
        if settings.tokens.always_use {
            tasks.push(tokio::spawn(server::service::tokens::tend(engine.clone())));
        }
        if settings.features.ordered_snapshot_deletion {
            tasks.push(tokio::spawn(collect_snapshots(engine.clone(), settings.features.snapshot_collect_interval)));
        }
        let scrub = settings.features.lazy_persist_scrub;
        tasks.extend(scrub.map(|every| tokio::spawn(scrub_lazily_persisted(engine.clone(), every))));
        tasks.push(tokio::spawn(watch_safe_mode(engine.clone(), progress.clone())));
        tasks.extend(convert::trash(settings).map(|trash| tokio::spawn(trash.run(shared.clone()))));
        Ticks(tasks)
    }

    /// Ends all: a turn under way is finished.
    pub async fn stop(self) {
        for task in self.0 {
            task.abort();
            // an aborted task answers with an error, which is what was asked for
            _ = task.await;
        }
    }
}

/// Missing blocks looked at under one hold of the lock, for files that were in memory only.
const SCRUB_SLICE: usize = 100;

/// Deletes lazily persisted files that have lost a block. DataNodes get the time of a round to come back before the first.
async fn scrub_lazily_persisted(engine: Arc<Engine>, interval: Duration) {
    let caller = own_caller(&engine);
    loop {
        tokio::time::sleep(interval).await;
        let mut scrub = LazyPersistScrub::default();
        let mut more = engine.gate().state() == HaState::Active;
        while more {
            let decided = engine.turn("scrubLazyPersist", &caller, |turn| scrub.step(turn, SCRUB_SLICE));
            more = decided.answer;
            for path in &scrub.deleted {
                tracing::warn!("Removing lazyPersist file {} with no replicas.", String::from_utf8_lossy(path));
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Deletes one snapshot in each period of those that were deleted out of order and have become the oldest.
async fn collect_snapshots(engine: Arc<Engine>, interval: Duration) {
    let caller = own_caller(&engine);
    let mut pause = tokio::time::interval(interval);
    pause.tick().await;
    loop {
        pause.tick().await;
        if engine.gate().state() == HaState::Active {
            let decided = engine.turn("gcDeletedSnapshot", &caller, snapshot_collect::collect_deleted);
            if let Some(path) = decided.answer {
                engine.end_cleanup().await;
                tracing::info!("{path} was deleted before older snapshots and is gone now");
            }
        }
    }
}

/// Recovers or closes files whose writers are gone.
async fn check_leases(engine: Arc<Engine>, interval: Duration) {
    let caller = own_caller(&engine);
    let holder = || format!("HDFS_NameNode-{}", jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S,%3f%z")).into();
    let mut pause = tokio::time::interval(interval.max(Duration::from_millis(1)));
    loop {
        pause.tick().await;
        if engine.gate().state() == HaState::Active {
            let decided = engine.turn("checkLeases", &caller, |turn| lease_check::check_leases(turn, holder));
            if decided.answer > 0 {
                tracing::info!("Leases of {} files expired: their recovery has begun", decided.answer);
            }
        }
    }
}

/// Tells the start-up progress how many blocks are there, until start-up is over.
async fn watch_safe_mode(engine: Arc<Engine>, progress: Arc<StartupProgress>) {
    progress.begin(Phase::SafeMode, None);
    let step = progress.step(Phase::SafeMode, Some(StepKind::AwaitingReportedBlocks), None);
    let mut pause = tokio::time::interval(Duration::from_millis(500));
    loop {
        pause.tick().await;
        let (safe, total, startup) = engine.lock().read("startupProgress", |state| {
            let (safe, total) = state.blocks.safe_mode.blocks();
            (safe, total, state.blocks.safe_mode.is_startup())
        });
        step.set_total(total);
        step.set_count(safe);
        if !startup {
            break;
        }
    }
    progress.end(Phase::SafeMode);
}
