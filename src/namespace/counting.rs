//! The use of a subtree, counted in steps while others change what is below.
//!
//! *Pending* is a directory that the count has found and not looked into to its end. Of every directory of the subtree either the count has seen all,
//! or it or exactly one directory above it is pending. What changes the use within a pending one will be seen later; what changes it anywhere
//! else below the top is added. A directory whose own children change while they are looked at is begun again. Where that rule does not say
//! what to do (a directory leaves of which a part was seen, a storage policy of a directory changes, there are snapshots), the count is *lost*,
//! and whoever needs the use walks the subtree in one go.
//!
//! A count is no part of the state: it is neither written down nor replayed. Handles in it stay valid between holds since what goes is noted first.

use crate::{Tree, quota};
use record::{Features, InodeHandle, KindTag, Store};
use std::collections::HashSet;
use vocab::quota::Usage;
use vocab::storage_policy::UNSPECIFIED;

/// How often a directory is begun again before it is looked into in one go.
const ATTEMPTS: u32 = 16;

/// A count under way, or the use that it found, which is kept up to date.
#[derive(Debug)]
pub(crate) struct Counting {
    top: InodeHandle,
    usage: Usage,
    pending: HashSet<InodeHandle>,
    /// The pending ones and some that are pending no more; the last one is next.
    next: Vec<InodeHandle>,
    open: Option<Open>,
    lost: bool,
}

/// The directory that is being looked into.
#[derive(Debug)]
struct Open {
    directory: InodeHandle,
    /// The last child that was counted.
    after: Vec<u8>,
    usage: Usage,
    /// Directories among the children so far.
    found: Vec<InodeHandle>,
    attempts: u32,
}

impl Open {
    fn new(directory: InodeHandle, attempts: u32) -> Open {
        Open { directory, after: Vec::new(), usage: Usage::default(), found: Vec::new(), attempts }
    }
}

/// Where a directory lies for a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// Not in the subtree.
    Outside,
    /// In it, and counted.
    Seen,
    /// In it, and not counted yet.
    Unseen,
}

impl Counting {
    fn side(&self, store: &Store, directory: InodeHandle) -> Side {
        let mut current = Some(directory);
        while let Some(inode) = current {
            if self.pending.contains(&inode) {
                return Side::Unseen;
            }
            if inode == self.top {
                return Side::Seen;
            }
            current = store.parent(inode);
        }
        Side::Outside
    }
    /// The children of a directory change.
    fn children_change(&mut self, directory: InodeHandle) {
        if let Some(open) = self.open.as_mut().filter(|open| open.directory == directory && !open.after.is_empty()) {
            *open = Open::new(directory, open.attempts + 1);
        }
    }
    fn forget(&mut self, directory: InodeHandle) -> bool {
        self.open.take_if(|open| open.directory == directory);
        self.pending.remove(&directory)
    }
    fn has_pending_below(&self, store: &Store, top: InodeHandle) -> bool {
        self.pending.iter().any(|pending| {
            let mut current = store.parent(*pending);
            while let Some(inode) = current.filter(|inode| *inode != self.top) {
                if inode == top {
                    return true;
                }
                current = store.parent(inode);
            }
            false
        })
    }
    /// Whether all is counted and nothing was lost.
    fn is_done(&self) -> bool {
        !self.lost && self.pending.is_empty()
    }
}

impl Tree {
    /// Begins to count the use of a subtree; an earlier count is dropped. Do [`Tree::count_step`] until it is done, and [`Tree::end_count`] at last.
    pub fn begin_count(&mut self, store: &Store, top: InodeHandle) {
        self.end_count(store);
        let lost = !self.snapshots.is_empty();
        let (pending, next) = (HashSet::from([top]), vec![top]);
        self.counting = Some(Counting { top, usage: Usage::default(), pending, next, open: None, lost });
    }

