//! Purpose: the protocols of the name node: finds what serves a method, makes operations of requests and responses of replies.
//! Called by: rpc (through its `Service` trait).
//! Calls: engine, ops, observe, hadoop-proto.
//! Never: decides an operation; waits while it holds the state lock.
//! Invariants: DataNode commands and answers of writes leave only after the fence; every refusal leaves through `observe::remote_exception`.

pub(crate) mod audit;
mod checkpoint;
mod client;
pub mod convert;
mod datanode;
mod ha;
mod meta;
mod namenode;
mod reconfiguration;
pub mod reencryption;
mod refresh;
mod signatures;
pub mod table;
pub mod tokens;
pub mod topology;

use blocks::StorageInfo;
use bytes::Bytes;
use engine::{Decided, Engine};
use futures_util::FutureExt;
use hadoop_proto::shape::Shaped;
use hadoop_proto::view::ViewError;
use hadoop_proto::{DecodeError, Message};
use observe::RemoteException;
use observe::audit::{AuditLog, Line};
use observe::calls::CallCounters;
use observe::remote_exception::class;
use ops::table::Retry;
pub use reconfiguration::Reconfiguration;
use rpc::{Call, Outcome, Reply};
use security::Users;
use security::proxy::ProxyRules;
use security::service::ServiceAcls;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use table::{Handler, Method, PortKind};
use topology::Topology;
use vocab::{Caller, Refusal, Txid};

/// Which file system this is, and which software says so.
#[derive(Clone, Debug)]
pub struct Identity {
    /// As in VERSION.
    pub storage: StorageInfo,
    /// Block pool id.
    pub block_pool: Arc<str>,
    /// Hadoop release that this server is compatible with; DataNodes compare it with theirs.
    pub software_version: Arc<str>,
    /// Source revision, as in `versionRequest`.
    pub revision: Arc<str>,
    /// Whether no directory keeps the state from before an upgrade.
    pub upgrade_finalized: Arc<AtomicBool>,
    /// Whether there are other name nodes of this name service.
    pub high_availability: bool,
    /// Whether replies carry the last transaction (`dfs.namenode.state.context.enabled`).
    pub state_context: bool,
    /// Where clients are served, `host:port`.
    pub rpc_address: Arc<str>,
    /// Where the pages are, `host:port`.
    pub http_address: Arc<str>,
}

impl Identity {
    /// Whether no directory keeps the state from before an upgrade.
    pub fn upgrade_finalized(&self) -> bool {
        self.upgrade_finalized.load(Ordering::Acquire)
    }
}

/// What only the assembly can do: read files again, and delete what an upgrade has kept.
pub trait Reload: Send + Sync {
    /// Proxy rules of the configuration as it is now.
    ///
    /// # Errors
    /// What is wrong with it.
    fn proxy_rules(&self) -> Result<ProxyRules, String>;
    /// Who may use which protocol by the policy file as it is now.
    ///
    /// # Errors
    /// What is wrong with it.
    fn service_acls(&self) -> Result<ServiceAcls, String>;
    /// Include and exclude lists as they are now.
    ///
    /// # Errors
    /// A list that cannot be read.
    fn hosts(&self) -> Result<blocks::Hosts, String>;
    /// Deletes the state from before an upgrade in all storage directories.
    ///
    /// # Errors
    /// The disk's.
    fn finalize_upgrade(&self) -> Result<(), String>;
    /// Begins a file of this name in the directory of logs. Also gives its path.
    ///
    /// # Errors
    /// The disk's.
    fn create_log(&self, name: &str) -> Result<(PathBuf, Box<dyn io::Write + Send>), (PathBuf, io::Error)>;
    /// Names of the keys that may be changed while the process runs, sorted.
    fn reconfigurable(&self) -> Vec<String>;
    /// Reads the configuration again and puts in force what has changed and may. Waits for the disk.
    ///
    /// # Errors
    /// A configuration that cannot be read.
    fn reconfigure(&self) -> Result<Vec<Reconfigured>, String>;
    /// A time in the local zone, such as `Mon Nov 30 19:33:40 UTC 2026`.
    fn date(&self, time: vocab::time::TimeMs) -> String;
}

