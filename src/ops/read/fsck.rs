//! What a check of the file system asks: pages of directories by the caller's rights, and the blocks of files with all that is known of their
//! replicas (Hadoop's `NamenodeFsck`).

use super::corrupt_files::{any_missing, is_below, path_of};
use super::file_info::get_file_info;
use super::snapshots::{get_snapshot_listing, get_snapshottable};
use crate::View;
use crate::checks::superuser_for;
use blocks::redundancy::CorruptReason;
use blocks::{AdminState, Count, RackSpread, Spread};
use record::BlockHandle;
use std::sync::Arc;
use vocab::{Action, Block, BlockId, BlockState, Refusal, StorageKind};

/// A replica, or a place where one is expected.
#[derive(Clone, Debug)]
pub struct Replica {
    /// Rack of its DataNode.
    pub rack: Arc<str>,
    /// Transfer address of the DataNode.
    pub address: String,
    /// Name of its host.
    pub host: Arc<str>,
    /// Id of the storage.
    pub storage: Arc<str>,
    /// Medium of the storage.
    pub kind: StorageKind,
    /// Upgrade domain of the DataNode.
    pub domain: Option<Arc<str>>,
    /// State of the DataNode.
    pub admin: AdminState,
    /// Why it is corrupt, if it is.
    pub corrupt: Option<CorruptReason>,
    /// It is more than needed.
    pub excess: bool,
    /// Nothing was heard from the DataNode for a while.
    pub stale_node: bool,
    /// What is known of its storage may be out of date.
    pub stale_contents: bool,
    /// Number within a striped group.
    pub index: u8,
}

/// A block.
#[derive(Clone, Debug)]
pub struct BlockCheck {
    /// Id, length and stamp.
    pub block: Block,
    /// It is not being written any more.
    pub complete: bool,
    /// All its replicas are corrupt.
    pub corrupt: bool,
    /// Replicas by standing.
    pub count: Count,
    /// Replicas or internal blocks that there should be.
    pub wanted: u32,
    /// Fewest replicas that it can be read from.
    pub minimum: u32,
    /// It is a striped group.
    pub striped: bool,
    /// Racks of the places a reader is sent to.
    pub spread: RackSpread,
    /// What else these places keep apart.
    pub apart: Spread,
    /// Media of those places.
    pub kinds: Vec<StorageKind>,
    /// Its replicas; left empty if they are not wanted.
    pub replicas: Vec<Replica>,
}

/// A file.
#[derive(Clone, Debug)]
pub struct FileCheck {
    /// It is being written.
    pub open: bool,
    /// Blocks of its length, an open last one among them.
    pub located: usize,
    /// The same without that.
    pub blocks: Vec<BlockCheck>,
    /// The last block while it is not complete.
    pub last: Option<BlockCheck>,
}

/// The blocks of a file; `None` if it is gone.
///
/// # Errors
/// READ access along the path.
pub fn check_file(view: &View<'_>, path: &[u8], length: u64, details: bool) -> Result<Option<FileCheck>, Refusal> {
    let resolved = view.resolve_before_access(path)?;
    let file = match view.file_of(&resolved) {
        Err(Refusal::FileNotFound(_)) => return Ok(None),
        other => other?,
    };
    view.check_inode(&resolved, Action::READ)?;
    let found = view.past_blocks(file, resolved.snapshot(), 0, length, &view.reader());
    let last = found.last.as_ref().filter(|_| !found.last_complete).map(|last| &last.located);
    let handle = |block: &Block| view.state.store.find_block(block.id);
    let mut blocks = Vec::with_capacity(found.blocks.len());
    for located in found.blocks.iter().map(|block| &block.located) {
        if last.is_some_and(|last| last.block.id == located.block.id) {
            continue;
        }
        blocks.extend(handle(&located.block).map(|b| check_block(view, b, Some(located), details)));
    }
    let last = last.and_then(|last| handle(&last.block).map(|b| check_block(view, b, Some(last), details)));
    Ok(Some(FileCheck {
        open: found.under_construction && !resolved.is_past(),
        located: found.blocks.len(),
        blocks,
        last,
    }))
}

