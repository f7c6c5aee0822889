//! How far the load is, for whoever waits for it: a bar on a terminal, a line in the log now and then elsewhere.

use observe::progress::{PhaseSnapshot, StartupProgress, Status};
use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

const WIDTH: usize = 40;
/// A load shorter than this needs no telling.
const FIRST: Duration = Duration::from_secs(1);
/// Between two changes of the bar, and between two lines of the log.
const ON_TERMINAL: Duration = Duration::from_millis(200);
const IN_LOG: Duration = Duration::from_secs(10);

/// Tells until it is dropped.
pub async fn show(progress: Arc<StartupProgress>) -> Infallible {
    let terminal = std::io::stderr().is_terminal();
    tokio::time::sleep(FIRST).await;
    let mut pause = tokio::time::interval(if terminal { ON_TERMINAL } else { IN_LOG });
    let _end = terminal.then_some(Line);
    loop {
        pause.tick().await;
        let snapshot = progress.snapshot();
        let Some(phase) = snapshot.phases.iter().find(|phase| phase.status == Status::Running) else { continue };
        if terminal {
            // a bar that cannot be drawn is not missed
            _ = write!(std::io::stderr(), "\r{}", bar(phase));
        } else {
            tracing::info!("{}", told(phase));
        }
    }
}

/// The line of the bar, which is cleared when the load is over.
struct Line;

impl Drop for Line {
    fn drop(&mut self) {
        _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

fn told(phase: &PhaseSnapshot) -> String {
    let file = phase.file.as_ref().map(|(name, bytes)| format!(" {name} ({bytes} bytes)")).unwrap_or_default();
    format!("{}{file}: {:.0} % after {} s", phase.phase.names().1, phase.complete * 100.0, phase.elapsed.as_secs())
}

fn bar(phase: &PhaseSnapshot) -> String {
    let full = ((phase.complete * WIDTH as f32) as usize).min(WIDTH);
    let (name, percent) = (phase.phase.names().1, phase.complete * 100.0);
    format!("{name} [{}{}] {percent:3.0} % {} s ", "#".repeat(full), " ".repeat(WIDTH - full), phase.elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::progress::Phase;

    #[test]
    fn a_half_read_image() {
        let phase = PhaseSnapshot {
            phase: Phase::LoadingImage,
            status: Status::Running,
            complete: 0.5,
            elapsed: Duration::from_secs(7),
            file: Some(("/n/fsimage_1".into(), 99)),
            steps: Vec::new(),
        };
        assert_eq!(told(&phase), "Loading fsimage /n/fsimage_1 (99 bytes): 50 % after 7 s");
        assert_eq!(bar(&phase), format!("Loading fsimage [{}{}]  50 % 7 s ", "#".repeat(20), " ".repeat(20)));
    }
}
