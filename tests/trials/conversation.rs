//! Scripted conversations: requests and answers of any method as text, with ids and times replaced one to one by names,
//! so that what two NameNodes say can be compared line by line.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::hdfs::ExtendedBlockProto;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor, Value};
use regex::{Captures, Regex};
use rpc::client::{CallOptions, ClientSettings};

use super::client::{Answer, CLIENT_PROTOCOL, Client, Refusal};
use super::datanode::{DATANODE_PROTOCOL, DataNode};

static SCHEMA: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(hadoop_proto::FILE_DESCRIPTOR_SET).expect("the schema's descriptors"));
/// Longer texts are cut in the middle.
const TEXT_CHARS_MAX: usize = 600;
/// Id of nothing.
const UNKNOWN: u64 = 777_777;
/// How long a step marked with `+` is repeated.
const PATIENCE: Duration = Duration::from_secs(10);

/// A kind of number that differs from run to run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    File,
    Block,
    Stamp,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Kind::File => 'F',
            Kind::Block => 'B',
            Kind::Stamp => 'G',
        }
    }

    fn of_field(name: &str) -> Option<Kind> {
        match name {
            "fileId" | "inodeId" => Some(Kind::File),
            "blockId" => Some(Kind::Block),
            "generationStamp" | "genStamp" | "newGenStamp" => Some(Kind::Stamp),
            _ => None,
        }
    }
}

/// Names given to numbers in the order of their first appearance: F1, F2, B1, G1.
#[derive(Default)]
struct Names {
    known: HashMap<Kind, Vec<u64>>,
    /// Labels of the script: `b1.block` to B3.
    labels: HashMap<String, String>,
    /// Long parts that come again and again, in full at their first appearance.
    parts: Vec<String>,
}

impl Names {
    fn name(&mut self, kind: Kind, number: u64) -> String {
        let known = self.known.entry(kind).or_default();
        let at = known.iter().position(|n| *n == number).unwrap_or_else(|| {
            known.push(number);
            known.len() - 1
        });
        format!("{}{}", kind.letter(), at + 1)
    }

    fn known(&self, kind: Kind, number: u64) -> Option<String> {
        let at = self.known.get(&kind)?.iter().position(|n| *n == number)?;
        Some(format!("{}{}", kind.letter(), at + 1))
    }

    /// Number of a part that is shown in full only once, and whether this is that time.
    fn part(&mut self, field: &str, body: &str) -> Option<(usize, bool)> {
        if !matches!(field, "locs" | "di" | "datanodeInfo" | "blockToken" | "storageReports") {
            return None;
        }
        if let Some(at) = self.parts.iter().position(|part| part == body) {
            return Some((at + 1, false));
        }
        self.parts.push(body.to_owned());
        Some((self.parts.len(), true))
    }

    /// Label `x` takes the first file, block and stamp of an answer: `$x.file`, `$x.block`, `$x.stamp`.
    fn label(&mut self, label: &str, answer: &str) {
        static NAMED: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?:fileId|blockId|generationStamp|newGenStamp): ([FBG]\d+)").expect("a pattern")
        });
        for part in ["file", "block", "stamp"] {
            self.labels.remove(&format!("{label}.{part}"));
        }
        for found in NAMED.captures_iter(answer) {
            let part = match found[1].as_bytes()[0] {
                b'F' => "file",
                b'B' => "block",
                _ => "stamp",
            };
            self.labels.entry(format!("{label}.{part}")).or_insert_with(|| found[1].to_owned());
        }
    }

    /// The number behind `label.part`; one that nothing has if an earlier answer was not as it was recorded.
    fn number(&self, label: &str) -> u64 {
        let Some(name) = self.labels.get(label) else { return UNKNOWN };
        let kind = match name.as_bytes().first() {
            Some(b'F') => Kind::File,
            Some(b'B') => Kind::Block,
            _ => Kind::Stamp,
        };
        let at: usize = name[1..].parse().expect("a number after the letter");
        self.known[&kind][at - 1]
    }
}

