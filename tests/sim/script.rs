//! What the writers of a run do, each below a directory of its own, and what must be there afterwards.

use super::datanodes::Datanodes;
use super::node::OWNER;
use engine::Engine;
use ops::Write;
use ops::write::add_block::AddBlock;
use ops::write::attributes::{SetPermission, SetReplication};
use ops::write::complete::{Complete, Fsync};
use ops::write::create::Create;
use ops::write::delete::Delete;
use ops::write::mkdirs::Mkdirs;
use ops::write::new_node::CreateModes;
use ops::write::rename::Rename2;
use os::Os;
use os::sim::SimDisk;
use record::{InodeKind, KindTag};
use state::State;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use vocab::{AuthenticationMethod, Block, Caller, InodeId, Mode, Refusal};

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
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    /// One of these.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A file or directory as a log has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    Directory { mode: u16 },
    File { id: i64, mode: u16, replication: u16, open: bool, blocks: Vec<(i64, u64)> },
}

/// All below one directory, by path. Ids of inodes and blocks that only an unanswered call knows are 0.
pub type Tree = BTreeMap<String, Entry>;

/// Whether a restart may find `found` where `legal` was logged.
pub fn agrees(found: &Tree, legal: &Tree) -> bool {
    let same_block = |(f, l): (&(i64, u64), &(i64, u64))| (l.0 == 0 || f.0 == l.0) && f.1 == l.1;
    let same = |f: &Entry, l: &Entry| match (f, l) {
        (
            Entry::File { id: f_id, mode: f_mode, replication: f_replication, open: f_open, blocks: f_blocks },
            Entry::File { id, mode, replication, open, blocks },
        ) => {
            (*id == 0 || id == f_id)
                && (mode, replication, open) == (f_mode, f_replication, f_open)
                && blocks.len() == f_blocks.len()
                && f_blocks.iter().zip(blocks).all(same_block)
        }
        _ => f == l,
    };
    found.len() == legal.len() && found.iter().zip(legal).all(|((fp, f), (lp, l))| fp == lp && same(f, l))
}

/// What a state holds below `top` (itself included).
pub fn tree_of(state: &State, top: &str) -> Tree {
    let mut tree = Tree::new();
    let resolved = state.tree.resolve(&state.store, top.as_bytes()).expect("no reserved path");
    let mut open: Vec<_> = resolved.last().map(|inode| (top.to_owned(), inode)).into_iter().collect();
    while let Some((path, handle)) = open.pop() {
        let inode = state.store.inode(handle);
        let mode = inode.mode.bits();
        let entry = match inode.kind {
            InodeKind::File { replication, .. } => {
                let logged = |b: &_| state.logged_block(state.store.block(*b).block);
                let blocks = state.store.blocks_of(handle).iter().map(logged).map(|b| (b.id.0, b.length)).collect();
                Entry::File { id: inode.id.0, mode, replication, open: state.is_open(handle), blocks }
            }
            _ => Entry::Directory { mode },
        };
        if state.store.kind(handle) == KindTag::Directory {
            for child in state.tree.children(&state.store, handle) {
                open.push((format!("{path}/{}", String::from_utf8_lossy(state.store.name(child))), child));
            }
        }
        tree.insert(path, entry);
    }
    tree
}

/// The superuser.
pub fn owner() -> Caller {
    Caller {
        user: OWNER.into(),
        real_user: None,
        groups: std::sync::Arc::default(),
        method: AuthenticationMethod::Simple,
        address: "10.1.1.1:5000".parse().unwrap(),
        rpc_ids: None,
        retry: 0,
        context: None,
    }
}

/// A writer: what it was told, and what the call under way may have left.
#[derive(Clone)]
pub struct Writer {
    /// Its directory.
    pub top: String,
    client: String,
    dice: Dice,
    /// What it was told is there.
    pub known: Tree,
    /// What may be there instead while a call has no answer: the tree after each record of the call.
    pub possible: Vec<Tree>,
    /// Whether answers wait at the fence. Always, but in tests of the tests.
    pub fenced: bool,
    /// Answered calls.
    pub answers: usize,
    /// The last block as the client knows it, by file.
    written: BTreeMap<i64, Block>,
    /// Open files whose last block came from a call that was never answered: left alone.
    lost: BTreeSet<i64>,
}

/// One call.
#[derive(Clone, Debug)]
enum Call {
    Mkdirs(String),
    Create(String, bool),
    AddBlock(String),
    Fsync(String),
    Complete(String),
    Delete(String),
    Rename(String, String),
    Chmod(String, u16),
    Setrep(String, u16),
}

