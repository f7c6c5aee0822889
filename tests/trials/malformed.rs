//! Requests that are no messages of their type, for every method, recorded with the Java NameNode.
use super::answers::{compare, golden};
use super::conversation::{Conversation, methods};
use super::fixture::Fixture;

/// Bodies by the name they have in the record.
const BODIES: [(&str, &[u8]); 6] = [
    ("nothing", b""),
    ("garbage", b"\xff\xff\xff\xff"),
    ("text that ends too early", b"\x0a\x0aa"),
    ("field 1 as a number", b"\x08\x01"),
    ("field 1 as four bytes", b"\x0d\0\0\0\0"),
    ("field number 0", b"\x00"),
];

#[test]
fn recorded_answers_to_malformed_requests() {
    let Some(fixture) = Fixture::start("malformed", &[]) else { return };
    let file = golden("malformed.tsv");
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let mut conversation = Conversation::new(fixture.port());
    let mut actual = String::new();
    for method in methods() {
        for (name, body) in BODIES {
            // what has no required field is carried out: as a user who may not do much
            let answer = conversation.call_bytes("alice", &method, body);
            actual += &format!("{}\t{name}\t{}\n", method.name(), without_parser_words(&answer));
        }
    }
    compare(&file, &expected, &actual);
}

/// Which fault of several a parser meets first, and in which words, is its own affair: only the class counts. Missing
/// fields are named all the same.
fn without_parser_words(answer: &str) -> &str {
    let class = "! org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException";
    if answer.starts_with(class) && !answer.contains("Message missing required fields") { class } else { answer }
}
