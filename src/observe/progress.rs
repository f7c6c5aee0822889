//! How far the start is: four phases with their steps, as `/startupProgress` and the start page show them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A phase of the start; their order is the order of the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Reading the image.
    LoadingImage,
    /// Replaying the journal.
    LoadingEdits,
    /// Writing a new image, where one is due.
    SavingCheckpoint,
    /// Waiting for blocks to be reported.
    SafeMode,
}

impl Phase {
    /// All, in order.
    pub const ALL: [Phase; 4] = [Phase::LoadingImage, Phase::LoadingEdits, Phase::SavingCheckpoint, Phase::SafeMode];

    /// Hadoop's name and description.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Phase::LoadingImage => ("LoadingFsImage", "Loading fsimage"),
            Phase::LoadingEdits => ("LoadingEdits", "Loading edits"),
            Phase::SavingCheckpoint => ("SavingCheckpoint", "Saving checkpoint"),
            Phase::SafeMode => ("SafeMode", "Safe mode"),
        }
    }
}

/// What a step works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Blocks that DataNodes have yet to report.
    AwaitingReportedBlocks,
    /// Master keys of tokens.
    DelegationKeys,
    /// Tokens.
    DelegationTokens,
    /// Inodes.
    Inodes,
    /// Cache pools.
    CachePools,
    /// Cache directives.
    CacheEntries,
    /// Erasure coding policies.
    ErasureCodingPolicies,
}

impl StepKind {
    /// Hadoop's name and description.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            StepKind::AwaitingReportedBlocks => ("AwaitingReportedBlocks", "awaiting reported blocks"),
            StepKind::DelegationKeys => ("DelegationKeys", "delegation keys"),
            StepKind::DelegationTokens => ("DelegationTokens", "delegation tokens"),
            StepKind::Inodes => ("Inodes", "inodes"),
            StepKind::CachePools => ("CachePools", "cache pools"),
            StepKind::CacheEntries => ("CacheEntries", "cache entries"),
            StepKind::ErasureCodingPolicies => ("ErasureCodingPolicies", "erasure coding policies"),
        }
    }
}

/// Begin and end of something; each is set once.
#[derive(Debug, Default)]
struct Span {
    begin: OnceLock<Instant>,
    end: OnceLock<Instant>,
}

impl Span {
    fn begin(&self) {
        self.begin.get_or_init(Instant::now);
    }
    fn end(&self) {
        self.begin();
        self.end.get_or_init(Instant::now);
    }
    fn status(&self) -> Status {
        match (self.begin.get(), self.end.get()) {
            (_, Some(_)) => Status::Complete,
            (Some(_), None) => Status::Running,
            (None, None) => Status::Pending,
        }
    }
    fn elapsed(&self, now: Instant) -> Duration {
        let begin = self.begin.get().copied().unwrap_or(now);
        self.end.get().copied().unwrap_or(now).saturating_duration_since(begin)
    }
}

/// A step under way: the worker that does it counts here, without a lock.
#[derive(Debug)]
pub struct Step {
    kind: Option<StepKind>,
    file: Option<(String, u64)>,
    count: AtomicU64,
    total: AtomicU64,
    span: Span,
}

impl Step {
    /// How much there is to do; may be told late or corrected.
    pub fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }
    /// So much more is done.
    pub fn add(&self, done: u64) {
        self.count.fetch_add(done, Ordering::Relaxed);
    }
    /// So much is done in all.
    pub fn set_count(&self, done: u64) {
        self.count.store(done, Ordering::Relaxed);
    }
    /// The step is over.
    pub fn end(&self) {
        self.span.end();
    }
}

#[derive(Debug, Default)]
struct PhaseRecord {
    span: Span,
    /// The file the phase reads, and its length in bytes.
    file: OnceLock<(String, u64)>,
    steps: Mutex<Vec<Arc<Step>>>,
}

/// The start of this process.
#[derive(Debug, Default)]
pub struct StartupProgress {
    phases: [PhaseRecord; 4],
}

/// State of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Not begun.
    Pending,
    /// Begun, not ended.
    Running,
    /// Ended.
    Complete,
}

impl Status {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Running => "RUNNING",
            Status::Complete => "COMPLETE",
        }
    }
}

/// The whole progress at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgressSnapshot {
    /// Since the first phase began.
    pub elapsed: Duration,
    /// Mean of the phases, 0 to 1.
    pub complete: f32,
    /// The four phases, in order.
    pub phases: Vec<PhaseSnapshot>,
}

/// One phase at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseSnapshot {
    /// Which.
    pub phase: Phase,
    /// How it stands.
    pub status: Status,
    /// 0 to 1: all steps' counts over all their totals; 1 once it is over.
    pub complete: f32,
    /// Since its begin, until its end.
    pub elapsed: Duration,
    /// File and its length in bytes.
    pub file: Option<(String, u64)>,
    /// Its steps, in the order of their begin.
    pub steps: Vec<StepSnapshot>,
}

