//! What a name node must answer before its load counts: status and blocks of files taken at random, and the count of all. Asked over its RPC port, some
//! hundred calls on their way at a time.

use hadoop_proto::wire::{Cursor, Sink, Value};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// A file as the generator made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub path: String,
    pub id: u64,
    pub length: u64,
    pub blocks: u64,
}

/// What a namespace must answer.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    /// Files taken at random.
    pub sample: Vec<Known>,
}

/// Calls on their way at a time.
const WINDOW: usize = 256;
const PATIENCE: Duration = Duration::from_secs(900);
const CLIENT_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
const SUCCESS: u64 = 0;

/// An answer: the message, or the text of a refusal.
type Answer = Result<Vec<u8>, String>;

struct Client {
    stream: TcpStream,
    next: u64,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The user of this process, whom a name node started by it obeys.
fn whoami() -> Vec<u8> {
    let name = Command::new("id").arg("-un").output().map(|output| output.stdout).unwrap_or_default();
    name.trim_ascii().to_vec()
}

fn request_header(call: i64) -> Vec<u8> {
    let mut header = Vec::new();
    header.put_varint_field(1, 2);
    header.put_varint_field(2, 0);
    header.put_varint_field(3, hadoop_proto::wire::zigzag(call));
    header.put_bytes_field(4, b"bench-startup-16");
    header
}

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    parts.iter().for_each(|part| body.put_delimited(part));
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

impl Client {
    fn new(port: u16) -> io::Result<Client> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let (mut user, mut context) = (Vec::new(), Vec::new());
        user.put_bytes_field(1, &whoami());
        context.put_bytes_field(2, &user);
        context.put_bytes_field(3, CLIENT_PROTOCOL.as_bytes());
        // call -3 says who calls
        stream.write_all(b"hrpc\x09\x00\x00")?;
        stream.write_all(&framed(&[&request_header(-3), &context]))?;
        Ok(Client { stream, next: 0 })
    }

    fn send(&mut self, method: &str, message: &[u8]) -> io::Result<()> {
        let mut header = Vec::new();
        header.put_bytes_field(1, method.as_bytes());
        header.put_bytes_field(2, CLIENT_PROTOCOL.as_bytes());
        header.put_varint_field(3, 1);
        let call = self.next as i64;
        self.next += 1;
        self.stream.write_all(&framed(&[&request_header(call), &header, message]))
    }

    /// The next answer, and to which call.
    fn receive(&mut self) -> io::Result<(u64, Answer)> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame)?;
        let bad = |e| io::Error::other(format!("an answer that is none: {e}"));
        let mut cursor = Cursor::new(&frame);
        let (mut call, mut status, mut message) = (0, SUCCESS, String::new());
        for field in Cursor::new(cursor.bytes().map_err(bad)?).fields() {
            match field.map_err(bad)? {
                (1, Value::Varint(v)) => call = v,
                (2, Value::Varint(v)) => status = v,
                (4 | 5, Value::Bytes(b)) => message = format!("{message} {}", text(b)),
                _ => {}
            }
        }
        let answer = if status == SUCCESS { Ok(cursor.bytes().map_err(bad)?.to_vec()) } else { Err(message) };
        Ok((call, answer))
    }

    /// Asks the same of all files, and looks at each answer.
    fn all(
        &mut self,
        method: &str,
        files: &[Known],
        request: impl Fn(&Known) -> Vec<u8>,
        check: impl Fn(&Known, Answer) -> Result<(), String>,
    ) -> Result<(), String> {
        let failed = |e: io::Error| format!("{method}: {e}");
        let (first, mut sent) = (self.next, 0);
        for received in 0..files.len() {
            while sent < files.len() && sent < received + WINDOW {
                self.send(method, &request(&files[sent])).map_err(failed)?;
                sent += 1;
            }
            let (call, answer) = self.receive().map_err(failed)?;
            let known = call.checked_sub(first).and_then(|at| files.get(at as usize)).ok_or("an answer to no call")?;
            check(known, answer)?;
        }
        Ok(())
    }
}

