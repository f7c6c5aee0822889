//! One connection: reads frames, starts calls, writes answers.
//!
//! States: header -> (negotiation ->) context -> open. A fault of the protocol is answered once and closes the connection after the answer is out.

use crate::call::{Call, CallerContext, ClientId, Outcome, RemoteException, Reply, RequestHeader, Service};
use crate::calls::Calls;
use crate::faults::{check, invalid_header, message, undecodable};
use crate::gather;
use crate::handshake;
use crate::header;
use crate::held::Held;
use crate::names::Names;
use crate::negotiation::{self, Negotiation};
use crate::reply::{self, ReplyIds};
use crate::server::{Entry, Port};
use bytes::{Buf, Bytes, BytesMut};
use hadoop_proto::common::{IpcConnectionContextProto, RpcSaslProto};
use hadoop_proto::frame::{AUTH_NONE, AUTH_SASL, ConnectionHeader, Decoder, Incoming};
use hadoop_proto::view::{self, Sint32, ViewError};
use prost::Message;
use security::groups::UserGroups;
use security::{User, Users};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Instant;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::sleep_until;
use vocab::{AuthenticationMethod, Caller, RpcIds};

const CALL_CONTEXT: i32 = -3;
const CALL_PING: i32 = -4;
const CALL_SASL: i32 = -33;
/// Least room for a read, and for one soon after a read that found as much.
const READ_BYTES: [usize; 2] = [4 << 10, 32 << 10];
/// So many reads after that one: between two that find a pause's calls come others that find a few, and calls read in two parts are two batches.
const MUCH_READS: u8 = 16;
/// A frame's announced length is believed in steps of this size, doubling with what really came.
const TRUST_BYTES: usize = 64 << 10;
/// Buffers beyond this are given back when empty.
const KEEP_BYTES: usize = 256 << 10;
/// Answers are written out at the latest when this much has gathered; while a peer leaves so much unread, nothing more is taken from it.
const FLUSH_BYTES: usize = 64 << 10;
/// Calls that a connection starts before others get their turn on its thread: a peer that never stops sending must not keep them waiting.
const TURN_CALLS: u32 = 64;

/// Serves a connection to its end. Calls that are under way when it closes are finished, their answers dropped: a call is never left half done.
pub(crate) async fn run<S: Service>(port: Arc<Port<S>>, entry: Arc<Entry>, mut stream: TcpStream, peer: SocketAddr) {
    let mut calls = Calls::new();
    let service = &port.service;
    let serve = |call: Call<S::Method>| {
        let ids = ReplyIds { call_id: call.header.call_id, client_id: call.header.client_id, retry: call.header.retry };
        let outcome = match service.call(call) {
            Outcome::Later(answer) => Outcome::Later(async move { (ids, answer.await) }),
            Outcome::Done(reply) => Outcome::Done(reply),
            Outcome::Held { reply, mark, note } => Outcome::Held { reply, mark, note },
        };
        (ids, outcome)
    };
    let mut connection = Connection::new(&port, &entry, peer);
    let ended = {
        let exchange = pin!(connection.exchange(&mut stream, &mut calls, serve));
        gather::Alert::new(exchange).await
    };
    if let Err(error) = ended {
        tracing::debug!(port = port.name, %peer, %error, "connection closed");
    }
    port.leave(&entry, connection.held.len());
    let notes: Vec<_> = std::mem::take(&mut connection.held).into_notes().collect();
    drop(connection);
    drop(stream);
    if !notes.is_empty() {
        tokio::spawn(noted(port.clone(), notes));
    }
    while calls.next().await.is_some() {
        port.leave(&entry, 1);
    }
}

/// Hands notes over for which no connection waits any more.
async fn noted<S: Service>(port: Arc<Port<S>>, notes: Vec<(u64, S::Note)>) {
    for (mark, note) in notes {
        port.service.reach(mark).await;
        port.service.noted(note);
    }
}

/// What to do next with the input.
#[allow(clippy::large_enum_variant)] // lives for one step, on the stack; a box would cost an allocation per call
enum Step<M> {
    /// Wait for more bytes.
    Starved,
    /// Something was done; look again.
    Again,
    /// A call to start.
    Call(Call<M>),
    /// Who calls must be found out before anything else is read.
    Identify { user: IpcConnectionContextProto },
}

