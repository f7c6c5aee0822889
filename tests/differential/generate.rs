//! Calls at random: mostly sensible, with every odd argument among them.

use super::model::{Block, Entry, Model};
use super::pair::{Answer, Pair};
use crate::sim::script::Dice;
use prost_reflect::{DynamicMessage, Value};

const USERS: [&str; 4] = ["hdfs", "alice", "bob", "carol"];
const CLIENTS: [&str; 4] = ["c1", "c2", "c3", "c4"];
const NAMES: [&str; 12] =
    ["a", "b", "c", "d", "e", "f", "dir", "file.txt", "with space", "\u{e9}", "\u{1f600}", "tab\there"];
/// Wanted size of the tree.
const CROWD: usize = 220;
const BLOCK_BYTES: u64 = 1 << 20;

pub struct Generator {
    pub(super) dice: Dice,
    pub model: Model,
    /// Whether snapshots are taken and asked.
    past: bool,
}

/// A call: user, method, request.
pub struct Call {
    pub user: &'static str,
    pub method: &'static str,
    pub request: String,
    /// Paths the call is about, for the model.
    pub paths: Vec<String>,
    pub client: &'static str,
}

/// A string of protobuf's text format.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // the mark of a number is replaced before the text is parsed
            ' '..='~' | '§' => out.push(c),
            other => other.to_string().bytes().for_each(|byte| out += &format!("\\{byte:03o}")),
        }
    }
    out + "\""
}

fn number(message: &DynamicMessage, path: &[&str]) -> Option<u64> {
    let (last, before) = path.split_last()?;
    let mut message = message.clone();
    for name in before {
        message = message.get_field_by_name(name)?.as_message()?.clone();
    }
    match message.get_field_by_name(last)?.as_ref() {
        Value::U64(n) => Some(*n),
        Value::I64(n) => Some(*n as u64),
        _ => None,
    }
}

