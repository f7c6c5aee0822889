//! Purpose: groups of a user: static overrides, then a provider, behind a cache that remembers failures too.
//! Called by: rpc at the edge, once per connection and cache period; the user-mapping services of server.
//! Calls: the providers in this folder.
//! Never: runs a command under the lock of the cache; asks twice at once for the same user.
//! Invariants: an answer carries the time until which it counts and the generation of the cache that gave it.

mod composite;
pub mod ldap;
mod shell;

use ldap::{Directory, LdapSettings};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore};

/// Groups in the order of the mapping, the primary one first.
pub type GroupList = Arc<[Arc<str>]>;

/// Where groups come from (`hadoop.security.group.mapping`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Provider {
    /// The `id` command through a shell, as `ShellBasedUnixGroupsMapping` asks it, which is also what the default
    /// `JniBasedUnixGroupsMappingWithFallback` falls back to.
    Shell {
        /// After this time the command is killed and the user has no groups (`hadoop.security.groups.shell.command.timeout`).
        timeout: Option<Duration>,
    },
    /// Nobody has groups (`NullGroupsMapping`).
    Nobody,
    /// A directory server (`LdapGroupsMapping`, `RuleBasedLdapGroupsMapping`).
    Ldap(Box<LdapSettings>),
    /// Several (`CompositeGroupsMapping`).
    Composite {
        /// Which, in order.
        providers: Vec<Provider>,
        /// Whether all are asked, or only until one knows groups (`hadoop.security.group.mapping.providers.combined`).
        combined: bool,
    },
}

/// A provider at work.
#[derive(Debug)]
enum Source {
    Shell(Option<Duration>),
    Nobody,
    Directory(Box<Directory>),
    Composite(Vec<Source>, bool),
}

impl Source {
    fn new(provider: &Provider) -> Source {
        match provider {
            Provider::Shell { timeout } => Source::Shell(*timeout),
            Provider::Nobody => Source::Nobody,
            Provider::Ldap(settings) => Source::Directory(Box::new(Directory::new((**settings).clone()))),
            Provider::Composite { providers, combined } => {
                Source::Composite(providers.iter().map(Source::new).collect(), *combined)
            }
        }
    }

    async fn look_up(&self, user: &str) -> GroupList {
        match self {
            Source::Shell(timeout) => shell::look_up(user, *timeout).await,
            Source::Nobody => Arc::default(),
            Source::Directory(directory) => directory.look_up(user).await,
            Source::Composite(sources, combined) => composite::look_up(sources, *combined, user).await,
        }
    }
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
    /// How many look-ups may refresh groups in the background, the old ones counting meanwhile for up to ten times their time
    /// (`hadoop.security.groups.cache.background.reload`, `...background.reload.threads`); 0: who needs them waits.
    pub background: usize,
    /// A look-up that takes longer is warned about (`hadoop.security.groups.cache.warn.after.ms`).
    pub warn_after: Duration,
}

impl Default for GroupSettings {
    fn default() -> GroupSettings {
        GroupSettings {
            provider: Provider::Shell { timeout: None },
            overrides: parse_overrides("dr.who=;").expect("the default of Hadoop"),
            ttl: Duration::from_secs(300),
            negative_ttl: Duration::from_secs(30),
            background: 0,
            warn_after: Duration::from_secs(5),
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
    /// How long they count if they are being refreshed.
    at_most: Instant,
    generation: u64,
}

/// The group mapping of the process.
#[derive(Debug)]
pub struct Groups(Arc<Cache>);

#[derive(Debug)]
struct Cache {
    settings: GroupSettings,
    source: Source,
    known: Mutex<HashMap<String, Arc<OnceCell<UserGroups>>>>,
    refreshing: Mutex<HashSet<String>>,
    refreshes: Semaphore,
    generation: AtomicU64,
}

/// Beyond this many users the cache drops expired ones at each insertion.
const CACHE_SWEEP_USERS: usize = 4_096;
/// So many times their time old groups count while they are refreshed.
const STRETCH: u32 = 10;

impl Groups {
    /// A mapping with an empty cache.
    pub fn new(settings: GroupSettings) -> Groups {
        Groups(Arc::new(Cache {
            source: Source::new(&settings.provider),
            refreshes: Semaphore::new(settings.background),
            settings,
            known: Mutex::default(),
            refreshing: Mutex::default(),
            generation: AtomicU64::new(0),
        }))
    }
    /// Groups of a user, from the cache or looked up. Never fails: an unknown user has none.
    pub async fn of(&self, user: &str) -> UserGroups {
        let cache = &self.0;
        let (generation, now) = (cache.generation.load(Ordering::Acquire), Instant::now());
        if let Some(groups) = cache.settings.overrides.get(user) {
            let until = now + cache.settings.ttl;
            return UserGroups { groups: groups.clone(), until, at_most: until, generation };
        }
        let cell = cache.cell(user, now);
        if let Some(old) = cell.get().filter(|answer| answer.until <= now) {
            cache.refresh(user);
            return old.clone();
        }
        cell.get_or_init(|| cache.load(user, generation)).await.clone()
    }
    /// Whether an answer still counts, so that it need not be asked for again.
    pub fn is_current(&self, answer: &UserGroups, now: Instant) -> bool {
        now < answer.until && answer.generation == self.0.generation.load(Ordering::Acquire)
    }
    /// Forgets all answers (`refreshUserToGroupsMappings`).
    pub fn refresh(&self) {
        self.0.generation.fetch_add(1, Ordering::AcqRel);
        self.0.known.lock().clear();
    }
}

impl Cache {
    /// The cell of a user: the present one if it counts or is being filled, else a new one.
    fn cell(&self, user: &str, now: Instant) -> Arc<OnceCell<UserGroups>> {
        let counts = |cell: &OnceCell<UserGroups>| cell.get().is_none_or(|answer| now < answer.at_most);
        let mut known = self.known.lock();
        if let Some(cell) = known.get(user).filter(|cell| counts(cell)) {
            return cell.clone();
        }
        if known.len() >= CACHE_SWEEP_USERS {
            known.retain(|_, cell| counts(cell));
        }
        let cell = Arc::new(OnceCell::new());
        known.insert(user.to_owned(), cell.clone());
        cell
    }

    async fn load(&self, user: &str, generation: u64) -> UserGroups {
        let begun = Instant::now();
        let groups = self.source.look_up(user).await;
        let now = Instant::now();
        if now - begun > self.settings.warn_after {
            let took = (now - begun).as_millis();
            tracing::warn!("Potential performance problem: getGroups(user={user}) took {took} milliseconds.");
        }
        let ttl = if groups.is_empty() { self.settings.negative_ttl } else { self.settings.ttl };
        let stretch = if groups.is_empty() || self.settings.background == 0 { 1 } else { STRETCH };
        UserGroups { groups, until: now + ttl, at_most: now + ttl * stretch, generation }
    }

    /// Looks a user's groups up again, apart from who asks.
    fn refresh(self: &Arc<Self>, user: &str) {
        if !self.refreshing.lock().insert(user.to_owned()) {
            return;
        }
        let (cache, user) = (self.clone(), user.to_owned());
        tokio::spawn(async move {
            let permit = cache.refreshes.acquire().await;
            let generation = cache.generation.load(Ordering::Acquire);
            let answer = cache.load(&user, generation).await;
            drop(permit);
            if cache.generation.load(Ordering::Acquire) == generation {
                cache.known.lock().insert(user.clone(), Arc::new(OnceCell::new_with(Some(answer))));
            }
            cache.refreshing.lock().remove(&user);
        });
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
