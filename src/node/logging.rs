//! The log: lines on standard error in the form that operators of Hadoop know.

use server::http::levels::{Level, Levels};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Opens the log. `RUST_LOG` filters by module and level; else the level is that of `HADOOP_ROOT_LOGGER` (`DEBUG,console`), else INFO.
pub fn start() {
    let rust = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let hadoop = std::env::var("HADOOP_ROOT_LOGGER").unwrap_or_default();
    let first = rust.unwrap_or_else(|| level_of(&hadoop).to_owned());
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&first))
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .event_format(Lines)
        .with_filter_reloading();
    let handle = subscriber.reload_handle();
    // a second log in one process would be a mistake of ours; the first one stays
    if tracing::subscriber::set_global_default(subscriber.finish()).is_ok() {
        let root = Level::parse(hadoop.split(',').next().unwrap_or("").trim()).unwrap_or(Level::Info);
        let apply = move |filter: &str| match EnvFilter::try_new(filter).map(|filter| handle.reload(filter)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("the levels of the log stay: {error}"),
            Err(error) => tracing::warn!("the levels of the log stay: {error}"),
        };
        _ = LEVELS.set(Arc::new(Levels::new(root, first, apply)));
    }
}

/// Of the one log of the process.
static LEVELS: OnceLock<Arc<Levels>> = OnceLock::new();

/// Levels of the log, once it is open.
pub fn levels() -> Option<Arc<Levels>> {
    LEVELS.get().cloned()
}

/// The filter for a log4j root logger such as `DEBUG,console`.
fn level_of(logger: &str) -> &'static str {
    match logger.split(',').next().unwrap_or("").trim().to_ascii_uppercase().as_str() {
        "ALL" | "TRACE" => "trace",
        "DEBUG" => "debug",
        "WARN" => "warn",
        "ERROR" | "FATAL" => "error",
        "OFF" => "off",
        _ => "info",
    }
}

/// `2026-01-31 12:00:00,123 INFO node.start: text, field=value`.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let now = jiff::Zoned::now();
        let metadata = event.metadata();
        let mut text = Text::default();
        event.record(&mut text);
        let time = now.strftime("%Y-%m-%d %H:%M:%S,%3f");
        writeln!(out, "{time} {} {}: {}{}", metadata.level(), short_name(metadata.target()), text.message, text.fields)
    }
}

/// The last two parts of a module path, as log4j's `%c{2}`.
fn short_name(target: &str) -> String {
    let target = target.strip_prefix("ironroot::").unwrap_or(target);
    let from = target.rmatch_indices("::").nth(1).map_or(0, |(at, _)| at + 2);
    target[from..].replace("::", ".")
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields += &format!(", {}={value:?}", field.name());
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned();
        } else {
            self.fields += &format!(", {}={value}", field.name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_levels() {
        assert_eq!(short_name("ironroot::node::start"), "node.start");
        assert_eq!(short_name("storage::journal::flush"), "journal.flush");
        assert_eq!(short_name("engine"), "engine");
        assert_eq!(level_of("DEBUG,console"), "debug");
        assert_eq!(level_of(""), "info");
    }
}
