//! Purpose: protocol meaning: `service` translates RPC calls into operations and back, `http` serves JMX and the pages; `trash` empties the trash.
//! Called by: the binary's node assembly.
//! Calls: engine (runs operations), ops (requests and replies), rpc and security (transport and callers), observe (texts of refusals).
//! Never: decides an operation, holds the state lock over an await or while it encodes more than one hold has read.
//! Invariants: what a method answers is decided by the operation; this layer only translates, and every refusal goes through `observe`.

mod assembly;
pub mod http;
pub mod service;
pub mod trash;

pub use assembly::{BoundPort, Servers, serve};
