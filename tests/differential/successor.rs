//! Snapshots and striped files at random on ours alone; then the Java NameNode starts on the directory and must find the same.
//!
//! Both at once would not do: where Hadoop's name node stops in the middle of a call, it has done half of it in memory.

use super::generate::{listed, quoted};
use super::side::{Answer, RAW, Side};
use crate::sim::script::Dice;
use crate::support::namenode::Kind;
use crate::trials::conversation::encode;
use prost_reflect::{DynamicMessage, Value};
use std::collections::BTreeMap;

/// Calls between two hand-overs.
const LEG: usize = 250;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const SNAPSHOTS: [&str; 4] = ["s1", "s2", "s3", "s4"];

struct Stream {
    dice: Dice,
    side: Side,
    /// Calls that succeeded, by method.
    done: BTreeMap<&'static str, u64>,
    refused: BTreeMap<String, u64>,
}

impl Stream {
    fn call(&mut self, method: &'static str, request: &str) -> Answer {
        let answer = self.side.call("hdfs", method, &encode(method, request, Some(&RAW)).1);
        match &answer {
            Ok(_) => *self.done.entry(method).or_default() += 1,
            Err(refusal) => *self.refused.entry(format!("{method} {}", refusal.class)).or_default() += 1,
        }
        answer
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.dice.below(NAMES.len())]
    }

    fn directory(&mut self) -> String {
        let mut path = ["/r", "/r/ec", "/r/x", "/q", "/q/ec"][self.dice.below(5)].to_owned();
        for _ in 0..self.dice.below(2) {
            path = format!("{path}/{}", self.name());
        }
        path
    }

    fn path(&mut self) -> String {
        format!("{}/{}", self.directory(), self.name())
    }

    fn root(&mut self) -> &'static str {
        ["/r", "/r", "/q"][self.dice.below(3)]
    }

    fn begin(&mut self) {
        for path in ["/r/ec", "/r/x", "/q/ec"] {
            self.call("mkdirs", &format!("src: \"{path}\" masked {{ perm: 493 }} createParent: true")).expect("mkdirs");
        }
        self.call("enableErasureCodingPolicy", "ecPolicyName: \"XOR-2-1-1024k\"").expect("a policy");
        for path in ["/r/ec", "/q/ec"] {
            let request = format!("src: \"{path}\" ecPolicyName: \"XOR-2-1-1024k\"");
            self.call("setErasureCodingPolicy", &request).expect("a policy");
        }
        for root in ["/r", "/q"] {
            self.call("allowSnapshot", &format!("snapshotRoot: \"{root}\"")).expect("allowSnapshot");
            let request = format!("path: \"{root}\" namespaceQuota: 10000 storagespaceQuota: 1000000000000");
            self.call("setQuota", &request).expect("setQuota");
        }
    }

    fn step(&mut self) {
        let path = self.path();
        let src = quoted(&path);
        match self.dice.below(24) {
            0..=5 => self.write(&path),
            6 | 7 => _ = self.call("mkdirs", &format!("src: {src} masked {{ perm: 493 }} createParent: true")),
            8..=10 => _ = self.call("delete", &format!("src: {src} recursive: true")),
            11 | 12 => {
                let to = self.path();
                _ = self.call("rename", &format!("src: {src} dst: {}", quoted(&to)));
            }
            13..=15 => {
                let to = self.path();
                _ = self.call("rename2", &format!("src: {src} dst: {} overwriteDest: true", quoted(&to)));
            }
            16 => {
                let mode = [0o700, 0o755, 0o644][self.dice.below(3)];
                _ = self.call("setPermission", &format!("src: {src} permission {{ perm: {mode} }}"));
            }
            17 => {
                let replication = 1 + self.dice.below(3);
                _ = self.call("setReplication", &format!("src: {src} replication: {replication}"));
            }
            18 => _ = self.call("truncate", &format!("src: {src} newLength: 0 clientName: \"c1\"")),
            19..=21 => {
                let (root, name) = (self.root(), SNAPSHOTS[self.dice.below(4)]);
                _ = self.call("createSnapshot", &format!("snapshotRoot: \"{root}\" snapshotName: \"{name}\""));
            }
            _ => {
                let (root, name) = (self.root(), SNAPSHOTS[self.dice.below(4)]);
                _ = self.call("deleteSnapshot", &format!("snapshotRoot: \"{root}\" snapshotName: \"{name}\""));
            }
        }
    }

    /// A file with one block or none.
    fn write(&mut self, path: &str) {
        let src = quoted(path);
        let request = format!(
            "src: {src} masked {{ perm: 420 }} clientName: \"c1\" createFlag: 3 createParent: true replication: 3 blockSize: 1048576"
        );
        if self.call("create", &request).is_err() {
            return;
        }
        let mut last = String::new();
        if self.dice.below(3) > 0
            && let Ok(answer) = self.call("addBlock", &format!("src: {src} clientName: \"c1\""))
        {
            let length = 1 + self.dice.below(1 << 20) as u64;
            self.side.receive_placed(&answer, length);
            let block = answer.get_field_by_name("block");
            let block = block.as_ref().and_then(|b| b.as_message()?.get_field_by_name("b").map(|b| b.into_owned()));
            let Some(Value::Message(mut block)) = block else { panic!("{answer}") };
            block.set_field_by_name("numBytes", Value::U64(length));
            last = format!(" last {{ {} }}", block.to_text_format());
        }
        for _ in 0..40 {
            let answer = self.call("complete", &format!("src: {src} clientName: \"c1\"{last}"));
            if !answer.is_ok_and(|m| m.to_string().contains("false")) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// A diff report, entry by entry.
    fn note_report(&self, key: &str, report: &DynamicMessage, seen: &mut BTreeMap<String, String>) {
        let report = report.get_field_by_name("diffReport").map(|r| r.into_owned());
        let entries = report
            .as_ref()
            .and_then(|r| r.as_message()?.get_field_by_name("diffReportEntries").map(|v| v.into_owned()));
        for entry in entries.as_ref().and_then(|entries| entries.as_list()).unwrap_or_default() {
            let Some(entry) = entry.as_message() else { continue };
            let label = entry.get_field_by_name("modificationLabel").and_then(|l| l.as_str().map(str::to_owned));
            let path = entry.get_field_by_name("fullpath").and_then(|p| p.as_bytes().cloned()).unwrap_or_default();
            let key = format!("{key}: {} {}", label.unwrap_or_default(), String::from_utf8_lossy(&path));
            seen.insert(key, entry.to_text_format());
        }
    }

    /// All that can be told of the present and the past.
    fn survey(&mut self) -> BTreeMap<String, String> {
        let mut seen = BTreeMap::new();
        let mut open = vec!["/".to_owned(), "/r/.snapshot".to_owned(), "/q/.snapshot".to_owned()];
        while let Some(path) = open.pop() {
            let src = quoted(&path);
            let is_list = path.ends_with("/.snapshot");
            for (method, key) in
                [("getContentSummary", "path"), ("getQuotaUsage", "path"), ("getErasureCodingPolicy", "src")]
            {
                if !is_list {
                    let answer = self.call(method, &format!("{key}: {src}"));
                    seen.insert(format!("{path} {method}"), told(&answer));
                }
            }
            let answer = self.call("getListing", &format!("src: {src} startAfter: \"\" needLocation: true"));
            for entry in answer.as_ref().map(listed).unwrap_or_default() {
                let name =
                    entry.get_field_by_name("path").and_then(|name| name.as_bytes().cloned()).unwrap_or_default();
                let full = format!("{}/{}", path.trim_end_matches('/'), String::from_utf8_lossy(&name));
                let directory = entry.get_field_by_name("fileType").and_then(|kind| kind.as_enum_number()) == Some(1);
                seen.insert(full.clone(), plain(&entry));
                if directory {
                    open.push(full);
                }
            }
        }
        for root in ["/r", "/q"] {
            let list = self.call("getSnapshotListing", &format!("snapshotRoot: \"{root}\""));
            seen.insert(format!("{root} snapshots"), told(&list));
            for from in SNAPSHOTS {
                let request = format!("snapshotRoot: \"{root}\" fromSnapshot: \"{from}\" toSnapshot: \"\"");
                match self.call("getSnapshotDiffReport", &request) {
                    Ok(report) => self.note_report(&format!("{REPORT}{root} {from}"), &report, &mut seen),
                    refused => _ = seen.insert(format!("{root} {from}"), told(&refused)),
                }
            }
        }
        seen
    }
}

/// What keys of report entries begin with.
const REPORT: &str = "report of ";

/// Takes out what only Java calls modified: it compares attributes by identity, and those of an image are never those of now.
fn forget_identity(java: &mut BTreeMap<String, String>, ours: &BTreeMap<String, String>) {
    java.retain(|what, _| !(what.starts_with(REPORT) && what.contains(": M ")) || ours.contains_key(what));
}

/// An entry without what DataNodes tell.
fn plain(entry: &DynamicMessage) -> String {
    let mut entry = entry.clone();
    if let Some(mut blocks) = entry.get_field_by_name("locations").map(|v| v.into_owned())
        && let Some(located) = blocks.as_message_mut()
    {
        for field in ["blocks", "lastBlock"] {
            let Some(mut value) = located.get_field_by_name(field).map(|v| v.into_owned()) else { continue };
            let strip = |block: &mut Value| {
                if let Some(block) = block.as_message_mut() {
                    for soft in ["locs", "storageIDs", "storageTypes", "isCached", "blockIndices", "blockTokens"] {
                        block.clear_field_by_name(soft);
                    }
                }
            };
            match &mut value {
                Value::List(all) => all.iter_mut().for_each(strip),
                one => strip(one),
            }
            if located.has_field_by_name(field) {
                located.set_field_by_name(field, value);
            }
        }
        if entry.has_field_by_name("locations") {
            entry.set_field_by_name("locations", blocks);
        }
    }
    entry.to_text_format()
}

fn told(answer: &Answer) -> String {
    match answer {
        Ok(message) => message.to_text_format(),
        Err(refusal) => format!("! {}: {}", refusal.class, refusal.message),
    }
}

#[test]
fn java_goes_on_with_snapshots_of_striped_files() {
    let _turn = crate::support::cluster_turn();
    if crate::support::hadoop::hadoop().is_none() {
        return;
    }
    let Some(side) = Side::start(Kind::Ironroot, "successor") else { return };
    let mut stream = Stream { dice: Dice(super::seed()), side, done: BTreeMap::new(), refused: BTreeMap::new() };
    stream.begin();
    for leg in 0..super::calls().div_ceil(1_000) {
        for _ in 0..LEG {
            stream.step();
        }
        if leg % 3 == 2 {
            stream.side.save();
        }
        let ours = stream.survey();
        stream.side.hand_over(Kind::Java);
        let mut java = stream.survey();
        forget_identity(&mut java, &ours);
        stream.side.hand_over(Kind::Ironroot);
        let again = stream.survey();
        compare(leg, ("before", &ours), ("after a restart", &again), |_| true);
        // what Java counts under older names of renamed inodes is not the same before and after its own restart
        compare(leg, ("ours", &ours), ("Java", &java), |what| !what.ends_with(" getQuotaUsage"));
    }
    println!("{:?}\n{:?}", stream.done, stream.refused);
}

type Survey = BTreeMap<String, String>;

fn compare(leg: usize, (name, one): (&str, &Survey), (other, two): (&str, &Survey), counts: impl Fn(&str) -> bool) {
    let mut differ = Vec::new();
    for what in one.keys().chain(two.keys().filter(|what| !one.contains_key(*what))).filter(|what| counts(what)) {
        let (a, b) = (one.get(what), two.get(what));
        if a != b {
            differ.push(format!("{what}\n  {name}: {}\n  {other}: {}\n", a.map_or("-", |t| t), b.map_or("-", |t| t)));
        }
    }
    let shown = differ[..differ.len().min(20)].concat();
    assert!(differ.is_empty(), "leg {leg}: {} of {} differ\n{shown}", differ.len(), one.len());
}