    /// Counts up to `budget` more inodes; whether there is more.
    pub fn count_step(&mut self, store: &Store, budget: usize) -> bool {
        let Some(mut count) = self.counting.take() else { return false };
        count.lost |= !self.snapshots.is_empty();
        let mut left = budget;
        while left > 0 && !count.lost && !count.is_done() {
            let mut open = match count.open.take().or_else(|| count.next.pop().map(|next| Open::new(next, 0))) {
                Some(open) if count.pending.contains(&open.directory) => open,
                Some(_) => continue,
                None => break,
            };
            let budget = if open.attempts < ATTEMPTS { left } else { usize::MAX };
            if self.look_into(store, &mut open, budget, &mut left) {
                count.pending.remove(&open.directory);
                count.pending.extend(&open.found);
                count.next.append(&mut open.found);
                quota::add(&mut count.usage, &open.usage);
            } else {
                count.open = Some(open);
            }
        }
        let more = !count.lost && !count.is_done();
        self.counting = Some(count);
        more
    }

    /// Counts children of a directory; whether those were the last ones.
    fn look_into(&self, store: &Store, open: &mut Open, budget: usize, left: &mut usize) -> bool {
        if open.after.is_empty() {
            open.usage = self.inode_usage(store, open.directory);
        }
        let inherited = self.storage_policy(store, open.directory);
        let (children, _) = self.children_after(store, open.directory, &open.after);
        for (at, child) in children.enumerate() {
            if at == budget {
                return false;
            }
            *left = left.saturating_sub(1);
            if store.kind(child) == KindTag::Directory {
                open.found.push(child);
            } else {
                open.usage.namespace += 1;
                if let Some(mut shape) = self.file_shape_below(store, child, UNSPECIFIED) {
                    if shape.storage_policy == UNSPECIFIED {
                        shape.storage_policy = inherited;
                    }
                    quota::add(&mut open.usage, &self.blocks_usage(store, child, &shape, 0));
                }
            }
            if at + 1 == budget {
                open.after = store.name(child).to_vec();
            }
        }
        true
    }

    /// The use of a subtree whose count is done.
    pub(crate) fn counted(&self, top: InodeHandle) -> Option<Usage> {
        let count = self.counting.as_ref().filter(|count| count.top == top && count.is_done())?;
        self.snapshots.is_empty().then_some(count.usage)
    }

    /// Whether there are at most so many inodes below one.
    pub fn has_at_most(&self, store: &Store, top: InodeHandle, most: u64) -> bool {
        let (mut open, mut left) = (vec![top], most);
        while let Some(inode) = open.pop() {
            if store.kind(inode) == KindTag::Directory {
                let count = u64::from(store.children(inode).1);
                if count > left {
                    return false;
                }
                left -= count;
                open.extend(self.children(store, inode));
            }
        }
        true
    }

    /// Whether a count is done and of use.
    pub fn has_count(&self) -> bool {
        self.counting.as_ref().is_some_and(Counting::is_done)
    }

    /// Drops the count, if there is one.
    pub fn end_count(&mut self, store: &Store) {
        let Some(count) = self.counting.take() else { return };
        if !store.features(count.top).contains(Features::QUOTA) {
            // it was charged for the count alone
            self.uncharge(store.inode_id(count.top));
        }
    }

    /// The count is of no use any more.
    pub(crate) fn lose_count(&mut self) {
        if let Some(count) = &mut self.counting {
            count.lost = true;
        }
    }

    /// The use of what is in a directory, or of the directory itself, changes.
    pub(crate) fn count_change(&mut self, store: &Store, directory: InodeHandle, delta: &Usage) {
        let Some(count) = &mut self.counting else { return };
        count.children_change(directory);
        if count.side(store, directory) == Side::Seen {
            quota::add(&mut count.usage, delta);
        }
    }

    /// The children of a directory change.
    pub(crate) fn count_children(&mut self, directory: InodeHandle) {
        if let Some(count) = &mut self.counting {
            count.children_change(directory);
        }
    }

    /// An inode is about to be cut off. Gives the top whose count it is to be taken off as it is freed.
    pub(crate) fn count_departure(&mut self, store: &Store, inode: InodeHandle) -> Option<InodeHandle> {
        let count = self.counting.as_mut()?;
        let parent = store.parent(inode)?;
        if inode == count.top {
            count.lost = true;
            return None;
        }
        count.children_change(parent);
        if count.side(store, parent) != Side::Seen || count.forget(inode) {
            // a top that goes with all above it is counted for nobody
            return None;
        }
        count.lost |= store.kind(inode) == KindTag::Directory && count.has_pending_below(store, inode);
        Some(count.top)
    }

