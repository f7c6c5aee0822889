//! Random calls: mostly sensible, with every odd argument among them.

use super::twin::{Node, Part, Twin, Who};

/// A call of the fuzz.
#[derive(Clone, Debug)]
pub enum Call {
    Mkdirs { path: String, mode: u16, parents: bool },
    Create { path: String, mode: u16, client: &'static str, flags: (bool, bool, bool), shape: (u16, u64) },
    AddBlock { path: String, id: i64, client: &'static str, previous: Option<(i64, i64, u64)> },
    Received { block: (i64, i64, u64) },
    Fsync { path: String, id: i64, client: &'static str, length: u64 },
    Abandon { path: String, id: i64, client: &'static str, block: (i64, i64) },
    Complete { path: String, id: i64, client: &'static str, last: Option<(i64, i64, u64)> },
    Delete { path: String, recursive: bool },
    Rename { from: String, to: String },
    Rename2 { from: String, to: String, overwrite: bool },
    SetPermission { path: String, mode: u16 },
    SetOwner { path: String, user: Option<&'static str>, group: Option<&'static str> },
    SetTimes { path: String, mtime: i64, atime: i64 },
    SetReplication { path: String, replication: u16 },
    SetQuota { path: String, names: i64 },
    Info { path: String },
    List { path: String },
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const CLIENTS: [&str; 3] = ["client-a", "client-b", "client-c"];
const NAMES: [&str; 14] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "dir",
    "file.txt",
    "with space",
    "new\nline",
    "\u{fc}",
    "\u{65e5}\u{672c}",
    "\u{1f600}",
    "-",
];
// names below .snapshot have tests of their own: what is refused there depends on what was allowed before
const ODD: [&str; 8] = ["..", ".", "a:b", "", ".reserved", "*", "%2e", "\\"];
/// Wanted size of the tree.
const CROWD: usize = 150;

pub fn users() -> [Who; 4] {
    let who = |user: &str, groups: &[&str], superuser| Who {
        user: user.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        superuser,
    };
    [
        who("super", &["supergroup"], true),
        who("alice", &["staff"], false),
        who("bob", &["staff", "ops"], false),
        who("carol", &[], false),
    ]
}

pub struct Generator<'a> {
    pub dice: &'a mut Dice,
    pub twin: &'a Twin,
}

impl Generator<'_> {
    fn existing(&mut self) -> String {
        let at = self.dice.below(self.twin.nodes.len());
        self.twin.nodes.keys().nth(at).cloned().unwrap_or_default()
    }

    fn directory(&mut self) -> String {
        for _ in 0..6 {
            let path = self.existing();
            if self.twin.nodes[&path].file.is_none() && path.matches('/').count() < 7 {
                return path;
            }
        }
        "/".to_owned()
    }

    fn open(&mut self) -> Option<(String, i64, &'static str, Vec<Part>)> {
        let open = |(path, node): (&'_ String, &'_ Node)| {
            let file = node.file.as_ref()?;
            let writer = CLIENTS.iter().find(|client| file.writer.as_deref() == Some(client))?;
            Some((path.clone(), node.id, *writer, file.blocks.clone()))
        };
        let is_open = |node: &Node| node.file.as_ref().is_some_and(|file| file.writer.is_some());
        let count = self.twin.nodes.values().filter(|node| is_open(node)).count();
        let at = self.dice.below(count);
        self.twin.nodes.iter().filter(|(_, node)| is_open(node)).nth(at).and_then(open)
    }

    fn name(&mut self) -> String {
        match self.dice.below(60) {
            0 => self.dice.of(&ODD).to_owned(),
            1 => "x".repeat(250 + self.dice.below(12)),
            2 => "\u{65e5}".repeat(84 + self.dice.below(3)),
            _ => self.dice.of(&NAMES).to_owned(),
        }
    }

    /// A path that may or may not be there.
    fn path(&mut self) -> String {
        match self.dice.below(40) {
            0 => format!("/.reserved/.inodes/{}", self.any_id()),
            1 => format!("/.reserved/.inodes/{}/{}", self.any_id(), self.name()),
            2 => format!("{}/{}", self.existing(), self.name()),
            3 => format!("{}/{}/{}", self.directory(), self.name(), self.name()),
            4 => format!("{}/", self.existing()),
            5 => self.name(),
            6 if self.dice.one_in(8) => format!("/{}", "deep/".repeat(995 + self.dice.below(10))),
            6 if self.dice.one_in(8) => format!("/{}", "long-name/".repeat(799 + self.dice.below(3))),
            6 => "/".to_owned(),
            7..=24 => self.existing(),
            _ => {
                let directory = self.directory();
                format!("{}/{}", if directory == "/" { "" } else { &directory }, self.name())
            }
        }
    }

    fn any_id(&mut self) -> i64 {
        if self.dice.one_in(5) {
            return 16_380 + self.dice.below(20) as i64;
        }
        let path = self.existing();
        self.twin.nodes[&path].id
    }

    fn mode(&mut self) -> u16 {
        self.dice.of(&[0o755, 0o755, 0o755, 0o777, 0o777, 0o700, 0o1777, 0o750, 0o644, 0o111, 0])
    }

    /// The file of a call, mostly right: path, id, client.
    fn claim(&mut self, (path, id, client): (String, i64, &'static str)) -> (String, i64, &'static str) {
        match self.dice.below(30) {
            0 => (path, 0, client),
            1 => (path, id, self.dice.of(&CLIENTS)),
            2 => (path, self.any_id(), client),
            3 => (self.path(), 0, client),
            _ => (path, id, client),
        }
    }

    /// One call.
    pub fn call(&mut self) -> Call {
        if self.twin.nodes.len() > CROWD && self.dice.one_in(4) {
            return Call::Delete { path: self.existing(), recursive: !self.dice.one_in(4) };
        }
        match self.dice.below(100) {
            0..=9 => Call::Mkdirs { path: self.path(), mode: self.mode(), parents: !self.dice.one_in(4) },
            10..=24 => Call::Create {
                path: self.path(),
                mode: self.mode(),
                client: self.dice.of(&CLIENTS),
                flags: (!self.dice.one_in(20), self.dice.one_in(2), !self.dice.one_in(4)),
                shape: (
                    self.dice.of(&[1, 2, 3, 3, 3, 10, 512]) * u16::from(!self.dice.one_in(30)),
                    if self.dice.one_in(30) { 999 } else { 1_000 },
                ),
            },
            25..=55 => self.file_call(),
            56..=58 => Call::Delete { path: self.path(), recursive: self.dice.one_in(2) },
            59..=64 => Call::Rename { from: self.path(), to: self.path() },
            65..=70 => Call::Rename2 { from: self.path(), to: self.path(), overwrite: self.dice.one_in(2) },
            71..=75 => Call::SetPermission { path: self.path(), mode: self.mode() },
            76..=79 => Call::SetOwner {
                path: self.path(),
                user: self.dice.of(&[None, Some("alice"), Some("bob"), Some("nobody")]),
                group: self.dice.of(&[None, Some("staff"), Some("ops")]),
            },
            80..=82 => Call::SetTimes {
                path: self.path(),
                mtime: self.dice.of(&[-1, 0, 1, 1_600_000_000_123, -5]),
                atime: self.dice.of(&[-1, 0, 1_500_000_000_000]),
            },
            83..=85 => Call::SetReplication { path: self.path(), replication: self.dice.of(&[0, 1, 2, 5, 512, 513]) },
            86..=87 => Call::SetQuota {
                path: if self.dice.one_in(3) { self.path() } else { self.directory() },
                names: self.dice.of(&[-1, -1, 1, 3, 8, 20, 100, i64::MAX, -2]),
            },
            88..=94 => Call::Info { path: self.path() },
            _ => Call::List { path: self.path() },
        }
    }

    fn file_call(&mut self) -> Call {
        let Some((path, id, client, blocks)) = self.open() else {
            let path = format!("/{}", self.name());
            return Call::Create {
                path,
                mode: 0o644,
                client: CLIENTS[0],
                flags: (true, true, true),
                shape: (3, 1_000),
            };
        };
        let last = blocks.last().cloned();
        let finished = last.as_ref().map(|part| (part.id, part.stamp, part.wanted));
        let own = (path.clone(), id);
        let (path, id, client) = self.claim((path, id, client));
        let is_own = own == (path.clone(), id);
        match (self.dice.below(12), last) {
            (0 | 1, Some(part)) if !part.received => Call::Received { block: (part.id, part.stamp, part.wanted) },
            (2, Some(part)) if !part.committed && !part.done => {
                // of another file it says nothing of the length: blocks get no longer than their replicas will be
                let more = self.dice.below((part.wanted - part.length) as usize + 1) as u64;
                let length = if is_own { part.length + more } else { 0 };
                Call::Fsync { path, id, client, length }
            }
            (3, Some(part)) if !part.committed && !part.received && self.dice.one_in(2) => {
                Call::Abandon { path, id, client, block: (part.id, part.stamp) }
            }
            (3, _) => Call::Abandon { path, id, client, block: (5, 5) },
            (at, _) if (4..=6).contains(&at) || blocks.len() > 8 => {
                let last = if self.dice.one_in(15) { None } else { finished };
                Call::Complete { path, id, client, last }
            }
            (7, Some(_)) if self.dice.one_in(4) => {
                let penultimate = blocks.iter().rev().nth(1).map(|part| (part.id, part.stamp, part.wanted));
                Call::AddBlock { path, id, client, previous: penultimate }
            }
            (_, Some(part)) if !part.received && !self.dice.one_in(6) => {
                Call::Received { block: (part.id, part.stamp, part.wanted) }
            }
            _ => Call::AddBlock { path, id, client, previous: finished },
        }
    }
}
