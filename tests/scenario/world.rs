//! A NameNode on a simulated disk with its users and DataNodes.

use super::Printed;
use super::line::Line;
use crate::sim::node::{self, Node, Setup};
use crate::support::scripted::DataNode;
use blocks::Hosts;
use ops::admin::cache_scan::CacheScan;
use ops::context::{Turn, View, Write};
use ops::datanode::Work;
use os::Os;
use os::sim::{SimClock, SimDisk};
use record::InodeHandle;
use state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use storage::purge::Retention;
use tokio::runtime::Runtime;
use vocab::{AuthenticationMethod, Block, BlockId, Caller, InodeId, Refusal, RpcIds, Txid};

/// When every scenario begins, in milliseconds.
pub const BEGIN: i64 = 1_700_000_000_000;
/// How long a command takes.
const STEP_MS: u64 = 1_000;

pub struct World {
    pub os: Os,
    pub disk: SimDisk,
    pub clock: SimClock,
    pub runtime: Runtime,
    pub node: Option<Node>,
    pub setup: Setup,
    pub blocks: blocks::Settings,
    /// DataNodes by number; those that are down send nothing.
    pub nodes: BTreeMap<u32, DataNode>,
    pub down: BTreeSet<u32>,
    pub hosts: Hosts,
    pub work: Work,
    pub caching: CacheScan,
    /// Lengths of blocks as their writers know them.
    pub written: BTreeMap<BlockId, u64>,
    /// Stamps that writers were given for a new pipeline.
    pub stamps: BTreeMap<BlockId, vocab::GenerationStamp>,
    /// The last record that was printed.
    pub printed: Txid,
}

impl World {
    /// A new file system with three DataNodes, out of safe mode.
    pub fn new() -> World {
        let (os, disk, clock) = Os::simulated(1);
        clock.set_wall(BEGIN);
        clock.advance(1_000_000);
        clock.set_wall(BEGIN);
        node::format_all(&os);
        let mut setup = Setup::default();
        setup.settings.block_pool = "BP-1".into();
        setup.settings.symlinks = true;
        setup.settings.tokens = true;
        setup.settings.access_time_precision_ms = 0;
        // all of the log stays, so that it can be replayed from its first record
        setup.retention = Retention { images: 1_000, extra_edits: u64::MAX / 2, extra_segments: 1_000_000 };
        let mut world = World {
            os,
            disk,
            clock,
            runtime: tokio::runtime::Builder::new_current_thread().build().expect("a runtime"),
            node: None,
            setup,
            blocks: blocks::Settings::default(),
            nodes: (1..=3).map(|n| (n, DataNode::new(n))).collect(),
            down: BTreeSet::new(),
            hosts: Hosts::default(),
            work: Work::default(),
            caching: CacheScan::default(),
            written: BTreeMap::new(),
            stamps: BTreeMap::new(),
            printed: Txid(1),
        };
        world.start().expect("starts");
        world.join_all();
        world
    }

    /// Loads and serves; the DataNodes do not know yet.
    pub fn start(&mut self) -> Result<(), String> {
        let loaded = node::load_with(&self.os, &node::roots(), &self.blocks, &mut |_, _, _| {})?;
        let node = Node::open_with(&self.os, loaded, &self.setup)?;
        self.node = Some(node);
        let hosts = self.hosts.clone();
        self.soft(|state, now| state.blocks.refresh_hosts(hosts, now));
        self.work = Work::default();
        if self.setup.settings.storage_policy_satisfier {
            self.soft(|state, _| state.queue_for_satisfier());
        }
        Ok(())
    }

    /// Every DataNode that is up registers and reports.
    pub fn join_all(&mut self) {
        let up: Vec<u32> = self.nodes.keys().filter(|n| !self.down.contains(n)).copied().collect();
        for n in up {
            let node = self.nodes[&n].clone();
            self.soft(|state, now| node.join(&mut state.blocks, &mut state.store, now));
        }
    }

    pub fn engine(&self) -> Arc<engine::Engine> {
        self.node.as_ref().expect("the name node runs").engine.clone()
    }

    pub fn now(&self) -> vocab::time::Now {
        node::now(&self.os)
    }

    /// Time goes on.
    pub fn pass(&mut self, ms: u64) {
        self.clock.advance(ms);
    }

    /// Reads and changes what is not durable.
    pub fn soft<R>(&self, f: impl FnOnce(&mut State, vocab::time::Now) -> R) -> R {
        let now = self.now();
        self.engine().lock().write("scenario", |state| f(state, now))
    }