    /// Something freed that was counted.
    pub(crate) fn count_freed(&mut self, top: InodeHandle, negative: &Usage) {
        if let Some(count) = self.counting.as_mut().filter(|count| count.top == top) {
            quota::add(&mut count.usage, negative);
        }
    }

    /// An inode is about to move; `moved` says that its use changes or is known to quotas, which go their own way.
    pub(crate) fn count_move(&mut self, store: &Store, inode: InodeHandle, to: InodeHandle, moved: bool) {
        let Some(from) = store.parent(inode) else { return };
        let Some(count) = self.counting.as_ref() else { return };
        let sides = (count.side(store, from), count.side(store, to));
        let is_directory = store.kind(inode) == KindTag::Directory;
        let usage = if is_directory || sides.0 == sides.1 { Usage::default() } else { self.inode_usage(store, inode) };
        let Some(count) = self.counting.as_mut() else { return };
        count.children_change(from);
        count.children_change(to);
        match sides {
            (Side::Outside, Side::Outside) if inode != count.top => {
                // a directory above the top, under another policy
                count.lost |= moved && is_directory;
            }
            (Side::Outside, Side::Outside) => {}
            _ if moved => count.lost = true,
            (Side::Seen, Side::Unseen | Side::Outside) => {
                let was_pending = count.forget(inode);
                count.lost |= is_directory && !was_pending;
                quota::add(&mut count.usage, &quota::negated(&usage));
            }
            (Side::Unseen | Side::Outside, Side::Seen) => {
                if is_directory {
                    count.pending.insert(inode);
                    count.next.push(inode);
                }
                quota::add(&mut count.usage, &usage);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RootAttributes;
    use record::{Inode, InodeKind};
    use vocab::quota::Quota;
    use vocab::{InodeId, Mode, TimeMs};

    /// A small generator of numbers (splitmix64).
    struct Dice(u64);
    impl Dice {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((z ^ (z >> 27)) >> 11) as usize % n
        }
    }

    struct Drop;
    impl crate::reclaim::BlockSink for Drop {
        fn release(&mut self, _: &mut Store, _: InodeHandle) {}
        fn drop_block(&mut self, _: &mut Store, _: record::BlockHandle) {}
        fn set_replication(&mut self, _: &mut Store, _: record::BlockHandle, _: u16) {}
    }

    struct World {
        store: Store,
        tree: Tree,
        made: i64,
        dice: Dice,
    }

    impl World {
        fn new(seed: u64) -> World {
            let mut store = Store::new();
            let tree = Tree::new(&mut store, RootAttributes { user: "u", group: "g", mode: Mode::new(0o755) });
            World { store, tree, made: 0, dice: Dice(seed) }
        }
        fn make(&mut self, parent: InodeHandle, directory: bool) -> InodeHandle {
            self.made += 1;
            let kind = if directory {
                InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 }
            } else {
                InodeKind::Symlink
            };
            let inode = Inode {
                id: InodeId(20_000 + self.made),
                parent: None,
                user: Default::default(),
                group: Default::default(),
                mode: Mode::new(0o755),
                mtime: TimeMs(0),
                atime: TimeMs(0),
                features: Features::NONE,
                kind,
            };
            // names in no order
            let name = format!("{:08x}-{}", (self.made as u32).wrapping_mul(0x9e37_79b9), self.made);
            self.tree.add(&mut self.store, parent, &inode, name.as_bytes())
        }
        /// All directories of the tree.
        fn directories(&self) -> Vec<InodeHandle> {
            let (mut all, mut at) = (vec![self.tree.root()], 0);
            while at < all.len() {
                let below = self.tree.children(&self.store, all[at]);
                all.extend(below.filter(|child| self.store.kind(*child) == KindTag::Directory));
                at += 1;
            }
            all
        }
        fn any_child(&mut self, directory: InodeHandle) -> Option<InodeHandle> {
            let count = self.store.children(directory).1 as usize;
            let at = self.dice.below(count.max(1));
            self.tree.children(&self.store, directory).nth(at)
        }
        fn is_below(&self, inode: InodeHandle, top: InodeHandle) -> bool {
            let mut current = Some(inode);
            while let Some(inode) = current {
                if inode == top {
                    return true;
                }
                current = self.store.parent(inode);
            }
            false
        }
        /// Something that somebody else does; never to `top` itself.
        fn disturb(&mut self, top: InodeHandle) {
            let all = self.directories();
            let directory = all[self.dice.below(all.len())];
            match self.dice.below(10) {
                0..4 => drop(self.make(directory, false)),
                4..6 => drop(self.make(directory, true)),
                6 => {
                    if let Some(child) = self.any_child(directory).filter(|child| !self.is_below(top, *child)) {
                        self.tree.detach(&mut self.store, child);
                    }
                }
                7 => drop(self.tree.reclaim(&mut self.store, &mut Drop, 3)),
                _ => {
                    let to = all[self.dice.below(all.len())];
                    let child = self.any_child(directory);
                    if let Some(child) = child.filter(|child| !self.is_below(to, *child) && !self.is_below(top, *child))
                    {
                        self.made += 1;
                        let name = format!("moved-{}", self.made);
                        self.tree.rename(&mut self.store, child, to, name.as_bytes());
                    }
                }
            }
        }
    }

    #[test]
    fn a_count_among_changes_is_what_a_walk_finds() {
        let (mut done, mut lost) = (0, 0);
        for seed in 0..400 {
            let mut w = World::new(seed);
            let root = w.tree.root();
            let (top, _beside) = (w.make(root, true), w.make(root, true));
            (0..150).for_each(|_| w.disturb(top));
            w.tree.begin_count(&w.store, top);
            loop {
                let budget = 1 + w.dice.below(9);
                if !w.tree.count_step(&w.store, budget) {
                    break;
                }
                if w.dice.below(3) == 0 {
                    w.disturb(top);
                }
            }
            // a finished one is kept up to date
            (0..w.dice.below(5)).for_each(|_| w.disturb(top));
            match w.tree.counted(top) {
                Some(_) => done += 1,
                None => lost += 1,
            }
            w.tree.set_quota_limits(&mut w.store, top, Quota { namespace: Some(1 << 40), ..Quota::default() });
            w.tree.end_count(&w.store);
            while w.tree.has_detached() {
                w.tree.reclaim(&mut w.store, &mut Drop, 100);
            }
            let told = w.tree.quota(&w.store, top).expect("a quota directory").usage;
            assert_eq!(told, w.tree.subtree_usage(&w.store, top), "seed {seed}");
        }
        assert!(done > 200 && lost > 0, "{done} done, {lost} lost");
    }

    #[test]
    fn a_directory_that_changes_all_the_time_is_counted_in_one_go() {
        let mut w = World::new(1);
        let root = w.tree.root();
        let top = w.make(root, true);
        for _ in 0..1_000 {
            w.make(top, false);
        }
        w.tree.begin_count(&w.store, top);
        let mut steps = 0;
        while w.tree.count_step(&w.store, 10) {
            w.make(top, false);
            steps += 1;
        }
        assert_eq!(steps, ATTEMPTS as usize);
        assert_eq!(w.tree.counted(top), Some(w.tree.subtree_usage(&w.store, top)));
        // dropped, it leaves no trace: what goes later is not taken off a quota that never counted it
        let child = w.any_child(top).expect("there are many");
        w.tree.detach(&mut w.store, child);
        w.tree.end_count(&w.store);
        w.tree.set_quota_limits(&mut w.store, top, Quota { namespace: Some(1 << 40), ..Quota::default() });
        w.tree.reclaim(&mut w.store, &mut Drop, 100);
        let told = w.tree.quota(&w.store, top).expect("a quota directory").usage;
        assert_eq!(told, w.tree.subtree_usage(&w.store, top));
    }
}
