//! Small lists: handles in name order, then their tags.

use super::node::{self, Kind};
use super::{LARGE_MIN, Lists, SMALL_MAX};
use mem::nodes::{Node, bytes_mut};
use record::{InodeHandle, Store};
use smallvec::SmallVec;

/// Place of the child of this name.
#[inline]
pub(super) fn find(store: &Store, words: &[u32], name: &[u8]) -> Option<usize> {
    node::find_tag(node::tags(words), node::tag(name), |at| store.name(node::handle(words, at)) == name)
}

impl Lists {
    /// A small list of children in order.
    pub(super) fn small(&mut self, store: &Store, sorted: &[InodeHandle]) -> Node {
        let count = sorted.len();
        let root = self.nodes.add(Kind::Small.words(count));
        let words = self.nodes.get_mut(root);
        words[0] = Kind::Small.head(count);
        let (handles, tags) = words[1..].split_at_mut(count);
        for ((to, tag), child) in handles.iter_mut().zip(bytes_mut(tags)).zip(sorted) {
            *to = child.raw();
            *tag = node::tag(store.name(*child));
        }
        root
    }

    /// Inserts a child; a list that is full becomes large.
    pub(super) fn insert_small(&mut self, store: &Store, root: Node, at: usize, child: InodeHandle) -> Node {
        let count = node::count(self.nodes.get(root));
        if count == SMALL_MAX {
            let mut all: Vec<InodeHandle> = (0..count).map(|at| node::handle(self.nodes.get(root), at)).collect();
            all.insert(at, child);
            self.nodes.remove(root);
            return self.large(store, &all);
        }
        let root = self.nodes.resize(root, Kind::Small.words(count), Kind::Small.words(count + 1));
        let words = self.nodes.get_mut(root);
        words[0] = Kind::Small.head(count + 1);
        let bytes = bytes_mut(words);
        // tags move by one handle, those behind the place by themselves, too
        let (old, new) = (4 * (1 + count), 4 * (2 + count));
        bytes.copy_within(old + at..old + count, new + at + 1);
        bytes.copy_within(old..old + at, new);
        bytes[new + at] = node::tag(store.name(child));
        words.copy_within(1 + at..1 + count, 2 + at);
        words[1 + at] = child.raw();
        root
    }

    /// Takes a child out. `None` if it was the last one.
    pub(super) fn remove_small(&mut self, root: Node, at: usize) -> Option<Node> {
        let words = self.nodes.get_mut(root);
        let count = node::count(words);
        if count == 1 {
            self.nodes.remove(root);
            return None;
        }
        words[0] = Kind::Small.head(count - 1);
        words.copy_within(2 + at..1 + count, 1 + at);
        let bytes = bytes_mut(words);
        let (old, new) = (4 * (1 + count), 4 * count);
        bytes.copy_within(old..old + at, new);
        bytes.copy_within(old + at + 1..old + count, new + at);
        let words = Kind::Small.words(count - 1);
        Some(self.nodes.resize(root, words, words))
    }

    /// Turns a topmost leaf that became small into a small list.
    pub(super) fn made_small(&mut self, store: &Store, root: Node) -> Node {
        let words = self.nodes.get(root);
        let count = node::count(words);
        if node::kind(words) != Kind::Leaf || count > LARGE_MIN {
            return root;
        }
        let all: SmallVec<[InodeHandle; LARGE_MIN]> = (0..count).map(|at| node::handle(words, at)).collect();
        self.nodes.remove(root);
        self.small(store, &all)
    }
}
