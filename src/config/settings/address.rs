//! Where the NameNode listens.

use super::identity::client_address;
use super::reader::Reader;
use crate::config::address::socket_address;
use crate::config::{ConfigError, HostPort};

pub(super) const RPC_ADDRESS: &str = "dfs.namenode.rpc-address";

/// One listening place: the address that others are told, and the host to bind if it is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// As told to others.
    pub address: HostPort,
    /// `...-bind-host`, often 0.0.0.0.
    pub bind_host: Option<String>,
}

impl Listener {
    /// The place to bind.
    pub fn bind(&self) -> HostPort {
        HostPort { host: self.bind_host.clone().unwrap_or_else(|| self.address.host.clone()), port: self.address.port }
    }
}

/// All listening places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Clients; port 8020 unless given (`dfs.namenode.rpc-address`, else `fs.defaultFS`).
    pub rpc: Listener,
    /// More ports for clients (`dfs.namenode.rpc-address.auxiliary-ports`).
    pub auxiliary_ports: Vec<u16>,
    /// DataNodes and other servers, if apart (`dfs.namenode.servicerpc-address`).
    pub service_rpc: Option<Listener>,
    /// Lifeline messages, if apart (`dfs.namenode.lifeline.rpc-address`).
    pub lifeline_rpc: Option<Listener>,
    /// HTTP (`dfs.namenode.http-address`).
    pub http: Listener,
}

impl Addresses {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Addresses, ConfigError> {
        // `identify` copied the RPC address into fs.defaultFS, as Hadoop does: one text decides, errors speak of it
        reader.optional(RPC_ADDRESS)?;
        let rpc = client_address(&reader.text("fs.defaultFS")?).map_err(ConfigError::Contradiction)?;
        let port = rpc.port;
        Ok(Addresses {
            rpc: Listener { address: rpc, bind_host: reader.non_empty("dfs.namenode.rpc-bind-host")? },
            auxiliary_ports: auxiliary_ports(reader)?,
            service_rpc: listener(
                reader,
                "dfs.namenode.servicerpc-address",
                "dfs.namenode.servicerpc-bind-host",
                8020,
            )?,
            lifeline_rpc: listener(
                reader,
                "dfs.namenode.lifeline.rpc-address",
                "dfs.namenode.lifeline.rpc-bind-host",
                port,
            )?,
            http: listener(reader, "dfs.namenode.http-address", "dfs.namenode.http-bind-host", 9870)?
                .unwrap_or_else(|| panic!("the registry has a default HTTP address")),
        })
    }
}

fn listener(
    reader: &Reader<'_>,
    key: &'static str,
    bind_key: &'static str,
    default_port: u16,
) -> Result<Option<Listener>, ConfigError> {
    let bind_host = reader.non_empty(bind_key)?;
    let Some(text) = reader.non_empty(key)? else { return Ok(None) };
    let address = socket_address(&text, default_port).map_err(|problem| reader.wrong(key, problem))?;
    Ok(Some(Listener { address, bind_host }))
}

fn auxiliary_ports(reader: &Reader<'_>) -> Result<Vec<u16>, ConfigError> {
    const KEY: &str = "dfs.namenode.rpc-address.auxiliary-ports";
    let port = |text: &String| {
        let number = crate::config::values::int(text)?;
        u16::try_from(number).map_err(|_| format!("port out of range:{number}"))
    };
    let ports: Result<Vec<u16>, String> = reader.items(KEY)?.iter().map(port).collect();
    let ports = ports.map_err(|problem| reader.wrong(KEY, problem))?;
    match ports.iter().enumerate().find(|(at, port)| ports[..*at].contains(port)) {
        Some((_, port)) => Err(reader.wrong(KEY, format!("There is already a listener binding to: {port}"))),
        None => Ok(ports),
    }
}