/// Text put for the bytes of a `string` field that are no UTF-8.
pub struct RawBytes<'a> {
    /// As long as `bytes`.
    pub placeholder: &'a str,
    pub bytes: &'a [u8],
}

/// One NameNode, asked step by step.
pub struct Conversation {
    port: u16,
    names: Names,
    clients: BTreeMap<String, Client>,
    nodes: BTreeMap<String, DataNode>,
    pool: String,
    started_ms: u64,
}

impl Conversation {
    pub fn new(port: u16) -> Self {
        let pool = DataNode::new(port, 99).pool;
        let started_ms = now_ms();
        Self { port, names: Names::default(), clients: BTreeMap::new(), nodes: BTreeMap::new(), pool, started_ms }
    }

    /// The NameNode was started again: connections are new, what names stand for stays.
    pub fn restarted(&mut self) {
        self.clients.clear();
        let port = self.port;
        self.nodes.values_mut().for_each(|node| node.reconnect(port));
    }

    /// One step. `who` is a user, `user#CALL` or `user#CALL!RETRY` for a chosen call id and retry count, or `dnN`.
    /// A method with `+` is repeated until its answer is neither false nor without commands; one with `@x` gives the
    /// label x to the file, block and stamp of its answer, which later requests name `$x.block`; `$POOL` is the block pool.
    pub fn step(&mut self, who: &str, method: &str, request: &str) -> String {
        let request = self.expand(request);
        let (method, label) = method.split_once('@').map_or((method, None), |(method, label)| (method, Some(label)));
        let (method, patient) = method.strip_suffix('+').map_or((method, false), |method| (method, true));
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let answer = match who.strip_prefix("dn") {
                Some(_) => self.datanode_step(who, method, &request),
                None if who == "node" => self.node_call(method, &request),
                None => self.call(who, method, &request, None),
            };
            let waiting = answer == "result: false" || (method == "heartbeat" && !answer.contains("cmds"));
            if !patient || !waiting || std::time::Instant::now() > end {
                if let Some(label) = label {
                    self.names.label(label, &answer);
                }
                return answer;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A call of the DataNode protocol, its request in protobuf's text format; what follows ` ## ` is `OLD => NEW`, to be
    /// changed in it.
    fn node_call(&mut self, method: &str, request: &str) -> String {
        let service =
            SCHEMA.get_service_by_name("hadoop.hdfs.datanode.DatanodeProtocolService").expect("in the schema");
        let descriptor = service.methods().find(|m| m.name() == method).unwrap_or_else(|| panic!("no method {method}"));
        let (request, change) = request.split_once(" ## ").unwrap_or((request, ""));
        let (old, new) = change.split_once(" => ").unwrap_or((" ", " "));
        let request = request.replace(old, new);
        let message = DynamicMessage::parse_text_format(descriptor.input(), &request);
        let message = message.unwrap_or_else(|e| panic!("{method} {request}: {e}"));
        let body = prost::Message::encode_to_vec(&message);
        let port = self.port;
        let client =
            self.clients.entry("node".to_owned()).or_insert_with(|| Client::speak(port, DATANODE_PROTOCOL, "hdfs"));
        let answer = client.raw(CallOptions::default(), method, &body).map(|body| decode(descriptor.output(), &body));
        self.show(answer)
    }

    /// A call of the client protocol, its request in protobuf's text format.
    pub fn call(&mut self, who: &str, method: &str, request: &str, raw: Option<&RawBytes<'_>>) -> String {
        let (descriptor, body) = encode(method, request, raw);
        self.call_bytes(who, &descriptor, &body)
    }

    /// A call with any bytes for its request.
    pub fn call_bytes(&mut self, who: &str, method: &MethodDescriptor, body: &[u8]) -> String {
        let (user, options) = options(who);
        let port = self.port;
        let client = self.clients.entry(user.to_owned()).or_insert_with(|| connect(port, user)).clone();
        let answer = match client.exchange(options, method.name(), body) {
            Ok(answer) => answer,
            Err(broken) => {
                self.clients.remove(user);
                return format!("? {}", self.tidy_text(&broken));
            }
        };
        let decoded = answer.map(|body| decode(method.output(), &body));
        self.show(decoded)
    }

    fn show(&mut self, answer: Answer<DynamicMessage>) -> String {
        match answer {
            Ok(message) => {
                let text = self.message(&message);
                if text.is_empty() { "-".to_owned() } else { text }
            }
            Err(refusal) => self.refusal(&refusal),
        }
    }

    /// `! class: message`, with the error code where it is not that of an ordinary exception.
    fn refusal(&mut self, refusal: &Refusal) -> String {
        let code = if refusal.code == "ErrorApplication" { String::new() } else { format!(" ({})", refusal.code) };
        let message = self.tidy_text(&refusal.message);
        format!(
            "! {}{code}: {}",
            refusal.class,
            cut(&message.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r"))
        )
    }

    fn datanode_step(&mut self, who: &str, method: &str, request: &str) -> String {
        let number: u32 = who[2..].parse().expect("dnN");
        let port = self.port;
        let node = self.nodes.entry(who.to_owned()).or_insert_with(|| DataNode::new(port, number));
        let words: Vec<u64> = request.split_whitespace().map(|w| w.parse().unwrap_or_else(|_| panic!("{w}"))).collect();
        let block = |pool: &str| ExtendedBlockProto {
            pool_id: pool.to_owned(),
            block_id: words[0],
            generation_stamp: words[1],
            num_bytes: words.get(2).copied(),
        };
        let bytes = words.get(2).copied().unwrap_or(0);
        let answer = match method {
            "register" => node.register().map(|m| transcode("hadoop.hdfs.datanode.DatanodeRegistrationProto", &m)),
            "heartbeat" => node.heartbeat().map(|m| transcode("hadoop.hdfs.datanode.HeartbeatResponseProto", &m)),
            "report" => node.report().map(|m| transcode("hadoop.hdfs.datanode.BlockReportResponseProto", &m)),
            "receive" => {
                node.receive(&block(&node.pool), bytes);
                return "-".to_owned();
            }
            "forget" => {
                node.forget(words[0]);
                return "-".to_owned();
            }
            "receiving" => node.notify(&block(&node.pool), bytes, BlockStatus::Receiving).map(|()| nothing()),
            "deleted" => node.notify(&block(&node.pool), bytes, BlockStatus::Deleted).map(|()| nothing()),
            // block, old stamp, length, new stamp
            "commit" => node.commit_synchronization(&block(&node.pool), words[3], bytes).map(|()| nothing()),
            other => panic!("no DataNode step {other}"),
        };
        self.show(answer)
    }

    /// What the script's names stand for.
    pub fn expand(&self, request: &str) -> String {
        static NAME: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\$(\w+\.(?:file|block|stamp))").expect("a pattern"));
        static NODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$REG(\d+)").expect("a pattern"));
        let text = request.replace("$POOL", &self.pool);
        let text = NODE.replace_all(&text, |found: &Captures<'_>| {
            let node = DataNode::new(self.port, found[1].parse().expect("digits"));
            transcode("hadoop.hdfs.datanode.DatanodeRegistrationProto", &node.registration).to_text_format()
        });
        NAME.replace_all(&text, |found: &Captures<'_>| self.names.number(&found[1]).to_string()).into_owned()
    }

    /// A message as one line, ids and times by name.
    fn message(&mut self, message: &DynamicMessage) -> String {
        let mut text = String::new();
        for (field, value) in message.fields() {
            let order = locations_order(message);
            match value {
                Value::List(values) => {
                    let mut values: Vec<&Value> = values.iter().collect();
                    if let Some(order) = order.filter(|order| order.len() == values.len()) {
                        values = order.iter().map(|at| values[*at]).collect();
                    } else if field.name() == "di" || field.name() == "datanodeStorageReports" {
                        values.sort_by_key(|value| value.to_string());
                    }
                    values.into_iter().for_each(|value| self.field(&mut text, &field, value));
                }
                value => self.field(&mut text, &field, value),
            }
        }
        for unknown in message.unknown_fields() {
            let _ = write!(text, " ?{}", unknown.number());
        }
        text.trim_start().to_owned()
    }

    fn field(&mut self, text: &mut String, field: &FieldDescriptor, value: &Value) {
        let name = field.name();
        let shown = match value {
            Value::Message(message) => {
                let body = self.message(message);
                let _ = match self.names.part(name, &body) {
                    Some((part, false)) => write!(text, " {name}: ={part}"),
                    Some((part, true)) => write!(text, " {name} ={part} {{ {body} }}"),
                    None => write!(text, " {name} {{ {body} }}"),
                };
                return;
            }
            Value::U64(n) => self.number(name, *n),
            Value::U32(n) if name == "namespceID" => self.opaque("namespace", u64::from(*n)),
            Value::EnumNumber(n) => enum_name(field, *n),
            Value::String(s) if name == "clusterID" => format!("{:?}", if s.is_empty() { "" } else { "CID" }),
            Value::String(s) => format!("{:?}", cut(&self.tidy_text(s))),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(s) => format!("{:?}", cut(s)),
                Err(_) => format!("\"{}\"", cut(&bytes.escape_ascii().to_string())),
            },
            Value::U32(n) => (*n as i32).to_string(),
            Value::I32(n) => n.to_string(),
            Value::I64(n) => self.number(name, *n as u64),
            other => other.to_string(),
        };
        let _ = write!(text, " {name}: {shown}");
    }

    fn number(&mut self, name: &str, number: u64) -> String {
        // an open file's own id; those of this protocol's other fields of the name are small
        let kind = Kind::of_field(name).or_else(|| (name == "id" && number > 16_384).then_some(Kind::File));
        if let Some(kind) = kind.filter(|_| number != 0 && number != u64::MAX) {
            return self.names.name(kind, number);
        }
        match name {
            "lastUpdate" | "lastUpdateMonotonic" | "lastBlockReportTime" | "lastBlockReportMonotonic" => "T".to_owned(),
            "fullBlockReportLeaseId" | "cTime" => self.opaque(name, number),
            _ if self.is_recent(number) => "T".to_owned(),
            _ => (number as i64).to_string(),
        }
    }

    /// Zero, or something.
    fn opaque(&self, name: &str, number: u64) -> String {
        if number == 0 { "0".to_owned() } else { name.to_uppercase() }
    }

    /// Whether it is a time of this conversation, in ms since 1970.
    fn is_recent(&self, number: u64) -> bool {
        (self.started_ms - 600_000..=now_ms() + 3_600_000).contains(&number)
    }

    /// A message of the server without what differs from run to run.
    fn tidy_text(&mut self, text: &str) -> String {
        static BLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"blk_(-?\d+)_(\d+)").expect("a pattern"));
        static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d{5,}").expect("a pattern"));
        static SECONDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"in \d+ seconds").expect("a pattern"));
        let text = text.replace(&self.pool, "POOL").replace(&format!(":{}", self.port), ":PORT");
        let text = SECONDS.replace_all(&text, "in N seconds").into_owned();
        let text = BLOCK.replace_all(&text, |found: &Captures<'_>| {
            let number = |at: usize| found[at].parse::<i64>().map_or(0, |n| n as u64);
            let block = self.names.known(Kind::Block, number(1)).unwrap_or_else(|| found[1].to_owned());
            let stamp = self.names.known(Kind::Stamp, number(2)).unwrap_or_else(|| found[2].to_owned());
            format!("blk_{block}_{stamp}")
        });
        let number = |found: &Captures<'_>| {
            let Ok(number) = found[0].parse::<u64>() else { return found[0].to_owned() };
            let known = [Kind::File, Kind::Block].iter().find_map(|kind| self.names.known(*kind, number));
            known.unwrap_or_else(|| if self.is_recent(number) { "T".to_owned() } else { found[0].to_owned() })
        };
        NUMBER.replace_all(&text, number).into_owned()
    }
}

