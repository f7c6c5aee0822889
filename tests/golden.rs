//! Name directories written by Hadoop 3.5.0: what the NameNode shows a client after loading one is what Hadoop showed, path by path; and
//! what it does not support yet it refuses by name and leaves as it was.
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hadoop_proto::hdfs::acl_entry_proto::{AclEntryScopeProto, AclEntryTypeProto};
use hadoop_proto::hdfs::hdfs_file_status_proto::FileType;
use hadoop_proto::hdfs::*;
use serde_json::{Map, Value, json};

use crate::support::namenode::{Kind, NameNode, command, run_to_end};
use crate::support::site::Site;
use crate::support::work::{WorkDir, free_port};
use crate::trials::client::{Answer, Client};
use crate::trials::datanode::DataNode;

/// A copy of a name directory with the settings of the server that wrote it.
struct Directory {
    work: WorkDir,
    site: Site,
    scenario: PathBuf,
}

impl Directory {
    /// Of `tests/golden/SCENARIO/current`.
    fn of(scenario: &str) -> Directory {
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(scenario);
        let work = WorkDir::new("golden");
        let current = work.join("name/current");
        std::fs::create_dir_all(&current).expect("folder");
        for (name, content) in crate::support::recipe::read_folder(&scenario.join("current")) {
            std::fs::write(current.join(name), content).expect("file");
        }
        let mut site = Site::new(work.join("conf"));
        site.set("fs.defaultFS", format!("hdfs://127.0.0.1:{}", free_port()));
        site.set("hadoop.tmp.dir", work.join("tmp").display());
        site.set("hadoop.user.group.static.mapping.overrides", "hdfs=supergroup;alice=staff;bob=ops,staff;carol=");
        site.set("dfs.namenode.name.dir", format!("file://{}", work.join("name").display()));
        site.set("dfs.namenode.http-address", format!("127.0.0.1:{}", free_port()));
        for (key, value) in [
            ("dfs.replication", "2"),
            ("dfs.blocksize", "4096"),
            ("dfs.namenode.fs-limits.min-block-size", "512"),
            ("dfs.namenode.safemode.extension", "0"),
            ("dfs.namenode.safemode.threshold-pct", "0"),
            ("dfs.namenode.accesstime.precision", "0"),
            ("dfs.namenode.lazypersist.file.scrub.interval.sec", "0"),
        ] {
            site.set(key, value);
        }
        match scenario.file_name().and_then(|name| name.to_str()) {
            Some("ordered") => _ = site.set("dfs.namenode.snapshot.deletion.ordered", "true"),
            Some("open-capture") => _ = site.set("dfs.namenode.snapshot.capture.openfiles", "true"),
            _ => {}
        }
        Directory { work, site, scenario }
    }

    fn current(&self) -> PathBuf {
        self.work.join("name/current")
    }

    /// Leaves the oldest image only: everything after it comes from the log.
    fn forget_newer_images(&self) {
        let names = crate::support::recipe::read_folder(&self.current()).into_keys();
        let mut images: Vec<String> =
            names.filter(|name| name.starts_with("fsimage_0") && !name.ends_with(".md5")).collect();
        images.sort();
        for image in images.drain(1..) {
            std::fs::remove_file(self.current().join(&image)).expect("image");
            std::fs::remove_file(self.current().join(image + ".md5")).expect("digest");
        }
    }

    /// Starts the NameNode under test, and connects as the superuser.
    fn serve(&self) -> (NameNode, Client) {
        let namenode = NameNode::start(Kind::under_test(), &self.site);
        (namenode, Client::connect(self.port(), "hdfs"))
    }

    fn port(&self) -> u16 {
        let port = self.site.get("fs.defaultFS").rsplit(':').next().and_then(|port| port.parse().ok());
        port.expect("hdfs://host:port")
    }

    /// Lines of one of the scenario's files.
    fn told(&self, file: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.scenario.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{file}: {e}: {line}"))).collect()
    }

    /// The state of every path, as Hadoop told it.
    fn expected(&self) -> BTreeMap<String, Value> {
        let all = self.told("state.json").into_iter().map(|of| (of["path"].as_str().expect("a path").to_owned(), of));
        all.collect()
    }
}

