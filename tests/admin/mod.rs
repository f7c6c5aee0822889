//! Purpose: what administrators see and do: the audit log, reports, checks, settings that change while the NameNode runs.
//! Called by: the integration test binary.
//! Calls: `support`, and of the trials the conversations and their instruments.
//! Never: looks into the NameNode; takes an outcome for right that the Java NameNode does not have.
//! Invariants: what is right was recorded from the Java NameNode (`IRONROOT_RECORD` with `IRONROOT_PEERS_NAMENODE=java`).

mod audit;
mod checkpointer;
mod commands;
mod fsck;