/// A client keeps its id when it connects again: that is how a repeated call is known.
fn connect(port: u16, user: &str) -> Client {
    let mut settings = ClientSettings::new(CLIENT_PROTOCOL, 1, user);
    let mut id = [0x2d; 16];
    id[..user.len()].copy_from_slice(user.as_bytes());
    settings.client_id = Some(id);
    Client::with_settings(port, settings)
}

/// `user#7!1`: call id 7, retry count 1.
fn options(who: &str) -> (&str, CallOptions) {
    let Some((user, call)) = who.split_once('#') else { return (who, CallOptions::default()) };
    let (call, retry) = call.split_once('!').unwrap_or((call, "0"));
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{who}"));
    // far from the ids that the connection counts itself
    (user, CallOptions { call_id: Some(1_000_000 + number(call)), retry: number(retry), ..Default::default() })
}

/// All methods of the client protocol.
pub fn methods() -> Vec<MethodDescriptor> {
    SCHEMA.get_service_by_name("hadoop.hdfs.ClientNamenodeProtocol").expect("in the schema").methods().collect()
}

/// The method of this name.
pub fn method(name: &str) -> MethodDescriptor {
    static ALL: LazyLock<HashMap<String, MethodDescriptor>> =
        LazyLock::new(|| methods().into_iter().map(|m| (m.name().to_owned(), m)).collect());
    ALL.get(name).unwrap_or_else(|| panic!("no method {name}")).clone()
}