    pub fn state<R>(&self, f: impl FnOnce(&State) -> R) -> R {
        self.engine().lock().read("scenario", f)
    }

    /// Who calls: `as=alice`, `rpc=7` for a call id of its own.
    pub fn caller(&self, line: &Line) -> Caller {
        let user = line.option("as").unwrap_or(node::OWNER);
        let groups: &[&str] = match user {
            "hdfs" => &["supergroup"],
            "alice" => &["staff"],
            "bob" => &["staff", "ops"],
            _ => &[],
        };
        Caller {
            user: user.into(),
            real_user: None,
            groups: groups.iter().map(|group| Arc::from(*group)).collect(),
            method: AuthenticationMethod::Simple,
            address: "10.1.1.1:5000".parse().expect("an address"),
            rpc_ids: line.option_number("rpc").map(|call_id| RpcIds { client_id: [7; 16], call_id }),
            retry: 0,
            context: None,
        }
    }

    /// Hands a call to the engine and waits for the answer.
    pub fn write<W: Write>(&mut self, line: &Line, operation: &W) -> Result<W::Reply, Refusal> {
        self.pass(STEP_MS);
        let (engine, caller) = (self.engine(), self.caller(line));
        self.runtime.block_on(engine.fence(engine.write(operation, &caller)))
    }

    /// A call that prints nothing when it succeeds.
    pub fn ask<W: Write<Reply = ()>>(&mut self, line: &Line, operation: &W) -> Printed {
        self.write(line, operation).map(|()| String::new())
    }

    /// A call that answers yes or no.
    pub fn ask_whether<W: Write<Reply = bool>>(&mut self, line: &Line, operation: &W) -> Printed {
        self.write(line, operation).map(|yes| yes.to_string())
    }

    /// Something under the write hold, with its own records.
    pub fn turn<R>(&mut self, line: &Line, f: impl FnOnce(&mut Turn<'_>) -> R) -> R {
        self.pass(STEP_MS);
        let (engine, caller) = (self.engine(), self.caller(line));
        let decided = engine.turn("scenario", &caller, f);
        self.runtime.block_on(engine.fence(decided))
    }

    pub fn view<R>(&self, line: &Line, f: impl FnOnce(&View<'_>) -> R) -> R {
        self.engine().view("scenario", &self.caller(line), f)
    }

    /// The inode of a path.
    pub fn find(state: &State, path: &[u8]) -> Option<InodeHandle> {
        state.tree.resolve(&state.store, path).ok().and_then(|resolved| resolved.last())
    }

    /// The id that a client has of a file: `id=0` for none.
    pub fn file(&self, line: &Line, path: &[u8]) -> InodeId {
        let known =
            || self.state(|state| World::find(state, path).map_or(InodeId(0), |file| state.store.inode_id(file)));
        line.option_number("id").map_or_else(known, InodeId)
    }

    /// The last block of a file as its writer knows it.
    pub fn last_block(&self, path: &[u8]) -> Option<Block> {
        let last = self.state(|state| {
            let file = World::find(state, path)?;
            state.store.last_block(file).map(|b| state.store.block(b).block)
        })?;
        Some(self.as_written(last))
    }

    /// A block with the length that its writer gave it.
    pub fn as_written(&self, block: Block) -> Block {
        Block { length: self.written.get(&block.id).copied().unwrap_or(block.length), ..block }
    }

    /// Detached subtrees are freed, as the engine does in the background.
    pub fn reclaim(&self) {
        while self.engine().reclaim_slice() {}
    }

    /// Ends in order.
    pub fn stop(&mut self) {
        if let Some(node) = self.node.take() {
            self.runtime.block_on(async { while node.engine.reclaim_slice() {} });
            node.engine.journal().close().expect("closes");
        }
    }

    /// Everything assigned so far becomes durable.
    pub fn settle(&self) {
        let engine = self.engine();
        let rests_on = engine.journal().last_assigned();
        self.runtime.block_on(engine.fence(engine::Decided { answer: (), rests_on }));
    }

    /// The power goes; what was not synced is gone.
    pub fn crash(&mut self) {
        self.disk = self.disk.crash();
        let random = Arc::new(os::sim::SimRandom::new(1));
        self.os = Os { disk: Arc::new(self.disk.clone()), clock: Arc::new(self.clock.clone()), random };
        self.node = None;
    }
}
