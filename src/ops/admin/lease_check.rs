//! The lease monitor: files whose writers have been silent for longer than the hard limit are recovered or closed.

use crate::Turn;
use std::sync::Arc;
use vocab::InodeId;

/// Files of expired leases that one check works on at most; what is left waits for the next check.
const FILES_PER_CHECK: usize = 256;

/// Checks leases once (Hadoop: every two seconds). `holder` names the server's own holder of leases it recovers, such as
/// `HDFS_NameNode-<time>`. Gives how many files it worked on. Nothing happens in safe mode.
pub fn check_leases(turn: &mut Turn<'_>, holder: impl FnOnce() -> Arc<str>) -> usize {
    let view = turn.view();
    if view.state.blocks.safe_mode.is_on() {
        return 0;
    }
    let limit = view.settings.lease_hard_limit_ms;
    let expired: Vec<InodeId> =
        view.state.tree.leases.expired(limit).flat_map(|l| l.files.iter().copied()).take(FILES_PER_CHECK).collect();
    if expired.is_empty() {
        return 0;
    }
    let holder = turn.soft().tree.leases.internal_holder(limit, holder);
    for id in &expired {
        let state = turn.view().state;
        let Some(file) = state.tree.find(&state.store, *id).filter(|f| state.is_open(*f)) else { continue };
        // A refusal is a state that only time changes (committed blocks waiting for replicas): the next check tries again.
        drop(turn.release_lease(file, Some(&holder)));
    }
    expired.len()
}
