//! Against sorted maps, and what must hold of every node.

use super::node::{FIRST, Kind, common, count, handle, kind, prefix};
use super::*;
use record::{Features, GroupId, Inode, InodeKind, UserId};
use std::collections::BTreeMap;
use vocab::path::compare_names;
use vocab::{InodeId, Mode, TimeMs};

fn file(store: &mut Store, id: i64, name: &[u8]) -> InodeHandle {
    let inode = Inode {
        id: InodeId(id),
        parent: None,
        user: UserId(0),
        group: GroupId(0),
        mode: Mode::new(0o644),
        mtime: TimeMs(0),
        atime: TimeMs(0),
        features: Features::NONE,
        kind: InodeKind::Symlink,
    };
    store.add_inode(&inode, name)
}

/// Names as Java orders them: by signed bytes.
fn key(name: &[u8]) -> Vec<i8> {
    name.iter().map(|b| *b as i8).collect()
}

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    }
}

/// Checks a node and all below it; gives its children.
fn check(lists: &Lists, store: &Store, node: Node, topmost: bool) -> Vec<InodeHandle> {
    let words = lists.nodes.get(node);
    let count = count(words);
    assert!(count > 0 && count <= kind(words).most(), "{count} entries in a {:?}", kind(words));
    let children: Vec<InodeHandle> = match kind(words) {
        Kind::Inner => (0..count)
            .flat_map(|at| {
                let entry = &words[FIRST + 4 * at..FIRST + 4 * at + 4];
                let children = check(lists, store, Node::new(entry[2]).unwrap(), false);
                assert_eq!((children[0].raw(), children.len()), (entry[1], entry[3] as usize));
                children
            })
            .collect(),
        Kind::Small | Kind::Leaf => (0..count).map(|at| handle(words, at)).collect(),
    };
    assert!(children.is_sorted_by(|a, b| compare_names(store.name(*a), store.name(*b)).is_lt()));
    if kind(words) == Kind::Small {
        assert!(topmost);
        assert!(node::tags(words).iter().zip(&children).all(|(tag, h)| *tag == node::tag(store.name(*h))));
    } else {
        let shared = &store.name(children[0])[..common(words)];
        assert!(children.iter().all(|h| store.name(*h).starts_with(shared)));
        for at in 0..count {
            let name = store.name(handle(words, at));
            assert_eq!(words[FIRST + at * kind(words).stride()], prefix(&name[shared.len()..]));
        }
    }
    children
}

struct Twin {
    store: Store,
    lists: Lists,
    list: u32,
    naive: BTreeMap<Vec<i8>, (Vec<u8>, InodeHandle)>,
    next_id: i64,
}

impl Twin {
    fn new() -> Twin {
        Twin { store: Store::new(), lists: Lists::default(), list: 0, naive: BTreeMap::new(), next_id: 1 }
    }
    fn insert(&mut self, name: &[u8]) {
        let handle = file(&mut self.store, self.next_id, name);
        self.next_id += 1;
        match self.lists.insert(&self.store, self.list, handle) {
            Some(list) => {
                self.list = list;
                assert!(self.naive.insert(key(name), (name.to_vec(), handle)).is_none());
            }
            None => {
                assert!(self.naive.contains_key(&key(name)));
                self.store.remove_inode(handle);
            }
        }
    }
    fn remove(&mut self, name: &[u8]) {
        let removed = self.lists.remove(&self.store, self.list, name);
        assert_eq!(removed.map(|(handle, _)| handle), self.naive.remove(&key(name)).map(|(_, handle)| handle));
        if let Some((handle, list)) = removed {
            self.list = list;
            self.store.remove_inode(handle);
        }
    }
    fn check(&self) {
        assert_eq!(self.list == 0, self.naive.is_empty());
        if let Some(root) = Node::new(self.list) {
            assert!(check(&self.lists, &self.store, root, true).iter().eq(self.naive.values().map(|(_, h)| h)));
        }
        assert!(self.lists.iter(self.list).eq(self.naive.values().map(|(_, h)| *h)));
    }
    fn check_seek(&self, name: &[u8]) {
        let key = key(name);
        assert_eq!(
            self.lists.get(&self.store, self.list, name),
            self.naive.get(&key).map(|(_, handle)| *handle),
            "{:?}",
            String::from_utf8_lossy(name)
        );
        let (rest, before) = self.lists.iter_after(&self.store, self.list, name);
        assert_eq!(before, self.naive.range(..=key.clone()).count());
        let after = self.naive.range(key.clone()..).filter(|(k, _)| **k != key).map(|(_, (_, h))| *h);
        assert!(rest.take(1_000).eq(after.take(1_000)));
    }
}

/// Names of which most begin alike, so that nodes have much in common, until another comes.
fn odd_name(next: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    let alphabet = [b'a', b'b', 0x80, 0xc3, 0xff, b'0'];
    let alike: &[u8] = if next(50) > 0 { b"part-r-" } else { b"" };
    let length = 1 + next(6);
    alike.iter().copied().chain((0..length).map(|_| alphabet[next(6) as usize])).collect()
}

#[test]
fn against_a_sorted_map() {
    let (mut next, mut twin) = (random(12345), Twin::new());
    for step in 0..40_000 {
        let name = odd_name(&mut next);
        let grow = if step < 20_000 { 7 } else { 3 };
        if next(10) < grow {
            twin.insert(&name)
        } else {
            twin.remove(&name)
        }
        if step % 997 == 0 {
            twin.check();
            (0..20).for_each(|_| twin.check_seek(&odd_name(&mut next)));
        }
    }
    assert!(twin.naive.len() > 100);
    // to nothing, through every size
    let mut names: Vec<Vec<u8>> = twin.naive.values().map(|(name, _)| name.clone()).collect();
    while !names.is_empty() {
        let name = names.swap_remove(next(names.len() as u64) as usize);
        twin.remove(&name);
        if names.len().is_multiple_of(97) || names.len() < 200 {
            twin.check();
        }
    }
    assert_eq!(twin.list, 0);
}

