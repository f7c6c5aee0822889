//! Rolling upgrades: begun, told of, finalized, rolled back; and directories of older releases in the middle of one. The expectations hold for the
//! Java NameNode too, but where it is said.

use super::{Case, Ended, files};
use crate::support::hadoop::SUPERUSER;
use crate::support::namenode::{Kind, NameNode};
use crate::support::work::wait_until;
use crate::trials::client::{Answer, Client, refused};
use crate::trials::datanode::DataNode;
use hadoop_proto::hdfs::*;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

impl Client {
    fn rolling(&self, action: RollingUpgradeActionProto) -> Answer<Option<RollingUpgradeInfoProto>> {
        let request = RollingUpgradeRequestProto { action: action as i32 };
        self.call::<RollingUpgradeResponseProto>("rollingUpgrade", &request).map(|told| told.rolling_upgrade_info)
    }
    fn query(&self) -> Option<RollingUpgradeInfoProto> {
        self.rolling(RollingUpgradeActionProto::Query).expect("an answer")
    }
    fn prepare(&self) -> RollingUpgradeInfoProto {
        self.safe_mode(SafeModeActionProto::SafemodeEnter).expect("safe mode");
        self.rolling(RollingUpgradeActionProto::Start).expect("an answer").expect("one that runs")
    }
}

impl Case {
    fn start(&self, options: &[&str]) -> (NameNode, Client) {
        let namenode = NameNode::launch(Kind::under_test(), &self.site, options);
        let active = || namenode.jmx("NameNodeStatus", "State").is_some_and(|state| state == "active");
        wait_until(LIMIT, "it was active", active);
        let port = self.site.get("fs.defaultFS").rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
        (namenode, Client::connect(port, SUPERUSER))
    }
    /// Runs to the end, which must be a refusal.
    fn fails(&self, options: &[&str], text: &str) {
        let ended: Ended = self.run(options);
        ended.expect(1, text);
    }
    fn has(&self, name: &str) -> bool {
        self.current(name).exists()
    }
    fn layout(&self) -> String {
        let text = std::fs::read_to_string(self.current("VERSION")).expect("VERSION");
        text.lines().find_map(|line| line.strip_prefix("layoutVersion=")).expect("a layout").to_owned()
    }
}

fn image(kind: &str, txid: u64) -> [String; 2] {
    let name = format!("fsimage_{kind}{txid:019}");
    [name.clone(), format!("{name}.md5")]
}

#[test]
fn a_rolling_upgrade_is_begun_in_safe_mode_told_of_and_finalized() {
    let case = Case::formatted("rolling-finalize");
    let (namenode, client) = case.start(&[]);
    assert_eq!(client.query(), None);
    assert_eq!(client.rolling(RollingUpgradeActionProto::Finalize), Ok(None));
    let text = "Safe mode should be turned ON in order to create namespace image.";
    refused(client.rolling(RollingUpgradeActionProto::Start), "java.io.IOException", text);
    assert_eq!(namenode.jmx("NameNodeInfo", "RollingUpgradeStatus"), Some(serde_json::Value::Null));

    let begun = client.prepare();
    // safe mode has ended, and what it was begun with is the second record behind its image
    assert!(!client.safe_mode(SafeModeActionProto::SafemodeGet).expect("safe mode"));
    assert!(image("rollback_", 2).iter().all(|name| case.has(name)));
    assert_eq!((begun.status.finalized, begun.finalize_time, begun.created_rollback_images), (Some(false), 0, true));
    assert_eq!((client.query().as_ref(), &client.prepare()), (Some(&begun), &begun), "it is begun once");
    let told = namenode.jmx("NameNodeInfo", "RollingUpgradeStatus").expect("an attribute");
    let expected = serde_json::json!({
        "blockPoolId": begun.status.block_pool_id, "createdRollbackImages": true, "finalizeTime": 0, "startTime": begun.start_time
    });
    assert_eq!(told, expected);
    refused(
        client.rolling(RollingUpgradeActionProto::Finalize),
        "SafeModeException",
        "Failed to finalize rolling upgrade",
    );
    // a saved image is no end of it
    client.save_namespace();
    client.safe_mode(SafeModeActionProto::SafemodeLeave).expect("safe mode");
    assert!(image("rollback_", 2).iter().all(|name| case.has(name)));
    assert!(client.mkdirs("/kept").expect("mkdirs"));
    namenode.stop();

    let before = files(&case.name());
    case.fails(&["-upgrade"], "Failed to upgrade namenode since a rolling upgrade is already in progress.");
    if Kind::under_test() == Kind::Ironroot {
        assert_eq!(files(&case.name()), before);
    }

    let (namenode, client) = case.start(&[]);
    assert_eq!(client.query(), Some(begun.clone()), "a restart goes on with it");
    let ended = client.rolling(RollingUpgradeActionProto::Finalize).expect("an answer").expect("it was running");
    assert_eq!((ended.start_time, ended.status.finalized), (begun.start_time, Some(true)));
    assert!(ended.finalize_time > begun.start_time);
    assert!(image("", 2).iter().all(|name| case.has(name)) && !case.has(&image("rollback_", 2)[0]));
    assert_eq!(client.query(), None);
    namenode.stop();
    case.fails(&["-rollingUpgrade", "rollback"], "No valid image files found");
    let (namenode, client) = case.start(&[]);
    assert!(client.exists("/kept") && client.query().is_none());
    namenode.stop();
}