impl Writer {
    pub fn new(number: usize, seed: u64) -> Writer {
        Writer {
            top: format!("/w{number}"),
            client: format!("client-{number}"),
            dice: Dice(seed.wrapping_mul(31).wrapping_add(number as u64)),
            known: Tree::new(),
            possible: Vec::new(),
            fenced: true,
            answers: 0,
            written: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Takes what a restart has found for what is known from here on.
    pub fn adopt(&mut self, found: Tree) {
        for entry in found.values() {
            if let Entry::File { id, blocks, .. } = entry {
                let known = self.written.get(id).map(|b| b.id.0);
                if blocks.last().map(|b| b.0) != known {
                    self.lost.insert(*id);
                }
            }
        }
        self.known = found;
        self.possible.clear();
    }

    fn name(&mut self, files: bool) -> String {
        let directories: Vec<String> =
            self.known.iter().filter(|(_, e)| matches!(e, Entry::Directory { .. })).map(|(p, _)| p.clone()).collect();
        let parent = if directories.is_empty() { self.top.clone() } else { self.dice.of(&directories).clone() };
        let depth = parent.matches('/').count();
        let parent = if depth > 3 { self.top.clone() } else { parent };
        if files { format!("{parent}/f{}", self.dice.below(4)) } else { format!("{parent}/d{}", self.dice.below(3)) }
    }

    fn choose(&mut self) -> Call {
        if self.known.is_empty() {
            return Call::Mkdirs(self.top.clone());
        }
        let file = |(path, entry): (&String, &Entry)| match entry {
            Entry::File { id, open, .. } => Some((path.clone(), *open && !self.lost.contains(id))),
            Entry::Directory { .. } => None,
        };
        let files: Vec<(String, bool)> = self.known.iter().filter_map(file).collect();
        let opened: Vec<String> = files.iter().filter(|(_, open)| *open).map(|(p, _)| p.clone()).collect();
        let below: Vec<String> = self.known.keys().filter(|p| **p != self.top).cloned().collect();
        match self.dice.below(16) {
            0 | 1 => {
                let name = self.name(false);
                let deeper = self.dice.below(2) == 0;
                Call::Mkdirs(if deeper { format!("{name}/e/g") } else { name })
            }
            2..=4 => Call::Create(self.name(true), true),
            5..=8 if !opened.is_empty() => Call::AddBlock(self.dice.of(&opened).clone()),
            9 if !opened.is_empty() => Call::Fsync(self.dice.of(&opened).clone()),
            10 | 11 if !opened.is_empty() => Call::Complete(self.dice.of(&opened).clone()),
            12 if !below.is_empty() => Call::Delete(self.dice.of(&below).clone()),
            13 if !below.is_empty() => Call::Rename(self.dice.of(&below).clone(), self.name(false)),
            14 if !below.is_empty() => Call::Chmod(self.dice.of(&below).clone(), 0o700 + self.dice.below(64) as u16),
            15 if !files.is_empty() => {
                let path = self.dice.of(&files).0.clone();
                let Some(Entry::File { replication, .. }) = self.known.get(&path) else { unreachable!("listed") };
                // never more: scripted DataNodes make no copies
                let fewer = 1 + self.dice.below(usize::from(*replication)) as u16;
                Call::Setrep(path, fewer)
            }
            _ => Call::Create(self.name(true), false),
        }
    }

    /// The trees after each record of a call that succeeds.
    fn outcomes(&self, call: &Call) -> Vec<Tree> {
        let mut tree = self.known.clone();
        let mut all = Vec::new();
        match call {
            Call::Mkdirs(path) => {
                let levels = path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]);
                for end in levels {
                    if !tree.contains_key(&path[..end]) {
                        tree.insert(path[..end].to_owned(), Entry::Directory { mode: 0o755 });
                        all.push(tree.clone());
                    }
                }
            }
            Call::Create(path, _) => {
                let file = Entry::File { id: 0, mode: 0o644, replication: 3, open: true, blocks: Vec::new() };
                tree.insert(path.clone(), file);
                all.push(tree);
            }
            Call::AddBlock(path) | Call::Fsync(path) | Call::Complete(path) => {
                if let Some(Entry::File { id, open, blocks, .. }) = tree.get_mut(path) {
                    if let (Some(last), Some(written)) = (blocks.last_mut(), self.written.get(id)) {
                        last.1 = written.length;
                    }
                    match call {
                        Call::AddBlock(_) => blocks.push((0, 0)),
                        Call::Complete(_) => *open = false,
                        _ => {}
                    }
                }
                all.push(tree);
            }
            Call::Delete(path) => {
                tree.retain(|p, _| !is_below(p, path));
                all.push(tree);
            }
            Call::Rename(from, to) => {
                let moved: Vec<String> = tree.keys().filter(|p| is_below(p, from)).cloned().collect();
                for path in moved {
                    let entry = tree.remove(&path).expect("listed");
                    tree.insert(format!("{to}{}", &path[from.len()..]), entry);
                }
                all.push(tree);
            }
            Call::Chmod(path, new) => {
                match tree.get_mut(path) {
                    Some(Entry::Directory { mode } | Entry::File { mode, .. }) => *mode = *new,
                    None => {}
                }
                all.push(tree);
            }
            Call::Setrep(path, new) => {
                if let Some(Entry::File { replication, .. }) = tree.get_mut(path) {
                    *replication = *new;
                }
                all.push(tree);
            }
        }
        all
    }

