//! Ways to the directories that paths have led through lately: callers work in few directories at a time, and names of one directory share all
//! of their way but its end.
//!
//! A cache of what a walk finds, and nothing else: it is not durable, nobody waits for it, and any directory that leaves its place empties it.

use mem::prefetch;
use record::InodeHandle;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Mutex;

/// Ways that are remembered: more than there are callers at a time.
const REMEMBERED: usize = 1 << 9;
/// Shorter ways are walked as fast as they are found here.
const DEPTH_MIN: usize = 3;
/// Longer ones are not remembered.
const DEPTH_MAX: usize = 16;
/// Longer paths are not remembered.
const BYTES_MAX: usize = 268;
/// Directories of a path that are looked for, from its end: what is not there yet is made below the last ones that are.
const TRIED: usize = 6;
/// Bytes that come with one access to memory.
const LINE: usize = 64;

/// Where components begin and end in a path.
pub(crate) type Ranges = SmallVec<[(u32, u32); 16]>;

/// A way from the root: what each component of a path leads to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    /// The components.
    pub ranges: Ranges,
    /// The root, and the inodes that they lead to.
    pub inodes: SmallVec<[InodeHandle; 16]>,
}

impl Way {
    /// Appends the components of a path that begin at `from` or later.
    pub(crate) fn split(&mut self, path: &[u8], from: usize) {
        let mut start = from;
        for end in memchr::memchr_iter(b'/', &path[from..]).map(|at| from + at).chain([path.len()]) {
            if end > start {
                self.ranges.push((start as u32, end as u32));
            }
            start = end + 1;
        }
    }
}

/// What is remembered of one tree.
#[derive(Default)]
pub(crate) struct Ways(Mutex<Vec<Known>>);

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ways").finish_non_exhaustive()
    }
}

/// The way to a directory. All of it lies together: between two calls of one caller the processor forgets it, and lines beside each other come in
/// the time of one.
#[derive(Clone)]
#[repr(C, align(64))]
struct Known {
    /// [`crate::Tree::moves`] when it was walked, and one more; 0 for no way.
    moves: u64,
    /// Length of the path.
    bytes: u16,
    depth: u16,
    /// What each component leads to; the root is not among them.
    inodes: [u32; DEPTH_MAX],
    /// Where each component ends in the path. It begins after one slash.
    ends: [u16; DEPTH_MAX],
    /// The path, which ends with the directory's name.
    path: [u8; BYTES_MAX],
}

const _: () = assert!(size_of::<Known>() == 6 * LINE);

impl Known {
    const NONE: Known =
        Known { moves: 0, bytes: 0, depth: 0, inodes: [0; DEPTH_MAX], ends: [0; DEPTH_MAX], path: [0; BYTES_MAX] };

    /// Asks for the memory of the way to a path of so many bytes.
    fn prefetch(&self, bytes: usize) {
        prefetch(self);
        let bytes = bytes.min(BYTES_MAX);
        self.path[..bytes].iter().step_by(LINE).for_each(prefetch);
        self.path[..bytes].last().into_iter().for_each(prefetch);
    }

    /// The way, if it is the one to this path and nothing has moved since.
    fn to(&self, moves: u64, path: &[u8], root: InodeHandle) -> Option<Way> {
        if self.moves != moves + 1 || usize::from(self.bytes) != path.len() || &self.path[..path.len()] != path {
            return None;
        }
        let mut way = Way::default();
        way.inodes.push(root);
        let mut start = 1;
        for (inode, end) in self.inodes.iter().zip(self.ends).take(self.depth.into()) {
            way.inodes.push(InodeHandle::from_raw(*inode)?);
            way.ranges.push((start, end.into()));
            start = u32::from(end) + 1;
        }
        Some(way)
    }
}

impl Ways {
    /// The longest known way to a directory on a path, its end not included, and where in the path it ends; an empty one if none is known.
    pub(crate) fn take(&self, moves: u64, path: &[u8], root: InodeHandle) -> (Way, usize) {
        if let Ok(known) = self.0.try_lock()
            && !known.is_empty()
        {
            let mut end = path.len();
            for _ in 0..TRIED {
                end = memchr::memrchr(b'/', &path[..end]).unwrap_or(0);
                let above = &path[..end];
                if above.is_empty() {
                    break;
                }
                let found = &known[hash(above) as usize % REMEMBERED];
                found.prefetch(end);
                if let Some(way) = found.to(moves, above, root) {
                    return (way, end);
                }
            }
        }
        (Way::default(), 0)
    }

