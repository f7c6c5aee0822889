//! Real Hadoop 3.5.0: brought by Maven into a cache folder once, and run from there.
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::site::Site;
use super::work::WorkDir;

const POM: &str = include_str!("../../src/cli/hadoop-pom.xml");
const LOG4J: &str = include_str!("log4j.properties");
const SOURCES: [(&str, &str); 5] = [
    ("Driver.java", include_str!("java/Driver.java")),
    ("Calls.java", include_str!("java/Calls.java")),
    ("Load.java", include_str!("java/Load.java")),
    ("Supervised.java", include_str!("java/Supervised.java")),
    ("Warm.java", include_str!("java/Warm.java")),
];
/// Quick to start and small: a test runs many JVMs for a short time.
const JVM: [&str; 5] = [
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.net.preferIPv4Stack=true",
    "-Duser.timezone=UTC",
];
const OPENED_PACKAGES: [&str; 7] =
    ["java.lang", "java.util", "java.util.concurrent", "java.net", "java.nio", "java.io", "sun.nio.ch"];

/// The user that all servers and clients run as, whoever runs the tests; it owns the root and is the superuser.
pub const SUPERUSER: &str = "hdfs";

/// An installed Hadoop: jars, the tests' own driver beside them, and a class-data archive that halves JVM starts.
pub struct Hadoop {
    folder: PathBuf,
    class_path: String,
    archive: PathBuf,
}

/// Hadoop in the cache folder (`IRONROOT_HADOOP_CACHE`, or `ironroot/hadoop-3.5.0` in the user's cache), fetched at
/// first use; None, said aloud, when this machine cannot have it.
pub fn hadoop() -> Option<&'static Hadoop> {
    static HADOOP: OnceLock<Result<Hadoop, String>> = OnceLock::new();
    match HADOOP.get_or_init(install) {
        Ok(hadoop) => Some(hadoop),
        Err(reason) => {
            super::skip(reason);
            None
        }
    }
}

fn cache_folder() -> Result<PathBuf, String> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = var("IRONROOT_HADOOP_CACHE") {
        return Ok(folder);
    }
    let caches = var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")));
    Ok(caches.ok_or("neither IRONROOT_HADOOP_CACHE nor HOME is set")?.join("ironroot/hadoop-3.5.0"))
}

fn install() -> Result<Hadoop, String> {
    for program in ["java", "javac", "mvn"] {
        run(Command::new(program).arg("-version"), program)?;
    }
    let folder = cache_folder()?;
    let io = |e: std::io::Error| format!("{}: {e}", folder.display());
    std::fs::create_dir_all(&folder).map_err(io)?;
    // several test processes at once: one of them installs, the others wait
    let lock = File::create(folder.join("lock")).map_err(io)?;
    lock.lock().map_err(io)?;
    let jars = fetch(&folder, "jars", POM)?;
    let driver = compile(&folder, &jars)?;
    std::fs::write(folder.join("log4j.properties"), LOG4J).map_err(io)?;
    let mut class_path: Vec<PathBuf> = list_jars(&jars).map_err(io)?;
    class_path.push(driver.clone());
    let class_path = class_path.iter().map(|jar| jar.display().to_string()).collect::<Vec<_>>().join(":");
    let hadoop = Hadoop { folder, class_path, archive: driver.with_extension("jsa") };
    hadoop.record_archive();
    Ok(hadoop)
}

/// The folder `name` of the jars that a project depends on, complete.
fn fetch(folder: &Path, name: &str, project: &str) -> Result<PathBuf, String> {
    let jars = folder.join(name);
    if jars.is_dir() {
        return Ok(jars);
    }
    let partial = folder.join(format!("{name}.partial"));
    let pom = folder.join(format!("{name}-pom.xml"));
    std::fs::write(&pom, project).map_err(|e| e.to_string())?;
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(&pom).arg("dependency:copy-dependencies");
    maven.arg(format!("-DoutputDirectory={}", partial.display()));
    run(&mut maven, "Maven did not bring Hadoop")?;
    // the name appears only when all are there
    std::fs::rename(&partial, &jars).map_err(|e| e.to_string())?;
    Ok(jars)
}

fn list_jars(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut jars = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            jars.push(path);
        }
    }
    jars.sort();
    Ok(jars)
}

