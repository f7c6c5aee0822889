//! The HTTP port: bounded in connections, closed by the node.

use super::{Web, router};
use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;

/// Most connections at a time; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 1_000;
/// How long requests under way may take to end after the port closed.
const GRACE: Duration = Duration::from_secs(2);

/// Binds the port; connections wait until [`Server::start`]. Errors name the address.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("cannot listen on {address}: {e}"));
    TcpListener::bind(address).await.map_err(named)
}

/// The port in service.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Begins to answer. Must be called in a tokio runtime.
    pub fn start(listener: TcpListener, web: Arc<Web>) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let bounded = Bounded { listener, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)) };
        let serve = axum::serve(bounded, router(web).into_make_service_with_connect_info::<Remote>())
            .with_graceful_shutdown(async {
                // a dropped sender stops the port as well
                let _ = stopped.await;
            });
        let task = tokio::spawn(async move {
            if let Err(error) = serve.await {
                tracing::error!(%error, "the HTTP server ended");
            }
        });
        Ok(Server { address, stop: Some(stop), task })
    }
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// Closes the port, waits for requests under way a little while, and drops the rest.
    pub async fn stop(mut self) {
        self.stop.take();
        if tokio::time::timeout(GRACE, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// A listener that accepts only while there is room.
struct Bounded {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let room = self.room.clone().acquire_owned().await.expect("never closed");
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        (Connection { stream, _room: room }, peer)
    }
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub struct Remote(pub SocketAddr);

impl Connected<IncomingStream<'_, Bounded>> for Remote {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Remote {
        Remote(*stream.remote_addr())
    }
}

/// A connection and its place among those allowed.
struct Connection {
    stream: TcpStream,
    _room: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
