//! Real Hadoop 3.5.0 for the embedded NameNode: its jars in a cache folder, brought by Maven, and a script that runs its programs.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const POM: &str = include_str!("hadoop-pom.xml");
const SCRIPT: &str = include_str!("hdfs.sh");
const LOG4J: &str = include_str!("log4j.properties");

/// Whether a program is there and runs.
pub fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The folder of jars in the cache, if they are there.
pub fn cached() -> Option<PathBuf> {
    Some(cache_folder()?.join("jars")).filter(|jars| jars.is_dir())
}

/// `IRONROOT_HADOOP_CACHE`, or a folder in the user's cache.
fn cache_folder() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")));
    var("IRONROOT_HADOOP_CACHE").or_else(|| Some(caches()?.join("ironroot/hadoop-3.5.0")))
}

/// The folder of jars, fetched at first use.
///
/// # Errors
/// A text that says what is missing.
pub fn fetch() -> Result<PathBuf, String> {
    let folder = cache_folder().ok_or("neither IRONROOT_HADOOP_CACHE nor HOME is set")?;
    let unusable = |error: io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(unusable)?;
    // several processes at once: one of them fetches, the others wait
    let lock = File::create(folder.join("lock")).map_err(unusable)?;
    lock.lock().map_err(unusable)?;
    let jars = folder.join("jars");
    if jars.is_dir() {
        return Ok(jars);
    }
    if !is_installed("mvn") {
        return Err("Maven (mvn) is needed once, to fetch Hadoop".to_owned());
    }
    eprintln!("Fetching Hadoop 3.5.0 into {} ...", folder.display());
    let (pom, partial) = (folder.join("pom.xml"), folder.join("jars.partial"));
    std::fs::write(&pom, POM).map_err(unusable)?;
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(&pom).arg("dependency:copy-dependencies");
    maven.arg(format!("-DoutputDirectory={}", partial.display())).stdin(Stdio::null());
    let status = maven.status().map_err(|error| format!("mvn: {error}"))?;
    if !status.success() {
        return Err(format!("Maven did not bring Hadoop: {status}"));
    }
    // the name appears only when all are there
    std::fs::rename(&partial, &jars).map_err(unusable)?;
    Ok(jars)
}

/// Writes the script that runs Hadoop's programs with the configuration in `conf`, and the log settings there.
///
/// # Errors
/// A file cannot be written.
pub fn write_script(script: &Path, conf: &Path, jars: &Path) -> io::Result<()> {
    let quoted = |path: &Path| path.display().to_string().replace('\'', "'\\''");
    let text = SCRIPT.replace("@CONF@", &quoted(conf)).replace("@JARS@", &quoted(jars));
    std::fs::create_dir_all(script.parent().unwrap_or(Path::new("/")))?;
    std::fs::write(script, text)?;
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755))?;
    write_log_settings(conf)
}

/// Writes the settings of the log of Hadoop's programs into a configuration folder.
///
/// # Errors
/// The file cannot be written.
pub fn write_log_settings(conf: &Path) -> io::Result<()> {
    std::fs::write(conf.join("log4j.properties"), LOG4J)
}
