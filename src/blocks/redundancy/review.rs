//! Deciding where a block stands after a change: in a low-redundancy queue, with too many replicas, or neither.

use super::{Level, Sort};
use crate::counting::Standing;
use crate::placement::{Target, choose_excess};
use crate::policies::ChooseKinds;
use crate::{Blocks, NodeNumber};
use record::{BlockHandle, InodeHandle, KindTag, ReplicaFlags, Store};
use vocab::BlockState;
use vocab::erasure_coding::REPLICATION;

/// The walk over all blocks that fills the queues after start-up, arena page by page: blocks with a record of their own first, then those
/// within inode records. Blocks that come meanwhile take care of themselves.
#[derive(Debug, Default)]
pub struct Scan {
    block_page: u32,
    inode_page: u32,
    /// Last slot of the page that was looked at.
    after: u32,
}

impl Scan {
    /// Cuts the slots of a page behind the last one that was looked at to `budget` of them; whether the page is done.
    fn cut(&mut self, slots: &mut Vec<u32>, budget: usize) -> bool {
        let done = slots.len() <= budget;
        slots.truncate(budget);
        self.after = if done { 0 } else { slots.last().copied().unwrap_or(0) };
        done
    }
}

impl Blocks {
    /// Looks at a block again after its replicas or its wanted number changed.
    pub(crate) fn review(&mut self, store: &mut Store, b: BlockHandle) {
        self.review_after(store, b, None, None);
    }

    /// The same; `added` is the node that has just got a replica, `hint` the node that a balancer wants to lose one.
    pub(crate) fn review_after(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        added: Option<NodeNumber>,
        hint: Option<NodeNumber>,
    ) {
        let info = store.block(b);
        let id = info.block.id;
        if info.deleted || info.state != BlockState::Complete {
            self.low.remove(id);
            return;
        }
        self.requeue(store, b);
        let count = self.count(store, b);
        let wanted = self.wanted(&info);
        // of a group that lacks others a duplicate goes only when one comes, as in Hadoop
        let duplicates = count.redundant > 0 && (added.is_some() || count.live >= wanted);
        if count.live > wanted || duplicates {
            self.shed_excess(store, b, added, hint);
        } else {
            self.postponed.remove(id);
        }
        if count.corrupt > 0 && count.live >= wanted {
            self.shed_corrupt(store, b);
        }
    }

    /// Looks at a block again because somebody asks for it; whether there is one and queues are filled.
    pub fn review_block(&mut self, store: &mut Store, id: vocab::BlockId) -> bool {
        let found = store.find_block(id).filter(|_| self.populating_queues());
        found.map(|b| self.review(store, b)).is_some()
    }

    /// Puts the block into the queue it belongs to, or takes it out.
    pub(crate) fn requeue(&mut self, store: &Store, b: BlockHandle) {
        let info = store.block(b);
        let id = info.block.id;
        let count = self.count(store, b);
        let pending = self.pending.count(id);
        let effective = count.live + pending;
        let wanted = self.wanted(&info);
        let sort = match (self.stripe(&info), wanted) {
            (Some(_), _) => Sort::Group,
            (None, 1) => Sort::Single,
            (None, _) => Sort::Replicated,
        };
        if effective < self.required_live(&info, &count) {
            let level = match self.stripe(&info) {
                Some(stripe) => {
                    let parity = u32::from(stripe.parity_units);
                    Level::of_group(effective, count.out_of_service(), wanted - parity, parity)
                }
                None => Level::of(effective, count.out_of_service(), count.read_only, wanted),
            };
            self.low.put(id, level, sort);
        } else if pending == 0 && !self.well_placed(store, b) {
            self.low.put(id, Level::BadlyDistributed, sort);
        } else {
            self.low.remove(id);
        }
    }

    /// Whether the block's replicas (those in maintenance and excess ones included) are far enough apart.
    pub(crate) fn well_placed(&self, store: &Store, b: BlockHandle) -> bool {
        use Standing::{Excess, Live, MaintenanceForRead, MaintenanceNotForRead};
        let counted: Vec<_> = store
            .replicas(b)
            .into_iter()
            .filter(|r| {
                self.standing(*r)
                    .is_some_and(|(s, ..)| matches!(s, Live | Excess | MaintenanceForRead | MaintenanceNotForRead))
            })
            .map(|r| r.storage)
            .collect();
        let info = store.block(b);
        self.misplaced(&counted, self.wanted(&info), self.stripe(&info).is_some()) == 0
    }

