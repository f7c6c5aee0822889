//! Calls about snapshots, and paths that lead into them.

use super::generate::{Generator, quoted};
use super::model::Snapshot;
use super::pair::Pair;

const SNAPSHOTS: [&str; 7] = ["s0", "s1", "s2", "s3", "s4", "\u{e9}", "with space"];
/// Wanted number of snapshots.
const CROWD: usize = 10;

impl Generator {
    /// Directories where much goes on can have snapshots.
    pub fn begin_snapshots(&mut self, pair: &mut Pair) {
        for root in ["/s", "/w/alice", "/w/bob"] {
            pair.ask("hdfs", "allowSnapshot", &format!("snapshotRoot: {}", quoted(root))).expect("allowSnapshot");
            self.model.roots.push(root.to_owned());
        }
    }

    fn snapshot_root(&mut self) -> String {
        let roots = self.model.roots.clone();
        match self.dice.below(10) {
            0 => self.path(),
            1 => self.directory(),
            _ if roots.is_empty() => self.directory(),
            _ => roots[self.dice.below(roots.len())].clone(),
        }
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        let count = self.model.snapshots.len();
        (count > 0).then(|| self.model.snapshots[self.dice.below(count)].clone())
    }

    fn snapshot_name(&mut self) -> String {
        match self.dice.below(40) {
            0 => String::new(),
            1 => ".".to_owned(),
            2 => "..".to_owned(),
            3 => ".snapshot".to_owned(),
            4 => "a/b".to_owned(),
            5 => "a:b".to_owned(),
            6 => "n".repeat(250 + self.dice.below(10)),
            _ => self.pick(&SNAPSHOTS).to_owned(),
        }
    }

    /// A path in the past, or one like it; none where nothing has snapshots.
    pub fn past_path(&mut self) -> Option<String> {
        let Snapshot { root, name, paths } = self.snapshot()?;
        let below = |generator: &mut Generator| match paths.len() {
            0 => String::new(),
            n => paths[generator.dice.below(n)].clone(),
        };
        let trunk = root.trim_end_matches('/');
        Some(match self.dice.below(16) {
            0 => format!("{trunk}/.snapshot"),
            1 => format!("{trunk}/.snapshot/{name}"),
            2 => format!("{trunk}/.snapshot/none"),
            3 => format!("{trunk}/.snapshot/{name}{}/{}", below(self), self.pick(&["a", "b", "none"])),
            4 => format!("/.reserved/raw{trunk}/.snapshot/{name}{}", below(self)),
            5 => format!("{trunk}/.snapshot/{name}{}/", below(self)),
            6 => match self.model.tree.get(&root).map_or(0, |entry| entry.id) {
                0 => format!("{trunk}/.snapshot/{name}/.snapshot"),
                id => format!("/.reserved/.inodes/§F{id}§/.snapshot/{name}{}", below(self)),
            },
            _ => format!("{trunk}/.snapshot/{name}{}", below(self)),
        })
    }

    /// One call that is about snapshots themselves.
    pub fn snapshots(&mut self, pair: &mut Pair) {
        let user = if self.one_in(8) { self.user() } else { "hdfs" };
        match self.dice.below(20) {
            0 => {
                let path = if self.one_in(3) { self.path() } else { self.directory() };
                let _ = pair.ask(user, "allowSnapshot", &format!("snapshotRoot: {}", quoted(&path)));
                self.list_roots(pair);
            }
            1 => {
                let path = self.snapshot_root();
                let _ = pair.ask(user, "disallowSnapshot", &format!("snapshotRoot: {}", quoted(&path)));
                self.list_roots(pair);
            }
            2..=6 if self.model.snapshots.len() < CROWD => self.create_snapshot(pair, user),
            2..=8 => self.delete_snapshot(pair, user),
            9 | 10 => self.rename_snapshot(pair, user),
            11 => self.list_roots(pair),
            12 => {
                let root = self.snapshot_root();
                let _ = pair.ask(user, "getSnapshotListing", &format!("snapshotRoot: {}", quoted(&root)));
            }
            _ => self.difference(pair, user),
        }
    }

    fn create_snapshot(&mut self, pair: &mut Pair, user: &'static str) {
        let (root, name) = (self.snapshot_root(), self.snapshot_name());
        let src = quoted(&root);
        let unnamed = self.one_in(8);
        let named = if unnamed { String::new() } else { format!(" snapshotName: {}", quoted(&name)) };
        if pair.ask(user, "createSnapshot", &format!("snapshotRoot: {src}{named}")).is_err() {
            return;
        }
        let name = if unnamed || name.is_empty() {
            // the name is the time, which is another one for each of them
            let name = format!("u{}", self.dice.below(1 << 30));
            let request = format!("snapshotRoot: {src} snapshotOldName: \"§N§\" snapshotNewName: \"{name}\"",);
            pair.ask("hdfs", "renameSnapshot", &request).expect("renameSnapshot");
            name
        } else {
            name
        };
        if self.model.tree.contains_key(&root) {
            let below = format!("{root}/");
            let paths = self
                .model
                .tree
                .keys()
                .filter(|path| path.starts_with(&below))
                .map(|path| path[root.len()..].to_owned());
            let paths = paths.collect();
            self.model.snapshots.push(Snapshot { root, name, paths });
        }
    }

    fn delete_snapshot(&mut self, pair: &mut Pair, user: &'static str) {
        let Some(Snapshot { root, name, .. }) = self.snapshot() else { return };
        let (asked, title) =
            if self.one_in(10) { (self.snapshot_root(), self.snapshot_name()) } else { (root.clone(), name.clone()) };
        let request = format!("snapshotRoot: {} snapshotName: {}", quoted(&asked), quoted(&title));
        if pair.ask(user, "deleteSnapshot", &request).is_ok() {
            self.model.snapshots.retain(|s| s.root != asked || s.name != title);
        }
    }

