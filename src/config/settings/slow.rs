//! Slow peers and disks.

use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::values::Unit;
use std::time::Duration;

/// What becomes of DataNodes that others find slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowNodes {
    /// What DataNodes tell of their peers counts (`dfs.datanode.peer.stats.enabled`).
    pub peers: bool,
    /// What they tell of their disks counts (`dfs.datanode.fileio.profiling.sampling.percentage` is above 0).
    pub disks: bool,
    /// How often they tell of them (`dfs.datanode.outliers.report.interval`).
    pub interval: Duration,
    /// Slow nodes shown (`dfs.datanode.max.nodes.to.report`).
    pub nodes_shown: u32,
    /// Slow disks shown (`dfs.datanode.max.disks.to.report`).
    pub disks_shown: u32,
    /// Slow nodes that are avoided (`dfs.namenode.max.slowpeer.collect.nodes`).
    pub nodes_avoided: u32,
    /// How often they are chosen (`dfs.namenode.slowpeer.collect.interval`).
    pub collect: Duration,
    /// They come last in locations (`dfs.namenode.avoid.read.slow.datanode`).
    pub avoid_for_read: bool,
    /// They are no targets (`dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled`).
    pub avoid_for_write: bool,
}

impl SlowNodes {
    pub(super) fn read(reader: &Reader<'_>) -> Result<SlowNodes, ConfigError> {
        Ok(SlowNodes {
            peers: reader.boolean("dfs.datanode.peer.stats.enabled")?,
            disks: reader.int("dfs.datanode.fileio.profiling.sampling.percentage")? > 0,
            interval: reader.duration("dfs.datanode.outliers.report.interval", Unit::Milliseconds)?,
            nodes_shown: reader.count("dfs.datanode.max.nodes.to.report", 0)?,
            disks_shown: reader.count("dfs.datanode.max.disks.to.report", 0)?,
            nodes_avoided: reader.count("dfs.namenode.max.slowpeer.collect.nodes", 0)?,
            collect: reader.duration("dfs.namenode.slowpeer.collect.interval", Unit::Milliseconds)?,
            avoid_for_read: reader.boolean("dfs.namenode.avoid.read.slow.datanode")?,
            avoid_for_write: reader.boolean("dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled")?,
        })
    }
}
