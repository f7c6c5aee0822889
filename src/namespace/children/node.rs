//! How nodes of child lists lie in words, and the search within one.
//!
//! ```text
//! small   0  count 16  kind 16      1.. a tag of one byte for each child, filled up to words      then handles
//! leaf    0  count 16  kind 16      1  common        2.. for each child: prefix, handle
//! inner   0  count 16  kind 16      1  common        2.. for each node below: prefix and handle of its first child, its number, its children
//! ```
//!
//! All names below a leaf or an inner node begin with the same `common` bytes (not always as many as they could). A *prefix* is the four bytes after
//! them as a number in name order, so that a search compares numbers and reads a name only at the end; the common part is left out
//! since names in large directories often begin alike (`part-r-00017`). Order is that of Java: bytes compared as signed.
//!
//! A *tag* is a hash of the name: a search in a small list looks at tags and reads, as a rule, only the name it finds.

use record::{InodeHandle, Store};
use std::cmp::Ordering;
use vocab::path::compare_names;

/// Kind of a node, in its first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Small,
    Leaf,
    Inner,
}

/// Most entries of a leaf: 1,024 words.
pub(super) const LEAF_MAX: usize = 511;
/// Most entries of an inner node: 1,022 words.
pub(super) const INNER_MAX: usize = 255;
/// Where entries begin in leaves and inner nodes.
pub(super) const FIRST: usize = 2;

impl Kind {
    /// Words of an entry.
    pub(super) fn stride(self) -> usize {
        match self {
            Kind::Small => 1,
            Kind::Leaf => 2,
            Kind::Inner => 4,
        }
    }
    /// Most entries.
    pub(super) fn most(self) -> usize {
        match self {
            Kind::Small => super::SMALL_MAX,
            Kind::Leaf => LEAF_MAX,
            Kind::Inner => INNER_MAX,
        }
    }
    /// Words of a node of so many entries.
    pub(super) fn words(self, count: usize) -> usize {
        match self {
            Kind::Small => 1 + count + count.div_ceil(4),
            Kind::Leaf | Kind::Inner => FIRST + count * self.stride(),
        }
    }
    /// The first word.
    pub(super) fn head(self, count: usize) -> u32 {
        (self as u32) << 16 | count as u32
    }
}

#[inline]
pub(super) fn kind(words: &[u32]) -> Kind {
    match words[0] >> 16 {
        0 => Kind::Small,
        1 => Kind::Leaf,
        _ => Kind::Inner,
    }
}
#[inline]
pub(super) fn count(words: &[u32]) -> usize {
    (words[0] & 0xffff) as usize
}
#[inline]
pub(super) fn common(words: &[u32]) -> usize {
    words[1] as usize
}
#[inline]
pub(super) fn inode(raw: u32) -> InodeHandle {
    InodeHandle::from_raw(raw).expect("a list holds handles")
}
/// The child at a place; of an inner node the first child below it.
#[inline]
pub(super) fn handle(words: &[u32], at: usize) -> InodeHandle {
    inode(match kind(words) {
        Kind::Small => small_handles(words)[at],
        Kind::Leaf => words[FIRST + 2 * at + 1],
        Kind::Inner => words[FIRST + 4 * at + 1],
    })
}
/// Tags of a small list.
#[inline]
pub(super) fn tags(words: &[u32]) -> &[u8] {
    &mem::nodes::bytes(&words[1..])[..count(words)]
}
/// Handles of a small list.
#[inline]
pub(super) fn small_handles(words: &[u32]) -> &[u32] {
    &words[1 + count(words).div_ceil(4)..][..count(words)]
}

/// The first four bytes of a name as a number in name order; short names are filled with the lowest byte, so equal prefixes say nothing.
#[inline]
pub(super) fn prefix(name: &[u8]) -> u32 {
    match name.first_chunk::<4>() {
        Some(bytes) => u32::from_be_bytes(*bytes) ^ 0x8080_8080,
        None => {
            let mut bytes = [0u8; 4];
            bytes.iter_mut().zip(name).for_each(|(to, from)| *to = from ^ 0x80);
            u32::from_be_bytes(bytes)
        }
    }
}

/// How many bytes two names begin with alike.
pub(super) fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The tag of a name.
#[inline]
pub(super) fn tag(name: &[u8]) -> u8 {
    let mix = |hash: u64, word: u64| {
        let wide = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
        wide as u64 ^ (wide >> 64) as u64
    };
    let (words, rest) = name.as_chunks::<8>();
    let mut hash = 0x243f_6a88_85a3_08d3 ^ name.len() as u64;
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    // what is left over: the last eight bytes, of which some are taken twice, or the few there are
    let last = match name.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    mix(hash, last) as u8
}