#[test]
fn a_rollback_forgets_what_came_after_the_beginning() {
    let case = Case::formatted("rolling-rollback");
    let (namenode, client) = case.start(&[]);
    assert!(client.mkdirs("/before").expect("mkdirs"));
    client.prepare();
    assert!(client.mkdirs("/after").expect("mkdirs"));
    client.safe_mode(SafeModeActionProto::SafemodeEnter).expect("safe mode");
    client.save_namespace();
    client.safe_mode(SafeModeActionProto::SafemodeLeave).expect("safe mode");
    assert!(client.mkdirs("/later").expect("mkdirs"));
    namenode.stop();

    let (namenode, client) = case.start(&["-rollingUpgrade", "rollback"]);
    assert_eq!((client.names("/"), client.query()), (vec!["before".to_owned()], None));
    assert!(client.mkdirs("/anew").expect("mkdirs"));
    // segments from then on are put aside, images deleted, and the log goes on where the upgrade began
    assert!(image("", 3).iter().all(|name| case.has(name)) && !case.has(&image("rollback_", 3)[0]));
    let names: Vec<String> = std::fs::read_dir(case.name().join("current"))
        .expect("folder")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("text"))
        .collect();
    assert!(names.iter().any(|name| name.starts_with("edits_0000000000000000004-") && name.ends_with(".trash")));
    assert!(names.contains(&"edits_inprogress_0000000000000000004".to_owned()));
    assert_eq!(names.iter().filter(|name| name.starts_with("fsimage") && !name.ends_with(".md5")).count(), 2);
    namenode.stop();
    let (namenode, client) = case.start(&[]);
    assert_eq!(client.names("/"), ["anew", "before"]);
    namenode.stop();
}

/// After a crash in the middle of a rollback: a part of its renames was done.
#[test]
fn a_rollback_that_was_cut_short_is_done_again() {
    if Kind::under_test() == Kind::Java {
        return crate::support::skip("Java cannot");
    }
    let case = Case::formatted("rolling-cut-short");
    let (namenode, client) = case.start(&[]);
    client.prepare();
    assert!(client.mkdirs("/after").expect("mkdirs"));
    namenode.stop();
    let segment = std::fs::read_dir(case.name().join("current"))
        .expect("folder")
        .map(|entry| entry.expect("entry").path())
        .find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("edits_0000000000000000003-"))
        })
        .expect("the segment behind the image");
    let mut aside = segment.clone().into_os_string();
    aside.push(".trash");
    std::fs::rename(&segment, aside).expect("renamed");
    let (namenode, client) = case.start(&["-rollingUpgrade", "rollback"]);
    assert!(client.names("/").is_empty());
    namenode.stop();
}

/// The log does not reach to where the upgrade began, or the directories are older than this software.
#[test]
fn rollbacks_that_lead_nowhere_change_nothing() {
    let case = Case::formatted("rolling-nowhere");
    case.fails(&["-rollingUpgrade", "rollback"], "No valid image files found");
    let (namenode, client) = case.start(&[]);
    client.prepare();
    namenode.stop();
    let version = std::fs::read_to_string(case.current("VERSION")).expect("VERSION");
    std::fs::write(case.current("VERSION"), version.replace("-67", "-66")).expect("VERSION");
    case.refused(&["-rollingUpgrade", "rollback"], 1, "Reported: -66. Expecting = -67.");
    std::fs::write(case.current("VERSION"), &version).expect("VERSION");
    for entry in std::fs::read_dir(case.name().join("current")).expect("folder") {
        let path = entry.expect("entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("edits_0000000000000000003")) {
            std::fs::remove_file(path).expect("removed");
        }
    }
    case.refused(&["-rollingUpgrade", "rollback"], 1, "Gap in transactions.");
}

#[test]
fn kinds_of_rolling_upgrade_are_told_apart() {
    let case = Case::formatted("rolling-kinds");
    case.refused(&["-rollingUpgrade", "downgrade"], 1, "The \"downgrade\" option is no longer supported");
    case.refused(&["-rollingUpgrade", "x"], 1, "Failed to convert \"x\" to RollingUpgradeStartupOption");
    case.refused(&["-rollingUpgrade"], 0, "Must specify a rolling upgrade startup option <rollback|started>");
}