    fn rename_snapshot(&mut self, pair: &mut Pair, user: &'static str) {
        let Some(Snapshot { root, name, .. }) = self.snapshot() else { return };
        let old = if self.one_in(8) { self.snapshot_name() } else { name };
        let new = self.snapshot_name();
        let root = if self.one_in(12) { self.snapshot_root() } else { root };
        let request = format!(
            "snapshotRoot: {} snapshotOldName: {} snapshotNewName: {}",
            quoted(&root),
            quoted(&old),
            quoted(&new)
        );
        if pair.ask(user, "renameSnapshot", &request).is_ok() {
            self.model
                .snapshots
                .iter_mut()
                .filter(|s| s.root == root && s.name == old)
                .for_each(|s| s.name = new.clone());
        }
    }

    fn difference(&mut self, pair: &mut Pair, user: &'static str) {
        let Some(Snapshot { root, name, paths }) = self.snapshot() else { return };
        let others: Vec<String> =
            self.model.snapshots.iter().filter(|s| s.root == root).map(|s| s.name.clone()).collect();
        let other = match self.dice.below(8) {
            0 | 1 => String::new(),
            2 => self.snapshot_name(),
            _ => others[self.dice.below(others.len())].clone(),
        };
        let (from, to) = if self.one_in(2) { (name, other) } else { (other, name) };
        let at = match self.dice.below(8) {
            0 if !paths.is_empty() => format!("{root}{}", paths[self.dice.below(paths.len())]),
            1 => self.path(),
            _ => root,
        };
        self.differences(pair, user, &at, &from, &to);
    }

    fn differences(&mut self, pair: &mut Pair, user: &str, at: &str, from: &str, to: &str) {
        let request = format!("snapshotRoot: {} fromSnapshot: {} toSnapshot: {}", quoted(at), quoted(from), quoted(to));
        let _ = pair.ask(user, "getSnapshotDiffReport", &request);
        let request = format!("{request} cursor {{ startPath: \"\" index: -1 }}");
        let _ = pair.ask(user, "getSnapshotDiffReportListing", &request);
    }

    /// Which directories allow snapshots, as Java has it.
    pub fn list_roots(&mut self, pair: &mut Pair) {
        let Ok(answer) = pair.ask("hdfs", "getSnapshottableDirListing", "") else { return };
        self.model.roots.clear();
        let Some(list) = answer.get_field_by_name("snapshottableDirList") else { return };
        let Some(list) = list.as_message().and_then(|list| list.get_field_by_name("snapshottableDirListing")) else {
            return;
        };
        for entry in list.as_list().unwrap_or_default() {
            let Some(entry) = entry.as_message() else { continue };
            let bytes = |value: Option<std::borrow::Cow<'_, prost_reflect::Value>>| {
                value.and_then(|value| value.as_bytes().map(|b| String::from_utf8_lossy(b).into_owned()))
            };
            let status = entry.get_field_by_name("dirStatus");
            let name = status.as_ref().and_then(|s| bytes(s.as_message()?.get_field_by_name("path")));
            let above = bytes(entry.get_field_by_name("parent_fullpath"));
            let (name, above) = (name.unwrap_or_default(), above.unwrap_or_default());
            self.model.roots.push(format!("{}/{name}", above.trim_end_matches('/')));
        }
    }

    /// Compares every snapshot with all that is in it.
    pub fn survey_snapshots(&mut self, pair: &mut Pair) {
        self.list_roots(pair);
        self.model.snapshots.clear();
        for root in self.model.roots.clone() {
            let _ = pair.ask("hdfs", "getSnapshotListing", &format!("snapshotRoot: {}", quoted(&root)));
            let folder = format!("{}/.snapshot", root.trim_end_matches('/'));
            let names = self.list_past(pair, &folder);
            for (name, _) in &names {
                let trunk = format!("{folder}/{name}");
                let (mut open, mut paths) = (vec![trunk.clone()], Vec::new());
                while let Some(path) = open.pop() {
                    for (entry, directory) in self.list_past(pair, &path) {
                        let full = format!("{path}/{entry}");
                        paths.push(full[trunk.len()..].to_owned());
                        if directory {
                            open.push(full);
                        }
                    }
                }
                self.model.snapshots.push(Snapshot { root: root.clone(), name: name.clone(), paths });
            }
            let mut from = String::new();
            for (to, _) in &names {
                self.differences(pair, "hdfs", &root, &from, to);
                from = to.clone();
            }
            self.differences(pair, "hdfs", &root, &from, "");
        }
    }

    fn list_past(&mut self, pair: &mut Pair, path: &str) -> Vec<(String, bool)> {
        let src = quoted(path);
        for (method, key) in
            [("getAclStatus", "src"), ("getXAttrs", "src"), ("getContentSummary", "path"), ("getStoragePolicy", "path")]
        {
            let _ = pair.ask("hdfs", method, &format!("{key}: {src}"));
        }
        let request = format!("src: {src} startAfter: \"\" needLocation: true");
        let Ok(answer) = pair.ask("hdfs", "getListing", &request) else { return Vec::new() };
        let entries = super::generate::listed(&answer);
        let entry = |entry: prost_reflect::DynamicMessage| {
            let path = entry.get_field_by_name("path")?.as_bytes().cloned()?;
            let kind = entry.get_field_by_name("fileType")?.as_enum_number()?;
            Some((std::str::from_utf8(&path).ok()?.to_owned(), kind == 1))
        };
        entries.into_iter().filter_map(entry).collect()
    }
}
