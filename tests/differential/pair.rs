//! Both NameNodes with their DataNodes, asked the same things.

use super::compare::{Chosen, Pairs};
use super::known;
use crate::support::namenode::Kind;
use crate::trials::client::{CLIENT_PROTOCOL, Client, Refusal};
use crate::trials::conversation::{RawBytes, encode, method};
use crate::trials::datanode::DataNode;
use crate::trials::fixture::Fixture;
use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::datanode::{DatanodeCommandProto, block_command_proto, datanode_command_proto};
use hadoop_proto::hdfs::{AddBlockResponseProto, ExtendedBlockProto};
use prost_reflect::DynamicMessage;
use rpc::client::{CallOptions, ClientSettings};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// DataNodes of each.
const NODES: u32 = 3;
/// Java notes replicas in a thread of its own: how often a call is asked again when only it lags.
const PATIENCE: usize = 40;
/// Saves the namespace.
const SAVE: [(&str, &str); 3] = [
    ("setSafeMode", "action: SAFEMODE_ENTER"),
    ("saveNamespace", "timeWindow: 0 txGap: 0"),
    ("setSafeMode", "action: SAFEMODE_LEAVE"),
];
/// Placeholder for bytes that are no UTF-8.
pub const RAW: RawBytes<'static> = RawBytes { placeholder: "~~raw~~", bytes: b"\xff\xc3(\xf0\x9f\x98\x80" };

pub type Answer = Result<DynamicMessage, Refusal>;

/// One of the two.
pub struct Side {
    fixture: Fixture,
    clients: HashMap<String, Client>,
    is_java: bool,
    /// How often it was started again: call ids begin anew, and must not be those of calls that it remembers.
    lives: u8,
    pub nodes: Vec<DataNode>,
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("in range")
}

impl Side {
    pub(super) fn start(kind: Kind, name: &str) -> Option<Side> {
        let settings = [
            ("dfs.replication", "3"),
            ("dfs.namenode.accesstime.precision", "0"),
            ("dfs.namenode.max.extra.edits.segments.retained", "1"),
            ("dfs.namenode.lease-recheck-interval-ms", "2000"),
        ];
        let mut fixture = Fixture::prepared_as(kind, &format!("{name}-{kind:?}"), &settings)?;
        crate::support::namenode::format(kind, &fixture.site);
        fixture.launch();
        let nodes = (1..=NODES).map(|n| DataNode::start(fixture.port(), n)).collect();
        Some(Side { fixture, clients: HashMap::new(), is_java: kind == Kind::Java, lives: 0, nodes })
    }

    pub(super) fn call(&mut self, user: &str, name: &str, body: &[u8]) -> Answer {
        let (port, lives) = (self.fixture.port(), self.lives);
        let client = self.clients.entry(user.to_owned()).or_insert_with(|| {
            let mut settings = ClientSettings::new(CLIENT_PROTOCOL, 1, user);
            let mut id = [0x2d; 16];
            id[..user.len()].copy_from_slice(user.as_bytes());
            id[15] = lives;
            settings.client_id = Some(id);
            Client::with_settings(port, settings)
        });
        match client.exchange(CallOptions::default(), name, body) {
            Ok(answer) => answer.map(|body| {
                let output = method(name).output();
                DynamicMessage::decode(output, body.as_slice()).unwrap_or_else(|e| panic!("{name}: {e}"))
            }),
            Err(broken) => {
                self.clients.remove(user);
                Err(Refusal { class: "connection".to_owned(), message: broken, code: String::new() })
            }
        }
    }

    /// What DataNodes are told is done at once.
    fn obey(&mut self) -> usize {
        let mut done = 0;
        for at in 0..self.nodes.len() {
            if let Err(refusal) = self.nodes[at].heartbeat() {
                // Java's lease monitor lets a block of a file be recovered that was deleted while a snapshot holds it, and then finds it complete
                let known = refusal.message.contains("where it is not under construction");
                assert!(known && self.is_java, "sendHeartbeat: {refusal}");
            }
            let commands = std::mem::take(&mut self.nodes[at].commands);
            for command in commands {
                done += self.carry_out(at, &command);
            }
        }
        done
    }

