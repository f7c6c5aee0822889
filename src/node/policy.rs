//! The policy file: who may use which protocol.

use super::convert::networks;
use crate::config::settings::KEYS_OF_POLICY;
use crate::config::{ConfigError, Configuration, Source};
use security::proxy::Hosts;
use security::service::{AccessList, SERVICES, ServiceAcl, ServiceAcls};

/// Reads the lists: the policy file counts before the site files; what names nobody goes by the default list, and without one everybody may.
///
/// # Errors
/// A file that cannot be read.
pub fn read(source: &Source) -> Result<ServiceAcls, ConfigError> {
    acls(&source.read_policy()?)
}

fn acls(configuration: &Configuration) -> Result<ServiceAcls, ConfigError> {
    const DEFAULT: &str = KEYS_OF_POLICY[0];
    let or =
        |key: &str, default: &str| Ok::<_, ConfigError>(configuration.get(key)?.unwrap_or_else(|| default.to_owned()));
    let hosts_key = |key: &str| key.strip_suffix(".acl").map_or(key.to_owned(), |stem| format!("{stem}.hosts"));
    let default = or(DEFAULT, "*")?;
    let blocked = or(KEYS_OF_POLICY[1], "")?;
    let hosts = or(&hosts_key(DEFAULT), "*")?;
    let blocked_hosts = or(&format!("{}.blocked", hosts_key(DEFAULT)), "")?;
    let mut acls = ServiceAcls::default();
    for (key, protocol) in SERVICES {
        let hosts_key = hosts_key(key);
        let acl = ServiceAcl {
            allowed: AccessList::parse(&or(key, &default)?),
            blocked: AccessList::parse(&or(&format!("{key}.blocked"), &blocked)?),
            hosts: machines(&or(&hosts_key, &hosts)?),
            blocked_hosts: machines(&or(&format!("{hosts_key}.blocked"), &blocked_hosts)?),
        };
        acls.0.insert(protocol, acl);
    }
    Ok(acls)
}

/// Addresses, networks and names of hosts; `*` for all (Hadoop's `MachineList`).
fn machines(text: &str) -> Hosts {
    let list: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    match list[..] {
        [] => Hosts::None,
        ["*"] => Hosts::All,
        _ => Hosts::Networks(list.iter().flat_map(|name| networks(name)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    #[test]
    fn lists_fall_back_to_the_default() {
        let mut configuration = Configuration::with_defaults(Environment::default());
        for (key, value) in [
            ("security.client.protocol.acl", "alice staff"),
            ("security.client.protocol.hosts", "10.0.0.0/8"),
            ("security.datanode.protocol.acl.blocked", "mallory"),
            ("security.service.authorization.default.acl", "hdfs"),
        ] {
            configuration.set(key, value, "hadoop-policy.xml");
        }
        let acls = acls(&configuration).expect("readable");
        let of = |protocol: &str| acls.0.iter().find(|(name, _)| name.ends_with(protocol)).expect("a protocol").1;
        let client = of(".ClientProtocol");
        assert_eq!(client.allowed, AccessList::parse("alice staff"));
        assert!(client.hosts.has([10, 1, 2, 3].into()) && !client.hosts.has([11, 1, 2, 3].into()));
        assert_eq!(of(".DatanodeProtocol").allowed, AccessList::parse("hdfs"));
        assert_eq!(of(".DatanodeProtocol").blocked, AccessList::parse("mallory"));
        assert_eq!(of(".NamenodeProtocol").hosts, Hosts::All);
        assert_eq!(of(".NamenodeProtocol").blocked_hosts, Hosts::None);
    }
}
