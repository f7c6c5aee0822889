//! What a NameNode tells about features that nobody has used: snapshots, caches, encryption, erasure coding, upgrades.
use super::answers::{compare, golden};
use super::conversation::Conversation;
use super::fixture::Fixture;

#[test]
fn recorded_answers_about_what_is_absent() {
    let settings = [("dfs.replication", "1"), ("dfs.namenode.accesstime.precision", "0")];
    let Some(fixture) = Fixture::start("absent", &settings) else { return };
    let file = golden("absent.tsv");
    let expected = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut conversation = Conversation::new(fixture.port());
    let mut actual = String::new();
    for line in expected.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            [who, method, request, ..] => {
                let answer = conversation.step(who, method, request);
                actual += &format!("{who}\t{method}\t{request}\t{answer}\n");
            }
            _ => actual += &format!("{line}\n"),
        }
    }
    compare(&file, &expected, &actual);
}
