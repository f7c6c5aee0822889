//! addBlock: a new last block for an open file. Targets are chosen without the write hold; under it the file is looked at again.

use crate::status::LocatedBlock;
use crate::{Operation, Turn, View, Write};
use blocks::{NodeNumber, Target, TargetRequest};
use edit::Record;
use namespace::resolve::text;
use namespace::{Place, Resolved};
use record::{BlockHandle, InodeHandle, StorageNumber};
use std::sync::Arc;
use vocab::{Block, BlockId, BlockState, InodeId, Refusal};

/// Ids that one striped group takes.
const GROUP_IDS: i64 = BlockId::STRIPED_INDEX_MASK + 1;

/// Allocates a block. Answers the block with its targets.
#[derive(Clone, Debug)]
pub struct AddBlock {
    /// Path, for messages and old clients.
    pub path: Vec<u8>,
    /// File id, 0 from old clients.
    pub file: InodeId,
    /// Lease holder.
    pub client: Arc<str>,
    /// The block the client has just finished, with its final length.
    pub previous: Option<Block>,
    /// The pool that the client says it is of.
    pub previous_pool: Option<Arc<str>>,
    /// DataNodes that are no targets, by transfer address or uuid as [`blocks`] finds them.
    pub excluded: Vec<NodeNumber>,
    /// DataNodes to try first.
    pub favored: Vec<NodeNumber>,
    /// `AddBlockFlag.NO_LOCAL_WRITE`.
    pub no_local_write: bool,
    /// `AddBlockFlag.NO_LOCAL_RACK`.
    pub no_local_rack: bool,
    /// `AddBlockFlag.IGNORE_CLIENT_LOCALITY`.
    pub ignore_client_locality: bool,
}

/// What the first look found.
#[derive(Clone, Debug)]
pub enum AddBlockPrepared {
    /// The block was allocated by an earlier attempt and has targets.
    Repeated,
    /// Targets for a new block.
    Targets(Vec<Target>),
}

/// State of the file as the call sees it.
enum Last {
    /// A new block can be added.
    Add,
    /// The last block is the answer to an earlier attempt.
    Repeated(BlockHandle),
}

/// Whether two optional blocks have the same id and stamp.
pub(super) fn same(a: Option<&Block>, b: Option<&Block>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.id == b.id && a.stamp == b.stamp,
        _ => false,
    }
}

/// A block as Java prints it in messages about an absent one too.
pub(super) fn show(block: Option<&Block>) -> String {
    block.map_or_else(|| "null".to_owned(), |b| format!("blk_{}_{}", b.id, b.stamp))
}

impl AddBlock {
    fn analyse(&self, view: &View<'_>, resolved: &Resolved<'_>) -> Result<(InodeHandle, Last), Refusal> {
        if let Some(pool) = &self.previous_pool {
            view.check_pool(pool)?;
        }
        view.check_safe_mode(|| format!("Cannot add block to {}", resolved.path_text()))?;
        view.check_object_count()?;
        let file = view.leased_file(resolved, Some(&self.client), self.file)?;
        let store = &view.state.store;
        let count = store.block_count_of(file);
        let info = |at: Option<usize>| at.and_then(|at| store.block_at(file, at)).map(|b| store.block(b));
        let last = info(count.checked_sub(1));
        if same(self.previous.as_ref(), last.as_ref().map(|i| &i.block)) {
            return Ok((file, Last::Add));
        }
        let block_size = view.state.tree.file_shape(store, file).map_or(0, |s| s.block_size);
        if let (None, Some(last)) = (&self.previous, &last)
            && last.block.length >= block_size
            && last.state == BlockState::Complete
        {
            return Ok((file, Last::Add)); // the first block after an append to a file that ends with a full one
        }
        let penultimate = info(count.checked_sub(2)).map(|i| i.block);
        match (store.last_block(file), &last) {
            (Some(b), Some(last)) if same(penultimate.as_ref(), self.previous.as_ref()) => {
                if last.block.length != 0 || last.state == BlockState::Complete {
                    return Err(Refusal::io(format!(
                        "Request looked like a retry to allocate block {} but it already contains {} bytes",
                        show(Some(&last.block)),
                        last.block.length
                    )));
                }
                Ok((file, Last::Repeated(b)))
            }
            _ => Err(Refusal::io(format!(
                "Cannot allocate block in {}: passed 'previous' block {} does not match actual last block in file {}",
                resolved.path_text(),
                self.previous.as_ref().map_or_else(|| "null".to_owned(), |b| view.pool_block_text(b)),
                show(last.as_ref().map(|i| &i.block))
            ))),
        }
    }

