//! Peers that mean no good, or nothing: each can only harm its own connection, and none takes memory without end.

mod support;

use rpc::Settings;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::{Port, call, port, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Small reproducible noise (xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Bytes that open a connection as alice.
fn opening() -> Vec<u8> {
    let script = include_str!("../../../tests/golden/wire/ping-early.wire").replace("\n  ", "");
    let line = script.lines().find(|l| l.starts_with("> ")).expect("opening").to_owned();
    let digits: Vec<u8> = line[2..].bytes().collect();
    digits.chunks(2).map(|p| u8::from_str_radix(std::str::from_utf8(p).expect("hex"), 16).expect("hex")).collect()
}

async fn still_serves(port: &Port) {
    let client = port.client("alice").await;
    assert_eq!(call(&client, "echo", b"still here").await.unwrap()[..], *b"still here");
}

async fn all_closed(port: &Port) {
    until("all connections closed", || port.server.counters().open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_on_the_port() {
    let port = port(Settings { request_bytes_max: 1 << 20, ..Settings::default() });
    let opening = opening();
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    for round in 0..400usize {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        let length = noise.next() as usize % 300;
        let bytes = match round % 4 {
            0 => noise.bytes(length),
            1 => [b"hrpc\x09\x00\x00".to_vec(), noise.bytes(length)].concat(),
            // well framed, so that the noise reaches the decoders of headers and bodies
            2 => [opening.clone(), (length as u32).to_be_bytes().to_vec(), noise.bytes(length)].concat(),
            // a valid opening with flipped bits
            _ => {
                let mut bytes = opening.clone();
                let at = noise.next() as usize % bytes.len();
                bytes[at] ^= 1 << (noise.next() % 8);
                bytes
            }
        };
        let _ = stream.write_all(&bytes).await;
        if round % 3 == 0 {
            let _ = stream.shutdown().await;
            let _ = tokio::time::timeout(Duration::from_millis(100), stream.read_to_end(&mut Vec::new())).await;
        }
    }
    still_serves(&port).await;
    all_closed(&port).await;
}

#[tokio::test]
async fn oversize_frames_close_their_connection_and_take_no_memory() {
    let port = port(Settings { request_bytes_max: 1 << 20, ..Settings::default() });
    for length in [(1u32 << 20) + 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        stream.write_all(&[&opening()[..], &length.to_be_bytes()].concat()).await.unwrap();
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await.expect("closed");
        assert!(rest.is_empty());
    }
    still_serves(&port).await;
    all_closed(&port).await;
}

/// A frame that announces much and sends little holds little: a thousand such connections stay far below what they announce.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_sockets_hold_little() {
    let port = port(Settings::default());
    let before = resident_kib();
    let mut held = Vec::new();
    for _ in 0..400 {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        stream.write_all(&[&opening()[..], &(100u32 << 20).to_be_bytes(), &[1; 1_000]].concat()).await.unwrap();
        held.push(stream);
    }
    still_serves(&port).await;
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 400 * 256, "{grown} KiB for 400 connections");
    drop(held);
    all_closed(&port).await;
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// One thread serves all: of what a peer has sent ahead only a little is done before others have their turn.
#[tokio::test]
async fn a_peer_that_never_stops_sending_leaves_others_their_turn() {
    let port = port(Settings::default());
    let mut bytes = opening();
    (0..20_000).for_each(|_| bytes.extend_from_slice(&support_request("echo", b"x")));
    let address = port.address;
    let peer = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let mut answers = stream.try_clone().unwrap();
        let reader = std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()));
        std::io::Write::write_all(&mut stream, &bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        reader.join().unwrap()
    });
    let (mut before, mut most) = (0, 0);
    while before < 20_000 {
        tokio::task::yield_now().await;
        let done = port.server.counters().calls.load(Ordering::SeqCst);
        (before, most) = (done, most.max(done - before));
    }
    assert!(most <= 64, "{most} calls were done in one turn");
    peer.join().unwrap().unwrap();
}