fn octal(permission: &FsPermissionProto) -> String {
    format!("{:o}", permission.perm & 0o7777)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value, or the exception in its place.
fn shown<T>(answer: Answer<T>, show: impl FnOnce(T) -> Value) -> Value {
    match answer {
        Ok(value) => show(value),
        Err(refusal) => {
            json!({"error": refusal.class, "message": refusal.message.lines().next().unwrap_or_default()})
        }
    }
}

fn acl_entry(entry: &AclEntryProto) -> String {
    let scope = if entry.scope() == AclEntryScopeProto::Default { "default:" } else { "" };
    let kind = match entry.r#type() {
        AclEntryTypeProto::User => "user",
        AclEntryTypeProto::Group => "group",
        AclEntryTypeProto::Mask => "mask",
        AclEntryTypeProto::Other => "other",
    };
    let bits = entry.permissions as u32;
    let symbol: String = "rwx".chars().zip([4, 2, 1]).map(|(c, bit)| if bits & bit == 0 { '-' } else { c }).collect();
    format!("{scope}{kind}:{}:{symbol}", entry.name())
}

fn xattrs(answer: GetXAttrsResponseProto, only: &str) -> Value {
    let named = |xattr: &XAttrProto| {
        let namespace = xattr.namespace().as_str_name().to_lowercase();
        (format!("{namespace}.{}", xattr.name), Value::from(hex(xattr.value())))
    };
    let all = answer.x_attrs.iter().map(named).filter(|(name, _)| name.starts_with(only));
    Value::Object(all.collect::<Map<_, _>>())
}

fn content_summary(s: ContentSummaryProto) -> Value {
    let infos = s.type_quota_infos.as_ref().map_or(&[][..], |infos| &infos.type_quota_info);
    let kinds = ["RAM_DISK", "SSD", "DISK", "ARCHIVE", "PROVIDED", "NVDIMM"].map(|kind| {
        let info = infos.iter().find(|info| info.r#type().as_str_name() == kind);
        (kind.to_owned(), info.map_or(json!([-1, 0]), |info| json!([info.quota as i64, info.consumed as i64])))
    });
    json!({
        "length": s.length, "fileCount": s.file_count, "directoryCount": s.directory_count, "quota": s.quota as i64,
        "spaceConsumed": s.space_consumed, "spaceQuota": s.space_quota as i64, "snapshotLength": s.snapshot_length(),
        "snapshotFileCount": s.snapshot_file_count(), "snapshotDirectoryCount": s.snapshot_directory_count(),
        "snapshotSpaceConsumed": s.snapshot_space_consumed(), "erasureCodingPolicy": s.erasure_coding_policy(),
        "typeQuotaAndUse": Value::Object(kinds.into_iter().collect::<Map<_, _>>()),
    })
}

fn block(block: &LocatedBlockProto) -> Value {
    let b = &block.b;
    let mut told = json!({"id": b.block_id as i64, "gs": b.generation_stamp, "len": b.num_bytes(), "offset": block.offset, "corrupt": block.corrupt});
    if block.block_indices.is_some() {
        told["striped"] = true.into();
    }
    told
}

fn blocks(located: Option<LocatedBlocksProto>) -> Value {
    let located = located.expect("locations of a file");
    json!({
        "fileLength": located.file_length, "underConstruction": located.under_construction,
        "lastBlockComplete": located.is_last_block_complete, "last": located.last_block.as_ref().map(block),
        "list": located.blocks.iter().map(block).collect::<Vec<_>>(),
    })
}

/// A cipher suite by Java's name.
fn suite(number: i32) -> &'static str {
    if number == CipherSuiteProto::AesCtrNopadding as i32 { "AES/CTR/NoPadding" } else { "?" }
}

/// A version of the encryption protocol by Java's name.
fn version(number: i32) -> &'static str {
    if number == CryptoProtocolVersionProto::EncryptionZones as i32 { "ENCRYPTION_ZONES" } else { "?" }
}

/// Name of a coding policy: of a built-in one only the number comes.
fn policy_name(policy: &ErasureCodingPolicyProto) -> String {
    let built_in =
        vocab::erasure_coding::ErasureCodingPolicy::built_in().find(|known| u32::from(known.id) == policy.id);
    built_in.map_or_else(|| policy.name().to_owned(), |known| known.name.to_string())
}