    /// Remembers the way to the directory that the first `depth` components of a path lead to, if the path is written plainly so far.
    pub(crate) fn remember(&self, moves: u64, path: &[u8], way: &Way, depth: usize) {
        if !(DEPTH_MIN..=DEPTH_MAX).contains(&depth) {
            return;
        }
        let above = &path[..way.ranges[depth - 1].1 as usize];
        let mut start = 1;
        let plain = way.ranges[..depth].iter().all(|part| part.0 == std::mem::replace(&mut start, part.1 + 1));
        if above.len() > BYTES_MAX || !plain {
            return;
        }
        let Ok(mut known) = self.0.try_lock() else { return };
        if known.is_empty() {
            known.resize(REMEMBERED, Known::NONE);
        }
        let known = &mut known[hash(above) as usize % REMEMBERED];
        known.moves = moves + 1;
        (known.bytes, known.depth) = (above.len() as u16, depth as u16);
        known.path[..above.len()].copy_from_slice(above);
        for i in 0..depth {
            known.inodes[i] = way.inodes[i + 1].raw();
            known.ends[i] = way.ranges[i].1 as u16;
        }
    }
}

/// A hash of a path, sixteen bytes at a step. Paths of one hash displace each other, no more.
fn hash(path: &[u8]) -> u64 {
    let mix = |hash: u64, step: &[u8; 16]| {
        let words = u128::from_le_bytes(*step);
        let wide = u128::from(hash ^ words as u64) * u128::from((words >> 64) as u64 ^ 0x9e37_79b9_7f4a_7c15);
        wide as u64 ^ (wide >> 64) as u64
    };
    let (steps, rest) = path.as_chunks::<16>();
    let hash = steps.iter().fold(path.len() as u64 ^ 0x243f_6a88_85a3_08d3, mix);
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash, &last)
}

#[cfg(test)]
mod tests {
    use crate::{RootAttributes, Tree};
    use record::{Features, Inode, InodeHandle, InodeKind, Store};
    use vocab::{InodeId, Mode, TimeMs};

    struct World {
        store: Store,
        tree: Tree,
    }

