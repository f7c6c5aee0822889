//! Scripted DataNodes: they hold what clients wrote, report it, and do what they are told.

use super::node::now;
use crate::support::scripted::DataNode;
use blocks::Command;
use engine::Engine;
use ops::datanode::Work;
use os::Os;
use os::sim::SimDisk;
use std::cell::RefCell;
use std::collections::BTreeSet;
use vocab::{Block, BlockId, Caller};

/// DataNodes of a cluster.
pub const COUNT: u32 = 3;

/// All of them, with what they hold: the same on every node unless deleted there. They outlive the NameNode.
pub struct Datanodes {
    /// Whether commands wait at the fence. Always, but in tests of the tests.
    pub fenced: bool,
    nodes: Vec<DataNode>,
    /// Every replica that a NameNode has ever ordered to be deleted, with the node.
    pub ordered: Vec<(u32, Block)>,
    /// All blocks that were ever written.
    written: BTreeSet<BlockId>,
}

impl Default for Datanodes {
    fn default() -> Datanodes {
        let nodes = (1..=COUNT).map(DataNode::new).collect();
        Datanodes { fenced: true, nodes, ordered: Vec::new(), written: BTreeSet::new() }
    }
}

impl Datanodes {
    /// Registers all and sends their full reports.
    pub fn join(&self, engine: &Engine, os: &Os, caller: &Caller) {
        for node in &self.nodes {
            engine.turn("join", caller, |turn| {
                let state = turn.soft();
                node.join(&mut state.blocks, &mut state.store, now(os));
            });
        }
    }

    /// A client has written a block to all of them, or wrote it with another length or stamp.
    pub fn write(&mut self, engine: &Engine, os: &Os, caller: &Caller, block: Block) {
        self.written.insert(block.id);
        for node in &mut self.nodes {
            engine.turn("received", caller, |turn| {
                let state = turn.soft();
                node.receive(&mut state.blocks, &mut state.store, (block, 0), now(os));
            });
        }
    }

    /// How many nodes have a block; `None` if it was never written.
    pub fn holders(&self, id: BlockId) -> Option<usize> {
        self.written.contains(&id).then(|| self.nodes.iter().filter(|node| node.held.contains_key(&id)).count())
    }

    /// One round of block work.
    pub fn work(engine: &Engine, os: &Os, work: &mut Work) {
        while engine.lock().write("blockWork", |state| work.step(state, now(os))) {}
    }

    /// A heartbeat of each node. The commands in the answers, once they have passed the fence, are done.
    pub async fn beat(this: &RefCell<Datanodes>, engine: &Engine, (os, disk): (&Os, &SimDisk), caller: &Caller) {
        for n in 1..=COUNT {
            let decided = engine.turn("sendHeartbeat", caller, |turn| {
                let state = turn.soft();
                let node = &this.borrow().nodes[n as usize - 1];
                node.beat(&mut state.blocks, &mut state.store, now(os)).expect("heartbeat")
            });
            let fenced = this.borrow().fenced;
            let commands = if fenced { engine.fence(decided).await } else { decided.answer }.commands;
            if disk.stopped() {
                return; // the process is no more: nobody gets these commands
            }
            for command in commands {
                if let Command::Invalidate(list) = command {
                    let mut this = this.borrow_mut();
                    for block in list {
                        this.nodes[n as usize - 1].held.remove(&block.id);
                        this.ordered.push((n, block));
                    }
                }
            }
        }
    }
}
