//! Logs written by Hadoop 2.7.3 to 3.5.0: decoded, shown as Hadoop's own viewer shows them, and written again with the same bytes.

use edit::{Decoded, frame};
use std::path::{Path, PathBuf};

fn logs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/edits");
    let segment = "edits_0000000000000000001-0000000000000000";
    ["2.7.3/allops 112", "2.10.2/allops 112", "3.3.6/allops 123", "3.5.0/allops 123", "3.5.0/smallops/current 101"]
        .map(|log| log.split_once(' ').unwrap())
        .map(|(folder, last)| root.join(folder).join(format!("{segment}{last}")))
        .to_vec()
}

fn xml_of(log: &Path) -> PathBuf {
    let name = format!("{}.xml", log.file_name().unwrap().to_str().unwrap());
    let folder = log.parent().unwrap();
    if folder.ends_with("current") { folder.parent().unwrap().join(name) } else { folder.join(name) }
}

/// Calls `each` with every frame and its bytes; returns the number of records.
fn walk(bytes: &[u8], mut each: impl FnMut(frame::Frame<'_>, &[u8])) -> u64 {
    let (layout, mut at) = frame::header(bytes).unwrap();
    let mut next = 1;
    while at < bytes.len() {
        let Decoded::Frame(found) = edit::decode(&bytes[at..], layout, frame::RECORD_MAX).unwrap() else {
            panic!("stops at {at}")
        };
        assert_eq!(found.txid.0, next);
        let raw = &bytes[at..at + found.length];
        at += found.length;
        next += 1;
        each(found, raw);
    }
    next - 1
}

#[test]
fn every_record_is_shown_as_hadoops_viewer_shows_it() {
    for log in logs() {
        let bytes = std::fs::read(&log).unwrap();
        let mut xml = edit::xml::opening(frame::header(&bytes).unwrap().0);
        walk(&bytes, |found, _| edit::xml::record(found.txid, &found.record, &mut xml));
        xml.push_str(edit::xml::CLOSING);
        let expected = std::fs::read_to_string(xml_of(&log)).unwrap();
        for (line, (ours, theirs)) in xml.lines().zip(expected.lines()).enumerate() {
            assert_eq!(ours, theirs, "{} line {}", log.display(), line + 1);
        }
        assert_eq!(xml, expected, "{}", log.display());
    }
}

#[test]
fn every_record_is_written_again_with_the_same_bytes() {
    for log in logs() {
        let bytes = std::fs::read(&log).unwrap();
        let layout = frame::header(&bytes).unwrap().0;
        let mut written = Vec::new();
        frame::put_header(layout, &mut written);
        walk(&bytes, |found, raw| {
            let start = written.len();
            let count = edit::encode(&found.record, found.txid, layout, &mut written).unwrap();
            assert_eq!(count, raw.len());
            assert_eq!(&written[start..], raw, "{:?}", found.record);
        });
        assert_eq!(written, bytes);
    }
}

#[test]
fn the_logs_hold_every_opcode_that_is_written() {
    let bytes = std::fs::read(&logs()[3]).unwrap();
    let mut seen = std::collections::HashSet::new();
    walk(&bytes, |found, _| _ = seen.insert(found.record.opcode()));
    let missing: Vec<_> = edit::Opcode::ALL.iter().filter(|opcode| !seen.contains(opcode)).map(|o| o.name()).collect();
    assert_eq!(missing, ["OP_SET_NS_QUOTA", "OP_CLEAR_NS_QUOTA"]);
}

#[test]
fn viewer_escapes() {
    let record =
        edit::Record::ClearNamespaceQuota { path: "a\\b\u{1}\t\n\r\u{7f}\u{2028}🐱中<&>\"'".as_bytes().into() };
    let mut xml = String::new();
    edit::xml::record(vocab::Txid(1), &record, &mut xml);
    let expected = "<SRC>a\\005c;b\\0001;\t\n&#13;&#127;\u{2028}&#128049;中&lt;&amp;&gt;\"'</SRC>";
    assert!(xml.contains(expected), "{xml}");
}
