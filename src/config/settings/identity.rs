//! Which NameNode of a federated or highly available cluster this one is, and the keys that end in its ids.

use super::address::RPC_ADDRESS;
use crate::config::address::{namenode_address, socket_address};
use crate::config::{ConfigError, Configuration, values};
use std::net::{ToSocketAddrs, UdpSocket};

/// Ids of this NameNode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name service, if there are name services and one is ours.
    pub nameservice: Option<String>,
    /// Id within the name service, if it is highly available.
    pub namenode: Option<String>,
    /// Whether the name service has two or more NameNodes with addresses.
    pub high_availability: bool,
}

/// Keys that may end in `.nameservice.namenode` or `.nameservice`; the longer form wins.
const NAMENODE_KEYS: [&str; 26] = [
    RPC_ADDRESS,
    "dfs.namenode.rpc-bind-host",
    "dfs.namenode.name.dir",
    "dfs.namenode.edits.dir",
    "dfs.namenode.shared.edits.dir",
    "dfs.namenode.checkpoint.dir",
    "dfs.namenode.checkpoint.edits.dir",
    "dfs.namenode.lifeline.rpc-address",
    "dfs.namenode.lifeline.rpc-bind-host",
    "dfs.namenode.servicerpc-address",
    "dfs.namenode.servicerpc-bind-host",
    "dfs.namenode.http-address",
    "dfs.namenode.https-address",
    "dfs.namenode.http-bind-host",
    "dfs.namenode.https-bind-host",
    "dfs.namenode.keytab.file",
    "dfs.namenode.secondary.http-address",
    "dfs.namenode.secondary.https-address",
    "dfs.secondary.namenode.keytab.file",
    "dfs.namenode.backup.address",
    "dfs.namenode.backup.http-address",
    "dfs.namenode.backup.dnrpc-address",
    "dfs.namenode.kerberos.principal",
    "dfs.namenode.kerberos.internal.spnego.principal",
    "dfs.ha.fencing.methods",
    "dfs.ha.zkfc.port",
];

/// Keys that may end in `.nameservice` only.
const NAMESERVICE_KEYS: [&str; 1] = ["dfs.ha.automatic-failover.enabled"];

/// Keys that `identify` itself reads.
#[cfg(test)]
pub(super) const KEYS_OF_IDENTITY: [&str; 4] =
    ["dfs.nameservice.id", "dfs.nameservices", "dfs.ha.namenode.id", "fs.defaultFS"];

/// Whether a name or address is one of this host's own: it resolves to an address that a socket can be bound to.
pub fn is_local_host(host: &str) -> bool {
    let Ok(addresses) = (host, 0).to_socket_addrs() else { return false };
    addresses.into_iter().next().is_some_and(|address| UdpSocket::bind((address.ip(), 0)).is_ok())
}

/// Finds this NameNode's ids (set, or by the one RPC address that is `is_local`), then lets the keys that end in them count
/// as the plain ones and sets `fs.defaultFS` to the RPC address, as `NameNode.initializeGenericKeys` does.
pub fn identify(configuration: &mut Configuration, is_local: impl Fn(&str) -> bool) -> Result<Identity, ConfigError> {
    let nameservices = strings(configuration, "dfs.nameservices")?;
    let namenode_set = configuration.trimmed("dfs.ha.namenode.id")?;
    let nameservice = match configuration.trimmed("dfs.nameservice.id")? {
        Some(id) => Some(id),
        None if nameservices.len() == 1 => nameservices.first().cloned(),
        None => local_ids(configuration, None, namenode_set.as_deref(), &is_local)?.0,
    };
    let namenode = match namenode_set {
        Some(id) => Some(id),
        None => local_ids(configuration, nameservice.as_deref(), None, &is_local)?.1,
    };
    let mut high_availability = false;
    if let Some(id) = &nameservice {
        let ids = strings(configuration, &format!("dfs.ha.namenodes.{id}"))?;
        let addresses = ids.iter().filter(|nn| configuration.raw(&format!("{RPC_ADDRESS}.{id}.{nn}")).is_some());
        high_availability = addresses.count() > 1;
    }
    for (key, ids) in [("dfs.nameservice.id", &nameservice), ("dfs.ha.namenode.id", &namenode)] {
        if let Some(id) = ids {
            configuration.set(key, id, "programmatically");
        }
    }
    if let Some(nameservice) = &nameservice {
        promote(configuration, &NAMENODE_KEYS, nameservice, namenode.as_deref())?;
        promote(configuration, &NAMESERVICE_KEYS, nameservice, None)?;
    }
    if let Some(address) = configuration.trimmed(RPC_ADDRESS)? {
        configuration.set("fs.defaultFS", &format!("hdfs://{address}"), "programmatically");
    }
    Ok(Identity { nameservice, namenode, high_availability })
}

