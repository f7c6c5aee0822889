//! Times, limits of names and directories, and the words of denied access.
use hadoop_proto::hdfs::acl_entry_proto::{AclEntryScopeProto, AclEntryTypeProto, FsActionProto};
use hadoop_proto::hdfs::*;

use super::client::{CREATE, OVERWRITE, refused};
use super::fixture::{Fixture, shared};
use super::snapshots::{allow, try_snapshot};

/// colinmarc/hdfs#294, Kimahriman/hdfs-native#112.
#[test]
fn t17_set_times_one_of_the_two_and_on_directories() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    client.touch("/t17/f").expect("create");
    client.mkdirs("/t17/d").expect("mkdirs");
    let before = client.status("/t17/f");
    client.set_times("/t17/f", 1_000, -1).expect("setTimes");
    let after = client.status("/t17/f");
    assert_eq!((after.modification_time, after.access_time), (1_000, before.access_time));
    client.set_times("/t17/f", -1, 2_000).expect("setTimes");
    let after = client.status("/t17/f");
    assert_eq!((after.modification_time, after.access_time), (1_000, 2_000));
    client.set_times("/t17/d", 3_000, -1).expect("setTimes");
    assert_eq!(client.status("/t17/d").modification_time, 3_000);
    refused(client.set_times("/t17/x", 1, 1), "java.io.FileNotFoundException", "File/Directory /t17/x does not exist.");
    client.set_times("/t17/f", -1, -1).expect("setTimes of nothing");
    let after = client.status("/t17/f");
    assert_eq!((after.modification_time, after.access_time), (1_000, 2_000));
    refused(node.client("alice").set_times("/t17/f", 1, 1), "AccessControlException", "user=alice, access=WRITE");
}

/// colinmarc/hdfs#294; 3.5 stores a given access time all the same, older releases refused it.
#[test]
fn t17_reading_leaves_access_times_alone_when_they_are_switched_off() {
    let Some(fixture) = Fixture::start("t17", &[("dfs.namenode.accesstime.precision", "0")]) else { return };
    let client = fixture.superuser();
    client.touch("/f").expect("create");
    client.set_times("/f", 4_000, 5_000).expect("setTimes");
    client.block_locations("/f").expect("getBlockLocations");
    let status = client.status("/f");
    assert_eq!((status.modification_time, status.access_time), (4_000, 5_000));
    let last = client.last_transaction();
    client.set_times("/f", -1, -1).expect("setTimes of nothing");
    assert_eq!(client.last_transaction(), last, "nothing changed, nothing is logged");
}

/// apache/gobblin#853.
#[test]
fn t25_limits_of_names_are_in_bytes() {
    let Some(node) = shared() else { return };
    let client = node.superuser();
    let named = |name: &str| format!("/t25/{name}");
    assert!(client.mkdirs(&named(&"n".repeat(255))).expect("255 bytes"));
    let class = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException";
    refused(client.mkdirs(&named(&"n".repeat(256))), class, "limit=255 length=256");
    refused(client.mkdirs(&named(&"\u{e9}".repeat(128))), class, "limit=255 length=256");
    client.touch(&named("f")).expect("create");
    refused(client.rename2(&named("f"), &named(&"n".repeat(256)), false), class, "limit=255 length=256");
    refused(client.create(&named(&"n".repeat(256))), class, "limit=255 length=256");
    refused(client.rename(&named("f"), &named(&"n".repeat(256))), class, "limit=255 length=256");
    client.mkdirs(&named("s")).expect("mkdirs");
    allow(&client, &named("s"));
    refused(try_snapshot(&client, &named("s"), &"n".repeat(256)), class, "limit=255 length=256");
    try_snapshot(&client, &named("s"), &"n".repeat(255)).expect("255 bytes");
    for odd in ["a:b", "../b", "./b"] {
        refused(client.mkdirs(&named(odd)), "InvalidPathException", "Invalid path name");
    }
    refused(client.mkdirs("/t25//b"), "InvalidPathException", "Invalid path name");
    refused(client.mkdirs(&"/d".repeat(1001)), "java.io.IOException", "");
}