    impl World {
        fn add(&mut self, parent: InodeHandle, name: &str, kind: InodeKind) -> InodeHandle {
            let inode = Inode {
                id: InodeId(self.tree.inode_count() as i64 + 20_000),
                parent: None,
                user: Default::default(),
                group: Default::default(),
                mode: Mode::new(0o755),
                mtime: TimeMs(0),
                atime: TimeMs(0),
                features: Features::NONE,
                kind,
            };
            self.tree.add(&mut self.store, parent, &inode, name.as_bytes())
        }
        fn directory(&mut self, parent: InodeHandle, name: &str) -> InodeHandle {
            self.add(parent, name, InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 })
        }
        /// Components, inodes and whether it is of the past: from what is remembered, twice, and from a walk.
        fn resolve(&self, path: &str) -> (Vec<Vec<u8>>, Vec<InodeHandle>) {
            let seen = || {
                let resolved = self.tree.resolve(&self.store, path.as_bytes()).unwrap();
                (resolved.components().map(<[u8]>::to_vec).collect::<Vec<_>>(), resolved.inodes().to_vec())
            };
            let first = seen();
            assert_eq!(seen(), first, "{path}");
            self.tree.ways.0.lock().unwrap().clear();
            assert_eq!(seen(), first, "{path}");
            first
        }
    }

    #[test]
    fn components_are_what_lies_between_slashes() {
        let paths = [
            "/",
            "",
            "a",
            "/a",
            "a/",
            "//a//b//",
            "/abcdefgh/",
            "/.0.0/0./.",
            "/a/./..",
            "/\u{e9}/\u{af}\u{2f}",
            "/a/b/c/d/e/f/g/h/i/j/k",
        ];
        for path in paths {
            for from in (0..=path.len()).filter(|from| *from == 0 || path.as_bytes().get(*from) == Some(&b'/')) {
                let mut way = super::Way::default();
                way.split(path.as_bytes(), from);
                let found: Vec<&str> = way.ranges.iter().map(|(s, e)| &path[*s as usize..*e as usize]).collect();
                assert_eq!(
                    found,
                    path[from..].split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>(),
                    "{path}"
                );
            }
        }
    }

    #[test]
    fn hashes_differ() {
        let path = b"/sixteen bytes ab/12345678/12345678/0/0/0/0/0/0/0";
        let mut hashes: Vec<u64> = (0..path.len()).map(|end| super::hash(&path[..end])).collect();
        hashes.extend((0..path.len()).map(|at| {
            let mut other = path.to_vec();
            other[at] ^= 1;
            super::hash(&other)
        }));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 2 * path.len());
    }

    #[test]
    fn ways_of_any_depth_and_length_are_found() {
        let mut store = Store::new();
        let tree = Tree::new(&mut store, RootAttributes { user: "u", group: "g", mode: Mode::new(0o755) });
        let mut w = World { store, tree };
        for name_bytes in [1, 12, 15, 16, 17, 18, 60, 255] {
            let (mut inodes, mut path) = (vec![w.tree.root()], String::new());
            for _ in 0..super::DEPTH_MAX + 3 {
                let name = "n".repeat(name_bytes);
                inodes.push(w.directory(inodes[inodes.len() - 1], &name));
                path = format!("{path}/{name}");
                assert_eq!(w.resolve(&path).1, inodes);
                assert_eq!(w.resolve(&format!("{path}/x")).1, inodes);
            }
            w.tree.resolve(&w.store, path.as_bytes()).unwrap();
            let remembers = |path: &str| {
                let known = w.tree.ways.0.lock().unwrap();
                known.iter().any(|way| way.path[..way.bytes.into()] == *path.as_bytes())
            };
            assert!(!remembers(&path), "it is too deep");
            let above = &path[..super::DEPTH_MAX * (name_bytes + 1)];
            w.tree.resolve(&w.store, format!("{above}/x").as_bytes()).unwrap();
            assert_eq!(remembers(above), above.len() <= super::BYTES_MAX, "{name_bytes}");
        }
    }

    #[test]
    fn what_is_remembered_is_what_a_walk_finds() {
        let mut store = Store::new();
        let tree = Tree::new(&mut store, RootAttributes { user: "u", group: "g", mode: Mode::new(0o755) });
        let mut w = World { store, tree };
        let root = w.tree.root();
        let a = w.directory(root, "a");
        let b = w.directory(a, "b");
        let c = w.directory(b, "c");
        let d = w.directory(c, "d");
        let link = w.add(c, "link", InodeKind::Symlink);
        let paths = [
            "/a/b/c/d",
            "/a/b/c/d/",
            "/a/b/c/d/e",
            "/a/b/c/d//e",
            "//a/b/c/d/e",
            "/a/b/c/link/x",
            "/a/b/c/x",
            "/a/b/c/x/y",
            "/a/b/c/d/x/y/z",
            "/a/b/c/link/x/y/z/u/v",
            "/",
            "/a",
            "a/b/c/d/e",
            "/.reserved/.inodes/16385/a/b/c/d",
            "/.reserved/raw/a/b/c/d/e",
        ];
        for first in paths {
            for second in paths {
                w.resolve(first);
                w.resolve(second);
            }
        }
        assert_eq!(w.resolve("/a/b/c/d/e").1, [root, a, b, c, d]);
        assert_eq!(w.resolve("/a/b/c/link/x").1, [root, a, b, c, link]);
        // what comes is seen, and what goes, and that a directory above is another one now
        let path = |w: &World, path: &str| w.tree.resolve(&w.store, path.as_bytes()).unwrap().inodes().to_vec();
        assert_eq!(path(&w, "/a/b/c/d/e"), [root, a, b, c, d]);
        let e = w.directory(d, "e");
        assert_eq!(path(&w, "/a/b/c/d/e"), [root, a, b, c, d, e]);
        w.tree.rename(&mut w.store, b, a, b"z");
        assert_eq!(path(&w, "/a/b/c/d/e"), [root, a]);
        assert_eq!(path(&w, "/a/z/c/d/e"), [root, a, b, c, d, e]);
        w.tree.detach(&mut w.store, a);
        assert_eq!(path(&w, "/a/z/c/d/e"), [root]);
    }
}
