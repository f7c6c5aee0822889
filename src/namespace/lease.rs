//! Leases by client name: which files a client writes and when it last renewed. Holders and files are derived from the open files; ages are soft.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::InodeId;
use vocab::time::MonotonicMs;

/// After this time without renewal another client may take a file over (`LEASE_SOFTLIMIT_PERIOD`).
pub const SOFT_LIMIT_MS: u64 = 60_000;

/// The lease of one client.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Client name.
    pub holder: Arc<str>,
    /// Last renewal.
    pub renewed: MonotonicMs,
    /// Files it writes.
    pub files: BTreeSet<InodeId>,
}

/// All leases.
#[derive(Debug, Default)]
pub struct Leases {
    by_holder: BTreeMap<Arc<str>, Lease>,
    by_age: BTreeSet<(MonotonicMs, Arc<str>)>,
    now: MonotonicMs,
    internal: Option<Internal>,
}

/// The name under which the server itself holds leases it recovers; a new one is made every so often, so that an old recovery can be retried.
#[derive(Clone, Debug)]
struct Internal {
    name: Arc<str>,
    made: MonotonicMs,
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
        if !self.by_holder.contains_key(holder) {
            let holder: Arc<str> = holder.into();
            self.by_age.insert((self.now, holder.clone()));
            self.by_holder.insert(holder.clone(), Lease { holder, renewed: self.now, files: BTreeSet::new() });
        }
        self.renew(holder);
        let Some(lease) = self.by_holder.get_mut(holder) else { unreachable!("just made") };
        lease.files.insert(file);
    }

    /// Takes a file out of a client's lease; an empty lease ends.
    pub(crate) fn remove(&mut self, holder: &str, file: InodeId) {
        let Some(lease) = self.by_holder.get_mut(holder) else { return };
        lease.files.remove(&file);
        if lease.files.is_empty()
            && let Some(lease) = self.by_holder.remove(holder)
        {
            self.by_age.remove(&(lease.renewed, lease.holder));
        }
    }

    /// Renews a client's lease. `false` if it has none.
    pub fn renew(&mut self, holder: &str) -> bool {
        let now = self.now;
        let Some(lease) = self.by_holder.get_mut(holder) else { return false };
        self.by_age.remove(&(lease.renewed, lease.holder.clone()));
        lease.renewed = now;
        self.by_age.insert((now, lease.holder.clone()));
        true
    }

    /// Renews all leases: after a restart or a failover clients get the full time again.
    pub fn renew_all(&mut self) {
        let now = self.now;
        self.by_age = self.by_holder.keys().map(|holder| (now, holder.clone())).collect();
        self.by_holder.values_mut().for_each(|lease| lease.renewed = now);
    }

    /// The lease of a client.
    pub fn get(&self, holder: &str) -> Option<&Lease> {
        self.by_holder.get(holder)
    }
    /// Whether a client's lease is older than the soft limit; a client without one counts as expired.
    pub fn soft_expired(&self, holder: &str) -> bool {
        self.get(holder).is_none_or(|lease| self.now.since(lease.renewed) > SOFT_LIMIT_MS)
    }
    /// Leases not renewed for `limit_ms`, oldest first.
    pub fn expired(&self, limit_ms: u64) -> impl Iterator<Item = &Lease> {
        let now = self.now;
        let old = self.by_age.iter().take_while(move |(renewed, _)| now.since(*renewed) > limit_ms);
        old.filter_map(|(_, holder)| self.by_holder.get(holder))
    }
    /// Number of clients that write.
    pub fn len(&self) -> usize {
        self.by_holder.len()
    }
    /// Whether nobody writes.
    pub fn is_empty(&self) -> bool {
        self.by_holder.is_empty()
    }
    /// All leases, by client name.
    pub fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.by_holder.values()
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
        leases.remove("b", InodeId(2));
        assert_eq!(leases.len(), 2);
        leases.remove("b", InodeId(3));
        assert_eq!(leases.len(), 1);
    }
}