/// What a status tells.
fn of_status(path: &str, status: &HdfsFileStatusProto) -> Map<String, Value> {
    // 4, for what is striped, and 8, for directories that allow snapshots, Hadoop's client does not show
    let flags = [(1, "HAS_ACL"), (2, "HAS_CRYPT")];
    let flags: Vec<&str> = flags.iter().filter(|(bit, _)| status.flags() & bit != 0).map(|(_, name)| *name).collect();
    let kind = match status.file_type() {
        FileType::IsDir => "DIRECTORY",
        FileType::IsFile => "FILE",
        FileType::IsSymlink => "SYMLINK",
    };
    let told = json!({
        "path": path, "type": kind, "fileId": status.file_id(), "nameHex": hex(&status.path), "length": status.length,
        "replication": status.block_replication(), "blockSize": status.blocksize(),
        "modificationTime": status.modification_time as i64, "accessTime": status.access_time as i64,
        "permission": octal(&status.permission), "owner": status.owner, "group": status.group,
        "childrenNum": status.children_num(), "storagePolicyId": status.storage_policy(), "flags": flags,
        "statusEcPolicy": status.ec_policy.as_ref().map(policy_name),
    });
    match told {
        Value::Object(mut fields) => {
            if let Some(info) = &status.file_encryption_info {
                let told = json!({
                    "suite": suite(info.suite), "version": version(info.crypto_protocol_version), "edek": hex(&info.key),
                    "iv": hex(&info.iv), "keyName": info.key_name, "ezKeyVersion": info.ez_key_version_name,
                });
                fields.insert("encryption".to_owned(), told);
            }
            fields
        }
        _ => unreachable!("an object"),
    }
}

/// Everything that a client can ask about a path.
fn describe(client: &Client, path: &str, status: &HdfsFileStatusProto) -> Value {
    let mut told = of_status(path, status);
    let mut tell = |field: &str, value: Value| _ = told.insert(field.to_owned(), value);
    let src = || path.to_owned();
    if let Some(target) = &status.symlink {
        tell("symlinkHex", hex(target).into());
        let answer = client.call("getLinkTarget", &GetLinkTargetRequestProto { path: src() });
        tell("linkTarget", shown(answer, |a: GetLinkTargetResponseProto| a.target_path().into()));
        return Value::Object(told);
    }
    let answer = client.call("getAclStatus", &GetAclStatusRequestProto { src: src() });
    tell(
        "acl",
        shown(answer, |GetAclStatusResponseProto { result: acl }| {
            let entries: Vec<String> = acl.entries.iter().map(acl_entry).collect();
            json!({"owner": acl.owner, "group": acl.group, "sticky": acl.sticky, "permission": acl.permission.as_ref().map(octal), "entries": entries})
        }),
    );
    let request = GetXAttrsRequestProto { src: src(), x_attrs: Vec::new() };
    tell("xattrs", shown(client.call("getXAttrs", &request), |a| xattrs(a, "")));
    let request = GetXAttrsRequestProto { src: format!("/.reserved/raw{path}"), x_attrs: Vec::new() };
    tell("rawXattrs", shown(client.call("getXAttrs", &request), |a| xattrs(a, "raw.")));
    let answer = client.call("getStoragePolicy", &GetStoragePolicyRequestProto { path: src() });
    tell("storagePolicy", shown(answer, |a: GetStoragePolicyResponseProto| a.storage_policy.name.into()));
    let answer = client.call("getErasureCodingPolicy", &GetErasureCodingPolicyRequestProto { src: src() });
    let name = |a: GetErasureCodingPolicyResponseProto| json!(a.ec_policy.as_ref().map(policy_name));
    tell("ecPolicy", shown(answer, name));
    tell("contentSummary", shown(client.content_summary(path), content_summary));
    let answer = client.call("getEZForPath", &GetEzForPathRequestProto { src: src() });
    tell(
        "encryptionZone",
        shown(answer, |a: GetEzForPathResponseProto| {
            json!(a.zone.map(|zone| json!({"id": zone.id, "path": zone.path, "key": zone.key_name})))
        }),
    );
    if status.file_type() == FileType::IsDir {
        let answer = client.call("getQuotaUsage", &GetQuotaUsageRequestProto { path: src() });
        tell(
            "quotaUsage",
            shown(
                answer,
                |GetQuotaUsageResponseProto { usage: u }| json!({"fileAndDirectoryCount": u.file_and_directory_count, "quota": u.quota as i64, "spaceConsumed": u.space_consumed, "spaceQuota": u.space_quota as i64}),
            ),
        );
    } else {
        tell("closed", shown(client.is_file_closed(path), Value::from));
        let answer = client.call("getPreferredBlockSize", &GetPreferredBlockSizeRequestProto { filename: src() });
        tell("preferredBlockSize", shown(answer, |a: GetPreferredBlockSizeResponseProto| a.bsize.into()));
        tell("blocks", shown(client.block_locations(path), blocks));
    }
    Value::Object(told)
}

