//! The seam between transport and meaning: what a service is given, and what it gives back.

use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use vocab::Caller;

pub use observe::{ErrorCode, RemoteException};

/// Id of a client process: a UUID of 16 bytes, or empty, or (never seen from a real client) something shorter.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientId {
    bytes: [u8; 16],
    length: u8,
}

impl ClientId {
    /// No id.
    pub const EMPTY: ClientId = ClientId { bytes: [0; 16], length: 0 };

    /// From the bytes in a header; `None` if longer than 16.
    pub fn new(bytes: &[u8]) -> Option<ClientId> {
        let mut id = ClientId { bytes: [0; 16], length: u8::try_from(bytes.len()).ok()? };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }
    /// The bytes as sent.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
    /// The id, if it has its proper 16 bytes.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        (self.length == 16).then_some(self.bytes)
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// What the header of a request says besides the names (`RpcRequestHeaderProto`).
#[derive(Clone, Debug, Default)]
pub struct RequestHeader {
    /// Number of the call within the client; 0 and above for calls.
    pub call_id: i32,
    /// Id of the client process, repeated in the answer.
    pub client_id: ClientId,
    /// 0 for the first attempt, -1 unknown.
    pub retry: i32,
    /// Last transaction the client has seen.
    pub state_id: Option<i64>,
    /// Why the client calls, for the audit log; read only if the port's settings say so.
    pub caller_context: Option<CallerContext>,
}

/// `RPCCallerContextProto`.
#[derive(Clone, Debug)]
pub struct CallerContext {
    /// The text as sent.
    pub context: Arc<str>,
    /// Signature, not checked.
    pub signature: Option<Bytes>,
}

/// One request, its body not decoded yet.
#[derive(Debug)]
pub struct Call<M> {
    /// What [`Service::find`] made of the protocol and method names.
    pub method: M,
    /// Version of the protocol that the client has.
    pub client_version: u64,
    /// Ids and context.
    pub header: RequestHeader,
    /// Who calls, groups resolved.
    pub caller: Caller,
    /// The encoded request message, without its length.
    pub body: Bytes,
    /// When the bytes were read.
    pub received: Instant,
}

/// Answer to a call.
#[derive(Debug)]
pub enum Reply {
    /// The encoded response message, without a length before it.
    Message(Bytes),
    /// An exception.
    Error(RemoteException),
}

impl Reply {
    /// Whether the connection closes after it.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Reply::Error(error) if error.is_fatal())
    }
}

impl From<RemoteException> for Reply {
    fn from(e: RemoteException) -> Reply {
        Reply::Error(e)
    }
}

/// What a service makes of a call.
#[derive(Debug)]
pub enum Outcome<F, N> {
    /// The answer, to leave at once.
    Done(Reply),
    /// The answer, to leave when [`Service::reached`] is at the mark: only then what it rests on can no longer be lost.
    Held {
        /// The answer.
        reply: Reply,
        /// The mark. Marks of later calls of a connection are never lower.
        mark: u64,
        /// What [`Service::noted`] gets when the mark is reached, whether or not the connection lasts so long.
        note: Option<N>,
    },
    /// Not done yet. The future is polled once on the connection's own task, and parked if it is not done by then; answers leave in the order
    /// of their completion.
    Later(F),
}

/// What a port serves. One value may serve several ports.
pub trait Service: Send + Sync + 'static {
    /// A method of the service: cheap to copy, such as a reference to its row in a static table.
    type Method: Copy + Send + Sync + 'static;
    /// What a service leaves with a held answer, such as the line of a log.
    type Note: Send + 'static;

    /// Finds a method by the names in the request, before the body is looked at. Refusals are
    /// [`RemoteException::no_such_protocol`], [`RemoteException::protocol_version`] and [`RemoteException::no_such_method`].
    fn find(&self, protocol: &str, version: u64, method: &str) -> Result<Self::Method, RemoteException>;

    /// Serves one call, on the connection's own task, which goes on with its next call meanwhile if the answer is held or not done. Long
    /// computations must therefore go to a thread of their own before they begin.
    fn call(&self, call: Call<Self::Method>) -> Outcome<impl Future<Output = Reply> + Send, Self::Note>;

    /// How far held answers may leave.
    fn reached(&self) -> u64 {
        u64::MAX
    }

    /// Until [`Service::reached`] is at the mark.
    fn reach(&self, _mark: u64) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Brings [`Service::reached`] to where it can get in a moment, on this thread. For a connection that brings many calls at once, while it has
    /// nothing else to do; may do nothing.
    fn reach_now(&self) {}

    /// The mark of the held answer that came with this is reached. In the order of the calls of a connection.
    fn noted(&self, _note: Self::Note) {}

    /// State id to send along with each answer (`RpcResponseHeaderProto.stateId`), if state alignment is on.
    fn state_id(&self) -> Option<i64> {
        None
    }
}
