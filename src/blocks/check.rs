//! The invariants of the block half, for tests.

use crate::Blocks;
use crate::counting::EXCESS;
use record::{ReplicaFlags, Store};
use vocab::BlockId;

impl Blocks {
    /// Every violated invariant, in words; empty if all hold.
    pub fn check(&self, store: &Store) -> Vec<String> {
        let mut findings = Vec::new();
        for b in store.blocks() {
            let id = store.block_core(b).id;
            let mut nodes = Vec::new();
            for r in store.replicas(b) {
                let Some(v) = self.registry.volume(r.storage) else {
                    findings.push(format!("{id}: replica on unknown storage {}", r.storage.0));
                    continue;
                };
                if !v.blocks.contains(id.0) {
                    findings.push(format!("{id}: not in the run of storage {}", r.storage.0));
                }
                if nodes.contains(&v.node) {
                    findings.push(format!("{id}: two replicas on node {}", v.node.0));
                }
                nodes.push(v.node);
                if r.flags.contains(ReplicaFlags::CORRUPT) != self.corrupt.of(id).iter().any(|(n, _)| *n == v.node) {
                    findings.push(format!("{id}: corrupt mark and map differ on node {}", v.node.0));
                }
                if r.flags.contains(EXCESS) != self.excess.contains(v.node, id) {
                    findings.push(format!("{id}: excess mark and map differ on node {}", v.node.0));
                }
            }
        }
        for v in self.registry.volumes() {
            for id in v.blocks.iter() {
                let there = store
                    .find_block(BlockId(id))
                    .is_some_and(|b| store.replicas(b).iter().any(|r| r.storage == v.number));
                if !there {
                    findings.push(format!("storage {}: block {id} in its run only", v.number.0));
                }
            }
        }
        let serving = || self.registry.nodes().filter(|n| n.alive && n.in_service());
        let sums = (serving().count() as u64, serving().map(|n| u64::from(n.stats.xceivers)).sum());
        if sums != self.registry.in_service {
            findings
                .push(format!("nodes in service and their load: counted {:?}, are {sums:?}", self.registry.in_service));
        }
        if self.safe_mode.is_startup() {
            let complete = |b: &record::BlockHandle| store.block_state(*b) == vocab::BlockState::Complete;
            let safe = store.blocks().filter(complete).filter(|b| self.is_safe(store, *b)).count() as u64;
            if self.safe_mode.blocks().0 != safe {
                findings.push(format!("safe blocks: counted {}, are {safe}", self.safe_mode.blocks().0));
            }
        }
        findings
    }
}
