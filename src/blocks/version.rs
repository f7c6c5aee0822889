//! Order of software versions.

use std::cmp::Ordering;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part<'a> {
    Number(u64),
    Word(&'a str),
}

/// Numbers and words of a version text; zeros at the end of a group of numbers say nothing.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let end = |f: fn(&u8) -> bool| rest.bytes().position(|b| !f(&b)).unwrap_or(rest.len());
        if first.is_ascii_digit() {
            let (number, tail) = rest.split_at(end(u8::is_ascii_digit));
            out.push(Part::Number(number.parse().unwrap_or(u64::MAX)));
            rest = tail;
        } else if first == b'.' {
            rest = &rest[1..];
        } else {
            drop_zeros(&mut out);
            let (word, tail) = rest.split_at(end(|b| !b.is_ascii_digit() && !matches!(b, b'.' | b'-')));
            if word.is_empty() {
                rest = &rest[1..];
            } else {
                out.push(Part::Word(word));
                rest = tail;
            }
        }
    }
    drop_zeros(&mut out);
    out
}

fn drop_zeros(list: &mut Vec<Part<'_>>) {
    while list.last() == Some(&Part::Number(0)) {
        list.pop();
    }
}

/// Rank of a word: those of pre-releases are below the release itself, all others above it, in order of the alphabet.
fn rank(word: &str) -> (usize, String) {
    const KNOWN: [&str; 7] = ["alpha", "beta", "milestone", "rc", "snapshot", "", "sp"];
    let word = word.to_ascii_lowercase();
    let word = match word.as_str() {
        "a" => "alpha".to_owned(),
        "b" => "beta".to_owned(),
        "m" => "milestone".to_owned(),
        "cr" => "rc".to_owned(),
        "ga" | "final" => String::new(),
        _ => word,
    };
    match KNOWN.iter().position(|k| *k == word) {
        Some(at) => (at, String::new()),
        None => (KNOWN.len(), word),
    }
}

/// Compares version texts as Hadoop's `VersionUtil.compareVersions` does (Maven's rules): `2.1.0-beta` is below `2.1.0`, and that is `2.1`.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    let release = || rank("");
    for i in 0..a.len().max(b.len()) {
        let order = match (a.get(i), b.get(i)) {
            (Some(Part::Number(x)), Some(Part::Number(y))) => x.cmp(y),
            (Some(Part::Word(x)), Some(Part::Word(y))) => rank(x).cmp(&rank(y)),
            (Some(Part::Number(_)), Some(Part::Word(_))) => Ordering::Greater,
            (Some(Part::Word(_)), Some(Part::Number(_))) => Ordering::Less,
            (Some(Part::Number(x)), None) => x.cmp(&0),
            (None, Some(Part::Number(y))) => 0.cmp(y),
            (Some(Part::Word(x)), None) => rank(x).cmp(&release()),
            (None, Some(Part::Word(y))) => release().cmp(&rank(y)),
            (None, None) => Ordering::Equal,
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row compares its version with all, in order: answers of Hadoop 3.5.0.
    #[test]
    fn versions_compare_like_hadoops() {
        const TABLE: [(&str, &str); 23] = [
            ("2.1.0-beta", "=<><<<<<<><<<<<<<<><<><"),
            ("2.1.0", ">=><<<<<<><<<<<><<><<><"),
            ("2.0.6-alpha", "<<=<<<<<<><<<<<<<<><<<<"),
            ("3.5.0", ">>>=>>><=>>>>>>>>>>><>>"),
            ("3.5.0-SNAPSHOT", ">>><=>><<>>>>>>>>>>><>>"),
            ("2.10.2", ">>><<=><<><<<>>><<><<>>"),
            ("2.9.2", ">>><<<=<<><<<>>><<><<>>"),
            ("3.5.0.1", ">>>>>>>=>>>>>>>>>>>><>>"),
            ("3.5", ">>>=>>><=>>>>>>>>>>><>>"),
            ("1.0.4", "<<<<<<<<<=<<<<<<<<><<<<"),
            ("3.4.1-rc1", ">>><<>><<>=<<>>>>>>><>>"),
            ("3.4.1-rc2", ">>><<>><<>>=<>>>>>>><>>"),
            ("3.4.1", ">>><<>><<>>>=>>>>>>><>>"),
            ("2.6.0-cdh5.4.0", ">>><<<<<<><<<=>><<><<>>"),
            ("2.6.0", ">>><<<<<<><<<<=><<><<>>"),
            ("2.1.0-beta-1", "><><<<<<<><<<<<=<<><<><"),
            ("3.0.0-alpha4", ">>><<>><<><<<>>>=<><<>>"),
            ("3.0.0-beta1", ">>><<>><<><<<>>>>=><<>>"),
            ("", "<<<<<<<<<<<<<<<<<<=<<<<"),
            ("3.1.1.3.1.0.0-78", ">>><<>><<><<<>>>>>>=<>>"),
            ("3.10.0", ">>>>>>>>>>>>>>>>>>>>=>>"),
            ("2.1.0-alpha", "<<><<<<<<><<<<<<<<><<=<"),
            ("2.1.0-gamma", ">>><<<<<<><<<<<><<><<>="),
        ];
        for (a, row) in TABLE {
            for ((b, _), expected) in TABLE.iter().zip(row.chars()) {
                let order = match expected {
                    '<' => Ordering::Less,
                    '>' => Ordering::Greater,
                    _ => Ordering::Equal,
                };
                assert_eq!(compare_versions(a, b), order, "{a} {b}");
            }
        }
    }
}
