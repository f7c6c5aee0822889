//! Child processes that never outlive their test.
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running program whose output goes to a log file. Killed when dropped. Its standard input is a pipe from here,
/// which ends with this process even when that is killed.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with both outputs appended to `log`.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let open = || std::fs::OpenOptions::new().create(true).append(true).open(log).expect("log file");
        command.stdin(Stdio::piped()).stdout(open()).stderr(open());
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self { child, log: log.to_owned() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the program has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("own child")
    }

    /// Sends SIGTERM and waits; panics if the program is still there after `limit`.
    pub fn terminate(mut self, limit: Duration) -> ExitStatus {
        signal(self.id(), "TERM");
        self.wait(limit)
    }

    /// Waits for the end; panics after `limit`.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(Instant::now() < end, "still running after {} s: {}", limit.as_secs(), self.log_tail());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(mut self) {
        self.kill_now();
    }

    /// SIGSTOP or SIGCONT: a peer that hangs without closing its connections.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// The last lines of the log, for messages.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    fn kill_now(&mut self) {
        let _ = self.child.kill(); // it may have ended already
        self.child.wait().expect("own child");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_now();
    }
}

/// The last 3,000 bytes of a file, with its name.
pub fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let from = text.len().saturating_sub(3000);
    format!("{}:\n{}", log.display(), String::from_utf8_lossy(&text[from..]))
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().expect("kill(1)");
    assert!(status.success(), "kill -{name} {pid}: {status}");
}