/// apache/gobblin#853.
#[test]
fn t25_a_directory_holds_so_many_items_and_no_more() {
    let Some(fixture) = Fixture::start("t25", &[("dfs.namenode.fs-limits.max-directory-items", "64")]) else { return };
    let client = fixture.superuser();
    for n in 0..64 {
        assert!(client.mkdirs(&format!("/full/{n}")).expect("mkdirs"));
    }
    let class = "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException";
    refused(client.mkdirs("/full/65"), class, "limit=64 items=64");
    refused(client.create("/full/65"), class, "limit=64 items=64");
    client.touch("/f").expect("create");
    refused(client.rename2("/f", "/full/f", false), class, "limit=64 items=64");
    assert!(client.rename("/full/1", "/full/one").expect("within the directory"));
    assert_eq!(client.names("/full").len(), 64);
}

/// apache/gravitino#554, collectivemedia/celos#453, criteo/berilia#7, apache/hive#5875.
#[test]
fn t27_words_of_denied_access() {
    let Some(node) = shared() else { return };
    let (client, alice, bob) = (node.superuser(), node.client("alice"), node.client("bob"));
    let class = "org.apache.hadoop.security.AccessControlException";
    client.mkdirs("/t27/d").expect("mkdirs");
    let text = r#"Permission denied: user=alice, access=WRITE, inode="/t27/d":hdfs:supergroup:drwxr-xr-x"#;
    refused(alice.mkdirs("/t27/d/x"), class, text);
    client.mkdir("/t27/closed", 0o700, true).expect("mkdirs");
    let text = r#"user=alice, access=READ_EXECUTE, inode="/t27/closed":hdfs:supergroup:drwx------"#;
    refused(alice.listing("/t27/closed", b"", false), class, text);
    client.mkdir("/t27/all", 0o1777, true).expect("mkdirs");
    alice.touch("/t27/all/hers").expect("create");
    refused(bob.delete("/t27/all/hers", false), class, "Permission denied by sticky bit");
    alice.mkdirs("/t27/all/tree/own").expect("mkdirs");
    alice.set_permission("/t27/all/tree/own", 0o777).expect("setPermission");
    client.mkdirs("/t27/all/tree/own/supers/x").expect("mkdirs");
    let text = r#"user=alice, access=ALL, inode="/t27/all/tree/own/supers":hdfs:supergroup:drwxr-xr-x"#;
    refused(alice.delete("/t27/all/tree", true), class, text);
    client.delete("/t27/all/tree/own/supers/x", true).expect("delete");
    assert!(alice.delete("/t27/all/tree", true).expect("an empty directory of another user"));
    client.mkdirs("/t27/listed").expect("mkdirs");
    let entry = AclEntryProto {
        r#type: AclEntryTypeProto::User.into(),
        scope: AclEntryScopeProto::Access.into(),
        permissions: FsActionProto::Read.into(),
        name: Some("alice".into()),
    };
    let request = ModifyAclEntriesRequestProto { src: "/t27/listed".into(), acl_spec: vec![entry] };
    client.call::<ModifyAclEntriesResponseProto>("modifyAclEntries", &request).expect("modifyAclEntries");
    // the report has a plus sign behind the mode; Hadoop 3.5 leaves it out
    let text = r#"Permission denied: user=alice, access=READ_EXECUTE, inode="/t27/listed":hdfs:supergroup:drwxr-xr-x"#;
    let denied = alice.listing("/t27/listed", b"", false).expect_err("an entry of the ACL denies it");
    assert_eq!((denied.class.as_str(), denied.message.as_str()), (class, text));
    let overwrite = super::client::Client::create_request(&bob, "/t27/all/hers");
    let overwrite = CreateRequestProto { create_flag: CREATE | OVERWRITE, ..overwrite };
    refused(bob.create_with(overwrite), class, "user=bob, access=WRITE");
    assert!(client.exists("/t27/all/hers"));
}
