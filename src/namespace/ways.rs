//! Ways to the directories that paths have led through lately: callers work in few directories at a time, and names of one directory share all
//! of their way but its end.
//!
//! A cache of what a walk finds, and nothing else: it is not durable, nobody waits for it, and any directory that leaves its place empties it.

use record::InodeHandle;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Mutex;

/// Ways that are remembered: more than there are callers at a time.
const REMEMBERED: usize = 1 << 9;
/// Shorter ways are walked as fast as they are found here.
const DEPTH_MIN: usize = 3;
/// Longer paths are not remembered.
const BYTES_MAX: usize = 1_024;
/// Directories of a path that are looked for, from its end: what is not there yet is made below the last ones that are.
const TRIED: usize = 6;

/// The components of a path.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Where each begins and ends.
    pub ranges: SmallVec<[(u32, u32); 16]>,
    /// A hash of each of the last ones and of all before it, by the number of the component.
    hashes: [u64; HASHES],
}

/// Hashes that are kept: of the directories that are looked for, and of the last component.
const HASHES: usize = 8;
const _: () = assert!(HASHES > TRIED && HASHES.is_power_of_two());

impl Parts {
    /// Of a path.
    pub(crate) fn of(path: &[u8]) -> Parts {
        let mut parts = Parts { ranges: SmallVec::new(), hashes: [0; HASHES] };
        let (mut hash, mut start, mut count) = (SEED, 0, 0);
        // eight bytes at a step, from the beginning of each component on
        let mut at = 0;
        while at < path.len() {
            let rest = &path[at..];
            let bytes = rest.first_chunk::<8>().map_or_else(|| ending(rest), |bytes| u64::from_le_bytes(*bytes));
            let slashes = slashes(bytes);
            if slashes == 0 {
                hash = mix(hash, bytes);
                at += 8;
                continue;
            }
            let left = slashes.trailing_zeros() / 8;
            let end = at + left as usize;
            if end > start {
                hash = mix(hash, bytes & !(u64::MAX << (left * 8)) | u64::from(left + 1) << 56);
                parts.hashes[count % HASHES] = hash;
                parts.ranges.push((start as u32, end as u32));
                count += 1;
            }
            (start, at) = (end + 1, end + 1);
        }
        if start < path.len() {
            // the path ended with a whole step
            parts.hashes[count % HASHES] = mix(hash, 1 << 56);
            parts.ranges.push((start as u32, path.len() as u32));
        }
        parts
    }
    /// Hash of the first `depth` components, if it is kept, and where they end.
    fn prefix(&self, depth: usize) -> Option<(u64, usize)> {
        let at = depth.checked_sub(1)?;
        let end = self.ranges.get(at)?.1 as usize;
        (at + HASHES >= self.ranges.len()).then(|| (self.hashes[at % HASHES], end))
    }
}

const SEED: u64 = 0x243f_6a88_85a3_08d3;

/// Less than eight bytes, with a slash behind them.
fn ending(bytes: &[u8]) -> u64 {
    let mut word = [b'/'; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// The top bit of the first byte that is a slash, and of some above it.
fn slashes(bytes: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let differs = bytes ^ (LOW * b'/' as u64);
    differs.wrapping_sub(LOW) & !differs & (LOW << 7)
}

fn mix(hash: u64, word: u64) -> u64 {
    let wide = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
    wide as u64 ^ (wide >> 64) as u64
}

/// What is remembered of one tree.
#[derive(Default)]
pub(crate) struct Ways(Mutex<Vec<Way>>);

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ways").finish_non_exhaustive()
    }
}

/// The way to a directory.
#[derive(Clone, Default)]
struct Way {
    /// [`crate::Tree::moves`] when it was walked, and one more; 0 for no way.
    moves: u64,
    hash: u64,
    /// The path as it was written.
    path: Vec<u8>,
    /// The root, and what each component leads to.
    inodes: SmallVec<[InodeHandle; 16]>,
}

impl Ways {
    /// Appends to `inodes` the longest known way to a directory on a path, its end not included; its depth, 0 if none is known.
    pub(crate) fn take(
        &self,
        moves: u64,
        path: &[u8],
        parts: &Parts,
        inodes: &mut SmallVec<[InodeHandle; 16]>,
    ) -> usize {
        let above = parts.ranges.len().saturating_sub(1);
        if above < DEPTH_MIN {
            return 0;
        }
        let Ok(ways) = self.0.try_lock() else { return 0 };
        for depth in (DEPTH_MIN.max(above.saturating_sub(TRIED - 1))..=above).rev() {
            let Some((hash, end)) = parts.prefix(depth) else { break };
            let Some(way) = ways.get(hash as usize % REMEMBERED) else { break };
            if way.hash == hash && way.moves == moves + 1 && way.path == path[..end] {
                inodes.extend_from_slice(&way.inodes);
                return depth;
            }
        }
        0
    }

    /// Remembers the way to a directory on a path: the root and what each component up to it leads to.
    pub(crate) fn remember(&self, moves: u64, path: &[u8], parts: &Parts, inodes: &[InodeHandle]) {
        let depth = inodes.len() - 1;
        if depth < DEPTH_MIN {
            return;
        }
        let Some((hash, end)) = parts.prefix(depth).filter(|(_, end)| *end <= BYTES_MAX) else { return };
        let Ok(mut ways) = self.0.try_lock() else { return };
        if ways.is_empty() {
            ways.resize(REMEMBERED, Way::default());
        }
        let way = &mut ways[hash as usize % REMEMBERED];
        (way.moves, way.hash) = (moves + 1, hash);
        way.path.clear();
        way.path.extend_from_slice(&path[..end]);
        way.inodes.clear();
        way.inodes.extend_from_slice(inodes);
    }
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
    fn parts_are_what_lies_between_slashes() {
        let paths = [
            "/",
            "",
            "a",
            "/a",
            "a/",
            "//a//b//",
            "/abcdefg",
            "/abcdefgh",
            "/abcdefghi",
            "/abcdefgh/",
            "/.0.0/0./.",
            "/a/./..",
            "/twelve bytes/and twenty-one bytes/x/sixteen bytes ab",
            "/\u{e9}/\u{af}\u{2f}",
            "/12345678/12345678",
            "/a/b/c/d/e/f/g/h/i/j/k",
        ];
        for path in paths {
            let parts = super::Parts::of(path.as_bytes());
            let found: Vec<&str> = parts.ranges.iter().map(|(s, e)| &path[*s as usize..*e as usize]).collect();
            assert_eq!(found, path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>(), "{path}");
            let kept = (1..=found.len()).filter(|depth| parts.prefix(*depth).is_some()).count();
            assert_eq!(kept, found.len().min(super::HASHES));
        }
        let last = |path: &str| {
            let parts = super::Parts::of(path.as_bytes());
            parts.prefix(parts.ranges.len()).unwrap().0
        };
        let other = ["/a/b", "/a", "/b", "/ab", "/a/bc", "/ab/c", "/12345678", "/12345678/a", "/1234567", "/12345678a"];
        for (i, a) in other.iter().enumerate() {
            assert!(other[i + 1..].iter().all(|b| last(a) != last(b)), "{a}");
        }
        let deep = super::Parts::of(b"/12345678/abc/x");
        let kept = [deep.prefix(1).unwrap().0, deep.prefix(2).unwrap().0];
        assert_eq!(kept, [last("/12345678"), last("//12345678//abc")], "of a component and all before it");
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
