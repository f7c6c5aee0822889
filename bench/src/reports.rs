//! Replicas per second of full block reports, on one thread, without the wire.

use crate::world::World;
use std::time::Instant;

/// Prints the table: the first report of each of three DataNodes after a restart, in safe mode as then; and the same again after it.
pub fn table(replicas: usize) -> Result<(), String> {
    let (mut world, reported) = World::restarted(replicas);
    println!("Full block reports of {replicas} replicas each, replicas a second on one thread\n");
    for (what, rounds) in [("first after a restart", 1), ("unchanged", 3)] {
        if rounds > 1 {
            world.leave_safe_mode();
        }
        for node in 1..=3 {
            let mut best = f64::INFINITY;
            for _ in 0..rounds {
                let since = Instant::now();
                let unknown = world.report(node, &reported);
                best = best.min(since.elapsed().as_secs_f64());
                if unknown != 0 {
                    return Err(format!("{unknown} replicas of DataNode {node} are not known"));
                }
            }
            println!("{what:<24} DataNode {node} {:>12.0}", replicas as f64 / best);
        }
    }
    Ok(())
}