impl Generator {
    pub fn new(seed: u64, past: bool) -> Generator {
        Generator { dice: Dice(seed), model: Model::default(), past }
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.dice.below(n) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.dice.below(all.len())]
    }

    /// Places where everybody may do something.
    pub fn begin(&mut self, pair: &mut Pair) {
        for (path, mode) in [("/w", 0o777), ("/s", 0o1777), ("/p", 0o755)] {
            let request = format!("src: {} masked {{ perm: {mode} }} createParent: true", quoted(path));
            pair.ask("hdfs", "mkdirs", &request).expect("mkdirs");
            self.model.put(path, Entry { directory: true, ..Entry::default() });
        }
        for user in USERS {
            let path = format!("/w/{user}");
            let request = format!("src: {} masked {{ perm: 493 }} createParent: true", quoted(&path));
            pair.ask(user, "mkdirs", &request).expect("mkdirs");
            self.model.put(&path, Entry { directory: true, ..Entry::default() });
        }
        for policy in ["XOR-2-1-1024k", "RS-6-3-1024k"] {
            pair.ask("hdfs", "enableErasureCodingPolicy", &format!("ecPolicyName: \"{policy}\"")).expect("a policy");
        }
        if self.past {
            self.begin_snapshots(pair);
        }
    }

    pub(super) fn user(&mut self) -> &'static str {
        if self.one_in(3) { self.pick(&USERS) } else { "hdfs" }
    }

    fn find(&mut self, wanted: impl Fn(&Entry) -> bool) -> Option<(String, Entry)> {
        let count = self.model.tree.len();
        for _ in 0..12 {
            let at = self.dice.below(count);
            if let Some((path, entry)) = self.model.tree.iter().nth(at)
                && wanted(entry)
            {
                return Some((path.clone(), entry.clone()));
            }
        }
        None
    }

    fn existing(&mut self) -> String {
        self.find(|_| true).map_or_else(|| "/".to_owned(), |(path, _)| path)
    }

    pub(super) fn directory(&mut self) -> String {
        self.find(|entry| entry.directory).map_or_else(|| "/w".to_owned(), |(path, _)| path)
    }

    fn file(&mut self) -> String {
        self.find(|entry| !entry.directory).map_or_else(|| "/w/none".to_owned(), |(path, _)| path)
    }

    fn name(&mut self) -> String {
        match self.dice.below(60) {
            0 => "n".repeat(250 + self.dice.below(10)),
            1 => "\u{e9}".repeat(126 + self.dice.below(4)),
            _ => self.pick(&NAMES).to_owned(),
        }
    }

    fn new_path(&mut self) -> String {
        let directory = self.directory();
        let deeper = if self.one_in(8) { format!("{}/", self.name()) } else { String::new() };
        let directory = if directory.matches('/').count() > 6 { "/w".to_owned() } else { directory };
        format!("{}/{deeper}{}", directory.trim_end_matches('/'), self.name())
    }

    /// Mostly what is there.
    pub(super) fn path(&mut self) -> String {
        if self.past
            && self.one_in(9)
            && let Some(path) = self.past_path()
        {
            return path;
        }
        match self.dice.below(14) {
            0 => self.odd_path(),
            1 | 2 => self.new_path(),
            3 => self.directory(),
            4 | 5 => self.file(),
            _ => self.existing(),
        }
    }

    fn odd_path(&mut self) -> String {
        let path = self.existing();
        let id = self.model.tree.get(&path).map_or(16_385, |entry| entry.id);
        match self.dice.below(24) {
            0 => String::new(),
            1 => "/".to_owned(),
            2 => "//".to_owned(),
            3 => path.trim_start_matches('/').to_owned(),
            4 => format!("/{path}"),
            5 => format!("{path}/"),
            6 => format!("{path}/."),
            7 => format!("{path}/.."),
            8 => format!("{path}/../x"),
            9 => format!("{path}//x"),
            10 => format!("{path}/a:b"),
            11 => format!("{path}/~~raw~~"),
            12 => format!("{path}/a\nb\u{1}"),
            13 => format!("/{}", "abcdefghi/".repeat(799 + self.dice.below(3))),
            14 => format!("/w{}", "/d".repeat(998 + self.dice.below(3))),
            15 => "/.reserved".to_owned(),
            16 => "/.reserved/raw".to_owned(),
            17 => format!("/.reserved/raw{path}"),
            18 | 19 if id > 0 => format!("/.reserved/.inodes/§F{id}§"),
            20 if id > 0 => format!("/.reserved/.inodes/§F{id}§/{}", self.name()),
            21 => "/.reserved/.inodes/1/x".to_owned(),
            22 => format!("{path}/.snapshot"),
            _ => format!("{path}/x"),
        }
    }

    /// Asks both one thing, and learns.
    pub fn step(&mut self, pair: &mut Pair) {
        if self.model.tree.len() > CROWD && self.one_in(4) {
            let path = self.existing();
            if path.matches('/').count() > 1 {
                let call = self.call("hdfs", "delete", format!("src: {} recursive: true", quoted(&path)), &[&path]);
                return self.run(pair, call);
            }
        }
        let call = match self.dice.below(100) {
            0..=22 => self.names(),
            23..=50 => return self.writer(pair),
            51..=68 => self.attributes(),
            69..=84 => self.reads(),
            92.. if self.past => return self.snapshots(pair),
            _ => self.rare(),
        };
        self.run(pair, call);
    }

    fn call(&self, user: &'static str, method: &'static str, request: String, paths: &[&str]) -> Call {
        Call { user, method, request, paths: paths.iter().map(|path| (*path).to_owned()).collect(), client: "c1" }
    }

    fn run(&mut self, pair: &mut Pair, call: Call) {
        // a text may hold the mark of a number: requests are rendered by it
        let answer = pair.ask(call.user, call.method, &call.request);
        if let Ok(answer) = answer {
            self.learn(&call, &answer);
            let path = call.paths.first().filter(|path| !odd(path));
            if let Some(path) = path.filter(|_| call.method == "append" && !answer.has_field_by_name("block")) {
                self.go_on(pair, path);
            }
        }
    }

    fn learn(&mut self, call: &Call, answer: &DynamicMessage) {
        let yes = answer.get_field_by_name("result").is_none_or(|value| value.as_bool() != Some(false));
        let Some(path) = call.paths.first().filter(|path| yes && !odd(path)) else { return };
        match call.method {
            "mkdirs" => self.model.put(path, Entry { directory: true, ..Entry::default() }),
            "create" => {
                let id = number(answer, &["fs", "fileId"]).unwrap_or(0);
                self.model.put(path, Entry { id, writer: Some(call.client.to_owned()), ..Entry::default() });
            }
            "delete" => self.model.remove(path),
            "rename" | "rename2" if call.paths.get(1).is_some_and(|to| !odd(to)) => {
                self.model.rename(path, &call.paths[1], call.method == "rename");
            }
            "complete" => self.change(path, |entry| entry.writer = None),
            "append" | "truncate" => self.change(path, |entry| entry.writer = Some(call.client.to_owned())),
            "concat" => {
                for source in &call.paths[1..] {
                    let blocks = self.model.tree.get(source).map(|entry| entry.blocks.clone()).unwrap_or_default();
                    self.change(path, |entry| entry.blocks.extend(blocks));
                    self.model.remove(source);
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, path: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.model.tree.get_mut(path) {
            change(entry);
        }
    }

    fn names(&mut self) -> Call {
        let user = self.user();
        match self.dice.below(12) {
            0..=2 => {
                let path = if self.one_in(5) { self.path() } else { self.new_path() };
                let mode = self.pick(&[0o755, 0o755, 0o777, 0o700, 0o1777, 0]);
                let (parents, unmasked) = (!self.one_in(4), self.one_in(4));
                let unmasked = if unmasked { " unmasked { perm: 511 }" } else { "" };
                let request =
                    format!("src: {} masked {{ perm: {mode} }} createParent: {parents}{unmasked}", quoted(&path));
                self.call(user, "mkdirs", request, &[&path])
            }
            3..=6 => self.create(user),
            7 => {
                let path = self.path();
                let recursive = self.one_in(4);
                self.call(user, "delete", format!("src: {} recursive: {recursive}", quoted(&path)), &[&path])
            }
            8 | 9 => {
                let (from, to) = (self.path(), if self.one_in(2) { self.new_path() } else { self.path() });
                self.call(user, "rename", format!("src: {} dst: {}", quoted(&from), quoted(&to)), &[&from, &to])
            }
            _ => {
                let (from, to) = (self.path(), if self.one_in(2) { self.new_path() } else { self.path() });
                let (overwrite, trash) = (self.one_in(2), self.one_in(6));
                let trash = if trash { " moveToTrash: true" } else { "" };
                let request = format!("src: {} dst: {} overwriteDest: {overwrite}{trash}", quoted(&from), quoted(&to));
                self.call(user, "rename2", request, &[&from, &to])
            }
        }
    }

    fn create(&mut self, user: &'static str) -> Call {
        let path = if self.one_in(4) { self.path() } else { self.new_path() };
        let client = self.pick(&CLIENTS);
        let flags = self.pick(&[1, 1, 1, 3, 3, 2, 0, 17, 129, 65]);
        let replication = self.pick(&[3, 3, 3, 3, 3, 3, 0, 513]);
        let size = self.pick(&[BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES, 100]);
        let mode = self.pick(&[0o644, 0o644, 0o600, 0o777]);
        let mut request = format!(
            "src: {} masked {{ perm: {mode} }} clientName: \"{client}\" createFlag: {flags} createParent: {} \
             replication: {replication} blockSize: {size}",
            quoted(&path),
            !self.one_in(4)
        );
        if self.one_in(3) {
            request += " unmasked { perm: 438 }";
        }
        if self.one_in(12) {
            request += &format!(" storagePolicy: \"{}\"", self.pick(&["COLD", "HOT", "ALL_SSD", "WARM"]));
        }
        if self.one_in(15) {
            request += &format!(" ecPolicyName: \"{}\"", self.pick(&["XOR-2-1-1024k", "RS-3-2-1024k", "x"]));
        }
        Call { client, ..self.call(user, "create", request, &[&path]) }
    }

    /// A block as a request has it.
    fn block(&self, block: &Block, length: u64) -> String {
        format!("poolId: \"§P§\" blockId: §B{}§ generationStamp: §G{}§ numBytes: {length}", block.id, block.stamp)
    }

    /// What the writer of an open file does, or somebody who would like to.
    fn writer(&mut self, pair: &mut Pair) {
        let Some((path, entry)) = self.find(|entry| entry.writer.is_some()) else {
            let call = self.create("hdfs");
            return self.run(pair, call);
        };
        let client = entry.writer.clone().unwrap_or_default();
        let client = if self.one_in(25) {
            self.pick(&CLIENTS)
        } else {
            CLIENTS.iter().find(|c| **c == client).copied().unwrap_or("c1")
        };
        let user = if self.one_in(20) { self.pick(&USERS) } else { "hdfs" };
        let id = if self.one_in(15) { String::new() } else { format!(" fileId: §F{}§", entry.id) };
        let src = quoted(&path);
        let last = entry.blocks.last().cloned();
        let previous = last.as_ref().map(|block| self.block(block, block.length));
        match self.dice.below(14) {
            0..=4 => {
                let previous = previous.filter(|_| !self.one_in(20));
                let previous = previous.map(|b| format!(" previous {{ {b} }}")).unwrap_or_default();
                let request = format!("src: {src} clientName: \"{client}\"{previous}{id}");
                if let Ok(answer) = pair.ask(user, "addBlock", &request) {
                    self.placed(pair, &path, &answer);
                }
            }
            5..=8 => {
                let last =
                    previous.filter(|_| !self.one_in(20)).map(|b| format!(" last {{ {b} }}")).unwrap_or_default();
                let request = format!("src: {src} clientName: \"{client}\"{last}{id}");
                let call = Call { client, ..self.call(user, "complete", request, &[&path]) };
                self.run(pair, call);
            }
            9 => {
                let length = self.dice.below(BLOCK_BYTES as usize) as i64 - 1;
                let request = format!("src: {src} client: \"{client}\" lastBlockLength: {length}{id}");
                let call = self.call(user, "fsync", request, &[&path]);
                self.run(pair, call);
            }
            10 => {
                let Some(block) = last else { return };
                let request = format!("b {{ {} }} src: {src} holder: \"{client}\"{id}", self.block(&block, 0));
                // groups are not given back
                if pair.ask(user, "abandonBlock", &request).is_ok() && (block.id as i64) > 0 {
                    self.change(&path, |entry| _ = entry.blocks.pop());
                    self.go_on(pair, &path);
                }
            }
            11 => self.pipeline(pair, (&path, &entry), client, user),
            12 => {
                let Some(block) = last else { return };
                let existing = format!("existings {{ {} }} existingStorageUuids: \"DS-1-0\"", node_info(1));
                let more = self.dice.below(3);
                let request = format!(
                    "src: {src} blk {{ {} }} {existing} numAdditionalNodes: {more} clientName: \"{client}\"{id}",
                    self.block(&block, block.length)
                );
                let _ = pair.ask(user, "getAdditionalDatanode", &request);
            }
            _ => {
                let call = self.call(user, "renewLease", format!("clientName: \"{client}\""), &[]);
                self.run(pair, call);
            }
        }
    }

    /// An open file gets a block, or is closed: Java counts the space of open files by whether their last block is finished, which no log
    /// tells; ours counts another block as soon as a file is open, and that is not compared here.
    fn go_on(&mut self, pair: &mut Pair, path: &str) {
        let Some(entry) = self.model.tree.get(path).cloned() else { return };
        let client = entry.writer.unwrap_or_default();
        let client = CLIENTS.iter().find(|c| **c == client).copied().unwrap_or("c1");
        let previous = entry.blocks.last().map(|block| self.block(block, block.length)).unwrap_or_default();
        let part = |name: &str| if previous.is_empty() { String::new() } else { format!(" {name} {{ {previous} }}") };
        let request = format!("src: {} clientName: \"{client}\"", quoted(path));
        if let Ok(answer) = pair.ask("hdfs", "addBlock", &format!("{request}{}", part("previous"))) {
            return self.placed(pair, path, &answer);
        }
        let request = format!("{request}{}", part("last"));
        let call = Call { client, ..self.call("hdfs", "complete", request, &[path]) };
        self.run(pair, call);
    }

    /// A block was given: mostly it is written to all DataNodes.
    fn placed(&mut self, pair: &mut Pair, path: &str, answer: &DynamicMessage) {
        let get = |name: &str| number(answer, &["block", "b", name]);
        let (Some(id), Some(stamp)) = (get("blockId"), get("generationStamp")) else { return };
        let length = if self.one_in(3) { BLOCK_BYTES } else { 1 + self.dice.below(BLOCK_BYTES as usize - 1) as u64 };
        pair.receive_placed(length);
        let block = Block { id, stamp, length };
        self.change(path, |entry| match entry.blocks.last() {
            Some(last) if last.id == id => {}
            _ => entry.blocks.push(block),
        });
    }

    fn pipeline(&mut self, pair: &mut Pair, (path, entry): (&str, &Entry), client: &str, user: &'static str) {
        let Some(block) = entry.blocks.last().cloned() else { return };
        let request = format!("block {{ {} }} clientName: \"{client}\"", self.block(&block, block.length));
        let Ok(answer) = pair.ask(user, "updateBlockForPipeline", &request) else { return };
        let Some(stamp) = number(&answer, &["block", "b", "generationStamp"]) else { return };
        if self.one_in(4) {
            return; // the client dies
        }
        let new = Block { stamp, ..block.clone() };
        let nodes: String =
            (1..=3).map(|n| format!(" newNodes {{ {} }} storageIDs: \"DS-{n}-0\"", node_id(n))).collect();
        let request = format!(
            "clientName: \"{client}\" oldBlock {{ {} }} newBlock {{ {} }}{nodes}",
            self.block(&block, block.length),
            self.block(&new, block.length)
        );
        if pair.ask(user, "updatePipeline", &request).is_ok() {
            pair.receive(new.id, new.stamp, new.length);
            self.change(path, |entry| *entry.blocks.last_mut().expect("a block") = new);
        }
    }

    fn entries(&mut self) -> String {
        let count = 1 + self.dice.below(4);
        let mut out = String::new();
        for _ in 0..count {
            let kind = self.pick(&["USER", "GROUP", "MASK", "OTHER"]);
            let scope = self.pick(&["ACCESS", "DEFAULT"]);
            let action = self.pick(&["NONE", "READ", "READ_WRITE", "READ_EXECUTE", "PERM_ALL"]);
            out += &format!(" aclSpec {{ type: {kind} scope: {scope} permissions: {action}");
            if matches!(kind, "USER" | "GROUP") && !self.one_in(3) {
                out += &format!(" name: \"{}\"", self.pick(&["alice", "bob", "staff"]));
            }
            out += " }";
        }
        out
    }

    fn attributes(&mut self) -> Call {
        let (user, path) = (self.user(), self.path());
        let src = quoted(&path);
        let own = |generator: &Self, method, request| generator.call(user, method, request, &[]);
        match self.dice.below(18) {
            0 | 1 => {
                let mode = self.pick(&[0o755, 0o777, 0o700, 0o644, 0o1777, 0o750, 0]);
                own(self, "setPermission", format!("src: {src} permission {{ perm: {mode} }}"))
            }
            2 => {
                let name = self.pick(&["", " username: \"alice\"", " username: \"bob\"", " username: \"hdfs\""]);
                let group = self.pick(&["", " groupname: \"staff\"", " groupname: \"ops\""]);
                own(self, "setOwner", format!("src: {src}{name}{group}"))
            }
            3 => {
                let mtime = self.pick(&["1000000000000", "18446744073709551615", "0", "5"]);
                let atime = self.pick(&["1000000000001", "18446744073709551615", "0"]);
                own(self, "setTimes", format!("src: {src} mtime: {mtime} atime: {atime}"))
            }
            4 | 5 => {
                let replication = self.pick(&[1, 2, 3, 3, 0, 513]);
                own(self, "setReplication", format!("src: {src} replication: {replication}"))
            }
            6 => self.quota(),
            7 => {
                let policy = self.pick(&["HOT", "COLD", "WARM", "ALL_SSD", "ONE_SSD", "LAZY_PERSIST", "hot", "no"]);
                own(self, "setStoragePolicy", format!("src: {src} policyName: \"{policy}\""))
            }
            8 => own(self, "unsetStoragePolicy", format!("src: {src}")),
            9 => {
                let entries = self.entries();
                own(self, "modifyAclEntries", format!("src: {src}{entries}"))
            }
            10 => {
                let entries = self.entries();
                own(self, "removeAclEntries", format!("src: {src}{entries}"))
            }
            11 => {
                let entries = self.entries();
                own(self, "setAcl", format!("src: {src}{entries}"))
            }
            12 => own(self, "removeDefaultAcl", format!("src: {src}")),
            13 => own(self, "removeAcl", format!("src: {src}")),
            14 | 15 => {
                let (attribute, flag) = (self.xattr(true), self.pick(&[1, 2, 3, 3, 3, 0]));
                own(self, "setXAttr", format!("src: {src} xAttr {{ {attribute} }} flag: {flag}"))
            }
            16 => {
                let attribute = self.xattr(false);
                own(self, "removeXAttr", format!("src: {src} xAttr {{ {attribute} }}"))
            }
            _ => match self.dice.below(3) {
                0 => own(self, "unsetErasureCodingPolicy", format!("src: {src}")),
                _ => {
                    let policy = self.pick(&["RS-6-3-1024k", "XOR-2-1-1024k", "replication", "RS-3-2-1024k"]);
                    own(self, "setErasureCodingPolicy", format!("src: {src} ecPolicyName: \"{policy}\""))
                }
            },
        }
    }

    fn xattr(&mut self, value: bool) -> String {
        let namespace = self.pick(&["USER", "USER", "USER", "TRUSTED", "SECURITY", "SYSTEM", "RAW"]);
        let name = self.pick(&["x", "y", "\u{e9}", "", "z"]);
        let value =
            if value { self.pick(&[" value: \"v\"", " value: \"\"", "", " value: \"\\377\\000\""]) } else { "" };
        format!("namespace: {namespace} name: {}{value}", quoted(name))
    }

    fn quota(&mut self) -> Call {
        let path = if self.one_in(4) { self.path() } else { self.directory() };
        let (keep, reset) = (i64::MAX as u64, u64::MAX);
        let names = self.pick(&[keep, reset, reset, 20, 200, 2_000]);
        // Java's use of space drifts: quotas that it could reach refuse calls at random
        let space = self.pick(&[keep, reset, reset, 1 << 36, 1 << 38, 1 << 38]);
        let kind = self.pick(&["", "", "", " storageType: DISK", " storageType: SSD", " storageType: ARCHIVE"]);
        let names = if kind.is_empty() { names } else { keep };
        let request = format!("path: {} namespaceQuota: {names} storagespaceQuota: {space}{kind}", quoted(&path));
        let user = if self.one_in(6) { self.user() } else { "hdfs" };
        self.call(user, "setQuota", request, &[])
    }

    fn reads(&mut self) -> Call {
        let (user, path) = (self.user(), self.path());
        let src = quoted(&path);
        let (method, request) = match self.dice.below(26) {
            0 | 1 => ("getFileInfo", format!("src: {src}")),
            2 => ("getFileLinkInfo", format!("src: {src}")),
            3 => ("getLocatedFileInfo", format!("src: {src} needBlockToken: false")),
            4 | 5 => {
                let after = if self.one_in(3) { self.name() } else { String::new() };
                let located = self.one_in(3);
                ("getListing", format!("src: {src} startAfter: {} needLocation: {located}", quoted(&after)))
            }
            6 => {
                let (one, two) = (quoted(&self.directory()), quoted(&self.path()));
                ("getBatchedListing", format!("paths: {one} paths: {two} startAfter: \"\" needLocation: false"))
            }
            7 | 8 => {
                let offset = self.pick(&[0, 0, 1, 1 << 20, 3 << 20, u64::MAX]);
                let length = self.pick(&[i64::MAX as u64, 1, 0, 2 << 20, u64::MAX]);
                ("getBlockLocations", format!("src: {src} offset: {offset} length: {length}"))
            }
            9 | 10 => ("getContentSummary", format!("path: {src}")),
            11 | 12 => ("getQuotaUsage", format!("path: {src}")),
            13 => {
                let mode = self.pick(&["READ", "WRITE", "EXECUTE", "READ_WRITE", "PERM_ALL", "NONE"]);
                ("checkAccess", format!("path: {src} mode: {mode}"))
            }
            14 => ("isFileClosed", format!("src: {src}")),
            15 => ("getPreferredBlockSize", format!("filename: {src}")),
            16 => ("getLinkTarget", format!("path: {src}")),
            17 | 18 => ("getAclStatus", format!("src: {src}")),
            19 => {
                let wanted =
                    if self.one_in(2) { format!(" xAttrs {{ {} }}", self.xattr(false)) } else { String::new() };
                ("getXAttrs", format!("src: {src}{wanted}"))
            }
            20 => ("listXAttrs", format!("src: {src}")),
            21 => ("getStoragePolicy", format!("path: {src}")),
            22 => ("getErasureCodingPolicy", format!("src: {src}")),
            23 => ("getEZForPath", format!("src: {src}")),
            24 => ("getEnclosingRoot", format!("filename: {src}")),
            _ => ("listOpenFiles", format!("id: 0 types: ALL_OPEN_FILES path: {src}")),
        };
        self.call(user, method, request, &[])
    }

    fn rare(&mut self) -> Call {
        let user = self.user();
        let client = self.pick(&CLIENTS);
        match self.dice.below(12) {
            0..=2 => {
                let path = self.file();
                let flag = self.pick(&["", " flag: 4", " flag: 36", " flag: 36"]);
                let request = format!("src: {} clientName: \"{client}\"{flag}", quoted(&path));
                Call { client, ..self.call(user, "append", request, &[&path]) }
            }
            3 | 4 => {
                let path = self.file();
                let blocks = self.model.tree.get(&path).map_or(0, |entry| entry.blocks.len() as u64);
                let length = self.pick(&[blocks.saturating_sub(1) * BLOCK_BYTES, blocks * BLOCK_BYTES, 0, 5, u64::MAX]);
                let request = format!("src: {} newLength: {length} clientName: \"{client}\"", quoted(&path));
                Call { client, ..self.call(user, "truncate", request, &[&path]) }
            }
            5 | 6 => {
                let target = self.file();
                let parent = target.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
                let beside = |(path, entry): (&String, &Entry)| {
                    (!entry.directory && *path != target && path.rsplit_once('/').is_some_and(|(p, _)| p == parent))
                        .then(|| path.clone())
                };
                let mut sources: Vec<String> = self.model.tree.iter().filter_map(beside).take(2).collect();
                if sources.is_empty() || self.one_in(6) {
                    sources.push(self.path());
                }
                let request: String = sources.iter().map(|source| format!(" srcs: {}", quoted(source))).collect();
                let mut paths = vec![target.clone()];
                paths.extend(sources);
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                self.call(user, "concat", format!("trg: {}{request}", quoted(&target)), &paths)
            }
            7 => {
                let path = self.file();
                let request = format!("src: {} clientName: \"{client}\"", quoted(&path));
                self.call(user, "recoverLease", request, &[])
            }
            8 => {
                let (target, link) = (quoted("/w"), quoted(&self.new_path()));
                let request = format!("target: {target} link: {link} dirPerm {{ perm: 511 }} createParent: false");
                self.call(user, "createSymlink", request, &[])
            }
            9 => self.call(user, "msync", String::new(), &[]),
            10 => {
                let method = self.pick(&[
                    "getServerDefaults",
                    "getStoragePolicies",
                    "getErasureCodingPolicies",
                    "getErasureCodingCodecs",
                ]);
                self.call(user, method, String::new(), &[])
            }
            _ => {
                let method = self.pick(&["enableErasureCodingPolicy", "disableErasureCodingPolicy"]);
                let policy = self.pick(&["RS-3-2-1024k", "RS-10-4-1024k", "XOR-2-1-1024k", "x", ""]);
                self.call(user, method, format!("ecPolicyName: \"{policy}\""), &[])
            }
        }
    }

    /// Compares all that is there, and takes it for the model.
    pub fn survey(&mut self, pair: &mut Pair) {
        let old = std::mem::take(&mut self.model);
        let (old_roots, old_snapshots) = (old.roots, old.snapshots);
        let writers: std::collections::HashMap<u64, String> =
            old.tree.into_values().filter_map(|entry| Some((entry.id, entry.writer?))).collect();
        let mut open = vec!["/".to_owned()];
        while let Some(path) = open.pop() {
            self.survey_directory(pair, &path, &writers, &mut open);
        }
        (self.model.roots, self.model.snapshots) = (old_roots, old_snapshots);
        self.survey_snapshots(pair);
        for (method, request) in
            [("getFsStats", ""), ("getFsReplicatedBlockStats", ""), ("listCorruptFileBlocks", "path: \"/\"")]
        {
            let _ = pair.ask("hdfs", method, request);
        }
    }

    fn survey_directory(
        &mut self,
        pair: &mut Pair,
        path: &str,
        writers: &std::collections::HashMap<u64, String>,
        open: &mut Vec<String>,
    ) {
        let request = format!("src: {} startAfter: \"\" needLocation: true", quoted(path));
        let Ok(answer) = pair.ask("hdfs", "getListing", &request) else { return };
        for entry in listed(&answer) {
            let get = |name: &str| entry.get_field_by_name(name).map(|value| value.into_owned());
            let Some(Value::Bytes(name)) = get("path") else { continue };
            let Ok(name) = std::str::from_utf8(&name) else { continue };
            let full = format!("{}/{name}", path.trim_end_matches('/'));
            let id = number(&entry, &["fileId"]).unwrap_or(0);
            let directory = matches!(get("fileType"), Some(Value::EnumNumber(1)));
            let blocks = blocks_of(&entry);
            let writing = matches!(get("locations"), Some(Value::Message(m)) if m.get_field_by_name("underConstruction").is_some_and(|v| v.as_bool() == Some(true)));
            let writer = writing.then(|| writers.get(&id).cloned().unwrap_or_else(|| "c1".to_owned()));
            self.model.put(&full, Entry { directory, id, writer, blocks });
            let src = quoted(&full);
            for (method, key) in [
                ("getAclStatus", "src"),
                ("getXAttrs", "src"),
                ("getContentSummary", "path"),
                ("getQuotaUsage", "path"),
            ] {
                if directory || !method.starts_with("getQuota") {
                    let _: Answer = pair.ask("hdfs", method, &format!("{key}: {src}"));
                }
            }
            if directory {
                open.push(full);
            }
        }
    }
}

pub(super) fn listed(answer: &DynamicMessage) -> Vec<DynamicMessage> {
    let list = answer.get_field_by_name("dirList");
    let entries =
        list.as_ref().and_then(|list| list.as_message()?.get_field_by_name("partialListing").map(|v| v.into_owned()));
    let entries = entries.as_ref().and_then(|entries| entries.as_list()).unwrap_or_default();
    entries.iter().filter_map(|entry| entry.as_message().cloned()).collect()
}

fn blocks_of(entry: &DynamicMessage) -> Vec<Block> {
    let blocks = entry.get_field_by_name("locations");
    let blocks =
        blocks.as_ref().and_then(|value| value.as_message()?.get_field_by_name("blocks").map(|v| v.into_owned()));
    let blocks = blocks.as_ref().and_then(|blocks| blocks.as_list()).unwrap_or_default();
    let block = |value: &Value| {
        let message = value.as_message()?;
        let get = |name: &str| number(message, &["b", name]);
        Some(Block { id: get("blockId")?, stamp: get("generationStamp")?, length: get("numBytes")? })
    };
    blocks.iter().filter_map(block).collect()
}

fn odd(path: &str) -> bool {
    path.is_empty()
        || !path.starts_with('/')
        || path.contains("//")
        || path.contains("/.")
        || path.contains("~~raw~~")
        || path.contains(':')
        || path.ends_with('/')
}

fn node_id(n: u32) -> String {
    format!(
        "ipAddr: \"127.0.0.1\" hostName: \"localhost\" datanodeUuid: \"dn-{n}\" xferPort: {} infoPort: {} ipcPort: {}",
        20_000 + n,
        21_000 + n,
        22_000 + n
    )
}

fn node_info(n: u32) -> String {
    format!("id {{ {} }}", node_id(n))
}
