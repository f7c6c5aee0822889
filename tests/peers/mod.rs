//! Purpose: real Hadoop 3.5.0 against the NameNode: clients, DataNodes, viewers, and the Java NameNode that takes over.
//! Called by: the integration test binary.
//! Calls: `support`.
//! Never: decides what is right: that was seen on the Java NameNode (`IRONROOT_PEERS_NAMENODE=java`).
//! Invariants: a test without Hadoop says so (`support::skip`); each test has a cluster of its own and its turn.
mod cached;
mod crash;
mod data;
mod day;
mod directory;
mod interchange;
mod jobs;
mod shell;
mod striped;
mod truncated;
mod zones;
