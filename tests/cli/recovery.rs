//! `-recover`, `-importCheckpoint`, and options of start that need another NameNode.

use super::{Case, files};
use crate::support::hadoop::SUPERUSER;
use crate::support::namenode::{Kind, NameNode};
use crate::support::work::wait_until;
use crate::trials::client::Client;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

impl Case {
    /// Makes directories `/0` to `/count`, and stops.
    fn filled(&self, count: usize) {
        let (namenode, client) = self.serving(&[]);
        (0..count).for_each(|n| assert!(client.mkdirs(&format!("/{n}")).expect("mkdirs")));
        namenode.stop();
    }
    fn serving(&self, options: &[&str]) -> (NameNode, Client) {
        let namenode = NameNode::launch(Kind::under_test(), &self.site, options);
        let active = || namenode.jmx("NameNodeStatus", "State").is_some_and(|state| state == "active");
        wait_until(LIMIT, "it was active", active);
        let port = self.site.get("fs.defaultFS").rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
        (namenode, Client::connect(port, SUPERUSER))
    }
    /// The first segment of edits.
    fn segment(&self) -> PathBuf {
        let entries =
            std::fs::read_dir(self.name().join("current")).expect("folder").map(|entry| entry.expect("entry").path());
        let is_edits =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("edits_0"));
        entries.filter(is_edits).min().expect("a segment")
    }
    /// Flips a byte in the middle of the segment.
    fn damage(&self) {
        let (path, mut bytes) = (self.segment(), std::fs::read(self.segment()).expect("file"));
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x5a;
        std::fs::write(path, bytes).expect("file");
    }
}

#[test]
fn a_damaged_log_is_recovered_when_that_is_confirmed() {
    let case = Case::formatted("recover");
    case.filled(20);
    case.damage();
    case.refused(&[], 1, "Error replaying edit log at offset");
    let before = files(&case.name());
    let aborted = case.run_with(&["-recover", "-force"], "n\n");
    aborted.expect(0, "Recovery aborted at user request.");
    assert!(aborted.stderr.contains("Metadata recovery mode often permanently deletes"), "{}", aborted.stderr);
    let quit = case.run_with(&["-recover"], "Y\nwhat\nq\n");
    quit.expect(0, "I'm sorry, I cannot understand your response.");
    assert_eq!(files(&case.name()), before);

    let answered = case.run_with(&["-recover"], "Y\nc\na\n");
    answered.expect(0, "Enter 'c' to continue, skipping the bad section in the log");
    assert!(answered.stderr.contains("We failed to read txId"), "{}", answered.stderr);
    assert!(answered.stderr.contains("There appears to be a gap in the edit log."), "{}", answered.stderr);
    let (namenode, client) = case.serving(&[]);
    assert_eq!(client.names("/").len(), 19, "all but what was damaged");
    assert!(client.mkdirs("/new").expect("mkdirs"));
    namenode.stop();
    let (namenode, client) = case.serving(&[]);
    assert_eq!(client.names("/").len(), 20);
    namenode.stop();
}

#[test]
fn what_comes_after_the_damage_is_left_out_when_that_is_asked_for() {
    let case = Case::formatted("recover-stop");
    case.filled(20);
    // segments after it count as later, too
    case.filled(30);
    case.damage();
    case.run_with(&["-recover"], "Y\ns\n").expect(0, "abandoning any later edits");
    let (namenode, client) = case.serving(&[]);
    let count = client.names("/").len();
    assert!((5..15).contains(&count), "{count}");
    assert!(client.mkdirs("/new").expect("mkdirs"));
    namenode.stop();
}

#[test]
fn a_whole_log_is_recovered_without_a_question() {
    let case = Case::formatted("recover-whole");
    case.filled(3);
    let recovered = case.run_with(&["-recover"], "y\n");
    recovered.expect(0, "RECOVERY COMPLETE");
    assert!(!recovered.stderr.contains("Enter 'c'"), "{}", recovered.stderr);
    let (namenode, client) = case.serving(&[]);
    assert_eq!(client.names("/").len(), 3);
    namenode.stop();
    case.refused(&["-recover", "foo"], 1, "Error parsing recovery options: can't understand option \"foo\"");
}

#[test]
fn a_checkpoint_is_imported_into_empty_directories() {
    let mut case = Case::formatted("import");
    case.filled(4);
    case.site.set("dfs.namenode.checkpoint.dir", case.uri("checkpoint"));
    let text = "Cannot import image from a checkpoint.  NameNode already contains an image in ";
    case.refused(&["-importCheckpoint"], 1, text);

    std::fs::rename(case.name(), case.work.join("checkpoint")).expect("renamed");
    case.refused(&["-importCheckpoint"], 1, "storage directory does not exist or is not accessible.");
    std::fs::create_dir(case.name()).expect("folder");
    let identity = |folder: &str| {
        let text = std::fs::read_to_string(case.work.join(folder).join("current/VERSION")).expect("VERSION");
        let mut lines: Vec<String> = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let (namenode, client) = case.serving(&["-importCheckpoint"]);
    assert_eq!(client.names("/").len(), 4);
    assert_eq!(identity("name"), identity("checkpoint"));
    assert!(client.mkdirs("/new").expect("mkdirs"));
    namenode.stop();
    let (namenode, client) = case.serving(&[]);
    assert_eq!(client.names("/").len(), 5);
    namenode.stop();
}

#[test]
fn without_a_checkpoint_nothing_is_imported() {
    let mut case = Case::new("import-nothing");
    std::fs::create_dir(case.name()).expect("folder");
    case.site.set("dfs.namenode.checkpoint.dir", case.uri("checkpoint"));
    case.refused(&["-importCheckpoint"], 1, "storage directory does not exist or is not accessible.");
}

#[test]
fn options_for_several_name_nodes_are_answered() {
    let case = Case::formatted("several");
    case.refused(&["-bootstrapStandby"], 1, "HA is not enabled for this namenode.");
    case.refused(&["-bootstrapStandby", "-foo"], 1, "Illegal argument: -foo");
    case.refused(
        &["-initializeSharedEdits"],
        0,
        "No shared edits directory configured for namespace null namenode null",
    );
}