/// A request in protobuf's text format as bytes, some of them put in the place of text.
pub fn encode(name: &str, request: &str, raw: Option<&RawBytes<'_>>) -> (MethodDescriptor, Vec<u8>) {
    let descriptor = method(name);
    let message = DynamicMessage::parse_text_format(descriptor.input(), request);
    let message = message.unwrap_or_else(|e| panic!("{name} {request}: {e}"));
    let mut body = prost::Message::encode_to_vec(&message);
    if let Some(RawBytes { placeholder, bytes }) = raw {
        assert_eq!(placeholder.len(), bytes.len(), "lengths are already encoded");
        while let Some(at) = body.windows(bytes.len()).position(|window| window == placeholder.as_bytes()) {
            body[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
    (descriptor, body)
}

fn decode(descriptor: MessageDescriptor, body: &[u8]) -> DynamicMessage {
    let name = descriptor.full_name().to_owned();
    DynamicMessage::decode(descriptor, body).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn transcode(name: &str, message: &impl prost::Message) -> DynamicMessage {
    decode(SCHEMA.get_message_by_name(name).unwrap_or_else(|| panic!("no {name}")), &message.encode_to_vec())
}

fn nothing() -> DynamicMessage {
    DynamicMessage::new(method("msync").output())
}

fn enum_name(field: &FieldDescriptor, number: i32) -> String {
    let kind = field.kind();
    let value = kind.as_enum().and_then(|e| e.get_value(number).map(|value| value.name().to_owned()));
    value.unwrap_or_else(|| number.to_string())
}

/// Replicas of a located block come in random order: their order by DataNode.
fn locations_order(message: &DynamicMessage) -> Option<Vec<usize>> {
    let nodes = message.get_field_by_name("locs")?;
    let nodes: Vec<String> = nodes.as_list()?.iter().map(ToString::to_string).collect();
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|at| &nodes[*at]);
    Some(order)
}

fn cut(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= TEXT_CHARS_MAX {
        return text.to_owned();
    }
    let (head, tail): (String, String) = (chars[..120].iter().collect(), chars[chars.len() - 60..].iter().collect());
    format!("{head}...({} chars)...{tail}", chars.len())
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("in range")
}
