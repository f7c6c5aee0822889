//! The other end: a connection to a Hadoop RPC server, many calls at a time, authenticated as SIMPLE.

use crate::call::{CallerContext, ClientId, ErrorCode, RemoteException};
use bytes::{Buf, Bytes, BytesMut};
use hadoop_proto::common::rpc_request_header_proto::OperationProto;
use hadoop_proto::common::rpc_response_header_proto::RpcStatusProto;
use hadoop_proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcCallerContextProto, RpcKindProto, RpcRequestHeaderProto,
    RpcResponseHeaderProto, UserInformationProto,
};
use hadoop_proto::frame::{AUTH_NONE, ConnectionHeader, Decoder, Incoming, put_message, put_packet, split_delimited};
use hadoop_proto::wire::Sink;
use prost::Message;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

/// Call number of the packet that says who calls (Hadoop's `CONNECTION_CONTEXT_CALL_ID`).
const CALL_CONTEXT: i32 = -3;
/// Call number of a packet that only shows life (`PING_CALL_ID`).
const CALL_PING: i32 = -4;
/// Requests that may wait for the socket before callers wait.
const QUEUE_REQUESTS: usize = 1_024;
/// Beyond this many waiting calls those that nobody waits for are forgotten at each new one.
const SWEEP_CALLS: usize = 4_096;

/// Where and as whom to connect.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Full name of the Java protocol interface, such as `org.apache.hadoop.hdfs.protocol.ClientProtocol`.
    pub protocol: String,
    /// Its version.
    pub version: u64,
    /// Effective user.
    pub user: String,
    /// Real user, if it acts for the effective one.
    pub real_user: Option<String>,
    /// Id of this client; `None` makes one up.
    pub client_id: Option<[u8; 16]>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer may take (`ipc.client.rpc-timeout.ms`); `None`: for ever, as long as the connection stands.
    pub call_timeout: Option<Duration>,
    /// After this much silence while calls wait a ping is sent (`ipc.ping.interval`).
    pub ping: Duration,
    /// Longest answer taken, in bytes (`ipc.maximum.response.length`).
    pub response_bytes_max: u32,
}

impl ClientSettings {
    /// Hadoop's defaults for a protocol and a user.
    pub fn new(protocol: impl Into<String>, version: u64, user: impl Into<String>) -> ClientSettings {
        ClientSettings {
            protocol: protocol.into(),
            version,
            user: user.into(),
            real_user: None,
            client_id: None,
            connect_timeout: Duration::from_secs(20),
            call_timeout: None,
            ping: Duration::from_secs(60),
            response_bytes_max: 128 << 20,
        }
    }
}

/// Why a call has no answer to show.
#[derive(Debug)]
pub enum CallError {
    /// The server answered with an exception.
    Remote(RemoteException),
    /// The connection failed or ended; whether the call was executed is unknown.
    Connection {
        /// The server.
        peer: SocketAddr,
        /// What happened.
        error: io::Error,
    },
    /// No answer in time; whether the call was executed is unknown.
    Timeout {
        /// The server.
        peer: SocketAddr,
        /// The method.
        method: String,
    },
    /// The answer is no message of the wanted type.
    Malformed(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Remote(e) => write!(f, "{}: {}", e.class, e.message),
            CallError::Connection { peer, error } => write!(f, "{peer}: {error}"),
            CallError::Timeout { peer, method } => write!(f, "{peer}: no answer to {method} in time"),
            CallError::Malformed(text) => write!(f, "malformed answer: {text}"),
        }
    }
}

impl std::error::Error for CallError {}

impl CallError {
    /// The exception, if the server answered with one.
    pub fn remote(&self) -> Option<&RemoteException> {
        match self {
            CallError::Remote(e) => Some(e),
            _ => None,
        }
    }
}

/// What may be said about a call besides its method and body.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// Call number; `None` takes the next free one.
    pub call_id: Option<i32>,
    /// How many times it was tried before.
    pub retry: i32,
    /// Another client id than the connection's, for resending a call of another connection.
    pub client_id: Option<ClientId>,
    /// Last state id seen.
    pub state_id: Option<i64>,
    /// For the server's audit log.
    pub caller_context: Option<CallerContext>,
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its header, of status SUCCESS.
    pub header: RpcResponseHeaderProto,
    /// The encoded response message.
    pub body: Bytes,
}

struct Request {
    call_id: i32,
    packet: BytesMut,
    answer: oneshot::Sender<Result<Answer, CallError>>,
}

