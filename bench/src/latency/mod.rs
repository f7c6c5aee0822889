//! Purpose: how long others wait while somebody asks much of a name node: two independent clients at a steady rate, first alone, then beside each load.
//! Called by: the command line (`bench latency`).
//! Calls: live (a name node as a process), startup (generated namespaces).
//! Never: links the product; counts a call from the moment at which it was sent rather than from that at which it was to be sent.
//! Invariants: each load is compared with the quiet time just before it, so that a busy machine weighs on both.

mod loads;
mod probe;

use crate::live::{Live, LongHolds};
use crate::startup::process::Side;
use crate::startup::{Generated, Profile, generate, in_folder};
use loads::{Cluster, LOADS};
use probe::{Answered, Kind, Probe, Spread};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const USAGE: &str =
    "bench latency [--files N] [--profile fresh|aged] [--java] [--only WORDS] [--calm SECONDS] [--rates STATS,CREATES]
                     [--heap MEGABYTES] [--work FOLDER]";

/// Beyond this difference of the waits at 99.99 % a load is marked, in milliseconds.
const MARK_MS: f64 = 5.0;
/// So long after a load what it left behind counts to it.
const TAIL: Duration = Duration::from_secs(2);

struct Options {
    files: u64,
    profile: Profile,
    side: Side,
    only: Option<String>,
    calm: Duration,
    rates: (u64, u64),
    heap: u64,
    work: PathBuf,
}

fn options(words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        files: 1_000_000,
        profile: Profile::Aged,
        side: Side::Ironroot,
        only: None,
        calm: Duration::from_secs(10),
        rates: (1_000, 200),
        heap: 4_096,
        work: std::env::temp_dir().join(format!("bench-latency-{}", std::process::id())),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &str| text.replace('_', "").parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--files" => options.files = number(value()?)?,
            "--calm" => options.calm = Duration::from_secs(number(value()?)?),
            "--heap" => options.heap = number(value()?)?,
            "--only" => options.only = Some(value()?.clone()),
            "--work" => options.work = value()?.into(),
            "--java" => options.side = Side::Java,
            "--rates" => {
                let (stats, creates) = value()?.split_once(',').ok_or("--rates STATS,CREATES")?;
                options.rates = (number(stats)?, number(creates)?);
            }
            "--profile" => {
                options.profile = match value()?.as_str() {
                    "fresh" => Profile::Fresh,
                    "aged" => Profile::Aged,
                    other => return Err(format!("no profile {other}")),
                }
            }
            other => return Err(format!("{other} is not known\n{USAGE}")),
        }
    }
    Ok(options)
}

/// Runs `bench latency`.
pub fn run(words: &[String]) -> Result<(), String> {
    let options = options(words)?;
    in_folder(&options.work, words, || measure(&options))
}

fn measure(options: &Options) -> Result<(), String> {
    let source = options.work.join("source");
    let generated = generate(&source, options.files, options.profile).map_err(|e| e.to_string())?;
    println!(
        "{} files ({}), {} inodes, {} blocks; {} stats and {} creates a second\n",
        options.files,
        options.profile.name(),
        generated.figures.inodes,
        generated.figures.blocks,
        options.rates.0,
        options.rates.1
    );
    println!(
        "| load | seconds | client | calls | p50 | p99 | p99.9 | p99.99 | longest, ms | over the quiet p99.99, ms | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    if options.side == Side::Ironroot && wanted(options, CHECKPOINT) {
        checkpoint(options, &source, &generated)?;
    }
    let folder = options.work.join("loads");
    let exclude = folder.join("exclude").display().to_string();
    let settings = [
        ("dfs.hosts.exclude", exclude.as_str()),
        ("dfs.heartbeat.interval", "1"),
        ("dfs.namenode.heartbeat.recheck-interval", "2000"),
        ("dfs.namenode.path.based.cache.refresh.interval.ms", "3600000"),
    ];
    fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join("exclude"), "")).map_err(|e| e.to_string())?;
    let live = Live::start(options.side, &source, &folder, options.heap, &settings)?;
    let mut cluster = Cluster::new(&live, options.files, options.profile)?;
    let probes = probes(options, &live, &generated)?;
    for load in LOADS.iter().filter(|load| wanted(options, load.name) || std::ptr::eq(*load, &LOADS[0])) {
        beside(options, &live, &probes, load.name, || (load.run)(&mut cluster))?;
    }
    Ok(())
}

