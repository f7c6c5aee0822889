//! Ends at every call of the disk.

use super::datanodes::Datanodes;
use super::node::{self, Node};
use super::script::{self, Writer};
use super::spoiled::{Gate, Spoiled, Syncs};
use ops::datanode::Work;
use os::Os;
use os::sim::{Fault, SimClock, SimDisk};
use state::State;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::LocalSet;
use vocab::Txid;

/// Writers of a run.
const WRITERS: usize = 3;
/// Calls of each writer in a run.
const CALLS: usize = 16;

/// What goes on beside the writers: h(eartbeats and block work), r(oll), s(aveNamespace).
const CHORES: &str = "hhrhhshhhrhhshhrh";

/// A world of which copies are made, each to be ended in another way.
struct Origin {
    seed: u64,
    disk: SimDisk,
    clock: SimClock,
}

fn origin(seed: u64) -> Origin {
    let (os, disk, clock) = Os::simulated(seed);
    clock.set_wall(1_700_000_000_000);
    clock.advance(1_000_000);
    node::format_all(&os);
    Origin { seed, disk, clock }
}

/// One history: a disk, the people who use it, and what they know.
struct History {
    os: Os,
    disk: SimDisk,
    clock: SimClock,
    writers: Vec<Rc<RefCell<Writer>>>,
    nodes: Rc<RefCell<Datanodes>>,
    what: String,
}

impl Origin {
    fn history(&self, what: String) -> History {
        let disk = self.disk.fork();
        let os = with_disk(&disk, &self.clock);
        let writers = (0..WRITERS).map(|n| Rc::new(RefCell::new(Writer::new(n, self.seed)))).collect();
        History { os, disk, clock: self.clock.clone(), writers, nodes: Rc::default(), what }
    }
}

fn with_disk(disk: &SimDisk, clock: &SimClock) -> Os {
    let random = Arc::new(os::sim::SimRandom::new(1));
    Os { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()), random }
}

impl History {
    /// Runs a NameNode under the writers until they are done or it has ended. Whether it had to end.
    fn run(&self, node: &Node, calls: usize) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let tasks = LocalSet::new();
        self.nodes.borrow().join(&node.engine, &self.os, &script::owner());
        let mut all = Vec::new();
        for writer in &self.writers {
            let (writer, engine, nodes) = (writer.clone(), node.engine.clone(), self.nodes.clone());
            let (os, disk) = (self.os.clone(), self.disk.clone());
            let work = async move { script::write(writer, &engine, (&os, &disk), &nodes, calls).await };
            all.push(tasks.spawn_local(work));
        }
        let chores = self.chores(node, calls);
        let work = async {
            chores.await;
            for writer in all {
                writer.await.unwrap();
            }
        };
        let ended = tasks.block_on(&runtime, async {
            tokio::select! {
                () = work => false,
                () = node.watch.end.notified() => true,
            }
        });
        ended || node.watch.has_failed()
    }

    /// What goes on beside the writers: rolls, images, block work, heartbeats, each when the writers are so far.
    async fn chores(&self, node: &Node, calls: usize) {
        let engine = &node.engine;
        let begun = self.answers();
        let all = calls * WRITERS;
        let mut work = Work::default();
        for (share, chore) in CHORES.chars().enumerate() {
            let mut turns = 0;
            while self.answers() < begun + all * share / CHORES.len() && turns < 100 {
                turns += 1;
                tokio::task::yield_now().await;
            }
            self.clock.advance(4_000);
            match chore {
                // the only refusals are those of the role gate
                'r' => drop(engine.roll().await),
                's' => {
                    engine.lock().write("safemode", |state| state.blocks.safe_mode.enter_manual());
                    // a disk that fails now is the journal's business, or costs an image only
                    drop(engine.save_namespace(&script::owner(), 0, 0).await);
                    engine.lock().write("safemode", |state| state.blocks.leave_safe_mode(true));
                }
                _ => {
                    Datanodes::work(engine, &self.os, &mut work);
                    Datanodes::beat(&self.nodes, engine, (&self.os, &self.disk), &script::owner()).await;
                }
            }
        }
    }

    fn answers(&self) -> usize {
        self.writers.iter().map(|w| w.borrow().answers).sum()
    }

    /// The power goes; the same people meet the disk as it comes back.
    fn crash(&mut self) {
        self.disk = self.disk.crash();
        self.os = with_disk(&self.disk, &self.clock);
    }

    /// Loads from these directories and compares with what everybody knows.
    fn load(&self, os: &Os, roots: &[PathBuf]) -> node::Loaded {
        let mut expected = None;
        let mut seen = |state: &State, txid: Txid, _: &edit::Record<'_>| {
            assert!(expected.is_none_or(|e| e == txid), "{}: transactions in order", self.what);
            expected = Some(txid.next());
            if txid.0.is_multiple_of(7) {
                self.check_invariants(state);
            }
        };
        let loaded =
            node::load(os, roots, &mut seen).unwrap_or_else(|e| panic!("{}: refused to start: {e}", self.what));
        self.check_invariants(&loaded.state);
        for writer in &self.writers {
            let writer = writer.borrow();
            let found = script::tree_of(&loaded.state, &writer.top);
            let legal = script::agrees(&found, &writer.known)
                || writer.possible.iter().any(|possible| script::agrees(&found, possible));
            assert!(
                legal,
                "{}: {} after txid {}\nfound {found:#?}\nwas told {:#?}\nmight be {:#?}",
                self.what, writer.top, loaded.last, writer.known, writer.possible
            );
        }
        self.check_deletions(&loaded.state);
        loaded
    }

    fn check_invariants(&self, state: &State) {
        assert_eq!(state.tree.check(&state.store), Vec::<String>::new(), "{}", self.what);
    }

    /// No replica of a block that a file has was ever ordered to be deleted, but for those beyond the file's replication.
    fn check_deletions(&self, state: &State) {
        let nodes = self.nodes.borrow();
        for (block, replication) in script::live_blocks(state) {
            let left = nodes.holders(block.id);
            // a block that no client has written yet is nowhere
            if let Some(left) = left {
                assert!(
                    left >= replication.into(),
                    "{}: {left} replicas are left of {block:?}, which should have {replication}: {:?}",
                    self.what,
                    nodes.ordered
                );
            }
        }
    }

    /// The writers take what is found for the truth.
    fn adopt(&self, state: &State) {
        for writer in &self.writers {
            let found = script::tree_of(state, &writer.borrow().top);
            writer.borrow_mut().adopt(found);
        }
    }
}

