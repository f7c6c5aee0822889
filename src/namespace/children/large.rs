//! Large lists: B+ trees.
//!
//! A change goes down once, noting the path, and then works upwards along it. Nodes are sized to their content, so any change may move one: what names
//! it, the entry above or the number of the list, follows ([`Lists::moved`]).
//!
//! [`Lists::locate`] takes for granted that a name shares the common part of every node on its way, and compares names at the end only: true
//! of every name that is there, and the others are not found. A name that is to be inserted is *admitted* by every node on its way first: the
//! common part is shortened if need be.

use super::Lists;
use super::node::{FIRST, INNER_MAX, Kind, LEAF_MAX, common, count, handle, kind, place, prefix, search, shared};
use mem::nodes::{Node, Nodes};
use record::{InodeHandle, Store};

/// Most nodes from the topmost to a leaf: enough for more children than there are handles, were every inner node but a tenth full.
const DEPTH_MAX: usize = 8;
/// A node that grew at its end is split so many entries before it, so that names made in order leave full nodes behind.
const END_SPLIT: usize = 8;

/// Way from the topmost node down: the place in each.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Path {
    steps: [Option<(Node, u32)>; DEPTH_MAX],
    len: usize,
}

impl Path {
    pub(super) fn of(node: Node, at: usize) -> Path {
        let mut path = Path::default();
        path.push(node, at);
        path
    }
    fn push(&mut self, node: Node, at: usize) {
        self.steps[self.len] = Some((node, at as u32));
        self.len += 1;
    }
    pub(super) fn pop(&mut self) -> Option<(Node, usize)> {
        self.len = self.len.checked_sub(1)?;
        self.steps[self.len].map(|(node, at)| (node, at as usize))
    }
    /// The step at a depth.
    fn step(&self, depth: usize) -> (Node, usize) {
        let (node, at) = self.steps[depth].expect("a step of the path");
        (node, at as usize)
    }
    fn set(&mut self, depth: usize, node: Node, at: usize) {
        self.steps[depth] = Some((node, at as u32));
    }
    fn add_root(&mut self, node: Node) {
        self.steps.copy_within(..self.len, 1);
        self.steps[0] = Some((node, 0));
        self.len += 1;
    }
}

/// A node while a list is built.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    first: InodeHandle,
    last: InodeHandle,
    node: Node,
    count: u32,
}

/// The node below an inner node.
fn below(words: &[u32], at: usize) -> Node {
    Node::new(words[FIRST + 4 * at + 2]).expect("an entry of an inner node names a node")
}
/// Number of children in a node and all below it.
fn total(words: &[u32]) -> u32 {
    match kind(words) {
        Kind::Inner => total_before(words, count(words)),
        Kind::Leaf | Kind::Small => count(words) as u32,
    }
}
/// Number of children below the first entries of an inner node.
fn total_before(words: &[u32], at: usize) -> u32 {
    words[FIRST..FIRST + 4 * at].iter().skip(3).step_by(4).sum()
}

/// Goes on to the next leaf.
pub(super) fn next_leaf(nodes: &Nodes, path: &mut Path) -> Option<Node> {
    loop {
        let (node, at) = path.pop()?;
        let words = nodes.get(node);
        if at + 1 < count(words) {
            path.push(node, at + 1);
            let mut node = below(words, at + 1);
            while kind(nodes.get(node)) == Kind::Inner {
                path.push(node, 0);
                node = below(nodes.get(node), 0);
            }
            return Some(node);
        }
    }
}