    fn carry_out(&mut self, at: usize, command: &DatanodeCommandProto) -> usize {
        use datanode_command_proto::Type;
        let extended = |pool: &str, b: &hadoop_proto::hdfs::BlockProto| ExtendedBlockProto {
            pool_id: pool.to_owned(),
            block_id: b.block_id,
            generation_stamp: b.gen_stamp,
            num_bytes: b.num_bytes,
        };
        if let Some(block_command) = &command.blk_cmd {
            let pool = block_command.block_pool_id.clone();
            for (number, block) in block_command.blocks.iter().enumerate() {
                let block = extended(&pool, block);
                if block_command.action == block_command_proto::Action::Invalidate as i32 {
                    self.nodes[at].forget(block.block_id);
                    let _ = self.nodes[at].notify(&block, 0, BlockStatus::Deleted);
                } else if let Some(targets) = block_command.targets.get(number) {
                    for target in &targets.datanodes {
                        let uuid = target.id.datanode_uuid.clone();
                        if let Some(node) = self.nodes.iter_mut().find(|node| node.id() == uuid) {
                            node.receive(&block, block.num_bytes());
                        }
                    }
                }
            }
            return block_command.blocks.len();
        }
        if command.cmd_type == Type::BlockRecoveryCommand as i32
            && let Some(recovery) = &command.recovery_cmd
        {
            for block in &recovery.blocks {
                self.recover(at, block);
            }
            return recovery.blocks.len();
        }
        0
    }

    /// The recovery ends with what the primary has of the block, or another node: of a group one has the first cell, which is all that there is.
    fn recover(&mut self, at: usize, block: &hadoop_proto::hdfs::RecoveringBlockProto) {
        let b = block.block.b.clone();
        let of_node =
            |node: &DataNode| node.replicas[0].iter().find(|r| r.block_id as u64 == b.block_id).map(|r| r.length);
        let held = of_node(&self.nodes[at]).or_else(|| self.nodes.iter().find_map(of_node));
        let length = block.truncate_block.as_ref().map_or(held.unwrap_or(0), |cut| cut.num_bytes());
        let new = ExtendedBlockProto { generation_stamp: block.new_gen_stamp, num_bytes: Some(length), ..b.clone() };
        let _ = self.nodes[at].commit_synchronization(&b, block.new_gen_stamp, length);
        self.nodes[at].receive(&new, length);
    }

    /// A block goes to the places of the answer. Of a striped group cell 0 has all the bytes, parity cells as many.
    pub(super) fn receive_placed(&mut self, answer: &DynamicMessage, length: u64) {
        let bytes = prost::Message::encode_to_vec(answer);
        let answer: AddBlockResponseProto = prost::Message::decode(bytes.as_slice()).expect("the same bytes");
        let block = answer.block;
        let indices = block.block_indices().to_vec();
        for (at, location) in block.locs.iter().enumerate() {
            let index = indices.get(at).copied().unwrap_or(0);
            // 2 and 3 data units are the smallest here: what is beyond is parity or empty
            if index != 0 && index < 3 {
                continue;
            }
            let internal = ExtendedBlockProto { block_id: block.b.block_id + u64::from(index), ..block.b.clone() };
            if let Some(node) = self.nodes.iter_mut().find(|node| node.id() == location.id.datanode_uuid) {
                node.receive(&internal, length);
            }
        }
    }

    /// The other program goes on with the directory.
    pub(super) fn hand_over(&mut self, kind: Kind) {
        self.fixture.stop();
        (self.fixture.kind, self.is_java) = (kind, kind == Kind::Java);
        self.fixture.launch();
        self.join_again();
    }

