//! Who asks.

use std::net::SocketAddr;
use std::sync::Arc;

/// How a caller proved who it is (Hadoop's `AuthMethod`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum AuthenticationMethod {
    /// Trusted claim.
    #[default]
    Simple,
    /// Kerberos ticket.
    Kerberos,
    /// Delegation token.
    Token,
    /// Proxy: the real user proved itself, the effective one is claimed.
    Proxy,
}

/// The 16-byte client id and the call id of an RPC: the key of the retry cache. Absent ids are `None` at the holder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RpcIds {
    /// Client id: a UUID made once per client process and protocol.
    pub client_id: [u8; 16],
    /// Call number within the client.
    pub call_id: i32,
}

/// The caller of an operation, as the edge established it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Short name of the effective user.
    pub user: Arc<str>,
    /// Short name of the real user behind a proxied one.
    pub real_user: Option<Arc<str>>,
    /// Groups of the effective user, in the order of the mapping.
    pub groups: Arc<[Arc<str>]>,
    /// How the (real) user proved itself.
    pub method: AuthenticationMethod,
    /// Where the call came from.
    pub address: SocketAddr,
    /// Ids of the call, if it has a client id of 16 bytes and a call id of its own.
    pub rpc_ids: Option<RpcIds>,
    /// Retry count: 0 for the first attempt, -1 unknown.
    pub retry: i32,
    /// Caller context text for the audit log, cut to the configured size.
    pub context: Option<Arc<str>>,
}
