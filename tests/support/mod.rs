//! Purpose: what integration tests share: work folders, free ports, site files, the NameNode under test, and real Hadoop.
//! Called by: the test modules under `tests/`.
//! Calls: the `ironroot` binary and Hadoop's programs, as processes only.
//! Never: looks into the crates of the product (but for `scripted`, which speaks to its block half); leaves a process or a folder behind when a test has passed.
//! Invariants: one cluster of processes at a time (`cluster_turn`); whatever could not be tried is said aloud (`skip`).

pub mod cluster;
pub mod datanode;
pub mod driver;
pub mod hadoop;
pub mod http;
pub mod jobs;
pub mod kms;
pub mod namenode;
pub mod process;
#[allow(dead_code)] // storage's own tests read the other columns
pub mod recipe;
pub mod scripted;
pub mod site;
pub mod work;

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

static CLUSTER_TURN: Mutex<()> = Mutex::new(());

/// Taken by every test that starts several processes: on a small machine two clusters at once would only time out.
pub fn cluster_turn() -> MutexGuard<'static, ()> {
    CLUSTER_TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says aloud that something was not tried, past the test harness's capture; with `CI=true` that is a failure.
pub fn skip(reason: &str) {
    announce_skip(reason);
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{reason}");
}

/// The same where it is no failure: what is missing is no part of a build machine.
pub fn announce_skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    let line = format!("SKIPPED {test}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is writable");
}
