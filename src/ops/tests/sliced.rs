//! Random operations with deletions in slices between them, the widest there are: quotas and storage policies above what is being freed, several directories
//! with snapshots, starts in the middle.

use super::snapshots::Past;
use super::*;
use crate::write::attributes::SetTimes;
use crate::write::concat::Concat;
use crate::write::quota::{RESET, SetQuota, UNCHANGED};
use crate::write::storage_policy::SetStoragePolicy;

impl Past {
    fn wide_step(&mut self) {
        let who = superuser();
        let (path, other) = (self.dice.path(), self.dice.path());
        let path =
            if self.dice.roll(4) == 0 { ["/s", "/t", "/plain"][self.dice.roll(3) as usize].into() } else { path };
        // refusals are as good as anything
        match self.dice.roll(5) {
            0 => {
                let kind = [None, Some(StorageKind::Ssd), Some(StorageKind::Disk)][self.dice.roll(3) as usize];
                let names =
                    if kind.is_none() { [UNCHANGED, RESET, 1 << 30][self.dice.roll(3) as usize] } else { UNCHANGED };
                let space = [RESET, 1 << 50][self.dice.roll(2) as usize];
                let _ = self.w.write(&who, &SetQuota { path: path.into(), names, space, kind });
            }
            1..3 => {
                let policy = [None, Some("COLD"), Some("ALL_SSD"), Some("ONE_SSD")][self.dice.roll(4) as usize];
                let _ = self.w.write(&who, &SetStoragePolicy { path: path.into(), policy: policy.map(Into::into) });
            }
            3 => drop(self.w.write(&who, &Concat { target: path.into(), sources: vec![other.into()] })),
            _ => {
                let (mtime, atime) = (TimeMs(self.dice.roll(1 << 20) as i64), TimeMs(-1));
                let _ = self.w.write(&who, &SetTimes { path: path.into(), mtime, atime });
            }
        }
    }
}

/// Runs with deletions that go on a few steps at a time; gives how often one was looked at in the middle.
fn run(seed: u64, tops: &'static [&'static str], wide: bool) -> usize {
    let mut interrupted = 0;
    let mut past = Past::new(seed, tops);
    past.w.reclaims = false;
    past.w.state.freed_at_once = 0;
    for i in 0..600 {
        past.step();
        if wide {
            past.wide_step();
        }
        for _ in 0..past.dice.roll(3) {
            let budget = 1 + past.dice.roll(24);
            past.w.state.reclaim(budget);
            if past.w.state.tree.has_cleanup() {
                interrupted += 1;
                past.check_in_between();
            }
        }
        if wide && i % 101 == 100 {
            // the log has the deletion, and replay does all of it
            past.w.restart();
            past.w.datanode(1);
            past.w.state.freed_at_once = 0;
        }
        if i % 40 == 39 {
            while past.w.state.reclaim(1_000) {}
            past.check();
        }
    }
    interrupted
}

/// Deletions go on in the middle of everything else, a few steps at a time.
#[test]
fn a_deletion_in_slices_is_one_in_a_single_hold() {
    let interrupted: usize = (101..=106).map(|seed| run(seed, &["/s", "/t"], false)).sum();
    assert!(interrupted > 200, "{interrupted} looks in the middle");
}

#[test]
fn a_deletion_in_slices_below_quotas_and_policies_that_change_is_one_in_a_single_hold() {
    let most = std::env::var("SLICED_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(203);
    let interrupted: usize =
        (201..=most).map(|seed| run(seed, &["/s", "/t", "/plain"], true) + run(seed, &["/s"], true)).sum();
    assert!(interrupted > 200, "{interrupted} looks in the middle");
}