/// What a run with a fault has shown.
#[derive(Default, Debug)]
struct Seen {
    runs: u64,
    /// Runs in which the NameNode ended by itself.
    ended: u64,
    answers: u64,
    /// Runs whose fault came while starting.
    at_start: u64,
    /// Runs that went on with one directory.
    dropped: u64,
    deletions: u64,
}

/// One history: a start, a fault at one call, the end, a start from what is left, work, another end, another start.
fn one(origin: &Origin, call: u64, fault: Fault, seen: &mut Seen) {
    let mut history = origin.history(format!("seed {} {fault:?} at call {call}", origin.seed));
    history.disk.fault_at(origin.disk.calls() + call, fault);
    seen.runs += 1;
    match Node::start(&history.os) {
        Ok(node) => {
            seen.ended += u64::from(history.run(&node, CALLS));
            let dropped: Vec<_> = node.engine.journal().members().into_iter().filter(|m| m.dropped.is_some()).collect();
            seen.dropped += u64::from(dropped.len() == 1);
            history.crash();
            drop(node);
        }
        Err(_) => {
            seen.at_start += 1;
            history.crash();
        }
    }
    seen.answers += history.answers() as u64;
    if fault == Fault::Stop {
        // Both directories were in use to the end: each alone has everything that was answered.
        for root in node::roots() {
            let disk = history.disk.fork();
            history.load(&with_disk(&disk, &history.clock), &[root]);
        }
    }
    // the start itself may end half way, too
    for call in 1..=3 {
        let disk = history.disk.fork();
        disk.fault_at(disk.calls() + 3 * call, Fault::Stop);
        drop(Node::start(&with_disk(&disk, &history.clock)));
        history.load(&with_disk(&disk.crash(), &history.clock), &node::roots());
    }
    let loaded = history.load(&history.os, &node::roots());
    history.adopt(&loaded.state);
    let node = Node::open(&history.os, loaded).unwrap_or_else(|e| panic!("{}: second start: {e}", history.what));
    assert!(!history.run(&node, 4), "{}: no fault any more", history.what);
    history.crash();
    drop(node);
    history.what += ", second life";
    history.load(&history.os, &node::roots());
    seen.deletions += history.nodes.borrow().ordered.len() as u64;
}

/// Calls of a run without fault.
fn length(origin: &Origin) -> u64 {
    let history = origin.history(format!("seed {} without fault", origin.seed));
    let node = Node::start(&history.os).unwrap();
    assert!(!history.run(&node, CALLS));
    node.engine.journal().close().unwrap();
    let live = node.engine.lock().read("digest", State::digest);
    drop(node);
    let calls = history.disk.calls() - origin.disk.calls();
    let loaded = history.load(&history.os, &node::roots());
    assert_eq!(loaded.state.digest(), live, "live and replayed state");
    node::save(&history.os, &loaded).unwrap();
    drop(loaded);
    let again = node::load(&history.os, &node::roots(), &mut |_, txid, _| panic!("{txid} beyond the image")).unwrap();
    assert_eq!(again.state.digest(), live, "live and saved state");
    calls
}

