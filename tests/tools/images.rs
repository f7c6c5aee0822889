//! `oiv`.

use super::{assert_same, bytes, golden, run, text};
use crate::support::work::WorkDir;
use md5::{Digest, Md5};
use std::path::PathBuf;

const EVERYTHING: &str = "fsimage/3.5.0/everything-serial/current/fsimage_0000000000000002912";

/// The newest image of a scenario.
fn newest(scenario: &str) -> PathBuf {
    let folder = golden("fsimage/3.5.0").join(scenario).join("current");
    let names = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let is_image = |name: &String| name.strip_prefix("fsimage_").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let newest = names.filter_map(|name| name.into_string().ok()).filter(is_image).max().expect("an image");
    folder.join(newest)
}

#[test]
fn xml_of_every_scenario_equals_hadoops() {
    let scenarios: Vec<String> = std::fs::read_dir(golden("fsimage/3.5.0"))
        .expect("a folder")
        .filter(|entry| entry.as_ref().expect("an entry").path().join("image.xml").exists())
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .collect();
    assert!(scenarios.len() > 10, "only {} scenarios", scenarios.len());
    for scenario in scenarios {
        let output = run(&["oiv", "-p", "XML", "-i", text(&newest(&scenario))]);
        assert!(output.status.success(), "{scenario}: {}", String::from_utf8_lossy(&output.stderr));
        assert_same(&output.stdout, &bytes(&golden(&format!("fsimage/3.5.0/{scenario}/image.xml"))), &scenario);
    }
}

#[test]
fn xml_of_every_codec_and_older_layout_equals_hadoops() {
    let table = String::from_utf8(bytes(&golden("tools/xml.tsv"))).expect("UTF-8");
    assert!(table.lines().count() > 10);
    for (image, expected) in table.lines().filter_map(|line| line.split_once('\t')) {
        let output = run(&["oiv", "--processor=xml", "-i", text(&golden("fsimage").join(image))]);
        let digest: String = Md5::digest(&output.stdout).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, expected, "{image}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn lines_and_distributions_equal_hadoops() {
    let cases: [(&str, &[&str]); 4] = [
        ("everything.delimited", &["-p", "Delimited", "-sp", "-ec"]),
        ("everything.csv", &["-p", "Delimited", "-delimiter", ","]),
        ("everything.distribution", &["-p", "FileDistribution", "-maxSize", "20000", "-step", "1000"]),
        ("everything.distribution-format", &["-p", "FileDistribution", "-format"]),
    ];
    for (expected, options) in cases {
        let output = run(&[&["oiv", "-i", text(&golden(EVERYTHING))], options].concat());
        assert_same(&output.stdout, &bytes(&golden("tools").join(expected)), expected);
    }
}

#[test]
fn corruptions_come_in_the_order_of_a_hash_map() {
    let image = golden("tools/holes.fsimage");
    for (processor, expected) in [("DetectCorruption", "holes.corruption"), ("Delimited", "holes.delimited")] {
        let output = run(&["oiv", "-p", processor, "-i", text(&image)]);
        assert_same(&output.stdout, &bytes(&golden("tools").join(expected)), expected);
    }
    let output = run(&["oiv", "-p", "DetectCorruption", "-i", text(&golden(EVERYTHING))]);
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1, "a header only");
}

#[test]
fn a_reconstructed_image_has_a_string_zero() {
    let output = run(&["oiv", "-p", "XML", "-i", text(&golden("tools/holes.fsimage"))]);
    let xml = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(xml.contains("<permission>hdfs:supergroup:0755</permission>"), "{xml}");
    assert!(!xml.contains("null:"), "{xml}");
}