    fn file(&self, path: &str) -> (i64, Option<Block>) {
        match self.known.get(path) {
            Some(Entry::File { id, .. }) => (*id, self.written.get(id).copied()),
            _ => (0, None),
        }
    }
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Hands a call to the engine. `fenced`: as the engine does it; else as it must not, for a test of the tests.
async fn call<W: Write>(engine: &Engine, op: &W, fenced: bool) -> Result<W::Reply, Refusal> {
    let who = owner();
    if fenced {
        return engine.fence(engine.write(op, &who)).await;
    }
    let prepared = engine.view("unfenced", &who, |view| op.prepare(view))?;
    engine.turn("unfenced", &who, |turn| op.run(turn, prepared)).answer
}

/// What an answer adds to what the call's outcome foretold.
enum Answer {
    Plain,
    File(i64),
    Block(Block),
    No,
}

/// Makes `calls` calls one after the other. Ends early, by never going on, when the NameNode does.
pub async fn write(
    writer: Rc<RefCell<Writer>>,
    engine: &Engine,
    (os, disk): (&Os, &SimDisk),
    nodes: &RefCell<Datanodes>,
    calls: usize,
) {
    let mut done = 0;
    while done < calls {
        let (call, client, before) = {
            let mut w = writer.borrow_mut();
            let call = w.choose();
            w.possible = w.outcomes(&call);
            (call.clone(), w.client.clone(), w.clone())
        };
        let answer = ask(&call, &client, &before, engine).await;
        if disk.stopped() {
            return; // the process is no more: nobody gets this answer
        }
        let counts = conclude(&mut writer.borrow_mut(), &call, answer, engine, os, nodes);
        done += usize::from(counts);
        tokio::task::yield_now().await;
    }
}

/// Takes an answer in. Whether the call counts: one in safe mode is made again.
fn conclude(
    w: &mut Writer,
    call: &Call,
    answer: Result<Answer, Refusal>,
    engine: &Engine,
    os: &Os,
    nodes: &RefCell<Datanodes>,
) -> bool {
    let mut possible = std::mem::take(&mut w.possible);
    match answer {
        Err(Refusal::SafeMode { .. }) => return false,
        // refused as a whole: multi-record calls are not refused half way without quotas
        Err(_) | Ok(Answer::No) => {}
        Ok(answer) => {
            if let Some(after) = possible.pop() {
                w.known = after;
            }
            w.answers += 1;
            settle(w, call, answer, engine, os, nodes);
        }
    }
    true
}

fn settle(w: &mut Writer, call: &Call, answer: Answer, engine: &Engine, os: &Os, nodes: &RefCell<Datanodes>) {
    match (call, answer) {
        (Call::Create(path, _), Answer::File(new)) => {
            if let Some(Entry::File { id, .. }) = w.known.get_mut(path) {
                *id = new;
            }
        }
        (Call::AddBlock(path), Answer::Block(block)) => {
            let length = 1 + w.dice.below(1_000) as u64;
            let block = Block { length, ..block };
            let mut file = 0;
            if let Some(Entry::File { id, blocks, .. }) = w.known.get_mut(path) {
                if let Some(last) = blocks.last_mut() {
                    last.0 = block.id.0;
                }
                file = *id;
            }
            w.written.insert(file, block);
            nodes.borrow_mut().write(engine, os, &owner(), block);
        }
        _ => {}
    }
}

/// What a writer asks when it creates a file.
fn new_file(path: &str, overwrite: bool, client: std::sync::Arc<str>, modes: CreateModes) -> Create {
    Create {
        path: path.into(),
        modes,
        client,
        create: true,
        overwrite,
        create_parents: false,
        replication: 3,
        block_size: 1_000,
        lazy_persist: false,
        should_replicate: false,
        erasure_coding_policy: None,
        storage_policy: None,
        versions: Vec::new(),
        data_key: None,
    }
}

/// Makes one call as the writer knows its files.
async fn ask(asked: &Call, client: &str, before: &Writer, engine: &Engine) -> Result<Answer, Refusal> {
    let fenced = before.fenced;
    let client: std::sync::Arc<str> = client.into();
    let modes = |bits| CreateModes { masked: Mode::new(bits), unmasked: None };
    let plain = |yes: bool| if yes { Answer::Plain } else { Answer::No };
    match asked {
        Call::Mkdirs(path) => {
            let op = Mkdirs { path: path.as_str().into(), modes: modes(0o755), create_parents: true };
            call(engine, &op, fenced).await.map(plain)
        }
        Call::Create(path, overwrite) => {
            let op = new_file(path, *overwrite, client, modes(0o644));
            call(engine, &op, fenced).await.map(|status| Answer::File(status.id.0))
        }
        Call::AddBlock(path) => {
            let (id, previous) = before.file(path);
            let op = AddBlock {
                path: path.as_str().into(),
                file: InodeId(id),
                client,
                previous,
                previous_pool: None,
                excluded: vec![],
                favored: vec![],
                no_local_write: false,
                no_local_rack: false,
                ignore_client_locality: false,
            };
            call(engine, &op, fenced).await.map(|b| Answer::Block(b.located.block))
        }
        Call::Fsync(path) => {
            let (id, last) = before.file(path);
            let last_length = last.map_or(0, |b| b.length as i64);
            let op = Fsync { path: path.as_str().into(), file: InodeId(id), client, last_length };
            call(engine, &op, fenced).await.map(|()| Answer::Plain)
        }
        Call::Complete(path) => {
            let (id, last) = before.file(path);
            let op = Complete { path: path.as_str().into(), file: InodeId(id), client, last, last_pool: None };
            call(engine, &op, fenced).await.map(plain)
        }
        Call::Delete(path) => {
            call(engine, &Delete { path: path.as_str().into(), recursive: true }, fenced).await.map(plain)
        }
        Call::Rename(from, to) => {
            let op =
                Rename2 { source: from.as_str().into(), target: to.as_str().into(), overwrite: false, to_trash: false };
            call(engine, &op, fenced).await.map(|()| Answer::Plain)
        }
        Call::Chmod(path, mode) => {
            let op = SetPermission { path: path.as_str().into(), mode: Mode::new(*mode) };
            call(engine, &op, fenced).await.map(|()| Answer::Plain)
        }
        Call::Setrep(path, replication) => {
            let op = SetReplication { path: path.as_str().into(), replication: *replication };
            call(engine, &op, fenced).await.map(plain)
        }
    }
}

/// Writes a file of one block into a new directory.
pub async fn put(engine: &Engine, os: &Os, nodes: &RefCell<Datanodes>, directory: &str, path: &str) {
    let mut writer = Writer::new(0, 0);
    for call in
        [Call::Mkdirs(directory.to_owned()), Call::Create(path.to_owned(), false), Call::AddBlock(path.to_owned())]
    {
        let answer = ask(&call, "client-0", &writer, engine).await.expect("done");
        writer.known = writer.outcomes(&call).pop().unwrap_or_default();
        settle(&mut writer, &call, answer, engine, os, nodes);
    }
    let closed = ask(&Call::Complete(path.to_owned()), "client-0", &writer, engine).await;
    assert!(matches!(closed, Ok(Answer::Plain)));
}

/// Deletes a path.
pub async fn delete(engine: &Engine, path: &str) {
    let call = Call::Delete(path.to_owned());
    drop(ask(&call, "client-0", &Writer::new(0, 0), engine).await);
}

/// All blocks of files, with the replicas that each must have.
pub fn live_blocks(state: &State) -> Vec<(Block, u16)> {
    let mut open: Vec<_> = state.tree.children(&state.store, state.tree.root()).collect();
    let mut blocks = Vec::new();
    while let Some(inode) = open.pop() {
        match state.store.kind(inode) {
            KindTag::Directory => open.extend(state.tree.children(&state.store, inode)),
            _ => blocks.extend(state.store.blocks_of(inode).iter().map(|b| {
                let info = state.store.block(*b);
                (info.block, info.replication)
            })),
        }
    }
    blocks
}
