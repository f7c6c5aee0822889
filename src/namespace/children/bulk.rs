//! Small lists made in bulk: their tags were computed beside, so that no name is read again.

use super::node;
use super::{Lists, SMALL_MAX};
use mem::bulk::Clock;
use mem::persist::Persist;
use record::InodeHandle;

/// The tag of a name in small lists.
pub fn tag(name: &[u8]) -> u8 {
    node::tag(name)
}

impl Lists {
    /// Says that many lists are about to be made, or (`None`) that this is over.
    pub fn set_filling(&mut self, clock: Option<Clock>) {
        let mut sets = Vec::new();
        self.page_sets_mut(&mut sets);
        sets.into_iter().for_each(|pages| pages.set_filling(clock));
    }
    /// A list of children that are in order already, with the [`tag`] of each. `None` if there are too many for a small list.
    pub fn set_tagged(&mut self, sorted: &[InodeHandle], tags: &[u8]) -> Option<u32> {
        let count = sorted.len();
        if count == 0 || count > SMALL_MAX {
            return (count == 0).then_some(0);
        }
        Some(self.small(sorted, tags.iter().copied()).get())
    }
}
