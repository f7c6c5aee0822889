//! Purpose: what people who run or talk to a NameNode reported in public, each as a black-box test of its own, and recorded conversations.
//! Called by: the integration test binary.
//! Calls: `support`, and as instruments the RPC client and the messages of the wire.
//! Never: looks into the NameNode; takes an outcome for right that the Java NameNode does not have, except where it has the reported fault.
//! Invariants: tests that share a NameNode keep to folders of their own; a trial that Hadoop fails says so when it is left out there.

mod answers;
mod client;
mod conversation;
mod datanode;
mod fixture;
mod paths;
