//! Two answers side by side: equal, with numbers that each NameNode chooses itself paired one to one.

use super::known;
use prost_reflect::{DynamicMessage, FieldDescriptor, ReflectMessage, Value};
use regex::Regex;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Kinds of numbers that each NameNode chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Chosen {
    File,
    Block,
    Stamp,
}

impl Chosen {
    fn of_field(name: &str) -> Option<Chosen> {
        match name {
            "fileId" | "inodeId" | "dirId" => Some(Chosen::File),
            "blockId" => Some(Chosen::Block),
            "generationStamp" | "genStamp" | "newGenStamp" => Some(Chosen::Stamp),
            _ => None,
        }
    }
}

/// When each call began and ended, in milliseconds since 1970.
#[derive(Default)]
pub struct Windows(Vec<(u64, u64)>);

impl Windows {
    pub fn push(&mut self, began: u64, ended: u64) {
        self.0.push((began, ended));
    }

    /// The last call was made again.
    pub fn extend(&mut self, ended: u64) {
        if let Some(last) = self.0.last_mut() {
            last.1 = ended;
        }
    }

    /// The calls in or between which a time can be.
    fn calls(&self, time: u64) -> (usize, usize) {
        // the two clocks are one clock, read with a millisecond's rest
        let first = self.0.partition_point(|(_, ended)| ended + 1 < time);
        let last = self.0.partition_point(|(began, _)| *began <= time + 1);
        (first, last)
    }
}

/// What is known of the numbers of both.
pub struct Pairs {
    forth: HashMap<(Chosen, u64), u64>,
    back: HashMap<(Chosen, u64), u64>,
    pub java: Windows,
    pub ours: Windows,
    /// Block pools and whatever else is a text of one of them: (Java's, ours, common).
    pub texts: Vec<(String, String, &'static str)>,
    began: u64,
    /// DataNodes of each.
    pub nodes: usize,
    /// Whether what goes on in the background has come to its end.
    pub settled: bool,
    /// How often kept numbers differed that drift in Java.
    pub drifts: u64,
    /// How often Java counted more files of a lease.
    pub leases: u64,
    /// Files of Java whose leases were recovered: it keeps their times for the latest snapshot then, but not when it reads its log; ours never.
    pub recovered: HashSet<u64>,
    /// Whether the answer is of a path in a snapshot.
    pub past: bool,
}

impl Pairs {
    pub fn new(began: u64, nodes: usize) -> Pairs {
        Pairs {
            forth: HashMap::new(),
            back: HashMap::new(),
            java: Windows::default(),
            ours: Windows::default(),
            texts: Vec::new(),
            began,
            nodes,
            settled: false,
            drifts: 0,
            leases: 0,
            recovered: HashSet::new(),
            past: false,
        }
    }

    /// Our number for Java's; the same if it was never seen.
    pub fn ours_of(&self, kind: Chosen, java: u64) -> u64 {
        self.forth.get(&(kind, java)).copied().unwrap_or(java)
    }

    fn number(&mut self, kind: Chosen, java: u64, ours: u64) -> bool {
        if java == 0 || ours == 0 || java == u64::MAX || ours == u64::MAX {
            return java == ours;
        }
        let forth = *self.forth.entry((kind, java)).or_insert(ours);
        let back = *self.back.entry((kind, ours)).or_insert(java);
        forth == ours && back == java
    }

    fn is_of_this_run(&self, time: u64) -> bool {
        (self.began.saturating_sub(600_000)..self.began + 691_200_000).contains(&time)
    }

    fn time(&self, java: u64, ours: u64) -> bool {
        if !self.is_of_this_run(java) || !self.is_of_this_run(ours) {
            return java == ours;
        }
        let ((a, b), (c, d)) = (self.java.calls(java), self.ours.calls(ours));
        a <= d && c <= b
    }

    fn plain_number(&mut self, name: &str, java: u64, ours: u64) -> bool {
        // the end of what never ends is as far from either clock
        if name == "millis" && !self.is_of_this_run(java) && java.abs_diff(ours) < 60_000 {
            return true;
        }
        match Chosen::of_field(name).or_else(|| (name == "id" && java > 16_384).then_some(Chosen::File)) {
            Some(kind) => self.number(kind, java, ours),
            None => self.time(java, ours),
        }
    }