/// A directory in which a rolling upgrade from another release runs: that release's layout is written until it is finalized.
fn older(release: &str, layout: &str) {
    let case = Case::new("rolling-older");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/fsimage").join(release).join("rolling/current");
    std::fs::create_dir_all(case.name().join("current")).expect("folder");
    for (name, content) in crate::support::recipe::read_folder(&from) {
        std::fs::write(case.current(&name), content).expect("file");
    }
    case.fails(&[], &format!("File system image contains an old layout version {layout}."));
    let (namenode, client) = case.start(&["-rollingUpgrade", "started"]);
    let running = client.query().expect("it runs");
    assert!(running.created_rollback_images);
    client.safe_mode(SafeModeActionProto::SafemodeLeave).expect("safe mode");
    assert!(client.mkdirs("/more").expect("mkdirs"));
    client.touch("/more/file").expect("a file");
    let allow = AllowSnapshotRequestProto { snapshot_root: "/more".into() };
    client.call::<AllowSnapshotResponseProto>("allowSnapshot", &allow).expect("snapshots");
    let snapshot = CreateSnapshotRequestProto { snapshot_root: "/more".into(), snapshot_name: Some("s".into()) };
    client.call::<CreateSnapshotResponseProto>("createSnapshot", &snapshot).expect("a snapshot");
    let modified = client.status("/more").modification_time;
    // what the layout cannot say is refused
    let nvdimm = SetStoragePolicyRequestProto { src: "/more".into(), policy_name: "all_nvdimm".into() };
    let text = format!(
        "Feature NVDIMM_SUPPORT unsupported at NameNode layout version {layout}.  If a rolling upgrade is in progress, then it must be finalized before using this feature."
    );
    refused(
        client.call::<SetStoragePolicyResponseProto>("setStoragePolicy", &nvdimm),
        "HadoopIllegalArgumentException",
        &text,
    );
    let coded = GetErasureCodingPolicyRequestProto { src: "/more".into() };
    let coded = |client: &Client| client.call::<GetErasureCodingPolicyResponseProto>("getErasureCodingPolicy", &coded);
    match layout {
        "-66" => assert!(coded(&client).is_ok()),
        _ => refused(coded(&client), "UnsupportedActionException", "getErasureCodingPolicy not supported."),
    }
    client.safe_mode(SafeModeActionProto::SafemodeEnter).expect("safe mode");
    client.save_namespace();
    client.safe_mode(SafeModeActionProto::SafemodeLeave).expect("safe mode");
    assert_eq!(case.layout(), layout, "an image saved meanwhile does not raise it");
    namenode.stop();
    let number: i32 = layout.parse().expect("a number");
    let written = |name: &str| {
        let bytes = std::fs::read(case.current(name)).expect("file");
        i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let segments = || {
        let names =
            std::fs::read_dir(case.name().join("current")).expect("folder").map(|e| e.expect("entry").file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| name.starts_with("edits_"));
        names.sort();
        names
    };
    assert!(segments().iter().all(|name| written(name) == number), "{:?}", segments());

    let (namenode, client) = case.start(&["-rollingUpgrade", "started"]);
    assert!(client.exists("/more/file") && client.exists("/more/.snapshot/s/file"));
    assert_eq!(client.status("/more").modification_time, modified, "as after a replay");
    client.safe_mode(SafeModeActionProto::SafemodeLeave).expect("safe mode");
    client.rolling(RollingUpgradeActionProto::Finalize).expect("an answer").expect("it was running");
    assert_eq!(case.layout(), "-67");
    assert!(coded(&client).is_ok());
    client.call::<SetStoragePolicyResponseProto>("setStoragePolicy", &nvdimm).expect("a policy");
    namenode.stop();
    assert_eq!(written(segments().last().expect("a segment")), -67);
    let (namenode, client) = case.start(&[]);
    assert!(client.exists("/more/file"));
    namenode.stop();
}

#[test]
fn directories_of_2_7_are_written_in_their_layout_until_the_end() {
    older("2.7.3", "-63");
}
#[test]
fn directories_of_2_10_are_written_in_their_layout_until_the_end() {
    older("2.10.2", "-63");
}
#[test]
fn directories_of_3_3_are_written_in_their_layout_until_the_end() {
    older("3.3.6", "-66");
}

#[test]
fn datanodes_are_told_of_a_rolling_upgrade() {
    let case = Case::formatted("rolling-datanodes");
    let (namenode, client) = case.start(&[]);
    let port = case.site.get("fs.defaultFS").rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
    let mut node = DataNode::start(port, 1);
    let mut told = || {
        let answer = node.heartbeat().expect("an answer");
        (answer.rolling_upgrade_status.map(|s| s.finalized()), answer.rolling_upgrade_status_v2.map(|s| s.finalized()))
    };
    assert_eq!(told(), (None, None));
    client.prepare();
    assert_eq!(told(), (Some(false), Some(false)));
    client.rolling(RollingUpgradeActionProto::Finalize).expect("an answer").expect("it was running");
    assert_eq!(told(), (None, Some(true)), "what older ones do not know is left out");
    namenode.stop();
}
