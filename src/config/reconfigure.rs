//! Keys that Hadoop changes while it runs (`NameNode.reconfigurePropertyImpl`), and what of them counts here.

use super::Configuration;

/// A key that an administrator may change, and whether a change has an effect here.
const KEYS: [(&str, Effect); 28] = [
    ("dfs.block.invalidate.limit", Effect::Live),
    ("dfs.block.placement.ec.classname", Effect::None),
    ("dfs.block.replicator.classname", Effect::None),
    ("dfs.datanode.max.nodes.to.report", Effect::Live),
    ("dfs.datanode.peer.stats.enabled", Effect::Live),
    ("dfs.heartbeat.interval", Effect::Live),
    ("dfs.image.parallel.load", Effect::NextStart),
    ("dfs.namenode.avoid.read.slow.datanode", Effect::Live),
    ("dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled", Effect::Live),
    ("dfs.namenode.block-placement.min-blocks-for.write", Effect::Live),
    ("dfs.namenode.decommission.backoff.monitor.pending.blocks.per.lock", Effect::Live),
    ("dfs.namenode.decommission.backoff.monitor.pending.limit", Effect::Live),
    ("dfs.namenode.fs-limits.max-directory-items", Effect::Live),
    ("dfs.namenode.heartbeat.recheck-interval", Effect::Live),
    ("dfs.namenode.lock.detailed-metrics.enabled", Effect::None),
    ("dfs.namenode.max.slowpeer.collect.nodes", Effect::Live),
    ("dfs.namenode.read-lock-reporting-threshold-ms", Effect::None),
    ("dfs.namenode.reconstruction.pending.timeout-sec", Effect::Live),
    ("dfs.namenode.replication.max-streams", Effect::Live),
    ("dfs.namenode.replication.max-streams-hard-limit", Effect::Live),
    ("dfs.namenode.replication.work.multiplier.per.iteration", Effect::Live),
    ("dfs.namenode.slowpeer.collect.interval", Effect::Live),
    ("dfs.namenode.write-lock-reporting-threshold-ms", Effect::None),
    ("dfs.storage.policy.satisfier.mode", Effect::Live),
    ("fs.protected.directories", Effect::Live),
    ("hadoop.caller.context.enabled", Effect::Live),
    ("ipc.server.log.slow.rpc", Effect::None),
    ("ipc.server.log.slow.rpc.threshold.ms", Effect::None),
];

/// What a change does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It counts at once.
    Live,
    /// It counts when it is read, which is at a start.
    NextStart,
    /// What it is about does not exist here.
    None,
}

/// A key whose value is another one now; values as they stand in the files, expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The key.
    pub name: String,
    /// What counted so far.
    pub old: Option<String>,
    /// What the files say now.
    pub new: Option<String>,
    /// What the change does.
    pub effect: Effect,
}

/// Names of all keys that may be changed, sorted. One of them names the client port.
pub fn reconfigurable(port: u16) -> Vec<String> {
    let mut names: Vec<String> = KEYS.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.push(format!("ipc.{port}.backoff.enable"));
    names.sort();
    names
}

/// The keys that differ between two readings. Those that only a start can change are logged and left.
pub fn changed(old: &Configuration, new: &Configuration, port: u16) -> Vec<Changed> {
    let names = reconfigurable(port);
    let mut found = Vec::new();
    for name in old.names().into_iter().chain(new.names()).collect::<std::collections::BTreeSet<_>>() {
        let value = |of: &Configuration| of.get(&name).ok().flatten();
        let (before, now) = (value(old), value(new));
        if before == now {
            continue;
        }
        if !names.contains(&name) {
            tracing::info!("Property {name} is not configurable: old value: {before:?}, new value: {now:?}");
            continue;
        }
        let effect = KEYS.iter().find(|(key, _)| *key == name).map_or(Effect::None, |(_, effect)| *effect);
        found.push(Changed { name, old: before, new: now, effect });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    #[test]
    fn what_differs_and_may() {
        let mut old = Configuration::with_defaults(Environment::default());
        let mut new = old.clone();
        old.set("fs.protected.directories", "/a", "hdfs-site.xml");
        new.set("dfs.heartbeat.interval", "7", "hdfs-site.xml");
        new.set("dfs.namenode.name.dir", "/other", "hdfs-site.xml");
        let found = changed(&old, &new, 8020);
        let shown: Vec<_> = found.iter().map(|c| (c.name.as_str(), c.old.as_deref(), c.new.as_deref())).collect();
        let none = new.get("fs.protected.directories").unwrap();
        assert_eq!(
            shown,
            [
                ("dfs.heartbeat.interval", Some("3"), Some("7")),
                ("fs.protected.directories", Some("/a"), none.as_deref())
            ]
        );
        assert_eq!(reconfigurable(8020).len(), 29);
        assert!(KEYS.is_sorted_by_key(|(name, _)| *name));
    }
}
