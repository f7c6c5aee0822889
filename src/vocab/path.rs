//! Paths as byte strings. Resolution, reserved names and symlinks belong to the namespace; here is only the shape.

/// Splits a path into its components: empty ones (double or trailing slashes) are skipped, as Hadoop's `INode.getPathComponents` does
/// after normalisation. `/` has none.
pub fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
    path.split(|b| *b == b'/').filter(|c| !c.is_empty())
}

/// Whether a client may create this path (Hadoop's `DFSUtil.isValidName`): absolute; no component `.`, `..` or with a colon; no empty
/// component except trailing ones. Below `/.reserved/.inodes/<id>` a `..` is legal, since NFS gateways use it.
pub fn is_valid_name(path: &[u8]) -> bool {
    if path.first() != Some(&b'/') {
        return false;
    }
    let trimmed = path.len() - path.iter().rev().take_while(|b| **b == b'/').count();
    if trimmed == 0 {
        return true;
    }
    let path = &path[..trimmed];
    if memchr::memchr(b':', path).is_some() {
        return false;
    }
    // nearly no path has a component that is empty or begins with a dot, and only these need a look; no early end, so that many bytes are compared
    // at once
    let odd = |(a, b): (&u8, &u8)| (*a == b'/') & ((*b == b'/') | (*b == b'.'));
    let odd = path.iter().zip(&path[1..]).fold(false, |before, two| before | odd(two));
    !odd || has_valid_components(path)
}

fn has_valid_components(path: &[u8]) -> bool {
    let mut start = 1;
    for end in memchr::memchr_iter(b'/', path).skip(1).chain([path.len()]) {
        match &path[start..end] {
            b"" | b"." => return false,
            b".." if !below_inode(&path[..start]) => return false,
            _ => start = end + 1,
        }
    }
    true
}

/// Whether what comes before a component is `/.reserved/.inodes/<id>/` or longer.
fn below_inode(before: &[u8]) -> bool {
    before.starts_with(b"/.reserved/.inodes/") && before.iter().filter(|b| **b == b'/').count() > 3
}

/// The last component, empty for `/`.
pub fn name(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |last| last + 1);
    let start = memchr::memrchr(b'/', &path[..end]).map_or(0, |slash| slash + 1);
    &path[start..end]
}

/// The path without its last component; `None` for `/`. Trailing slashes do not count.
pub fn parent(path: &[u8]) -> Option<&[u8]> {
    let end = path.iter().rposition(|b| *b != b'/')? + 1;
    let slash = path[..end].iter().rposition(|b| *b == b'/')?;
    Some(if slash == 0 { b"/" } else { &path[..slash] })
}

/// Order of names within a directory. Java compares bytes as signed, so names that start with a byte of 0x80 or more come first.
pub fn compare_names(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    // eight bytes at a time; with the sign bits flipped, unsigned order is signed order
    let (a_words, b_words) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes) ^ 0x8080_8080_8080_8080;
    if let Some((x, y)) = a_words.iter().zip(b_words).find(|(x, y)| x != y) {
        return word(x).cmp(&word(y));
    }
    let common = 8 * a_words.len().min(b_words.len());
    a[common..].iter().map(|b| *b as i8).cmp(b[common..].iter().map(|b| *b as i8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names() {
        for ok in [
            "/",
            "//",
            "/a",
            "/a/",
            "/a//",
            "/a/b c",
            "/.reserved/.inodes/16386/..",
            "/.reserved/.inodes/1/a/../b",
            "/a/...",
            "/\u{e9}",
        ] {
            assert!(is_valid_name(ok.as_bytes()), "{ok}");
        }
        for bad in [
            "",
            "a",
            "a/b",
            "/a//b",
            "//a",
            "/a/../b",
            "/a/./b",
            "/a:b",
            "/..",
            "/.reserved/../a",
            "/.reserved/.inodes/..",
            "/.reserved/.inodesx/1/..",
            "/a/:",
        ] {
            assert!(!is_valid_name(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn names_compare_as_their_signed_bytes_do() {
        let words: [&[u8]; 7] = [b"", b"a", b"ab", b"part-0000", b"part-0001", b"\xc3\xa9", b"zzzzzzzz"];
        let mut all = Vec::new();
        for (x, y, z) in (0..343).map(|n| (words[n % 7], words[n / 7 % 7], words[n / 49])) {
            all.push([x, y, z].concat());
        }
        for a in &all {
            for b in &all {
                let naive = a.iter().map(|b| *b as i8).cmp(b.iter().map(|b| *b as i8));
                assert_eq!(compare_names(a, b), naive, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn parents_and_names() {
        assert_eq!(parent(b"/"), None);
        assert_eq!(parent(b"/a"), Some(&b"/"[..]));
        assert_eq!(parent(b"/a/b/"), Some(&b"/a"[..]));
        assert_eq!(name(b"/a/b/"), b"b");
        assert_eq!((name(b"/"), name(b""), name(b"a"), name(b"//a//b")), (&b""[..], &b""[..], &b"a"[..], &b"b"[..]));
    }
}
