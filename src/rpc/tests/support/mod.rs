//! A toy service and a port of it, for the tests of the transport.
#![allow(dead_code)] // each test binary uses its part

use bytes::Bytes;
use rpc::client::{CallError, CallOptions, ClientSettings};
use rpc::{Call, Client, Listener, Outcome, RemoteException, Reply, Server, Service, Settings};
use security::Users;
use security::groups::{GroupSettings, Groups, Provider, parse_overrides};
use security::names::NameRules;
use security::proxy::{Allowed, Hosts, ProxyRule, ProxyRules};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

pub const PROTOCOL: &str = "test.ToyProtocol";

#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// Gives the body back, at once.
    Echo,
    /// Gives the body back after as many milliseconds as its first byte times ten says.
    Slow,
    /// As many bytes as the body says (8 bytes, big endian).
    Big,
    /// An exception with the body as its message.
    Fail,
    /// A fatal one.
    Fatal,
    /// Who calls: `user|real|groups|context|retry|address|method`.
    Who,
    /// Gives the body back when the mark in its first byte is reached.
    Held,
}

#[derive(Default)]
pub struct Toy {
    pub state_id: AtomicI64,
    pub running: AtomicUsize,
    pub finished: AtomicUsize,
    pub reached: tokio::sync::watch::Sender<u64>,
    pub noted: std::sync::Mutex<Vec<u64>>,
}

impl Service for Toy {
    type Method = Method;
    /// The mark of a held answer.
    type Note = u64;

    fn find(&self, protocol: &str, version: u64, method: &str) -> Result<Method, RemoteException> {
        if protocol != PROTOCOL {
            return Err(RemoteException::no_such_protocol(protocol));
        }
        if version != 1 {
            return Err(RemoteException::protocol_version(protocol, version, 1));
        }
        Ok(match method {
            "echo" => Method::Echo,
            "slow" => Method::Slow,
            "big" => Method::Big,
            "fail" => Method::Fail,
            "fatal" => Method::Fatal,
            "held" => Method::Held,
            "who" => Method::Who,
            _ => return Err(RemoteException::no_such_method(method, protocol)),
        })
    }

    fn call(&self, call: Call<Method>) -> Outcome<impl Future<Output = Reply> + Send, u64> {
        match call.method {
            Method::Held => {
                let mark = u64::from(call.body.first().copied().unwrap_or(0));
                Outcome::Held { mark, reply: Reply::Message(call.body), note: Some(mark) }
            }
            _ => Outcome::Later(self.serve(call)),
        }
    }

    fn reached(&self) -> u64 {
        *self.reached.borrow()
    }

    async fn reach(&self, mark: u64) {
        _ = self.reached.subscribe().wait_for(|reached| *reached >= mark).await;
    }

    fn noted(&self, mark: u64) {
        assert!(self.reached() >= mark);
        self.noted.lock().unwrap().push(mark);
    }

    fn state_id(&self) -> Option<i64> {
        Some(self.state_id.load(Ordering::SeqCst)).filter(|&s| s != 0)
    }
}

impl Toy {
    async fn serve(&self, call: Call<Method>) -> Reply {
        self.running.fetch_add(1, Ordering::SeqCst);
        let reply = match call.method {
            Method::Held => unreachable!("served above"),
            Method::Echo => Reply::Message(call.body),
            Method::Slow => {
                tokio::time::sleep(Duration::from_millis(u64::from(call.body[0]) * 10)).await;
                Reply::Message(call.body)
            }
            Method::Big => {
                let length = u64::from_be_bytes(call.body[..8].try_into().expect("eight bytes"));
                Reply::Message(vec![7u8; length as usize].into())
            }
            Method::Fail => RemoteException::application("java.io.IOException", text(&call.body)).into(),
            Method::Fatal => RemoteException::fatal(rpc::ErrorCode::FatalUnknown, text(&call.body)).into(),
            Method::Who => {
                let caller = &call.caller;
                let who = [
                    &*caller.user,
                    caller.real_user.as_deref().unwrap_or(""),
                    &caller.groups.join(","),
                    caller.context.as_deref().unwrap_or(""),
                    &caller.retry.to_string(),
                    &caller.address.ip().to_string(),
                    &format!("{:?}", caller.method),
                ];
                Reply::Message(Bytes::from(who.join("|")))
            }
        };
        self.finished.fetch_add(1, Ordering::SeqCst);
        reply
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn users() -> Users {
    let groups = GroupSettings {
        provider: Provider::Nobody,
        overrides: parse_overrides("alice=staff,dev;super=supergroup;kim=").expect("overrides"),
        ..GroupSettings::default()
    };
    let rule =
        ProxyRule { hosts: Hosts::All, groups: Allowed::None, users: Allowed::Some(["alice".to_owned()].into()) };
    let proxy = ProxyRules::new(HashMap::from([("svc".to_owned(), rule)]));
    Users::new(NameRules::default(), Groups::new(groups), proxy)
}

/// A served port on loopback.
pub struct Port {
    pub server: Server,
    pub toy: Arc<Toy>,
    pub address: SocketAddr,
}

pub fn port(settings: Settings) -> Port {
    port_for(settings, users())
}

pub fn port_for(settings: Settings, users: Users) -> Port {
    let toy = Arc::new(Toy::default());
    let listener = Listener::bind("test", &["127.0.0.1:0".parse().expect("address")], 4_096).expect("bind");
    let server = listener.serve(settings, toy.clone(), Arc::new(users)).expect("serve");
    let address = server.addresses()[0];
    Port { server, toy, address }
}

impl Port {
    pub async fn client(&self, user: &str) -> Client {
        Client::connect(self.address, ClientSettings::new(PROTOCOL, 1, user)).await.expect("connect")
    }
}

pub async fn call(client: &Client, method: &str, body: &[u8]) -> Result<Bytes, CallError> {
    client.call_with(CallOptions::default(), method, body).await.map(|answer| answer.body)
}

/// Waits until a condition holds; fails the test if it does not within ten seconds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within ten seconds: {what}");
}
