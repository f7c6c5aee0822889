//! Purpose: child lists of directories: small ones are sorted arrays of handles, large ones B+ trees, all in the pages of `mem`.
//! Called by: the tree and its builder.
//! Calls: `mem::nodes`; names of `record`.
//! Never: allocates per directory; reads a name while a list is taken apart from its end.
//! Invariants: a list is named by its topmost node, whose number may change with any change of the list; 0 is the empty list.
//! Every node but the topmost has an entry in one inner node, with its first child and the number of children below it.

mod bulk;
mod large;
mod node;
mod small;
#[cfg(test)]
mod tests;

pub use bulk::tag;

use large::Path;
use mem::nodes::{Node, Nodes};
use mem::page::Pages;
use mem::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};
use node::Kind;
use record::{InodeHandle, Store};

/// Most children of a small list.
const SMALL_MAX: usize = 128;
/// A list of one leaf that shrinks to this many children becomes small again.
const LARGE_MIN: usize = 112;

/// All child lists, by number; 0 is the empty list.
#[derive(Default)]
pub struct Lists {
    nodes: Nodes,
    scratch: Vec<large::Entry>,
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lists").field("bytes", &self.memory_bytes()).finish()
    }
}

impl Lists {
    fn kind(&self, node: Node) -> Kind {
        node::kind(self.nodes.get(node))
    }

    /// The child of this name.
    #[inline]
    pub fn get(&self, store: &Store, list: u32, name: &[u8]) -> Option<InodeHandle> {
        let words = self.nodes.get(Node::new(list)?);
        match node::kind(words) {
            Kind::Small => small::find(store, words, name).map(|at| node::handle(words, at)),
            Kind::Leaf | Kind::Inner => self.get_large(store, words, name),
        }
    }

    /// Enters a child under the name in its record. Gives the number of the list, new if it was 0, or `None` if the name is taken.
    pub fn insert(&mut self, store: &Store, list: u32, handle: InodeHandle) -> Option<u32> {
        let name = store.name(handle);
        let Some(root) = Node::new(list) else {
            return Some(self.small(&[handle], std::iter::once(node::tag(name))).get());
        };
        let words = self.nodes.get(root);
        if node::kind(words) != Kind::Small {
            return self.insert_large(store, root, handle).map(Node::get);
        }
        let at = node::place_small(store, words, name).err()?;
        Some(self.insert_small(store, root, at, handle, name).get())
    }

    /// Takes a name out. Gives the child and the number of the list, 0 if it is empty now.
    pub fn remove(&mut self, store: &Store, list: u32, name: &[u8]) -> Option<(InodeHandle, u32)> {
        let root = Node::new(list)?;
        let (handle, root) = match self.kind(root) {
            Kind::Small => {
                let words = self.nodes.get(root);
                let at = small::find(store, words, name)?;
                (node::handle(words, at), self.remove_small(root, at))
            }
            Kind::Leaf | Kind::Inner => self.remove_large(store, root, name)?,
        };
        Some((handle, root.map_or(0, Node::get)))
    }

    /// Takes the last child out, whatever its name. Gives the child and the number of the list, 0 if it is empty now.
    pub fn pop(&mut self, list: u32) -> Option<(InodeHandle, u32)> {
        let root = Node::new(list)?;
        let (handle, root) = match self.kind(root) {
            Kind::Small => {
                let words = self.nodes.get(root);
                let last = node::count(words) - 1;
                (node::handle(words, last), self.remove_small(root, last))
            }
            Kind::Leaf | Kind::Inner => self.pop_large(root),
        };
        Some((handle, root.map_or(0, Node::get)))
    }

    /// A list of children that are in order already (as images hold them), in full nodes. Gives its number, 0 for none.
    pub fn set_sorted(&mut self, store: &Store, sorted: &[InodeHandle]) -> u32 {
        match sorted.len() {
            0 => 0,
            n if n <= SMALL_MAX => {
                let tags = sorted.iter().map(|child| node::tag(store.name(*child)));
                self.small(sorted, tags).get()
            }
            _ => self.large(store, sorted).get(),
        }
    }

    /// Children in order, from the first.
    pub fn iter(&self, list: u32) -> Children<'_> {
        let Self { nodes, .. } = self;
        match Node::new(list).map(|root| (root, nodes.get(root))) {
            None => Children { nodes, path: Path::default(), leaf: [].iter(), pairs: false },
            Some((_, words)) if node::kind(words) == Kind::Small => {
                Children { nodes, path: Path::default(), leaf: node::small_handles(words).iter(), pairs: false }
            }
            Some((root, _)) => self.children(self.first_path(root), 0),
        }
    }

    /// Children in order, from the first whose name comes after `start_after`; all if that is empty. Also gives how many come before.
    pub fn iter_after(&self, store: &Store, list: u32, start_after: &[u8]) -> (Children<'_>, usize) {
        let Some(root) = Node::new(list).filter(|_| !start_after.is_empty()) else { return (self.iter(list), 0) };
        let words = self.nodes.get(root);
        let (path, found) = match node::kind(words) {
            Kind::Small => match node::place_small(store, words, start_after) {
                Ok(at) => (Path::of(root, at), true),
                Err(at) => (Path::of(root, at), false),
            },
            Kind::Leaf | Kind::Inner => self.seek(store, root, start_after),
        };
        let before = self.before(&path) + usize::from(found);
        (self.children(path, usize::from(found)), before)
    }
    /// Children from the end of a path on, but for the first `skipped` of that leaf.
    fn children(&self, mut path: Path, skipped: usize) -> Children<'_> {
        let (node, at) = path.pop().expect("a path has a leaf");
        let (leaf, pairs) = leaf(self.nodes.get(node));
        let from = (at + skipped) << u32::from(pairs);
        Children { nodes: &self.nodes, path, leaf: leaf.get(from..).unwrap_or(&[]).iter(), pairs }
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes()
    }
    /// Begins the next epoch.
    pub fn bump_epoch(&mut self) -> u32 {
        self.nodes.bump_epoch()
    }
}

impl Persist for Lists {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.nodes.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.nodes.page_sets_mut(sets);
    }
    fn write_rest(&self, rest: &mut RestWriter) {
        self.nodes.write_rest(rest);
    }
    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Lists, Malformed> {
        Ok(Lists { nodes: Nodes::restore(pages, rest)?, scratch: Vec::new() })
    }
}

/// The words of a small list or leaf from its first handle on, and whether only every other word is one.
fn leaf(words: &[u32]) -> (&[u32], bool) {
    match node::kind(words) {
        Kind::Small => (node::small_handles(words), false),
        Kind::Leaf | Kind::Inner => (&words[node::FIRST + 1..node::FIRST + 2 * node::count(words)], true),
    }
}

/// Children in order.
#[derive(Clone)]
pub struct Children<'a> {
    nodes: &'a Nodes,
    /// Inner nodes above the leaf.
    path: Path,
    /// Words of the leaf from the next handle on.
    leaf: std::slice::Iter<'a, u32>,
    /// Only every other word is a handle.
    pairs: bool,
}

impl Iterator for Children<'_> {
    type Item = InodeHandle;
    #[inline]
    fn next(&mut self) -> Option<InodeHandle> {
        loop {
            if let Some(raw) = self.leaf.next() {
                if self.pairs {
                    self.leaf.next();
                }
                return Some(node::inode(*raw));
            }
            let node = large::next_leaf(self.nodes, &mut self.path)?;
            let (words, pairs) = leaf(self.nodes.get(node));
            (self.leaf, self.pairs) = (words.iter(), pairs);
        }
    }
}