#[test]
fn three_levels_built_grown_and_thinned() {
    let (mut next, mut twin) = (random(7), Twin::new());
    // more than one inner node of full leaves
    let mut sorted = Vec::new();
    for n in 0..150_000u32 {
        let name = format!("2024-{:02}/part-{:07}", n / 20_000, n * 8);
        let handle = file(&mut twin.store, i64::from(n) + 1, name.as_bytes());
        sorted.push(handle);
        twin.naive.insert(key(name.as_bytes()), (name.into_bytes(), handle));
    }
    twin.next_id = 1_000_000;
    twin.list = twin.lists.set_sorted(&twin.store, &sorted);
    twin.check();
    assert!(twin.lists.memory_bytes() <= sorted.len() * 17 / 2 + (4 << 16), "{} bytes", twin.lists.memory_bytes());
    for name in [&b""[..], b"1", b"2024-03/", b"2024-03/part-0500000", b"2024-03/part-0500001", b"zz"] {
        twin.check_seek(name);
    }
    for _ in 0..20_000 {
        let n = next(1_200_000);
        twin.insert(format!("2024-{:02}/part-{n:07}", n / 160_000).as_bytes());
    }
    twin.check();
    for _ in 0..20 {
        let n = next(1_200_000);
        twin.check_seek(format!("2024-{:02}/part-{n:07}", n / 160_000).as_bytes());
    }
    // one in fifty stays, then fewer and fewer
    let names: Vec<Vec<u8>> = twin.naive.values().map(|(name, _)| name.clone()).collect();
    for name in &names {
        if next(50) > 0 {
            twin.remove(name);
        }
    }
    twin.check();
    let held = twin.lists.memory_bytes() - twin.lists.nodes.empty_bytes();
    assert!(held <= twin.naive.len() * 12 + (3 << 16), "{held} bytes for {}", twin.naive.len());
    let names: Vec<Vec<u8>> = twin.naive.values().map(|(name, _)| name.clone()).collect();
    names.iter().rev().for_each(|name| twin.remove(name));
    twin.check();
}

#[test]
fn names_in_order_fill_their_nodes() {
    let mut twin = Twin::new();
    (0..60_000).for_each(|n| twin.insert(format!("part-{n:06}").as_bytes()));
    twin.check();
    let held = twin.lists.memory_bytes() - twin.lists.nodes.empty_bytes();
    assert!(held <= 60_000 * 17 / 2 + (3 << 16), "{held} bytes");
}

#[test]
fn taken_apart_from_the_end() {
    for count in [1usize, 5, 128, 129, 511, 512, 140_000] {
        let mut twin = Twin::new();
        let handles: Vec<InodeHandle> =
            (0..count).map(|n| file(&mut twin.store, n as i64 + 1, format!("f{n:08}").as_bytes())).collect();
        let mut list = twin.lists.set_sorted(&twin.store, &handles);
        for handle in handles.iter().rev() {
            // the name may be gone by the time the next one is asked for
            let (last, rest) = twin.lists.pop(list).expect("one is left");
            assert_eq!(last, *handle);
            twin.store.remove_inode(last);
            list = rest;
        }
        assert_eq!((list, twin.lists.pop(list)), (0, None));
        assert!(twin.lists.memory_bytes() - twin.lists.nodes.empty_bytes() < 8 << 10);
    }
}

#[test]
fn a_list_half_taken_apart_is_whole() {
    let mut twin = Twin::new();
    (0..3_000).for_each(|n| twin.insert(format!("f{n:08}").as_bytes()));
    for _ in 0..2_950 {
        let (last, list) = twin.lists.pop(twin.list).unwrap();
        assert_eq!(twin.naive.pop_last().unwrap().1.1, last);
        twin.store.remove_inode(last);
        twin.list = list;
    }
    twin.check();
    twin.insert(b"g");
    twin.insert(b"a");
    twin.check();
    (0..50).for_each(|n| twin.remove(format!("f{n:08}").as_bytes()));
    twin.check();
}

#[test]
fn one_name_is_the_beginning_of_the_next() {
    let mut twin = Twin::new();
    (1..700).rev().for_each(|n| twin.insert(&vec![b'x'; n]));
    twin.check();
    (1..750).for_each(|n| twin.check_seek(&vec![b'x'; n]));
    (1..700).step_by(2).for_each(|n| twin.remove(&vec![b'x'; n]));
    twin.check();
}

#[test]
fn written_down_and_read_back() {
    use mem::persist::{PageSets, Persist, RestReader, RestWriter};
    let mut twin = Twin::new();
    (0..5_000).for_each(|n| twin.insert(format!("f{n:08}").as_bytes()));
    let mut rest = RestWriter::new();
    twin.lists.write_rest(&mut rest);
    let rest = rest.finish();
    let mut sets = Vec::new();
    twin.lists.page_sets(&mut sets);
    let copies = sets.iter().map(|pages| {
        let mut copy = Pages::new();
        for number in 0..pages.len() {
            copy.add();
            copy.page_mut(number).0 = pages.page(number).0;
        }
        copy
    });
    let mut copies = PageSets::new(copies.collect());
    twin.lists = Lists::restore(&mut copies, &mut RestReader::new(&rest)).expect("what was written");
    twin.check();
    twin.insert(b"another");
    twin.check();
}
