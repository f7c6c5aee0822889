//! Deletions of any size: what is done in the hold that decides them, and in each slice after it, is bounded by count.

use super::*;
use crate::read::snapshots::get_snapshot_diff_listing;
use crate::read::summary::get_quota_usage;
use crate::write::quota::UNCHANGED;
use crate::write::rename::Rename;
use crate::write::snapshots::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use ::namespace::snapshot::report::{Cursor, Item, Listing};

/// What one step may free: the budget, and the blocks of a file beyond it.
const STEP: u64 = 32;
const AT_ONCE: u64 = 256 + 64;

impl World {
    fn left(&self) -> (u64, u64) {
        (self.state.tree.inode_count(), self.state.store.block_count())
    }

    /// Frees what waits, step by step; gives how many steps that took and the most inodes and blocks that one freed.
    fn free(&mut self) -> (usize, u64) {
        let (mut steps, mut most, mut before) = (0, 0, self.left());
        loop {
            let more = self.state.reclaim(STEP);
            let after = self.left();
            (steps, most) = (steps + 1, most.max(before.0 - after.0 + before.1 - after.1));
            before = after;
            if !more {
                return (steps, most);
            }
        }
    }
}

#[test]
fn a_small_tree_gives_its_quota_back_before_the_answer_and_its_inodes_later() {
    let mut w = World::new();
    w.checked = false;
    let who = superuser();
    (0..1_500).for_each(|n| drop(w.mkdirs(&who, &format!("/q/t/{}/{n}", n % 7), 0o755)));
    w.quota(&who, "/q", 2_000, UNCHANGED).unwrap();
    w.reclaims = false;
    assert_eq!(w.delete(&who, "/q/t", true), Ok(true));
    assert!(w.left().0 > 1_500 - AT_ONCE, "most wait");
    let used = |w: &World| w.view(&who, |v| get_quota_usage(v, b"/q").unwrap().usage.namespace);
    assert_eq!(used(&w), 1);
    let (steps, most) = w.free();
    assert!(steps > 30 && most <= STEP + 1, "{steps} steps, {most} freed in one");
    assert_eq!(used(&w), 1);
    w.check();
}

#[test]
fn a_large_tree_gives_its_quota_back_as_it_is_freed() {
    let mut w = World::new();
    w.checked = false;
    let who = superuser();
    (0..3_000).for_each(|n| drop(w.mkdirs(&who, &format!("/q/t/{n}"), 0o755)));
    w.quota(&who, "/q", 4_000, UNCHANGED).unwrap();
    w.reclaims = false;
    assert_eq!(w.delete(&who, "/q/t", true), Ok(true));
    let used = |w: &World| w.view(&who, |v| get_quota_usage(v, b"/q").unwrap().usage.namespace);
    assert_eq!(used(&w), w.left().0 as i64 - 1, "all but the root are below it, or were");
    w.free();
    assert_eq!(used(&w), 1);
    w.check();
}

#[test]
fn blocks_of_a_long_file_are_freed_in_steps() {
    let mut w = World::with_datanodes(1);
    w.checked = false;
    let who = superuser();
    w.quota(&who, "/", 1 << 40, 1 << 60).unwrap();
    w.write_file("/long", &[7; 700]);
    w.write_file("/other", &[7; 3]);
    w.reclaims = false;
    assert_eq!(w.delete(&who, "/long", false), Ok(true));
    let left = w.left().1;
    assert!((700 - AT_ONCE..703).contains(&left), "{left} blocks left");
    let (steps, most) = w.free();
    assert!(steps >= 6 && most <= STEP + 65, "{steps} steps, {most} freed in one");
    assert_eq!(w.left(), (2, 3));
    w.check();
}

/// The same for what a snapshot keeps: what was made since is looked for in slices, and what others change meanwhile is as if it came after them.
#[test]
fn what_a_snapshot_keeps_is_deleted_in_slices() {
    let mut w = World::new();
    w.checked = false;
    let who = superuser();
    (0..1_000).for_each(|n| drop(w.mkdirs(&who, &format!("/s/t/{}/{n}", n % 7), 0o755)));
    w.mkdirs(&who, "/s/u", 0o755).unwrap();
    w.write(&who, &AllowSnapshot { path: "/s".into() }).unwrap();
    w.write(&who, &CreateSnapshot { path: "/s".into(), name: "one".into() }).unwrap();
    (0..300).for_each(|n| drop(w.mkdirs(&who, &format!("/s/t/{}/later-{n}", n % 7), 0o755)));
    w.reclaims = false;
    for end in [false, true] {
        let before = w.left().0;
        assert_eq!(w.delete(&who, if end { "/s/t/3" } else { "/s/t/2" }, true), Ok(true));
        let had = w.state.tree.has_cleanup();
        assert!(before - w.left().0 <= AT_ONCE);
        assert!(had, "much is left to do");
        assert!(w.exists("/s/.snapshot/one/t/2/2") && !w.exists("/s/.snapshot/one/t/2/later-2"));
        assert!(!w.exists("/s/t/2"));
        if end {
            // it has a past: what goes on comes to its end first
            w.mkdirs(&who, "/s/u/made", 0o755).unwrap();
            assert!(!w.state.tree.has_cleanup());
        } else {
            w.mkdirs(&who, "/elsewhere", 0o755).unwrap();
            assert!(w.state.tree.has_cleanup());
            let (steps, most) = w.free();
            assert!(steps > 3 && most <= STEP, "{steps} steps, {most} freed in one");
        }
        w.check();
    }
    assert_eq!(w.left().0, 1 + 1 + 1 + 7 + 1_000 + (300 - 2 * 43) + 1 + 1 + 1);
    w.write(&who, &DeleteSnapshot { path: "/s".into(), name: "one".into() }).unwrap();
    let (steps, most) = w.free();
    assert!(steps > 3 && most <= 2 * STEP, "{steps} steps, {most} freed in one");
    w.check();
}

