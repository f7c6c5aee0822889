//! Ports: a listener, its connections, its limits.

use crate::call::Service;
use crate::connection;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use security::Users;
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Limits and habits of a port; the defaults are Hadoop's.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest request in bytes (`ipc.maximum.data.length`); a longer one closes its connection.
    pub request_bytes_max: u32,
    /// Most calls in flight of the port (handlers times `ipc.server.handler.queue.size`); beyond, connections are not read.
    pub in_flight_max: usize,
    /// How long a peer may leave its answers unread before its connection is closed.
    pub stall: Duration,
    /// Most connections (`ipc.server.max.connections`); 0: no limit. Beyond, new ones are closed at once.
    pub connections_max: usize,
    /// Idle connections are closed only while there are more than this many (`ipc.client.idlethreshold`).
    pub idle_threshold: usize,
    /// Without a byte for this long and without a call in flight a connection is idle (twice `ipc.client.connection.maxidletime`).
    pub idle_after: Duration,
    /// How often idle ones are looked for (`ipc.client.connection.idle-scan-interval.ms`).
    pub idle_scan: Duration,
    /// Most connections closed by one scan (`ipc.client.kill.max`).
    pub idle_close_max: usize,
    /// Connections the system may keep waiting to be accepted (`ipc.server.listen.queue.size`).
    pub backlog: u32,
    /// Whether caller contexts are read (`hadoop.caller.context.enabled`).
    pub caller_context: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            request_bytes_max: 128 << 20,
            in_flight_max: 1_000,
            stall: Duration::from_secs(900),
            connections_max: 0,
            idle_threshold: 4_000,
            idle_after: Duration::from_secs(20),
            idle_scan: Duration::from_secs(10),
            idle_close_max: 10,
            backlog: 256,
            caller_context: false,
        }
    }
}

/// What a port has counted since it opened.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Connections closed at once for lack of room.
    pub dropped: AtomicU64,
    /// Connections open now.
    pub open: AtomicUsize,
    /// Calls answered.
    pub calls: AtomicU64,
    /// Calls in flight now, apart from those being computed.
    pub in_flight: AtomicUsize,
    /// Bytes read.
    pub received_bytes: AtomicU64,
    /// Bytes written.
    pub sent_bytes: AtomicU64,
}

/// What all connections of a port share.
pub(crate) struct Port<S> {
    pub(crate) name: &'static str,
    pub(crate) service: Arc<S>,
    pub(crate) users: Arc<Users>,
    pub(crate) settings: Settings,
    pub(crate) counters: Arc<PortCounters>,
    pub(crate) started: Instant,
    room: Notify,
    stopped: AtomicBool,
    connections: Mutex<HashMap<u64, Arc<Entry>>>,
}

impl<S> Port<S> {
    pub(crate) fn has_room(&self) -> bool {
        self.counters.in_flight.load(Ordering::Acquire) < self.settings.in_flight_max
    }
    /// Until the port takes calls again.
    pub(crate) async fn room(&self) {
        loop {
            let notified = self.room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.has_room() {
                return;
            }
            notified.await;
        }
    }
    /// A call is parked.
    pub(crate) fn enter(&self, entry: &Entry) {
        entry.in_flight.fetch_add(1, Ordering::AcqRel);
        self.counters.in_flight.fetch_add(1, Ordering::AcqRel);
    }
    /// Parked calls are done.
    pub(crate) fn leave(&self, entry: &Entry, calls: usize) {
        if calls == 0 {
            return;
        }
        entry.in_flight.fetch_sub(calls, Ordering::AcqRel);
        if self.counters.in_flight.fetch_sub(calls, Ordering::AcqRel) >= self.settings.in_flight_max {
            self.room.notify_waiters();
        }
    }
    /// Closes some of the idle connections if there are many.
    fn close_idle(&self, now: Instant) {
        let connections = self.connections.lock();
        if connections.len() <= self.settings.idle_threshold {
            return;
        }
        let limit = now.saturating_duration_since(self.started).saturating_sub(self.settings.idle_after);
        let idle = connections.values().filter(|entry| {
            entry.in_flight.load(Ordering::Acquire) == 0
                && u128::from(entry.last_contact_ms.load(Ordering::Relaxed)) < limit.as_millis()
        });
        let most = self.settings.idle_close_max.min(connections.len() - self.settings.idle_threshold);
        idle.take(most).for_each(|entry| entry.close());
    }
}

