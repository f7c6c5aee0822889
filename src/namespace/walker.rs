//! Where the path of a record leads, found with as few steps as may be: records of one job name files of one directory after another.

use crate::Tree;
use crate::resolve::{Resolved, is_reserved};
use record::{InodeHandle, KindTag, Store};
use smallvec::SmallVec;

/// Where a path leads, without the way there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The inode above the last component; `None` for the root or if it does not exist.
    pub parent: Option<InodeHandle>,
    /// The inode that the whole path names.
    pub last: Option<InodeHandle>,
}

impl Place {
    /// The place of an inode.
    pub fn of(store: &Store, inode: InodeHandle) -> Place {
        Place { parent: store.parent(inode), last: Some(inode) }
    }
}

impl Resolved<'_> {
    /// Where the path leads.
    pub fn place(&self) -> Place {
        Place { parent: self.parent(), last: self.last() }
    }
}

/// Directories that are remembered: a job writes in one, moves to another, and cleans up in a third.
const REMEMBERED: usize = 4;

/// Finds places, and remembers the directories that the last ones were in. It may be used with one tree only.
#[derive(Debug, Default)]
pub struct Walker {
    /// The one used last is first.
    known: SmallVec<[Known; REMEMBERED]>,
    /// [`Tree::moves`] when they were found.
    moves: u64,
}

/// A directory by the path it was found by.
#[derive(Debug)]
struct Known {
    /// A path without its last component, as it was written.
    path: Vec<u8>,
    /// Where that leads.
    directory: InodeHandle,
}

impl Walker {
    /// Where a path leads; `None` for `/.reserved/.inodes/<id>` of no inode and for what is in a snapshot.
    pub fn place(&mut self, tree: &Tree, store: &Store, path: &[u8]) -> Option<Place> {
        let at = memchr::memrchr(b'/', path).unwrap_or(0);
        let (above, name) = (&path[..at], path.get(at + 1..).unwrap_or_default());
        if self.moves != tree.moves {
            self.known.clear();
            self.moves = tree.moves;
        }
        if let Some(at) = self.known.iter().position(|known| known.path == above)
            && !name.is_empty()
        {
            self.known[..=at].rotate_right(1);
            let directory = self.known[0].directory;
            return Some(Place { parent: Some(directory), last: tree.child(store, directory, name) });
        }
        let place = tree.resolve(store, path).ok().filter(|resolved| !resolved.is_past())?.place();
        if let Some(directory) = place.parent
            && !name.is_empty()
            && path.first() == Some(&b'/')
            && !is_reserved(path)
            && store.kind(directory) == KindTag::Directory
        {
            self.remember(above, directory);
        }
        Some(place)
    }

    fn remember(&mut self, path: &[u8], directory: InodeHandle) {
        let mut known = match self.known.len() {
            REMEMBERED => self.known.pop().unwrap_or(Known { path: Vec::new(), directory }),
            _ => Known { path: Vec::with_capacity(path.len() + 16), directory },
        };
        known.path.clear();
        known.path.extend_from_slice(path);
        known.directory = directory;
        self.known.insert(0, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RootAttributes;
    use record::{Features, Inode, InodeKind};
    use vocab::{InodeId, Mode, TimeMs};

    struct World {
        store: Store,
        tree: Tree,
        walker: Walker,
    }

    impl World {
        fn directory(&mut self, parent: InodeHandle, name: &str) -> InodeHandle {
            let inode = Inode {
                id: InodeId(self.tree.inode_count() as i64 + 20_000),
                parent: None,
                user: Default::default(),
                group: Default::default(),
                mode: Mode::new(0o755),
                mtime: TimeMs(0),
                atime: TimeMs(0),
                features: Features::NONE,
                kind: InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 },
            };
            self.tree.add(&mut self.store, parent, &inode, name.as_bytes())
        }
        /// What the walker says, which must be what a walk from the root says.
        fn place(&mut self, path: &str) -> Option<Place> {
            let walked = self.tree.resolve(&self.store, path.as_bytes()).ok().map(|r| r.place());
            assert_eq!(self.walker.place(&self.tree, &self.store, path.as_bytes()), walked, "{path}");
            walked
        }
    }

    #[test]
    fn what_is_remembered_is_what_a_walk_finds() {
        let mut store = Store::new();
        let tree = Tree::new(&mut store, RootAttributes { user: "u", group: "g", mode: Mode::new(0o755) });
        let mut w = World { store, tree, walker: Walker::default() };
        let root = w.tree.root();
        let a = w.directory(root, "a");
        let b = w.directory(a, "b");
        let c = w.directory(b, "c");
        let paths = [
            "/a/b/c",
            "/a/b/d",
            "/a/b/",
            "/a//b/c",
            "//a/b/c",
            "/",
            "/a",
            "/a/",
            "",
            "a/b/c",
            "/x/y/z",
            "/a/b/c/d",
            "/.reserved/.inodes/16385/a",
            "/.reserved/.inodes/16385/..",
            "/.reserved/.inodes/9/x",
            "/.reserved/raw/a/b",
        ];
        for first in paths {
            for second in paths {
                w.place(first);
                w.place(second);
            }
        }
        assert_eq!(w.place("/a/b/c"), Some(Place { parent: Some(b), last: Some(c) }));
        // a name that comes or goes is seen, and so is a directory above that moves or goes
        let d = w.directory(b, "d");
        assert_eq!(w.place("/a/b/d"), Some(Place { parent: Some(b), last: Some(d) }));
        let World { store, tree, .. } = &mut w;
        tree.rename(store, a, root, b"z");
        assert_eq!(w.place("/a/b/d"), Some(Place { parent: None, last: None }));
        assert_eq!(w.place("/z/b/d"), Some(Place { parent: Some(b), last: Some(d) }));
        let World { store, tree, .. } = &mut w;
        tree.detach(store, a);
        assert_eq!(w.place("/z/b/d"), Some(Place { parent: None, last: None }));
        assert_eq!(w.place("/z"), Some(Place { parent: Some(root), last: None }));
    }
}
