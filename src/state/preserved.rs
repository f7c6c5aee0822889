//! Durable state that no operation here can change yet: kept whole between load and save, so that nothing is ever dropped.

/// What an image holds for features without operations.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default)]
pub struct Preserved {
    /// Next cache directive id; 0 stands for the first, 1.
    pub next_cache_directive: u64,
}
