//! kill -9 of the NameNode under writers: nothing acknowledged is lost.
use std::time::{Duration, Instant};

use crate::support::cluster::Cluster;
use crate::support::cluster_turn;
use crate::support::namenode::Kind;

const WRITERS: &str = "8";
/// The whole test ends after this time with the rounds it has made, if they are at least `FEWEST_ROUNDS`.
const MOST_TIME: Duration = Duration::from_secs(900);
const FEWEST_ROUNDS: u64 = 3;

/// `IRONROOT_CRASH_ROUNDS` rounds (default 5) of writing and sudden death. After each, every acknowledged operation
/// must be there and what was written must read back; after the last, all that was ever written.
#[test]
fn kill_under_writers() {
    let rounds = match std::env::var("IRONROOT_CRASH_ROUNDS") {
        Ok(text) => text.parse().expect("IRONROOT_CRASH_ROUNDS is a number"),
        Err(_) => 5,
    };
    let _turn = cluster_turn();
    let settings = [("dfs.replication", "2")];
    let Some(mut cluster) = Cluster::start("crash", Kind::under_test(), 2, &settings) else { return };
    let begin = Instant::now();
    let mut made = 0;
    let mut acknowledged = 0_u64;
    while made < rounds && (made < FEWEST_ROUNDS || begin.elapsed() < MOST_TIME) {
        cluster.client.ok(&["load", "start", "/load", WRITERS, &format!("{}", 1000 * made)]);
        // a different moment each time, between 0.2 and 1.7 s, and now and then soon after a new segment
        std::thread::sleep(Duration::from_millis(200 + made * 389 % 1500));
        if made % 3 == 1 {
            cluster.client.ok(&["dfsadmin", "-rollEdits"]);
        }
        cluster.kill_namenode();
        let count: u64 = cluster.client.ok(&["load", "stop"]).trim().parse().expect("a count");
        assert!(count > acknowledged, "round {made}: no operation was acknowledged");
        acknowledged = count;
        cluster.start_namenode(Kind::under_test());
        check(&cluster, "recent", made);
        made += 1;
    }
    check(&cluster, "all", made);
    let seconds = begin.elapsed().as_secs();
    println!("{acknowledged} operations acknowledged in {made} rounds of {WRITERS} writers, {seconds} s");
}

fn check(cluster: &Cluster, which: &str, round: u64) {
    let output = cluster.client.run(&["load", "check", which]);
    assert!(output.exit == 0, "round {round}:\n{}{}", output.out, output.err);
}
