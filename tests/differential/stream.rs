//! A run written down call by call, and such a stream, whole or made shorter by hand, asked again.
//!
//! `IRONROOT_DIFFERENCES` names the folder of `calls.txt`, to be read, and `stream.tsv`, to be asked again with `IRONROOT_STREAM`: user, method,
//! request, ids of Java's answer. Ids are other ones the next time, so requests name those that were written down.

use super::pair::Pair;
use super::side::Answer;
use regex::{Captures, Regex};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Ids of an answer that are written down.
const IDS_MAX: usize = 12;

/// Where a run is written down.
pub struct Trace {
    calls: File,
    stream: File,
    /// Where blocks are is written down there, by number.
    folder: PathBuf,
    told: u32,
}

impl Trace {
    pub fn begin(folder: &str) -> Trace {
        std::fs::create_dir_all(folder).expect("a folder");
        let create = |name| File::create(Path::new(folder).join(name)).expect("a folder");
        Trace { calls: create("calls.txt"), stream: create("stream.tsv"), folder: folder.into(), told: 0 }
    }

    /// What both say of all blocks.
    pub fn blocks(&mut self, java: &str, ours: &str) {
        self.told += 1;
        for (name, text) in [("java", java), ("ours", ours)] {
            std::fs::write(self.folder.join(format!("blocks-{}-{name}.txt", self.told)), text).expect("a folder");
        }
    }

    pub fn call(&mut self, differs: bool, (user, name, request): (&str, &str, &str), java: &Answer, ours: &Answer) {
        let told = |answer: &Answer| {
            answer.as_ref().map_or_else(|e| cut(&format!("! {}: {}", e.class, e.message)), |m| cut(&m.to_string()))
        };
        let mark = if differs { '#' } else { ' ' };
        let line = format!("{mark} {user} {name} {}\n  - {}\n  + {}\n", cut(request), told(java), told(ours));
        self.calls.write_all(line.as_bytes()).expect("a folder");
        let ids: Vec<String> = ids(java).into_iter().map(|(kind, number)| format!("{kind}{number}")).collect();
        self.event(&format!("{user}\t{name}\t{request}\t{}", ids.join(" ")));
    }

    /// Something that is no call.
    pub fn event(&mut self, line: &str) {
        writeln!(self.stream, "{line}").expect("a folder");
    }
}

/// The first numbers that Java chose in an answer.
fn ids(answer: &Answer) -> Vec<(char, u64)> {
    static ID: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b(fileId|blockId|generationStamp): ?(\d+)").expect("a pattern"));
    let Ok(message) = answer else { return Vec::new() };
    let text = message.to_string();
    let kind = |name: &str| match name {
        "fileId" => 'F',
        "blockId" => 'B',
        _ => 'G',
    };
    let found = ID.captures_iter(&text).take(IDS_MAX);
    found.filter_map(|found| Some((kind(&found[1]), found[2].parse().ok()?))).collect()
}

/// Asks all of a stream.
pub fn play(pair: &mut Pair, stream: &str) {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"§([FBG])(\d+)§").expect("a pattern"));
    let mut now: HashMap<(char, u64), u64> = HashMap::new();
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{text}: a number"));
    for line in stream.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let known = |kind, number: u64| now.get(&(kind, number)).copied().unwrap_or(number);
        match fields[..] {
            ["!receive", id, stamp, length] => {
                pair.receive(known('B', number(id)), known('G', number(stamp)), number(length));
            }
            ["!placed", length] => pair.receive_placed(number(length)),
            ["!settle"] => pair.settle(),
            ["!restart"] => pair.restart(),
            ["!exchange"] => pair.exchange(),
            [user, method, request, ref rest @ ..] => {
                pair.pairs.settled = false;
                let named = |found: &Captures<'_>| {
                    let kind = found[1].chars().next().expect("a letter");
                    format!("§{kind}{}§", known(kind, number(&found[2])))
                };
                let answer = pair.ask(user, method, &NAMED.replace_all(request, named));
                let told = rest.first().map_or("", |ids| *ids).split_whitespace();
                for (told, (kind, id)) in told.zip(ids(&answer)) {
                    now.insert((kind, number(&told[1..])), id);
                }
            }
            _ => panic!("{line}"),
        }
    }
}

pub fn cut(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 700 {
        return text.to_owned();
    }
    chars[..400].iter().chain(&['.', '.', '.']).chain(&chars[chars.len() - 200..]).collect()
}

/// `IRONROOT_STREAM=FILE`: what differs of a stream that was written down.
#[test]
fn both_answer_a_stream_alike() {
    let Ok(file) = std::env::var("IRONROOT_STREAM") else { return };
    let stream = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let _turn = crate::support::cluster_turn();
    let Some(mut pair) = Pair::start("stream") else { return };
    play(&mut pair, &stream);
    println!("{}", pair.differences().concat());
    assert!(pair.differences().is_empty(), "{} differ", pair.differences().len());
}