/// What the NameNode shows of every path, those of snapshots too.
fn walk(client: &Client) -> BTreeMap<String, Value> {
    let (mut all, mut open) = (BTreeMap::new(), vec!["/".to_owned()]);
    all.insert("/".to_owned(), describe(client, "/", &client.status("/")));
    while let Some(directory) = open.pop() {
        if !directory.contains("/.snapshot") {
            let past = format!("{}/.snapshot", directory.trim_end_matches('/'));
            if client.listing(&past, &[], false).is_ok_and(|listed| listed.is_some()) {
                open.push(past);
            }
        }
        let mut after = Vec::new();
        loop {
            let page = client.listing(&directory, &after, false).unwrap_or_else(|e| panic!("{directory}: {e}"));
            let page = page.unwrap_or_else(|| panic!("{directory} is gone"));
            for status in &page.partial_listing {
                let path = format!("{}/{}", directory.trim_end_matches('/'), String::from_utf8_lossy(&status.path));
                all.insert(path.clone(), describe(client, &path, status));
                if status.file_type() == FileType::IsDir {
                    open.push(path);
                }
            }
            match page.partial_listing.last() {
                Some(last) if page.remaining_entries > 0 => after = last.path.to_vec(),
                _ => break,
            }
        }
    }
    all
}

/// Fields where Java differs from itself and this NameNode gives one answer, by scenario and path; each with the test of its quirk.
const DIFFERENT: [(&str, &str, &str, &str); 5] = [
    ("snapshots", "/", "quotaUsage", "an_older_name_counts_what_a_snapshot_has_of_it"),
    ("snapshots", "/snap/a", "quotaUsage", "an_older_name_counts_what_a_snapshot_has_of_it"),
    ("ordered", "/ord/.snapshot/o1#1", "modificationTime", "a_mark_has_the_time_of_its_record"),
    ("ordered", "/ord/.snapshot/o3#3", "modificationTime", "a_mark_has_the_time_of_its_record"),
    ("ordered", "/ord/.snapshot/o4#4", "modificationTime", "a_mark_has_the_time_of_its_record"),
];

/// A quota of kinds alone comes back alone (`a_quota_of_kinds_alone_comes_back_alone`); Hadoop's comes with a huge one of names, if from an image.
fn of_the_live_server(mut expected: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    for (_, of) in expected.iter_mut().filter(|(path, _)| *path != "/") {
        for field in ["contentSummary", "quotaUsage"] {
            if let Some(quota) = of.get_mut(field).and_then(|of| of.get_mut("quota")).filter(|q| **q == i64::MAX) {
                *quota = (-1).into();
            }
        }
    }
    expected
}

/// Differences by path and field.
fn differences(expected: &BTreeMap<String, Value>, found: &BTreeMap<String, Value>) -> Vec<String> {
    let mut out = Vec::new();
    for path in expected.keys().chain(found.keys().filter(|path| !expected.contains_key(*path))) {
        let (Some(expected), Some(found)) = (expected.get(path), found.get(path)) else {
            out.push(format!("{path}: {}", if found.contains_key(path) { "extra" } else { "missing" }));
            continue;
        };
        let fields = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        let mut fields: Vec<String> = fields(expected).into_iter().chain(fields(found)).collect();
        fields.sort();
        fields.dedup();
        for field in &fields {
            let (expected, found) = (expected.get(field), found.get(field));
            if expected != found {
                out.push(format!("{path} {field}:\n  - {expected:?}\n  + {found:?}"));
            }
        }
    }
    out
}

