//! Conversations of real clients with a real NameNode, replayed: the same bytes in must give the same bytes out. Answers of the service are taken from
//! the conversation itself, so what is compared is the transport. Of error texts the stack trace is cut off, and what follows "Error decoding ...:" in ours
//! and theirs, which are the words of two protobuf libraries.

mod support;

use bytes::Bytes;
use hadoop_proto::common::RpcResponseHeaderProto;
use hadoop_proto::common::rpc_response_header_proto::RpcErrorCodeProto;
use prost::Message;
use rpc::{Call, Listener, Outcome, RemoteException, Reply, Service, Settings};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/wire");

#[derive(Debug)]
enum Event {
    Send(Vec<u8>),
    Expect(Vec<u8>),
}

struct Script {
    events: Vec<Event>,
    closed: bool,
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn read_script(path: &Path) -> Script {
    let text = std::fs::read_to_string(path).unwrap().replace("\n  ", "");
    let mut script = Script { events: Vec::new(), closed: false };
    for line in text.lines() {
        match line.split_at_checked(2) {
            Some(("> ", hex)) => script.events.push(Event::Send(bytes_of(hex))),
            Some(("< ", hex)) => script.events.push(Event::Expect(bytes_of(hex))),
            _ if line == "closed" => script.closed = true,
            _ => assert!(line.starts_with('#'), "{line}"),
        }
    }
    script
}

/// Frames of a server's bytes that are answers: header and what follows it. `None` for bytes in the forms of other protocols.
fn answers(mut bytes: &[u8]) -> Option<Vec<(RpcResponseHeaderProto, Vec<u8>)>> {
    let mut answers = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (mut packet, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let header = RpcResponseHeaderProto::decode_length_delimited(&mut packet).ok()?;
        answers.push((header, packet.to_vec()));
        bytes = rest;
    }
    bytes.is_empty().then_some(answers)
}

/// The bytes with error texts cut as the top of this file says.
fn comparable(bytes: &[u8]) -> Vec<u8> {
    let Some(answers) = answers(bytes) else { return bytes.to_vec() };
    let mut out = Vec::new();
    for (mut header, rest) in answers {
        header.error_msg = header.error_msg.map(|text| {
            let first = text.split("\n\tat ").next().unwrap_or("");
            let end =
                if first.starts_with("Error decoding") { first.find(':').unwrap_or(first.len()) } else { first.len() };
            first[..end].to_owned()
        });
        let mut packet = header.encode_length_delimited_to_vec();
        packet.extend(rest);
        out.extend((packet.len() as u32).to_be_bytes());
        out.extend(packet);
    }
    out
}

/// Answers each call as the script's server did.
struct Player {
    replies: HashMap<u32, Result<Bytes, RemoteException>>,
}

impl Player {
    fn new(script: &Script) -> Player {
        let mut replies = HashMap::new();
        for event in &script.events {
            let Event::Expect(bytes) = event else { continue };
            for (header, mut body) in answers(bytes).into_iter().flatten() {
                let reply = if header.status == 0 {
                    let length = prost::decode_length_delimiter(&mut &body[..]).unwrap();
                    Ok(body.split_off(body.len() - length).into())
                } else {
                    Err(RemoteException {
                        class: header.exception_class_name.unwrap().into(),
                        message: header.error_msg.unwrap(),
                        code: RpcErrorCodeProto::try_from(header.error_detail.unwrap()).unwrap(),
                    })
                };
                replies.insert(header.call_id, reply);
            }
        }
        Player { replies }
    }
}

impl Service for Player {
    type Method = ();
    type Note = ();

    /// Names and versions as the NameNode judged them, in words of our own.
    fn find(&self, protocol: &str, version: u64, method: &str) -> Result<(), RemoteException> {
        match (protocol, version, method) {
            ("org.apache.hadoop.hdfs.protocol.ClientProtocol", 1, "nope") => {
                Err(RemoteException::no_such_method(method, protocol))
            }
            ("org.apache.hadoop.hdfs.protocol.ClientProtocol", 1, _) => Ok(()),
            ("org.apache.hadoop.hdfs.protocol.ClientProtocol", ..) => {
                Err(RemoteException::protocol_version(protocol, version, 1))
            }
            _ => Err(RemoteException::no_such_protocol(protocol)),
        }
    }

    fn call(&self, call: Call<()>) -> Outcome<impl Future<Output = Reply> + Send, ()> {
        Outcome::<std::future::Pending<Reply>, ()>::Done(match &self.replies[&(call.header.call_id as u32)] {
            Ok(body) => Reply::Message(body.clone()),
            Err(error) => Reply::Error(error.clone()),
        })
    }
}

async fn replay(path: &Path) {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let script = read_script(path);
    let listener = Listener::bind("golden", &["127.0.0.1:0".parse().unwrap()], 16).unwrap();
    let server =
        listener.serve(Settings::default(), Arc::new(Player::new(&script)), Arc::new(support::users())).unwrap();
    let mut stream = TcpStream::connect(server.addresses()[0]).await.unwrap();
    let limit = Duration::from_secs(5);
    for event in &script.events {
        match event {
            Event::Send(bytes) => stream.write_all(bytes).await.unwrap(),
            Event::Expect(expected) => {
                let expected = comparable(expected);
                let mut got = vec![0; expected.len()];
                // ours may be shorter or longer where texts were cut, so whole packets are read
                if answers(&expected).is_some() {
                    got = tokio::time::timeout(limit, packets(&mut stream, answers(&expected).unwrap().len()))
                        .await
                        .expect(&name);
                } else {
                    tokio::time::timeout(limit, stream.read_exact(&mut got)).await.expect(&name).expect(&name);
                }
                assert_eq!(comparable(&got), expected, "{name}");
            }
        }
    }
    let mut tail = [0; 16];
    let after =
        tokio::time::timeout(Duration::from_millis(if script.closed { 5_000 } else { 50 }), stream.read(&mut tail))
            .await;
    match after {
        Ok(Ok(0) | Err(_)) => assert!(script.closed, "{name}: closed, where the NameNode was not"),
        Ok(Ok(n)) => panic!("{name}: {n} bytes too many"),
        Err(_) => assert!(!script.closed, "{name}: still open"),
    }
}

async fn packets(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..count {
        let length = stream.read_u32().await.unwrap();
        let mut packet = vec![0; length as usize];
        stream.read_exact(&mut packet).await.unwrap();
        all.extend(length.to_be_bytes());
        all.extend(packet);
    }
    all
}

#[tokio::test]
async fn golden_conversations() {
    let mut scripts: Vec<_> = std::fs::read_dir(SCRIPTS).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|e| e == "wire"));
    scripts.sort();
    assert!(scripts.len() > 40, "only {} conversations", scripts.len());
    for script in scripts {
        replay(&script).await;
    }
}