    /// Chooses replicas beyond the wanted number and queues their deletion; postponed while any volume's content is not up to date.
    /// Whether that was decided.
    pub(crate) fn shed_excess(
        &mut self,
        store: &mut Store,
        b: BlockHandle,
        added: Option<NodeNumber>,
        hint: Option<NodeNumber>,
    ) -> bool {
        let info = store.block(b);
        let mut candidates: Vec<Target> = Vec::new();
        let mut units: Vec<u8> = Vec::new();
        for r in store.replicas(b) {
            let Some((standing, volume, node)) = self.standing(r) else { continue };
            if standing != Standing::Absent && volume.contents_stale {
                self.postponed.add(info.block.id);
                return false;
            }
            if standing == Standing::Live {
                candidates.push(Target { storage: r.storage, node: node.number, kind: volume.kind });
                units.push(r.index);
            }
        }
        self.postponed.remove(info.block.id);
        if info.erasure_coding_policy != REPLICATION {
            self.shed_duplicates(store, b, &candidates, &units, hint.filter(|h| Some(*h) != added));
            return true;
        }
        let kinds: Vec<_> = candidates.iter().map(|t| t.kind).collect();
        let excess_kinds = self.policy(info.storage_policy).excess(info.replication, &kinds);
        let hint = hint.filter(|h| Some(*h) != added);
        let wanted = usize::from(info.replication.max(1));
        for t in choose_excess(self, &candidates, wanted, excess_kinds, added, hint, self.clock) {
            self.mark_excess(store, b, t.storage);
        }
        true
    }

    /// Queues the deletion of corrupt replicas of a block with enough good ones.
    fn shed_corrupt(&mut self, store: &mut Store, b: BlockHandle) {
        let info = store.block(b);
        for r in store.replicas(b) {
            if r.flags.contains(ReplicaFlags::CORRUPT) {
                self.delete_corrupt(store, b, r.storage, &Blocks::on_storage(&info, r));
            }
        }
    }

    /// Start-up is over: decisions begin, first with a walk over all blocks.
    pub(crate) fn begin_queues(&mut self) {
        self.queues_ready = true;
        self.scan = Some(Scan::default());
    }

    /// Walks on over up to `budget` blocks or inodes of a page after start-up; whether more remain.
    pub fn scan_step(&mut self, store: &mut Store, budget: usize) -> bool {
        let Some(scan) = &mut self.scan else { return false };
        let (after, budget) = (scan.after, budget.max(1));
        let found: Vec<BlockHandle> = if scan.block_page < store.block_page_count() {
            let page = store.blocks_of_page(scan.block_page).map(BlockHandle::raw);
            let mut slots: Vec<u32> = page.filter(|slot| *slot > after).take(budget + 1).collect();
            scan.block_page += u32::from(scan.cut(&mut slots, budget));
            slots.into_iter().filter_map(BlockHandle::from_raw).collect()
        } else if scan.inode_page < store.inode_page_count() {
            let page = store.inodes_of_page(scan.inode_page).map(InodeHandle::raw);
            let mut slots: Vec<u32> = page.filter(|slot| *slot > after).take(budget + 1).collect();
            scan.inode_page += u32::from(scan.cut(&mut slots, budget));
            let files = slots.into_iter().filter_map(InodeHandle::from_raw);
            files.filter(|h| store.kind(*h) == KindTag::File).filter_map(|h| single_block(store, h)).collect()
        } else {
            self.scan = None;
            return false;
        };
        for b in found {
            self.review(store, b);
        }
        true
    }

    /// Share of the walk after start-up that is done, 0 to 1 (JMX `ReconstructionQueuesInitProgress`).
    pub fn scan_progress(&self, store: &Store) -> f32 {
        let pages = (store.block_page_count() + store.inode_page_count()).max(1);
        match &self.scan {
            Some(s) => ((s.block_page + s.inode_page) as f32 / pages as f32).min(1.0),
            None if self.queues_ready => 1.0,
            None => 0.0,
        }
    }

    /// Blocks about which nothing can be decided while some volume is not up to date.
    pub fn postponed_count(&self) -> usize {
        self.postponed.len()
    }

    /// Looks at up to `budget` postponed blocks again.
    pub fn rescan_postponed(&mut self, store: &mut Store, budget: usize) {
        if !self.populating_queues() {
            return;
        }
        for id in self.postponed.next(budget) {
            match store.find_block(id) {
                Some(b) if self.has_too_many(store, b) => {
                    self.shed_excess(store, b, None, None);
                }
                Some(b) => {
                    self.postponed.remove(id);
                    self.review(store, b);
                }
                None => self.postponed.remove(id),
            }
        }
    }

    /// Asks again for excess replicas whose deletion was not reported in time.
    pub fn retry_excess(&mut self, store: &Store, budget: usize) {
        let age = self.settings.excess_timeout_ms;
        for (node, id) in self.excess.take_overdue(self.clock, age, budget) {
            if let Some(b) = store.find_block(id)
                && self.registry.node(node).is_some_and(|n| n.alive)
            {
                let info = store.block(b);
                if let Some(replica) = self.replica_on(store, b, node) {
                    self.invalidate(node, Blocks::on_storage(&info, replica));
                }
            }
        }
    }

    fn has_too_many(&self, store: &Store, b: BlockHandle) -> bool {
        let count = self.count(store, b);
        count.live > self.wanted(&store.block(b)) || count.redundant > 0
    }
}

/// The block of a file with one block only, which may lie within the file's own record.
fn single_block(store: &Store, file: InodeHandle) -> Option<BlockHandle> {
    (store.block_count_of(file) == 1).then(|| store.block_at(file, 0)).flatten()
}