/// What a port has counted.
#[derive(Clone, Debug)]
pub struct PortFigures {
    /// Its number.
    pub port: u16,
    /// What it is called in metrics.
    pub server: &'static str,
    /// What it is for.
    pub kind: PortKind,
    /// Counters of the transport.
    pub transport: Arc<rpc::PortCounters>,
    /// Calls by method.
    pub calls: Arc<CallCounters>,
}

/// A key that was changed, or could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconfigured {
    /// The key.
    pub name: String,
    /// Its value so far.
    pub old: String,
    /// Its value now; `None` if it is not set any more.
    pub new: Option<String>,
    /// Why it was not changed.
    pub error: Option<String>,
}

/// What all ports share.
pub struct Shared {
    /// The running name node.
    pub engine: Arc<Engine>,
    /// Users and groups.
    pub users: Arc<Users>,
    /// Keys of encryption zones, if there is somebody who keeps them.
    pub keys: Option<Arc<security::keys::Keys>>,
    /// Re-encryption of zones.
    pub reencrypting: reencryption::Reencrypting,
    /// How far those who follow the log have come.
    pub followers: Arc<storage::journal::tail::Places>,
    /// Racks.
    pub topology: Topology,
    /// Who we are.
    pub identity: Identity,
    /// Reads files again.
    pub reload: Arc<dyn Reload>,
    /// Figures of the ports, once they serve.
    pub ports: OnceLock<Vec<PortFigures>>,
    /// The audit log.
    pub audit: AuditLog,
    /// Who asks most, if it is counted.
    pub top: Option<observe::top::Top>,
    /// The last change of settings, if there was one.
    pub reconfiguration: Arc<Reconfiguration>,
    /// When the image that was loaded was saved, milliseconds since 1970.
    pub loaded_image_ms: i64,
}

impl Shared {
    /// The newest checkpoint: its last transaction and when it was saved, milliseconds since 1970.
    pub fn newest_checkpoint(&self) -> (u64, i64) {
        let (txid, made) = *self.engine.checkpoints().newest.lock();
        let now = self.engine.now();
        let age = made.map(|made| now.monotonic.0.saturating_sub(made) as i64);
        (txid.0, age.map_or_else(|| self.loaded_image_ms, |age| now.wall.0 - age))
    }
}

/// The service of one port.
pub struct Port {
    shared: Arc<Shared>,
    kind: PortKind,
    host: Arc<str>,
    calls: Arc<CallCounters>,
}

/// The encoded response message, or the exception.
type Answer = Result<Bytes, RemoteException>;

/// What a call that may write has come to, or the exception of a request that is none.
type Writing = Result<Decided<Answer>, RemoteException>;

impl Port {
    /// A port of this kind. `host` is how the name node calls its own host.
    pub fn new(shared: Arc<Shared>, kind: PortKind, host: impl Into<Arc<str>>) -> Port {
        let calls = Arc::new(CallCounters::new(kind.methods().count()));
        Port { shared, kind, host: host.into(), calls }
    }

    /// Counters of its methods.
    pub fn calls(&self) -> Arc<CallCounters> {
        self.calls.clone()
    }

    /// The refusal of a caller who may not use the protocol, where that is looked at.
    ///
    /// Quirk: protocols_are_refused_call_by_call: Hadoop refuses the connection; a caller sees the same exception
    fn unauthorized(&self, call: &Call<Method>) -> Option<RemoteException> {
        let refused = self.shared.users.service_acls()?.authorize(call.method.protocol, &call.caller).err()?;
        Some(RemoteException::application(class::AUTHORIZATION, refused.0))
    }

