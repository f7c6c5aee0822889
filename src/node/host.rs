//! This host, as it calls itself.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

fn node_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The address that the host's own name leads to, IPv4 if there is one; the loopback address if none does.
pub fn host_address() -> String {
    let mut found: Vec<IpAddr> =
        (node_name().as_str(), 0).to_socket_addrs().map(|all| all.map(|a| a.ip()).collect()).unwrap_or_default();
    found.sort_by_key(IpAddr::is_ipv6);
    found.first().copied().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)).to_string()
}

/// `name/address`, as a JVM prints it.
pub fn host_name() -> String {
    format!("{}/{}", node_name(), host_address())
}
