//! Records of cache pools and directives.

use super::*;
use crate::caches::{CacheDirective, CachePool};
use crate::retry::RetryPayload;
use edit::record;
use vocab::RpcIds;

fn pool(name: &'static str) -> record::CachePool<'static> {
    record::CachePool {
        name: name.into(),
        owner: Some("o".into()),
        group: Some("g".into()),
        mode: Some(vocab::Mode::new(0o755)),
        limit: Some(1_000),
        max_relative_expiry: Some(60_000),
        default_replication: Some(2),
    }
}

fn unchanged_pool(name: &'static str) -> record::CachePool<'static> {
    let (owner, group, mode, limit, max_relative_expiry, default_replication) = (None, None, None, None, None, None);
    record::CachePool { name: name.into(), owner, group, mode, limit, max_relative_expiry, default_replication }
}

fn directive(id: i64, pool: &'static str) -> record::CacheDirective<'static> {
    record::CacheDirective {
        id,
        path: Some(b"/f"[..].into()),
        replication: Some(3),
        pool: Some(pool.into()),
        expiration: Some(TimeMs(99)),
    }
}

#[test]
fn pools_and_directives_come_change_and_go() {
    let mut w = World::new();
    let ids = |call_id| Some(RpcIds { client_id: [7; 16], call_id });
    w.apply(&Record::AddCachePool { pool: pool("p"), rpc: ids(1) });
    w.apply(&Record::AddCachePool { pool: pool("q"), rpc: None });
    let made = w.state.caches.pool("p").unwrap().clone();
    assert_eq!((&*made.owner, made.limit, made.default_replication, made.longest_life_ms), ("o", 1_000, 2, 60_000));
    let change = record::CachePool { limit: Some(5), ..unchanged_pool("p") };
    w.apply(&Record::ModifyCachePool { pool: change, rpc: None });
    assert_eq!(w.state.caches.pool("p"), Some(&CachePool { limit: 5, ..made }));

    w.apply(&Record::AddCacheDirective { directive: directive(4, "p"), rpc: ids(2) });
    w.apply(&Record::AddCacheDirective { directive: directive(6, "q"), rpc: None });
    assert_eq!(w.state.caches.next_directive, 7);
    assert_eq!(w.state.retry.get(&ids(2).unwrap()).unwrap().payload, RetryPayload::Id(4));
    assert_eq!(w.state.retry.get(&ids(1).unwrap()).unwrap().payload, RetryPayload::Done);
    let made = w.state.caches.directive(4).unwrap().clone();
    let (path, replication, expiration) = (None, Some(1), None);
    let change = record::CacheDirective { id: 4, path, replication, pool: Some("q".into()), expiration };
    w.apply(&Record::ModifyCacheDirective { directive: change, rpc: None });
    assert_eq!(w.state.caches.directive(4), Some(&CacheDirective { replication: 1, pool: "q".into(), ..made }));

    w.apply(&Record::RemoveCachePool { name: "p".into(), rpc: None });
    assert_eq!(w.state.caches.directive_count(), 2, "neither is in that pool");
    w.apply(&Record::RemoveCacheDirective { id: 4, rpc: None });
    w.apply(&Record::RemoveCachePool { name: "q".into(), rpc: None });
    assert_eq!((w.state.caches.directive_count(), w.state.caches.next_directive), (0, 7));
}

#[test]
fn what_contradicts_the_tables_ends_a_load() {
    let mut w = World::new();
    w.apply(&Record::AddCachePool { pool: pool("p"), rpc: None });
    w.apply(&Record::AddCacheDirective { directive: directive(1, "p"), rpc: None });
    let mismatches = [
        (Record::AddCachePool { pool: pool("p"), rpc: None }, "Cache pool p already exists."),
        (Record::ModifyCachePool { pool: pool("x"), rpc: None }, "Cache pool x does not exist."),
        (Record::RemoveCachePool { name: "x".into(), rpc: None }, "Cache pool x does not exist."),
        (Record::AddCacheDirective { directive: directive(2, "x"), rpc: None }, "Cache pool x does not exist."),
        (Record::AddCacheDirective { directive: directive(0, "p"), rpc: None }, "Invalid negative ID."),
        (Record::ModifyCacheDirective { directive: directive(2, "p"), rpc: None }, "No directive with ID 2 found."),
        (Record::ModifyCacheDirective { directive: directive(1, "x"), rpc: None }, "Cache pool x does not exist."),
        (Record::RemoveCacheDirective { id: 3, rpc: None }, "No directive with ID 3 found."),
        (Record::RemoveCacheDirective { id: 0, rpc: None }, "Invalid negative ID."),
    ];
    for (record, text) in mismatches {
        assert_eq!(w.expect_mismatch(&record), text);
    }
    let half = record::CacheDirective { expiration: None, ..directive(2, "p") };
    w.expect_mismatch(&Record::AddCacheDirective { directive: half, rpc: None });
    w.expect_mismatch(&Record::AddCachePool { pool: unchanged_pool("new"), rpc: None });
}

/// Every field counts for the digest.
#[test]
fn the_digest_sees_every_field() {
    type Change = fn(&mut State);
    fn with(change: impl FnOnce(&mut CachePool), state: &mut State) {
        let mut pool = state.caches.pool("p").unwrap().clone();
        change(&mut pool);
        state.caches.put_pool("p".into(), pool);
    }
    fn with_directive(change: impl FnOnce(&mut CacheDirective), state: &mut State) {
        let mut directive = state.caches.directive(1).unwrap().clone();
        change(&mut directive);
        state.caches.put_directive(1, directive);
    }
    let changes: [Change; 11] = [
        |s| s.caches.next_directive += 1,
        |s| with(|p| p.owner = "x".into(), s),
        |s| with(|p| p.group = "x".into(), s),
        |s| with(|p| p.mode = vocab::Mode::new(0o700), s),
        |s| with(|p| p.limit += 1, s),
        |s| with(|p| p.default_replication += 1, s),
        |s| with(|p| p.longest_life_ms += 1, s),
        |s| with_directive(|d| d.path = b"/x"[..].into(), s),
        |s| with_directive(|d| d.replication += 1, s),
        |s| with_directive(|d| d.expiry = TimeMs(1), s),
        |s| s.caches.remove_directive(1),
    ];
    let mut w = World::new();
    w.apply(&Record::AddCachePool { pool: pool("p"), rpc: None });
    w.apply(&Record::AddCacheDirective { directive: directive(1, "p"), rpc: None });
    let mut seen = vec![w.state.digest()];
    for change in changes {
        change(&mut w.state);
        let digest = w.state.digest();
        assert!(!seen.contains(&digest), "change {}", seen.len());
        seen.push(digest);
    }
}
