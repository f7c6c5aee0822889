//! One name node as a process: started on a directory, watched until it serves, asked, measured, ended.

use super::ask::{self, Expected};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Ironroot,
    Java,
}

impl Side {
    pub fn name(self) -> &'static str {
        if self == Side::Ironroot { "ironroot" } else { "java" }
    }
}

/// What one start gave.
#[derive(Clone, Debug, Default)]
pub struct Started {
    /// As the name node tells for its phase LoadingFsImage.
    pub load_s: f64,
    /// From the start of the process to the first moment at which it told that its start is over.
    pub serving_s: f64,
    /// From there to the last answer of [`ask::check`].
    pub checked_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub save_s: f64,
    /// Of it until the last byte was written: what comes after is the disk's.
    pub written_s: f64,
    pub save_cpu_s: f64,
    pub settled_mb: f64,
    pub peak_mb: f64,
    pub huge_mb: f64,
    pub inodes: u64,
    pub blocks: u64,
    pub phases: Vec<(String, f64)>,
}

const PACKAGES: [&str; 7] =
    ["java.lang", "java.util", "java.util.concurrent", "java.net", "java.nio", "java.io", "sun.nio.ch"];
/// A start that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(900);
/// Memory is read so long after the start.
const SETTLING: Duration = Duration::from_secs(2);

/// Ends the process when the measurement is over, however it ends.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // it may have ended by itself
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The jars of Hadoop.
fn hadoop() -> PathBuf {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    std::env::var_os("HADOOP_JARS").map_or_else(|| home.join(".cache/ironroot/hadoop-3.5.0/jars"), PathBuf::from)
}

/// The product beside this program, of the same profile.
fn ironroot() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    std::env::var_os("IRONROOT").map_or_else(|| own.with_file_name("ironroot"), PathBuf::from)
}

/// The directory of a start: names of its own for what is in `source`, and a configuration.
/// With `more` settings.
pub(crate) fn prepare(source: &Path, folder: &Path, rpc: u16, http: u16, more: &[(&str, &str)]) -> io::Result<()> {
    let (current, conf) = (folder.join("name/current"), folder.join("conf"));
    fs::create_dir_all(&current)?;
    fs::create_dir_all(&conf)?;
    for entry in fs::read_dir(source.join("current"))? {
        let (path, name) = (entry.as_ref().map(|e| e.path()), entry.as_ref().map(|e| e.file_name()));
        let (path, name) =
            (path.map_err(|e| io::Error::other(e.to_string()))?, name.map_err(|e| io::Error::other(e.to_string()))?);
        if name.to_string_lossy().starts_with("fsimage_") {
            fs::hard_link(path, current.join(name))?;
        } else {
            fs::copy(path, current.join(name))?;
        }
    }
    let site = |pairs: &[(&str, String)]| {
        let rows = pairs.iter().map(|(k, v)| format!("<property><name>{k}</name><value>{v}</value></property>\n"));
        format!("<configuration>\n{}</configuration>\n", rows.collect::<String>())
    };
    fs::write(conf.join("core-site.xml"), site(&[("fs.defaultFS", format!("hdfs://127.0.0.1:{rpc}"))]))?;
    let name_dir = format!("file://{}", folder.join("name").display());
    let pairs = [
        ("dfs.namenode.name.dir", name_dir),
        ("dfs.namenode.http-address", format!("127.0.0.1:{http}")),
        ("dfs.namenode.checkpoint.period", "100d".to_owned()),
    ];
    let more = more.iter().map(|(key, value)| (*key, (*value).to_owned()));
    let pairs: Vec<_> = pairs.into_iter().chain(more).collect();
    fs::write(conf.join("hdfs-site.xml"), site(&pairs))?;
    let log = "log4j.rootLogger=INFO,E\nlog4j.appender.E=org.apache.log4j.ConsoleAppender\nlog4j.appender.E.target=System.err\nlog4j.appender.E.layout=org.apache.log4j.PatternLayout\nlog4j.appender.E.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n\n";
    fs::write(conf.join("log4j.properties"), log)
}

