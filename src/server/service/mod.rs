//! Purpose: the protocols of the name node: finds what serves a method, makes operations of requests and responses of replies.
//! Called by: rpc (through its `Service` trait).
//! Calls: engine, ops, observe, hadoop-proto.
//! Never: decides an operation; waits while it holds the state lock.
//! Invariants: DataNode commands and answers of writes leave only after the fence; every refusal leaves through `observe::remote_exception`.

pub mod table;
pub mod topology;