/// Makes a directory.
pub fn make_directory(port: u16, path: &str) -> Result<(), String> {
    let mut client = serving(port)?;
    let (mut permission, mut request) = (Vec::new(), Vec::new());
    permission.put_varint_field(1, 0o755);
    request.put_bytes_field(1, path.as_bytes());
    request.put_bytes_field(2, &permission);
    request.put_varint_field(3, 1);
    let (_, answer) =
        client.send("mkdirs", &request).and_then(|()| client.receive()).map_err(|e| format!("mkdirs: {e}"))?;
    answer.map(drop)
}

/// The first message field of this number.
fn message(bytes: &[u8], number: u32) -> Option<&[u8]> {
    Cursor::new(bytes).fields().flatten().find_map(|field| match field {
        (found, Value::Bytes(b)) if found == number => Some(b),
        _ => None,
    })
}
/// A number, 0 if it is not there.
fn number(bytes: &[u8], number: u32) -> u64 {
    let found = Cursor::new(bytes).fields().flatten().find_map(|field| match field {
        (found, Value::Varint(v)) if found == number => Some(v),
        _ => None,
    });
    found.unwrap_or(0)
}

fn status(known: &Known, answer: Answer) -> Result<(), String> {
    const FILE: u64 = 2;
    let answer = answer.map_err(|e| format!("getFileInfo {}: {e}", known.path))?;
    let status = message(&answer, 1).ok_or_else(|| format!("{} is not there", known.path))?;
    let told = (number(status, 1), number(status, 3), number(status, 13));
    let wanted = (FILE, known.length, known.id);
    if told == wanted { Ok(()) } else { Err(format!("status of {}: {told:?}, not {wanted:?}", known.path)) }
}

fn locations(known: &Known, answer: Answer) -> Result<(), String> {
    let answer = match answer {
        Ok(answer) => answer,
        // in safe mode, a file whose blocks were found, and of which no DataNode has told yet
        Err(refusal) if refusal.contains(&format!("Zero blocklocations for {}.", known.path)) => return Ok(()),
        Err(refusal) => return Err(format!("getBlockLocations {}: {refusal}", known.path)),
    };
    let located = message(&answer, 1).ok_or_else(|| format!("{} has no locations", known.path))?;
    let blocks = Cursor::new(located).fields().flatten().filter(|(number, _)| *number == 2).count() as u64;
    let (told, wanted) = ((number(located, 1), blocks), (known.length, known.blocks));
    if told == wanted { Ok(()) } else { Err(format!("locations of {}: {told:?}, not {wanted:?}", known.path)) }
}

/// A connection to a name node that answers calls: Java's tells that its start is over a little before that is so.
fn serving(port: u16) -> Result<Client, String> {
    let since = Instant::now();
    loop {
        let answer = Client::new(port).and_then(|mut client| {
            let mut request = Vec::new();
            request.put_bytes_field(1, b"/");
            client.send("getFileInfo", &request)?;
            let (_, answer) = client.receive()?;
            answer.map(|_| client).map_err(io::Error::other)
        });
        match answer {
            Ok(client) => return Ok(client),
            Err(e) if since.elapsed() > PATIENCE => return Err(format!("RPC port: {e}")),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Asks a name node for all of it.
pub fn check(port: u16, expected: &Expected) -> Result<(), String> {
    let mut client = serving(port)?;
    let of_path = |known: &Known| {
        let mut request = Vec::new();
        request.put_bytes_field(1, known.path.as_bytes());
        request
    };
    let of_range = |known: &Known| {
        let mut request = of_path(known);
        request.put_varint_field(2, 0);
        request.put_varint_field(3, known.length);
        request
    };
    client.all("getFileInfo", &expected.sample, of_path, status)?;
    client.all("getBlockLocations", &expected.sample, of_range, locations)?;
    let root = Known { path: "/".to_owned(), id: 0, length: 0, blocks: 0 };
    client.all("getContentSummary", std::slice::from_ref(&root), of_path, |_, answer| {
        let answer = answer.map_err(|e| format!("getContentSummary /: {e}"))?;
        let summary = message(&answer, 1).ok_or("no summary of /")?;
        let told = (number(summary, 2), number(summary, 3), number(summary, 1));
        let wanted = (expected.files, expected.directories, expected.bytes);
        if told == wanted { Ok(()) } else { Err(format!("count / tells {told:?}, not {wanted:?}")) }
    })
}
