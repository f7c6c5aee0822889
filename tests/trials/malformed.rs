//! Requests that are no messages of their type, for every method, recorded with the Java NameNode.
use super::answers::{compare, golden};
use super::conversation::{Conversation, methods};
use super::fixture::Fixture;

/// Bodies by the name they have in the record.
const BODIES: [(&str, &[u8]); 7] = [
    ("nothing", b""),
    ("garbage", b"\xff\xff\xff\xff"),
    ("text that ends too early", b"\x0a\x0aa"),
    ("field 1 as a number", b"\x08\x01"),
    ("field 1 as four bytes", b"\x0d\0\0\0\0"),
    ("field number 0", b"\x00"),
    ("the end of no group", b"\x0c"),
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
            actual += &format!("{}\t{name}\t{answer}\n", method.name());
        }
    }
    compare(&file, &expected, &actual);
}
