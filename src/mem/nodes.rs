//! Nodes of trees whose meaning only their owner knows: slots of 32-bit words, sized to their content, by 32-bit number.
//!
//! As with [`crate::bytes`] the words are lent: a change needs the store exclusively, which rules it out while they are.

use crate::page::Pages;
use crate::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};
use crate::words::{Words, capacity_for};
use std::num::NonZeroU32;

/// Number of a node.
pub type Node = NonZeroU32;

/// Words as bytes, for nodes that hold some.
#[inline]
pub fn bytes(words: &[u32]) -> &[u8] {
    bytemuck::cast_slice(words)
}
/// Words as bytes, to write.
#[inline]
pub fn bytes_mut(words: &mut [u32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

/// A store of nodes.
pub struct Nodes {
    words: Words,
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes::new()
    }
}

impl Nodes {
    /// The most words that a node can have.
    pub const WORDS_MAX: usize = crate::words::PAGE_WORDS / 4;

    /// No node.
    pub fn new() -> Nodes {
        Nodes { words: Words::new() }
    }
    /// A node of at least `words` words, with whatever was in its slot.
    pub fn add(&mut self, words: usize) -> Node {
        assert!(words <= Nodes::WORDS_MAX, "a node of {words} words");
        self.words.take(words)
    }
    /// Gives a node back.
    pub fn remove(&mut self, node: Node) {
        self.words.free(node);
    }
    /// Its words, those of its slot beyond what was asked for included.
    #[inline]
    pub fn get(&self, node: Node) -> &[u32] {
        self.words.get(node)
    }
    /// Its words, to write.
    #[inline]
    pub fn get_mut(&mut self, node: Node) -> &mut [u32] {
        self.words.get_mut(node)
    }
    /// Room for `words` words with the first `used` ones kept: the same node unless its slot is too small, or needlessly large (a slot is left only
    /// when at most three quarters of it are wanted, so that a size that swings does not move the node each time).
    #[inline]
    pub fn resize(&mut self, node: Node, used: usize, words: usize) -> Node {
        let capacity = self.words.capacity(node);
        if words <= capacity && (words * 4 > capacity * 3 || capacity_for(words) * 4 > capacity * 3) {
            return node;
        }
        self.words.relocate(node, used, words)
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.words.slab().memory_bytes()
    }
    /// Bytes in empty pages, ready for nodes of any size.
    pub fn empty_bytes(&self) -> usize {
        self.words.slab().empty_bytes()
    }
    /// Begins the next epoch.
    pub fn bump_epoch(&mut self) -> u32 {
        self.words.slab_mut().bump_epoch()
    }
}

impl Persist for Nodes {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.words.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.words.page_sets_mut(sets);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        self.words.write_rest(rest);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Nodes, Malformed> {
        Ok(Nodes { words: Words::restore(pages, rest)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keep_their_words(ops in prop::collection::vec((any::<bool>(), 1usize..1_100, any::<u32>()), 0..200)) {
            let (mut nodes, mut twin) = (Nodes::new(), Vec::<(Node, Vec<u32>)>::new());
            for (add, words, seed) in ops {
                let which = seed as usize % twin.len().max(1);
                if add || twin.is_empty() {
                    let node = nodes.add(words);
                    nodes.get_mut(node)[..words].fill(seed);
                    twin.push((node, vec![seed; words]));
                } else if seed % 3 == 0 {
                    nodes.remove(twin.swap_remove(which).0);
                } else {
                    let (node, content) = &mut twin[which];
                    let used = words.min(content.len());
                    *node = nodes.resize(*node, used, words);
                    nodes.get_mut(*node)[used..words].fill(seed);
                    content.resize(words, seed);
                }
                prop_assert!(twin.iter().all(|(node, content)| nodes.get(*node)[..content.len()] == content[..]));
            }
        }
    }
}
