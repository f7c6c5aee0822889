//! Full reports, taken in slices so that the lock can be released between them.

use super::Reported;
use crate::{Blocks, NodeNumber, Registration, VolumeId};
use record::{StorageNumber, Store};
use smallvec::SmallVec;
use vocab::time::Now;
use vocab::{BlockId, Refusal, ReplicaState};

/// Replicas whose blocks are looked up together, so that waits for memory overlap.
const BATCH: usize = 32;

/// How a report came: one of several RPCs, under which lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReportContext {
    /// RPCs that the report consists of.
    pub total_rpcs: u32,
    /// Number of this one, from 0.
    pub rpc: u32,
    /// Id of the report.
    pub report_id: u64,
    /// Lease it was sent under; 0 for none.
    pub lease_id: u64,
}

/// A full report of one volume under way. Slices of its replicas are handed to [`Blocks::report_slice`], then
/// [`Blocks::finish_report`] is called until it says that it is done.
#[derive(Debug)]
pub struct FullReport {
    node: NodeNumber,
    storage: StorageNumber,
    epoch: u32,
    first: bool,
    /// Ids of known blocks that the report named.
    seen: mem::runs::RunBuilder,
    /// What `seen` became when all replicas were in; the walk for missing ones goes on behind this id.
    closed: Option<(mem::runs::Run, Option<i64>)>,
    /// Replicas of blocks that do not exist.
    pub unknown: u64,
    /// Replicas that were known here and that the report did not name.
    pub missing: u64,
}

/// Whether a report is taken.
#[derive(Debug)]
pub enum ReportStart {
    /// It is: go on with slices.
    Go(FullReport),
    /// Start-up is not over and the volume has reported already: later reports are ignored until then.
    Discarded,
}

impl Blocks {
    /// Looks whether a full report comes under a good lease (Hadoop's `checkBlockReportLease`).
    ///
    /// # Errors
    /// `InvalidReportLease` when another or no lease is out for the node.
    pub fn check_lease(&mut self, who: &Registration, context: &ReportContext, now: Now) -> Result<(), Refusal> {
        let life = self.settings.report_lease_ms;
        let Some(node) = self.identify(who)? else {
            return Err(Refusal::UnregisteredNode(format!("Unregistered server: {who}").into()));
        };
        if self.leases.check(node, context.lease_id, now.monotonic, life) {
            return Ok(());
        }
        Err(Refusal::InvalidReportLease(
            format!("Block report 0x{:x} was rejected as lease 0x{:x} is invalid", context.report_id, context.lease_id)
                .into(),
        ))
    }

    /// Begins to take a full report of a volume.
    ///
    /// # Errors
    /// A node that is dead or not registered.
    pub fn begin_report(&mut self, who: &Registration, volume: &VolumeId, now: Now) -> Result<ReportStart, Refusal> {
        self.tick_clock(now);
        let node = self.identify(who)?.filter(|n| self.registry.node(*n).is_some_and(|n| n.registered));
        let Some(node) = node else {
            return Err(Refusal::io(format!("ProcessReport from dead or unregistered node: {who}")));
        };
        let Some(storage) = self.registry.ensure_volume(node, volume) else {
            return Err(Refusal::io("too many storages"));
        };
        let startup = self.safe_mode.is_startup();
        let v = self.registry.volume_mut(storage).expect("ensured");
        if startup && v.reports > 0 {
            self.leases.give_back(node);
            return Ok(ReportStart::Discarded);
        }
        v.report_epoch += 1;
        v.came_during_report = Some(hashbrown::HashSet::new());
        Ok(ReportStart::Go(FullReport {
            node,
            storage,
            epoch: v.report_epoch,
            first: v.reports == 0,
            seen: mem::runs::RunBuilder::new(),
            closed: None,
            unknown: 0,
            missing: 0,
        }))
    }

    fn overtaken(&self, report: &FullReport) -> bool {
        self.registry.volume(report.storage).is_none_or(|v| v.report_epoch != report.epoch)
            || !self.registry.node(report.node).is_some_and(|n| n.registered)
    }

    /// Takes the next replicas of a report, at most `budget`. Whether there may be more.
    pub fn report_slice(
        &mut self,
        store: &mut Store,
        report: &mut FullReport,
        replicas: &mut dyn Iterator<Item = Reported>,
        budget: usize,
    ) -> bool {
        if self.overtaken(report) {
            return false;
        }
        // what the report itself brings is in `seen`
        let volume = self.registry.volume_mut(report.storage).expect("not overtaken");
        let came = volume.came_during_report.take();
        let more = self.take_slice(store, report, replicas, budget);
        if let Some(volume) = self.registry.volume_mut(report.storage) {
            volume.came_during_report = came;
        }
        more
    }

