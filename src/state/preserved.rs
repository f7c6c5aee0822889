//! Durable state that no operation here can change yet: kept whole between load and save, so that nothing is ever dropped.

use std::sync::Arc;

/// What an image holds for features without operations.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default)]
pub struct Preserved {
    /// The erasure coding policies, as their section stands in the image; `None` for the built-in ones in their first state.
    pub erasure_coding_section: Option<Arc<[u8]>>,
    /// Next cache directive id; 0 stands for the first, 1.
    pub next_cache_directive: u64,
    /// Snapshots ever taken.
    pub snapshot_counter: u32,
}