/// The jar of the tests' own Java classes, named by the digest of their sources.
fn compile(folder: &Path, jars: &Path) -> Result<PathBuf, String> {
    let mut digest = DefaultHasher::new();
    SOURCES.hash(&mut digest);
    let name = format!("driver-{:016x}", digest.finish());
    let jar = folder.join(format!("{name}.jar"));
    if jar.exists() {
        return Ok(jar);
    }
    let work = folder.join(&name);
    let classes = work.join("classes");
    let io = |e: std::io::Error| format!("{}: {e}", work.display());
    std::fs::create_dir_all(&classes).map_err(io)?;
    let mut javac = Command::new("javac");
    javac.args(["-nowarn", "-proc:none", "-d"]).arg(&classes).args(["-cp", &format!("{}/*", jars.display())]);
    for (file, text) in SOURCES {
        std::fs::write(work.join(file), text).map_err(io)?;
        javac.arg(work.join(file));
    }
    let broken = |e: String| panic!("the tests' Java driver does not compile: {e}");
    run(&mut javac, "javac").unwrap_or_else(broken);
    let partial = work.join("driver.jar");
    run(Command::new("jar").arg("cf").arg(&partial).arg("-C").arg(&classes).arg("."), "jar")?;
    std::fs::rename(&partial, &jar).map_err(io)?;
    std::fs::remove_dir_all(&work).map_err(io)?;
    Ok(jar)
}

/// Runs a command to its end; the error names `what` and holds its output.
fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{what}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!("{what}: {}: {}", output.status, String::from_utf8_lossy(&text).trim()))
}

impl Hadoop {
    /// A JVM with the jars, then the configuration folder, on its class path; the main class and its arguments are
    /// still to be added. `heap` as for -Xmx, `log` a log4j level.
    pub fn java(&self, site: &Site, heap: &str, log: &str) -> Command {
        let mut java = self.bare_java(&format!("{}:{}", self.class_path, site.folder().display()), heap, log);
        // web servers unpack their pages there
        java.arg(format!("-Djava.io.tmpdir={}", site.folder().display()));
        if self.archive.exists() {
            java.arg(format!("-XX:SharedArchiveFile={}", self.archive.display()));
            java.args(["-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off"]);
        }
        java
    }

    /// `hdfs dfs` in a JVM of its own, for what is too big to be captured; its words are still to be added.
    pub fn shell(&self, site: &Site) -> Command {
        let mut java = self.java(site, "512m", "WARN");
        java.arg("org.apache.hadoop.fs.FsShell");
        java
    }

    /// More jars beside Hadoop's own, of which these programs do without: fetched at first use.
    pub fn fetch_beside(&self, name: &str, project: &str) -> Result<PathBuf, String> {
        let io = |e: std::io::Error| format!("{}: {e}", self.folder.display());
        let lock = File::create(self.folder.join("lock")).map_err(io)?;
        lock.lock().map_err(io)?;
        fetch(&self.folder, name, project)
    }

    /// A JVM with just this class path.
    pub fn bare_java(&self, class_path: &str, heap: &str, log: &str) -> Command {
        let mut java = Command::new("java");
        java.args(OPENED_PACKAGES.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
        java.args(JVM).arg(format!("-Xmx{heap}"));
        java.arg(format!("-Dlog4j.configuration=file:{}", self.folder.join("log4j.properties").display()));
        java.arg(format!("-Dironroot.log.level={log}"));
        // an environment of the user's own Hadoop must not leak in
        java.env_remove("HADOOP_CONF_DIR").env_remove("HADOOP_OPTS").env("HADOOP_USER_NAME", SUPERUSER);
        java.args(["-cp", class_path]);
        java
    }

    /// Records which classes a NameNode, a DataNode and a client load, at first use. Only speed depends on it.
    fn record_archive(&self) {
        if self.archive.exists() {
            return;
        }
        let work = WorkDir::new("archive");
        let partial = self.archive.with_extension("partial");
        let mut java = self.bare_java(&self.class_path, "512m", "ERROR");
        java.arg(format!("-XX:ArchiveClassesAtExit={}", partial.display()));
        java.args(["-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off"]);
        java.arg(format!("-Djava.io.tmpdir={}", work.path().display()));
        java.arg("Warm").arg(work.path());
        match run(&mut java, "recording a class-data archive") {
            Ok(()) => std::fs::rename(&partial, &self.archive).expect("cache folder"),
            Err(reason) => eprintln!("without a class-data archive: {reason}"),
        }
    }
}