#[track_caller]
fn compare(scenario: &str, expected: &BTreeMap<String, Value>, client: &Client) {
    let name = scenario.split(',').next().unwrap_or_default();
    let mut differences = differences(expected, &walk(client));
    differences.retain(|difference| {
        let known = |(of, path, field, _): &(&str, &str, &str, &str)| {
            *of == name && difference.starts_with(&format!("{path} {field}:"))
        };
        !DIFFERENT.iter().any(known)
    });
    let first: Vec<&String> = differences.iter().take(20).collect();
    assert!(differences.is_empty(), "{scenario}: {} differences\n{first:#?}", differences.len());
}

/// Answers that are about no path: erasure coding policies and the rolling upgrade.
fn compare_cluster(scenario: &str, directory: &Directory, client: &Client) {
    let told = directory.told("cluster.json");
    let of = |kind: &str| told.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let policies: GetErasureCodingPoliciesResponseProto =
        client.call("getErasureCodingPolicies", &GetErasureCodingPoliciesRequestProto {}).expect("policies");
    let found: Vec<_> = policies.ec_policies.iter().map(|p| (json!(p.id), json!(p.state().as_str_name()))).collect();
    let expected: Vec<_> = of("ecPolicy").iter().map(|p| (p["id"].clone(), p["state"].clone())).collect();
    assert_eq!(found, expected, "{scenario}");
    let request = RollingUpgradeRequestProto { action: RollingUpgradeActionProto::Query.into() };
    let rolling: RollingUpgradeResponseProto = client.call("rollingUpgrade", &request).expect("query");
    let found = rolling.rolling_upgrade_info.map(|info| {
        json!({"startTime": info.start_time, "finalizeTime": info.finalize_time, "createdRollbackImages": info.created_rollback_images})
    });
    assert_eq!(json!(found), of("rollingUpgrade")[0]["info"], "{scenario}");
    compare_caches(scenario, client, (&of("cachePool"), &of("cacheDirective")));
    compare_zones(scenario, client, (&of("encryptionZone"), &of("reencryption")));
}

/// Encryption zones and their re-encryption.
fn compare_zones(scenario: &str, client: &Client, (zones, reencryption): (&[&Value], &[&Value])) {
    let request = ListEncryptionZonesRequestProto { id: 0 };
    let listed: ListEncryptionZonesResponseProto = client.call("listEncryptionZones", &request).expect("zones");
    let told = |zone: &EncryptionZoneProto| {
        json!({
            "kind": "encryptionZone", "id": zone.id, "path": zone.path, "key": zone.key_name,
            "suite": suite(zone.suite), "version": version(zone.crypto_protocol_version),
        })
    };
    assert_eq!(json!(listed.zones.iter().map(told).collect::<Vec<_>>()), json!(zones), "{scenario}");
    let request = ListReencryptionStatusRequestProto { id: 0 };
    let listed: ListReencryptionStatusResponseProto = client.call("listReencryptionStatus", &request).expect("status");
    let state = |number| match ReencryptionStateProto::try_from(number) {
        Ok(ReencryptionStateProto::Completed) => "Completed",
        other => panic!("{other:?}"),
    };
    let told = |of: &ZoneReencryptionStatusProto| {
        json!({
            "kind": "reencryption", "zone": of.path, "state": state(of.state), "keyVersion": of.ez_key_version_name,
            "submissionTime": of.submission_time, "completionTime": of.completion_time(), "filesReencrypted": of.num_reencrypted,
            "failures": of.num_failures, "canceled": of.canceled,
        })
    };
    assert_eq!(json!(listed.statuses.iter().map(told).collect::<Vec<_>>()), json!(reencryption), "{scenario}");
}

