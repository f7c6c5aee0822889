//! Purpose: scenarios: text files of commands, each with what it printed below it, to be read as documentation of what the file system does.
//! Called by: the integration test binary.
//! Calls: the engine over the simulated disk (`sim::node`), with scripted DataNodes; never the binary.
//! Never: touches the real disk but for the scenarios themselves; prints what differs from run to run.
//! Invariants: after every scenario live, replayed and reloaded state are equal, after a crash too, and every prefix of the log is legal.

mod attributes;
mod caches;
mod cluster;
mod facts;
mod laws;
mod line;
mod names;
mod operations;
mod secrets;
mod show;
mod world;
mod writers;

use line::Line;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use world::World;

/// What a command printed: lines, or a refusal.
pub type Printed = Result<String, vocab::Refusal>;

/// Where commands are looked for, in this order; `None`: not one of these.
const GROUPS: [fn(&mut World, &Line) -> Option<Printed>; 8] =
    [names::run, writers::run, attributes::run, caches::run, secrets::run, cluster::run, show::run, facts::run];

/// A scenario with the output of every command written anew, and the laws checked at its end; the opcodes of its log.
fn check(text: &str) -> (String, BTreeSet<u8>) {
    let mut world = World::new();
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("    ") {
            continue;
        }
        let _ = writeln!(out, "{line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let command = Line::parse(line).unwrap_or_else(|e| panic!("line {}: {e}: {line}", number + 1));
        let printed = GROUPS.iter().find_map(|group| group(&mut world, &command));
        let printed = printed.unwrap_or_else(|| panic!("line {}: no such command: {line}", number + 1));
        let printed = printed.unwrap_or_else(|refusal| show::refusal(&refusal));
        for line in show::tidy(&printed).lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    let opcodes = world.check_laws();
    (out, opcodes)
}

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenario");
    let entries = std::fs::read_dir(folder).expect("the folder of scenarios").map(|entry| entry.expect("entry").path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    all.sort();
    all
}

/// Both texts, from the first line on that differs.
fn difference(expected: &str, actual: &str) -> String {
    let same = expected.lines().zip(actual.lines()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| text.lines().skip(same.saturating_sub(2)).take(12).collect::<Vec<_>>().join("\n");
    format!("line {}, expected\n{}\nnow\n{}", same + 1, part(expected), part(actual))
}

/// `SCENARIO_WRITE=1` writes what is printed now into the scenarios.
#[test]
fn scenarios_print_what_they_say() {
    let writes = std::env::var_os("SCENARIO_WRITE").is_some();
    let only = std::env::var("SCENARIO").unwrap_or_default();
    let (mut failed, mut count, mut opcodes) = (Vec::new(), 0, BTreeSet::new());
    for path in scenarios().into_iter().filter(|path| path.to_string_lossy().contains(&only)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        count += 1;
        let actual = std::panic::catch_unwind(|| check(&expected)).map(|(actual, mut seen)| {
            opcodes.append(&mut seen);
            actual
        });
        match actual {
            Ok(actual) if actual == expected => {}
            Ok(actual) if writes => std::fs::write(&path, actual).expect("scenario"),
            Ok(actual) => failed.push(format!("{name}: {}", difference(&expected, &actual))),
            Err(_) => failed.push(format!("{name}: see above")),
        }
    }
    assert!(count > 0, "no scenario");
    assert!(failed.is_empty(), "{} of {count} scenarios\n{}", failed.len(), failed.join("\n\n"));
    if only.is_empty() {
        operations::check_records(&opcodes);
    }
}

/// A scenario without its output is not what it says.
#[test]
fn a_wrong_line_is_found() {
    let (right, _) = check("mkdir /a\nls /\n");
    assert_ne!(right, right.replace("/a", "/b"));
    assert_ne!(check("mkdir /a\nls /\n    nothing\n").0, "mkdir /a\nls /\n    nothing\n");
    assert_eq!(check(&right).0, right);
}