impl Lists {
    /// The child of this name in a list whose topmost node has these words.
    pub(super) fn get_large<'a>(&'a self, store: &Store, mut words: &'a [u32], name: &[u8]) -> Option<InodeHandle> {
        loop {
            let found = search(store, words, name.get(common(words)..)?);
            if kind(words) == Kind::Leaf {
                let handle = handle(words, found.ok()?);
                return (store.name(handle) == name).then_some(handle);
            }
            let at = found.or_else(|at| at.checked_sub(1).ok_or(())).ok()?;
            words = self.nodes.get(below(words, at));
        }
    }
    /// The way to a name that is there.
    fn locate(&self, store: &Store, mut node: Node, name: &[u8]) -> Option<Path> {
        let mut path = Path::default();
        loop {
            let words = self.nodes.get(node);
            let found = search(store, words, name.get(common(words)..)?);
            if kind(words) == Kind::Leaf {
                let at = found.ok()?;
                path.push(node, at);
                return (store.name(handle(words, at)) == name).then_some(path);
            }
            let at = found.or_else(|at| at.checked_sub(1).ok_or(())).ok()?;
            path.push(node, at);
            node = below(words, at);
        }
    }
    /// The way to where any name is or would be.
    pub(super) fn seek(&self, store: &Store, mut node: Node, name: &[u8]) -> (Path, bool) {
        let mut path = Path::default();
        loop {
            let words = self.nodes.get(node);
            let found = place(store, words, name);
            let (Ok(at) | Err(at)) = found;
            if kind(words) == Kind::Leaf {
                path.push(node, at);
                return (path, found.is_ok());
            }
            let at = if found.is_ok() { at } else { at.saturating_sub(1) };
            path.push(node, at);
            node = below(words, at);
        }
    }
    /// The way to the first child.
    pub(super) fn first_path(&self, mut node: Node) -> Path {
        let mut path = Path::default();
        while self.kind(node) == Kind::Inner {
            path.push(node, 0);
            node = below(self.nodes.get(node), 0);
        }
        path.push(node, 0);
        path
    }
    /// How many children come before the end of a path.
    pub(super) fn before(&self, path: &Path) -> usize {
        let leaf = path.len - 1;
        let inner = (0..leaf).map(|depth| {
            let (node, at) = path.step(depth);
            total_before(self.nodes.get(node), at) as usize
        });
        inner.sum::<usize>() + path.step(leaf).1
    }

    /// A node moved: what names it follows.
    fn moved(&mut self, path: &mut Path, depth: usize, node: Node) {
        let (old, at) = path.step(depth);
        if old == node {
            return;
        }
        path.set(depth, node, at);
        if depth > 0 {
            let (above, at) = path.step(depth - 1);
            self.nodes.get_mut(above)[FIRST + 4 * at + 2] = node.get();
        }
    }
    /// Sets the length of the common part, and with it every prefix.
    fn set_common(&mut self, store: &Store, node: Node, common: usize) {
        let words = self.nodes.get_mut(node);
        let (stride, count) = (kind(words).stride(), count(words));
        words[1] = common as u32;
        for at in 0..count {
            words[FIRST + at * stride] = prefix(&store.name(handle(words, at))[common..]);
        }
    }
    /// Shortens the common part to what a name shares of it.
    fn admit(&mut self, store: &Store, node: Node, name: &[u8]) {
        let words = self.nodes.get(node);
        let first = &store.name(handle(words, 0))[..common(words)];
        if !name.starts_with(first) {
            let common = shared(first, name);
            self.set_common(store, node, common);
        }
    }
    /// Computes the common part anew: what the first and the last of sorted names share, all share.
    fn renew(&mut self, store: &Store, node: Node) {
        let first = handle(self.nodes.get(node), 0);
        let mut last = node;
        let last = loop {
            let words = self.nodes.get(last);
            let at = count(words) - 1;
            match kind(words) {
                Kind::Inner => last = below(words, at),
                Kind::Leaf | Kind::Small => break handle(words, at),
            }
        };
        self.set_common(store, node, common_of(store, first, last));
    }
    /// The first child of the node at a depth changed: the entries above that name it follow.
    fn first_changed(&mut self, store: &Store, path: &Path, depth: usize) {
        let first = handle(self.nodes.get(path.step(depth).0), 0);
        for depth in (0..depth).rev() {
            let (node, at) = path.step(depth);
            let words = self.nodes.get_mut(node);
            words[FIRST + 4 * at] = prefix(&store.name(first)[common(words)..]);
            words[FIRST + 4 * at + 1] = first.raw();
            if at > 0 {
                break;
            }
        }
    }
    /// Adds to the counts above the end of a path.
    fn count_above(&mut self, path: &Path, delta: i32) {
        for depth in 0..path.len - 1 {
            let (node, at) = path.step(depth);
            let count = &mut self.nodes.get_mut(node)[FIRST + 4 * at + 3];
            *count = count.wrapping_add_signed(delta);
        }
    }
    fn insert_entry(&mut self, path: &mut Path, depth: usize, at: usize, entry: &[u32]) {
        let node = path.step(depth).0;
        let words = self.nodes.get(node);
        let (kind, count, stride) = (kind(words), count(words), entry.len());
        let node = self.nodes.resize(node, kind.words(count), kind.words(count + 1));
        self.moved(path, depth, node);
        let words = self.nodes.get_mut(node);
        words[0] = kind.head(count + 1);
        let at = FIRST + at * stride;
        words.copy_within(at..kind.words(count), at + stride);
        words[at..at + stride].copy_from_slice(entry);
    }
    fn remove_entry(&mut self, path: &mut Path, depth: usize, at: usize) {
        let node = path.step(depth).0;
        let words = self.nodes.get_mut(node);
        let (kind, count, stride) = (kind(words), count(words), kind(words).stride());
        words[0] = kind.head(count - 1);
        let at = FIRST + at * stride;
        words.copy_within(at + stride..kind.words(count), at);
        let words = kind.words(count - 1);
        let node = self.nodes.resize(node, words, words);
        self.moved(path, depth, node);
    }

    /// Inserts a child under the name in its record. `None` if the name is taken.
    pub(super) fn insert_large(&mut self, store: &Store, root: Node, child: InodeHandle) -> Option<Node> {
        let name = store.name(child);
        let (mut path, found) = self.seek(store, root, name);
        if found {
            return None;
        }
        if self.is_full(path.step(path.len - 1).0) {
            let mut depth = 0;
            while depth < path.len {
                if self.is_full(path.step(depth).0) {
                    depth += usize::from(self.split(store, &mut path, depth));
                }
                depth += 1;
            }
        }
        (0..path.len).for_each(|depth| self.admit(store, path.step(depth).0, name));
        let leaf = path.len - 1;
        let (node, at) = path.step(leaf);
        let prefix = prefix(&name[common(self.nodes.get(node))..]);
        self.insert_entry(&mut path, leaf, at, &[prefix, child.raw()]);
        self.count_above(&path, 1);
        if at == 0 {
            self.first_changed(store, &path, leaf);
        }
        Some(path.step(0).0)
    }
    fn is_full(&self, node: Node) -> bool {
        let words = self.nodes.get(node);
        count(words) == kind(words).most()
    }
    /// Splits the node at a depth, whose parent has room; the path goes on to where it went. `true` if that made a new topmost node.
    fn split(&mut self, store: &Store, path: &mut Path, depth: usize) -> bool {
        let new_root = depth == 0;
        if new_root {
            let node = path.step(0).0;
            let words = self.nodes.get(node);
            let entry = Entry { first: handle(words, 0), last: handle(words, 0), node, count: total(words) };
            let common = common(words);
            let root = self.inner(store, &[entry], common);
            path.add_root(root);
        }
        let depth = depth + usize::from(new_root);
        let ((node, at), (above, above_at)) = (path.step(depth), path.step(depth - 1));
        let words = self.nodes.get(node);
        let (kind, count, common) = (kind(words), count(words), common(words));
        let at_end = at + usize::from(kind == Kind::Inner) == count;
        let cut = if at_end { count - END_SPLIT } else { count / 2 };
        let mut upper = [0u32; FIRST + 2 * LEAF_MAX];
        let upper = &mut upper[..kind.words(count - cut)];
        upper[..2].copy_from_slice(&[kind.head(count - cut), common as u32]);
        upper[FIRST..].copy_from_slice(&words[kind.words(cut)..kind.words(count)]);
        let right = self.nodes.add(upper.len());
        self.nodes.get_mut(right)[..upper.len()].copy_from_slice(upper);
        self.nodes.get_mut(node)[0] = kind.head(cut);
        let left = self.nodes.resize(node, kind.words(cut), kind.words(cut));
        self.moved(path, depth, left);
        self.renew(store, left);
        self.renew(store, right);

        let (first, of_right) = (handle(upper, 0), total(upper));
        let words = self.nodes.get_mut(above);
        words[FIRST + 4 * above_at + 3] -= of_right;
        let prefix = prefix(&store.name(first)[self::common(words)..]);
        self.insert_entry(path, depth - 1, above_at + 1, &[prefix, first.raw(), right.get(), of_right]);
        // a name between the two goes to the end of the left leaf
        if at > cut || kind == Kind::Inner && at == cut {
            path.set(depth, right, at - cut);
            path.set(depth - 1, path.step(depth - 1).0, above_at + 1);
        }
        new_root
    }

    /// Takes a name out. Gives the child and the topmost node, `None` if nothing is left.
    pub(super) fn remove_large(
        &mut self,
        store: &Store,
        root: Node,
        name: &[u8],
    ) -> Option<(InodeHandle, Option<Node>)> {
        let mut path = self.locate(store, root, name)?;
        let leaf = path.len - 1;
        let (node, at) = path.step(leaf);
        let handle = handle(self.nodes.get(node), at);
        self.remove_entry(&mut path, leaf, at);
        self.count_above(&path, -1);
        if at == 0 && count(self.nodes.get(path.step(leaf).0)) > 0 {
            self.first_changed(store, &path, leaf);
        }
        self.mend(store, &mut path);
        let mut root = path.step(0).0;
        while self.kind(root) == Kind::Inner && count(self.nodes.get(root)) == 1 {
            let only = below(self.nodes.get(root), 0);
            self.nodes.remove(root);
            root = only;
        }
        Some((handle, self.unless_empty(root).map(|root| self.made_small(store, root))))
    }
    fn unless_empty(&mut self, root: Node) -> Option<Node> {
        if count(self.nodes.get(root)) > 0 {
            return Some(root);
        }
        self.nodes.remove(root);
        None
    }
    /// Drops empty nodes on a path and joins small ones with a neighbour, from the leaf up.
    fn mend(&mut self, store: &Store, path: &mut Path) {
        for depth in (1..path.len).rev() {
            let node = path.step(depth).0;
            let words = self.nodes.get(node);
            if count(words) == 0 {
                self.nodes.remove(node);
                let (above, at) = path.step(depth - 1);
                let left = count(self.nodes.get(above)) - 1;
                self.remove_entry(path, depth - 1, at);
                if at == 0 && left > 0 {
                    self.first_changed(store, path, depth - 1);
                }
            } else if count(words) >= kind(words).most() / 4 || !self.merge(store, path, depth) {
                return;
            }
        }
    }
    /// Joins the node at a depth with a neighbour below the same node, if one takes both well.
    fn merge(&mut self, store: &Store, path: &mut Path, depth: usize) -> bool {
        let (above, at) = path.step(depth - 1);
        let words = self.nodes.get(above);
        let at = match at {
            _ if at + 1 < count(words) => at,
            0 => return false,
            _ => at - 1,
        };
        let (left, right) = (below(words, at), below(words, at + 1));
        let (a, b) = (self.nodes.get(left), self.nodes.get(right));
        let (kind, before, more) = (kind(a), count(a), count(b));
        if before + more > kind.most() * 3 / 4 {
            return false;
        }
        let mut upper = [0u32; 2 * LEAF_MAX];
        let upper = &mut upper[..more * kind.stride()];
        upper.copy_from_slice(&b[FIRST..kind.words(more)]);
        self.nodes.remove(right);
        let joined = self.nodes.resize(left, kind.words(before), kind.words(before + more));
        let words = self.nodes.get_mut(joined);
        words[0] = kind.head(before + more);
        words[kind.words(before)..kind.words(before + more)].copy_from_slice(upper);
        self.renew(store, joined);
        let words = self.nodes.get_mut(above);
        words[FIRST + 4 * at + 3] += words[FIRST + 4 * at + 7];
        words[FIRST + 4 * at + 2] = joined.get();
        self.remove_entry(path, depth - 1, at + 1);
        true
    }

    /// Takes the last child out. Nodes are not joined: what is left goes the same way.
    pub(super) fn pop_large(&mut self, root: Node) -> (InodeHandle, Option<Node>) {
        let (mut path, mut node) = (Path::default(), root);
        while self.kind(node) == Kind::Inner {
            let words = self.nodes.get(node);
            path.push(node, count(words) - 1);
            node = below(words, count(words) - 1);
        }
        path.push(node, 0);
        self.count_above(&path, -1);
        let words = self.nodes.get(node);
        let last = handle(words, count(words) - 1);
        for depth in (0..path.len).rev() {
            let words = self.nodes.get_mut(path.step(depth).0);
            words[0] -= 1;
            if count(words) > 0 {
                return (last, Some(root));
            }
            self.nodes.remove(path.step(depth).0);
        }
        (last, None)
    }

    /// A large list of children in order, in full nodes.
    pub(super) fn large(&mut self, store: &Store, sorted: &[InodeHandle]) -> Node {
        let mut level = std::mem::take(&mut self.scratch);
        level.clear();
        for chunk in sorted.chunks(LEAF_MAX) {
            let (first, last) = (chunk[0], chunk[chunk.len() - 1]);
            // all names are looked at: records first, then what they name, so that these waits overlap
            chunk.iter().for_each(|child| store.prefetch_inode(*child));
            chunk.iter().for_each(|child| store.prefetch_name(*child));
            let node = self.nodes.add(Kind::Leaf.words(chunk.len()));
            let words = self.nodes.get_mut(node);
            words[0] = Kind::Leaf.head(chunk.len());
            for (entry, child) in words[FIRST..].as_chunks_mut::<2>().0.iter_mut().zip(chunk) {
                entry[1] = child.raw();
            }
            self.set_common(store, node, common_of(store, first, last));
            level.push(Entry { first, last, node, count: chunk.len() as u32 });
        }
        while level.len() > 1 {
            let mut made = 0;
            for from in (0..level.len()).step_by(INNER_MAX) {
                let entries = &level[from..level.len().min(from + INNER_MAX)];
                let (first, last) = (entries[0].first, entries[entries.len() - 1].last);
                let count = entries.iter().map(|e| e.count).sum();
                let node = self.inner(store, entries, common_of(store, first, last));
                level[made] = Entry { first, last, node, count };
                made += 1;
            }
            level.truncate(made);
        }
        let root = level[0].node;
        self.scratch = level;
        root
    }
    fn inner(&mut self, store: &Store, entries: &[Entry], common: usize) -> Node {
        let node = self.nodes.add(Kind::Inner.words(entries.len()));
        let words = self.nodes.get_mut(node);
        words[..2].copy_from_slice(&[Kind::Inner.head(entries.len()), common as u32]);
        for (to, entry) in words[FIRST..].as_chunks_mut::<4>().0.iter_mut().zip(entries) {
            let prefix = prefix(&store.name(entry.first)[common..]);
            *to = [prefix, entry.first.raw(), entry.node.get(), entry.count];
        }
        node
    }
}

/// The length of what all names from one to another have in common; none of a single name, which would be all of it.
fn common_of(store: &Store, first: InodeHandle, last: InodeHandle) -> usize {
    if first == last { 0 } else { shared(store.name(first), store.name(last)) }
}
