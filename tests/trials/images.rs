//! Forms of images: string tables, codecs, sub-sections.
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::client::Client;
use super::disk::write_digest;
use super::fixture::Fixture;
use crate::support::namenode::{Kind, NameNode};
use crate::support::skip;

const USERS: usize = 40;

/// Directories of many owners, groups and modes.
fn fill(client: &Client, count: usize) {
    for n in 0..count {
        let path = format!("/d/{n}");
        assert!(client.mkdirs(&path).expect("mkdirs"));
        let owner = hadoop_proto::hdfs::SetOwnerRequestProto {
            src: path.clone(),
            username: Some(format!("user{}", n % USERS)),
            groupname: Some(format!("group{}", n % 7)),
        };
        client.call::<hadoop_proto::hdfs::SetOwnerResponseProto>("setOwner", &owner).expect("setOwner");
        client.set_permission(&path, 0o700 + (n % 8) as u32).expect("setPermission");
    }
}

/// What a listing tells of all of them.
fn seen(client: &Client, count: usize) -> Vec<(String, String, u32)> {
    let one = |n: usize| {
        let status = client.status(&format!("/d/{n}"));
        (status.owner, status.group, status.permission.perm)
    };
    (0..count).map(one).collect()
}

/// The newest image of the name directory.
fn image(fixture: &Fixture) -> PathBuf {
    let entries = std::fs::read_dir(fixture.current()).expect("the name directory");
    let is_image = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.strip_prefix("fsimage_").is_some_and(|txid| txid.bytes().all(|byte| byte.is_ascii_digit()))
    };
    entries.map(|entry| entry.expect("an entry").path()).filter(is_image).max().expect("an image")
}

/// Removes all images but the newest, which would be started from instead of a damaged one.
fn without_older(fixture: &Fixture) {
    let newest = image(fixture);
    for entry in std::fs::read_dir(fixture.current()).expect("the name directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if (name.starts_with("fsimage_") && !path.with_extension("").ends_with(newest.file_name().expect("a name")))
            || name.starts_with("arena")
        {
            std::fs::remove_file(path).expect("removed");
        }
    }
}

