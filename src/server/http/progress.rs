//! `/startupProgress`: phases and steps as Hadoop's `StartupProgressServlet` lists them.

use super::json::Json;
use observe::progress::{PhaseSnapshot, ProgressSnapshot, StepSnapshot};
use std::time::Duration;

/// The whole progress.
pub fn json(progress: &ProgressSnapshot) -> Json {
    Json::object([
        ("elapsedTime", millis(progress.elapsed)),
        ("percentComplete", progress.complete.into()),
        ("phases", Json::List(progress.phases.iter().map(phase).collect())),
    ])
}

fn millis(time: Duration) -> Json {
    Json::Int(time.as_millis() as i64)
}

fn member(name: &str, value: Json) -> (String, Json) {
    (name.to_owned(), value)
}

/// File and size, where there is one.
fn file(file: &Option<(String, u64)>) -> impl Iterator<Item = (String, Json)> {
    file.iter().flat_map(|(name, size)| [member("file", name.as_str().into()), member("size", (*size).into())])
}

fn phase(phase: &PhaseSnapshot) -> Json {
    let (name, description) = phase.phase.names();
    let mut members = vec![
        member("name", name.into()),
        member("desc", description.into()),
        member("status", phase.status.name().into()),
        member("percentComplete", phase.complete.into()),
        member("elapsedTime", millis(phase.elapsed)),
    ];
    members.extend(file(&phase.file));
    members.push(member("steps", Json::List(phase.steps.iter().map(step).collect())));
    Json::Object(members)
}

fn step(step: &StepSnapshot) -> Json {
    let mut members = Vec::new();
    if let Some(kind) = step.kind {
        let (name, description) = kind.names();
        members.extend([member("name", name.into()), member("desc", description.into())]);
    }
    members.extend([
        member("count", step.count.into()),
        member("total", step.total.into()),
        member("percentComplete", step.complete.into()),
        member("elapsedTime", millis(step.elapsed)),
    ]);
    members.extend(file(&step.file));
    Json::Object(members)
}
