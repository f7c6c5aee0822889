//! getFsStats, getFsReplicatedBlockStats, getFsECBlockGroupStats.

use crate::View;

/// Figures of the whole file system (`GetFsStatsResponseProto`); bytes unless said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // as in the message
pub struct FsStats {
    pub capacity: u64,
    pub used: u64,
    pub remaining: u64,
    pub low_redundancy: u64,
    pub corrupt_blocks: u64,
    pub missing_blocks: u64,
    pub missing_single: u64,
    pub blocks_in_future: u64,
    pub pending_deletions: u64,
}

/// getFsStats.
pub fn get_fs_stats(view: &View<'_>) -> FsStats {
    let s = view.state.blocks.stats(&view.state.store, view.now.monotonic);
    FsStats {
        capacity: s.capacity,
        used: s.used,
        remaining: s.remaining,
        low_redundancy: s.low_redundancy as u64,
        corrupt_blocks: s.corrupt as u64,
        missing_blocks: s.missing as u64,
        missing_single: s.missing_single as u64,
        blocks_in_future: s.bytes_in_future,
        pending_deletions: s.pending_deletions as u64,
    }
}

/// Figures of replicated blocks (`GetFsReplicatedBlockStatsResponseProto`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // as in the message
pub struct ReplicatedBlockStats {
    pub low_redundancy: u64,
    pub corrupt: u64,
    pub missing: u64,
    pub missing_single: u64,
    pub bytes_in_future: u64,
    pub pending_deletions: u64,
    pub highest_priority: u64,
    pub badly_distributed: u64,
}

/// getFsReplicatedBlockStats.
pub fn get_replicated_block_stats(view: &View<'_>) -> ReplicatedBlockStats {
    let s = view.state.blocks.stats(&view.state.store, view.now.monotonic);
    ReplicatedBlockStats {
        low_redundancy: (s.low_redundancy - s.groups.low_redundancy) as u64,
        corrupt: (s.corrupt - s.groups.corrupt) as u64,
        missing: (s.missing - s.groups.missing) as u64,
        missing_single: s.missing_single as u64,
        bytes_in_future: s.bytes_in_future - s.groups.bytes_in_future,
        pending_deletions: (s.pending_deletions - s.groups.pending_deletions) as u64,
        highest_priority: (s.highest_priority - s.groups.highest_priority) as u64,
        badly_distributed: s.badly_distributed as u64,
    }
}

/// Figures of erasure-coded block groups (`GetFsECBlockGroupStatsResponseProto`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // as in the message
pub struct BlockGroupStats {
    pub low_redundancy: u64,
    pub corrupt: u64,
    pub missing: u64,
    pub bytes_in_future: u64,
    pub pending_deletions: u64,
    pub highest_priority: u64,
    pub badly_distributed: u64,
}

/// getFsECBlockGroupStats. Badly distributed blocks are those of both kinds, as in Hadoop.
pub fn get_block_group_stats(view: &View<'_>) -> BlockGroupStats {
    let s = view.state.blocks.stats(&view.state.store, view.now.monotonic);
    BlockGroupStats {
        low_redundancy: (s.groups.low_redundancy - s.groups.missing) as u64,
        corrupt: s.groups.corrupt as u64,
        missing: s.groups.missing as u64,
        bytes_in_future: s.groups.bytes_in_future,
        pending_deletions: s.groups.pending_deletions as u64,
        highest_priority: s.groups.highest_priority as u64,
        badly_distributed: s.badly_distributed as u64,
    }
}