    /// Serves what needs no waiting; `None` for the rest.
    fn at_once(&self, call: &Call<Method>) -> Option<Answer> {
        let (shared, caller, body) = (&*self.shared, &call.caller, &call.body);
        if let Some(refused) = self.unauthorized(call).or_else(|| unusable_client_id(call)) {
            return Some(Err(refused));
        }
        if let Some(Err(damaged)) = call.method.unread.map(|request| hadoop_proto::shape::check(request, body)) {
            return Some(Err(bad_request(damaged)));
        }
        match call.method.handler {
            Handler::Client(operation) => {
                let request = client::Request::new(shared, operation, caller, body);
                client::at_once(&request).map(|answer| request.audited(answer))
            }
            Handler::Lifeline => Some(datanode::lifeline(shared, caller, body)),
            Handler::Ha(method) => Some(ha::serve(shared, method, caller)),
            Handler::Reconfiguration(method) => {
                let answer = reconfiguration::serve(shared, method, caller);
                audit::other(shared, call.method.handler, caller, &answer);
                Some(answer)
            }
            Handler::Meta(method) => Some(meta::serve(self.kind, method, body.clone())),
            Handler::Missing => Some(Err(unsupported(call.method.name))),
            Handler::Datanode(_) | Handler::Namenode(_) | Handler::Refresh(_) => None,
        }
    }

    /// What a call that may write has come to, and its audit line; `None` for all other calls.
    fn decided(&self, call: &Call<Method>) -> Option<(Writing, Option<Line>)> {
        let Handler::Client(operation) = call.method.handler else { return None };
        let request = client::Request::new(&self.shared, operation, &call.caller, &call.body);
        let writing = client::decided(&request)?;
        let line = match &writing {
            Ok(decided) => request.line(&decided.answer),
            Err(exception) => request.line(&Err(exception.clone())),
        };
        Some((writing, line))
    }
}

/// The refusal of a call that is to be remembered for a repetition, under an id that is none (Hadoop's `RetryCache`). Calls without any id
/// are simply not remembered.
fn unusable_client_id(call: &Call<Method>) -> Option<RemoteException> {
    let remembered = matches!(call.method.handler, Handler::Client(o) if o.row().retry == Retry::AtMostOnce);
    let length = call.header.client_id.as_slice().len();
    if !remembered || call.header.call_id < 0 || length == 0 || call.header.client_id.uuid().is_some() {
        return None;
    }
    let text = format!("Invalid clientId - length is {length} expected length 16");
    Some(Refusal::IllegalArgument(text.into()).into())
}

/// Serves what may wait.
async fn in_time(shared: Arc<Shared>, call: Call<Method>) -> Answer {
    let Call { method, caller, body, .. } = call;
    let (shared, caller) = (&*shared, &caller);
    let answer = match method.handler {
        Handler::Client(operation) => {
            let request = client::Request::new(shared, operation, caller, &body);
            let answer = client::in_time(&request).await;
            return request.audited(answer);
        }
        Handler::Datanode(method) => datanode::serve(shared, method, caller, body).await,
        Handler::Namenode(method) => namenode::serve(shared, method, caller, body).await,
        Handler::Refresh(method) => refresh::serve(shared, method, caller, body).await,
        _ => Err(unsupported(method.name)),
    };
    audit::other(shared, method.handler, caller, &answer);
    answer
}

/// A call of the client protocol that the name node's own user makes, such as a check of files that mends them. It goes the way of all calls: through
/// the fence and into the audit log.
pub(crate) async fn own_call<Q: Message, R: Message + Default + Shaped>(
    shared: &Shared,
    operation: ops::Operation,
    asked: &Q,
) -> Result<R, RemoteException> {
    let (caller, body) = (own_caller(&shared.engine), Bytes::from(asked.encode_to_vec()));
    let request = client::Request::new(shared, operation, &caller, &body);
    let answer = match client::at_once(&request) {
        Some(answer) => answer,
        None => match client::decided(&request) {
            Some(Ok(decided)) => shared.engine.fence(decided).await,
            Some(Err(exception)) => Err(exception),
            None => client::in_time(&request).await,
        },
    };
    decode(request.audited(answer)?)
}

/// The name node's own user.
pub fn own_caller(engine: &Engine) -> Caller {
    Caller {
        user: engine.settings().owner.clone(),
        real_user: None,
        groups: Arc::default(),
        method: vocab::AuthenticationMethod::Simple,
        address: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        rpc_ids: None,
        retry: -1,
        context: None,
    }
}

