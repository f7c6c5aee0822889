//! Opens the audit log as the administrator's logging configuration says.

use crate::config::settings::Audit;
use crate::config::{Environment, Source, audit_appenders};
use observe::audit::{AuditLog, Options};

/// The log, or one that is off: a NameNode serves without, as it does in Hadoop, and says so.
pub fn open(settings: &Audit, source: &Source) -> AuditLog {
    if !settings.on {
        return AuditLog::off();
    }
    let appenders = match audit_appenders(&Environment::of_process(), source.directory.as_deref()) {
        Ok(appenders) => appenders,
        Err(error) => {
            tracing::error!("no audit log: {error}");
            return AuditLog::off();
        }
    };
    appenders.notices.iter().for_each(|notice| tracing::warn!("audit log: {notice}"));
    let options = Options {
        debug: appenders.debug,
        debug_commands: settings.debug_commands.iter().cloned().collect(),
        tracking_id: settings.tracking_id,
        remote_port: settings.remote_port,
        caller_context: settings.caller_context,
        context_chars_max: settings.context_chars_max as usize,
        signature_bytes_max: settings.signature_bytes_max as usize,
        context_separator: settings.context_separator.clone(),
    };
    AuditLog::open(options, appenders.targets).unwrap_or_else(|error| {
        tracing::error!("no audit log: {error}");
        AuditLog::off()
    })
}
