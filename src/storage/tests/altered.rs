//! Images and logs altered by a seed, checksums made to fit, so that the decoders and what comes after them are what is tried: each is loaded or
//! refused. What is loaded can be saved, and that loads. `IRONROOT_ALTERED_SECONDS` goes on with other seeds for so long.

use hadoop_proto::fsimage::{FileSummary, file_summary::Section, i_node_directory_section::DirEntry};
use hadoop_proto::{Message, decode};
use os::Os;
use os::disk::Open;
use state::{Effects, Fit, Mode, RootAttributes, State};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use storage::image::{Digest, SaveContext, encode, load};
use storage::journal::local;
use storage::replay;
use vocab::{LayoutVersion, Policy, Txid};

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(path)
}

fn empty() -> State {
    State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: vocab::Mode::new(0o755) })
}

/// A repeatable stream of numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % sides.max(1)
    }
    /// A number that decoders and those behind them may not expect.
    fn absurd(&mut self, other: u64) -> u64 {
        let known = [
            0,
            1,
            2,
            127,
            16385,
            16386,
            u64::MAX,
            1 << 31,
            (1 << 31) - 1,
            1 << 32,
            1 << 62,
            1 << 63,
            u64::MAX - 1,
            0xffff_ffff,
        ];
        match self.roll(known.len() + 3) {
            0 => other,
            1 => other.wrapping_add(1),
            2 => other.wrapping_sub(1),
            at => known[at - 3],
        }
    }
}

