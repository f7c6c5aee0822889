//! Whole conversations recorded with the Java NameNode, which every answer of the one under test must equal.
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use regex::{Captures, Regex};

use super::conversation::Conversation;
use super::fixture::Fixture;
use crate::support::namenode::Kind;

/// `tests/golden/rpc/FILE`.
pub fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rpc").join(file)
}

/// Whether this run writes the recorded answers anew.
pub fn recording() -> bool {
    let recording = std::env::var_os("IRONROOT_RECORD").is_some();
    assert!(!recording || Kind::under_test() == Kind::Java, "what is right is recorded with the Java NameNode");
    recording
}

/// Names of the script in one recording and what the other one calls them: numbers follow the order of appearance, so a
/// single missing answer would shift all that come later.
#[derive(Default)]
struct Aliases {
    forth: HashMap<String, String>,
    back: HashMap<String, String>,
    left: Parts,
    right: Parts,
}

/// Parts of answers that are spelt out only once, by their numbers.
#[derive(Default)]
struct Parts(HashMap<String, String>);

impl Parts {
    /// The line with all parts spelt out.
    fn expand(&mut self, line: &str) -> String {
        static FIRST: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r" =(\d+) (\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})").expect("a pattern"));
        static AGAIN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r": =(\d+)\b").expect("a pattern"));
        for found in FIRST.captures_iter(line) {
            self.0.insert(found[1].to_owned(), format!(" {}", &found[2]));
        }
        let line = FIRST.replace_all(line, " $2");
        AGAIN.replace_all(&line, |found: &Captures<'_>| self.0.get(&found[1]).cloned().unwrap_or_default()).into_owned()
    }
}

impl Aliases {
    /// Whether the lines say the same; names that meet for the first time are paired.
    fn same(&mut self, expected: &str, actual: &str) -> bool {
        static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[FBG]\d+\b").expect("a pattern"));
        let (expected, actual) = (&self.left.expand(expected), &self.right.expand(actual));
        if NAME.replace_all(expected, "*") != NAME.replace_all(actual, "*") {
            return false;
        }
        let mut same = true;
        for (left, right) in NAME.find_iter(expected).zip(NAME.find_iter(actual)) {
            let (left, right) = (left.as_str().to_owned(), right.as_str().to_owned());
            let known = self.forth.insert(left.clone(), right.clone());
            same &= known.is_none_or(|known| known == right);
            let known = self.back.insert(right, left.clone());
            same &= known.is_none_or(|known| known == left);
        }
        same
    }
}

/// Compares line by line, or writes the file when recording. Up to 60 differences are shown, all of them are written
/// to the folder `IRONROOT_DIFFERENCES` if that is set.
pub fn compare(file: &Path, expected: &str, actual: &str) {
    if recording() {
        std::fs::write(file, actual).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        return;
    }
    let mut aliases = Aliases::default();
    let differences: Vec<String> = expected
        .lines()
        .zip(actual.lines())
        .enumerate()
        .filter(|(_, (expected, actual))| !aliases.same(expected, actual))
        .map(|(at, (expected, actual))| difference(at + 1, expected, actual))
        .collect();
    let (count, steps) = (differences.len(), expected.lines().count());
    if let Ok(report) = std::env::var("IRONROOT_DIFFERENCES") {
        let name = file.file_name().expect("a file name").to_string_lossy();
        std::fs::write(Path::new(&report).join(format!("{name}.diff")), differences.join("")).expect("a folder");
    }
    let shown = differences.into_iter().take(60).collect::<String>();
    let all = count == 0 && steps == actual.lines().count();
    assert!(all, "{count} of {steps} lines differ from {}\n{shown}", file.display());
}

/// The step and both answers.
fn difference(line: usize, expected: &str, actual: &str) -> String {
    let (step, wanted) = expected.rsplit_once('\t').unwrap_or(("", expected));
    let got = actual.rsplit('\t').next().unwrap_or_default();
    format!("{line}: {}\n  - {wanted}\n  + {got}\n", step.replace('\t', " | "))
}