/// The first place with this tag for which `is` holds.
#[inline]
pub(super) fn find_tag(tags: &[u8], tag: u8, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = tags.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let differs = u64::from_le_bytes(*word) ^ (LOW * u64::from(tag));
        // the top bit of every byte that is zero, and of some above one that is: `is` tells
        let mut hits = differs.wrapping_sub(LOW) & !differs & (LOW << 7);
        while hits != 0 {
            let at = i * 8 + hits.trailing_zeros() as usize / 8;
            if is(at) {
                return Some(at);
            }
            hits &= hits - 1;
        }
    }
    let from = words.len() * 8;
    (from..tags.len()).find(|at| rest[at - from] == tag && is(*at))
}

/// The first of `lo..hi` for which `before` does not hold; those for which it does come first.
#[inline]
fn partition(mut lo: usize, hi: usize, mut before: impl FnMut(usize) -> bool) -> usize {
    let mut size = hi - lo;
    while size > 0 {
        let half = size / 2;
        if before(lo + half) {
            lo += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    lo
}

/// Place of a name in a leaf or inner node, given what follows the common part.
#[inline]
pub(super) fn search(store: &Store, words: &[u32], rest: &[u8]) -> Result<usize, usize> {
    let (stride, count, common) = (kind(words).stride(), count(words), common(words));
    let (wanted, entries) = (prefix(rest), &words[FIRST..]);
    let lo = partition(0, count, |at| entries[at * stride] < wanted);
    if lo == count || entries[lo * stride] != wanted {
        return Err(lo);
    }
    let hi = partition(lo + 1, count, |at| entries[at * stride] == wanted);
    let full = |at: usize| compare_names(&store.name(inode(entries[at * stride + 1]))[common..], rest);
    let at = partition(lo, hi, |at| full(at) == Ordering::Less);
    if at < hi && full(at) == Ordering::Equal { Ok(at) } else { Err(at) }
}

/// Place of any name in a leaf or inner node.
pub(super) fn place(store: &Store, words: &[u32], name: &[u8]) -> Result<usize, usize> {
    let shared = &store.name(handle(words, 0))[..common(words)];
    match name.strip_prefix(shared) {
        Some(rest) => search(store, words, rest),
        None if compare_names(name, shared) == Ordering::Less => Err(0),
        None => Err(count(words)),
    }
}

/// Place of any name in a small list.
pub(super) fn place_small(store: &Store, words: &[u32], name: &[u8]) -> Result<usize, usize> {
    small_handles(words).binary_search_by(|raw| compare_names(store.name(inode(*raw)), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_as_by_a_plain_search() {
        let mut seed = 7u64;
        for length in 0..140 {
            let tags: Vec<u8> = (0..length)
                .map(|_| {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (seed >> 60) as u8
                })
                .collect();
            for wanted in 0..17 {
                let all: Vec<usize> = (0..length).filter(|at| tags[*at] == wanted).collect();
                let mut found = Vec::new();
                let none = find_tag(&tags, wanted, |at| {
                    found.extend((tags[at] == wanted).then_some(at));
                    false
                });
                assert_eq!((none, &found), (None, &all));
                assert_eq!(find_tag(&tags, wanted, |at| tags[at] == wanted), all.first().copied());
            }
        }
    }

    #[test]
    fn tags_of_like_names_differ() {
        let mut counts = [0u32; 256];
        (0..25_600).for_each(|n| counts[usize::from(tag(format!("part-r-{n:05}").as_bytes()))] += 1);
        assert!(counts.iter().all(|c| (50..=160).contains(c)), "{counts:?}");
        let mut counts = [0u32; 256];
        (0..25_600).for_each(|n| counts[usize::from(tag(format!("d{n}").as_bytes()))] += 1);
        assert!(counts.iter().all(|c| (50..=160).contains(c)), "{counts:?}");
    }

    #[test]
    fn prefixes_are_in_name_order() {
        let names: [&[u8]; 8] = [b"", b"a", b"ab", b"abcd", b"abcde", b"\x80", b"\xff\x01", b"zzzz\x80"];
        for a in names {
            for b in names {
                let order = prefix(a).cmp(&prefix(b));
                assert!(order == Ordering::Equal || order == compare_names(a, b), "{a:?} {b:?}");
            }
        }
    }
}
