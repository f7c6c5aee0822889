//! Where a DataNode stands: its rack by script or table, and the name of its address. Asked at registration, never under the state lock.

use dns_lookup::{lookup_addr, lookup_host};
use nix::ifaddrs::getifaddrs;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;

/// Rack of a node that nothing is known of.
pub const DEFAULT_RACK: &str = "/default-rack";
/// After this time the script is killed and the rack counts as unknown.
const SCRIPT_LIMIT: Duration = Duration::from_secs(60);

/// Where racks come from (`net.topology.node.switch.mapping.impl`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// All nodes are in one rack (the script mapping without a script).
    OneRack,
    /// A script that prints a rack for each address it is given (`ScriptBasedMapping`).
    Script {
        /// The program.
        program: PathBuf,
        /// Addresses it gets at a time, at least 1.
        arguments_max: usize,
    },
    /// A file of two columns, address and rack (`TableMapping`).
    Table(PathBuf),
}

/// Racks, with a cache of those already asked for.
#[derive(Debug)]
pub struct Topology {
    mapping: Mapping,
    cache: Mutex<HashMap<Arc<str>, Arc<str>>>,
}

impl Topology {
    /// Nothing is asked before the first node registers.
    pub fn new(mapping: Mapping) -> Topology {
        Topology { mapping, cache: Mutex::default() }
    }

    /// Rack of an address; `None` if the script failed.
    pub async fn rack(&self, address: &str) -> Option<Arc<str>> {
        if let Some(rack) = self.cache.lock().get(address) {
            return Some(rack.clone());
        }
        let rack: Arc<str> = match &self.mapping {
            Mapping::OneRack => return Some(DEFAULT_RACK.into()),
            Mapping::Script { program, arguments_max } => {
                run_script(program, *arguments_max, &[address]).await?.pop()?.into()
            }
            Mapping::Table(file) => rack_in_table(file, address).await.into(),
        };
        let rack = normalized(&rack);
        self.cache.lock().insert(address.into(), rack.clone());
        Some(rack)
    }

    /// Forgets all racks, as a refresh of the nodes does.
    pub fn forget(&self) {
        self.cache.lock().clear();
    }
}

/// A location without a trailing slash and with a leading one (`NodeBase.normalize`).
fn normalized(rack: &str) -> Arc<str> {
    let trimmed = rack.strip_suffix('/').unwrap_or(rack);
    if trimmed.starts_with('/') || trimmed.is_empty() { trimmed.into() } else { format!("/{trimmed}").into() }
}

/// One rack per address, or `None` if the script fails or prints another number of words.
async fn run_script(program: &Path, arguments_max: usize, addresses: &[&str]) -> Option<Vec<String>> {
    let mut racks = Vec::new();
    for some in addresses.chunks(arguments_max.max(1)) {
        let mut command = Command::new(program);
        command.args(some).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(SCRIPT_LIMIT, command.output()).await {
            Ok(Ok(output)) if output.status.success() => output,
            Ok(Ok(output)) => {
                tracing::warn!(script = %program.display(), status = %output.status, "the topology script failed");
                return None;
            }
            Ok(Err(error)) => {
                tracing::warn!(script = %program.display(), %error, "the topology script does not start");
                return None;
            }
            Err(_) => {
                tracing::warn!(script = %program.display(), "the topology script ran longer than its limit");
                return None;
            }
        };
        racks.extend(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned));
    }
    if racks.len() != addresses.len() {
        let (script, wanted, got) = (program.display(), addresses.len(), racks.len());
        tracing::warn!(%script, wanted, got, "the topology script printed another number of racks");
        return None;
    }
    Some(racks)
}

async fn rack_in_table(file: &Path, address: &str) -> String {
    let path = file.to_owned();
    match tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await.unwrap_or_else(|e| Err(e.into())) {
        Ok(text) => find_in_table(&text, address).unwrap_or_else(|| DEFAULT_RACK.into()),
        Err(error) => {
            tracing::warn!(table = %file.display(), %error, "the topology table cannot be read: default rack");
            DEFAULT_RACK.into()
        }
    }
}

