//! Pools and directives of centralized caching (Hadoop's `CacheManager`): what is to be kept in the memory of DataNodes, and who may ask for it.
//! The tables are durable; what they use is soft, and counted anew by every scan.

use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{Mode, TimeMs};

/// The limit of a pool that has none.
pub const NO_LIMIT: i64 = i64::MAX;
/// The longest life of a directive, in milliseconds: what a pool allows that says nothing, and what a directive gets there.
pub const LONGEST_LIFE_MS: i64 = i64::MAX / 4;
/// The number of the first directive.
pub const FIRST_DIRECTIVE: i64 = 1;

/// Use of a directive or a pool: bytes and files that it wants, and that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // as in CacheDirectiveStats
pub struct CacheUse {
    pub bytes_needed: i64,
    pub bytes_cached: i64,
    pub files_needed: i64,
    pub files_cached: i64,
}

impl CacheUse {
    /// Adds another use.
    pub fn add(&mut self, other: &CacheUse) {
        self.bytes_needed = self.bytes_needed.wrapping_add(other.bytes_needed);
        self.bytes_cached = self.bytes_cached.wrapping_add(other.bytes_cached);
        self.files_needed = self.files_needed.wrapping_add(other.files_needed);
        self.files_cached = self.files_cached.wrapping_add(other.files_cached);
    }
}

/// A pool: who may cache in it, how much, for how long.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct CachePool {
    /// Owner.
    pub owner: Arc<str>,
    /// Group.
    pub group: Arc<str>,
    /// Who may see its figures (READ) and change its directives (WRITE).
    pub mode: Mode,
    /// Bytes that may be cached, replicas counted; [`NO_LIMIT`] for any number.
    pub limit: i64,
    /// Replication of directives that name none.
    pub default_replication: i16,
    /// How far ahead a directive may expire, in milliseconds.
    pub longest_life_ms: i64,
}

/// A directive: keep the blocks of a file, or of the files of a directory, in memory.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct CacheDirective {
    /// Path, which need not exist.
    pub path: Arc<[u8]>,
    /// Replicas to be cached.
    pub replication: i16,
    /// Its pool.
    pub pool: Arc<str>,
    /// When it ends to be in force.
    pub expiry: TimeMs,
}

/// Both tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caches {
    /// Number of the next directive.
    pub next_directive: i64,
    pools: BTreeMap<Arc<str>, (CachePool, CacheUse)>,
    directives: BTreeMap<i64, (CacheDirective, CacheUse)>,
}

impl Default for Caches {
    fn default() -> Caches {
        Caches { next_directive: FIRST_DIRECTIVE, pools: BTreeMap::new(), directives: BTreeMap::new() }
    }
}

impl Caches {
    /// A pool.
    pub fn pool(&self, name: &str) -> Option<&CachePool> {
        self.pools.get(name).map(|(pool, _)| pool)
    }
    /// What the directives of a pool use.
    pub fn pool_use(&self, name: &str) -> CacheUse {
        self.pools.get(name).map(|(_, used)| *used).unwrap_or_default()
    }
    /// A directive.
    pub fn directive(&self, id: i64) -> Option<&CacheDirective> {
        self.directives.get(&id).map(|(directive, _)| directive)
    }
    /// Pools by name, those after `after`.
    pub fn pools_after(&self, after: &str) -> impl Iterator<Item = (&Arc<str>, &CachePool, &CacheUse)> {
        // the empty name is no pool's
        let from = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        self.pools.range::<str, _>(from).map(|(name, (pool, used))| (name, pool, used))
    }
    /// Directives by number, those after `after`.
    pub fn directives_after(&self, after: i64) -> impl Iterator<Item = (i64, &CacheDirective, &CacheUse)> {
        let from = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        self.directives.range(from).map(|(id, (directive, used))| (*id, directive, used))
    }
    /// Number of pools.
    pub fn pool_count(&self) -> usize {
        self.pools.len()
    }
    /// Number of directives.
    pub fn directive_count(&self) -> usize {
        self.directives.len()
    }