/// The address clients use, of a configuration that went through `identify`.
pub(super) fn client_address(default_file_system: &str) -> Result<crate::config::HostPort, String> {
    namenode_address(default_file_system)
}

fn promote(
    configuration: &mut Configuration,
    keys: &[&str],
    nameservice: &str,
    namenode: Option<&str>,
) -> Result<(), ConfigError> {
    for key in keys {
        let long = namenode.map(|namenode| format!("{key}.{nameservice}.{namenode}"));
        for name in long.into_iter().chain([format!("{key}.{nameservice}")]) {
            if let Some(value) = configuration.trimmed(&name)? {
                configuration.set(key, &value, "programmatically");
                break;
            }
        }
    }
    Ok(())
}

fn strings(configuration: &Configuration, key: &str) -> Result<Vec<String>, ConfigError> {
    Ok(values::trimmed_strings(&configuration.get(key)?.unwrap_or_default()))
}

/// The name service and NameNode id whose RPC address is on this host.
fn local_ids(
    configuration: &Configuration,
    only_nameservice: Option<&str>,
    only_namenode: Option<&str>,
    is_local: &impl Fn(&str) -> bool,
) -> Result<(Option<String>, Option<String>), ConfigError> {
    let mut found = Vec::new();
    for nameservice in strings(configuration, "dfs.nameservices")? {
        if only_nameservice.is_some_and(|only| only != nameservice) {
            continue;
        }
        let ids = strings(configuration, &format!("dfs.ha.namenodes.{nameservice}"))?;
        let ids = if ids.is_empty() { vec![None] } else { ids.into_iter().map(Some).collect() };
        for namenode in ids {
            if let (Some(only), Some(id)) = (only_namenode, &namenode)
                && only != id
            {
                continue;
            }
            let suffix = namenode.as_ref().map(|id| format!(".{id}")).unwrap_or_default();
            let Some(address) = configuration.get(&format!("{RPC_ADDRESS}.{nameservice}{suffix}"))? else { continue };
            if socket_address(&address, 8020).is_ok_and(|address| is_local(&address.host)) {
                found.push((Some(nameservice.clone()), namenode));
            }
        }
    }
    match found.len() {
        0 | 1 => Ok(found.pop().unwrap_or_default()),
        _ => Err(ConfigError::Contradiction(
            "Configuration has multiple addresses that match local node's address. Please configure the system with \
             dfs.nameservice.id and dfs.ha.namenode.id"
                .into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    /// The ids, then what the keys have become: as seen of a Java NameNode with the same keys.
    #[track_caller]
    fn check(keys: &[(&str, &str)], expected: &str) {
        let mut conf = Configuration::with_defaults(Environment::default());
        for (key, value) in keys {
            conf.set(key, value, "hdfs-site.xml");
        }
        let got = match identify(&mut conf, |host| host == "localhost") {
            Ok(identity) => {
                let id = |id: &Option<String>| id.clone().unwrap_or("null".into());
                let of = |key| conf.raw(key).unwrap_or("null").to_string();
                let ha = if identity.high_availability { " HA" } else { "" };
                format!(
                    "{} / {} rpc={} fs={}{ha}",
                    id(&identity.nameservice),
                    id(&identity.namenode),
                    of(RPC_ADDRESS),
                    of("fs.defaultFS")
                )
            }
            Err(e) => e.to_string(),
        };
        assert_eq!(got, expected, "for {keys:?}");
    }

    const TWICE: &str = "Configuration has multiple addresses that match local node's address. Please configure the \
                         system with dfs.nameservice.id and dfs.ha.namenode.id";
    const A: &str = "dfs.namenode.rpc-address.ns1.a";
    const B: &str = "dfs.namenode.rpc-address.ns1.b";
    const PAIR: [(&str, &str); 2] = [("dfs.nameservices", "ns1"), ("dfs.ha.namenodes.ns1", "a,b")];

    #[test]
    fn name_services() {
        let two = ("dfs.nameservices", "ns1,ns2");
        let (one_rpc, two_rpc) = ("dfs.namenode.rpc-address.ns1", "dfs.namenode.rpc-address.ns2");
        check(&[], "null / null rpc=null fs=file:///");
        check(&[("dfs.nameservices", "ns1")], "ns1 / null rpc=null fs=file:///");
        let local = "ns1 / null rpc=localhost:7 fs=hdfs://localhost:7";
        check(&[("dfs.nameservices", "ns1"), (one_rpc, "localhost:7")], local);
        check(&[("dfs.nameservices", "ns1"), (one_rpc, "localhost:7"), (RPC_ADDRESS, "1.1.1.1:1")], local);
        check(
            &[two, (one_rpc, "1.2.3.4:7"), (two_rpc, "localhost:7")],
            "ns2 / null rpc=localhost:7 fs=hdfs://localhost:7",
        );
        check(&[two, (one_rpc, "1.2.3.4:7"), (two_rpc, "1.2.3.5:7")], "null / null rpc=null fs=file:///");
        check(&[two, (one_rpc, "localhost:7"), (two_rpc, "localhost:8")], TWICE);
        let set = ("dfs.nameservice.id", "ns1");
        check(&[two, set, (one_rpc, "1.2.3.4:7")], "ns1 / null rpc=1.2.3.4:7 fs=hdfs://1.2.3.4:7");
        check(&[two, ("dfs.nameservice.id", "ns9")], "ns9 / null rpc=null fs=file:///");
    }

    #[test]
    fn namenodes_of_one_service() {
        let with = |more: &[(&'static str, &'static str)]| PAIR.iter().chain(more).copied().collect::<Vec<_>>();
        check(&with(&[(A, "1.2.3.4:7"), (B, "localhost:7")]), "ns1 / b rpc=localhost:7 fs=hdfs://localhost:7 HA");
        let chosen = with(&[(A, "1.2.3.4:7"), (B, "localhost:7"), ("dfs.ha.namenode.id", "a")]);
        check(&chosen, "ns1 / a rpc=1.2.3.4:7 fs=hdfs://1.2.3.4:7 HA");
        let unknown = with(&[(A, "1.2.3.4:7"), (B, "localhost:7"), ("dfs.ha.namenode.id", "z")]);
        check(&unknown, "ns1 / z rpc=null fs=file:/// HA");
        check(&with(&[(A, "1.2.3.4:7"), (B, "1.2.3.5:7")]), "ns1 / null rpc=null fs=file:/// HA");
        check(&with(&[(A, "localhost:7"), (B, "localhost:8")]), TWICE);
        check(&with(&[]), "ns1 / null rpc=null fs=file:///");
        check(&with(&[(B, "localhost:7")]), "ns1 / b rpc=localhost:7 fs=hdfs://localhost:7");
    }

    #[test]
    fn own_keys_count() {
        let mut conf = Configuration::with_defaults(Environment::default());
        for (key, value) in PAIR.iter().chain(&[
            (B, "localhost:7"),
            ("dfs.namenode.http-address.ns1.b", "localhost:70"),
            ("dfs.namenode.name.dir.ns1", "/n"),
            ("dfs.namenode.name.dir.ns2", "/other"),
        ]) {
            conf.set(key, value, "hdfs-site.xml");
        }
        identify(&mut conf, |host| host == "localhost").unwrap();
        assert_eq!(conf.raw("dfs.namenode.http-address"), Some("localhost:70"));
        assert_eq!(conf.raw("dfs.namenode.name.dir"), Some("/n"));
    }

    #[test]
    fn hosts_of_this_machine() {
        assert!(is_local_host("127.0.0.1"));
        assert!(!is_local_host("192.0.2.1"), "a documentation address");
        assert!(!is_local_host("nn.nowhere.invalid"));
    }
}