    fn take_slice(
        &mut self,
        store: &mut Store,
        report: &mut FullReport,
        replicas: &mut dyn Iterator<Item = Reported>,
        budget: usize,
    ) -> bool {
        let (storage, node, first) = (report.storage, report.node, report.first);
        let mut batch: SmallVec<[Reported; BATCH]> = SmallVec::new();
        let (mut ids, mut found): (SmallVec<[BlockId; BATCH]>, Vec<_>) = (SmallVec::new(), Vec::with_capacity(BATCH));
        let back = first && self.populating_queues();
        let mut left = budget;
        while left > 0 {
            batch.clear();
            batch.extend(replicas.take(left.min(BATCH)));
            if batch.is_empty() {
                return false;
            }
            ids.clear();
            ids.extend(batch.iter().map(|r| r.block.id));
            // taking a replica moves no other block and frees none, so the handles stay good for the batch
            store.find_blocks(&ids, &mut found);
            for (r, b) in batch.iter().zip(&found) {
                // nearly all replicas of nearly all reports say what is known; a node that was away is another matter
                if let Some(b) = *b
                    && !back
                    && r.state == ReplicaState::Finalized
                    && store.holds(b, storage, &r.block)
                {
                    report.seen.push(r.block.id.0);
                    self.repeat_lost_order(store, storage, node, r);
                } else if let Some(id) = self.take_found(store, *b, storage, node, r, first, None) {
                    report.seen.push(id.0);
                    self.repeat_lost_order(store, storage, node, r);
                } else {
                    report.unknown += 1;
                }
            }
            left -= batch.len();
        }
        true
    }

    /// An excess replica that is still there although its deletion is not queued: the order was lost with a restart of the DataNode.
    fn repeat_lost_order(&mut self, store: &Store, storage: StorageNumber, node: NodeNumber, r: &Reported) {
        if self.excess.is_empty() || self.deletion_is_due(node, &r.block) {
            return;
        }
        let Some(b) = store.find_block(r.block.id) else { return };
        let info = store.block(b);
        let same = |x: &record::Replica| x.storage == storage && Blocks::is_same_unit(&info, *x, r.block.id);
        if self.excess.contains(node, info.block.id) && store.replicas(b).iter().any(same) {
            self.invalidate(node, r.block);
        }
    }

    /// After the last replica: takes away up to `budget` replicas that the report should have named. Whether it has to be called again.
    pub fn finish_report(&mut self, store: &mut Store, report: &mut FullReport, budget: usize, now: Now) -> bool {
        self.tick_clock(now);
        if self.overtaken(report) {
            return false;
        }
        let (seen, after) = report.closed.get_or_insert_with(|| (std::mem::take(&mut report.seen).finish(), None));
        let volume = self.registry.volume(report.storage).expect("not overtaken");
        let came = volume.came_during_report.as_ref();
        let start = after.map_or(i64::MIN, |id| id.saturating_add(1));
        let (mut walked, mut gone) = (0, Vec::new());
        // both are in order of id: one walk compares them
        let mut named = seen.iter_from(start);
        let mut next = named.next();
        for id in volume.blocks.iter_from(start).take(budget) {
            walked += 1;
            *after = Some(id);
            while next.is_some_and(|n| n < id) {
                next = named.next();
            }
            if next != Some(id) && !came.is_some_and(|c| c.contains(&id)) {
                gone.push(id);
            }
        }
        drop(named);
        let more = walked == budget;
        for id in gone {
            report.missing += 1;
            match store.find_block(BlockId(id)) {
                Some(b) => {
                    self.remove_replica(store, b, report.storage);
                }
                None => {
                    self.registry.volume_mut(report.storage).expect("not overtaken").blocks.remove(id);
                }
            }
        }
        if !more {
            self.close_report(report, now);
        }
        more
    }

    fn close_report(&mut self, report: &FullReport, now: Now) {
        self.counters.full_reports += 1;
        let v = self.registry.volume_mut(report.storage).expect("not overtaken");
        v.reports += 1;
        v.came_during_report = None;
        if v.heartbeat_since_failover {
            v.contents_stale = false;
        }
        let id = v.id.clone();
        let node = self.registry.node_mut(report.node).expect("not overtaken");
        self.hints.forget(&node.id.uuid, &id);
        node.last_report = now.monotonic;
        node.last_report_wall = now.wall;
    }

    /// All volumes of an RPC are done. After the last RPC of a report the lease is given back. Whether no volume of the node is stale, so
    /// that old data may be finalized.
    pub fn end_report(&mut self, who: &Registration, context: Option<&ReportContext>) -> bool {
        let Ok(Some(node)) = self.identify(who) else { return false };
        if context.is_some_and(|c| c.rpc.saturating_add(1) >= c.total_rpcs) {
            self.leases.give_back(node);
        }
        let node = self.registry.node(node).expect("identified");
        !self.registry.volumes_of(node).any(|v| v.contents_stale)
    }
}