fn check_block(view: &View<'_>, b: BlockHandle, located: Option<&blocks::Located>, details: bool) -> BlockCheck {
    let (state, now) = (view.state, view.now.monotonic);
    let inspection = state.blocks.inspect(&state.store, b, now);
    let nodes = located.map_or(&[][..], |located| &located.locations);
    let nodes_of = || nodes.iter().filter_map(|target| state.blocks.node(target.node));
    let (racks, wanted) = (nodes_of().map(|node| &*node.rack), inspection.wanted as usize);
    let replica = |place: &blocks::Place<'_>| Replica {
        rack: place.node.location.clone(),
        address: place.node.id.transfer_address(),
        host: place.node.id.host.clone(),
        storage: place.volume.id.clone(),
        kind: place.volume.kind,
        domain: place.node.upgrade_domain.clone(),
        admin: place.node.admin,
        corrupt: place.corrupt,
        excess: place.excess,
        stale_node: place.stale_node,
        stale_contents: place.volume.contents_stale,
        index: place.index,
    };
    BlockCheck {
        block: state.store.block(b).block,
        complete: state.store.block_state(b) == BlockState::Complete,
        corrupt: located.is_some_and(|located| located.corrupt),
        count: inspection.count,
        wanted: inspection.wanted,
        minimum: inspection.minimum,
        striped: inspection.striped,
        spread: state.blocks.rack_spread(racks, wanted, inspection.striped),
        apart: state
            .blocks
            .spread(nodes_of().filter(|_| !inspection.striped), if inspection.striped { 0 } else { wanted }),
        kinds: nodes.iter().map(|target| target.kind).collect(),
        replicas: if details { inspection.places.iter().map(replica).collect() } else { Vec::new() },
    }
}

/// A block by its id, with the path of its file; `None` if there is none.
pub fn check_block_of_id(view: &View<'_>, id: BlockId) -> Option<(BlockCheck, Vec<u8>)> {
    let path = path_of(view, id)?;
    Some((check_block(view, view.state.store.find_block(id)?, None, true), path))
}

/// A block without a good replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorruptBlock {
    /// Its id.
    pub id: BlockId,
    /// Replication of its file, or what it is coded with.
    pub redundancy: String,
    /// Path of its file.
    pub path: Vec<u8>,
    /// Whether there is something of that path in the present.
    pub present: bool,
    /// The same path in snapshots that have something there.
    pub pasts: Vec<Vec<u8>>,
}

/// A search for blocks without a good replica below a path, in the past too if that is asked for: step it under one hold after another until it is
/// done.
#[derive(Clone, Debug)]
pub struct CorruptBlocksWalk {
    below: Vec<u8>,
    skip: u64,
    pasts: bool,
    /// Place in the queue of missing blocks.
    ticket: u64,
    /// As many as one answer may have.
    pub found: Vec<CorruptBlock>,
    /// Missing blocks that were looked at or skipped.
    pub seen: u64,
}

impl CorruptBlocksWalk {
    /// Begins after the first `skip` missing blocks. `None` if there are none at all, as before the queues are filled.
    ///
    /// # Errors
    /// `AccessControl` for all but superusers; `Io` while the queues are not filled yet.
    pub fn begin(view: &View<'_>, below: &[u8], skip: u64, pasts: bool) -> Result<Option<CorruptBlocksWalk>, Refusal> {
        superuser_for(view.settings, view.caller, "listCorruptFileBlocks")?;
        let walk = CorruptBlocksWalk { below: below.to_vec(), skip, pasts, ticket: 0, found: Vec::new(), seen: 0 };
        Ok(any_missing(view)?.then_some(walk))
    }

    /// Looks at up to `budget` more; whether it is done.
    pub fn step(&mut self, view: &View<'_>, budget: usize) -> bool {
        let mut looked = 0;
        for (ticket, block) in view.state.blocks.missing_blocks(self.ticket).take(budget) {
            (self.ticket, looked) = (ticket, looked + 1);
            self.seen += 1;
            if self.seen <= self.skip {
                continue;
            }
            let path = path_of(view, block).filter(|path| is_below(path, &self.below));
            self.found.extend(path.and_then(|path| corrupt_block(view, block, path, self.pasts)));
            if self.found.len() >= view.settings.corrupt_files_limit {
                return true;
            }
        }
        looked < budget
    }
}

fn corrupt_block(view: &View<'_>, id: BlockId, path: Vec<u8>, pasts: bool) -> Option<CorruptBlock> {
    let store = &view.state.store;
    let file = store.block_file(store.find_block(id)?)?;
    let status = view.own_status(file);
    let redundancy = match &status.erasure_coding {
        Some(policy) => policy.name.to_string(),
        None => status.replication.to_string(),
    };
    let exists = |path: &[u8]| matches!(get_file_info(view, path), Ok(Some(_)));
    let pasts =
        if pasts { past_paths(view, &path).into_iter().filter(|path| exists(path)).collect() } else { Vec::new() };
    Some(CorruptBlock { id, redundancy, present: exists(&path), path, pasts })
}

/// A path as it would be in each snapshot of the directories above it that are the caller's.
fn past_paths(view: &View<'_>, path: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for root in get_snapshottable(view) {
        let mut above = root.path();
        if above.last() != Some(&b'/') {
            above.push(b'/');
        }
        let Some(rest) = path.strip_prefix(&*above) else { continue };
        let Ok(snapshots) = get_snapshot_listing(view, &root.path()) else { continue };
        found.extend(
            snapshots.iter().map(|snapshot| [&*above, b".snapshot/", &snapshot.status.name, b"/", rest].concat()),
        );
    }
    found
}