/// How often to try: so many times, or for the time that is asked for.
fn rounds(least: u64) -> impl Iterator<Item = u64> {
    let seconds = std::env::var("IRONROOT_ALTERED_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(seconds);
    let first = if seconds == 0 { 0 } else { u64::from(std::process::id()) << 20 };
    (first..).take_while(move |seed| seed - first < least || Instant::now() < until)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in 0..10 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// One field of a message is given another number, or goes, or comes twice.
fn alter_message(message: &[u8], dice: &mut Dice) -> Vec<u8> {
    let (mut fields, mut at) = (Vec::new(), 0);
    while at < message.len() {
        let start = at;
        let Some(key) = varint(message, &mut at) else { return message.to_vec() };
        let value = at;
        match key & 7 {
            0 => _ = varint(message, &mut at),
            1 => at += 8,
            2 => at += varint(message, &mut at).unwrap_or(0) as usize,
            5 => at += 4,
            _ => return message.to_vec(),
        }
        if at > message.len() {
            return message.to_vec();
        }
        fields.push((start, value, at, key & 7));
    }
    if fields.is_empty() {
        return message.to_vec();
    }
    let (start, value, end, kind) = fields[dice.roll(fields.len())];
    let mut out = message[..start].to_vec();
    match dice.roll(8) {
        0 => {}
        1 => {
            out.extend_from_slice(&message[start..end]);
            out.extend_from_slice(&message[start..end]);
        }
        _ => {
            out.extend_from_slice(&message[start..value]);
            let mut inner = value;
            match kind {
                0 => {
                    let old = varint(message, &mut inner).unwrap_or(0);
                    put_varint(dice.absurd(old), &mut out);
                }
                2 => {
                    let length = varint(message, &mut inner).unwrap_or(0) as usize;
                    let content = &message[inner..inner + length];
                    let content = match dice.roll(5) {
                        0 => Vec::new(),
                        1 => [content, content].concat(),
                        2 => content[..length / 2].to_vec(),
                        _ => alter_message(content, dice),
                    };
                    put_varint(content.len() as u64, &mut out);
                    out.extend_from_slice(&content);
                }
                _ => {
                    let mut number = message[value..end].to_vec();
                    let at = dice.roll(number.len());
                    number[at] ^= 1 << dice.roll(8);
                    out.extend_from_slice(&number);
                }
            }
        }
    }
    out.extend_from_slice(&message[end..]);
    out
}

/// An image without its codec, taken apart.
struct Parts {
    summary: FileSummary,
    sections: Vec<(String, Vec<Vec<u8>>)>,
}

impl Parts {
    fn of(image: &[u8]) -> Option<Parts> {
        let length = u32::from_be_bytes(image[image.len() - 4..].try_into().ok()?) as usize;
        let mut at = image.len() - 4 - length;
        _ = varint(image, &mut at)?;
        let summary: FileSummary = decode(image[at..image.len() - 4].to_vec().into()).ok()?;
        let whole = |section: &&Section| !section.name().contains("SUB");
        let sections = summary.sections.iter().filter(whole).map(|section| {
            let content = &image[section.offset() as usize..(section.offset() + section.length()) as usize];
            let (mut messages, mut at) = (Vec::new(), 0);
            while at < content.len() {
                let length = varint(content, &mut at).unwrap_or(0) as usize;
                messages.push(content[at..at + length].to_vec());
                at += length;
            }
            (section.name().to_owned(), messages)
        });
        let sections = sections.collect();
        Some(Parts { summary, sections })
    }

    fn whole(&self, dice: &mut Dice, spoil_summary: bool) -> Vec<u8> {
        let mut image = b"HDFSIMG1".to_vec();
        let mut summary = FileSummary { codec: None, sections: Vec::new(), ..self.summary.clone() };
        for (name, messages) in &self.sections {
            let offset = image.len() as u64;
            for message in messages {
                put_varint(message.len() as u64, &mut image);
                image.extend_from_slice(message);
            }
            let length = image.len() as u64 - offset;
            summary.sections.push(Section { name: Some(name.clone()), length: Some(length), offset: Some(offset) });
        }
        if spoil_summary {
            let at = dice.roll(summary.sections.len());
            match dice.roll(5) {
                0 => _ = summary.sections.remove(at),
                1 => summary.sections.push(summary.sections[at].clone()),
                2 => summary.sections.reverse(),
                3 => summary.sections[at].length = Some(dice.absurd(summary.sections[at].length())),
                _ => summary.sections[at].offset = Some(dice.absurd(summary.sections[at].offset())),
            }
        }
        let start = image.len();
        let summary = summary.encode_to_vec();
        put_varint(summary.len() as u64, &mut image);
        image.extend_from_slice(&summary);
        let length = (image.len() - start) as u32;
        image.extend_from_slice(&length.to_be_bytes());
        image
    }

    fn alter(&mut self, dice: &mut Dice) -> bool {
        let filled: Vec<usize> = (0..self.sections.len()).filter(|at| !self.sections[*at].1.is_empty()).collect();
        let section = filled[dice.roll(filled.len())];
        let messages = &mut self.sections[section].1;
        let (one, other) = (dice.roll(messages.len()), dice.roll(messages.len()));
        match dice.roll(12) {
            0 => messages.insert(other, messages[one].clone()),
            1 => _ = messages.remove(one),
            2 => messages.swap(one, other),
            3 => messages[one] = messages[other].clone(),
            4 => return true,
            5 => {
                let gone = dice.roll(self.sections.len());
                self.sections.remove(gone);
            }
            _ => messages[one] = alter_message(&messages[one], dice),
        }
        false
    }
}

/// Loads, and if that went well, counts, saves, loads again and compares. Gives whether it was loaded.
fn try_image(image: &[u8]) -> bool {
    let Ok(first) = load(image, Digest::of(image), empty()) else { return false };
    let context = SaveContext {
        layout: LayoutVersion::CURRENT,
        namespace_id: first.namespace_id,
        txid: first.txid,
        expanded_string_tables: false,
    };
    let mut saved = Vec::new();
    let Ok(digest) = encode(&first.state, context, &mut |chunk| saved.extend_from_slice(chunk)) else { return true };
    let second = load(&saved, digest, empty()).unwrap_or_else(|e| panic!("what was loaded and saved is refused: {e}"));
    // not every absurd value is kept to the letter, but nothing is lost or made up
    assert_eq!(first.state.tree.inode_count(), second.state.tree.inode_count());
    true
}

/// Runs something that must not panic, and says with which seed it did.
fn whatever_comes(what: &str, seed: u64, run: impl FnOnce() -> bool) -> bool {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| panic!("{what}, seed {seed}"))
}

#[test]
fn altered_images_are_loaded_whole_or_refused() {
    let folders =
        ["basic", "snapshots", "ec", "open", "cache", "tokens", "ez", "ordered", "root-snapshot", "small", "symlinks"];
    let images: Vec<(String, Vec<u8>)> = folders
        .iter()
        .map(|scenario| {
            let folder = golden("fsimage/3.5.0").join(scenario).join("current");
            let names = std::fs::read_dir(&folder).expect("folder").map(|entry| entry.expect("entry").path());
            let newest = names
                .filter(|path| path.extension().is_none() && path.display().to_string().contains("/fsimage_"))
                .max();
            ((*scenario).to_owned(), std::fs::read(newest.expect("an image")).expect("image"))
        })
        .collect();
    let (mut loaded, mut refused) = (0, 0);
    for seed in rounds(600) {
        let mut dice = Dice(seed);
        let (scenario, image) = &images[dice.roll(images.len())];
        let mut image = image.clone();
        match dice.roll(6) {
            0 => {
                let at = dice.roll(image.len());
                image[at] ^= 1 << dice.roll(8);
            }
            1 => image.truncate(dice.roll(image.len())),
            _ => {
                let Some(mut parts) = Parts::of(&image) else { continue };
                let mut spoil = false;
                for _ in 0..=dice.roll(3) {
                    spoil |= parts.alter(&mut dice);
                }
                image = parts.whole(&mut dice, spoil);
            }
        }
        let ok = whatever_comes(scenario, seed, || try_image(&image));
        if ok { loaded += 1 } else { refused += 1 }
    }
    assert!(loaded > 50 && refused > 50, "{loaded} loaded, {refused} refused");
}

/// The list of a directory's children in two halves: neither may take the other's place.
#[test]
fn a_directory_that_is_listed_twice_is_refused() {
    let folder = golden("fsimage/3.5.0/basic/current");
    let names = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path());
    let is_image = |path: &PathBuf| path.extension().is_none() && path.display().to_string().contains("/fsimage_");
    let image = std::fs::read(names.filter(is_image).max().expect("an image")).expect("image");
    let directories =
        |parts: &Parts| parts.sections.iter().position(|(name, _)| name == "INODE_DIR").expect("a section");
    let count = Parts::of(&image).map_or(0, |parts| parts.sections[directories(&parts)].1.len());
    let mut halved = 0;
    for at in 0..count {
        let mut parts = Parts::of(&image).expect("plain");
        let section = directories(&parts);
        let messages = &mut parts.sections[section].1;
        let mut first: DirEntry = decode(messages[at].clone().into()).expect("an entry");
        if first.children.len() < 2 {
            continue;
        }
        let mut second = first.clone();
        second.children = first.children.split_off(first.children.len() / 2);
        halved += 1;
        messages[at] = first.encode_to_vec();
        messages.push(second.encode_to_vec());
        let altered = parts.whole(&mut Dice(0), false);
        let refused =
            load(&altered, Digest::of(&altered), empty()).map(drop).expect_err("a half is missing").to_string();
        assert!(refused.contains(&format!("directory {} is listed twice", first.parent())), "{refused}");
    }
    assert!(halved > 20, "{halved}");
}

