//! The shell commands of everyday, word for word: a transcript of them recorded with the Java NameNode.
use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::Kind;

const TRANSCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/shell.txt");

/// Runs every command of `shell.txt` (`$ words`, or `$ user: words`) and compares exit status and both outputs with
/// what stands below it. `IRONROOT_RECORD=1` with the Java NameNode writes the file anew instead.
#[test]
fn everyday_shell_transcript() {
    let _turn = cluster_turn();
    let kind = Kind::under_test();
    let Some(cluster) = Cluster::start("shell", kind, 2, &[("dfs.replication", "2")]) else { return };
    let local = cluster.work.join("local");
    std::fs::create_dir_all(local.join("folder")).expect("local folder");
    std::fs::write(local.join("hello"), "hello, world\n").expect("local file");
    std::fs::write(local.join("lines"), (1..=40).map(|n| format!("{n:0>99}\n")).collect::<String>())
        .expect("local file");
    std::fs::write(local.join("folder/blocks"), vec![b'x'; 2_500_000]).expect("local file");

    let expected = std::fs::read_to_string(TRANSCRIPT).expect("the transcript");
    let mut actual = String::new();
    for line in expected.lines().filter(|line| line.starts_with('$') || line.starts_with('#') || line.is_empty()) {
        actual += line;
        actual.push('\n');
        if let Some(command) = line.strip_prefix("$ ") {
            actual += &run(&cluster, command);
        }
    }
    if std::env::var_os("IRONROOT_RECORD").is_some() {
        assert_eq!(kind, Kind::Java, "what is right is recorded with the Java NameNode");
        std::fs::write(TRANSCRIPT, actual).expect("the transcript");
        return;
    }
    assert!(expected == actual, "{}", differences(&expected, &actual));
}

/// What a command printed, in the form of the transcript.
fn run(cluster: &Cluster, command: &str) -> String {
    let (user, words) = command.split_once(": ").unwrap_or(("-", command));
    let work = cluster.work.path().to_str().expect("UTF-8");
    let words: Vec<String> = words.split(' ').map(|word| word.replace("@WORK@", work)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = cluster.client.run_as(user, &words);
    let mut text = String::new();
    for (mark, printed) in [("  ", &output.out), ("! ", &output.err)] {
        // Java's stack traces are no part of an answer
        let part_of_trace = |line: &str| line.starts_with("\tat ") || (mark == "! " && line.is_empty());
        for line in printed.lines().filter(|line| !part_of_trace(line)) {
            text += &format!("{mark}{}\n", tidy(line, work, cluster.site.get("fs.defaultFS")));
        }
    }
    if output.exit != 0 {
        text += &format!("= {}\n", output.exit);
    }
    text
}

/// Takes out what differs from run to run: the work folder, the address, and times.
fn tidy(line: &str, work: &str, address: &str) -> String {
    let line = line.replace(work, "@WORK@").replace(address, "@HDFS@").replace(&address[7..], "@ADDRESS@");
    let bytes = line.as_bytes();
    let is_time = |at: usize| {
        let form = b"0000-00-00 00:00";
        bytes.len() >= at + form.len()
            && form.iter().zip(&bytes[at..]).all(|(f, b)| if *f == b'0' { b.is_ascii_digit() } else { f == b })
    };
    match (0..bytes.len()).find(|&at| is_time(at)) {
        Some(at) if !line[at..].starts_with("2020-") => format!("{}@TIME@{}", &line[..at], &line[at + 16..]),
        _ => line,
    }
}

/// Every command that answered differently, with both answers.
fn differences(expected: &str, actual: &str) -> String {
    let (left, right): (Vec<&str>, Vec<&str>) = (expected.split("\n$ ").collect(), actual.split("\n$ ").collect());
    let mut text = String::new();
    for (expected, actual) in left.iter().zip(&right).filter(|(expected, actual)| expected != actual) {
        let (command, expected) = expected.split_once('\n').unwrap_or((expected, ""));
        let actual = actual.split_once('\n').map_or("", |(_, answer)| answer);
        text += &format!("$ {command}\nexpected:\n{expected}\nactual:\n{actual}\n\n");
    }
    format!("{text}{} commands expected, {} run", left.len(), right.len())
}
