//! Child lists of directories: small ones are sorted arrays of handles, large ones leaves of (four bytes of the name, handle), so that a
//! search compares numbers and reads a name only at the end. The four bytes follow what all names of the leaf have in common, since names
//! in large directories often begin alike (`part-r-00017`). Order is that of Java: bytes compared as signed.

use record::{InodeHandle, Store};
use std::cmp::Ordering;
use vocab::path::compare_names;

/// Most children of a small list.
const SMALL_MAX: usize = 128;
/// A large list that shrinks to this many children becomes small again.
const LARGE_MIN: usize = 48;
/// Most children of a leaf.
const LEAF_MAX: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Entry {
    prefix: u32,
    handle: InodeHandle,
}

#[derive(Debug)]
enum List {
    Small(Vec<InodeHandle>),
    Large(Vec<Leaf>),
}

/// Never empty, except while a list is taken apart.
#[derive(Debug)]
struct Leaf {
    /// In order; each prefix is of what follows the common bytes.
    entries: Vec<Entry>,
    /// Prefix of the first name from its beginning.
    low: u32,
    /// How many bytes all names begin with alike (not always as many as they could).
    common: u16,
}

impl Leaf {
    fn new(store: &Store, entries: Vec<Entry>) -> Leaf {
        let mut leaf = Leaf { entries, low: 0, common: 0 };
        leaf.renew(store);
        leaf
    }

    /// Computes anew what follows from the entries.
    fn renew(&mut self, store: &Store) {
        let [first, .., last] = &self.entries[..] else {
            self.low = self.entries.first().map_or(0, |e| prefix(store.name(e.handle)));
            self.common = 0;
            self.entries.iter_mut().for_each(|e| e.prefix = self.low);
            return;
        };
        let (first, last) = (store.name(first.handle), store.name(last.handle));
        self.low = prefix(first);
        // what the first and the last of a sorted list share, all share
        let common = first.iter().zip(last).take(usize::from(u16::MAX)).take_while(|(a, b)| a == b).count();
        self.common = common as u16;
        self.entries.iter_mut().for_each(|e| e.prefix = prefix(&store.name(e.handle)[common..]));
    }

    /// Position of a name among the entries.
    fn find(&self, store: &Store, name: &[u8]) -> Result<usize, usize> {
        let common = usize::from(self.common);
        let shared = &store.name(self.entries[0].handle)[..common];
        let Some(rest) = name.strip_prefix(shared) else {
            let before = compare_names(name, shared) == Ordering::Less;
            return Err(if before { 0 } else { self.entries.len() });
        };
        let wanted = prefix(rest);
        let full = |e: &Entry| compare_names(&store.name(e.handle)[common..], rest);
        self.entries.binary_search_by(|e| e.prefix.cmp(&wanted).then_with(|| full(e)))
    }

    fn insert(&mut self, store: &Store, at: usize, handle: InodeHandle) {
        let (name, common) = (store.name(handle), usize::from(self.common));
        let alike = name.starts_with(&store.name(self.entries[0].handle)[..common]);
        let prefix = if alike { prefix(&name[common..]) } else { 0 };
        self.entries.insert(at, Entry { prefix, handle });
        if !alike {
            self.renew(store);
        } else if at == 0 {
            self.renew_low(store);
        }
    }

    fn remove(&mut self, store: &Store, at: usize) -> InodeHandle {
        let handle = self.entries.remove(at).handle;
        if at == 0 {
            self.renew_low(store);
        }
        handle
    }

    fn renew_low(&mut self, store: &Store) {
        self.low = self.entries.first().map_or(0, |e| prefix(store.name(e.handle)));
    }
}

/// All child lists, by number; 0 is the empty list.
#[derive(Debug, Default)]
pub struct Lists {
    slots: Vec<Option<List>>,
    free: Vec<u32>,
}

/// The first four bytes of a name as a number in name order; short names are filled with the lowest byte, so equal prefixes say nothing.
fn prefix(name: &[u8]) -> u32 {
    let mut bytes = [0u8; 4];
    for (to, from) in bytes.iter_mut().zip(name) {
        *to = from ^ 0x80;
    }
    u32::from_be_bytes(bytes)
}

/// Position of a name: `Ok` where it is, `Err` where it would be. `leaf` is 0 in a small list.
type Found = Result<(usize, usize), (usize, usize)>;

