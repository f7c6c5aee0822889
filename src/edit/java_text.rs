//! Java's form of UTF-8 in edit records: every UTF-16 unit is encoded alone, so that a supplementary character takes two groups of
//! three bytes (its surrogates) instead of one of four (Hadoop's `org.apache.hadoop.io.UTF8`).

use std::borrow::Cow;

/// A string of more UTF-16 units than this is cut when written, as Hadoop does: its count of bytes must fit 16 bits.
pub const UNITS_MAX: usize = 0xffff / 3;

/// Ordinary UTF-8 of Java's form. Borrows unless something must change. Returns `None` for bytes that are neither; a lone surrogate
/// becomes `?`, which is what Java makes of it when it takes the bytes of such a string.
pub fn to_utf8(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let continuation = |i: usize| bytes.get(i).filter(|b| **b & 0xc0 == 0x80).map(|b| u32::from(b & 0x3f));
    while at < bytes.len() {
        let first = u32::from(bytes[at]);
        let (value, length) = match first {
            0..=0x7f => (first, 1),
            0xc0..=0xdf => ((first & 0x1f) << 6 | continuation(at + 1)?, 2),
            0xe0..=0xef => ((first & 0x0f) << 12 | continuation(at + 1)? << 6 | continuation(at + 2)?, 3),
            0xf0..=0xf7 => (
                (first & 0x07) << 18 | continuation(at + 1)? << 12 | continuation(at + 2)? << 6 | continuation(at + 3)?,
                4,
            ),
            _ => return None,
        };
        if length == 4 {
            let mut pair = [0; 2];
            units.extend_from_slice(char::from_u32(value)?.encode_utf16(&mut pair));
        } else {
            units.push(value as u16);
        }
        at += length;
    }
    Some(Cow::Owned(char::decode_utf16(units).map(|unit| unit.unwrap_or('?')).collect()))
}

/// Appends Java's form of `text` without a count; bytes that are no UTF-8 are copied. Returns nothing; cuts at [`UNITS_MAX`].
pub fn put(text: &[u8], out: &mut Vec<u8>) {
    // `is_ascii` looks at the last bytes of a text one by one, up to 63: for paths that is most of the work
    let ascii = text.iter().fold(0, |all, byte| all | byte) < 0x80;
    if text.len() <= UNITS_MAX && ascii {
        out.extend_from_slice(text);
        return;
    }
    let text = if text.len() <= UNITS_MAX { text } else { &text[..cut(text)] };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b >= 0xf0) {
        out.extend_from_slice(&rest[..at]);
        let group = rest[at..].get(..4).and_then(|g| std::str::from_utf8(g).ok()).and_then(|g| g.chars().next());
        let Some(character) = group else {
            out.push(rest[at]);
            rest = &rest[at + 1..];
            continue;
        };
        let mut pair = [0; 2];
        for unit in character.encode_utf16(&mut pair) {
            out.extend_from_slice(&[
                0xe0 | (*unit >> 12) as u8,
                0x80 | (*unit >> 6 & 0x3f) as u8,
                0x80 | (*unit & 0x3f) as u8,
            ]);
        }
        rest = &rest[at + 4..];
    }
    out.extend_from_slice(rest);
}

/// Bytes of the longest prefix with at most [`UNITS_MAX`] UTF-16 units that ends between characters.
fn cut(text: &[u8]) -> usize {
    let mut units = 0;
    for (at, byte) in text.iter().enumerate() {
        if byte & 0xc0 == 0x80 {
            continue;
        }
        units += if *byte >= 0xf0 { 2 } else { 1 };
        if units > UNITS_MAX {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supplementary_characters_take_two_groups_of_three() {
        let mut out = Vec::new();
        put("a\u{1F600}é\0".as_bytes(), &mut out);
        assert_eq!(out, [b'a', 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80, 0xc3, 0xa9, 0]);
        assert_eq!(to_utf8(&out).unwrap(), "a\u{1F600}é\0");
        assert_eq!(to_utf8("\u{1F600}".as_bytes()).unwrap(), "\u{1F600}", "one group of four is read too");
    }

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(to_utf8("/a/ü".as_bytes()), Some(Cow::Borrowed(_))));
    }

    #[test]
    fn lone_surrogates_and_overlong_forms_are_read_as_java_reads_them() {
        assert_eq!(to_utf8(&[0xed, 0xa0, 0xbd, b'x']).unwrap(), "?x");
        assert_eq!(to_utf8(&[0xc0, 0x80]).unwrap(), "\0");
        assert_eq!(to_utf8(&[0xff]), None);
        assert_eq!(to_utf8(&[0xe2, 0x82]), None);
    }

    #[test]
    fn long_strings_are_cut_between_characters() {
        let mut out = Vec::new();
        put("é".repeat(30_000).as_bytes(), &mut out);
        assert_eq!(out.len(), UNITS_MAX * 2);
    }
}
