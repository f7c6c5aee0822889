//! Periodic work: started with the ports, ended before the journal is closed.

use super::resources::Resources;
use crate::config::settings::Settings;
use engine::{Engine, TickSettings};
use observe::progress::{Phase, StartupProgress, StepKind};
use os::Os;
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
    ) -> Ticks {
        let mut tasks = engine.start_ticks(TickSettings {
            retry_expiry_ms: u64::try_from(settings.retry_cache.expiry.as_millis()).unwrap_or(u64::MAX),
            roll_check: settings.edit_log.roll_check_interval,
            roll_transactions: settings.edit_log.roll_transactions,
        });
        let resources = Resources::new(&settings.directories, directories);
        tasks.push(tokio::spawn(resources.watch(engine.clone(), os.clone())));
        tasks.push(tokio::spawn(watch_safe_mode(engine.clone(), progress.clone())));
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
