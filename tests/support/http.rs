//! The little HTTP that tests need to ask a NameNode how it is.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Status and body of a GET from 127.0.0.1; None when nobody answers.
pub fn get(port: u16, target: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {target} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// One attribute of a bean of `/jmx` (`NameNodeInfo`, `FSNamesystemState`, ...); None when it cannot be had.
pub fn jmx(port: u16, bean: &str, attribute: &str) -> Option<serde_json::Value> {
    let (status, body) = get(port, &format!("/jmx?qry=Hadoop:service=NameNode,name={bean}"))?;
    if status != 200 {
        return None;
    }
    let answer: serde_json::Value = serde_json::from_str(&body).ok()?;
    answer.get("beans")?.get(0)?.get(attribute).cloned()
}