    /// Whether two texts are equal but for numbers and names that are paired.
    pub fn text(&mut self, java: &str, ours: &str) -> bool {
        static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"blk_(-?\d+)_(\d+)|\d{4,}").expect("a pattern"));
        if java == ours {
            return true;
        }
        // a snapshot without a name is named after the time
        static UNNAMED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"s\d{8}-\d{6}\.\d{3}").expect("a pattern"));
        let unnamed = |text: &str| UNNAMED.replace_all(text, "TIME").into_owned();
        let (mut java, mut ours) = (unnamed(java), unnamed(ours));
        for (of_java, of_ours, common) in &self.texts {
            java = java.replace(of_java, common);
            ours = ours.replace(of_ours, common);
        }
        // the count that Hadoop keeps for a quota drifts, see `known::drifts`
        static COUNT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"file count=\d+").expect("a pattern"));
        (java, ours) = (COUNT.replace_all(&java, "COUNT").into_owned(), COUNT.replace_all(&ours, "COUNT").into_owned());
        // Hadoop makes two master keys at each start, the second a moment after the first
        static KEY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"masterKeyId=(\d+)").expect("a pattern"));
        (java, ours) = (KEY.replace_all(&java, "KEY").into_owned(), KEY.replace_all(&ours, "KEY").into_owned());
        // after a start Hadoop has leases of files that only snapshots hold, and counts them
        static LEASE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(
                r"\[Lease\.  Holder: (\S+), pending creates: (\d+)\]|Holder (\S+) does not have any open files\.",
            )
            .expect("a pattern")
        });
        let leases = |text: &str| -> Vec<u64> {
            let count = |found: regex::Captures<'_>| found.get(2).map_or(0, |n| n.as_str().parse().unwrap_or(0));
            LEASE.captures_iter(text).map(count).collect()
        };
        let more = leases(&java).iter().zip(leases(&ours)).all(|(java, ours)| *java >= ours);
        if more && leases(&java) != leases(&ours) {
            self.leases += 1;
            (java, ours) = (
                LEASE.replace_all(&java, "LEASE$1$3").into_owned(),
                LEASE.replace_all(&ours, "LEASE$1$3").into_owned(),
            );
        }
        if NUMBER.replace_all(&java, "*") != NUMBER.replace_all(&ours, "*") {
            return false;
        }
        let parts = |text: &str| -> Vec<(Option<u64>, Option<u64>, u64)> {
            let number = |text: &str| text.parse::<i64>().ok().map(|n| n as u64);
            let part = |found: regex::Captures<'_>| {
                let group = |at| found.get(at).and_then(|m| number(m.as_str()));
                (group(1), group(2), number(&found[0]).unwrap_or(0))
            };
            NUMBER.captures_iter(text).map(part).collect()
        };
        parts(&java).into_iter().zip(parts(&ours)).all(|(java, ours)| match (java, ours) {
            ((Some(b1), Some(g1), _), (Some(b2), Some(g2), _)) => {
                // a block that neither knows is as the caller said it
                (b1 == b2 && g1 == g2) || (self.number(Chosen::Block, b1, b2) && self.number(Chosen::Stamp, g1, g2))
            }
            ((_, _, a), (_, _, b)) => {
                a == b
                    || self.forth.get(&(Chosen::File, a)) == Some(&b)
                    || self.forth.get(&(Chosen::Block, a)) == Some(&b)
                    || self.forth.get(&(Chosen::Stamp, a)) == Some(&b)
                    || self.time(a, b)
            }
        })
    }

    /// Where two messages differ, the first place.
    pub fn message(&mut self, java: &DynamicMessage, ours: &DynamicMessage) -> Result<(), String> {
        let descriptor = java.descriptor();
        if descriptor.name() == "LocatedBlockProto" {
            self.places(java, ours)?;
        }
        for field in descriptor.fields() {
            let skip = known::field(descriptor.name(), field.name())
                || (!self.settled && known::counts_of_queues(descriptor.name()))
                || (descriptor.name() == "LocatedBlockProto"
                    && matches!(field.name(), "locs" | "storageIDs" | "storageTypes" | "blockIndices"));
            if skip || matches!(field.name(), "modification_time" | "access_time") && self.is_of_recovered(java) {
                continue;
            }
            let place =
                |e: String| if e.is_empty() { field.name().to_owned() } else { format!("{}.{e}", field.name()) };
            if known::drifts(descriptor.name(), field.name()) {
                self.drifts += u64::from(java.get_field(&field) != ours.get_field(&field));
                continue;
            }
            if known::same_quota(descriptor.name(), field.name(), &java.get_field(&field), &ours.get_field(&field)) {
                continue;
            }
            match (java.has_field(&field), ours.has_field(&field)) {
                (false, false) => {}
                (true, true) => self.value(&field, &java.get_field(&field), &ours.get_field(&field)).map_err(place)?,
                (there, _) => {
                    return Err(format!("{} only of {}", field.name(), if there { "Java" } else { "ours" }));
                }
            }
        }
        Ok(())
    }

    fn is_of_recovered(&self, status: &DynamicMessage) -> bool {
        let id = || status.get_field_by_name("fileId")?.as_u64();
        self.past && !self.recovered.is_empty() && id().is_some_and(|id| self.recovered.contains(&id))
    }

    fn value(&mut self, field: &FieldDescriptor, java: &Value, ours: &Value) -> Result<(), String> {
        let same = match (java, ours) {
            (Value::Message(a), Value::Message(b)) => return self.message(a, b),
            // files with corrupt blocks come in the order in which queues have them
            (Value::List(a), Value::List(b)) if field.full_name().ends_with("CorruptFileBlocksProto.files") => {
                let sorted = |list: &[Value]| {
                    let mut all: Vec<String> = list.iter().map(|value| value.to_string()).collect();
                    all.sort();
                    all
                };
                sorted(a) == sorted(b)
            }
            (Value::List(a), Value::List(b)) => {
                if a.len() != b.len() {
                    return Err(format!("{} and {} entries", a.len(), b.len()));
                }
                for (at, (a, b)) in a.iter().zip(b).enumerate() {
                    self.value(field, a, b).map_err(|e| format!("[{at}] {e}"))?;
                }
                true
            }
            (Value::U64(a), Value::U64(b)) => self.plain_number(field.name(), *a, *b),
            (Value::I64(a), Value::I64(b)) => self.plain_number(field.name(), *a as u64, *b as u64),
            (Value::String(a), Value::String(b)) => self.text(a, b),
            (a, b) => a == b,
        };
        if same { Ok(()) } else { Err(format!(": {java} and {ours}")) }
    }

    /// Replicas of a block: as many, of the same kinds; on the same DataNodes where it is on all.
    fn places(&self, java: &DynamicMessage, ours: &DynamicMessage) -> Result<(), String> {
        let nodes = |message: &DynamicMessage| -> Vec<String> {
            let locations = message.get_field_by_name("locs");
            let locations = locations.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
            let uuid = |value: &Value| {
                let id = value.as_message()?.get_field_by_name("id")?;
                Some(id.as_message()?.get_field_by_name("datanodeUuid")?.as_str()?.to_owned())
            };
            let mut all: Vec<String> = locations.iter().filter_map(uuid).collect();
            all.sort();
            all
        };
        let kinds = |message: &DynamicMessage| {
            let kinds = message.get_field_by_name("storageTypes").map(|value| value.to_string()).unwrap_or_default();
            let mut kinds: Vec<String> =
                kinds.split(',').map(|k| k.trim_matches(&['[', ']', ' '][..]).to_owned()).collect();
            kinds.sort();
            kinds
        };
        let (a, b) = (nodes(java), nodes(ours));
        if java.has_field_by_name("blockIndices") != ours.has_field_by_name("blockIndices") {
            return Err("blockIndices only of one".to_owned());
        }
        if a.len() != b.len() || (a.len() == self.nodes && a != b) || kinds(java) != kinds(ours) {
            return Err(format!("locations: {a:?} {:?} and {b:?} {:?}", kinds(java), kinds(ours)));
        }
        Ok(())
    }
}
