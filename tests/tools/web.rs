//! `oiv -p Web`.

use super::golden;
use crate::support::work::{free_port, wait_until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A viewer of an image, until it is dropped.
struct Viewer {
    port: u16,
    process: Child,
}

impl Viewer {
    fn start(image: &str) -> Viewer {
        let port = free_port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ironroot"));
        command.args(["oiv", "-addr", &format!("localhost:{port}"), "-i"]).arg(golden(image));
        let process = command.stderr(Stdio::null()).spawn().expect("the binary starts");
        let viewer = Viewer { port, process };
        wait_until(Duration::from_secs(30), "the viewer listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        viewer
    }

    /// Status and body.
    fn ask(&self, method: &str, target: &str) -> (u64, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sends");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the viewer closes the connection");
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.to_lowercase().contains("\r\nconnection: close"), "{head}");
        let has_type = head.to_lowercase().contains("\r\ncontent-type: application/json; charset=utf-8");
        assert_eq!(has_type, method == "GET", "{head}");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), body.to_owned())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.process.kill().expect("own child");
        self.process.wait().expect("own child");
    }
}

#[test]
fn answers_of_the_web_viewer_equal_hadoops() {
    let images = [
        ("everything", "fsimage/3.5.0/everything-serial/current/fsimage_0000000000000002912"),
        ("symlinks", "fsimage/3.5.0/symlinks/current/fsimage_0000000000000000025"),
    ];
    let recorded = std::fs::read_to_string(golden("tools/web.jsonl")).expect("recorded answers");
    let rows: Vec<Value> = recorded.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for (name, image) in images {
        let viewer = Viewer::start(image);
        let rows = rows.iter().filter(|row| row[0] == name);
        let mut asked = 0;
        for row in rows {
            let (method, target) = (row[1].as_str().expect("a method"), row[2].as_str().expect("a target"));
            let (status, body) = viewer.ask(method, target);
            assert_eq!(
                (status, &*body),
                (row[3].as_u64().expect("a status"), row[4].as_str().expect("a body")),
                "{method} {target}"
            );
            asked += 1;
        }
        assert!(asked > 10, "{name}: {asked} requests");
    }
}

#[test]
fn addresses_that_are_none_are_refused_in_hadoops_words() {
    let image = golden("fsimage/3.5.0/empty/current/fsimage_0000000000000000000");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let thrown = "Exception in thread \"main\" java.lang.IllegalArgumentException: ";
    for (address, status, expected) in [
        ("foo", 1, format!("{thrown}Does not contain a valid host:port authority: foo\n")),
        (":5", 1, format!("{thrown}Does not contain a valid host:port authority: :5\n")),
        ("localhost:abc", 1, format!("{thrown}Does not contain a valid host:port authority: localhost:abc\n")),
        ("localhost:99999", 1, format!("{thrown}port out of range:99999\n")),
        (&format!("127.0.0.1:{port}"), 255, "Encountered exception.  Exiting: Address already in use\n".to_owned()),
    ] {
        let output = super::run(&["oiv", "-p", "web", "-addr", address, "-i", super::text(&image)]);
        assert_eq!(output.status.code(), Some(status), "{address}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "{address}");
    }
}