/// Cache pools and directives. The default replication of pools is left out: Java forgets it when it saves.
fn compare_caches(scenario: &str, client: &Client, (pools, directives): (&[&Value], &[&Value])) {
    let request = ListCachePoolsRequestProto { prev_pool_name: String::new() };
    let listed: ListCachePoolsResponseProto = client.call("listCachePools", &request).expect("pools");
    let found: Vec<_> = listed.entries.into_iter().map(|entry| entry.info).collect();
    assert_eq!(found.len(), pools.len(), "{scenario}: {found:#?}");
    for (info, expected) in found.iter().zip(pools) {
        let found = json!({
            "name": info.pool_name(), "owner": info.owner_name(), "group": info.group_name(), "mode": format!("{:o}", info.mode()),
            "limit": info.limit(), "maxRelativeExpiryMs": info.max_relative_expiry(),
        });
        found
            .as_object()
            .expect("an object")
            .iter()
            .for_each(|(key, value)| assert_eq!(*value, expected[key], "{scenario}: {info:?}"));
    }
    let request = ListCacheDirectivesRequestProto { prev_id: 0, filter: CacheDirectiveInfoProto::default() };
    let listed: ListCacheDirectivesResponseProto = client.call("listCacheDirectives", &request).expect("directives");
    assert!(!listed.has_more, "{scenario}");
    let found: Vec<_> = listed.elements.into_iter().map(|entry| entry.info).collect();
    assert_eq!(found.len(), directives.len(), "{scenario}: {found:#?}");
    for (info, expected) in found.iter().zip(directives) {
        let expiry = info.expiration.expect("all have an end").millis;
        let found = json!({
            "id": info.id(), "path": info.path(), "replication": info.replication(), "pool": info.pool(), "expirationMs": expiry,
        });
        found
            .as_object()
            .expect("an object")
            .iter()
            .for_each(|(key, value)| assert_eq!(*value, expected[key], "{scenario}: {info:?}"));
    }
}

/// From the newest image and what follows it, and again after a save; then the same from the log alone.
fn every_way(scenario: &str) {
    // Hadoop cannot load the newest image of the one: what it showed comes from the log
    let ways = if scenario == "symlinks-snapshot" { &[true][..] } else { &[false, true] };
    for log_only in ways.iter().copied() {
        let directory = Directory::of(&format!("fsimage/3.5.0/{scenario}"));
        let expected = of_the_live_server(directory.expected());
        if log_only {
            directory.forget_newer_images();
        }
        let (namenode, client) = directory.serve();
        compare(scenario, &expected, &client);
        compare_cluster(scenario, &directory, &client);
        client.save_namespace();
        namenode.stop();
        let (namenode, client) = directory.serve();
        compare(&format!("{scenario}, saved and loaded again"), &expected, &client);
        namenode.stop();
    }
}

#[test]
fn directories_show_what_hadoop_showed() {
    for scenario in ["empty", "basic", "symlinks", "tokens", "rolling-finalized", "cache", "ez", "compressed", "small"]
    {
        every_way(scenario);
    }
}

#[test]
fn directories_with_a_past_show_what_hadoop_showed() {
    for scenario in ["snapshots", "root-snapshot", "symlinks-snapshot", "ordered"] {
        every_way(scenario);
    }
}

#[test]
fn directories_with_open_and_striped_files_show_what_hadoop_showed() {
    for scenario in ["ec", "open", "open-capture", "in-progress"] {
        every_way(scenario);
    }
}

#[test]
fn a_wide_directory_shows_what_hadoop_showed() {
    let directory = Directory::of("fsimage/3.5.0/wide");
    let (namenode, client) = directory.serve();
    compare("wide", &directory.expected(), &client);
    namenode.stop();
}

#[test]
fn a_directory_in_the_middle_of_a_rolling_upgrade_shows_what_hadoop_showed() {
    for log_only in [true, false] {
        let directory = Directory::of("fsimage/3.5.0/rolling");
        if log_only {
            directory.forget_newer_images();
        }
        let (namenode, client) = directory.serve();
        compare("rolling", &directory.expected(), &client);
        compare_cluster("rolling", &directory, &client);
        namenode.stop();
    }
}

#[test]
fn datanodes_keep_what_they_delete_while_a_rolling_upgrade_runs() {
    let directory = Directory::of("fsimage/3.5.0/rolling");
    let (namenode, _) = directory.serve();
    let mut datanode = DataNode::start(directory.port(), 1);
    let told = datanode.heartbeat().expect("heartbeat");
    let status = told.rolling_upgrade_status_v2.expect("DataNodes are told that a rolling upgrade runs");
    assert_eq!((&status.block_pool_id, status.finalized()), (&datanode.pool, false));
    assert_eq!(told.rolling_upgrade_status, Some(status), "old DataNodes look here");
    namenode.stop();
}

