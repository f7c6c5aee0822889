//! The persistent Hadoop client: one JVM for all commands of a test.
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use super::hadoop::Hadoop;
use super::process::tail;
use super::site::Site;

/// What a command answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub exit: i32,
    pub out: String,
    pub err: String,
}

/// A Hadoop client configured by one site. Commands run one after the other, each as one user.
pub struct HadoopClient {
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    child: Child,
    log: PathBuf,
}

impl HadoopClient {
    /// Starts the JVM; it connects to nothing before the first command.
    pub fn start(hadoop: &Hadoop, site: &Site) -> Self {
        site.write();
        let log = site.folder().join("client.log");
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("client log");
        let mut java = hadoop.java(site, "512m", "WARN");
        java.arg("Driver").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = java.spawn().unwrap_or_else(|e| panic!("{java:?}: {e}"));
        let stdin = child.stdin.take().expect("piped");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Self { pipes: Mutex::new((stdin, stdout)), child, log }
    }

    /// Runs `dfs`, `dfsadmin`, `fsck`, `oiv`, `oev`, or one of the driver's own `api` and `load` commands, as the user
    /// of this process.
    pub fn run(&self, words: &[&str]) -> Output {
        self.run_as("-", words)
    }

    /// The same as another user.
    pub fn run_as(&self, user: &str, words: &[&str]) -> Output {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let line = std::iter::once(&user).chain(words).map(|word| encode(word)).collect::<Vec<_>>().join(" ");
        let died = |e: std::io::Error| -> ! { panic!("{words:?}: the client JVM died: {e}\n{}", tail(&self.log)) };
        let (stdin, stdout) = &mut *pipes;
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).unwrap_or_else(|e| died(e));
        let mut header = String::new();
        stdout.read_line(&mut header).unwrap_or_else(|e| died(e));
        let fields: Vec<&str> = header.split_whitespace().collect();
        let ["#RESULT", exit, out, err] = fields[..] else {
            died(std::io::Error::other(format!("no result but {header:?}")))
        };
        let number = |text: &str| text.parse::<i32>().expect("a number");
        let mut text = |length: &str| {
            let mut bytes = vec![0; usize::try_from(number(length)).expect("a length")];
            stdout.read_exact(&mut bytes).unwrap_or_else(|e| died(e));
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Output { exit: number(exit), out: text(out), err: text(err) }
    }

    /// Runs a command that must succeed; answers what it printed.
    #[track_caller]
    pub fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.exit == 0, "{words:?}: exit {}\n{}{}", output.exit, output.out, output.err);
        output.out
    }
}

impl Drop for HadoopClient {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may be gone already
        self.child.wait().expect("own child");
    }
}

/// URL-encoding of one word.
fn encode(word: &str) -> String {
    let mut text = String::new();
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_./".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}
