//! Strangers on the port of the RPC server.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use hadoop_proto::Message;
use hadoop_proto::common::RpcResponseHeaderProto;
use hadoop_proto::frame::split_delimited;

use super::fixture::shared;

/// Everything the server says until it closes, which it must do within 10 s.
fn say(port: u16, bytes: &[u8], close: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    stream.write_all(bytes).expect("written");
    if close {
        stream.shutdown(Shutdown::Write).expect("half closed");
    }
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return answer,
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
            // bytes that it had not read may end the connection so
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return answer,
            Err(e) => panic!("the connection stays open: {e}"),
        }
    }
}

/// The header of the one response packet.
fn header(answer: &[u8]) -> RpcResponseHeaderProto {
    let length = u32::from_be_bytes(answer[..4].try_into().expect("a length"));
    assert_eq!(length as usize + 4, answer.len(), "one packet");
    let mut packet = answer[4..].to_vec().into();
    RpcResponseHeaderProto::decode(split_delimited(&mut packet).expect("a header")).expect("a header")
}

/// mtth/hdfs#164, #171.
#[test]
fn t23_http_or_an_old_client_on_the_rpc_port() {
    let Some(node) = shared() else { return };
    let port = node.port();
    let get = String::from_utf8(say(port, b"GET / HTTP/1.1\r\n\r\n", false)).expect("text");
    assert!(get.starts_with("HTTP/1.1 404 Not Found\r\n") && get.contains("IPC port"), "{get}");

    let put = header(&say(port, b"PUT /webhdfs/v1/x HTTP/1.1\r\n\r\n", false));
    assert_eq!(put.call_id as i32, -1);
    assert_eq!(put.status, hadoop_proto::common::rpc_response_header_proto::RpcStatusProto::Fatal as i32);
    assert_eq!(put.exception_class_name(), "org.apache.hadoop.ipc.RPC$VersionMismatch");
    let text = "Server IPC version 9 cannot communicate with client version 47";
    assert!(put.error_msg().contains(text), "{}", put.error_msg());

    let old = say(port, b"hrpc\x04\x00\x00\x00", false);
    let text = String::from_utf8_lossy(&old);
    assert!(text.contains("org.apache.hadoop.ipc.RPC$VersionMismatch"), "{text}");
    assert!(text.contains("Server IPC version 9 cannot communicate with client version 4"), "{text}");
    assert_eq!(old[..8], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "call -1, fatal: the form before version 9");

    let auth = say(port, b"hrpc\x09\x00\x05", false);
    let text = String::from_utf8_lossy(&auth);
    assert!(text.contains("org.apache.hadoop.ipc.IpcException"), "{text}");

    assert_eq!(say(port, b"hrp", true), b"", "three bytes, then the end");
    assert!(node.superuser().exists("/"), "the server goes on");
}

/// apache/hadoop#7602 (HDFS-17769), Kimahriman/hdfs-native#7: state ids are off by default.
#[test]
fn t72_no_state_id_unless_it_is_switched_on() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    client.mkdirs("/t72").expect("mkdirs");
    let header = client.header_of("msync", &hadoop_proto::hdfs::MsyncRequestProto {});
    assert_eq!(header.state_id.unwrap_or(0), 0);
}