/// Records of a log with lengths and checksums: opcode, length, transaction, body, checksum.
fn records(log: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut at) = (Vec::new(), 8);
    while at + 5 < log.len() && log[at] != 0xff {
        let length = u32::from_be_bytes(log[at + 1..at + 5].try_into().expect("four bytes")) as usize;
        all.push(log[at + 5 + 8..at + 5 + length - 4].to_vec());
        all.last_mut().expect("just pushed").insert(0, log[at]);
        at += 5 + length;
    }
    all
}

fn log_of(header: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
    let mut log = header.to_vec();
    for (txid, record) in (1u64..).zip(records) {
        let start = log.len();
        log.push(record[0]);
        log.extend_from_slice(&(record.len() as u32 - 1 + 12).to_be_bytes());
        log.extend_from_slice(&txid.to_be_bytes());
        log.extend_from_slice(&record[1..]);
        let sum = crc32fast::hash(&log[start..]);
        log.extend_from_slice(&sum.to_be_bytes());
    }
    log
}

/// Replays a log as a start does. Gives whether every record fitted.
fn try_log(log: &[u8], last: u64) -> bool {
    let (os, _, _) = Os::simulated(1);
    let folder = PathBuf::from("/a/current");
    os.disk.create_directories(&folder, 0o700).expect("folder");
    let name = storage::names::finalized(Txid(1), Txid(last));
    os.disk.open(&folder.join(name), Open::CreateNew).expect("file").write_all_at(log, 0).expect("writes");
    let Ok(segments) = local::select(&*os.disk, &[&folder], Txid(1), Txid(1)) else { return false };
    let (mut state, policy) = (empty(), Policy::default());
    let mut apply = |_: Txid, record: edit::Record<'_>| match state.fit(&record, &policy) {
        Fit::Fits(fitted) => {
            state.apply(&record, fitted, &policy, Mode::Restart, &mut Effects::new(Mode::Restart));
            while state.reclaim(u64::MAX) {}
            Ok(())
        }
        Fit::NoOp(_) => Ok(()),
        Fit::Mismatch(mismatch) => Err(mismatch.0),
    };
    let whole = replay::replay(&*os.disk, &segments, Txid(1), 1 << 20, &mut |_| {}, &mut apply).is_ok();
    let context = SaveContext {
        layout: LayoutVersion::CURRENT,
        namespace_id: 1,
        txid: Txid(last),
        expanded_string_tables: false,
    };
    let mut saved = Vec::new();
    if let Ok(digest) = encode(&state, context, &mut |chunk| saved.extend_from_slice(chunk)) {
        let again =
            load(&saved, digest, empty()).unwrap_or_else(|e| panic!("what was replayed and saved is refused: {e}"));
        assert_eq!(state.tree.inode_count(), again.state.tree.inode_count());
    }
    whole
}

