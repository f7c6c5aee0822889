//! The twin: a map from path to what is there, and what each call does to it, as the HDFS documentation of the call has it.

use std::collections::BTreeMap;

/// Kind of a refusal, by the name of its variant; the two that stand for Java's `AccessControlException` count as one.
pub type Kind = &'static str;
/// Answer or refusal.
pub type Out = Result<Answer, Kind>;

/// What a call answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Nothing,
    Yes(bool),
    Status(Option<Status>),
    Names(Option<Vec<String>>),
    /// Id and stamp.
    Block(i64, i64),
}

/// What a client sees of a file or directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    pub id: i64,
    pub directory: bool,
    pub length: u64,
    pub replication: u16,
    pub block_size: u64,
    pub mtime: i64,
    /// Files only.
    pub atime: i64,
    pub mode: u16,
    pub owner: String,
    pub group: String,
    pub children: u32,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Who {
    pub user: String,
    pub groups: Vec<String>,
    pub superuser: bool,
}

/// A block of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub id: i64,
    pub stamp: i64,
    /// As the running server has it.
    pub length: u64,
    /// As the log has it.
    pub logged: u64,
    /// The client has said that it is finished.
    pub committed: bool,
    /// A DataNode has it.
    pub received: bool,
    /// The log says that it is finished.
    pub done: bool,
    /// Length that the client will give it in the end.
    pub wanted: u64,
}

impl Part {
    fn complete(&self) -> bool {
        self.done || self.committed && self.received
    }
}

/// A file's own things.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    pub replication: u16,
    pub block_size: u64,
    pub blocks: Vec<Part>,
    /// Who writes it.
    pub writer: Option<String>,
}

/// A file or directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub id: i64,
    pub owner: String,
    pub group: String,
    pub mode: u16,
    pub mtime: i64,
    pub atime: i64,
    /// Limit of names below a directory, itself included.
    pub names: Option<u64>,
    /// `None` for directories.
    pub file: Option<File>,
}

/// The whole namespace.
#[derive(Clone, Debug)]
pub struct Twin {
    pub nodes: BTreeMap<String, Node>,
    pub last_id: i64,
    pub last_block: i64,
    pub last_stamp: i64,
    pub now: i64,
}

const ACCESS: Kind = "AccessControl";
const R: u16 = 4;
const W: u16 = 2;
const X: u16 = 1;

/// What must be granted.
#[derive(Default)]
struct Need {
    ancestor: u16,
    parent: u16,
    inode: u16,
    subtree: bool,
    owner: bool,
}

pub fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

pub fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether `path` is `top` or below it.
pub fn is_within(path: &str, top: &str) -> bool {
    top == "/" || path == top || path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'))
}

/// All proper ancestors, from the root on.
fn ancestors(path: &str) -> Vec<&str> {
    if path == "/" {
        return Vec::new();
    }
    let mut all = vec!["/"];
    all.extend(path.match_indices('/').skip(1).map(|(at, _)| &path[..at]));
    all
}

