//! A restart from the arena file: a name node is started on an image, changed by one directory, and left alone until it has made its checkpoint; then it is
//! ended and started again.

use super::ask::{self, Expected};
use super::process::{Running, Side, Started, command, cpu, free_port, memory, prepare, wait};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A checkpoint is due after one transaction, and that is looked at all the time; safe mode, in which there is none, ends at once.
const SETTINGS: [(&str, &str); 4] = [
    ("dfs.namenode.checkpoint.txns", "1"),
    ("dfs.namenode.checkpoint.check.period", "1"),
    ("dfs.namenode.safemode.threshold-pct", "0"),
    ("dfs.namenode.safemode.extension", "0"),
];
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures it, in `folder` on a copy of `source`.
pub fn measure(source: &Path, folder: &Path, expected: Option<&Expected>) -> Result<Started, String> {
    let text = |e: std::io::Error| e.to_string();
    let (rpc, http) = (free_port().map_err(text)?, free_port().map_err(text)?);
    prepare(source, folder, rpc, http, &SETTINGS).map_err(text)?;
    let start = || {
        let log = File::options().create(true).append(true).open(folder.join("log")).map_err(text)?;
        let mut command = command(Side::Ironroot, folder, 0);
        command.stdout(log.try_clone().map_err(text)?).stderr(log);
        let since = Instant::now();
        let mut running = Running(command.spawn().map_err(|e| format!("{command:?}: {e}"))?);
        let phases = wait(&mut running.0, http, since, folder)?;
        Ok::<_, String>((running, phases, since))
    };
    let (mut running, ..) = start()?;
    ask::make_directory(rpc, "/made-before-the-restart")?;
    made(&folder.join("name/current"))?;
    let pid = running.0.id().to_string();
    let ended = Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|status| status.success());
    if !ended || running.0.wait().is_err() {
        return Err("does not end".to_owned());
    }
    drop(running);
    let told = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    let before = told().len();
    let (running, phases, since) = start()?;
    let mut started = Started { phases, serving_s: since.elapsed().as_secs_f64(), ..Started::default() };
    started.load_s = started.phases.iter().find(|p| p.0 == "LoadingFsImage").map_or(0.0, |p| p.1 / 1e3);
    let pid = running.0.id();
    (started.user_s, started.system_s) = cpu(pid);
    if let Some(expected) = expected {
        ask::check(rpc, &Expected { directories: expected.directories + 1, ..expected.clone() })?;
        started.checked_s = since.elapsed().as_secs_f64();
    }
    memory(pid, &mut started);
    let log = told().split_off(before);
    if !log.contains("Loaded arena file") {
        return Err(format!("no start from an arena file:\n{log}"));
    }
    Ok(started)
}

/// Waits for an arena file and the image from it.
fn made(current: &Path) -> Result<(), String> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let entries = fs::read_dir(current).map_err(|e| e.to_string())?.flatten();
        let names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        let arena = names.iter().filter_map(|name| name.strip_prefix("arena_")).max();
        if arena.is_some_and(|txid| names.contains(&format!("fsimage_{txid}.md5"))) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err("makes no checkpoint".to_owned())
}
