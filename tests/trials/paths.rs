//! Every call that takes a path, with every odd form of a path, recorded with the Java NameNode.
use regex::Regex;

use super::answers::{compare, golden};
use super::conversation::{Conversation, RawBytes};
use super::fixture::Fixture;

/// Stands for the path in a request, and in an answer for a path that repeats it.
const PATH: &str = "@PATH@";
/// Replaced byte for byte by what is no UTF-8.
const RAW: RawBytes<'static> = RawBytes { placeholder: "~~raw~~", bytes: b"\xff\xc3(\xf0\x9f\x98\x80" };

/// Odd paths by the name they have in the record.
fn paths() -> Vec<(&'static str, String)> {
    let long_name = "n".repeat(256);
    let texts = [
        ("empty", ""),
        ("root", "/"),
        ("two slashes", "//"),
        ("relative", "dir/file"),
        ("word", "file"),
        ("dot", "."),
        ("double slash at the start", "//dir/file"),
        ("double slash inside", "/dir//file"),
        ("slash after a directory", "/dir/"),
        ("slash after a file", "/dir/file/"),
        ("slash after nothing", "/dir/none/"),
        ("dot inside", "/dir/./file"),
        ("dot at the end", "/dir/."),
        ("two dots inside", "/dir/../dir/file"),
        ("two dots at the end", "/dir/.."),
        ("above the root", "/.."),
        ("three dots", "/dir/..."),
        ("colon", "/dir/a:b"),
        ("uri", "hdfs://host:1/dir/file"),
        ("file uri", "file:///dir/file"),
        ("query", "/dir/a?b#c%20d"),
        ("backslash", "/dir/a\\b"),
        ("blank", "/dir/a b "),
        ("only a blank", " "),
        ("accents", "/dir/caf\u{e9}"),
        ("outside the basic plane", "/dir/\u{1f431}\u{4e2d}"),
        ("unpaired accent", "/dir/e\u{301}"),
        ("control characters", "/dir/a\tb\nc\r\u{1}\u{7f}"),
        ("nul", "/dir/a\0b"),
        ("no UTF-8", "/dir/~~raw~~"),
        ("percent", "/dir/%"),
        ("reserved", "/.reserved"),
        ("reserved raw", "/.reserved/raw"),
        ("reserved raw file", "/.reserved/raw/dir/file"),
        ("reserved inodes", "/.reserved/.inodes"),
        ("root by inode", "/.reserved/.inodes/16385"),
        ("below the root by inode", "/.reserved/.inodes/16385/dir/file"),
        ("inode that is none", "/.reserved/.inodes/1/dir"),
        ("inode that is no number", "/.reserved/.inodes/abc"),
        ("parent by inode", "/.reserved/.inodes/16385/.."),
        ("reserved other", "/.reserved/other"),
        ("snapshot folder", "/dir/.snapshot"),
        ("in a snapshot", "/dir/.snapshot/s/file"),
        ("below a file", "/dir/file/x"),
        ("below nothing", "/dir/none/x"),
    ];
    let mut all: Vec<(&str, String)> = texts.iter().map(|(name, path)| (*name, (*path).to_owned())).collect();
    all.push(("name of 255 bytes", format!("/dir/{}", &long_name[1..])));
    all.push(("name of 256 bytes", format!("/dir/{long_name}")));
    all.push(("name of 256 bytes in 128 characters", format!("/dir/{}", "\u{e9}".repeat(128))));
    all.push(("8,000 characters", format!("/{}", "abcdefghi/".repeat(800)).trim_end_matches('/').to_owned()));
    all.push(("8,001 characters", format!("/x{}", "abcdefghi/".repeat(800)).trim_end_matches('/').to_owned()));
    all.push(("1,000 components", "/d".repeat(1000)));
    all.push(("1,001 components", "/d".repeat(1001)));
    all
}

