//! Purpose: the command line as `hdfs namenode` has it: exit codes, messages, and directories that a refusal leaves as they were.
//! Called by: tests/main.rs.
//! Calls: the binary under test, as a process.
//! Never: needs Java, unless `IRONROOT_PEERS_NAMENODE=java` asks whether the expectations are right.
//! Invariants: every refusal is checked for its exit code, its text and unchanged files.

mod disk;
mod embedded;
mod format;
mod large;
mod older_image;
mod recovery;
mod restart;
mod rolling;
mod start;
mod upgrade;

use crate::support::namenode::{Kind, command};
use crate::support::site::Site;
use crate::support::work::{WorkDir, free_port};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A work folder with a configuration of one name directory, not formatted yet.
struct Case {
    work: WorkDir,
    site: Site,
}

/// How a process ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Case {
    fn new(name: &str) -> Case {
        let work = WorkDir::new(name);
        let mut site = Site::new(work.join("conf"));
        site.set("fs.defaultFS", format!("hdfs://127.0.0.1:{}", free_port()));
        site.set("dfs.namenode.http-address", format!("127.0.0.1:{}", free_port()));
        let case = Case { work, site };
        let directories = case.uri("name");
        Case { site: case.site.clone().with("dfs.namenode.name.dir", &directories), ..case }
    }

    /// The same with a formatted name directory.
    fn formatted(name: &str) -> Case {
        let case = Case::new(name);
        case.run(&["-format", "-nonInteractive"]).expect(0, "successfully formatted");
        case
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.work.join(name).display())
    }

    fn name(&self) -> PathBuf {
        self.work.join("name")
    }

    fn current(&self, file: &str) -> PathBuf {
        self.name().join("current").join(file)
    }

    fn run(&self, options: &[&str]) -> Ended {
        self.run_with(options, "")
    }

    /// Runs to the end with this standard input.
    fn run_with(&self, options: &[&str], input: &str) -> Ended {
        self.site.write();
        let mut command = command(Kind::under_test(), &self.site);
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut stdin = child.stdin.take().expect("piped");
        // it may end without reading
        _ = stdin.write_all(input.as_bytes());
        // Java's own start is supervised by the end of its input, which is therefore left open
        let keep = (Kind::under_test() == Kind::Java).then_some(stdin);
        let output = child.wait_with_output().expect("own child");
        drop(keep);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// A run that must end with `code` and say `text`, and change nothing below the work folder but the configuration.
    fn refused(&self, options: &[&str], code: i32, text: &str) {
        let before = files(self.work.path());
        self.run(options).expect(code, text);
        assert_eq!(files(self.work.path()), before, "{options:?} changed something");
    }
}

impl Site {
    fn with(mut self, key: &str, value: &str) -> Site {
        self.set(key, value);
        self
    }
}

impl Ended {
    #[track_caller]
    fn expect(&self, code: i32, text: &str) {
        assert_eq!(self.code, Some(code), "exit code\n{}", self.stderr);
        assert!(self.stderr.contains(text) || self.stdout.contains(text), "{text:?} is not in\n{}", self.stderr);
    }
}

/// All files and folders below a folder with their contents, without configuration folders.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("folder").map(|entry| entry.expect("entry").path()) {
            if entry.ends_with("conf") {
                continue;
            }
            if entry.is_dir() {
                folders.push(entry.clone());
                found.insert(entry, Vec::new());
            } else {
                found.insert(entry.clone(), std::fs::read(&entry).expect("file"));
            }
        }
    }
    found
}
