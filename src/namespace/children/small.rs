//! Small lists: a tag of one byte for each name, filled up to whole words, then the handles, both in name order.

use super::node::{self, Kind, inode, small_handles, tags};
use super::{LARGE_MIN, Lists, SMALL_MAX};
use mem::nodes::{Node, bytes_mut};
use record::{InodeHandle, Store};
use smallvec::SmallVec;

/// Place of the child of this name.
#[inline]
pub(super) fn find(store: &Store, words: &[u32], name: &[u8]) -> Option<usize> {
    let handles = small_handles(words);
    node::find_tag(tags(words), node::tag(name), |at| store.name(inode(handles[at])) == name)
}

impl Lists {
    /// A small list of children in order, with the tag of each.
    pub(super) fn small(&mut self, sorted: &[InodeHandle], tags: impl Iterator<Item = u8>) -> Node {
        let count = sorted.len();
        let root = self.nodes.add(Kind::Small.words(count));
        let words = self.nodes.get_mut(root);
        words[0] = Kind::Small.head(count);
        let (to_tags, handles) = words[1..].split_at_mut(count.div_ceil(4));
        handles.iter_mut().zip(sorted).for_each(|(to, child)| *to = child.raw());
        bytes_mut(to_tags).iter_mut().zip(tags).for_each(|(to, tag)| *to = tag);
        root
    }

    /// Inserts a child of this name; a list that is full becomes large.
    #[inline]
    pub(super) fn insert_small(
        &mut self,
        store: &Store,
        root: Node,
        at: usize,
        child: InodeHandle,
        name: &[u8],
    ) -> Node {
        let count = node::count(self.nodes.get(root));
        if count == SMALL_MAX {
            let handles = small_handles(self.nodes.get(root));
            let mut all: SmallVec<[InodeHandle; SMALL_MAX + 1]> = handles.iter().map(|raw| inode(*raw)).collect();
            all.insert(at, child);
            self.nodes.remove(root);
            return self.large(store, &all);
        }
        let root = self.nodes.resize(root, Kind::Small.words(count), Kind::Small.words(count + 1));
        let words = self.nodes.get_mut(root);
        words[0] = Kind::Small.head(count + 1);
        // handles begin a word later when the tags need another one
        let (old, new) = (1 + count.div_ceil(4), 1 + (count + 1).div_ceil(4));
        words.copy_within(old + at..old + count, new + at + 1);
        if new > old {
            words.copy_within(old..old + at, new);
        }
        words[new + at] = child.raw();
        let tags = &mut bytes_mut(&mut words[1..new])[..=count];
        tags.copy_within(at..count, at + 1);
        tags[at] = node::tag(name);
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
        let (old, new) = (1 + count.div_ceil(4), 1 + (count - 1).div_ceil(4));
        bytes_mut(&mut words[1..old])[..count].copy_within(at + 1.., at);
        if new < old {
            words.copy_within(old..old + at, new);
        }
        words.copy_within(old + at + 1..old + count, new + at);
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
        self.small(&all, all.iter().map(|child| node::tag(store.name(*child))))
    }
}
