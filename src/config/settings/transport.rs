//! RPC and HTTP servers and the retry cache.

use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::values::Unit;
use std::time::Duration;

/// RPC servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Rpc {
    /// Handlers of the client port (`dfs.namenode.handler.count`).
    pub handlers: u32,
    /// Handlers of the service port (`dfs.namenode.service.handler.count`).
    pub service_handlers: u32,
    /// Handlers of the lifeline port: `dfs.namenode.lifeline.handler.count`, or if that is 0 its `.ratio` of `handlers`.
    pub lifeline_handlers: u32,
    /// Calls that wait per handler (`ipc.server.handler.queue.size`).
    pub queue_per_handler: u32,
    /// Bytes of the largest request (`ipc.maximum.data.length`).
    pub max_request_bytes: u32,
    /// Connections at a time, 0 for no limit (`ipc.server.max.connections`).
    pub max_connections: u32,
    /// Backlog of the listening socket (`ipc.server.listen.queue.size`).
    pub listen_backlog: u32,
    /// Silence after which a connection is closed: twice `ipc.client.connection.maxidletime`, as the client's own is once.
    pub max_idle: Duration,
    /// Idle connections are closed only above this many (`ipc.client.idlethreshold`).
    pub idle_threshold: u32,
    /// How many are closed at a time (`ipc.client.kill.max`).
    pub idle_closed_at_a_time: u32,
    /// How often idle ones are looked for (`ipc.client.connection.idle-scan-interval.ms`).
    pub idle_scan_interval: Duration,
    /// State ids go with responses (`dfs.namenode.state.context.enabled`).
    pub state_context: bool,
}

impl Rpc {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Rpc, ConfigError> {
        let handlers = reader.count("dfs.namenode.handler.count", 1)?;
        let ratio = reader.float("dfs.namenode.lifeline.handler.ratio")?;
        let lifeline = match reader.optional_int("dfs.namenode.lifeline.handler.count")? {
            Some(count) if count > 0 => count.unsigned_abs(),
            _ => ((handlers as f32 * ratio) as u32).max(1),
        };
        Ok(Rpc {
            handlers,
            service_handlers: reader.count("dfs.namenode.service.handler.count", 1)?,
            lifeline_handlers: lifeline,
            queue_per_handler: reader.count("ipc.server.handler.queue.size", 1)?,
            max_request_bytes: reader.count("ipc.maximum.data.length", 1)?,
            max_connections: reader.count("ipc.server.max.connections", 0)?,
            listen_backlog: reader.count("ipc.server.listen.queue.size", 0)?,
            max_idle: reader.plain_duration("ipc.client.connection.maxidletime", Unit::Milliseconds)?.saturating_mul(2),
            idle_threshold: reader.count("ipc.client.idlethreshold", 0)?,
            idle_closed_at_a_time: reader.count("ipc.client.kill.max", 0)?,
            idle_scan_interval: reader
                .plain_duration("ipc.client.connection.idle-scan-interval.ms", Unit::Milliseconds)?,
            state_context: reader.boolean("dfs.namenode.state.context.enabled")?,
        })
    }
}

/// Retry cache.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryCache {
    /// `dfs.namenode.enable.retrycache`
    pub enabled: bool,
    /// How long an answer is kept (`dfs.namenode.retrycache.expirytime.millis`).
    pub expiry: Duration,
}

impl RetryCache {
    pub(super) fn read(reader: &Reader<'_>) -> Result<RetryCache, ConfigError> {
        Ok(RetryCache {
            enabled: reader.boolean("dfs.namenode.enable.retrycache")?,
            expiry: reader.plain_duration("dfs.namenode.retrycache.expirytime.millis", Unit::Milliseconds)?,
        })
    }
}

/// HTTP server. Its address is in `Addresses`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// `HTTP_ONLY`, `HTTPS_ONLY` or `HTTP_AND_HTTPS` (`dfs.http.policy`).
    pub policy: HttpPolicy,
    /// `X-FRAME-OPTIONS` header, if it is sent (`dfs.xframe.enabled`, `dfs.xframe.value`).
    pub frame_options: Option<String>,
    /// User of requests that name none (`hadoop.http.staticuser.user`).
    pub static_user: String,
    /// `/prom` is served (`hadoop.prometheus.endpoint.enabled`).
    pub prometheus: bool,
    /// Users and groups that alone may see beans and configuration (`dfs.cluster.administrators`), if not all may
    /// (`hadoop.security.instrumentation.requires.admin`; only where `hadoop.security.authorization` is on).
    pub administrators: Option<String>,
    /// The same for logs and their levels: only `hadoop.security.authorization` counts.
    pub log_readers: Option<String>,
    /// Logs are served (`hadoop.http.logs.enabled`).
    pub logs: bool,
    /// Links among them are followed (`hadoop.jetty.logs.serve.aliases`).
    pub log_aliases: bool,
}

/// Which of HTTP and HTTPS are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpPolicy {
    /// `HTTP_ONLY`
    HttpOnly,
    /// `HTTPS_ONLY`
    HttpsOnly,
    /// `HTTP_AND_HTTPS`
    Both,
}

impl Http {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Http, ConfigError> {
        let policy = match reader.text("dfs.http.policy")?.to_ascii_uppercase().as_str() {
            "HTTP_ONLY" => HttpPolicy::HttpOnly,
            "HTTPS_ONLY" => HttpPolicy::HttpsOnly,
            "HTTP_AND_HTTPS" => HttpPolicy::Both,
            other => {
                return Err(ConfigError::Contradiction(format!("Unrecognized value '{other}' for dfs.http.policy")));
            }
        };
        let frame_options = reader.text("dfs.xframe.value")?;
        let authorization = reader.boolean("hadoop.security.authorization")?;
        let restricted = reader.boolean("hadoop.security.instrumentation.requires.admin")? && authorization;
        let administrators = reader.raw("dfs.cluster.administrators")?.unwrap_or_default();
        Ok(Http {
            policy,
            frame_options: reader.boolean("dfs.xframe.enabled")?.then_some(frame_options),
            static_user: reader.text("hadoop.http.staticuser.user")?,
            prometheus: reader.boolean("hadoop.prometheus.endpoint.enabled")?,
            administrators: restricted.then(|| administrators.clone()),
            log_readers: authorization.then_some(administrators),
            logs: reader.boolean("hadoop.http.logs.enabled")?,
            log_aliases: reader.boolean("hadoop.jetty.logs.serve.aliases")?,
        })
    }
}