/// Who calls, as long as the connection lasts.
struct Identity {
    user: User,
    method: AuthenticationMethod,
    groups: UserGroups,
}

struct Connection<'a, S: Service> {
    port: &'a Port<S>,
    entry: &'a Entry,
    peer: SocketAddr,
    input: Decoder,
    output: BytesMut,
    held: Held<S::Note>,
    names: Names<S::Method>,
    negotiation: Negotiation,
    identity: Option<Identity>,
    /// When the bytes at hand were read.
    received: Instant,
    /// Reads to come that are given much room: one of the last found much.
    much: u8,
    /// Since when the socket takes no byte of the answers at hand.
    stuck: Option<Instant>,
    /// Calls started in this turn.
    started: u32,
    closing: bool,
}

impl<'a, S: Service> Connection<'a, S> {
    fn new(port: &'a Port<S>, entry: &'a Entry, peer: SocketAddr) -> Connection<'a, S> {
        Connection {
            port,
            entry,
            peer,
            input: Decoder::new(port.settings.request_bytes_max),
            output: BytesMut::new(),
            held: Held::default(),
            names: Names::default(),
            negotiation: Negotiation::NotAsked,
            identity: None,
            received: Instant::now(),
            much: 0,
            stuck: None,
            started: 0,
            closing: false,
        }
    }

    /// Reads, serves and writes until the peer or a fault ends it.
    async fn exchange<F: Future<Output = (ReplyIds, Reply)>>(
        &mut self,
        stream: &mut TcpStream,
        calls: &mut Calls<F>,
        serve: impl Fn(Call<S::Method>) -> (ReplyIds, Outcome<F, S::Note>),
    ) -> std::io::Result<()> {
        let (mut reader, writer) = stream.split();
        loop {
            let starved = self.take_frames(calls, &serve).await;
            self.collect(calls).await;
            self.flush(&writer)?;
            if self.closing && self.output.is_empty() && self.held.len() == 0 {
                return Ok(());
            }
            if self.started >= TURN_CALLS {
                self.started = 0;
                tokio::task::yield_now().await;
            }
            if !self.wait(&mut reader, &writer, calls, starved).await? {
                return Ok(());
            }
        }
    }

    /// Starts the calls that are in the input, as far as the limits allow. True if more bytes are needed to go on.
    async fn take_frames<F: Future<Output = (ReplyIds, Reply)>>(
        &mut self,
        calls: &mut Calls<F>,
        serve: impl Fn(Call<S::Method>) -> (ReplyIds, Outcome<F, S::Note>),
    ) -> bool {
        if let Some(identity) = &mut self.identity
            && !self.port.users.groups().is_current(&identity.groups, self.received)
        {
            identity.groups = self.port.users.groups().of(&identity.user.name).await;
        }
        let (before, mut starved) = (self.started, false);
        while !self.closing
            && self.output.len() < FLUSH_BYTES
            && self.started < TURN_CALLS
            && self.has_room(calls.parked())
        {
            match self.step() {
                Ok(Step::Starved) => {
                    starved = true;
                    break;
                }
                Ok(Step::Again) => {}
                Ok(Step::Call(call)) => {
                    self.started += 1;
                    match serve(call) {
                        (ids, Outcome::Done(answer)) => self.answer(&ids, answer),
                        (ids, Outcome::Held { reply, mark, note }) => self.hold(&ids, reply, mark, note),
                        (_, Outcome::Later(call)) => match calls.start(call) {
                            Some((ids, answer)) => self.answer(&ids, answer),
                            None => self.port.enter(self.entry),
                        },
                    }
                }
                Ok(Step::Identify { user }) => {
                    if let Err(error) = self.identify(user).await {
                        self.fail(&ReplyIds::of_connection(CALL_CONTEXT, -1), error);
                    }
                }
                Err((ids, error)) => self.fail(&ids, error),
            }
        }
        let taken = (self.started - before) as usize;
        gather::taken(taken);
        if starved && self.held.len() > 0 && gather::is_most(taken) {
            self.port.service.reach_now();
        }
        starved
    }

    fn has_room(&self, parked: usize) -> bool {
        parked + self.held.len() < self.port.settings.in_flight_max && self.port.has_room()
    }

    /// Answers that may leave by now: held ones, and those of parked calls that are done.
    async fn collect<F: Future<Output = (ReplyIds, Reply)>>(&mut self, calls: &mut Calls<F>) {
        if self.held.len() > 0 && self.output.len() < FLUSH_BYTES {
            let service = &self.port.service;
            let released = self.held.release(service.reached(), &mut self.output, |note| service.noted(note));
            self.port.leave(self.entry, released);
        }
        while calls.parked() > 0 && self.output.len() < FLUSH_BYTES {
            let done = poll_fn(|cx| Poll::Ready(calls.poll_next(cx))).await;
            let Poll::Ready(Some((ids, answer))) = done else { return };
            self.port.leave(self.entry, 1);
            self.answer(&ids, answer);
        }
    }

    /// Writes what the socket takes.
    fn flush(&mut self, writer: &WriteHalf<'_>) -> std::io::Result<()> {
        while !self.output.is_empty() {
            match writer.try_write(&self.output) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.port.counters.sent_bytes.fetch_add(n as u64, Ordering::Relaxed);
                    self.output.advance(n);
                    self.stuck = None;
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    self.stuck.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        }
        if self.output.capacity() > KEEP_BYTES {
            self.output = BytesMut::new();
        } else {
            self.output.clear();
        }
        Ok(())
    }

    /// Waits for whatever comes first: bytes, room to write, a finished call, room for more calls. False at the end of the connection.
    async fn wait<F: Future<Output = (ReplyIds, Reply)>>(
        &mut self,
        reader: &mut ReadHalf<'_>,
        writer: &WriteHalf<'_>,
        calls: &mut Calls<F>,
        starved: bool,
    ) -> std::io::Result<bool> {
        let writing = !self.output.is_empty();
        let full = !starved && !self.closing && !writing && !self.has_room(calls.parked());
        if !starved && !self.closing && !writing && !full {
            return Ok(true);
        }
        let mark = self.held.mark();
        let stalled = self.stuck.unwrap_or(self.received) + self.port.settings.stall;
        if starved {
            self.make_room();
        }
        tokio::select! {
            biased;
            _ = self.entry.closed() => Ok(false),
            ready = writer.writable(), if writing => ready.map(|()| true),
            _ = sleep_until(stalled.into()), if writing => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the peer does not read its answers")),
            () = self.port.service.reach(mark.unwrap_or(0)), if mark.is_some() && self.output.len() < FLUSH_BYTES => Ok(true),
            Some((ids, answer)) = calls.next(), if calls.parked() > 0 && self.output.len() < FLUSH_BYTES => {
                self.port.leave(self.entry, 1);
                self.answer(&ids, answer);
                Ok(true)
            }
            _ = self.port.room(), if full => Ok(true),
            read = reader.read_buf(self.input.buffer()), if starved && self.output.len() < FLUSH_BYTES => {
                let n = read?;
                self.received = Instant::now();
                self.entry.touch(self.received, self.port.started);
                self.much = if n >= READ_BYTES[0] { MUCH_READS } else { self.much.saturating_sub(1) };
                self.port.counters.received_bytes.fetch_add(n as u64, Ordering::Relaxed);
                Ok(n > 0)
            }
        }
    }

    /// Room for the next read: a little for small frames, what a large one announced as far as it is credible.
    fn make_room(&mut self) {
        let missing = self.input.missing();
        let buffer = self.input.buffer();
        if buffer.is_empty() && buffer.capacity() > KEEP_BYTES {
            *buffer = BytesMut::new();
        }
        buffer.reserve(missing.min(buffer.len().max(TRUST_BYTES)).max(READ_BYTES[usize::from(self.much > 0)]));
    }

    fn answer(&mut self, ids: &ReplyIds, answer: Reply) {
        self.port.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.closing |= answer.is_fatal();
        reply::put(&mut self.output, ids, self.port.service.state_id(), &answer);
    }

    /// Keeps an answer until the service has reached its mark.
    fn hold(&mut self, ids: &ReplyIds, answer: Reply, mark: u64, note: Option<S::Note>) {
        self.port.enter(self.entry);
        self.port.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.closing |= answer.is_fatal();
        let state_id = self.port.service.state_id();
        self.held.push(mark, note, |out| reply::put(out, ids, state_id, &answer));
    }

    fn fail(&mut self, ids: &ReplyIds, error: RemoteException) {
        tracing::debug!(port = self.port.name, peer = %self.peer, class = %error.class, text = %error.message, "refused");
        reply::error(&mut self.output, ids, None, &error);
        self.closing |= error.is_fatal();
    }

    /// One step through the input.
    fn step(&mut self) -> Result<Step<S::Method>, (ReplyIds, RemoteException)> {
        match self.input.next_incoming() {
            Ok(None) => Ok(Step::Starved),
            Ok(Some(Incoming::Packet(packet))) => self.packet(packet),
            Ok(Some(Incoming::Header(ConnectionHeader { auth_protocol, .. }))) => {
                self.negotiation = match auth_protocol {
                    AUTH_NONE if self.port.users.accepts_simple() => Negotiation::NotAsked,
                    AUTH_NONE => return Err((ReplyIds::NONE, negotiation::not_enabled(&self.port.users, "SIMPLE"))),
                    AUTH_SASL => Negotiation::Asked,
                    other => return Err((ReplyIds::NONE, RemoteException::auth_protocol(other as i8))),
                };
                Ok(Step::Again)
            }
            Err(error) => {
                tracing::warn!(port = self.port.name, peer = %self.peer, %error, "connection refused");
                handshake::refuse(&error, &mut self.output);
                self.closing = true;
                Ok(Step::Again)
            }
        }
    }

    /// A whole packet: a call, or a message about the connection.
    fn packet(&mut self, mut packet: Bytes) -> Result<Step<S::Method>, (ReplyIds, RemoteException)> {
        let undecodable = |e| (ReplyIds::NONE, undecodable("RpcRequestHeaderProto", e));
        let mut rest = &packet[..];
        let header = header::delimited(&mut rest).and_then(header::parse).map_err(undecodable)?;
        let (Sint32(call_id), Sint32(retry)) = (header.call_id, header.retry_count);
        let about = ReplyIds::of_connection(call_id, retry);
        check(&header).map_err(|e| (about, e))?;
        if call_id < 0 {
            packet.advance(packet.len() - rest.len());
            return self.out_of_band(call_id, packet).map_err(|e| (about, e));
        }
        if self.identity.is_none() {
            return Err((about, invalid_header("Connection context not established")));
        }
        self.call(&header, &packet, rest)
    }

    fn out_of_band(&mut self, call_id: i32, mut rest: Bytes) -> Result<Step<S::Method>, RemoteException> {
        match call_id {
            CALL_PING => Ok(Step::Again),
            CALL_CONTEXT if !self.negotiation.is_over() => {
                Err(invalid_header("Connection header sent during SASL negotiation"))
            }
            CALL_CONTEXT if self.identity.is_some() => Err(invalid_header("Connection context already processed")),
            CALL_CONTEXT => Ok(Step::Identify { user: message("IpcConnectionContextProto", &mut rest)? }),
            CALL_SASL => {
                let message: RpcSaslProto = message("RpcSaslProto", &mut rest)?;
                if let Some(answer) = self.negotiation.step(&self.port.users, &message)? {
                    let ids = ReplyIds::of_connection(CALL_SASL, -1);
                    reply::success(&mut self.output, &ids, None, &answer.encode_to_vec());
                }
                Ok(Step::Again)
            }
            other => Err(invalid_header(format!("Unknown out of band call #{other}"))),
        }
    }

    /// Finds the method and makes the call; a method or protocol that does not exist is the fault of that call alone. `rest` is what follows the
    /// header in the packet.
    fn call(
        &mut self,
        header: &view::rpc::RpcRequestHeader<'_>,
        packet: &Bytes,
        mut rest: &[u8],
    ) -> Result<Step<S::Method>, (ReplyIds, RemoteException)> {
        let (Sint32(call_id), Sint32(retry)) = (header.call_id, header.retry_count);
        let client_id = ClientId::new(header.client_id).ok_or_else(|| {
            let text = format!("Invalid clientId - length is {} expected length 16", header.client_id.len());
            (ReplyIds::of_connection(call_id, retry), invalid_header(text))
        })?;
        let ids = ReplyIds { call_id, client_id, retry };
        let bad = |e: ViewError| (ids, RemoteException::bad_request(e.to_string()));
        let names = header::delimited(&mut rest).map_err(bad)?;
        let port = self.port;
        let (method, version) = self.names.get(names, || {
            let names = view::rpc::RequestHeader::parse(names).map_err(bad)?;
            let (protocol, method) = (names.declaring_class_protocol_name.to_str(), names.method_name.to_str());
            let version = names.client_protocol_version;
            let method = port.service.find(&protocol, version, &method).map_err(|e| (ids, e))?;
            Ok((method, version))
        })?;
        // the length of an empty body may be left out
        let body = if rest.is_empty() { rest } else { header::delimited(&mut rest).map_err(bad)? };
        let body = packet.slice_ref(body);
        let caller_context = header.caller_context.filter(|_| self.port.settings.caller_context);
        let caller_context = caller_context.map(|c| CallerContext {
            context: c.context.to_str().into(),
            signature: c.signature.map(Bytes::copy_from_slice),
        });
        let caller = self.caller(&ids, caller_context.as_ref());
        let header = RequestHeader { call_id, client_id, retry, state_id: header.state_id, caller_context };
        Ok(Step::Call(Call { method, client_version: version, header, caller, body, received: self.received }))
    }

    fn caller(&self, ids: &ReplyIds, context: Option<&CallerContext>) -> Caller {
        let identity = self.identity.as_ref().expect("calls come after the context");
        Caller {
            user: identity.user.name.clone(),
            real_user: identity.user.real.clone(),
            groups: identity.groups.groups.clone(),
            method: identity.method,
            address: self.peer,
            rpc_ids: ids.client_id.uuid().map(|client_id| RpcIds { client_id, call_id: ids.call_id }),
            retry: ids.retry,
            context: context.map(|c| c.context.clone()),
        }
    }

    /// Makes the connection context the caller of all calls to come. Who proved to be somebody may only claim to act for another.
    async fn identify(&mut self, context: IpcConnectionContextProto) -> Result<(), RemoteException> {
        let info = context.user_info.unwrap_or_default();
        let claimed = info.effective_user.as_deref().filter(|user| !user.is_empty());
        let users = &self.port.users;
        let (effective, real, proved) = match &self.negotiation {
            Negotiation::Proved { principal, real, method: AuthenticationMethod::Token } => {
                let user = holder(users, principal, real.as_deref(), claimed)?;
                let groups = users.groups().of(&user.name).await;
                self.identity = Some(Identity { user, method: AuthenticationMethod::Token, groups });
                return Ok(());
            }
            Negotiation::Proved { principal, method, .. } => match claimed {
                Some(claimed) if claimed != principal => (claimed, Some(&**principal), *method),
                _ => (&**principal, None, *method),
            },
            _ => (claimed.unwrap_or(""), info.real_user.as_deref(), AuthenticationMethod::Simple),
        };
        let user =
            users.authorize(effective, real, self.peer.ip()).await.map_err(|e| RemoteException::unauthorized(e.0))?;
        let method = if user.real.is_some() { AuthenticationMethod::Proxy } else { proved };
        let groups = users.groups().of(&user.name).await;
        self.identity = Some(Identity { user, method, groups });
        Ok(())
    }
}

/// The holder of a token is whom the token names and nobody else; who acts for whom was checked when it was issued.
fn holder(users: &Users, owner: &str, real: Option<&str>, claimed: Option<&str>) -> Result<User, RemoteException> {
    if let Some(claimed) = claimed.filter(|claimed| *claimed != owner) {
        return Err(RemoteException::negotiation_refused(format!(
            "Authenticated user ({owner} (auth:TOKEN)) doesn't match what the client claims to be ({claimed} (auth:SIMPLE))"
        )));
    }
    users.proved(owner, real).map_err(|e| RemoteException::unauthorized(e.0))
}
