//! Cache pools and directives come, change and go.

use super::Context;
use crate::caches::{CacheDirective, CachePool, LONGEST_LIFE_MS, NO_LIMIT};
use crate::{Effect, RetryPayload, State};
use edit::Record;
use edit::record;
use vocab::Mode;

/// The mode of a pool whose record has none.
const MODE: Mode = Mode::new(0o755);

impl State {
    /// What is wanted where changes, so that a scan is due.
    pub(super) fn apply_caches(&mut self, cx: &mut Context<'_>, record: &Record<'_>) {
        let (rpc, payload) = match record {
            Record::AddCachePool { pool, rpc } | Record::ModifyCachePool { pool, rpc } => {
                self.put_cache_pool(pool);
                (rpc, RetryPayload::Done)
            }
            Record::RemoveCachePool { name, rpc } => {
                self.caches.remove_pool(name);
                (rpc, RetryPayload::Done)
            }
            Record::AddCacheDirective { directive, rpc } => {
                self.put_cache_directive(directive);
                (rpc, RetryPayload::Id(directive.id))
            }
            Record::ModifyCacheDirective { directive, rpc } => {
                self.put_cache_directive(directive);
                (rpc, RetryPayload::Done)
            }
            Record::RemoveCacheDirective { id, rpc } => {
                self.caches.remove_directive(*id);
                (rpc, RetryPayload::Done)
            }
            other => unreachable!("fit let it through: {other:?}"),
        };
        cx.effects.push(Effect::Caching);
        self.remember(cx, *rpc, payload);
    }

    fn put_cache_pool(&mut self, of: &record::CachePool<'_>) {
        let record::CachePool { name, owner, group, mode, limit, max_relative_expiry, default_replication } = of;
        let known = self.caches.pool(name).cloned().unwrap_or_else(|| CachePool {
            owner: "".into(),
            group: "".into(),
            mode: MODE,
            limit: NO_LIMIT,
            default_replication: 1,
            longest_life_ms: LONGEST_LIFE_MS,
        });
        let pool = CachePool {
            owner: owner.as_deref().map_or(known.owner, Into::into),
            group: group.as_deref().map_or(known.group, Into::into),
            mode: mode.unwrap_or(known.mode),
            limit: limit.unwrap_or(known.limit),
            default_replication: default_replication.unwrap_or(known.default_replication),
            longest_life_ms: max_relative_expiry.unwrap_or(known.longest_life_ms),
        };
        self.caches.put_pool((&**name).into(), pool);
    }

    fn put_cache_directive(&mut self, of: &record::CacheDirective<'_>) {
        let record::CacheDirective { id, path, replication, pool, expiration } = of;
        let known = self.caches.directive(*id).cloned();
        let whole = "fit saw a whole record or the directive that it changes";
        let directive = CacheDirective {
            path: path.as_deref().map_or_else(|| known.as_ref().expect(whole).path.clone(), Into::into),
            replication: replication.unwrap_or_else(|| known.as_ref().expect(whole).replication),
            pool: pool.as_deref().map_or_else(|| known.as_ref().expect(whole).pool.clone(), Into::into),
            expiry: expiration.unwrap_or_else(|| known.as_ref().expect(whole).expiry),
        };
        self.caches.put_directive(*id, directive);
    }
}
