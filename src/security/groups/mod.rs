//! Purpose: groups of a user: static overrides, then a provider, behind a cache that remembers failures too.
//! Called by: rpc at the edge, once per connection and cache period; the user-mapping services of server.
//! Calls: the providers in this folder.
//! Never: runs a command under the lock of the cache; asks twice at once for the same user.
//! Invariants: an answer carries the time until which it counts and the generation of the cache that gave it.

mod shell;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Groups in the order of the mapping, the primary one first.
pub type GroupList = Arc<[Arc<str>]>;

/// Where groups come from (`hadoop.security.group.mapping`).
#[derive(Clone, Debug)]
pub enum Provider {
    /// The `id` command through a shell, as `ShellBasedUnixGroupsMapping` asks it, which is also what the default
    /// `JniBasedUnixGroupsMappingWithFallback` falls back to.
    Shell {
        /// After this time the command is killed and the user has no groups (`hadoop.security.groups.shell.command.timeout`).
        timeout: Option<Duration>,
    },
    /// Nobody has groups (`NullGroupsMapping`).
    Nobody,
}

/// How the cache works.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// Source of groups.
    pub provider: Provider,
    /// Groups of users that never reach the provider (`hadoop.user.group.static.mapping.overrides`).
    pub overrides: HashMap<String, GroupList>,
    /// How long groups count (`hadoop.security.groups.cache.secs`).
    pub ttl: Duration,
    /// How long it counts that there are none (`hadoop.security.groups.negative-cache.secs`); zero: not at all.
    pub negative_ttl: Duration,
}

impl Default for GroupSettings {
    fn default() -> GroupSettings {
        GroupSettings {
            provider: Provider::Shell { timeout: None },
            overrides: parse_overrides("dr.who=;").expect("the default of Hadoop"),
            ttl: Duration::from_secs(300),
            negative_ttl: Duration::from_secs(30),
        }
    }
}

/// Reads `user=group,group;user=;...`. An error names the part that is no such thing.
pub fn parse_overrides(text: &str) -> Result<HashMap<String, GroupList>, String> {
    let mut overrides = HashMap::new();
    for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
        let (user, groups) = part.split_once('=').unwrap_or((part, ""));
        if groups.contains('=') {
            return Err(format!("{part} is no mapping of a user to groups"));
        }
        if user.trim().is_empty() {
            continue;
        }
        let groups = groups.split(',').map(str::trim).filter(|g| !g.is_empty()).map(Arc::from).collect();
        overrides.insert(user.trim().to_owned(), groups);
    }
    Ok(overrides)
}

/// Groups of a user, and how long they count.
#[derive(Clone, Debug)]
pub struct UserGroups {
    /// The groups; empty for an unknown user.
    pub groups: GroupList,
    until: Instant,
    generation: u64,
}

/// The group mapping of the process.
#[derive(Debug)]
pub struct Groups {
    settings: GroupSettings,
    cache: Mutex<HashMap<String, Arc<OnceCell<UserGroups>>>>,
    generation: AtomicU64,
}

/// Beyond this many users the cache drops expired ones at each insertion.
const CACHE_SWEEP_USERS: usize = 4_096;

impl Groups {
    /// A mapping with an empty cache.
    pub fn new(settings: GroupSettings) -> Groups {
        Groups { settings, cache: Mutex::default(), generation: AtomicU64::new(0) }
    }
    /// Groups of a user, from the cache or looked up. Never fails: an unknown user has none.
    pub async fn of(&self, user: &str) -> UserGroups {
        let generation = self.generation.load(Ordering::Acquire);
        let now = Instant::now();
        if let Some(groups) = self.settings.overrides.get(user) {
            return UserGroups { groups: groups.clone(), until: now + self.settings.ttl, generation };
        }
        let cell = self.cell(user, now);
        cell.get_or_init(|| async {
            let groups = self.settings.provider.look_up(user).await;
            let ttl = if groups.is_empty() { self.settings.negative_ttl } else { self.settings.ttl };
            UserGroups { groups, until: Instant::now() + ttl, generation }
        })
        .await
        .clone()
    }
    /// Whether an answer still counts, so that it need not be asked for again.
    pub fn is_current(&self, answer: &UserGroups, now: Instant) -> bool {
        now < answer.until && answer.generation == self.generation.load(Ordering::Acquire)
    }
    /// Forgets all answers (`refreshUserToGroupsMappings`).
    pub fn refresh(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.cache.lock().clear();
    }
    /// The cell of a user: the present one if it counts or is being filled, else a new one.
    fn cell(&self, user: &str, now: Instant) -> Arc<OnceCell<UserGroups>> {
        let counts = |cell: &OnceCell<UserGroups>| cell.get().is_none_or(|answer| now < answer.until);
        let mut cache = self.cache.lock();
        if let Some(cell) = cache.get(user).filter(|cell| counts(cell)) {
            return cell.clone();
        }
        if cache.len() >= CACHE_SWEEP_USERS {
            cache.retain(|_, cell| counts(cell));
        }
        let cell = Arc::new(OnceCell::new());
        cache.insert(user.to_owned(), cell.clone());
        cell
    }
}

impl Provider {
    async fn look_up(&self, user: &str) -> GroupList {
        match self {
            Provider::Shell { timeout } => shell::look_up(user, *timeout).await,
            Provider::Nobody => Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(groups: &GroupList) -> Vec<&str> {
        groups.iter().map(|g| &**g).collect()
    }

    #[test]
    fn overrides_as_hadoop_reads_them() {
        let overrides = parse_overrides(";hdfs=supergroup;alice=staff,,dev;carol=;=x;dr.who").unwrap();
        assert_eq!(names(&overrides["hdfs"]), ["supergroup"]);
        assert_eq!(names(&overrides["alice"]), ["staff", "dev"]);
        assert!(overrides["carol"].is_empty() && overrides["dr.who"].is_empty());
        assert_eq!(overrides.len(), 4);
        assert!(parse_overrides("a=b=c").is_err());
    }
}