    pub(super) fn save(&mut self) {
        for (name, request) in SAVE {
            let body = encode(name, request, None).1;
            self.call("hdfs", name, &body).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    fn join_again(&mut self) {
        self.clients.clear();
        self.lives += 1;
        let port = self.fixture.port();
        for node in &mut self.nodes {
            node.reconnect(port);
            node.join();
        }
        // blocks that nobody has any more keep it in safe mode
        for _ in 0..30 {
            let safe_mode = self.fixture.namenode().jmx("NameNodeInfo", "Safemode");
            if safe_mode.is_some_and(|text| text == "") {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let body = encode("setSafeMode", "action: SAFEMODE_FORCE_EXIT", None).1;
        self.call("hdfs", "setSafeMode", &body).unwrap_or_else(|e| panic!("setSafeMode: {e}"));
    }
}

/// Both.
pub struct Pair {
    pub java: Side,
    pub ours: Side,
    pub pairs: Pairs,
    /// Asked, done, differing, by method.
    counts: BTreeMap<String, (u64, u64, u64)>,
    differences: Vec<String>,
    restarts: u32,
    /// What both said of the block that was last added.
    placed: Option<(DynamicMessage, DynamicMessage)>,
    /// Names that both gave to the snapshot that was last taken.
    named: Option<(String, String)>,
    /// Every call, where `IRONROOT_DIFFERENCES` names a folder.
    trace: Option<std::fs::File>,
}

impl Pair {
    /// None, said aloud, without Hadoop.
    pub fn start(name: &str) -> Option<Pair> {
        let java = Side::start(Kind::Java, name)?;
        let ours = Side::start(Kind::Ironroot, name)?;
        let mut pairs = Pairs::new(now_ms(), NODES as usize);
        let text = |java: &str, ours: &str, common| (java.to_owned(), ours.to_owned(), common);
        pairs.texts.push(text(&java.nodes[0].pool, &ours.nodes[0].pool, "POOL"));
        let port = |side: &Side| format!(":{}", side.fixture.port());
        pairs.texts.push((port(&java), port(&ours), ":PORT"));
        let folder = std::env::var("IRONROOT_DIFFERENCES").ok();
        let create = |folder| std::fs::File::create(std::path::Path::new(&folder).join("calls.txt")).expect("a folder");
        let trace = folder.map(create);
        Some(Pair {
            java,
            ours,
            pairs,
            counts: BTreeMap::new(),
            differences: Vec::new(),
            restarts: 0,
            placed: None,
            named: None,
            trace,
        })
    }

    /// A request for one of the two: `§F16390§` is Java's file, `§P§` the pool, `§N§` the last snapshot.
    fn render(&self, request: &str, ours: bool) -> String {
        let pool = if ours { &self.ours.nodes[0].pool } else { &self.java.nodes[0].pool };
        let mut out = String::new();
        for (at, part) in request.split('§').enumerate() {
            if at % 2 == 0 {
                out += part;
            } else if part == "P" {
                out += pool;
            } else if part == "N" {
                let (of_java, of_ours) = self.named.as_ref().expect("a snapshot was taken");
                out += if ours { of_ours } else { of_java };
            } else {
                let kind = match part.as_bytes()[0] {
                    b'F' => Chosen::File,
                    b'B' => Chosen::Block,
                    _ => Chosen::Stamp,
                };
                let number: u64 = part[1..].parse().unwrap_or_else(|_| panic!("{part}"));
                out += &if ours { self.pairs.ours_of(kind, number) } else { number }.to_string();
            }
        }
        out
    }

    /// Asks both; answers what Java says.
    pub fn ask(&mut self, user: &str, name: &str, request: &str) -> Answer {
        let body = |request: &str| encode(name, request, Some(&RAW)).1;
        let (for_java, for_ours) = (body(&self.render(request, false)), body(&self.render(request, true)));
        let mut java = self.timed(user, name, &for_java, (false, false));
        let mut ours = self.timed(user, name, &for_ours, (true, false));
        for _ in 0..PATIENCE {
            match self.lag(name, &java, &ours) {
                None => break,
                Some(ours_lags) => {
                    std::thread::sleep(Duration::from_millis(25));
                    if ours_lags {
                        ours = self.timed(user, name, &for_ours, (true, true));
                    } else {
                        java = self.timed(user, name, &for_java, (false, true));
                    }
                }
            }
        }
        if matches!(name, "recoverLease" | "truncate") && java.is_ok() {
            // a block that waits for its recovery while its file is deleted into a snapshot takes all recoveries of Java's DataNode with it
            self.java.obey();
            self.ours.obey();
        }
        let differs = self.compare(name, &java, &ours);
        if name == "addBlock" {
            self.placed = java.as_ref().ok().cloned().zip(ours.as_ref().ok().cloned());
        }
        if name == "createSnapshot" {
            let last = |answer: &Answer| {
                let path = answer.as_ref().ok()?.get_field_by_name("snapshotPath")?.as_str()?.to_owned();
                Some(path.rsplit('/').next()?.to_owned())
            };
            self.named = last(&java).zip(last(&ours));
        }
        if let Some(trace) = &mut self.trace {
            let told = |answer: &Answer| {
                answer.as_ref().map_or_else(|e| cut(&format!("! {}: {}", e.class, e.message)), |m| cut(&m.to_string()))
            };
            let mark = if differs.is_ok() { ' ' } else { '#' };
            let line = format!("{mark} {user} {name} {}\n  - {}\n  + {}\n", cut(request), told(&java), told(&ours));
            std::io::Write::write_all(trace, line.as_bytes()).expect("a folder");
        }
        let count = self.counts.entry(name.to_owned()).or_default();
        count.0 += 1;
        count.1 += u64::from(java.is_ok());
        if let Err(place) = differs {
            count.2 += 1;
            let show = |answer: &Answer| match answer {
                Ok(message) => cut(&message.to_string()),
                Err(refusal) => cut(&format!("{}: {}", refusal.class, refusal.message)),
            };
            let text =
                format!("{user} {name} {}\n  at {place}\n  - {}\n  + {}\n", cut(request), show(&java), show(&ours));
            self.note(text);
        }
        // where Java stops in the middle of a call it has done half of it in memory, and none of it after a restart
        if java.as_ref().is_err_and(|refusal| refusal.class == "java.lang.IllegalStateException") {
            self.restart();
        }
        java
    }

    /// A difference; all of them go to a file as they come where `IRONROOT_DIFFERENCES` names a folder.
    fn note(&mut self, text: String) {
        if let Ok(folder) = std::env::var("IRONROOT_DIFFERENCES") {
            let file = std::path::Path::new(&folder).join("differential.txt");
            let begin = self.differences.is_empty();
            let mut options = std::fs::OpenOptions::new();
            options.create(true).write(true).append(!begin).truncate(begin);
            let mut file = options.open(file).expect("a folder");
            std::io::Write::write_all(&mut file, text.as_bytes()).expect("a folder");
        }
        self.differences.push(text);
    }

    fn timed(&mut self, user: &str, name: &str, body: &[u8], (ours, again): (bool, bool)) -> Answer {
        let began = now_ms();
        let side = if ours { &mut self.ours } else { &mut self.java };
        let answer = side.call(user, name, body);
        let windows = if ours { &mut self.pairs.ours } else { &mut self.pairs.java };
        if again {
            windows.extend(now_ms())
        } else {
            windows.push(began, now_ms())
        }
        answer
    }

    /// Whether one of them only waits for reports that it has not noted yet: `Some(true)` if it is ours.
    fn lag(&self, name: &str, java: &Answer, ours: &Answer) -> Option<bool> {
        let waits = |answer: &Answer| match answer {
            Ok(message) => name == "complete" && message.to_string().contains("false"),
            Err(refusal) => {
                refusal.is("NotReplicatedYetException", "")
                    || refusal.is("RecoveryInProgressException", "not yet COMPLETE")
                    || refusal.message.contains("is not sufficiently replicated yet")
            }
        };
        match (waits(java), waits(ours)) {
            (true, false) => Some(false),
            (false, true) => Some(true),
            _ => None,
        }
    }

    fn compare(&mut self, name: &str, java: &Answer, ours: &Answer) -> Result<(), String> {
        if let Err(java) = java
            && known::refusal(name, java)
        {
            return Ok(());
        }
        match (java, ours) {
            (Ok(java), Ok(ours)) => self.pairs.message(java, ours),
            (Err(java), Err(ours)) => {
                if java.class != ours.class || java.code != ours.code {
                    return Err("class".to_owned());
                }
                if self.pairs.text(&java.message, &ours.message) { Ok(()) } else { Err("text".to_owned()) }
            }
            _ => Err("outcome".to_owned()),
        }
    }

    /// The writer has written a block, given by Java's numbers, to all DataNodes of both.
    pub fn receive(&mut self, id: u64, stamp: u64, length: u64) {
        let block = |side: &Side, id, stamp| ExtendedBlockProto {
            pool_id: side.nodes[0].pool.clone(),
            block_id: id,
            generation_stamp: stamp,
            num_bytes: Some(length),
        };
        let java = block(&self.java, id, stamp);
        let ours = (self.pairs.ours_of(Chosen::Block, id), self.pairs.ours_of(Chosen::Stamp, stamp));
        let ours = block(&self.ours, ours.0, ours.1);
        self.java.nodes.iter_mut().for_each(|node| node.receive(&java, length));
        self.ours.nodes.iter_mut().for_each(|node| node.receive(&ours, length));
    }

    /// The writer has written the block that was just given, of a group its first cell, and what protects that.
    pub fn receive_placed(&mut self, length: u64) {
        let Some((java, ours)) = self.placed.take() else { return };
        self.java.receive_placed(&java, length);
        self.ours.receive_placed(&ours, length);
    }

    /// What goes on in the background of both comes to its end.
    pub fn settle(&mut self) {
        // Java looks at its queues every three seconds, and at a share of the nodes each time
        let mut quiet = 0;
        while quiet < 4 {
            std::thread::sleep(Duration::from_millis(1_200));
            quiet = if self.java.obey() + self.ours.obey() == 0 { quiet + 1 } else { 0 };
        }
    }

    /// Both start again, in order and without notice in turns.
    pub fn restart(&mut self) {
        self.restarts += 1;
        for side in [&mut self.java, &mut self.ours] {
            if self.restarts.is_multiple_of(2) {
                side.fixture.crash()
            } else {
                side.fixture.restart()
            }
            side.join_again();
        }
    }

    /// Both save their namespaces.
    pub fn checkpoint(&mut self) {
        for (name, request) in SAVE {
            self.ask("hdfs", name, request).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    /// What differed so far: the call, the place, both answers.
    pub fn differences(&self) -> &[String] {
        &self.differences
    }

    /// Prints the counts and what differed. Fails if more than one call in a thousand differs; `IRONROOT_DIFFERENTIAL_STRICT=1` allows none. There
    /// are known differences left, and which of them a run meets also depends on the times at which both servers do their rounds.
    pub fn report(&self, calls: usize, seed: u64) {
        let (mut asked, mut done) = (0, 0);
        for (name, (a, d, differ)) in &self.counts {
            println!("{name}: {a} asked, {d} done, {differ} differ");
            asked += a;
            done += d;
        }
        println!(
            "seed {seed}: {asked} calls, {done} done, {} restarts, {} differ",
            self.restarts,
            self.differences.len()
        );
        let shown: String = self.differences.iter().take(40).cloned().collect();
        println!("{shown}");
        let allowed = if std::env::var_os("IRONROOT_DIFFERENTIAL_STRICT").is_some() { 0 } else { asked / 1_000 };
        assert!(self.differences.len() as u64 <= allowed as u64, "{} of {asked} calls differ", self.differences.len());
        assert!(done * 3 >= asked, "too few succeed");
        if calls >= 200_000 {
            let rare: Vec<_> = self.counts.iter().filter(|(_, count)| count.0 < 500).map(|(name, _)| name).collect();
            assert!(rare.is_empty(), "too rare: {rare:?}");
        }
    }
}

fn cut(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 700 {
        return text.to_owned();
    }
    chars[..400].iter().chain(&['.', '.', '.']).chain(&chars[chars.len() - 200..]).collect()
}