/// Rack of the last line that has two columns and names the address. Empty lines, comments and lines of another shape are skipped.
fn find_in_table(text: &str, address: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut pairs = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(name), Some(rack), None) => Some((name, rack)),
            _ => None,
        }
    });
    pairs.rfind(|(name, _)| *name == address).map(|(_, rack)| rack.to_owned())
}

/// Name of an address as Java finds it: the reverse name if the name leads back to the address, else the address itself. May wait for
/// the name service.
pub async fn name_of(address: IpAddr) -> String {
    let name = tokio::task::spawn_blocking(move || reverse_name(address)).await;
    name.unwrap_or_else(|_| address.to_string())
}

fn reverse_name(address: IpAddr) -> String {
    let look_up = || {
        let name = lookup_addr(&address).ok()?;
        let mut back = lookup_host(&name).ok()?;
        back.any(|found| found == address).then_some(name)
    };
    look_up().unwrap_or_else(|| address.to_string())
}

/// A host of the configuration by its name: what is configured as an address is looked up, as Java does it. May wait for the name service.
pub fn host_name(configured: &str) -> String {
    configured.parse().map_or_else(|_| configured.to_owned(), reverse_name)
}

/// Whether the address is one of this host's own (`NetUtils.isLocalAddress`): such ones count as resolved. Only what an interface has
/// counts: a socket can be bound to more, to any address at all where `ip_nonlocal_bind` is set.
pub fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || of_interfaces().any(|own| own == address)
}

/// The addresses of this host's interfaces; none if the system does not tell.
fn of_interfaces() -> impl Iterator<Item = IpAddr> {
    getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(name: &str, body: &str) -> PathBuf {
        let file = std::env::temp_dir().join(format!("ironroot-topology-{name}-{}", std::process::id()));
        std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[tokio::test]
    async fn script_mapping() {
        let good = script("good", r#"for a in "$@"; do echo "rack-$a/"; done"#);
        let topology = Topology::new(Mapping::Script { program: good.clone(), arguments_max: 1 });
        assert_eq!(topology.rack("10.0.0.1").await.as_deref(), Some("/rack-10.0.0.1"));
        assert_eq!(run_script(&good, 2, &["a", "b", "c"]).await.unwrap(), ["rack-a/", "rack-b/", "rack-c/"]);
        std::fs::remove_file(&good).unwrap();
        assert_eq!(topology.rack("10.0.0.1").await.as_deref(), Some("/rack-10.0.0.1"), "from the cache");
        topology.forget();
        assert_eq!(topology.rack("10.0.0.1").await, None, "the script is gone");
        for body in ["echo /a /b", "exit 1", "true"] {
            let bad = script("bad", body);
            assert_eq!(run_script(&bad, 9, &["a"]).await, None, "{body}");
            std::fs::remove_file(&bad).unwrap();
        }
    }

    #[tokio::test]
    async fn table_mapping() {
        let table = "# comment\n10.0.0.1 /r1\n10.0.0.2\t/r2  \nthree words here\n10.0.0.1 /r3\n";
        assert_eq!(find_in_table(table, "10.0.0.1").as_deref(), Some("/r3"));
        assert_eq!(find_in_table(table, "10.0.0.2").as_deref(), Some("/r2"));
        assert_eq!(find_in_table(table, "three"), None);
        let topology = Topology::new(Mapping::Table("/nonexistent".into()));
        assert_eq!(topology.rack("10.0.0.1").await.as_deref(), Some(DEFAULT_RACK));
    }

    #[tokio::test]
    async fn own_addresses_are_local() {
        assert!(is_local("127.0.0.1".parse().unwrap()) && is_local("::1".parse().unwrap()));
        assert!(of_interfaces().any(|address| address.is_loopback()));
        assert!(!is_local("192.0.2.1".parse().unwrap()), "a documentation address");
        assert_eq!(name_of("192.0.2.1".parse().unwrap()).await, "192.0.2.1");
        assert_eq!((host_name("nn.example"), host_name("192.0.2.1")), ("nn.example".into(), "192.0.2.1".into()));
        assert_eq!(host_name("127.0.0.1"), "localhost");
    }
}