impl List {
    fn find(&self, store: &Store, name: &[u8]) -> Found {
        match self {
            List::Small(all) => match all.binary_search_by(|h| compare_names(store.name(*h), name)) {
                Ok(at) => Ok((0, at)),
                Err(at) => Err((0, at)),
            },
            List::Large(leaves) => {
                let wanted = prefix(name);
                let first = |l: &Leaf| compare_names(store.name(l.entries[0].handle), name);
                let after = |l: &Leaf| l.low.cmp(&wanted).then_with(|| first(l)) == Ordering::Greater;
                let leaf = leaves.partition_point(|l| !after(l)).saturating_sub(1);
                match leaves[leaf].find(store, name) {
                    Ok(at) => Ok((leaf, at)),
                    Err(at) => Err((leaf, at)),
                }
            }
        }
    }

    fn at(&self, (leaf, at): (usize, usize)) -> InodeHandle {
        match self {
            List::Small(all) => all[at],
            List::Large(leaves) => leaves[leaf].entries[at].handle,
        }
    }

    fn insert(&mut self, store: &Store, (leaf, at): (usize, usize), handle: InodeHandle) {
        match self {
            List::Small(all) => {
                all.insert(at, handle);
                if all.len() > SMALL_MAX {
                    *self = List::Large(split(store, all));
                }
            }
            List::Large(leaves) => {
                leaves[leaf].insert(store, at, handle);
                let entries = &mut leaves[leaf].entries;
                if entries.len() > LEAF_MAX {
                    // A leaf that grew at its end is split there, so that names made in order leave full leaves behind.
                    let cut = if at + 1 == entries.len() { LEAF_MAX - 8 } else { LEAF_MAX / 2 };
                    let upper = entries.split_off(cut);
                    leaves[leaf].renew(store);
                    leaves.insert(leaf + 1, Leaf::new(store, upper));
                }
            }
        }
    }

    fn remove(&mut self, store: &Store, (leaf, at): (usize, usize)) -> InodeHandle {
        match self {
            List::Small(all) => all.remove(at),
            List::Large(leaves) => {
                let handle = leaves[leaf].remove(store, at);
                if leaves[leaf].entries.is_empty() {
                    leaves.remove(leaf);
                }
                if leaves.len() <= 1 && leaves.iter().map(|l| l.entries.len()).sum::<usize>() <= LARGE_MIN {
                    *self = List::Small(leaves.iter().flat_map(|l| &l.entries).map(|e| e.handle).collect());
                }
                handle
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            List::Small(all) => all.is_empty(),
            List::Large(leaves) => leaves.is_empty(),
        }
    }
}

fn split(store: &Store, sorted: &[InodeHandle]) -> Vec<Leaf> {
    let leaf =
        |chunk: &[InodeHandle]| Leaf::new(store, chunk.iter().map(|h| Entry { prefix: 0, handle: *h }).collect());
    sorted.chunks(LEAF_MAX).map(leaf).collect()
}

impl Lists {
    fn list(&self, list: u32) -> Option<&List> {
        self.slots.get((list as usize).checked_sub(1)?)?.as_ref()
    }
    fn list_mut(&mut self, list: u32) -> Option<&mut List> {
        self.slots.get_mut((list as usize).checked_sub(1)?)?.as_mut()
    }
    fn add(&mut self, list: List) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize - 1] = Some(list);
            return number;
        }
        self.slots.push(Some(list));
        self.slots.len() as u32
    }

    /// The child of this name.
    pub fn get(&self, store: &Store, list: u32, name: &[u8]) -> Option<InodeHandle> {
        let list = self.list(list)?;
        list.find(store, name).ok().map(|at| list.at(at))
    }

    /// Enters a child under the name in its record. Gives the number of the list, new if it was 0, or `None` if the name is taken.
    pub fn insert(&mut self, store: &Store, list: u32, handle: InodeHandle) -> Option<u32> {
        match self.list_mut(list) {
            None => Some(self.add(List::Small(vec![handle]))),
            Some(l) => {
                let at = l.find(store, store.name(handle)).err()?;
                l.insert(store, at, handle);
                Some(list)
            }
        }
    }

    /// Takes a name out. Gives the child and the number of the list, 0 if it is empty now.
    pub fn remove(&mut self, store: &Store, list: u32, name: &[u8]) -> Option<(InodeHandle, u32)> {
        let l = self.list_mut(list)?;
        let at = l.find(store, name).ok()?;
        let handle = l.remove(store, at);
        if l.is_empty() {
            self.free(list);
            return Some((handle, 0));
        }
        Some((handle, list))
    }

    /// A list of children that are in order already (as images hold them). Gives its number, 0 for none.
    pub fn set_sorted(&mut self, store: &Store, sorted: Vec<InodeHandle>) -> u32 {
        match sorted.len() {
            0 => 0,
            n if n <= SMALL_MAX => self.add(List::Small(sorted)),
            _ => {
                let leaves = split(store, &sorted);
                self.add(List::Large(leaves))
            }
        }
    }

    /// Drops a list.
    pub fn free(&mut self, list: u32) {
        if let Some(slot) = (list as usize).checked_sub(1).and_then(|i| self.slots.get_mut(i))
            && slot.take().is_some()
        {
            self.free.push(list);
        }
    }

    /// Takes a list out whole, to be emptied from its end.
    pub(crate) fn take(&mut self, list: u32) -> Taken {
        let slot = (list as usize).checked_sub(1).and_then(|i| self.slots.get_mut(i)).and_then(Option::take);
        if slot.is_some() {
            self.free.push(list);
        }
        Taken(slot)
    }

    /// Children in order, from the first.
    pub fn iter(&self, list: u32) -> Children<'_> {
        Children { list: self.list(list), leaf: 0, at: 0 }
    }

    /// Children in order, from the first whose name comes after `start_after`; all if that is empty. Also gives how many come before.
    pub fn iter_after(&self, store: &Store, list: u32, start_after: &[u8]) -> (Children<'_>, usize) {
        let Some(l) = self.list(list).filter(|_| !start_after.is_empty()) else {
            return (self.iter(list), 0);
        };
        let (leaf, at) = match l.find(store, start_after) {
            Ok((leaf, at)) => (leaf, at + 1),
            Err(at) => at,
        };
        let before = match l {
            List::Small(_) => at,
            List::Large(leaves) => leaves[..leaf].iter().map(|l| l.entries.len()).sum::<usize>() + at,
        };
        (Children { list: Some(l), leaf, at }, before)
    }
}

