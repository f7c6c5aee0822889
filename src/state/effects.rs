//! What follows from a transition outside the state: values, never actions, and never journalled.

use crate::Mode;
use vocab::InodeId;

/// One consequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Inodes left the tree; their blocks are being taken out in slices (`State::reclaim`).
    Reclaim,
    /// The lease of a file went to another holder (recovery began).
    LeaseReassigned(InodeId),
    /// The tables of delegation tokens or keys changed.
    Tokens,
    /// What is to be cached changed.
    Caching,
    /// A rolling upgrade began (with its time) or was finalized.
    RollingUpgrade {
        /// Whether it began.
        start: bool,
    },
}

/// Consequences of one hold, tagged with who applied.
#[derive(Debug)]
pub struct Effects {
    /// Who applies.
    pub mode: Mode,
    /// In order.
    pub items: Vec<Effect>,
}

impl Effects {
    /// None yet.
    pub fn new(mode: Mode) -> Effects {
        Effects { mode, items: Vec::new() }
    }
    /// Adds one; doubled ones in a row are kept once.
    pub fn push(&mut self, effect: Effect) {
        if self.items.last() != Some(&effect) {
            self.items.push(effect);
        }
    }
}