#[test]
fn datanodes_are_not_told_to_give_up_what_was_before_an_upgrade() {
    // `previous` stays until the upgrade is finalized
    let directory = Directory::of("fsimage/3.5.0/empty");
    let previous = directory.work.join("name/previous");
    std::fs::create_dir_all(&previous).expect("folder");
    std::fs::copy(directory.current().join("VERSION"), previous.join("VERSION")).expect("VERSION");
    let (namenode, client) = directory.serve();
    let status: UpgradeStatusResponseProto =
        client.call("upgradeStatus", &UpgradeStatusRequestProto {}).expect("status");
    assert!(!status.upgrade_finalized);
    let mut datanode = DataNode::new(directory.port(), 1);
    datanode.register().expect("registered");
    datanode.heartbeat().expect("heartbeat");
    assert_eq!(datanode.report().expect("report").cmd, None);
    namenode.stop();
}

/// What is told today of all that the older release told too. Whether a block without replicas is corrupt it told otherwise.
fn as_then(found: &Value, expected: &Value) -> Value {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let known = expected.iter().filter(|(field, _)| *field != "corrupt");
            let of = |(field, then): (&String, &Value)| Some((field.clone(), as_then(found.get(field)?, then)));
            Value::Object(known.filter_map(of).collect())
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            found.iter().zip(expected).map(|(found, expected)| as_then(found, expected)).collect()
        }
        _ => found.clone(),
    }
}

/// `-rollback`, confirmed.
fn roll_back(site: &Site) -> std::process::Output {
    let mut command = command(Kind::under_test(), site);
    command.arg("-rollback").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a process");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"Y\n").expect("read");
    let output = child.wait_with_output().expect("own child");
    drop(input);
    output
}

#[test]
fn directories_of_older_releases_are_upgraded() {
    for (release, layout) in [("2.7.3", -63), ("2.10.2", -63), ("3.3.6", -66)] {
        let directory = Directory::of(&format!("fsimage/{release}/symlinks"));
        let before = tree(&directory.current());
        let refused = run_to_end(Kind::under_test(), &directory.site, &[]);
        assert_eq!(refused.status.code(), Some(1));
        let mut expected = directory.expected();
        expected.values_mut().for_each(|told| *told = as_then(told, told));
        let previous = directory.work.join("name/previous");
        for options in [&["-upgrade"][..], &[]] {
            let namenode = NameNode::launch(Kind::under_test(), &directory.site, options);
            let active = || namenode.jmx("NameNodeStatus", "State").is_some_and(|state| state == "active");
            crate::support::work::wait_until(std::time::Duration::from_secs(30), "it was active", active);
            let client = Client::connect(directory.port(), "hdfs");
            let mut found = walk(&client);
            found.iter_mut().for_each(|(path, told)| *told = as_then(told, &expected[path]));
            let differences = differences(&expected, &found);
            assert!(differences.is_empty(), "{release}: {differences:#?}");
            let kept: BTreeMap<PathBuf, Option<Vec<u8>>> = tree(&previous)
                .into_iter()
                .map(|(path, content)| (directory.current().join(path.file_name().expect("a name")), content))
                .collect();
            assert_eq!(kept, before, "{release}");
            let status: UpgradeStatusResponseProto =
                client.call("upgradeStatus", &UpgradeStatusRequestProto {}).expect("status");
            assert!(!status.upgrade_finalized, "{release}");
            if options.is_empty() {
                let _: FinalizeUpgradeResponseProto =
                    client.call("finalizeUpgrade", &FinalizeUpgradeRequestProto {}).expect("finalized");
                assert!(!previous.exists(), "{release}");
                let mut datanode = DataNode::new(directory.port(), 1);
                datanode.register().expect("registered");
                datanode.heartbeat().expect("heartbeat");
                let told = datanode.report().expect("report").cmd.expect("a command");
                assert!(told.finalize_cmd.is_some(), "{release}: {told:?}");
            }
            namenode.stop();
            if !options.is_empty() {
                // that is for the older release to do
                let refused = roll_back(&directory.site);
                let text = format!("Cannot rollback to storage version {layout} using this version of the NameNode");
                let told = String::from_utf8_lossy(&refused.stderr) + String::from_utf8_lossy(&refused.stdout);
                assert!(refused.status.code() == Some(1) && told.contains(&text), "{release}: {told}");
            }
        }
    }
}

/// Files with their content, and folders, below a folder.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.extend(tree(&path));
            all.insert(path, None);
        } else if path.file_name().is_some_and(|name| name != "in_use.lock") {
            let content = std::fs::read(&path).expect("file");
            all.insert(path, Some(content));
        }
    }
    all
}