#[test]
fn an_image_made_of_xml_equals_hadoops() {
    let work = WorkDir::new("oiv-reverse");
    let made = work.join("made");
    let output = run(&["oiv", "-p", "ReverseXML", "-i", text(&golden("tools/holes.xml")), "-o", text(&made)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let image = bytes(&made);
    assert_same(&image, &bytes(&golden("tools/holes.fsimage")), "the image");
    let digest: String = Md5::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(bytes(&work.join("made.md5")), format!("{digest} *made\n").as_bytes());

    let bad = work.join("bad.xml");
    std::fs::write(&bad, "<edits/>").expect("writes");
    let output = run(&["oiv", "-p", "ReverseXML", "-i", text(&bad), "-o", text(&made)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.starts_with(b"OfflineImageReconstructor failed: "));
}

#[test]
fn every_scenario_survives_the_way_through_xml() {
    let work = WorkDir::new("oiv-round");
    let (xml, made) = (work.join("xml"), work.join("made"));
    for scenario in ["basic", "cache", "ec", "snapshots", "symlinks", "tokens", "open"] {
        assert!(run(&["oiv", "-p", "XML", "-i", text(&newest(scenario)), "-o", text(&xml)]).status.success());
        // A bare carriage return is a line feed to whoever reads XML, Hadoop's reader too.
        std::fs::write(&xml, String::from_utf8(bytes(&xml)).expect("UTF-8").replace('\r', "&#13;")).expect("writes");
        let output = run(&["oiv", "-p", "ReverseXML", "-i", text(&xml), "-o", text(&made)]);
        assert!(output.status.success(), "{scenario}: {}", String::from_utf8_lossy(&output.stderr));
        let again = run(&["oiv", "-p", "XML", "-i", text(&made)]);
        assert_same(&again.stdout, &bytes(&golden(&format!("fsimage/3.5.0/{scenario}/image.xml"))), scenario);
    }
}

#[test]
fn images_are_compared_by_meaning() {
    let (one, other) = (golden(EVERYTHING), golden(&EVERYTHING.replace("serial", "gzip-parallel")));
    let output = run(&["image-diff", text(&one), text(&one)]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    // Saved by another run of the server: with another codec, sub-sections and new keys, and nothing else.
    let output = run(&["image-diff", text(&one), text(&other)]);
    assert_eq!(output.status.code(), Some(1));
    let differences = String::from_utf8(output.stdout).expect("UTF-8");
    let about_keys = |line: &str| line.get(2..).is_some_and(|line| line.starts_with("delegation key "));
    assert!(differences.lines().all(|line| about_keys(line) || line.contains("last secrets")), "{differences}");
    // What an inode lost is named.
    let output = run(&["image-diff", text(&golden("tools/holes.fsimage")), text(&newest("compressed"))]);
    let differences = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(differences.contains("+ inode 16394: <id>16394</id>"), "{differences}");
    let output = run(&["image-diff", text(&one), "/no/such/image"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn size_counts_what_is_there() {
    let output = run(&["size", text(&golden(EVERYTHING))]);
    let estimate = String::from_utf8(output.stdout).expect("UTF-8");
    let distribution = String::from_utf8(bytes(&golden("tools/everything.distribution"))).expect("UTF-8");
    let total = |name: &str| -> String {
        let line = distribution.lines().find(|line| line.starts_with(name)).expect("a total");
        line.rsplit(' ').next().expect("a number").to_owned()
    };
    for expected in [
        format!(" {} files", total("totalFiles")),
        format!(" {} directories", total("totalDirectories")),
        format!("{} blocks", total("totalBlocks")),
    ] {
        assert!(estimate.contains(&expected), "{expected} is not in\n{estimate}");
    }
    assert!(estimate.contains("expected load time on this host: "));
}

#[test]
fn an_image_that_is_none_is_refused_in_hadoops_words() {
    let work = WorkDir::new("oiv-bad");
    let (bad, cut) = (work.join("bad"), work.join("cut"));
    std::fs::write(&bad, "no image").expect("writes");
    let whole = bytes(&golden(EVERYTHING));
    let output = run(&["oiv", "-p", "XML", "-i", text(&bad)]);
    assert_eq!(output.status.code(), Some(255));
    assert_eq!(output.stderr, b"Encountered exception.  Exiting: Unrecognized FSImage\n");
    let output = run(&["oiv", "-p", "XML", "-i", "/no/such/image"]);
    assert_eq!(output.status.code(), Some(255));
    assert!(output.stderr.ends_with(b"Exiting: /no/such/image (No such file or directory)\n"));
    // Damage anywhere is an end with a message, never a crash.
    for at in (8..whole.len()).step_by(whole.len() / 40) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        std::fs::write(&cut, &damaged).expect("writes");
        for processor in ["XML", "Delimited", "FileDistribution", "DetectCorruption"] {
            let output = run(&["oiv", "-p", processor, "-i", text(&cut), "-o", text(&work.join("out"))]);
            let ended = output.status.code();
            assert!(matches!(ended, Some(0 | 255)), "byte {at}, {processor}: {ended:?}");
        }
    }
}

#[test]
fn usage_is_hadoops() {
    let usage = bytes(&golden("tools/oiv-usage.txt"));
    let output = run(&["oiv", "-h"]);
    assert_eq!((output.status.code(), &output.stdout), (Some(0), &usage));
    let output = run(&["oiv", "-p", "XML"]);
    assert_eq!(output.status.code(), Some(255));
    assert_same(&output.stdout, &[b"Error parsing command-line options: \n", &usage[..]].concat(), "complaint");
    let output = run(&["oiv", "-p", "Foo", "-i", text(&golden(EVERYTHING))]);
    assert_eq!(output.status.code(), Some(255));
    assert_eq!(output.stderr, b"Invalid processor specified : Foo\n");
}
