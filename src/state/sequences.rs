//! Counters of the file system: the last number of each kind that was handed out.

use vocab::{Block, BlockId, GenerationStamp, InodeId};

/// Last numbers handed out. All are durable; image section NS_INFO and INODE hold them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sequences {
    /// Last inode id.
    pub inode: InodeId,
    /// Last contiguous block id.
    pub block: BlockId,
    /// Last striped block group id.
    pub block_group: BlockId,
    /// Last stamp of legacy blocks (random ids).
    pub stamp_v1: GenerationStamp,
    /// Last stamp.
    pub stamp: GenerationStamp,
    /// Stamps below this belong to legacy blocks; 0 if there never were any.
    pub stamp_v1_limit: GenerationStamp,
    /// Start of the rolling upgrade, if one runs.
    pub rolling_upgrade_start: Option<vocab::TimeMs>,
}

impl Default for Sequences {
    fn default() -> Sequences {
        Sequences {
            inode: InodeId::ROOT,
            block: BlockId::LAST_RESERVED_CONTIGUOUS,
            block_group: BlockId::LAST_RESERVED_STRIPED,
            stamp_v1: GenerationStamp::LAST_RESERVED,
            stamp: GenerationStamp::LAST_RESERVED,
            stamp_v1_limit: GenerationStamp::GRANDFATHERED,
            rolling_upgrade_start: None,
        }
    }
}

impl Sequences {
    /// Whether a block has a legacy (random) id; its stamp tells.
    pub fn is_legacy(&self, block: &Block) -> bool {
        block.stamp < self.stamp_v1_limit
    }
    /// Whether a block is a striped group.
    pub fn is_striped(&self, block: &Block) -> bool {
        block.id.is_striped() && !self.is_legacy(block)
    }
}
