//! Centralized caching.

use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::values::Unit;
use std::time::Duration;

/// What is kept in the memory of DataNodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Whether anything is (`dfs.namenode.caching.enabled`).
    pub enabled: bool,
    /// How often what is to be cached is looked at (`dfs.namenode.path.based.cache.refresh.interval.ms`).
    pub refresh: Duration,
    /// Pause before a DataNode is told again (`dfs.namenode.path.based.cache.retry.interval.ms`).
    pub retry: Duration,
    /// Pools in one answer (`dfs.namenode.list.cache.pools.num.responses`).
    pub pools_listed: u32,
    /// Directives in one answer (`dfs.namenode.list.cache.directives.num.responses`).
    pub directives_listed: u32,
}

impl Caching {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Caching, ConfigError> {
        Ok(Caching {
            enabled: reader.boolean("dfs.namenode.caching.enabled")?,
            refresh: reader.plain_duration("dfs.namenode.path.based.cache.refresh.interval.ms", Unit::Milliseconds)?,
            retry: reader.plain_duration("dfs.namenode.path.based.cache.retry.interval.ms", Unit::Milliseconds)?,
            pools_listed: reader.count("dfs.namenode.list.cache.pools.num.responses", 1)?,
            directives_listed: reader.count("dfs.namenode.list.cache.directives.num.responses", 1)?,
        })
    }
}
