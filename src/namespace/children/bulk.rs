//! Small lists made in bulk: their tags were computed beside, so that no name is read again.

use super::node::{self, Kind};
use super::{Lists, SMALL_MAX};
use mem::nodes::bytes_mut;
use record::InodeHandle;

/// The tag of a name in small lists.
pub fn tag(name: &[u8]) -> u8 {
    node::tag(name)
}

impl Lists {
    /// A list of children that are in order already, with the [`tag`] of each. `None` if there are too many for a small list.
    pub fn set_tagged(&mut self, sorted: &[InodeHandle], tags: &[u8]) -> Option<u32> {
        let count = sorted.len();
        if count == 0 || count > SMALL_MAX {
            return (count == 0).then_some(0);
        }
        let root = self.nodes.add(Kind::Small.words(count));
        let words = self.nodes.get_mut(root);
        words[0] = Kind::Small.head(count);
        let (handles, rest) = words[1..].split_at_mut(count);
        handles.iter_mut().zip(sorted).for_each(|(to, child)| *to = child.raw());
        bytes_mut(rest)[..count].copy_from_slice(tags);
        Some(root.get())
    }
}
