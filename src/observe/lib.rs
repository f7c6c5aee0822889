//! Purpose: what the outside learns about the inside: remote exceptions (Java class, text and code of each refusal), start-up progress.
//! Called by: rpc, server, the binary.
//! Calls: vocab, hadoop-proto (numbers of error codes).
//! Never: decides anything; blocks; holds a lock while formatting; knows a method, a port or a file format.
//! Invariants: the Java class of every exception that leaves the process is spelled in `remote_exception` and nowhere else.

pub mod progress;
pub mod remote_exception;

pub use remote_exception::{ErrorCode, RemoteException};