/// Calls in an order in which each may change what the next ones see; all that succeeds is deleted at the end.
const CALLS: [(&str, &str); 37] = [
    ("getFileInfo", r#"src: "@PATH@""#),
    ("getFileLinkInfo", r#"src: "@PATH@""#),
    ("getLocatedFileInfo", r#"src: "@PATH@""#),
    ("getListing", r#"src: "@PATH@" startAfter: "" needLocation: true"#),
    ("getBatchedListing", r#"paths: "@PATH@" startAfter: "" needLocation: false"#),
    ("getBlockLocations", r#"src: "@PATH@" offset: 0 length: 1"#),
    ("getContentSummary", r#"path: "@PATH@""#),
    ("getQuotaUsage", r#"path: "@PATH@""#),
    ("checkAccess", r#"path: "@PATH@" mode: READ"#),
    ("isFileClosed", r#"src: "@PATH@""#),
    ("getPreferredBlockSize", r#"filename: "@PATH@""#),
    ("setReplication", r#"src: "@PATH@" replication: 2"#),
    ("setTimes", r#"src: "@PATH@" mtime: 1000000000000 atime: 1000000000000"#),
    ("addBlock", r#"src: "@PATH@" clientName: "none""#),
    ("abandonBlock", r#"b { poolId: "$POOL" blockId: 1 generationStamp: 1 } src: "@PATH@" holder: "none""#),
    (
        "getAdditionalDatanode",
        r#"src: "@PATH@" blk { poolId: "$POOL" blockId: 1 generationStamp: 1 } numAdditionalNodes: 1 clientName: "none""#,
    ),
    ("complete", r#"src: "@PATH@" clientName: "none""#),
    ("fsync", r#"src: "@PATH@" client: "none""#),
    (
        "create",
        r#"src: "@PATH@" masked { perm: 420 } clientName: "c" createFlag: 1 createParent: false replication: 1 blockSize: 1048576"#,
    ),
    ("fsync", r#"src: "@PATH@" client: "c""#),
    ("complete", r#"src: "@PATH@" clientName: "c""#),
    ("rename", r#"src: "@PATH@" dst: "/dir/moved""#),
    ("rename", r#"src: "/dir/moved" dst: "@PATH@""#),
    ("rename", r#"src: "/dir/none" dst: "@PATH@""#),
    ("rename2", r#"src: "@PATH@" dst: "/dir/moved" overwriteDest: false"#),
    ("rename2", r#"src: "/dir/moved" dst: "@PATH@" overwriteDest: true"#),
    ("setPermission", r#"src: "@PATH@" permission { perm: 493 }"#),
    ("setOwner", r#"src: "@PATH@" username: "hdfs" groupname: "supergroup""#),
    ("delete", r#"src: "@PATH@" recursive: false"#),
    ("mkdirs", r#"src: "@PATH@" masked { perm: 493 } createParent: false"#),
    ("mkdirs", r#"src: "@PATH@" masked { perm: 493 } createParent: true"#),
    (
        "create",
        r#"src: "@PATH@" masked { perm: 420 } clientName: "c" createFlag: 3 createParent: true replication: 1 blockSize: 1048576"#,
    ),
    ("getListing", r#"src: "/dir" startAfter: "@PATH@" needLocation: false"#),
    ("rename", r#"src: "@PATH@" dst: "/dir/moved""#),
    ("rename2", r#"src: "/dir/moved" dst: "@PATH@" overwriteDest: false"#),
    ("checkAccess", r#"path: "@PATH@" mode: WRITE"#),
    ("delete", r#"src: "@PATH@" recursive: true"#),
];

/// One user's walk through all paths and calls.
fn walk(conversation: &mut Conversation, user: &str, actual: &mut String) {
    // the calls in between make new files all the time
    let file = Regex::new(r"\bF\d+\b").expect("a pattern");
    for (name, path) in paths() {
        for (method, request) in CALLS {
            reset(conversation);
            let literal = path.escape_default().to_string().replace("\\'", "'");
            let literal = unicode_as_utf8(&literal, &path);
            let request_text = conversation.expand(&request.replace(PATH, &literal));
            let answer = conversation.call(user, method, &request_text, Some(&RAW));
            let answer = if path.len() > 2 { answer.replace(&path, PATH) } else { answer };
            let answer = file.replace_all(&answer, "F");
            *actual += &format!("{user}\t{name}\t{method}\t{}\t{answer}\n", request.replace('\t', " "));
        }
    }
}

/// The text format knows escapes of bytes and control characters; the rest goes as it is.
fn unicode_as_utf8(literal: &str, path: &str) -> String {
    if !literal.contains("\\u{") {
        return literal.to_owned();
    }
    path.bytes()
        .map(|b| {
            if b.is_ascii_graphic() && b != b'"' && b != b'\\' {
                char::from(b).to_string()
            } else {
                format!("\\{b:03o}")
            }
        })
        .collect()
}

/// What every call finds: /dir with /dir/file, writable for all.
fn reset(conversation: &mut Conversation) {
    for (method, request) in [
        ("mkdirs", r#"src: "/dir" masked { perm: 511 } createParent: true"#),
        ("setPermission", r#"src: "/dir" permission { perm: 511 }"#),
        (
            "create",
            r#"src: "/dir/file" masked { perm: 420 } clientName: "r" createFlag: 1 createParent: true replication: 1 blockSize: 1048576"#,
        ),
        ("complete", r#"src: "/dir/file" clientName: "r""#),
    ] {
        conversation.call("hdfs", method, request, None);
    }
}

#[test]
fn recorded_answers_to_odd_paths() {
    let Some(fixture) = Fixture::start("paths", &[]) else { return };
    let file = golden("paths.tsv");
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let mut conversation = Conversation::new(fixture.port());
    let mut actual = String::new();
    walk(&mut conversation, "hdfs", &mut actual);
    walk(&mut conversation, "alice", &mut actual);
    compare(&file, &expected, &actual);
}
