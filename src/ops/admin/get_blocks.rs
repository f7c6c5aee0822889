//! getBlocks: blocks of a DataNode that a balancer may move.

use crate::View;
use blocks::{DatanodeId, NodeBlocks, Target};
use record::BlockHandle;
use vocab::erasure_coding::Stripe;
use vocab::{Block, BlockId, BlockState, Refusal, StorageKind};

/// What is asked.
#[derive(Clone, Debug)]
pub struct GetBlocks {
    /// The DataNode.
    pub node: DatanodeId,
    /// How many bytes the blocks are to have together.
    pub size: i64,
    /// Smaller blocks are left out, in bytes.
    pub block_size_min: i64,
    /// Blocks of files that were used for less than this long come last; 0 for no such order. Milliseconds.
    pub hot_ms: i64,
    /// Medium, if only one is meant.
    pub kind: Option<StorageKind>,
}

/// A block that may be moved.
#[derive(Clone, Debug)]
pub struct MovableBlock {
    /// Id, length and stamp.
    pub block: Block,
    /// Where it is, with the number of each within a striped group.
    pub places: Vec<(Target, u8)>,
    /// How a striped group is laid out.
    pub stripe: Option<Stripe>,
}

/// A search under way, in slices.
#[derive(Debug)]
pub struct BlocksWalk {
    asked: GetBlocks,
    walk: NodeBlocks,
    hot: Vec<BlockId>,
    cold_done: bool,
    bytes: i64,
    /// What was found.
    pub found: Vec<MovableBlock>,
}

impl BlocksWalk {
    /// Begins at a random block of the DataNode.
    ///
    /// # Errors
    /// `IllegalArgument` for sizes below nothing, `AccessControl` for all but superusers, `SafeMode`, and as
    /// [`blocks::Blocks::begin_node_blocks`].
    pub fn begin(view: &View<'_>, asked: GetBlocks) -> Result<BlocksWalk, Refusal> {
        for (size, least) in [(asked.size, 1), (asked.block_size_min, 0)] {
            if size < least {
                return Err(Refusal::IllegalArgument(format!("Unexpected not positive size: {size}").into()));
            }
        }
        view.check_superuser()?;
        view.check_safe_mode(|| "Cannot execute getBlocks".to_owned())?;
        let walk = view.state.blocks.begin_node_blocks(&asked.node, asked.kind)?;
        Ok(BlocksWalk { asked, walk, hot: Vec::new(), cold_done: false, bytes: 0, found: Vec::new() })
    }

    /// Looks at up to `budget` blocks; whether the search is over.
    pub fn step(&mut self, view: &View<'_>, budget: usize) -> bool {
        let ids = match self.cold_done {
            false => view.state.blocks.next_node_blocks(&mut self.walk, budget),
            true => self.hot.drain(..budget.min(self.hot.len())).collect(),
        };
        if ids.is_empty() && std::mem::replace(&mut self.cold_done, true) {
            return true;
        }
        for id in ids {
            if self.bytes >= self.asked.size {
                return true;
            }
            let Some(b) = view.state.store.find_block(id) else { continue };
            if !self.cold_done && self.asked.hot_ms > 0 && self.is_hot(view, b) {
                if self.qualifies(view, b) {
                    self.hot.push(id);
                }
            } else {
                self.take(view, b);
            }
        }
        self.bytes >= self.asked.size
    }

    fn qualifies(&self, view: &View<'_>, b: BlockHandle) -> bool {
        let info = view.state.store.block(b);
        let length = i64::try_from(info.block.length).unwrap_or(i64::MAX);
        !info.deleted && info.state == BlockState::Complete && length >= self.asked.block_size_min
    }

    /// Whether its file is being written, or was read or changed lately.
    fn is_hot(&self, view: &View<'_>, b: BlockHandle) -> bool {
        let Some(file) = view.state.store.block_file(b) else { return false };
        if view.state.is_open(file) {
            return true;
        }
        let (status, since) = (view.own_status(file), view.now.wall.0 - self.asked.hot_ms);
        status.atime.0 > since || status.mtime.0 > since
    }

    fn take(&mut self, view: &View<'_>, b: BlockHandle) {
        if !self.qualifies(view, b) {
            return;
        }
        let (store, blocks) = (&view.state.store, &view.state.blocks);
        let places = blocks.movable_replicas(store, b);
        if places.is_empty() {
            return;
        }
        let info = store.block(b);
        let stripe = view.state.tree.erasure_coding.all().get(&info.erasure_coding_policy).map(|policy| policy.stripe);
        let share = stripe.map_or(1, |stripe| i64::from(stripe.data_units.max(1)));
        self.bytes = self.bytes.saturating_add(i64::try_from(info.block.length).unwrap_or(i64::MAX) / share);
        self.found.push(MovableBlock { block: info.block, places, stripe });
    }
}
