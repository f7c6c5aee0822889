//! Leases by client name: which files a client writes and when it last renewed. Holders and files are derived from the open files; ages are soft.

use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use vocab::InodeId;
use vocab::time::MonotonicMs;

/// After this time without renewal another client may take a file over (`LEASE_SOFTLIMIT_PERIOD`).
pub const SOFT_LIMIT_MS: u64 = 60_000;

/// A renewal so soon after another leaves the order of ages alone.
const AGE_GRAIN_MS: u64 = 1_000;

/// The lease of one client.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Client name.
    pub holder: Arc<str>,
    /// Last renewal.
    pub renewed: MonotonicMs,
    /// Its time in the order of ages: not after the last renewal, and less than [`AGE_GRAIN_MS`] before it.
    queued: MonotonicMs,
    /// Files it writes.
    pub files: BTreeSet<InodeId>,
}

/// Most leases without files that are kept: a client that closes a file is about to write another one.
const IDLE_MAX: usize = 256;

/// All leases.
#[derive(Debug, Default)]
pub struct Leases {
    /// Those without files are as good as none.
    by_holder: HashMap<Arc<str>, Lease>,
    by_age: BTreeSet<(MonotonicMs, Arc<str>)>,
    /// How many have no files.
    idle: usize,
    now: MonotonicMs,
    internal: Option<Internal>,
}

/// The name under which the server itself holds leases it recovers; a new one is made every so often, so that an old recovery can be retried.
#[derive(Clone, Debug)]
struct Internal {
    name: Arc<str>,
    made: MonotonicMs,
}

impl Lease {
    fn renew(&mut self, now: MonotonicMs, by_age: &mut BTreeSet<(MonotonicMs, Arc<str>)>) {
        self.renewed = now;
        if now.since(self.queued) >= AGE_GRAIN_MS {
            by_age.remove(&(self.queued, self.holder.clone()));
            by_age.insert((now, self.holder.clone()));
            self.queued = now;
        }
    }
}

impl Leases {
    /// Sets the clock that new leases and renewals are stamped with.
    pub fn set_now(&mut self, now: MonotonicMs) {
        self.now = now;
    }
    /// The clock as last set.
    pub fn now(&self) -> MonotonicMs {
        self.now
    }

    /// Adds a file to a client's lease, which counts as a renewal.
    pub(crate) fn add(&mut self, holder: &str, file: InodeId) {
        let now = self.now;
        if let Some(lease) = self.by_holder.get_mut(holder) {
            self.idle -= usize::from(lease.files.is_empty());
            lease.renew(now, &mut self.by_age);
            lease.files.insert(file);
            return;
        }
        let holder: Arc<str> = holder.into();
        self.by_age.insert((now, holder.clone()));
        let lease = Lease { holder: holder.clone(), renewed: now, queued: now, files: BTreeSet::from([file]) };
        self.by_holder.insert(holder, lease);
    }

    /// Takes a file out of a client's lease; an empty lease ends.
    pub(crate) fn remove(&mut self, holder: &str, file: InodeId) {
        let Some(lease) = self.by_holder.get_mut(holder) else { return };
        if lease.files.remove(&file) && lease.files.is_empty() {
            self.idle += 1;
        }
        if self.idle > IDLE_MAX {
            self.idle = 0;
            for (_, lease) in self.by_holder.extract_if(|_, lease| lease.files.is_empty()) {
                self.by_age.remove(&(lease.queued, lease.holder));
            }
        }
    }

    /// Renews a client's lease. `false` if it has none.
    pub fn renew(&mut self, holder: &str) -> bool {
        let now = self.now;
        let lease = self.by_holder.get_mut(holder).filter(|lease| !lease.files.is_empty());
        let Some(lease) = lease else { return false };
        lease.renew(now, &mut self.by_age);
        true
    }

    /// Renews all leases: after a restart or a failover clients get the full time again.
    pub fn renew_all(&mut self) {
        let now = self.now;
        self.by_age = self.by_holder.keys().map(|holder| (now, holder.clone())).collect();
        self.by_holder.values_mut().for_each(|lease| (lease.renewed, lease.queued) = (now, now));
    }