fn wanted(options: &Options, name: &str) -> bool {
    options.only.as_ref().is_none_or(|words| words.split(',').any(|word| name.contains(word)))
}

fn probes(options: &Options, live: &Live, generated: &Generated) -> Result<Vec<Probe>, String> {
    let paths: Arc<Vec<String>> = Arc::new(generated.expected.sample.iter().map(|known| known.path.clone()).collect());
    let start = |kind, rate| Probe::start(live.address(), kind, rate, paths.clone());
    Ok(vec![start(Kind::Stat, options.rates.0)?, start(Kind::Create, options.rates.1)?])
}

const CHECKPOINT: &str = "online checkpoint, and the image from it";

/// A checkpoint that is due by the number of transactions, under the probes' own writes.
fn checkpoint(options: &Options, source: &std::path::Path, generated: &Generated) -> Result<(), String> {
    // due some seconds after the load has begun; a create is two transactions, and its directory every now and then one more
    let quiet = options.calm + Duration::from_secs(12);
    let transactions = (2 * options.rates.1 * quiet.as_secs()).to_string();
    let settings = [
        ("dfs.namenode.checkpoint.txns", transactions.as_str()),
        ("dfs.namenode.checkpoint.check.period", "1"),
        ("dfs.namenode.safemode.threshold-pct", "0"),
        ("dfs.namenode.safemode.extension", "0"),
    ];
    let folder = options.work.join("checkpoint");
    let live = Live::start(options.side, source, &folder, options.heap, &settings)?;
    let probes = probes(options, &live, generated)?;
    let current = folder.join("name/current");
    beside(options, &live, &probes, CHECKPOINT, || {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(300) {
            let names = fs::read_dir(&current).map_err(|e| e.to_string())?.flatten();
            let names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            let arena = names.iter().filter_map(|name| name.strip_prefix("arena_")).max();
            if arena.is_some_and(|txid| names.contains(&format!("fsimage_{txid}.md5"))) {
                return Ok(String::new());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("no checkpoint is made".to_owned())
    })
}

/// A quiet time, then the load; prints both.
fn beside(
    options: &Options,
    live: &Live,
    probes: &[Probe],
    name: &str,
    load: impl FnOnce() -> Result<String, String>,
) -> Result<(), String> {
    probes.iter().for_each(|probe| drop(probe.take()));
    std::thread::sleep(options.calm);
    let quiet: Vec<Spread> = probes.iter().map(|probe| Spread::of(&probe.take())).collect();
    let before = if live.side == Side::Ironroot { live.long_holds()? } else { BTreeMap::new() };
    let since = Instant::now();
    let told = load()?;
    let took = since.elapsed();
    std::thread::sleep(TAIL);
    let after = if live.side == Side::Ironroot { live.long_holds()? } else { BTreeMap::new() };
    for (probe, quiet) in probes.iter().zip(&quiet) {
        let answers: Vec<Answered> = probe.take();
        let busy = Spread::of(&answers);
        row(name, "quiet", options.calm, probe.kind, quiet, "");
        let over = busy.at[3] - quiet.at[3];
        let mark = if over > MARK_MS { format!("{over:.1} **over**") } else { format!("{over:.1}") };
        row(name, &told, took, probe.kind, &busy, &mark);
    }
    holds(&before, &after);
    Ok(())
}

fn row(name: &str, told: &str, took: Duration, kind: Kind, spread: &Spread, over: &str) {
    let [p50, p99, p999, p9999, longest] = spread.at;
    let refused = if spread.refused > 0 { format!(", {} refused", spread.refused) } else { String::new() };
    println!(
        "| {name} | {:.1} | {kind:?} | {}{refused} | {p50:.2} | {p99:.2} | {p999:.2} | {p9999:.2} | {longest:.2} | {over} | {told} |",
        took.as_secs_f64(),
        spread.calls,
    );
}

/// Holds of the state lock of more than 1 ms that came with the load.
fn holds(before: &BTreeMap<String, LongHolds>, after: &BTreeMap<String, LongHolds>) {
    for (what, now) in after {
        let then = before.get(what).copied().unwrap_or_default();
        let (short, long) = (now.up_to_5_ms - then.up_to_5_ms, now.longer - then.longer);
        if short + long > 0 {
            let longest = if now.longest_ms > then.longest_ms { "longest" } else { "longest ever" };
            println!("|   hold: {what} | {short} of 1 to 5 ms, {long} longer, {longest} {:.1} ms |", now.longest_ms);
        }
    }
}
