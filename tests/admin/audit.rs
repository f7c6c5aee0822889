//! The audit log, line for line as the Java NameNode writes it of the same conversation.
use std::path::Path;
use std::time::Duration;

use regex::Regex;

use crate::support::namenode::Kind;
use crate::trials::answers::{Watched, play_watched, recording};
use crate::trials::fixture::Fixture;

/// Sends the audit log to a file of its own; read by the NameNode under test if it is ours. Java writes to its own log.
const LOG4J: &str = "\
hdfs.audit.logger=INFO,AUDIT
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=${hdfs.audit.logger}
log4j.appender.AUDIT=org.apache.log4j.RollingFileAppender
log4j.appender.AUDIT.File=FOLDER/audit.log
log4j.appender.AUDIT.layout=org.apache.log4j.PatternLayout
log4j.appender.AUDIT.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
";

fn configure(fixture: &Fixture) {
    let folder = fixture.site.write();
    let text = LOG4J.replace("FOLDER", &folder.display().to_string());
    std::fs::write(folder.join("log4j.properties"), text).expect("configuration folder");
}

/// All audit lines so far, without their time, with what differs from run to run by name.
fn lines(fixture: &Fixture) -> Vec<String> {
    let file = if fixture.kind == Kind::Java { "namenode.log" } else { "audit.log" };
    let text = std::fs::read_to_string(fixture.site.folder().join(file)).expect("a log");
    let volatile = [
        (r"token \d+", "token N"),
        (r"expiration: [0-9T:+-]+", "expiration: T"),
        (r"/\.reserved/\.inodes/\d{5,}", "/.reserved/.inodes/F"),
    ];
    let volatile = volatile.map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name));
    let messages = text.lines().filter_map(|line| line.split_once(" INFO FSNamesystem.audit: ").map(|found| found.1));
    messages.map(|m| volatile.iter().fold(m.to_owned(), |m, (p, name)| p.replace_all(&m, *name).into_owned())).collect()
}

fn check(name: &str, settings: &[(&str, &str)]) {
    let Some(Watched { fixture }) = play_watched(name, settings, configure) else { return };
    std::thread::sleep(Duration::from_millis(500));
    let actual = lines(&fixture).join("\n") + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/audit/{name}.log"));
    if recording() {
        std::fs::write(&file, actual).expect("golden folder");
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    if let Ok(report) = std::env::var("IRONROOT_DIFFERENCES") {
        std::fs::write(Path::new(&report).join(format!("audit-{name}.log")), &actual).expect("a folder");
    }
    let first = expected.lines().zip(actual.lines()).position(|(expected, actual)| expected != actual);
    let shown = first.map(|at| {
        let part = |text: &str| text.lines().skip(at.saturating_sub(2)).take(6).collect::<Vec<_>>().join("\n");
        format!("line {}:\n{}\nbut:\n{}", at + 1, part(&expected), part(&actual))
    });
    let (wanted, got) = (expected.lines().count(), actual.lines().count());
    assert!(expected == actual, "{wanted} lines in {}, {got} written; {}", file.display(), shown.unwrap_or_default());
}

#[test]
fn audit_of_answers() {
    check("answers", &[("dfs.namenode.audit.log.with.remote.port", "false")]);
}

#[test]
fn audit_of_features() {
    check("features", &[("hadoop.caller.context.enabled", "true")]);
}