fn canonical(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

fn may_be_made(path: &str) -> bool {
    if !path.starts_with('/') {
        return false;
    }
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
    let by_id = parts.starts_with(&[".reserved", ".inodes"]);
    parts.iter().enumerate().all(|(i, part)| match *part {
        "" | "." => false,
        ".." => by_id && i > 2,
        other => !other.contains(':'),
    })
}

/// What is asked of a path before anything is looked at.
fn check_length(path: &str) -> Result<(), Kind> {
    if path.is_empty() {
        return Err("IllegalArgument");
    }
    let levels = path.split('/').filter(|part| !part.is_empty()).count();
    if path.encode_utf16().count() > 8_000 || levels > 1_000 { Err("Io") } else { Ok(()) }
}

impl Twin {
    pub fn new(owner: &str, now: i64) -> Twin {
        let root = Node {
            id: 16_385,
            owner: owner.to_owned(),
            group: "supergroup".to_owned(),
            mode: 0o755,
            mtime: 0,
            atime: 0,
            names: None,
            file: None,
        };
        let nodes = BTreeMap::from([("/".to_owned(), root)]);
        Twin { nodes, last_id: 16_385, last_block: 0x4000_0000, last_stamp: 1_000, now }
    }

    fn is_directory(&self, path: &str) -> bool {
        self.nodes.get(path).is_some_and(|node| node.file.is_none())
    }

    pub fn children<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        let below = self.nodes.range::<str, _>((std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded));
        below.map(|(p, _)| p.as_str()).take_while(move |p| p.starts_with(path)).filter(move |p| parent_of(p) == path)
    }

    // ---- who may what

    fn grants(&self, who: &Who, path: &str, access: u16) -> bool {
        let node = &self.nodes[path];
        let bits = if node.owner == who.user {
            node.mode >> 6
        } else if who.groups.contains(&node.group) {
            node.mode >> 3
        } else {
            node.mode
        };
        bits & access == access
    }

    fn deepest<'p>(&self, path: &'p str) -> &'p str {
        ancestors(path).into_iter().rfind(|p| self.nodes.contains_key(*p)).unwrap_or("/")
    }

    /// The plain form of a path, if the caller may walk it.
    fn walk(&self, who: &Who, path: &str, makes: bool) -> Result<String, Kind> {
        if makes && !may_be_made(path) {
            return Err("InvalidPath");
        }
        if !path.starts_with('/') {
            return Err("Assertion");
        }
        let plain = self.by_id(path)?;
        for ancestor in ancestors(&plain) {
            match self.nodes.get(ancestor) {
                None => break,
                Some(node) if node.file.is_some() => return Err(if makes { "ParentNotDirectory" } else { ACCESS }),
                Some(_) if !who.superuser && !self.grants(who, ancestor, X) => return Err(ACCESS),
                Some(_) => {}
            }
        }
        Ok(plain)
    }

    fn by_id(&self, path: &str) -> Result<String, Kind> {
        let plain = canonical(path);
        let Some(rest) = plain.strip_prefix("/.reserved/.inodes/") else { return Ok(plain) };
        let (id, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let found = self.nodes.iter().find(|(_, node)| node.id.to_string() == id).ok_or("FileNotFound")?;
        if rest.split('/').next() == Some("..") {
            return Ok(parent_of(found.0).to_owned());
        }
        Ok(canonical(&format!("{}/{rest}", found.0)))
    }

    fn check(&self, who: &Who, path: &str, need: &Need) -> Result<(), Kind> {
        if who.superuser {
            return Ok(());
        }
        let there = self.nodes.contains_key(path);
        let parent = parent_of(path);
        if ancestors(path).iter().any(|above| self.nodes.contains_key(*above) && !self.grants(who, above, X)) {
            return Err(ACCESS);
        }
        if path != "/" {
            if need.parent & W != 0 && there && self.sticky(who, parent, path) {
                return Err(ACCESS);
            }
            if !self.grants(who, self.deepest(path), need.ancestor) {
                return Err(ACCESS);
            }
            if self.nodes.contains_key(parent) && !self.grants(who, parent, need.parent) {
                return Err(ACCESS);
            }
        }
        if !there {
            return Ok(());
        }
        if !self.grants(who, path, need.inode) || need.owner && self.nodes[path].owner != who.user {
            return Err(ACCESS);
        }
        if need.subtree && self.is_directory(path) {
            let directories = self.nodes.iter().filter(|(p, node)| node.file.is_none() && is_within(p, path));
            for (directory, _) in directories {
                if self.children(directory).next().is_some() && !self.grants(who, directory, R | W | X)
                    || self.children(directory).any(|child| self.sticky(who, directory, child))
                {
                    return Err(ACCESS);
                }
            }
        }
        Ok(())
    }

    fn sticky(&self, who: &Who, parent: &str, child: &str) -> bool {
        let parent = &self.nodes[parent];
        parent.mode & 0o1000 != 0 && parent.owner != who.user && self.nodes[child].owner != who.user
    }

    // ---- names

    fn check_name(parent: &str, name: &str) -> Result<(), Kind> {
        if parent == "/" && name == ".reserved" {
            return Err("HadoopIllegalArgument");
        }
        if name.len() > 255 {
            return Err("ComponentTooLong");
        }
        if name == ".snapshot" { Err("HadoopIllegalArgument") } else { Ok(()) }
    }

    pub fn count_names(&self, top: &str) -> u64 {
        self.nodes.keys().filter(|path| is_within(path, top)).count() as u64
    }

    /// Whether `more` names fit below `directory` once `gone` are gone, but for the quotas of `exempt` and above.
    fn check_quota(&self, directory: &str, exempt: Option<&str>, more: i64, gone: i64) -> Result<(), Kind> {
        let mut above = ancestors(directory);
        above.push(directory);
        for path in above {
            if exempt.is_some_and(|exempt| is_within(exempt, path)) {
                continue;
            }
            let over = |limit: u64| more > 0 && self.count_names(path) as i64 - gone > limit as i64 - more;
            if self.nodes[path].names.is_some_and(over) {
                return Err("NamespaceQuota");
            }
        }
        Ok(())
    }

    fn touch(&mut self, directory: &str) {
        let now = self.now;
        self.nodes.get_mut(directory).expect("a directory").mtime = now;
    }

    fn enter(&mut self, who: &Who, path: &str, mode: u16, file: Option<File>) {
        let parent = parent_of(path).to_owned();
        self.last_id += 1;
        let group = self.nodes[&parent].group.clone();
        let (id, now) = (self.last_id, self.now);
        let node =
            Node { id, owner: who.user.clone(), group, mode: mode & 0o1777, mtime: now, atime: now, names: None, file };
        self.nodes.insert(path.to_owned(), node);
        self.touch(&parent);
    }

    fn drop_subtree(&mut self, top: &str) {
        self.nodes.retain(|path, _| !is_within(path, top));
    }

    fn make_directory(&mut self, who: &Who, path: &str, mode: u16) -> Result<(), Kind> {
        let parent = parent_of(path);
        Twin::check_name(parent, name_of(path))?;
        self.check_quota(parent, None, 1, 0)?;
        self.enter(who, path, mode, None);
        Ok(())
    }

    fn make_ancestors(&mut self, who: &Who, path: &str, mode: u16) -> Result<(), Kind> {
        for ancestor in ancestors(path) {
            if !self.nodes.contains_key(ancestor) {
                self.make_directory(who, ancestor, mode & 0o777 | 0o300)?;
            }
        }
        Ok(())
    }

    fn parent_must_exist(&self, path: &str) -> Result<(), Kind> {
        let parent = parent_of(path);
        if self.nodes.contains_key(parent) { Ok(()) } else { Err("FileNotFound") }
    }

    // ---- calls

    pub fn mkdirs(&mut self, who: &Who, path: &str, mode: u16, parents: bool) -> Out {
        check_length(path)?;
        let path = self.walk(who, path, true)?;
        if let Some(node) = self.nodes.get(&path) {
            return if node.file.is_some() { Err("FileAlreadyExists") } else { Ok(Answer::Yes(true)) };
        }
        self.check(who, &path, &Need { ancestor: W, ..Need::default() })?;
        if !parents {
            self.parent_must_exist(&path)?;
        }
        self.make_ancestors(who, &path, mode)?;
        self.make_directory(who, &path, mode)?;
        Ok(Answer::Yes(true))
    }

    pub fn create(
        &mut self,
        who: &Who,
        path: &str,
        mode: u16,
        client: &str,
        (create, overwrite, parents): (bool, bool, bool),
        (replication, block_size): (u16, u64),
    ) -> Out {
        check_length(path)?;
        let plain = canonical(path);
        let reserved = path.starts_with("/.reserved/") && !path.starts_with("/.reserved/.inodes");
        if !may_be_made(path) || plain == "/.reserved" || reserved {
            return Err("InvalidPath");
        }
        let path = self.walk(who, path, true)?;
        self.check(who, &path, &Need { ancestor: W, ..Need::default() })?;
        let old = self.nodes.get(&path);
        match old {
            Some(node) if node.file.is_none() => return Err("FileAlreadyExists"),
            Some(_) if overwrite => self.check(who, &path, &Need { inode: W, ..Need::default() })?,
            Some(_) => {}
            None => {
                if !parents {
                    self.parent_must_exist(&path)?;
                }
                if !create {
                    return Err("FileNotFound");
                }
            }
        }
        if block_size < 1_000 || replication == 0 || replication > 512 {
            return Err("Io");
        }
        if let Some(file) = old.and_then(|node| node.file.as_ref())
            && !overwrite
        {
            return Err(if file.writer.is_some() { "AlreadyBeingCreated" } else { "FileAlreadyExists" });
        }
        let replaces = old.is_some();
        let inherited = self.nodes[self.deepest(&path)].mode;
        self.make_ancestors(who, &path, inherited)?;
        let parent = parent_of(&path).to_owned();
        if replaces {
            self.check_quota(&parent, None, 1, 1)?;
            self.drop_subtree(&path);
        } else {
            Twin::check_name(&parent, name_of(&path))?;
            self.check_quota(&parent, None, 1, 0)?;
        }
        let file = File { replication, block_size, blocks: Vec::new(), writer: Some(client.to_owned()) };
        self.enter(who, &path, mode, Some(file));
        Ok(Answer::Status(self.status(&path)))
    }

    pub fn delete(&mut self, who: &Who, path: &str, recursive: bool) -> Out {
        if canonical(path) == "/.reserved" {
            return Err("InvalidPath");
        }
        let path = self.walk(who, path, false)?;
        self.check(who, &path, &Need { parent: W, subtree: true, ..Need::default() })?;
        if !self.nodes.contains_key(&path) {
            return Ok(Answer::Yes(false));
        }
        if self.children(&path).next().is_some() && !recursive {
            return Err("PathIsNotEmptyDirectory");
        }
        if path == "/" {
            return Ok(Answer::Yes(false));
        }
        self.drop_subtree(&path);
        self.touch(parent_of(&path));
        Ok(Answer::Yes(true))
    }

    /// The checks of both renames: source and target in plain form.
    fn rename_paths(&self, who: &Who, from: &str, to: &str, into: bool) -> Result<(String, String), Kind> {
        check_length(to)?;
        let from = self.walk(who, from, false)?;
        let mut to = self.walk(who, to, true)?;
        if into && self.is_directory(&to) {
            to = canonical(&format!("{to}/{}", if from == "/" { "" } else { name_of(&from) }));
        }
        self.check(who, &from, &Need { parent: W, ..Need::default() })?;
        self.check(who, &to, &Need { ancestor: W, ..Need::default() })?;
        Ok((from, to))
    }

    fn check_move(&self, from: &str, to: &str) -> Result<(), Kind> {
        Twin::check_name(parent_of(to), name_of(to))?;
        let gone = if self.nodes.contains_key(to) { self.count_names(to) } else { 0 };
        self.check_quota(parent_of(to), Some(parent_of(from)), self.count_names(from) as i64 - gone as i64, 0)
    }

    fn relocate(&mut self, from: &str, to: &str) {
        let moved: Vec<String> = self.nodes.keys().filter(|path| is_within(path, from)).cloned().collect();
        self.drop_subtree(to);
        for path in moved {
            let node = self.nodes.remove(&path).expect("listed");
            self.nodes.insert(format!("{to}{}", &path[from.len()..]), node);
        }
        self.touch(parent_of(from));
        self.touch(parent_of(to));
    }

    pub fn rename(&mut self, who: &Who, from: &str, to: &str) -> Out {
        let (from, to) = self.rename_paths(who, from, to, true)?;
        if from == "/" || !self.nodes.contains_key(&from) {
            return Ok(Answer::Yes(false));
        }
        if from == to {
            return Ok(Answer::Yes(true));
        }
        let reserved = from == "/.reserved" || to == "/.reserved";
        if is_within(&to, &from) || reserved || self.nodes.contains_key(&to) || !self.nodes.contains_key(parent_of(&to))
        {
            return Ok(Answer::Yes(false));
        }
        self.check_move(&from, &to)?;
        self.relocate(&from, &to);
        Ok(Answer::Yes(true))
    }

    pub fn rename2(&mut self, who: &Who, from: &str, to: &str, overwrite: bool) -> Out {
        let (from, to) = self.rename_paths(who, from, to, false)?;
        if !self.nodes.contains_key(&from) {
            return Err("FileNotFound");
        }
        if from == "/" {
            return Err("Io");
        }
        if from == to {
            return Err("FileAlreadyExists");
        }
        if is_within(&to, &from) {
            return Err("Io");
        }
        if to == "/.reserved" {
            return Err("InvalidPath");
        }
        if to == "/" {
            return Err("Io");
        }
        if self.nodes.contains_key(&to) {
            if self.is_directory(&from) != self.is_directory(&to) {
                return Err("Io");
            }
            if !overwrite {
                return Err("FileAlreadyExists");
            }
            if self.children(&to).next().is_some() {
                return Err("Io");
            }
        }
        self.parent_must_exist(&to)?;
        self.check_move(&from, &to)?;
        self.relocate(&from, &to);
        Ok(Answer::Nothing)
    }

    pub fn set_permission(&mut self, who: &Who, path: &str, mode: u16) -> Out {
        let path = self.own(who, path)?;
        self.nodes.get_mut(&path).ok_or("FileNotFound")?.mode = mode & 0o1777;
        Ok(Answer::Nothing)
    }

    fn own(&self, who: &Who, path: &str) -> Result<String, Kind> {
        if canonical(path) == "/.reserved" {
            return Err("InvalidPath");
        }
        let path = self.walk(who, path, false)?;
        if !self.nodes.contains_key(&path) {
            return Err("FileNotFound");
        }
        self.check(who, &path, &Need { owner: true, ..Need::default() })?;
        Ok(path)
    }

    pub fn set_owner(&mut self, who: &Who, path: &str, user: Option<&str>, group: Option<&str>) -> Out {
        let path = self.own(who, path)?;
        if !who.superuser
            && (user.is_some_and(|user| user != who.user)
                || group.is_some_and(|group| !who.groups.iter().any(|g| g == group)))
        {
            return Err(ACCESS);
        }
        let node = self.nodes.get_mut(&path).ok_or("FileNotFound")?;
        user.into_iter().for_each(|user| node.owner = user.to_owned());
        group.into_iter().for_each(|group| node.group = group.to_owned());
        Ok(Answer::Nothing)
    }

    pub fn set_times(&mut self, who: &Who, path: &str, mtime: i64, atime: i64) -> Out {
        let path = self.walk(who, path, false)?;
        self.check(who, &path, &Need { inode: W, ..Need::default() })?;
        let node = self.nodes.get_mut(&path).ok_or("FileNotFound")?;
        if mtime >= 0 {
            node.mtime = mtime;
        }
        if atime >= 0 {
            node.atime = atime;
        }
        Ok(Answer::Nothing)
    }

    pub fn set_replication(&mut self, who: &Who, path: &str, replication: u16) -> Out {
        if replication == 0 || replication > 512 {
            return Err("Io");
        }
        let path = self.walk(who, path, false)?;
        self.check(who, &path, &Need { inode: W, ..Need::default() })?;
        match self.nodes.get_mut(&path).and_then(|node| node.file.as_mut()) {
            Some(file) => {
                file.replication = replication;
                Ok(Answer::Yes(true))
            }
            None => Ok(Answer::Yes(false)),
        }
    }

    pub fn set_quota(&mut self, who: &Who, path: &str, names: i64) -> Out {
        if !who.superuser {
            return Err(ACCESS);
        }
        let path = self.walk(who, path, false)?;
        if names < -1 {
            return Err("IllegalArgument");
        }
        let node = self.nodes.get_mut(&path).ok_or("FileNotFound")?;
        if node.file.is_some() {
            return Err("PathIsNotDirectory");
        }
        if names != i64::MAX {
            node.names = (names >= 0).then_some(names as u64);
        }
        Ok(Answer::Nothing)
    }

    // ---- blocks

    /// The open file of an id (or, without one, of a path) that `client` writes.
    fn open_file(&mut self, who: &Who, path: &str, id: i64, client: &str) -> Result<String, Kind> {
        let path = if id == 0 {
            self.walk(who, path, false)?
        } else {
            self.nodes.iter().find(|(_, node)| node.id == id).map(|(path, _)| path.clone()).ok_or("FileNotFound")?
        };
        let node = self.nodes.get(&path).ok_or("FileNotFound")?;
        let file = node.file.as_ref().ok_or("LeaseExpired")?;
        if file.writer.as_deref() == Some(client) { Ok(path) } else { Err("LeaseExpired") }
    }

    fn file_mut(&mut self, path: &str) -> &mut File {
        self.nodes.get_mut(path).and_then(|node| node.file.as_mut()).expect("a file")
    }

    pub fn add_block(
        &mut self,
        who: &Who,
        path: &str,
        id: i64,
        client: &str,
        previous: Option<(i64, i64, u64)>,
    ) -> Out {
        let path = self.open_file(who, path, id, client)?;
        let (mut last_block, mut last_stamp) = (self.last_block, self.last_stamp);
        let file = self.file_mut(&path);
        let named = previous.map(|(id, stamp, _)| (id, stamp));
        let name = |part: Option<&Part>| part.map(|part| (part.id, part.stamp));
        let count = file.blocks.len();
        let last = file.blocks.last();
        let penultimate = count.checked_sub(2).map(|at| &file.blocks[at]);
        let full = named.is_none() && last.is_some_and(|last| last.length >= file.block_size && last.complete());
        if name(last) != named && !full {
            return match last {
                Some(last) if name(penultimate) == named && last.length == 0 && !last.complete() => {
                    Ok(Answer::Block(last.id, last.stamp))
                }
                _ => Err("Io"),
            };
        }
        if penultimate.is_some_and(|part| !part.complete()) {
            return Err("NotReplicatedYet");
        }
        if let (Some(last), Some((_, _, length))) = (file.blocks.last_mut(), previous)
            && !last.done
            && !last.committed
        {
            // also where it is shorter than what was told before
            (last.committed, last.length) = (true, length);
        }
        if let Some(last) = file.blocks.last_mut() {
            (last.done, last.logged) = (last.done, last.length);
        }
        (last_block, last_stamp) = (last_block + 1, last_stamp + 1);
        file.blocks.push(Part {
            id: last_block,
            stamp: last_stamp,
            length: 0,
            logged: 0,
            committed: false,
            received: false,
            done: false,
            wanted: 1 + (last_block * 7_919 % 1_000) as u64,
        });
        (self.last_block, self.last_stamp) = (last_block, last_stamp);
        Ok(Answer::Block(last_block, last_stamp))
    }

    pub fn fsync(&mut self, who: &Who, path: &str, id: i64, client: &str, length: u64) -> Out {
        let path = self.open_file(who, path, id, client)?;
        for part in &mut self.file_mut(&path).blocks {
            part.logged = part.length;
        }
        if let Some(last) = self.file_mut(&path).blocks.last_mut().filter(|_| length > 0) {
            (last.length, last.logged) = (length, length);
        }
        Ok(Answer::Nothing)
    }

    pub fn abandon(&mut self, who: &Who, path: &str, id: i64, client: &str, block: i64) -> Out {
        let path = self.open_file(who, path, id, client)?;
        let file = self.file_mut(&path);
        if file.blocks.last().is_some_and(|last| last.id == block) {
            file.blocks.pop();
            file.blocks.iter_mut().for_each(|part| part.logged = part.length);
        }
        Ok(Answer::Nothing)
    }

    pub fn complete(&mut self, who: &Who, path: &str, id: i64, client: &str, last: Option<(i64, i64, u64)>) -> Out {
        let now = self.now;
        let plain = match self.open_file(who, path, id, client) {
            Err("LeaseExpired") => {
                let found = if id == 0 {
                    self.walk(who, path, false).ok().and_then(|path| self.nodes.get(&path))
                } else {
                    self.nodes.values().find(|node| node.id == id)
                };
                let closed = found.and_then(|node| node.file.as_ref()).filter(|file| file.writer.is_none());
                let ends = |file: &File| file.blocks.last().map(|part| (part.id, part.stamp));
                let repeated = closed.is_some_and(|file| ends(file) == last.map(|(id, stamp, _)| (id, stamp)));
                return if repeated { Ok(Answer::Yes(true)) } else { Err("LeaseExpired") };
            }
            other => other?,
        };
        let file = self.file_mut(&plain);
        let before_last = file.blocks.len().checked_sub(2).map(|at| file.blocks[at].complete());
        if before_last == Some(false) {
            return Ok(Answer::Yes(false));
        }
        if let (Some(part), Some((_, stamp, length))) = (file.blocks.last_mut(), last)
            && !part.done
            && !part.committed
        {
            if stamp != part.stamp {
                return Err("Io");
            }
            (part.committed, part.length) = (true, length);
        }
        if !file.blocks.iter().all(Part::complete) {
            return Ok(Answer::Yes(false));
        }
        for part in &mut file.blocks {
            (part.logged, part.done) = (part.length, true);
        }
        file.writer = None;
        self.nodes.get_mut(&plain).expect("found").mtime = now;
        Ok(Answer::Yes(true))
    }

    /// A DataNode has told of a block.
    pub fn received(&mut self, id: i64) {
        let parts = self.nodes.values_mut().filter_map(|node| node.file.as_mut()).flat_map(|file| &mut file.blocks);
        parts.filter(|part| part.id == id).for_each(|part| part.received = true);
    }

    /// What a restart forgets: lengths that clients have told and no record has.
    pub fn restart(&mut self) {
        for file in self.nodes.values_mut().filter_map(|node| node.file.as_mut()) {
            let last = file.blocks.len().saturating_sub(1);
            for (at, part) in file.blocks.iter_mut().enumerate() {
                part.length = part.logged;
                part.committed = false;
                part.done |= at < last;
            }
        }
    }

    // ---- reads

    fn status(&self, path: &str) -> Option<Status> {
        let node = self.nodes.get(path)?;
        let file = node.file.as_ref();
        Some(Status {
            id: node.id,
            directory: file.is_none(),
            length: file.map_or(0, |file| file.blocks.iter().map(|part| part.length).sum()),
            replication: file.map_or(0, |file| file.replication),
            block_size: file.map_or(0, |file| file.block_size),
            mtime: node.mtime,
            atime: if file.is_some() { node.atime } else { 0 },
            mode: node.mode,
            owner: node.owner.clone(),
            group: node.group.clone(),
            children: self.children(path).count() as u32,
        })
    }

    pub fn info(&self, who: &Who, path: &str) -> Out {
        match self.walk(who, path, false) {
            // no inode, and shown as one
            Ok(path) if path == "/.reserved" => Ok(Answer::Status(Some(Status {
                id: -1,
                directory: true,
                length: 0,
                replication: 0,
                block_size: 0,
                mtime: 0,
                atime: 0,
                mode: 0o1770,
                owner: String::new(),
                group: String::new(),
                children: 0,
            }))),
            Ok(path) => Ok(Answer::Status(self.status(&path))),
            Err(ACCESS) if who.superuser => Ok(Answer::Status(None)),
            Err(kind) => Err(kind),
        }
    }

    pub fn list(&self, who: &Who, path: &str) -> Out {
        let path = self.walk(who, path, false)?;
        if self.is_directory(&path) {
            self.check(who, &path, &Need { inode: R | X, ..Need::default() })?;
        }
        if path == "/.reserved" {
            return Ok(Answer::Names(Some(vec![".inodes".to_owned(), "raw".to_owned()])));
        }
        let Some(node) = self.nodes.get(&path) else {
            let asks_for_snapshots = name_of(&path) == ".snapshot" && self.is_directory(parent_of(&path));
            return if asks_for_snapshots { Err("Snapshot") } else { Ok(Answer::Names(None)) };
        };
        if node.file.is_some() {
            return Ok(Answer::Names(Some(vec![String::new()])));
        }
        let mut names: Vec<String> = self.children(&path).map(|child| name_of(child).to_owned()).collect();
        names.sort_by(|a, b| a.bytes().map(|b| b as i8).cmp(b.bytes().map(|b| b as i8)));
        Ok(Answer::Names(Some(names)))
    }
}