#[test]
fn altered_logs_are_replayed_whole_or_refused() {
    let logs: Vec<Vec<u8>> = [("2.7.3", 112), ("2.10.2", 112), ("3.3.6", 123), ("3.5.0", 123)]
        .iter()
        .map(|(version, last)| {
            let name = format!("edits/{version}/allops/edits_0000000000000000001-{last:019}");
            std::fs::read(golden(&name)).expect("a log")
        })
        .collect();
    let (mut replayed, mut refused) = (0, 0);
    for seed in rounds(600) {
        let mut dice = Dice(seed);
        let log = &logs[dice.roll(logs.len())];
        let mut records = records(log);
        for _ in 0..=dice.roll(3) {
            let (one, other) = (dice.roll(records.len()), dice.roll(records.len()));
            match dice.roll(8) {
                0 => records.insert(other, records[one].clone()),
                1 => _ = records.remove(one),
                2 => records.swap(one, other),
                3 => {
                    let length = dice.roll(records[one].len()).max(1);
                    records[one].truncate(length);
                }
                4 => records[one][0] = dice.roll(256) as u8,
                _ => {
                    let at = dice.roll(records[one].len());
                    let bits = [1 << dice.roll(8), 0xff, 0x80];
                    records[one][at] ^= bits[dice.roll(3)];
                }
            }
        }
        let altered = log_of(&log[..8], &records);
        let ok = whatever_comes("a log", seed, || try_log(&altered, records.len() as u64));
        if ok { replayed += 1 } else { refused += 1 }
    }
    assert!(replayed > 20 && refused > 50, "{replayed} replayed, {refused} refused");
}
