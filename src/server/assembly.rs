//! The ports of a running name node: opened before the load, served after it, closed in order.

use crate::http::{self, Web};
use crate::service::table::PortKind;
use crate::service::topology::host_name;
use crate::service::{Port, PortFigures, Shared};
use rpc::{Listener, PortCounters, Settings};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// An RPC port that is bound and does not serve yet.
pub struct BoundPort {
    /// What it is for.
    pub kind: PortKind,
    /// Its sockets.
    pub listener: Listener,
    /// Its limits.
    pub settings: Settings,
}

/// All ports in service.
pub struct Servers {
    rpc: Vec<(PortKind, rpc::Server)>,
    http: http::Server,
}

/// Begins to serve: the RPC ports, and the pages that tell of the state. The HTTP port answers already; it is taken along to be stopped with
/// the others. Must be called in a tokio runtime.
///
/// # Errors
/// A socket that the system does not give an address of.
pub fn serve(
    shared: &Arc<Shared>,
    ports: Vec<BoundPort>,
    http: http::Server,
    web: &Web,
    node: Arc<dyn http::Node>,
) -> io::Result<Servers> {
    let host: Arc<str> = host_name(node.host()).into();
    let start = |port: BoundPort| {
        let service = Arc::new(Port::new(shared.clone(), port.kind, host.clone()));
        let calls = service.calls();
        let server = port.listener.serve(port.settings, service, shared.users.clone())?;
        let figures = PortFigures {
            port: server.addresses().first().map_or(0, SocketAddr::port),
            server: if port.kind == PortKind::Lifeline {
                "DatanodeLifelineProtocolService"
            } else {
                "ClientNamenodeProtocol"
            },
            kind: port.kind,
            transport: server.counters().clone(),
            calls,
        };
        Ok(((port.kind, server), figures))
    };
    let started = ports.into_iter().map(start).collect::<io::Result<Vec<_>>>()?;
    let (rpc, figures) = started.into_iter().unzip();
    if shared.ports.set(figures).is_err() {
        tracing::warn!("the ports were counted already");
    }
    if web.node.set(node).is_err() {
        tracing::warn!("the pages had a name node already");
    }
    Ok(Servers { rpc, http })
}

impl Servers {
    /// Addresses of a port, if it is served.
    pub fn addresses(&self, kind: PortKind) -> &[SocketAddr] {
        self.rpc.iter().find(|(k, _)| *k == kind).map_or(&[], |(_, server)| server.addresses())
    }
    /// Counters of a port, if it is served.
    pub fn counters(&self, kind: PortKind) -> Option<&Arc<PortCounters>> {
        self.rpc.iter().find(|(k, _)| *k == kind).map(|(_, server)| server.counters())
    }
    /// Where HTTP is served.
    pub fn http_address(&self) -> SocketAddr {
        self.http.address()
    }
    /// Closes all ports. Calls under way run to their end, their answers are dropped: clients ask again elsewhere or later.
    pub async fn stop(self) {
        self.rpc.iter().for_each(|(_, server)| server.stop());
        self.http.stop().await;
    }
}
