//! Both NameNodes with their DataNodes, asked the same things.

use super::compare::{Chosen, Pairs};
use super::known;
use super::side::{Answer, Exchange, NODES, RAW, SAVE, Side, now_ms};
use super::stream::{Trace, cut};
use crate::support::namenode::Kind;
use crate::trials::client::{Client, block_on};
use crate::trials::conversation::encode;
use hadoop_proto::hdfs::ExtendedBlockProto;
use prost_reflect::DynamicMessage;
use rpc::client::CallOptions;
use std::collections::BTreeMap;
use std::time::Duration;

/// Java notes replicas in a thread of its own: how often a call is asked again when only it lags.
const PATIENCE: usize = 40;

/// Rounds of orders to DataNodes after which they can have no end.
const ROUNDS_MAX: usize = 300;

/// Both.
pub struct Pair {
    pub java: Side,
    pub ours: Side,
    pub pairs: Pairs,
    /// Asked, done, differing, by method.
    counts: BTreeMap<String, (u64, u64, u64)>,
    differences: Vec<String>,
    restarts: u32,
    /// Whether each runs on the directory of the other.
    taken_over: bool,
    /// Entries of diff reports that only Java has since it compares attributes by identity.
    by_identity: usize,
    /// What both said of the block that was last added.
    placed: Option<(DynamicMessage, DynamicMessage)>,
    /// Delegation tokens that both gave, as fields of text.
    pub tokens: Vec<(String, String)>,
    /// Names that both gave to the snapshot that was last taken.
    named: Option<(String, String)>,
    /// Every call, where `IRONROOT_DIFFERENCES` names a folder.
    trace: Option<Trace>,
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
        let trace = folder.as_deref().map(Trace::begin);
        Some(Pair {
            java,
            ours,
            pairs,
            counts: BTreeMap::new(),
            differences: Vec::new(),
            restarts: 0,
            taken_over: false,
            by_identity: 0,
            placed: None,
            tokens: Vec::new(),
            named: None,
            trace,
        })
    }

    /// A request for one of the two: `§F16390§` is Java's file, `§P§` the pool, `§N§` the last snapshot, `§T3§` the third token.
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
            } else if let Some(number) = part.strip_prefix('T') {
                let (of_java, of_ours) = &self.tokens[number.parse::<usize>().expect("a token")];
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
        let (mut java, mut ours) = self.both(user, name, &for_java, &for_ours);
        for _ in 0..PATIENCE {
            match self.lag(name, &java, &ours) {
                None => break,
                Some(ours_lags) => {
                    std::thread::sleep(Duration::from_millis(25));
                    if ours_lags {
                        ours = self.again(user, name, &for_ours, true);
                    } else {
                        java = self.again(user, name, &for_java, false);
                    }
                }
            }
        }
        if known::is_of_queues(name) && self.pairs.settled {
            (java, ours) = self.worked_off(user, name, (java, ours), (&for_java, &for_ours));
        }
        if matches!(name, "recoverLease" | "truncate") && java.is_ok() {
            // a block that waits for its recovery while its file is deleted into a snapshot takes all recoveries of Java's DataNode with it
            self.java.obey();
            self.ours.obey();
        }
        if name == "recoverLease" && java.is_ok() {
            let id = self.id_of(request);
            self.pairs.recovered.extend(id);
        }
        self.pairs.past = request.contains(".snapshot");
        let differs = self.compare(name, &java, &ours);
        self.remember(name, &java, &ours);
        if let Some(trace) = &mut self.trace {
            trace.call(differs.is_err(), (user, name, request), &java, &ours);
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
            let text = format!(
                "{user} {name} {}\n  at {place}{}\n  - {}\n  + {}\n",
                cut(request),
                if self.taken_over { " of the other's directory" } else { "" },
                show(&java),
                show(&ours)
            );
            self.note(text);
        }
        // where Java stops in the middle of a call it has done half of it in memory, and none of it after a restart: so too where it has deleted
        // a file that it then could not overwrite
        let half_done = match &java {
            Err(refusal) if refusal.class == "java.lang.IllegalStateException" => true,
            Err(refusal) if name == "create" && refusal.class.ends_with("QuotaExceededException") => {
                self.id_of(request).is_none() && self.ours_has(request)
            }
            _ => false,
        };
        if half_done {
            self.start_again();
        }
        java
    }

    /// Figures of queues once both have worked off what there is to do, which takes them as long as the machine is busy.
    fn worked_off(
        &mut self,
        user: &str,
        name: &str,
        told: (Answer, Answer),
        bodies: (&[u8], &[u8]),
    ) -> (Answer, Answer) {
        let (mut java, mut ours) = told;
        for _ in 0..PATIENCE {
            match (&java, &ours) {
                (Ok(of_java), Ok(of_ours)) if self.pairs.message(of_java, of_ours).is_err() => {}
                _ => return (java, ours),
            }
            std::thread::sleep(Duration::from_millis(250));
            self.java.obey();
            self.ours.obey();
            java = self.again(user, name, bodies.0, false);
            ours = self.again(user, name, bodies.1, true);
        }
        if let Some(trace) = &mut self.trace {
            let fsck = |side: &Side| {
                let target = "/fsck?ugi=hdfs&path=%2F&files=1&blocks=1&locations=1&includeSnapshots=1";
                crate::support::http::get(side.fixture.http_port(), target).map(|(_, body)| body).unwrap_or_default()
            };
            trace.blocks(&fsck(&self.java), &fsck(&self.ours));
        }
        (java, ours)
    }

    /// The status of the path that a request begins with.
    fn status(&mut self, request: &str, ours: bool) -> Answer {
        let request = request.split(" clientName").next().and_then(|r| r.split(" masked").next()).expect("a path");
        let body = encode("getFileInfo", &self.render(request, ours), Some(&RAW)).1;
        if ours { &mut self.ours } else { &mut self.java }.call("hdfs", "getFileInfo", &body)
    }

    /// What Java has at a path: its id, and whether it is a directory.
    pub fn found(&mut self, path: &str) -> Option<(u64, bool)> {
        self.found_by(path, false)
    }

    fn found_by(&mut self, path: &str, ours: bool) -> Option<(u64, bool)> {
        let status = self.status(&format!("src: {}", super::generate::quoted(path)), ours).ok()?;
        let kind = status.get_field_by_name("fs")?.as_message()?.get_field_by_name("fileType")?.as_enum_number();
        Some((super::generate::number(&status, &["fs", "fileId"])?, kind == Some(1)))
    }

    /// Java's id of what is there.
    fn id_of(&mut self, request: &str) -> Option<u64> {
        super::generate::number(&self.status(request, false).ok()?, &["fs", "fileId"])
    }

    fn ours_has(&mut self, request: &str) -> bool {
        self.status(request, true).is_ok_and(|status| status.has_field_by_name("fs"))
    }

    fn written_down(&mut self, event: &str) {
        if let Some(trace) = &mut self.trace {
            trace.event(event);
        }
    }

    /// What later requests name: the block that was given, tokens, a snapshot's name.
    fn remember(&mut self, name: &str, java: &Answer, ours: &Answer) {
        if name == "addBlock" {
            self.placed = java.as_ref().ok().cloned().zip(ours.as_ref().ok().cloned());
        }
        if name == "getDelegationToken" {
            let token = |answer: &Answer| {
                let token = answer.as_ref().ok()?.get_field_by_name("token")?.into_owned();
                Some(token.as_message()?.to_text_format())
            };
            self.tokens.extend(token(java).zip(token(ours)));
        }
        if name == "createSnapshot" {
            let last = |answer: &Answer| {
                let path = answer.as_ref().ok()?.get_field_by_name("snapshotPath")?.as_str()?.to_owned();
                Some(path.rsplit('/').next()?.to_owned())
            };
            self.named = last(java).zip(last(ours));
        }
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

    /// One call to both at the same time.
    fn both(&mut self, user: &str, name: &str, for_java: &[u8], for_ours: &[u8]) -> (Answer, Answer) {
        let clients = (self.java.client(user), self.ours.client(user));
        let (java, ours) =
            block_on(async { tokio::join!(timed(&clients.0, name, for_java), timed(&clients.1, name, for_ours)) });
        self.pairs.java.push(java.1, java.2);
        self.pairs.ours.push(ours.1, ours.2);
        (self.java.answered(user, name, java.0), self.ours.answered(user, name, ours.0))
    }

    /// The last call once more, to one of them.
    fn again(&mut self, user: &str, name: &str, body: &[u8], ours: bool) -> Answer {
        let side = if ours { &mut self.ours } else { &mut self.java };
        let answer = side.call(user, name, body);
        let windows = if ours { &mut self.pairs.ours } else { &mut self.pairs.java };
        windows.extend(now_ms());
        answer
    }

    /// The same to both sides, at the same time.
    fn each(&mut self, work: impl Fn(&mut Side) + Send + Sync) {
        std::thread::scope(|scope| {
            let java = scope.spawn(|| work(&mut self.java));
            work(&mut self.ours);
            java.join().expect("Java's side");
        });
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
        let of_java = if self.taken_over { ours } else { java };
        if let Err(refusal) = of_java
            && known::refusal(name, refusal)
        {
            return Ok(());
        }
        match (java, ours) {
            (Ok(java), Ok(ours)) if name.starts_with("getSnapshotDiffReport") => {
                let (mut java, mut ours) = (java.clone(), ours.clone());
                let taken = if self.taken_over {
                    known::modified_by_identity(&mut ours, &java)
                } else {
                    known::modified_by_identity(&mut java, &ours)
                };
                self.by_identity += taken;
                self.pairs.message(&java, &ours)
            }
            (Ok(java), Ok(ours)) if name == "listOpenFiles" && java != ours => {
                let (mut java, mut ours) = (java.clone(), ours.clone());
                let taken_over = self.taken_over;
                let of_java = if taken_over { &mut ours } else { &mut java };
                let mut is_there = |path: &str, id| self.found_by(path, taken_over).is_some_and(|there| there.0 == id);
                let taken = known::open_only_in_the_past(of_java, &mut is_there);
                self.pairs.leases += taken;
                self.pairs.message(&java, &ours)
            }
            (Ok(java), Ok(ours)) => self.pairs.message(java, ours),
            (Err(java), Err(ours)) => {
                // a damaged key of a batched listing: the reader's own words
                if name == "getBatchedListing" && java.class.contains("InvalidProtocolBufferException") {
                    return Ok(());
                }
                if java.class != ours.class || java.code != ours.code {
                    return Err("class".to_owned());
                }
                if name == "allowSnapshot"
                    && known::first_of_nested(&java.message) == known::first_of_nested(&ours.message)
                {
                    return Ok(());
                }
                if self.pairs.text(&java.message, &ours.message) { Ok(()) } else { Err("text".to_owned()) }
            }
            _ => Err("outcome".to_owned()),
        }
    }

    /// The writer has written a block, given by Java's numbers, to all DataNodes of both.
    pub fn receive(&mut self, id: u64, stamp: u64, length: u64) {
        self.written_down(&format!("!receive\t{id}\t{stamp}\t{length}"));
        let block = |side: &Side, id, stamp| ExtendedBlockProto {
            pool_id: side.nodes[0].pool.clone(),
            block_id: id,
            generation_stamp: stamp,
            num_bytes: Some(length),
        };
        let java = block(&self.java, id, stamp);
        let ours = (self.pairs.ours_of(Chosen::Block, id), self.pairs.ours_of(Chosen::Stamp, stamp));
        let ours = block(&self.ours, ours.0, ours.1);
        self.each(|side| {
            side.receive_everywhere(if side.is_first { &java } else { &ours }, length);
        });
    }

    /// The writer has written the block that was just given, of a group its first cell, and what protects that.
    pub fn receive_placed(&mut self, length: u64) {
        self.written_down(&format!("!placed\t{length}"));
        let Some((java, ours)) = self.placed.take() else { return };
        self.each(|side| side.receive_placed(if side.is_first { &java } else { &ours }, length));
    }

    /// What goes on in the background of both comes to its end.
    pub fn settle(&mut self) {
        self.written_down("!settle");
        // Java looks at its queues every second
        let mut quiet = 0;
        for round in 0.. {
            // Java holds orders back for a while, or finds that they were lost: only then is all out
            if quiet >= 4 && self.java.pending() + self.ours.pending() == 0 {
                break;
            }
            assert!(round < ROUNDS_MAX, "orders to DataNodes do not come to an end");
            std::thread::sleep(Duration::from_millis(600));
            quiet = if self.java.obey() + self.ours.obey() == 0 { quiet + 1 } else { 0 };
        }
        self.pairs.settled = true;
    }

    /// Both start again, in order and without notice in turns.
    pub fn restart(&mut self) {
        self.written_down("!restart");
        self.start_again();
    }

    fn start_again(&mut self) {
        self.restarts += 1;
        let crash = self.restarts.is_multiple_of(2);
        self.each(|side| {
            if crash {
                side.fixture.crash()
            } else {
                side.fixture.restart()
            }
            side.join_again();
        });
    }

    /// Each takes the directory of the other over, shows what is in it, and gives it back.
    pub fn exchanged(&mut self, show: impl FnOnce(&mut Pair)) {
        self.exchange();
        self.settle();
        show(self);
        self.exchange();
    }

    /// Each takes the directory of the other over.
    pub fn exchange(&mut self) {
        self.written_down("!exchange");
        let other = |kind| if kind == Kind::Java { Kind::Ironroot } else { Kind::Java };
        self.restarts += 1;
        self.each(|side| side.hand_over(other(side.fixture.kind)));
        self.taken_over = !self.taken_over;
    }

    /// Both save their namespaces.
    pub fn checkpoint(&mut self) {
        for (name, request) in SAVE {
            self.ask("hdfs", name, request).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    /// How many calls were made so far.
    pub fn asked(&self) -> usize {
        self.counts.values().map(|(asked, ..)| *asked as usize).sum()
    }

    /// What differed so far: the call, the place, both answers.
    pub fn differences(&self) -> &[String] {
        &self.differences
    }

    /// Prints the counts and what differed. Fails if more than one call in a thousand differs; `IRONROOT_DIFFERENTIAL_STRICT=1` allows none. There
    /// are known differences left, and which of them a run meets also depends on the times at which both servers do their rounds.
    pub fn report(&self, steps: usize, seed: u64) {
        let (mut asked, mut done) = (0, 0);
        for (name, (a, d, differ)) in &self.counts {
            println!("{name}: {a} asked, {d} done, {differ} differ");
            asked += a;
            done += d;
        }
        println!("{} kept counts of quotas differ", self.pairs.drifts);
        println!("{} files of leases are counted by Java that only snapshots hold", self.pairs.leases);
        println!("{} entries of diff reports only of Java, by identity of attributes", self.by_identity);
        println!(
            "seed {seed}: {steps} steps, {asked} calls, {done} done, {} restarts, {} differ",
            self.restarts,
            self.differences.len()
        );
        let shown: String = self.differences.iter().take(40).cloned().collect();
        println!("{shown}");
        let allowed = if std::env::var_os("IRONROOT_DIFFERENTIAL_STRICT").is_some() { 0 } else { asked / 1_000 };
        assert!(self.differences.len() as u64 <= allowed as u64, "{} of {asked} calls differ", self.differences.len());
        assert!(done * 3 >= asked, "too few succeed");
        if asked >= 200_000 {
            let asked = |name: &str| self.counts.get(name).map_or(0, |count| count.0);
            let all = crate::trials::conversation::methods().into_iter().map(|method| method.name().to_owned());
            let rare: Vec<_> = all.filter(|name| asked(name) < 500).collect();
            assert!(rare.is_empty(), "too rare: {rare:?}");
        }
    }
}

/// An answer with when the call began and ended.
async fn timed(client: &Client, name: &str, body: &[u8]) -> (Exchange, u64, u64) {
    let began = now_ms();
    let answer = client.exchange_async(CallOptions::default(), name, body).await;
    (answer, began, now_ms())
}
