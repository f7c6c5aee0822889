//! Who asks for what most, as its attribute tells it: JSON in a text.

use super::json::Json;
use crate::service::Shared;
use observe::top::{Operation, Top, Window};
use std::sync::Arc;

fn users(users: &[(Arc<str>, u64)]) -> Json {
    let one = |(user, count): &(Arc<str>, u64)| Json::object([("user", (&**user).into()), ("count", (*count).into())]);
    Json::List(users.iter().map(one).collect())
}

fn operation(operation: &Operation) -> Json {
    Json::object([
        ("opType", (&*operation.name).into()),
        ("totalCount", operation.total.into()),
        ("topUsers", users(&operation.top)),
        ("allUsers", users(&operation.all)),
    ])
}

fn window(window: &Window) -> Json {
    let operations = Json::List(window.operations.iter().map(operation).collect());
    Json::object([("ops", operations), ("windowLenMs", window.length_ms.into())])
}

/// The text; null where nothing is counted.
pub(super) fn counts(shared: &Shared) -> Json {
    let Some(top) = &shared.top else { return Json::Null };
    let now = shared.engine.now().wall.0;
    let time = jiff::Timestamp::from_millisecond(now).unwrap_or_default().to_zoned(jiff::tz::TimeZone::system());
    let windows = top.windows(u64::try_from(now).unwrap_or(0)).iter().map(window).collect();
    let time = time.strftime("%Y-%m-%dT%H:%M:%S%z").to_string();
    Json::Text(Json::object([("timestamp", time.as_str().into()), ("windows", Json::List(windows))]).compact())
}

/// `NNTopUserOpCounts`: a record for each window. What they count Hadoop's bean leaves out too; it is in [`counts`].
pub(super) fn tags(top: &Top, host: &str) -> Vec<(String, Json)> {
    let record = |number: usize| {
        let name = move |tag: &str| if number == 0 { tag.to_owned() } else { format!("{tag}.{number}") };
        [(name("tag.Context"), "dfs".into()), (name("tag.Hostname"), host.into())]
    };
    (0..top.window_count()).flat_map(record).collect()
}