    /// Adds a pool, or gives one other attributes.
    pub fn put_pool(&mut self, name: Arc<str>, pool: CachePool) {
        let used = self.pool_use(&name);
        self.pools.insert(name, (pool, used));
    }
    /// Takes a pool away, with its directives.
    pub fn remove_pool(&mut self, name: &str) {
        self.pools.remove(name);
        // Quirk: a_pool_goes_with_its_own_directives: Java forgets the paths of directives of other pools too, and then can neither change nor
        // remove those until it is restarted
        self.directives.retain(|_, (directive, _)| &*directive.pool != name);
    }
    /// Adds a directive, or gives one other attributes. It uses nothing until that is counted ([`Caches::set_needed`]).
    pub fn put_directive(&mut self, id: i64, directive: CacheDirective) {
        self.remove_directive(id);
        self.next_directive = self.next_directive.max(id.saturating_add(1));
        self.directives.insert(id, (directive, CacheUse::default()));
    }
    /// Takes a directive away.
    pub fn remove_directive(&mut self, id: i64) {
        let Some((directive, used)) = self.directives.remove(&id) else { return };
        if let Some((_, pool)) = self.pools.get_mut(&directive.pool) {
            // what is cached goes when it is uncached, which the next scan sees
            pool.bytes_needed = pool.bytes_needed.wrapping_sub(used.bytes_needed);
            pool.files_needed = pool.files_needed.wrapping_sub(used.files_needed);
        }
    }
    /// What a new or changed directive wants, until the next scan (soft).
    pub fn set_needed(&mut self, id: i64, bytes: i64) {
        let Some((directive, used)) = self.directives.get_mut(&id) else { return };
        used.bytes_needed = bytes;
        if let Some((_, pool)) = self.pools.get_mut(&directive.pool) {
            pool.bytes_needed = pool.bytes_needed.wrapping_add(bytes);
        }
    }
    /// What a scan has counted, by directive (soft). Directives that are not in it keep what they have.
    pub fn set_uses(&mut self, counted: &BTreeMap<i64, CacheUse>) {
        self.pools.values_mut().for_each(|(_, used)| *used = CacheUse::default());
        for (id, (directive, used)) in &mut self.directives {
            *used = counted.get(id).copied().unwrap_or(*used);
            if let Some((_, pool)) = self.pools.get_mut(&directive.pool) {
                pool.add(used);
            }
        }
    }
    /// Forgets all uses (soft): the role is not active any more.
    pub fn clear_uses(&mut self) {
        self.pools.values_mut().for_each(|(_, used)| *used = CacheUse::default());
        self.directives.values_mut().for_each(|(_, used)| *used = CacheUse::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> CachePool {
        let (owner, group, mode) = ("o".into(), "g".into(), Mode::new(0o755));
        CachePool { owner, group, mode, limit: NO_LIMIT, default_replication: 1, longest_life_ms: LONGEST_LIFE_MS }
    }
    fn directive(pool: &str) -> CacheDirective {
        CacheDirective { path: b"/f"[..].into(), replication: 1, pool: pool.into(), expiry: TimeMs(7) }
    }

    #[test]
    fn a_pool_goes_with_its_own_directives() {
        let mut caches = Caches::default();
        caches.put_pool("a".into(), pool());
        caches.put_pool("b".into(), pool());
        caches.put_directive(1, directive("a"));
        caches.put_directive(2, directive("b"));
        caches.remove_pool("a");
        assert_eq!(caches.directives_after(0).map(|(id, ..)| id).collect::<Vec<_>>(), [2]);
        assert_eq!((caches.pool_count(), caches.next_directive), (1, 3));
    }

    #[test]
    fn a_pool_uses_what_its_directives_do() {
        let mut caches = Caches::default();
        caches.put_pool("a".into(), pool());
        for (id, bytes) in [(1, 10), (2, 20)] {
            caches.put_directive(id, directive("a"));
            caches.set_needed(id, bytes);
        }
        assert_eq!(caches.pool_use("a").bytes_needed, 30);
        let one = CacheUse { bytes_needed: 12, bytes_cached: 5, files_needed: 1, files_cached: 0 };
        caches.set_uses(&[(1, one)].into());
        assert_eq!(caches.pool_use("a"), CacheUse { bytes_needed: 32, ..one });
        caches.remove_directive(1);
        assert_eq!(
            caches.pool_use("a"),
            CacheUse { bytes_needed: 20, bytes_cached: 5, files_needed: 0, files_cached: 0 }
        );
        caches.put_pool("a".into(), CachePool { limit: 3, ..pool() });
        assert_eq!(caches.pool_use("a").bytes_needed, 20, "a changed pool keeps its use");
    }
}