/// A list that belongs to no directory any more.
#[derive(Debug)]
pub(crate) struct Taken(Option<List>);

impl Taken {
    /// Takes the last child.
    pub(crate) fn pop(&mut self) -> Option<InodeHandle> {
        match self.0.as_mut()? {
            List::Small(all) => all.pop(),
            List::Large(leaves) => loop {
                match leaves.last_mut()?.entries.pop() {
                    Some(entry) => return Some(entry.handle),
                    None => leaves.pop(),
                };
            },
        }
    }
}

/// Children in order.
#[derive(Clone, Debug)]
pub struct Children<'a> {
    list: Option<&'a List>,
    leaf: usize,
    at: usize,
}

impl Iterator for Children<'_> {
    type Item = InodeHandle;
    fn next(&mut self) -> Option<InodeHandle> {
        match self.list? {
            List::Small(all) => {
                let handle = *all.get(self.at)?;
                self.at += 1;
                Some(handle)
            }
            List::Large(leaves) => loop {
                let leaf = leaves.get(self.leaf)?;
                if let Some(entry) = leaf.entries.get(self.at) {
                    self.at += 1;
                    return Some(entry.handle);
                }
                self.leaf += 1;
                self.at = 0;
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Features, GroupId, Inode, InodeKind, UserId};
    use std::collections::BTreeMap;
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

    #[test]
    fn against_a_sorted_map() {
        let mut state = 12345u64;
        let mut next = move |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut store = Store::new();
        let (mut lists, mut list) = (Lists::default(), 0u32);
        let mut naive: BTreeMap<Vec<i8>, (Vec<u8>, InodeHandle)> = BTreeMap::new();
        for step in 0..30_000i64 {
            let length = 1 + next(6) as usize;
            let alphabet = [b'a', b'b', 0x80, 0xc3, 0xff, b'0'];
            // most begin alike, so that leaves have much in common, until another comes
            let alike: &[u8] = if next(50) > 0 { b"part-r-" } else { b"" };
            let mut name = alike.to_vec();
            name.extend((0..length).map(|_| alphabet[next(6) as usize]));
            let grow = if step < 15_000 { 7 } else { 3 };
            if next(10) < grow {
                let handle = file(&mut store, step + 1, &name);
                match lists.insert(&store, list, handle) {
                    Some(number) => {
                        list = number;
                        assert!(naive.insert(key(&name), (name, handle)).is_none());
                    }
                    None => assert!(naive.contains_key(&key(&name))),
                }
            } else if let Some((handle, number)) = lists.remove(&store, list, &name) {
                list = number;
                assert_eq!(naive.remove(&key(&name)).unwrap().1, handle);
            } else {
                assert!(!naive.contains_key(&key(&name)));
            }
            if step % 997 == 0 {
                assert!(lists.iter(list).eq(naive.values().map(|v| v.1)));
                let (rest, before) = lists.iter_after(&store, list, b"part-r-a\x80");
                let from = key(b"part-r-a\x80");
                assert_eq!(before, naive.range(..=from.clone()).count());
                assert!(rest.eq(naive.range(from..).filter(|(k, _)| **k != key(b"part-r-a\x80")).map(|(_, v)| v.1)));
            }
        }
        assert!(naive.len() > 100);
    }
}