fn java(folder: &Path, heap: u64, class: &str, words: &[&str]) -> Command {
    let mut command = Command::new("java");
    command.args(PACKAGES.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
    let class_path = format!("{}:{}/*", folder.join("conf").display(), hadoop().display());
    command.args([&format!("-Xmx{heap}m"), "-Djava.net.preferIPv4Stack=true", "-cp", &class_path, class]).args(words);
    command
}

pub(crate) fn command(side: Side, folder: &Path, heap: u64) -> Command {
    match side {
        Side::Java => java(folder, heap, "org.apache.hadoop.hdfs.server.namenode.NameNode", &[]),
        Side::Ironroot => {
            let mut command = Command::new(ironroot());
            command.arg("namenode").env("HADOOP_CONF_DIR", folder.join("conf"));
            command
        }
    }
}

/// Starts a name node on a copy of `source` in `folder` and measures it.
pub fn start(
    side: Side,
    source: &Path,
    folder: &Path,
    heap: u64,
    save: bool,
    expected: Option<&Expected>,
) -> Result<Started, String> {
    let text = |e: io::Error| e.to_string();
    let (rpc, http) = (free_port().map_err(text)?, free_port().map_err(text)?);
    // an arena file would be written beside what is measured here
    let settings = [("ironroot.checkpoint.online", "false")];
    prepare(source, folder, rpc, http, &settings).map_err(text)?;
    let log = File::create(folder.join("log")).map_err(text)?;
    let mut command = command(side, folder, heap);
    command.stdout(log.try_clone().map_err(text)?).stderr(log);
    let since = Instant::now();
    let mut running = Running(command.spawn().map_err(|e| format!("{command:?}: {e}"))?);
    let mut started = Started::default();
    started.phases = wait(&mut running.0, http, since, folder)?;
    started.serving_s = since.elapsed().as_secs_f64();
    started.load_s = started.phases.iter().find(|p| p.0 == "LoadingFsImage").map_or(0.0, |p| p.1 / 1e3);
    let pid = running.0.id();
    (started.user_s, started.system_s) = cpu(pid);
    if let Some(expected) = expected {
        ask::check(rpc, expected)?;
        started.checked_s = since.elapsed().as_secs_f64();
    }
    std::thread::sleep(SETTLING);
    memory(pid, &mut started);
    let beans = get(http, "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem").map_err(text)?;
    let beans: serde_json::Value = serde_json::from_str(&beans).map_err(|e| format!("/jmx: {e}"))?;
    let number = |key: &str| beans["beans"][0][key].as_u64().ok_or(format!("/jmx has no {key}"));
    (started.inodes, started.blocks) = (number("FilesTotal")?, number("BlocksTotal")?);
    if save {
        let before = cpu(pid);
        (started.save_s, started.written_s) = self::save(folder)?;
        let after = cpu(pid);
        started.save_cpu_s = after.0 + after.1 - before.0 - before.1;
    }
    Ok(started)
}

/// Waits until the start is over: the phases with the milliseconds that each took.
pub(crate) fn wait(child: &mut Child, http: u16, since: Instant, folder: &Path) -> Result<Vec<(String, f64)>, String> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            return Err(format!("ended with {status}\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n")));
        }
        if since.elapsed() > PATIENCE {
            return Err("is not up after a quarter of an hour".into());
        }
        if let Some(phases) = get(http, "/startupProgress").ok().and_then(|text| phases(&text)) {
            return Ok(phases);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The phases, once the last one (safe mode) has begun or is over.
fn phases(text: &str) -> Option<Vec<(String, f64)>> {
    let tree: serde_json::Value = serde_json::from_str(text).ok()?;
    let list = tree["phases"].as_array()?;
    let serving = list.iter().any(|p| p["name"] == "SafeMode" && p["status"] != "PENDING");
    let phase = |p: &serde_json::Value| Some((p["name"].as_str()?.to_owned(), p["elapsedTime"].as_f64()?));
    if serving { list.iter().map(phase).collect() } else { None }
}

/// The body of a web page.
pub fn get(port: u16, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
        _ => Err(io::Error::other(answer)),
    }
}

/// User and system time of a process, in seconds.
pub(crate) fn cpu(pid: u32) -> (f64, f64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0) / 100.0;
    (ticks(11), ticks(12))
}

pub(crate) fn memory(pid: u32, started: &mut Started) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let huge = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let mb = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.split(':').next() == Some(key));
        line.and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    };
    started.settled_mb = ["RssAnon", "RssFile", "RssShmem", "VmSwap"].iter().map(|key| mb(&status, key)).sum();
    started.peak_mb = mb(&status, "VmHWM");
    started.huge_mb = mb(&huge, "AnonHugePages");
}

/// Has the namespace saved: the time from the first sight of the image on its way to that of the image, and to its last growth.
fn save(folder: &Path) -> Result<(f64, f64), String> {
    let current = folder.join("name/current");
    let admin = |words: &[&str]| {
        let mut command = java(folder, 256, "org.apache.hadoop.hdfs.tools.DFSAdmin", words);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    };
    let entered = admin(&["-safemode", "enter"]).status();
    if !entered.is_ok_and(|status| status.success()) {
        return Err("safe mode is not entered".into());
    }
    let images = |prefix: &str| {
        let names = fs::read_dir(&current).into_iter().flatten().flatten().map(|e| e.file_name());
        names.filter(|n| n.to_string_lossy().starts_with(prefix) && !n.to_string_lossy().ends_with(".md5")).count()
    };
    let before = images("fsimage_");
    let mut admin = Running(admin(&["-saveNamespace"]).spawn().map_err(|e| e.to_string())?);
    let begun = Instant::now();
    let (mut since, mut length, mut written) = (None, 0, 0.0);
    let bytes = || {
        let files = fs::read_dir(&current).into_iter().flatten().flatten();
        let begun = files.filter(|f| f.file_name().to_string_lossy().starts_with("fsimage.ckpt"));
        begun.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum::<u64>()
    };
    while images("fsimage_") <= before {
        if since.is_none() && images("fsimage.ckpt") > 0 {
            since = Some(Instant::now());
        }
        let now = bytes();
        if let Some(since) = since
            && now > length
        {
            (length, written) = (now, since.elapsed().as_secs_f64());
        }
        if begun.elapsed() > PATIENCE {
            return Err("the namespace is not saved".into());
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let seconds = since.map_or(0.0, |since| since.elapsed().as_secs_f64());
    match admin.0.wait() {
        Ok(status) if status.success() => Ok((seconds, written)),
        other => Err(format!("-saveNamespace: {other:?}")),
    }
}