/// A connection. Cheap to clone; the connection closes when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Client {
    settings: Arc<ClientSettings>,
    peer: SocketAddr,
    client_id: ClientId,
    next_call: Arc<AtomicI32>,
    requests: mpsc::Sender<Request>,
}

impl Client {
    /// Connects and says who calls. Whether the server lets the caller in shows at the first call.
    pub async fn connect(peer: SocketAddr, settings: ClientSettings) -> Result<Client, CallError> {
        let failed = |error| CallError::Connection { peer, error };
        let stream = timeout(settings.connect_timeout, TcpStream::connect(peer)).await;
        let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let client_id = settings.client_id.unwrap_or_else(|| *uuid::Uuid::new_v4().as_bytes());
        let client_id = ClientId::new(&client_id).unwrap_or_default();
        let (requests, queue) = mpsc::channel(QUEUE_REQUESTS);
        let connection = Connection {
            peer,
            ping: settings.ping,
            output: opening(&settings, &client_id),
            input: Decoder::packets(settings.response_bytes_max),
            waiting: HashMap::new(),
            client_id,
        };
        tokio::spawn(connection.run(stream, queue));
        Ok(Client { settings: settings.into(), peer, client_id, next_call: Arc::default(), requests })
    }

    /// The server.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// This client's id.
    pub fn client_id(&self) -> ClientId {
        self.client_id
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Calls a method and waits for its answer. Any number of calls may be under way at once.
    pub async fn call<R: Message + Default>(&self, method: &str, request: &impl Message) -> Result<R, CallError> {
        let answer = self.call_with(CallOptions::default(), method, &request.encode_to_vec()).await?;
        R::decode(answer.body).map_err(|e| CallError::Malformed(e.to_string()))
    }

    /// Calls a method with an encoded body and everything said about the call; the way of scripts and retries.
    pub async fn call_with(&self, options: CallOptions, method: &str, body: &[u8]) -> Result<Answer, CallError> {
        let call_id = options.call_id.unwrap_or_else(|| self.next_call.fetch_add(1, Ordering::Relaxed) & i32::MAX);
        let (answer, answered) = oneshot::channel();
        let request = Request { call_id, packet: self.packet(call_id, &options, method, body), answer };
        let closed = || CallError::Connection { peer: self.peer, error: io::ErrorKind::ConnectionAborted.into() };
        let exchange = async {
            self.requests.send(request).await.map_err(|_| closed())?;
            answered.await.map_err(|_| closed())?
        };
        match self.settings.call_timeout {
            None => exchange.await,
            Some(limit) => timeout(limit, exchange)
                .await
                .unwrap_or_else(|_| Err(CallError::Timeout { peer: self.peer, method: method.to_owned() })),
        }
    }

    fn packet(&self, call_id: i32, options: &CallOptions, method: &str, body: &[u8]) -> BytesMut {
        let client_id = options.client_id.unwrap_or(self.client_id);
        let header = RpcRequestHeaderProto {
            state_id: options.state_id,
            caller_context: options
                .caller_context
                .as_ref()
                .map(|c| RpcCallerContextProto { context: c.context.to_string(), signature: c.signature.clone() }),
            ..request_header(call_id, &client_id, options.retry)
        };
        let names = RequestHeaderProto {
            method_name: method.to_owned(),
            declaring_class_protocol_name: self.settings.protocol.clone(),
            client_protocol_version: self.settings.version,
        };
        let mut packet = BytesMut::new();
        put_packet(&mut packet, |out| {
            put_message(out, &header);
            put_message(out, &names);
            out.put_delimited(body);
        });
        packet
    }
}

fn request_header(call_id: i32, client_id: &ClientId, retry: i32) -> RpcRequestHeaderProto {
    RpcRequestHeaderProto {
        rpc_kind: Some(RpcKindProto::RpcProtocolBuffer as i32),
        rpc_op: Some(OperationProto::RpcFinalPacket as i32),
        call_id,
        client_id: Bytes::copy_from_slice(client_id.as_slice()),
        retry_count: Some(retry),
        ..Default::default()
    }
}

/// Connection header and context.
fn opening(settings: &ClientSettings, client_id: &ClientId) -> BytesMut {
    let header = ConnectionHeader { service_class: 0, auth_protocol: AUTH_NONE };
    let context = IpcConnectionContextProto {
        user_info: Some(UserInformationProto {
            effective_user: Some(settings.user.clone()),
            real_user: settings.real_user.clone(),
        }),
        protocol: Some(settings.protocol.clone()),
    };
    let mut output = BytesMut::from(&header.to_bytes()[..]);
    put_packet(&mut output, |out| {
        put_message(out, &request_header(CALL_CONTEXT, client_id, -1));
        put_message(out, &context);
    });
    output
}

/// The task behind the clones: it owns the socket and knows who waits for what.
struct Connection {
    peer: SocketAddr,
    ping: Duration,
    output: BytesMut,
    input: Decoder,
    waiting: HashMap<i32, oneshot::Sender<Result<Answer, CallError>>>,
    client_id: ClientId,
}

impl Connection {
    async fn run(mut self, stream: TcpStream, mut queue: mpsc::Receiver<Request>) {
        let Err(error) = self.exchange(stream, &mut queue).await else { return };
        queue.close();
        while let Some(request) = queue.recv().await {
            self.waiting.insert(request.call_id, request.answer);
        }
        for (_, answer) in self.waiting.drain() {
            let error = io::Error::new(error.kind(), error.to_string());
            let _ = answer.send(Err(CallError::Connection { peer: self.peer, error }));
        }
    }

