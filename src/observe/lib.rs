//! Purpose: what the outside learns about the inside: remote exceptions (Java class, text and code of each refusal), the audit log, counters of calls, who asks most, start-up progress.
//! Called by: rpc, server, the binary.
//! Calls: vocab, hadoop-proto (numbers of error codes).
//! Never: decides anything; knows a method, a port or a file format; blocks, but for the audit log when its queue is full.
//! Invariants: the Java class of every exception that leaves the process is spelled in `remote_exception` and nowhere else.

pub mod audit;
pub mod calls;
pub mod progress;
pub mod remote_exception;
pub mod top;

pub use remote_exception::{ErrorCode, RemoteException};
