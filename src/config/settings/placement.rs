//! How targets of new replicas are chosen.

use super::reader::Reader;
use crate::config::ConfigError;

/// How targets are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum PlacementPolicy {
    /// On two racks, or on as many as there can be; nodes with more space left more often, if so.
    Known {
        /// On as many racks as there can be.
        evenly: bool,
        /// How much the space left counts.
        space: Option<Space>,
        /// What is kept apart besides racks.
        apart: Apart,
    },
    /// A class that is not known here.
    Other(String),
}

/// What is kept apart besides racks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Nothing.
    Racks,
    /// So many upgrade domains (`dfs.namenode.upgrade.domain.factor`).
    UpgradeDomains(u32),
    /// Node groups.
    NodeGroups,
}

/// How much the space that DataNodes have left counts; all in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Space {
    /// How likely the emptier of two nodes is chosen.
    pub preference: u32,
    /// Nodes whose use differs by less are alike ...
    pub tolerance: u32,
    /// ... as long as less than this is used of both.
    pub tolerance_limit: u32,
    /// Whether a writer's own node is weighed too.
    pub local: bool,
}

impl PlacementPolicy {
    pub(super) fn read(reader: &Reader<'_>) -> Result<PlacementPolicy, ConfigError> {
        let plain = Space {
            preference: preference(
                reader,
                "dfs.namenode.available-space-block-placement-policy.balanced-space-preference-fraction",
            )?,
            tolerance: tolerance(
                reader,
                "dfs.namenode.available-space-block-placement-policy.balanced-space-tolerance",
                5,
                20,
            )?,
            tolerance_limit: tolerance(
                reader,
                "dfs.namenode.available-space-block-placement-policy.balanced-space-tolerance-limit",
                100,
                100,
            )?,
            local: reader.boolean("dfs.namenode.available-space-block-placement-policy.balance-local-node")?,
        };
        let over_racks = Space {
            preference: preference(
                reader,
                "dfs.namenode.available-space-rack-fault-tolerant-block-placement-policy.balanced-space-preference-fraction",
            )?,
            tolerance: tolerance(
                reader,
                "dfs.namenode.available-space-rack-fault-tolerant-block-placement-policy.balanced-space-tolerance",
                5,
                20,
            )?,
            tolerance_limit: 100,
            local: false,
        };
        let name = reader.text("dfs.block.replicator.classname")?;
        let class = name.strip_prefix("org.apache.hadoop.hdfs.server.blockmanagement.");
        let domains = Apart::UpgradeDomains(reader.count("dfs.namenode.upgrade.domain.factor", 0)?);
        let topology = topology(reader)?;
        let (evenly, space, apart) = match class {
            Some("BlockPlacementPolicyDefault") => (false, None, Apart::Racks),
            Some("BlockPlacementPolicyRackFaultTolerant") => (true, None, Apart::Racks),
            Some("AvailableSpaceBlockPlacementPolicy") => (false, Some(plain), Apart::Racks),
            Some("AvailableSpaceRackFaultTolerantBlockPlacementPolicy") => (true, Some(over_racks), Apart::Racks),
            Some("BlockPlacementPolicyWithUpgradeDomain") => (false, None, domains),
            Some("BlockPlacementPolicyWithNodeGroup") if topology == WITH_GROUPS => (false, None, Apart::NodeGroups),
            Some("BlockPlacementPolicyWithNodeGroup") => {
                return Err(ConfigError::Contradiction(format!("Configured cluster topology should be {WITH_GROUPS}")));
            }
            _ => return Ok(PlacementPolicy::Other(name)),
        };
        Ok(PlacementPolicy::Known { evenly, space, apart })
    }
}

const WITH_GROUPS: &str = "org.apache.hadoop.net.NetworkTopologyWithNodeGroup";

/// The class that knows the tree of racks: one of two keys names it.
fn topology(reader: &Reader<'_>) -> Result<String, ConfigError> {
    let (of_hdfs, plain) = (reader.text("dfs.net.topology.impl")?, reader.text("net.topology.impl")?);
    Ok(if reader.boolean("dfs.use.dfs.network.topology")? { of_hdfs } else { plain })
}

/// A share as percent; shares that make little sense are warned of, as in Hadoop.
fn preference(reader: &Reader<'_>, key: &'static str) -> Result<u32, ConfigError> {
    let share = reader.float(key)?;
    if !(0.5..=1.0).contains(&share) {
        reader.warn(format!("The value of {key} is {share:?}: it should be in the range 0.5 - 1.0"));
    }
    Ok((100.0 * share) as u32)
}

/// Percent; what is out of range is taken for the default, as in Hadoop.
fn tolerance(reader: &Reader<'_>, key: &'static str, default: u32, most: i32) -> Result<u32, ConfigError> {
    let percent = reader.int(key)?;
    if (0..=most).contains(&percent) {
        return Ok(percent.unsigned_abs());
    }
    reader.warn(format!(
        "The value of {key} is invalid, current value is {percent}, default value {default} will be used instead."
    ));
    Ok(default)
}