/// The reply of an answer. A refusal for safe mode says which host is in it, as clients of several name nodes want to know.
fn reply(answer: Answer, host: &str) -> Reply {
    match answer {
        Ok(message) => Reply::Message(message),
        Err(mut exception) => {
            if exception.class == class::SAFE_MODE {
                exception.message.push_str(" NamenodeHostName:");
                exception.message.push_str(host);
            }
            Reply::Error(exception)
        }
    }
}

impl rpc::Service for Port {
    type Method = Method;
    type Note = Line;

    fn find(&self, protocol: &str, version: u64, method: &str) -> Result<Method, RemoteException> {
        self.kind.find(protocol, version, method)
    }

    /// Reads and most writes are done before there is a future; what waits has one of its own on the heap, so that the value that is moved about
    /// is small.
    fn call(&self, mut call: Call<Method>) -> Outcome<impl Future<Output = Reply> + Send, Line> {
        if let Some(context) = &call.header.caller_context {
            let shown = self.shared.audit.context(&context.context, context.signature.as_deref());
            call.caller.context = Some(shown.into());
        }
        let (number, received) = (usize::from(call.method.number), call.received);
        let count = move |refused: bool| self.calls.add(number, refused, received.elapsed());
        if let Some(answer) = self.at_once(&call) {
            count(answer.is_err());
            return Outcome::Done(reply(answer, &self.host));
        }
        match self.decided(&call) {
            Some((Ok(decided), line)) => {
                count(decided.answer.is_err());
                return Outcome::Held {
                    reply: reply(decided.answer, &self.host),
                    mark: decided.rests_on.0,
                    note: line,
                };
            }
            Some((Err(exception), line)) => {
                count(true);
                line.into_iter().for_each(|line| self.noted(line));
                return Outcome::Done(reply(Err(exception), &self.host));
            }
            None => {}
        }
        let waits = Box::pin(in_time(self.shared.clone(), call));
        Outcome::Later(waits.map(move |answer| {
            count(answer.is_err());
            reply(answer, &self.host)
        }))
    }

    /// The line of a write is told when the write is durable.
    fn noted(&self, line: Line) {
        self.shared.audit.hand_over(self.shared.engine.now().wall.0, &line);
    }

    fn reached(&self) -> u64 {
        self.shared.engine.journal().watermark().durable().0
    }

    async fn reach(&self, mark: u64) {
        self.shared.engine.fence(Decided { answer: (), rests_on: Txid(mark) }).await;
    }

    fn reach_now(&self) {
        self.shared.engine.journal().commit_if_brief();
    }

    fn state_id(&self) -> Option<i64> {
        self.shared.identity.state_context.then(|| self.shared.engine.journal().last().0 as i64)
    }
}

/// The words of a refusal as callers get them.
pub(crate) fn refusal_text(refusal: Refusal) -> String {
    RemoteException::from(refusal).message
}

/// Answer to a method that Hadoop has and this server has not.
fn unsupported(method: &str) -> RemoteException {
    RemoteException::unsupported(format!("{method} is not supported by this NameNode"))
}

/// Encodes a response.
fn message(response: &impl Message) -> Answer {
    Ok(response.encode_to_vec().into())
}

/// The response of a method without a result.
const EMPTY: Bytes = Bytes::new();

/// Decodes a request as a Java parser would.
fn decode<M: Message + Default + Shaped>(body: Bytes) -> Result<M, RemoteException> {
    hadoop_proto::decode(body).map_err(bad_request)
}

fn bad_request(error: DecodeError) -> RemoteException {
    RemoteException::bad_request(error.to_string())
}

/// The full account of what a view of `M` would not read.
fn bad_view<M: Message + Default + Shaped>(body: &Bytes, error: ViewError) -> RemoteException {
    match hadoop_proto::decode::<M>(body.clone()) {
        Err(full) => bad_request(full),
        Ok(_) => RemoteException::bad_request(error.to_string()),
    }
}

/// Refuses all but superusers.
pub(crate) fn superuser(shared: &Shared, caller: &Caller, operation: &str) -> Result<(), Refusal> {
    ops::checks::superuser_for(&shared.engine.settings(), caller, operation)
}

#[cfg(test)]
pub(crate) mod tests;