    /// Until nobody can call any more (`Ok`) or the connection fails.
    async fn exchange(&mut self, mut stream: TcpStream, queue: &mut mpsc::Receiver<Request>) -> io::Result<()> {
        let (mut reader, mut writer) = stream.split();
        let mut heard = Instant::now();
        loop {
            self.input.buffer().reserve(4 << 10);
            tokio::select! {
                request = queue.recv() => match request {
                    Some(request) => self.take(request, queue),
                    None => return Ok(()),
                },
                written = writer.write_buf(&mut self.output), if !self.output.is_empty() => {
                    written?;
                }
                read = reader.read_buf(self.input.buffer()) => {
                    if read? == 0 {
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
                    }
                    heard = Instant::now();
                    self.dispatch()?;
                }
                _ = sleep_until(heard + self.ping), if !self.waiting.is_empty() => {
                    heard = Instant::now();
                    let header = request_header(CALL_PING, &self.client_id, -1);
                    put_packet(&mut self.output, |out| put_message(out, &header));
                }
            }
        }
    }

    /// Takes a request and all others that are ready, so that they leave in one write.
    fn take(&mut self, first: Request, queue: &mut mpsc::Receiver<Request>) {
        let mut next = Some(first);
        while let Some(request) = next {
            if self.waiting.len() >= SWEEP_CALLS {
                self.waiting.retain(|_, answer| !answer.is_closed());
            }
            self.waiting.insert(request.call_id, request.answer);
            self.output.extend_from_slice(&request.packet);
            next = queue.try_recv().ok();
        }
    }

    /// Hands the answers that are complete to those who wait for them.
    fn dispatch(&mut self) -> io::Result<()> {
        let invalid = |e: String| io::Error::new(io::ErrorKind::InvalidData, e);
        while let Some(incoming) = self.input.next_incoming().map_err(|e| invalid(e.to_string()))? {
            let Incoming::Packet(mut packet) = incoming else { continue };
            let header = split_delimited(&mut packet).map_err(|e| invalid(e.to_string()))?;
            let header = RpcResponseHeaderProto::decode(header).map_err(|e| invalid(e.to_string()))?;
            let call_id = header.call_id as i32;
            let answer = answer(header, packet);
            match (self.waiting.remove(&call_id), answer) {
                (Some(waiting), answer) => {
                    let _ = waiting.send(answer);
                }
                // a fault of the connection concerns everybody who waits
                (None, Err(CallError::Remote(error))) if call_id < 0 => {
                    for (_, waiting) in self.waiting.drain() {
                        let _ = waiting.send(Err(CallError::Remote(error.clone())));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn answer(header: RpcResponseHeaderProto, mut packet: Bytes) -> Result<Answer, CallError> {
    if header.status == RpcStatusProto::Success as i32 {
        let body = if packet.has_remaining() { split_delimited(&mut packet) } else { Ok(packet) };
        return match body {
            Ok(body) => Ok(Answer { header, body }),
            Err(e) => Err(CallError::Malformed(e.to_string())),
        };
    }
    let fatal = header.status == RpcStatusProto::Fatal as i32;
    let unknown = if fatal { ErrorCode::FatalUnknown } else { ErrorCode::ErrorApplication };
    let code = header.error_detail.and_then(|n| ErrorCode::try_from(n).ok()).unwrap_or(unknown);
    Err(CallError::Remote(RemoteException {
        class: header.exception_class_name.unwrap_or_default().into(),
        message: header.error_msg.unwrap_or_default(),
        code,
    }))
}