/// Tries a fault at every call of a run.
fn every_call(fault: Fault, seeds: &[u64]) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds {
        let origin = origin(*seed);
        let calls = length(&origin);
        (1..=calls).for_each(|call| one(&origin, call, fault, &mut seen));
    }
    println!("{fault:?}: {seen:?}");
    seen
}

#[test]
fn a_process_that_stops_at_any_call_loses_nothing_answered() {
    let seen = every_call(Fault::Stop, &[1]);
    assert!(seen.ended > 0 && seen.answers > 0 && seen.at_start > 0 && seen.deletions > 0, "{seen:?}");
}

#[test]
fn a_call_that_fails_costs_one_directory_and_nothing_answered() {
    let seen = every_call(Fault::Io, &[2]);
    assert!(seen.dropped > 0 && seen.deletions > 0, "{seen:?}");
}

#[test]
fn a_full_disk_costs_one_directory_and_nothing_answered() {
    let seen = every_call(Fault::NoSpace, &[3]);
    assert!(seen.dropped > 0, "{seen:?}");
}

#[test]
fn short_writes_are_gone_on_with() {
    let seen = every_call(Fault::Short, &[4]);
    assert!(seen.ended == 0 && seen.dropped == 0, "{seen:?}");
}

#[test]
fn when_both_directories_fail_nothing_more_is_answered() {
    let origin = origin(5);
    let mut history = origin.history("both directories fail".to_owned());
    let node = Node::start(&history.os).unwrap();
    history.disk.break_path(Path::new("/a"));
    history.disk.break_path(Path::new("/b"));
    assert!(history.run(&node, CALLS), "ends");
    assert_eq!(history.answers(), 0);
    history.crash();
    drop(node);
    let loaded = history.load(&history.os, &node::roots());
    assert_eq!(loaded.last, Txid(1));
}

/// Whether some end of a run shows that something is wrong.
fn is_found_out(spoil: impl Fn(&mut History) + std::panic::RefUnwindSafe) -> bool {
    let origin = origin(6);
    let calls = length(&origin);
    (1..=calls).step_by(2).any(|call| {
        let mut history = origin.history(format!("spoiled, stop at call {call}"));
        spoil(&mut history);
        history.disk.fault_at(origin.disk.calls() + call, Fault::Stop);
        let Ok(node) = Node::start(&history.os) else { return false };
        history.run(&node, CALLS);
        history.crash();
        drop(node);
        let load = std::panic::AssertUnwindSafe(|| drop(history.load(&history.os, &node::roots())));
        std::panic::catch_unwind(load).is_err()
    })
}

#[test]
fn answers_that_do_not_wait_at_the_fence_are_found_out() {
    assert!(is_found_out(|history| history.writers.iter().for_each(|w| w.borrow_mut().fenced = false)));
}

#[test]
fn a_disk_that_does_not_sync_is_found_out() {
    assert!(is_found_out(|history| history.os.disk = Arc::new(Spoiled(history.disk.clone(), Syncs::Forgotten))));
}

/// A file is deleted while its record cannot become durable, and its DataNodes ask what to do; then the power goes. Whether they were told.
fn told_to_delete_before_the_record_is_durable(fenced: bool) -> bool {
    let mut history = origin(7).history("stuck sync".to_owned());
    history.nodes.borrow_mut().fenced = fenced;
    let gate = Arc::new(Gate::default());
    history.os.disk = Arc::new(Spoiled(history.disk.clone(), Syncs::Behind(gate.clone())));
    let node = Node::start(&history.os).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let (engine, os, disk, nodes) = (&node.engine, &history.os, &history.disk, &history.nodes);
        nodes.borrow().join(engine, os, &script::owner());
        script::put(engine, os, nodes, "/w0", "/w0/f").await;
        engine.lock().read("tree", |state| history.adopt(state));
        gate.set(true);
        let (engine, os, disk, nodes) = (engine.clone(), os.clone(), disk.clone(), nodes.clone());
        tokio::task::spawn_local({
            let engine = engine.clone();
            async move { script::delete(&engine, "/w0/f").await }
        });
        tokio::task::yield_now().await;
        history.clock.advance(4_000);
        Datanodes::work(&engine, &os, &mut Work::default());
        tokio::task::spawn_local(async move {
            Datanodes::beat(&nodes, &engine, (&os, &disk), &script::owner()).await;
        });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    });
    drop(tasks);
    history.crash();
    gate.set(false);
    drop(node);
    let told = !history.nodes.borrow().ordered.is_empty();
    let load = std::panic::AssertUnwindSafe(|| drop(history.load(&history.os, &node::roots())));
    assert_eq!(std::panic::catch_unwind(load).is_err(), told, "the file is alive, so the check sees what was told");
    told
}

#[test]
fn commands_wait_at_the_fence() {
    assert!(!told_to_delete_before_the_record_is_durable(true));
    assert!(told_to_delete_before_the_record_is_durable(false), "and without a fence they do not");
}