/// A report in pages of any size says what one page says of all, and no page takes more of a directory than it tells.
#[test]
fn pages_of_a_difference_report_are_parts_of_the_whole() {
    let mut w = World::new();
    w.checked = false;
    let who = superuser();
    w.write(&who, &AllowSnapshot { path: "/".into() }).unwrap();
    (0..30).for_each(|n| drop(w.mkdirs(&who, &format!("/s/{}/old-{n}", n % 3), 0o755)));
    let snapshot = |w: &mut World, name: &str| {
        w.write(&who, &CreateSnapshot { path: "/".into(), name: name.into() }).unwrap();
    };
    snapshot(&mut w, "one");
    (0..40).for_each(|n| drop(w.mkdirs(&who, &format!("/s/{}/new-{n}", n % 3), 0o755)));
    (0..12).for_each(|n| assert_eq!(w.delete(&who, &format!("/s/{}/old-{n}", n % 3), true), Ok(true)));
    snapshot(&mut w, "two");
    // one directory has changed twice
    (0..20).for_each(|n| assert_eq!(w.delete(&who, &format!("/s/1/new-{}", 3 * (n % 10) + 1), true), Ok(n < 10)));
    w.mkdirs(&who, "/s/1/last", 0o755).unwrap();
    snapshot(&mut w, "three");
    for (from, to) in [("one", "two"), ("one", "three"), ("three", "one"), ("two", "three"), ("one", "")] {
        let all = pages(&mut w, from, to, 10_000);
        assert_eq!(all.len(), 1);
        let count = all[0].modified.len() + all[0].created.len() + all[0].deleted.len();
        assert!(count > 10, "{count} entries");
        for limit in [1, 2, 3, 7, 20, count - 1, count] {
            let parts = pages(&mut w, from, to, limit);
            assert_eq!(parts.len(), count.div_ceil(limit), "{from} to {to} in pages of {limit}");
            let joined = |of: fn(&Listing) -> &Vec<Item>| parts.iter().flat_map(of).cloned().collect::<Vec<_>>();
            assert_eq!(joined(|page| &page.modified), all[0].modified);
            assert_eq!(joined(|page| &page.created), all[0].created);
            assert_eq!(joined(|page| &page.deleted), all[0].deleted);
        }
    }
}

fn pages(w: &mut World, from: &str, to: &str, limit: usize) -> Vec<Listing> {
    w.settings.snapshot_changes_listed = limit;
    let (mut pages, mut next) = (Vec::new(), Some(Cursor::default()));
    while let Some(start) = next {
        let page = w.view(&superuser(), |v| get_snapshot_diff_listing(v, b"/", from, to, &start)).unwrap();
        next = page.next.clone();
        pages.push(page);
    }
    pages
}

/// What was moved away from where a snapshot knows it, as into the trash, and is deleted there has a past, and goes in slices as well.
#[test]
fn a_tree_that_was_renamed_out_of_a_snapshot_is_freed_in_slices() {
    let mut w = World::new();
    w.checked = false;
    let who = superuser();
    (0..2_500).for_each(|n| drop(w.mkdirs(&who, &format!("/s/t/{}/{n}", n % 7), 0o755)));
    w.write(&who, &AllowSnapshot { path: "/s".into() }).unwrap();
    w.write(&who, &CreateSnapshot { path: "/s".into(), name: "one".into() }).unwrap();
    (0..300).for_each(|n| drop(w.mkdirs(&who, &format!("/s/t/{}/later-{n}", n % 7), 0o755)));
    w.mkdirs(&who, "/trash/x", 0o755).unwrap();
    w.quota(&who, "/trash", 10_000, UNCHANGED).unwrap();
    w.write(&who, &Rename { source: "/s/t".into(), target: "/trash/x/t".into() }).unwrap();
    w.reclaims = false;
    let before = w.left().0;
    assert_eq!(w.delete(&who, "/trash/x", true), Ok(true));
    assert!(before - w.left().0 <= AT_ONCE && w.state.tree.has_cleanup());
    assert!(w.exists("/s/.snapshot/one/t/2/2") && !w.exists("/s/.snapshot/one/t/2/later-2"));
    let (steps, most) = w.free();
    assert!(steps > 20 && most <= 2 * STEP, "{steps} steps, {most} freed in one");
    w.view(&who, |v| assert_eq!(get_quota_usage(v, b"/trash").unwrap().usage.namespace, 1));
    assert!(w.exists("/s/.snapshot/one/t/2/2"));
    assert_eq!(w.left().0, before - 301);
    w.check();
}