/// What the port knows of a connection.
#[derive(Default)]
pub(crate) struct Entry {
    last_contact_ms: AtomicU64,
    in_flight: AtomicUsize,
    close: AtomicBool,
    waker: AtomicWaker,
}

impl Entry {
    /// Bytes came.
    pub(crate) fn touch(&self, now: Instant, started: Instant) {
        self.last_contact_ms.store(now.saturating_duration_since(started).as_millis() as u64, Ordering::Relaxed);
    }
    /// Until the port wants the connection closed.
    pub(crate) async fn closed(&self) {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if self.close.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
    fn close(&self) {
        self.close.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// Bound addresses of a port that does not serve yet, so that a taken port is known before anything is loaded.
#[derive(Debug)]
pub struct Listener {
    name: &'static str,
    sockets: Vec<TcpListener>,
}

impl Listener {
    /// Binds and listens. Connections wait in the system's queue until [`Listener::serve`]. Errors name the address.
    pub fn bind(name: &'static str, addresses: &[SocketAddr], backlog: u32) -> io::Result<Listener> {
        let bind = |address: &SocketAddr| {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            socket.bind(*address)?;
            socket.listen(backlog)
        };
        let named = |address: &SocketAddr| {
            bind(address).map_err(|e| io::Error::new(e.kind(), format!("cannot listen on {address}: {e}")))
        };
        Ok(Listener { name, sockets: addresses.iter().map(named).collect::<io::Result<_>>()? })
    }
    /// The addresses, ports filled in.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.sockets.iter().map(TcpListener::local_addr).collect()
    }
    /// Begins to accept. Must be called in a tokio runtime.
    pub fn serve<S: Service>(self, settings: Settings, service: Arc<S>, users: Arc<Users>) -> io::Result<Server> {
        let addresses = self.addresses()?;
        let port = Arc::new(Port {
            name: self.name,
            service,
            users,
            settings,
            counters: Arc::default(),
            started: Instant::now(),
            room: Notify::new(),
            stopped: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let counters = port.counters.clone();
        let close_all = {
            let port = port.clone();
            Box::new(move || {
                port.stopped.store(true, Ordering::SeqCst);
                port.connections.lock().values().for_each(|entry| entry.close());
            })
        };
        let mut tasks: Vec<_> = self.sockets.into_iter().map(|s| tokio::spawn(accept(port.clone(), s))).collect();
        tasks.push(tokio::spawn(scan(port)));
        Ok(Server { addresses, counters, tasks, close_all })
    }
}

/// A port in service. Dropping it closes the port and its connections.
pub struct Server {
    addresses: Vec<SocketAddr>,
    counters: Arc<PortCounters>,
    tasks: Vec<JoinHandle<()>>,
    close_all: Box<dyn Fn() + Send + Sync>,
}

impl Server {
    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
    /// What it has counted.
    pub fn counters(&self) -> &Arc<PortCounters> {
        &self.counters
    }
    /// Closes the port and its connections. Calls under way run to their end, their answers are dropped.
    pub fn stop(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        (self.close_all)();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn scan<S: Service>(port: Arc<Port<S>>) {
    let mut ticks = tokio::time::interval(port.settings.idle_scan);
    loop {
        ticks.tick().await;
        port.close_idle(Instant::now());
    }
}

async fn accept<S: Service>(port: Arc<Port<S>>, socket: TcpListener) {
    loop {
        let (stream, peer) = match socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // out of descriptors: the connection stays in the queue, so a pause instead of a spin
                tracing::warn!(port = port.name, %error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let most = port.settings.connections_max;
        if most > 0 && port.counters.open.load(Ordering::Acquire) >= most {
            port.counters.dropped.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let entry = Arc::new(Entry::default());
        entry.touch(Instant::now(), port.started);
        let number = port.counters.accepted.fetch_add(1, Ordering::Relaxed);
        port.counters.open.fetch_add(1, Ordering::AcqRel);
        port.connections.lock().insert(number, entry.clone());
        if port.stopped.load(Ordering::SeqCst) {
            entry.close();
        }
        let port = port.clone();
        tokio::spawn(async move {
            connection::run(port.clone(), entry, stream, peer).await;
            port.connections.lock().remove(&number);
            port.counters.open.fetch_sub(1, Ordering::AcqRel);
        });
    }
}
