//! The RPC and HTTP ports: bound before anything is loaded, so that a taken port is known at once.

use super::{StartError, convert};
use crate::config::HostPort;
use crate::config::settings::{Addresses, Settings};
use rpc::Listener;
use server::BoundPort;
use server::service::table::PortKind;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use tokio::net::TcpListener;

/// Binds the HTTP port.
///
/// # Errors
/// [`StartError::HttpPort`].
pub async fn bind_http(addresses: &Addresses) -> Result<TcpListener, StartError> {
    let place = addresses.http.bind();
    let taken = |error| StartError::HttpPort { address: place.to_string(), problem: problem(&error) };
    server::http::bind(resolve(&place).map_err(taken)?).await.map_err(taken)
}

/// Binds the RPC ports. Must be called in a tokio runtime.
///
/// # Errors
/// [`StartError::RpcPort`].
pub fn bind_rpc(settings: &Settings) -> Result<Vec<BoundPort>, StartError> {
    let Settings { addresses, rpc, .. } = settings;
    let mut clients = vec![addresses.rpc.bind()];
    clients.extend(addresses.auxiliary_ports.iter().map(|port| HostPort { port: *port, ..addresses.rpc.bind() }));
    let mut ports = vec![bind_port(PortKind::Client, &clients, rpc.handlers, settings)?];
    if let Some(service) = &addresses.service_rpc {
        ports.push(bind_port(PortKind::Service, &[service.bind()], rpc.service_handlers, settings)?);
    }
    if let Some(lifeline) = &addresses.lifeline_rpc {
        ports.push(bind_port(PortKind::Lifeline, &[lifeline.bind()], rpc.lifeline_handlers, settings)?);
    }
    Ok(ports)
}

fn bind_port(kind: PortKind, places: &[HostPort], handlers: u32, settings: &Settings) -> Result<BoundPort, StartError> {
    let name = match kind {
        PortKind::Client => "client",
        PortKind::Service => "service",
        PortKind::Lifeline => "lifeline",
    };
    let limits = convert::port(&settings.rpc, handlers, settings.audit.caller_context);
    let taken = |error| StartError::RpcPort { address: places[0].to_string(), problem: problem(&error) };
    let addresses = places.iter().map(resolve).collect::<io::Result<Vec<_>>>().map_err(taken)?;
    let listener = Listener::bind(name, &addresses, limits.backlog).map_err(taken)?;
    Ok(BoundPort { kind, listener, settings: limits })
}

/// The error in the words that a Java program would have.
fn problem(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "Address already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "Cannot assign requested address".to_owned(),
        io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// The first address of a host, IPv4 before IPv6, as a Java server that listens on a name binds it.
fn resolve(place: &HostPort) -> io::Result<SocketAddr> {
    let mut found: Vec<SocketAddr> = (place.host.as_str(), place.port).to_socket_addrs()?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.into_iter().next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "Unresolved address"))
}
