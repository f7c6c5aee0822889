//! `oev`.

use super::{assert_same, bytes, golden, run, text};
use crate::support::work::WorkDir;
use md5::{Digest, Md5};
use std::path::PathBuf;

/// A log with every opcode that a release writes.
fn log(version: &str, last: u32) -> PathBuf {
    golden(&format!("edits/{version}/allops/edits_0000000000000000001-{last:019}"))
}

fn logs() -> [PathBuf; 4] {
    [log("2.7.3", 112), log("2.10.2", 112), log("3.3.6", 123), log("3.5.0", 123)]
}

#[test]
fn xml_equals_hadoops_and_is_made_binary_again() {
    let work = WorkDir::new("oev");
    for log in logs() {
        let xml = work.join("log.xml");
        let output = run(&["oev", "-i", text(&log), "-o", text(&xml)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_same(&bytes(&xml), &bytes(&log.with_extension("xml")), text(&log));
    }
    let log = log("3.5.0", 123);
    let output =
        run(&["oev", "-p", "binary", "-v", "-i", text(&log.with_extension("xml")), "-o", text(&work.join("log"))]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_same(&bytes(&work.join("log")), &bytes(&log), text(&log));
    let told = String::from_utf8(output.stdout).expect("no binary on the standard output");
    assert_eq!(told.lines().count(), 2, "{told}");
}

/// Digests of what Hadoop 3.5.0 makes of the XML of older logs.
#[test]
fn binary_logs_have_the_layout_of_today() {
    let work = WorkDir::new("oev-older");
    for (version, last, expected) in [
        ("2.7.3", 112, "8a3430009d6cc63fa914331024c1c7df"),
        ("2.10.2", 112, "88e0296fd7da5f24e69475d66460a75c"),
        ("3.3.6", 123, "5a70197a0c2129a674eeb726c446f422"),
    ] {
        let (xml, made) = (log(version, last).with_extension("xml"), work.join("log"));
        let output = run(&["oev", "-p", "binary", "-i", text(&xml), "-o", text(&made)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let digest: String = Md5::digest(bytes(&made)).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, expected, "{version}");
    }
}

#[test]
fn an_empty_value_is_told_from_none() {
    let work = WorkDir::new("oev-empty");
    let all = String::from_utf8(bytes(&log("3.5.0", 123).with_extension("xml"))).expect("UTF-8");
    let value = all.split("<VALUE>").nth(1).and_then(|rest| rest.split("</VALUE>").next()).expect("a value");
    let (given, none) = (all.replace(&format!("<VALUE>{value}</VALUE>"), "<VALUE>0x</VALUE>"), {
        let line = format!("<VALUE>{value}</VALUE>");
        all.lines().filter(|of| of.trim() != line).map(|of| format!("{of}\n")).collect::<String>()
    });
    for text_of_log in [given, none] {
        std::fs::write(work.join("log.xml"), &text_of_log).expect("writes");
        for (processor, from, to) in [("binary", "log.xml", "log"), ("xml", "log", "again")] {
            let output = run(&["oev", "-p", processor, "-i", text(&work.join(from)), "-o", text(&work.join(to))]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_same(&bytes(&work.join("again")), text_of_log.as_bytes(), "the log");
    }
}

#[test]
fn statistics_equal_hadoops_from_both_forms() {
    let work = WorkDir::new("oev-stats");
    let log = log("3.5.0", 123);
    for input in [log.clone(), log.with_extension("xml")] {
        let output = run(&["oev", "-p", "STATS", "-i", text(&input), "-o", text(&work.join("stats"))]);
        assert!(output.status.success());
        assert_same(&bytes(&work.join("stats")), &bytes(&golden("tools/allops.stats")), text(&input));
    }
}

#[test]
fn a_log_cut_short_ends_with_the_error_and_recovery_goes_on() {
    let work = WorkDir::new("oev-damaged");
    let whole = bytes(&log("3.5.0", 123));
    let damaged = work.join("edits");
    std::fs::write(&damaged, &whole[..5000]).expect("writes");
    let output = run(&["oev", "-i", text(&damaged), "-o", text(&work.join("out"))]);
    assert_eq!(output.status.code(), Some(255));
    let written = String::from_utf8(bytes(&work.join("out"))).expect("UTF-8");
    assert!(written.ends_with("  </RECORD>\n</EDITS><ERROR>Premature EOF from inputStream</ERROR>\n"), "{written}");
    assert!(output.stderr.ends_with(b"Encountered exception. Exiting: Premature EOF from inputStream\n"));

    for (content, message) in [
        (&b"garbage!"[..], "Unexpected version of the file system log file: 1734439522. Current version = -67."),
        (b"", "Reached EOF when reading log header"),
    ] {
        std::fs::write(&damaged, content).expect("writes");
        let output = run(&["oev", "-i", text(&damaged), "-o", text(&work.join("out"))]);
        assert_eq!(output.status.code(), Some(255));
        let expected = format!("Encountered exception. Exiting: {message}\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
        assert_eq!(bytes(&work.join("out")), b"", "nothing is written before the header is read");
    }

    let mut flipped = whole;
    flipped[3000] = 0x55;
    std::fs::write(&damaged, &flipped).expect("writes");
    let output = run(&["oev", "-r", "-i", text(&damaged), "-o", text(&work.join("out"))]);
    assert!(output.status.success());
    let written = String::from_utf8(bytes(&work.join("out"))).expect("UTF-8");
    assert_eq!(written.matches("<RECORD>").count(), 122, "all but the damaged one");
    assert!(written.contains("<OPCODE>OP_END_LOG_SEGMENT</OPCODE>"));
}

#[test]
fn transactions_are_numbered_anew() {
    let work = WorkDir::new("oev-fix");
    let xml = work.join("gap.xml");
    let text_of_log = String::from_utf8(bytes(&log("3.5.0", 123).with_extension("xml"))).expect("UTF-8");
    std::fs::write(&xml, text_of_log.replace("<TXID>5</TXID>", "<TXID>77</TXID>")).expect("writes");
    let output = run(&["oev", "-f", "-p", "binary", "-i", text(&xml), "-o", text(&work.join("fixed"))]);
    assert!(output.status.success());
    assert_same(&bytes(&work.join("fixed")), &bytes(&log("3.5.0", 123)), "the log with a gap");
}

#[test]
fn refusals_are_hadoops() {
    let work = WorkDir::new("oev-refused");
    let (log, out) = (log("3.5.0", 123), work.join("out"));
    let cases: [(&[&str], &str); 5] = [
        (
            &["-p", "binary", "-i", text(&log), "-o", text(&out)],
            "Binary format input file is not allowed to be processed by Binary processor.\n",
        ),
        (
            &["-i", "some.XML", "-o", text(&out)],
            "XML format input file is not allowed to be processed by XML processor.\n",
        ),
        (
            &["-p", "foo", "-i", text(&log), "-o", text(&out)],
            "Encountered exception. Exiting: Unknown processor foo (valid processors: xml, binary, stats)\n",
        ),
        (&["-i", "nosuch", "-o", text(&out)], "Encountered exception. Exiting: nosuch\n"),
        (&["-p", "stats", "-i", "nosuch.xml", "-o", text(&out)], "Encountered exception. Exiting: nosuch.xml\n"),
    ];
    for (options, expected) in cases {
        let output = run(&[&["oev"], options].concat());
        assert_eq!(output.status.code(), Some(255), "{options:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    }
    let usage = bytes(&golden("tools/oev-usage.txt"));
    assert_eq!(run(&["oev", "-h"]).stdout, usage);
    let output = run(&["oev", "-i", text(&log)]);
    assert_eq!(output.status.code(), Some(255));
    let complaint = b"Error parsing command-line options: Missing required option: o\n";
    assert_same(&output.stdout, &[complaint, &usage[..]].concat(), "complaint");
}
