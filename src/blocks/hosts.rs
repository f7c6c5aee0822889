//! Include and exclude lists, as read from the hosts files by the rim (Hadoop's `HostFileManager`).

use crate::DatanodeId;
use hashbrown::HashSet;
use std::sync::Arc;
use vocab::TimeMs;

/// One line of a hosts file, resolved: an address with a port, 0 meaning any. Names that could not be resolved stay names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostEntry {
    /// Address or name, without brackets.
    pub host: Arc<str>,
    /// Data transfer port, 0 for any.
    pub port: u16,
}

/// Who may register and who is to leave.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Include list as written, in file order; empty means everybody.
    pub included: Vec<HostEntry>,
    /// Exclude list.
    pub excluded: HashSet<HostEntry>,
    /// DataNodes that are to be in maintenance, with the time when that ends (JSON form only).
    pub maintenance: Vec<(HostEntry, TimeMs)>,
    /// Upgrade domains, where the list names them (JSON form only).
    pub domains: Vec<(HostEntry, Arc<str>)>,
}

impl HostEntry {
    /// Reads `host`, `host:port`, `[address]:port` or a bare IPv6 literal: with brackets or one colon the last colon is the port's.
    pub fn parse(line: &str) -> HostEntry {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let (host, tail) = rest.split_once(']').unwrap_or((rest, ""));
            let port = tail.strip_prefix(':').and_then(|p| p.parse().ok()).unwrap_or(0);
            return HostEntry { host: host.into(), port };
        }
        match line.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => match port.parse() {
                Ok(port) => HostEntry { host: host.into(), port },
                Err(_) => HostEntry { host: line.into(), port: 0 },
            },
            _ => HostEntry { host: line.into(), port: 0 },
        }
    }

    /// Whether it names this DataNode.
    pub(crate) fn covers(&self, id: &DatanodeId) -> bool {
        (self.port == 0 || self.port == id.transfer_port) && (self.host == id.ip || self.host == id.host)
    }
}

impl Hosts {
    /// Whether a DataNode may register.
    pub fn is_included(&self, id: &DatanodeId) -> bool {
        self.included.is_empty() || self.included.iter().any(|e| e.covers(id))
    }
    /// The upgrade domain of a DataNode, if the list gives it one.
    pub fn upgrade_domain(&self, id: &DatanodeId) -> Option<Arc<str>> {
        self.domains.iter().find(|(entry, _)| entry.covers(id)).map(|(_, domain)| domain.clone())
    }
    /// When the maintenance of a DataNode ends, if the list names it for one.
    pub fn maintenance_expiry(&self, id: &DatanodeId) -> Option<TimeMs> {
        self.maintenance.iter().find(|(entry, _)| entry.covers(id)).map(|(_, expires)| *expires)
    }
    /// Whether a DataNode is to be decommissioned.
    pub fn is_excluded(&self, id: &DatanodeId) -> bool {
        self.excluded.iter().any(|e| e.covers(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T84: an excludes file that names an IPv6 address with a port.
    #[test]
    fn entries_split_at_the_last_colon_hdfs_17629() {
        for (line, host, port) in [
            ("[::1]:9866", "::1", 9866),
            ("::1", "::1", 0),
            ("10.0.0.1:9866", "10.0.0.1", 9866),
            ("10.0.0.1", "10.0.0.1", 0),
            ("dn_1.example", "dn_1.example", 0),
        ] {
            assert_eq!(HostEntry::parse(line), HostEntry { host: host.into(), port }, "{line}");
        }
        let id = DatanodeId { ip: "::1".into(), transfer_port: 9866, ..DatanodeId::default() };
        let hosts = Hosts {
            included: vec![],
            excluded: [HostEntry::parse("[::1]:9866")].into_iter().collect(),
            ..Hosts::default()
        };
        assert!(hosts.is_excluded(&id) && hosts.is_included(&id));
        assert!(!hosts.is_excluded(&DatanodeId { transfer_port: 1, ..id }));
    }
}
