//! The load: writers on connections of their own, and a DataNode that is told to delete.

use super::check::Calls;
use crate::trials::client::{CLIENT_PROTOCOL, Client, block_on};
use crate::trials::datanode::DataNode;
use hadoop_proto::hdfs::*;
use prost::Message;
use rpc::client::{CallOptions, ClientSettings};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Connections.
const WRITERS: i32 = 8;
/// Rounds of each: five calls in a round.
const ROUNDS: i32 = 50;
/// Files with a block that are deleted.
const FILES: usize = 12;
/// Connections with many calls under way at a time.
const STREAMS: i32 = 1;
/// Calls that each of them keeps under way, and rounds of so many.
const UNDER_WAY: i32 = 24;
const STREAM_ROUNDS: i32 = 200;
/// Call numbers of the load start here, so that no other connection's are meant.
const FIRST_CALL: i32 = 1_000_000;

/// The record that a call makes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Asked {
    pub method: &'static str,
    pub path: Vec<u8>,
}

/// Puts the load on the NameNode at `port`; answers what was asked, by call number.
pub fn run(port: u16) -> Calls {
    let mut asked = HashMap::new();
    block_on(async {
        let tasks: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write(port, writer))).collect();
        for task in tasks {
            asked.extend(task.await.expect("a writer"));
        }
    });
    block_on(async {
        let tasks: Vec<_> = (0..STREAMS).map(|stream| tokio::spawn(stream_of_calls(port, WRITERS + stream))).collect();
        for task in tasks {
            asked.extend(task.await.expect("a stream"));
        }
    });
    deletions(port);
    asked
}

/// Calls of many callers on one connection: their thread may make them durable itself.
async fn stream_of_calls(port: u16, writer: i32) -> Calls {
    let settings = ClientSettings::new(CLIENT_PROTOCOL, 1, "hdfs");
    let peer = SocketAddr::from(([127, 0, 0, 1], port));
    let client = rpc::client::Client::connect(peer, settings).await.expect("connects");
    let first = FIRST_CALL * (writer + 1);
    let client = Arc::new(client);
    let caller = |caller: i32| {
        let client = client.clone();
        async move {
            let mut asked = Calls::new();
            for round in 0..STREAM_ROUNDS {
                let number = first + round * UNDER_WAY + caller;
                let path = format!("/w{writer}/s{number}");
                let body = mkdirs(&path).encode_to_vec();
                let options = CallOptions { call_id: Some(number), ..CallOptions::default() };
                client.call_with(options, "mkdirs", &body).await.unwrap_or_else(|e| panic!("mkdirs: {e}"));
                asked.insert(number, Asked { method: "mkdirs", path: path.into_bytes() });
            }
            asked
        }
    };
    let callers: Vec<_> = (0..UNDER_WAY).map(|n| tokio::spawn(caller(n))).collect();
    let mut asked = Calls::new();
    for caller in callers {
        asked.extend(caller.await.expect("a caller"));
    }
    asked
}

fn mkdirs(path: &str) -> MkdirsRequestProto {
    MkdirsRequestProto {
        src: path.into(),
        masked: FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    }
}

async fn write(port: u16, writer: i32) -> Calls {
    let settings = ClientSettings::new(CLIENT_PROTOCOL, 1, "hdfs");
    let peer = SocketAddr::from(([127, 0, 0, 1], port));
    let client = rpc::client::Client::connect(peer, settings).await.expect("connects");
    let mut asked = HashMap::new();
    let mut number = FIRST_CALL * (writer + 1);
    for round in 0..ROUNDS {
        let directory = format!("/w{writer}/d{round}");
        let file = format!("{directory}/f");
        for (method, path, body) in calls(&directory, &file, &format!("holder-{writer}")) {
            number += 1;
            asked.insert(number, Asked { method, path: path.into_bytes() });
            let options = CallOptions { call_id: Some(number), ..CallOptions::default() };
            client.call_with(options, method, &body).await.unwrap_or_else(|e| panic!("{method}: {e}"));
        }
    }
    asked
}

/// The calls of a round: method, path of the record, body.
fn calls(directory: &str, file: &str, holder: &str) -> Vec<(&'static str, String, Vec<u8>)> {
    let mode = |perm| FsPermissionProto { perm };
    let mkdirs = mkdirs(directory);
    let create = CreateRequestProto {
        src: file.into(),
        masked: mode(0o644),
        client_name: holder.into(),
        create_flag: 1,
        create_parent: false,
        replication: 1,
        block_size: 1 << 20,
        ..Default::default()
    };
    let chmod = SetPermissionRequestProto { src: directory.into(), permission: mode(0o700) };
    let renamed = format!("{file}-renamed");
    let rename = RenameRequestProto { src: file.into(), dst: renamed.clone() };
    let delete = DeleteRequestProto { src: renamed.clone(), recursive: false };
    vec![
        ("mkdirs", directory.to_owned(), mkdirs.encode_to_vec()),
        ("create", file.to_owned(), create.encode_to_vec()),
        ("setPermission", directory.to_owned(), chmod.encode_to_vec()),
        ("rename", file.to_owned(), rename.encode_to_vec()),
        ("delete", renamed, delete.encode_to_vec()),
    ]
}

/// Files with a block each, deleted while a DataNode asks for orders.
fn deletions(port: u16) {
    let client = Client::connect(port, "hdfs");
    let mut node = DataNode::start(port, 1);
    let mut blocks = Vec::new();
    for n in 0..FILES {
        let path = format!("/deleted-{n}");
        let file = client.create(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let block = client.add_block(&path, file, None).unwrap_or_else(|e| panic!("{path}: {e}")).b;
        node.receive(&block, 10);
        let last = ExtendedBlockProto { num_bytes: Some(10), ..block.clone() };
        assert_eq!(client.complete(&path, file, Some(last)), Ok(true));
        blocks.push((path, block.block_id));
    }
    for (path, block) in blocks {
        assert_eq!(client.delete(&path, false), Ok(true));
        node.wait_for_invalidation(block);
    }
}
