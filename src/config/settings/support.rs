//! What a configuration can ask for and this version does not do, where going on would be worse than stopping. Keys that merely have no
//! effect yet are named by `not_honoured` instead.

use super::{Authentication, HostsForm, HttpPolicy, LeavingWalks, Location, PlacementPolicy, RackMapping, Settings};

impl Settings {
    /// The reason why the NameNode must not start with these settings, if there is one; it names the key.
    pub fn unsupported(&self) -> Option<String> {
        let is = |wrong: bool, text: &str| wrong.then(|| format!("{text} is not supported yet"));
        is(self.authentication == Authentication::Kerberos, "hadoop.security.authentication = kerberos")
            .or_else(|| is(self.http.policy != HttpPolicy::HttpOnly, "dfs.http.policy other than HTTP_ONLY"))
            .or_else(|| is(self.identity.high_availability, "high availability (two or more ids in dfs.ha.namenodes)"))
            .or_else(|| is(self.server_defaults.encrypt_data_transfer, "dfs.encrypt.data.transfer = true"))
            .or_else(|| self.directories.unsupported())
            .or_else(|| self.unsupported_class())
    }

    fn unsupported_class(&self) -> Option<String> {
        let class = |key: &str, name: &str| Some(format!("{key} = {name} is not supported"));
        if let Err(name) = &self.groups.mapping {
            return class("hadoop.security.group.mapping", name);
        }
        if let RackMapping::Other(name) = &self.topology.mapping {
            return class("net.topology.node.switch.mapping.impl", name);
        }
        if let PlacementPolicy::Other(name) = &self.placement.policy {
            return class("dfs.block.replicator.classname", name);
        }
        if let HostsForm::Other(name) = &self.datanode_hosts.form {
            return class("dfs.namenode.hosts.provider.classname", name);
        }
        if let LeavingWalks::Other(name) = &self.redundancy.leaving_walks {
            return class("dfs.namenode.decommission.monitor.class", name);
        }
        None
    }
}

impl super::StorageDirectories {
    /// The reason why these places cannot be used, if there is one.
    pub fn unsupported(&self) -> Option<String> {
        let places = [("dfs.namenode.name.dir", &self.name), ("dfs.namenode.edits.dir", &self.edits)];
        places.into_iter().find_map(|(key, locations)| {
            let remote = locations.iter().find(|location| matches!(location, Location::Remote { .. }))?;
            Some(format!("{key}: {} is not supported yet: only directories of this host are", remote.uri()))
        })
    }
}
