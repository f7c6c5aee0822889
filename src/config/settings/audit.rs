//! The audit log: what its lines say, and which are written.

use super::Reader;
use crate::config::ConfigError;

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
        })
    }
}
