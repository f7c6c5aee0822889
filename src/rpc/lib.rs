//! Purpose: Hadoop's RPC as a transport, both ways: listeners, connections, calls in flight, answers; and a client.
//! Called by: server (a `Service` per port), the binary (ports), tests (the client).
//! Calls: hadoop-proto (messages of the transport itself), security (who calls), observe (exceptions).
//! Never: knows a method, a file or a block; decodes the body of a call; waits for one call before it takes the next.
//! Invariants: bytes of one connection can only end that connection; all queues are bounded; every call taken gets one answer or its connection closes.

mod call;
mod calls;
pub mod client;
mod connection;
mod faults;
pub mod gather;
mod handshake;
mod header;
mod held;
mod names;
mod negotiation;
mod reply;
mod server;

pub use call::{Call, CallerContext, ClientId, ErrorCode, Outcome, RemoteException, Reply, RequestHeader, Service};
pub use client::Client;
pub use server::{Listener, PortCounters, Server, Settings};
