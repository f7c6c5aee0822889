//! Instructions under the state lock, counted by callgrind: each kind of call runs in a process of its own in which only what
//! [`crate::world::hold`] runs is counted. The lock itself and the mutex of the journal are not in it.

use crate::world::{Counted, World, modes, path};
use ops::read::file_info::get_file_info;
use ops::write::delete::Delete;
use ops::write::mkdirs::Mkdirs;
use ops::write::rename::Rename;
use std::process::Command;
use vocab::Refusal;

/// Files that are there before anything is counted, for each call that is; some of them are deleted or renamed.
const FILES_PER_CALL: usize = 10;
/// Most calls of a kind: the mean does not change with more.
const OPERATIONS_MAX: usize = 10_000;

/// What is counted: a kind of call, or of report, and the hold.
const KINDS: [(&str, Counted); 12] = [
    ("create", Counted::Exclusive),
    ("mkdirs", Counted::Exclusive),
    ("delete", Counted::Exclusive),
    ("rename", Counted::Exclusive),
    ("addBlock", Counted::Shared),
    ("addBlock", Counted::Exclusive),
    ("complete", Counted::Exclusive),
    ("getFileInfo", Counted::Shared),
    ("first-report", Counted::Exclusive),
    ("second-replica", Counted::Exclusive),
    ("third-replica", Counted::Exclusive),
    ("unchanged-report", Counted::Exclusive),
];

/// Prints the table.
pub fn table(operations: usize) -> Result<(), String> {
    let operations = operations.clamp(1, OPERATIONS_MAX);
    let files = operations * FILES_PER_CALL;
    println!("Instructions under the state lock, mean of {operations}; {files} files there before\n");
    println!("{:<20} {:<10} {:>12}", "", "hold", "instructions");
    for (kind, counted) in KINDS {
        let unit = if REPORTS.contains(&kind) { " a replica" } else { "" };
        let hold = if counted == Counted::Shared { "shared" } else { "exclusive" };
        println!("{kind:<20} {hold:<10} {:>12}{unit}", collected(kind, hold, operations)? / operations as u64);
    }
    Ok(())
}

const REPORTS: [&str; 4] = ["first-report", "second-replica", "third-replica", "unchanged-report"];

fn collected(kind: &str, hold: &str, operations: usize) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=bench::world::hold*"])
        .arg(own)
        .args(["holds", kind, hold, &operations.to_string()])
        .output()
        .map_err(|e| format!("valgrind does not start: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let number = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match number {
        Some(number) if output.status.success() && number > 0 => Ok(number),
        _ => Err(format!("{kind}: {text}")),
    }
}

/// What a counted process does: so many calls of a kind on the population.
pub fn holds(kind: &str, hold: &str, operations: usize) -> Result<(), String> {
    let counted = if hold == "shared" { Counted::Shared } else { Counted::Exclusive };
    if let Some(before) = REPORTS.iter().position(|report| *report == kind) {
        let (mut world, replicas) = World::restarted(operations);
        (1..=before as u32).for_each(|n| assert_eq!(world.report(n, &replicas), 0));
        if kind == "unchanged-report" {
            world.leave_safe_mode();
        }
        world.counted = counted;
        // the last kind repeats what the third DataNode has reported
        assert_eq!(world.report(before.min(2) as u32 + 1, &replicas), 0);
        return Ok(());
    }
    let mut world = World::new(3);
    world.populate(operations * FILES_PER_CALL);
    let refused = |refusal| format!("{kind}: {refusal:?}");
    let done: Result<Vec<bool>, Refusal> =
        (0..operations).map(|number| call(&mut world, counted, kind, number)).collect();
    if done.map_err(refused)?.contains(&false) { Err(format!("{kind} was not done")) } else { Ok(()) }
}

/// One call, of which only the kind in question is counted. Whether it did what it should.
fn call(world: &mut World, counted: Counted, kind: &str, number: usize) -> Result<bool, Refusal> {
    let old = path(number);
    let new = format!("{}-made", path(number * FILES_PER_CALL));
    let file = match kind {
        "addBlock" | "complete" => Some(world.write(&World::create_op(&new))?.id),
        _ => None,
    };
    world.counted = counted;
    let done = match (kind, file) {
        ("create", _) => world.write(&World::create_op(&new)).map(|_| true),
        ("mkdirs", _) => world.write(&Mkdirs { path: new.into(), modes: modes(0o755), create_parents: true }),
        ("delete", _) => world.write(&Delete { path: old.into(), recursive: false }),
        ("rename", _) => world.write(&Rename { source: old.into(), target: new.into() }),
        ("getFileInfo", _) => world.read(|view| Ok(get_file_info(view, old.as_bytes())?.is_some())),
        ("addBlock", Some(file)) => world.write(&World::add_block_op(&new, file)).map(|_| true),
        ("complete", Some(file)) => world.write(&World::complete_op(&new, file, None)),
        _ => Ok(false),
    };
    world.counted = Counted::Nothing;
    done
}