    fn choose(&self, view: &View<'_>, file: InodeHandle) -> Result<Vec<Target>, Refusal> {
        let Some(shape) = view.state.tree.file_shape(&view.state.store, file) else { return Ok(Vec::new()) };
        let blocks = &view.state.blocks;
        // what snapshots want beyond the file's own factor is not for its new blocks
        let replication = view.state.store.file(file).map_or(shape.replication, |f| f.replication);
        let machine = view.state.tree.construction(file).map_or("", |c| c.machine);
        let request = TargetRequest {
            writer: blocks.node_at(machine),
            replicas: shape.stripe.map_or(replication.into(), |s| s.units().into()),
            block_size: shape.block_size,
            storage_policy: shape.storage_policy,
            excluded: &self.excluded,
            favored: &self.favored,
            no_local_write: self.no_local_write,
            no_local_rack: self.no_local_rack,
            ignore_client_locality: self.ignore_client_locality,
            new_block: true,
            striped: shape.stripe.is_some(),
            ..TargetRequest::default()
        };
        let placement = blocks.choose_targets(&request, view.now.monotonic);
        let policy = view.state.tree.erasure_coding_policy(&view.state.store, file);
        let (least, what): (usize, _) = match policy {
            Some(policy) => (policy.stripe.data_units.into(), Some(&policy.name)),
            None => (view.settings.replication_min.into(), None),
        };
        if placement.targets.len() >= least {
            return Ok(placement.targets);
        }
        let what = what.map_or_else(|| "minReplication nodes".to_owned(), |name| format!("required nodes for {name}"));
        let excluded = placement.excluded;
        Err(Refusal::NoTarget(
            format!(
                "File {} could only be written to {} of the {least} {what}. There are {} datanode(s) running and {excluded} node(s) are excluded in this operation.",
                text(&self.path),
                placement.targets.len(),
                blocks.running_count()
            )
            .into(),
        ))
    }
}

impl Write for AddBlock {
    type Prepared = AddBlockPrepared;
    type Reply = LocatedBlock;
    const OPERATION: Operation = Operation::AddBlock;

    fn prepare(&self, view: &View<'_>) -> Result<AddBlockPrepared, Refusal> {
        let resolved = view.resolve_file(&self.path, self.file)?;
        let (file, last) = self.analyse(view, &resolved)?;
        if let Last::Repeated(b) = last
            && !view.state.blocks.expected(view.state.store.block_core(b).id).is_empty()
        {
            return Ok(AddBlockPrepared::Repeated);
        }
        if !view.blocks_finished(file, false) {
            return Err(Refusal::NotReplicatedYet(view.path_text(&self.path)));
        }
        let (count, most) = (view.state.store.block_count_of(file), view.settings.blocks_per_file);
        if count >= most {
            return Err(Refusal::io(format!(
                "File has reached the limit on maximum number of blocks (dfs.namenode.fs-limits.max-blocks-per-file): {count} >= {most}"
            )));
        }
        Ok(AddBlockPrepared::Targets(self.choose(view, file)?))
    }