    /// The lease of a client.
    pub fn get(&self, holder: &str) -> Option<&Lease> {
        self.by_holder.get(holder).filter(|lease| !lease.files.is_empty())
    }
    /// Whether a client's lease is older than the soft limit; a client without one counts as expired.
    pub fn soft_expired(&self, holder: &str) -> bool {
        self.get(holder).is_none_or(|lease| self.now.since(lease.renewed) > SOFT_LIMIT_MS)
    }
    /// Leases not renewed for `limit_ms`, oldest first (to the second).
    pub fn expired(&self, limit_ms: u64) -> impl Iterator<Item = &Lease> {
        let now = self.now;
        let old = self.by_age.iter().take_while(move |(queued, _)| now.since(*queued) > limit_ms);
        old.filter_map(|(_, holder)| self.get(holder)).filter(move |l| now.since(l.renewed) > limit_ms)
    }
    /// Number of clients that write.
    pub fn len(&self) -> usize {
        self.by_holder.len() - self.idle
    }
    /// Whether nobody writes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// All leases, by client name.
    pub fn iter(&self) -> impl Iterator<Item = &Lease> {
        let mut leases: Vec<&Lease> = self.by_holder.values().filter(|lease| !lease.files.is_empty()).collect();
        leases.sort_unstable_by(|a, b| a.holder.cmp(&b.holder));
        leases.into_iter()
    }

    /// The holder name of the server's own recoveries. `fresh` is used when the last name is older than the hard limit.
    pub fn internal_holder(&mut self, limit_ms: u64, fresh: impl FnOnce() -> Arc<str>) -> Arc<str> {
        match &self.internal {
            Some(internal) if self.now.since(internal.made) <= limit_ms => internal.name.clone(),
            _ => {
                let name = fresh();
                self.internal = Some(Internal { name: name.clone(), made: self.now });
                name
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        let mut leases = Leases::default();
        leases.set_now(MonotonicMs(1_000));
        leases.add("a", InodeId(1));
        leases.set_now(MonotonicMs(2_000));
        leases.add("b", InodeId(2));
        leases.add("b", InodeId(3));
        leases.set_now(MonotonicMs(1_000 + SOFT_LIMIT_MS + 1));
        assert!(leases.soft_expired("a") && !leases.soft_expired("b") && leases.soft_expired("nobody"));
        assert_eq!(leases.expired(SOFT_LIMIT_MS).map(|l| &*l.holder).collect::<Vec<_>>(), ["a"]);
        assert!(leases.renew("a") && !leases.renew("nobody"));
        assert_eq!(leases.expired(SOFT_LIMIT_MS).count(), 0);
        leases.set_now(MonotonicMs(1_000 + SOFT_LIMIT_MS + 500));
        assert!(leases.renew("a"));
        leases.set_now(MonotonicMs(1_000 + 2 * SOFT_LIMIT_MS + 200));
        assert_eq!(
            leases.expired(SOFT_LIMIT_MS).map(|l| &*l.holder).collect::<Vec<_>>(),
            ["b"],
            "renewed twice within a second"
        );
        leases.remove("b", InodeId(2));
        assert_eq!(leases.len(), 2);
        leases.remove("b", InodeId(3));
        assert_eq!(leases.len(), 1);
        assert!(leases.get("b").is_none() && leases.soft_expired("b") && !leases.renew("b"));
        assert_eq!(leases.iter().map(|l| &*l.holder).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn clients_that_write_nothing_are_forgotten() {
        let mut leases = Leases::default();
        for n in 0..2_000 {
            leases.set_now(MonotonicMs(n));
            leases.add(&format!("c{n}"), InodeId(n as i64));
            leases.remove(&format!("c{n}"), InodeId(n as i64 + 1));
            assert_eq!(leases.len(), 1);
            leases.remove(&format!("c{n}"), InodeId(n as i64));
            leases.remove(&format!("c{n}"), InodeId(n as i64));
            assert!(leases.is_empty());
            assert!(leases.by_holder.len() <= IDLE_MAX + 1 && leases.by_age.len() == leases.by_holder.len());
        }
        leases.add("c1999", InodeId(7));
        leases.set_now(MonotonicMs(100_000));
        assert_eq!(leases.expired(SOFT_LIMIT_MS).map(|l| &*l.holder).collect::<Vec<_>>(), ["c1999"]);
    }
}