/// Calls for a gigabyte of answers that nobody reads: the server stops taking calls instead of keeping the answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_are_bounded() {
    let port = port(Settings { stall: Duration::from_millis(500), ..Settings::default() });
    let mut stream = TcpStream::connect(port.address).await.unwrap();
    let request = support_request("big", &(1u64 << 20).to_be_bytes());
    let mut bytes = opening();
    (0..1_000).for_each(|_| bytes.extend_from_slice(&request));
    stream.write_all(&bytes).await.unwrap();
    // a peer that goes on talking without reading is as stuck as a silent one
    let talker = tokio::spawn(async move { while stream.write_all(&request).await.is_ok() {} });
    until("the server closes the stalled connection", || port.server.counters().open.load(Ordering::SeqCst) == 0).await;
    let answered = port.server.counters().calls.load(Ordering::SeqCst);
    talker.await.unwrap();
    assert!(answered < 64, "{answered} answers of a megabyte were made for a peer that reads none");
    still_serves(&port).await;
}

/// One request packet of the toy protocol.
fn support_request(method: &str, body: &[u8]) -> Vec<u8> {
    use hadoop_proto::common::{RequestHeaderProto, RpcRequestHeaderProto};
    use prost::Message;
    let header = RpcRequestHeaderProto {
        rpc_kind: Some(2),
        rpc_op: Some(0),
        call_id: 5,
        client_id: bytes::Bytes::from_static(b"0123456789abcdef"),
        ..Default::default()
    };
    let names = RequestHeaderProto {
        method_name: method.into(),
        declaring_class_protocol_name: support::PROTOCOL.into(),
        client_protocol_version: 1,
    };
    let mut packet = header.encode_length_delimited_to_vec();
    packet.extend(names.encode_length_delimited_to_vec());
    packet.extend([&[body.len() as u8], body].concat());
    [&(packet.len() as u32).to_be_bytes()[..], &packet].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_connections_come_and_go() {
    let port = port(Settings::default());
    let opening = opening();
    let started = Instant::now();
    for round in 0..3_000usize {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        if round % 3 > 0 {
            stream.write_all(&opening[..(round * 7) % opening.len()]).await.unwrap();
        }
    }
    // the last ones may wait to be accepted still
    while port.server.counters().accepted.load(Ordering::SeqCst) < 3_000 && started.elapsed() < Duration::from_secs(10)
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    all_closed(&port).await;
    assert_eq!(port.server.counters().accepted.load(Ordering::SeqCst), 3_000);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    still_serves(&port).await;
}

/// With room for eight calls in flight, forty of them from ten connections all get through, never more than eight at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_are_bounded() {
    let port = port(Settings { in_flight_max: 8, ..Settings::default() });
    let mut tasks = Vec::new();
    for _ in 0..10 {
        let client = port.client("alice").await;
        for _ in 0..4 {
            let client = client.clone();
            tasks.push(tokio::spawn(async move { call(&client, "slow", &[5]).await.unwrap() }));
        }
    }
    let mut most = 0;
    while tasks.iter().any(|t| !t.is_finished()) {
        most = most.max(port.toy.running.load(Ordering::SeqCst) - port.toy.finished.load(Ordering::SeqCst));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    // a connection looks before it takes a call, so that each worker thread may go one over
    assert!((4..=10).contains(&most), "{most} at a time");
}

#[tokio::test]
async fn connections_are_bounded() {
    let port = port(Settings { connections_max: 3, ..Settings::default() });
    let mut clients = Vec::new();
    for _ in 0..3 {
        let client = port.client("alice").await;
        call(&client, "echo", b"").await.unwrap();
        clients.push(client);
    }
    let fourth = port.client("alice").await;
    assert!(call(&fourth, "echo", b"").await.is_err());
    assert_eq!(port.server.counters().dropped.load(Ordering::SeqCst), 1);
    clients.pop();
    until("room again", || port.server.counters().open.load(Ordering::SeqCst) == 2).await;
    still_serves(&port).await;
}

/// Idle connections are closed, a few per scan, while there are more than the threshold; those with a call in flight are not idle.
#[tokio::test]
async fn idle_connections_are_closed_above_the_threshold() {
    let port = port(Settings {
        idle_threshold: 4,
        idle_after: Duration::from_millis(100),
        idle_scan: Duration::from_millis(50),
        idle_close_max: 2,
        ..Settings::default()
    });
    let busy = port.client("alice").await;
    let slow = tokio::spawn(async move { call(&busy, "slow", &[100]).await });
    let mut clients = Vec::new();
    for _ in 0..9 {
        let client = port.client("alice").await;
        call(&client, "echo", b"").await.unwrap();
        clients.push(client);
    }
    until("closed down to the threshold", || port.server.counters().open.load(Ordering::SeqCst) == 4).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(port.server.counters().open.load(Ordering::SeqCst), 4);
    assert!(slow.await.unwrap().is_ok());
}