/// Runs a file of steps `who<TAB>method<TAB>request<TAB>answer` against a NameNode of its own.
fn play(name: &str) {
    play_with(name, &[]);
}

fn play_with(name: &str, settings: &[(&str, &str)]) {
    let Some(mut fixture) = start(name, settings, |_| {}) else { return };
    let file = golden(&format!("{name}.tsv"));
    let expected = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let actual = converse(&mut fixture, &expected);
    compare(&file, &expected, &actual);
}

/// A NameNode that a recorded conversation was held with.
pub struct Watched {
    pub fixture: Fixture,
}

/// Plays a recording without looking at the answers: what the NameNode does besides answering is what counts. `configure` comes before the
/// start.
pub fn play_watched(name: &str, settings: &[(&str, &str)], configure: impl Fn(&Fixture)) -> Option<Watched> {
    let mut fixture = start(name, settings, configure)?;
    let file = golden(&format!("{name}.tsv"));
    let steps = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    converse(&mut fixture, &steps);
    Some(Watched { fixture })
}

fn start(name: &str, settings: &[(&str, &str)], configure: impl Fn(&Fixture)) -> Option<Fixture> {
    let always = [("dfs.replication", "1"), ("dfs.namenode.accesstime.precision", "3600000")];
    let mut fixture = Fixture::prepared(name, &[&always, settings].concat())?;
    configure(&fixture);
    crate::support::namenode::format(fixture.kind, &fixture.site);
    fixture.launch();
    Some(fixture)
}

/// The steps with the answers of this NameNode.
fn converse(fixture: &mut Fixture, steps: &str) -> String {
    let mut conversation = Conversation::new(fixture.port());
    let mut actual = String::new();
    for line in steps.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let (who, method, request) = (next(), next(), next());
        if line.starts_with('#') || line.is_empty() {
            actual += line;
        } else {
            let answer = match (who, method) {
                ("namenode", "restart") => {
                    fixture.restart();
                    conversation.restarted();
                    "-".to_owned()
                }
                ("namenode", "crash") => {
                    // audit lines are written a moment after the answer
                    std::thread::sleep(Duration::from_millis(50));
                    fixture.crash();
                    conversation.restarted();
                    "-".to_owned()
                }
                ("namenode", "bean") => {
                    let (bean, attribute) = request.split_once(' ').expect("bean and attribute");
                    fixture.namenode().jmx(bean, attribute).map_or("-".to_owned(), |value| value.to_string())
                }
                // Java notes replicas and counts blocks in threads of their own, once a second
                ("namenode", "settle") => {
                    std::thread::sleep(Duration::from_millis(2500));
                    "-".to_owned()
                }
                // queues empty at their own time
                (_, "getFsReplicatedBlockStats") => {
                    let recorded = next();
                    let mut answer = conversation.step(who, method, request);
                    for _ in (0..20).take_while(|_| !recording()) {
                        if answer == recorded {
                            break;
                        }
                        std::thread::sleep(Duration::from_millis(250));
                        answer = conversation.step(who, method, request);
                    }
                    answer
                }
                _ => conversation.step(who, method, request),
            };
            actual += &format!("{who}\t{method}\t{request}\t{answer}");
        }
        actual.push('\n');
    }
    actual
}

#[test]
fn recorded_answers() {
    play("answers");
}

#[test]
fn recorded_answers_of_features() {
    play("features");
}

#[test]
fn recorded_answers_to_data_nodes() {
    play("datanodes");
}

#[test]
fn recorded_answers_of_everyday_life() {
    play("everyday");
}

#[test]
fn recorded_answers_about_slow_nodes() {
    play_with(
        "slow",
        &[
            ("dfs.datanode.peer.stats.enabled", "true"),
            ("dfs.datanode.fileio.profiling.sampling.percentage", "100"),
            ("dfs.datanode.outliers.report.interval", "5s"),
        ],
    );
}