/// One step at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct StepSnapshot {
    /// What it works on, if it has a kind.
    pub kind: Option<StepKind>,
    /// File and its length in bytes, if it is about one.
    pub file: Option<(String, u64)>,
    /// Done.
    pub count: u64,
    /// To be done.
    pub total: u64,
    /// 0 to 1.
    pub complete: f32,
    /// Since its begin, until its end.
    pub elapsed: Duration,
}

impl StartupProgress {
    /// A phase begins, reading a file of this length if it reads one.
    pub fn begin(&self, phase: Phase, file: Option<(String, u64)>) {
        let record = &self.phases[phase as usize];
        record.span.begin();
        if let Some(file) = file {
            record.file.get_or_init(|| file);
        }
    }
    /// A step of a phase begins. The phase must have begun.
    pub fn step(&self, phase: Phase, kind: Option<StepKind>, file: Option<(String, u64)>) -> Arc<Step> {
        let step = Step { kind, file, count: AtomicU64::new(0), total: AtomicU64::new(0), span: Span::default() };
        step.span.begin();
        let step = Arc::new(step);
        let mut steps = self.phases[phase as usize].steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.push(step.clone());
        step
    }
    /// A phase is over, and so are its steps.
    pub fn end(&self, phase: Phase) {
        let record = &self.phases[phase as usize];
        record.steps.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|step| step.end());
        record.span.end();
    }
    /// Whether all phases are over.
    pub fn is_complete(&self) -> bool {
        self.phases.iter().all(|record| record.span.status() == Status::Complete)
    }
    /// The state of now.
    pub fn snapshot(&self) -> ProgressSnapshot {
        let now = Instant::now();
        let phases: Vec<_> = Phase::ALL.iter().map(|&phase| self.phases[phase as usize].snapshot(phase, now)).collect();
        let begin = self.phases.iter().filter_map(|p| p.span.begin.get().copied()).min().unwrap_or(now);
        let end = if self.is_complete() {
            self.phases.iter().filter_map(|p| p.span.end.get().copied()).max().unwrap_or(now)
        } else {
            now
        };
        ProgressSnapshot {
            elapsed: end.saturating_duration_since(begin),
            complete: phases.iter().map(|p| p.complete).sum::<f32>() / phases.len() as f32,
            phases,
        }
    }
}

impl PhaseRecord {
    fn snapshot(&self, phase: Phase, now: Instant) -> PhaseSnapshot {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let steps: Vec<_> = steps.iter().map(|step| step.snapshot(now)).collect();
        let status = self.span.status();
        let sum = |part: fn(&StepSnapshot) -> u64| steps.iter().map(part).sum::<u64>();
        PhaseSnapshot {
            phase,
            status,
            complete: ratio(sum(|s| s.count), sum(|s| s.total), status),
            elapsed: self.span.elapsed(now),
            file: self.file.get().cloned(),
            steps,
        }
    }
}

impl Step {
    fn snapshot(&self, now: Instant) -> StepSnapshot {
        let (count, total) = (self.count.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        StepSnapshot {
            kind: self.kind,
            file: self.file.clone(),
            count,
            total,
            complete: ratio(count, total, self.span.status()),
            elapsed: self.span.elapsed(now),
        }
    }
}

fn ratio(count: u64, total: u64, status: Status) -> f32 {
    match status {
        Status::Complete => 1.0,
        _ if total == 0 => 0.0,
        _ => (count as f64 / total as f64).min(1.0) as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_from_nothing_to_done() {
        let progress = StartupProgress::default();
        let at = |p: &StartupProgress, phase: Phase| p.snapshot().phases[phase as usize].clone();
        assert_eq!(at(&progress, Phase::LoadingImage).status, Status::Pending);
        assert_eq!(progress.snapshot().elapsed, Duration::ZERO);

        progress.begin(Phase::LoadingImage, Some(("/name/current/fsimage_7".into(), 399)));
        let inodes = progress.step(Phase::LoadingImage, Some(StepKind::Inodes), None);
        let pools = progress.step(Phase::LoadingImage, Some(StepKind::CachePools), None);
        inodes.set_total(60);
        pools.set_total(40);
        inodes.add(25);
        let phase = at(&progress, Phase::LoadingImage);
        assert_eq!((phase.status, phase.complete), (Status::Running, 0.25));
        assert_eq!(phase.file, Some(("/name/current/fsimage_7".into(), 399)));
        assert_eq!(phase.steps[0].complete, 25.0 / 60.0);
        assert_eq!(progress.snapshot().complete, 0.0625);

        // a count beyond its total, which a wrong total can cause, is not more than all
        inodes.add(1_000);
        assert_eq!(at(&progress, Phase::LoadingImage).steps[0].complete, 1.0);

        for phase in Phase::ALL {
            progress.begin(phase, None);
            progress.end(phase);
        }
        let done = progress.snapshot();
        assert!(progress.is_complete());
        assert_eq!(done.complete, 1.0);
        assert!(done.phases.iter().all(|p| p.status == Status::Complete && p.complete == 1.0));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(progress.snapshot().elapsed, done.elapsed, "time stands still once all is over");
    }
}