/// Starts it and expects that it ends; its log.
fn start_fails(fixture: &Fixture) -> String {
    let mut node = NameNode::launch(fixture.kind, &fixture.site, &[]);
    let status = node.process().wait(Duration::from_secs(60));
    let log = std::fs::read_to_string(fixture.site.folder().join("namenode.log")).unwrap_or_default();
    assert!(!status.success(), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    log
}

/// Replaces the last occurrence of some bytes in an image by others of the same length.
fn patch(image: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = std::fs::read(image).expect("an image");
    let at = bytes.windows(from.len()).rposition(|window| window == from).expect("these bytes");
    bytes[at..at + to.len()].copy_from_slice(to);
    std::fs::write(image, bytes).expect("an image");
    write_digest(image);
}

/// marcelmay/hadoop-hdfs-fsimage-exporter#211.
#[test]
fn t50_both_forms_of_the_string_table() {
    let Some(mut fixture) = Fixture::start("t50", &[]) else { return };
    let client = fixture.superuser();
    fill(&client, 100);
    let before = seen(&client, 100);
    client.save_namespace();
    fixture.restart();
    assert_eq!(seen(&fixture.superuser(), 100), before, "the expanded form");
    fixture.stop();
    // the table's head: so many entries, 3 bits that tell the table
    let bytes = std::fs::read(image(&fixture)).expect("an image");
    let entries = (0u8..=127).find(|count| bytes.windows(5).any(|window| window == [4, 8, *count, 16, 3]));
    let entries = entries.expect("a head of a string table");
    assert!(usize::from(entries) > USERS + 7, "each owner and group is named once: {entries}");
    patch(&image(&fixture), &[4, 8, entries, 16, 3], &[4, 8, entries, 16, 4]);
    if fixture.kind == Kind::Java {
        return skip("Hadoop refuses it with an exception of the parser");
    }
    without_older(&fixture);
    let log = start_fails(&fixture);
    assert!(log.contains("unsupported number of mask bits 4"), "{log}");
}

/// marcelmay/hadoop-hdfs-fsimage-exporter#34; apache/hadoop#6929 (HDFS-17573).
#[test]
fn t51_compressed_images() {
    const CLASSES: &str = "org.apache.hadoop.io.compress";
    let compressed = |codec: &str, parallel: &str| {
        let codec = format!("{CLASSES}.{codec}");
        let fixture = Fixture::prepared(
            "t51",
            &[
                ("dfs.image.compress", "true"),
                ("dfs.image.compression.codec", &codec),
                ("dfs.image.parallel.load", parallel),
                ("dfs.image.parallel.inode.threshold", "10"),
            ],
        )?;
        crate::support::namenode::format(fixture.kind, &fixture.site);
        Some((fixture, codec))
    };
    for parallel in ["false", "true"] {
        for codec in ["DefaultCodec", "GzipCodec", "BZip2Codec", "SnappyCodec", "Lz4Codec"] {
            let Some((mut fixture, class)) = compressed(codec, parallel) else { return };
            fixture.launch();
            let client = fixture.superuser();
            fill(&client, 60);
            let before = seen(&client, 60);
            client.save_namespace();
            fixture.stop();
            let bytes = std::fs::read(image(&fixture)).expect("an image");
            assert!(bytes.windows(class.len()).any(|window| window == class.as_bytes()), "{class} is named");
            // whatever is set now, the image says how it is read
            fixture.site.set("dfs.image.compress", "false").set("dfs.image.parallel.load", "false");
            fixture.launch();
            assert_eq!(seen(&fixture.superuser(), 60), before, "{codec}, {parallel}");
            fixture.stop();
            if codec == "GzipCodec" {
                without_older(&fixture);
                patch(&image(&fixture), b"GzipCodec", b"GzopCodec");
                let log = start_fails(&fixture);
                assert!(log.contains("org.apache.hadoop.io.compress.GzopCodec"), "{log}");
            }
        }
    }
}

/// apache/hadoop#1028 (HDFS-14617).
#[test]
fn t52_images_with_sub_sections() {
    let settings = [
        ("dfs.image.parallel.load", "true"),
        ("dfs.image.parallel.inode.threshold", "10"),
        ("dfs.image.parallel.target.sections", "12"),
    ];
    let Some(mut fixture) = Fixture::start("t52", &settings) else { return };
    let client = fixture.superuser();
    fill(&client, 500);
    // enough for several pages of memory: sub-sections end with those
    (0..2_500).for_each(|n| assert!(client.mkdirs(&format!("/more/{n}")).expect("mkdirs")));
    let before = seen(&client, 500);
    client.save_namespace();
    fixture.stop();
    let bytes = std::fs::read(image(&fixture)).expect("an image");
    let named = |name: &str| bytes.windows(name.len()).filter(|window| *window == name.as_bytes()).count();
    assert!(named("INODE_SUB") >= 2, "{}", named("INODE_SUB"));
    for parallel in ["true", "false"] {
        fixture.site.set("dfs.image.parallel.load", parallel);
        fixture.launch();
        assert_eq!(seen(&fixture.superuser(), 500), before, "{parallel}");
        fixture.stop();
    }
    if fixture.kind == Kind::Java {
        return skip("Hadoop loads such an image or not, as its threads happen to run");
    }
    without_older(&fixture);
    // the length of the last sub-section of inodes: its name, field 2, field 3 with the offset
    let at = bytes.windows(9).rposition(|window| window == b"INODE_SUB").expect("a name") + 9;
    assert_eq!(bytes[at], 0x10, "the length follows");
    let damaged = image(&fixture);
    let mut bytes = bytes;
    bytes[at + 1] ^= 0x01;
    std::fs::write(&damaged, bytes).expect("an image");
    write_digest(&damaged);
    // the whole sections say the same, and are what is read: never a part of the tree
    fixture.launch();
    assert_eq!(seen(&fixture.superuser(), 500), before, "parts that do not fit");
}
