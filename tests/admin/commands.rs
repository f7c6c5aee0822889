//! What administrators type, word for word: a transcript recorded with the Java NameNode, on three real DataNodes.
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;

use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::driver::Output;
use crate::support::namenode::Kind;
use crate::trials::answers::recording;

fn transcript() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/admin/commands.txt")
}

/// Runs every command of the transcript (`$ words`, or `$ user: words`) and compares exit status and both outputs with what stands below it.
#[test]
fn admin_transcript() {
    let _turn = cluster_turn();
    let kind = Kind::under_test();
    let settings = [
        ("dfs.replication", "2"),
        ("dfs.namenode.acls.enabled", "true"),
        ("hadoop.log.dir", "."),
        ("fs.trash.interval", "60"),
    ];
    let Some(cluster) = Cluster::start("admin", kind, 3, &settings) else { return };
    let local = cluster.work.join("local");
    std::fs::create_dir_all(&local).expect("local folder");
    std::fs::write(local.join("hello"), "hello, world\n").expect("local file");
    std::fs::write(local.join("blocks"), vec![b'x'; 2_500_000]).expect("local file");
    let expected = std::fs::read_to_string(transcript()).expect("the transcript");
    let mut actual = String::new();
    for line in expected.lines().filter(|line| line.starts_with(['$', '#']) || line.is_empty()) {
        actual += line;
        actual.push('\n');
        if let Some(command) = line.strip_prefix("$ ") {
            actual += &run(&cluster, command);
        }
    }
    if recording() {
        std::fs::write(transcript(), actual).expect("the transcript");
        return;
    }
    assert!(expected == actual, "{}", differences(&expected, &actual));
}

/// What a command printed, in the form of the transcript.
fn run(cluster: &Cluster, command: &str) -> String {
    let (user, words) = command.split_once(": ").unwrap_or(("-", command));
    let work = cluster.work.path().to_str().expect("UTF-8");
    let address = &cluster.site.get("fs.defaultFS")[7..];
    let fill = |word: &str| word.replace("@WORK@", work).replace("@ADDRESS@", address);
    let words: Vec<String> = words.split(' ').map(fill).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words[0] == "wait" {
        std::thread::sleep(std::time::Duration::from_secs(words[1].parse().expect("seconds")));
        return String::new();
    }
    show(&cluster.client.run_as(user, &words), work, cluster)
}

fn show(output: &Output, work: &str, cluster: &Cluster) -> String {
    let mut text = String::new();
    for (mark, printed) in [("  ", &output.out), ("! ", &output.err)] {
        // Java's stack traces are no part of an answer
        let part_of_trace = |line: &str| line.starts_with("\tat ") || (mark == "! " && line.is_empty());
        for line in printed.lines().filter(|line| !part_of_trace(line)) {
            text += &format!("{mark}{}\n", tidy(line, work, cluster));
        }
    }
    // a message that ends in a trace ends in a line end too
    text = text.replace("\n! .\n", ".\n");
    if output.exit != 0 {
        text += &format!("= {}\n", output.exit);
    }
    text
}

/// Takes out what differs from run to run.
fn tidy(line: &str, work: &str, cluster: &Cluster) -> String {
    static VOLATILE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}", "@DATE@"),
            (r"in \d+ milliseconds", "in N milliseconds"),
            (r"BP-\d+-[0-9.]+-\d+", "@POOL@"),
            (r"DS-[0-9a-f-]{36}", "@DS@"),
            (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
            (r"localhost:\d+", "localhost:PORT"),
            (r"(Configured Capacity|Present Capacity|DFS Remaining|DFS Used|Non DFS Used|Num of Blocks|Xceivers|Xceivers Count): .*", "$1: N"),
            (r"(DFS Used%|DFS Remaining%): .*", "$1: N"),
            (r"(Last Block Report|Last contact): .*", "$1: T"),
            (r"with txid \d+", "with txid N"),
            (r"New segment starts at txid \d+", "New segment starts at txid N"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d", "@TIME@"),
            (r"ipc\.\d+\.backoff", "ipc.PORT.backoff"),
            (r"DFSClient_NONMAPREDUCE_-?\d+_\d+", "@CLIENT@"),
        ]
        .map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name))
        .into()
    });
    let address = cluster.site.get("fs.defaultFS");
    let line = line.replace(work, "@WORK@").replace(address, "@HDFS@").replace(&address[7..], "@ADDRESS@");
    VOLATILE.iter().fold(line, |line, (pattern, name)| pattern.replace_all(&line, *name).into_owned())
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
