//! What the generator believes is there: enough to make calls that mostly succeed. It is put right by every survey.

use std::collections::BTreeMap;

/// A block as Java's client has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub id: u64,
    pub stamp: u64,
    pub length: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub directory: bool,
    /// Java's inode id.
    pub id: u64,
    /// Lease holder of an open file.
    pub writer: Option<String>,
    pub blocks: Vec<Block>,
}

/// A snapshot, and what was below its directory then, as `/a/b`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub root: String,
    pub name: String,
    pub paths: Vec<String>,
}

/// Entries by path.
#[derive(Default)]
pub struct Model {
    pub tree: BTreeMap<String, Entry>,
    /// Directories that allow snapshots.
    pub roots: Vec<String>,
    pub snapshots: Vec<Snapshot>,
}

impl Model {
    pub fn put(&mut self, path: &str, entry: Entry) {
        for (at, _) in path.match_indices('/').skip(1) {
            self.tree.entry(path[..at].to_owned()).or_insert(Entry { directory: true, ..Entry::default() });
        }
        self.tree.insert(path.to_owned(), entry);
    }

    pub fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.tree.retain(|other, _| other != path && !other.starts_with(&below));
    }

    /// The old rename goes into a directory that exists.
    pub fn rename(&mut self, from: &str, to: &str, into: bool) {
        let name = from.rsplit('/').next().unwrap_or_default();
        let to = match self.tree.get(to) {
            Some(entry) if into && entry.directory => format!("{to}/{name}"),
            _ => to.to_owned(),
        };
        if from == to {
            return;
        }
        let below = format!("{from}/");
        let moved: Vec<String> =
            self.tree.keys().filter(|path| *path == from || path.starts_with(&below)).cloned().collect();
        self.remove(&to);
        for path in moved {
            if let Some(entry) = self.tree.remove(&path) {
                self.put(&format!("{to}{}", &path[from.len()..]), entry);
            }
        }
    }
}
