//! Name directories written by Hadoop 3.5.0: their whole log is replayed, and every call answers what the Java name node answered for it
//! (`state.json`, one object per path).

use super::*;
use crate::read::acl_status::get_acl_status;
use crate::read::block_locations::get_block_locations;
use crate::read::file_info::*;
use crate::read::summary::{get_content_summary, get_quota_usage};
use crate::write::acl::show;
use crate::write::storage_policy::get_storage_policy;
use crate::write::xattr::get_xattrs;
use edit::{Decoded, frame};
use record::KindTag;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vocab::xattr::XattrNamespace;

fn folder(scenario: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/fsimage/3.5.0").join(scenario)
}

/// A state replayed from the segments of a directory, beginning with a formatted file system.
fn replayed(scenario: &str) -> State {
    let mut segments: Vec<PathBuf> = std::fs::read_dir(folder(scenario).join("current"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_str().unwrap().starts_with("edits_0"))
        .collect();
    segments.sort();
    let mut state = State::new(RootAttributes { user: "hdfs", ..root() });
    let policy = Policy::default();
    for segment in segments {
        let bytes = std::fs::read(&segment).unwrap();
        let (layout, mut at) = frame::header(&bytes).unwrap();
        while let Ok(Decoded::Frame(found)) = edit::decode(&bytes[at..], layout, frame::RECORD_MAX) {
            at += found.length;
            match state.fit(&found.record, &policy) {
                Fit::Fits(fitted) => {
                    state.apply(&found.record, fitted, &policy, Mode::Restart, &mut Effects::new(Mode::Restart));
                }
                Fit::NoOp(rule) => assert_eq!(rule, edit::Rule::SegmentBoundary, "{:?}", found.record),
                other => panic!("{}: transaction {}: {other:?}", segment.display(), found.txid),
            }
        }
        assert_eq!(at, bytes.len(), "{}", segment.display());
    }
    state
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What our calls answer for a path, in the form of the file; only the fields that are compared.
fn answers(v: &View<'_>, path: &[u8], theirs: &Value) -> Value {
    let s =
        get_file_link_info(v, path).unwrap().unwrap_or_else(|| panic!("{} is missing", String::from_utf8_lossy(path)));
    let kind = match s.kind {
        KindTag::Directory => "DIRECTORY",
        KindTag::File => "FILE",
        _ => "SYMLINK",
    };
    let mut ours = json!({
        "type": kind, "fileId": s.id.0, "length": s.length, "replication": s.replication, "blockSize": s.block_size,
        "modificationTime": s.mtime.0, "accessTime": s.atime.0, "permission": format!("{:o}", s.mode.bits()),
        "owner": &*s.owner, "group": &*s.group, "childrenNum": s.children, "storagePolicyId": s.storage_policy,
        "flags": if s.flags.0 & 1 != 0 { json!(["HAS_ACL"]) } else { json!([]) },
    });
    if let Some(target) = &s.symlink {
        ours["symlinkHex"] = json!(hex(target));
        return ours;
    }
    let acl = get_acl_status(v, path).unwrap();
    let mode = acl.mode.unwrap();
    ours["acl"] = json!({
        "owner": &*acl.owner, "group": &*acl.group, "sticky": mode.sticky(), "permission": format!("{:o}", mode.bits()),
        "entries": acl.entries.iter().map(show).collect::<Vec<_>>(),
    });
    let mut xattrs = serde_json::Map::new();
    for x in get_xattrs(v, path, &[]).unwrap() {
        let namespace = ["user", "trusted", "security", "system", "raw"][x.namespace as usize];
        assert_ne!(x.namespace, XattrNamespace::Raw);
        xattrs.insert(format!("{namespace}.{}", x.name), json!(hex(&x.value)));
    }
    ours["xattrs"] = Value::Object(xattrs);
    ours["storagePolicy"] = json!(get_storage_policy(v, path).unwrap().name);
    add_summary(v, path, &mut ours);
    if kind == "DIRECTORY" {
        let usage = get_quota_usage(v, path).unwrap();
        let number = |limit: Option<u64>| limit.map_or(-1, |n| n as i64);
        ours["quotaUsage"] = json!({
            "fileAndDirectoryCount": usage.usage.namespace, "quota": number(usage.quota.namespace),
            "spaceConsumed": usage.usage.space, "spaceQuota": number(usage.quota.space),
        });
        type_quotas_only(&mut ours, theirs);
    } else {
        add_blocks(v, path, &mut ours);
    }
    ours
}

fn add_summary(v: &View<'_>, path: &[u8], ours: &mut Value) {
    let s = get_content_summary(v, path).unwrap();
    let number = |limit: Option<u64>| limit.map_or(-1, |n| n as i64);
    let kinds: serde_json::Map<String, Value> = StorageKind::ALL
        .into_iter()
        .map(|k| {
            (k.name().to_owned(), json!([number(s.quota.by_kind[k as usize]), s.totals.usage.by_kind[k as usize]]))
        })
        .collect();
    ours["contentSummary"] = json!({
        "length": s.totals.length, "fileCount": s.totals.files, "directoryCount": s.totals.directories,
        "quota": number(s.quota.namespace), "spaceConsumed": s.totals.usage.space, "spaceQuota": number(s.quota.space),
        "snapshotLength": 0, "snapshotFileCount": 0, "snapshotDirectoryCount": 0, "snapshotSpaceConsumed": 0,
        "erasureCodingPolicy": &*s.erasure_coding_policy, "typeQuotaAndUse": kinds,
    });
}

/// Hadoop answers 2^63-1 for the namespace quota of a directory that has quotas by kind only, if it was loaded from an image, and -1 if the log was
/// replayed. We answer -1.
fn type_quotas_only(ours: &mut Value, theirs: &Value) {
    for part in ["contentSummary", "quotaUsage"] {
        if theirs[part]["quota"] == json!(i64::MAX) && ours["fileId"] != json!(16_385) {
            ours[part]["quota"] = theirs[part]["quota"].clone();
        }
    }
}

fn add_blocks(v: &View<'_>, path: &[u8], ours: &mut Value) {
    ours["closed"] = json!(is_file_closed(v, path).unwrap());
    ours["preferredBlockSize"] = json!(get_preferred_block_size(v, path).unwrap());
    let located = match get_block_locations(v, path, 0, i64::MAX) {
        Ok(answer) => answer.blocks,
        Err(Refusal::AccessControl(text)) => {
            ours["blocks"] = json!({ "message": &*text });
            return;
        }
        Err(other) => panic!("{other:?}"),
    };
    let show = |b: &crate::status::LocatedBlock| {
        let block = b.located.block;
        json!({ "id": block.id.0, "gs": block.stamp.0, "len": block.length, "offset": b.offset, "corrupt": b.located.corrupt })
    };
    ours["blocks"] = json!({
        "fileLength": located.file_length, "underConstruction": located.under_construction,
        "lastBlockComplete": located.last_complete, "last": located.last.as_ref().map(show),
        "list": located.blocks.iter().map(show).collect::<Vec<_>>(),
    });
}

/// Values of `ours` that are different in `theirs`.
fn differences(at: &str, ours: &Value, theirs: &Value, wrong: &mut Vec<String>) {
    match ours {
        Value::Object(fields) => {
            for (name, value) in fields {
                differences(&format!("{at} {name}"), value, &theirs[name], wrong);
            }
        }
        value if value != theirs => wrong.push(format!("{at}: {value} is {theirs}")),
        _ => {}
    }
}

fn compare(scenario: &str) {
    let state = replayed(scenario);
    assert_eq!(state.tree.check(&state.store), Vec::<String>::new());
    let (settings, policy) = (Settings { owner: "hdfs".into(), ..Settings::default() }, Policy::default());
    let who = caller("hdfs", &["supergroup"]);
    let now = Now { wall: TimeMs(1), monotonic: MonotonicMs(1) };
    let v = View { state: &state, settings: &settings, policy: &policy, now, caller: &who };
    let text = std::fs::read_to_string(folder(scenario).join("state.json")).unwrap();
    let mut wrong = Vec::new();
    let mut paths = 0;
    for line in text.lines() {
        let theirs: Value = serde_json::from_str(line).unwrap();
        let path = theirs["path"].as_str().unwrap();
        paths += 1;
        let ours = answers(&v, path.as_bytes(), &theirs);
        differences(path, &ours, &theirs, &mut wrong);
    }
    assert!(wrong.is_empty(), "{scenario}: {} differences\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert_eq!(paths, state.tree.inode_count());
    let counters = std::fs::read_to_string(folder(scenario).join("cluster.json")).unwrap();
    let counters: Value = serde_json::from_str(counters.lines().next().unwrap()).unwrap();
    let s = &state.sequences;
    assert_eq!(
        json!([s.inode.0, s.stamp.0, s.block.0, state.store.block_count()]),
        json!([
            counters["lastInodeId"],
            counters["generationStamp"],
            counters["lastAllocatedBlockId"],
            counters["blocksTotal"]
        ])
    );
}

#[test]
fn basic_directory_of_hadoop_3_5_0() {
    compare("basic");
}

#[test]
fn symlinks_directory_of_hadoop_3_5_0() {
    compare("symlinks");
}

#[test]
fn tokens_directory_of_hadoop_3_5_0() {
    compare("tokens");
}

#[test]
fn wide_directory_of_hadoop_3_5_0() {
    compare("wide");
}