    fn run(&self, turn: &mut Turn<'_>, prepared: AddBlockPrepared) -> Result<LocatedBlock, Refusal> {
        let view = turn.view();
        let resolved = view.resolve_file(&self.path, self.file)?;
        let (file, last) = self.analyse(&view, &resolved)?;
        let targets: Vec<StorageNumber> = match &prepared {
            AddBlockPrepared::Repeated => Vec::new(),
            AddBlockPrepared::Targets(targets) => targets.iter().map(|t| t.storage).collect(),
        };
        let b = match last {
            Last::Repeated(b) => b,
            Last::Add if targets.is_empty() => {
                return Err(Refusal::Retriable(
                    format!("The last block of {} has changed", resolved.path_text()).into(),
                ));
            }
            Last::Add => self.allocate(turn, &resolved, file)?,
        };
        let state = turn.soft();
        let id = state.store.block_core(b).id;
        if state.blocks.expected(id).is_empty() {
            state.blocks.begin_construction(&state.store, b, &targets);
        }
        let view = turn.view();
        let offset = view.state.tree.file_length(&view.state.store, file);
        Ok(LocatedBlock { offset, located: view.state.blocks.locate(&view.state.store, b) })
    }
}

impl AddBlock {
    /// Commits the previous block and logs the new one: its id, its stamp, then the block itself.
    fn allocate(
        &self,
        turn: &mut Turn<'_>,
        resolved: &Resolved<'_>,
        file: InodeHandle,
    ) -> Result<BlockHandle, Refusal> {
        let view = turn.view();
        let state = view.state;
        let last = state.store.last_block(file);
        if let (Some(b), Some(previous)) = (last, &self.previous) {
            state.blocks.check_commit(&state.store, b, previous)?;
        }
        let room = view.verify_block_quota(file, self.previous.as_ref());
        if let (Some(b), Some(previous)) = (last, self.previous) {
            turn.soft().commit_block(b, previous)?;
        }
        let state = turn.view().state;
        let striped = state.tree.erasure_coding_policy(&state.store, file).is_some();
        let id = if striped { turn.next_group_id() } else { turn.next_block_id() };
        turn.log(Record::AllocateBlockId { id: id.0 });
        let stamp = turn.next_stamp();
        room?; // Hadoop's log has the id and the stamp of a block that there was no room for
        let state = turn.view().state;
        let penultimate = state.store.last_block(file).map(|b| state.store.block_core(b));
        let place = Place::of(&state.store, file);
        let last = Block { id, length: 0, stamp };
        turn.log_at(&Record::AddBlock { path: resolved.plain(), penultimate, last, rpc: None }, &[place]);
        let store = &turn.view().state.store;
        store.last_block(file).ok_or_else(|| Refusal::io("The block was not added"))
    }
}

impl View<'_> {
    /// Whether a whole new block fits the quotas above a file, once its present last block counts with `previous`' length.
    fn verify_block_quota(&self, file: InodeHandle, previous: Option<&Block>) -> Result<(), Refusal> {
        let state = self.state;
        let Some(shape) = state.tree.file_shape(&state.store, file) else { return Ok(()) };
        let mut delta = shape.fresh();
        if let Some(last) = state.store.last_block(file).map(|b| state.store.block_core(b)) {
            let after = previous.filter(|p| p.id == last.id).copied().unwrap_or(last);
            let change = namespace::quota::difference(&shape.full(&after), &shape.last(&last));
            namespace::quota::add(&mut delta, &change);
        }
        let Some(parent) = state.store.parent(file) else { return Ok(()) };
        state.tree.verify_quota(&state.store, parent, None, &delta)
    }
}

impl Turn<'_> {
    /// The next contiguous block id that no block has.
    pub(super) fn next_block_id(&self) -> BlockId {
        let state = self.view().state;
        let mut id = BlockId(state.sequences.block.0 + 1);
        while state.store.find_block(id).is_some() {
            id.0 += 1;
        }
        id
    }

    /// The next id of a striped group that no group has.
    fn next_group_id(&self) -> BlockId {
        let state = self.view().state;
        let mut id = BlockId(state.sequences.block_group.group().0 + GROUP_IDS);
        while state.store.find_block(id).is_some() {
            id.0 += GROUP_IDS;
        }
        id
    }
}
