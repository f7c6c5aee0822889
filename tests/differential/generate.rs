//! Calls at random: mostly sensible, with every odd argument among them.

use super::model::{Entry, Model};
use super::pair::Pair;
use super::paths::is_odd;
use crate::sim::script::Dice;
use prost_reflect::{DynamicMessage, Value};
use std::collections::HashSet;

pub(super) const USERS: [&str; 4] = ["hdfs", "alice", "bob", "carol"];
pub(super) const CLIENTS: [&str; 4] = ["c1", "c2", "c3", "c4"];
/// Wanted size of the tree.
const CROWD: usize = 220;

pub struct Generator {
    pub(super) dice: Dice,
    pub model: Model,
    /// Delegation tokens that were given.
    pub(super) tokens: usize,
    /// Id of the newest cache directive.
    pub(super) directives: u64,
    /// Java's ids of what was ever renamed.
    pub(super) moved: HashSet<u64>,
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

pub(super) fn number(message: &DynamicMessage, path: &[&str]) -> Option<u64> {
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
    pub fn new(seed: u64) -> Generator {
        Generator { dice: Dice(seed), model: Model::default(), tokens: 0, directives: 0, moved: HashSet::new() }
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
        self.begin_snapshots(pair);
    }

    pub(super) fn user(&mut self) -> &'static str {
        if self.one_in(3) { self.pick(&USERS) } else { "hdfs" }
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
            0..=13 => self.names(),
            14..=31 => return self.writer(pair),
            32..=43 => self.attributes(),
            44..=57 => self.reads(),
            58..=65 => return self.snapshots(pair),
            66..=69 => self.rare(),
            // many methods, each of which is to be asked often enough in a long run
            _ => return self.whole(pair),
        };
        self.run(pair, call);
    }

    pub(super) fn call(&self, user: &'static str, method: &'static str, request: String, paths: &[&str]) -> Call {
        Call { user, method, request, paths: paths.iter().map(|path| (*path).to_owned()).collect(), client: "c1" }
    }

    pub(super) fn run(&mut self, pair: &mut Pair, call: Call) {
        if matches!(call.method, "rename" | "rename2") {
            return self.rename(pair, call);
        }
        if call.method == "truncate" && pair.found(&call.paths[0]).is_some_and(|(id, _)| self.moved.contains(&id)) {
            // Hadoop loses what snapshots have of a file that was renamed out of one (see the test
            // `a_file_renamed_out_of_a_snapshot_and_truncated_keeps_its_past`)
            return;
        }
        // a text may hold the mark of a number: requests are rendered by it
        let answer = pair.ask(call.user, call.method, &call.request);
        if let Ok(answer) = answer {
            self.learn(&call, &answer);
            let path = call.paths.first().filter(|path| !is_odd(path));
            if let Some(path) = path.filter(|_| call.method == "append" && !answer.has_field_by_name("block")) {
                self.go_on(pair, path);
            }
        }
    }

    pub(super) fn learn(&mut self, call: &Call, answer: &DynamicMessage) {
        let yes = answer.get_field_by_name("result").is_none_or(|value| value.as_bool() != Some(false));
        let Some(path) = call.paths.first().filter(|path| yes && !is_odd(path)) else { return };
        match call.method {
            "mkdirs" => self.model.put(path, Entry { directory: true, ..Entry::default() }),
            "create" => {
                let id = number(answer, &["fs", "fileId"]).unwrap_or(0);
                self.model.put(path, Entry { id, writer: Some(call.client.to_owned()), ..Entry::default() });
            }
            "delete" => self.model.remove(path),
            "rename" | "rename2" if call.paths.get(1).is_some_and(|to| !is_odd(to)) => {
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

    pub(super) fn change(&mut self, path: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.model.tree.get_mut(path) {
            change(entry);
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
