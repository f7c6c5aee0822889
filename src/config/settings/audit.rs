//! The audit log: what its lines say, and which are written.

use super::Reader;
use crate::config::ConfigError;
use observe::top::TopSettings;
use std::collections::BTreeSet;

/// The audit logger that Hadoop has built in, and the one that only counts (not needed for the log).
const DEFAULT: &str = "default";
const TOP: &str = "org.apache.hadoop.hdfs.server.namenode.top.TopAuditLogger";

/// Settings of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Lines are written at all: the built-in logger is among `dfs.namenode.audit.loggers`.
    pub on: bool,
    /// `dfs.namenode.audit.log.debug.cmdlist`
    pub debug_commands: Vec<String>,
    /// `dfs.namenode.audit.log.token.tracking.id`
    pub tracking_id: bool,
    /// `dfs.namenode.audit.log.with.remote.port`
    pub remote_port: bool,
    /// `hadoop.caller.context.enabled`
    pub caller_context: bool,
    /// `hadoop.caller.context.max.size`
    pub context_chars_max: u32,
    /// `hadoop.caller.context.signature.max.size`
    pub signature_bytes_max: u32,
    /// `hadoop.caller.context.separator`
    pub context_separator: String,
    /// Calls are counted by user (`dfs.namenode.top.enabled` and the keys beside it).
    pub top: Option<TopSettings>,
}

impl Audit {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Audit, ConfigError> {
        const LOGGERS: &str = "dfs.namenode.audit.loggers";
        let loggers = reader.strings(LOGGERS)?;
        if let Some(other) = loggers.iter().find(|logger| ![DEFAULT, TOP].contains(&logger.as_str())) {
            return Err(reader.wrong(LOGGERS, format!("the audit logger {other} is not known here")));
        }
        Ok(Audit {
            on: loggers.is_empty() || loggers.iter().any(|logger| logger == DEFAULT),
            debug_commands: reader.strings("dfs.namenode.audit.log.debug.cmdlist")?,
            tracking_id: reader.boolean("dfs.namenode.audit.log.token.tracking.id")?,
            remote_port: reader.boolean("dfs.namenode.audit.log.with.remote.port")?,
            caller_context: reader.boolean("hadoop.caller.context.enabled")?,
            context_chars_max: reader.count("hadoop.caller.context.max.size", 0)?,
            signature_bytes_max: reader.count("hadoop.caller.context.signature.max.size", 0)?,
            context_separator: reader.text("hadoop.caller.context.separator")?,
            top: top(reader)?,
        })
    }
}

/// What is counted of who asks what; refused as Hadoop refuses it.
fn top(reader: &Reader<'_>) -> Result<Option<TopSettings>, ConfigError> {
    const WINDOWS: &str = "dfs.namenode.top.windows.minutes";
    const BUCKETS: &str = "dfs.namenode.top.window.num.buckets";
    const USERS: &str = "dfs.namenode.top.num.users";
    const MINUTE_MS: u64 = 60_000;
    let mut windows_ms = BTreeSet::new();
    for text in reader.items(WINDOWS)? {
        let minutes =
            text.parse::<i32>().map_err(|_| reader.wrong(WINDOWS, format!("For input string: \"{text}\"")))?;
        let minutes = u64::try_from(minutes).ok().filter(|minutes| *minutes > 0);
        let minutes = minutes.ok_or_else(|| reader.wrong(WINDOWS, "minimum reporting period is 1 min!"))?;
        let window_ms = minutes * MINUTE_MS;
        if i32::try_from(window_ms).is_err() {
            return Err(reader.wrong(WINDOWS, format!("Out of range: {window_ms}")));
        }
        windows_ms.insert(window_ms);
    }
    let (buckets, users) = (reader.int(BUCKETS)?, reader.int(USERS)?);
    if !reader.boolean("dfs.namenode.top.enabled")? {
        return Ok(None);
    }
    let buckets = usize::try_from(buckets).ok().filter(|buckets| *buckets > 0);
    let buckets = buckets.ok_or_else(|| reader.wrong(BUCKETS, "a window should have at least one bucket"))?;
    if windows_ms.iter().any(|ms| ms % buckets as u64 != 0) {
        return Err(reader.wrong(BUCKETS, "window size must be a multiplication of number of buckets"));
    }
    let users = usize::try_from(users).ok().filter(|users| *users > 0);
    let users = users.ok_or_else(|| reader.wrong(USERS, "the number of requested top users must be at least 1"))?;
    Ok(Some(TopSettings { windows_ms, buckets, users }))
}
