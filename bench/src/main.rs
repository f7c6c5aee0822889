//! Purpose: measurements of the core without a network: instructions under the state lock, block reports, image load and save; start-up of the whole program.
//! Called by: people and CI, from the command line; the throughput of a whole name node is measured by `nnthroughput.sh`.
//! Calls: ops, state, blocks, storage (image), edit.
//! Never: asserts a speed; measures without checking that the work was done.
//! Invariants: populations are functions of their size, so that counts of instructions repeat.

mod image;
mod instructions;
mod latency;
mod live;
mod memory;
mod operations;
mod replay;
mod reports;
mod snapshots;
mod startup;
mod world;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "usage: bench instructions [OPERATIONS]   instructions under the state lock (needs valgrind)
       bench reports [REPLICAS]          replicas per second of full block reports
       bench replay [RECORDS] [--java]   replay of a log, also by a Java name node if asked
       bench image [FILES]               load and save of an image
       bench snapshots [COUNT] [RENAMED] many snapshots, and many files renamed out of one
       bench startup [--files N] ...     start of a whole name node, beside Java's
       bench memory [--files N] ...      what a file costs in memory, beside Java's
       bench latency [--files N] ...     how long others wait while one does much
       bench operations [--calls N] ...  CPU time of each kind of call, and waits of a few callers, beside Java's";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| words.get(at).map_or(Some(default), |word| word.parse().ok());
    let done = match words.first().map(String::as_str) {
        Some("instructions") => number(1, 500).map(instructions::table),
        Some("holds") => number(3, 1).and_then(|n| Some(instructions::holds(words.get(1)?, words.get(2)?, n))),
        Some("reports") => number(1, 1_000_000).map(reports::table),
        Some("startup") => Some(startup::run(&words[1..])),
        Some("operations") => Some(operations::run(&words[1..])),
        Some("latency") => Some(latency::run(&words[1..])),
        Some("memory") => Some(memory::run(&words[1..])),
        Some("replay") => number(1, 500_000).map(|n| replay::table(n, words.iter().any(|w| w == "--java"))),
        Some("snapshots") => number(1, 10_000).and_then(|count| Some(snapshots::table(count, number(2, 1_000_000)?))),
        Some("image") => number(1, 1_000_000).map(image::table),
        _ => None,
    };
    match done {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
