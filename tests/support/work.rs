//! Folders that vanish with a passed test and stay with a failed one, free ports, and waiting with a limit.
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A folder of one test under the system's temporary folder. Kept (and named on stderr) when the test panics.
pub struct WorkDir(PathBuf);

impl WorkDir {
    /// An empty folder with `name` in its name.
    pub fn new(name: &str) -> Self {
        let path = Self::unused(&std::env::temp_dir(), name);
        std::fs::create_dir_all(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(path)
    }
    /// The same in memory, where a sync takes no time; where there is no such file system, under the system's temporary folder.
    pub fn in_memory(name: &str) -> Self {
        let path = Self::unused(Path::new("/dev/shm"), name);
        if std::fs::create_dir(&path).is_ok() { Self(path) } else { Self::new(name) }
    }
    fn unused(parent: &Path, name: &str) -> PathBuf {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        parent.join(format!("ironroot-{name}-{}-{serial}", std::process::id()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("files of the failed test: {}", self.0.display());
        } else {
            // a process that is just ending may still write: not worth a failure
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A TCP port of 127.0.0.1 that nobody listens on, below the range from which the kernel takes ports of outgoing
/// connections, and not handed out twice by one process.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    for _ in 0..COUNT {
        let n = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id().wrapping_mul(61);
        let port = u16::try_from(FIRST + n % COUNT).expect("within the range");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}

/// Polls until `done` answers true; panics with what was waited for after `limit`.
pub fn wait_until(limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < end, "waited {} s in vain until {what}", limit.as_secs());
        std::thread::sleep(Duration::from_millis(100));
    }
}
