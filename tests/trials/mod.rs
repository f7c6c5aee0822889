//! Purpose: what people who run or talk to a NameNode reported in public, each as a black-box test of its own, and recorded conversations.
//! Called by: the integration test binary.
//! Calls: `support`, and as instruments the RPC client and the messages of the wire.
//! Never: looks into the NameNode; takes an outcome for right that the Java NameNode does not have, except where it has the reported fault.
//! Invariants: tests that share a NameNode keep to folders of their own; a trial that Hadoop fails says so when it is left out there.

mod absent;
pub mod answers;
mod attributes;
pub mod client;
pub mod conversation;
pub mod datanode;
mod datanodes;
mod decommission;
mod disk;
pub mod fixture;
mod images;
mod leases;
mod listing;
mod malformed;
mod meta_save;
mod nameless;
mod paths;
mod rename;
mod snapshots;
mod web;
mod wire;
mod writing;

use client::Client;
use datanode::DataNode;
use hadoop_proto::hdfs::ExtendedBlockProto;

/// A closed file with a block of each length, all on `datanode`; answers the blocks.
pub fn write(client: &Client, datanode: &mut DataNode, path: &str, lengths: &[u64]) -> Vec<ExtendedBlockProto> {
    let file = client.create(path).unwrap_or_else(|e| panic!("create {path}: {e}"));
    let mut blocks: Vec<ExtendedBlockProto> = Vec::new();
    for bytes in lengths {
        let previous = blocks.last().cloned();
        let block = add_block(client, path, file, previous);
        datanode.receive(&block, *bytes);
        blocks.push(ExtendedBlockProto { num_bytes: Some(*bytes), ..block });
    }
    assert!(client.complete(path, file, blocks.last().cloned()).unwrap_or_else(|e| panic!("complete {path}: {e}")));
    blocks
}

/// As a client asks for a block: again while replicas of the one before are still being noted, at most 10 s.
fn add_block(client: &Client, path: &str, file: u64, previous: Option<ExtendedBlockProto>) -> ExtendedBlockProto {
    for _ in 0..200 {
        match client.add_block(path, file, previous.clone()) {
            Ok(located) => return located.b,
            Err(refusal) if refusal.is("NotReplicatedYetException", "") => {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            Err(refusal) => panic!("addBlock {path}: {refusal}"),
        }
    }
    panic!("addBlock {path}: not replicated after 10 s")
}
